// The socket against real servers that are not there, refuse, fall silent, talk nonsense, and come back.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import test from "node:test";
import { WebSocketServer } from "ws";
import { Conversation, DEFAULT_LIMITS, PROTOCOL } from "../dist/conversation.js";
import { Link, bridgeAddress } from "../dist/link.js";

const NO_TOKEN = "the sidecar does not take this token; put what `redflow token` prints into the redflow-runtime";

const TIMING = { backoffMs: 1, backoffMaxMs: 20, heartbeatMs: 200 };
const WELCOME = JSON.stringify({ type: "welcome", version: "9", session: "s", received: 0, limits: DEFAULT_LIMITS });

/** A link that notes its states; `until` waits for one. */
function linked(t) {
  const states = [];
  const waiting = new Set();
  let link;
  const conversation = new Conversation({ instance: "i", boot: "b", nodeRed: "4", bridge: "1" }, {
    welcomed: ({ version }) => link.welcomed(version),
    take: () => undefined,
    closing: (closing) => link.closing(closing),
    taken: () => undefined,
    opening: () => undefined,
  });
  link = new Link(
    conversation,
    (state) => {
      states.push(state);
      waiting.forEach((look) => look());
    },
    TIMING,
  );
  t.after(() => link.stop());
  const until = (wanted) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`never: ${JSON.stringify(states.slice(-3))}`)), 10_000);
      const look = () => {
        const found = states.find(wanted);
        if (found !== undefined) {
          clearTimeout(timer);
          waiting.delete(look);
          resolve(found);
        }
      };
      waiting.add(look);
      look();
    });
  return { link, states, until };
}

async function listening(t, server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** A server that does with each socket what it is told. */
async function sidecar(t, act) {
  const server = createServer();
  const sockets = new WebSocketServer({ server, path: "/bridge", handleProtocols: () => PROTOCOL });
  const seen = [];
  sockets.on("connection", (socket, request) => {
    seen.push(request);
    act(socket, seen.length);
  });
  t.after(() => sockets.clients.forEach((socket) => socket.terminate()));
  return { url: await listening(t, server), seen };
}

test("the token and the protocol are in the handshake; welcome makes it connected", async (t) => {
  const { url, seen } = await sidecar(t, (socket) => socket.once("message", () => socket.send(WELCOME)));
  const { link, until } = linked(t);
  link.start({ url, token: "abc" });
  assert.equal((await until(({ is }) => is === "connected")).version, "9");
  assert.equal(seen[0].headers.authorization, "Bearer abc");
  assert.equal(seen[0].headers["sec-websocket-protocol"], PROTOCOL);
});

test("nothing there: away with a reason, and tried again until it is", async (t) => {
  const server = createServer();
  const url = await listening(t, server);
  await new Promise((resolve) => server.close(resolve));
  const { link, until, states } = linked(t);
  link.start({ url, token: "" });
  assert.deepEqual(await until(({ is }) => is === "away"), { is: "away", reason: "nothing listens there" });
  const sockets = new WebSocketServer({ host: "127.0.0.1", port: new URL(url).port, path: "/bridge" });
  t.after(() => sockets.close());
  sockets.on("connection", (socket) => {
    t.after(() => socket.terminate());
    socket.once("message", () => socket.send(WELCOME));
  });
  await until(({ is }) => is === "connected");
  assert.equal(states[0].is, "connecting");
});

for (const [status, body, wanted] of [
  [401, '{"code":"UNAUTHORIZED","message":"which?"}', { is: "refused", code: "UNAUTHORIZED", message: NO_TOKEN }],
  [401, "<html>", { is: "refused", code: "UNAUTHORIZED", message: NO_TOKEN }],
  [403, "", { is: "refused", code: "FORBIDDEN", message: "the sidecar does not let this Node-RED in" }],
  [404, "x".repeat(1_000_000), { is: "refused", code: "PROTOCOL_MISMATCH" }],
  [200, "hello", { is: "refused", code: "PROTOCOL_MISMATCH" }],
  [503, "", { is: "away", reason: "the sidecar answered with status 503" }],
  [429, '{"code":"TOO_MANY_CONNECTIONS","message":"later"}', { is: "away", reason: "later" }],
]) {
  test(`a handshake that is answered with ${status} and ${body.slice(0, 20)}`, async (t) => {
    const answer = (_, response) => response.writeHead(status).end(body);
    const server = createServer(answer);
    server.on("upgrade", (request, socket) => {
      socket.on("error", () => undefined);
      socket.end(`HTTP/1.1 ${status} X\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`);
    });
    const { link, until } = linked(t);
    link.start({ url: await listening(t, server), token: "secret" });
    const state = await until(({ is }) => is !== "connecting");
    assert.deepEqual({ ...state, ...wanted }, state);
    assert.ok(!JSON.stringify(state).includes("secret"));
  });
}

test("what the sidecar says when it closes is shown, red if a person has to do something", async (t) => {
  const closing = (code) => JSON.stringify({ type: "closing", code, message: `because ${code}` });
  const codes = ["STOPPING", "INSTANCE_TAKEN", "PROTOCOL_MISMATCH", "TOO_MANY_INSTANCES", "MESSAGE_INVALID"];
  const { url } = await sidecar(t, (socket, count) => {
    socket.send(count > codes.length ? WELCOME : closing(codes[count - 1]));
    if (count <= codes.length) {
      socket.close(1000);
    }
  });
  const { link, until, states } = linked(t);
  link.start({ url, token: "" });
  await until(({ is }) => is === "connected");
  assert.deepEqual(states.slice(1, -1), [
    { is: "away", reason: "because STOPPING" },
    ...codes.slice(1).map((code) => ({ is: "refused", code, message: `because ${code}` })),
  ]);
});

test("whatever a peer says, it is shown without the token and no longer than people read", async (t) => {
  const token = "the-t0ken";
  const long = `${token} ${"x".repeat(5_000)}`;
  const said = [
    (socket) => socket.send(JSON.stringify({ type: "closing", code: "STOPPING", message: long })),
    (socket) => socket.send(JSON.stringify({ type: "closing", code: "INSTANCE_TAKEN", message: long })),
    (socket) => socket.close(1011, `no ${token}`),
    (socket) => socket.send(WELCOME.replace('"9"', JSON.stringify(long))),
  ];
  const { url } = await sidecar(t, (socket, count) => {
    (said[count - 1] ?? said[3])(socket);
    count < said.length ? socket.close(1000) : undefined;
  });
  const { link, until, states } = linked(t);
  link.start({ url, token });
  await until(({ is }) => is === "connected");
  const words = states.slice(1).map(({ reason, message, version }) => reason ?? message ?? version);
  const short = `… ${"x".repeat(1_997)}…`;
  assert.deepEqual(words, [short, short, "no …", short]);
  const body = JSON.stringify({ code: `FORBIDDEN ${token}`, message: long });
  const server = createServer();
  server.on("upgrade", (_request, socket) => {
    socket.on("error", () => undefined);
    socket.end(`HTTP/1.1 403 X\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`);
  });
  const refused = linked(t);
  refused.link.start({ url: await listening(t, server), token });
  const state = await refused.until(({ is }) => is === "refused");
  assert.deepEqual(state, { is: "refused", code: "FORBIDDEN …", message: short });
  assert.equal(refused.link.state, state);
});

test("a peer that falls silent is noticed", async (t) => {
  const server = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    t.after(() => socket.destroy());
  });
  const { link, until } = linked(t);
  link.start({ url: await listening(t, server), token: "" });
  assert.match((await until(({ is }) => is === "away")).reason, /handshake has timed out/);
  const silent = await sidecar(t, (socket) => {
    socket.send(WELCOME);
    socket.pong = () => undefined;
    socket._socket.pause();
  });
  const second = linked(t);
  second.link.start({ url: silent.url, token: "" });
  await second.until(({ reason }) => reason === "the sidecar does not answer");
});

test("nonsense ends the socket, not Node-RED", async (t) => {
  const words = ["nonsense", Buffer.from([1, 2]), '{"type":"start_done","seq":1}'];
  const { url } = await sidecar(t, (socket, count) => socket.send(words[count - 1] ?? WELCOME));
  const { link, until, states } = linked(t);
  link.start({ url, token: "" });
  await until(({ is }) => is === "connected");
  assert.deepEqual(states.slice(1, 4).map(({ is }) => is), ["away", "away", "away"]);
});

test("a URL or a token that cannot be used is said to be so, without the token", async (t) => {
  const { link, states } = linked(t);
  const targets = [["ftp://x", ""], ["no url", ""], ["http://127.0.0.1:1", "sec\nret"]];
  for (const [url, token] of targets) {
    link.start({ url, token });
    assert.equal(states.at(-1).code, "CONFIG_INVALID");
    assert.ok(!JSON.stringify(states).includes("ret"));
  }
});

test("the address of the bridge", () => {
  assert.equal(bridgeAddress("http://127.0.0.1:1881"), "ws://127.0.0.1:1881/bridge");
  assert.equal(bridgeAddress("https://a:b@host/under/#x"), "wss://host/under/bridge");
  assert.equal(bridgeAddress("https://host/under?key=x"), "wss://host/under/bridge?key=x");
  assert.equal(bridgeAddress("file:///x"), undefined);
});

test("after stop nothing is tried any more", async (t) => {
  const { url, seen } = await sidecar(t, (socket) => socket.send(WELCOME));
  const { link, until, states } = linked(t);
  link.start({ url, token: "" });
  await until(({ is }) => is === "connected");
  link.stop();
  const last = states.length;
  const other = linked(t);
  other.link.start({ url, token: "" });
  await other.until(({ is }) => is === "connected");
  assert.equal(states.length, last);
  assert.equal(seen.length, 2);
});
