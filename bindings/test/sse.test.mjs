// Parses server-sent events as the standard says, in chunks of any size.

import assert from "node:assert/strict";
import test from "node:test";

import { SseParser } from "../dist/sse.js";

function parse(chunks, limit) {
  const parser = new SseParser(limit);
  return chunks.flatMap((chunk) => parser.push(chunk));
}

const message = (data) => ({ type: "message", data });

test("parses events of every form", () => {
  for (const [text, expected] of [
    ["", []],
    ["\n\n\n", []],
    ["data: a\n\n", [message("a")]],
    ["data:a\n\n", [message("a")]],
    ["data:  a\n\n", [message(" a")]],
    ["data\n\n", [message("")]],
    ["data: a\ndata: b\n\n", [message("a\nb")]],
    ["data: a\r\n\r\ndata: b\r\rdata: c\n\n", [message("a"), message("b"), message("c")]],
    ["id: 7\nevent: x\ndata: a\n\ndata: b\n\n", [{ type: "x", data: "a" }, message("b")]],
    [": a comment\n\n:\n\ndata: a\n\n", [message("a")]],
    ["event: x\n\n", []],
    ["retry: 5\nunknown: 1\ndata: a\n\n", [message("a")]],
    ["\uFEFFdata: a\n\n", [message("a")]],
    ["data: a:b: c\n\n", [message("a:b: c")]],
    // An incomplete event is not an event.
    ["data: a\n", []],
    ["data: a\n\ndata: b", [message("a")]],
  ]) {
    assert.deepEqual(parse([text]), expected, JSON.stringify(text));
  }
});

test("chunks of any size give the same events", () => {
  const text = "id: 1\r\ndata: one\r\n\r\n: still here\n\ndata: tw\ndata: o\n\nevent: x\rdata: three\r\r";
  const whole = parse([text]);
  assert.deepEqual(whole, [message("one"), message("tw\no"), { type: "x", data: "three" }]);
  for (let size = 1; size < text.length; size += 1) {
    const chunks = text.match(new RegExp(`[^]{1,${size}}`, "g"));
    assert.deepEqual(parse(chunks), whole, `chunks of ${size}`);
  }
});

test("rejects an event that is too large, in any form", () => {
  const tooLarge = { code: "MESSAGE_TOO_LARGE", retryable: false };
  assert.throws(() => parse([`data: ${"x".repeat(100)}`], 100), tooLarge);
  assert.throws(() => parse(Array(101).fill("x"), 100), tooLarge);
  assert.throws(() => parse(Array(101).fill("data:\n"), 100), tooLarge);
  assert.throws(() => parse([`: ${"x".repeat(100)}`], 100), tooLarge);
  // Many small events are not too large.
  assert.equal(parse(Array(100).fill("id: 1\ndata: a\n\n"), 20).length, 100);
  assert.equal(parse([...Array(100).fill(": still here\n"), "data: a\n\n"], 20).length, 1);
});
