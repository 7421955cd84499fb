// The chat node: its constructor, input and close, and the routes of its window.

import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createRequire } from "node:module";
import { test } from "node:test";

const load = createRequire(import.meta.url)("../dist/nodes/chat-node.js");

/** A fake of the parts of Node-RED that the node uses. */
function nodeRed() {
  const routes = new Map();
  const permissions = [];
  const published = [];
  let construct;
  let ids = 0;
  const route = (method) => (path, permission, handler) => {
    assert.equal(path, "/redflow/chat/:id");
    permissions.push([method, permission]);
    routes.set(method, handler);
  };
  load({
    nodes: {
      createNode: (node, { id, type, wires }) => Object.assign(node, { id, type, wires }),
      registerType: (type, constructor) => {
        assert.equal(type, "chat-node");
        construct = constructor;
      },
    },
    auth: { needsPermission: (name) => name },
    httpAdmin: { get: route("GET"), post: route("POST"), delete: route("DELETE") },
    comms: { publish: (...args) => published.push(args) },
    util: { generateId: () => `made-${(ids += 1)}` },
  });
  const start = (definition) => {
    const node = Object.assign(new EventEmitter(), { sent: [], send: (message) => node.sent.push(message) });
    construct.call(node, { type: "chat-node", wires: [["agent"]], ...definition });
    return node;
  };
  const request = (method, id, body, type = "application/json") => {
    const response = { headers: {}, setHeader: (name, value) => (response.headers[name] = value) };
    response.end = (text) => (response.body = JSON.parse(text));
    routes.get(method)({ params: { id }, headers: { "content-type": type }, body }, response);
    return [response.statusCode, response.body];
  };
  return { start, request, permissions, published };
}

/** Sends a message to the node. Returns what it sends on. */
function receive(node, message) {
  const sent = [];
  let done = 0;
  node.emit("input", message, (out) => sent.push(out), () => (done += 1));
  assert.equal(done, 1);
  return sent;
}

const close = (node, removed) => node.emit("close", removed, () => undefined);
const texts = ([, { history }]) => history.map(({ type, content }) => `${type}: ${content}`);

test("the routes need the editor's permissions", () => {
  const expected = [["GET", "redflow.read"], ["POST", "redflow.write"], ["DELETE", "redflow.write"]];
  assert.deepEqual(nodeRed().permissions, expected);
});

test("sends a person's message once and never an agent's", () => {
  const { start, request } = nodeRed();
  const node = start({ id: "once" });
  assert.equal(request("POST", "once", { message: "hello", id: "m1" })[0], 200);
  assert.equal(request("POST", "once", { message: "hello", id: "m1" })[0], 200);
  assert.equal(node.sent.length, 1);
  const { timestamp, ...item } = node.sent[0].chatMessage;
  assert.deepEqual(item, { id: "m1", type: "user", content: "hello" });
  assert.equal(typeof timestamp, "number");
  assert.deepEqual([node.sent[0].payload, node.sent[0].chatEvent], ["hello", "message_sent"]);
  // From both ports of the agent.
  const on4 = { traceId: "r", iteration: 1, action: "final", message: "hi" };
  const on3 = { traceId: "r", iterations: 1, completed: true, message: "hi" };
  for (const agentResult of [on4, on3]) {
    assert.deepEqual(receive(node, { ...node.sent[0], agentResult }), []);
  }
  assert.deepEqual(texts(request("GET", "once")), ["user: hello", "agent: hi"]);
  // A message of another node passes unchanged.
  const message = { _msgid: "1", payload: "from a flow" };
  assert.deepEqual(receive(node, message), [message]);
  assert.deepEqual(request("DELETE", "once"), [200, { success: true }]);
  assert.deepEqual(texts(request("GET", "once")), []);
});

test("refuses invalid requests with a code", () => {
  const { start, request } = nodeRed();
  const node = start({ id: "refused" });
  start({ id: "lone", wires: [[]] });
  const code = ([status, body]) => [status, body.code];
  assert.deepEqual(code(request("POST", "refused", { message: "x" }, "text/plain")), [415, "CONTENT_TYPE_REFUSED"]);
  for (const body of [undefined, null, [], "x", {}, { message: 1 }, { message: " " }, { message: "x".repeat(600_000) }]) {
    assert.deepEqual(code(request("POST", "refused", body)), [400, "BODY_INVALID"]);
  }
  assert.deepEqual(code(request("POST", "lone", { message: "x" })), [409, "CHAT_NOT_CONNECTED"]);
  for (const method of ["GET", "POST", "DELETE"]) {
    assert.deepEqual(code(request(method, "__proto__", { message: "x" })), [404, "NOT_FOUND"]);
  }
  assert.deepEqual(node.sent, []);
  // A missing or too long id is replaced.
  assert.match(request("POST", "refused", { message: "x", id: "i".repeat(300) })[1].id, /^made-/);
});

test("keeps the history over a deploy and drops it with the node", () => {
  const { start, request } = nodeRed();
  const first = start({ id: "kept" });
  request("POST", "kept", { message: "hello" });
  close(first, false);
  assert.equal(request("GET", "kept")[0], 404);
  const second = start({ id: "kept", maxHistory: "2" });
  assert.deepEqual(texts(request("GET", "kept")), ["user: hello"]);
  for (const message of ["b", "c"]) {
    request("POST", "kept", { message });
  }
  assert.deepEqual(texts(request("GET", "kept")), ["user: b", "user: c"]);
  assert.equal(first.sent.length, 1);
  close(second, true);
  start({ id: "kept" });
  assert.deepEqual(texts(request("GET", "kept")), []);
});

test("notifies windows of new items together and without their text", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { start, request, published } = nodeRed();
  start({ id: "told" });
  for (const message of ["a", "b", "c"]) {
    request("POST", "told", { message });
  }
  context.mock.timers.tick(1_000);
  assert.deepEqual(published, [["redflow/chat/told", { count: 3 }, false]]);
  request("POST", "told", { message: "d" });
  context.mock.timers.tick(1_000);
  assert.equal(published.length, 2);
});

test("shows an answer while the model writes it, and sends none of its pieces on", () => {
  const { start, request, published } = nodeRed();
  const node = start({ id: "live" });
  const piece = (payload, more = {}) => {
    const stream = { type: "text", runId: "r1", iteration: 1, attempt: 1, seq: 1, ...more };
    assert.deepEqual(receive(node, { _msgid: "m", payload, stream }), []);
  };
  const shown = () => texts(request("GET", "live"));
  piece("He");
  piece("llo");
  piece("calculator", { type: "tool" });
  piece("Other", { runId: "r2" });
  assert.deepEqual(shown(), ["agent: Hello", "agent: Other"]);
  piece("Again", { attempt: 2 });
  assert.deepEqual(shown(), ["agent: Again", "agent: Other"]);
  piece("Next", { iteration: 2 });
  // A chat that is wired to the stream only keeps the answer.
  piece("", { runId: "r2", type: "end" });
  assert.deepEqual(shown(), ["agent: Other", "agent: Next"]);
  // A chat that is wired to both outputs shows one answer, that of the result.
  piece("", { type: "end" });
  assert.deepEqual(shown(), ["agent: Other", "agent: Next"]);
  const agentResult = { traceId: "r1", completed: true, iterations: 2, message: "Next answer" };
  assert.deepEqual(receive(node, { payload: "Next answer", agentResult }), []);
  assert.deepEqual(shown(), ["agent: Other", "agent: Next answer"]);
  for (let run = 0; run < 100; run += 1) {
    piece("x", { runId: `many${run}` });
  }
  assert.equal(shown().length, 22);
  request("DELETE", "live");
  assert.deepEqual(shown(), []);
  assert.ok(published.length <= 1);
});

test("images of a message reach the agent and not the history", () => {
  const { start, request } = nodeRed();
  const node = start({ id: "c-images" });
  const images = ["data:image/png;base64,iVBO", "data:image/gif;base64,R0lG"];
  assert.equal(request("POST", "c-images", { message: "What is it?", images })[0], 200);
  assert.deepEqual(node.sent[0].images, images);
  assert.equal(node.sent[0].payload, "What is it?");
  assert.ok(!JSON.stringify(request("GET", "c-images")[1]).includes("iVBO"));
  request("POST", "c-images", { message: "And now?" });
  assert.ok(!("images" in node.sent[1]));
  const wrong = [["https://example.org/a.png"], [5], "data:image/png;base64,iVBO", Array(5).fill(images[0]), null];
  for (const value of wrong) {
    const [status, { code, message }] = request("POST", "c-images", { message: "x", images: value });
    assert.deepEqual([status, code, message], [400, "BODY_INVALID", "`images` must be a list of at most 4 data URLs."]);
  }
});
