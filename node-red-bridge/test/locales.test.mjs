// The words of the editor in every language: the same keys, the same places to fill in, none used that is not there, none
// there that is not used. And the help of every node, with the same parts.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { LANGUAGES, NAMESPACE, catalogue } from "./kit/words.mjs";

const module = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => readFileSync(`${module}/${path}`, "utf8");
const manifest = JSON.parse(read("package.json"));
const types = Object.keys(manifest["node-red"].nodes);
const english = catalogue("en-US");
const areas = readdirSync(`${module}/src/editor/locales/en-US`).map((name) => name.replace(/\.json$/, ""));

test("every language has the same keys, each with words and the same places", () => {
  assert.deepEqual(LANGUAGES, ["de", "en-US", "es"]);
  const places = (words) => [...words.matchAll(/__\w+?__/g)].map(([place]) => place).sort();
  for (const language of LANGUAGES) {
    const words = catalogue(language);
    assert.deepEqual([...words.keys()].sort(), [...english.keys()].sort(), language);
    for (const [key, value] of words) {
      assert.notEqual(value.trim(), "", `${language}: ${key}`);
      assert.deepEqual(places(value), places(english.get(key)), `${language}: ${key}`);
      // Node-RED writes labels into the page as HTML, and reads "$t(" as another key.
      assert.doesNotMatch(value, /[<>]|&\w+;|\$t\(/, `${language}: ${key}`);
    }
  }
});

test("every key that is used is there, and every key that is there is used", () => {
  const [plugin] = Object.keys(manifest["node-red"].plugins);
  assert.equal(`${manifest.name}/${plugin}`, NAMESPACE);
  const used = new Set();
  const begins = new Set();
  const files = ["src/nodes", "src/editor"].flatMap((folder) => readdirSync(`${module}/${folder}`).map((name) => `${folder}/${name}`));
  for (const file of files.filter((name) => /\.(html|mts)$/.test(name))) {
    const source = read(file);
    for (const [, keys] of source.matchAll(/data-i18n="([^"]*)"/g)) {
      for (const key of keys.split(";").map((key) => key.replace(/^\[\w+\]/, ""))) {
        assert.ok(key.startsWith(`${NAMESPACE}:`), `${file}: ${key} is looked for elsewhere`);
        used.add(key.slice(NAMESPACE.length + 1));
      }
    }
    const area = `(?:${areas.join("|")})`;
    for (const [, key, end] of source.matchAll(new RegExp(`["'\`](${area}\\.[\\w.]+)(["'\`]|\\$\\{)`, "g"))) {
      // A key that ends with a value, or that a page goes on with `+`, stands for all that begin so.
      end === "${" || key.endsWith(".") ? begins.add(key) : used.add(key);
    }
  }
  for (const key of used) {
    assert.ok(english.has(key), `${key} has no words`);
  }
  for (const begin of begins) {
    assert.ok([...english.keys()].some((key) => key.startsWith(begin)), `${begin}… has no words`);
  }
  const isUsed = (key) => used.has(key) || [...begins].some((begin) => key.startsWith(begin));
  assert.deepEqual([...english.keys()].filter((key) => !isUsed(key)), [], "nobody says these");
});

/** The help in a page: which parts it has, and what of it is no language. */
function partsOf(html, type) {
  const [, help] = new RegExp(`data-help-name="${type}">([\\s\\S]*?)</script>`).exec(html) ?? [];
  assert.ok(help !== undefined, `${type}: no help`);
  const tags = [...help.matchAll(/<(h3|p|dl|dt|dd|ol|ul|li)\b/g)].map(([, tag]) => tag);
  const codes = [...help.matchAll(/<code>([\s\S]*?)<\/code>/g)].map(([, code]) => code.replace(/\s+/g, " ")).sort();
  return { tags, codes };
}

test("the help of every node has the same parts in every language", () => {
  for (const type of types) {
    const expected = partsOf(read(`dist/nodes/${type}.html`), type);
    for (const language of LANGUAGES.filter((language) => language !== "en-US")) {
      const found = partsOf(read(`dist/nodes/locales/${language}/${type}.html`), type);
      assert.deepEqual(found, expected, `${language}: ${type}`);
    }
  }
});

test("a name of a field in the help is the one in its dialog", () => {
  for (const language of LANGUAGES) {
    const words = catalogue(language);
    const labels = [...words].filter(([key]) => /^(nodes|agent)\.field\./.test(key)).map(([, label]) => label);
    for (const type of types) {
      const html = read(language === "en-US" ? `dist/nodes/${type}.html` : `dist/nodes/locales/${language}/${type}.html`);
      const [, list] = /<h3>(?:Properties|Propiedades|Eigenschaften)<\/h3>\s*<dl[^>]*>([\s\S]*?)<\/dl>/.exec(html) ?? [, ""];
      for (const [, name] of list.matchAll(/<dt>([^<]+)<\/dt>/g)) {
        assert.ok(labels.some((label) => label.startsWith(name)), `${language}: ${type} has no field "${name}"`);
      }
    }
  }
});
