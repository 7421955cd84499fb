// The tools of an agent in the dialog, and the list of allowed tools as it is saved.

import assert from "node:assert/strict";
import test from "node:test";
import { translator } from "./kit/texts.mjs";

globalThis.RED = { _: translator("en-US") };
const { addName, allowedVerdict, boundVerdict, describeTool, describeTools, namesOf, notAllowed, notConnected, removeName } = await import(
  "../editor-build/editor/agent-tools.mjs"
);
const { stopsVerdict } = await import("../editor-build/editor/stop-conditions.mjs");

const summarize = (node) => {
  const { name, nameVerdict, effect, effectAssumed, hasSchema } = describeTool(node);
  return [name, nameVerdict === true, effect, effectAssumed, hasSchema];
};

test("name, effect and schema of a tool follow the checker's rules", () => {
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
    [{ type: "knowledge-base-tool", collection: "manuals" }, ["knowledge_base_search", true, "read", false, true]],
  ];
  for (const [node, expected] of rows) {
    assert.deepEqual(summarize(node), expected, JSON.stringify(node));
  }
});

test("adds and removes names without moving the others", () => {
  assert.deepEqual(namesOf(["b", "a", "b", "", " ", 1, null]), ["b", "a"]);
  assert.deepEqual(namesOf("b"), []);
  assert.deepEqual(addName(["b", "a"], "c"), ["b", "a", "c"]);
  assert.deepEqual(addName(["b", "a"], "b"), ["b", "a"]);
  assert.deepEqual(removeName(["b", "a"], "b"), ["a"]);
});

test("finds allowed tools without a connection, and connected tools that are not allowed", () => {
  const tools = [
    { type: "flow-tool", toolName: "a" },
    { type: "flow-tool", toolName: "b" },
    { type: "flow-tool", toolName: "b" },
    { type: "function", name: "no name" },
  ].map(describeTool);
  assert.deepEqual(notConnected(["a", "x"], tools), ["x"]);
  // A tool that no model can call is not offered.
  assert.deepEqual(notAllowed(["a", "x"], tools), ["b"]);
});

const OPERATIONS = { ledger: [{ name: "create", effect: "at_most_once" }, { name: "list", effect: "read" }, { name: "odd", effect: "often" }] };

test("a registry-tool, a memory-tool and a node with operations are several tools", () => {
  const names = (node) => describeTools(node, OPERATIONS).map(({ name, nameVerdict, effect }) => [name, nameVerdict === true, effect]);
  assert.deepEqual(names({ type: "registry-tool", ids: ["weather.*", "a b", 5] }), [["weather.*", true, undefined], ["a b", false, undefined]]);
  assert.deepEqual(names({ type: "registry-tool", ids: "weather.*" }), []);
  const memory = [["memory_search", true, "read"], ["memory_get", true, "read"], ["memory_list", true, "read"], ["memory_put", true, "idempotent"]];
  assert.deepEqual(names({ type: "memory-tool", name: "Tickets", toolName: " ", memory: "long" }), memory);
  assert.equal(names({ type: "memory-tool", toolName: "tickets" })[3][0], "tickets_put");
  const ledger = [["ledger.*", true, undefined], ["ledger.create", true, "at_most_once"], ["ledger.list", true, "read"], ["ledger.odd", true, "at_most_once"]];
  assert.deepEqual(names({ type: "ledger", name: "Books" }), ledger);
  assert.deepEqual(names({ type: "ledger", toolName: "books" }), ledger, "the name of the tools changes, not their ids");
  const odd = describeTools({ type: "my ledger" }, { "my ledger": [{ name: "add", effect: "" }] });
  assert.deepEqual(odd.map(({ name }) => name), ["my-ledger.*", "my-ledger.add"]);
  // An mcp-client has the tools that it names, else all of its server.
  assert.deepEqual(names({ type: "mcp-client", server: "files", include: "read_file, list" }), [["mcp.files.read_file", true, undefined], ["mcp.files.list", true, undefined]]);
  for (const include of [undefined, "", [], "read_*", ["a", "b/c"]]) {
    assert.deepEqual(names({ type: "mcp-client", server: " files ", include }), [["mcp.files.*", true, undefined]], JSON.stringify(include));
  }
  assert.deepEqual(names({ type: "mcp-client", url: "https://x.example/mcp" }), []);
  // Without operations, and for our own types, a node is one tool.
  assert.deepEqual(names({ type: "function", name: "f" }), [["f", true, "at_most_once"]]);
  assert.deepEqual(describeTools({ type: "constructor", name: "f" }, {}).length, 1);
  assert.equal(describeTools({ type: "flow-tool", toolName: "t" }, { "flow-tool": OPERATIONS.ledger })[0].name, "t");
});

test("patterns, ids and the names of models allow tools", () => {
  const tools = [...describeTools({ type: "ledger" }, OPERATIONS), ...describeTools({ type: "registry-tool", ids: ["weather.*"] }, {})];
  assert.deepEqual(notConnected(["ledger.*", "ledger__create", "weather.current", "*", "ledgers.*", "other.x"], tools), ["ledgers.*", "other.x"]);
  assert.deepEqual(notAllowed([], tools), ["ledger.*", "weather.*"]);
  assert.deepEqual(notAllowed(["weather.*", "ledger.*"], tools), []);
  assert.deepEqual(notAllowed(["weather.*", "ledger.create"], tools), ["ledger.*"]);
});

test("the boxes of a registry-tool change the list of ids, and a text that is no list stays", async () => {
  const { bindable, idsOf, withId } = await import("../editor-build/editor/registry-tool.mjs");
  assert.deepEqual(JSON.parse(withId('["a.b"]', "c.d", true)), ["a.b", "c.d"]);
  assert.deepEqual(JSON.parse(withId('["a.b", "c.d"]', "a.b", false)), ["c.d"]);
  assert.deepEqual(JSON.parse(withId("", "a.b", true)), ["a.b"]);
  assert.deepEqual([idsOf("[1]"), idsOf("{nonsense"), idsOf(" ")], [undefined, undefined, []]);
  const tool = (id, origin = "manifest") => ({ id, origin, title: "", description: "", state: "ready" });
  const tools = [tool("b.x"), tool("a.x"), tool("b.x"), tool("flow.x", "flow")];
  assert.deepEqual(bindable(tools).map(({ id }) => id), ["a.x", "b.x"]);
});

test("rejects lists that the sidecar would refuse, without quoting them", () => {
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
