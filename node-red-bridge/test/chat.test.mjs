// Chats: the same rules as the sidecar's own chat nodes have.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

const { answer, Book, isAnswer, keeps, MAX_CHAT_BYTES, MAX_ID, MAX_TEXT_BYTES, question } =
  createRequire(import.meta.url)("../dist/chat.js");

test("what a person says", () => {
  const item = { id: "m1", type: "user", content: "hello", timestamp: 3 };
  const sent = { _msgid: "1", payload: "hello", chatEvent: "message_sent", chatMessage: item };
  assert.equal(isAnswer(sent), false);
  assert.deepEqual(question(sent, 7), item);
  // From another node it is said in its own words.
  const own = { id: "1", type: "user", content: '{\n  "a": 1\n}', timestamp: 7 };
  assert.deepEqual(question({ _msgid: "1", payload: { a: 1 } }, 7), own);
  // A shape that is no item of a chat is not taken for one.
  for (const odd of [1, null, [], { id: 1 }, { ...item, type: "system" }]) {
    assert.equal(question({ ...sent, chatMessage: odd }, 7).id, "1");
  }
  assert.equal(question({ _msgid: "1" }, 7), undefined);
  const circle = {};
  circle.self = circle;
  assert.equal(question({ _msgid: "1", payload: circle }, 7).content, "(something that cannot be shown)");
});

test("what an agent says", () => {
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
    const item = answer(message, 7);
    assert.deepEqual(item && [item.id, item.content, item.iteration], expected, JSON.stringify(agentResult));
    assert.ok(!item || (item.type === "agent" && item.traceId === "r" && item.timestamp === 7));
  }
});

test("how much is kept is bounded", () => {
  const odd = [undefined, 0, -1, "many", ""].map((given) => [given, 100]);
  for (const [given, kept] of [[7, 7], ["7", 7], [1e6, 1000], ...odd]) {
    assert.equal(keeps(given), kept, String(given));
  }
  const book = new Book();
  const item = (id, content = "x") => ({ id, type: "user", content, timestamp: 0 });
  for (const id of ["a", "b", "c"]) {
    assert.equal(book.say(item(id), 2), true);
  }
  assert.equal(book.say(item("c", "again"), 2), false);
  assert.deepEqual(book.said().map(({ id, content }) => [id, content]), [["b", "x"], ["c", "x"]]);
  book.clear();
  const large = "x".repeat(MAX_TEXT_BYTES);
  for (let n = 0; n < 20; n += 1) {
    book.say(item(`large ${n}`, large), 1000);
  }
  const bytes = book.said().reduce((sum, { content }) => sum + content.length, 0);
  assert.ok(bytes <= MAX_CHAT_BYTES && book.said().length > 1);
  // A text is cut between two characters.
  const said = question({ _msgid: "i".repeat(1000), payload: "ä".repeat(MAX_TEXT_BYTES) }, 0);
  assert.ok(Buffer.byteLength(said.content) <= MAX_TEXT_BYTES && /^ä+…$/.test(said.content));
  assert.equal(said.id.length, MAX_ID);
});
