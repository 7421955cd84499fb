// The stop conditions of an agent as its dialog saves them.

import assert from "node:assert/strict";
import test from "node:test";
import { editedStop } from "../editor-build/editor/agent-general.mjs";

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
