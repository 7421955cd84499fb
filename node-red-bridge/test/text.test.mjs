// The cache of translated texts.

import assert from "node:assert/strict";
import test from "node:test";
import { text } from "../editor-build/editor/text.mjs";
import { translator } from "./kit/texts.mjs";

test("caches a text without values after its catalogue is loaded", () => {
  const requested = [];
  let isLoaded = false;
  const translate = translator("en-US");
  globalThis.RED = {
    _(key, values) {
      requested.push(key.split(":")[1]);
      return isLoaded ? translate(key, values) : key.split(":")[1];
    },
  };
  assert.equal(text("nodes.field.debug"), "nodes.field.debug");
  isLoaded = true;
  for (let time = 0; time < 3; time += 1) {
    assert.equal(text("nodes.field.debug"), "Debug");
    assert.equal(text("fields.missing", { name: String(time) }), `${time} is missing.`);
  }
  assert.deepEqual(requested.filter((key) => key === "nodes.field.debug").length, 2);
});
