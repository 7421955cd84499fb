// The stop conditions of an agent as the dialog saves them.

import assert from "node:assert/strict";
import test from "node:test";
import { editedStop, stopsField } from "../editor-build/editor/stop-conditions.mjs";

test("an edited row keeps its other properties", () => {
  const before = { type: "confidence_threshold", value: "0.8", note: "mine" };
  assert.deepEqual(editedStop(before, "confidence_threshold", "0.9"), { type: "confidence_threshold", value: 0.9, note: "mine" });
  assert.deepEqual(editedStop(before, "iteration_limit", "${ROUNDS}"), { type: "iteration_limit", value: "${ROUNDS}", note: "mine" });
  assert.deepEqual(editedStop(before, "final_answer", "0.8"), { type: "final_answer", note: "mine" });
});

test("an unknown condition stays until another is chosen", () => {
  for (const before of [{ type: "budget", value: 5, unit: "cent" }, "no condition", null, 5, []]) {
    assert.equal(editedStop(before, "", ""), before);
  }
  assert.deepEqual(editedStop("no condition", "final_answer", ""), { type: "final_answer" });
});

test("does not save a removed row during its animation", (t) => {
  // Node-RED's list keeps a removed row until its animation ends, and calls removeItem only then.
  const item = (fades) => ({ hasClass: (name) => fades() && name === "red-ui-editableList-item-deleting" });
  const row = (stop, fades) => ({ data: () => () => stop, closest: () => item(fades) });
  let isRemoved = false;
  const [present, removed] = [{ type: "final_answer" }, { type: "iteration_limit", value: 2 }];
  const rows = [row(present, () => false), row(removed, () => isRemoved)];
  const list = { css: () => list, editableList: (command) => (command === "items" ? { toArray: () => rows } : list) };
  globalThis.$ = (found) => found;
  globalThis.RED = { _: (key) => key };
  t.after(() => {
    delete globalThis.$;
    delete globalThis.RED;
  });
  const field = stopsField(list, {}, [present, removed]);
  assert.equal(field.edited(), undefined, "no change");
  isRemoved = true;
  assert.deepEqual(field.edited(), [present]);
});
