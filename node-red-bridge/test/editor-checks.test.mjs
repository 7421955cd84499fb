// When the editor checks the flow, and how it handles late and missing responses.

import assert from "node:assert/strict";
import test from "node:test";
import { CheckLoop, DEBOUNCE_MS, RETRY_MS, chooseRuntime } from "../editor-build/editor/checks-loop.mjs";

const report = { ok: true, diagnostics: [] };
const connected = { id: "r", state: { is: "connected", version: "1" } };

/** A loop with timers and responses that the test controls. */
function createLoop() {
  const timers = [];
  const requests = [];
  const it = {
    text: "one",
    isVisible: true,
    runtimes: [connected],
    listed: 0,
    states: [],
    timers,
    requests,
    /** Runs the next timer with this delay. */
    async pass(ms) {
      const at = timers.findIndex((timer) => timer.ms === ms);
      assert.notEqual(at, -1, `no timer of ${ms} ms`);
      timers.splice(at, 1)[0].act();
      await it.settle();
    },
    settle: () => new Promise((resolve) => setImmediate(resolve)),
    async respond(result = report) {
      const request = requests.shift();
      if (result instanceof Error) {
        request.reject(result);
      } else {
        request.resolve(result);
      }
      await it.settle();
    },
  };
  it.loop = new CheckLoop({
    flow: () => (it.text === undefined ? undefined : { nodes: [], text: it.text, runtimes: [] }),
    runtimes: async () => {
      it.listed += 1;
      return { module: "0", runtimes: it.runtimes };
    },
    check: (runtime, flow) =>
      new Promise((resolve, reject) => requests.push({ runtime, text: flow.text, resolve, reject })),
    visible: () => it.isVisible,
    after: (ms, act) => timers.push({ ms, act }),
    failureOf: (error) => ({ why: "refused", status: error.status ?? 0, code: "X", message: error.message }),
    onOutcome: (outcome) => it.states.push("why" in outcome ? outcome.why : `checked ${outcome.flow.text}`),
    onRequest: () => it.states.push("request"),
  });
  return it;
}

test("sends one request for many changes and none for the same flow", async () => {
  const it = createLoop();
  for (let change = 0; change < 1_000; change += 1) {
    it.loop.changed();
  }
  assert.equal(it.timers.length, 1);
  await it.pass(DEBOUNCE_MS);
  assert.deepEqual(it.requests.map(({ text }) => text), ["one"]);
  await it.respond();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.requests.length, 0);
  assert.deepEqual(it.states, ["request", "checked one"]);
  assert.equal(it.listed, 1);
});

test("sends one request at a time and drops the report of an outdated flow", async () => {
  const it = createLoop();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  for (const text of ["two", "three"]) {
    it.text = text;
    it.loop.changed();
    await it.pass(DEBOUNCE_MS);
  }
  assert.equal(it.requests.length, 1);
  await it.respond();
  assert.deepEqual(it.requests.map(({ text }) => text), ["three"]);
  await it.respond();
  assert.deepEqual(it.states, ["request", "request", "checked three"]);
});

test("a change that is undone during a request ends with a result", async () => {
  const it = createLoop();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.respond();
  it.text = "two";
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  it.text = "one";
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.respond();
  await it.respond();
  assert.equal(it.states.at(-1), "checked one");
});

test("retries after a failure, and at once when the sidecar changes", async () => {
  const it = createLoop();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.respond(new Error("offline"));
  assert.equal(it.states.at(-1), "refused");
  await it.pass(RETRY_MS);
  await it.respond(new Error("offline"));
  assert.equal(it.timers.length, 1);
  it.loop.sidecarChanged();
  await it.pass(DEBOUNCE_MS);
  await it.respond();
  assert.equal(it.states.at(-1), "checked one");
  await it.pass(RETRY_MS);
  assert.equal(it.requests.length, 0);
  assert.equal(it.timers.length, 0);
});

test("does not repeat a final refusal until the flow changes", async () => {
  const it = createLoop();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.respond(Object.assign(new Error("too large"), { status: 413 }));
  assert.equal(it.timers.length, 0);
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.requests.length, 0);
  it.text = "two";
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.respond();
  assert.equal(it.states.at(-1), "checked two");
});

test("checks the same flow again with another version of the sidecar", async () => {
  const it = createLoop();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.respond();
  it.runtimes = [{ id: "r", state: { is: "connected", version: "2" } }];
  it.loop.sidecarChanged();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.requests.length, 1);
});

test("drops the result when the sidecar goes offline and checks again when it returns", async () => {
  const it = createLoop();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.respond();
  it.runtimes = [{ id: "r", state: { is: "offline", reason: "killed" } }];
  it.loop.sidecarChanged();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.states.at(-1), "offline");
  it.runtimes = [connected];
  it.loop.sidecarChanged();
  await it.pass(DEBOUNCE_MS);
  await it.respond();
  assert.equal(it.states.at(-1), "checked one");
});

test("a hidden page sends no request and checks when it is visible again", async () => {
  const it = createLoop();
  it.isVisible = false;
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.listed, 0);
  assert.equal(it.timers.length, 0);
  it.isVisible = true;
  it.loop.onVisible();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.requests.length, 1);
});

test("sends no request without one of our nodes", async () => {
  const it = createLoop();
  it.text = undefined;
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.listed, 0);
  assert.deepEqual(it.states, ["nothing"]);
  assert.equal(it.timers.length, 0);
});

test("chooses a connected runtime", () => {
  const gone = { reason: "gone", phrase: { key: "k" } };
  const offline = { id: "a", state: { is: "offline", ...gone } };
  const other = { id: "s", state: { is: "connected", version: "1" } };
  assert.equal(chooseRuntime([connected, other], ["s"]), other);
  assert.equal(chooseRuntime([connected, other], ["unknown"]), connected);
  assert.equal(chooseRuntime([offline, other], ["a"]), other);
  assert.deepEqual(chooseRuntime([offline], []), { why: "offline", ...gone });
  assert.deepEqual(chooseRuntime([{ id: "x", state: { is: "connecting" } }, offline], ["x"]), { why: "connecting" });
  assert.deepEqual(chooseRuntime([], []), { why: "no_runtime" });
  const problem = { code: "C", message: "m", phrase: { key: "k" } };
  const refused = { id: "x", state: { is: "refused", ...problem } };
  assert.deepEqual(chooseRuntime([refused], []), { why: "refused", ...problem, status: 0 });
});
