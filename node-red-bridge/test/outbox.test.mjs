// The numbers, limits and order of unacknowledged messages.

import assert from "node:assert/strict";
import test from "node:test";
import { Outbox } from "../dist/outbox.js";

const LIMIT = { count: 3, bytes: 100 };
const seqs = (frames) => frames.map((frame) => [JSON.parse(frame).type, JSON.parse(frame).seq, JSON.parse(frame).n]);

test("numbers a message when it is sent first", () => {
  const outbox = new Outbox();
  const first = outbox.add("start", '"n":1}', LIMIT);
  const second = outbox.add("start", '"n":2}', LIMIT);
  assert.ok(outbox.withdraw(first));
  assert.deepEqual(seqs(outbox.numberNew()), [["start", 1, 2]]);
  assert.ok(!outbox.withdraw(second), "it was sent");
  assert.ok(!outbox.withdraw(first), "it was removed before");
  assert.deepEqual(outbox.numberNew(), []);
});

test("limits each type in messages and in bytes", () => {
  const outbox = new Outbox();
  for (let n = 0; n < 3; n += 1) {
    assert.ok(outbox.add("start", `"n":${n}}`, LIMIT));
  }
  assert.equal(outbox.add("start", '"n":9}', LIMIT), undefined);
  assert.ok(outbox.add("tool_result", '"n":9}', LIMIT));
  assert.equal(outbox.add("tool_result", `"n":"${"é".repeat(50)}"}`, LIMIT), undefined);
  outbox.numberNew();
  assert.equal(outbox.count("start"), 3);
  assert.equal(outbox.acknowledge(2), 2);
  assert.equal(outbox.count("start"), 1);
  assert.ok(outbox.add("start", '"n":4}', LIMIT));
});

test("a resumed session repeats missing messages and keeps received ones until their ack", () => {
  const outbox = new Outbox();
  outbox.add("start", '"n":1}', LIMIT);
  outbox.add("start", '"n":2}', LIMIT);
  outbox.numberNew();
  outbox.add("start", '"n":3}', LIMIT);
  assert.deepEqual(seqs(outbox.resume(1)), [["start", 2, 2], ["start", 3, 3]]);
  assert.equal(outbox.count("start"), 3, "the first one was received, but not acknowledged");
  assert.deepEqual(seqs(outbox.restart()), [["start", 1, 1], ["start", 2, 2], ["start", 3, 3]]);
});

test("the latest flow replaces an unsent one in its place", () => {
  const outbox = new Outbox();
  outbox.addLatest("flows", '"n":"old"}');
  outbox.add("start", '"n":1}', LIMIT);
  outbox.addLatest("flows", '"n":"new"}');
  assert.equal(outbox.count("flows"), 1);
  assert.deepEqual(seqs(outbox.numberNew()), [["flows", 1, "new"], ["start", 2, 1]]);
  outbox.addLatest("flows", '"n":"newer"}');
  assert.deepEqual(seqs(outbox.numberNew()), [["flows", 3, "newer"]], "a sent message stays");
});

test("discards sent messages for another sidecar", () => {
  const outbox = new Outbox();
  outbox.add("start", '"n":1}', LIMIT);
  outbox.numberNew();
  outbox.add("start", '"n":2}', LIMIT);
  outbox.discardSent();
  assert.equal(outbox.count("start"), 1);
  assert.deepEqual(seqs(outbox.restart()), [["start", 1, 2]]);
});

test("a new session repeats everything with new numbers after the latest flow", () => {
  const outbox = new Outbox();
  outbox.add("flows", '"n":"old"}', LIMIT);
  outbox.add("start", '"n":1}', LIMIT);
  outbox.numberNew();
  outbox.acknowledge(1);
  outbox.add("flows", '"n":"newer"}', LIMIT);
  outbox.add("start", '"n":2}', LIMIT);
  const first = { type: "flows", rest: '"n":"newest"}' };
  assert.deepEqual(seqs(outbox.restart(first)), [["flows", 1, "newest"], ["start", 2, 1], ["start", 3, 2]]);
  assert.equal(outbox.count("flows"), 1);
});
