// What the sidecar is told of a flow, and what not; and what is said of types that another module has too.

import assert from "node:assert/strict";
import test from "node:test";
import { tellFlows } from "../dist/flows.js";
import { explainShared, registerNode, sharedTypes } from "../dist/register.js";
import { toldOf } from "../dist/told.js";
import { fakeRed } from "./kit/red.mjs";

test("our nodes are told whole, of others only what wires need", () => {
  const agent = { id: "a", type: "agent-core", z: "t", maxIterations: 5, custom: { deep: 1 }, wires: [[]] };
  assert.deepEqual(toldOf({ ...agent, credentials: { apiKey: "secret" }, _flow: 1 }), agent);
  assert.deepEqual(toldOf({ id: "m", type: "model.mine", url: "u" }), { id: "m", type: "model.mine", url: "u" });
  const code = { id: "f", type: "function", z: "t", x: 1, y: 2, wires: [["a"]], func: "secret", libs: [], toolName: "n" };
  assert.deepEqual(toldOf(code), { id: "f", type: "function", z: "t", x: 1, y: 2, wires: [["a"]], toolName: "n" });
  const runtime = { id: "r", type: "redflow-runtime", url: "http://secret", binary: "b" };
  assert.deepEqual(toldOf(runtime), { id: "r", type: "redflow-runtime" });
});

test("credentials go with models, memories and tools only, and change the revision without showing in it", () => {
  const types = ["openai-model", "redis-memory", "tool.x", "agent-core", "http request"];
  const definitions = types.map((type) => ({ id: type, type }));
  const told = (credentials, secret = "s") => {
    const RED = fakeRed([], definitions);
    RED.nodes.getCredentials = (id) => credentials[id];
    const { revision, rest } = tellFlows(RED, secret);
    return { revision, ...JSON.parse(`{${rest}`) };
  };
  const all = Object.fromEntries(definitions.map(({ id }) => [id, { key: "k", port: 1, none: "", odd: {} }]));
  const given = told(all);
  assert.deepEqual(Object.keys(given.credentials), ["openai-model", "redis-memory", "tool.x"]);
  assert.deepEqual(given.credentials["openai-model"], { key: "k", port: "1" });
  assert.equal(given.flows.length, 5);
  assert.equal(told(all).revision, given.revision);
  assert.notEqual(told({}).revision, given.revision);
  assert.notEqual(told(all, "other").revision, given.revision);
});

test("half characters are mended, in what is told and not in credentials: those are left out, and said by name", () => {
  const cut = "half \ud83d";
  const node = { id: "m", type: "openai-model", name: cut, [cut]: [{ [cut]: cut }], options: { a: "\udc00" } };
  const RED = fakeRed([], [{ id: "c", type: "comment", name: cut }, node, { id: "w", type: "openai-model" }]);
  const secret = "sec\ud800ret";
  RED.nodes.getCredentials = (id) => (id === "m" ? { apiKey: secret, fine: "k", [cut]: "k" } : { apiKey: "k" });
  const { rest, warnings, tooDeep } = tellFlows(RED, "s");
  assert.doesNotMatch(rest, /\\ud[89a-f]/i);
  const told = JSON.parse(`{${rest}`);
  const mended = "half \ufffd";
  assert.equal(told.flows[0].name, mended);
  const model = { id: "m", type: "openai-model", name: mended, [mended]: [{ [mended]: mended }], options: { a: "\ufffd" } };
  assert.deepEqual(told.flows[1], model);
  assert.deepEqual(told.credentials, { m: { fine: "k" }, w: { apiKey: "k" } });
  assert.equal(warnings.length, 2);
  assert.match(warnings[0], /^openai-model "half \ufffd" \(m\): the credential `apiKey` has half a character/);
  assert.ok(!warnings.join().includes("ret"));
  assert.equal(tooDeep, undefined);
});

test("a node of ours that nests too deep is named; what is too deep in others is left out", () => {
  const deep = (levels) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);
  const tell = (more) => tellFlows(fakeRed([], [{ id: "a", type: "agent-core", name: "Home", ...more }]), "s");
  const fits = tell({ custom: deep(117) });
  assert.equal(fits.tooDeep, undefined);
  assert.equal(JSON.parse(`{${fits.rest}`).flows[0].custom.length, 1);
  const refused = tell({ custom: deep(118) });
  const why = 'agent-core "Home" (a) nests deeper than 118 levels in `custom`; make it flatter and deploy';
  assert.equal(refused.tooDeep, why);
  assert.notEqual(refused.revision, tell({}).revision, "mended by leaving it out it is another flow");
  tell({ custom: deep(100_000) });
  const other = tellFlows(fakeRed([], [{ id: "g", type: "group", env: deep(118), name: "G" }]), "s");
  assert.equal(other.tooDeep, undefined);
  assert.deepEqual(JSON.parse(`{${other.rest}`).flows, [{ id: "g", type: "group", name: "G" }]);
});

const set = (types, enabled = true) => ({ types, enabled });
const MINE = "@redflow/node-red-bridge";

test("types of two modules are found, whoever has them", () => {
  const list = {
    [MINE]: {
      nodes: { a: set(["agent-core"]), b: set(["openai-model"]), c: set(["chat-node"], false), d: set(["flow-tool"]) },
    },
    "their-plugin": {
      nodes: { x: set(["agent-core", "openai-model", "chat-node", "their-own"]), y: set(["flow-tool"], false) },
    },
  };
  const shared = sharedTypes(list, (type) => type === "openai-model");
  assert.deepEqual(shared, [
    { type: "agent-core", other: "their-plugin", ours: false },
    { type: "openai-model", other: "their-plugin", ours: true },
  ]);
  const aside = /^agent-core: the module their-plugin has registered this type already.*stands aside/;
  assert.match(explainShared(shared[0]), aside);
  assert.match(explainShared(shared[1]), /Node-RED took ours/);
  for (const odd of [undefined, null, 1, { [MINE]: null }, { [MINE]: { nodes: { a: 1 } } }]) {
    assert.deepEqual(sharedTypes(odd, () => true), []);
  }
});

test("a type that is taken is left alone: no throw, and its credentials stay as they are", () => {
  const registered = new Map([["openai-model", { credentials: { theirs: 1 } }], ["agent-core", {}]]);
  const RED = {
    nodes: {
      // As both lines of Node-RED do it.
      createNode(node, { type }) {
        if (registered.get(type)?.credentials !== undefined) {
          node.credentials = {};
        }
      },
      registerType(type, _, options) {
        const before = registered.get(type);
        registered.set(type, { ...before, ...options });
        if (before !== undefined) {
          throw new Error(`${type} already registered`);
        }
      },
    },
  };
  assert.equal(registerNode(RED, "openai-model", () => {}, { credentials: { ours: 1 } }), false);
  assert.deepEqual(registered.get("openai-model"), { credentials: { theirs: 1 } });
  assert.equal(registerNode(RED, "agent-core", () => {}), false);
  assert.equal(registerNode(RED, "flow-tool", () => {}), true);
});
