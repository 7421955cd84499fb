// The html files of the nodes: compares every dialog, its defaults and its validation with the schemas of the sidecar and
// with the scripts that run in Node-RED. Evaluates the html files with a fake of the editor.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import vm from "node:vm";
import { CATALOGUE } from "@redflow/bindings";
import { apply, fill, formOf } from "./kit/form.mjs";
import { translator } from "./kit/texts.mjs";

const module = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => readFileSync(`${module}/${path}`, "utf8");
const manifest = JSON.parse(read("package.json"));
const sets = Object.entries(manifest["node-red"].nodes);

/** Accepts every access and call: stands for parts of the editor that only user actions need. */
const anything = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => "" : name === Symbol.iterator ? [][name] : anything),
  apply: () => anything,
  construct: () => anything,
});

/** A fake of Node-RED's editor that runs the scripts of all html files. */
function editor() {
  const definitions = new Map();
  const fields = new Map();
  const configs = [{ id: "only", type: "redflow-runtime" }];
  const eachConfig = (visit) => configs.forEach((node) => visit(node));
  const workspace = (id) => ({ disabled: id === "off" });
  const node = (id) => configs.find((node) => node.id === id);
  const nodes = { registerType: (type, definition) => definitions.set(type, definition), eachConfig, workspace, node };
  const withRest = (own) => new Proxy(own, { get: (_, name) => own[name] ?? anything });
  const RED = withRest({ nodes: withRest(nodes), _: translator("en-US") });
  const found = (id) => fields.get(id) ?? shown.form?.byId(id) ?? null;
  const $ = (selector) => {
    const field = typeof selector === "string" ? found(selector.slice(1)) : null;
    const is = (kind) => field !== null && (kind === ":checkbox" ? field.type === "checkbox" : kind === field.type);
    const own = { 0: field, length: field === null ? 0 : 1, val: (value) => (value === undefined ? field?.value : (field.value = value)) };
    return withRest({ ...own, is, prop: (name) => field[name] });
  };
  const window = {};
  const document = withRest({ getElementById: found, createElement: () => withRest({}) });
  const shown = {};
  const timers = { setTimeout: () => 0, setInterval: () => 0, clearTimeout: () => 0, queueMicrotask: () => 0 };
  const context = vm.createContext({ RED, $, window, document, HTMLInputElement: class {}, MutationObserver: anything, URL, ...timers });
  const run = (html) => {
    for (const [, source] of html.matchAll(/<script type="text\/javascript">([\s\S]*?)<\/script>/g)) {
      vm.runInContext(source, context);
    }
  };
  run(read(manifest["node-red"].plugins["redflow-editor"]));
  const validated = [];
  const verdict = (node) => validated.push(node) > 0;
  context.RedflowEditor = { ...window.RedflowEditor, verdict };
  for (const [, file] of sets) {
    run(read(file.replace(/\.js$/, ".html")));
  }
  return { definitions, fields, shared: window.RedflowEditor, validated, shown, configs };
}

const { definitions, fields, shared, validated, shown, configs } = editor();
const page = (type) => read(manifest["node-red"].nodes[type].replace(/\.js$/, ".html"));
/** Copies a value from the realm of the html files. */
const plain = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));
/** The properties of a new node. The others exist only if a flow has them. */
const newProperties = ({ defaults }) => Object.keys(defaults).filter((name) => defaults[name].value !== undefined);
const schema = (name) => JSON.parse(readFileSync(`${module}/../schemas/${name}.schema.json`, "utf8"));

/** The declared node types of the palette, and the schemas of those that the sidecar reads. */
const declared = JSON.parse(read("../schemas/nodes.json"));
const SCHEMAS = Object.fromEntries(CATALOGUE.filter(({ type, schemas }) => definitions.has(type) && schemas.length > 0).map(({ type, schemas }) => [type, schemas]));
/**
 * Properties without a field here: another editor writes them, they contain other properties, or they have no effect. Only
 * agents and flow tools can be called by MCP clients.
 */
const WITHOUT_FIELD = new Set([
  "credentialId@model.azure.openai",
  ...declared.filter(({ type, role }) => role === "tool" && type !== "flow-tool").map(({ type }) => `mcp@${type}`),
]);
const CONTAINERS = new Set(["credentials", "options"]);

test("every set has an html file with one type, a dialog and help", () => {
  assert.deepEqual([...definitions.keys()].sort(), sets.map(([type]) => type).sort());
  for (const [type] of sets) {
    const html = page(type);
    assert.equal(html.split(`data-template-name="${type}"`).length, 2, type);
    assert.equal(html.split(`data-help-name="${type}"`).length, 2, type);
    // In the form that the flow library's checker searches.
    assert.ok(html.includes(`RED.nodes.registerType("${type}", {\n`), type);
    for (const part of ["Ports", "Errors"]) {
      assert.match(html, new RegExp(`<h3>(${part}${part === "Ports" ? "|Outputs?|Input" : ""})</h3>`), `${type}: ${part}`);
    }
    const { category, icon } = definitions.get(type);
    assert.equal(category, declared.find((one) => one.type === type).config ? "config" : "Redflow", type);
    assert.ok(icon === undefined || existsSync(`${module}/dist/nodes/icons/${icon}`), `${type}: ${icon}`);
  }
});

test("a service has the colour of its port, and a chat has none of them", () => {
  const hueOf = (color) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
    return ((Math.atan2(Math.sqrt(3) * (green - blue), 2 * red - green - blue) * 180) / Math.PI + 360) % 360;
  };
  const css = read("src/editor/redflow-editor.css");
  const ports = Object.fromEntries([...css.matchAll(/redflow-port-(\w+) > .red-ui-flow-port \{ fill: (#\w+)/g)].map(([, kind, color]) => [kind, hueOf(color)]));
  assert.deepEqual(Object.keys(ports), ["model", "tool", "memory"]);
  const distance = (one, other) => Math.min(Math.abs(one - other), 360 - Math.abs(one - other));
  for (const { type, role, color } of declared.filter(({ color, role }) => color !== "" && role !== "agent")) {
    const own = type === "flow-tool-return" ? "tool" : role;
    for (const [kind, hue] of Object.entries(ports)) {
      const away = distance(hueOf(color), hue);
      assert.ok(kind === own ? away < 20 : away > 40, `${type} is ${away}° away from the port ${kind}`);
    }
  }
});

test("a dialog has the properties that the sidecar reads, and secrets are credentials", () => {
  for (const [type, names] of Object.entries(SCHEMAS)) {
    const { defaults, credentials = {} } = definitions.get(type);
    const known = new Set(names.flatMap((name) => Object.keys(schema(name).properties)));
    for (const name of known) {
      const exists = name in defaults || name in credentials || CONTAINERS.has(name) || WITHOUT_FIELD.has(`${name}@${type}`);
      assert.ok(exists, `${type} has no field for ${name}`);
    }
    for (const name of [...Object.keys(defaults), ...Object.keys(credentials)]) {
      assert.ok(known.has(name) || ["name", "runtime", "redflowWires"].includes(name), `${type}: the sidecar does not read ${name}`);
    }
  }
  const secrets = declared.flatMap(({ properties }) => properties.filter(({ kind }) => kind === "secret"));
  for (const [type, { defaults }] of definitions) {
    for (const { name } of secrets) {
      assert.ok(!(name in defaults), `${type}: ${name} would be written into the flow`);
    }
  }
});

test("a new node is valid and has the types of its schema", () => {
  const kind = (value) => (Array.isArray(value) ? "array" : value === null ? "null" : typeof value);
  for (const [type, definition] of definitions) {
    const { defaults } = definition;
    const node = Object.fromEntries(newProperties(definition).map((name) => [name, plain(defaults[name].value)]));
    const problems = Object.entries(defaults).flatMap(([name, { validate }]) => {
      const found = validate ? validate.call(node, node[name], {}) : true;
      return found === true ? [] : [found];
    });
    // Properties that only the user knows: the address of the model, the knowledge base, the memories, the schema, the categories,
    // and the allowed tools.
    const missing = {
      "model.azure.openai": ["Endpoint is missing.", "Deployment is missing."],
      "knowledge-base-tool": ["Knowledge base is missing."],
      "summary-memory": ["Short memory is missing."],
      "memory-tool": ["Long memory is missing."],
      "ai-extractor": ["Output (JSON Schema) is missing."],
      "ai-classifier": ["Categories (JSON list) is missing."],
      "agent-core": ["Allow at least one tool in the tab Tools."],
    };
    assert.deepEqual(problems, missing[type] ?? [], type);
    for (const set of SCHEMAS[type] ?? []) {
      const { properties, required = [] } = schema(set);
      for (const name of required) {
        assert.ok(name in node, `${type}: ${name} is required`);
      }
      for (const [name, rule] of Object.entries(properties).filter(([name]) => name in node)) {
        // The sidecar ignores a blank property of every node but agent-core.
        const ignoresBlank = type !== "agent-core";
        if (rule.type === undefined || (ignoresBlank && node[name] === "")) {
          continue;
        }
        const types = [rule.type].flat().map((kind) => (kind === "integer" ? "number" : kind));
        assert.ok(types.includes(kind(node[name])), `${type}: ${name} is ${kind(node[name])}, not ${types}`);
      }
    }
  }
  const { strategy, maxIterations, allowedTools } = definitions.get("agent-core").defaults;
  assert.deepEqual(plain([strategy.value, maxIterations.value, allowedTools.value]), ["react", 5, []]);
});

test("a missing optional property is valid", () => {
  // A model needs one of these, a tool its knowledge base or memory, a summary its turns, and an agent for one thing its schema or
  // categories. All may also be in `options`; the sidecar reports it.
  const NEEDED = {
    "model.azure.openai": ["endpoint", "deployment", "baseURL"],
    "knowledge-base-tool": ["collection"],
    "summary-memory": ["shortMemory"],
    "memory-tool": ["memory"],
    "ai-extractor": ["outputSchema"],
    "ai-classifier": ["categories"],
  };
  for (const [type, names] of Object.entries(SCHEMAS)) {
    const { defaults } = definitions.get(type);
    const required = new Set([...names.flatMap((name) => schema(name).required ?? []), ...(NEEDED[type] ?? [])]);
    const node = Object.fromEntries(newProperties({ defaults }).map((name) => [name, plain(defaults[name].value)]));
    for (const [name, { validate }] of Object.entries(defaults)) {
      if (validate && !required.has(name)) {
        assert.equal(validate.call({ ...node, name: "tool", [name]: undefined }, undefined, {}), true, `${type}: ${name}`);
      }
    }
  }
});

test("every property has a field, and every field a property", () => {
  const LISTS = {
    ...{ allowedTools: "redflow-toolList", tools: "redflow-toolList", stopConditions: "redflow-stops" },
    fallbackModels: "redflow-list-fallbackModels",
  };
  for (const [type, definition] of definitions) {
    const { defaults, credentials = {}, category } = definition;
    const prefix = category === "config" ? "node-config-input" : "node-input";
    const ids = new Set([...page(type).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const name of [...newProperties(definition), ...Object.keys(credentials)]) {
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

test("the scripts register the types with the credentials of the dialogs", () => {
  const load = createRequire(import.meta.url);
  for (const [type, file] of sets.filter(([type]) => type in SCHEMAS)) {
    const found = [];
    const nodes = {
      createNode: () => undefined,
      registerType: (type, _, options = {}) => found.push([type, options.credentials ?? {}]),
    };
    load(`${module}/${file}`)({ nodes });
    assert.deepEqual(found, [[type, plain(definitions.get(type).credentials ?? {})]]);
  }
});

test("no script inserts text as HTML", () => {
  const scripts = sets.flatMap(([type]) => [...page(type).matchAll(/<script type="text\/javascript">([\s\S]*?)<\/script>/g)].map(([, source]) => source));
  // Our part of the editor's bundle. Preact inserts HTML only where a source asks for it.
  for (const folder of ["editor-build/editor", "editor-build/timeline"]) {
    scripts.push(...readdirSync(`${module}/${folder}`).filter((name) => /\.m?js$/.test(name)).map((name) => read(`${folder}/${name}`)));
  }
  assert.ok(scripts.length > sets.length + 50);
  for (const source of scripts) {
    assert.doesNotMatch(source, /\.html\(|innerHTML|insertAdjacentHTML|\$\(\s*["'`]<[a-z]+[^>]*["'`]\s*\+/i);
  }
});

test("saves number fields as numbers", () => {
  const same = ["", "${ROUNDS}", "many", "Infinity"].map((text) => [text, text]);
  const rows = [["5", 5], [" 0.25 ", 0.25], ["  ", ""], ["0", 0], ["1e3", 1000], ...same];
  for (const [typed, saved] of rows) {
    fields.set("node-input-maxIterations", { value: typed });
    const node = {};
    shared.saveNumbers(node, ["maxIterations"]);
    assert.equal(node.maxIterations, saved);
  }
  fields.set("node-config-input-maxQueued", { value: "7" });
  const node = {};
  shared.saveNumbers(node, ["maxQueued"], "node-config-input");
  assert.equal(node.maxQueued, 7);
  // Every property with the rule `number` is saved as a number.
  for (const [type, definition] of definitions) {
    const { defaults, oneditsave } = definition;
    const numbers = newProperties(definition).filter((name) => /RedflowEditor\.number\(v/.test(String(defaults[name].validate)));
    for (const name of numbers) {
      assert.ok(String(oneditsave).includes(`"${name}"`), `${type}: ${name} would be saved as text`);
    }
  }
});

test("saves choices and JSON with their types", () => {
  for (const [chosen, saved] of [["", ""], ["true", true], ["false", false], ["${PIECES}", "${PIECES}"]]) {
    fields.set("node-input-redflow-stream", { value: chosen });
    const node = {};
    shared.saveChoices(node, ["stream"]);
    assert.equal(node.stream, saved);
  }
  for (const [typed, saved] of [['{"a": [1]}', { a: [1] }], ["", ""], ["{", "{"], ["[1]", [1]]]) {
    fields.set("node-input-redflow-inputSchema", { value: typed });
    const node = {};
    shared.saveJson(node, "inputSchema");
    assert.deepEqual(plain(node.inputSchema), saved);
  }
});

/** Values that a property may have in a flow. */
const ODD = [
  ...[undefined, null, "", "${ENV}", 5, "5", 0.5, "0.5", true, "true", false, "false", "END", ["END"], "a,b", [], {}, { tools: true }],
  ...['{"tools":true}', "https://127.0.0.1/v1", "redis://127.0.0.1", "2026-10-21", "[1]", [{ type: "final_answer", more: 1 }]],
  ...[[{ type: "iteration_limit", value: "3" }], "chat", "react"],
];

test("opening a dialog and pressing Done changes nothing", () => {
  let count = 0;
  for (const [type, definition] of definitions) {
    const { defaults, category } = definition;
    const prefix = category === "config" ? "node-config-input" : "node-input";
    const names = Object.keys(defaults).filter((name) => name !== "redflowWires");
    for (const name of names) {
      for (const value of ODD) {
        const node = { id: "n", type, _def: definition };
        for (const other of names.filter((other) => defaults[other].value !== undefined)) {
          node[other] = plain(defaults[other].value);
        }
        if (value === undefined) {
          delete node[name];
        } else {
          node[name] = value;
        }
        const isValid = defaults[name].validate?.call(node, value, {}) ?? true;
        if (isValid !== true) {
          continue;
        }
        const before = JSON.stringify({ ...node, _def: undefined });
        fields.clear();
        shown.form = formOf(page(type));
        fill(shown.form, node, prefix);
        definition.oneditprepare.call(node);
        definition.oneditsave.call(node);
        apply(shown.form, node, prefix);
        assert.equal(JSON.stringify({ ...node, _def: undefined }), before, `${type}: ${name} was ${JSON.stringify(value)}`);
        count += 1;
      }
    }
  }
  shown.form = undefined;
  assert.ok(count > 1_000, `only ${count} values were tested`);
});

test("saves touched fields, also over a variable", () => {
  const definition = definitions.get("openai-model");
  const edit = (before, touch) => {
    const node = { id: "n", type: "openai-model", _def: definition, ...before };
    fields.clear();
    shown.form = formOf(page("openai-model"));
    fill(shown.form, node, "node-input");
    definition.oneditprepare.call(node);
    touch((id) => shown.form.byId(`node-input-${id}`));
    definition.oneditsave.call(node);
    apply(shown.form, node, "node-input");
    return node;
  };
  const click = (box) => Object.assign(box, { indeterminate: false, checked: !box.checked });
  const before = { stream: "${S}", jsonMode: "${J}", api: "${A}", seed: "7" };
  const node = edit(before, (field) => {
    assert.equal(field("redflow-stream").value, "${S}");
    assert.equal(field("api").value, "${A}");
    assert.equal(field("jsonMode").indeterminate, true);
    field("redflow-stream").value = "false";
    click(field("jsonMode"));
    field("seed").value = "8";
  });
  assert.deepEqual([node.stream, node.jsonMode, node.api, node.seed], [false, true, "${A}", 8]);
  assert.equal(edit(before, (field) => [click(field("jsonMode")), click(field("jsonMode"))]).jsonMode, false);
  // Node-RED ticks a box for every text.
  assert.equal(edit({ jsonMode: "false" }, (field) => assert.equal(field("jsonMode").checked, false)).jsonMode, "false");
  shown.form = undefined;
});

test("keeps the options of an AI Agent of another palette", () => {
  const { defaults } = definitions.get("ai-agent");
  // Node-RED drops properties that are not declared.
  assert.ok("options" in defaults);
  assert.equal(defaults.options.value, undefined, "a new node has none");
});

test("cuts labels and removes direction characters", () => {
  for (const [type, { label }] of definitions) {
    const long = label.call({ name: `a\u202Eb\n${"x".repeat(1_000_000)}` });
    assert.equal(long.length, 61, type);
    assert.ok(long.startsWith("a\uFFFDb x") && long.endsWith("…"), type);
    assert.match(label.call({ name: { toString: 1 }, model: 5 }), /^\S.*/, type);
    assert.equal(label.call({ name: "Ask" }), "Ask", type);
  }
});

test("the rules return a sentence for an invalid value", () => {
  const name = "It";
  const whole = { name, min: 1, max: 20, whole: true };
  const address = { name, example: "http://x" };
  const stops = { name, most: 2 };
  const bytes = Buffer.alloc(32, 7).toString("base64");
  const rows = [
    [shared.number(5, whole), true],
    [shared.number("20", whole), true],
    [shared.number("${ROUNDS}", whole), true],
    [shared.number(0, whole), "It must be a whole number from 1 to 20."],
    [shared.number("21", whole), "It must be a whole number from 1 to 20."],
    [shared.number(1.5, whole), "It must be a whole number from 1 to 20."],
    [shared.number(NaN, whole), "It must be a whole number from 1 to 20."],
    [shared.number([5], whole), "It must be a whole number from 1 to 20."],
    [shared.number("", whole), "It is missing."],
    [shared.number(undefined, { ...whole, optional: true }), true],
    [shared.number("x", { name }), "It must be a number."],
    [shared.number("x", { name, whole: true }), "It must be a whole number."],
    [shared.number(0, { name, min: 1 }), "It must be a number from 1."],
    [shared.number(3, { name, min: 1, max: 2 }), "It must be a number from 1 to 2."],
    [shared.number(1e300, { name, min: 1, whole: true }), "It must be a whole number from 1."],
    [shared.line("a", { name, max: 1 }), true],
    [shared.line("ab", { name, max: 1 }), "It is longer than 1 characters."],
    [shared.line({}, { name }), "It must be a text."],
    [shared.choice("a", { name, of: ["a", "b"] }), true],
    [shared.choice("c", { name, of: ["a", "b"] }), "It must be one of: a, b."],
    [shared.flag(false, { name }), true],
    [shared.flag("true", { name }), true],
    [shared.flag(1, { name }), "It must be true or false."],
    [shared.address("http://127.0.0.1:1881", address), true],
    [shared.address("127.0.0.1", address), "It must be an address such as http://x."],
    [shared.address(["http://127.0.0.1"], address), "It must be an address such as http://x."],
    [shared.address("file:///etc/passwd", address), "It must begin with http:// or https://."],
    [shared.address("https://a:b@c", address), "It must not contain a user or a password: everyone who can read the flow can read them."],
    [shared.address("https://c/v1?api-version=1", address), true],
    [shared.address("https://c/v1?api_key=1", address), "It must not contain a key: enter it in the field for the key."],
    [shared.toolIds(["weather.current", "search.*", "*", "one"], { name }), true],
    ...[["a b"], ["a..b"], ["*.a"], ["é"], ["a".repeat(129)], Array(101).fill("a.b")].map((value) => [
      shared.toolIds(value, { name }),
      'It must be 1 to 100 ids of tools, such as ["weather.current", "search.*"].',
    ]),
    [shared.hostPorts("nas.lan:8123, 192.168.0.0/16:80,[fd12::1]:80", { name, most: 3 }), true],
    [shared.hostPorts("a:1,b:2,c:3,", { name, most: 2 }), "It may name at most 2 hosts."],
    [shared.hostPorts(" ", { name, most: 2, optional: true }), true],
    [shared.hostPorts("${HOSTS}", { name, most: 2 }), true],
    ...["nas.lan", "http://nas.lan:80", "fd12::1:80", "a:b", "a:1 b:2", ",", ["a:1"], 5].map((value) => [
      shared.hostPorts(value, { name, most: 2 }),
      /^It must be hosts with ports, separated by commas, such as nas\.lan:8123/,
    ]),
    [shared.redisAddress("redis://127.0.0.1:6379/0", { name }), true],
    [shared.redisAddress("redis://:x@127.0.0.1", { name }), /^It: a password in the address is stored unencrypted/],
    [shared.redisAddress("http://127.0.0.1", { name }), /^It must be an address such as redis:/],
    [shared.toolName("read_temperature", { name }), true],
    [shared.toolName("two words", { name }), "It must have 1 to 64 letters, digits, _ or -."],
    [shared.toolName(undefined, { name }), "It is missing."],
    [shared.day("2026-10-21", { name }), true],
    [shared.day("today", { name }), "It must be a date such as 2026-10-21."],
    [shared.stops("END, \\n", stops), true],
    [shared.stops("a,b,,c", stops), "It may have at most 2 texts."],
    [shared.stops(["a", 1], stops), "It must be texts, separated by commas."],
    [shared.secret("__PWRD__", { name }), true],
    [shared.secret("two words", { name }), "It contains characters that a key cannot have, such as blanks."],
    [shared.secretBytes(bytes, { name }), true],
    [shared.secretBytes("__PWRD__", { name }), true],
    [shared.secretBytes(bytes.slice(4), { name }), "It must be 32 bytes in base64."],
    [shared.object({}, { name }), true],
    [shared.object('{"a": 1}', { name }), true],
    [shared.object("[1]", { name }), "It must be a JSON object: {…}."],
    [shared.list(["a"], { name }), true],
    [shared.list([], { name }), "It must be a JSON list with at least one entry: […]."],
    [shared.list("[1", { name }), /^It is not JSON/],
    [shared.list(shared.jsonOf('"x"'), { name }), "It must be a JSON list with at least one entry: […]."],
    [shared.contextSpans([{ server: "docs", resource: "docs://rules", tokens: 400, pin: true }], { name }), true],
    [shared.contextSpans([], { name }), true],
    [shared.contextSpans("[1", { name }), /^It is not JSON/],
    ...[[1], [{}], [{ server: "docs" }], [{ server: "a", resource: "b", tokens: 0 }], [{ server: "a", resource: "b", tokens: 32_001 }], [{ server: "a", resource: "b", pin: 1 }]].map((value) => [
      shared.contextSpans(value, { name }),
      'It must be a JSON list of resources, such as [{"server": "docs", "resource": "docs://rules"}].',
    ]),
    [shared.categories(["bug", { name: "praise", description: "says thanks" }], { name }), true],
    [shared.categories([], { name }), "It must be a JSON list with at least one entry: […]."],
    [shared.categories("[1", { name }), /^It is not JSON/],
    [shared.categories(Array.from({ length: 200 }, (_, n) => `c${n}`), { name }), true],
    // As the sidecar: blanks around a name do not count, a description may be left out, and a character counts once.
    [shared.categories([{ name: "a" }, { name: "b", description: null }, "é".repeat(200), ` ${"😀".repeat(200)} `], { name }), true],
    ...[["a", "a"], ["a", { name: " a " }], ["x".repeat(201)], [{ name: "😀".repeat(201) }]].map((value) => [
      shared.categories(value, { name }),
      "It: every category needs another name, of at most 200 characters.",
    ]),
    ...[[1], [{}], [" "], [{ name: "a", description: 1 }], [{ name: "", description: "b" }], Array.from({ length: 201 }, (_, n) => `c${n}`)].map((value) => [
      shared.categories(value, { name }),
      'It must be a JSON list of 1 to 200 categories, such as ["bug", {"name": "praise", "description": "says thanks"}].',
    ]),
    [shared.object("{", { name }), /^It is not JSON/],
    [shared.object(shared.jsonOf('"x"'), { name }), "It must be a JSON object: {…}."],
    [shared.capabilities({ tools: true, maxOutput: 5, mine: "x" }, { name }), true],
    [shared.capabilities({ tools: "yes" }, { name }), "It: tools must be true or false."],
    [shared.capabilities({ forcedTools: "no" }, { name }), "It: forcedTools must be true or false."],
    [shared.capabilities({ maxOutput: -1 }, { name }), "It: maxOutput must be a whole number from 0 to 4294967295."],
  ];
  for (const [index, [found, expected]] of rows.entries()) {
    if (expected instanceof RegExp) {
      assert.match(found, expected);
    } else {
      assert.equal(found, expected, `row ${index}`);
    }
  }
  // Node-RED shows sentences as HTML, so none may contain the input.
  for (const rule of ["number", "line", "choice", "flag", "address", "toolName", "stops", "object", "list", "capabilities"]) {
    const found = shared[rule]('{"<img src=x>', { name, max: 2, of: [], most: 0, example: "x" });
    assert.equal(typeof found, "string", rule);
    assert.ok(!found.includes("<"), `${rule}: ${found}`);
  }
  const { stopConditions } = definitions.get("agent-core").defaults;
  const stop = (type, value) => stopConditions.validate([{ type, value }], {});
  assert.equal(stop("final_answer"), true);
  assert.equal(stop("confidence_threshold", 0.8), true);
  assert.match(stop("confidence_threshold", 2), /must be a number from 0 to 1\.$/);
  assert.match(stop("iteration_limit", "x"), /must be a whole number from 1 to 4294967295\.$/);
});

/** Whether a value satisfies a schema. Supports the keywords of the node schemas. */
function conforms(rule, value, root) {
  if (rule === true || rule === undefined) {
    return true;
  }
  if (rule.$ref !== undefined) {
    const path = rule.$ref.split("/").slice(1);
    return conforms(path.reduce((at, step) => at[step], root), value, root);
  }
  const branches = rule.anyOf ?? rule.oneOf;
  if (branches !== undefined) {
    return branches.some((branch) => conforms(branch, value, root));
  }
  const kinds = { null: value === null, array: Array.isArray(value), integer: Number.isInteger(value) };
  const is = (type) => kinds[type] ?? (type === "object" ? value !== null && typeof value === type && !kinds.array : typeof value === type);
  if (rule.type !== undefined && ![rule.type].flat().some(is)) {
    return false;
  }
  const bits = Number(/^u?int(\d+)$/.exec(rule.format)?.[1] ?? 2000);
  const isLess = typeof value !== "number" || (value >= (rule.minimum ?? -Infinity) && value <= (rule.maximum ?? 2 ** bits));
  const isShort = typeof value !== "string" || value.length <= (rule.maxLength ?? Infinity);
  const isLike = typeof value !== "string" || new RegExp(rule.pattern ?? "").test(value);
  const isOne = (rule.const ?? value) === value && (rule.enum ?? [value]).includes(value);
  const items = !kinds.array || (value.length >= (rule.minItems ?? 0) && value.every((item) => conforms(rule.items, item, root)));
  const own = Object.entries(rule.properties ?? {}).every(
    ([name, inner]) => !is("object") || !(name in value) || conforms(inner, value[name], root),
  );
  const isWhole = !is("object") || (rule.required ?? []).every((name) => name in value);
  return isLess && isShort && isLike && isOne && items && own && isWhole;
}

/** Invalid values that a flow may have. */
const VALUES = [
  ...[-3, -1, 0, 0.5, 1.5, 3, 11, 21, 1023, 65_536, 600_001, 4_194_305, 2 ** 32, 1e20, true, false],
  ...["x", "two words", "2026-1-1", "y".repeat(41), "y".repeat(201), "<b>", "react ", "Auto"],
  ...[[], [1], ["a", 1], [[]], [5], [{}], { type: "x" }, { tools: 1 }, { contextWindow: -1 }, { maxOutput: 1.5 }, {}],
];

test("a category needs a name and no description, in the schema as in the dialog", () => {
  const root = schema("node.ai-classifier");
  const { validate } = definitions.get("ai-classifier").defaults.categories;
  const rows = [["a", true], [{ name: "a" }, true], [{ name: "a", description: null }, true], [{ description: "d" }, false], [{ name: "a", description: 1 }, false]];
  for (const [category, isOne] of rows) {
    const [inSchema, inDialog] = [conforms(root.properties.categories, [category], root), validate.call({}, [category], {}) === true];
    assert.deepEqual([inSchema, inDialog], [isOne, isOne], JSON.stringify(category));
  }
});

test("a dialog rejects every value that its schema rejects", () => {
  let refused = 0;
  for (const [type, names] of Object.entries(SCHEMAS)) {
    const { defaults } = definitions.get(type);
    for (const root of names.map(schema)) {
      // A container has no field to fix it in. The sidecar checks what it contains.
      const shown = ([name]) => name in defaults && !CONTAINERS.has(name);
      for (const [name, rule] of Object.entries(root.properties).filter(shown)) {
        for (const value of VALUES.filter((value) => !conforms(rule, value, root))) {
          const { validate } = defaults[name];
          const found = validate?.call({ [name]: value }, value, {}) ?? true;
          assert.equal(typeof found, "string", `${type}: ${name} may be ${JSON.stringify(value)}`);
          assert.match(found, /^\S.*[.}\]]$/s, `${type}: ${name}`);
          refused += 1;
        }
      }
    }
  }
  assert.ok(refused > 1_000, `only ${refused} values were rejected`);
});

test("a shared key is a config node of the provider, or none", () => {
  const { validate, type } = definitions.get("anthropic-model").defaults.keyNode;
  assert.equal(type, "anthropic-key");
  configs.push({ id: "key", type: "anthropic-key" }, { id: "other", type: "openai-key" });
  for (const [value, expected] of [["", true], ["_ADD_", true], [undefined, true], ["${KEY}", true], ["key", true]]) {
    assert.equal(validate.call({}, value, {}), expected, value);
  }
  for (const value of ["other", "gone"]) {
    assert.equal(validate.call({}, value, {}), "Shared key: choose another one, or none. The chosen one does not exist.", value);
  }
});

test("an agent needs the runtime that it names, or exactly one", () => {
  const { validate, required } = definitions.get("agent-core").defaults.runtime;
  assert.equal(validate.length, 2, "Node-RED would not show sentences");
  assert.equal(required, undefined, "Node-RED would not ask about an empty one");
  const runtime = (id, rest = {}) => ({ id, type: "redflow-runtime", ...rest });
  const ADD = /^Add a runtime: press \+ next to Runtime/;
  const SEVERAL = /there are several\.$/;
  const GONE = /does not exist or is disabled\.$/;
  const WRONG = /^The runtime is not valid/;
  const rows = [
    [[], ["", ADD], ["_ADD_", ADD], ["a", ADD], [undefined, ADD], ["${ONE}", true]],
    [[{ id: "a", type: "mqtt-broker" }, runtime("b", { d: true }), runtime("c", { z: "off" })], ["", ADD], ["b", ADD], ["c", ADD]],
    [[runtime("a"), runtime("b", { d: true })], ["", true], ["_ADD_", true], ["a", true], ["b", GONE], ["x", GONE], [5, GONE]],
    [[runtime("a"), runtime("b", { z: "on" })], ["", SEVERAL], [null, SEVERAL], ["a", true], ["b", true], ["x", GONE]],
    [[runtime("a", { valid: false })], ["", WRONG], ["a", WRONG]],
  ];
  const before = configs.splice(0);
  for (const [present, ...values] of rows) {
    configs.splice(0, configs.length, ...present);
    for (const [value, expected] of values) {
      const found = validate.call({}, value, {});
      if (expected === true) {
        assert.equal(found, true, String(value));
      } else {
        assert.match(found, expected, String(value));
      }
    }
  }
  configs.splice(0, configs.length, ...before);
});

test("every node validates its wires without a property in the flow", () => {
  for (const [type, { category, defaults }] of definitions) {
    if (category === "config") {
      assert.ok(!("redflowWires" in defaults), type);
      continue;
    }
    const node = { type };
    const { validate, ...rest } = defaults.redflowWires;
    assert.deepEqual(plain(rest), {}, `${type}: a value would be exported`);
    assert.equal(validate.length, 2, `${type}: Node-RED would not show sentences`);
    assert.equal(validate.call(node, undefined, {}), true);
    assert.equal(validated.at(-1), node);
  }
});

test("a part of a dialog depends on values that its field can have", () => {
  const parts = [];
  for (const { type, properties } of declared) {
    for (const [, name, values] of page(type).matchAll(/data-redflow-when="(\w+)=([^"]*)"/g)) {
      parts.push(type);
      const offered = properties.find((property) => property.name === name).choices.map(({ value }) => value);
      assert.ok(values.split("|").some((value) => offered.includes(value)), `${type}: ${name}=${values}`);
    }
  }
  assert.deepEqual(parts, [...Array(3).fill("model.azure.openai"), ...Array(4).fill("http-request-tool"), ...Array(4).fill("mcp-client")]);
});

test("only agents with tools have a tab for them", () => {
  const withTab = declared.filter(({ type, role }) => role === "agent" && page(type).includes('id="node-input-redflow-panel-tools"')).map(({ type }) => type);
  assert.deepEqual(withTab.sort(), ["agent-core", "ai-agent", "ai-simple-agent"]);
  for (const type of ["ai-extractor", "ai-classifier", "ai-summarizer"]) {
    const { defaults } = definitions.get(type);
    // An imported flow keeps its value, but a new node has none.
    assert.ok("tools" in defaults && defaults.tools.value === undefined, type);
  }
});

test("the examples use every node with its properties and no secret", () => {
  const used = new Set();
  const files = readdirSync(`${module}/examples`).filter((name) => name.endsWith(".json"));
  for (const file of files) {
    const nodes = JSON.parse(read(`examples/${file}`));
    const ids = new Set(nodes.map(({ id }) => id));
    configs.splice(0, configs.length, ...nodes.filter(({ x }) => x === undefined));
    assert.equal(ids.size, nodes.length, `${file}: two nodes have one id`);
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
      assert.deepEqual(Object.keys(own).sort(), newProperties(definition).sort(), `${file}: ${node.id}`);
      assert.equal((wires ?? []).length, definition.outputs ?? 0, `${file}: ${node.id}`);
      assert.ok(!("runtime" in own) || ids.has(own.runtime), `${file}: ${node.id}`);
      // A copied node must not keep an older default: a model that thinks needs the time.
      assert.equal(own.timeoutMs, definition.defaults.timeoutMs?.value, `${file}: ${node.id}`);
      for (const [name, { validate }] of Object.entries(definition.defaults)) {
        assert.equal(validate ? validate.call(own, own[name], {}) : true, true, `${file}: ${node.id}.${name}`);
      }
    }
  }
  for (const [type] of sets) {
    assert.ok(used.has(type), `no example has a ${type}`);
  }
});
