// An AI Agent that receives messages of tool calls: the wire that binds a flow tool carries them too.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import test from "node:test";
import { nodeRed } from "./kit/node-red.mjs";
import { FakeNode } from "./kit/red.mjs";
import { fakeSidecar } from "./kit/sidecar.mjs";
import { until } from "./kit/until.mjs";

const RED = nodeRed();
const load = createRequire(import.meta.url);
for (const type of ["redflow-runtime", "ai-agent"]) {
  load(`../dist/nodes/${type}.js`)(RED);
}
test.afterEach(() => RED.deploy());

const agent = (id, more = {}) => ({ id, type: "ai-agent", wires: [[], []], ...more });

/**
 * The message of a call of the flow tool `tool`, which is bound to `ag` and `shares` by a junction. Its flow has a link call that
 * leads to `inside`, and a Catch node that leads to `caught` and `ag`.
 */
async function world(t) {
  let seq = 0;
  const call = {
    ...{ type: "tool_call", call: "c1", run: "r", agent: "ag", node: "tool", tool: "warmth", input: {} },
    ...{ iteration: 1, idempotencyKey: "k", timeoutMs: 60_000 },
  };
  const { url, messages, untilMessage } = await fakeSidecar(t, ({ type, message }) =>
    type === "start" && message.payload === "begin" ? { ...call, seq: (seq += 1) } : undefined,
  );
  const agents = ["ag", "shares", "inside", "caught"].map((id) => agent(id));
  RED.deploy({ id: "rt", type: "redflow-runtime", mode: "remote", url }, ...agents);
  const nodes = [
    ["tool", "flow-tool", ["junction", "link-call"]],
    ["junction", "junction", ["ag", "shares"]],
    ["link-call", "link call", []],
    ["catch", "catch", ["caught", "ag"]],
    ["in", "link in", ["inside"]],
  ];
  nodes.forEach(([id, type, to]) => RED.byId.set(id, Object.assign(new FakeNode(id, type, [to]), { listeners: {} })));
  RED.send("ag", { payload: "begin" });
  const { sent } = RED.byId.get("tool");
  await until("no call", () => sent.length === 1);
  const starts = () => messages.filter(({ type }) => type === "start").map(({ node }) => node);
  return { message: sent[0], starts, untilMessage, results: () => messages.filter(({ type }) => type === "tool_result") };
}

test("drops the message that comes by the wire of a bound flow tool", async (t) => {
  const { message, starts, results } = await world(t);
  for (const id of ["ag", "shares"]) {
    assert.deepEqual(RED.send(id, message).done, [undefined]);
  }
  assert.deepEqual([starts(), results()], [["ag"], []]);
});

test("works inside the flow of another agent's tool, behind a link call", async (t) => {
  const { message, starts } = await world(t);
  assert.deepEqual(RED.send("inside", { ...message, _linkSource: [] }).done, []);
  await until("no run", () => starts().length === 2);
  assert.deepEqual(starts(), ["ag", "inside"]);
});

test("answers behind a Catch node when a node of the tool's flow fails", async (t) => {
  const { message, starts, untilMessage } = await world(t);
  const failed = { ...message, error: { message: "no sensor", source: { id: "fn" } } };
  assert.deepEqual(RED.send("caught", failed).done, []);
  await until("no run", () => starts().length === 2);
  assert.deepEqual(starts(), ["ag", "caught"]);
  // At the agent that called, the message is the reply.
  assert.deepEqual(RED.send("ag", failed).done, [undefined]);
  const [{ reply }] = await untilMessage(({ type }) => type === "tool_result");
  assert.deepEqual(reply, { type: "failed", error: "no sensor" });
  // An agent that uses the same tool ignores it.
  assert.deepEqual(RED.send("shares", failed).done, [undefined]);
  assert.equal(starts().length, 2);
});
