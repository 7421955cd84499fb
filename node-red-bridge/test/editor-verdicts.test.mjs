// What a report of the checker becomes in the editor.

import assert from "node:assert/strict";
import test from "node:test";
import { bounded, explained, inLines, plain, verdictsOf, wireKey } from "../editor-build/editor/checks-verdicts.mjs";
import { mapOf } from "../editor-build/editor/flow.mjs";

const words = { from: (name) => `from ${name}:`, more: (count) => `${count} more`, labelOf: () => undefined };
const flow = [
  { id: "inject", type: "inject", name: "Ask", wires: [["model"]] },
  { id: "agent", type: "agent-core", wires: [["model", "second"], ["tool"], ["debug", "j"], [], []] },
  { id: "other", type: "agent-core", wires: [["model"], [], [], [], []] },
  { id: "model", type: "openai-model" },
  { id: "second", type: "openai-model" },
  { id: "tool", type: "flow-tool", wires: [["other"]] },
  { id: "debug", type: "debug" },
  { id: "j", type: "junction", wires: [["debug"]] },
];
const map = mapOf(flow);
const end = (id) => (id === undefined ? null : { id, type: flow.find((node) => id.endsWith(node.id)).type, name: "" });
const problem = (code, node, target, rest = {}) => ({
  code,
  severity: "error",
  message: `says ${code}`,
  help: "Mend it.",
  node: end(node),
  port: null,
  target: end(target),
  pointer: null,
  file: null,
  expected: null,
  found: null,
  ...rest,
});
const verdicts = (...diagnostics) => verdictsOf({ ok: false, diagnostics }, map, words);

test("a refused wire is told at both ends, and at the wire as it is drawn", () => {
  const found = verdicts(problem("EDGE_KIND_MISMATCH", "inject", "model", { port: 0, pointer: "/wires/0/0" }));
  assert.deepEqual(found.sentences.get("model"), [{ sentence: "from inject:\nsays EDGE_KIND_MISMATCH\nMend it." }]);
  assert.deepEqual(found.sentences.get("inject"), [{ sentence: "says EDGE_KIND_MISMATCH\nMend it." }]);
  assert.deepEqual([...found.refused], [[wireKey("inject", 0, "model"), "says EDGE_KIND_MISMATCH\nMend it."]]);
});

test("a wire through a junction is marked where it begins", () => {
  const found = verdicts(problem("RESULT_ON_MEMORY_PORT", "agent", "debug", { port: 2, pointer: "/wires/2/1" }));
  assert.deepEqual([...found.refused.keys()], [wireKey("agent", 2, "j")]);
});

test("without a place the wire is found by its ends; a place that is not there marks nothing", () => {
  const found = verdicts(
    problem("MODEL_MULTIPLE", "agent", "second", { port: 0 }),
    problem("EDGE_SELF", "agent", "agent", { port: 4, pointer: "/wires/4/7" }),
    problem("TOOL_NAME_DUPLICATE", "agent", "tool"),
  );
  assert.deepEqual([...found.refused.keys()], [wireKey("agent", 0, "second")]);
  assert.equal(found.sentences.has("second"), false);
});

test("warnings refuse nothing; what is only worth knowing is not told", () => {
  const found = verdicts(
    problem("TOOL_WITHOUT_SCHEMA", "tool", undefined, { severity: "warning", pointer: "/wires/0/0" }),
    problem("NEEDS_NODE_RED", "debug", undefined, { severity: "info" }),
  );
  assert.equal(found.sentences.size, 0);
  assert.equal(found.refused.size, 0);
  assert.deepEqual(found.problemsOf("tool").map(({ code }) => code), ["TOOL_WITHOUT_SCHEMA"]);
  assert.deepEqual(found.problemsOf("debug"), []);
});

test("an agent has the problems of what it binds, but not those of another agent's wires", () => {
  const found = verdicts(
    problem("TOOL_WITHOUT_SCHEMA", "tool", undefined, { severity: "warning" }),
    problem("EDGE_KIND_MISMATCH", "inject", "model", { port: 0, pointer: "/wires/0/0" }),
    problem("EDGE_FOREIGN_REPLY", "tool", "other", { port: 0, pointer: "/wires/0/0" }),
  );
  const codes = (id) => found.problemsOfAgent(id).map(({ code }) => code);
  assert.deepEqual(codes("agent"), ["EDGE_KIND_MISMATCH", "TOOL_WITHOUT_SCHEMA"]);
  assert.deepEqual(codes("other"), ["EDGE_FOREIGN_REPLY", "EDGE_KIND_MISMATCH"]);
});

test("what stands in a subflow is told once, however many instances there are", () => {
  const found = verdicts(...["i1-agent", "i2-agent", "i3-i1-agent"].map((id) => problem("MODEL_MISSING", id, undefined, { port: 0 })));
  const said = found.sentences.get("agent").map(({ sentence }) => sentence);
  assert.deepEqual(bounded(said, words), ["says MODEL_MISSING\n    Mend it."]);
  assert.deepEqual(found.problemsOfAgent("agent").map(({ node }) => node.id), ["agent"], "it is called as the editor calls it");
});

test("a node without a name is called as the canvas calls it, and nothing else is", () => {
  const nodes = [
    { id: "34fe", type: "agent-core", name: "" },
    { id: "e52a", type: "openai-model" },
    { id: "ecd0", type: "openai-model", name: "Sol" },
    { id: "taken", type: "debug" },
    { id: "b", type: "debug", name: "taken" },
  ];
  const labels = { "34fe": "agent core", e52a: "a `model`" };
  const asked = [];
  const labelOf = (id) => (asked.push(id), labels[id] ?? "wrong");
  const said = (message, help = "", node = "34fe") => {
    const told = problem("MODEL_MULTIPLE", undefined, undefined, { message, help });
    told.node = { id: node, type: "agent-core", name: "" };
    const found = verdictsOf({ ok: false, diagnostics: [told] }, mapOf(nodes), { ...words, labelOf });
    return [found.problemsOfAgent("34fe")[0], found.sentences.get("34fe")[0].sentence];
  };
  const [{ message, help, node }, sentence] = said("`34fe` binds `e52a`, `Sol`, 34fe", "Unwire `e52a`.");
  assert.equal(message, "`agent core` binds `a 'model'`, `Sol`, 34fe");
  assert.equal(help, "Unwire `a 'model'`.");
  assert.equal(sentence, `${message}\n${help}`);
  assert.equal(node.name, "agent core", "the tab Errors and the wire's other end say it, too");
  // Inside subflows by the way there; a sign in a name misleads nobody; what may be a name, or is nothing's, stays.
  assert.equal(said("`i1-i2-34fe` and `e52a`", "", "i1-i2-34fe")[0].message, "`agent core` and `a 'model'`");
  assert.equal(said("`odd`name` binds `e52a`")[0].message, "`odd`name` binds `a 'model'`");
  for (const same of ["`taken`", "`ecd0`", "`nowhere`", "`` `", `\`${"i-".repeat(1_000)}e52a\``]) {
    assert.equal(said(same)[0].message, same);
  }
  assert.deepEqual([...new Set(asked)].sort(), ["34fe", "e52a"]);
});

test("a property that is wrong is named, so that it is not told twice", () => {
  const of = (code, pointer) => verdicts(problem(code, "agent", undefined, { pointer })).sentences.get("agent")[0].property;
  assert.equal(of("CONFIG_INVALID", "/stopConditions/0/value"), "stopConditions");
  assert.equal(of("CONFIG_INVALID", null), undefined);
  assert.equal(of("CONFIG_INVALID", "/a~1b"), undefined);
  assert.equal(of("MODEL_MISSING", "/wires/0"), undefined);
});

test("a problem of the whole flow is the reason why nothing is checked", () => {
  const { unusable } = verdicts(problem("FLOW_TOO_LARGE", undefined, undefined));
  assert.equal(unusable, "says FLOW_TOO_LARGE. Mend it.");
});

test("texts are short, in lines, and turn nothing around", () => {
  assert.equal(plain("a\n\tb\u202Ec\u2066d\u0000e\\n f"), "a b\uFFFDc\uFFFDd e\\n\u00A0f");
  const said = (message, help = "") => explained(problem("EDGE_SELF", "agent", undefined, { message, help }));
  assert.deepEqual(said("x".repeat(1_000_000), "y".repeat(1_000_000)).map(({ length }) => length), [301, 301]);
  assert.ok(said(`${"x".repeat(299)}😀`)[0].isWellFormed());
  assert.deepEqual(inLines(`${"word ".repeat(40)}${"y".repeat(200)}`).split("\n").filter((line) => line.trim().length > 100), []);
  assert.deepEqual(bounded(["a", "a", "b", "c", "d", "e", "f", "g"], words), ["a", "b", "c", "4 more"]);
});

test("what the checker left out is counted", () => {
  const report = { ok: false, diagnostics: [], omitted: { EDGE_SELF: 3, MODEL_MISSING: 4 } };
  assert.equal(verdictsOf(report, map, words).omitted, 7);
});
