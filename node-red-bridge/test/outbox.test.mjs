// Numbers, room and order of what waits for the sidecar.

import assert from "node:assert/strict";
import test from "node:test";
import { Outbox } from "../dist/outbox.js";

const ROOM = { count: 3, bytes: 100 };
const seqs = (frames) => frames.map((frame) => [JSON.parse(frame).type, JSON.parse(frame).seq, JSON.parse(frame).n]);

test("a message gets its number when it is first written", () => {
  const outbox = new Outbox();
  const first = outbox.put("start", '"n":1}', ROOM);
  const second = outbox.put("start", '"n":2}', ROOM);
  assert.ok(outbox.takeBack(first));
  assert.deepEqual(seqs(outbox.writeNew()), [["start", 1, 2]]);
  assert.ok(!outbox.takeBack(second), "a socket had it");
  assert.ok(!outbox.takeBack(first), "it is gone already");
  assert.deepEqual(outbox.writeNew(), []);
});

test("room is counted for each kind, in messages and in bytes", () => {
  const outbox = new Outbox();
  for (let n = 0; n < 3; n += 1) {
    assert.ok(outbox.put("start", `"n":${n}}`, ROOM));
  }
  assert.equal(outbox.put("start", '"n":9}', ROOM), undefined);
  assert.ok(outbox.put("tool_result", '"n":9}', ROOM));
  assert.equal(outbox.put("tool_result", `"n":"${"é".repeat(50)}"}`, ROOM), undefined);
  outbox.writeNew();
  assert.equal(outbox.count("start"), 3);
  assert.equal(outbox.taken(2).length, 2);
  assert.equal(outbox.count("start"), 1);
  assert.ok(outbox.put("start", '"n":4}', ROOM));
});

test("the same session: what did not arrive is written again, and what did stays until its ack", () => {
  const outbox = new Outbox();
  outbox.put("start", '"n":1}', ROOM);
  outbox.put("start", '"n":2}', ROOM);
  outbox.writeNew();
  outbox.put("start", '"n":3}', ROOM);
  assert.deepEqual(seqs(outbox.resume(1)), [["start", 2, 2], ["start", 3, 3]]);
  assert.equal(outbox.count("start"), 3, "the first one arrived, but was not taken");
  assert.deepEqual(seqs(outbox.restart()), [["start", 1, 1], ["start", 2, 2], ["start", 3, 3]]);
});

test("of a flow that waits only the newest counts, where the first one stood", () => {
  const outbox = new Outbox();
  outbox.putNewest("flows", '"n":"old"}');
  outbox.put("start", '"n":1}', ROOM);
  outbox.putNewest("flows", '"n":"new"}');
  assert.equal(outbox.count("flows"), 1);
  assert.deepEqual(seqs(outbox.writeNew()), [["flows", 1, "new"], ["start", 2, 1]]);
  outbox.putNewest("flows", '"n":"newer"}');
  assert.deepEqual(seqs(outbox.writeNew()), [["flows", 3, "newer"]], "what a socket had stays");
});

test("another sidecar is not told what was said to the one before", () => {
  const outbox = new Outbox();
  outbox.put("start", '"n":1}', ROOM);
  outbox.writeNew();
  outbox.put("start", '"n":2}', ROOM);
  outbox.abandon();
  assert.equal(outbox.count("start"), 1);
  assert.deepEqual(seqs(outbox.restart()), [["start", 1, 2]]);
});

test("a new session: everything again with new numbers, and the newest flow before it", () => {
  const outbox = new Outbox();
  outbox.put("flows", '"n":"old"}', ROOM);
  outbox.put("start", '"n":1}', ROOM);
  outbox.writeNew();
  outbox.taken(1);
  outbox.put("flows", '"n":"newer"}', ROOM);
  outbox.put("start", '"n":2}', ROOM);
  const first = { type: "flows", rest: '"n":"newest"}' };
  assert.deepEqual(seqs(outbox.restart(first)), [["flows", 1, "newest"], ["start", 2, 1], ["start", 3, 2]]);
  assert.equal(outbox.count("flows"), 1);
});
