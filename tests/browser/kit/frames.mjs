// What the Redflow UI needs of the events of a frame.

import assert from "node:assert/strict";

/** An event in a few words: what, which node, and for outputs the port and what it did. */
export function brief({ event, nodeId = "", data = {} }) {
  const port = data.outputs?.map((output) => output.port ?? "-").join() ?? "";
  return [event, data.triggerNodeId ?? nodeId, port, data.semantics?.behavior ?? ""].filter(Boolean).join(" ");
}

/** Holds that these are the events of one frame, that nothing of it goes on, and that nothing ran without its end. */
export function holdsTogether(events, trigger) {
  const moves = events.filter(({ event }) => event !== "heartbeat");
  const [start, end] = [moves[0], moves.at(-1)];
  assert.equal(start?.event, "frame:start");
  assert.equal(start.data.triggerNodeId, trigger);
  assert.equal(end.event, "frame:end");
  const kinds = moves.map(({ event }) => event);
  assert.equal(kinds.filter((kind) => kind === "frame:start").length, 1, "one frame begins");
  assert.equal(kinds.filter((kind) => kind === "frame:end").length, 1, "one frame ends");
  const running = new Set([trigger]);
  for (const move of moves.slice(1, -1)) {
    assert.equal(move.frameId, start.frameId, `${brief(move)} is of the frame`);
    assert.equal(move.data.nodeId, move.nodeId);
    if (move.event === "node:input") {
      assert.ok(!running.has(move.nodeId), `${brief(move)}: it has not said what came of the last one`);
      assert.ok(move.data.input.payload, brief(move));
      running.add(move.nodeId);
    } else if (move.event === "node:output") {
      assert.ok(Array.isArray(move.data.outputs) && move.data.outputs.length <= 1, brief(move));
      assert.notEqual(move.data.sampled, false);
      running.delete(move.nodeId);
    }
  }
  assert.deepEqual([...running], [], "nodes that stay running");
}

/** Holds that these come in this order, with anything between them. */
export function comeInOrder(events, wanted) {
  const briefs = events.map(brief);
  let at = -1;
  for (const one of wanted) {
    at = briefs.indexOf(one, at + 1);
    assert.notEqual(at, -1, `\`${one}\` does not come after those before it, of ${JSON.stringify(wanted)}`);
  }
}
