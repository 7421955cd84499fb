// When the sidebar requests the summary of a run again: when its events are newer.

import assert from "node:assert/strict";
import test from "node:test";
import { isOutdated } from "../editor-build/editor/sidebar-run.mjs";
import { applyEvents, emptyTimeline } from "../editor-build/editor/timeline.mjs";

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
