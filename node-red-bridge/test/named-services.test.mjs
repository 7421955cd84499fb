// The selects of a service that names other services, in a document.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Window } from "happy-dom";
import { translator } from "./kit/texts.mjs";

const { window } = new Window();
const nodes = [
  { id: "turns", type: "buffer-memory", name: "Turns", z: "tab" },
  { id: "sums", type: "summary-memory", name: "Sums", z: "tab" },
  { id: "cheap", type: "scripted-model", name: "Cheap <b>", z: "tab" },
];
Object.assign(globalThis, { window, document: window.document, Node: window.Node });
globalThis.RED = { _: translator("en-US"), nodes: { filterNodes: () => nodes, subflow: () => undefined } };
const { prepareServices } = await import("../editor-build/editor/named-services.mjs");

/** The options of a select of the dialog. */
function select(name) {
  const field = window.document.createElement("select");
  field.id = `node-input-${name}`;
  window.document.body.append(field);
  return { field, options: () => [...field.options].map(({ value, textContent }) => [value, textContent]) };
}

test("fills the selects with the nodes that fit, and chooses those of the flow", () => {
  const [memory, model] = [select("shortMemory"), select("model")];
  prepareServices({ ...nodes[1], shortMemory: "turns" }, { shortMemory: "memory", model: "model", gone: "model" });
  assert.deepEqual(memory.options(), [["", "none"], ["turns", "Turns"]]);
  assert.deepEqual(model.options(), [["", "none"], ["cheap", "Cheap <b>"]]);
  assert.deepEqual([memory.field.value, model.field.value], ["turns", ""]);
});
