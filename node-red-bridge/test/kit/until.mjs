// Waits for a condition in tests.

import assert from "node:assert/strict";

/** Waits until `condition` returns or resolves with true; fails with `what` after ten seconds. */
export async function until(what, condition) {
  for (let attempts = 2_000; !(await condition()); attempts -= 1) {
    assert.ok(attempts > 0, what);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
