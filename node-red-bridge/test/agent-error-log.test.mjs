// The log of agent errors: newest first, within limits.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentErrorLog } from "../dist/agent-errors.js";

function errorLog(limits = {}) {
  let now = 0;
  const errors = new AgentErrorLog({ perAgent: 3, agents: 2, length: 10, ...limits }, () => (now += 1));
  return { errors, codes: (agent) => errors.list(agent).map(({ code }) => code) };
}

test("lists the newest errors first and drops the oldest of an agent", () => {
  const { errors, codes } = errorLog();
  for (const code of ["A", "B", "C", "D"]) {
    errors.add("agent", { code, message: code.toLowerCase() });
  }
  assert.deepEqual(codes("agent"), ["D", "C", "B"]);
  assert.deepEqual(errors.list("agent")[0], { at: 4, code: "D", message: "d" });
  assert.deepEqual(errors.list("other"), []);
  assert.deepEqual(errors.list("__proto__"), []);
});

test("drops the agent without a new error for the longest time", () => {
  const { errors, codes } = errorLog();
  for (const agent of ["a", "b", "a", "c"]) {
    errors.add(agent, { code: agent.toUpperCase(), message: "x" });
  }
  assert.deepEqual(["a", "b", "c"].map(codes), [["A", "A"], [], ["C"]]);
  errors.forget("a");
  assert.deepEqual(codes("a"), []);
});

test("cuts texts without half characters", () => {
  const { errors } = errorLog();
  errors.add("agent", { code: "C".repeat(1_000), message: "x".repeat(1_000) });
  errors.add("agent", { code: "C", message: `12345678\u{1f600}${"x".repeat(10)}` });
  const [second, first] = errors.list("agent");
  assert.deepEqual([first.code.length, first.message], [100, "xxxxxxxxx…"]);
  assert.deepEqual([second.message, second.message.isWellFormed()], ["12345678\ufffd…", true]);
});
