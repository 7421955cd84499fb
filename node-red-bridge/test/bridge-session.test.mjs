// The bridge protocol against a small fake sidecar: sockets that break at every point, restarts of the sidecar, and
// invalid messages.

import assert from "node:assert/strict";
import test from "node:test";
import { BridgeSession, DEFAULT_LIMITS, PROTOCOL } from "../dist/bridge-session.js";

const IDENTITY = { instance: "i", boot: "b", nodeRed: "4.1.0", bridge: "0.1.0" };
const LIMIT = { count: 1_000, bytes: 1e6 };

/** A sidecar with numbers, acks and sessions as in bridge.rs. Answers every start with one numbered message. */
class Sidecar {
  constructor(session) {
    this.session = session;
    this.received = 0;
    this.seq = 0;
    this.unacked = [];
    this.started = new Set();
    this.flows = 0;
  }

  receive(text, send) {
    const message = JSON.parse(text);
    if (message.type === "hello") {
      const same = message.session === this.session;
      if (same) {
        this.unacked = this.unacked.filter(({ seq }) => seq > message.received);
      } else {
        this.unacked = this.unacked.map((message, at) => ({ ...message, seq: at + 1 }));
        this.seq = this.unacked.length;
        this.received = 0;
      }
      const { session, received } = this;
      send({ type: "welcome", version: "1", session, received, limits: DEFAULT_LIMITS });
      // The last ack may have been lost with the socket.
      send({ type: "ack", seq: received });
      this.unacked.forEach(send);
    } else if (message.type === "ack") {
      this.unacked = this.unacked.filter(({ seq }) => seq > message.seq);
    } else if (message.seq <= this.received) {
      return;
    } else {
      assert.equal(message.seq, this.received + 1, "no number is missing");
      this.received = message.seq;
      if (message.type === "flows") {
        this.flows += 1;
      } else if (!this.started.has(message.start)) {
        assert.ok(this.flows > 0, "the flow precedes the first start");
        this.started.add(message.start);
        const answer = { type: "start_done", seq: (this.seq += 1), start: message.start };
        this.unacked.push(answer);
        send(answer);
      }
      send({ type: "ack", seq: message.seq });
    }
  }
}

/** Both sides, with a socket that breaks after `budget` texts. */
function pair() {
  const world = { sidecar: new Sidecar("s1"), received: [], sessions: [], closings: [], dropped: [], later: [], budget: Infinity };
  const session = new BridgeSession(
    IDENTITY,
    {
      onWelcome: (_, kind) => world.sessions.push(kind),
      onMessage: (message) => world.received.push(message),
      onClosing: (closing) => world.closings.push(closing),
      onAck: () => undefined,
      firstMessage: () => ({ type: "flows", rest: '"revision":"r"}' }),
    },
    (run) => world.later.push(run),
  );
  let queue = [];
  const carry = (deliver) => {
    if (world.budget > 0) {
      world.budget -= 1;
      queue.push(deliver);
    } else {
      world.broken = true;
    }
  };
  world.open = (budget = Infinity) => {
    Object.assign(world, { budget, broken: false });
    queue = [];
    const { sidecar } = world;
    const send = (message) => carry(() => session.receive(JSON.stringify(message)));
    session.open({
      send: (text) => carry(() => sidecar.receive(text, send)),
      drop: (reason) => world.dropped.push(reason),
    });
    world.settle();
  };
  world.settle = () => {
    while (queue.length > 0 || world.later.length > 0) {
      (queue.shift() ?? world.later.shift())();
    }
    if (world.broken) {
      session.disconnect();
    }
  };
  world.session = session;
  world.start = (id) => session.post("start", `"start":"${id}"}`, LIMIT);
  world.answered = () => world.received.map(({ start }) => start);
  return world;
}

test("exchanges hello, welcome, the flow, starts, answers and acks", () => {
  const world = pair();
  world.start("early");
  world.open();
  world.start("late");
  world.settle();
  assert.deepEqual(world.answered(), ["early", "late"]);
  assert.deepEqual(world.sessions, ["new"]);
  assert.equal(world.sidecar.flows, 1);
  assert.deepEqual(world.sidecar.unacked, []);
  assert.equal(world.session.unacknowledged("start"), 0);
});

test("sends one ack for messages that arrive together", () => {
  const world = pair();
  const sent = [];
  world.session.open({ send: (text) => sent.push(JSON.parse(text)), drop: () => assert.fail("dropped") });
  const receive = (message) => world.session.receive(JSON.stringify(message));
  receive({ type: "welcome", version: "1", session: "s", received: 0, limits: DEFAULT_LIMITS });
  receive({ type: "start_done", seq: 1, start: "a" });
  receive({ type: "start_done", seq: 2, start: "b" });
  world.later.forEach((run) => run());
  assert.deepEqual(sent.filter(({ type }) => type === "ack"), [{ type: "ack", seq: 2 }]);
});

for (const restart of [false, true]) {
  test(`loses and repeats nothing wherever the socket breaks${restart ? " and the sidecar restarts" : ""}`, () => {
    for (let first = 1; first < 30; first += 1) {
      for (let second = 1; second < 30; second += 7) {
        const world = pair();
        const starts = ["a", "b", "c", "d", "e"];
        starts.slice(0, 3).forEach((id) => world.start(id));
        world.open(first);
        world.start("d");
        world.settle();
        world.session.disconnect();
        if (restart) {
          // The store keeps the starts and the unacked answers over a restart.
          const { started, unacked } = world.sidecar;
          world.sidecar = Object.assign(new Sidecar("s2"), { started, unacked });
        }
        world.open(second);
        world.start("e");
        world.settle();
        world.session.disconnect();
        world.open();
        const why = `broke after ${first} and ${second}`;
        assert.deepEqual([...world.sidecar.started].sort(), starts, why);
        const answers = world.answered();
        if (restart) {
          assert.deepEqual([...new Set(answers)].sort(), starts, why);
        } else {
          assert.deepEqual([...answers].sort(), starts, why);
        }
        assert.equal(world.session.unacknowledged("start"), 0, why);
        assert.deepEqual(world.dropped, [], why);
      }
    }
  });
}

test("handles and acks nothing while paused, and everything in order after that", () => {
  const world = pair();
  world.open();
  world.session.pause();
  ["a", "b"].forEach((id) => world.start(id));
  world.settle();
  assert.deepEqual(world.received, []);
  assert.equal(world.sidecar.unacked.length, 2);
  world.session.resume();
  world.settle();
  assert.deepEqual(world.answered(), ["a", "b"]);
  assert.equal(world.sidecar.unacked.length, 0);
});

test("handles a message once that waited when the socket broke", () => {
  const world = pair();
  world.open();
  world.session.pause();
  world.start("a");
  world.settle();
  world.session.disconnect();
  world.open();
  world.session.resume();
  world.settle();
  assert.deepEqual(world.answered(), ["a"]);
});

test("reports how long a message waited, also over a broken socket", () => {
  let now = 0;
  const waits = [];
  const handler = {
    ...{ onWelcome: () => undefined, onClosing: () => undefined, onAck: () => undefined, firstMessage: () => undefined },
    onMessage: ({ seq }, waitedMs) => waits.push([seq, waitedMs]),
  };
  const session = new BridgeSession(IDENTITY, handler, () => undefined, () => now);
  const receive = (message) => session.receive(JSON.stringify(message));
  const open = (id) => {
    session.open({ send: () => undefined, drop: (reason) => assert.fail(reason) });
    receive({ type: "welcome", version: "1", session: id, received: 0, limits: DEFAULT_LIMITS });
  };
  open("s");
  receive({ type: "start_done", seq: 1, start: "a" });
  session.pause();
  [2, 3].forEach((seq) => receive({ type: "start_done", seq, start: "b" }));
  now = 10;
  session.disconnect();
  open("s");
  receive({ type: "start_done", seq: 2, start: "b" });
  now = 30;
  session.resume();
  now = 40;
  [3, 4].forEach((seq) => receive({ type: "start_done", seq, start: "c" }));
  session.pause();
  receive({ type: "start_done", seq: 5, start: "d" });
  session.disconnect();
  now = 50;
  open("another");
  session.resume();
  [1, 2, 3, 4, 5].forEach((seq) => receive({ type: "start_done", seq, start: "e" }));
  assert.deepEqual(waits.slice(0, 4), [[1, 0], [2, 30], [3, 40], [4, 0]]);
  assert.deepEqual(waits.slice(4), [1, 2, 3, 4, 5].map((seq) => [seq, 0]), "another session has other numbers");
});

test("sends nothing to a sidecar that cannot receive the flow", () => {
  const sent = [];
  const fail = () => assert.fail("unexpected");
  const firstMessage = () => session.disconnect();
  const handler = { onWelcome: fail, onMessage: fail, onClosing: fail, onAck: fail, firstMessage };
  const session = new BridgeSession(IDENTITY, handler, () => undefined);
  const entry = session.post("start", '"start":"a"}', LIMIT);
  session.open({ send: (text) => sent.push(text), drop: fail });
  session.receive(JSON.stringify({ type: "welcome", version: "1", session: "s", received: 0, limits: DEFAULT_LIMITS }));
  assert.equal(sent.length, 1, "the hello");
  assert.equal(entry.seq, 0);
  assert.ok(session.withdraw(entry));
});

test("does not mix waiting messages of the previous sidecar with those of the next", () => {
  const world = pair();
  world.open();
  world.session.pause();
  ["a", "b"].forEach((id) => world.start(id));
  world.settle();
  world.session.disconnect();
  const { started, unacked } = world.sidecar;
  world.sidecar = Object.assign(new Sidecar("s2"), { started, unacked: unacked.slice(1) });
  world.open();
  world.session.resume();
  world.settle();
  assert.deepEqual(world.answered(), ["b"]);
});

test("handles a repeated message once and acks it again", () => {
  const world = pair();
  const sent = [];
  world.session.open({ send: (text) => sent.push(JSON.parse(text)), drop: () => assert.fail("dropped") });
  const receive = (message) => {
    world.session.receive(JSON.stringify(message));
    world.later.splice(0).forEach((run) => run());
  };
  receive({ type: "welcome", version: "1", session: "s", received: 0, limits: DEFAULT_LIMITS });
  receive({ type: "start_done", seq: 1, start: "a" });
  receive({ type: "start_done", seq: 1, start: "a" });
  assert.deepEqual(world.answered(), ["a"]);
  assert.deepEqual(sent.filter(({ type }) => type === "ack").map(({ seq }) => seq), [1, 1]);
});

test("hello reports only handled messages", () => {
  const world = pair();
  world.open();
  world.start("a");
  world.settle();
  const sent = [];
  world.session.open({ send: (text) => sent.push(JSON.parse(text)), drop: () => undefined });
  assert.deepEqual(sent, [{ type: "hello", protocol: PROTOCOL, ...IDENTITY, session: "s1", received: 1 }]);
});

test("drops the socket for an invalid message", () => {
  const texts = ["", "no json", "null", "[]", "{}", '{"type":1}', '{"type":"ack","seq":"x"}', '{"type":"ack","seq":1e300}'];
  for (const text of texts) {
    const world = pair();
    world.open();
    world.session.receive(text);
    assert.equal(world.dropped.length, 1, text);
  }
  const early = pair();
  early.session.open({ send: () => undefined, drop: (reason) => early.dropped.push(reason) });
  early.session.receive('{"type":"start_done","seq":1,"start":"x"}');
  early.session.receive('{"type":"welcome","version":"1","session":"s","received":0,"limits":{}}');
  assert.equal(early.dropped.length, 2);
  assert.deepEqual(early.received, []);
});

test("passes an unknown message of a newer sidecar to the handler", () => {
  const world = pair();
  world.open();
  world.session.receive('{"type":"something_new"}');
  assert.deepEqual(world.dropped, []);
});

test("removes __proto__ keys from output of a model", () => {
  const world = pair();
  world.open();
  world.session.receive('{"type":"tool_call","seq":1,"input":{"__proto__":{"polluted":1},"a":1}}');
  const [{ input }] = world.received;
  assert.deepEqual(Object.keys(input), ["a"]);
  assert.equal(input.polluted, undefined);
});
