// What the status of an agent says: names in place of ids, in every language, and short enough to fit under a node.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import { agentErrors } from "../dist/agent-errors.js";
import { startProblem } from "../dist/binary.js";
import { englishTemplate } from "../dist/english.js";
import { statusText } from "../dist/phrase-text.js";
import { STATUS_LENGTH, sentence } from "../dist/sentence.js";
import { nodeRed } from "./kit/node-red.mjs";
import { fakeSidecar } from "./kit/sidecar.mjs";
import { LANGUAGES, catalogue } from "./kit/texts.mjs";
import { until } from "./kit/until.mjs";

const RED = nodeRed();
const load = createRequire(import.meta.url);
for (const type of ["redflow-runtime", "agent-core"]) {
  load(`../dist/nodes/${type}.js`)(RED);
}
test.afterEach(() => RED.deploy());

const catalogues = new Map(LANGUAGES.map((language) => [language, catalogue(language)]));
const templatesOf = (language) => (key) => catalogues.get(language).get(`phrases.${key}`);
const agent = (more = {}) => ({ id: "ag", type: "agent-core", wires: [[], [], [], [], []], ...more });
const runtime = (url) => ({ id: "rt", type: "redflow-runtime", mode: "remote", url });
const lastStatus = () => RED.byId.get("ag").statuses.at(-1) ?? {};
const published = () => RED.published.findLast(([topic]) => topic === "redflow/status/ag");
/** A named node that is none of this module's. */
const addNode = (id, name) => RED.byId.set(id, { id, type: "redis-memory", name, listeners: {} });

/** Deploys an agent at a sidecar that answers the flow with a message. */
async function deploy(t, answer) {
  const { url } = await fakeSidecar(t, ({ type, revision }) => (type === "flows" ? { seq: 1, revision, ...answer } : undefined));
  RED.deploy(runtime(url), agent({ name: "Guard" }));
  addNode("m1", "Talks");
}

test("a failing service has its name in status, phrase and errors, not its id", async (t) => {
  const phrase = { key: "memory_fails", args: { reason: { key: "redis_unreachable" }, memory: "m1" } };
  const message = "Redis cannot be reached: the agent runs without its memory `m1`";
  await deploy(t, { type: "health", node: "ag", problem: { code: "MEMORY_ERROR", message, phrase } });
  await until("no status", () => lastStatus().fill === "yellow");
  assert.equal(published()[1].phrase.args.memory, "Talks");
  const [kept] = agentErrors.list("ag");
  assert.deepEqual([kept.message, kept.phrase.args.memory], [message.replace("m1", "Talks"), "Talks"]);
});

test("the error of a refused wire names its nodes, not their ids", async (t) => {
  const node = (id) => ({ id, type: "function", name: "" });
  const messagePhrase = { key: "foreign_reply", args: { service: "`m1`", agent: "`ag`", role: { key: "memory" } } };
  const refused = {
    ...{ code: "EDGE_FOREIGN_REPLY", severity: "error", node: node("m1"), port: 0, target: node("ag"), messagePhrase },
    ...{ message: "`m1` replies to `ag`, which uses another memory", help: "Remove the wire." },
  };
  await deploy(t, { type: "deployed", agents: [], report: { ok: false, diagnostics: [refused] } });
  await until("no hook", () => RED.addedHooks.has("preRoute.redflow-bridge"));
  agentErrors.forget("ag");
  RED.addedHooks.get("preRoute.redflow-bridge")({ msg: {}, source: { id: "m1", port: 0 }, destination: { id: "ag" } });
  const [{ message, phrase }] = agentErrors.list("ag");
  assert.match(message, /`Talks` replies to `Guard`/);
  assert.deepEqual(phrase.args.message.args, { service: "`Talks`", agent: "`Guard`", role: { key: "memory", args: {} } });
});

test("a refused flow says its first problem in the user's language", async (t) => {
  const diagnostic = (severity, message, key) => ({ code: "X", severity, message, messagePhrase: { key }, help: "", node: null });
  const diagnostics = [diagnostic("warning", "a tool", "a_tool"), diagnostic("error", "a chat", "a_chat")];
  const error = { code: "FLOW_INVALID", message: "the flow has 1 error", report: { ok: false, diagnostics } };
  await deploy(t, { type: "flows_refused", error });
  await until("no status", () => lastStatus().text === "FLOW_INVALID: a chat");
  const phrase = { key: "status_refused", args: { code: "FLOW_INVALID", message: { key: "a_chat", args: {} } } };
  assert.deepEqual(published()[1], { text: "FLOW_INVALID: a chat", phrase });
});

test("an agent without a runtime says so in the user's language, until it is closed", () => {
  RED.deploy(agent());
  assert.deepEqual(lastStatus(), { fill: "red", shape: "dot", text: "choose a runtime" });
  const topic = "redflow/status/ag";
  assert.deepEqual(published(), [topic, { text: "choose a runtime", phrase: { key: "choose_runtime", args: {} } }, true]);
  RED.deploy();
  assert.deepEqual(published(), [topic, {}, false]);
});

test("a flow that is too large says so with its phrase", async (t) => {
  const { url } = await fakeSidecar(t);
  RED.deploy(runtime(url), agent({ prompt: "x".repeat(64 * 1024 * 1024) }));
  await until("no status", () => lastStatus().text?.startsWith("FLOW_TOO_LARGE: "));
  assert.equal(published()[1].phrase.args.message.key, "flow_over_limit");
});

const NAME = "The model that answers at night and at weekends, with a long name";
const role = { key: "model" };
const of = (key, args) => ({ text: "english", phrase: { key, args } });

/** Sentences, and the words that each language must show in its status. */
const ROWS = [
  [of("service_disabled", { service: NAME, role, agent: "`Guard`" }), { "en-US": "is disabled", de: "ist deaktiviert", es: "está desactivado" }],
  [of("property_target_disabled", { property: "model", id: NAME }), { "en-US": "which is disabled" }],
  [of("model_key_missing", { model: NAME }), { "en-US": "has no API key", de: "hat keinen API-Schlüssel", es: "no tiene clave de API" }],
  [of("service_missing", { agent: `\`${NAME}\``, role }), { "en-US": "` has no model", de: "` hat", es: "` no tiene" }],
  [of("memory_fails", { reason: { key: "redis_unreachable" }, memory: NAME }), { "en-US": "Redis cannot be reached" }],
  [of("status_failed", { code: "TOOL_OUTCOME_UNKNOWN", iterations: { key: "one_iteration" } }), { "en-US": "TOOL_OUTCOME_UNKNOWN" }],
  [sentence("status_offline_waiting", { reason: sentence("offline_lookup_failed"), waiting: { text: "3" } }), { "en-US": "(3 waiting)", de: "(3 warten)", es: "(3 en espera)" }],
];

test("a long name is cut, and what is wrong stays readable in every language", () => {
  for (const [one, words] of ROWS) {
    for (const language of LANGUAGES) {
      const shown = statusText(one, templatesOf(language));
      assert.ok(shown.length <= STATUS_LENGTH, `${language}: ${shown}`);
      assert.ok(shown.includes(words[language] ?? ""), `${language}: ${shown}`);
    }
  }
});

test("a status has 40 characters with its ellipsis, and one that fits stays whole", () => {
  const fits = "x".repeat(STATUS_LENGTH);
  assert.equal(STATUS_LENGTH, 40);
  assert.equal(statusText({ text: fits }, englishTemplate), fits);
  assert.equal(statusText({ text: `${fits}x` }, englishTemplate), `${fits.slice(1)}…`);
  assert.equal(statusText({ text: `${"x".repeat(38)}😀y` }, englishTemplate), `${"x".repeat(38)}…`);
  const tool = (length) => of("status_waiting", { tool: "t".repeat(length) });
  assert.equal(statusText(tool(13), englishTemplate), `waiting for the outcome of ${"t".repeat(13)}`);
  assert.equal(statusText(tool(14), englishTemplate), `waiting for the outcome of ${"t".repeat(12)}…`);
});

test("what the palette refuses is said in three languages", () => {
  const missing = startProblem("/nowhere/redflow", { code: "ENOENT" });
  const keys = ["choose_runtime", "token_refused", "token_invalid", "instance_refused", "no_bridge", "url_invalid", "offline_nothing_listens", "offline_cut"];
  for (const one of [missing, ...keys.map((key) => sentence(key))]) {
    assert.equal(new Set(LANGUAGES.map((language) => statusText(one, templatesOf(language)))).size, 3, one.phrase.key);
  }
  // The help of a missing program is translated too.
  assert.equal(missing.phrase.args.help.key, "program_help");
});
