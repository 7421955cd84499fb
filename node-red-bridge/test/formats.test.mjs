// Formats of times and numbers.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.RED = { _: (key, values) => `${key.split(":")[1]} ${values.n ?? ""}`.trim() };
const { formatAge, formatCost, formatCount, formatDecimal, formatTime, formats } = await import("../editor-build/editor/formats.mjs");

test("formats numbers in the editor's language", (t) => {
  t.after(() => delete RED.i18n);
  for (const [lang, half, time] of [["en-US", "0.50", "1.5 s"], ["de", "0,50", "1,5 s"], ["es", "0,50", "1,5 s"], ["no_such!", "0.50", "1.5 s"]]) {
    RED.i18n = { lang: () => lang };
    assert.deepEqual([formatDecimal(0.5, 2), formats.duration(1_500)], [half, time], lang);
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
