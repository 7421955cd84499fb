// The narrow timeline in a page: its steps, its texts, and what strangers write.

import assert from "node:assert/strict";
import test from "node:test";
import { type RunEventKind, type Source, showInvisible } from "@redflow/bindings";
import { type IterationTexts, type LiveText, Timeline, mountTimeline } from "../src/timeline/index.js";
import { environment, open, screen, textOf, timelineOf, until } from "./timeline-kit.js";

const none = (): Promise<IterationTexts> => Promise.reject(new Error("not asked"));
const narrow = { mode: "narrow", readTexts: none } as const;

const asked = (iteration: number): RunEventKind => ({ type: "model_called", iteration });
const answered = (iteration: number, more: object = {}): RunEventKind => ({ type: "model_answered", iteration, action: "final", durationMs: 1_500, ...more });
const called = (callId: string, tool = "look"): RunEventKind => ({ type: "tool_called", iteration: 1, tool, callId });
const source = (ref: string): Source => ({ kind: "knowledge", ref, score: 0.5, trust: "external" });
const returned = (callId: string, more: object = {}): RunEventKind => ({ type: "tool_returned", iteration: 1, tool: "look", callId, success: true, durationMs: 3, ...more });

test("each step is a sentence", (t) => {
  const { root, show } = screen(t);
  const started: [number, RunEventKind] = [0, { type: "run_started", name: "Desk", maxIterations: 5, tools: [] }];
  const rows: [string, [number, RunEventKind][], string][] = [
    ["a call of the model", [[1, asked(1)]], "Calling the model"],
    ["an answer", [[1, asked(1)], [2, answered(1, { confidence: 0.9 })]], "Model gives its answer 0.90 1.5 s"],
    ["a call", [[1, asked(1)], [2, answered(1, { action: "tool", tool: "look" })], [3, called("c")]], "Tool look is running"],
    ["several tools", [[1, asked(1)], [2, answered(1, { action: "tool", tools: ["look", "mail"] })]], "Model calls several tools: look, mail"],
    ["a result", [[1, called("c")], [2, returned("c")]], "Tool look returned its result 3 ms"],
    ["sources", [[1, called("c")], [2, returned("c", { sources: [source("docs/a.md#1"), source("docs/b.md#2")] })]], "Tool look returned its result 3 ms From: docs/a.md#1, docs/b.md#2"],
    ["a failure", [[1, called("c")], [2, returned("c", { success: false, error: "no line" })]], "Tool look failed: no line 3 ms"],
    ["an unknown outcome", [[1, called("c")], [2, { type: "waiting_for_outcome", iteration: 1, tool: "look", callId: "c", reason: "a crash" }]], "The outcome of look is unknown: a crash"],
    ["a failed model", [[1, asked(1)], [2, { type: "model_fell_over", iteration: 1, model: "big", code: "RATE_LIMIT" }]], "Model big failed (RATE_LIMIT): the next model was called"],
    ["refused fields", [[1, asked(1)], [2, answered(1, { refused: ["temperature", "tool_choice"] })]], "so the model was called without them: temperature, tool_choice"],
    ["recalled messages", [[1, { type: "memory_recalled", messages: 2 }]], "Memory: messages recalled: 2"],
    ["recalled entries", [[1, { type: "memory_recalled", messages: 2, sources: [source("ltm/a#1"), source("ltm/b#2")] }]], "Memory: messages recalled: 2 From: ltm/a#1, ltm/b#2"],
    ["a budget", [[1, { type: "budget_low", budget: "tokens", limit: 100, spent: 81 }]], "Budget: 80 % used: tokens 81 of 100"],
    ["a budget of a cost", [[1, { type: "budget_reached", budget: "cost", limit: 0.002, spent: 0.00213 }]], "Budget used up: cost 0.00213 of 0.002"],
    ["downloaded images", [[1, { type: "images_fetched", images: 3 }]], "Images downloaded: 3"],
    ["a summary", [[1, { type: "summarised", iteration: 2, messages: 9 }]], "A summary replaces old messages: 9"],
    ["a conclusion for its tokens", [[1, { type: "concluding", iteration: 2, reason: "tokens" }]], "The model can only finish now: 90 % of the conversation’s tokens are used"],
    ["a conclusion for its iterations", [[1, { type: "concluding", iteration: 4, reason: "iterations" }]], "The model can only finish now: one iteration is left"],
    ["tokens of a cache", [[1, asked(1)], [2, answered(1, { usage: { inputTokens: 9000, outputTokens: 5, cachedTokens: 8000 } })]], "Tokens: 9,000 read, 5 written · 8,000 from the cache · Cost: unknown"],
    ["no tokens of a cache", [[1, asked(1)], [2, answered(1, { usage: { inputTokens: 9, outputTokens: 5, cachedTokens: 0, cost: 0.5 } })]], "Tokens: 9 read, 5 written · Cost: 0.5"],
    [
      "a cost that is partly known",
      [[1, asked(1)], [2, answered(1, { usage: { inputTokens: 9, outputTokens: 5, cost: 0.5 } })], [3, answered(2, { usage: { inputTokens: 1, outputTokens: 1 } })]],
      "Tokens: 10 read, 6 written · Cost: at least 0.5 (calls with unknown price: 1)",
    ],
    ["a cost of 0", [[1, asked(1)], [2, answered(1, { usage: { inputTokens: 9, outputTokens: 5, cost: 0 } })]], "Tokens: 9 read, 5 written · Cost: 0"],
    ["an end", [[1, asked(1)], [2, { type: "run_finished", completed: false, stopReason: "error", iterations: 1, durationMs: 900, error: { code: "TIMEOUT", message: "late", iteration: 1 } }]], "Failed · iterations: 1 · 900 ms TIMEOUT late"],
  ];
  for (const [name, events, expected] of rows) {
    show(<Timeline environment={environment} timeline={timelineOf(started, ...events)} now={10} layout={narrow} />);
    const shown = textOf(root).replaceAll(/(Question \(what is new to the model\)|Answer of the model|Input of the tool|Result of the tool)/g, "").replaceAll(/\s+/g, " ");
    const words = expected.split(/(?<=[a-z:]) (?=\d)/);
    words.forEach((part) => assert.ok(shown.replaceAll(" ", "").includes(part.replaceAll(" ", "")), `${name}: ${part} in ${shown}`));
  }
});

test("calls of one answer stand side by side, with their number", (t) => {
  const { root, show } = screen(t);
  show(<Timeline environment={environment} timeline={timelineOf([1, called("c1")], [1, called("c2", "mail")], [5, returned("c1")])} now={3_001} layout={narrow} />);
  assert.match(textOf(root), /Tool calls: 2/);
  const calls = [...root.querySelectorAll(".redflow-calls > *")].map(textOf);
  assert.equal(calls.length, 2);
  assert.match(calls[0] ?? "", /^Tool look returned/);
  assert.match(calls[1] ?? "", /^Tool mail is running3 s/, "with the clock of its call");
});

test("the clock of a running call ticks, and stops with the timeline", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "Date"], now: 50_000 });
  const { root } = screen(t);
  const mounted = mountTimeline(root, environment, none);
  // The clock of the sidecar is not that of the page.
  mounted.show(timelineOf([1_000, asked(1)]), 6_000);
  assert.equal(textOf(root.querySelector(".redflow-clock")), "5 s");
  await until("effects have run", () => (t.mock.timers.tick(1_000), textOf(root.querySelector(".redflow-clock")) !== "5 s"));
  mounted.destroy();
  assert.equal(root.childElementCount, 0);
});

test("a text that is written now is shown until it is answered", (t) => {
  const { root, show } = screen(t);
  const live: LiveText = { iteration: 1, text: "The weather in", isCut: true };
  show(<Timeline environment={environment} timeline={timelineOf([1, asked(1)])} now={2} live={live} layout={narrow} />);
  assert.equal(root.querySelector(".redflow-live")?.textContent, "…The weather in");
  const before = root.querySelector(".redflow-live");
  show(<Timeline environment={environment} timeline={timelineOf([1, asked(1)])} now={2} live={{ ...live, text: "The weather in Oslo" }} layout={narrow} />);
  assert.equal(root.querySelector(".redflow-live"), before, "in place");
  assert.equal(before?.textContent, "…The weather in Oslo");
  show(<Timeline environment={environment} timeline={timelineOf([1, asked(1)])} now={2} live={{ iteration: 1, text: `first ${"x".repeat(20_000)} last`, isCut: false }} layout={narrow} />);
  assert.match(before?.textContent ?? "", /^…x{19995} last$/, "the end of a long text");
  show(<Timeline environment={environment} timeline={timelineOf([1, asked(1)], [2, answered(1)])} now={3} live={live} layout={narrow} />);
  assert.equal(root.querySelector(".redflow-live"), null);
});

test("texts are requested when they are opened, once for a step, and again after a change", async (t) => {
  const { root } = screen(t);
  const requests: number[] = [];
  const recorded: IterationTexts = { prompt: { text: "How much?", bytes: 5_000 }, calls: [] };
  const readTexts = async (iteration: number): Promise<IterationTexts> => {
    requests.push(iteration);
    return recorded;
  };
  const mounted = mountTimeline(root, environment, readTexts);
  const first: [number, RunEventKind] = [1, asked(1)];
  mounted.show(timelineOf(first), 2);
  const details = (): HTMLDetailsElement[] => [...root.querySelectorAll<HTMLDetailsElement>("details")];
  assert.deepEqual(details().map((one) => textOf(one.querySelector("summary"))), ["Question (what is new to the model)"]);
  assert.equal(requests.length, 0);
  open(details()[0]);
  await until("the question is shown", () => textOf(details()[0]).includes("How much?"));
  assert.match(textOf(details()[0]), /Only the beginning is shown. The whole text has 5000 bytes/);
  // The open details stay, and are read again after the answer.
  const [question] = details();
  recorded.answer = { text: "42" };
  mounted.show(timelineOf(first, [2, answered(1)]), 3);
  assert.equal(details()[0], question);
  assert.equal(question?.open, true);
  await until("the text is read again", () => requests.length === 2);
  open(details()[1]);
  await until("the answer is shown", () => textOf(details()[1]).includes("42"));
  assert.equal(requests.length, 2, "the details of a step share a request");
  mounted.destroy();
});

test("a text that cannot be read says so, and is read again when it is opened again", async (t) => {
  const { root } = screen(t);
  let isOffline = true;
  const readTexts = async (): Promise<IterationTexts> => {
    if (isOffline) {
      throw new Error("gone");
    }
    return { prompt: { text: "Hello" }, calls: [] };
  };
  const mounted = mountTimeline(root, environment, readTexts);
  mounted.show(timelineOf([1, asked(1)]), 2);
  const details = root.querySelector("details");
  open(details);
  await until("the problem is shown", () => textOf(details).includes("could not be read: gone"));
  isOffline = false;
  details?.removeAttribute("open");
  details?.dispatchEvent(new window.Event("toggle"));
  await until("it is closed", () => !textOf(details).includes("Reading"));
  await new Promise((resolve) => setTimeout(resolve, 30));
  open(details);
  await until("the text is shown", () => textOf(details).includes("Hello"));
  mounted.destroy();
});

const HOSTILE = ['<img src=x onerror="globalThis.hit = 1">', "</script><script>globalThis.hit = 1</script>", "\u202Eevil\u202C", "[click](javascript:alert(1))", "{tool} __tool__ \uE0000\uE000", "x".repeat(5_000)];

test("hostile texts stay text, cut and isolated", (t) => {
  const { root, show } = screen(t);
  for (const text of HOSTILE) {
    const timeline = timelineOf(
      [0, { type: "run_started", name: text, maxIterations: 5, tools: [] }],
      [1, asked(1)],
      [1, { type: "model_fell_over", iteration: 1, model: text, code: text as never }],
      [2, answered(1, { action: "tool", tool: text })],
      [3, called("c", text)],
      [4, returned("c", { tool: text, success: false, error: text, sources: [source(text)] })],
      [5, { type: "memory_failed", error: { code: text as never, message: text } }],
      [5, { type: "memory_recalled", messages: 1, sources: [source(text)] }],
      [6, { type: "run_finished", completed: false, stopReason: "error", iterations: 1, durationMs: 1, error: { code: text as never, message: text, iteration: 1, pointer: text, rule: text } }],
    );
    show(<Timeline environment={environment} timeline={timeline} now={10} live={{ iteration: 1, text, isCut: false }} layout={narrow} />);
    assert.equal(root.querySelectorAll("img, script, a").length, 0);
    assert.equal((globalThis as { hit?: number }).hit, undefined);
    const shown = [...root.querySelectorAll(".redflow-foreign")];
    assert.ok(shown.length >= 9, `${shown.length} texts`);
    for (const element of shown) {
      assert.equal(element.getAttribute("dir"), "auto");
      assert.equal(element.childElementCount, 0);
      assert.ok((element.textContent ?? "").length <= 2_001, `${element.textContent?.length}`);
    }
    if (text.length < 200) {
      assert.ok(shown.some(({ textContent }) => textContent === showInvisible(text)), text);
    }
  }
});

test("what was said is hidden on a shared screen, and the steps are not", async (t) => {
  const { root } = screen(t);
  const SECRET = "the word of a person";
  const shaded = { ...environment, isShaded: () => true };
  const mounted = mountTimeline(root, shaded, async () => ({ prompt: { text: SECRET }, calls: [] }));
  const timeline = timelineOf(
    [1, called("c")],
    [2, returned("c", { success: false, error: SECRET, sources: [source(SECRET)] })],
    [3, { type: "memory_failed", error: { code: "MEMORY_FAILED" as never, message: SECRET } }],
    [3, { type: "memory_recalled", messages: 1, sources: [source(SECRET)] }],
    [4, asked(2)],
    [5, { type: "run_finished", completed: false, stopReason: "error", iterations: 2, durationMs: 1, error: { code: "TIMEOUT", message: SECRET, iteration: 2 } }],
  );
  mounted.show(timeline, 9, { iteration: 2, text: SECRET, isCut: false });
  root.querySelectorAll("details").forEach(open);
  await until("the texts are read", () => [...root.querySelectorAll("details pre")].every(({ textContent }) => textContent === "•••"));
  assert.ok(!textOf(root).includes(SECRET));
  assert.match(textOf(root), /Tool look failed: •••.*TIMEOUT •••/);
  mounted.destroy();
});

test("a long run has few elements", (t) => {
  const { root, show } = screen(t);
  const events = Array.from({ length: 2_500 }, (_, index): [number, RunEventKind][] => {
    const call = { iteration: index + 1, tool: "t", callId: `c${index}` };
    return [
      [index * 10, asked(index + 1)],
      [index * 10 + 2, answered(index + 1, { action: "tool", tool: "t", confidence: 0.5 })],
      [index * 10 + 3, { type: "tool_called", ...call }],
      [index * 10 + 4, { type: "tool_returned", ...call, success: true, durationMs: 1 }],
    ];
  }).flat();
  show(<Timeline environment={environment} timeline={timelineOf(...events)} now={30_000} layout={narrow} />);
  assert.match(textOf(root), /Not shown, because there are too many: iterations up to 2300/);
  const elements = root.querySelectorAll("*").length;
  assert.ok(elements < 8_000, `${elements} elements`);
});
