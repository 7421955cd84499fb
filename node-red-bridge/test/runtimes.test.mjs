// Validates agents when a runtime changes; the label of a node on the canvas.

import assert from "node:assert/strict";
import test from "node:test";
import { translator } from "./kit/texts.mjs";

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
const { LABEL_CHARS, canvasLabel } = await import("../editor-build/editor/node-label.mjs");
startRuntimes();

test("validates all agents once when many runtimes change", async () => {
  for (const event of ["nodes:add", "nodes:remove", "nodes:change"]) {
    listeners.get(event)({ id: "d", type: "debug" });
    await Promise.resolve();
    assert.deepEqual(validated, [], event);
    for (let count = 0; count < 100; count += 1) {
      listeners.get(event)({ id: `r${count}`, type: "redflow-runtime" });
    }
    assert.deepEqual(validated, [], `${event}: not before the microtask`);
    await Promise.resolve();
    assert.deepEqual(validated.splice(0), ["a1", "a2"], event);
  }
  assert.equal(redrawn, 3);
});

test("the label is the node's name, else its type's label, and short", () => {
  const throws = () => {
    throw new Error("odd");
  };
  const label = (name, typeLabel) => canvasLabel({ id: "n", type: "some type", name, _def: { label: typeLabel } });
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
