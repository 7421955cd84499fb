// The list of runs as data.

import assert from "node:assert/strict";
import test from "node:test";
import type { EventsItem, RunEvent, RunEventKind, RunSummary } from "@redflow/bindings";
import { MAX_ROWS, appendPage, applyEvent, applyEvents, changesWaiting, filterOf, keyOfLine, linesOf, requestOf, runEvents } from "../src/pages/runs/list.js";
import type { ListFilter } from "../src/pages/runs/list.js";

const run = (id: number, more: Partial<RunSummary> = {}): RunSummary => ({
  runId: `r${String(id).padStart(6, "0")}`,
  agent: { instance: "local", nodeId: "a" },
  name: "A",
  status: "running",
  startedAt: id,
  delivered: false,
  ...more,
});
const event = (id: number, kind: RunEventKind, at = 100): RunEvent => ({ runId: run(id).runId, seq: 1, at, agent: run(id).agent, event: kind });
const started: RunEventKind = { type: "run_started", name: "A", maxIterations: 5, tools: [] };
const finished: RunEventKind = { type: "run_finished", completed: true, stopReason: "final_answer", iterations: 1, durationMs: 9 };
const failed: RunEventKind = { ...finished, completed: false, stopReason: "error", error: { code: "TIMEOUT", message: "late", iteration: 1 } };
const waiting: RunEventKind = { type: "waiting_for_outcome", iteration: 1, tool: "pay", callId: "c", reason: "cut" };

test("the filter is read from the address; unknown values are left out", () => {
  const check = (query: Record<string, string>, expected: object): void =>
    assert.deepEqual(Object.fromEntries(Object.entries(filterOf(query)).filter(([, value]) => value !== undefined)), expected);
  check({}, {});
  check({ status: "failed,nonsense,waiting" }, { status: ["waiting", "failed"] });
  check({ status: "nonsense", roots: "yes", period: "1y" }, {});
  check({ agent: " a ", code: "timeout", prefix: "01AB", roots: "true", period: "24h" }, { agent: "a", code: "TIMEOUT", prefix: "01ab", roots: true, period: "24h" });
  assert.equal(filterOf({ agent: "x".repeat(10_000) }).agent?.length, 200);
  assert.deepEqual(requestOf({ status: ["failed"], period: "1h" }, 10_000_000), { status: ["failed"], since: 6_400_000 });
});

test("a run follows its events, also if they come twice", () => {
  const end = applyEvent(run(1), event(1, failed, 77));
  assert.deepEqual([end.status, end.endedAt, end.code], ["failed", 77, "TIMEOUT"]);
  assert.equal(applyEvent(end, event(1, waiting)), end);
  assert.equal(applyEvent(end, event(1, failed, 99)), end);
  assert.equal(applyEvent(run(1), event(1, waiting)).status, "waiting");
  assert.equal(applyEvent(run(1), event(1, finished)).status, "completed");
  assert.equal(applyEvent(run(1), event(1, { ...finished, completed: false, stopReason: "iteration_limit" })).status, "stopped");
});

test("a run waits until each of its questions is answered", () => {
  const call = (callId: string) => ({ callId, tool: "pay", iteration: 1, askedAt: 1, input: {} });
  const returned = (callId: string): RunEventKind => ({ type: "tool_returned", iteration: 1, tool: "pay", callId, success: true, durationMs: 1 });
  const waits = run(1, { status: "waiting", waiting: call("a"), questions: [call("a"), call("b")] });
  assert.equal(applyEvent(waits, event(1, returned("c"))), waits);
  const half = applyEvent(waits, event(1, returned("a")));
  assert.deepEqual([half.status, half.waiting?.callId, half.questions?.length], ["waiting", "b", 1]);
  const whole = applyEvent(half, event(1, returned("b")));
  assert.deepEqual([whole.status, whole.waiting, whole.questions], ["running", undefined, undefined]);
  // An event says that the run waits, and nothing of its questions.
  assert.equal(applyEvent(run(1, { status: "waiting" }), event(1, returned("a"))).status, "running");
});

test("events change the rows in place, and say when the list is out of date", () => {
  const rows = [run(2), run(1)];
  const changed = applyEvents(rows, [event(1, finished), event(4, finished)], {});
  assert.deepEqual(changed.rows.map(({ status }) => status), ["running", "completed"]);
  assert.equal(changed.isOutdated, false);
  assert.equal(applyEvents(rows, [event(9, waiting)], {}).rows, rows);
  /** Whether a run that is not in the list may belong to it now. */
  const joins = (filter: ListFilter, kind: RunEventKind): boolean => applyEvents([], [event(3, kind)], filter).isOutdated;
  assert.deepEqual([joins({}, started), joins({}, finished), joins({}, waiting)], [true, false, false]);
  const here: ListFilter = { agent: "a", instance: "local", prefix: "r000003", since: 50 };
  for (const [kind, own] of [[started, { status: ["running"] }], [waiting, { status: ["waiting"] }], [failed, { status: ["failed"] }], [failed, { code: "TIMEOUT" }], [finished, { status: ["completed", "stopped"] }]] as const) {
    assert.equal(joins({ ...here, ...own }, kind), true, JSON.stringify(own));
    for (const other of [{ agent: "b" }, { instance: "other" }, { prefix: "r9" }, { status: ["damaged"] }, { code: "CANCELLED" }] satisfies ListFilter[]) {
      assert.equal(joins({ ...here, ...own, ...other }, kind), false, JSON.stringify([own, other]));
    }
  }
  assert.equal(joins({ ...here, since: 101 }, started), false);
  assert.equal(joins({ code: "TIMEOUT" }, finished), false);
  // A row that no longer matches.
  assert.deepEqual([applyEvents(rows, [event(1, finished)], { status: ["running"] }).isOutdated, applyEvents(rows, [event(1, finished)], { status: ["completed", "running"] }).isOutdated], [true, false]);
});

test("only some events change which runs wait", () => {
  const known = new Set([run(1).runId]);
  const returned: RunEventKind = { type: "tool_returned", iteration: 1, tool: "pay", callId: "c", success: true, durationMs: 1 };
  const cases: [number, RunEventKind, boolean][] = [[2, waiting, true], [2, returned, false], [1, returned, true], [2, finished, false], [1, failed, true], [2, started, false]];
  for (const [id, kind, expected] of cases) {
    assert.equal(changesWaiting([event(id, kind)], known), expected, `${id} ${kind.type}`);
  }
});

test("the next page is added once, up to a limit", () => {
  assert.deepEqual(appendPage([run(3), run(2)], [run(2), run(1)]).map(({ startedAt }) => startedAt), [3, 2, 1]);
  const many = Array.from({ length: MAX_ROWS }, (_, index) => run(index));
  assert.equal(appendPage(many, [run(999_999)]).length, MAX_ROWS);
});

test("a run can stand by itself and below its parent", () => {
  const rows = [run(3), run(2), run(1)];
  const child = { run: run(3), depth: 1 };
  assert.deepEqual(linesOf(rows, new Map()).length, 3);
  const lines = linesOf(rows, new Map([[run(1).runId, { runs: [child], next: run(3).runId }]]));
  assert.deepEqual(lines.slice(2), [{ run: run(1), depth: 0 }, child, { moreOf: run(1).runId, next: run(3).runId }]);
  assert.equal(new Set(lines.map(keyOfLine)).size, 5);
});

test("takes only events of runs", () => {
  const items = [
    { type: "event", cursor: "1", event: { kind: "run", event: event(1, started) } },
    { type: "event", cursor: "2", event: { kind: "flow", at: 1, event: { type: "deployed", revision: "r", agents: 1, refused: 0 } } },
    { type: "caught_up", cursor: "3" },
  ] as EventsItem[];
  assert.equal(runEvents(items).length, 1);
});
