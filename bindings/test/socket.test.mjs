// The socket of events against a server that misbehaves as no sidecar does. Against a real one: `client.test.mjs`.

import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";

import { CURSOR_START, RedflowClient, RedflowError } from "@redflow/bindings";
import { collect, rejection, until } from "./kit/collect.mjs";
import { SOCKETS } from "./kit/sockets.mjs";
import { event, sidecarSocket, standIn } from "./kit/stand-in.mjs";

const TOKEN = "rf_a-token-nobody-may-see";
const QUICK = { backoffMs: 1, backoffMaxMs: 5 };

const numbers = (items) => items.filter(({ type }) => type === "event").map(({ event: { at } }) => at);
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const closing = (code, more = {}) => ({ type: "closing", code, message: `Because of ${code}.`, ...more });

function expect(error, code) {
  assert.ok(error instanceof RedflowError, inspect(error));
  assert.equal(error.code, code, error.message);
  assert.ok(!(inspect(error, { depth: 9, showHidden: true }) + error.stack).includes(TOKEN));
}

/** A stand-in whose sockets run `script[number]`, the last one for all that follow. */
async function sockets(t, { WebSocket }, script, { answer, refuse } = {}) {
  const subscriptions = [];
  const offered = [];
  const url = await standIn(t, {
    answer: answer ?? ((_, response) => response.end('{"runs": []}')),
    refuse,
    talk(socket, request, number) {
      offered.push(request.headers["sec-websocket-protocol"].split(/, */));
      const part = script[Math.min(number, script.length) - 1];
      if (part.raw) {
        part.raw(socket);
        return;
      }
      sidecarSocket(socket, (subscription, say) => {
        subscriptions.push(subscription);
        part(say, socket, subscription);
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
  const check = (name, run) => test(`${name} (${kind.name})`, { timeout: 60_000 }, run);

  check("the token goes as a subprotocol, and what is wanted after the hello", async (t) => {
    const { read, offered, subscriptions, states } = await sockets(t, kind, [(say) => say(event(1))]);
    await collect(read(), () => true);
    await collect(read({ after: CURSOR_START, runs: ["a", "b"], deltas: true }), () => true);
    assert.deepEqual(offered[0], ["redflow.events.v1", `redflow.token.${TOKEN}`]);
    assert.deepEqual(subscriptions, [
      // From now on: from the hello on.
      { type: "subscribe", after: "log.0" },
      { type: "subscribe", after: "0", runs: ["a", "b"], deltas: true },
    ]);
    assert.deepEqual(states.slice(0, 2), [
      { state: "connecting", failures: 0 },
      { state: "open", version: "0.0.0" },
    ]);
  });

  check("nothing is missing and nothing doubled, whatever the connection does", async (t) => {
    // Whatever is asked for, a few from before come again; the socket breaks after some, in every way there is.
    const ends = [
      (_, socket) => socket.terminate(),
      (_, socket) => socket.close(1011),
      (say) => say(closing("STOPPING")),
      (say) => say(closing("READER_TOO_SLOW", { cursor: "log.99" })),
      (say) => say(closing("RATE_LIMITED")),
    ];
    let turn = 0;
    const { read, subscriptions } = await sockets(t, kind, [
      (say, socket, { after }) => {
        const last = Number(after.slice("log.".length));
        for (const number of range(Math.max(1, last - 2), last + 5)) {
          say(event(number));
        }
        ends[turn++ % ends.length](say, socket);
      },
    ]);
    const items = await collect(read(), ({ cursor }) => cursor === "log.40");
    assert.deepEqual(numbers(items), range(1, 40));
    assert.ok(subscriptions.length >= 8);
  });

  check("what happens before the first event is not missed", async (t) => {
    const asked = [];
    const hearing = (cursor, answer) => ({
      raw: (socket) => sidecarSocket(socket, ({ after }, say) => (asked.push(after), answer(say, socket)), cursor),
    });
    const { read } = await sockets(t, kind, [
      hearing("log.7", (say) => say(closing("STOPPING"))),
      hearing("log.8", (_, socket) => socket.terminate()),
      hearing("log.9", (say) => say(event(8))),
    ]);
    assert.deepEqual(numbers(await collect(read(), () => true)), [8]);
    assert.deepEqual(asked, ["log.7", "log.7", "log.7"]);
  });

  check("where nothing came that was asked for, it goes on where the sidecar says", async (t) => {
    const { read, subscriptions } = await sockets(t, kind, [
      (say) => (say(event(1)), say(closing("STOPPING", { cursor: "log.50" }))),
      (say) => say({ type: "caught_up", cursor: "log.60" }) ?? say(closing("STOPPING")),
      (say) => say(event(61)),
    ]);
    const items = await collect(read({ runs: ["a"] }), ({ cursor }) => cursor === "log.61");
    assert.deepEqual(items.map(({ type }) => type), ["event", "caught_up", "event"]);
    assert.deepEqual(subscriptions.map(({ after }) => after), ["log.0", "log.50", "log.60"]);
  });

  check("a gap is an error, after everything that came before it", async (t) => {
    for (const code of ["EVENTS_GONE", "CURSOR_UNKNOWN", "UNAUTHORIZED", "FORBIDDEN", "MESSAGE_INVALID", "INTERNAL"]) {
      const { read } = await sockets(t, kind, [(say) => (say(event(1)), say(event(2)), say(closing(code)))]);
      const items = [];
      const error = await rejection(collect(read(), (item) => void items.push(item)));
      expect(error, code);
      assert.equal(error.message, `Because of ${code}.`);
      assert.deepEqual(numbers(items), [1, 2]);
    }
  });

  check("messages of another protocol end it, of a newer one they do not", async (t) => {
    const { read } = await sockets(t, kind, [(say) => (say({ type: "news", x: 1 }), say(event(1)))]);
    assert.deepEqual(numbers(await collect(read(), () => true)), [1]);
    for (const data of ["no JSON", "null", "[]", "{}", '{"type": 1}', Buffer.from("{}")]) {
      const { read } = await sockets(t, kind, [(_, socket) => socket.send(data)]);
      expect(await rejection(collect(read())), "MESSAGE_INVALID");
    }
  });

  check("a refusal is looked into", async (t) => {
    const say = (code) => (_, response) =>
      response.writeHead(401, { "content-type": "application/json" }).end(JSON.stringify({ code, message: "No." }));
    for (const code of ["UNAUTHORIZED", "FORBIDDEN", "ORIGIN_REFUSED", "HOST_REFUSED"]) {
      const { read } = await sockets(t, kind, [() => undefined], { answer: say(code), refuse: () => 401 });
      expect(await rejection(collect(read())), code);
    }
  });

  check("a refusal that passes is waited out", async (t) => {
    let refusals = 5;
    const { read, states } = await sockets(t, kind, [(say) => say(event(1))], { refuse: () => refusals-- > 0 && 503 });
    assert.deepEqual(numbers(await collect(read(), () => true)), [1]);
    const waits = states.filter(({ state }) => state === "waiting");
    assert.deepEqual(waits.map(({ failures }) => failures), range(1, 5));
    for (const { error, delayMs } of waits) {
      expect(error, "SIDECAR_UNREACHABLE");
      assert.ok(delayMs >= 0 && delayMs <= QUICK.backoffMaxMs);
    }
  });

  check("waits grow, up to a bound, and begin anew after something came", async (t) => {
    const random = t.mock.method(Math, "random", () => 1);
    const lose = { raw: (socket) => socket.terminate() };
    const { read, states } = await sockets(t, kind, [
      ...Array(5).fill(lose),
      (say, socket) => (say(event(1)), socket.close()),
      lose,
      (say) => say(event(2)),
    ]);
    await collect(read({ timing: { backoffMs: 2, backoffMaxMs: 12 } }), ({ cursor }) => cursor === "log.2");
    random.mock.restore();
    const waits = states.filter(({ state }) => state === "waiting").map(({ delayMs }) => delayMs);
    assert.deepEqual(waits, [2, 4, 8, 12, 12, 2, 4]);
  });

  check("a server that never says hello, and one that falls silent", async (t) => {
    const deaf = { raw: () => undefined };
    // Answers nothing any more, not even pings.
    const silent = { raw: (socket) => socket.send('{"type": "hello", "version": "0", "cursor": "log.0"}') };
    const { read, states } = await sockets(t, kind, [deaf, silent, (say) => say(event(1))]);
    const items = await collect(read({ timing: { ...QUICK, openMs: 200, idleMs: 20, pongMs: 20 } }), () => true);
    assert.deepEqual(numbers(items), [1]);
    assert.deepEqual(
      states.filter(({ state }) => state === "waiting").map(({ error }) => error.message).slice(0, 2),
      ["The sidecar did not say hello in time.", "The sidecar does not answer any more."],
    );
  });

  check("a server that has nothing to say but is there is left alone", async (t) => {
    let pings = 0;
    const { read, states } = await sockets(t, kind, [
      (say, socket) => socket.on("message", () => ++pings === 5 && say(event(1))),
    ]);
    const items = await collect(read({ timing: { ...QUICK, idleMs: 5, pongMs: 10_000 } }), () => true);
    assert.deepEqual(numbers(items), [1]);
    assert.equal(states.filter(({ state }) => state === "connecting").length, 1);
  });

  check("a slow reader gets everything, and no more than the buffer waits for him", async (t) => {
    const total = 500;
    let closed = 0;
    const { read, subscriptions } = await sockets(t, kind, [
      (say, socket, { after }) => {
        socket.on("close", () => (closed += 1));
        range(Number(after.slice("log.".length)) + 1, total).forEach((number) => say(event(number)));
      },
    ]);
    const items = [];
    for await (const item of read({ buffer: 50 })) {
      items.push(item);
      if (item.cursor === `log.${total}`) {
        break;
      }
      // Takes nothing until it is too much.
      if (total - items.length > 60) {
        await until("the socket was closed", () => closed === subscriptions.length);
      }
    }
    assert.deepEqual(numbers(items), range(1, total));
    // 50 waited each time, and one may have been on its way to the reader.
    const places = subscriptions.map(({ after }) => Number(after.slice("log.".length)));
    places.slice(1).forEach((place, index) => assert.ok([50, 51].includes(place - places[index]), String(places)));
    assert.ok(places.length >= 9, String(places));
  });

  check("deltas never push events out", async (t) => {
    const delta = (text) => ({ type: "delta", delta: { runId: "run", iteration: 1, attempt: 1, text } });
    let arrived = false;
    const { read, states } = await sockets(t, kind, [
      (say, socket) => {
        say(event(1));
        range(1, 200).forEach((number) => say(delta(String(number))));
        range(2, 6).forEach((number) => say(event(number)));
        socket.on("pong", () => (arrived = true)).ping();
      },
    ]);
    const items = [];
    for await (const item of read({ buffer: 20, deltas: true })) {
      items.push(item);
      await until("all of it has arrived", () => arrived);
      if (item.cursor === "log.6") {
        break;
      }
    }
    assert.deepEqual(numbers(items), range(1, 6));
    const texts = items.filter(({ type }) => type === "delta").map(({ delta }) => Number(delta.text));
    assert.ok(texts.length >= 9 && texts.length <= 11, `half of the room is for them: ${texts}`);
    assert.deepEqual(texts, [...texts].sort((a, b) => a - b));
    assert.equal(states.filter(({ state }) => state === "connecting").length, 1, "the socket was kept");
  });

  check("large messages wait alone", async (t) => {
    let closed = 0;
    const large = (number) => ({ ...event(number), text: "x".repeat(9 * 1024 * 1024) });
    const { read, subscriptions } = await sockets(t, kind, [
      (say, socket, { after }) => {
        socket.on("close", () => (closed += 1));
        range(Number(after.slice("log.".length)) + 1, 4).forEach((number) => say(large(number)));
      },
    ]);
    const items = [];
    for await (const item of read()) {
      items.push(item);
      if (items.length === 1) {
        await until("two of them are more than may wait", () => closed === 1);
      }
      if (items.length === 4) {
        break;
      }
    }
    assert.deepEqual(numbers(items), range(1, 4));
    assert.deepEqual(subscriptions.map(({ after }) => after), ["log.0", "log.2"]);
  });

  check("who leaves, and who is told to, closes the socket", async (t) => {
    let open = 0;
    const { read } = await sockets(t, kind, [
      (say, socket) => {
        open += 1;
        socket.on("close", () => (open -= 1));
        say(event(1));
      },
    ]);
    await collect(read(), () => true);
    await until("closed after a break", () => open === 0);

    const controller = new AbortController();
    const enough = () => void controller.abort(new Error("enough"));
    const left = await rejection(collect(read({ signal: controller.signal }), enough));
    assert.equal(left.message, "enough");
    await until("closed after an abort", () => open === 0);
    assert.equal((await rejection(collect(read({ signal: controller.signal })))).message, "enough");

    // Also while it waits for the next try, or for an answer about a refusal.
    for (const options of [{}, { refuse: () => 503, answer: () => undefined }]) {
      const { read, states } = await sockets(t, kind, [{ raw: (socket) => socket.terminate() }], options);
      const signal = AbortSignal.timeout(50);
      const timing = { backoffMs: 1e6, backoffMaxMs: 1e6 };
      assert.equal((await rejection(collect(read({ signal, timing })))).name, "TimeoutError");
      assert.ok(states.length > 0);
    }
  });
}

test("a token that no socket takes, and no socket at all", async (t) => {
  const { WebSocket } = SOCKETS[0];
  const url = await standIn(t, { talk: (socket) => socket.terminate() });
  for (const token of [`${TOKEN}=`, `${TOKEN}/x`, `${TOKEN},y`, `${TOKEN}"`]) {
    expect(await rejection(collect(new RedflowClient({ url, token }).events({ WebSocket }))), "REQUEST_INVALID");
  }
  const thrown = class {
    constructor(_, protocols) {
      throw new SyntaxError(`bad protocol ${protocols}`);
    }
  };
  const client = new RedflowClient({ url, token: TOKEN });
  expect(await rejection(collect(client.events({ WebSocket: thrown }))), "REQUEST_INVALID");
  const own = globalThis.WebSocket;
  globalThis.WebSocket = undefined;
  try {
    expect(await rejection(collect(client.events())), "REQUEST_INVALID");
  } finally {
    globalThis.WebSocket = own;
  }
});
