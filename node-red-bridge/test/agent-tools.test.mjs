// The tools of an agent as the dialog tells them, and the list of allowed ones as it is saved.

import assert from "node:assert/strict";
import test from "node:test";
import { translator } from "./kit/words.mjs";

globalThis.RED = { _: translator("en-US") };
const { allowedVerdict, boundVerdict, describeTool, namesOf, notAllowed, notConnected, withName } = await import(
  "../editor-build/editor/agent-tools.mjs"
);
const { stopsVerdict } = await import("../editor-build/editor/agent-general.mjs");

const told = (node) => {
  const { name, nameVerdict, effect, effectAssumed, hasSchema } = describeTool(node);
  return [name, nameVerdict === true, effect, effectAssumed, hasSchema];
};

test("a tool's name, effect and schema are those the checker finds", () => {
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
    assert.deepEqual(told(node), expected, JSON.stringify(node));
  }
});

test("names are ticked and unticked without moving the others", () => {
  assert.deepEqual(namesOf(["b", "a", "b", "", " ", 1, null]), ["b", "a"]);
  assert.deepEqual(namesOf("b"), []);
  assert.deepEqual(withName(["b", "a"], "c", true), ["b", "a", "c"]);
  assert.deepEqual(withName(["b", "a"], "b", true), ["b", "a"]);
  assert.deepEqual(withName(["b", "a"], "b", false), ["a"]);
});

test("what is allowed and not connected, and what is connected and not allowed", () => {
  const tools = [
    { type: "flow-tool", toolName: "a" },
    { type: "flow-tool", toolName: "b" },
    { type: "flow-tool", toolName: "b" },
    { type: "function", name: "no name" },
  ].map(describeTool);
  assert.deepEqual(notConnected(["a", "x"], tools), ["x"]);
  // What no model can call is not offered.
  assert.deepEqual(notAllowed(["a", "x"], tools), ["b"]);
});

test("lists that the sidecar would refuse are refused with a sentence that quotes nothing", () => {
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
