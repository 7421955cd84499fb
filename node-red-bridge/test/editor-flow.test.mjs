// What the checker is asked about, and where in the flow its answers belong.

import assert from "node:assert/strict";
import test from "node:test";
import { askedFlow, mapOf } from "../editor-build/editor/flow.mjs";

const agent = (id, wires = [], rest = {}) => ({ id, type: "agent-core", z: "t", x: 10, y: 20, wires, ...rest });

test("without a node of ours nothing is asked", () => {
  assert.equal(askedFlow([{ id: "t", type: "tab" }, { id: "f", type: "function", func: "secret" }]), undefined);
  assert.equal(askedFlow([{ id: "r", type: "redflow-runtime" }]), undefined);
});

test("what is asked has no code, no settings and no credentials of others, and no places", () => {
  const flow = askedFlow([
    { id: "t", type: "tab", label: "Flow", info: "notes" },
    agent("a", [["m"]], { credentials: { k: "secret" }, runtime: "r2", redflowWires: undefined }),
    { id: "f", type: "function", func: "secret", x: 1, y: 2, wires: [["a"]] },
    { id: "r2", type: "redflow-runtime", url: "http://secret" },
    { id: "r1", type: "redflow-runtime" },
  ]);
  assert.ok(!flow.text.includes("secret"));
  assert.ok(!flow.text.includes("redflowWires"));
  assert.deepEqual(flow.nodes[2], { id: "f", type: "function", x: 0, y: 0, wires: [["a"]] });
  assert.deepEqual(flow.runtimes, ["r2"]);
});

test("moving a node is no change, wiring it is one", () => {
  const text = (node) => askedFlow([node]).text;
  assert.equal(text(agent("a")), text({ ...agent("a"), x: 500, y: 1 }));
  assert.notEqual(text(agent("a")), text(agent("a", [["m"]])));
  // Whether it is on a canvas at all is told.
  const { x: _x, ...config } = agent("a");
  assert.notEqual(text(agent("a")), text(config));
});

test("a node inside a subflow is found by its way, also if ids have dashes", () => {
  const map = mapOf([agent("a"), agent("i-1-a"), { id: "x-y", type: "flow-tool" }]);
  const named = (id, type = "agent-core") => map.idOf({ id, type });
  assert.equal(named("a"), "a");
  assert.equal(named("i-1-a"), "i-1-a");
  assert.equal(named("i-2-a"), "a");
  assert.equal(named("i1-i2-x-y", "flow-tool"), "x-y");
  assert.equal(named("x-y", "agent-core"), undefined);
  assert.equal(named("gone"), undefined);
});

test("what an agent binds is found through junctions and links, whatever loops there are", () => {
  const map = mapOf([
    agent("a", [["j1"], ["out"], [], ["debug"], []]),
    { id: "j1", type: "junction", wires: [["j2", "m"]] },
    { id: "j2", type: "junction", wires: [["j1"]] },
    { id: "m", type: "openai-model", wires: [["elsewhere"]] },
    { id: "out", type: "link out", mode: "link", links: ["in", "gone"] },
    { id: "in", type: "link in", links: ["out"], wires: [["tool"]] },
    { id: "tool", type: "flow-tool", wires: [["debug"]] },
    { id: "debug", type: "debug" },
    { id: "elsewhere", type: "debug" },
  ]);
  assert.deepEqual([...map.boundTo("a")].sort(), ["in", "j1", "j2", "m", "out", "tool"]);
});

test("agents in a subflow that nobody uses are known", () => {
  const nodes = [
    { id: "used", type: "subflow" },
    { id: "nested", type: "subflow" },
    { id: "idle", type: "subflow" },
    { id: "inIdle", type: "subflow" },
    { id: "i1", type: "subflow:used", z: "t" },
    { id: "i2", type: "subflow:nested", z: "used" },
    { id: "i3", type: "subflow:inIdle", z: "idle" },
    { id: "i4", type: "subflow:idle", z: "inIdle" },
    ...["t", "used", "nested", "idle", "inIdle"].map((z) => agent(`in-${z}`, [], { z })),
  ];
  assert.deepEqual([...mapOf(nodes).unused].sort(), ["in-idle", "in-inIdle"]);
});

test("shapes nobody expects are no reason to fail", () => {
  const odd = [{}, { id: 1, type: null, wires: "no" }, agent("a", [[1, null, "m"], "x"]), { id: "j", type: "junction", wires: [null] }];
  const flow = askedFlow(odd);
  assert.equal(flow.nodes.length, odd.length);
  const map = mapOf(odd);
  assert.equal(map.targetOf("a", 0, 2), "m");
  assert.equal(map.targetOf("a", 9, 9), undefined);
  assert.deepEqual([...map.boundTo("a")], []);
});
