// Assertions about the events of a frame that the Redflow UI relies on.

import assert from "node:assert/strict";

/** An event as a short text: type, node, and for outputs the port and the behaviour. */
export function summarize({ event, nodeId = "", data = {} }) {
  const port = data.outputs?.map((output) => output.port ?? "-").join() ?? "";
  return [event, data.triggerNodeId ?? nodeId, port, data.semantics?.behavior ?? ""].filter(Boolean).join(" ");
}

/** Asserts that these are the events of one whole frame, and that every node that started has ended. */
export function assertFrame(events, trigger) {
  const steps = events.filter(({ event }) => event !== "heartbeat");
  const [start, end] = [steps[0], steps.at(-1)];
  assert.equal(start?.event, "frame:start");
  assert.equal(start.data.triggerNodeId, trigger);
  assert.equal(end.event, "frame:end");
  const kinds = steps.map(({ event }) => event);
  assert.equal(kinds.filter((kind) => kind === "frame:start").length, 1, "one frame starts");
  assert.equal(kinds.filter((kind) => kind === "frame:end").length, 1, "one frame ends");
  const running = new Set([trigger]);
  for (const step of steps.slice(1, -1)) {
    assert.equal(step.frameId, start.frameId, `${summarize(step)} belongs to the frame`);
    assert.equal(step.data.nodeId, step.nodeId);
    if (step.event === "node:input") {
      assert.ok(!running.has(step.nodeId), `${summarize(step)}: no output since its last input`);
      assert.ok(step.data.input.payload, summarize(step));
      running.add(step.nodeId);
    } else if (step.event === "node:output") {
      assert.ok(Array.isArray(step.data.outputs) && step.data.outputs.length <= 1, summarize(step));
      const isAnswer = step.data.outputs[0]?.port === 4;
      assert.ok(step.data.sampled || isAnswer, summarize(step));
      running.delete(step.nodeId);
    }
  }
  assert.deepEqual([...running], [], "nodes that stay running");
}

/** Asserts that these events occur in this order, with any others between them. */
export function assertOrder(events, expected) {
  const summaries = events.map(summarize);
  let at = -1;
  for (const one of expected) {
    at = summaries.indexOf(one, at + 1);
    assert.notEqual(at, -1, `\`${one}\` is missing or too early in ${JSON.stringify(expected)}`);
  }
}
