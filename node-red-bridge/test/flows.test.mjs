// The flow that the sidecar receives; the warnings about types that another module has too.

import assert from "node:assert/strict";
import test from "node:test";
import { snapshotFlow } from "../dist/flows.js";
import { publicDefinition } from "../dist/node-definition.js";
import { explainShared, registerNode, sharedTypes } from "../dist/register.js";
import { fakeRed } from "./kit/red.mjs";

// SECURITY: bridge-credentials
test("sends all properties of our nodes and only wiring properties of others", () => {
  const agent = { id: "a", type: "agent-core", z: "t", maxIterations: 5, custom: { deep: 1 }, wires: [[]] };
  assert.deepEqual(publicDefinition({ ...agent, credentials: { apiKey: "secret" }, _flow: 1 }), agent);
  assert.deepEqual(publicDefinition({ id: "m", type: "model.mine", url: "u" }), { id: "m", type: "model.mine", url: "u" });
  const code = { id: "f", type: "function", z: "t", x: 1, y: 2, wires: [["a"]], func: "secret", libs: [], toolName: "n" };
  assert.deepEqual(publicDefinition(code), { id: "f", type: "function", z: "t", x: 1, y: 2, wires: [["a"]], toolName: "n" });
  const runtime = { id: "r", type: "redflow-runtime", url: "http://secret", binary: "b" };
  assert.deepEqual(publicDefinition(runtime), { id: "r", type: "redflow-runtime" });
});

// SECURITY: bridge-credentials
test("sends credentials of models, memories, tools and key nodes only, and hashes them into the revision", () => {
  const types = ["openai-model", "redis-memory", "tool.x", "openai-key", "agent-core", "http request"];
  const names = {
    "agent-core": { model: "openai-model", memory: "redis-memory", tools: ["tool.x", "http request"] },
    "openai-model": { keyNode: "openai-key" },
  };
  const definitions = [{ id: "rt", type: "redflow-runtime" }, ...types.map((type) => ({ id: type, type, ...names[type] }))];
  const snapshot = (credentials, secret = "s") => {
    const RED = fakeRed([], definitions);
    RED.nodes.getCredentials = (id) => credentials[id];
    const { revision, rest } = snapshotFlow(RED, "rt", secret);
    return { revision, ...JSON.parse(`{${rest}`) };
  };
  const all = Object.fromEntries(definitions.map(({ id }) => [id, { key: "k", port: 1, none: "", odd: {} }]));
  const given = snapshot(all);
  assert.deepEqual(Object.keys(given.credentials), ["openai-model", "redis-memory", "tool.x", "openai-key"]);
  assert.deepEqual(given.credentials["openai-model"], { key: "k", port: "1" });
  assert.equal(given.flows.length, 7);
  assert.equal(snapshot(all).revision, given.revision);
  assert.notEqual(snapshot({}).revision, given.revision);
  assert.notEqual(snapshot(all, "other").revision, given.revision);
});

test("replaces half characters in nodes, and leaves out such credentials with a warning", () => {
  const cut = "half \ud83d";
  const node = { id: "m", type: "openai-model", name: cut, [cut]: [{ [cut]: cut }], options: { a: "\udc00" } };
  const agent = { id: "a", type: "agent-core", model: "m", fallbackModels: ["w"] };
  const definitions = [{ id: "c", type: "comment", name: cut }, node, { id: "w", type: "openai-model" }, { id: "rt", type: "redflow-runtime" }, agent];
  const RED = fakeRed([], definitions);
  const secret = "sec\ud800ret";
  RED.nodes.getCredentials = (id) => (id === "m" ? { apiKey: secret, fine: "k", [cut]: "k" } : { apiKey: "k" });
  const { rest, warnings, tooDeep } = snapshotFlow(RED, "rt", "s");
  assert.doesNotMatch(rest, /\\ud[89a-f]/i);
  const sent = JSON.parse(`{${rest}`);
  const replaced = "half \ufffd";
  assert.equal(sent.flows[0].name, replaced);
  const model = { id: "m", type: "openai-model", name: replaced, [replaced]: [{ [replaced]: replaced }], options: { a: "\ufffd" } };
  assert.deepEqual(sent.flows[1], model);
  assert.deepEqual(sent.credentials, { m: { fine: "k" }, w: { apiKey: "k" } });
  assert.equal(warnings.length, 2);
  assert.match(warnings[0], /^openai-model "half \ufffd" \(m\): the credential `apiKey` contains half a character/);
  assert.ok(!warnings.join().includes("ret"));
  assert.equal(tooDeep, undefined);
});

test("names our node that nests too deep, and leaves out deep properties of others", () => {
  const deep = (levels) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);
  const snapshot = (more) => snapshotFlow(fakeRed([], [{ id: "a", type: "agent-core", name: "Home", ...more }]), "rt", "s");
  const fits = snapshot({ custom: deep(117) });
  assert.equal(fits.tooDeep, undefined);
  assert.equal(JSON.parse(`{${fits.rest}`).flows[0].custom.length, 1);
  const refused = snapshot({ custom: deep(118) });
  const why = 'agent-core "Home" (a) nests deeper than 118 levels in `custom`; make it flatter and deploy';
  assert.equal(refused.tooDeep.text, why);
  assert.notEqual(refused.revision, snapshot({}).revision, "a flow without the property has another revision");
  snapshot({ custom: deep(100_000) });
  const other = snapshotFlow(fakeRed([], [{ id: "g", type: "group", env: deep(118), name: "G" }]), "rt", "s");
  assert.equal(other.tooDeep, undefined);
  assert.deepEqual(JSON.parse(`{${other.rest}`).flows, [{ id: "g", type: "group", name: "G" }]);
});

const set = (types, enabled = true) => ({ types, enabled });
const MINE = "@redflow/node-red-bridge";

test("finds the types of two modules, whichever Node-RED uses", () => {
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
  assert.match(explainShared(shared[1]), /Node-RED uses ours/);
  for (const odd of [undefined, null, 1, { [MINE]: null }, { [MINE]: { nodes: { a: 1 } } }]) {
    assert.deepEqual(sharedTypes(odd, () => true), []);
  }
});

test("does not touch a type of another module or its credentials", () => {
  const registered = new Map([["openai-model", { credentials: { theirs: 1 } }], ["agent-core", {}]]);
  const RED = {
    nodes: {
      // As Node-RED 4 and 5 do.
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
