// The client of the sidecar's HTTP API, at a real server that answers as a sidecar does, and as nobody should.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { NotDone, SidecarApi } from "../dist/sidecar-api.js";

const TOKEN = "the-token-that-nobody-may-read";
const CONNECTED = { is: "connected", version: "1" };
const BOUNDS = { timeoutMs: 10_000, maxAnswerBytes: 10_000, maxInFlight: 2 };

/** A server, and a client of it. `seen` are the requests that came. */
async function served(t, answer, { bounds = BOUNDS, token = TOKEN, before = "", path = "" } = {}) {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push(request);
    answer(request, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://${before}127.0.0.1:${server.address().port}${path}`;
  const api = new SidecarApi(() => ({ target: { url, token }, state: CONNECTED }), bounds);
  return { api, seen, server };
}

const json = (status, value, headers = {}) => (_request, response) => {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
};

/** What was not done, in its words, which hold no secret. */
async function problem(asked) {
  const error = await asked.then(
    () => assert.fail("it was done"),
    (error) => error,
  );
  assert.ok(error instanceof NotDone, String(error));
  assert.ok(!`${error.message} ${error.code}`.includes(TOKEN), error.message);
  assert.ok(error.message.length > 0 && error.message.length < 2_200);
  return [error.status, error.code, error.message];
}

test("what is asked carries the token and no password, below the path of the URL", async (t) => {
  const { api, seen } = await served(t, json(200, { runs: [] }), { before: "user:pass@", path: "/below/?key=x&limit=9#y" });
  const { text, value } = await api.ask("GET", "/api/runs?limit=2");
  assert.deepEqual([text, value], ['{"runs":[]}', { runs: [] }]);
  const [{ method, url, headers }] = seen;
  assert.deepEqual([method, url, headers.authorization], ["GET", "/below/api/runs?key=x&limit=2", `Bearer ${TOKEN}`]);
});

test("a body goes as JSON, and without a token there is no header for it", async (t) => {
  let body = "";
  const answer = (request, response) => {
    request.on("data", (part) => (body += part));
    request.on("end", () => json(200, {})(request, response));
  };
  const { api, seen } = await served(t, answer, { token: "" });
  await api.ask("POST", "/api/runs/r/cancel", { reason: "by hand" });
  assert.deepEqual([body, seen[0].headers["content-type"]], ['{"reason":"by hand"}', "application/json"]);
  assert.equal(seen[0].headers.authorization, undefined);
});

test("what the sidecar refuses keeps its status and code; its words lose the token and what is too long", async (t) => {
  const rows = [
    [404, { code: "RUN_UNKNOWN", message: "no run" }, [404, "RUN_UNKNOWN", "no run"]],
    [409, { code: "RUN_OVER", message: `over, ${TOKEN}` }, [409, "RUN_OVER", "over, …"]],
    [429, { code: "RATE_LIMITED", message: "x".repeat(9_000) }, [429, "RATE_LIMITED", `${"x".repeat(1_999)}…`]],
    [503, { code: "STOPPING", message: "stopping" }, [503, "STOPPING", "stopping"]],
  ];
  for (const [status, said, expected] of rows) {
    const { api } = await served(t, json(status, said));
    assert.deepEqual(await problem(api.ask("GET", "/api/runs")), expected);
  }
});

test("a token that is wrong, or may not do it, is said so; never as a 401, which is for the editor's own user", async (t) => {
  const wrong = await served(t, json(401, { code: "UNAUTHORIZED", message: `not ${TOKEN}` }));
  const [status, code, message] = await problem(wrong.api.ask("GET", "/api/runs"));
  assert.deepEqual([status, code], [502, "UNAUTHORIZED"]);
  assert.match(message, /redflow token/);
  const weak = await served(t, json(403, { code: "FORBIDDEN", message: "The token may not." }));
  const refused = await problem(weak.api.ask("POST", "/api/runs/r/cancel", {}));
  assert.deepEqual(refused.slice(0, 2), [403, "FORBIDDEN"]);
  assert.match(refused[2], /^The token may not\. .*scope `run`/);
});

test("what is no sidecar is told as that: redirects, pages, nonsense, statuses without words", async (t) => {
  let elsewhere = 0;
  const other = await served(t, () => (elsewhere += 1));
  const to = `http://127.0.0.1:${other.server.address().port}/`;
  const rows = [
    [json(302, {}, { location: to }), 502, "PROTOCOL_MISMATCH"],
    [json(307, { code: "X", message: "y" }, { location: to }), 502, "PROTOCOL_MISMATCH"],
    [(_, response) => response.end("<html>hello"), 502, "PROTOCOL_MISMATCH"],
    [(_, response) => response.end(), 502, "PROTOCOL_MISMATCH"],
    [json(404, "nothing"), 502, "PROTOCOL_MISMATCH"],
    [json(400, { code: 1, message: {} }), 502, "PROTOCOL_MISMATCH"],
    [json(500, null), 503, "RUNTIME_UNREACHABLE"],
    [(request) => request.socket.destroy(), 503, "RUNTIME_UNREACHABLE"],
    [(request) => request.socket.end("SSH-2.0-OpenSSH\r\n\r\n"), 503, "RUNTIME_UNREACHABLE"],
  ];
  for (const [answer, ...expected] of rows) {
    const { api } = await served(t, answer);
    assert.deepEqual((await problem(api.ask("GET", "/api/runs"))).slice(0, 2), expected, String(answer));
  }
  assert.equal(elsewhere, 0);
});

test("an answer that is too long is not read to its end, whatever it says of its length", async (t) => {
  const endless = (_request, response) => {
    response.on("error", () => undefined);
    const more = () => !response.destroyed && response.write("[".repeat(1_000), () => setImmediate(more));
    more();
  };
  const bomb = (_request, response) => {
    response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(" ".repeat(1_000_000)));
  };
  for (const answer of [endless, bomb, json(200, "x".repeat(20_000)), json(500, "x".repeat(20_000))]) {
    const { api } = await served(t, answer);
    assert.deepEqual((await problem(api.ask("GET", "/api/runs"))).slice(0, 2), [502, "MESSAGE_TOO_LARGE"]);
  }
});

test("an answer that does not come, or not to its end, is given up", async (t) => {
  const bounds = { ...BOUNDS, timeoutMs: 50 };
  for (const answer of [() => undefined, (_, response) => response.write('{"begun":')]) {
    const { api } = await served(t, answer, { bounds });
    const [status, code, message] = await problem(api.ask("GET", "/api/runs"));
    assert.deepEqual([status, code], [503, "RUNTIME_UNREACHABLE"]);
    assert.match(message, /did not answer within 0.05 s/);
  }
});

test("only so many are under way at once; who ends makes room", async (t) => {
  const held = [];
  const { api } = await served(t, (_, response) => held.push(response));
  const first = [api.ask("GET", "/a"), api.ask("GET", "/b")];
  assert.deepEqual((await problem(api.ask("GET", "/c"))).slice(0, 2), [429, "RATE_LIMITED"]);
  while (held.length < 2) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  held.forEach((response) => response.end("{}"));
  await Promise.all(first);
  const next = api.ask("GET", "/d");
  while (held.length < 3) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  held[2].end("{}");
  assert.deepEqual((await next).value, {});
});

test("a sidecar that is not connected is not asked, and it is said why", async (t) => {
  const { seen, server } = await served(t, json(200, {}));
  const target = { url: `http://127.0.0.1:${server.address().port}`, token: TOKEN };
  const rows = [
    [{ is: "connecting" }, /being connected/],
    [{ is: "away", reason: "nothing listens there" }, /nothing listens there/],
    [{ is: "refused", code: "INSTANCE_TAKEN", message: "another one has this name" }, /another one .*\(INSTANCE_TAKEN\)/],
  ];
  for (const [state, words] of rows) {
    const [status, code, message] = await problem(new SidecarApi(() => ({ target, state })).ask("GET", "/api/runs"));
    assert.deepEqual([status, code], [503, "RUNTIME_UNREACHABLE"]);
    assert.match(message, words);
  }
  assert.deepEqual(seen, []);
});

test("a sidecar that has just gone, an address that is none, a token that no header holds: no words of a stranger", async () => {
  const at = (url, token = TOKEN) => new SidecarApi(() => ({ target: { url, token }, state: CONNECTED }));
  const gone = await problem(at("http://127.0.0.1:9").ask("GET", "/api/runs"));
  assert.deepEqual(gone.slice(0, 2), [503, "RUNTIME_UNREACHABLE"]);
  const noUrl = "the URL of the runtime is not http:// or https://; correct it";
  for (const [api, words] of [
    [at("no address"), noUrl],
    [at("ftp://127.0.0.1/"), noUrl],
    [at("http://127.0.0.1:9", `${TOKEN}\n`), "the sidecar did not answer: the connection failed"],
  ]) {
    assert.deepEqual(await problem(api.ask("GET", "/api/runs")), [503, "RUNTIME_UNREACHABLE", words]);
  }
});
