// The event subscription against a fake sidecar that misbehaves. `client.test.mjs` uses a real one.

import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";

import { CURSOR_START, RedflowClient, RedflowError } from "@redflow/bindings";
import { collect, rejection, until } from "./kit/collect.mjs";
import { SOCKETS } from "./kit/sockets.mjs";
import { event, serveEvents, fakeSidecar } from "./kit/fake-sidecar.mjs";

const TOKEN = "rf_a-token-that-stays-secret";
const QUICK = { backoffMs: 1, backoffMaxMs: 5 };

const numbers = (items) => items.filter(({ type }) => type === "event").map(({ event: { at } }) => at);
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const closing = (code, more = {}) => ({ type: "closing", code, message: `Because of ${code}.`, ...more });

function expect(error, code) {
  assert.ok(error instanceof RedflowError, inspect(error));
  assert.equal(error.code, code, error.message);
  assert.ok(!(inspect(error, { depth: 9, showHidden: true }) + error.stack).includes(TOKEN));
}

/** A fake sidecar whose n-th socket runs the n-th part of `script`; the last part repeats. */
async function serveSockets(t, { WebSocket }, script, { answer, refuse } = {}) {
  const subscriptions = [];
  const offered = [];
  const url = await fakeSidecar(t, {
    answer: answer ?? ((_, response) => response.end('{"runs": []}')),
    refuse,
    onSocket(socket, request, number) {
      offered.push(request.headers["sec-websocket-protocol"].split(/, */));
      const part = script[Math.min(number, script.length) - 1];
      if (part.raw) {
        part.raw(socket);
        return;
      }
      serveEvents(socket, (subscription, send) => {
        subscriptions.push(subscription);
        part(send, socket, subscription);
      });
    },
  });
  const states = [];
  const client = new RedflowClient({ url, token: TOKEN });
  const read = (options = {}) =>
    client.events({ WebSocket, timing: QUICK, onState: (state) => states.push(state), ...options });
  return { read, subscriptions, offered, states, url };
}

for (const kind of SOCKETS) {
  const check = (name, run) => {
    test(`${name} (${kind.name})`, { timeout: 60_000 }, run);
  };

  check("sends the token as a subprotocol and subscribes after the hello", async (t) => {
    const { read, offered, subscriptions, states } = await serveSockets(t, kind, [(send) => send(event(1))]);
    await collect(read(), () => true);
    await collect(read({ after: CURSOR_START, runs: ["a", "b"], deltas: true }), () => true);
    assert.deepEqual(offered[0], ["redflow.events.v1", `redflow.token.${TOKEN}`]);
    assert.deepEqual(subscriptions, [
      // Without `after` the subscription starts at the cursor of the hello.
      { type: "subscribe", after: "log.0" },
      { type: "subscribe", after: "0", runs: ["a", "b"], deltas: true },
    ]);
    assert.deepEqual(states.slice(0, 2), [
      { state: "connecting", failures: 0 },
      { state: "open", version: "0.0.0" },
    ]);
  });

  check("delivers every event once when connections end in any way", async (t) => {
    // Each socket repeats a few earlier events and then ends in one of these ways.
    const ends = [
      (_, socket) => socket.terminate(),
      (_, socket) => socket.close(1011),
      (send) => send(closing("STOPPING")),
      (send) => send(closing("READER_TOO_SLOW", { cursor: "log.99" })),
      (send) => send(closing("RATE_LIMITED")),
    ];
    let turn = 0;
    const { read, subscriptions } = await serveSockets(t, kind, [
      (send, socket, { after }) => {
        const last = Number(after.slice("log.".length));
        for (const number of range(Math.max(1, last - 2), last + 5)) {
          send(event(number));
        }
        ends[turn++ % ends.length](send, socket);
      },
    ]);
    const items = await collect(read(), ({ cursor }) => cursor === "log.40");
    assert.deepEqual(numbers(items), range(1, 40));
    assert.ok(subscriptions.length >= 8);
  });

  check("misses no event when the connection is lost before the first one", async (t) => {
    const positions = [];
    const subscribed = (cursor, answer) => ({
      raw: (socket) => serveEvents(socket, ({ after }, send) => (positions.push(after), answer(send, socket)), cursor),
    });
    const { read } = await serveSockets(t, kind, [
      subscribed("log.7", (send) => send(closing("STOPPING"))),
      subscribed("log.8", (_, socket) => socket.terminate()),
      subscribed("log.9", (send) => send(event(8))),
    ]);
    assert.deepEqual(numbers(await collect(read(), () => true)), [8]);
    assert.deepEqual(positions, ["log.7", "log.7", "log.7"]);
  });

  check("resumes a filtered subscription at the cursor of the closing message", async (t) => {
    const { read, subscriptions } = await serveSockets(t, kind, [
      (send) => (send(event(1)), send(closing("STOPPING", { cursor: "log.50" }))),
      (send) => send({ type: "caught_up", cursor: "log.60" }) ?? send(closing("STOPPING")),
      (send) => send(event(61)),
    ]);
    const items = await collect(read({ runs: ["a"] }), ({ cursor }) => cursor === "log.61");
    assert.deepEqual(items.map(({ type }) => type), ["event", "caught_up", "event"]);
    assert.deepEqual(subscriptions.map(({ after }) => after), ["log.0", "log.50", "log.60"]);
  });

  check("throws a fatal error after delivering the events before it", async (t) => {
    for (const code of ["EVENTS_GONE", "CURSOR_UNKNOWN", "UNAUTHORIZED", "FORBIDDEN", "MESSAGE_INVALID", "INTERNAL"]) {
      const { read } = await serveSockets(t, kind, [(send) => (send(event(1)), send(event(2)), send(closing(code)))]);
      const items = [];
      const error = await rejection(collect(read(), (item) => void items.push(item)));
      expect(error, code);
      assert.equal(error.message, `Because of ${code}.`);
      assert.deepEqual(numbers(items), [1, 2]);
    }
  });

  check("ignores unknown message types and throws for invalid messages", async (t) => {
    const { read } = await serveSockets(t, kind, [(send) => (send({ type: "news", x: 1 }), send(event(1)))]);
    assert.deepEqual(numbers(await collect(read(), () => true)), [1]);
    for (const data of ["no JSON", "null", "[]", "{}", '{"type": 1}', Buffer.from("{}")]) {
      const { read } = await serveSockets(t, kind, [(_, socket) => socket.send(data)]);
      expect(await rejection(collect(read())), "MESSAGE_INVALID");
    }
  });

  check("asks over HTTP why a socket was refused", async (t) => {
    const reply = (code) => (_, response) =>
      response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify({ code, message: "No." }));
    for (const code of ["UNAUTHORIZED", "FORBIDDEN", "ORIGIN_REFUSED", "HOST_REFUSED"]) {
      const { read } = await serveSockets(t, kind, [() => undefined], { answer: reply(code), refuse: () => 401 });
      expect(await rejection(collect(read())), code);
    }
  });

  check("retries after a transient refusal", async (t) => {
    let refusals = 5;
    const { read, states } = await serveSockets(t, kind, [(send) => send(event(1))], { refuse: () => refusals-- > 0 && 503 });
    assert.deepEqual(numbers(await collect(read(), () => true)), [1]);
    const waits = states.filter(({ state }) => state === "waiting");
    assert.deepEqual(waits.map(({ failures }) => failures), range(1, 5));
    for (const { error, delayMs } of waits) {
      expect(error, "SIDECAR_UNREACHABLE");
      assert.ok(delayMs >= 0 && delayMs <= QUICK.backoffMaxMs);
    }
  });

  check("backoff grows up to its limit and restarts after an event", async (t) => {
    const random = t.mock.method(Math, "random", () => 1);
    const lose = { raw: (socket) => socket.terminate() };
    const { read, states } = await serveSockets(t, kind, [
      ...Array.from({ length: 5 }, () => lose),
      (send, socket) => (send(event(1)), socket.close()),
      lose,
      (send) => send(event(2)),
    ]);
    await collect(read({ timing: { backoffMs: 2, backoffMaxMs: 12 } }), ({ cursor }) => cursor === "log.2");
    random.mock.restore();
    const waits = states.filter(({ state }) => state === "waiting").map(({ delayMs }) => delayMs);
    assert.deepEqual(waits, [2, 4, 8, 12, 12, 2, 4]);
  });

  check("reconnects when the server sends no hello or stops answering", async (t) => {
    const mute = { raw: () => undefined };
    // Answers nothing after its hello, not even pings.
    const silent = { raw: (socket) => socket.send('{"type": "hello", "version": "0", "cursor": "log.0"}') };
    const { read, states } = await serveSockets(t, kind, [mute, silent, (send) => send(event(1))]);
    const items = await collect(read({ timing: { ...QUICK, openMs: 200, idleMs: 20, pongMs: 20 } }), () => true);
    assert.deepEqual(numbers(items), [1]);
    assert.deepEqual(
      states.filter(({ state }) => state === "waiting").map(({ error }) => error.message).slice(0, 2),
      ["The sidecar did not send hello in time.", "The sidecar does not answer any more."],
    );
  });

  check("keeps the connection to an idle server that answers pings", async (t) => {
    let pings = 0;
    const { read, states } = await serveSockets(t, kind, [
      (send, socket) => socket.on("message", () => ++pings === 5 && send(event(1))),
    ]);
    const items = await collect(read({ timing: { ...QUICK, idleMs: 5, pongMs: 10_000 } }), () => true);
    assert.deepEqual(numbers(items), [1]);
    assert.equal(states.filter(({ state }) => state === "connecting").length, 1);
  });

  check("a slow reader gets every event, and at most the buffer waits", async (t) => {
    const total = 500;
    let closed = 0;
    const { read, subscriptions } = await serveSockets(t, kind, [
      (send, socket, { after }) => {
        socket.on("close", () => (closed += 1));
        range(Number(after.slice("log.".length)) + 1, total).forEach((number) => send(event(number)));
      },
    ]);
    const items = [];
    for await (const item of read({ buffer: 50 })) {
      items.push(item);
      if (item.cursor === `log.${total}`) {
        break;
      }
      // Reads nothing until the buffer is full.
      if (total - items.length > 60) {
        await until("the socket was closed", () => closed === subscriptions.length);
      }
    }
    assert.deepEqual(numbers(items), range(1, total));
    // 50 messages waited each time, and the reader may have held one more.
    const places = subscriptions.map(({ after }) => Number(after.slice("log.".length)));
    places.slice(1).forEach((place, index) => assert.ok([50, 51].includes(place - places[index]), String(places)));
    assert.ok(places.length >= 9, String(places));
  });

  check("deltas never displace events", async (t) => {
    const delta = (text) => ({ type: "delta", delta: { runId: "run", iteration: 1, attempt: 1, text } });
    let arrived = false;
    const { read, states } = await serveSockets(t, kind, [
      (send, socket) => {
        send(event(1));
        range(1, 200).forEach((number) => send(delta(String(number))));
        range(2, 6).forEach((number) => send(event(number)));
        socket.on("pong", () => (arrived = true)).ping();
      },
    ]);
    const items = [];
    for await (const item of read({ buffer: 20, deltas: true })) {
      items.push(item);
      await until("everything has arrived", () => arrived);
      if (item.cursor === "log.6") {
        break;
      }
    }
    assert.deepEqual(numbers(items), range(1, 6));
    const texts = items.filter(({ type }) => type === "delta").map(({ delta }) => Number(delta.text));
    assert.ok(texts.length >= 9 && texts.length <= 11, `deltas fill at most half of the buffer: ${texts}`);
    assert.deepEqual(texts, [...texts].sort((a, b) => a - b));
    assert.equal(states.filter(({ state }) => state === "connecting").length, 1, "the socket stayed open");
  });

  check("a message over the size limit waits alone", async (t) => {
    let closed = 0;
    const large = (number) => ({ ...event(number), text: "x".repeat(9 * 1024 * 1024) });
    const { read, subscriptions } = await serveSockets(t, kind, [
      (send, socket, { after }) => {
        socket.on("close", () => (closed += 1));
        range(Number(after.slice("log.".length)) + 1, 4).forEach((number) => send(large(number)));
      },
    ]);
    const items = [];
    for await (const item of read()) {
      items.push(item);
      if (items.length === 1) {
        await until("two large messages exceed the limit", () => closed === 1);
      }
      if (items.length === 4) {
        break;
      }
    }
    assert.deepEqual(numbers(items), range(1, 4));
    assert.deepEqual(subscriptions.map(({ after }) => after), ["log.0", "log.2"]);
  });

  check("closes the socket when the reader stops and when the signal aborts", async (t) => {
    let open = 0;
    const { read } = await serveSockets(t, kind, [
      (send, socket) => {
        open += 1;
        socket.on("close", () => (open -= 1));
        send(event(1));
      },
    ]);
    await collect(read(), () => true);
    await until("closed after a break", () => open === 0);

    const controller = new AbortController();
    const enough = () => {
      controller.abort(new Error("enough"));
    };
    const reason = await rejection(collect(read({ signal: controller.signal }), enough));
    assert.equal(reason.message, "enough");
    await until("closed after an abort", () => open === 0);
    assert.equal((await rejection(collect(read({ signal: controller.signal })))).message, "enough");

    // Also during a backoff and during the HTTP request about a refusal.
    for (const options of [{}, { refuse: () => 503, answer: () => undefined }]) {
      const { read, states } = await serveSockets(t, kind, [{ raw: (socket) => socket.terminate() }], options);
      const signal = AbortSignal.timeout(50);
      const timing = { backoffMs: 1e6, backoffMaxMs: 1e6 };
      assert.equal((await rejection(collect(read({ signal, timing })))).name, "TimeoutError");
      assert.ok(states.length > 0);
    }
  });
}

test("reports a token that no socket can carry and a missing WebSocket", async (t) => {
  const { WebSocket } = SOCKETS[0];
  const url = await fakeSidecar(t, { onSocket: (socket) => socket.terminate() });
  for (const token of [`${TOKEN}=`, `${TOKEN}/x`, `${TOKEN},y`, `${TOKEN}"`]) {
    expect(await rejection(collect(new RedflowClient({ url, token }).events({ WebSocket }))), "REQUEST_INVALID");
  }
  const throwing = class {
    constructor(_, protocols) {
      throw new SyntaxError(`bad protocol ${protocols}`);
    }
  };
  const client = new RedflowClient({ url, token: TOKEN });
  expect(await rejection(collect(client.events({ WebSocket: throwing }))), "REQUEST_INVALID");
  const own = globalThis.WebSocket;
  globalThis.WebSocket = undefined;
  try {
    expect(await rejection(collect(client.events())), "REQUEST_INVALID");
  } finally {
    globalThis.WebSocket = own;
  }
});
