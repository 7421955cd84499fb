// The words of the timeline in every language, its formats, and what its folder may import: Node-RED's editor has it too.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { formatsIn } from "../src/timeline/index.js";
import { SOURCES, wordsIn } from "./timeline-kit.js";

const english = wordsIn("en");
const sources = readdirSync(SOURCES).filter((name) => /\.tsx?$/.test(name)).map((name) => ({ name, source: readFileSync(join(SOURCES, name), "utf8") }));

test("every language has a text of its own for each key, with the same places", () => {
  const places = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).sort();
  for (const language of ["es", "de"]) {
    const words = wordsIn(language);
    assert.deepEqual(Object.keys(words).sort(), Object.keys(english).sort(), language);
    for (const [key, text] of Object.entries(words)) {
      assert.notEqual(text.trim(), "", key);
      assert.deepEqual(places(text), places(english[key] ?? ""), `${language}: ${key}`);
    }
    const same = Object.keys(words).filter((key) => words[key] === english[key] && !/^\W*\{\w+\}\W*$|^Iteration|^Memory|^Tokens|^tokens|^No$/.test(words[key] ?? ""));
    assert.deepEqual(same, [], language);
  }
});

test("every used key exists, and every key is used", () => {
  const [used, prefixes] = [new Set<string>(), new Set<string>()];
  for (const { source } of sources) {
    for (const [, key = "", end] of source.matchAll(/["`](timeline\.[\w.]*)(["`]|\$\{)/g)) {
      (end === "${" ? prefixes : used).add(key);
    }
  }
  assert.deepEqual([...used].filter((key) => !(key in english)), [], "keys without a text");
  const isUsed = (key: string): boolean => used.has(key) || [...prefixes].some((prefix) => key.startsWith(prefix));
  assert.deepEqual(Object.keys(english).filter((key) => !isUsed(key)), [], "unused keys");
});

test("formats durations, clocks, numbers and times in a language", () => {
  const { duration, clock, count, cost, decimal, time } = formatsIn(() => "en-US", () => "en-GB");
  const written = [-5, 0, 999, 1_000, 59_949, 59_999, 3_599_400, 3_600_000, 90_061_000].map(duration);
  assert.deepEqual(written, ["0 ms", "0 ms", "999 ms", "1.0 s", "59.9 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "25 h 1 min"]);
  assert.deepEqual([-1, 999, 59_999, 60_000].map(clock), ["0 s", "0 s", "59 s", "1 min 0 s"]);
  assert.deepEqual([count(12_345), cost(0.000_012_34), cost(12.345), decimal(0.5, 2)], ["12,345", "0.0000123", "12.35", "0.50"]);
  assert.equal(formatsIn(() => "de").duration(1_500), "1,5 s");
  assert.equal(formatsIn(() => "no_such!").duration(1_500), "1.5 s");
  assert.match(time(0), /1970/);
  assert.equal(time(1e300), "");
});

test("the folder imports only itself, the bindings and Preact, and uses no global of Node-RED", () => {
  const allowed = /^(\.\/[\w-]+\.js|@redflow\/bindings|preact|preact\/hooks|@preact\/signals)$/;
  for (const { name, source } of sources) {
    const imported = [...source.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map(([, path]) => path ?? "");
    assert.deepEqual(imported.filter((path) => !allowed.test(path)), [], name);
    assert.doesNotMatch(source, /\bRED\.|innerHTML|dangerouslySetInnerHTML/, name);
  }
});
