// When the checker is asked, and what becomes of an answer that comes late or not at all.

import assert from "node:assert/strict";
import test from "node:test";
import { CheckLoop, DEBOUNCE_MS, RETRY_MS, chooseRuntime } from "../editor-build/editor/checks-loop.mjs";

const report = { ok: true, diagnostics: [] };
const connected = { id: "r", state: { is: "connected", version: "1" } };

/** A loop with a clock that is turned by hand, and answers that are given by hand. */
function scene() {
  const timers = [];
  const questions = [];
  const it = {
    text: "one",
    seen: true,
    runtimes: [connected],
    listed: 0,
    states: [],
    timers,
    questions,
    /** Turns the clock to the next timer that waits so long. */
    async pass(ms) {
      const at = timers.findIndex((timer) => timer.ms === ms);
      assert.notEqual(at, -1, `nothing waits ${ms} ms`);
      timers.splice(at, 1)[0].act();
      await it.rest();
    },
    rest: () => new Promise((resolve) => setImmediate(resolve)),
    async answer(what = report) {
      const question = questions.shift();
      what instanceof Error ? question.reject(what) : question.resolve(what);
      await it.rest();
    },
  };
  it.loop = new CheckLoop({
    flow: () => (it.text === undefined ? undefined : { nodes: [], text: it.text, runtimes: [] }),
    runtimes: async () => {
      it.listed += 1;
      return { module: "0", runtimes: it.runtimes };
    },
    check: (runtime, flow) =>
      new Promise((resolve, reject) => questions.push({ runtime, text: flow.text, resolve, reject })),
    visible: () => it.seen,
    after: (ms, act) => timers.push({ ms, act }),
    failureOf: (error) => ({ why: "refused", status: error.status ?? 0, code: "X", message: error.message }),
    settled: (outcome) => it.states.push("why" in outcome ? outcome.why : `checked ${outcome.flow.text}`),
    asking: () => it.states.push("asking"),
  });
  return it;
}

test("many changes are one question, and the same flow is not asked about again", async () => {
  const it = scene();
  for (let change = 0; change < 1_000; change += 1) {
    it.loop.changed();
  }
  assert.equal(it.timers.length, 1);
  await it.pass(DEBOUNCE_MS);
  assert.deepEqual(it.questions.map(({ text }) => text), ["one"]);
  await it.answer();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.questions.length, 0);
  assert.deepEqual(it.states, ["asking", "checked one"]);
  assert.equal(it.listed, 1);
});

test("one question at a time; an answer about a flow that is no more is dropped", async () => {
  const it = scene();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  for (const text of ["two", "three"]) {
    it.text = text;
    it.loop.changed();
    await it.pass(DEBOUNCE_MS);
  }
  assert.equal(it.questions.length, 1);
  await it.answer();
  assert.deepEqual(it.questions.map(({ text }) => text), ["three"]);
  await it.answer();
  assert.deepEqual(it.states, ["asking", "asking", "checked three"]);
});

test("a change that is taken back while the answer is on its way ends in a verdict", async () => {
  const it = scene();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.answer();
  it.text = "two";
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  it.text = "one";
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.answer();
  await it.answer();
  assert.equal(it.states.at(-1), "checked one");
});

test("without an answer it is tried again by and by, and at once when the sidecar is heard of", async () => {
  const it = scene();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.answer(new Error("away"));
  assert.equal(it.states.at(-1), "refused");
  await it.pass(RETRY_MS);
  await it.answer(new Error("away"));
  assert.equal(it.timers.length, 1);
  it.loop.sidecarChanged();
  await it.pass(DEBOUNCE_MS);
  await it.answer();
  assert.equal(it.states.at(-1), "checked one");
  await it.pass(RETRY_MS);
  assert.equal(it.questions.length, 0);
  assert.equal(it.timers.length, 0);
});

test("what would be refused again is not asked again until the flow is another", async () => {
  const it = scene();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.answer(Object.assign(new Error("too large"), { status: 413 }));
  assert.equal(it.timers.length, 0);
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.questions.length, 0);
  it.text = "two";
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.answer();
  assert.equal(it.states.at(-1), "checked two");
});

test("a sidecar of another version is asked about the same flow", async () => {
  const it = scene();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.answer();
  it.runtimes = [{ id: "r", state: { is: "connected", version: "2" } }];
  it.loop.sidecarChanged();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.questions.length, 1);
});

test("a sidecar that goes takes its verdicts with it, and one that comes back gives new ones", async () => {
  const it = scene();
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  await it.answer();
  it.runtimes = [{ id: "r", state: { is: "away", reason: "killed" } }];
  it.loop.sidecarChanged();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.states.at(-1), "away");
  it.runtimes = [connected];
  it.loop.sidecarChanged();
  await it.pass(DEBOUNCE_MS);
  await it.answer();
  assert.equal(it.states.at(-1), "checked one");
});

test("a page nobody sees asks nothing, and what it missed when it is seen", async () => {
  const it = scene();
  it.seen = false;
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.listed, 0);
  assert.equal(it.timers.length, 0);
  it.seen = true;
  it.loop.seen();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.questions.length, 1);
});

test("without a node of ours nothing is asked for, and verdicts are dropped", async () => {
  const it = scene();
  it.text = undefined;
  it.loop.changed();
  await it.pass(DEBOUNCE_MS);
  assert.equal(it.listed, 0);
  assert.deepEqual(it.states, ["nothing"]);
  assert.equal(it.timers.length, 0);
});

test("which runtime is asked", () => {
  const away = { id: "a", state: { is: "away", reason: "gone" } };
  const other = { id: "s", state: { is: "connected", version: "1" } };
  assert.equal(chooseRuntime([connected, other], ["s"]), other);
  assert.equal(chooseRuntime([connected, other], ["unknown"]), connected);
  assert.equal(chooseRuntime([away, other], ["a"]), other);
  assert.deepEqual(chooseRuntime([away], []), { why: "away", reason: "gone" });
  assert.deepEqual(chooseRuntime([{ id: "x", state: { is: "connecting" } }, away], ["x"]), { why: "connecting" });
  assert.deepEqual(chooseRuntime([], []), { why: "no_runtime" });
  const refused = { id: "x", state: { is: "refused", code: "C", message: "m" } };
  assert.deepEqual(chooseRuntime([refused], []), { why: "refused", code: "C", message: "m", status: 0 });
});
