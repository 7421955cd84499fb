// What is kept of errors at agents: the newest, and not too many.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ErrorBook } from "../dist/errors.js";

function book(bounds = {}) {
  let now = 0;
  const errors = new ErrorBook({ perAgent: 3, agents: 2, length: 10, ...bounds }, () => (now += 1));
  return { errors, codes: (agent) => errors.of(agent).map(({ code }) => code) };
}

test("the newest come first, each with its time; the oldest of an agent make room", () => {
  const { errors, codes } = book();
  for (const code of ["A", "B", "C", "D"]) {
    errors.note("agent", { code, message: code.toLowerCase() });
  }
  assert.deepEqual(codes("agent"), ["D", "C", "B"]);
  assert.deepEqual(errors.of("agent")[0], { at: 4, code: "D", message: "d" });
  assert.deepEqual(errors.of("other"), []);
  assert.deepEqual(errors.of("__proto__"), []);
});

test("of too many agents the one that was well for the longest is forgotten", () => {
  const { errors, codes } = book();
  for (const agent of ["a", "b", "a", "c"]) {
    errors.note(agent, { code: agent.toUpperCase(), message: "x" });
  }
  assert.deepEqual(["a", "b", "c"].map(codes), [["A", "A"], [], ["C"]]);
  errors.forget("a");
  assert.deepEqual(codes("a"), []);
});

test("texts are cut, and have no half characters", () => {
  const { errors } = book();
  errors.note("agent", { code: "C".repeat(1_000), message: "x".repeat(1_000) });
  errors.note("agent", { code: "C", message: `12345678\u{1f600}${"x".repeat(10)}` });
  const [second, first] = errors.of("agent");
  assert.deepEqual([first.code.length, first.message], [100, "xxxxxxxxx…"]);
  assert.deepEqual([second.message, second.message.isWellFormed()], ["12345678\ufffd…", true]);
});
