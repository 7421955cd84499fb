// Log lines of a managed sidecar as log lines of Node-RED.

import assert from "node:assert/strict";
import test from "node:test";
import { nodeLabel, withLabels } from "../dist/node-label.js";
import { readLogLine } from "../dist/sidecar-log.js";
import { FakeNode, fakeRed } from "./kit/red.mjs";

const RED = fakeRed([Object.assign(new FakeNode("ag"), { name: "My agent" }), new FakeNode("m", "openai-model")]);
const read = (line) => {
  const { level, text } = readLogLine(line, (id) => nodeLabel(RED, id));
  return `${level}: ${text}`;
};

test("takes the level and the text of a logged event, with the names of nodes", () => {
  const event = (level, fields) => JSON.stringify({ timestamp: "t", level, fields, target: "redflow_server" });
  const fields = { message: "refused an agent", agent: "ag", code: "MODEL_KEY_MISSING", rest: 2 };
  assert.equal(read(event("WARN", fields)), "warn: refused an agent (agent: My agent, code: MODEL_KEY_MISSING, rest: 2)");
  assert.equal(read(event("ERROR", { message: "no", node: "m" })), "error: no (node: openai-model)");
  assert.equal(read(event("INFO", { message: "yes" })), "info: yes");
  assert.equal(read(event("TRACE", { message: "x" })), "debug: x");
  assert.equal(read(event("ODD", {})), "info: ");
});

test("the checker's sentences name nodes without a name by their type", () => {
  const sentence = (text) => withLabels(RED, text);
  assert.equal(sentence("`m` has no key; `ag` and `gone` use `model`"), "`openai-model` has no key; `My agent` and `gone` use `model`");
});

test("takes plain lines and cut lines as they are", () => {
  assert.equal(read("redflow 1 listening on http://127.0.0.1:1"), "info: redflow 1 listening on http://127.0.0.1:1");
  assert.equal(read("error[DATA_LOCKED]: no"), "error: error[DATA_LOCKED]: no");
  assert.equal(read("warning: old"), "warn: warning: old");
  const cut = JSON.stringify({ timestamp: "t", level: "WARN", fields: { message: "x".repeat(300) } }).slice(0, 200);
  assert.equal(read(cut), `warn: ${cut}`);
  for (const odd of ["", "{}", "null", "[1]", '{"level":1}', '{"level":"constructor","fields":{}}']) {
    assert.match(read(odd), /^info: /, odd);
  }
});
