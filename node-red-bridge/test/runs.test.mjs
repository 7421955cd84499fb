// Messages that are held while their runs go on: what is put on them, by whom they leave, and who hears that they are
// done.

import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { Agents } from "../dist/agents.js";
import { errors } from "../dist/errors.js";
import { Failure } from "../dist/failure.js";
import { Runs, endedHere, goesOn } from "../dist/runs.js";
import { FakeConversation, FakeNode, fakeRed } from "./kit/red.mjs";

function world(bounds = {}) {
  const node = new FakeNode("ag");
  const RED = fakeRed([node]);
  const [conversation, agents] = [new FakeConversation(), new Agents(RED)];
  agents.setLink({ is: "connected", version: "1" });
  agents.attach(node);
  const settings = { maxQueued: 10, queueSeconds: 5, maxHeldRuns: 10, url: "http://sidecar", ...bounds };
  const runs = new Runs(RED, conversation, agents, () => settings);
  const [sent, done] = [[], []];
  const start = (message) => {
    runs.start(node, message, (out) => sent.push(out), (error) => done.push(error));
    return conversation.messages.at(-1)?.start;
  };
  let effect = 0;
  const leave = (start, message, more = {}) =>
    runs.leave({
      ...{ type: "send", seq: 1, node: "ag", port: 3, run: "r", effect: (effect += 1), start, last: true, message },
      ...more,
    });
  return { node, conversation, agents, RED, runs, sent, done, start, leave };
}

test("a start carries the message; its result is put on that very message, live objects and all", () => {
  const { start, leave, sent, done, conversation } = world();
  const message = { _msgid: "1", payload: "q", res: { end() {} }, topic: Buffer.from("t") };
  const { res } = message;
  const id = start(message);
  const told = conversation.messages[0].message;
  assert.deepEqual(told.res, { $redflow: "live", name: "Object" });
  const made = { payload: "a", envelope: { e: 1 }, agentResult: { r: 1 } };
  leave(id, { ...told, ...made, _error: undefined, extra: { $redflow: "date", data: 1 } });
  assert.deepEqual(sent, [[null, null, null, message]]);
  assert.equal(sent[0][3], message);
  assert.equal(message.res, res);
  assert.ok(Buffer.isBuffer(message.topic));
  assert.deepEqual([message.payload, message.envelope, message.extra], ["a", { e: 1 }, new Date(1)]);
  assert.deepEqual(done, [undefined]);
});

test("what a model says is not read: a forged Buffer stays words", () => {
  const { start, leave, sent } = world();
  const forged = { $redflow: "buffer", data: "AA==" };
  leave(start({ payload: "q" }), { payload: forged, envelope: {}, agentResult: { message: forged } });
  assert.deepEqual(sent[0][3].payload, forged);
  assert.deepEqual(sent[0][3].agentResult, { message: forged });
});

test("a failed run leaves by port 3 with its error, and then the input fails with its code", () => {
  const { start, leave, sent, done } = world();
  const message = { payload: "q" };
  const error = { code: "MODEL_ERROR", message: "no", source: {} };
  leave(start(message), { payload: error, envelope: 1, agentResult: 2, error });
  assert.deepEqual(sent[0][3], { payload: error, envelope: 1, agentResult: 2, error });
  assert.equal(done[0].code, "MODEL_ERROR");
  assert.equal(done[0].toString(), "no");
  assert.equal(`${done[0]}`, "no (MODEL_ERROR)");
  assert.ok(!Object.hasOwn(done[0], "stack"));
  const why = "Node-RED puts the error there for Catch nodes";
  assert.deepEqual(message, { payload: error, envelope: 1, agentResult: 2 }, why);
});

test("a failure that leaves as a result is no end of its message; one that is all there is, is", () => {
  const failed = (act) => {
    const own = world();
    act(own);
    return goesOn(own.done[0]);
  };
  const error = { code: "X", message: "x" };
  assert.equal(failed(({ start, leave }) => leave(start({ payload: 1 }), { payload: 2, error })), true);
  assert.equal(failed(({ runs, start }) => runs.startFailed({ start: start({}), code: "X", message: "x" })), false);
  assert.deepEqual([goesOn(undefined), goesOn("x"), goesOn(error)], [false, false, false]);
});

test("an error that came in is kept as _error; for Catch nodes it is where Node-RED looks for loops", () => {
  const old = { source: { id: "ag", count: 3 } };
  const well = world();
  well.leave(well.start({ payload: 1, error: old }), { payload: 2 });
  assert.deepEqual(well.sent[0][3], { payload: 2, _error: old });
  const badly = world();
  const message = { payload: 1, error: old };
  badly.leave(badly.start(message), { payload: 2, error: { code: "X", message: "x" } });
  assert.deepEqual(badly.sent[0][3]._error, old);
  assert.equal(badly.sent[0][3].error.code, "X");
  assert.equal(message.error, old);
});

test("each output leaves once, also when it comes again", () => {
  const { start, leave, sent, node } = world();
  const id = start({ payload: 1 });
  leave(id, { payload: "step" }, { port: 4, last: false, effect: 1 });
  leave(id, { payload: "step" }, { port: 4, last: false, effect: 1 });
  leave(id, { payload: 2 }, { effect: 2 });
  leave(id, { payload: 2 }, { effect: 2 });
  assert.equal(node.sent.length, 1);
  assert.equal(node.sent[0][4].payload, "step");
  assert.equal(sent.length, 1);
  assert.equal(node.received.length, 0);
});

test("port 4 gets a copy, and nothing at all if nothing is wired to it", () => {
  const { start, leave, node } = world();
  const message = { payload: 1 };
  const id = start(message);
  leave(id, { payload: "step" }, { port: 4, last: false });
  assert.equal(message.payload, 1);
  node.wires = [[], [], [], ["x"], []];
  leave(id, { payload: "step" }, { port: 4, last: false });
  assert.equal(node.sent.length, 1);
});

test("after a deploy the result leaves by the new node, and is done there", () => {
  const { start, leave, sent, done, agents } = world();
  const id = start({ payload: 1 });
  const next = new FakeNode("ag");
  agents.attach(next);
  const ends = [];
  next.onInput = (message) => assert.ok(endedHere(message, (out) => ends.push(out), (error) => ends.push(error)));
  leave(id, { payload: 2 });
  assert.deepEqual(ends, [[null, null, null, { payload: 2 }], undefined]);
  assert.deepEqual([sent, done], [[], []]);
  assert.ok(!endedHere(next.received[0], assert.fail, assert.fail), "only once");
});

test("after a restart of Node-RED the result carries what could be stored", () => {
  const { leave, node } = world();
  const ends = [];
  node.onInput = (message) => endedHere(message, (out) => ends.push(out), (error) => ends.push(error));
  leave("of before", { payload: 2, topic: { $redflow: "buffer", data: "AA==" }, res: { $redflow: "live", name: "R" } });
  assert.deepEqual(ends, [[null, null, null, { payload: 2, topic: Buffer.from([0]) }], undefined]);
});

/** A node that stands where an agent was, and how messages ended there. */
function successor(id = "ag") {
  const node = new FakeNode(id);
  node.ends = [];
  node.onInput = (message) =>
    assert.ok(endedHere(message, (out) => node.ends.push(out), (error) => node.ends.push(error)));
  return node;
}

test("the message of an agent that is gone is forgotten; of one that is elsewhere it fails there", () => {
  const { start, leave, agents, runs, node, RED, done } = world();
  const id = start({ payload: 1 });
  const next = successor();
  RED.byId.set("ag", next);
  agents.detach(node);
  assert.deepEqual(runs.resume(), [id]);
  assert.deepEqual(next.ends.map(({ code }) => code), ["CANCELLED"]);
  assert.deepEqual(runs.resume(), []);
  leave(id, { payload: 2 });
  assert.equal(next.ends.length, 1);
  const gone = world();
  gone.start({ payload: 1 });
  gone.agents.detach(gone.node);
  for (const other of [undefined, new FakeNode("ag", "debug")]) {
    other === undefined ? gone.RED.byId.clear() : gone.RED.byId.set("ag", other);
    assert.deepEqual(gone.runs.resume(), []);
    assert.deepEqual(other?.received ?? [], []);
  }
  assert.deepEqual([...done, ...gone.done], []);
  gone.agents.attach(gone.node);
  gone.start({ payload: 2 });
  assert.deepEqual(gone.done, [], "and takes no room");
});

test("what ends while nodes are exchanged ends when they are there, by the new ones", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { start, agents, runs, node, conversation, done } = world({ maxHeldRuns: 2 });
  start({ payload: "begun" });
  conversation.connected = false;
  start({ payload: "waits" });
  runs.pause();
  agents.detach(node);
  runs.failBegun(new Failure("RUNTIME_UNREACHABLE", "another one"));
  mock.timers.tick(5_000);
  mock.timers.reset();
  const next = successor();
  agents.attach(next);
  assert.deepEqual([done, next.ends], [[], []]);
  runs.start(next, { payload: "third" }, assert.fail, (error) => next.ends.push(error));
  assert.deepEqual(next.ends.splice(0).map(({ code }) => code), ["QUEUE_FULL"], "what waits to end is counted");
  assert.deepEqual(runs.resume(), []);
  const away = "the sidecar at http://sidecar has been away for 5 s";
  assert.deepEqual(next.ends.map(({ message }) => message), ["another one", away]);
  assert.deepEqual(next.received.map(({ payload }) => payload), ["begun", "waits"]);
  runs.resume();
  assert.equal(next.ends.length, 2);
});

test("a runtime that is left fails what no sidecar has; what one has only if it was removed", () => {
  for (const [removed, failed] of [[true, ["begun", "waits"]], [false, ["waits"]]]) {
    const { start, runs, conversation, agents, node, RED } = world();
    start({ payload: "begun" });
    conversation.connected = false;
    start({ payload: "waits" });
    runs.pause();
    agents.detach(node);
    runs.leaveAll(new Failure("RUNTIME_UNREACHABLE", "left"), removed);
    const next = successor();
    RED.byId.set("ag", next);
    assert.deepEqual(runs.resume(), []);
    assert.deepEqual(next.received.map(({ payload }) => payload), failed);
  }
});

test("a message that cannot be changed keeps its result: a copy of it leaves", () => {
  const fixed = Object.defineProperty({ payload: 1 }, "envelope", { value: "old", enumerable: true });
  for (const message of [Object.freeze({ payload: 1, topic: "t" }), Object.seal({ payload: 1 }), fixed]) {
    const before = { ...message };
    const well = world();
    well.leave(well.start(message), { payload: 2, envelope: "new" });
    assert.deepEqual(well.sent, [[null, null, null, { ...before, payload: 2, envelope: "new" }]]);
    assert.deepEqual(well.done, [undefined]);
    const badly = world();
    badly.leave(badly.start(message), { payload: 2, error: { code: "X", message: "x" } });
    assert.equal(badly.sent[0][3].error.code, "X");
    assert.deepEqual(badly.done.map(({ code }) => code), ["X"]);
    assert.deepEqual({ ...message }, before);
  }
});

test("a result that cannot leave fails its input, whatever was thrown", () => {
  const { runs, node, leave, conversation } = world();
  const done = [];
  const send = () => {
    throw { toString: null };
  };
  runs.start(node, { payload: 1 }, send, (error) => done.push(error));
  leave(conversation.messages[0].start, { payload: 2 });
  assert.deepEqual(done.map(({ code }) => code), ["INTERNAL"]);
});

test("what Node-RED throws when a message ends is logged, and goes no further", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { runs, node, conversation, RED, leave, agents } = world({ maxHeldRuns: 5 });
  const thrower = (what) => () => {
    throw new Error(`${what} threw`);
  };
  const start = (done) => runs.start(node, { payload: 1, hasOwnProperty: 1 }, () => undefined, done);
  start(thrower("a"));
  leave(conversation.messages.at(-1).start, { payload: 2 });
  start(thrower("b"));
  runs.startDone({ start: conversation.messages.at(-1).start });
  start(thrower("c"));
  runs.startFailed({ start: conversation.messages.at(-1).start, code: "NOT_FOUND", message: "no such agent" });
  conversation.connected = false;
  start(thrower("d"));
  mock.timers.tick(5_000);
  mock.timers.reset();
  runs.start(node, { payload: "x".repeat(2_000) }, () => undefined, thrower("e"));
  node.send = thrower("f");
  leave("unknown", { payload: 2 }, { port: 4, last: false });
  const next = new FakeNode("ag");
  next.receive = thrower("g");
  next.status = thrower("h");
  conversation.connected = true;
  start(() => undefined);
  agents.attach(next);
  leave(conversation.messages.at(-1).start, { payload: 2 });
  for (const what of ["a", "b", "c", "d", "e", "f", "g", "h"]) {
    const lines = RED.logged.filter((line) => line.startsWith("error: ") && line.endsWith(`: ${what} threw`));
    assert.equal(lines.length, 1, what);
  }
  const about = 'failed with "no such agent" (NOT_FOUND): c threw';
  assert.ok(RED.logged.some((line) => line.includes(about)), "what it was about");
  const before = RED.logged.length;
  agents.setLink({ is: "away", reason: "x" });
  assert.equal(RED.logged.length, before, "the same is not said again");
});

test("too much is refused at once, with a code", () => {
  const held = world({ maxHeldRuns: 2 });
  [1, 2, 3].forEach((payload) => held.start({ payload }));
  assert.deepEqual(held.done.map(({ code }) => code), ["QUEUE_FULL"]);
  held.leave(held.conversation.messages[0].start, { payload: 0 });
  held.start({ payload: 4 });
  assert.equal(held.done.length, 2, "there is room again");
  const queued = world({ maxQueued: 1 });
  [1, 2].forEach((payload) => queued.start({ payload }));
  assert.deepEqual(queued.done.map(({ code }) => code), ["QUEUE_FULL"]);
  const large = world();
  large.start({ payload: "x".repeat(2_000) });
  assert.deepEqual(large.done.map(({ code }) => code), ["CONTEXT_LENGTH"]);
  assert.deepEqual(large.conversation.messages, []);
});

test("a message that no socket had gets an error after its time; one that a socket had waits", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { start, conversation, done, node, agents } = world();
  conversation.connected = false;
  agents.setLink({ is: "away", reason: "gone" });
  start({ payload: 1 });
  start({ payload: 2 });
  assert.equal(node.statuses.at(-1).text, "sidecar away: gone (2 waiting)");
  conversation.posted[1].entry.seq = 1;
  mock.timers.tick(5_000);
  mock.timers.reset();
  assert.deepEqual(done.map(({ code }) => code), ["RUNTIME_UNREACHABLE"]);
  assert.equal(done[0].message, "the sidecar at http://sidecar has been away for 5 s");
  assert.equal(node.statuses.at(-1).text, "sidecar away: gone (1 waiting)");
});

test("a start that began nothing fails with its code; one that only made a memory forget is done", () => {
  const { start, runs, done } = world();
  runs.startFailed({ start: start({ payload: 1 }), code: "NOT_FOUND", message: "no such agent" });
  runs.startDone({ start: start({ payload: 2 }) });
  runs.startDone({ start: "unknown" });
  assert.equal(done[0].code, "NOT_FOUND");
  assert.deepEqual(done.slice(1), [undefined]);
});

test("another sidecar: what the one before may have begun fails, what waits still goes to the next", () => {
  const { start, conversation, runs, done } = world();
  start({ payload: 1 });
  conversation.connected = false;
  start({ payload: 2 });
  runs.failBegun(new Failure("RUNTIME_UNREACHABLE", "another one"));
  assert.deepEqual(done.map(({ message }) => message), ["another one"]);
});

test("what is shown: refusals before absence before problems before the run's own words", () => {
  const { agents, node } = world();
  const last = () => node.statuses.at(-1);
  agents.setSaid("ag", { fill: "blue", shape: "ring", text: "iteration 1: model" });
  assert.equal(last().text, "iteration 1: model");
  agents.setProblems(new Map([["ag", "MODEL_MISSING: no model"]]));
  assert.deepEqual(last(), { fill: "red", shape: "dot", text: "MODEL_MISSING: no model" });
  agents.setLink({ is: "away", reason: "cut" });
  assert.deepEqual(last(), { fill: "grey", shape: "ring", text: "sidecar away: cut" });
  const shown = node.statuses.length;
  agents.setLink({ is: "away", reason: "cut" });
  assert.equal(node.statuses.length, shown, "the same again is not shown again");
  agents.setLink({ is: "refused", code: "UNAUTHORIZED", message: "x".repeat(500) });
  assert.match(last().text, /^UNAUTHORIZED: x+…$/);
  assert.equal(last().text.length, 120);
  agents.setProblems(new Map());
  agents.setLink({ is: "connected", version: "1" });
  assert.equal(last().text, "iteration 1: model");
});

test("what began no run is kept for people; how a run ended is the sidecar's to tell", () => {
  const { start, leave, runs, done } = world({ maxHeldRuns: 1 });
  errors.forget("ag");
  const kept = () => errors.of("ag").map(({ code }) => code);
  const failed = { error: { code: "TIMEOUT", message: "too slow" } };
  leave(start({ payload: 1 }), failed);
  assert.deepEqual(kept(), []);
  leave(start({ payload: 2 }), { error: { code: "EDGE_REJECTED", message: "refused" } }, { run: "s", effect: undefined });
  const id = start({ payload: 3 });
  start({ payload: 4 });
  runs.startFailed({ start: id, code: "NOT_FOUND", message: "no agent" });
  assert.deepEqual(kept(), ["NOT_FOUND", "QUEUE_FULL", "EDGE_REJECTED"]);
  assert.deepEqual(done.map(({ code }) => code), ["TIMEOUT", "EDGE_REJECTED", "QUEUE_FULL", "NOT_FOUND"]);
  errors.forget("ag");
});
