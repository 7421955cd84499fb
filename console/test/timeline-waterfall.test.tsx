// The wide timeline: the scale with folded pauses, the rows, and the tree in a page.

import assert from "node:assert/strict";
import test from "node:test";
import type { RunEventKind, RunSummary, RunTimeline, TreeRun } from "@redflow/bindings";
import { type Selection, Timeline } from "../src/timeline/index.js";
import { MAX_PAUSES, type Span, timeScale } from "../src/timeline/time-scale.js";
import { keyOf, placesOf, rowsOf } from "../src/timeline/waterfall-rows.js";
import { environment, screen, textOf, timelineOf, until } from "./timeline-kit.js";

const HOUR = 3_600_000;

test("the whole run fits, and only long pauses are folded", () => {
  const rows: [string, Span, [number, number][], [number, number][]][] = [
    ["calls without pauses", { from: 0, to: 100 }, [[0, 50], [50, 100]], []],
    ["a short pause", { from: 0, to: 1_500 }, [[0, 300], [900, 1_500]], []],
    ["a night between two calls", { from: 0, to: HOUR + 2_000 }, [[0, 1_000], [HOUR + 1_000, HOUR + 2_000]], [[1_000, HOUR + 1_000]]],
    ["pauses before and after", { from: 0, to: 2 * HOUR }, [[HOUR, HOUR + 500]], [[0, HOUR], [HOUR + 500, 2 * HOUR]]],
    ["parallel calls", { from: 0, to: 10_000 }, [[0, 4_000], [1_000, 2_000], [3_000, 10_000]], []],
    ["a pause as long as the calls", { from: 0, to: 20_000 }, [[0, 10_000]], []],
    ["only the longest pause", { from: 0, to: 34_000 }, [[0, 5_000], [8_000, 13_000], [33_000, 34_000]], [[13_000, 33_000]]],
    ["nothing at all", { from: 5, to: 5 }, [], []],
    ["no calls", { from: 0, to: HOUR }, [], [[0, HOUR]]],
  ];
  for (const [name, whole, busy, folded] of rows) {
    const scale = timeScale(whole, busy.map(([from, to]) => ({ from, to })));
    assert.deepEqual(scale.pauses.map(({ from, to }) => [from, to]), folded, name);
    const places = Array.from({ length: 101 }, (_, index) => scale.at(whole.from + ((whole.to - whole.from) * index) / 100));
    assert.ok(places.every((place, index) => place >= 0 && place <= 1 && place >= (places[index - 1] ?? 0)), name);
    if (busy.length > 0) {
      assert.ok(Math.abs(scale.at(whole.to) - 1) < 1e-9, `${name}: ${scale.at(whole.to)}`);
    }
    assert.equal(scale.at(whole.from), 0, name);
  }
});

test("calls around a long pause keep their room", () => {
  const scale = timeScale({ from: 0, to: HOUR + 2_000 }, [{ from: 0, to: 1_000 }, { from: HOUR + 1_000, to: HOUR + 2_000 }]);
  assert.ok(scale.at(1_000) > 0.4, "half of what the pause leaves");
  const many = Array.from({ length: 500 }, (_, index) => ({ from: index * HOUR, to: index * HOUR + 1_000 }));
  const folded = timeScale({ from: 0, to: 500 * HOUR }, many);
  assert.equal(folded.pauses.length, MAX_PAUSES);
  assert.ok(folded.pauses.reduce((sum, { start, end }) => sum + end - start, 0) <= 0.301);
});

const asked = (iteration: number): RunEventKind => ({ type: "model_called", iteration });
const answered = (iteration: number, more: object = {}): RunEventKind => ({ type: "model_answered", iteration, action: "tool", tool: "look", durationMs: 5, ...more });
const called = (callId: string, iteration = 1): RunEventKind => ({ type: "tool_called", iteration, tool: "look", callId });
const returned = (callId: string, iteration = 1, success = true): RunEventKind => ({ type: "tool_returned", iteration, tool: "look", callId, success, durationMs: 3 });
const waits = (callId: string): RunEventKind => ({ type: "waiting_for_outcome", iteration: 1, tool: "look", callId, reason: "a crash" });
const finished: RunEventKind = { type: "run_finished", completed: true, stopReason: "final_answer", iterations: 2, durationMs: 90 };

const RUN: [number, RunEventKind][] = [
  [0, { type: "run_started", name: "Desk", maxIterations: 5, tools: ["look"] }],
  [5, { type: "memory_recalled", messages: 2 }],
  [10, asked(1)],
  [20, answered(1, { confidence: 0.4 })],
  [20, called("c1")],
  [20, called("c2")],
  [30, returned("c1")],
  [40, returned("c2", 1, false)],
  [50, asked(2)],
  [80, answered(2, { action: "final", tool: undefined })],
  [90, finished],
];

const shape = (timeline: RunTimeline, childRuns: TreeRun[] = [], toggled: string[] = []): string[] =>
  rowsOf(timeline, { now: 1_000, childRuns, toggled: new Set(toggled) }).map(({ selection, level, bar: { work, wait, state } }) =>
    [level, keyOf(selection), `${work.from}–${work.to}${wait ? ` waits ${wait.from}–${wait.to}` : ""}`, state].join(" "),
  );

test("a run has rows with bars, in the order in which things began", () => {
  assert.deepEqual(shape(timelineOf(...RUN)), [
    "1 run 0–90 done",
    "2 remark-2 5–5 done",
    "2 iteration-1 10–40 done",
    "3 model-1 10–20 done",
    "3 tool-1-c1 20–30 done",
    "3 tool-1-c2 20–40 failed",
    "2 iteration-2 50–80 done",
    "3 model-2 50–80 done",
  ]);
  assert.deepEqual(shape(timelineOf(...RUN.slice(0, 9)), [], ["iteration-1"]), ["1 run 0–1000 running", "2 remark-2 5–5 done", "2 iteration-1 10–40 done", "2 iteration-2 50–1000 running", "3 model-2 50–1000 running"]);
});

test("the time that a person needed is not the call's", () => {
  const before: [number, RunEventKind][] = [...RUN.slice(0, 1), [20, called("c1")], [25, waits("c1")]];
  assert.deepEqual(shape(timelineOf(...before)).slice(-1), ["3 tool-1-c1 20–25 waits 25–1000 waiting"]);
  assert.equal(shape(timelineOf(...before))[0], "1 run 0–1000 waiting");
  assert.deepEqual(shape(timelineOf(...before, [500, returned("c1")])).slice(-1), ["3 tool-1-c1 20–25 waits 25–500 done"]);
});

const childRun = (runId: string, depth: number, startedAt: number, more: Partial<RunSummary> = {}): TreeRun => ({
  depth,
  run: { runId, agent: { instance: "i", nodeId: "b" }, name: `Agent ${runId}`, status: "completed", startedAt, endedAt: startedAt + 10, delivered: true, ...more },
});

test("child runs stand where they began, and those below them open in place", () => {
  const children = [childRun("a", 1, 22), childRun("b", 2, 23), childRun("c", 3, 24, { status: "failed" }), childRun("d", 1, 60, { status: "running" })];
  delete children[3]?.run.endedAt;
  const keys = (toggled: string[]): string[] => shape(timelineOf(...RUN), children, toggled).filter((row) => row.includes("child") || row.includes("iteration"));
  const [first, second] = ["2 iteration-1 10–40 done", "2 iteration-2 50–80 done"];
  const [a, b, c, d] = ["2 child-a 22–32 done", "3 child-b 23–33 done", "4 child-c 24–34 failed", "2 child-d 60–1000 running"];
  assert.deepEqual(keys([]), [first, a, second, d]);
  assert.deepEqual(keys(["child-a"]), [first, a, b, second, d]);
  assert.deepEqual(keys(["child-a", "child-b"]), [first, a, b, c, second, d]);
});

test("each row has its place among the rows below the same one", () => {
  const rows = rowsOf(timelineOf(...RUN), { now: 0, childRuns: [], toggled: new Set() });
  assert.deepEqual(placesOf(rows).map(({ at, of }) => `${at}/${of}`), ["1/1", "1/3", "2/3", "1/3", "2/3", "3/3", "3/3", "1/1"]);
});

interface TreeScreen {
  root: HTMLElement;
  press: (key: string) => Promise<void>;
  chosen: () => string;
}

/** A tree whose page keeps the chosen row. */
function tree(t: Parameters<typeof screen>[0], timeline: RunTimeline, more: { childRuns?: TreeRun[]; onOpenRun?: (run: RunSummary) => void } = {}): TreeScreen {
  const { root, show } = screen(t);
  let chosen: Selection = { is: "run" };
  const draw = (): void => {
    const layout = { mode: "wide", chosen, onChoose: (next: Selection) => ((chosen = next), draw()), ...more } as const;
    show(<Timeline environment={environment} timeline={timeline} now={1_000} layout={layout} />);
  };
  draw();
  const press = async (key: string): Promise<void> => {
    root.querySelector("[role=tree]")?.dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true }));
    await new Promise((resolve) => setTimeout(resolve, 0));
  };
  return { root, press, chosen: () => keyOf(chosen) };
}

const rowTexts = (root: HTMLElement): string[] => [...root.querySelectorAll("[role=treeitem]")].map((row) => textOf(row.querySelector(".redflow-row-text")));

test("the tree is a list of sentences with bars, and has the keys of a tree", async (t) => {
  const { root, press, chosen } = tree(t, timelineOf(...RUN));
  assert.deepEqual(rowTexts(root), [
    "Run of Desk",
    "Memory: messages recalled: 2",
    "Iteration 1",
    "Model calls look",
    "Tool look returned its result",
    "Tool look failed:",
    "Iteration 2",
    "Model gives its answer",
  ]);
  const item = (): Element | null => root.querySelector("[aria-selected=true]");
  assert.equal(root.querySelector("[role=tree]")?.getAttribute("aria-label"), "Steps of the run");
  assert.equal(root.querySelectorAll("[role=treeitem] rect.redflow-bar").length, 8);
  for (const [key, expected] of [["ArrowDown", "remark-2"], ["ArrowDown", "iteration-1"], ["ArrowRight", "model-1"], ["End", "model-2"], ["ArrowDown", "model-2"], ["ArrowLeft", "iteration-2"], ["ArrowUp", "tool-1-c2"], ["Home", "run"]] as const) {
    await press(key);
    assert.equal(chosen(), expected, key);
  }
  await press("End");
  assert.equal(root.querySelector("[role=tree]")?.getAttribute("aria-activedescendant"), item()?.id);
  await press("ArrowLeft");
  await press("ArrowLeft");
  assert.equal(item()?.getAttribute("aria-expanded"), "false");
  assert.equal(rowTexts(root).length, 7);
  await press("ArrowRight");
  assert.equal(item()?.getAttribute("aria-expanded"), "true");
  // A pointer chooses too.
  (root.querySelectorAll("[role=treeitem]")[4] as HTMLElement).click();
  assert.equal(chosen(), "tool-1-c1");
});

test("a folded pause says how long it is", (t) => {
  const { root } = tree(t, timelineOf([0, asked(1)], [1_000, answered(1)], [2 * HOUR, asked(2)], [2 * HOUR + 500, answered(2)], [2 * HOUR + 500, finished]));
  assert.match(textOf(root), /Pauses that are folded: 1, together 1 h 59 min/);
  assert.equal(textOf(root.querySelector(".redflow-axis text")), "1 h 59 min");
  assert.equal(textOf(root.querySelector(".redflow-axis title")), "Pause of 1 h 59 min");
});

test("Enter opens a child run", async (t) => {
  const opened: string[] = [];
  const { root, press, chosen } = tree(t, timelineOf(...RUN), { childRuns: [childRun("x", 1, 85, { status: "waiting" })], onOpenRun: ({ runId }) => opened.push(runId) });
  assert.equal(rowTexts(root).at(-1), "Run of Agent x: waits for a person");
  await press("End");
  assert.equal(chosen(), "child-x");
  await press("Enter");
  assert.deepEqual(opened, ["x"]);
});

test("the text of the model is below the tree while it writes", (t) => {
  const { root, show } = screen(t);
  const layout = { mode: "wide", chosen: { is: "run" }, onChoose: () => undefined } as const;
  const live = { iteration: 1, text: "<b>Oslo</b>", isCut: false };
  show(<Timeline environment={environment} timeline={timelineOf([0, asked(1)])} now={5_000} live={live} layout={layout} />);
  assert.equal(root.querySelector(".redflow-live")?.textContent, "<b>Oslo</b>");
  assert.equal(textOf(root.querySelector("[role=treeitem] .redflow-clock")), "5 s");
});

test("ten thousand rows are few elements", async (t) => {
  const childRuns = Array.from({ length: 10_000 }, (_, index) => childRun(`r${index}`, 1, index));
  const { root, press, chosen } = tree(t, timelineOf(...RUN), { childRuns });
  const count = (): number => root.querySelectorAll("*").length;
  assert.ok(count() < 2_000, `${count()} elements`);
  await press("End");
  assert.equal(chosen(), "child-r9999");
  await until("it is drawn", () => root.querySelectorAll("[role=treeitem]").length > 0);
  assert.ok(count() < 2_000, `${count()} elements`);
});
