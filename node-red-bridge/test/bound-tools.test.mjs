// Which tools an agent uses, as the nodes that run are wired.

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

test("by its port for tools, also behind junctions, links and the beginning of a subflow", () => {
  assert.equal(uses("plain", { wires: [null, "plain"] }), true);
  assert.equal(uses("far", { wires: ["out"] }), true);
  assert.equal(uses("instance-inner", { wires: ["instance"] }), true);
  // No further than to the first node that does something, and by no other port.
  assert.equal(uses("further", { wires: ["out"] }), false);
  assert.equal(uses("far"), false);
});

test("by a property, whose ids are those of the subflow that it stands in", () => {
  assert.equal(uses("far", { named: ["other", "far"] }), true);
  assert.equal(uses("instance-inner", { named: ["inner"], z: "instance" }), true);
  assert.equal(uses("instance-inner", { named: ["inner"] }), false);
  for (const named of ["far", { 0: "far" }, [null, 1, {}], undefined]) {
    assert.equal(uses("far", { named }), false);
  }
});

test("by a wire from the tool, if that is one by its type", () => {
  assert.equal(uses("flow-tool"), true);
  // What an ordinary node sends to an agent is a question.
  assert.equal(uses("plain"), false);
  assert.equal(uses("gone"), false);
});
