// The list of runs as data.

import assert from "node:assert/strict";
import test from "node:test";
import type { EventsItem, RunEvent, RunEventKind, RunSummary } from "@redflow/bindings";
import { MAX_ROWS, appendPage, applyEvent, applyEvents, filterOf, mergeFirstPage, requestOf, runEvents } from "../src/pages/runs/list.js";

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

test("events change the rows in place; runs that begin are counted if the filter may contain them", () => {
  const rows = [run(2), run(1)];
  const changed = applyEvents(rows, [event(1, finished), event(3, started), event(3, started), event(4, finished)], {});
  assert.deepEqual(changed.rows.map(({ status }) => status), ["running", "completed"]);
  assert.deepEqual(changed.begun, [run(3).runId]);
  assert.equal(applyEvents(rows, [event(9, waiting)], {}).rows, rows);
  const begun = (filter: object, kind: RunEventKind): number => applyEvents([], [event(3, kind)], filter).begun.length;
  assert.deepEqual([begun({ status: "failed" }, started), begun({ status: "failed" }, failed), begun({ status: "failed" }, finished)], [0, 1, 0]);
  assert.deepEqual([begun({ status: "waiting" }, waiting), begun({ agent: "b" }, started), begun({ prefix: "r000003" }, started)], [1, 0, 1]);
  assert.deepEqual([begun({ code: "TIMEOUT" }, started), begun({ instance: "other" }, started)], [0, 0]);
});

test("a new first page replaces its part of the list; nothing is doubled or lost", () => {
  const rows = [5, 4, 3, 2, 1].map((id) => run(id));
  const page = [run(7), run(6), run(4, { status: "failed" }), run(3)];
  assert.deepEqual(mergeFirstPage(rows, page, false).map(({ runId }) => runId), [7, 6, 4, 3, 2, 1].map((id) => run(id).runId));
  assert.equal(mergeFirstPage(rows, page, true).length, 4);
  assert.equal(mergeFirstPage(rows, [], false).length, 0);
  assert.deepEqual(appendPage([run(3), run(2)], [run(2), run(1)]).map(({ startedAt }) => startedAt), [3, 2, 1]);
  const many = Array.from({ length: MAX_ROWS }, (_, index) => run(index));
  assert.equal(appendPage(many, [run(999_999)]).length, MAX_ROWS);
});

test("takes only events of runs", () => {
  const items = [
    { type: "event", cursor: "1", event: { kind: "run", event: event(1, started) } },
    { type: "event", cursor: "2", event: { kind: "flow", at: 1, event: { type: "deployed", revision: "r", agents: 1, refused: 0 } } },
    { type: "caught_up", cursor: "3" },
  ] as EventsItem[];
  assert.equal(runEvents(items).length, 1);
});
