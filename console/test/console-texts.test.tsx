// What a page says of a run: sentences are whole, advice is that of the error, and numbers are true.

import { Refusal, answerWith, draw, requests, until } from "./console-kit.js";
import assert from "node:assert/strict";
import test from "node:test";
import { type EventsItem, RedflowError, type RunEventKind, type RunSummary, applyEvents, emptyTimeline } from "@redflow/bindings";
import { render } from "preact";
import { session, shade, toasts } from "../src/app.js";
import { Plot } from "../src/drawing/plot.js";
import { FirstDifference } from "../src/pages/run/difference.js";
import { Journal } from "../src/pages/run/journal.js";
import { Plan } from "../src/pages/run/plan.js";
import { addDeltas } from "../src/pages/run/run.js";
import { Step } from "../src/pages/run/step.js";
import { CancelAll } from "../src/pages/runs/cancel-all.js";
import { page as settings } from "../src/pages/settings/settings.js";
import { Problem } from "../src/parts/problem.js";

const LONG = `${"a long sentence ".repeat(20)}END`;
const agent = { instance: "local", nodeId: "n" };
const timelineOf = (...kinds: RunEventKind[]) => applyEvents(emptyTimeline(), kinds.map((event, index) => ({ runId: "r", seq: index + 1, at: index, agent, event })));

test("sentences and values are shown whole: errors, differences, settings", async (t) => {
  t.after(() => (session.value = undefined));
  answerWith((_, path) => (path === "/api/config" ? { settings: [{ key: "k", value: LONG, isSet: true }] } : { from: 1, lines: [], total: 0, instances: [], tokens: [] }));
  session.value = { name: "n", scopes: ["admin"], features: [], version: "1" };
  for (const place of [
    <Problem error={new RedflowError({ code: "INTERNAL", message: LONG })} />,
    <FirstDifference id="r" difference={{ line: 2, what: "effect", message: LONG }} />,
    <settings.view params={{}} query={{}} />,
  ]) {
    const root = draw(t, place);
    await until("the end of the sentence", () => (root.textContent ?? "").includes("sentence END"));
  }
});

test("a journal that cannot be read on says so, with the page before it; a damaged plan has no empty digest", async (t) => {
  answerWith((_, path) => (path.includes("from=2") ? new Refusal(500, "STORE_DAMAGED", "no line 2") : { from: 1, lines: ['{"record":{"kind":"header"}}'], total: 2, next: 2 }));
  const root = draw(t, <Journal id="r" isUnfolded />);
  await until("the page", () => root.querySelectorAll("li").length === 1);
  root.querySelectorAll<HTMLElement>(".buttons button")[1]?.click();
  await until("the problem", () => root.querySelector("[role=alert]")?.textContent?.includes("no line 2") === true);
  assert.equal(root.querySelectorAll("li").length, 1);
  answerWith(() => ({ from: 1, lines: ["{damaged"], total: 1, problem: { code: "JOURNAL_DAMAGED", message: "line 1 is damaged" } }));
  const plan = draw(t, <Plan id="r" />);
  await until("its problem", () => (plan.textContent ?? "").includes("line 1 is damaged"));
  assert.doesNotMatch(plan.textContent ?? "", /digest/i);
});

test("the levels of a plot are whole numbers if its values are", (t) => {
  for (const [value, levels] of [[1, ["0", "1", "2"]], [3, ["0", "2", "4"]], [0.5, ["0", "0.25", "0.5"]]] as const) {
    const root = draw(t, <Plot label="Runs" days={["2026-03-01"]} series={[{ name: "A", values: new Map([["2026-03-01", value]]), total: value }]} format={String} formatExactly={String} />);
    assert.deepEqual([...root.querySelectorAll(".plot-level text")].map(({ textContent }) => textContent), levels);
  }
});

test("a long text that a model writes keeps its end, between characters, and says that it is cut", () => {
  const delta = (text: string, iteration = 1): EventsItem => ({ type: "delta", delta: { runId: "r", iteration, attempt: 1, text } });
  const short = addDeltas(undefined, [delta("a"), delta("b")]);
  assert.deepEqual(short, { iteration: 1, attempt: 1, text: "ab", isCut: false });
  const long = addDeltas(short, [delta(`😀${"x".repeat(63_999)}`)]);
  assert.deepEqual([long?.text.length, long?.text[0], long?.isCut], [63_999, "x", true]);
  assert.equal(addDeltas(long, [delta("y")])?.isCut, true);
  assert.equal(addDeltas(long, [delta("y", 2)])?.isCut, false);
});

test("a bulk cancel says that more runs match, and stops when its dialog is closed", async (t) => {
  t.after(() => {
    session.value = undefined;
    toasts.value = [];
  });
  session.value = { name: "n", scopes: ["run"], features: [], version: "1" };
  let count = 0;
  answerWith((method, path) => {
    const from = Number(new URLSearchParams(path.split("?")[1]).get("before") ?? 0);
    count += method === "POST" ? 1 : 0;
    if (count === 8) {
      root.querySelector<HTMLElement>(".buttons button")?.click();
    }
    return method === "POST" ? {} : { runs: Array.from({ length: 200 }, (_, index) => ({ runId: `${from + index + 1}` })), next: `${from + 200}` };
  });
  const root: HTMLElement = draw(t, <CancelAll filter={{}} onClose={() => render(null, root)} />);
  await until("the question", () => (root.textContent ?? "").includes("have not ended: 1,000+. "));
  assert.match(root.textContent ?? "", /More runs match/);
  root.querySelector<HTMLElement>("button.danger")?.click();
  await until("the sum", () => toasts.value.length === 1);
  const [n = 0, failed = 0] = [...(toasts.value[0]?.text.matchAll(/[\d,]+/g) ?? [])].map(([digits]) => Number(digits.replace(",", "")));
  assert.ok(count < 20, `${count} were sent`);
  assert.deepEqual([n, n + failed], [count, 1_000]);
});

test("a failed call shows the code of its error, and the advice for it", async (t) => {
  answerWith((_, path) =>
    path.startsWith("/api/codes/") ? { code: "X", set: "s", summary: "s" } : { iteration: 1, prompt: { text: "" }, calls: [{ callId: "c", tool: "post", input: { text: "" }, success: false }] },
  );
  const summary = { runId: "r" } as RunSummary;
  const failed = (more: object) => timelineOf({ type: "tool_returned", iteration: 1, tool: "post", callId: "c", success: false, error: "late", durationMs: 1, ...more });
  for (const [more, code] of [[{ code: "TOOL_TIMEOUT" }, "TOOL_TIMEOUT"], [{}, "TOOL_ERROR"]] as const) {
    const root = draw(t, <Step {...{ summary, timeline: failed(more) }} iteration={1} written={undefined} isUnfolded onUnfold={() => undefined} isOpen onClose={() => undefined} />);
    await until("the call", () => root.querySelector("article code")?.textContent === code);
    const details = root.querySelector("details");
    assert.ok(details);
    details.open = true;
    details.dispatchEvent(new window.Event("toggle"));
    await until("the advice", () => requests.includes(`GET /api/codes/${code}`));
  }
});

test("a call shows what its result comes from, unless the words are folded or hidden", async (t) => {
  t.after(() => (shade.value = false));
  answerWith(() => ({ iteration: 1, prompt: { text: "" }, calls: [{ callId: "c", tool: "search", input: { text: "" }, success: true, result: { text: "" } }] }));
  const sources = [{ kind: "knowledge", ref: "docs/\u202Ea.md#1", score: 0.756, trust: "external" }, { kind: "memory", ref: "<b>", trust: "user" }];
  const timeline = timelineOf({ type: "tool_returned", iteration: 1, tool: "search", callId: "c", success: true, durationMs: 1, sources } as RunEventKind);
  for (const [isUnfolded, isShaded, expected] of [
    [true, false, "docs/⟨202E⟩a.md#1 · 0.76\n<b>"],
    [true, true, undefined],
    [false, false, undefined],
  ] as const) {
    shade.value = isShaded;
    const root = draw(t, <Step {...{ summary: { runId: "r" } as RunSummary, timeline, isUnfolded }} iteration={1} written={undefined} onUnfold={() => undefined} isOpen onClose={() => undefined} />);
    await until("the call", () => root.querySelector("article") !== null);
    assert.equal(root.querySelector('[aria-label="What the result comes from"] pre')?.textContent, expected);
    assert.equal((root.textContent ?? "").includes("a.md"), expected !== undefined);
  }
});
