// Which tools an agent uses, by the wires of the running nodes.

import assert from "node:assert/strict";
import test from "node:test";
import { usesTool } from "../dist/bound-tools.js";
import { FakeNode, fakeRed } from "./kit/red.mjs";

const NODES = [
  ["plain", "function", [["ag"]]],
  ["flow-tool", "flow-tool", [["bend"]]],
  ["bend", "junction", [["round", "back"]]],
  ["round", "junction", [["bend", null, "nowhere"]]],
  ["back", "junction", [["ag"]]],
  ["out", "link out", [["in"]]],
  ["in", "link in", [["far", "round"]]],
  ["far", "function", [["further"]]],
  ["further", "function", [[]]],
  ["instance", "subflow:s", [["instance-inner"]]],
  ["instance-inner", "function", [[]]],
];

const RED = fakeRed(NODES.map(([id, type, wires]) => new FakeNode(id, type, wires)));
const uses = (tool, { wires = [], named, z = "tab" } = {}) => {
  const agent = Object.assign(new FakeNode("ag", "agent-core", [["far"], wires, ["far"], ["far"], []]), { z });
  return usesTool(RED, agent, named, tool);
};

test("uses a tool at its tool port, also behind junctions, links and a subflow input", () => {
  assert.equal(uses("plain", { wires: [null, "plain"] }), true);
  assert.equal(uses("far", { wires: ["out"] }), true);
  assert.equal(uses("instance-inner", { wires: ["instance"] }), true);
  // Only up to the first node that handles messages, and only by the tool port.
  assert.equal(uses("further", { wires: ["out"] }), false);
  assert.equal(uses("far"), false);
});

test("uses a tool that its property names, with ids inside its subflow", () => {
  assert.equal(uses("far", { named: ["other", "far"] }), true);
  assert.equal(uses("instance-inner", { named: ["inner"], z: "instance" }), true);
  assert.equal(uses("instance-inner", { named: ["inner"] }), false);
  for (const named of ["far", { 0: "far" }, [null, 1, {}], undefined]) {
    assert.equal(uses("far", { named }), false);
  }
});

test("uses a tool that has a wire to it, if the type is a tool", () => {
  assert.equal(uses("flow-tool"), true);
  // A message of another node starts a run.
  assert.equal(uses("plain"), false);
  assert.equal(uses("gone"), false);
});

test("an agent without an output for tools uses those with a wire to it, and named ones", () => {
  const agent = (wires) => new FakeNode("ag", "ai-agent", wires);
  assert.equal(usesTool(RED, agent([[], []]), undefined, "flow-tool"), true);
  assert.equal(usesTool(RED, agent([[], []]), ["far"], "far"), true);
  // Its second output is the stream.
  assert.equal(usesTool(RED, agent([[], ["far"]]), undefined, "far"), false);
});
