// The flow that is sent to the checker, and the map of its nodes and wires.

import assert from "node:assert/strict";
import test from "node:test";
import { flowToCheck as check, createFlowMap } from "../editor-build/editor/flow.mjs";

const flowToCheck = (nodes, credentials = {}) => check(nodes, (id) => credentials[id]);

const agent = (id, wires = [], rest = {}) => ({ id, type: "agent-core", z: "t", x: 10, y: 20, wires, ...rest });

test("sends no flow without one of our nodes", () => {
  assert.equal(flowToCheck([{ id: "t", type: "tab" }, { id: "f", type: "function", func: "secret" }]), undefined);
  assert.equal(flowToCheck([{ id: "r", type: "redflow-runtime" }]), undefined);
});

test("the flow contains no code, settings, credentials or positions of other nodes", () => {
  const flow = flowToCheck([
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

test("says whether a credential is set, as far as the editor knows, and never its value", () => {
  const model = { id: "m", type: "openai-model" };
  const credentials = (known) => flowToCheck([model], { m: known }).nodes[0].credentials;
  assert.equal(credentials(undefined), undefined);
  assert.deepEqual(credentials({ has_apiKey: true }), { apiKey: "__PWRD__" });
  assert.deepEqual(credentials({ _: { apiKey: "secret" }, apiKey: "secret", has_apiKey: true }), { apiKey: "__PWRD__" });
  assert.deepEqual(credentials({ _: {}, apiKey: "", has_apiKey: false }), { apiKey: "" });
  assert.deepEqual(credentials({ user: "secret" }), { user: "__PWRD__" });
  assert.ok(!("credentials" in flowToCheck([model, { id: "f", type: "function" }], { f: { a: "secret" } }).nodes[1]));
});

test("moving a node changes nothing, a new wire does", () => {
  const text = (node) => flowToCheck([node]).text;
  assert.equal(text(agent("a")), text({ ...agent("a"), x: 500, y: 1 }));
  assert.notEqual(text(agent("a")), text(agent("a", [["m"]])));
  // The flow contains whether a node has a position.
  const { x: _x, ...config } = agent("a");
  assert.notEqual(text(agent("a")), text(config));
});

test("finds a node inside a subflow, also if ids contain dashes", () => {
  const map = createFlowMap([agent("a"), agent("i-1-a"), { id: "x-y", type: "flow-tool" }]);
  const idOf = (id, type = "agent-core") => map.idOf({ id, type });
  assert.equal(idOf("a"), "a");
  assert.equal(idOf("i-1-a"), "i-1-a");
  assert.equal(idOf("i-2-a"), "a");
  assert.equal(idOf("i1-i2-x-y", "flow-tool"), "x-y");
  assert.equal(idOf("x-y", "agent-core"), undefined);
  assert.equal(idOf("gone"), undefined);
});

test("finds the services of an agent through junctions, links and loops", () => {
  const map = createFlowMap([
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

test("finds the services that the memory of an agent names", () => {
  const map = createFlowMap([
    agent("a", [["m"], [], ["long"], [], []]),
    { id: "m", type: "openai-model", model: "cheap" },
    { id: "long", type: "long-memory", shortMemory: "turns", model: "gone" },
    { id: "turns", type: "buffer-memory" },
    { id: "cheap", type: "scripted-model" },
  ]);
  assert.deepEqual([...map.boundTo("a")].sort(), ["long", "m", "turns"]);
});

test("finds agents in a subflow without an instance", () => {
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
  assert.deepEqual([...createFlowMap(nodes).unused].sort(), ["in-idle", "in-inIdle"]);
});

test("accepts nodes of unexpected shape", () => {
  const odd = [{}, { id: 1, type: null, wires: "no" }, agent("a", [[1, null, "m"], "x"]), { id: "j", type: "junction", wires: [null] }];
  const flow = flowToCheck(odd);
  assert.equal(flow.nodes.length, odd.length);
  const map = createFlowMap(odd);
  assert.equal(map.targetOf("a", 0, 2), "m");
  assert.equal(map.targetOf("a", 9, 9), undefined);
  assert.deepEqual([...map.boundTo("a")], []);
});

test("finds the services of an agent that binds by its input, and named ones", () => {
  const map = createFlowMap([
    { id: "a", type: "ai-agent", z: "t", wires: [["debug"], ["tool"]], model: "named", tools: ["gone", "t2"], fallbackModels: ["m2"] },
    { id: "m", type: "openai-model", wires: [["j1"]] },
    { id: "j1", type: "junction", wires: [["j2", "a"]] },
    { id: "j2", type: "junction", wires: [["j1"]] },
    { id: "out", type: "link out", mode: "link", links: ["in"] },
    { id: "in", type: "link in", links: ["out"], wires: [["a"]] },
    { id: "memory", type: "buffer-memory", wires: [["out"]] },
    { id: "calc", type: "calculator-tool", wires: [["a"]] },
    ...["inject", "function"].map((type) => ({ id: type, type, wires: [["a"]] })),
    ...["tool", "t2"].map((id) => ({ id, type: "flow-tool", wires: [[]] })),
    ...["named", "m2"].map((id) => ({ id, type: "openai-model", wires: [[]] })),
    { id: "debug", type: "debug" },
  ]);
  assert.deepEqual([...map.boundTo("a")].sort(), ["calc", "in", "j1", "j2", "m", "m2", "memory", "named", "out", "t2"]);
});
