// What is remembered of tool calls, and for how long; and which errors a Catch node takes.

import assert from "node:assert/strict";
import test from "node:test";
import { CALLS, Calls, isToolRequest } from "../dist/calls.js";
import { isCaught } from "../dist/catching.js";

const call = (id, more = {}) => ({ id, run: "r", agent: "a", node: "n", tool: "t", msgid: `m-${id}`, ...more });
const message = (callId, _msgid) => ({ _agentCore: { type: "tool_request", callId }, _msgid });

test("a call is found by what its message says, else by the message's id", () => {
  const calls = new Calls();
  const [one, two] = [calls.add(call("1")), calls.add(call("2"))];
  assert.equal(calls.of(message("1", "m-2")), one);
  assert.equal(calls.of({ _msgid: "m-2" }), two);
  assert.equal(calls.of(message("gone", "m-1")), one);
  for (const odd of [{}, { _msgid: 7 }, { _agentCore: null }, { _agentCore: { callId: {} } }, message("x", "y")]) {
    assert.equal(calls.of(odd), undefined);
  }
  assert.ok(isToolRequest(message("x", "y")));
  assert.ok(!isToolRequest({ _agentCore: "tool_request" }));
});

test("the first reply counts", () => {
  const calls = new Calls();
  const one = calls.add(call("1"));
  assert.ok(calls.answer(one, "first"));
  assert.ok(!calls.answer(one, "second"));
  assert.equal(calls.get("1").reply, "first");
});

test("calls are forgotten after their time, and the oldest when there are too many", () => {
  let now = 0;
  const calls = new Calls({ ...CALLS, count: 3, ms: 100 }, () => now);
  ["1", "2", "3", "4"].forEach((id) => calls.add(call(id)));
  assert.equal(calls.get("1"), undefined);
  assert.equal(calls.of({ _msgid: "m-1" }), undefined);
  assert.ok(calls.get("2"));
  now = 100;
  calls.add(call("5"));
  assert.deepEqual(["2", "3", "4", "5"].map((id) => calls.get(id)?.id), [undefined, undefined, undefined, "5"]);
});

test("replies that are too many bytes are forgotten, the calls are not", () => {
  const calls = new Calls({ ...CALLS, replyBytes: 10 }, () => 0);
  const [one, two] = [calls.add(call("1")), calls.add(call("2"))];
  calls.answer(one, "123456");
  calls.answer(two, "1234567");
  assert.deepEqual([one.answered, one.reply], [true, undefined]);
  assert.equal(two.reply, "1234567");
});

const flow = (...nodes) => new Map(nodes.map((node) => [node.id, node]));
const node = (id, type, more = {}) => ({ id, type, z: "tab", ...more });

test("which errors a Catch node takes", () => {
  const tab = { id: "tab", type: "tab" };
  const groups = [node("outer", "group"), node("inner", "group", { g: "outer" }), node("other", "group")];
  const caught = (catches, where = {}) =>
    isCaught(flow(tab, ...groups, node("n", "function", where), ...catches), "n", "tab");
  const one = (more) => node("c", "catch", more);
  assert.ok(!caught([]));
  assert.ok(caught([one({ scope: null })]));
  assert.ok(caught([one({ scope: null, uncaught: true })]));
  assert.ok(!caught([one({ scope: null, d: true })]));
  assert.ok(!caught([one({ scope: null, z: "elsewhere" })]));
  assert.ok(caught([one({ scope: ["x", "n"] })]));
  assert.ok(!caught([one({ scope: ["x"] })]));
  assert.ok(!caught([one({ scope: "group", g: "outer" })]));
  assert.ok(caught([one({ scope: "group", g: "outer" })], { g: "inner" }));
  assert.ok(!caught([one({ scope: "group", g: "inner" })], { g: "outer" }));
  assert.ok(!caught([one({ scope: "group", g: "other" })], { g: "inner" }));
  assert.ok(caught([one({ scope: "group" })]));
});

test("an error inside a subflow goes on to where its instance is", () => {
  const base = [
    { id: "tab", type: "tab" },
    { id: "sub", type: "subflow" },
    { id: "deep", type: "subflow" },
    node("one", "subflow:sub"),
    node("two", "subflow:deep", { z: "sub" }),
    node("n", "function", { z: "deep" }),
  ];
  const caught = (...catches) => isCaught(flow(...base, ...catches), "one-two-n", "one-two");
  assert.ok(!caught());
  assert.ok(caught(node("c", "catch", { z: "deep", scope: ["n"] })));
  assert.ok(caught(node("c", "catch", { z: "sub", scope: ["two"] })));
  assert.ok(!caught(node("c", "catch", { z: "sub", scope: ["n"] })));
  assert.ok(caught(node("c", "catch", { scope: ["one"] })));
  assert.ok(!caught(node("c", "catch", { scope: ["two"] })));
});

test("in doubt somebody takes it", () => {
  assert.ok(isCaught(flow({ id: "tab", type: "tab" }), "nobody-knows", "tab"));
});
