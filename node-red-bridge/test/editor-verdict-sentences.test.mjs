// The sentences of a node after a check, and the reason why a flow is not checked.

import assert from "node:assert/strict";
import test from "node:test";
import { translator } from "./kit/texts.mjs";

const listeners = new Map();
/** The next responses: a body, or a status with one. */
const responses = { runtimes: undefined, check: undefined };

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
    const { status, ...body } = url.endsWith("/check") ? responses.check : responses.runtimes;
    const request = {
      done: (then) => (status === undefined && queueMicrotask(() => then(body)), request),
      fail: (then) => (status !== undefined && queueMicrotask(() => then({ status, responseJSON: body })), request),
    };
    return request;
  },
};

const { onChecked, startChecks, state, verdict } = await import("../editor-build/editor/checks.mjs");
startChecks();

/** Triggers a check and waits for its end. */
function check() {
  listeners.get("deploy")();
  return new Promise((resolve) => {
    const end = onChecked(() => state().is !== "checking" && (end(), resolve()));
  });
}

const problem = (code, pointer) => ({
  ...{ code, pointer, severity: "error", message: `${code} at ${pointer}`, help: "Fix it." },
  ...{ node: { id: "agent", type: "agent-core", name: "" }, target: null, port: null },
});

test("does not repeat the checker's problem of a property that the dialog rejects", async () => {
  responses.runtimes = { module: "1", runtimes: [{ id: "r", name: "", state: { is: "connected", version: "1" } }] };
  const diagnostics = [problem("CONFIG_INVALID", "/maxIterations"), problem("CONFIG_INVALID", "/timeout"), problem("MODEL_MISSING", null)];
  responses.check = { ok: false, diagnostics };
  await check();
  const sentences = () => verdict(agent).map((sentence) => sentence.split("\n")[0]);
  const others = ["CONFIG_INVALID at /timeout", "MODEL_MISSING at null"];
  assert.deepEqual(sentences(), ["CONFIG_INVALID at /maxIterations", ...others]);
  agent.maxIterations = "many";
  assert.deepEqual(sentences(), others);
  // Only the checker validates a variable: Node-RED accepts it.
  agent.maxIterations = "$(ROUNDS)";
  assert.equal(sentences().length, 3);
});

test("explains a refusal of Node-RED and of the sidecar", async () => {
  const refusals = [
    [{ status: 403 }, /redflow\.read/],
    [{ status: 403, code: "FORBIDDEN", message: "The token may not check." }, /^The token may not check\. \(FORBIDDEN\)$/],
  ];
  for (const [response, pattern] of refusals) {
    responses.check = response;
    agent.maxIterations += 1;
    await check();
    assert.match(state().reason, pattern);
  }
});
