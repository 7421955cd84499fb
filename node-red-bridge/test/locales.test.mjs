// The texts of the editor in every language: the same keys and placeholders, no missing key and no unused key. The help of
// every node, with the same structure and the declared properties.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { explained } from "../scripts/node-html.mjs";
import { LANGUAGES, NAMESPACE, catalogue } from "./kit/texts.mjs";

const module = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => readFileSync(`${module}/${path}`, "utf8");
const manifest = JSON.parse(read("package.json"));
/** The declared node types of the palette. */
const nodes = JSON.parse(readFileSync(`${module}/../schemas/nodes.json`, "utf8"));
const types = nodes.map(({ type }) => type);
const english = catalogue("en-US");
const areas = [...readdirSync(`${module}/src/editor/locales/en-US`).map((name) => name.replace(/\.json$/, "")), "timeline"];

test("every language has the same keys and placeholders", () => {
  assert.deepEqual(LANGUAGES, ["de", "en-US", "es"]);
  // The texts of the sidecar have their places in braces.
  const placeholders = (value) => [...value.matchAll(/__\w+?__|\{[^{}]*\}/g)].map(([placeholder]) => placeholder).sort();
  for (const language of LANGUAGES) {
    const texts = catalogue(language);
    // The English texts of nodes.field, option, hint, palette and port are those of the declarations.
    const [missing, superfluous] = [[english, texts], [texts, english]].map(([one, other]) => [...one.keys()].filter((key) => !other.has(key)));
    assert.deepEqual(missing, [], `src/editor/locales/${language} has no text for these keys`);
    assert.deepEqual(superfluous, [], `src/editor/locales/${language} has texts that nothing uses`);
    for (const [key, value] of texts) {
      assert.notEqual(value.trim(), "", `${language}: ${key}`);
      assert.deepEqual(placeholders(value), placeholders(english.get(key)), `${language}: ${key}`);
      // Node-RED inserts labels as HTML, and reads "$t(" as a reference to another key.
      assert.doesNotMatch(value, /[<>]|&\w+;|\$t\(/, `${language}: ${key}`);
      // Node-RED inserts values for `__name__` only. Code in a text may have braces.
      assert.doesNotMatch(value.replaceAll(/`[^`]*`/g, ""), /\{\{/, `${language}: ${key}`);
    }
  }
});

test("every used key exists, and every key is used", () => {
  const [plugin] = Object.keys(manifest["node-red"].plugins);
  assert.equal(`${manifest.name}/${plugin}`, NAMESPACE);
  const used = new Set();
  const prefixes = new Set();
  const files = ["dist/nodes", "src/editor", "../console/src/timeline"].flatMap((folder) => readdirSync(`${module}/${folder}`).map((name) => `${folder}/${name}`));
  for (const file of files.filter((name) => /\.(html|mts|tsx?)$/.test(name))) {
    const source = read(file);
    for (const [, keys] of source.matchAll(/data-i18n="([^"]*)"/g)) {
      for (const key of keys.split(";").map((key) => key.replace(/^\[\w+\]/, ""))) {
        assert.ok(key.startsWith(`${NAMESPACE}:`), `${file}: ${key} has another namespace`);
        used.add(key.slice(NAMESPACE.length + 1));
      }
    }
    const area = `(?:${areas.join("|")})`;
    for (const [, key, end] of source.matchAll(new RegExp(`["'\`](${area}\\.[\\w.-]*)(["'\`]|\\$\\{)`, "g"))) {
      // A key that continues with a value is a prefix.
      (end === "${" || key.endsWith(".") ? prefixes : used).add(key);
    }
  }
  // The help uses the labels of the properties that it explains.
  nodes.flatMap(explained).forEach(({ label }) => used.add(`nodes.field.${label.key}`));
  for (const key of used) {
    assert.ok(english.has(key), `${key} has no text`);
  }
  for (const prefix of prefixes) {
    assert.ok([...english.keys()].some((key) => key.startsWith(prefix)), `${prefix}… has no text`);
  }
  const isUsed = (key) => used.has(key) || [...prefixes].some((prefix) => key.startsWith(prefix));
  assert.deepEqual([...english.keys()].filter((key) => !isUsed(key)), [], "unused keys");
});

test("the words of Node-RED's own translations are used, and one plural", () => {
  const otherWords = { de: /deployen|(__\w+__|Max\.) Token\b|^Token[:,]/i, es: /\b(despliegue|despliega|desplegar)\b(?=.)/i };
  for (const [language, words] of Object.entries(otherWords)) {
    const found = [...catalogue(language)].filter(([, value]) => words.test(value));
    assert.deepEqual(found, [], language);
  }
});

test("the help of agents says that wiring ticks a tool, and which status a failure has", () => {
  const unticking = { "en-US": /Untick those/, de: /Entfernen Sie das Kreuz/, es: /Desmarque las/ };
  for (const [language, words] of Object.entries(unticking)) {
    const helpOf = (type) => read(language === "en-US" ? `dist/nodes/${type}.html` : `dist/nodes/locales/${language}/${type}.html`);
    assert.match(helpOf("agent-core"), words);
    for (const type of ["agent-core", "ai-agent"]) {
      assert.match(helpOf(type), /<code>msg\.statusCode<\/code>/, `${language}: ${type}`);
    }
  }
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

test("the help explains the declared properties in their order, by their labels", () => {
  for (const language of LANGUAGES) {
    const texts = catalogue(language);
    for (const node of nodes) {
      const { type } = node;
      const html = read(language === "en-US" ? `dist/nodes/${type}.html` : `dist/nodes/locales/${language}/${type}.html`);
      const [, list] = /<h3>(?:Properties|Propiedades|Eigenschaften)<\/h3>\s*<dl[^>]*>([\s\S]*?)<\/dl>/.exec(html) ?? ["", ""];
      const names = [...list.matchAll(/<dt>([^<]+)<\/dt>/g)].map(([, name]) => name);
      const labels = explained(node).map(({ label }) => texts.get(`nodes.field.${label.key}`));
      // A long label may be cut.
      const found = labels.map((label, at) => (names[at] !== undefined && label?.startsWith(names[at]) ? label : names[at]));
      assert.deepEqual([...found, ...names.slice(labels.length)], labels, `${language}: ${type}`);
    }
  }
});
