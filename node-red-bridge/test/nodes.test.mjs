// What the editor is given: every dialog, its defaults and checks, held against the schemas of the sidecar and
// against the scripts that run in Node-RED. The pages are evaluated as the editor does, with as much of it as they
// use.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import vm from "node:vm";

const module = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => readFileSync(`${module}/${path}`, "utf8");
const manifest = JSON.parse(read("package.json"));
const sets = Object.entries(manifest["node-red"].nodes);

/** What Node-RED's own API gives the scripts of a page, and what they did with it. */
function editor() {
  const definitions = new Map();
  const fields = new Map();
  const RED = {
    nodes: { registerType: (type, definition) => definitions.set(type, definition) },
    plugins: { registerPlugin: () => undefined },
  };
  const $ = (selector) => ({ val: () => fields.get(selector) });
  const window = {};
  const context = vm.createContext({ RED, $, window, URL });
  const run = (html) => {
    for (const [, source] of html.matchAll(/<script type="text\/javascript">([\s\S]*?)<\/script>/g)) {
      vm.runInContext(source, context);
    }
  };
  run(read(manifest["node-red"].plugins["redflow-editor"]));
  context.RedflowEditor = window.RedflowEditor;
  for (const [, file] of sets) {
    run(read(file.replace(/\.js$/, ".html")));
  }
  return { definitions, fields, shared: window.RedflowEditor };
}

const { definitions, fields, shared } = editor();
const page = (type) => read(manifest["node-red"].nodes[type].replace(/\.js$/, ".html"));
/** A value of the pages' own world as one of ours. */
const plain = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
/** The properties a fresh node has. The others are only kept, if a flow has them. */
const fresh = ({ defaults }) => Object.keys(defaults).filter((name) => defaults[name].value !== undefined);
const schema = (name) => JSON.parse(readFileSync(`${module}/../schemas/${name}.schema.json`, "utf8"));

/** The schemas that say what each type is read for. */
const SCHEMAS = {
  "agent-core": ["agent-core.react", "node.agent-binding"],
  "openai-model": ["node.openai-model"],
  "anthropic-model": ["node.anthropic-model"],
  "model.azure.openai": ["node.azure-model"],
  "ollama-model": ["node.ollama-model"],
  "scripted-model": ["node.scripted-model"],
  "buffer-memory": ["node.buffer-memory"],
  "window-memory": ["node.window-memory"],
  "redis-memory": ["node.redis-memory"],
  "calculator-tool": ["node.tool"],
  "flow-tool": ["node.tool"],
};
/** What another editor writes, and the ways to write the same again. */
const ELSEWHERE = new Set(["credentialId@model.azure.openai"]);
const CONTAINERS = new Set(["credentials", "options"]);

test("every set has a page with one type, a dialog and help", () => {
  assert.deepEqual([...definitions.keys()].sort(), sets.map(([type]) => type).sort());
  for (const [type] of sets) {
    const html = page(type);
    assert.equal(html.split(`data-template-name="${type}"`).length, 2, type);
    assert.equal(html.split(`data-help-name="${type}"`).length, 2, type);
    // As the flow library's checker looks for it.
    assert.ok(html.includes(`RED.nodes.registerType("${type}", {\n`), type);
    for (const part of ["Ports", "Errors"]) {
      assert.match(html, new RegExp(`<h3>(${part}${part === "Ports" ? "|Outputs?|Input" : ""})</h3>`), `${type}: ${part}`);
    }
    const { category, icon } = definitions.get(type);
    assert.equal(category, type === "redflow-runtime" ? "config" : "Redflow", type);
    assert.ok(icon === undefined || existsSync(`${module}/dist/nodes/icons/${icon}`), `${type}: ${icon}`);
  }
});

test("the properties of a dialog are those the sidecar reads, and secrets are credentials", () => {
  for (const [type, names] of Object.entries(SCHEMAS)) {
    const { defaults, credentials = {} } = definitions.get(type);
    const known = new Set(names.flatMap((name) => Object.keys(schema(name).properties)));
    for (const name of known) {
      const there = name in defaults || name in credentials || CONTAINERS.has(name) || ELSEWHERE.has(`${name}@${type}`);
      assert.ok(there, `${type} has no field for ${name}`);
    }
    for (const name of [...Object.keys(defaults), ...Object.keys(credentials)]) {
      assert.ok(known.has(name) || name === "name" || name === "runtime", `${type}: nobody reads ${name}`);
    }
  }
  for (const [type, { defaults }] of definitions) {
    for (const secret of ["apiKey", "password", "encryptionKey", "token"]) {
      assert.ok(!(secret in defaults), `${type}: ${secret} would stand in the flow`);
    }
  }
});

test("a fresh node is valid, with numbers as numbers, and satisfies its schema's types", () => {
  const kind = (value) => (Array.isArray(value) ? "array" : value === null ? "null" : typeof value);
  for (const [type, definition] of definitions) {
    const { defaults } = definition;
    const node = Object.fromEntries(fresh(definition).map((name) => [name, plain(defaults[name].value)]));
    const problems = Object.entries(defaults).flatMap(([name, { validate }]) => {
      const found = validate ? validate.call(node, node[name], {}) : true;
      return found === true ? [] : [found];
    });
    const missing = ["The endpoint is missing.", "The deployment is missing."];
    assert.deepEqual(problems, type === "model.azure.openai" ? missing : [], type);
    for (const { properties, required = [] } of (SCHEMAS[type] ?? []).map(schema)) {
      for (const name of required) {
        assert.ok(name in node, `${type}: ${name} is required`);
      }
      for (const [name, rule] of Object.entries(properties).filter(([name]) => name in node)) {
        // Of services the sidecar takes a blank field as none. Agents and tools are read to the letter.
        const isService = type !== "agent-core" && !type.endsWith("-tool");
        if (rule.type === undefined || (isService && node[name] === "")) {
          continue;
        }
        const types = [rule.type].flat().map((kind) => (kind === "integer" ? "number" : kind));
        assert.ok(types.includes(kind(node[name])), `${type}: ${name} is ${kind(node[name])}, not ${types}`);
      }
    }
  }
  const { strategy, maxIterations, allowedTools } = definitions.get("agent-core").defaults;
  assert.deepEqual(plain([strategy.value, maxIterations.value, allowedTools.value]), ["react", 5, ["calculator"]]);
});

test("every property has a field, and every field a property", () => {
  const LISTS = { allowedTools: "redflow-tools", stopConditions: "redflow-stops" };
  for (const [type, definition] of definitions) {
    const { defaults, credentials = {}, category } = definition;
    const prefix = category === "config" ? "node-config-input" : "node-input";
    const ids = new Set([...page(type).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const name of [...fresh(definition), ...Object.keys(credentials)]) {
      const places = [name, `redflow-${name}`, LISTS[name]].map((end) => `${prefix}-${end}`);
      assert.ok(places.some((id) => ids.has(id)), `${type}: no field for ${name}`);
    }
    for (const id of ids) {
      const name = id.slice(prefix.length + 1);
      assert.ok(id.startsWith(`${prefix}-`), `${type}: ${id}`);
      assert.ok(name.startsWith("redflow-") || name in defaults || name in credentials, `${type}: ${id} is nothing's`);
    }
    for (const name of Object.keys(credentials)) {
      assert.match(page(type), new RegExp(`<input type="password" id="${prefix}-${name}"`), `${type}: ${name}`);
    }
  }
});

test("the scripts register the same types with the same credentials", () => {
  const load = createRequire(import.meta.url);
  for (const [type, file] of sets.filter(([type]) => type in SCHEMAS && type !== "agent-core")) {
    const found = [];
    const nodes = {
      createNode: () => undefined,
      registerType: (type, _, options = {}) => found.push([type, options.credentials ?? {}]),
    };
    load(`${module}/${file}`)({ nodes });
    assert.deepEqual(found, [[type, plain(definitions.get(type).credentials ?? {})]]);
  }
});

test("no text of a person is put into the editor as HTML", () => {
  for (const html of [...sets.map(([type]) => page(type)), read(manifest["node-red"].plugins["redflow-editor"])]) {
    for (const [, source] of html.matchAll(/<script type="text\/javascript">([\s\S]*?)<\/script>/g)) {
      assert.doesNotMatch(source, /\.html\(|innerHTML|insertAdjacentHTML|\$\(\s*["'`]<[a-z]+[^>]*["'`]\s*\+/);
    }
  }
});

test("what is typed into fields of numbers is saved as numbers", () => {
  const same = ["", "${ROUNDS}", "many", "Infinity"].map((text) => [text, text]);
  const rows = [["5", 5], [" 0.25 ", 0.25], ["  ", ""], ["0", 0], ["1e3", 1000], ...same];
  for (const [typed, saved] of rows) {
    fields.set("#node-input-maxIterations", typed);
    const node = {};
    shared.saveNumbers(node, ["maxIterations"]);
    assert.equal(node.maxIterations, saved);
  }
  fields.set("#node-config-input-maxQueued", "7");
  const node = {};
  shared.saveNumbers(node, ["maxQueued"], "node-config-input");
  assert.equal(node.maxQueued, 7);
  // Every property that is checked as a number is saved as one.
  for (const [type, { defaults, oneditsave }] of definitions) {
    const numbers = Object.keys(defaults).filter((name) => /RedflowEditor\.number\(v/.test(String(defaults[name].validate)));
    for (const name of numbers) {
      assert.ok(String(oneditsave).includes(`"${name}"`), `${type}: ${name} would be saved as text`);
    }
  }
});

test("choices and JSON are saved as what they are", () => {
  for (const [chosen, saved] of [["", ""], ["true", true], ["false", false]]) {
    fields.set("#node-input-redflow-stream", chosen);
    const node = {};
    shared.saveChoices(node, ["stream"]);
    assert.equal(node.stream, saved);
  }
  for (const [typed, saved] of [['{"a": [1]}', { a: [1] }], ["", ""], ["{", "{"], ["[1]", [1]]]) {
    fields.set("#node-input-redflow-inputSchema", typed);
    const node = {};
    shared.saveJson(node, "inputSchema");
    assert.deepEqual(plain(node.inputSchema), saved);
  }
});

test("the checks say what is wrong in a sentence", () => {
  const whole = { name: "It", min: 1, max: 20, whole: true };
  const address = { name: "It", example: "http://x" };
  const open = "A password in the address is stored in the open: put it into its own field.";
  const rows = [
    [shared.number(5, whole), true],
    [shared.number("20", whole), true],
    [shared.number("${ROUNDS}", whole), true],
    [shared.number(0, whole), "It must be a whole number from 1 to 20."],
    [shared.number("21", whole), "It must be a whole number from 1 to 20."],
    [shared.number(1.5, whole), "It must be a whole number from 1 to 20."],
    [shared.number(NaN, whole), "It must be a whole number from 1 to 20."],
    [shared.number("", whole), "It is missing."],
    [shared.number(undefined, { ...whole, optional: true }), true],
    [shared.number("x", { name: "It" }), "It must be a number."],
    [shared.address("http://127.0.0.1:1881", address), true],
    [shared.address("127.0.0.1", address), "It must be an address such as http://x."],
    [shared.address("file:///etc/passwd", address), "It must begin with http:// or https://."],
    [shared.address("https://a:b@c", address), "It must not hold a user or a password: whoever reads the flow reads it."],
    [shared.redisAddress("redis://127.0.0.1:6379/0"), true],
    [shared.redisAddress("redis://:x@127.0.0.1"), open],
    [shared.redisAddress("http://127.0.0.1"), "The address must begin with redis:// or rediss://."],
    [shared.toolName("read_temperature"), true],
    [shared.toolName("two words"), "The tool needs a name of 1 to 64 letters, digits, _ or -."],
    [shared.toolName(undefined), "The tool needs a name of 1 to 64 letters, digits, _ or -."],
    [shared.object({}, { name: "It" }), true],
    [shared.object('{"a": 1}', { name: "It" }), true],
    [shared.object("[1]", { name: "It" }), "It must be a JSON object: {…}."],
  ];
  for (const [found, expected] of rows) {
    assert.equal(found, expected);
  }
  assert.match(shared.object("{", { name: "It" }), /^It is not JSON: /);
  const { stopConditions } = definitions.get("agent-core").defaults;
  const stop = (type, value) => stopConditions.validate([{ type, value }], {});
  assert.equal(stop("final_answer"), true);
  assert.equal(stop("confidence_threshold", 0.8), true);
  assert.equal(stop("confidence_threshold", 2), "The confidence must be a number from 0 to 1.");
  assert.equal(stop("iteration_limit", "x"), "The iteration must be a whole number from 1 to 4294967295.");
});

test("the examples use every node, with its own properties, and no secret", () => {
  const used = new Set();
  const files = readdirSync(`${module}/examples`).filter((name) => name.endsWith(".json"));
  for (const file of files) {
    const nodes = JSON.parse(read(`examples/${file}`));
    const ids = new Set(nodes.map(({ id }) => id));
    assert.equal(ids.size, nodes.length, `${file}: two nodes of one id`);
    for (const node of nodes) {
      used.add(node.type);
      assert.ok(!("credentials" in node), `${file}: ${node.id}`);
      for (const target of (node.wires ?? []).flat()) {
        assert.ok(ids.has(target), `${file}: ${node.id} → ${target}`);
      }
      const definition = definitions.get(node.type);
      if (!definition) {
        continue;
      }
      const { id: _, type, z: __, x: ___, y: ____, wires, ...own } = node;
      assert.deepEqual(Object.keys(own).sort(), fresh(definition).sort(), `${file}: ${node.id}`);
      assert.equal((wires ?? []).length, definition.outputs ?? 0, `${file}: ${node.id}`);
      assert.ok(type !== "agent-core" || ids.has(own.runtime), `${file}: ${node.id}`);
      for (const [name, { validate }] of Object.entries(definition.defaults)) {
        assert.equal(validate ? validate.call(own, own[name], {}) : true, true, `${file}: ${node.id}.${name}`);
      }
    }
  }
  for (const [type] of sets) {
    assert.ok(used.has(type), `no example has a ${type}`);
  }
});
