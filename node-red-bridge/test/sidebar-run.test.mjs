// When the sidebar requests the summary of a run again: when its events are newer.

import assert from "node:assert/strict";
import test from "node:test";
import { isOutdated, openQuestions } from "../editor-build/editor/sidebar-run.mjs";
import { applyEvents, emptyTimeline } from "@redflow/bindings";

const timelineOf = (...kinds) =>
  applyEvents(emptyTimeline(), kinds.map((event, index) => ({ runId: "r", seq: index + 1, at: index, agent: { instance: "i", nodeId: "a" }, event })));
const call = (iteration, callId) => [
  { type: "tool_called", iteration, tool: "mail", callId },
  { type: "waiting_for_outcome", iteration, tool: "mail", callId, reason: "a crash" },
];

test("requests the summary until it has the waiting call of the events", () => {
  const timeline = timelineOf({ type: "run_started", name: "", maxIterations: 5, tools: ["mail"] }, ...call(1, "c1"));
  assert.equal(isOutdated({ status: "waiting", waiting: { callId: "c1" } }, timeline, 0), false);
  // A summary that was requested before may be older than the events.
  for (const run of [{ status: "running" }, { status: "waiting", waiting: { callId: "c0" } }]) {
    assert.equal(isOutdated(run, timeline, timeline.seq), true);
  }
});

test("requests the summary once when an interrupted run resumes", () => {
  const timeline = timelineOf({ type: "run_started", name: "", maxIterations: 5, tools: ["mail"] }, { type: "model_called", iteration: 1 });
  assert.equal(isOutdated({ status: "interrupted" }, timeline, timeline.seq - 1), true);
  assert.equal(isOutdated({ status: "interrupted" }, timeline, timeline.seq), false);
  assert.equal(isOutdated({ status: "running" }, timeline, 0), false);
});

test("shows every question of a run until it is answered", () => {
  const questions = ["c1", "c2"].map((callId) => ({ callId }));
  const run = { status: "waiting", waiting: questions[0], questions };
  const ids = (...of) => openQuestions(...of).map(({ callId }) => callId);
  const timeline = timelineOf(...call(1, "c1"), ...call(1, "c2"));
  assert.deepEqual(ids(run, "waiting", undefined), ["c1", "c2"]);
  assert.deepEqual(ids(run, "waiting", timeline), ["c1", "c2"]);
  assert.equal(isOutdated(run, timeline, 0), false);
  const returned = { type: "tool_returned", iteration: 1, tool: "mail", callId: "c1", success: true, durationMs: 1 };
  assert.deepEqual(ids(run, "waiting", timelineOf(...call(1, "c1"), ...call(1, "c2"), returned)), ["c2"]);
  assert.deepEqual(ids({ ...run, questions: undefined }, "waiting", undefined), ["c1"]);
  assert.deepEqual(ids(run, "running", undefined), []);
  assert.equal(isOutdated({ status: "waiting", waiting: questions[0] }, timeline, 0), true, "a question is missing");
});
