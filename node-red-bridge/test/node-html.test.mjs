// The generator of the nodes' html: what it escapes, and what it refuses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { englishTexts, pageOf } from "../scripts/node-html.mjs";

const property = (more) => ({
  name: "mode", kind: "line", label: { key: "mode", text: "Mode" }, help: "A mode.", placeholder: "none", place: "main",
  presence: "optional", default: "", ...more,
});

const node = (more) => ({
  type: "made-up", label: "made up", summary: "Costs $& and $'.", color: "#fff", icon: "x.svg", config: false, namedBy: null,
  input: { key: "in", text: "in" }, outputs: [{ key: "out", text: "out" }], properties: [property({})], ...more,
});

const page = (made, parts = {}) => pageOf(made, { help: "{{summary}}\n{{properties}}", ...parts });

test("texts cannot end their element or expand", () => {
  const made = page(node({ properties: [property({ default: "</script>", help: "A < B & `<i>`", label: { key: "mode", text: "A & B" } })] }));
  assert.match(made, /Costs \$&amp; and \$'\./);
  assert.match(made, /value: "\\u003c\/script>"/);
  assert.match(made, /<dt>A &amp; B<\/dt>\n\s*<dd>A &lt; B &amp; <code>&lt;i><\/code><\/dd>/);
  assert.equal(made.match(/<\/script>/g).length, 2);
});

test("a choice with a dot has a key of one level", () => {
  const choices = [{ value: "2024.1", text: "2024.1" }, { value: "", text: "none" }];
  const made = node({ properties: [property({ kind: "choice", choices })] });
  assert.match(page(made), /value="2024\.1" data-i18n="[^"]*:nodes\.option\.mode\.2024-1"/);
  assert.deepEqual(englishTexts([made]).option, { mode: { "2024-1": "2024.1", unset: "none" } });
});

test("choices of two properties with one name have texts of their own, by the keys of their labels", () => {
  const made = (key, text) => node({ properties: [property({ kind: "choice", label: { key, text: key }, choices: [{ value: "auto", text }] })] });
  assert.match(page(made("other", "One")), /nodes\.option\.other\.auto"/);
  assert.deepEqual(englishTexts([made("mode", "One"), made("other", "Two")]).option, { mode: { auto: "One" }, other: { auto: "Two" } });
});

test("a field that names a service is a select of the nodes that fit, and an agent fills its own", () => {
  const properties = [property({ name: "memory", kind: "service", role: "memory" })];
  const made = page(node({ role: "tool", properties }));
  assert.match(made, /<select id="node-input-memory"><\/select>/);
  assert.match(made, /RedflowEditor\.prepareServices\(this, \{"memory":"memory"\}\);\n\s*RedflowEditor\.prepareFields\(this\);/);
  assert.doesNotMatch(page(node({ role: "agent", properties })), /prepareServices/);
});

test("an example may have braces", () => {
  const placeholder = { example: "{{msg.timestamp}}" };
  const made = node({ properties: [property({ placeholder })] });
  assert.match(page(made), /placeholder="\{\{msg\.timestamp\}\}"/);
  assert.match(page(made, { form: "{{mode}}" }), /placeholder="\{\{msg\.timestamp\}\}"/);
});

test("refuses what it would get wrong", () => {
  const rows = [
    [() => page(node({ input: null })), /has no input/],
    [() => page(node({ config: true, properties: [property({ kind: "json", shape: "anyJson" })] })), /is a config node/],
    [() => page(node({}), { form: "<b>{{mode}}</b>" }), /not alone on its line/],
    [() => page(node({}), { form: "{{other}}" }), /not declared/],
    [() => page(node({}), { definition: "export default {\n    label() {},\n};\n" }), /must have parts/],
    [() => englishTexts([node({}), node({ properties: [property({ label: { key: "mode", text: "Way" } })] })]), /other texts for field\.mode/],
  ];
  for (const [make, expected] of rows) {
    assert.throws(make, expected);
  }
});
