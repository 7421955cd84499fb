// When runs are asked for: by a clock that the test moves, and answers that it gives.

import assert from "node:assert/strict";
import test from "node:test";
import { Refused } from "../editor-build/editor/ask.mjs";
import { watchErrors, watchRun, watchRuns, watchRuntimes } from "../editor-build/editor/runs-feed.mjs";

/** A page, a sidecar and a clock. */
function world() {
  const around = {
    time: 0,
    asked: [],
    answers: [],
    page: { hidden: false },
    nudges: new Set(),
    turns: new Set(),
    timers: new Set(),
    take(what) {
      around.asked.push([around.time, what]);
      return new Promise((resolve, reject) => around.answers.push({ resolve, reject }));
    },
    runtimes: () => around.take("runtimes"),
    runs: (runtime, query) => around.take({ runtime, ...query }),
    events: (_runtime, run, after) => around.take({ run, after }),
    errors: (agent) => around.take({ agent }),
    onNudge: (listener) => (around.nudges.add(listener), () => around.nudges.delete(listener)),
    hidden: () => around.page.hidden,
    onHidden: (listener) => (around.turns.add(listener), () => around.turns.delete(listener)),
    now: () => around.time,
    after(ms, act) {
      const timer = { at: around.time + ms, act };
      around.timers.add(timer);
      return () => around.timers.delete(timer);
    },
    nudge: (agent) => around.nudges.forEach((listener) => listener(agent)),
    turn(hidden) {
      around.page.hidden = hidden;
      around.turns.forEach((listener) => listener());
    },
    pass(ms) {
      const until = around.time + ms;
      for (;;) {
        const due = [...around.timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
        if (due === undefined) {
          break;
        }
        around.timers.delete(due);
        around.time = due.at;
        due.act();
      }
      around.time = until;
    },
    async answer(value) {
      around.answers.shift().resolve(value);
      await settled();
    },
    async refuse(code) {
      around.answers.shift().reject(new Refused(503, { code, message: "away" }));
      await settled();
    },
  };
  return around;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const running = { runs: [{ runId: "r", status: "running" }] };
const over = { runs: [{ runId: "r", status: "completed" }] };

test("every two seconds while a run is at work, and then no more", async () => {
  const around = world();
  const seen = [];
  const watch = watchRuns({ runtime: "n", agent: "a", limit: 10 }, (news) => seen.push(news), around);
  await settled();
  assert.deepEqual(around.asked, [[0, { runtime: "n", agent: "a", limit: 10 }]], "at once");
  around.pass(10_000);
  assert.equal(around.asked.length, 1, "never two requests at once");
  await around.answer(running);
  around.pass(1_999);
  assert.equal(around.asked.length, 1);
  around.pass(1);
  assert.equal(around.asked.length, 2);
  await around.answer(over);
  around.pass(600_000);
  assert.equal(around.asked.length, 2, "nothing is at work");
  assert.deepEqual(seen, [running, over]);
  watch.stop();
  assert.deepEqual([around.nudges.size, around.turns.size, around.timers.size], [0, 0, 0]);
});

test("a nudge asks, at most every 300 ms, and only for the agent that is meant", async () => {
  const around = world();
  watchRuns({ runtime: "n", agent: "a" }, () => undefined, around);
  await settled();
  await around.answer(over);
  around.nudge("another");
  around.pass(60_000);
  assert.equal(around.asked.length, 1);
  around.nudge("a");
  assert.equal(around.asked.length, 2);
  for (let n = 0; n < 100; n += 1) {
    around.nudge("a");
  }
  await around.answer(over);
  assert.equal(around.asked.length, 2, "not at once");
  for (let n = 0; n < 100; n += 1) {
    around.nudge("a");
  }
  around.pass(300);
  assert.equal(around.asked.length, 3, "once for all of them");
  await around.answer(over);
  around.pass(60_000);
  assert.equal(around.asked.length, 3);
});

test("what is not seen asks nothing, and asks when it is seen again", async () => {
  const around = world();
  const unseen = watchRuns({ runtime: "n" }, () => undefined, around);
  unseen.visible(false);
  await settled();
  assert.equal(around.asked.length, 0, "not even once");
  unseen.stop();
  const watch = watchRuns({ runtime: "n" }, () => undefined, around);
  await settled();
  await around.answer(running);
  watch.visible(false);
  around.nudge("a");
  around.nudge(undefined);
  around.pass(60_000);
  assert.equal(around.asked.length, 1);
  watch.visible(true);
  assert.equal(around.asked.length, 2);
  await around.answer(running);
  around.turn(true);
  around.nudge("a");
  around.pass(60_000);
  assert.equal(around.asked.length, 2, "nor does a page that is hidden");
  around.turn(false);
  assert.equal(around.asked.length, 3);
});

test("a sidecar that is away: what was shown stays, requests grow rare, and a nudge of the runtimes asks again", async () => {
  const around = world();
  const seen = [];
  watchRuns({ runtime: "n" }, (news) => seen.push(news), around);
  await settled();
  await around.answer(running);
  around.pass(2_000);
  await around.refuse("RUNTIME_UNREACHABLE");
  assert.deepEqual(seen.at(-1), { ...running, problem: { code: "RUNTIME_UNREACHABLE", message: "away" } });
  const before = around.asked.length;
  for (let n = 0; n < 8; n += 1) {
    around.nudge("a");
    around.pass(30_000);
    await around.refuse("RUNTIME_UNREACHABLE");
  }
  const times = around.asked.slice(before).map(([time]) => time);
  assert.equal(times.length, 8);
  assert.ok(times.every((time, place) => place < 5 || time - times[place - 1] >= 30_000), String(times));
  around.pass(300);
  const rare = around.asked.length;
  around.nudge(undefined);
  assert.equal(around.asked.length, rare + 1);
  await around.answer(over);
  assert.deepEqual(seen.at(-1), over, "the problem is gone");
});

test("a run: only what is new is asked for, until it is over", async () => {
  const around = world();
  const event = (seq, kind) => ({ runId: "r", seq, at: seq, agent: { instance: "i", nodeId: "a" }, event: kind });
  const ends = [];
  const watch = watchRun({ runtime: "n", run: "r" }, ({ timeline }) => ends.push(timeline.end?.stopReason), around);
  await settled();
  await around.answer([
    event(1, { type: "run_started", name: "", maxIterations: 2, tools: [] }),
    event(2, { type: "model_called", iteration: 1 }),
  ]);
  around.pass(2_000);
  assert.deepEqual(around.asked.at(-1)[1], { run: "r", after: 2 });
  await around.answer([
    event(3, { type: "run_finished", completed: true, stopReason: "final_answer", iterations: 1, durationMs: 1 }),
  ]);
  assert.deepEqual(ends, [undefined, "final_answer"]);
  around.nudge("a");
  around.nudge(undefined);
  watch.visible(false);
  watch.visible(true);
  around.pass(60_000);
  assert.equal(around.asked.length, 2, "it cannot change any more");
});

test("a run that waits for a person is asked about when its agent's status changes", async () => {
  const around = world();
  const at = { runId: "r", at: 1, agent: { instance: "i", nodeId: "a" } };
  const call = { iteration: 1, tool: "t", callId: "c" };
  watchRun({ runtime: "n", run: "r", agent: "a" }, () => undefined, around);
  await settled();
  await around.answer([
    { ...at, seq: 1, event: { type: "tool_called", ...call } },
    { ...at, seq: 2, event: { type: "waiting_for_outcome", ...call, reason: "a crash" } },
  ]);
  around.pass(60_000);
  assert.equal(around.asked.length, 1);
  around.nudge("a");
  assert.equal(around.asked.length, 2);
});

test("a watch that was stopped tells nothing, whatever still comes", async () => {
  const around = world();
  const seen = [];
  const watch = watchRuns({ runtime: "n" }, (news) => seen.push(news), around);
  await settled();
  watch.stop();
  await around.answer(running);
  around.pass(60_000);
  assert.deepEqual([seen, around.asked.length], [[], 1]);
});

test("sidecars are asked about when they change, not when an agent does", async () => {
  const around = world();
  const seen = [];
  watchRuntimes((news) => seen.push(news), around);
  await settled();
  await around.answer({ module: "1", runtimes: [] });
  around.nudge("a");
  around.pass(60_000);
  assert.equal(around.asked.length, 1);
  around.nudge(undefined);
  await around.refuse("FORBIDDEN");
  assert.deepEqual(seen.at(-1), { list: { module: "1", runtimes: [] }, problem: { code: "FORBIDDEN", message: "away" } });
});

test("what the module keeps is asked for as long as somebody looks: it says nothing by itself", async () => {
  const around = world();
  const seen = [];
  const watch = watchErrors("a", (news) => seen.push(news), around);
  await settled();
  const error = { at: 1, code: "QUEUE_FULL", message: "full" };
  await around.answer({ errors: [] });
  around.pass(2_000);
  await around.answer({ errors: [error] });
  assert.deepEqual(seen, [{ errors: [] }, { errors: [error] }]);
  around.nudge("a");
  around.pass(300);
  assert.equal(around.asked.length, 3, "an agent's status may say so sooner");
  await around.refuse("NOT_FOUND");
  assert.deepEqual(seen.at(-1), { errors: [error], problem: { code: "NOT_FOUND", message: "away" } }, "what was known stays");
  watch.visible(false);
  around.pass(60_000);
  assert.deepEqual(around.asked.map(([at]) => at), [0, 2_000, 2_300], "nobody looks");
  watch.stop();
});
