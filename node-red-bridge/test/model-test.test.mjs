// What the dialog of a model sends to be tested, and what it shows of the test.

import assert from "node:assert/strict";
import { test } from "node:test";
import { translator } from "./kit/texts.mjs";

globalThis.RED = { _: translator("en-US") };
const { modelForm, testRows } = await import("../editor-build/editor/model-test.mjs");

test("a test uses the typed key, else the stored one, else the shared one", () => {
  const node = { id: "m", type: "openai-model", _def: { defaults: { model: {}, keyNode: {}, seed: {}, redflowWires: {} }, credentials: { apiKey: {} } } };
  const formOf = (values) => modelForm(node, (name) => values[name]);
  const rows = [
    [{ model: "x", apiKey: "" }, {}, undefined],
    [{ model: "x", apiKey: " typed " }, { apiKey: "typed" }, undefined],
    [{ model: "x", apiKey: "typed", keyNode: "k" }, { apiKey: "typed" }, undefined],
    [{ model: "x", apiKey: "__PWRD__" }, {}, "m"],
    [{ model: "x", apiKey: "__PWRD__", keyNode: "k" }, {}, "m"],
    [{ model: "x", keyNode: "k" }, {}, "k"],
    [{ model: "x", keyNode: "_ADD_" }, {}, undefined],
    [{ model: "x", keyNode: "" }, {}, undefined],
  ];
  for (const [values, credentials, stored] of rows) {
    const { apiKey: _, ...config } = values;
    const expected = { type: "openai-model", config, credentials, ...(stored ? { node: stored } : {}) };
    assert.deepEqual(formOf(values), expected, JSON.stringify(values));
  }
});

test("shows what is known of a test", () => {
  const least = { ok: false, type: "openai-model", provider: "openai", model: "gpt", durationMs: 5 };
  assert.deepEqual(testRows(least), [["model", "gpt"]]);
  const most = {
    ...least,
    sent: { address: "http://x/v1", model: "gpt", responseFormat: "json_schema" },
    server: "llama.cpp",
    answeredBy: "gpt-real",
    usage: { inputTokens: 3, outputTokens: 4 },
    tokensPerSecond: 12.34,
    schema: "not_sent",
    contextWindow: 4096,
  };
  assert.deepEqual(testRows(most), [
    ["server", "llama.cpp"],
    ["address", "http://x/v1"],
    ["model", "gpt-real"],
    ["tokens", "3 read, 4 written"],
    ["speed", "12.3 tokens per second"],
    ["schema", "not sent"],
    ["window", "4096 tokens"],
  ]);
  globalThis.RED = { _: translator("de"), i18n: { lang: () => "de" } };
  assert.match(testRows(most).find(([key]) => key === "speed")[1], /^12,3 /);
});
