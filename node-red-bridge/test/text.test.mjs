// How often Node-RED is asked for words.

import assert from "node:assert/strict";
import test from "node:test";
import { text } from "../editor-build/editor/text.mjs";
import { translator } from "./kit/words.mjs";

test("a text without a value is asked for once, but not before its catalogue is there", () => {
  const asked = [];
  const words = { there: false };
  const translate = translator("en-US");
  globalThis.RED = {
    _(key, values) {
      asked.push(key.split(":")[1]);
      return words.there ? translate(key, values) : key.split(":")[1];
    },
  };
  assert.equal(text("agent.field.debug"), "agent.field.debug");
  words.there = true;
  for (let time = 0; time < 3; time += 1) {
    assert.equal(text("agent.field.debug"), "Debug");
    assert.equal(text("fields.missing", { name: String(time) }), `${time} is missing.`);
  }
  assert.deepEqual(asked.filter((key) => key === "agent.field.debug").length, 2);
});
