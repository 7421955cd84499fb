// Deploys and stops of Node-RED with the real nodes and a fake sidecar: which runs and sessions survive, which end, and
// that an error never ends Node-RED.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { mock } from "node:test";
import { nodeRed } from "./kit/node-red.mjs";
import { FakeNode } from "./kit/red.mjs";
import { fakeSidecar } from "./kit/sidecar.mjs";
import { until } from "./kit/until.mjs";

const load = createRequire(import.meta.url);

const RED = nodeRed();
for (const type of ["redflow-runtime", "agent-core", "flow-tool-return"]) {
  load(`../dist/nodes/${type}.js`)(RED);
}
const runtime = (id, url, more = {}) => ({ id, type: "redflow-runtime", mode: "remote", url, ...more });
const agent = (more = {}) => ({ id: "ag", type: "agent-core", name: "Home", wires: [[], [], [], ["x"], []], ...more });
const codes = (node) => node.ends.map(({ done: [error] }) => error?.code);
const start = ({ type }) => type === "start";
const hello = ({ type }) => type === "hello";
test.afterEach(() => RED.deploy());

test("a run of a sidecar that is no longer chosen fails at the agent of the new deploy", async (t) => {
  const [one, two] = [await fakeSidecar(t), await fakeSidecar(t)];
  RED.deploy(runtime("rt", one.url), agent());
  const held = RED.send("ag", { payload: 1 });
  await one.untilMessage(start);
  RED.deploy(runtime("rt", two.url), agent());
  assert.deepEqual(held.done, []);
  assert.deepEqual(codes(RED.byId.get("ag")), ["RUNTIME_UNREACHABLE"]);
});

test("a run fails at its agent when the agent changes its runtime or the runtime is removed", async (t) => {
  const { url, untilMessage } = await fakeSidecar(t);
  RED.deploy(runtime("a", url), runtime("b", url, { instance: "other" }), agent({ runtime: "a" }));
  RED.send("ag", { payload: 1 });
  await untilMessage(start);
  RED.deploy(runtime("a", url), runtime("b", url, { instance: "other" }), agent({ runtime: "b" }));
  assert.deepEqual(codes(RED.byId.get("ag")), ["CANCELLED"]);
  await untilMessage(({ type }) => type === "cancel");
  RED.send("ag", { payload: 2 });
  await untilMessage(({ type, message }) => type === "start" && message.payload === 2);
  RED.deploy(agent({ runtime: "b" }));
  assert.deepEqual(codes(RED.byId.get("ag")), ["RUNTIME_UNREACHABLE"]);
});

test("sends the flow again when a package of it has been installed", async (t) => {
  const { url, messages, untilMessage } = await fakeSidecar(t);
  const { get } = RED.settings;
  t.after(() => (RED.settings.get = get));
  const folder = mkdtempSync(join(tmpdir(), "redflow-added-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const tools = { ledger: { add: { description: "Adds." } } };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "p", redflow: { tools } }));
  RED.deploy(runtime("rt", url), agent(), { id: "l", type: "ledger", wires: [["ag"]] });
  await untilMessage(({ type }) => type === "flows");
  RED.events.emit("runtime-event", { id: "node/added" });
  RED.settings.get = (key) => (key === "nodes" ? { p: { nodes: { l: { types: ["ledger"], file: join(folder, "l.js") } } } } : get(key));
  RED.events.emit("runtime-event", { id: "notification" });
  RED.events.emit("runtime-event", undefined);
  RED.events.emit("runtime-event", { id: "node/added" });
  const [sent] = await untilMessage(({ nodeTools }) => nodeTools !== undefined);
  assert.deepEqual(sent.nodeTools, tools);
  assert.equal(messages.filter(({ type }) => type === "flows").length, 2);
});

test("a managed sidecar starts again when its private hosts change, and only then", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "redflow-private-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [binary, log] = [join(folder, "redflow"), join(folder, "log")];
  const note = `require("fs").appendFileSync(${JSON.stringify(log)}, process.argv.slice(8).join(" ") + "\\n");`;
  writeFileSync(binary, `#!${process.execPath}\n${note}process.stdin.on("end", () => process.exit()).resume();\n`, { mode: 0o755 });
  const deploy = (allowPrivate, more = {}) => {
    RED.deploy({ id: "rt", type: "redflow-runtime", mode: "managed", binary, dataDir: folder, allowPrivate, ...more }, agent());
  };
  const starts = () => (existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(0, -1) : []);
  deploy("nas.lan:8123");
  await until("a first start", () => starts().length === 1);
  deploy("nas.lan:8123", { queueSeconds: 5 });
  deploy("nas.lan:8123, [::1]:80");
  await until("a second start", () => starts().length === 2);
  assert.deepEqual(starts(), ["--allow-private=nas.lan:8123", "--allow-private=nas.lan:8123 --allow-private=[::1]:80"]);
});

test("keeps the boot over a deploy and changes it for a new runtime", async (t) => {
  const { url, messages, untilMessage } = await fakeSidecar(t);
  const boots = () => [...new Set(messages.filter(hello).map(({ boot }) => boot))];
  RED.deploy(runtime("rt", url), agent());
  await untilMessage(hello);
  // Another address needs another connection of the same runtime.
  RED.deploy(runtime("rt", `${url}/`), agent());
  await untilMessage((_, at) => messages.slice(0, at + 1).filter(hello).length === 2);
  assert.equal(boots().length, 1);
  RED.deploy(agent());
  RED.deploy(runtime("rt", url), agent());
  await untilMessage((_, at) => messages.slice(0, at + 1).filter(hello).length === 3);
  assert.equal(boots().length, 2);
});

test("refuses a flow that nests too deep until a deploy fixes it", async (t) => {
  const { url, messages, untilMessage } = await fakeSidecar(t);
  const deep = JSON.parse(`${"[".repeat(200)}${"]".repeat(200)}`);
  RED.deploy(runtime("rt", url), agent({ custom: deep }));
  await untilMessage(hello);
  const red = ({ fill, text }) => fill === "red" && /^FLOW_TOO_DEEP: .*"Home"/.test(text);
  await until("not shown", () => RED.byId.get("ag").statuses.some(red));
  assert.ok(!messages.some(({ type }) => type === "flows"));
  RED.deploy(runtime("rt", url), agent({ custom: deep[0][0].slice(1) }));
  await untilMessage(({ type }) => type === "flows");
});

test("logs an error that Node-RED throws when a message fails", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  // As Node-RED's Flow.handleError does.
  RED.onDone = (message, error) => error && message.hasOwnProperty("error");
  const message = () => JSON.parse('{"payload":1,"hasOwnProperty":"from a body"}');
  RED.deploy(agent());
  RED.send("ag", message());
  RED.deploy(runtime("rt", "http://127.0.0.1:9", { queueSeconds: 1 }), agent());
  const { done } = RED.send("ag", message());
  mock.timers.tick(1_000);
  mock.timers.reset();
  RED.onDone = undefined;
  assert.deepEqual(done.map(({ code }) => code), ["RUNTIME_UNREACHABLE"]);
  const logged = RED.logged.filter((line) => line.includes("message.hasOwnProperty is not a function"));
  assert.deepEqual(logged.map((line) => /ag could not (take|report)/.exec(line)?.[1]), ["take", "report"]);
  const hostile = Object.defineProperty({}, "_agentCore", { get: () => assert.fail("mine") });
  RED.addedHooks.forEach((hook) => hook({ error: new Error("x"), msg: hostile, node: { id: "n", node: new FakeNode("n") } }));
  assert.ok(RED.logged.some((line) => line.includes("the failure of a tool could not be reported: mine")));
});

test("shows under every agent that the sidecar refuses the flow, until a deploy fixes it", async (t) => {
  const error = { code: "FLOW_REFUSED", message: "no flow" };
  const { url } = await fakeSidecar(t, ({ type, revision, flows }) => {
    if (type !== "flows") {
      return undefined;
    }
    const usable = flows.some(({ name }) => name === "Fixed");
    return usable
      ? { type: "deployed", seq: 2, revision, agents: [], report: { ok: true, diagnostics: [] } }
      : { type: "flows_refused", seq: 1, revision, error };
  });
  const untilStatus = async (matches) => {
    await until("not shown", () => matches(RED.byId.get("ag").statuses.at(-1) ?? {}));
  };
  RED.deploy(runtime("rt", url), agent());
  await untilStatus(({ fill, text }) => fill === "red" && text === "FLOW_REFUSED: no flow");
  RED.deploy(runtime("rt", url), agent({ name: "Fixed" }));
  await untilStatus(({ fill }) => fill === undefined);
});

test("warns at the agent of a waiting run, and where to answer it", async (t) => {
  const notices = [
    { type: "notice", seq: 1, node: "ag", code: "TOOL_OUTCOME_UNKNOWN", message: "run R waits" },
    { type: "notice", seq: 2, node: "ag", code: "REPLY_DROPPED", message: "too late" },
  ];
  const { url } = await fakeSidecar(t, ({ type }) => (type === "flows" ? notices.shift() : undefined));
  const warningsOf = async (name) => {
    RED.deploy(runtime("rt", url), agent({ name }));
    const { warnings } = RED.byId.get("ag");
    await until("no warning", () => warnings.length > 0);
    return warnings;
  };
  assert.deepEqual(await warningsOf("One"), ["Answer it in the sidebar Redflow (Ctrl-G R). TOOL_OUTCOME_UNKNOWN: run R waits"]);
  assert.deepEqual(await warningsOf("Two"), ["REPLY_DROPPED: too late"]);
});

const model = (id, more = {}) => ({ id, type: "openai-model", wires: [[]], ...more });
const isFlow = ({ type }) => type === "flows";
/** The credentials in all flows that a fake sidecar has received, in their order. */
const keysAt = ({ messages }) => messages.filter(isFlow).map(({ credentials }) => Object.keys(credentials).join(" "));
const twoSidecars = async (t) => {
  t.mock.method(RED.nodes, "getCredentials", (id) => ({ apiKey: `key of ${id}` }));
  return [await fakeSidecar(t), await fakeSidecar(t)];
};
/** Waits until a sidecar has received flows with these credentials, one after the other. */
const untilKeys = (sidecar, ...keys) => until(`never ${keys} but ${keysAt(sidecar)}`, () => keysAt(sidecar).join() === keys.join());
const uses = (id, of, name) => agent({ id, runtime: of, model: name });

// SECURITY: runtime-credentials
test("each sidecar receives the credentials of its own agents, also after a deploy of changed nodes", async (t) => {
  const [one, two] = await twoSidecars(t);
  const base = [runtime("a", one.url), runtime("b", two.url), model("m1"), model("m2"), model("m3")];
  RED.deploy(...base, uses("x", "a", "m1"), uses("y", "b", "m2"));
  await Promise.all([untilKeys(one, "m1"), untilKeys(two, "m2")]);
  // The runtimes go on: only the agents are created again.
  RED.deployChanged(...base, uses("x", "a", "m3"), uses("y", "b", "m2"));
  await untilKeys(one, "m1", "m3");
  RED.deployChanged(...base, uses("x", "b", "m3"), uses("y", "b", "m2"));
  await Promise.all([untilKeys(one, "m1", "m3", ""), untilKeys(two, "m2", "m2", "m2 m3")]);
  for (const { messages } of [one, two]) {
    for (const { flows, credentials } of messages.filter(isFlow)) {
      const running = flows.filter(({ type, d }) => type === "agent-core" && d !== true);
      assert.deepEqual(Object.keys(credentials), [...new Set(running.map((node) => node.model))].sort());
    }
  }
});

// SECURITY: runtime-credentials
test("a runtime that is gone receives nothing of the next flow, however Node-RED stops it", async (t) => {
  const gone = {
    "another project": (next) => RED.reload(...next),
    "a deploy of changed nodes": (next) => RED.deployChanged(...next),
    "a deploy of all nodes": (next) => RED.deploy(...next),
    "a disabled runtime": (next, url) => RED.reload(runtime("old", url, { d: true }), ...next),
    "a disabled tab": (next, url) => RED.deployChanged({ id: "off", type: "tab", disabled: true }, runtime("old", url, { z: "off" }), ...next),
  };
  for (const [what, deploy] of Object.entries(gone)) {
    const [one, two] = await twoSidecars(t);
    RED.deploy(runtime("old", one.url), model("m1"), uses("x", "old", "m1"));
    await untilKeys(one, "m1");
    deploy([runtime("new", two.url), model("m2"), uses("x", "new", "m2")], one.url);
    await untilKeys(two, "m2");
    // An event that sends the flow again, and the connection is closed.
    RED.events.emit("runtime-event", { id: "node/added" });
    await until(`${what}: the old runtime is there`, async () => {
      return (await RED.request("GET", "/redflow/runtimes")).body.runtimes.every(({ id }) => id === "new");
    });
    await until(`${what}: the old sidecar is connected`, () => one.connections() === 0);
    assert.deepEqual(keysAt(one), ["m1"], what);
    assert.ok(!JSON.stringify(one.messages).includes("key of m2"), what);
  }
});

// SECURITY: runtime-credentials
test("a runtime with another address sends new credentials to the new sidecar only", async (t) => {
  const [one, two] = await twoSidecars(t);
  RED.deploy(runtime("rt", one.url), model("m1"), uses("x", "rt", "m1"));
  await untilKeys(one, "m1");
  RED.reload(runtime("rt", two.url), model("m2"), uses("x", "rt", "m2"));
  await untilKeys(two, "m2");
  assert.deepEqual(keysAt(one), ["m1"]);
});

test("a runtime whose flows are stopped stays for their next start", async (t) => {
  const { url, messages, untilMessage } = await fakeSidecar(t);
  RED.deploy(runtime("rt", url), agent());
  await untilMessage(isFlow);
  RED.reload(runtime("rt", url), agent({ name: "Other" }));
  await untilMessage((message) => isFlow(message) && message.flows.some(({ name }) => name === "Other"));
  assert.equal(messages.filter(hello).length, 1);
});

test("logs no problem of what only agents of other runtimes use", async (t) => {
  const problem = (id) => ({ code: "MODEL_KEY_MISSING", severity: "error", message: `no key of ${id}`, help: "h", node: { id }, port: null, target: null });
  const reply = ({ type, revision }) => {
    const report = { ok: false, diagnostics: ["m1", "m2", "unused"].map(problem) };
    return type === "flows" ? { type: "deployed", seq: 1, revision, agents: [], report } : undefined;
  };
  const { url } = await fakeSidecar(t, reply);
  RED.logged.length = 0;
  RED.deploy(runtime("a", url), runtime("b", "http://127.0.0.1:9"), model("m1"), model("m2"), uses("x", "a", "m1"), uses("y", "b", "m2"));
  const problems = () => RED.logged.filter((line) => line.includes("no key of")).map((line) => /no key of (\w+)/.exec(line)[1]);
  await until("nothing logged", () => problems().length > 0);
  assert.deepEqual(problems(), ["m1", "unused"]);
});
