// The items and the history of a chat, with the rules of the sidecar's own chat nodes.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

const { ChatHistory, LiveAnswers, MAX_CHAT_BYTES, MAX_ID, MAX_TEXT_BYTES, answerItem, historyLimit, isAnswer, questionItem } =
  createRequire(import.meta.url)("../dist/chat-history.js");

test("the item of a person's message", () => {
  const item = { id: "m1", type: "user", content: "hello", timestamp: 3 };
  const sent = { _msgid: "1", payload: "hello", chatEvent: "message_sent", chatMessage: item };
  assert.equal(isAnswer(sent), false);
  assert.deepEqual(questionItem(sent, 7), item);
  // The item of a message from another node has its payload.
  const own = { id: "1", type: "user", content: '{\n  "a": 1\n}', timestamp: 7 };
  assert.deepEqual(questionItem({ _msgid: "1", payload: { a: 1 } }, 7), own);
  // An invalid chatMessage is ignored.
  for (const odd of [1, null, [], { id: 1 }, { ...item, type: "system" }]) {
    assert.equal(questionItem({ ...sent, chatMessage: odd }, 7).id, "1");
  }
  assert.equal(questionItem({ _msgid: "1" }, 7), undefined);
  const cyclic = {};
  cyclic.self = cyclic;
  assert.equal(questionItem({ _msgid: "1", payload: cyclic }, 7).content, "(a value that cannot be shown)");
});

test("the item of an agent's message", () => {
  const on4 = (action, message) => ({ traceId: "r", iteration: 2, action, message });
  const on3 = (completed, more) => ({ traceId: "r", iterations: 2, completed, message: null, ...more });
  const failed = { stopReason: "error", error: { code: "INVALID_JSON", message: "no object" } };
  const rows = [
    [on4("final", "done"), {}, ["r-2", "done", 2]],
    [on4("final", null), { action: "final" }, ["r-2", '{\n  "action": "final"\n}', 2]],
    [on4("tool", "I look it up"), {}, ["r-2", "I look it up", 2]],
    [on4("tool", null), { action: "tool" }, undefined],
    [on4("tool", ""), {}, undefined],
    [on3(true, { message: "done" }), "done", ["r-2", "done", 2]],
    [on3(false, failed), {}, ["r-end", "INVALID_JSON: no object", 2]],
    [on3(false, { stopReason: "iteration_limit" }), 4, ["r-end", "4\n(iteration_limit)", 2]],
    [{ message: "no run" }, "x", undefined],
  ];
  for (const [agentResult, payload, expected] of rows) {
    const message = { _msgid: "1", payload, agentResult };
    assert.equal(isAnswer(message), true);
    const item = answerItem(message, 7);
    assert.deepEqual(item && [item.id, item.content, item.iteration], expected, JSON.stringify(agentResult));
    assert.ok(!item || (item.type === "agent" && item.traceId === "r" && item.timestamp === 7));
  }
});

test("the history has limits", () => {
  const odd = [undefined, 0, -1, "many", ""].map((given) => [given, 100]);
  for (const [given, limit] of [[7, 7], ["7", 7], [1e6, 1000], ...odd]) {
    assert.equal(historyLimit(given), limit, String(given));
  }
  const history = new ChatHistory();
  const item = (id, content = "x") => ({ id, type: "user", content, timestamp: 0 });
  for (const id of ["a", "b", "c"]) {
    assert.equal(history.add(item(id), 2), true);
  }
  assert.equal(history.add(item("c", "again"), 2), false);
  assert.deepEqual(history.items().map(({ id, content }) => [id, content]), [["b", "x"], ["c", "x"]]);
  history.clear();
  const large = "x".repeat(MAX_TEXT_BYTES);
  for (let n = 0; n < 20; n += 1) {
    history.add(item(`large ${n}`, large), 1000);
  }
  const bytes = history.items().reduce((sum, { content }) => sum + content.length, 0);
  assert.ok(bytes <= MAX_CHAT_BYTES && history.items().length > 1);
  // A long text is cut between two characters.
  const long = questionItem({ _msgid: "i".repeat(1000), payload: "ä".repeat(MAX_TEXT_BYTES) }, 0);
  assert.ok(Buffer.byteLength(long.content) <= MAX_TEXT_BYTES && /^ä+…$/.test(long.content));
  assert.equal(long.id.length, MAX_ID);
});

test("an agent's item replaces that with the same id, a person's does not", () => {
  const history = new ChatHistory();
  const item = (type, content) => ({ id: "r-1", type, content, timestamp: 0 });
  const contents = () => history.items().map(({ content }) => content);
  assert.equal(history.add(item("agent", "Hllo"), 9), true);
  assert.equal(history.add(item("agent", "Hello"), 9), true);
  assert.equal(history.add(item("agent", "Hello"), 9), false);
  assert.equal(history.add(item("user", "Bye"), 9), false);
  assert.deepEqual(contents(), ["Hello"]);
  assert.equal(history.bytes, "Hello".length + "r-1".length);
});

test("answers that are written now count for the limits of the chat", () => {
  const [history, live] = [new ChatHistory(), new LiveAnswers()];
  const large = "ä".repeat(MAX_TEXT_BYTES / 2);
  const piece = (runId, payload) => live.add({ payload, stream: { type: "text", runId, iteration: 1, attempt: 1 } }, 0);
  for (let n = 0; n < 7; n += 1) {
    history.add({ id: `i${n}`, type: "user", content: large, timestamp: 0 }, 100);
  }
  for (let run = 0; run < 20; run += 1) {
    assert.equal(piece(`r${run}`, large), true);
  }
  assert.ok(live.bytes <= MAX_CHAT_BYTES && live.items().length > 1);
  assert.equal(live.items().at(-1).traceId, "r19");
  history.fit(100, live.bytes);
  assert.deepEqual(history.items().map(({ id }) => id), ["i6"]);
  // A text beyond the limit is cut once. Further pieces change nothing.
  assert.equal(piece("r19", "x"), true);
  assert.equal(piece("r19", "x"), false);
  const item = live.end("r19");
  assert.ok(Buffer.byteLength(item.content) <= MAX_TEXT_BYTES && /^ä+…$/.test(item.content));
  assert.deepEqual([item.id, live.end("r19")], ["r19-1", undefined]);
});
