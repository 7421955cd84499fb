// The parameters of a tool: a JSON Schema as rows of a table, and back.

import assert from "node:assert/strict";
import { test } from "node:test";
import { translator } from "./kit/texts.mjs";

globalThis.RED = { _: translator("en-US") };
const { MAX_PARAMETERS, haveNames, parametersOf, schemaWith } = await import("../editor-build/editor/parameters.mjs");

const text = { type: "string" };

test("a table shows simple properties and keeps every other keyword", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    title: "Weather",
    properties: {
      city: { type: "string", description: "A city.", minLength: 1, enum: ["Rome", "Oslo"] },
      days: { description: "How many.", maximum: 9, type: "integer", "x-own": { deep: [1] } },
      __proto__x: { type: "boolean" },
    },
    required: ["city"],
    additionalProperties: false,
    "x-more": 1,
  };
  const before = JSON.stringify(schema);
  const rows = parametersOf(schema);
  assert.deepEqual(rows.map(({ name, type, description, required }) => [name, type, description, required]), [
    ["city", "string", "A city.", true],
    ["days", "integer", "How many.", false],
    ["__proto__x", "boolean", "", false],
  ]);
  assert.deepEqual(schemaWith(schema, rows), schema);
  assert.equal(JSON.stringify(schema), before, "the schema itself is not changed");
  const [city, days] = rows;
  const changed = schemaWith(schema, [{ ...days, name: "count", required: true }, { ...city, required: false, description: "" }]);
  assert.deepEqual(changed, {
    ...schema,
    properties: {
      count: { type: "integer", description: "How many.", maximum: 9, "x-own": { deep: [1] } },
      city: { type: "string", minLength: 1, enum: ["Rome", "Oslo"] },
    },
    required: ["count"],
  });
  assert.deepEqual(Object.keys(changed.properties), ["count", "city"], "the order of the rows");
});

test("a property may have any name", () => {
  const schema = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"toString":{"type":"number"}}}');
  const rows = parametersOf(schema);
  assert.deepEqual(rows.map(({ name }) => name), ["__proto__", "toString"]);
  assert.equal(JSON.stringify(schemaWith(schema, rows)), JSON.stringify(schema));
});

test("a table shows no schema that it would change", () => {
  const nothing = { type: "object", properties: {} };
  for (const empty of [undefined, null, "", {}, nothing, { properties: {} }]) {
    assert.deepEqual(parametersOf(empty), [], JSON.stringify(empty));
    assert.deepEqual(schemaWith(empty, []), nothing, JSON.stringify(empty));
  }
  const many = Object.fromEntries(Array.from({ length: MAX_PARAMETERS + 1 }, (_, n) => [`p${n}`, text]));
  const refused = [
    "not JSON",
    "${SCHEMA}",
    true,
    [],
    { type: "string" },
    { type: ["object", "null"] },
    { oneOf: [nothing] },
    { ...nothing, allOf: [] },
    { ...nothing, $ref: "#/x" },
    { ...nothing, patternProperties: {} },
    { type: "object", properties: [] },
    { type: "object", properties: { a: true } },
    { type: "object", properties: { a: {} } },
    { type: "object", properties: { a: { type: ["string", "null"] } } },
    { type: "object", properties: { a: { type: "object", properties: {} } } },
    { type: "object", properties: { a: { type: "array", items: text } } },
    { type: "object", properties: { a: { type: "string", anyOf: [] } } },
    { type: "object", properties: { a: { type: "string", description: 5 } } },
    { type: "object", properties: { a: text }, required: ["b"] },
    { type: "object", properties: { a: text }, required: "a" },
    { type: "object", properties: many },
  ];
  for (const schema of refused) {
    assert.equal(parametersOf(schema), undefined, JSON.stringify(schema));
  }
});

test("each parameter needs a name of its own", () => {
  const row = (name, required = false) => ({ name, type: "string", description: name, required, rest: {} });
  assert.ok(haveNames([]) && haveNames([row("a"), row("b")]));
  assert.ok(!haveNames([row("")]) && !haveNames([row("a"), row("a")]));
  const written = schemaWith({}, [row("a", true), row(""), { ...row("a"), type: "number" }]);
  assert.deepEqual(written, { type: "object", properties: { a: { type: "string", description: "a" } }, required: ["a"] });
});
