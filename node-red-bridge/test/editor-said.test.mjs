// What of the checker's word is said at a node, and why a flow is not checked: from the answer to the sentence.

import assert from "node:assert/strict";
import test from "node:test";
import { translator } from "./kit/words.mjs";

const listeners = new Map();
/** What the module answers next: a body, or a status with one. */
const answers = { runtimes: undefined, check: undefined };

const needsWhole = (value) => (Number.isInteger(value) ? true : "It must be a whole number.");
const _def = { defaults: { maxIterations: { validate: needsWhole }, timeout: { validate: () => true }, redflowWires: {} } };
const agent = { id: "agent", type: "agent-core", _def, maxIterations: 5, timeout: "x" };

globalThis.document = { hidden: false, addEventListener: () => undefined };
globalThis.RED = {
  _: translator("en-US"),
  nodes: { createCompleteNodeSet: () => [{ id: "agent", type: "agent-core", maxIterations: agent.maxIterations }], node: () => agent },
  editor: { validateNode: () => true },
  events: { on: (event, listener) => listeners.set(event, listener) },
  comms: { subscribe: () => undefined },
};
globalThis.$ = {
  ajax({ url }) {
    const { status, ...body } = url.endsWith("/check") ? answers.check : answers.runtimes;
    const request = {
      done: (then) => (status === undefined && queueMicrotask(() => then(body)), request),
      fail: (then) => (status !== undefined && queueMicrotask(() => then({ status, responseJSON: body })), request),
    };
    return request;
  },
};

const { onChecked, startChecks, state, verdict } = await import("../editor-build/editor/checks.mjs");
startChecks();

/** Until the next answer has come to something. */
function checked() {
  listeners.get("deploy")();
  return new Promise((resolve) => {
    const end = onChecked(() => state().is !== "checking" && (end(), resolve()));
  });
}

const problem = (code, pointer) => ({
  ...{ code, pointer, severity: "error", message: `${code} at ${pointer}`, help: "Mend it." },
  ...{ node: { id: "agent", type: "agent-core", name: "" }, target: null, port: null },
});

test("a property that the dialog refuses itself is not said again by the checker", async () => {
  answers.runtimes = { module: "1", runtimes: [{ id: "r", name: "", state: { is: "connected", version: "1" } }] };
  const diagnostics = [problem("CONFIG_INVALID", "/maxIterations"), problem("CONFIG_INVALID", "/timeout"), problem("MODEL_MISSING", null)];
  answers.check = { ok: false, diagnostics };
  await checked();
  const said = () => verdict(agent).map((sentence) => sentence.split("\n")[0]);
  const others = ["CONFIG_INVALID at /timeout", "MODEL_MISSING at null"];
  assert.deepEqual(said(), ["CONFIG_INVALID at /maxIterations", ...others]);
  agent.maxIterations = "many";
  assert.deepEqual(said(), others);
  // A variable is for the checker alone: Node-RED takes it without asking.
  agent.maxIterations = "$(ROUNDS)";
  assert.equal(said().length, 3);
});

test("who refuses says why: Node-RED without a word, the sidecar with its own", async () => {
  const refusals = [
    [{ status: 403 }, /redflow\.read/],
    [{ status: 403, code: "FORBIDDEN", message: "The token may not check." }, /^The token may not check\. \(FORBIDDEN\)$/],
  ];
  for (const [answer, words] of refusals) {
    answers.check = answer;
    agent.maxIterations += 1;
    await checked();
    assert.match(state().reason, words);
  }
});
