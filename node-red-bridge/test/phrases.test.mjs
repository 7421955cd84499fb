// The texts of the sidecar, and statuses, in the user's language.

import assert from "node:assert/strict";
import test from "node:test";
import { errorsOf } from "../editor-build/editor/agent-errors.mjs";
import { phraseText } from "../editor-build/editor/phrases.mjs";
import { startStatuses } from "../editor-build/editor/statuses.mjs";
import { translator } from "./kit/texts.mjs";

const subscribed = new Map();
const [nodes, drawn] = [new Map(), []];
globalThis.RED = {
  _: translator("de"),
  nodes: { node: (id) => nodes.get(id) },
  comms: { subscribe: (topic, listener) => subscribed.set(topic, listener) },
  view: { redrawStatus: (node) => drawn.push(node.status.text) },
};

const port = { key: "port_of_kind", args: { port: "0", kind: "model" } };
const wrongWire = { key: "port_binds_model", args: { port, target: "`d`", role: { key: "a_data" } } };

test("a phrase is shown in the user's language, with phrases in its places", () => {
  assert.equal(phraseText(wrongWire, "english"), "Ausgang 0 (model) ist für ein Modell, aber `d` ist ein gewöhnlicher Node");
  assert.equal(phraseText({ key: "remove_wire" }, "english"), "Entfernen Sie die Leitung.");
});

test("a value is inserted as it is", () => {
  const value = "{role} $t(phrases.model) __name__ $& <b>";
  const wire = { ...wrongWire, args: { ...wrongWire.args, target: value } };
  assert.equal(phraseText(wire, "english"), `Ausgang 0 (model) ist für ein Modell, aber ${value} ist ein gewöhnlicher Node`);
  assert.match(phraseText({ key: "session_shared_help" }, ""), /`{{msg.userId}}`/);
  assert.match(phraseText({ key: "secret_variable", args: { name: "API_KEY" } }, ""), /^`\${API_KEY}` sieht/);
});

test("an unknown phrase is shown in English, wherever it stands", () => {
  const nested = { key: "port_binds_model", args: { port, target: "`d`", role: { key: "a_robot" } } };
  let deep = { key: "model" };
  for (let depth = 0; depth < 10_000; depth += 1) {
    deep = { key: "one_or_other", args: { first: deep, second: "x" } };
  }
  for (const phrase of [undefined, { key: "of_the_future" }, nested, { key: "model.a b" }, { key: "constructor" }, deep]) {
    assert.equal(phraseText(phrase, "the english text"), "the english text");
  }
});

test("an error without a run is translated", () => {
  const phrase = { key: "no_runtime" };
  const [known, unknown] = errorsOf([], [], [{ at: 2, code: "A", message: "english", phrase }, { at: 1, code: "B", message: "other" }], "agent");
  assert.match(known.message, /^Der Agent hat keine Runtime/);
  assert.equal(unknown.message, "other");
});

test("a status is translated, in every order of its text, its phrase and Node-RED", () => {
  startStatuses();
  const receive = (topic, message) => subscribed.get(topic.replace(/[^/]*$/, "#"))(topic, message);
  const phrase = { key: "status_model", args: { iteration: "2" } };
  const [text, german] = ["iteration 2: model", "Iteration 2: Modell"];
  const agent = { id: "agent" };
  nodes.set("agent", agent);
  // Node-RED has subscribed before: the node has the status already.
  const receiveAfter = (status) => {
    agent.status = status;
    receive("status/agent", status);
    return status.text;
  };
  assert.equal(receiveAfter({ text }), text, "without a phrase");
  receive("redflow/status/agent", { text, phrase });
  assert.equal(agent.status.text, german, "the phrase comes later");
  assert.equal(receiveAfter({ text }), german);
  assert.deepEqual(drawn.splice(0), [german, german]);
  // Node-RED has subscribed later: it takes the status from the message.
  const message = { text };
  agent.status = {};
  receive("status/agent", message);
  assert.equal(message.text, german);
  assert.equal(receiveAfter({ text: "another text" }), "another text", "a phrase of an earlier status");
  receive("redflow/status/agent", {});
  assert.equal(receiveAfter({ text }), text, "the phrase is gone");
  receive("redflow/status/gone", { text, phrase });
  receive("status/gone", {});
  assert.deepEqual(drawn, []);
});
