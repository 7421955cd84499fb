// Maps a report of the checker to the editor.

import assert from "node:assert/strict";
import test from "node:test";
import { explain, plain, summarize, verdictsOf, wireKey, wrapLines } from "../editor-build/editor/checks-verdicts.mjs";
import { createFlowMap } from "../editor-build/editor/flow.mjs";

const texts = { from: (name) => `from ${name}:`, more: (count) => `${count} more`, labelOf: () => undefined, translate: (phrase, english) => phrase?.key ?? english };
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
const map = createFlowMap(flow);
const end = (id) => (id === undefined ? null : { id, type: flow.find((node) => id.endsWith(node.id)).type, name: "" });
const problem = (code, node, target, rest = {}) => ({
  code,
  severity: "error",
  message: `says ${code}`,
  help: "Fix it.",
  node: end(node),
  port: null,
  target: end(target),
  pointer: null,
  file: null,
  expected: null,
  found: null,
  ...rest,
});
const verdicts = (...diagnostics) => verdictsOf({ ok: false, diagnostics }, map, texts);

test("translates the message and the help of a problem", () => {
  const phrases = { messagePhrase: { key: "was falsch ist" }, helpPhrase: { key: "Was hilft." } };
  const found = verdicts(problem("MODEL_MISSING", "agent", undefined, phrases), problem("MODEL_MISSING", "other"));
  assert.deepEqual(found.sentences.get("agent"), [{ sentence: "was falsch ist\nWas hilft." }]);
  assert.deepEqual(found.problemsOf("agent").map(({ message, help }) => [message, help]), [["was falsch ist", "Was hilft."]]);
  assert.deepEqual(found.sentences.get("other"), [{ sentence: "says MODEL_MISSING\nFix it." }]);
});

test("shows a refused wire at both ends and at the drawn wire", () => {
  const found = verdicts(problem("EDGE_KIND_MISMATCH", "inject", "model", { port: 0, pointer: "/wires/0/0" }));
  assert.deepEqual(found.sentences.get("model"), [{ sentence: "from inject:\nsays EDGE_KIND_MISMATCH\nFix it." }]);
  assert.deepEqual(found.sentences.get("inject"), [{ sentence: "says EDGE_KIND_MISMATCH\nFix it." }]);
  assert.deepEqual([...found.refused], [[wireKey("inject", 0, "model"), "says EDGE_KIND_MISMATCH\nFix it."]]);
});

test("shows a service that keeps an agent from running at both of them", () => {
  const found = verdicts(problem("MODEL_KEY_MISSING", "model", "agent"), problem("MODEL_KEY_MISSING", "model", "other"));
  const sentence = "says MODEL_KEY_MISSING\nFix it.";
  assert.deepEqual(["agent", "other"].map((id) => found.sentences.get(id)), [[{ sentence }], [{ sentence }]]);
  assert.equal(found.sentences.get("model")[0].sentence, sentence);
  assert.deepEqual([found.problemsOf("model").length, found.problemsOfAgent("agent").length, found.refused.size], [1, 1, 0]);
});

test("marks the first wire of a path through a junction", () => {
  const found = verdicts(problem("RESULT_ON_MEMORY_PORT", "agent", "debug", { port: 2, pointer: "/wires/2/1" }));
  assert.deepEqual([...found.refused.keys()], [wireKey("agent", 2, "j")]);
});

test("finds a wire without a pointer by its ends, and ignores an invalid pointer", () => {
  const found = verdicts(
    problem("MODEL_MULTIPLE", "agent", "second", { port: 0 }),
    problem("EDGE_SELF", "agent", "agent", { port: 4, pointer: "/wires/4/7" }),
    problem("TOOL_NAME_DUPLICATE", "agent", "tool"),
  );
  assert.deepEqual([...found.refused.keys()], [wireKey("agent", 0, "second")]);
  assert.equal(found.sentences.has("second"), false);
});

test("warnings refuse no wire, and infos are not shown", () => {
  const found = verdicts(
    problem("TOOL_WITHOUT_SCHEMA", "tool", undefined, { severity: "warning", pointer: "/wires/0/0" }),
    problem("NEEDS_NODE_RED", "debug", undefined, { severity: "info" }),
  );
  assert.equal(found.sentences.size, 0);
  assert.equal(found.refused.size, 0);
  assert.deepEqual(found.problemsOf("tool").map(({ code }) => code), ["TOOL_WITHOUT_SCHEMA"]);
  assert.deepEqual(found.problemsOf("debug"), []);
});

test("an agent has the problems of its services, but not of another agent's wires", () => {
  const found = verdicts(
    problem("TOOL_WITHOUT_SCHEMA", "tool", undefined, { severity: "warning" }),
    problem("EDGE_KIND_MISMATCH", "inject", "model", { port: 0, pointer: "/wires/0/0" }),
    problem("EDGE_FOREIGN_REPLY", "tool", "other", { port: 0, pointer: "/wires/0/0" }),
  );
  const codes = (id) => found.problemsOfAgent(id).map(({ code }) => code);
  assert.deepEqual(codes("agent"), ["EDGE_KIND_MISMATCH", "TOOL_WITHOUT_SCHEMA"]);
  assert.deepEqual(codes("other"), ["EDGE_FOREIGN_REPLY", "EDGE_KIND_MISMATCH"]);
});

test("shows a problem in a subflow once for all instances", () => {
  const found = verdicts(...["i1-agent", "i2-agent", "i3-i1-agent"].map((id) => problem("MODEL_MISSING", id, undefined, { port: 0 })));
  const sentences = found.sentences.get("agent").map(({ sentence }) => sentence);
  assert.deepEqual(summarize(sentences, texts), ["says MODEL_MISSING\n    Fix it."]);
  assert.deepEqual(found.problemsOfAgent("agent").map(({ node }) => node.id), ["agent"], "the id of the editor");
});

test("replaces ids of unnamed nodes with their labels", () => {
  const nodes = [
    { id: "34fe", type: "agent-core", name: "" },
    { id: "e52a", type: "openai-model" },
    { id: "ecd0", type: "openai-model", name: "Sol" },
    { id: "taken", type: "debug" },
    { id: "b", type: "debug", name: "taken" },
  ];
  const labels = { "34fe": "agent core", e52a: "a `model`" };
  const requested = [];
  const labelOf = (id) => (requested.push(id), labels[id] ?? "wrong");
  const convert = (message, help = "", node = "34fe") => {
    const diagnostic = problem("MODEL_MULTIPLE", undefined, undefined, { message, help });
    diagnostic.node = { id: node, type: "agent-core", name: "" };
    const found = verdictsOf({ ok: false, diagnostics: [diagnostic] }, createFlowMap(nodes), { ...texts, labelOf });
    return [found.problemsOfAgent("34fe")[0], found.sentences.get("34fe")[0].sentence];
  };
  const [{ message, help, node }, sentence] = convert("`34fe` binds `e52a`, `Sol`, 34fe", "Unwire `e52a`.");
  assert.equal(message, "`agent core` binds `a 'model'`, `Sol`, 34fe");
  assert.equal(help, "Unwire `a 'model'`.");
  assert.equal(sentence, `${message}\n${help}`);
  assert.equal(node.name, "agent core", "also for the tab Errors and the other end of the wire");
  // Also with subflow instances and with a backtick in a name. A text that may be a name, or is no id, stays.
  assert.equal(convert("`i1-i2-34fe` and `e52a`", "", "i1-i2-34fe")[0].message, "`agent core` and `a 'model'`");
  assert.equal(convert("`odd`name` binds `e52a`")[0].message, "`odd`name` binds `a 'model'`");
  for (const same of ["`taken`", "`ecd0`", "`nowhere`", "`` `", `\`${"i-".repeat(1_000)}e52a\``]) {
    assert.equal(convert(same)[0].message, same);
  }
  assert.deepEqual([...new Set(requested)].sort(), ["34fe", "e52a"]);
});

test("names the invalid property", () => {
  const propertyOf = (code, pointer) => verdicts(problem(code, "agent", undefined, { pointer })).sentences.get("agent")[0].property;
  assert.equal(propertyOf("CONFIG_INVALID", "/stopConditions/0/value"), "stopConditions");
  assert.equal(propertyOf("CONFIG_INVALID", null), undefined);
  assert.equal(propertyOf("CONFIG_INVALID", "/a~1b"), undefined);
  assert.equal(propertyOf("MODEL_MISSING", "/wires/0"), undefined);
});

test("a problem of the whole flow is the reason why it is not checked", () => {
  const { unusable } = verdicts(problem("FLOW_TOO_LARGE", undefined, undefined));
  assert.equal(unusable, "says FLOW_TOO_LARGE. Fix it.");
});

test("cuts and wraps texts and removes direction characters", () => {
  assert.equal(plain("a\n\tb\u202Ec\u2066d\u0000e\\n f"), "a b\uFFFDc\uFFFDd e\\n\u00A0f");
  const explanation = (message, help = "") => explain(problem("EDGE_SELF", "agent", undefined, { message, help }));
  assert.deepEqual(explanation("x".repeat(1_000_000), "y".repeat(1_000_000)).map(({ length }) => length), [301, 301]);
  assert.ok(explanation(`${"x".repeat(299)}😀`)[0].isWellFormed());
  assert.deepEqual(wrapLines(`${"word ".repeat(40)}${"y".repeat(200)}`).split("\n").filter((line) => line.trim().length > 100), []);
  assert.deepEqual(summarize(["a", "a", "b", "c", "d", "e", "f", "g"], texts), ["a", "b", "c", "4 more"]);
});

test("counts the problems that the checker did not list", () => {
  const report = { ok: false, diagnostics: [], omitted: { EDGE_SELF: 3, MODEL_MISSING: 4 } };
  assert.equal(verdictsOf(report, map, texts).omitted, 7);
});
