// Held messages: the result on them, the node they output by, and the call of `done`.

import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { agentErrors } from "../dist/agent-errors.js";
import { Agents } from "../dist/agents.js";
import { Failure } from "../dist/failure.js";
import { Runs, finishIfEnding, hasLeftWithResult } from "../dist/runs.js";
import { FakeNode, FakeSession, fakeRed } from "./kit/red.mjs";

function world(limits = {}) {
  const node = new FakeNode("ag");
  const RED = fakeRed([node]);
  const [session, agents] = [new FakeSession(), new Agents(RED)];
  agents.setConnection({ is: "connected", version: "1" });
  agents.attach(node);
  const settings = { maxQueued: 10, queueSeconds: 5, maxHeldRuns: 10, url: "http://sidecar", problem: undefined, ...limits };
  const runs = new Runs(RED, session, agents, () => settings);
  const [sent, done] = [[], []];
  const start = (message) => {
    runs.start(node, message, (out) => sent.push(out), (error) => done.push(error));
    return session.messages.at(-1)?.start;
  };
  let effect = 0;
  const output = (start, message, more = {}) =>
    runs.output({
      ...{ type: "send", seq: 1, node: "ag", port: 3, run: "r", effect: (effect += 1), start, last: true, message },
      ...more,
    });
  return { node, session, agents, RED, runs, sent, done, start, output };
}

test("sends the message with a start, and puts the result on the same message object", () => {
  const { start, output, sent, done, session } = world();
  const message = { _msgid: "1", payload: "q", res: { end() {} }, topic: Buffer.from("t") };
  const { res } = message;
  const id = start(message);
  const encoded = session.messages[0].message;
  assert.deepEqual(encoded.res, { $redflow: "live", name: "Object" });
  const result = { payload: "a", envelope: { e: 1 }, agentResult: { r: 1 } };
  output(id, { ...encoded, ...result, _error: undefined, extra: { $redflow: "date", data: 1 } });
  assert.deepEqual(sent, [[null, null, null, message]]);
  assert.equal(sent[0][3], message);
  assert.equal(message.res, res);
  assert.ok(Buffer.isBuffer(message.topic));
  assert.deepEqual([message.payload, message.envelope, message.extra], ["a", { e: 1 }, new Date(1)]);
  assert.deepEqual(done, [undefined]);
});

test("does not decode a forged Buffer in a model's output", () => {
  const { start, output, sent } = world();
  const forged = { $redflow: "buffer", data: "AA==" };
  output(start({ payload: "q" }), { payload: forged, envelope: {}, agentResult: { message: forged } });
  assert.deepEqual(sent[0][3].payload, forged);
  assert.deepEqual(sent[0][3].agentResult, { message: forged });
});

test("a failed run sends its error from port 3 and fails the input with its code", () => {
  const { start, output, sent, done } = world();
  const message = { payload: "q" };
  const error = { code: "MODEL_ERROR", message: "no", source: {} };
  output(start(message), { payload: error, envelope: 1, agentResult: 2, error });
  assert.deepEqual(sent[0][3], { payload: error, envelope: 1, agentResult: 2, error });
  assert.equal(done[0].code, "MODEL_ERROR");
  assert.equal(done[0].toString(), "no");
  assert.equal(`${done[0]}`, "no (MODEL_ERROR)");
  assert.ok(!Object.hasOwn(done[0], "stack"));
  const why = "Node-RED itself sets the error for Catch nodes";
  assert.deepEqual(message, { payload: error, envelope: 1, agentResult: 2 }, why);
});

test("marks a failure that left the agent as a result", () => {
  const failed = (act) => {
    const own = world();
    act(own);
    return hasLeftWithResult(own.done[0]);
  };
  const error = { code: "X", message: "x" };
  assert.equal(failed(({ start, output }) => output(start({ payload: 1 }), { payload: 2, error })), true);
  assert.equal(failed(({ runs, start }) => runs.startFailed({ start: start({}), code: "X", message: "x" })), false);
  assert.deepEqual([hasLeftWithResult(undefined), hasLeftWithResult("x"), hasLeftWithResult(error)], [false, false, false]);
});

test("keeps an incoming error as _error, and for Catch nodes where Node-RED detects loops", () => {
  const old = { source: { id: "ag", count: 3 } };
  const success = world();
  success.output(success.start({ payload: 1, error: old }), { payload: 2 });
  assert.deepEqual(success.sent[0][3], { payload: 2, _error: old });
  const failed = world();
  const message = { payload: 1, error: old };
  failed.output(failed.start(message), { payload: 2, error: { code: "X", message: "x" } });
  assert.deepEqual(failed.sent[0][3]._error, old);
  assert.equal(failed.sent[0][3].error.code, "X");
  assert.equal(message.error, old);
});

test("sends a repeated output once", () => {
  const { start, output, sent, node } = world();
  const id = start({ payload: 1 });
  output(id, { payload: "step" }, { port: 4, last: false, effect: 1 });
  output(id, { payload: "step" }, { port: 4, last: false, effect: 1 });
  output(id, { payload: 2 }, { effect: 2 });
  output(id, { payload: 2 }, { effect: 2 });
  assert.equal(node.sent.length, 1);
  assert.equal(node.sent[0][4].payload, "step");
  assert.equal(sent.length, 1);
  assert.equal(node.received.length, 0);
});

test("sends a copy from port 4, and nothing without a wire", () => {
  const { start, output, node } = world();
  const message = { payload: 1 };
  const id = start(message);
  output(id, { payload: "step" }, { port: 4, last: false });
  assert.equal(message.payload, 1);
  node.wires = [[], [], [], ["x"], []];
  output(id, { payload: "step" }, { port: 4, last: false });
  assert.equal(node.sent.length, 1);
});

test("after a deploy the result leaves by the new node", () => {
  const { start, output, sent, done, agents } = world();
  const id = start({ payload: 1 });
  const next = new FakeNode("ag");
  agents.attach(next);
  const ends = [];
  next.onInput = (message) => assert.ok(finishIfEnding(message, (out) => ends.push(out), (error) => ends.push(error)));
  output(id, { payload: 2 });
  assert.deepEqual(ends, [[null, null, null, { payload: 2 }], undefined]);
  assert.deepEqual([sent, done], [[], []]);
  const fail = () => assert.fail("ended twice");
  assert.ok(!finishIfEnding(next.received[0], fail, fail), "only once");
});

test("after a restart of Node-RED the result has the stored properties", () => {
  const { output, node } = world();
  const ends = [];
  node.onInput = (message) => finishIfEnding(message, (out) => ends.push(out), (error) => ends.push(error));
  output("unknown", { payload: 2, topic: { $redflow: "buffer", data: "AA==" }, res: { $redflow: "live", name: "R" } });
  assert.deepEqual(ends, [[null, null, null, { payload: 2, topic: Buffer.from([0]) }], undefined]);
});

/** A node that replaces an agent and records how messages end there. */
function replacement(id = "ag") {
  const node = new FakeNode(id);
  node.ends = [];
  node.onInput = (message) =>
    assert.ok(finishIfEnding(message, (out) => node.ends.push(out), (error) => node.ends.push(error)));
  return node;
}

test("drops the message of a removed agent, and fails that of an agent with another runtime", () => {
  const { start, output, agents, runs, node, RED, done } = world();
  const id = start({ payload: 1 });
  const next = replacement();
  RED.byId.set("ag", next);
  agents.detach(node);
  assert.deepEqual(runs.resume(), [id]);
  assert.deepEqual(next.ends.map(({ code }) => code), ["CANCELLED"]);
  assert.deepEqual(runs.resume(), []);
  output(id, { payload: 2 });
  assert.equal(next.ends.length, 1);
  const removed = world();
  removed.start({ payload: 1 });
  removed.agents.detach(removed.node);
  for (const other of [undefined, new FakeNode("ag", "debug")]) {
    if (other === undefined) {
      removed.RED.byId.clear();
    } else {
      removed.RED.byId.set("ag", other);
    }
    assert.deepEqual(removed.runs.resume(), []);
    assert.deepEqual(other?.received ?? [], []);
  }
  assert.deepEqual([...done, ...removed.done], []);
  removed.agents.attach(removed.node);
  removed.start({ payload: 2 });
  assert.deepEqual(removed.done, [], "the dropped message does not count");
});

test("messages that end during a deploy output by the new nodes", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { start, agents, runs, node, session, done } = world({ maxHeldRuns: 2 });
  start({ payload: "sent" });
  session.connected = false;
  start({ payload: "unsent" });
  runs.pause();
  agents.detach(node);
  runs.failSent(new Failure("RUNTIME_UNREACHABLE", "another one"));
  mock.timers.tick(5_000);
  mock.timers.reset();
  const next = replacement();
  agents.attach(next);
  assert.deepEqual([done, next.ends], [[], []]);
  runs.start(next, { payload: "third" }, () => assert.fail("sent"), (error) => next.ends.push(error));
  assert.deepEqual(next.ends.splice(0).map(({ code }) => code), ["QUEUE_FULL"], "deferred messages count");
  assert.deepEqual(runs.resume(), []);
  const offline = "the sidecar at http://sidecar has been offline for 5 s";
  assert.deepEqual(next.ends.map(({ message }) => message), ["another one", offline]);
  assert.deepEqual(next.received.map(({ payload }) => payload), ["sent", "unsent"]);
  runs.resume();
  assert.equal(next.ends.length, 2);
});

test("close fails all messages, or only the unsent ones", () => {
  for (const [which, failed] of [["all", ["sent", "unsent"]], ["unsent", ["unsent"]]]) {
    const { start, runs, session, agents, node, RED } = world();
    start({ payload: "sent" });
    session.connected = false;
    start({ payload: "unsent" });
    runs.pause();
    agents.detach(node);
    runs.close(new Failure("RUNTIME_UNREACHABLE", "closed"), which);
    const next = replacement();
    RED.byId.set("ag", next);
    assert.deepEqual(runs.resume(), []);
    assert.deepEqual(next.received.map(({ payload }) => payload), failed);
  }
});

test("sends a copy of a message that cannot be changed", () => {
  const fixed = Object.defineProperty({ payload: 1 }, "envelope", { value: "old", enumerable: true });
  for (const message of [Object.freeze({ payload: 1, topic: "t" }), Object.seal({ payload: 1 }), fixed]) {
    const before = { ...message };
    const success = world();
    success.output(success.start(message), { payload: 2, envelope: "new" });
    assert.deepEqual(success.sent, [[null, null, null, { ...before, payload: 2, envelope: "new" }]]);
    assert.deepEqual(success.done, [undefined]);
    const failed = world();
    failed.output(failed.start(message), { payload: 2, error: { code: "X", message: "x" } });
    assert.equal(failed.sent[0][3].error.code, "X");
    assert.deepEqual(failed.done.map(({ code }) => code), ["X"]);
    assert.deepEqual({ ...message }, before);
  }
});

test("fails the input when the result cannot be sent", () => {
  const { runs, node, output, session } = world();
  const done = [];
  const send = () => {
    throw { toString: null };
  };
  runs.start(node, { payload: 1 }, send, (error) => done.push(error));
  output(session.messages[0].start, { payload: 2 });
  assert.deepEqual(done.map(({ code }) => code), ["INTERNAL"]);
});

test("logs errors that Node-RED throws when a message ends", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { runs, node, session, RED, output, agents } = world({ maxHeldRuns: 5 });
  const thrower = (name) => () => {
    throw new Error(`${name} threw`);
  };
  const start = (done) => runs.start(node, { payload: 1, hasOwnProperty: 1 }, () => undefined, done);
  start(thrower("a"));
  output(session.messages.at(-1).start, { payload: 2 });
  start(thrower("b"));
  runs.startDone({ start: session.messages.at(-1).start });
  start(thrower("c"));
  runs.startFailed({ start: session.messages.at(-1).start, code: "NOT_FOUND", message: "no such agent" });
  session.connected = false;
  start(thrower("d"));
  mock.timers.tick(5_000);
  mock.timers.reset();
  runs.start(node, { payload: "x".repeat(2_000) }, () => undefined, thrower("e"));
  node.send = thrower("f");
  output("unknown", { payload: 2 }, { port: 4, last: false });
  const next = new FakeNode("ag");
  next.receive = thrower("g");
  next.status = thrower("h");
  session.connected = true;
  start(() => undefined);
  agents.attach(next);
  output(session.messages.at(-1).start, { payload: 2 });
  for (const name of ["a", "b", "c", "d", "e", "f", "g", "h"]) {
    const lines = RED.logged.filter((line) => line.startsWith("error: ") && line.endsWith(`: ${name} threw`));
    assert.equal(lines.length, 1, name);
  }
  const cause = 'failed with "no such agent" (NOT_FOUND): c threw';
  assert.ok(RED.logged.some((line) => line.includes(cause)), "the failure of the message");
  const before = RED.logged.length;
  agents.setConnection({ is: "offline", reason: "x" });
  assert.equal(RED.logged.length, before, "the same error is not logged again");
});

test("refuses messages beyond the limits with a code", () => {
  const held = world({ maxHeldRuns: 2 });
  [1, 2, 3].forEach((payload) => held.start({ payload }));
  assert.deepEqual(held.done.map(({ code }) => code), ["QUEUE_FULL"]);
  held.output(held.session.messages[0].start, { payload: 0 });
  held.start({ payload: 4 });
  assert.equal(held.done.length, 2, "the limit is free again");
  const queued = world({ maxQueued: 1 });
  [1, 2].forEach((payload) => queued.start({ payload }));
  assert.deepEqual(queued.done.map(({ code }) => code), ["QUEUE_FULL"]);
  const large = world();
  large.start({ payload: "x".repeat(2_000) });
  assert.deepEqual(large.done.map(({ code }) => code), ["CONTEXT_LENGTH"]);
  assert.deepEqual(large.session.messages, []);
});

test("an unsent message expires, a sent one waits", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { start, session, done, node, agents } = world();
  session.connected = false;
  agents.setConnection({ is: "offline", reason: "gone" });
  start({ payload: 1 });
  start({ payload: 2 });
  assert.equal(node.statuses.at(-1).text, "sidecar offline (2 waiting): gone");
  session.posted[1].entry.seq = 1;
  mock.timers.tick(5_000);
  mock.timers.reset();
  assert.deepEqual(done.map(({ code }) => code), ["RUNTIME_UNREACHABLE"]);
  assert.equal(done[0].message, "the sidecar at http://sidecar has been offline for 5 s");
  assert.equal(node.statuses.at(-1).text, "sidecar offline (1 waiting): gone");
});

test("a start that began no run fails with its code; one that only cleared a memory completes", () => {
  const { start, runs, done } = world();
  runs.startFailed({ start: start({ payload: 1 }), code: "NOT_FOUND", message: "no such agent" });
  runs.startDone({ start: start({ payload: 2 }) });
  runs.startDone({ start: "unknown" });
  assert.equal(done[0].code, "NOT_FOUND");
  assert.deepEqual(done.slice(1), [undefined]);
});

test("failSent fails the sent messages and keeps the unsent ones", () => {
  const { start, session, runs, done } = world();
  start({ payload: 1 });
  session.connected = false;
  start({ payload: 2 });
  runs.failSent(new Failure("RUNTIME_UNREACHABLE", "another one"));
  assert.deepEqual(done.map(({ message }) => message), ["another one"]);
});

test("the status shows the connection, then the problem, then the run", () => {
  const { agents, node } = world();
  const last = () => node.statuses.at(-1);
  agents.setRunStatus("ag", { fill: "blue", shape: "ring", text: "iteration 1: model" });
  assert.equal(last().text, "iteration 1: model");
  agents.setProblems(new Map([["ag", { text: "no model" }]]));
  assert.deepEqual(last(), { fill: "red", shape: "dot", text: "no model" });
  agents.setConnection({ is: "offline", reason: "cut" });
  assert.deepEqual(last(), { fill: "grey", shape: "ring", text: "sidecar offline: cut" });
  const count = node.statuses.length;
  agents.setConnection({ is: "offline", reason: "cut" });
  assert.equal(node.statuses.length, count, "the same status is not shown again");
  agents.setConnection({ is: "refused", code: "UNAUTHORIZED", message: "x".repeat(500) });
  assert.match(last().text, /^UNAUTHORIZED: x+…$/);
  assert.equal(last().text.length, 40);
  // A missing program is said in its own words.
  agents.setConnection({ is: "refused", code: "SIDECAR_UNREACHABLE", message: "there is no program x" });
  assert.equal(last().text, "there is no program x");
  agents.setProblems(new Map());
  agents.setConnection({ is: "connected", version: "1" });
  assert.equal(last().text, "iteration 1: model");
});

test("editors receive the phrase of a status before its text, and lose it with the agent", () => {
  const { agents, node, RED } = world();
  const [id, topic] = ["ag", "redflow/status/ag"];
  const phrase = { key: "status_model", args: { iteration: "1" } };
  agents.setRunStatus(id, { fill: "blue", shape: "ring", text: "iteration 1: model", phrase });
  assert.deepEqual(RED.published, [[topic, { text: "iteration 1: model", phrase }, true]]);
  const problem = { text: "`a` has no model", phrase: { key: "service_missing", args: { agent: "`a`", role: { key: "model" } } } };
  agents.setProblems(new Map([[id, problem]]));
  assert.deepEqual(RED.published.at(-1)[1], problem);
  agents.setWaiting(2);
  agents.setConnection({ is: "offline", reason: "cut" });
  const args = { reason: "cut", waiting: "2" };
  assert.deepEqual(RED.published.at(-1)[1], { text: "sidecar offline (2 waiting): cut", phrase: { key: "status_offline_waiting", args } });
  agents.setConnection({ is: "refused", code: "UNAUTHORIZED", message: "no" });
  assert.deepEqual(RED.published.at(-1), [topic, {}, false], "a status without a phrase");
  const count = RED.published.length;
  agents.setConnection({ is: "refused", code: "UNAUTHORIZED", message: "still no" });
  assert.equal(RED.published.length, count);
  agents.setConnection({ is: "connecting" });
  agents.detach(node);
  assert.deepEqual(RED.published.at(-1), [topic, {}, false], "a removed agent");
});

test("shows a service that fails, unless a run is more urgent", () => {
  const { agents, node, RED } = world();
  agentErrors.forget("ag");
  const last = () => node.statuses.at(-1);
  const phrase = { key: "memory_fails", args: { reason: { key: "redis_unreachable" }, memory: "m" } };
  const problem = { code: "MEMORY_ERROR", message: "Redis cannot be reached: the agent runs without its memory", phrase };
  agents.setRunStatus("ag", { fill: "green", shape: "dot", text: "done" });
  agents.setFailing("ag", problem);
  assert.deepEqual([last().fill, last().text], ["yellow", "Redis cannot be reached: the agent runs…"]);
  assert.deepEqual(RED.published.at(-1)[1], { text: last().text, phrase });
  assert.deepEqual(agentErrors.list("ag"), [problem]);
  agents.setRunStatus("ag", { fill: "blue", shape: "ring", text: "iteration 1" });
  assert.equal(last().text, "iteration 1");
  agents.setRunStatus("ag", { fill: "red", shape: "dot", text: "TIMEOUT" });
  assert.equal(last().text, "TIMEOUT");
  agents.setRunStatus("ag", { fill: "green", shape: "dot", text: "done" });
  assert.equal(last().fill, "yellow");
  agents.setFailing("ag", undefined);
  assert.deepEqual([last().text, agentErrors.list("ag")], ["done", []]);
  // An agent that is not here is not kept, and a new session of the sidecar begins with none.
  agents.setFailing("gone", problem);
  assert.deepEqual(agentErrors.list("gone"), []);
  agents.setFailing("ag", problem);
  agents.forgetStatuses("all");
  assert.deepEqual(agentErrors.list("ag"), []);
});

test("a new message clears the status of an ended run, not of one that goes on", () => {
  const { agents, node, start } = world();
  const [running, ended] = [{ fill: "blue", shape: "ring", text: "iteration 1" }, { fill: "green", shape: "dot", text: "done" }];
  agents.setRunStatus("ag", ended);
  start({ payload: 1 });
  assert.deepEqual(node.statuses.at(-1), {});
  agents.setRunStatus("ag", running);
  start({ payload: 2 });
  assert.deepEqual(node.statuses.at(-1), running);
});

test("a failure behind http in sets the status of the response by its code", () => {
  const res = { end() {} };
  const failed = (code, message) => {
    const own = world();
    own.output(own.start(message), { payload: 1, error: { code, message: "no" } });
    return [own.sent[0][3].statusCode, message.statusCode];
  };
  const expected = { CONTEXT_LENGTH: 413, MODEL_KEY_MISSING: 500, MODEL_ERROR: 502, PROVIDER_UNAVAILABLE: 503, TIMEOUT: 504 };
  for (const [code, status] of Object.entries({ ...expected, OF_A_NEWER_SIDECAR: 500, constructor: 500 })) {
    assert.deepEqual(failed(code, { res, statusCode: 200 }), [status, status], code);
  }
  assert.deepEqual(failed("TIMEOUT", { payload: 1 }), [undefined, undefined], "no request waits for it");
  assert.deepEqual(failed("TIMEOUT", Object.freeze({ res }))[0], 504, "a copy leaves");
  // Messages that began no run, for Catch nodes.
  const refused = world({ maxHeldRuns: 1 });
  const [first, second, large] = [{ res }, { res }, { res, payload: "x".repeat(2_000) }];
  const id = refused.start(first);
  [second, large].forEach(refused.start);
  refused.runs.startFailed({ start: id, code: "NOT_FOUND", message: "no agent" });
  assert.deepEqual([first.statusCode, second.statusCode, large.statusCode], [404, 503, 413]);
});

test("a success after a failure leaves no status of the failure", () => {
  const success = (message) => {
    const own = world();
    own.output(own.start(message), { payload: 1 });
    return own.sent[0][3].statusCode;
  };
  assert.equal(success({ res: {}, statusCode: 504, error: { code: "TIMEOUT" } }), undefined);
  // A status of the flow's own stays.
  assert.equal(success({ res: {}, statusCode: 201, error: { code: "TIMEOUT" } }), 201);
  assert.equal(success({ res: {}, statusCode: 201 }), 201);
});

test("keeps errors without a run, and leaves those of runs to the sidecar", () => {
  const { start, output, runs, done } = world({ maxHeldRuns: 1 });
  agentErrors.forget("ag");
  const codes = () => agentErrors.list("ag").map(({ code }) => code);
  const failed = { error: { code: "TIMEOUT", message: "too slow" } };
  output(start({ payload: 1 }), failed);
  assert.deepEqual(codes(), []);
  output(start({ payload: 2 }), { error: { code: "EDGE_REJECTED", message: "refused" } }, { run: "s", effect: undefined });
  const id = start({ payload: 3 });
  start({ payload: 4 });
  runs.startFailed({ start: id, code: "NOT_FOUND", message: "no agent" });
  assert.deepEqual(codes(), ["NOT_FOUND", "QUEUE_FULL", "EDGE_REJECTED"]);
  assert.deepEqual(done.map(({ code }) => code), ["TIMEOUT", "EDGE_REJECTED", "QUEUE_FULL", "NOT_FOUND"]);
  agentErrors.forget("ag");
});

test("sends streamed pieces at once, each on a copy of the message that started the run", () => {
  const { node, runs, start } = world();
  node.wires = [["a"], ["b"]];
  const sent = [];
  node.send = (out) => sent.push(out);
  // A `websocket out` answers the client of `_session`, an `http response` that of `res`.
  const kept = { _msgid: "m1", topic: "t", _session: { type: "websocket", id: "c1" }, socketid: 3, res: { end() {} } };
  const question = { ...kept, payload: "q", agentResult: { traceId: "before" }, stream: "old" };
  const id = start(question);
  const part = { type: "text", runId: "r", iteration: 1, attempt: 1, seq: 1 };
  const forged = { $redflow: "buffer", data: "AA==" };
  const stream = (more) => runs.stream({ type: "stream", node: "ag", port: 1, start: id, message: { payload: "He", stream: part }, ...more });
  stream({});
  assert.deepEqual(sent, [[null, { ...kept, payload: "He", stream: part }]]);
  assert.equal(sent[0][1].res, kept.res);
  assert.deepEqual(question, { ...kept, payload: "q", agentResult: { traceId: "before" }, stream: "old" });
  stream({ start: "other", message: { payload: forged, stream: { ...part, at: { $redflow: "date", data: 1 } } } });
  assert.deepEqual(sent[1], [null, { payload: forged, stream: { ...part, at: new Date(1) } }]);
  // Nothing is kept for later: not for a port without a wire, an agent that is gone, or the nodes of a deploy.
  stream({ port: 2 });
  stream({ port: 4_000_000_000 });
  stream({ node: "gone" });
  runs.pause();
  stream({});
  runs.resume();
  assert.equal(sent.length, 2);
});

test("a piece that cannot be sent breaks nothing", () => {
  const { node, runs } = world();
  node.wires = [[], ["b"]];
  node.send = () => {
    throw new Error("no");
  };
  runs.stream({ type: "stream", node: "ag", port: 1, message: { payload: "He" } });
});
