// The connection against servers that are missing, refuse, stop answering, send invalid data and return.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import test from "node:test";
import { WebSocketServer } from "ws";
import { BridgeSession, DEFAULT_LIMITS, PROTOCOL } from "../dist/bridge-session.js";
import { SidecarConnection, TOKEN_REFUSED, bridgeAddress } from "../dist/sidecar-connection.js";

const TIMING = { backoffMs: 1, backoffMaxMs: 20, heartbeatMs: 200 };
const WELCOME = JSON.stringify({ type: "welcome", version: "9", session: "s", received: 0, limits: DEFAULT_LIMITS });

/** A connection that records its states; `until` waits for one. */
function createConnection(t) {
  const states = [];
  const waiting = new Set();
  const session = new BridgeSession({ instance: "i", boot: "b", nodeRed: "4", bridge: "1" }, {
    onWelcome: ({ version }) => connection.onWelcome(version),
    onMessage: () => undefined,
    onClosing: (closing) => connection.onClosing(closing),
    onAck: () => undefined,
    firstMessage: () => undefined,
  });
  const connection = new SidecarConnection(
    session,
    (state) => {
      states.push(state);
      waiting.forEach((check) => check());
    },
    TIMING,
  );
  t.after(() => connection.stop());
  const until = (matches) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no such state, last ${JSON.stringify(states.slice(-3))}`)), 10_000);
      const check = () => {
        const found = states.find(matches);
        if (found !== undefined) {
          clearTimeout(timer);
          waiting.delete(check);
          resolve(found);
        }
      };
      waiting.add(check);
      check();
    });
  return { connection, states, until };
}

async function listen(t, server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** A server that calls `act` with each socket. */
async function fakeSidecar(t, act) {
  const server = createServer();
  const sockets = new WebSocketServer({ server, path: "/bridge", handleProtocols: () => PROTOCOL });
  const handshakes = [];
  sockets.on("connection", (socket, request) => {
    handshakes.push(request);
    act(socket, handshakes.length);
  });
  t.after(() => sockets.clients.forEach((socket) => socket.terminate()));
  return { url: await listen(t, server), handshakes };
}

test("sends the token and the protocol in the handshake and connects with welcome", async (t) => {
  const { url, handshakes } = await fakeSidecar(t, (socket) => socket.once("message", () => socket.send(WELCOME)));
  const { connection, until } = createConnection(t);
  connection.start({ url, token: "abc" });
  assert.equal((await until(({ is }) => is === "connected")).version, "9");
  assert.equal(handshakes[0].headers.authorization, "Bearer abc");
  assert.equal(handshakes[0].headers["sec-websocket-protocol"], PROTOCOL);
});

test("retries until the sidecar listens", async (t) => {
  const server = createServer();
  const url = await listen(t, server);
  await new Promise((resolve) => server.close(resolve));
  const { connection, until, states } = createConnection(t);
  connection.start({ url, token: "" });
  const reason = { reason: "nothing listens there", phrase: { key: "offline_nothing_listens", args: {} } };
  assert.deepEqual(await until(({ is }) => is === "offline"), { is: "offline", ...reason });
  const sockets = new WebSocketServer({ host: "127.0.0.1", port: new URL(url).port, path: "/bridge" });
  t.after(() => sockets.close());
  sockets.on("connection", (socket) => {
    t.after(() => socket.terminate());
    socket.once("message", () => socket.send(WELCOME));
  });
  await until(({ is }) => is === "connected");
  assert.equal(states[0].is, "connecting");
});

test("neither the text nor the phrase of a state has the token", (t) => {
  const { connection, states } = createConnection(t);
  connection.start({ url: "http://127.0.0.1:9", token: "secret" });
  const phrase = { key: "offline_ended_error", args: { how: "code 1", error: "error: secret" } };
  connection.stopWith({ is: "offline", reason: "it ended with code 1: error: secret", phrase });
  connection.start({ url: "http://127.0.0.1:9", token: "secret" });
  connection.stopWith({ is: "refused", code: "X", message: "error: secret", phrase });
  assert.ok(states.some(({ reason }) => reason === "it ended with code 1: error: …"));
  assert.ok(states.some(({ message }) => message === "error: …"));
  assert.ok(!JSON.stringify(states).includes("secret"));
});

for (const [status, body, expected] of [
  [401, '{"code":"UNAUTHORIZED","message":"which?"}', { is: "refused", code: "UNAUTHORIZED", message: TOKEN_REFUSED }],
  [401, "<html>", { is: "refused", code: "UNAUTHORIZED", message: TOKEN_REFUSED }],
  [403, "", { is: "refused", code: "FORBIDDEN", message: "the sidecar does not accept this Node-RED" }],
  [404, "x".repeat(1_000_000), { is: "refused", code: "PROTOCOL_MISMATCH" }],
  [200, "hello", { is: "refused", code: "PROTOCOL_MISMATCH" }],
  [503, "", { is: "offline", reason: "the sidecar answered with status 503" }],
  [429, '{"code":"TOO_MANY_CONNECTIONS","message":"later"}', { is: "offline", reason: "later" }],
]) {
  test(`handles a handshake response ${status} with ${body.slice(0, 20)}`, async (t) => {
    const answer = (_, response) => response.writeHead(status).end(body);
    const server = createServer(answer);
    server.on("upgrade", (request, socket) => {
      socket.on("error", () => undefined);
      socket.end(`HTTP/1.1 ${status} X\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`);
    });
    const { connection, until } = createConnection(t);
    connection.start({ url: await listen(t, server), token: "secret" });
    const state = await until(({ is }) => is !== "connecting");
    assert.deepEqual({ ...state, ...expected }, state);
    assert.ok(!JSON.stringify(state).includes("secret"));
  });
}

test("shows the reason of a close, as refused if a user must act", async (t) => {
  const closing = (code) => JSON.stringify({ type: "closing", code, message: `because ${code}` });
  const codes = ["STOPPING", "INSTANCE_TAKEN", "PROTOCOL_MISMATCH", "TOO_MANY_INSTANCES", "MESSAGE_INVALID"];
  const { url } = await fakeSidecar(t, (socket, count) => {
    socket.send(count > codes.length ? WELCOME : closing(codes[count - 1]));
    if (count <= codes.length) {
      socket.close(1000);
    }
  });
  const { connection, until, states } = createConnection(t);
  connection.start({ url, token: "" });
  await until(({ is }) => is === "connected");
  assert.deepEqual(states.slice(1, -1), [
    { is: "offline", reason: "because STOPPING" },
    ...codes.slice(1).map((code) => ({ is: "refused", code, message: `because ${code}` })),
  ]);
});

test("shows texts of the peer cut and without the token", async (t) => {
  const token = "the-t0ken";
  const long = `${token} ${"x".repeat(5_000)}`;
  const actions = [
    (socket) => socket.send(JSON.stringify({ type: "closing", code: "STOPPING", message: long })),
    (socket) => socket.send(JSON.stringify({ type: "closing", code: "INSTANCE_TAKEN", message: long })),
    (socket) => socket.close(1011, `no ${token}`),
    (socket) => socket.send(WELCOME.replace('"9"', JSON.stringify(long))),
  ];
  const { url } = await fakeSidecar(t, (socket, count) => {
    (actions[count - 1] ?? actions[3])(socket);
    if (count < actions.length) {
      socket.close(1000);
    }
  });
  const { connection, until, states } = createConnection(t);
  connection.start({ url, token });
  await until(({ is }) => is === "connected");
  const texts = states.slice(1).map(({ reason, message, version }) => reason ?? message ?? version);
  const short = `… ${"x".repeat(1_997)}…`;
  assert.deepEqual(texts, [short, short, "no …", short]);
  const body = JSON.stringify({ code: `FORBIDDEN ${token}`, message: long });
  const server = createServer();
  server.on("upgrade", (_request, socket) => {
    socket.on("error", () => undefined);
    socket.end(`HTTP/1.1 403 X\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`);
  });
  const refused = createConnection(t);
  refused.connection.start({ url: await listen(t, server), token });
  const state = await refused.until(({ is }) => is === "refused");
  assert.deepEqual(state, { is: "refused", code: "FORBIDDEN …", message: short });
  assert.equal(refused.connection.state, state);
});

test("detects a peer that stops answering", async (t) => {
  const server = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    t.after(() => socket.destroy());
  });
  const { connection, until } = createConnection(t);
  connection.start({ url: await listen(t, server), token: "" });
  assert.match((await until(({ is }) => is === "offline")).reason, /handshake has timed out/);
  const silent = await fakeSidecar(t, (socket) => {
    socket.send(WELCOME);
    socket.pong = () => undefined;
    socket._socket.pause();
  });
  const second = createConnection(t);
  second.connection.start({ url: silent.url, token: "" });
  await second.until(({ reason }) => reason === "the sidecar does not answer");
});

test("closes the socket after invalid data", async (t) => {
  const texts = ["nonsense", Buffer.from([1, 2]), '{"type":"start_done","seq":1}'];
  const { url } = await fakeSidecar(t, (socket, count) => socket.send(texts[count - 1] ?? WELCOME));
  const { connection, until, states } = createConnection(t);
  connection.start({ url, token: "" });
  await until(({ is }) => is === "connected");
  assert.deepEqual(states.slice(1, 4).map(({ is }) => is), ["offline", "offline", "offline"]);
});

test("reports an invalid URL or token without showing the token", async (t) => {
  const { connection, states } = createConnection(t);
  const targets = [["ftp://x", ""], ["no url", ""], ["http://127.0.0.1:1", "sec\nret"]];
  for (const [url, token] of targets) {
    connection.start({ url, token });
    assert.equal(states.at(-1).code, "CONFIG_INVALID");
    assert.ok(!JSON.stringify(states).includes("ret"));
  }
});

test("derives the address of the bridge", () => {
  assert.equal(bridgeAddress("http://127.0.0.1:1881"), "ws://127.0.0.1:1881/bridge");
  assert.equal(bridgeAddress("https://a:b@host/under/#x"), "wss://host/under/bridge");
  assert.equal(bridgeAddress("https://host/under?key=x"), "wss://host/under/bridge?key=x");
  assert.equal(bridgeAddress("file:///x"), undefined);
});

test("does not reconnect after stop", async (t) => {
  const { url, handshakes } = await fakeSidecar(t, (socket) => socket.send(WELCOME));
  const { connection, until, states } = createConnection(t);
  connection.start({ url, token: "" });
  await until(({ is }) => is === "connected");
  connection.stop();
  const last = states.length;
  const other = createConnection(t);
  other.connection.start({ url, token: "" });
  await other.until(({ is }) => is === "connected");
  assert.equal(states.length, last);
  assert.equal(handshakes.length, 2);
});
