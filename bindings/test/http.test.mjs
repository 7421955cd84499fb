// HTTP of the client against a fake sidecar that misbehaves. `client.test.mjs` uses a real one.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import test from "node:test";
import { inspect } from "node:util";

import { RedflowClient, RedflowError } from "@redflow/bindings";
import { collect, rejection } from "./kit/collect.mjs";
import { runEvent, fakeSidecar } from "./kit/fake-sidecar.mjs";

const TOKEN = "rf_a-token-that-stays-secret";
const QUICK = { backoffMs: 1, backoffMaxMs: 5 };

const json = (response, status, value, headers = {}) =>
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));

/** Asserts a RedflowError with this code that does not contain the token. */
function expect(error, code, details = {}) {
  assert.ok(error instanceof RedflowError, inspect(error));
  assert.equal(error.code, code, error.message);
  for (const [key, value] of Object.entries(details)) {
    assert.deepEqual(error[key], value, key);
  }
  const shown = inspect(error, { depth: 9, showHidden: true }) + JSON.stringify(error) + error.stack;
  assert.ok(!shown.includes(TOKEN), shown);
}

test("turns an error response into a RedflowError with all its fields", async (t) => {
  const report = { ok: false, diagnostics: [], omitted: {} };
  const answers = [
    [422, { code: "FLOW_REFUSED", message: "Two errors.", report }, {}, { report, retryable: false }],
    [409, { code: "REVISION_CONFLICT", message: "Old.", revision: "r2" }, {}, { revision: "r2", retryable: false }],
    [429, { code: "RATE_LIMITED", message: "Slow." }, { "retry-after": "2" }, { retryAfterMs: 2000, retryable: true }],
    [503, { code: "STOPPING", message: "Soon." }, { "retry-after": "Mon, 1 Jan 2035" }, { retryable: true }],
    [404, { code: "RUN_UNKNOWN", message: "None." }, {}, { retryable: false }],
    [418, { code: "OF_A_NEWER_SIDECAR", message: "New." }, {}, { retryable: false }],
  ];
  let next;
  const url = await fakeSidecar(t, { answer: (_, response) => json(response, next[0], next[1], next[2]) });
  const client = new RedflowClient({ url, token: TOKEN });
  for (next of answers) {
    const [status, { code, message }, , details] = next;
    const error = await rejection(client.flows());
    expect(error, code, { status, message, ...details });
    // Fields that the response does not have are absent.
    assert.equal("report" in error, "report" in details);
    assert.equal("revision" in error, "revision" in details);
    assert.equal("retryAfterMs" in error, "retryAfterMs" in details);
  }
});

test("sends bytes as they are, and a list as a parameter that is repeated", async (t) => {
  const requests = [];
  const answer = async (request, response) => {
    const parts = [];
    for await (const part of request) {
      parts.push(part);
    }
    requests.push([request.url, request.headers["content-type"], Buffer.concat(parts).toString("hex")]);
    json(response, 200, {});
  };
  const client = new RedflowClient({ url: await fakeSidecar(t, { answer }), token: TOKEN });
  const bytes = new Uint8Array([0, 255, 10]);
  await client.addDocument("a b", "x&y.md", bytes, { tags: ["p&q", "r"], dryRun: true });
  await client.addDocument("a b", "x.md", new Blob([bytes]));
  assert.deepEqual(requests, [
    ["/api/kb/a%20b/documents?document=x%26y.md&tag=p%26q&tag=r&dryRun=true", "application/octet-stream", "00ff0a"],
    ["/api/kb/a%20b/documents?document=x.md", "application/octet-stream", "00ff0a"],
  ]);
});

test("asks for MCP servers, approves the digests that were seen, and signs in and out", async (t) => {
  const requests = [];
  const answer = async (request, response) => {
    const parts = [];
    for await (const part of request) {
      parts.push(part);
    }
    requests.push([request.method, request.url, Buffer.concat(parts).toString()]);
    if (request.method === "DELETE") {
      response.writeHead(204).end();
    } else {
      json(response, 200, { url: "https://issuer.example/authorize" });
    }
  };
  const client = new RedflowClient({ url: await fakeSidecar(t, { answer }), token: TOKEN });
  await client.mcpServers();
  await client.mcpServer("files");
  await client.connectMcp("files");
  await client.pinMcpTools("files", { read_file: "d1" });
  assert.deepEqual(await client.loginMcp("files"), { url: "https://issuer.example/authorize" });
  assert.equal(await client.logoutMcp("files"), undefined);
  assert.deepEqual(requests, [
    ["GET", "/api/mcp", ""],
    ["GET", "/api/mcp/files", ""],
    ["POST", "/api/mcp/files/connect", ""],
    ["POST", "/api/mcp/files/pin", '{"tools":{"read_file":"d1"}}'],
    ["POST", "/api/mcp/files/login", ""],
    ["DELETE", "/api/mcp/files/login", ""],
  ]);
  // A name never changes the path.
  expect(await rejection(client.mcpServer("..")), "REQUEST_INVALID", {});
});

test("says which version of an entry it replaces", async (t) => {
  const requests = [];
  const answer = (request, response) => {
    const { "if-match": match, "if-none-match": none } = request.headers;
    requests.push([request.method, request.url, match, none]);
    json(response, 200, {});
  };
  const client = new RedflowClient({ url: await fakeSidecar(t, { answer }), token: TOKEN });
  for (const version of [undefined, 0, 3]) {
    await client.putMemoryEntry("tab1/n7", "a/b", { text: "x" }, { version });
  }
  const path = "/api/memory/tab1%2Fn7/entries/a%2Fb";
  assert.deepEqual(requests, [
    ["PUT", path, undefined, undefined],
    ["PUT", path, undefined, "*"],
    ["PUT", path, '"3"', undefined],
  ]);
  expect(await rejection(client.memoryEntry("tab1/n7", "..")), "REQUEST_INVALID", {});
});

test("reads an export line by line, and reports one that breaks off", async (t) => {
  const line = (key) => `{"memory":"tab1/n7","entry":{"key":"${key}"}}\n`;
  const kind = { "content-type": "application/x-ndjson" };
  const answer = (request, response) => {
    response.writeHead(200, kind);
    if (request.url === "/api/memory/tab1%2Fn7/export?user=ada") {
      // A line and a character can be cut anywhere.
      const bytes = Buffer.from(line("é") + line("b"));
      response.write(bytes.subarray(0, 37), () => response.end(bytes.subarray(37)));
    } else {
      response.write(line("a"), () => response.destroy());
    }
  };
  const client = new RedflowClient({ url: await fakeSidecar(t, { answer }), token: TOKEN });
  const keys = [];
  for await (const { entry } of client.exportMemory({ memory: "tab1/n7", user: "ada" })) {
    keys.push(entry.key);
  }
  assert.deepEqual(keys, ["é", "b"]);
  const broken = client.exportMemory();
  assert.equal((await broken.next()).value.entry.key, "a");
  expect(await rejection(broken.next()), "SIDECAR_UNREACHABLE", { status: 0 });
});

test("reports a response that does not come from a sidecar", async (t) => {
  const answers = [
    [(response) => response.writeHead(404).end("<h1>404</h1>"), { status: 404, retryable: false }],
    [(response) => response.writeHead(502).end("<h1>Bad gateway</h1>"), { status: 502, retryable: true }],
    [(response) => response.writeHead(200).end("<h1>Welcome</h1>"), { status: 200, retryable: false }],
    [(response) => json(response, 500, { error: "Internal" }), { status: 500, retryable: true }],
    [(response) => json(response, 400, null), { status: 400, retryable: false }],
    [(response) => json(response, 400, [{ code: 1, message: 2 }]), { status: 400, retryable: false }],
    // The client follows no redirect: it would send the token along.
    [(response) => response.writeHead(302, { location: "/elsewhere" }).end(), { status: 0 }],
    [(response) => response.destroy(), { status: 0, retryable: true }],
    [(response) => response.writeHead(200, { "content-length": 9 }).write("{", () => response.destroy()), {}],
  ];
  let next;
  let redirected = false;
  const url = await fakeSidecar(t, {
    answer(request, response) {
      redirected ||= request.url === "/elsewhere";
      next[0](response);
    },
  });
  const client = new RedflowClient({ url, token: TOKEN });
  for (next of answers) {
    expect(await rejection(client.flows()), "SIDECAR_UNREACHABLE", next[1]);
  }
  assert.equal(redirected, false);
});

test("reports a port on which nothing listens", async () => {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  const client = new RedflowClient({ url: `http://127.0.0.1:${port}`, token: TOKEN });
  const error = await rejection(client.health());
  expect(error, "SIDECAR_UNREACHABLE", { status: 0, retryable: true });
  assert.match(error.message, new RegExp(`^No sidecar answers at http://127.0.0.1:${port}: .*ECONNREFUSED`));
});

test("ends a request after its timeout and when the caller aborts", async (t) => {
  // The server sends no head, or a head without the end of its body.
  const stream = { "content-type": "text/event-stream" };
  for (const begin of [() => undefined, (response) => response.writeHead(200, stream).write("[")]) {
    const url = await fakeSidecar(t, { answer: (_, response) => begin(response) });
    const client = new RedflowClient({ url, token: TOKEN, timeoutMs: 50 });
    expect(await rejection(client.codes()), "REQUEST_TIMEOUT", { status: 0, retryable: true });
    const late = await rejection(new RedflowClient({ url }).codes({ timeoutMs: 50 }));
    expect(late, "REQUEST_TIMEOUT");

    const controller = new AbortController();
    const request = rejection(client.codes({ signal: controller.signal, timeoutMs: 0 }));
    controller.abort(new Error("changed my mind"));
    assert.equal((await request).message, "changed my mind");
    assert.equal((await rejection(client.codes({ signal: controller.signal }))).message, "changed my mind");
    const follow = client.followRun("run", { signal: AbortSignal.timeout(50) });
    assert.equal((await rejection(collect(follow))).name, "TimeoutError");
  }
});

test("waits without a timeout for a start with wait", async (t) => {
  const url = await fakeSidecar(t, {
    answer: (_, response) => void setTimeout(() => json(response, 200, { runs: [] }), 100),
  });
  const client = new RedflowClient({ url, timeoutMs: 20 });
  assert.deepEqual(await client.start({ payload: 1, wait: true }), { runs: [] });
  expect(await rejection(client.start({ payload: 1 })), "REQUEST_TIMEOUT");
  expect(await rejection(client.start({ payload: 1, wait: true }, { timeoutMs: 20 })), "REQUEST_TIMEOUT");
});

test("sends the token in one header and nowhere else", async (t) => {
  const seen = [];
  const url = await fakeSidecar(t, {
    answer(request, response) {
      seen.push([request.url, request.headers]);
      json(response, 200, {});
    },
  });
  const client = new RedflowClient({ url, token: TOKEN });
  await client.start({ payload: "x" }, { idempotencyKey: "key-1" });
  await new RedflowClient({ url }).flows();
  const [[path, { authorization, ...others }], [, anonymous]] = seen;
  assert.equal(authorization, `Bearer ${TOKEN}`);
  assert.ok(!path.includes(TOKEN) && !JSON.stringify(others).includes(TOKEN));
  assert.equal(others["idempotency-key"], "key-1");
  assert.equal(others["content-type"], "application/json");
  assert.equal("authorization" in anonymous, false);
  assert.equal("content-type" in anonymous, false, "a request without a body");
  const shown = inspect(client, { depth: 9, showHidden: true }) + JSON.stringify(client);
  assert.ok(!shown.includes(TOKEN), shown);
});

test("sends cookies only without a token, and only to the page's own origin", async () => {
  const seen = [];
  const fetch = async (url, init) => {
    seen.push([url, init.credentials, init.redirect]);
    return new Response("{}");
  };
  await new RedflowClient({ url: "https://example.test/redflow/?x#y", token: TOKEN, fetch }).health();
  await new RedflowClient({ url: "https://example.test", fetch }).health();
  assert.deepEqual(seen, [
    ["https://example.test/redflow/health", "omit", "error"],
    ["https://example.test/health", "same-origin", "error"],
  ]);
  // A page has a location.
  globalThis.location = { href: "http://127.0.0.1:1881/console/" };
  try {
    await new RedflowClient({ url: "/", fetch }).health();
    await new RedflowClient({ url: "..", fetch }).health();
  } finally {
    delete globalThis.location;
  }
  assert.deepEqual(seen.slice(2).map(([url]) => url), Array(2).fill("http://127.0.0.1:1881/health"));
});

test("signs out without following the redirect", async (t) => {
  const url = await fakeSidecar(t, {
    answer: (request, response) =>
      request.url === "/api/sign-out" ? response.writeHead(303, { location: "/" }).end() : response.destroy(),
  });
  assert.equal(await new RedflowClient({ url }).signOut(), undefined);
  // A browser reports only that the response is a redirect.
  const fetch = async () => ({ status: 0, type: "opaqueredirect", headers: new Headers(), body: null });
  assert.equal(await new RedflowClient({ url, fetch }).signOut(), undefined);
  expect(await rejection(new RedflowClient({ url, fetch }).flows()), "SIDECAR_UNREACHABLE");
});

test("sends no request for invalid options, ids or bodies", async () => {
  for (const url of ["", "127.0.0.1:1881", "ftp://127.0.0.1", "http://", `http://me:${TOKEN}@127.0.0.1`]) {
    assert.throws(() => new RedflowClient({ url }), (error) => (expect(error, "REQUEST_INVALID"), true), url);
  }
  for (const end of ["\n", " ", "é", "\u0000"]) {
    const options = { url: "http://127.0.0.1", token: TOKEN + end };
    assert.throws(() => new RedflowClient(options), (error) => (expect(error, "REQUEST_INVALID"), true));
  }
  assert.throws(() => new RedflowClient({ url: "http://127.0.0.1", token: "" }), { code: "REQUEST_INVALID" });

  const fetch = () => assert.fail("the client sent a request");
  const client = new RedflowClient({ url: "http://127.0.0.1", token: TOKEN, fetch });
  for (const id of ["", ".", "..", "\ud800"]) {
    for (const method of ["run", "flow", "code", "journal", "cancel", "resolve", "replay", "runEvents", "runSummary", "runIteration", "runTrace", "journalPage", "runReport", "runTree"]) {
      expect(await rejection(client[method](id)), "REQUEST_INVALID");
    }
    expect(await rejection(collect(client.followRun(id))), "REQUEST_INVALID");
  }
  expect(await rejection(client.start({}, { idempotencyKey: "a b" })), "REQUEST_INVALID");
  expect(await rejection(client.start({}, { idempotencyKey: "" })), "REQUEST_INVALID");
  expect(await rejection(client.start({ payload: 1n })), "BODY_INVALID");
  const cyclic = {};
  cyclic.self = cyclic;
  expect(await rejection(client.check(cyclic)), "BODY_INVALID");
});

test("encodes ids and filters in the address", async () => {
  const seen = [];
  const fetch = async (url, { method }) => {
    seen.push(`${method} ${url.slice("http://h".length)}`);
    return new Response('{"runs": []}');
  };
  const client = new RedflowClient({ url: "http://h", fetch });
  await client.run("a/../b?c#d");
  await client.runs({ status: ["running", "waiting"], limit: 5, before: "x&y=z" });
  await client.runs({ status: "failed" });
  await client.runs({ agent: "a&b", instance: "i/1", limit: 1 });
  await client.runs({ since: 1, until: 2, code: "TIMEOUT", prefix: "01", roots: true });
  await client.runTree("r", { after: "x&y", limit: 2 });
  await client.stats({ by: "agent", from: "2026-11-01" });
  await client.runEvents("r", { after: 0 });
  await client.cancel("é");
  assert.deepEqual(seen, [
    "GET /api/runs/a%2F..%2Fb%3Fc%23d",
    "GET /api/runs?status=running%2Cwaiting&limit=5&before=x%26y%3Dz",
    "GET /api/runs?status=failed",
    "GET /api/runs?agent=a%26b&instance=i%2F1&limit=1",
    "GET /api/runs?since=1&until=2&code=TIMEOUT&prefix=01&roots=true",
    "GET /api/runs/r/tree?after=x%26y&limit=2",
    "GET /api/stats?by=agent&from=2026-11-01",
    "GET /api/runs/r/events?after=0",
    "POST /api/runs/%C3%A9/cancel",
  ]);
});

test("cancels an endless response", async () => {
  let cancelled = false;
  const chunk = new Uint8Array(8 * 1024 * 1024).fill(0x20);
  const body = new ReadableStream({ pull: (stream) => stream.enqueue(chunk), cancel: () => void (cancelled = true) });
  const client = new RedflowClient({ url: "http://h", fetch: async () => new Response(body) });
  expect(await rejection(client.journal("run")), "BODY_TOO_LARGE", { retryable: false });
  assert.ok(cancelled);
});

test("allRuns ends when the next page is the same page", async () => {
  let requests = 0;
  const fetch = async () => (requests++, new Response('{"runs": [], "next": "same"}'));
  assert.deepEqual(await collect(new RedflowClient({ url: "http://h", fetch }).allRuns()), []);
  assert.equal(requests, 2);
});

/** A fake sidecar: each stream sends its part of `script`, then ends normally, or is cut at `null`. */
async function serveStreams(t, script, status = "running") {
  const lastEventIds = [];
  const url = await fakeSidecar(t, {
    answer(request, response) {
      if (request.url === "/api/runs/run") {
        json(response, 200, { summary: { status }, events: [], calls: [], result: null });
        return;
      }
      lastEventIds.push(request.headers["last-event-id"]);
      const parts = script[Math.min(lastEventIds.length, script.length) - 1];
      if (typeof parts === "function") {
        parts(response);
        return;
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const part of parts) {
        if (part === null) {
          response.write(":\n", () => response.destroy());
          return;
        }
        response.write(typeof part === "string" ? part : `id: ${part.seq}\ndata: ${JSON.stringify(part)}\n\n`);
      }
      response.end();
    },
  });
  return { client: new RedflowClient({ url, token: TOKEN }), lastEventIds };
}

const seqs = (events) => events.map(({ seq }) => seq);

test("followRun delivers each event once over many connections", async (t) => {
  const [one, two, three, end] = [runEvent(1), runEvent(2), runEvent(3), runEvent(4, "run_finished")];
  const { client, lastEventIds } = await serveStreams(t, [
    [one, null],
    (response) => json(response, 503, { code: "STOPPING", message: "Soon." }),
    (response) => response.destroy(),
    // A repeated event, half an event, then an event of an unknown type.
    [one, two, 'id: 3\ndata: {"seq": 3, "ev\n', null],
    [two, "event: news\ndata: {}\n\n", three],
    [end, "data: never read\n\n"],
  ]);
  const events = await collect(client.followRun("run", { timing: QUICK }));
  assert.deepEqual(seqs(events), [1, 2, 3, 4]);
  assert.deepEqual(lastEventIds, [undefined, "1", "1", "1", "2", "3"]);
  assert.deepEqual(seqs(await collect(client.followRun("run", { after: 3, timing: QUICK }))), [4]);
});

test("followRun ends with the status of a run that has no last event", async (t) => {
  for (const status of ["failed", "damaged"]) {
    const { client, lastEventIds } = await serveStreams(t, [[runEvent(1)], [runEvent(2)], []], status);
    assert.deepEqual(seqs(await collect(client.followRun("run", { timing: QUICK }))), [1, 2]);
    assert.deepEqual(lastEventIds, [undefined, "1"]);
  }
});

test("followRun reconnects when a stream is idle", async (t) => {
  const silent = (response) => response.writeHead(200, { "content-type": "text/event-stream" }).write(": here\n\n");
  const { client } = await serveStreams(t, [silent, silent, [runEvent(1, "run_finished")]]);
  const timing = { ...QUICK, idleMs: 30 };
  assert.deepEqual(seqs(await collect(client.followRun("run", { timing }))), [1]);
});

test("followRun throws for an error response and an invalid stream", async (t) => {
  const large = (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const more = () => response.write("x".repeat(1024 * 1024), () => response.destroyed || more());
    more();
  };
  for (const [first, code] of [
    [(response) => json(response, 404, { code: "RUN_UNKNOWN", message: "None." }), "RUN_UNKNOWN"],
    [(response) => json(response, 401, { code: "UNAUTHORIZED", message: "No." }), "UNAUTHORIZED"],
    [(response) => json(response, 200, []), "SIDECAR_UNREACHABLE"],
    [["data: no JSON\n\n"], "MESSAGE_INVALID"],
    [["data: {}\n\n"], "MESSAGE_INVALID"],
    [["data: null\n\n"], "MESSAGE_INVALID"],
    [['data: {"code": "DATA_CORRUPT", "message": "Broken."}\n\n'], "DATA_CORRUPT"],
    [large, "MESSAGE_TOO_LARGE"],
  ]) {
    const { client, lastEventIds } = await serveStreams(t, [first]);
    expect(await rejection(collect(client.followRun("run", { timing: QUICK }))), code, { retryable: false });
    assert.equal(lastEventIds.length, 1);
  }
});

test("closes the stream when the reader stops", async (t) => {
  let closed;
  const streamClosed = new Promise((resolve) => (closed = resolve));
  const { client } = await serveStreams(t, [
    (response) => {
      response.on("close", closed);
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: ${JSON.stringify(runEvent(1))}\n\n`);
    },
  ]);
  assert.deepEqual(seqs(await collect(client.followRun("run"), () => true)), [1]);
  await streamClosed;
});
