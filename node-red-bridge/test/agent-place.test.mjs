// Where the editor shows the agent of a run.

import assert from "node:assert/strict";
import test from "node:test";
import { findAgent } from "../editor-build/editor/agent-place.mjs";

const nodes = ["a", "in-side"].map((id) => ({ id, type: "agent-core" }));
nodes.push({ id: "i-1", type: "subflow:s" }, { id: "i2", type: "subflow:t" }, { id: "x", type: "debug" });
const place = (id) => {
  const found = findAgent(id, (one) => nodes.find((node) => node.id === one));
  return found && [found.agent.id, found.instance?.id];
};

test("finds an agent on a tab and inside subflows, also if ids contain dashes", () => {
  assert.deepEqual(place("a"), ["a", undefined]);
  assert.deepEqual(place("in-side"), ["in-side", undefined]);
  assert.deepEqual(place("i-1-a"), ["a", "i-1"]);
  assert.deepEqual(place("i-1-i2-in-side"), ["in-side", "i-1"], "the outermost instance is on a tab");
  assert.deepEqual(place("gone-a"), ["a", undefined]);
});

test("finds no agent that the editor does not have", () => {
  for (const id of ["", "x", "i-1-x", "gone", "-".repeat(10_000)]) {
    assert.equal(place(id), undefined, id.slice(0, 9));
  }
});
