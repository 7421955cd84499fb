// The client of the sidecar's HTTP API, against a server with valid and invalid responses.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { ApiFailure, SidecarApi } from "../dist/sidecar-api.js";

const TOKEN = "the-token-that-stays-secret";
const CONNECTED = { is: "connected", version: "1" };
const LIMITS = { timeoutMs: 10_000, maxResponseBytes: 10_000, maxInFlight: 2 };

/** A server and its client. `requests` are the received requests. */
async function serve(t, answer, { limits = LIMITS, token = TOKEN, before = "", path = "" } = {}) {
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://${before}127.0.0.1:${server.address().port}${path}`;
  const api = new SidecarApi(() => ({ target: { url, token }, state: CONNECTED }), limits);
  return { api, requests, server };
}

const json = (status, value, headers = {}) => (_request, response) => {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
};

/** The failure of a request. Asserts that it contains no token. */
async function failure(request) {
  const error = await request.then(
    () => assert.fail("the request succeeded"),
    (error) => error,
  );
  assert.ok(error instanceof ApiFailure, String(error));
  assert.ok(!`${error.message} ${error.code}`.includes(TOKEN), error.message);
  assert.ok(error.message.length > 0 && error.message.length < 2_200);
  return [error.status, error.code, error.message];
}

test("sends the token and no password, below the path of the URL", async (t) => {
  const { api, requests } = await serve(t, json(200, { runs: [] }), { before: "user:pass@", path: "/below/?key=x&limit=9#y" });
  const { text, value } = await api.request("GET", "/api/runs?limit=2");
  assert.deepEqual([text, value], ['{"runs":[]}', { runs: [] }]);
  const [{ method, url, headers }] = requests;
  assert.deepEqual([method, url, headers.authorization], ["GET", "/below/api/runs?key=x&limit=2", `Bearer ${TOKEN}`]);
});

test("sends a body as JSON, and no authorization header without a token", async (t) => {
  let body = "";
  const answer = (request, response) => {
    request.on("data", (part) => (body += part));
    request.on("end", () => json(200, {})(request, response));
  };
  const { api, requests } = await serve(t, answer, { token: "" });
  await api.request("POST", "/api/runs/r/cancel", { reason: "by hand" });
  assert.deepEqual([body, requests[0].headers["content-type"]], ['{"reason":"by hand"}', "application/json"]);
  assert.equal(requests[0].headers.authorization, undefined);
});

test("a request may take longer than the others", async (t) => {
  const slow = (request, response) => setTimeout(() => json(200, {})(request, response), 300);
  const { api } = await serve(t, slow, { limits: { ...LIMITS, timeoutMs: 50 } });
  assert.match((await failure(api.request("GET", "/api/runs")))[2], /did not answer within 0.05 s/);
  assert.deepEqual((await api.request("POST", "/api/models/test", {}, 60_000)).value, {});
});

test("keeps the status and code of an error, and redacts and cuts its message", async (t) => {
  const rows = [
    [404, { code: "RUN_UNKNOWN", message: "no run" }, [404, "RUN_UNKNOWN", "no run"]],
    [409, { code: "RUN_OVER", message: `over, ${TOKEN}` }, [409, "RUN_OVER", "over, …"]],
    [429, { code: "RATE_LIMITED", message: "x".repeat(9_000) }, [429, "RATE_LIMITED", `${"x".repeat(1_999)}…`]],
    [503, { code: "STOPPING", message: "stopping" }, [503, "STOPPING", "stopping"]],
  ];
  for (const [status, error, expected] of rows) {
    const { api } = await serve(t, json(status, error));
    assert.deepEqual(await failure(api.request("GET", "/api/runs")), expected);
  }
});

test("reports a wrong or weak token, and never as 401, which would log the editor's user out", async (t) => {
  const wrong = await serve(t, json(401, { code: "UNAUTHORIZED", message: `not ${TOKEN}` }));
  const [status, code, message] = await failure(wrong.api.request("GET", "/api/runs"));
  assert.deepEqual([status, code], [502, "UNAUTHORIZED"]);
  assert.match(message, /redflow token/);
  const weak = await serve(t, json(403, { code: "FORBIDDEN", message: "The token may not." }));
  const refused = await failure(weak.api.request("POST", "/api/runs/r/cancel", {}));
  assert.deepEqual(refused.slice(0, 2), [403, "FORBIDDEN"]);
  assert.match(refused[2], /^The token may not\. .*scope `run`/);
});

test("reports responses that do not come from a sidecar", async (t) => {
  let elsewhere = 0;
  const other = await serve(t, () => (elsewhere += 1));
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
    const { api } = await serve(t, answer);
    assert.deepEqual((await failure(api.request("GET", "/api/runs"))).slice(0, 2), expected, String(answer));
  }
  assert.equal(elsewhere, 0);
});

test("stops reading a response that is too long", async (t) => {
  const endless = (_request, response) => {
    response.on("error", () => undefined);
    const more = () => !response.destroyed && response.write("[".repeat(1_000), () => setImmediate(more));
    more();
  };
  const bomb = (_request, response) => {
    response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(" ".repeat(1_000_000)));
  };
  for (const answer of [endless, bomb, json(200, "x".repeat(20_000)), json(500, "x".repeat(20_000))]) {
    const { api } = await serve(t, answer);
    assert.deepEqual((await failure(api.request("GET", "/api/runs"))).slice(0, 2), [502, "MESSAGE_TOO_LARGE"]);
  }
});

test("times out on a missing or incomplete response", async (t) => {
  const limits = { ...LIMITS, timeoutMs: 50 };
  for (const answer of [() => undefined, (_, response) => response.write('{"begun":')]) {
    const { api } = await serve(t, answer, { limits });
    const [status, code, message] = await failure(api.request("GET", "/api/runs"));
    assert.deepEqual([status, code], [503, "RUNTIME_UNREACHABLE"]);
    assert.match(message, /did not answer within 0.05 s/);
  }
});

test("limits the requests that run at once", async (t) => {
  const held = [];
  const { api } = await serve(t, (_, response) => held.push(response));
  const first = [api.request("GET", "/a"), api.request("GET", "/b")];
  assert.deepEqual((await failure(api.request("GET", "/c"))).slice(0, 2), [429, "RATE_LIMITED"]);
  while (held.length < 2) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  held.forEach((response) => response.end("{}"));
  await Promise.all(first);
  const next = api.request("GET", "/d");
  while (held.length < 3) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  held[2].end("{}");
  assert.deepEqual((await next).value, {});
});

test("sends no request without a connection and reports why", async (t) => {
  const { requests, server } = await serve(t, json(200, {}));
  const target = { url: `http://127.0.0.1:${server.address().port}`, token: TOKEN };
  const rows = [
    [{ is: "connecting" }, /it is connecting/],
    [{ is: "offline", reason: "nothing listens there" }, /nothing listens there/],
    [{ is: "refused", code: "INSTANCE_TAKEN", message: "another one has this name" }, /another one .*\(INSTANCE_TAKEN\)/],
  ];
  for (const [state, pattern] of rows) {
    const [status, code, message] = await failure(new SidecarApi(() => ({ target, state })).request("GET", "/api/runs"));
    assert.deepEqual([status, code], [503, "RUNTIME_UNREACHABLE"]);
    assert.match(message, pattern);
  }
  assert.deepEqual(requests, []);
});

test("reports a lost sidecar, an invalid URL and an invalid token without texts of the platform", async () => {
  const at = (url, token = TOKEN) => new SidecarApi(() => ({ target: { url, token }, state: CONNECTED }));
  const lost = await failure(at("http://127.0.0.1:9").request("GET", "/api/runs"));
  assert.deepEqual(lost.slice(0, 2), [503, "RUNTIME_UNREACHABLE"]);
  const noUrl = "the URL of the runtime is not http:// or https://; correct it";
  for (const [api, message] of [
    [at("no address"), noUrl],
    [at("ftp://127.0.0.1/"), noUrl],
    [at("http://127.0.0.1:9", `${TOKEN}\n`), "the sidecar did not answer: the connection failed"],
  ]) {
    assert.deepEqual(await failure(api.request("GET", "/api/runs")), [503, "RUNTIME_UNREACHABLE", message]);
  }
});
