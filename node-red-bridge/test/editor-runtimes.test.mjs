// When agents are looked at again because a runtime came, went or changed; and what the canvas calls a node.

import assert from "node:assert/strict";
import test from "node:test";
import { translator } from "./kit/words.mjs";

const listeners = new Map();
const validated = [];
let redrawn = 0;
const agents = [{ id: "a1" }, { id: "a2" }];
globalThis.RED = {
  _: translator("en-US"),
  nodes: { filterNodes: ({ type }) => (type === "agent-core" ? agents : []) },
  editor: { validateNode: ({ id }) => validated.push(id) },
  view: { redraw: () => (redrawn += 1) },
  events: { on: (event, listener) => listeners.set(event, listener) },
};

const { startRuntimes } = await import("../editor-build/editor/runtimes.mjs");
const { LABEL_CHARS, canvasLabel } = await import("../editor-build/editor/label.mjs");
startRuntimes();

test("all agents are looked at again, once, however many runtimes come at once", async () => {
  for (const event of ["nodes:add", "nodes:remove", "nodes:change"]) {
    listeners.get(event)({ id: "d", type: "debug" });
    await Promise.resolve();
    assert.deepEqual(validated, [], event);
    for (let count = 0; count < 100; count += 1) {
      listeners.get(event)({ id: `r${count}`, type: "redflow-runtime" });
    }
    assert.deepEqual(validated, [], `${event}: it may be there still`);
    await Promise.resolve();
    assert.deepEqual(validated.splice(0), ["a1", "a2"], event);
  }
  assert.equal(redrawn, 3);
});

test("the canvas's name of a node is its own, else its type's, and short", () => {
  const throws = () => {
    throw new Error("odd");
  };
  const label = (name, of) => canvasLabel({ id: "n", type: "some type", name, _def: { label: of } });
  assert.equal(label("Mine", "theirs"), "Mine");
  assert.equal(label(" ", "theirs"), "theirs");
  assert.equal(label("", function () { return this.id; }), "n");
  for (const odd of [throws, undefined, "", () => 5, () => ({}), {}]) {
    assert.equal(label(undefined, odd), "some type");
  }
  assert.equal(label("x".repeat(1_000_000)).length, LABEL_CHARS + 1);
  assert.equal(label("a\u202Eb"), "a\uFFFDb");
  assert.deepEqual([canvasLabel(null), canvasLabel(undefined)], [undefined, undefined]);
});
