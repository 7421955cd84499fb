// The chat node as Node-RED uses it: its constructor, its input, its close, and the routes of its window.

import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createRequire } from "node:module";
import { test } from "node:test";

const load = createRequire(import.meta.url)("../dist/nodes/chat-node.js");

/** As much of Node-RED as the node uses, with what it did. */
function nodeRed() {
  const routes = new Map();
  const asked = [];
  const told = [];
  let make;
  let ids = 0;
  const route = (method) => (path, permission, handler) => {
    assert.equal(path, "/redflow/chat/:id");
    asked.push([method, permission]);
    routes.set(method, handler);
  };
  load({
    nodes: {
      createNode: (node, { id, type, wires }) => Object.assign(node, { id, type, wires }),
      registerType: (type, constructor) => {
        assert.equal(type, "chat-node");
        make = constructor;
      },
    },
    auth: { needsPermission: (name) => name },
    httpAdmin: { get: route("GET"), post: route("POST"), delete: route("DELETE") },
    comms: { publish: (...args) => told.push(args) },
    util: { generateId: () => `made-${(ids += 1)}` },
  });
  const start = (definition) => {
    const node = Object.assign(new EventEmitter(), { sent: [], send: (message) => node.sent.push(message) });
    make.call(node, { type: "chat-node", wires: [["agent"]], ...definition });
    return node;
  };
  const ask = (method, id, body, type = "application/json") => {
    const response = { headers: {}, setHeader: (name, value) => (response.headers[name] = value) };
    response.end = (text) => (response.body = JSON.parse(text));
    routes.get(method)({ params: { id }, headers: { "content-type": type }, body }, response);
    return [response.statusCode, response.body];
  };
  return { start, ask, asked, told };
}

/** A message comes in; what it sent on, once it is done with it. */
function receive(node, message) {
  const sent = [];
  let done = 0;
  node.emit("input", message, (out) => sent.push(out), () => (done += 1));
  assert.equal(done, 1);
  return sent;
}

const close = (node, removed) => node.emit("close", removed, () => undefined);
const words = ([, { history }]) => history.map(({ type, content }) => `${type}: ${content}`);

test("the routes ask for the editor's permissions", () => {
  const expected = [["GET", "redflow.read"], ["POST", "redflow.write"], ["DELETE", "redflow.write"]];
  assert.deepEqual(nodeRed().asked, expected);
});

test("what a person says goes out once, what an agent says stays", () => {
  const { start, ask } = nodeRed();
  const node = start({ id: "once" });
  assert.equal(ask("POST", "once", { message: "hello", id: "m1" })[0], 200);
  assert.equal(ask("POST", "once", { message: "hello", id: "m1" })[0], 200);
  assert.equal(node.sent.length, 1);
  const { timestamp, ...item } = node.sent[0].chatMessage;
  assert.deepEqual(item, { id: "m1", type: "user", content: "hello" });
  assert.equal(typeof timestamp, "number");
  assert.deepEqual([node.sent[0].payload, node.sent[0].chatEvent], ["hello", "message_sent"]);
  // By both ports of the agent.
  const on4 = { traceId: "r", iteration: 1, action: "final", message: "hi" };
  const on3 = { traceId: "r", iterations: 1, completed: true, message: "hi" };
  for (const agentResult of [on4, on3]) {
    assert.deepEqual(receive(node, { ...node.sent[0], agentResult }), []);
  }
  assert.deepEqual(words(ask("GET", "once")), ["user: hello", "agent: hi"]);
  // From another node it goes on as it is.
  const message = { _msgid: "1", payload: "from a flow" };
  assert.deepEqual(receive(node, message), [message]);
  assert.deepEqual(ask("DELETE", "once"), [200, { success: true }]);
  assert.deepEqual(words(ask("GET", "once")), []);
});

test("what cannot be said is refused with a code", () => {
  const { start, ask } = nodeRed();
  const node = start({ id: "refused" });
  start({ id: "lone", wires: [[]] });
  const code = ([status, body]) => [status, body.code];
  assert.deepEqual(code(ask("POST", "refused", { message: "x" }, "text/plain")), [415, "CONTENT_TYPE_REFUSED"]);
  for (const body of [undefined, null, [], "x", {}, { message: 1 }, { message: " " }, { message: "x".repeat(600_000) }]) {
    assert.deepEqual(code(ask("POST", "refused", body)), [400, "BODY_INVALID"]);
  }
  assert.deepEqual(code(ask("POST", "lone", { message: "x" })), [409, "CHAT_NOT_CONNECTED"]);
  for (const method of ["GET", "POST", "DELETE"]) {
    assert.deepEqual(code(ask(method, "__proto__", { message: "x" })), [404, "NOT_FOUND"]);
  }
  assert.deepEqual(node.sent, []);
  // An id that is too long, or none, is replaced.
  assert.match(ask("POST", "refused", { message: "x", id: "i".repeat(300) })[1].id, /^made-/);
});

test("a deploy keeps what was said, removing the node forgets it", () => {
  const { start, ask } = nodeRed();
  const first = start({ id: "kept" });
  ask("POST", "kept", { message: "hello" });
  close(first, false);
  assert.equal(ask("GET", "kept")[0], 404);
  const second = start({ id: "kept", maxHistory: "2" });
  assert.deepEqual(words(ask("GET", "kept")), ["user: hello"]);
  for (const message of ["b", "c"]) {
    ask("POST", "kept", { message });
  }
  assert.deepEqual(words(ask("GET", "kept")), ["user: b", "user: c"]);
  assert.equal(first.sent.length, 1);
  close(second, true);
  start({ id: "kept" });
  assert.deepEqual(words(ask("GET", "kept")), []);
});

test("windows are told that something was said, together and without its words", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { start, ask, told } = nodeRed();
  start({ id: "told" });
  for (const message of ["a", "b", "c"]) {
    ask("POST", "told", { message });
  }
  context.mock.timers.tick(1_000);
  assert.deepEqual(told, [["redflow/chat/told", { count: 3 }, false]]);
  ask("POST", "told", { message: "d" });
  context.mock.timers.tick(1_000);
  assert.equal(told.length, 2);
});
