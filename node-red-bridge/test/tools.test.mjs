// Tool calls: made once, answered once, and answered again when the sidecar requests them again.

import assert from "node:assert/strict";
import test from "node:test";
import { Agents } from "../dist/agents.js";
import { Runs } from "../dist/runs.js";
import { Tools } from "../dist/tools.js";
import { FakeNode, FakeSession, fakeRed } from "./kit/red.mjs";

/** The failure of a message whose run has an error as its result. */
function failureWithResult() {
  const node = new FakeNode("ag");
  const RED = fakeRed([node]);
  const [session, agents, done] = [new FakeSession(), new Agents(RED), []];
  agents.attach(node);
  const runs = new Runs(RED, session, agents, () => ({ maxQueued: 1, queueSeconds: 5, maxHeldRuns: 1, url: "" }));
  runs.start(node, { payload: 1 }, () => undefined, (error) => done.push(error));
  const { start } = session.messages[0];
  const message = { payload: 2, error: { code: "X", message: "x" } };
  runs.output({ type: "send", seq: 1, node: "ag", port: 3, run: "r", effect: 1, start, last: true, message });
  return done[0];
}

function world(definitions = []) {
  const tool = new FakeNode("ft", "flow-tool", [["first"]]);
  const data = new FakeNode("dn", "function", [["ag"]]);
  const session = new FakeSession();
  const tools = new Tools(fakeRed([tool, data, new FakeNode("bare", "flow-tool", [[]])], definitions), session);
  const call = (more = {}, waitedMs = 0) =>
    tools.call(
      {
        ...{ type: "tool_call", seq: 1, run: "r", call: "r:1", agent: "ag", node: "ft", tool: "look", iteration: 1 },
        ...{ input: { q: 1 }, timeoutMs: 1_000, idempotencyKey: "k", effect: "read", ...more },
      },
      waitedMs,
    );
  const replies = () => session.messages.map(({ reply }) => reply);
  return { tool, data, session, tools, call, replies };
}

test("sends a call from the flow-tool as a message with _agentCore", () => {
  const { tool, call } = world();
  const forged = { $redflow: "buffer", data: "AA==" };
  call({ input: forged });
  const [{ _msgid, ...message }] = tool.sent;
  assert.match(_msgid, /^msg-/);
  assert.deepEqual(message, {
    payload: forged,
    toolName: "look",
    _agentCore: { type: "tool_request", traceId: "r", callId: "r:1", iteration: 1, tool: "look", idempotencyKey: "k" },
  });
});

test("a node on the tool port receives the message", () => {
  const { data, call } = world();
  call({ node: "dn" });
  assert.equal(data.received[0].payload.q, 1);
});

test("an operation's node receives the operation's message, and the result is the named property", () => {
  const { data, tools, call, replies } = world();
  const msg = { payload: { id: 7 }, topic: "create", toolName: "mine", _msgid: "forged", _agentCore: 1 };
  call({ node: "dn", operation: { msg, result: "payload.record.id" } });
  const [{ _msgid, _agentCore, ...received }] = data.received;
  assert.deepEqual(received, { payload: { id: 7 }, topic: "create", toolName: "mine" });
  assert.match(_msgid, /^msg-/);
  assert.equal(_agentCore.callId, "r:1");
  const returned = { ...data.received[0], payload: { record: { id: 8, more: 1 } } };
  tools.handleReturn(tools.findCall(returned), returned);
  call({ node: "dn", operation: { msg, result: "payload" } });
  assert.equal(data.received.length, 1, "the call is known");
  assert.deepEqual(replies(), Array.from({ length: 2 }, () => ({ type: "returned", output: 8 })));
});

test("a missing property is null, and an operation without a payload gets none", () => {
  const { data, tools, call, replies } = world();
  const rows = [[{}, "payload"], [{ payload: 1 }, "payload.id.deep"], [{ payload: null }, "payload.id"], [{ payload: {} }, "payload.constructor"], [{ payload: [{ id: 4 }] }, "payload.0.id"], [{ topic: "t" }, "topic"]];
  rows.forEach(([more, result], at) => {
    call({ node: "dn", call: `r:${at}`, operation: { msg: {}, result } });
    const sent = data.received.at(-1);
    assert.ok(!("payload" in sent));
    const returned = { ...sent, ...more };
    tools.handleReturn(tools.findCall(returned), returned);
  });
  assert.deepEqual(replies().map(({ output }) => output), [null, null, null, null, 4, "t"]);
});

test("encodes and sends the first reply, and drops the second", () => {
  const { tool, tools, call, session } = world();
  call();
  const message = { ...tool.sent[0], payload: new Date(5) };
  assert.equal(tools.handleReturn(tools.findCall(message), message), undefined);
  assert.match(tools.handleReturn(tools.findCall(message), message), /answered already/);
  assert.deepEqual(session.messages, [
    { type: "tool_result", run: "r", call: "r:1", reply: { type: "returned", output: { $redflow: "date", data: 5 } } },
  ]);
});

test("does not repeat a call", () => {
  const { tool, tools, call, replies } = world();
  call();
  call();
  assert.equal(tool.sent.length, 1);
  assert.deepEqual(replies(), []);
  tools.handleReturn(tools.findCall(tool.sent[0]), tool.sent[0]);
  call({ known: true });
  call();
  assert.equal(tool.sent.length, 1);
  assert.deepEqual(replies(), Array.from({ length: 3 }, () => ({ type: "returned", output: { q: 1 } })));
});

test("does not make an unknown call when only its outcome is requested", () => {
  const { tool, call, replies } = world();
  call({ known: true });
  call({ known: true });
  assert.deepEqual(tool.sent, []);
  assert.deepEqual(replies().map(({ type }) => type), ["unknown", "unknown"]);
});

test("does not make a call after a request for its outcome, and makes an open one once", () => {
  const { tool, tools, call, replies } = world();
  call({ known: true });
  call();
  assert.deepEqual(tool.sent, []);
  assert.deepEqual(replies().map(({ type }) => type), ["unknown", "unknown"]);
  call({ call: "r:2" });
  call({ call: "r:2", known: true });
  call({ call: "r:2" });
  assert.equal(tool.sent.length, 1);
  assert.equal(replies().length, 2, "the open call is answered later");
  tools.handleReturn(tools.findCall(tool.sent[0]), tool.sent[0]);
  call({ call: "r:2" }, 5_000);
  assert.equal(tool.sent.length, 1);
  assert.deepEqual(replies().slice(2).map(({ type }) => type), ["returned", "returned"]);
});

test("does not make a call whose timeout passed while the flows were stopped", () => {
  const { tool, call, replies } = world();
  call({}, 1_001);
  call();
  const error = "the call was not made: its timeout had passed when the flows ran again";
  assert.deepEqual(replies(), Array.from({ length: 2 }, () => ({ type: "failed", error })));
  assert.deepEqual(tool.sent, []);
  call({ call: "r:2" }, 1_000);
  assert.equal(tool.sent.length, 1);
  call({ call: "r:3", known: true }, 1_001);
  assert.equal(replies().at(-1).type, "unknown");
});

test("the outcome of a call is unknown when Node-RED throws", () => {
  const { tool, call, replies } = world();
  tool.send = () => {
    throw new Error("a hook threw");
  };
  call();
  assert.deepEqual(replies(), [{ type: "unknown", reason: "Node-RED could not pass the call on: a hook threw" }]);
});

test("fails a call without its node or wire", () => {
  const { call, replies } = world();
  call({ node: "gone" });
  call({ node: "bare", call: "r:2" });
  assert.deepEqual(replies(), [
    { type: "failed", error: "the running flow has no node gone" },
    { type: "failed", error: "the flow-tool look has no wire" },
  ]);
});

test("replies with errors, with results beyond the limits, and with no result", () => {
  const { tools, call, replies } = world();
  const deep = "the tool's result nests too deep; the limit is 10 levels";
  const rows = [
    [{ error: "boom" }, { type: "failed", error: "boom" }],
    [{ error: new Error("bang"), payload: 1 }, { type: "failed", error: "bang" }],
    [{ error: {} }, { type: "failed", error: "the tool failed" }],
    [{ error: null, payload: 1 }, { type: "returned", output: 1 }],
    [{ payload: "x".repeat(200) }, { type: "failed", error: "the tool's result has 202 bytes; the limit is 100" }],
    [{ payload: [[[[[[[[[[[1]]]]]]]]]]] }, { type: "failed", error: deep }],
    [{}, { type: "returned", output: null }],
  ];
  for (const [at, [message, reply]] of rows.entries()) {
    call({ call: `r:${at}` });
    tools.handleReturn(tools.findCall({ _agentCore: { callId: `r:${at}` } }), message);
    assert.deepEqual(replies().at(-1), reply);
  }
});

test("an error that no Catch node handles answers the call at once", () => {
  const definitions = [
    { id: "tab", type: "tab" },
    ...["first", "second", "watched", "dn"].map((id) => ({ id, type: "function", z: "tab" })),
    { id: "c", type: "catch", z: "tab", scope: ["watched"] },
  ];
  const { tool, data, tools, call, replies } = world(definitions);
  const fails = (id, msg, name) =>
    tools.handleError({ msg, error: new Error("boom"), node: { id, node: { id, type: "function", z: "tab", name } } });
  call();
  fails("watched", tool.sent[0]);
  fails("first", { _msgid: "unknown" });
  assert.deepEqual(replies(), []);
  fails("first", tool.sent[0], "Look");
  fails("first", tool.sent[0]);
  assert.deepEqual(replies(), [{ type: "failed", error: 'function "Look" failed: boom' }]);
  call({ call: "r:2" });
  fails("second", tool.sent[1]);
  assert.deepEqual(replies().at(-1), { type: "unknown", reason: "function failed: boom" });
  // An agent in the flow tool has failed. The failure is its result, and the flow continues.
  const error = failureWithResult();
  call({ call: "r:4" });
  tools.handleError({ msg: tool.sent[2], error, node: { id: "second", node: { id: "second", type: "agent-core", z: "tab" } } });
  assert.equal(replies().length, 2);
  call({ call: "r:3", node: "dn" });
  fails("dn", data.received[0]);
  assert.equal(replies().at(-1).type, "failed");
});
