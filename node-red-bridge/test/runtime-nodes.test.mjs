// Which nodes of a flow belong to a runtime: its agents, and what they use.

import assert from "node:assert/strict";
import test from "node:test";
import { FlowTooLarge } from "../dist/flow-graph.js";
import { snapshotFlow } from "../dist/flows.js";
import { nodesOfRuntime } from "../dist/runtime-nodes.js";
import { fakeRed } from "./kit/red.mjs";

const runtime = (id, more) => ({ id, type: "redflow-runtime", ...more });
const model = (id, more) => ({ id, type: "openai-model", z: "t", wires: [[]], ...more });
const tool = (id, more) => ({ id, type: "http-request-tool", z: "t", wires: [[]], ...more });
const core = (id, of, wires = [], more = {}) => ({ id, type: "agent-core", z: "t", runtime: of, wires: [0, 1, 2, 3, 4].map((port) => wires[port] ?? []), ...more });
const ai = (id, of, more = {}) => ({ id, type: "ai-agent", z: "t", runtime: of, wires: [[], []], ...more });
const tab = { id: "t", type: "tab" };
const both = [tab, runtime("A"), runtime("B")];
const instance = (id, of, wires, more) => ({ id, type: `subflow:${of}`, z: "t", wires, ...more });
const subflow = (id, inputs, outputs, more) => ({
  ...{ id, type: "subflow", in: [{ wires: inputs.map((to) => ({ id: to })) }] },
  ...{ out: outputs.map((from) => ({ wires: [from].flat().map((end) => ({ id: end, port: 0 })) })), ...more },
});

/** What the agents of the runtimes A and B use. */
function used(...flow) {
  return ["A", "B"].map((id) => [...nodesOfRuntime(flow, id).services].sort().join(" "));
}

// SECURITY: runtime-credentials
test("a runtime has what its own agents use, by wires and by properties", () => {
  const rows = [
    ["wires of ports", [core("a", "A", [["m1"], ["w1"], ["mem1"]]), core("b", "B", [["m2"]]), model("m1"), model("m2"), tool("w1"), { id: "mem1", type: "redis-memory", z: "t", wires: [[]] }], ["m1 mem1 w1", "m2"]],
    ["wires to the input", [ai("a", "A"), ai("b", "B"), model("m1", { wires: [["a"]] }), tool("w", { wires: [["a", "b"]] })], ["m1 w", "w"]],
    ["properties", [ai("a", "A", { model: "m1", memory: "mem", tools: ["w"], fallbackModels: ["m2"] }), model("m1"), model("m2"), model("m3"), tool("w"), { id: "mem", type: "window-memory", z: "t" }], ["m1 m2 mem w", ""]],
    ["options", [ai("a", "A", { model: " ", options: { model: "m1", memory: "none" } }), model("m1")], ["m1", ""]],
    ["a service of both", [core("a", "A", [["m"]]), core("b", "B", [["m"]]), model("m")], ["m", "m"]],
    ["a service that no agent uses", [core("a", "A"), model("m", { keyNode: "k" }), { id: "k", type: "openai-key" }, tool("w")], ["", ""]],
    ["a key node of both, and a model's own", [core("a", "A", [["m1"]]), core("b", "B", [["m2"]]), model("m1", { keyNode: "k" }), model("m2", { keyNode: "k" }), model("m3", { keyNode: "k3" }), { id: "k", type: "openai-key" }, { id: "k3", type: "openai-key" }], ["k m1", "k m2"]],
    ["a key node of another provider", [core("a", "A", [["m1"]]), model("m1", { keyNode: "k" }), { id: "k", type: "anthropic-key" }], ["m1", ""]],
    [
      "services that services name",
      [core("a", "A", [["m1"], ["kb", "find"], ["long"]]), model("m1"), model("m2", { keyNode: "k2" }), { id: "k", type: "openai-key" }, { id: "k2", type: "openai-key" }, { id: "kb", type: "knowledge-base-tool", keyNode: "k", z: "t" }]
        .concat([{ id: "long", type: "long-memory", shortMemory: "sum", z: "t" }, { id: "sum", type: "summary-memory", shortMemory: "red", model: "m2", z: "t" }])
        .concat([{ id: "red", type: "redis-memory", z: "t" }, { id: "find", type: "memory-tool", memory: "other", z: "t" }, { id: "other", type: "long-memory", z: "t" }, { id: "unused", type: "long-memory", z: "t" }]),
      ["find k k2 kb long m1 m2 other red sum", ""],
    ],
    ["a reply to an agent that has a model", [core("a", "A", [["m1"]]), core("b", "B", [["m2"]]), model("m1", { wires: [["a", "b"]] }), model("m2")], ["m1", "m2"]],
    ["a reply that binds", [core("a", "A", [[]]), model("m1", { wires: [["a"]] })], ["m1", ""]],
    ["types of other palettes", [core("a", "A", [["m"], ["w"]]), { id: "m", type: "model.mine", z: "t" }, { id: "w", type: "tool.mine", z: "t" }, { id: "mcp", type: "mcp-client", z: "t", wires: [["a"]] }], ["m w", ""]],
    ["an MCP client", [ai("b", "B"), { id: "mcp", type: "mcp-client", z: "t", wires: [["b"]] }], ["", "mcp"]],
    ["a service of the wrong kind", [core("a", "A", [["w"], ["m"]], { memory: "m" }), model("m"), tool("w")], ["", ""]],
    ["ids without a node", [ai("a", "A", { model: "gone", tools: ["gone", 1, null], memory: {} })], ["", ""]],
  ];
  for (const [what, flow, expected] of rows) {
    assert.deepEqual(used(...both.concat(flow)), expected, what);
  }
});

// SECURITY: runtime-credentials
test("follows junctions, links and subflows as the checker does", () => {
  const junction = (id, to) => ({ id, type: "junction", z: "t", wires: [to] });
  const out = (id, links, more) => ({ id, type: "link out", z: "t", links, wires: [], ...more });
  const into = (id, to, links = [], more = {}) => ({ id, type: "link in", z: "t", links, wires: [to], ...more });
  const inside = (node) => ({ ...node, z: "s" });
  const rows = [
    ["junctions in a circle", [core("a", "A", [["j"]]), junction("j", ["j2", "m1"]), junction("j2", ["j", "m2"]), model("m1"), model("m2")], ["m1 m2", ""]],
    ["a link out names the link in", [core("a", "A", [["o"]]), out("o", ["i"]), into("i", ["m1"]), model("m1")], ["m1", ""]],
    ["only the link in names the link out", [core("a", "A", [["o"]]), out("o", []), into("i", ["m1"], ["o"]), model("m1")], ["m1", ""]],
    ["a returning link leads nowhere", [core("a", "A", [["o"]]), out("o", ["i"], { mode: "return" }), into("i", ["m1"], ["o"]), model("m1")], ["", ""]],
    ["a data node ends a search", [core("a", "A", [["f"]]), { id: "f", type: "function", z: "t", wires: [["m1"]] }, model("m1")], ["", ""]],
    ["an agent outside, a model inside", [core("a", "A", [["i1"]]), instance("i1", "s", [[]]), subflow("s", ["m"], []), inside(model("m"))], ["m", ""]],
    ["an agent inside, a model outside", [subflow("s", [], ["a"]), inside(core("a", "A")), instance("i1", "s", [["m"]]), model("m")], ["m", ""]],
    ["an agent and a model inside", [subflow("s", [], []), inside(core("a", "B", [["m"]])), inside(model("m")), instance("i1", "s", [])], ["", "m"]],
    ["a subflow without an instance", [subflow("s", [], []), inside(core("a", "A", [["m"]])), inside(model("m"))], ["", ""]],
    [
      "an instance for each runtime: only their own wires",
      [subflow("s", ["j"], ["j", "s"]), { id: "j", type: "junction", z: "s", wires: [[]] }]
        .concat([core("a", "A", [["i1"]]), instance("i1", "s", [["m1"], ["m2"]]), core("b", "B", [["i2"]]), instance("i2", "s", [["m3"], []])])
        .concat(["m1", "m2", "m3"].map((id) => model(id))),
      ["m1 m2", "m3"],
    ],
    [
      "subflows in subflows",
      [subflow("s", [], ["deep"]), { id: "deep", type: "subflow:s2", z: "s", wires: [[]] }, subflow("s2", [], ["a"]), { ...core("a", "A"), z: "s2" }, instance("i1", "s", [["m"]]), model("m")],
      ["m", ""],
    ],
    ["a subflow in itself", [subflow("s", [], ["a"]), { id: "again", type: "subflow:s", z: "s", wires: [[]] }, inside(core("a", "A")), instance("i1", "s", [["m"]]), model("m")], ["m", ""]],
    [
      "variables of the instances",
      [subflow("s", [], [], { env: [{ name: "RT", value: "A", type: "str" }, { name: "M", value: "m1", type: "str" }] }), inside(ai("a", "${RT}", { model: "$(M)" }))]
        .concat([instance("i1", "s", []), instance("i2", "s", [], { env: [{ name: "RT", value: "B" }, { name: "M", value: "OUTER", type: "env" }] })])
        .concat([model("m1"), model("m2"), { id: "g", type: "global-config", env: [{ name: "OUTER", value: "m2", type: "str" }] }]),
      ["m1", "m2"],
    ],
    [
      "variables of groups and tabs",
      [ai("a", "A", { g: "g1", tools: "${TOOLS}", model: "${M}", memory: "${X}" }), { id: "g1", type: "group", z: "t", g: "g2", env: [{ name: "M", value: "M", type: "env" }, { name: "X", value: "X", type: "cred" }] }]
        .concat([{ id: "g2", type: "group", z: "t", env: [{ name: "M", value: "m1", type: "str" }] }, { id: "g3", type: "global-config", env: [{ name: "TOOLS", value: '["w"]', type: "json" }] }])
        .concat([model("m1"), tool("w")]),
      ["m1 w", ""],
    ],
  ];
  for (const [what, flow, expected] of rows) {
    assert.deepEqual(used(...both.concat(flow)), expected, what);
  }
});

// SECURITY: runtime-credentials
test("disabled nodes use nothing, and a runtime that does not run has nothing", () => {
  const flow = (agent, more = {}) => [core("a", agent, [["m"]], more), model("m")];
  assert.deepEqual(used(...both, ...flow("A")), ["m", ""]);
  assert.deepEqual(used(...both, ...flow("A", { d: true })), ["", ""]);
  assert.deepEqual(used({ ...tab, disabled: true }, runtime("A"), runtime("B"), ...flow("A")), ["", ""]);
  assert.deepEqual(used(...both, core("a", "A", [["m"]]), model("m", { d: true })), ["", ""]);
  // An agent that names no runtime has the only one.
  assert.deepEqual(used(...both, ...flow("")), ["", ""]);
  assert.deepEqual(used(tab, runtime("A"), ...flow("")), ["m", ""]);
  assert.deepEqual(used(tab, runtime("A"), runtime("B", { d: true }), ...flow(undefined)), ["m", ""]);
  assert.deepEqual(used(tab, runtime("A"), { id: "off", type: "tab", disabled: true }, runtime("B", { z: "off" }), ...flow("")), ["m", ""]);
  // An agent whose runtime is gone or off belongs to no other one.
  assert.deepEqual(used(tab, runtime("A"), ...flow("B")), ["", ""]);
  assert.deepEqual(used(tab, runtime("A"), runtime("B", { d: true }), ...flow("B")), ["", ""]);
});

// SECURITY: runtime-credentials
test("each sidecar receives its own credentials, and the agents of others as disabled", () => {
  const flow = [...both, core("a", "A", [["m1"], ["both"]]), core("b", "B", [["m2"], ["both"]]), core("none", "", [["m3"]])];
  const services = [...["m1", "m2", "m3"].map((id) => model(id)), tool("both")];
  const RED = fakeRed([], [...flow, ...services]);
  RED.nodes.getCredentials = (id) => ({ apiKey: `key of ${id}`, token: "of a runtime" });
  const sent = (id) => {
    const { rest, own, revision } = snapshotFlow(RED, id, "s");
    const { flows, credentials } = JSON.parse(`{${rest}`);
    return { keys: Object.keys(credentials), off: flows.filter(({ d }) => d === true).map(({ id }) => id), foreign: [...own.foreign].sort(), revision, rest };
  };
  const [a, b, gone] = ["A", "B", "gone"].map(sent);
  assert.deepEqual([a.keys, a.off, a.foreign], [["m1", "both"], ["b", "none"], ["m2", "m3"]]);
  assert.deepEqual([b.keys, b.off, b.foreign], [["m2", "both"], ["a", "none"], ["m1", "m3"]]);
  assert.deepEqual([gone.keys, gone.off], [[], ["a", "b", "none"]]);
  assert.ok(!a.rest.includes("key of m2") && !a.rest.includes("key of m3"));
  assert.notEqual(a.revision, b.revision);
});

// SECURITY: runtime-credentials
test("no credential leaves a flow that is larger than the sidecar takes", () => {
  // Each subflow has two instances of the next one.
  const nested = Array.from({ length: 18 }, (_, level) => [
    subflow(`s${level}`, [], []),
    ...["x", "y"].map((name) => instance(`${name}${level}`, `s${level + 1}`, [], { z: `s${level}` })),
  ]);
  const flow = [tab, runtime("A"), core("a", "A", [["m"]]), model("m"), ...nested.flat(), instance("i", "s0", [])];
  assert.throws(() => nodesOfRuntime(flow, "A"), FlowTooLarge);
  const RED = fakeRed([], flow);
  RED.nodes.getCredentials = () => ({ apiKey: "s3cret" });
  const { rest, warnings } = snapshotFlow(RED, "A", "s");
  assert.ok(!rest.includes("s3cret"));
  assert.match(warnings.join(), /too many nodes or wires/);
});
