// The texts of the editor in every language: the same keys and placeholders, no missing key and no unused key. The help of
// every node, with the same structure.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { LANGUAGES, NAMESPACE, catalogue } from "./kit/texts.mjs";

const module = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => readFileSync(`${module}/${path}`, "utf8");
const manifest = JSON.parse(read("package.json"));
const types = Object.keys(manifest["node-red"].nodes);
const english = catalogue("en-US");
const areas = readdirSync(`${module}/src/editor/locales/en-US`).map((name) => name.replace(/\.json$/, ""));

test("every language has the same keys and placeholders", () => {
  assert.deepEqual(LANGUAGES, ["de", "en-US", "es"]);
  const placeholders = (value) => [...value.matchAll(/__\w+?__/g)].map(([placeholder]) => placeholder).sort();
  for (const language of LANGUAGES) {
    const texts = catalogue(language);
    assert.deepEqual([...texts.keys()].sort(), [...english.keys()].sort(), language);
    for (const [key, value] of texts) {
      assert.notEqual(value.trim(), "", `${language}: ${key}`);
      assert.deepEqual(placeholders(value), placeholders(english.get(key)), `${language}: ${key}`);
      // Node-RED inserts labels as HTML, and reads "$t(" as a reference to another key.
      assert.doesNotMatch(value, /[<>]|&\w+;|\$t\(/, `${language}: ${key}`);
    }
  }
});

test("every used key exists, and every key is used", () => {
  const [plugin] = Object.keys(manifest["node-red"].plugins);
  assert.equal(`${manifest.name}/${plugin}`, NAMESPACE);
  const used = new Set();
  const prefixes = new Set();
  const files = ["src/nodes", "src/editor"].flatMap((folder) => readdirSync(`${module}/${folder}`).map((name) => `${folder}/${name}`));
  for (const file of files.filter((name) => /\.(html|mts)$/.test(name))) {
    const source = read(file);
    for (const [, keys] of source.matchAll(/data-i18n="([^"]*)"/g)) {
      for (const key of keys.split(";").map((key) => key.replace(/^\[\w+\]/, ""))) {
        assert.ok(key.startsWith(`${NAMESPACE}:`), `${file}: ${key} has another namespace`);
        used.add(key.slice(NAMESPACE.length + 1));
      }
    }
    const area = `(?:${areas.join("|")})`;
    for (const [, key, end] of source.matchAll(new RegExp(`["'\`](${area}\\.[\\w.]+)(["'\`]|\\$\\{)`, "g"))) {
      // A key that continues with a value is a prefix.
      (end === "${" || key.endsWith(".") ? prefixes : used).add(key);
    }
  }
  for (const key of used) {
    assert.ok(english.has(key), `${key} has no text`);
  }
  for (const prefix of prefixes) {
    assert.ok([...english.keys()].some((key) => key.startsWith(prefix)), `${prefix}… has no text`);
  }
  const isUsed = (key) => used.has(key) || [...prefixes].some((prefix) => key.startsWith(prefix));
  assert.deepEqual([...english.keys()].filter((key) => !isUsed(key)), [], "unused keys");
});

/** The structure of the help in an html file: its tags and its code. */
function structureOf(html, type) {
  const [, help] = new RegExp(`data-help-name="${type}">([\\s\\S]*?)</script>`).exec(html) ?? [];
  assert.ok(help !== undefined, `${type}: no help`);
  const tags = [...help.matchAll(/<(h3|p|dl|dt|dd|ol|ul|li)\b/g)].map(([, tag]) => tag);
  const codes = [...help.matchAll(/<code>([\s\S]*?)<\/code>/g)].map(([, code]) => code.replace(/\s+/g, " ")).sort();
  return { tags, codes };
}

test("the help of every node has the same structure in every language", () => {
  for (const type of types) {
    const expected = structureOf(read(`dist/nodes/${type}.html`), type);
    for (const language of LANGUAGES.filter((language) => language !== "en-US")) {
      const found = structureOf(read(`dist/nodes/locales/${language}/${type}.html`), type);
      assert.deepEqual(found, expected, `${language}: ${type}`);
    }
  }
});

test("the help uses the labels of the dialog", () => {
  for (const language of LANGUAGES) {
    const texts = catalogue(language);
    const labels = [...texts].filter(([key]) => /^(nodes|agent)\.field\./.test(key)).map(([, label]) => label);
    for (const type of types) {
      const html = read(language === "en-US" ? `dist/nodes/${type}.html` : `dist/nodes/locales/${language}/${type}.html`);
      const [, list] = /<h3>(?:Properties|Propiedades|Eigenschaften)<\/h3>\s*<dl[^>]*>([\s\S]*?)<\/dl>/.exec(html) ?? ["", ""];
      for (const [, name] of list.matchAll(/<dt>([^<]+)<\/dt>/g)) {
        assert.ok(labels.some((label) => label.startsWith(name)), `${language}: ${type} has no field "${name}"`);
      }
    }
  }
});
