// The protocol against a sidecar made of a few lines, with sockets that break at every point, sidecars that are
// restarted, and words that are none of the protocol.

import assert from "node:assert/strict";
import test from "node:test";
import { Conversation, DEFAULT_LIMITS, PROTOCOL } from "../dist/conversation.js";

const IDENTITY = { instance: "i", boot: "b", nodeRed: "4.1.0", bridge: "0.1.0" };
const ROOM = { count: 1_000, bytes: 1e6 };

/** A sidecar as bridge.rs says: numbers, acks, sessions. It answers every start with one numbered message. */
class Sidecar {
  constructor(session) {
    this.session = session;
    this.received = 0;
    this.seq = 0;
    this.unacked = [];
    this.started = new Set();
    this.flows = 0;
  }

  hear(text, say) {
    const message = JSON.parse(text);
    if (message.type === "hello") {
      const same = message.session === this.session;
      if (same) {
        this.unacked = this.unacked.filter(({ seq }) => seq > message.received);
      } else {
        this.unacked = this.unacked.map((kept, at) => ({ ...kept, seq: at + 1 }));
        this.seq = this.unacked.length;
        this.received = 0;
      }
      const { session, received } = this;
      say({ type: "welcome", version: "1", session, received, limits: DEFAULT_LIMITS });
      // Its last ack may have been lost with the socket.
      say({ type: "ack", seq: received });
      this.unacked.forEach(say);
    } else if (message.type === "ack") {
      this.unacked = this.unacked.filter(({ seq }) => seq > message.seq);
    } else if (message.seq <= this.received) {
      return;
    } else {
      assert.equal(message.seq, this.received + 1, "no number is left out");
      this.received = message.seq;
      if (message.type === "flows") {
        this.flows += 1;
      } else if (!this.started.has(message.start)) {
        assert.ok(this.flows > 0, "the flow comes before the first start");
        this.started.add(message.start);
        const answer = { type: "start_done", seq: (this.seq += 1), start: message.start };
        this.unacked.push(answer);
        say(answer);
      }
      say({ type: "ack", seq: message.seq });
    }
  }
}

/** Both sides, and a socket that carries so many texts before it breaks. */
function pair() {
  const world = { sidecar: new Sidecar("s1"), got: [], fresh: [], closings: [], dropped: [], later: [], budget: Infinity };
  const conversation = new Conversation(
    IDENTITY,
    {
      welcomed: (_, fresh) => world.fresh.push(fresh),
      take: (message) => world.got.push(message),
      closing: (closing) => world.closings.push(closing),
      taken: () => undefined,
      opening: () => ({ type: "flows", rest: '"revision":"r"}' }),
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
    const say = (message) => carry(() => conversation.heard(JSON.stringify(message)));
    conversation.opened({
      send: (text) => carry(() => sidecar.hear(text, say)),
      drop: (reason) => world.dropped.push(reason),
    });
    world.settle();
  };
  world.settle = () => {
    while (queue.length > 0 || world.later.length > 0) {
      (queue.shift() ?? world.later.shift())();
    }
    if (world.broken) {
      conversation.lost();
    }
  };
  world.conversation = conversation;
  world.start = (id) => conversation.post("start", `"start":"${id}"}`, ROOM);
  world.answered = () => world.got.map(({ start }) => start);
  return world;
}

test("hello, welcome, the flow, a start, its answer, and acks both ways", () => {
  const world = pair();
  world.start("early");
  world.open();
  world.start("late");
  world.settle();
  assert.deepEqual(world.answered(), ["early", "late"]);
  assert.deepEqual(world.fresh, [true]);
  assert.equal(world.sidecar.flows, 1);
  assert.deepEqual(world.sidecar.unacked, []);
  assert.equal(world.conversation.untaken("start"), 0);
});

test("what comes in one go is acked once", () => {
  const world = pair();
  const said = [];
  world.conversation.opened({ send: (text) => said.push(JSON.parse(text)), drop: () => assert.fail("dropped") });
  const hear = (message) => world.conversation.heard(JSON.stringify(message));
  hear({ type: "welcome", version: "1", session: "s", received: 0, limits: DEFAULT_LIMITS });
  hear({ type: "start_done", seq: 1, start: "a" });
  hear({ type: "start_done", seq: 2, start: "b" });
  world.later.forEach((run) => run());
  assert.deepEqual(said.filter(({ type }) => type === "ack"), [{ type: "ack", seq: 2 }]);
});

for (const restart of [false, true]) {
  test(`nothing is lost or repeated, wherever the socket breaks${restart ? " and the sidecar is another one" : ""}`, () => {
    for (let first = 1; first < 30; first += 1) {
      for (let second = 1; second < 30; second += 7) {
        const world = pair();
        const starts = ["a", "b", "c", "d", "e"];
        starts.slice(0, 3).forEach((id) => world.start(id));
        world.open(first);
        world.start("d");
        world.settle();
        world.conversation.lost();
        if (restart) {
          // What it had on its disk it knows again: the starts, and the answers that were not acked.
          const { started, unacked } = world.sidecar;
          world.sidecar = Object.assign(new Sidecar("s2"), { started, unacked });
        }
        world.open(second);
        world.start("e");
        world.settle();
        world.conversation.lost();
        world.open();
        const why = `broke after ${first} and ${second}`;
        assert.deepEqual([...world.sidecar.started].sort(), starts, why);
        const answers = world.answered();
        if (restart) {
          assert.deepEqual([...new Set(answers)].sort(), starts, why);
        } else {
          assert.deepEqual([...answers].sort(), starts, why);
        }
        assert.equal(world.conversation.untaken("start"), 0, why);
        assert.deepEqual(world.dropped, [], why);
      }
    }
  });
}

test("while nodes are exchanged nothing is taken and nothing acked; afterwards everything in its order", () => {
  const world = pair();
  world.open();
  world.conversation.pause();
  ["a", "b"].forEach((id) => world.start(id));
  world.settle();
  assert.deepEqual(world.got, []);
  assert.equal(world.sidecar.unacked.length, 2);
  world.conversation.resume();
  world.settle();
  assert.deepEqual(world.answered(), ["a", "b"]);
  assert.equal(world.sidecar.unacked.length, 0);
});

test("what waited when the socket broke comes again, and is taken once", () => {
  const world = pair();
  world.open();
  world.conversation.pause();
  world.start("a");
  world.settle();
  world.conversation.lost();
  world.open();
  world.conversation.resume();
  world.settle();
  assert.deepEqual(world.answered(), ["a"]);
});

test("what is taken comes with the time it waited, also over a broken socket", () => {
  let now = 0;
  const waits = [];
  const listener = {
    ...{ welcomed: () => undefined, closing: () => undefined, taken: () => undefined, opening: () => undefined },
    take: ({ seq }, waited) => waits.push([seq, waited]),
  };
  const conversation = new Conversation(IDENTITY, listener, () => undefined, () => now);
  const hear = (message) => conversation.heard(JSON.stringify(message));
  const open = (session) => {
    conversation.opened({ send: () => undefined, drop: assert.fail });
    hear({ type: "welcome", version: "1", session, received: 0, limits: DEFAULT_LIMITS });
  };
  open("s");
  hear({ type: "start_done", seq: 1, start: "a" });
  conversation.pause();
  [2, 3].forEach((seq) => hear({ type: "start_done", seq, start: "b" }));
  now = 10;
  conversation.lost();
  open("s");
  hear({ type: "start_done", seq: 2, start: "b" });
  now = 30;
  conversation.resume();
  now = 40;
  [3, 4].forEach((seq) => hear({ type: "start_done", seq, start: "c" }));
  conversation.pause();
  hear({ type: "start_done", seq: 5, start: "d" });
  conversation.lost();
  now = 50;
  open("another");
  conversation.resume();
  [1, 2, 3, 4, 5].forEach((seq) => hear({ type: "start_done", seq, start: "e" }));
  assert.deepEqual(waits.slice(0, 4), [[1, 0], [2, 30], [3, 40], [4, 0]]);
  assert.deepEqual(waits.slice(4), [1, 2, 3, 4, 5].map((seq) => [seq, 0]), "numbers of another session are others");
});

test("a sidecar that cannot be told the flow is given nothing else: what waits stays unsaid", () => {
  const sent = [];
  let conversation;
  const opening = () => conversation.lost();
  const listener = { welcomed: assert.fail, take: assert.fail, closing: assert.fail, taken: assert.fail, opening };
  conversation = new Conversation(IDENTITY, listener, () => undefined);
  const entry = conversation.post("start", '"start":"a"}', ROOM);
  conversation.opened({ send: (text) => sent.push(text), drop: assert.fail });
  conversation.heard(JSON.stringify({ type: "welcome", version: "1", session: "s", received: 0, limits: DEFAULT_LIMITS }));
  assert.equal(sent.length, 1, "the hello");
  assert.equal(entry.seq, 0);
  assert.ok(conversation.takeBack(entry));
});

test("what waited when the sidecar went is not taken for what the next one says", () => {
  const world = pair();
  world.open();
  world.conversation.pause();
  ["a", "b"].forEach((id) => world.start(id));
  world.settle();
  world.conversation.lost();
  const { started, unacked } = world.sidecar;
  world.sidecar = Object.assign(new Sidecar("s2"), { started, unacked: unacked.slice(1) });
  world.open();
  world.conversation.resume();
  world.settle();
  assert.deepEqual(world.answered(), ["b"]);
});

test("what comes twice is taken once, and acked again", () => {
  const world = pair();
  const said = [];
  world.conversation.opened({ send: (text) => said.push(JSON.parse(text)), drop: () => assert.fail("dropped") });
  const hear = (message) => {
    world.conversation.heard(JSON.stringify(message));
    world.later.splice(0).forEach((run) => run());
  };
  hear({ type: "welcome", version: "1", session: "s", received: 0, limits: DEFAULT_LIMITS });
  hear({ type: "start_done", seq: 1, start: "a" });
  hear({ type: "start_done", seq: 1, start: "a" });
  assert.deepEqual(world.answered(), ["a"]);
  assert.deepEqual(said.filter(({ type }) => type === "ack").map(({ seq }) => seq), [1, 1]);
});

test("no hello says more than what was taken", () => {
  const world = pair();
  world.open();
  world.start("a");
  world.settle();
  const said = [];
  world.conversation.opened({ send: (text) => said.push(JSON.parse(text)), drop: () => undefined });
  assert.deepEqual(said, [{ type: "hello", protocol: PROTOCOL, ...IDENTITY, session: "s1", received: 1 }]);
});

test("words that are none of the protocol drop the socket and nothing else", () => {
  const words = ["", "no json", "null", "[]", "{}", '{"type":1}', '{"type":"ack","seq":"x"}', '{"type":"ack","seq":1e300}'];
  for (const text of words) {
    const world = pair();
    world.open();
    world.conversation.heard(text);
    assert.equal(world.dropped.length, 1, text);
  }
  const early = pair();
  early.conversation.opened({ send: () => undefined, drop: (reason) => early.dropped.push(reason) });
  early.conversation.heard('{"type":"start_done","seq":1,"start":"x"}');
  early.conversation.heard('{"type":"welcome","version":"1","session":"s","received":0,"limits":{}}');
  assert.equal(early.dropped.length, 2);
  assert.deepEqual(early.got, []);
});

test("an unknown message of a newer sidecar goes on to whoever listens", () => {
  const world = pair();
  world.open();
  world.conversation.heard('{"type":"something_new"}');
  assert.deepEqual(world.dropped, []);
});

test("a key that would be a prototype is left out of what a model says", () => {
  const world = pair();
  world.open();
  world.conversation.heard('{"type":"tool_call","seq":1,"input":{"__proto__":{"polluted":1},"a":1}}');
  const [{ input }] = world.got;
  assert.deepEqual(Object.keys(input), ["a"]);
  assert.equal(input.polluted, undefined);
});
