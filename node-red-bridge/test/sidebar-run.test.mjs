// When the sidebar asks anew where a run is: when its events tell more than what is known of it.

import assert from "node:assert/strict";
import test from "node:test";
import { isBehind } from "../editor-build/editor/sidebar-run.mjs";
import { foldEvents, noEvents } from "../editor-build/editor/timeline.mjs";

const told = (...kinds) =>
  foldEvents(noEvents(), kinds.map((event, place) => ({ runId: "r", seq: place + 1, at: place, agent: { instance: "i", nodeId: "a" }, event })));
const call = (iteration, callId) => [
  { type: "tool_called", iteration, tool: "mail", callId },
  { type: "waiting_for_outcome", iteration, tool: "mail", callId, reason: "a crash" },
];

test("a run that waits for another call is asked for until its answer names that call", () => {
  const timeline = told({ type: "run_started", name: "", maxIterations: 5, tools: ["mail"] }, ...call(1, "c1"));
  assert.equal(isBehind({ status: "waiting", waiting: { callId: "c1" } }, timeline, 0), false);
  // Having asked is not enough: the answer may be older than the events.
  for (const run of [{ status: "running" }, { status: "waiting", waiting: { callId: "c0" } }]) {
    assert.equal(isBehind(run, timeline, timeline.seq), true);
  }
});

test("a run that was interrupted is asked for when it goes on, once for what is new", () => {
  const timeline = told({ type: "run_started", name: "", maxIterations: 5, tools: ["mail"] }, { type: "model_called", iteration: 1 });
  assert.equal(isBehind({ status: "interrupted" }, timeline, timeline.seq - 1), true);
  assert.equal(isBehind({ status: "interrupted" }, timeline, timeline.seq), false);
  assert.equal(isBehind({ status: "running" }, timeline, 0), false);
});
