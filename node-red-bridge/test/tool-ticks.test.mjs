// Which tools an agent may call after the user changed its wires.

import assert from "node:assert/strict";
import { test } from "node:test";
import { followWires } from "../editor-build/editor/tool-ticks.mjs";

test("a new wire allows its tool, and a removed one forgets it", () => {
  const tools = (own) => new Map(Object.entries(own));
  const rows = [
    // allowed, before, after, expected
    [[], {}, { c: ["calculator"] }, ["calculator"]],
    [["calculator"], { c: ["calculator"] }, { c: ["calculator"], m: ["mail"] }, ["calculator", "mail"]],
    // An unticked tool stays so while others come and go.
    [["calculator"], { c: ["calculator"], m: ["mail"] }, { c: ["calculator"], m: ["mail"], x: ["x"] }, ["calculator", "x"]],
    [["calculator"], { c: ["calculator"], m: ["mail"] }, { m: ["mail"] }, []],
    // Two nodes with one name.
    [["calculator"], { c: ["calculator"], d: ["calculator"] }, { d: ["calculator"] }, ["calculator"]],
    // A new name is allowed if the old one was.
    [["old"], { c: ["old"] }, { c: ["new"] }, ["new"]],
    [[], { c: ["old"] }, { c: ["new"] }, []],
    // Patterns: a node with operations, and a tool that a pattern names already.
    [[], {}, { n: ["mqtt.*", "mqtt.publish"] }, ["mqtt.*"]],
    [["weather.*"], {}, { r: ["weather.current"] }, ["weather.*"]],
    [["weather.*", "a.b"], { r: ["weather.*"], s: ["a.b"] }, { s: ["a.b"] }, ["a.b"]],
    // A name that no tool has stays: the user wrote it.
    [["later"], {}, { c: ["calculator"] }, ["later", "calculator"]],
  ];
  for (const [allowed, before, after, expected] of rows) {
    assert.deepEqual(followWires(allowed, tools(before), tools(after)), expected, JSON.stringify([allowed, before, after]));
  }
});
