// The texts in every language.

import { requests } from "./console-kit.js";
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { chooseLanguage, formatAge, formatBytes, formatDuration, language, setLanguage, t, tKey, tOf } from "../src/words.js";
import { EN } from "../src/words/en.js";

const SOURCES = join(import.meta.dirname, "..", "src");
const own = Object.fromEntries(Object.entries(EN).filter(([key]) => !key.startsWith("timeline.")));
const wordsIn = (name: string): Record<string, string> => JSON.parse(readFileSync(join(SOURCES, "words", `${name}.json`), "utf8")) as Record<string, string>;
const sources = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name) && !name.startsWith("timeline"))
  .map((name) => ({ name, source: readFileSync(join(SOURCES, name), "utf8") }));

/** Texts that are the same word in two languages. */
const SAME = /^(No|Chat|Plan|Token|Tokens|Redflow|MCP|tools\.yaml|Error:|Agent|Iteration \{iteration\}|Journal|Iterationen|Subflow)$/i;

test("every language has a text of its own for each key, with the same places", () => {
  const places = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).toSorted();
  for (const name of ["es", "de"]) {
    const words = wordsIn(name);
    assert.deepEqual(Object.keys(words).toSorted(), Object.keys(own).toSorted(), name);
    for (const [key, text] of Object.entries(words)) {
      assert.notEqual(text.trim(), "", key);
      assert.deepEqual(places(text), places(own[key] ?? ""), `${name}: ${key}`);
    }
    assert.deepEqual(Object.keys(words).filter((key) => words[key] === own[key] && !SAME.test(words[key] ?? "")), [], name);
  }
});

test("every key is used", () => {
  const all = sources.filter(({ name }) => !name.startsWith("words/")).map(({ source }) => source).join("\n");
  const prefixes = [...all.matchAll(/tOf\("([\w.]+)"/g), ...all.matchAll(/\bt\(`([\w.]+)\.\$\{/g)].map(([, prefix]) => `${prefix ?? ""}.`);
  // The rest of such a key is a word of the sources, or a value or a property of the sidecar.
  const values = readFileSync(join(SOURCES, "..", "..", "bindings", "src", "types.ts"), "utf8");
  const words = new Set([...(all + values).matchAll(/"([^"\n]+)"/g), ...all.matchAll(/[{,] (\w+)[,:]/g), ...values.matchAll(/^(\w+)\??: /gm)].map(([, word]) => word));
  const isWord = (rest: string): boolean => words.has(rest) || rest.split(".").every((part) => words.has(part));
  const isUsed = (key: string): boolean => all.includes(`"${key}"`) || prefixes.some((prefix) => key.startsWith(prefix) && isWord(key.slice(prefix.length)));
  assert.deepEqual(Object.keys(own).filter((key) => !isUsed(key)), []);
  assert.deepEqual(["usage.nonsense", "call.nonsense", "filter.nonsense"].filter(isUsed), []);
});

test("the palette's words are used for the same things", () => {
  for (const [name, folder] of [["es", "es"], ["de", "de"]] as const) {
    const palette = JSON.parse(readFileSync(join(SOURCES, "timeline", "words", `${folder}.json`), "utf8")) as Record<string, string>;
    const words = wordsIn(name);
    for (const status of ["running", "interrupted", "waiting", "completed", "stopped", "failed", "damaged"]) {
      assert.equal(words[`status.${status}`], palette[`timeline.status.${status}`], `${name} ${status}`);
    }
    assert.equal(words["run.cancel"], palette["timeline.cancel.wish"]);
    assert.equal(words["step.prompt"], palette["timeline.texts.prompt"]);
  }
});

test("chooses the user's language, else the first of the browser's that there is", () => {
  assert.equal(chooseLanguage(null, ["fr-FR", "de-AT", "es"]), "de");
  assert.equal(chooseLanguage("es", ["de"]), "es");
  assert.equal(chooseLanguage("xx", []), "en");
});

test("fills in values and formats; a missing text is English", async () => {
  assert.equal(t("runs.fresh", { n: 1_234 }), "1,234 new");
  assert.equal(tOf("status", "unknown_to_us"), "unknown_to_us");
  await setLanguage("de", async () => ({ texts: Object.keys(EN).map((key) => (key === "runs.fresh" ? "{n} neue" : null)), phrases: {} }));
  assert.deepEqual([t("runs.fresh", { n: 1_234 }), t("home"), language.value, document.documentElement.lang], ["1.234 neue", "Home", "de", "de"]);
  await assert.rejects(setLanguage("es", () => Promise.reject(new Error("gone"))));
  assert.equal(language.value, "de");
  await setLanguage("en", () => Promise.reject(new Error("not read")));
  assert.deepEqual([0, 999, 1_500, 59_960, 3_700_000].map(formatDuration), ["0 ms", "999 ms", "1.5 s", "1 min 0 s", "1 h 1 min"]);
  assert.deepEqual([0, 59_000, 61_000, 7_300_000, 172_800_000].map(formatAge), ["just now", "59 s ago", "1 min ago", "2 h ago", "2 d ago"]);
  assert.deepEqual([0, 999, 1_500, 4_194_304].map(formatBytes), ["0 B", "999 B", "1.5 kB", "4.2 MB"]);
  assert.equal(tKey("timeline.iteration", { iteration: 3 }), "Iteration 3");
  assert.deepEqual(requests, []);
});
