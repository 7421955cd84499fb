// The operations of installed node packages: whose they are, their bounds, and what happens to strangers' files.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "node:test";
import { snapshotFlow } from "../dist/flows.js";
import { NODE_TOOLS_LIMITS, readNodeTools } from "../dist/node-tools.js";
import { fakeRed } from "./kit/red.mjs";

const operation = (more = {}) => ({ description: "Adds.", inputSchema: { type: "object" }, ...more });

/** A Node-RED with packages: for each its package.json and the types that it registers. */
function withPackages(t, packages, definitions = []) {
  const folder = mkdtempSync(join(tmpdir(), "redflow-tools-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const modules = Object.entries(packages).map(([name, { types, manifest, text, enabled = true, at = "lib/nodes/node.js" }]) => {
    const file = join(folder, "node_modules", name, at);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(join(folder, "node_modules", name, "package.json"), text ?? JSON.stringify({ name, ...manifest }));
    return [name, { name, nodes: { set: { types, enabled, file } } }];
  });
  const RED = fakeRed([], definitions);
  RED.settings.get = (key) => (key === "nodes" ? Object.fromEntries(modules) : undefined);
  RED.folder = folder;
  return RED;
}

/** The operations of some types, and the warnings. */
function read(RED, types, limits = {}) {
  const warnings = [];
  const tools = readNodeTools(RED, new Set(types), (text) => warnings.push(text), { ...NODE_TOOLS_LIMITS, ...limits });
  return { tools, warnings };
}

const tools = (value) => ({ redflow: { tools: value } });

test("reads the operations of the types that the flow uses, each from its own package", (t) => {
  const RED = withPackages(t, {
    "@mine/ledger": { types: ["ledger", "ledger-in"], manifest: tools({ ledger: { add: operation() }, "ledger-in": { get: operation() } }) },
    plain: { types: ["plain"], manifest: {} },
    off: { types: ["off"], enabled: false, manifest: tools({ off: { add: operation() } }) },
    other: { types: ["other"], manifest: tools({ other: { add: operation() }, ledger: { steal: operation() } }) },
  });
  assert.deepEqual(read(RED, ["ledger", "plain", "off"]), { tools: { ledger: { add: operation() } }, warnings: [] });
  const both = read(RED, ["ledger", "ledger-in", "other"]);
  assert.deepEqual(Object.keys(both.tools), ["ledger", "ledger-in", "other"]);
  assert.deepEqual(both.tools.ledger, { add: operation() });
  assert.deepEqual(both.warnings, ["other: `ledger` in `redflow.tools` is not a type of this package; it is left out"]);
});

test("leaves the shape of an operation to the sidecar", (t) => {
  const odd = { add: 5, get: { description: 7, unknown: [null] } };
  const RED = withPackages(t, { p: { types: ["a", "b"], manifest: tools({ a: odd, b: "no" }) } });
  const { tools: found, warnings } = read(RED, ["a", "b"]);
  assert.deepEqual(found, { a: odd });
  assert.deepEqual(warnings, ["p: `b` in `redflow.tools` must be an object of operations; it is left out"]);
});

test("finds the package.json with the name of the package, not that of a folder in between", (t) => {
  const RED = withPackages(t, { p: { types: ["a"], manifest: tools({ a: { add: operation() } }) } });
  writeFileSync(join(RED.folder, "node_modules", "p", "lib", "package.json"), '{"type":"commonjs"}');
  // Above `node_modules` is the package.json of the user.
  writeFileSync(join(RED.folder, "package.json"), JSON.stringify({ name: "p", ...tools({ a: { wrong: operation() } }) }));
  assert.deepEqual(read(RED, ["a"]).tools, { a: { add: operation() } });
  rmSync(join(RED.folder, "node_modules", "p", "package.json"));
  assert.deepEqual(read(RED, ["a"]), { tools: {}, warnings: [] });
});

test("leaves out what is too large, too deep or no JSON, with a warning, and keeps the rest", (t) => {
  const deep = (levels) => `{"name":"bad","redflow":{"tools":{"bad":{"add":{"deep":${"[".repeat(levels)}${"]".repeat(levels)}}}}}}`;
  const text = (manifest) => JSON.stringify({ name: "bad", ...manifest });
  const good = { types: ["good"], manifest: tools({ good: { add: operation() } }) };
  const add = (more) => tools({ bad: { add: operation(more) } });
  const rows = [
    [text(add({ title: "x".repeat(70_000) })), /^bad: `redflow\.tools` of its package\.json is left out: it has 70\d+ bytes; the limit is 65536$/],
    [text({ readme: "x".repeat(1_100_000), ...add() }), /the file has 11\d+ bytes; the limit is 1048576/],
    [deep(64), /it nests too deep/],
    [deep(100_000), /it nests too deep/],
    [text(tools([1])), /it must be an object of node types/],
    ["{nonsense", /JSON/],
  ];
  for (const [written, why] of rows) {
    const RED = withPackages(t, { bad: { types: ["bad"], text: written }, good });
    const { tools: found, warnings } = read(RED, ["bad", "good"]);
    assert.deepEqual(found, { good: { add: operation() } });
    assert.equal(warnings.length, 1);
    assert.match(warnings[0], why);
  }
  const fits = withPackages(t, { bad: { types: ["bad"], text: deep(63) } });
  assert.deepEqual(read(fits, ["bad"]).warnings, []);
});

test("bounds the operations and the bytes of all packages", (t) => {
  const many = (count) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`op${at}`, {}]));
  const packages = Object.fromEntries(
    ["a", "b", "c"].map((name, at) => [name, { types: [name], manifest: tools({ [name]: many([300, 300, 212][at]) }) }]),
  );
  const RED = withPackages(t, packages);
  const { tools: found, warnings } = read(RED, ["a", "b", "c"]);
  assert.deepEqual(Object.keys(found), ["a", "c"], "512 in all");
  assert.deepEqual(warnings, [
    "b: the operations of b are left out: all packages together may have 512 operations and 1048576 bytes",
  ]);
  assert.deepEqual(Object.keys(read(RED, ["a", "b", "c"], { totalBytes: 4_000 }).tools), ["a"]);
});

test("works if Node-RED has no list of modules or a strange one", () => {
  const RED = fakeRed([], [{ id: "l", type: "ledger" }]);
  for (const list of [undefined, null, 5, [], { p: 1 }, { p: { nodes: { a: { types: ["ledger"], file: 7 } } } }, { p: { nodes: { a: { types: ["ledger"], file: "/nowhere/p/a.js" } } } }]) {
    RED.settings.get = () => list;
    assert.deepEqual(read(RED, ["ledger"]), { tools: {}, warnings: [] });
  }
  RED.settings.available = () => {
    throw new Error("not now");
  };
  assert.deepEqual(read(RED, ["ledger"]), { tools: {}, warnings: [] });
  assert.ok(!snapshotFlow(RED, "rt", "s").rest.includes("nodeTools"));
});

test("sends the operations with the flow, without half characters, and in its revision", (t) => {
  const half = '{"name":"p","redflow":{"tools":{"ledger":{"add":{"description":"half \\ud83d"}}}}}';
  const RED = withPackages(t, { p: { types: ["ledger"], text: half } }, [{ id: "l", type: "ledger" }]);
  const { rest, revision } = snapshotFlow(RED, "rt", "s");
  assert.deepEqual(JSON.parse(`{${rest}`).nodeTools, { ledger: { add: { description: "half \ufffd" } } });
  RED.settings.get = () => undefined;
  const without = snapshotFlow(RED, "rt", "s");
  assert.notEqual(without.revision, revision);
  assert.ok(!without.rest.includes("nodeTools"));
});
