// What the dialog of a model sends to be tested, and what it shows of the test.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Window } from "happy-dom";
import { translator } from "./kit/texts.mjs";
import { until } from "./kit/until.mjs";

const { window } = new Window();
const { document } = window;
Object.assign(globalThis, { window, document, Node: window.Node });
globalThis.RED = { _: translator("en-US") };

/** The parts of jQuery that the dialog uses. `answers` are the responses of Node-RED, by address. */
let answers = {};
const requests = [];
globalThis.$ = Object.assign(
  (field) => {
    const wrapped = {
      val: (value) => ((field.value = value), wrapped),
      trigger: (name) => (field.dispatchEvent(new window.Event(name)), wrapped),
    };
    return wrapped;
  },
  {
    ajax: ({ method, url, data }) => {
      requests.push({ url, body: method === "POST" ? JSON.parse(data) : undefined });
      const answer = answers[url] ?? { status: 404, responseJSON: { code: "NOT_FOUND", message: "" } };
      const callIf = (isMeant) => (act) => {
        if (isMeant) {
          setTimeout(() => act(answer), 0);
        }
        return request;
      };
      const request = { done: callIf(answer.status === undefined), fail: callIf(answer.status !== undefined) };
      return request;
    },
  },
);
const { modelForm, prepareModelTest, testRows } = await import("../editor-build/editor/model-test.mjs");

test("a test uses the typed key, else the stored one, else the shared one", () => {
  const node = { id: "m", type: "openai-model", _def: { defaults: { model: {}, keyNode: {}, seed: {}, redflowWires: {} }, credentials: { apiKey: {} } } };
  const formOf = (values) => modelForm(node, (name) => values[name]);
  const rows = [
    [{ model: "x", apiKey: "" }, {}, undefined],
    [{ model: "x", apiKey: " typed " }, { apiKey: "typed" }, undefined],
    [{ model: "x", apiKey: "typed", keyNode: "k" }, { apiKey: "typed" }, undefined],
    [{ model: "x", apiKey: "__PWRD__" }, {}, "m"],
    [{ model: "x", apiKey: "__PWRD__", keyNode: "k" }, {}, "m"],
    [{ model: "x", keyNode: "k" }, {}, "k"],
    [{ model: "x", keyNode: "_ADD_" }, {}, undefined],
    [{ model: "x", keyNode: "" }, {}, undefined],
  ];
  for (const [values, credentials, stored] of rows) {
    const { apiKey: _, ...config } = values;
    const expected = { type: "openai-model", config, credentials, ...(stored ? { node: stored } : {}) };
    assert.deepEqual(formOf(values), expected, JSON.stringify(values));
  }
});

test("shows what is known of a test", () => {
  const least = { ok: false, type: "openai-model", provider: "openai", model: "gpt", durationMs: 5 };
  assert.deepEqual(testRows(least), [["model", "gpt"]]);
  const most = {
    ...least,
    sent: {
      address: "http://x/v1",
      model: "gpt",
      interface: "Chat Completions",
      interfaceForTools: "Responses",
      refused: ["temperature", "tool_choice"],
      responseFormat: "json_schema",
    },
    server: "llama.cpp",
    answeredBy: "gpt-real",
    usage: { inputTokens: 3, outputTokens: 4 },
    tokensPerSecond: 12.34,
    schema: "not_sent",
    contextWindow: 4096,
  };
  assert.deepEqual(testRows(most), [
    ["server", "llama.cpp"],
    ["address", "http://x/v1"],
    ["interface", "Chat Completions; with tools Responses"],
    ["refused", "temperature, tool_choice"],
    ["model", "gpt-real"],
    ["tokens", "3 read, 4 written"],
    ["speed", "12.3 tokens per second"],
    ["schema", "not sent"],
    ["window", "4096 tokens"],
  ]);
  globalThis.RED = { _: translator("de"), i18n: { lang: () => "de" } };
  assert.match(testRows(most).find(([key]) => key === "speed")[1], /^12,3 /);
});

const connected = (ids) => ({ "redflow/runtimes": { module: "1", runtimes: ids.map((id) => ({ id, state: { is: "connected", version: "1" } })) } });
const LIST = "redflow/runtimes/rt/models/list";

/** The editor's model of a flow. */
function editorNodes(flow) {
  const links = flow.flatMap((source) => (source.wires ?? []).flatMap((ids, sourcePort) => ids.map((id) => ({ source, sourcePort, target: flow.find((node) => node.id === id) }))));
  return {
    node: (id) => flow.find((node) => node.id === id),
    eachConfig: (visit) => flow.filter(({ type }) => type === "redflow-runtime").forEach(visit),
    filterNodes: ({ type }) => flow.filter((node) => node.type === type),
    getNodeLinks: (node, end) => links.filter((link) => (end === 1 ? link.target : link.source) === node),
    workspace: () => undefined,
  };
}

const RUNTIME = { id: "rt", type: "redflow-runtime" };

/** Opens the dialog of the model `m` with these values. */
function open(type, values, responses, flow = [RUNTIME]) {
  globalThis.RED = { _: translator("en-US"), nodes: editorNodes(flow) };
  answers = { ...connected(["rt"]), ...responses };
  requests.length = 0;
  const field = (tag, name) => Object.assign(document.createElement(tag), { id: `node-input-${name}`, value: values[name] ?? "" });
  const names = Object.keys(values).filter((name) => name !== "apiKey");
  document.body.replaceChildren(...names.map((name) => field("input", name)), field("input", "apiKey"), field("div", "redflow-test"));
  const defaults = Object.fromEntries(names.map((name) => [name, {}]));
  prepareModelTest({ id: "m", type, _def: { defaults, credentials: { apiKey: { type: "password" } } } });
  const part = (name) => document.getElementById(`node-input-${name}`);
  const buttons = () => [...part("redflow-test").querySelectorAll("button")];
  return { part, buttons, press: (label) => buttons().find(({ textContent }) => textContent === label).click(), shown: () => document.querySelector(".redflow-test-answer").textContent };
}

test("lists the models of the server with the typed key, to choose from and as suggestions", async () => {
  const found = { models: [{ id: "gemini-3.5-flash", contextWindow: 1_000_000 }, { id: "<b>gemini</b>" }] };
  for (const type of ["openai-model", "anthropic-model", "google-model", "ollama-model"]) {
    const { part, press, shown } = open(type, { model: "gemini-3.5-flash", baseURL: "http://127.0.0.1:9", apiKey: "secret-key" }, { [LIST]: found });
    press("List the models");
    await until("the list is there", () => part("redflow-models") !== null);
    const [, { body }] = requests;
    assert.deepEqual(body, { type, config: { model: "gemini-3.5-flash", baseURL: "http://127.0.0.1:9" }, credentials: { apiKey: "secret-key" } });
    // The chosen model fills the field. A name is never HTML.
    assert.equal(part("redflow-models").value, "gemini-3.5-flash");
    part("redflow-models").value = "<b>gemini</b>";
    part("redflow-models").dispatchEvent(new window.Event("change"));
    assert.equal(part("model").value, "<b>gemini</b>");
    assert.equal(document.querySelector("b"), null);
    const names = () => [...document.querySelectorAll("#node-input-model-names option")].map(({ value }) => value);
    assert.equal(part("model").getAttribute("list"), "node-input-model-names");
    assert.deepEqual(names(), ["gemini-3.5-flash", "<b>gemini</b>"]);
    assert.ok(!shown().includes("secret-key"));
    // A second list replaces the first one.
    answers[LIST] = { models: [{ id: "other" }] };
    press("List the models");
    await until("the new list is there", () => names().join() === "other");
    assert.equal(document.querySelectorAll("datalist").length, 1);
  }
});

test("a stored key stays in Node-RED, and a failure is said in words", async () => {
  const stored = { model: "m", apiKey: "__PWRD__" };
  const refused = { status: 409, responseJSON: { code: "KEY_NOT_SENT", message: "The key is only for the address that is deployed." } };
  const rows = [
    [refused, /^The models cannot be listed\. KEY_NOT_SENT.*only for the address/],
    [{ status: 403 }, /you need the permission flows\.write/],
    [{ status: 0 }, /^Node-RED does not answer\.$/],
    [{ models: [] }, /^The server lists no models\.$/],
  ];
  for (const [response, expected] of rows) {
    const { buttons, press, shown } = open("google-model", stored, { [LIST]: response });
    press("List the models");
    await until("an answer is shown", () => requests.length === 2 && !/Waiting/.test(shown()));
    assert.match(shown(), expected);
    assert.deepEqual(requests[1].body, { type: "google-model", config: { model: "m" }, credentials: {}, node: "m" });
    assert.ok(buttons().every((one) => one.getAttribute("aria-disabled") === "false"), "the buttons can be used again");
  }
});

test("a model whose provider lists none has no button for a list", () => {
  const { buttons } = open("model.azure.openai", { deployment: "gpt-4o" }, {});
  assert.deepEqual(buttons().map(({ textContent }) => textContent), ["Test"]);
});

// SECURITY: runtime-credentials
test("a model is tested by the runtime of its own agents alone", async () => {
  const other = { id: "other", type: "redflow-runtime" };
  const model = { id: "m", type: "openai-model", wires: [[]] };
  const agent = (id, more) => ({ id, type: "agent-core", wires: [[], [], [], [], []], ...more });
  const wired = { wires: [["m"], [], [], [], []] };
  const names = { id: "sum", type: "summary-memory", model: "m", wires: [[]] };
  const rows = [
    // The flow, the connected runtimes, and the runtime that is asked.
    [[RUNTIME], ["rt"], "rt"],
    [[RUNTIME, agent("a", wired)], ["rt"], "rt"],
    [[RUNTIME, other], ["rt", "other"], /several runtimes/],
    [[RUNTIME, other, agent("a", { runtime: "rt" })], ["rt", "other"], /several runtimes/],
    [[RUNTIME, other, agent("a", { ...wired, runtime: "other" })], ["rt", "other"], "other"],
    [[RUNTIME, other, agent("a", { ...wired, runtime: "other" })], ["rt"], /sidecar of this model is not connected/],
    [[RUNTIME, other, agent("a", { ...wired, runtime: "other", d: true })], ["rt", "other"], /several runtimes/],
    [[RUNTIME, { ...other, d: true }, agent("a", wired)], ["rt", "other"], "rt"],
    [[RUNTIME, other, agent("a", { model: "m", runtime: "other" })], ["rt", "other"], "other"],
    [[RUNTIME, other, agent("a", { fallbackModels: ["m"], runtime: "other" })], ["rt", "other"], "other"],
    [[RUNTIME, other, names, agent("a", { memory: "sum", runtime: "other" })], ["rt", "other"], "other"],
    [[RUNTIME, other, agent("a", { ...wired, runtime: "rt" }), agent("b", { ...wired, runtime: "other" })], ["other"], "other"],
    [[], [], /not connected/],
  ];
  for (const [flow, online, expected] of rows) {
    const { press, shown } = open("openai-model", { model: "x", apiKey: "secret-key" }, connected(online), [model].concat(flow));
    press("Test");
    await until("an answer is shown", () => !/Waiting/.test(shown()) && shown() !== "");
    const asked = requests.slice(1).map(({ url }) => url);
    const what = JSON.stringify(flow);
    if (typeof expected === "string") {
      assert.deepEqual(asked, [`redflow/runtimes/${expected}/models/test`], what);
    } else {
      assert.deepEqual(asked, [], what);
      assert.match(shown(), expected, what);
    }
  }
});
