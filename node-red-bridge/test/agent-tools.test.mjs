// The tools of an agent in the dialog, and the list of allowed tools as it is saved.

import assert from "node:assert/strict";
import test from "node:test";
import { translator } from "./kit/texts.mjs";

globalThis.RED = { _: translator("en-US") };
const { addName, allowedVerdict, boundVerdict, describeTool, namesOf, notAllowed, notConnected, removeName } = await import(
  "../editor-build/editor/agent-tools.mjs"
);
const { stopsVerdict } = await import("../editor-build/editor/stop-conditions.mjs");

const summarize = (node) => {
  const { name, nameVerdict, effect, effectAssumed, hasSchema } = describeTool(node);
  return [name, nameVerdict === true, effect, effectAssumed, hasSchema];
};

test("name, effect and schema of a tool follow the checker's rules", () => {
  const schema = { type: "object", properties: {} };
  const rows = [
    [{ type: "calculator-tool", name: "Sums", toolName: "" }, ["calculator", true, "read", false, true]],
    [{ type: "calculator-tool", toolName: "sum", effect: "at_most_once" }, ["sum", true, "at_most_once", false, true]],
    [{ type: "flow-tool", toolName: "look_up", effect: "read", inputSchema: schema }, ["look_up", true, "read", false, true]],
    [{ type: "flow-tool", name: "look_up", effect: "often", inputSchema: " " }, ["look_up", true, "at_most_once", true, false]],
    [{ type: "flow-tool", toolName: "${NAME}", inputSchema: "{}" }, ["${NAME}", true, "at_most_once", true, true]],
    [{ type: "function", name: "two words" }, ["two words", false, "at_most_once", true, false]],
    [{ type: "function", name: { toString: "x" }, inputSchema: null }, ["", false, "at_most_once", true, false]],
    [{ type: "http-request-tool" }, ["http_request", true, "at_most_once", true, true]],
  ];
  for (const [node, expected] of rows) {
    assert.deepEqual(summarize(node), expected, JSON.stringify(node));
  }
});

test("adds and removes names without moving the others", () => {
  assert.deepEqual(namesOf(["b", "a", "b", "", " ", 1, null]), ["b", "a"]);
  assert.deepEqual(namesOf("b"), []);
  assert.deepEqual(addName(["b", "a"], "c"), ["b", "a", "c"]);
  assert.deepEqual(addName(["b", "a"], "b"), ["b", "a"]);
  assert.deepEqual(removeName(["b", "a"], "b"), ["a"]);
});

test("finds allowed tools without a connection, and connected tools that are not allowed", () => {
  const tools = [
    { type: "flow-tool", toolName: "a" },
    { type: "flow-tool", toolName: "b" },
    { type: "flow-tool", toolName: "b" },
    { type: "function", name: "no name" },
  ].map(describeTool);
  assert.deepEqual(notConnected(["a", "x"], tools), ["x"]);
  // A tool that no model can call is not offered.
  assert.deepEqual(notAllowed(["a", "x"], tools), ["b"]);
});

test("rejects lists that the sidecar would refuse, without quoting them", () => {
  assert.equal(allowedVerdict(["a"]), true);
  for (const wrong of [undefined, [], [" "], "a", {}, ["a", 1], ["<b>", 1]]) {
    assert.match(String(allowedVerdict(wrong)), /^[^<]+\.$/, JSON.stringify(wrong));
  }
  assert.equal(boundVerdict(undefined), true);
  assert.equal(boundVerdict(["id"]), true);
  assert.match(boundVerdict("<b>"), /^[^<]+\.$/);
  assert.equal(stopsVerdict(undefined), true);
  assert.equal(stopsVerdict([{ type: "final_answer" }, { type: "iteration_limit", value: 3 }]), true);
  assert.equal(stopsVerdict([{ type: "confidence_threshold", value: "${SURE}" }]), true);
  for (const wrong of ["x", [null], [1], [{}], [{ type: "<b>" }], [{ type: "iteration_limit" }], [{ type: "iteration_limit", value: 0 }]]) {
    assert.match(String(stopsVerdict(wrong)), /^[^<]+\.$/, JSON.stringify(wrong));
  }
});
