// Refused wires: their messages never reach an agent, which reports an error.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import { agentErrors } from "../dist/agent-errors.js";
import { refusedEdges } from "../dist/refused-edges.js";
import { nodeRed } from "./kit/node-red.mjs";
import { fakeSidecar } from "./kit/sidecar.mjs";
import { until } from "./kit/until.mjs";

const RED = nodeRed();
const load = createRequire(import.meta.url);
for (const type of ["redflow-runtime", "agent-core"]) {
  load(`../dist/nodes/${type}.js`)(RED);
}
test.afterEach(() => RED.deploy());

const HOOK = "preRoute.redflow-bridge";
const agent = (id, more = {}) => ({ id, type: "agent-core", wires: [[], [], [], [], []], ...more });
const node = (id) => ({ id, type: "x", name: "" });
const refusal = (from, port, to, more = {}) => ({
  ...{ code: "EDGE_FOREIGN_REPLY", severity: "error", message: "it replies to another", help: "Remove the wire." },
  ...{ node: node(from), port, target: node(to), ...more },
});
const sent = (from, port, to, msg) => ({ msg, source: { id: from, port }, destination: { id: to } });
let seq = 0;
/** A fake sidecar that refuses these wires of every flow with a node `bad`, and answers a start with `call`. */
const refusingSidecar = (t, diagnostics, call) =>
  fakeSidecar(t, ({ type, revision, flows }) => {
    if (type === "flows") {
      const report = { ok: false, diagnostics: flows.some(({ id }) => id === "bad") ? diagnostics : [] };
      return { type: "deployed", seq: (seq += 1), revision, agents: [], report };
    }
    return type === "start" && call ? { ...call, seq: (seq += 1) } : undefined;
  });

test("only errors with a port and one of our agents as target are refused wires", () => {
  const rows = [
    refusal("a", 0, "ag", { helpPhrase: { key: "remove_wire" } }),
    refusal("b", 0, "ag", { severity: "warning" }),
    refusal("c", null, "ag"),
    refusal("d", 0, "other"),
    { ...refusal("e", 0, "ag"), node: null },
    { ...refusal("f", 0, "ag"), target: null },
  ];
  const edges = refusedEdges(rows, (id) => id === "ag");
  const text = "dropped a message from a refused wire: EDGE_FOREIGN_REPLY: it replies to another. Remove the wire.";
  const args = { code: "EDGE_FOREIGN_REPLY", message: "it replies to another", help: { key: "remove_wire" } };
  assert.deepEqual([...edges.values()], [{ text, phrase: { key: "refused_wire", args } }]);
  const many = Array.from({ length: 10_100 }, (_, at) => refusal(`n${at}`, 0, "ag"));
  assert.equal(refusedEdges(many, () => true).size, 10_000);
});

test("drops a message on a refused wire, and its agent reports that", async (t) => {
  const { url } = await refusingSidecar(t, [refusal("bad", 1, "ag")]);
  const runtime = { id: "rt", type: "redflow-runtime", mode: "remote", url };
  RED.deploy(runtime, agent("ag"), agent("good"));
  assert.equal(RED.addedHooks.has(HOOK), false);
  RED.deploy(runtime, agent("ag"), agent("good"), { id: "bad", type: "function", wires: [[], ["ag"]] });
  await until("timeout", () => RED.addedHooks.has(HOOK));
  const hook = RED.addedHooks.get(HOOK);
  const message = { _msgid: "1", payload: 1 };
  assert.equal(hook(sent("bad", 1, "ag", message)), false);
  for (const other of [sent("bad", 0, "ag", {}), sent("bad", 1, "good", {}), sent("fine", 1, "ag", {})]) {
    assert.equal(hook(other), undefined);
  }
  const [failure, ...more] = RED.byId.get("ag").errors.filter(({ code }) => code !== undefined);
  assert.deepEqual([failure.code, more], ["EDGE_REJECTED", []]);
  assert.match(failure.message, /EDGE_FOREIGN_REPLY: it replies to another\. Remove the wire\./);
  const kept = agentErrors.list("ag").map(({ code, message, phrase }) => [code, message, phrase.key]);
  assert.deepEqual(kept, [["EDGE_REJECTED", failure.message, "refused_wire"]]);
  // A message that a Catch node sends back over such a wire causes no second error.
  const [errorCount, warningCount] = [RED.byId.get("ag").errors.length, RED.byId.get("ag").warnings.length];
  assert.equal(hook(sent("bad", 1, "ag", { ...message, error: { code: "EDGE_REJECTED", source: { id: "good" } } })), false);
  assert.deepEqual([RED.byId.get("ag").errors.length, RED.byId.get("ag").warnings.length], [errorCount, warningCount + 1]);
  // Behind http in, the reported message has the status of the code. Nodes at other wires keep theirs.
  const request = { ...message, res: {} };
  const reported = [];
  RED.byId.get("ag").error = (_, { statusCode, res }) => reported.push([statusCode, res === request.res]);
  assert.equal(hook(sent("bad", 1, "ag", request)), false);
  assert.deepEqual([reported, request.statusCode], [[[500, true]], undefined]);
  // The message is dropped even if the agent throws.
  RED.byId.get("ag").error = () => assert.fail("mine");
  assert.equal(hook(sent("bad", 1, "ag", message)), false);
  // A deploy removes the hook before the sidecar has checked the new flow.
  RED.deploy(runtime, agent("ag"), agent("good"));
  assert.equal(RED.addedHooks.has(HOOK), false);
});

test("removes the hook with the last runtime that needs it, and keeps the other hook", async (t) => {
  const { url } = await refusingSidecar(t, [refusal("bad", 0, "ag")]);
  const runtime = (id) => ({ id, type: "redflow-runtime", mode: "remote", url, instance: id });
  const bad = { id: "bad", type: "function", wires: [["ag"]] };
  RED.deploy(runtime("a"), runtime("b"), agent("ag", { runtime: "a" }), bad);
  await until("timeout", () => RED.addedHooks.has(HOOK));
  RED.deploy(runtime("b"), agent("ag", { runtime: "b" }), bad);
  await until("timeout", () => RED.addedHooks.has(HOOK));
  assert.deepEqual([...RED.addedHooks.keys()].sort(), ["onComplete.redflow-bridge", HOOK]);
  RED.deploy();
  assert.deepEqual([...RED.addedHooks.keys()], []);
});

test("a message of another agent's call starts a run, unless it is the reply of a shared tool", async (t) => {
  const call = {
    ...{ type: "tool_call", call: "c1", run: "r", agent: "ag", node: "tool", tool: "warmth", input: {} },
    ...{ iteration: 1, idempotencyKey: "k", timeoutMs: 60_000 },
  };
  const calls = [call];
  const { url, messages, untilMessage } = await fakeSidecar(t, ({ type }) => {
    const next = type === "start" ? calls.shift() : undefined;
    return next && { ...next, seq: (seq += 1) };
  });
  const uses = { id: "uses", wires: [[], ["junction"], [], [], []] };
  const agents = [agent("ag"), agent("other"), agent("uses", uses), agent("names", { tools: ["tool"] })];
  RED.deploy({ id: "rt", type: "redflow-runtime", mode: "remote", url }, ...agents);
  const toolMessages = [];
  const plain = (id, type, to) => ({ id, type, wires: [to], listeners: {}, receive: (msg) => toolMessages.push(msg) });
  const nodes = [plain("tool", "function", ["other"]), plain("junction", "junction", ["out", "junction"])];
  for (const one of [...nodes, plain("out", "link out", ["in"]), plain("in", "link in", ["tool"])]) {
    RED.byId.set(one.id, one);
  }
  const starts = () => messages.filter(({ type }) => type === "start").map(({ node }) => node);
  RED.send("ag", { payload: 1 });
  await until("timeout", () => toolMessages.length === 1);
  for (const id of ["uses", "names"]) {
    assert.deepEqual(RED.send(id, toolMessages[0]).done, [undefined]);
  }
  assert.deepEqual(RED.send("other", toolMessages[0]).done, []);
  await until("timeout", () => starts().length === 2);
  // The call is still open. The message at its own agent answers it.
  RED.send("ag", { ...toolMessages[0], payload: 21 });
  const [{ reply }] = await untilMessage(({ type }) => type === "tool_result");
  assert.deepEqual(reply, { type: "returned", output: 21 });
  // The same after the answer: a tool may reply to its own agent first, and may drop `_agentCore`.
  const { _msgid } = toolMessages[0];
  for (const message of [toolMessages[0], { _msgid, payload: 2 }]) {
    ["uses", "names"].forEach((id) => assert.deepEqual(RED.send(id, message).done, [undefined]));
    RED.send("other", message);
  }
  await until("timeout", () => starts().length === 4);
  assert.deepEqual(starts(), ["ag", "other", "other", "other"]);
  // An unknown call may be of any agent, so its message is dropped.
  const stale = { ...toolMessages[0]._agentCore, callId: "of yesterday" };
  assert.deepEqual(RED.send("other", { payload: 1, _agentCore: stale }).done, [undefined]);
  const lines = RED.logged.filter((line) => line.includes("EDGE_REJECTED"));
  assert.deepEqual([agents.flatMap(({ id }) => RED.byId.get(id).errors), lines], [[], []]);
  assert.deepEqual(RED.byId.get("other").warnings, ["REPLY_DROPPED: its call is no longer known"]);
});

test("a refused agent drops a message that was refused before", async (t) => {
  const node = { id: "ag", type: "agent-core", name: "" };
  const { url, messages } = await fakeSidecar(t, ({ type, revision, flows }) => {
    const ready = !flows?.some(({ id }) => id === "bad");
    const agents = [{ node, ready, problems: [] }];
    return type === "flows" ? { type: "deployed", seq: (seq += 1), revision, agents, report: { ok: ready, diagnostics: [] } } : undefined;
  });
  const runtime = { id: "rt", type: "redflow-runtime", mode: "remote", url };
  RED.deploy(runtime, agent("ag"), agent("well"), { id: "bad", type: "x" });
  await until("timeout", () => RED.byId.get("ag").statuses.some(({ fill }) => fill === "red"));
  const source = { id: "ag", type: "agent-core", name: "", count: 1 };
  const refusals = ["EDGE_REJECTED", "CONFIG_INVALID", "MODEL_KEY_MISSING"].map((code) => ({ code, message: "no", source }));
  for (const error of [...refusals, { ...refusals[0], source: { id: "well" } }, { code: "EDGE_REJECTED" }]) {
    assert.deepEqual(RED.send("ag", { payload: 1, error }).done, [undefined]);
  }
  const own = RED.byId.get("ag");
  // Without an error for Catch nodes.
  assert.deepEqual([own.errors, own.warnings.length, agentErrors.list("ag").length], [[], 5, 5]);
  const starts = () => messages.filter(({ type }) => type === "start").length;
  assert.equal(starts(), 0);
  // Messages with other errors start runs, and a ready agent accepts every message.
  const others = [{ ...refusals[0], code: "TIMEOUT" }, "EDGE_REJECTED", null];
  others.forEach((error) => RED.send("ag", { payload: 2, error }));
  RED.send("well", { payload: 2, error: refusals[0] });
  await until("timeout", () => starts() === others.length + 1);
  // After a deploy the agent accepts messages, also before the checker has answered.
  RED.deploy(runtime, agent("ag"), agent("well"));
  RED.send("ag", { payload: 3, error: refusals[0] });
  await until("timeout", () => starts() === others.length + 2);
  // An agent without a runtime is refused too.
  RED.deploy(agent("ag"));
  const message = { payload: 1, res: {} };
  const { done } = RED.send("ag", message);
  assert.deepEqual([done[0].code, message.statusCode], ["CONFIG_INVALID", 500]);
  assert.deepEqual(RED.send("ag", { payload: 1, error: { ...refusals[1] } }).done, [undefined]);
});
