// Wires that the checker refuses: what comes by them never gets to an agent, and is told where people look.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import { errors } from "../dist/errors.js";
import { edgesOf } from "../dist/refused-edges.js";
import { nodeRed } from "./kit/node-red.mjs";
import { sidecar } from "./kit/sidecar.mjs";

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
const until = async (wanted) => {
  for (let left = 2_000; !wanted(); left -= 1) {
    assert.ok(left > 0, "never came");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/** A sidecar that refuses these wires of every flow that has a node `bad`, and asks for a call if it is to. */
let seq = 0;
const strict = (t, diagnostics, call) =>
  sidecar(t, ({ type, revision, flows }) => {
    if (type === "flows") {
      const report = { ok: false, diagnostics: flows.some(({ id }) => id === "bad") ? diagnostics : [] };
      return { type: "deployed", seq: (seq += 1), revision, agents: [], report };
    }
    return type === "start" && call ? { ...call, seq: (seq += 1) } : undefined;
  });

test("only errors that lead from a port to an agent of ours are wires that are refused", () => {
  const rows = [
    refusal("a", 0, "ag"),
    refusal("b", 0, "ag", { severity: "warning" }),
    refusal("c", null, "ag"),
    refusal("d", 0, "other"),
    { ...refusal("e", 0, "ag"), node: null },
    { ...refusal("f", 0, "ag"), target: null },
  ];
  const edges = edgesOf(rows, (id) => id === "ag");
  assert.deepEqual([...edges.values()], ["EDGE_FOREIGN_REPLY: it replies to another. Remove the wire."]);
  const many = Array.from({ length: 10_100 }, (_, at) => refusal(`n${at}`, 0, "ag"));
  assert.equal(edgesOf(many, () => true).size, 10_000);
});

test("a message on a refused wire goes no further, and its agent says so; others go on", async (t) => {
  const { url } = await strict(t, [refusal("bad", 1, "ag")]);
  const runtime = { id: "rt", type: "redflow-runtime", mode: "remote", url };
  RED.deploy(runtime, agent("ag"), agent("good"));
  assert.equal(RED.hooked.has(HOOK), false);
  RED.deploy(runtime, agent("ag"), agent("good"), { id: "bad", type: "function", wires: [[], ["ag"]] });
  await until(() => RED.hooked.has(HOOK));
  const hook = RED.hooked.get(HOOK);
  const message = { _msgid: "1", payload: 1 };
  assert.equal(hook(sent("bad", 1, "ag", message)), false);
  for (const other of [sent("bad", 0, "ag", {}), sent("bad", 1, "good", {}), sent("fine", 1, "ag", {})]) {
    assert.equal(hook(other), undefined);
  }
  const [failure, ...more] = RED.byId.get("ag").errors.filter(({ code }) => code !== undefined);
  assert.deepEqual([failure.code, more], ["EDGE_REJECTED", []]);
  assert.match(failure.message, /EDGE_FOREIGN_REPLY: it replies to another\. Remove the wire\./);
  assert.deepEqual(errors.of("ag").map(({ code, message }) => [code, message]), [["EDGE_REJECTED", failure.message]]);
  // What a Catch node brings back by such a wire is not told to it again.
  const [told, warned] = [RED.byId.get("ag").errors.length, RED.byId.get("ag").warnings.length];
  assert.equal(hook(sent("bad", 1, "ag", { ...message, error: { code: "EDGE_REJECTED", source: { id: "good" } } })), false);
  assert.deepEqual([RED.byId.get("ag").errors.length, RED.byId.get("ag").warnings.length], [told, warned + 1]);
  // An agent that throws when it is told does not let the message through.
  RED.byId.get("ag").error = () => assert.fail("mine");
  assert.equal(hook(sent("bad", 1, "ag", message)), false);
  // Mended: from the deploy on, before the sidecar has looked at it.
  RED.deploy(runtime, agent("ag"), agent("good"));
  assert.equal(RED.hooked.has(HOOK), false);
});

test("the hook goes with the last runtime that needs it, and the other hook stays", async (t) => {
  const { url } = await strict(t, [refusal("bad", 0, "ag")]);
  const runtime = (id) => ({ id, type: "redflow-runtime", mode: "remote", url, instance: id });
  const bad = { id: "bad", type: "function", wires: [["ag"]] };
  RED.deploy(runtime("a"), runtime("b"), agent("ag", { runtime: "a" }), bad);
  await until(() => RED.hooked.has(HOOK));
  RED.deploy(runtime("b"), agent("ag", { runtime: "b" }), bad);
  await until(() => RED.hooked.has(HOOK));
  assert.deepEqual([...RED.hooked.keys()].sort(), ["onComplete.redflow-bridge", HOOK]);
  RED.deploy();
  assert.deepEqual([...RED.hooked.keys()], []);
});

test("a message of another agent's call begins a run, unless it is the reply of a tool that both use", async (t) => {
  const call = {
    ...{ type: "tool_call", call: "c1", run: "r", agent: "ag", node: "tool", tool: "warmth", input: {} },
    ...{ iteration: 1, idempotencyKey: "k", timeoutMs: 60_000 },
  };
  let calls = [call];
  const { url, heard, until: hears } = await sidecar(t, ({ type }) => {
    const next = type === "start" ? calls.shift() : undefined;
    return next && { ...next, seq: (seq += 1) };
  });
  const uses = { id: "uses", wires: [[], ["junction"], [], [], []] };
  const agents = [agent("ag"), agent("other"), agent("uses", uses), agent("names", { tools: ["tool"] })];
  RED.deploy({ id: "rt", type: "redflow-runtime", mode: "remote", url }, ...agents);
  const given = [];
  const plain = (id, type, to) => ({ id, type, wires: [to], listeners: {}, receive: (msg) => given.push(msg) });
  const nodes = [plain("tool", "function", ["other"]), plain("junction", "junction", ["out", "junction"])];
  for (const one of [...nodes, plain("out", "link out", ["in"]), plain("in", "link in", ["tool"])]) {
    RED.byId.set(one.id, one);
  }
  const starts = () => heard.filter(({ type }) => type === "start").map(({ node }) => node);
  RED.give("ag", { payload: 1 });
  await until(() => given.length === 1);
  for (const id of ["uses", "names"]) {
    assert.deepEqual(RED.give(id, given[0]).done, [undefined]);
  }
  assert.deepEqual(RED.give("other", given[0]).done, []);
  await until(() => starts().length === 2);
  // It is still open, and answered by what comes back to its own agent.
  RED.give("ag", { ...given[0], payload: 21 });
  const [{ reply }] = await hears(({ type }) => type === "tool_result");
  assert.deepEqual(reply, { type: "returned", output: 21 });
  // Then too: a tool may tell its own agent first, and may forget whose call it was.
  const { _msgid } = given[0];
  for (const message of [given[0], { _msgid, payload: 2 }]) {
    ["uses", "names"].forEach((id) => assert.deepEqual(RED.give(id, message).done, [undefined]));
    RED.give("other", message);
  }
  await until(() => starts().length === 4);
  assert.deepEqual(starts(), ["ag", "other", "other", "other"]);
  // Of a call that nobody knows it cannot be said whose it was.
  const stale = { ...given[0]._agentCore, callId: "of yesterday" };
  assert.deepEqual(RED.give("other", { payload: 1, _agentCore: stale }).done, [undefined]);
  const said = RED.logged.filter((line) => line.includes("EDGE_REJECTED"));
  assert.deepEqual([agents.flatMap(({ id }) => RED.byId.get(id).errors), said], [[], []]);
  assert.deepEqual(RED.byId.get("other").warnings, ["REPLY_DROPPED: the call it answers is not known any more"]);
});

test("what an agent has refused is refused no second time, as long as it is refused", async (t) => {
  const node = { id: "ag", type: "agent-core", name: "" };
  const { url, heard } = await sidecar(t, ({ type, revision, flows }) => {
    const ready = !flows?.some(({ id }) => id === "bad");
    const agents = [{ node, ready, problems: [] }];
    return type === "flows" ? { type: "deployed", seq: (seq += 1), revision, agents, report: { ok: ready, diagnostics: [] } } : undefined;
  });
  const runtime = { id: "rt", type: "redflow-runtime", mode: "remote", url };
  RED.deploy(runtime, agent("ag"), agent("well"), { id: "bad", type: "x" });
  await until(() => RED.byId.get("ag").statuses.some(({ fill }) => fill === "red"));
  const source = { id: "ag", type: "agent-core", name: "", count: 1 };
  const refusals = ["EDGE_REJECTED", "CONFIG_INVALID"].map((code) => ({ code, message: "no", source }));
  for (const error of [...refusals, { ...refusals[0], source: { id: "well" } }, { code: "EDGE_REJECTED" }]) {
    assert.deepEqual(RED.give("ag", { payload: 1, error }).done, [undefined]);
  }
  const own = RED.byId.get("ag");
  // Where no Catch node hears it.
  assert.deepEqual([own.errors, own.warnings.length, errors.of("ag").length], [[], 4, 4]);
  const starts = () => heard.filter(({ type }) => type === "start").length;
  assert.equal(starts(), 0);
  // Other errors are what a flow makes of them, and an agent that is well takes everything.
  const others = [{ ...refusals[0], code: "TIMEOUT" }, "EDGE_REJECTED", null];
  others.forEach((error) => RED.give("ag", { payload: 2, error }));
  RED.give("well", { payload: 2, error: refusals[0] });
  await until(() => starts() === others.length + 1);
  // Mended: before the sidecar has looked at it, and after.
  RED.deploy(runtime, agent("ag"), agent("well"));
  RED.give("ag", { payload: 3, error: refusals[0] });
  await until(() => starts() === others.length + 2);
  // Without a runtime it is refused here.
  RED.deploy(agent("ag"));
  const { done } = RED.give("ag", { payload: 1 });
  assert.equal(done[0].code, "CONFIG_INVALID");
  assert.deepEqual(RED.give("ag", { payload: 1, error: { ...refusals[1] } }).done, [undefined]);
});
