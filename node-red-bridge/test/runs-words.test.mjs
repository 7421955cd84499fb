// What a person's answer becomes, and how times are written.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.RED = { _: (key, values) => `${key.split(":")[1]} ${values.n ?? ""}`.trim() };
const { age, clock, decimal, duration, moment } = await import("../editor-build/editor/runs-words.mjs");
const { resultOf } = await import("../editor-build/editor/sidebar-resolve.mjs");

test("what a person says of a call is what the command line would say", () => {
  assert.deepEqual(resultOf("done", ""), { success: true, output: null });
  assert.deepEqual(resultOf("done", ' {"receipt": 17} '), { success: true, output: { receipt: 17 } });
  assert.equal(resultOf("done", "{broken"), undefined);
  assert.deepEqual(resultOf("notDone", " "), { success: false, error: "the call did not happen: a person says so" });
  assert.deepEqual(resultOf("notDone", "the line was dead"), { success: false, error: "the call did not happen: the line was dead" });
  assert.deepEqual(resultOf("failed", "{no JSON needed"), { success: false, error: "{no JSON needed" });
  assert.deepEqual(resultOf("failed", ""), { success: false, error: "a person says that the call failed" });
});

test("durations are short", () => {
  const written = [-5, 0, 999, 1_000, 59_949, 59_999, 3_599_400, 3_600_000, 90_061_000].map(duration);
  assert.deepEqual(written, ["0 ms", "0 ms", "999 ms", "1.0 s", "59.9 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "25 h 1 min"]);
  assert.deepEqual([-1, 999, 59_999, 60_000].map(clock), ["0 s", "0 s", "59 s", "1 min 0 s"]);
});

test("numbers are written as the editor's language has them", (t) => {
  t.after(() => delete RED.i18n);
  for (const [lang, half, time] of [["en-US", "0.50", "1.5 s"], ["de", "0,50", "1,5 s"], ["es", "0,50", "1,5 s"], ["no_such!", "0.50", "1.5 s"]]) {
    RED.i18n = { lang: () => lang };
    assert.deepEqual([decimal(0.5, 2), duration(1_500)], [half, time], lang);
  }
});

test("ages have one unit", () => {
  const written = [-1, 4_999, 5_000, 59_999, 60_000, 3_600_000, 86_400_000 * 400].map(age);
  const units = ["now", "now", "seconds 5", "seconds 59", "minutes 1", "hours 1", "days 400"];
  assert.deepEqual(written, units.map((unit) => `runs.age.${unit}`));
});

test("a time that is none is nothing", () => {
  assert.equal(moment(Number.NaN), "");
  assert.equal(moment(1e300), "");
});
