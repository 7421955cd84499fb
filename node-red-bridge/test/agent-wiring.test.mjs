// The nodes at an agent's wires in the editor, followed as the sidecar's checker does.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { namedByService } from "../dist/agent-ports.js";
import { catalogueEntry, reachableNodes, roleOf, agentInstances, toolsOf, wiredServices, withServices } from "../editor-build/editor/agent-wiring.mjs";
import { candidates, moveUp, namedCandidates, withLabels } from "../editor-build/editor/agent-services.mjs";

/** The editor's model of a flow, from exported nodes. */
function flow(...exported) {
  const nodes = exported.map((node) => ({ _def: { defaults: {} }, ...node }));
  const node = (id) => nodes.find((one) => one.id === id);
  const wiring = {
    next: (from, port) => (from.wires ?? []).filter((_, index) => port === undefined || index === port).flat().map(node),
    previous: (to) => nodes.filter(({ wires = [] }) => wires.flat().includes(to.id)),
    node,
    all: (type) => nodes.filter((one) => one.type === type),
    inside: (subflow) => node(subflow).in.map(node),
    isOff: ({ d, z }) => d === true || node(z)?.disabled === true,
  };
  return { node, wiring, ids: (found) => found.map(({ id }) => id) };
}

const agent = (tools, more = {}) => ({ id: "agent", type: "agent-core", z: "tab", wires: [["model"], tools, ["memory"], [], []], ...more });
const tool = (id, more = {}) => ({ id, type: "flow-tool", z: "tab", wires: [[]], ...more });
const rest = [{ id: "model", type: "scripted-model", wires: [[]] }, { id: "memory", type: "buffer-memory", wires: [[]] }];

test("roles come from the catalogue; other types are data nodes", () => {
  assert.equal(roleOf({ type: "flow-tool" }), "tool");
  assert.equal(roleOf({ type: "tool.mine" }), "tool");
  assert.equal(roleOf({ type: "model.azure.openai" }), "model");
  assert.equal(catalogueEntry("model.azure.openai").type, "model.azure.openai");
  assert.equal(roleOf({ type: "function" }), "data");
});

test("finds tools behind junctions and link nodes, each once, in the order of the wires", () => {
  const { node, wiring, ids } = flow(
    agent(["a", "j1", "out", "a"]),
    tool("a"),
    { id: "j1", type: "junction", wires: [["j2", "b"]] },
    // Junctions in a circle.
    { id: "j2", type: "junction", wires: [["j1", "c"]] },
    tool("b"),
    tool("c"),
    { id: "out", type: "link out", mode: "link", links: ["in1"], wires: [] },
    { id: "back", type: "link out", mode: "return", links: ["in3"], wires: [] },
    { id: "in1", type: "link in", links: [], wires: [["d"]] },
    // Only one end names the other.
    { id: "in2", type: "link in", links: ["out"], wires: [["e"]] },
    { id: "in3", type: "link in", links: ["back"], wires: [["f"]] },
    ...["d", "e", "f"].map((id) => tool(id)),
    ...rest,
  );
  assert.deepEqual(ids(toolsOf(node("agent"), wiring)), ["a", "c", "b", "d", "e"]);
  assert.deepEqual(ids(withServices(node("agent"), wiring)), ["agent", "model", "a", "c", "b", "d", "e", "memory"]);
});

test("ignores disabled nodes and nodes that are not tools", () => {
  const { node, wiring, ids } = flow(
    { id: "off", type: "tab", disabled: true },
    agent(["a", "b", "c", "model", "fn", "agent"]),
    tool("a", { d: true }),
    tool("b", { z: "off" }),
    { id: "c", type: "calculator-tool", wires: [[]] },
    { id: "fn", type: "function", wires: [["agent"]] },
    ...rest,
  );
  assert.deepEqual(ids(toolsOf(node("agent"), wiring)), ["c", "fn"]);
});

test("reaches a tool inside a subflow through its instance", () => {
  const { node, wiring, ids } = flow(
    { id: "sub", type: "subflow", in: ["inner"] },
    tool("inner", { z: "sub" }),
    { id: "instance", type: "subflow:sub", wires: [] },
    agent(["instance"]),
    ...rest,
  );
  assert.deepEqual(ids(reachableNodes(node("agent"), 1, wiring)), ["inner"]);
});

test("uses named tools, and replying tools only if there are no others", () => {
  const bound = (tools, named) =>
    flow(agent(tools, { tools: named }), tool("a"), tool("b", { wires: [["j"]] }), { id: "j", type: "junction", wires: [["agent"]] }, ...rest);
  const found = ({ node, wiring, ids }) => ids(toolsOf(node("agent"), wiring));
  assert.deepEqual(found(bound(["a"], ["b", "a", "gone"])), ["a", "b"]);
  assert.deepEqual(found(bound(["a"])), ["a"]);
  assert.deepEqual(found(bound([])), ["b"]);
});

test("visits each junction once", () => {
  const many = Array.from({ length: 300 }, (_, index) => `j${index}`);
  const hub = many.map((id) => ({ id, type: "junction", wires: [[...many, "a"]] }));
  const { node, wiring, ids } = flow(agent(many), tool("a"), ...hub, ...rest);
  let passed = 0;
  const counting = { ...wiring, next: (...of) => ((passed += 1), wiring.next(...of)) };
  assert.deepEqual(ids(toolsOf(node("agent"), counting)), ["a"]);
  assert.equal(passed, 1 + many.length);
});

test("an agent inside subflows has one id for each instance", () => {
  const { node, wiring } = flow(
    ...["inner", "outer", "loop", "unused"].map((id) => ({ id, type: "subflow", in: [] })),
    agent([], { z: "inner" }),
    { id: "i1", type: "subflow:inner", z: "tab" },
    { id: "i2", type: "subflow:inner", z: "outer" },
    { id: "o1", type: "subflow:outer", z: "tab" },
    { id: "l1", type: "subflow:loop", z: "loop" },
  );
  const isSubflow = (id) => node(id)?.type === "subflow";
  const instances = (z) => agentInstances({ ...node("agent"), z }, wiring, isSubflow);
  assert.deepEqual(instances("inner").map(({ id }) => id), ["i1-agent", "o1-i2-agent"]);
  assert.deepEqual(instances("inner")[1].within.map(({ id }) => id), ["o1", "i2"]);
  assert.deepEqual(instances("tab"), [{ id: "agent", within: [] }]);
  assert.deepEqual(instances("loop"), []);
  assert.deepEqual(instances("unused"), []);
});

test("an agent without outputs for services binds those with a wire to its input, and named ones", () => {
  const service = (id, type, to = "ai") => ({ id, type, z: "tab", wires: [[to]] });
  const { node, wiring, ids } = flow(
    // The wires of its outputs bind nothing.
    { id: "ai", type: "ai-agent", z: "tab", wires: [["t4"], ["t4"]], model: "m1", tools: ["t3", "gone"], fallbackModels: ["m2", "off"] },
    service("m1", "scripted-model"),
    service("mem", "buffer-memory", "bend"),
    service("t1", "calculator-tool", "bend"),
    service("t2", "flow-tool"),
    { id: "bend", type: "junction", wires: [["ai"]] },
    { id: "question", type: "inject", wires: [["ai"]] },
    { id: "m2", type: "openai-model", wires: [[]] },
    { id: "off", type: "openai-model", d: true, wires: [[]] },
    tool("t3"),
    tool("t4"),
  );
  assert.deepEqual(ids(wiredServices(node("ai"), wiring)), ["m1", "t2", "mem", "t1"]);
  assert.deepEqual(ids(toolsOf(node("ai"), wiring)), ["t2", "t1", "t3"]);
  assert.deepEqual(ids(withServices(node("ai"), wiring)), ["ai", "m1", "t2", "mem", "t1", "t3", "m2"]);
});

test("an agent also has the services that its memory and its tools name", () => {
  const { node, wiring, ids } = flow(
    { id: "ai", type: "ai-agent", z: "tab", wires: [[], []], model: "own", memory: "long", tools: ["search"] },
    { id: "own", type: "openai-model", model: "cheap", wires: [[]] },
    { id: "long", type: "long-memory", shortMemory: "sums", model: "cheap", wires: [[]] },
    { id: "sums", type: "summary-memory", shortMemory: "turns", model: "gone", wires: [[]] },
    { id: "turns", type: "buffer-memory", model: "off", wires: [[]] },
    { id: "cheap", type: "scripted-model", wires: [[]] },
    { id: "search", type: "memory-tool", memory: "other", wires: [[]] },
    // Two memories that name each other.
    { id: "other", type: "long-memory", shortMemory: "circle", model: "off", wires: [[]] },
    { id: "circle", type: "summary-memory", shortMemory: "other", wires: [[]] },
    { id: "off", type: "scripted-model", d: true, wires: [[]] },
  );
  assert.deepEqual(ids(withServices(node("ai"), wiring)), ["ai", "own", "long", "search", "sums", "cheap", "other", "turns", "circle"]);
});

test("offers the nodes of a role in the agent's own subflow, or on tabs", () => {
  const nodes = [
    { id: "m1", type: "scripted-model", z: "tab" },
    { id: "m2", type: "openai-model", z: "other" },
    { id: "m3", type: "ollama-model", z: "sub" },
    { id: "t", type: "flow-tool", z: "tab" },
  ];
  const ids = (z, role) => candidates({ id: "a", type: "ai-agent", z }, role, nodes, (id) => id === "sub").map(({ id }) => id);
  assert.deepEqual([ids("tab", "model"), ids("sub", "model"), ids("tab", "tool")], [["m1", "m2"], ["m3"], ["t"]]);
});

test("a service offers the nodes that it may name, and no circle of memories", () => {
  const nodes = [
    { id: "turns", type: "buffer-memory", z: "tab" },
    { id: "other", type: "redis-memory", z: "elsewhere" },
    { id: "inner", type: "buffer-memory", z: "sub" },
    { id: "sums", type: "summary-memory", z: "tab", shortMemory: "turns" },
    { id: "long", type: "long-memory", z: "tab", shortMemory: "sums" },
    { id: "outer", type: "long-memory", z: "tab" },
    { id: "back", type: "long-memory", z: "tab", shortMemory: "long" },
    { id: "model", type: "scripted-model", z: "tab" },
    { id: "tool", type: "memory-tool", z: "tab" },
  ];
  const node = (id) => nodes.find((one) => one.id === id);
  const ids = (id, role) => namedCandidates(node(id), role, nodes, (z) => z === "sub").map((one) => one.id);
  assert.deepEqual(ids("outer", "memory"), ["turns", "other", "sums", "long", "back"]);
  // The memory `back` names it already.
  assert.deepEqual(ids("long", "memory"), ["turns", "other", "sums", "outer"]);
  // Only short memories keep summaries.
  assert.deepEqual(ids("sums", "memory"), ["turns", "other"]);
  assert.deepEqual(ids("sums", "model"), ["model"]);
  assert.deepEqual(ids("tool", "memory"), ["long", "outer", "back"]);
});

test("knows every property of a service that names another service", () => {
  const declared = JSON.parse(readFileSync(new URL("../../schemas/nodes.json", import.meta.url), "utf8"));
  const naming = declared.filter(({ role }) => role !== "agent").flatMap(({ type, properties }) => {
    const names = properties.filter(({ kind }) => kind === "service").map(({ name }) => name);
    return names.length > 0 ? [[type, names]] : [];
  });
  assert.ok(naming.length >= 3);
  for (const [type, names] of naming) {
    const node = Object.fromEntries([["type", type], ...names.map((name) => [name, `id of ${name}`])]);
    assert.deepEqual(namedByService(node), names.map((name) => `id of ${name}`), type);
  }
  assert.deepEqual(namedByService({ type: "openai-model", model: "gpt-5" }), []);
});

test("tells equal labels apart, and moves an entry up", () => {
  const nodes = ["a", "b", "c"].map((id) => ({ id }));
  assert.deepEqual(withLabels(nodes, ({ id }) => (id === "c" ? "C" : "same")).map(({ label }) => label), ["same (a)", "same (b)", "C"]);
  assert.deepEqual(moveUp(["a", "b", "c"], 2), ["a", "c", "b"]);
  for (const at of [0, 3, -1]) {
    assert.deepEqual(moveUp(["a", "b", "c"], at), ["a", "b", "c"]);
  }
});
