// The limits of remembered tool calls; which errors a Catch node handles.

import assert from "node:assert/strict";
import test from "node:test";
import { CALL_LIMITS, Calls, isToolRequest } from "../dist/calls.js";
import { isCaught } from "../dist/catch-nodes.js";

const call = (id, more = {}) => ({ id, run: "r", agent: "a", node: "n", tool: "t", msgid: `m-${id}`, ...more });
const message = (callId, _msgid) => ({ _agentCore: { type: "tool_request", callId }, _msgid });

test("finds a call by _agentCore, else by _msgid", () => {
  const calls = new Calls();
  const [one, two] = [calls.add(call("1")), calls.add(call("2"))];
  assert.equal(calls.findByMessage(message("1", "m-2")), one);
  assert.equal(calls.findByMessage({ _msgid: "m-2" }), two);
  assert.equal(calls.findByMessage(message("gone", "m-1")), one);
  for (const odd of [{}, { _msgid: 7 }, { _agentCore: null }, { _agentCore: { callId: {} } }, message("x", "y")]) {
    assert.equal(calls.findByMessage(odd), undefined);
  }
  assert.ok(isToolRequest(message("x", "y")));
  assert.ok(!isToolRequest({ _agentCore: "tool_request" }));
});

test("keeps the first reply", () => {
  const calls = new Calls();
  const one = calls.add(call("1"));
  assert.ok(calls.answer(one, "first"));
  assert.ok(!calls.answer(one, "second"));
  assert.equal(calls.get("1").reply, "first");
});

test("drops calls after their time, and the oldest ones beyond the limit", () => {
  let now = 0;
  const calls = new Calls({ ...CALL_LIMITS, count: 3, ms: 100 }, () => now);
  ["1", "2", "3", "4"].forEach((id) => calls.add(call(id)));
  assert.equal(calls.get("1"), undefined);
  assert.equal(calls.findByMessage({ _msgid: "m-1" }), undefined);
  assert.ok(calls.get("2"));
  now = 100;
  calls.add(call("5"));
  assert.deepEqual(["2", "3", "4", "5"].map((id) => calls.get(id)?.id), [undefined, undefined, undefined, "5"]);
});

test("drops the oldest replies beyond the byte limit, but not their calls", () => {
  const calls = new Calls({ ...CALL_LIMITS, replyBytes: 10 }, () => 0);
  const [one, two] = [calls.add(call("1")), calls.add(call("2"))];
  calls.answer(one, "123456");
  calls.answer(two, "1234567");
  assert.deepEqual([one.answered, one.reply], [true, undefined]);
  assert.equal(two.reply, "1234567");
});

const flow = (...nodes) => new Map(nodes.map((node) => [node.id, node]));
const node = (id, type, more = {}) => ({ id, type, z: "tab", ...more });

test("a Catch node handles errors in its scope", () => {
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

test("an error inside a subflow passes to its instance", () => {
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

test("an error of an unknown node counts as caught", () => {
  assert.ok(isCaught(flow({ id: "tab", type: "tab" }), "unknown-node", "tab"));
});
