// Formats of times and numbers; the result of a person's answer.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.RED = { _: (key, values) => `${key.split(":")[1]} ${values.n ?? ""}`.trim() };
const { formatAge, formatClock, formatCost, formatCount, formatDecimal, formatDuration, formatTime } = await import("../editor-build/editor/formats.mjs");
const { resultOf } = await import("../editor-build/editor/sidebar-resolve.mjs");

test("an answer in the editor gives the same result as on the command line", () => {
  assert.deepEqual(resultOf("done", ""), { success: true, output: null });
  assert.deepEqual(resultOf("done", ' {"receipt": 17} '), { success: true, output: { receipt: 17 } });
  assert.equal(resultOf("done", "{broken"), undefined);
  assert.deepEqual(resultOf("notDone", " "), { success: false, error: "the call did not happen: a person says so" });
  assert.deepEqual(resultOf("notDone", "the line was dead"), { success: false, error: "the call did not happen: the line was dead" });
  assert.deepEqual(resultOf("failed", "{no JSON needed"), { success: false, error: "{no JSON needed" });
  assert.deepEqual(resultOf("failed", ""), { success: false, error: "a person says that the call failed" });
});

test("formats durations", () => {
  const written = [-5, 0, 999, 1_000, 59_949, 59_999, 3_599_400, 3_600_000, 90_061_000].map(formatDuration);
  assert.deepEqual(written, ["0 ms", "0 ms", "999 ms", "1.0 s", "59.9 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "25 h 1 min"]);
  assert.deepEqual([-1, 999, 59_999, 60_000].map(formatClock), ["0 s", "0 s", "59 s", "1 min 0 s"]);
});

test("formats numbers in the editor's language", (t) => {
  t.after(() => delete RED.i18n);
  for (const [lang, half, time] of [["en-US", "0.50", "1.5 s"], ["de", "0,50", "1,5 s"], ["es", "0,50", "1,5 s"], ["no_such!", "0.50", "1.5 s"]]) {
    RED.i18n = { lang: () => lang };
    assert.deepEqual([formatDecimal(0.5, 2), formatDuration(1_500)], [half, time], lang);
  }
});

test("formats tokens and costs", (t) => {
  t.after(() => delete RED.i18n);
  RED.i18n = { lang: () => "en-US" };
  assert.deepEqual([0, 999, 12_345].map(formatCount), ["0", "999", "12,345"]);
  assert.deepEqual([0, 0.000_012_34, 0.5, 12.345].map(formatCost), ["0", "0.0000123", "0.5", "12.35"]);
  RED.i18n = { lang: () => "de" };
  assert.deepEqual([formatCount(12_345), formatCost(0.5)], ["12.345", "0,5"]);
});

test("formats ages with one unit", () => {
  const written = [-1, 4_999, 5_000, 59_999, 60_000, 3_600_000, 86_400_000 * 400].map(formatAge);
  const units = ["now", "now", "seconds 5", "seconds 59", "minutes 1", "hours 1", "days 400"];
  assert.deepEqual(written, units.map((unit) => `runs.age.${unit}`));
});

test("an invalid time is an empty text", () => {
  assert.equal(formatTime(Number.NaN), "");
  assert.equal(formatTime(1e300), "");
});
