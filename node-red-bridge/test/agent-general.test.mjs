// The stop conditions of an agent as its dialog saves them.

import assert from "node:assert/strict";
import test from "node:test";
import { editedStop, stopsField } from "../editor-build/editor/agent-general.mjs";

test("a row that is edited keeps what else the flow says of it", () => {
  const before = { type: "confidence_threshold", value: "0.8", note: "mine" };
  assert.deepEqual(editedStop(before, "confidence_threshold", "0.9"), { type: "confidence_threshold", value: 0.9, note: "mine" });
  assert.deepEqual(editedStop(before, "iteration_limit", "${ROUNDS}"), { type: "iteration_limit", value: "${ROUNDS}", note: "mine" });
  assert.deepEqual(editedStop(before, "final_answer", "0.8"), { type: "final_answer", note: "mine" });
});

test("a condition that is not known stays until another is chosen", () => {
  for (const before of [{ type: "budget", value: 5, unit: "cent" }, "no condition", null, 5, []]) {
    assert.equal(editedStop(before, "", ""), before);
  }
  assert.deepEqual(editedStop("no condition", "final_answer", ""), { type: "final_answer" });
});

test("a row that fades away is not saved any more", (t) => {
  // Node-RED's list keeps a row that was removed until its animation is over, and tells of it only then.
  const item = (fades) => ({ hasClass: (name) => fades() && name === "red-ui-editableList-item-deleting" });
  const row = (stop, fades) => ({ data: () => () => stop, closest: () => item(fades) });
  let isRemoved = false;
  const [kept, gone] = [{ type: "final_answer" }, { type: "iteration_limit", value: 2 }];
  const rows = [row(kept, () => false), row(gone, () => isRemoved)];
  const list = { css: () => list, editableList: (what) => (what === "items" ? { toArray: () => rows } : list) };
  globalThis.$ = (found) => found;
  globalThis.RED = { _: (key) => key };
  t.after(() => {
    delete globalThis.$;
    delete globalThis.RED;
  });
  const field = stopsField(list, {}, [kept, gone]);
  assert.equal(field.edited(), undefined, "nobody has changed anything");
  isRemoved = true;
  assert.deepEqual(field.edited(), [kept]);
});
