// The texts that models write now: the event socket is open only while an editor asks, and texts are joined by attempt.

import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { WebSocketServer } from "ws";
import { LiveTexts } from "../dist/live-texts.js";
import { until } from "./kit/until.mjs";

/** A fake event socket, and texts that use it. Their clock moves only by hand. */
async function world(t, timing = { followMs: 20, retryMs: 0 }) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", path: "/events" });
  await once(server, "listening");
  const requests = [];
  const sockets = [];
  server.on("connection", (socket, { headers }) => {
    sockets.push({ socket, token: headers.authorization, protocol: socket.protocol });
    socket.on("message", (data) => requests.push(JSON.parse(String(data))));
  });
  const clock = { now: 0 };
  const target = { url: `http://127.0.0.1:${server.address().port}`, token: "secret" };
  const sidecar = { target, state: { is: "connected", version: "1" } };
  const texts = new LiveTexts(() => sidecar, timing, () => clock.now);
  t.after(() => {
    clock.now = Number.POSITIVE_INFINITY;
    server.clients.forEach((client) => client.terminate());
    server.close();
  });
  const send = (message) => sockets.at(-1).socket.send(typeof message === "string" ? message : JSON.stringify(message));
  const delta = (runId, text, more = {}) => send({ type: "delta", delta: { runId, iteration: 1, attempt: 1, text, ...more } });
  return { texts, clock, sidecar, requests, sockets, send, delta, server };
}

test("joins the pieces of the followed runs, and begins again with a new attempt or iteration", async (t) => {
  const { texts, requests, sockets, send, delta } = await world(t);
  assert.equal(texts.follow("r1"), undefined);
  await until("no subscription", () => requests.length === 1);
  assert.deepEqual(requests[0], { type: "subscribe", runs: ["r1"], deltas: true });
  assert.deepEqual([sockets[0].token, sockets[0].protocol], ["Bearer secret", "redflow.events.v1"]);
  send("not JSON");
  send({ type: "event", cursor: "1", event: {} });
  send({ type: "delta", delta: { runId: "r1", text: 7 } });
  delta("other", "not followed");
  delta("r1", "He");
  delta("r1", "llo");
  const text = () => texts.follow("r1");
  await until("no text", () => text()?.text === "Hello");
  assert.deepEqual(text(), { iteration: 1, attempt: 1, text: "Hello", isCut: true });
  delta("r1", "Once more", { attempt: 2 });
  await until("no new attempt", () => text().text === "Once more");
  assert.equal(text().isCut, false, "a later text is known from its beginning");
  delta("r1", "x".repeat(30_000), { iteration: 2 });
  await until("no long text", () => text().iteration === 2);
  assert.deepEqual([text().text.length, text().isCut], [20_000, true]);
  texts.follow("r2");
  await until("no second subscription", () => requests.length === 2);
  assert.deepEqual(new Set(requests[1].runs), new Set(["r1", "r2"]));
});

test("closes the socket when no editor asks any more, and follows a limited number of runs", async (t) => {
  const { texts, clock, requests, sockets } = await world(t);
  for (let run = 0; run < 100; run += 1) {
    texts.follow(`r${run}`);
  }
  await until("no subscription", () => requests.length > 0);
  assert.equal(requests.at(-1).runs.length, 20);
  clock.now = 1_000;
  await once(sockets[0].socket, "close");
  texts.follow("again");
  await until("not opened again", () => sockets.length === 2);
});

test("opens a lost socket again, but not at once, and none while the sidecar is offline", async (t) => {
  const { texts, clock, sidecar, sockets } = await world(t, { followMs: 60_000, retryMs: 100 });
  sidecar.state = { is: "offline", reason: "" };
  texts.follow("r1");
  sidecar.state = { is: "connected", version: "1" };
  texts.follow("r1");
  await until("not opened", () => sockets.length === 1);
  sockets[0].socket.terminate();
  clock.now = 99;
  await until("still open", () => {
    texts.follow("r1");
    return texts.socket === undefined;
  });
  clock.now = 100;
  texts.follow("r1");
  await until("not opened again", () => sockets.length === 2);
  clock.now = 1e9;
  texts.forgetUnasked();
});

test("after a lost socket the text begins again, and is marked as cut", async (t) => {
  const { texts, requests, sockets, delta } = await world(t);
  const text = () => texts.follow("r1");
  text();
  await until("no subscription", () => requests.length === 1);
  delta("r1", "Hel");
  await until("no text", () => text()?.text === "Hel");
  delta("r1", "Once more", { attempt: 2 });
  await until("no new attempt", () => text().isCut === false);
  sockets[0].socket.terminate();
  await until("not opened again", () => text() !== undefined && requests.length === 2);
  delta("r1", "re", { attempt: 2 });
  await until("no text", () => text().text !== "Once more");
  assert.deepEqual(text(), { iteration: 1, attempt: 2, text: "re", isCut: true });
  delta("r1", "New", { attempt: 3 });
  await until("no new attempt", () => text().attempt === 3);
  assert.equal(text().isCut, false);
});

test("follows the sidecar that is chosen now, and its token", async (t) => {
  const [one, two] = [await world(t, { followMs: 60_000, retryMs: 60_000 }), await world(t)];
  one.texts.follow("r1");
  await until("not opened", () => one.requests.length === 1);
  one.sidecar.target = { ...one.sidecar.target, token: "new" };
  one.texts.follow("r1");
  await until("not opened again", () => one.sockets.length === 2);
  assert.deepEqual(one.sockets.map(({ token }) => token), ["Bearer secret", "Bearer new"]);
  one.sidecar.target = two.sidecar.target;
  one.texts.follow("r1");
  await until("not opened there", () => two.requests.length === 1);
  await until("still open", () => one.server.clients.size === 0);
  one.clock.now = 1e9;
  one.texts.forgetUnasked();
});
