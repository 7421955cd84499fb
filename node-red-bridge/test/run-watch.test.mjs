// When watches send requests, with a clock and responses that the test controls.

import assert from "node:assert/strict";
import test from "node:test";
import { RequestError } from "../editor-build/editor/admin-client.mjs";
import { watchErrors, watchRun, watchRuns, watchRuntimes } from "../editor-build/editor/run-watch.mjs";

/** A fake page, sidecar and clock. */
function createEnvironment() {
  const env = {
    time: 0,
    requests: [],
    pending: [],
    page: { hidden: false },
    changeListeners: new Set(),
    hiddenListeners: new Set(),
    timers: new Set(),
    request(query) {
      env.requests.push([env.time, query]);
      return new Promise((resolve, reject) => env.pending.push({ resolve, reject }));
    },
    runtimes: () => env.request("runtimes"),
    runs: (runtime, query) => env.request({ runtime, ...query }),
    events: (_runtime, run, after) => env.request({ run, after }),
    text: async () => env.liveText?.(),
    agentType: (id) => ({ a: "ai-agent", core: "agent-core" })[id],
    errors: (agent) => env.request({ agent }),
    onChange: (listener) => (env.changeListeners.add(listener), () => env.changeListeners.delete(listener)),
    hidden: () => env.page.hidden,
    onHidden: (listener) => (env.hiddenListeners.add(listener), () => env.hiddenListeners.delete(listener)),
    now: () => env.time,
    after(ms, act) {
      const timer = { at: env.time + ms, act };
      env.timers.add(timer);
      return () => env.timers.delete(timer);
    },
    change: (agent) => env.changeListeners.forEach((listener) => listener(agent)),
    setHidden(hidden) {
      env.page.hidden = hidden;
      env.hiddenListeners.forEach((listener) => listener());
    },
    pass(ms) {
      const until = env.time + ms;
      for (;;) {
        const due = [...env.timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
        if (due === undefined) {
          break;
        }
        env.timers.delete(due);
        env.time = due.at;
        due.act();
      }
      env.time = until;
    },
    async respond(value) {
      env.pending.shift().resolve(value);
      await settled();
    },
    async refuse(code) {
      env.pending.shift().reject(new RequestError(503, { code, message: "offline" }));
      await settled();
    },
  };
  return env;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const running = { runs: [{ runId: "r", status: "running" }] };
const ended = { runs: [{ runId: "r", status: "completed" }] };

test("keeps the gap that a watch asks for", async () => {
  const env = createEnvironment();
  const watch = watchRuns({ runtime: "n", status: "waiting", minGapMs: 2_000 }, () => undefined, env);
  await settled();
  assert.deepEqual(env.requests, [[0, { runtime: "n", status: "waiting" }]]);
  await env.respond({ runs: [] });
  for (const time of [100, 400, 800]) {
    env.pass(time);
    env.change("a");
  }
  assert.equal(env.requests.length, 1);
  env.pass(1_000);
  assert.deepEqual(env.requests.map(([time]) => time), [0, 2_000], "once for all changes");
  watch.stop();
});

test("sends a request every two seconds while a run is active", async () => {
  const env = createEnvironment();
  const updates = [];
  const watch = watchRuns({ runtime: "n", agent: "a", limit: 10 }, (update) => updates.push(update), env);
  await settled();
  assert.deepEqual(env.requests, [[0, { runtime: "n", agent: "a", limit: 10 }]], "at once");
  env.pass(10_000);
  assert.equal(env.requests.length, 1, "never two requests at once");
  await env.respond(running);
  env.pass(1_999);
  assert.equal(env.requests.length, 1);
  env.pass(1);
  assert.equal(env.requests.length, 2);
  await env.respond(ended);
  env.pass(600_000);
  assert.equal(env.requests.length, 2, "no run is active");
  assert.deepEqual(updates, [running, ended]);
  watch.stop();
  assert.deepEqual([env.changeListeners.size, env.hiddenListeners.size, env.timers.size], [0, 0, 0]);
});

test("a change of its agent triggers a request, at most every 300 ms", async () => {
  const env = createEnvironment();
  watchRuns({ runtime: "n", agent: "a" }, () => undefined, env);
  await settled();
  await env.respond(ended);
  env.change("another");
  env.pass(60_000);
  assert.equal(env.requests.length, 1);
  env.change("a");
  assert.equal(env.requests.length, 2);
  for (let n = 0; n < 100; n += 1) {
    env.change("a");
  }
  await env.respond(ended);
  assert.equal(env.requests.length, 2, "not at once");
  for (let n = 0; n < 100; n += 1) {
    env.change("a");
  }
  env.pass(300);
  assert.equal(env.requests.length, 3, "one request for all changes");
  await env.respond(ended);
  env.pass(60_000);
  assert.equal(env.requests.length, 3);
});

test("a hidden watch sends no request until it is visible", async () => {
  const env = createEnvironment();
  const hidden = watchRuns({ runtime: "n" }, () => undefined, env);
  hidden.setVisible(false);
  await settled();
  assert.equal(env.requests.length, 0, "no request");
  hidden.stop();
  const watch = watchRuns({ runtime: "n" }, () => undefined, env);
  await settled();
  await env.respond(running);
  watch.setVisible(false);
  env.change("a");
  env.change(undefined);
  env.pass(60_000);
  assert.equal(env.requests.length, 1);
  watch.setVisible(true);
  assert.equal(env.requests.length, 2);
  await env.respond(running);
  env.setHidden(true);
  env.change("a");
  env.pass(60_000);
  assert.equal(env.requests.length, 2, "no request of a hidden page");
  env.setHidden(false);
  assert.equal(env.requests.length, 3);
});

test("keeps the data while the sidecar is offline, retries with growing delays, and at once when the runtimes change", async () => {
  const env = createEnvironment();
  const updates = [];
  watchRuns({ runtime: "n" }, (update) => updates.push(update), env);
  await settled();
  await env.respond(running);
  env.pass(2_000);
  await env.refuse("RUNTIME_UNREACHABLE");
  assert.deepEqual(updates.at(-1), { ...running, problem: { code: "RUNTIME_UNREACHABLE", message: "offline" } });
  const before = env.requests.length;
  for (let n = 0; n < 8; n += 1) {
    env.change("a");
    env.pass(30_000);
    await env.refuse("RUNTIME_UNREACHABLE");
  }
  const times = env.requests.slice(before).map(([time]) => time);
  assert.equal(times.length, 8);
  assert.ok(times.every((time, index) => index < 5 || time - times[index - 1] >= 30_000), String(times));
  env.pass(300);
  const count = env.requests.length;
  env.change(undefined);
  assert.equal(env.requests.length, count + 1);
  await env.respond(ended);
  assert.deepEqual(updates.at(-1), ended, "the problem is gone");
});

test("requests only new events of a run until it ends", async () => {
  const env = createEnvironment();
  const event = (seq, kind) => ({ runId: "r", seq, at: seq, agent: { instance: "i", nodeId: "a" }, event: kind });
  const ends = [];
  const watch = watchRun({ runtime: "n", run: "r" }, ({ timeline }) => ends.push(timeline.end?.stopReason), env);
  await settled();
  await env.respond([
    event(1, { type: "run_started", name: "", maxIterations: 2, tools: [] }),
    event(2, { type: "model_called", iteration: 1 }),
  ]);
  env.pass(2_000);
  assert.deepEqual(env.requests.at(-1)[1], { run: "r", after: 2 });
  await env.respond([
    event(3, { type: "run_finished", completed: true, stopReason: "final_answer", iterations: 1, durationMs: 1 }),
  ]);
  assert.deepEqual(ends, [undefined, "final_answer"]);
  env.change("a");
  env.change(undefined);
  watch.setVisible(false);
  watch.setVisible(true);
  env.pass(60_000);
  assert.equal(env.requests.length, 2, "an ended run does not change");
});

test("requests a waiting run when the status of its agent changes", async () => {
  const env = createEnvironment();
  const at = { runId: "r", at: 1, agent: { instance: "i", nodeId: "a" } };
  const call = { iteration: 1, tool: "t", callId: "c" };
  watchRun({ runtime: "n", run: "r", agent: "a" }, () => undefined, env);
  await settled();
  await env.respond([
    { ...at, seq: 1, event: { type: "tool_called", ...call } },
    { ...at, seq: 2, event: { type: "waiting_for_outcome", ...call, reason: "a crash" } },
  ]);
  env.pass(60_000);
  assert.equal(env.requests.length, 1);
  env.change("a");
  assert.equal(env.requests.length, 2);
});

test("a stopped watch does not notify", async () => {
  const env = createEnvironment();
  const updates = [];
  const watch = watchRuns({ runtime: "n" }, (update) => updates.push(update), env);
  await settled();
  watch.stop();
  await env.respond(running);
  env.pass(60_000);
  assert.deepEqual([updates, env.requests.length], [[], 1]);
});

test("requests the runtimes when they change, not when an agent does", async () => {
  const env = createEnvironment();
  const updates = [];
  watchRuntimes((update) => updates.push(update), env);
  await settled();
  await env.respond({ module: "1", runtimes: [] });
  env.change("a");
  env.pass(60_000);
  assert.equal(env.requests.length, 1);
  env.change(undefined);
  await env.refuse("FORBIDDEN");
  assert.deepEqual(updates.at(-1), { list: { module: "1", runtimes: [] }, problem: { code: "FORBIDDEN", message: "offline" } });
});

test("requests the errors of an agent while visible", async () => {
  const env = createEnvironment();
  const updates = [];
  const watch = watchErrors("a", (update) => updates.push(update), env);
  await settled();
  const error = { at: 1, code: "QUEUE_FULL", message: "full" };
  await env.respond({ errors: [] });
  env.pass(2_000);
  await env.respond({ errors: [error] });
  assert.deepEqual(updates, [{ errors: [] }, { errors: [error] }]);
  env.change("a");
  env.pass(300);
  assert.equal(env.requests.length, 3, "a change of the agent triggers a request");
  await env.refuse("NOT_FOUND");
  assert.deepEqual(updates.at(-1), { errors: [error], problem: { code: "NOT_FOUND", message: "offline" } }, "the data stay");
  watch.setVisible(false);
  env.pass(60_000);
  assert.deepEqual(env.requests.map(([at]) => at), [0, 2_000, 2_300], "hidden");
  watch.stop();
});

test("shows the text of the model while it writes, with more requests, and goes on without it", async () => {
  const env = createEnvironment();
  const updates = [];
  const watch = watchRun({ runtime: "rt", run: "r" }, (update) => updates.push(update), env);
  await settled();
  const event = (seq, kind) => ({ runId: "r", seq, at: seq, agent: { instance: "i", nodeId: "a" }, event: kind });
  env.liveText = () => ({ iteration: 1, attempt: 1, text: "He", isCut: false });
  await env.respond([event(1, { type: "model_called", iteration: 1 })]);
  assert.equal(updates.at(-1).live.text, "He");
  env.pass(500);
  assert.equal(env.pending.length, 1, "the next request is soon");
  // The text of an earlier iteration is over.
  await env.respond([event(2, { type: "model_answered", iteration: 1, action: "tool", durationMs: 1 }), event(3, { type: "model_called", iteration: 2 })]);
  assert.equal(updates.at(-1).live, undefined);
  env.pass(500);
  assert.equal(env.pending.length, 0);
  env.pass(1_500);
  env.liveText = () => {
    throw new RequestError(503, { code: "RUNTIME_UNREACHABLE", message: "" });
  };
  await env.respond([]);
  assert.deepEqual([updates.at(-1).live, updates.at(-1).problem], [undefined, undefined]);
  watch.stop();
});

test("shows no text of an agent whose model writes JSON", async () => {
  for (const [nodeId, shown] of [["a", "He"], ["core", undefined], ["unknown", undefined]]) {
    const env = createEnvironment();
    const updates = [];
    const watch = watchRun({ runtime: "rt", run: "r" }, (update) => updates.push(update), env);
    await settled();
    env.liveText = () => ({ iteration: 1, attempt: 1, text: "He", isCut: false });
    const called = { runId: "r", seq: 1, at: 1, agent: { instance: "i", nodeId }, event: { type: "model_called", iteration: 1 } };
    await env.respond([called]);
    assert.equal(updates.at(-1).live?.text, shown);
    // The next request has no event that names the agent.
    env.pass(2_000);
    await env.respond([]);
    assert.equal(updates.at(-1).live?.text, shown);
    watch.stop();
  }
});
