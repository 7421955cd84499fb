// The editor's routes in the Admin API: permissions, requests to the sidecar, responses, and hidden runs.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { agentErrors } from "../dist/agent-errors.js";
import { nodeRed } from "./kit/node-red.mjs";
import { fakeSidecar } from "./kit/sidecar.mjs";
import { until } from "./kit/until.mjs";

const RED = nodeRed();
const load = createRequire(import.meta.url);
for (const type of ["redflow-runtime", "agent-core"]) {
  load(`../dist/nodes/${type}.js`)(RED);
}
test.afterEach(() => RED.deploy());

const MASK = "__PWRD__";
const OURS = "me:rt";
const runtime = (url, more = {}) => ({ id: "rt", type: "redflow-runtime", mode: "remote", url, name: "Home", ...more });
const summary = (runId, instance = OURS) => ({ runId, agent: { instance, nodeId: "ag" }, status: "running" });
const event = (seq, instance = OURS) => ({ runId: "r", seq, agent: { instance, nodeId: "ag" } });
const code = ({ status, body }) => [status, body.code];

/** Deploys a runtime and waits until it is connected to a fake sidecar, which answers with `http`. */
async function connected(t, http, ...nodes) {
  const { url, requests } = await fakeSidecar(t, undefined, (request) => http(request) ?? [404, { code: "NONE", message: "none" }]);
  RED.deploy(runtime(url), ...nodes);
  await until("never connected", async () => (await state()).is === "connected");
  return { url, requests, requested: () => requests.map(({ method, url }) => `${method} ${url}`) };
}

const state = async () => (await RED.request("GET", "/redflow/runtimes")).body.runtimes[0].state;

test("reading and writing need different permissions", () => {
  const writes = RED.routes.filter(({ permission }) => permission === "redflow.write");
  const expected = ["cancel", "resolve"].map((verb) => `/redflow/runtimes/:id/runs/:run/${verb}`);
  assert.deepEqual(writes.map(({ path }) => path), expected);
  const deploys = RED.routes.filter(({ permission }) => permission === "flows.write");
  assert.deepEqual(deploys.map(({ path }) => path), ["test", "list"].map((verb) => `/redflow/runtimes/:id/models/${verb}`));
  const reads = RED.routes.filter(({ permission }) => permission === "redflow.read");
  assert.deepEqual([reads.length, RED.routes.length], [14, 18]);
});

test("lists the runtimes with their state and without secrets of their address", async (t) => {
  const { url } = await connected(t, () => undefined);
  const secret = url.replace("//", "//user:p@ss/word@");
  const { status, headers, body } = await RED.request("GET", "/redflow/runtimes");
  const [{ module: version }, own] = [body, body.runtimes];
  assert.deepEqual([status, headers["cache-control"], typeof version], [200, "no-store", "string"]);
  const expected = { id: "rt", name: "Home", mode: "remote", address: url, state: { is: "connected", version: "9" } };
  assert.deepEqual(own, [{ ...expected, waiting: 0 }]);
  for (const bad of [secret, `${url}/?key=s3cret#s3cret`, "user:s3cret@nowhere", "nowhere?key=a@s3cret"]) {
    RED.deploy(runtime(bad));
    const [{ address }] = (await RED.request("GET", "/redflow/runtimes")).body.runtimes;
    assert.doesNotMatch(address, /s3cret|ss.word|user/, bad);
  }
  RED.deploy();
  assert.deepEqual((await RED.request("GET", "/redflow/runtimes")).body.runtimes, []);
});

test("requests only runs of our instance, with valid filters", async (t) => {
  const { requested } = await connected(t, ({ url }) => url.startsWith("/api/runs?") && [200, { runs: [summary("r")] }]);
  const query = "agent=a%26instance%3Dx&status=running,waiting&limit=20&before=r0&instance=other&_=17";
  const { status, body } = await RED.request("GET", `/redflow/runtimes/rt/runs?${query}`);
  assert.deepEqual([status, body.runs.length], [200, 1]);
  const expected = "agent=a%26instance%3Dx&status=running%2Cwaiting&before=r0&limit=20&instance=me%3Art";
  assert.deepEqual(requested(), [`GET /api/runs?${expected}`]);
  for (const bad of ["limit=0", "limit=201", "limit=1e2", "limit=x", "status=a%20b", "before=../x", `agent=${"a".repeat(501)}`]) {
    assert.deepEqual(code(await RED.request("GET", `/redflow/runtimes/rt/runs?${bad}`)), [400, "REQUEST_INVALID"], bad);
  }
  assert.equal(requested().length, 1);
});

test("hides a run of another Node-RED on every route", async (t) => {
  const { requested } = await connected(t, ({ url }) => {
    if (url.startsWith("/api/runs/theirs/events")) {
      return [200, url.endsWith("after=0") ? [event(1, "other:rt")] : []];
    }
    return [200, { summary: summary("theirs", "other:rt"), events: [] }];
  });
  const at = "/redflow/runtimes/rt/runs/theirs";
  const responses = [
    await RED.request("GET", at),
    await RED.request("GET", `${at}/events`),
    await RED.request("GET", `${at}/events?after=99`),
    await RED.request("GET", `${at}/text`),
    await RED.request("GET", `${at}/iterations/1`),
    await RED.request("POST", `${at}/cancel`, { body: {} }),
    await RED.request("POST", `${at}/resolve`, { body: { callId: "c", result: {} } }),
  ];
  assert.deepEqual(responses.map(code), responses.map(() => [404, "RUN_UNKNOWN"]));
  assert.deepEqual(responses.filter(({ body }) => "summary" in body), []);
  assert.ok(!requested().some((one) => one.startsWith("POST")), requested().join());
});

test("forwards actions on our runs and requests the owner once", async (t) => {
  const { requested, requests } = await connected(t, ({ method, url }) => {
    if (method === "POST") {
      return [200, summary("r")];
    }
    if (url.includes("/iterations")) {
      return [200, { iteration: 2, prompt: { text: "?" }, calls: [] }];
    }
    return url.includes("/events") ? [200, [event(4)]] : [200, { summary: summary("r"), calls: [] }];
  });
  const at = "/redflow/runtimes/rt/runs/r";
  const resolve = { callId: "c", result: { success: true, output: { receipt: 17 } } };
  assert.equal((await RED.request("POST", `${at}/cancel`, { body: { reason: "by hand" } })).body.runId, "r");
  assert.equal((await RED.request("POST", `${at}/resolve`, { body: resolve })).status, 200);
  assert.deepEqual((await RED.request("GET", `${at}/events?after=3`)).body, [event(4)]);
  assert.deepEqual((await RED.request("GET", `${at}/text`)).body, {}, "no text is known yet");
  assert.equal((await RED.request("GET", `${at}/iterations/2`)).body.prompt.text, "?");
  const reads = ["GET /api/runs/r/events?after=3", "GET /api/runs/r/iterations/2"];
  const expected = ["GET /api/runs/r", "POST /api/runs/r/cancel", "POST /api/runs/r/resolve", ...reads];
  assert.deepEqual(requested(), expected);
  assert.deepEqual([requests[1].body, requests[2].body], [{ reason: "by hand" }, resolve]);
  // Another instance id is another Node-RED: its runs are not known.
  RED.deploy(runtime(requests[0].headers.host.replace(/^/, "http://"), { instance: "renamed" }));
  await until("never connected", async () => (await state()).is === "connected");
  assert.deepEqual(code(await RED.request("POST", `${at}/cancel`, { body: {} })), [404, "RUN_UNKNOWN"]);
});

test("refuses ids with paths, invalid bodies and forms without a request to the sidecar", async (t) => {
  const { requested } = await connected(t, () => [200, {}]);
  const rows = [
    ["GET", "/redflow/runtimes/rt/runs/..", [404, "RUN_UNKNOWN"]],
    ["GET", "/redflow/runtimes/rt/runs/..%2F..%2Fmetrics", [404, "RUN_UNKNOWN"]],
    ["GET", "/redflow/runtimes/rt/runs/a%3Fb/events", [404, "RUN_UNKNOWN"]],
    ["GET", `/redflow/runtimes/rt/runs/${"a".repeat(129)}`, [404, "RUN_UNKNOWN"]],
    ["GET", "/redflow/runtimes/rt/runs/r/events?after=-1", [400, "REQUEST_INVALID"]],
    ["GET", "/redflow/runtimes/rt/runs/r/events?after=99999999999", [400, "REQUEST_INVALID"]],
    ["GET", "/redflow/runtimes/rt/runs/r/iterations/0", [400, "REQUEST_INVALID"]],
    ["GET", "/redflow/runtimes/rt/codes/..", [404, "NOT_FOUND"]],
    ["GET", "/redflow/runtimes/rt/codes/model_missing", [404, "NOT_FOUND"]],
    ["GET", "/redflow/runtimes/__proto__/runs", [404, "NOT_FOUND"]],
    ["POST", "/redflow/runtimes/rt/runs/r/cancel", [415, "CONTENT_TYPE_REFUSED"], { body: {}, type: "text/plain" }],
    ["POST", "/redflow/runtimes/rt/check", [415, "CONTENT_TYPE_REFUSED"], { body: {}, type: "" }],
    ["POST", "/redflow/runtimes/rt/runs/r/cancel", [400, "BODY_INVALID"], { body: [] }],
    ...[undefined, null, "x", {}, { flows: {} }, { flows: [1] }, { flows: [{ id: "a" }] }, { flows: [[]] }].map((body) => [
      "POST",
      "/redflow/runtimes/rt/check",
      [400, "BODY_INVALID"],
      { body },
    ]),
  ];
  for (const [method, url, expected, more] of rows) {
    assert.deepEqual(code(await RED.request(method, url, more)), expected, `${url} ${JSON.stringify(more)}`);
  }
  assert.deepEqual(requested(), []);
});

test("tests a model as its dialog is, and names the node with the stored key", async (t) => {
  const found = { ok: true, type: "openai-model" };
  const agent = { id: "ag", type: "agent-core", model: "m", wires: [[], [], [], [], []] };
  const models = ["m", "unused"].map((id) => ({ id, type: "openai-model", wires: [[]] }));
  const { requests, requested } = await connected(t, () => [200, found], agent, ...models);
  const config = { model: "gpt", keyNode: "k", wires: [[]], _def: "x", credentials: { apiKey: "s3cret" } };
  const ask = (verb, body) => RED.request("POST", `/redflow/runtimes/rt/models/${verb}`, { body });
  assert.deepEqual((await ask("test", { type: "openai-model", config, credentials: { apiKey: "typed" }, other: 1 })).body, found);
  assert.equal((await ask("list", { type: "openai-model", config, node: "m" })).status, 200);
  assert.deepEqual(requested(), ["POST /api/models/test", "POST /api/models/list"]);
  const sent = { type: "openai-model", config: { model: "gpt", keyNode: "k", wires: [[]] } };
  assert.deepEqual(requests[0].body, { ...sent, credentials: { apiKey: "typed" } });
  assert.deepEqual(requests[1].body, { ...sent, credentials: {}, node: "m", instance: OURS });
  for (const body of [{}, { type: 1, config }, { type: "x", config: [] }, { type: "x", config, node: 1 }, { type: "x", config, credentials: { a: 1 } }]) {
    assert.deepEqual(code(await ask("test", body)), [400, "BODY_INVALID"], JSON.stringify(body));
  }
  // The sidecar has no keys of what its agents do not use.
  for (const node of ["unused", "gone", "ag"]) {
    assert.deepEqual(code(await ask("test", { type: "openai-model", config, node })), [409, "KEY_NOT_SENT"], node);
  }
  assert.equal(requested().length, 2);
});

test("a check sends no code, setting or secret of other nodes", async (t) => {
  const alone = { code: "NEEDS_NODE_RED", severity: "info" };
  const wrong = { code: "MODEL_MISSING", severity: "error" };
  const report = { ok: false, diagnostics: [wrong, alone], omitted: { NEEDS_NODE_RED: 3 } };
  const stored = { m: { apiKey: "s3cret", other: "s3cret" }, m2: { apiKey: "s3cret", none: "" }, f: { a: "s3cret" } };
  t.mock.method(RED.nodes, "getCredentials", (id) => stored[id]);
  const { requests } = await connected(t, () => [200, report]);
  const secret = { name: "KEY", type: "cred", value: "s3cret" };
  const flows = [
    { id: "t", type: "tab", label: "T", env: [secret, { name: "A", type: "str", value: "b" }] },
    { id: "f", type: "function", func: "s3cret", libs: ["s3cret"], wires: [["ag"]], credentials: { a: "s3cret" } },
    { id: "m", type: "openai-model", model: "gpt", credentials: { apiKey: "", more: "s3cret" }, _def: "s3cret", wires: [[]] },
    { id: "m2", type: "openai-model" },
    { id: "ag", type: "agent-core", maxIterations: 5, wires: [["m"]] },
  ];
  const { status, body } = await RED.request("POST", "/redflow/runtimes/rt/check", { body: { flows, profile: "redflow" } });
  assert.deepEqual([status, body], [200, { ok: false, diagnostics: [wrong] }]);
  assert.deepEqual(requests[0].body, {
    flows: [
      { id: "t", type: "tab", label: "T", env: [{ ...secret, value: "" }, { name: "A", type: "str", value: "b" }] },
      { id: "f", type: "function", wires: [["ag"]] },
      // Only whether a credential is set: in the editor, or else in Node-RED.
      { id: "m", type: "openai-model", model: "gpt", wires: [[]], credentials: { apiKey: "", other: MASK, more: MASK } },
      { id: "m2", type: "openai-model", credentials: { apiKey: MASK, none: "" } },
      { id: "ag", type: "agent-core", maxIterations: 5, wires: [["m"]] },
    ],
  });
  const deep = JSON.parse(`${"[".repeat(200)}${"]".repeat(200)}`);
  const refused = await RED.request("POST", "/redflow/runtimes/rt/check", { body: { flows: [{ ...flows[4], deep }] } });
  assert.deepEqual(code(refused), [422, "FLOW_TOO_DEEP"]);
});

test("requests a page about a code once and serves it while the sidecar is offline", async (t) => {
  const page = { code: "MODEL_MISSING", page: "## MODEL_MISSING" };
  const { requested } = await connected(t, () => [200, page]);
  const at = "/redflow/runtimes/rt/codes/MODEL_MISSING";
  for (let count = 0; count < 3; count += 1) {
    assert.deepEqual((await RED.request("GET", at)).body, page);
  }
  assert.deepEqual(requested(), ["GET /api/codes/MODEL_MISSING"]);
  RED.deploy(runtime("http://127.0.0.1:9"));
  assert.deepEqual((await RED.request("GET", at)).body, page);
  assert.deepEqual(code(await RED.request("GET", "/redflow/runtimes/rt/codes/OTHER")), [503, "RUNTIME_UNREACHABLE"]);
  assert.deepEqual(code(await RED.request("GET", "/redflow/runtimes/rt/runs")), [503, "RUNTIME_UNREACHABLE"]);
  assert.deepEqual((await RED.request("GET", "/redflow/runtimes/rt/log")).body, { lines: [] });
});

test("cuts long texts of another server at the address", async (t) => {
  const long = JSON.stringify({ code: "FORBIDDEN", message: "x".repeat(50_000) });
  const server = createServer((_request, response) => response.writeHead(403).end(long));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  RED.deploy(runtime(`http://127.0.0.1:${server.address().port}`));
  await until("never refused", async () => (await state()).is === "refused");
  assert.equal((await state()).message.length, 2_000);
});

test("keeps errors without a run until their agent is removed", async () => {
  const agent = { id: "ag", type: "agent-core", wires: [[], [], [], [], []] };
  RED.deploy(agent);
  RED.send("ag", { payload: 1 });
  RED.deploy(runtime("http://127.0.0.1:9", { maxQueued: 1 }), agent);
  RED.send("ag", { payload: 1 });
  RED.send("ag", { payload: 2 });
  const codes = async () => (await RED.request("GET", "/redflow/agents/ag/errors")).body.errors.map(({ code }) => code);
  assert.deepEqual(await codes(), ["QUEUE_FULL", "CONFIG_INVALID"]);
  const [{ waiting }] = (await RED.request("GET", "/redflow/runtimes")).body.runtimes;
  assert.equal(waiting, 1);
  RED.deploy(runtime("http://127.0.0.1:9"));
  assert.deepEqual(await codes(), []);
  agentErrors.forget("ag");
});

test("notifies editors of changes together and without their content", async (t) => {
  /** The notices so far, without the statuses of agents. */
  const notices = () => RED.published.splice(0).filter(([topic]) => topic === "redflow/runtimes");
  notices();
  RED.deploy(runtime("http://127.0.0.1:9"));
  RED.deploy();
  await until("no notice", () => notices().length > 0);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const agent = { id: "ag", type: "agent-core", wires: [[], [], [], [], []] };
  RED.deploy(runtime("http://127.0.0.1:9"), agent);
  t.mock.timers.tick(99);
  assert.deepEqual(notices(), []);
  t.mock.timers.tick(1);
  const once = [["redflow/runtimes", {}, false]];
  assert.deepEqual(notices(), once);
  // Also when the number of waiting messages changes.
  RED.send("ag", { payload: 1 });
  RED.send("ag", { payload: 2 });
  t.mock.timers.tick(100);
  assert.deepEqual(notices(), once);
  t.mock.timers.tick(100);
  assert.deepEqual(notices(), []);
  RED.deploy();
  t.mock.timers.tick(100);
  assert.deepEqual(notices(), once);
});

test("an endpoint that throws sends a response without the reason", async () => {
  const { nodes } = RED;
  const { getNode } = nodes;
  RED.deploy(runtime("http://127.0.0.1:9"));
  nodes.getNode = () => assert.fail("s3cret");
  const response = await RED.request("GET", "/redflow/runtimes");
  nodes.getNode = getNode;
  assert.deepEqual(code(response), [500, "INTERNAL"]);
  assert.doesNotMatch(response.body.message, /s3cret/);
  assert.ok(RED.logged.some((line) => line.includes("a request of the editor failed")));
});

test("lists the tools of the registry with short texts, and says if the sidecar has none", async (t) => {
  const entry = { id: "weather.current", title: "Weather", description: "x".repeat(600), origin: "manifest", state: "ready" };
  const answers = [
    [200, { tools: [{ ...entry, inputSchema: { type: "object" }, provider: "manifest" }, 5, { id: 7 }] }],
    [200, [entry]],
    [403, { code: "FORBIDDEN", message: "no" }],
    [404, { code: "NOT_FOUND", message: "no such route" }],
  ];
  const { requested } = await connected(t, ({ url }) => (url === "/api/tools" ? answers.shift() : undefined));
  const ask = () => RED.request("GET", "/redflow/runtimes/rt/tools");
  const { body } = await ask();
  const none = { id: "", title: "", description: "", origin: "", state: "" };
  assert.deepEqual(body, { tools: [{ ...entry, description: `${"x".repeat(499)}…` }, none] });
  assert.deepEqual(code(await ask()), [502, "PROTOCOL_MISMATCH"]);
  assert.deepEqual(code(await ask()), [403, "FORBIDDEN"]);
  assert.equal((await ask()).status, 404);
  assert.deepEqual(requested(), Array(4).fill("GET /api/tools"));
});

test("lists MCP servers and the tools of one with short texts, and asks for no other path", async (t) => {
  const server = { name: "files", state: "ready" };
  const tightened = { read: "at_most_once", idempotent: "idempotent" };
  const tool = { name: "read_file", description: "x".repeat(600), effect: "read", tightened, state: "ready" };
  const { tightened: _left, ...older } = tool;
  const answers = {
    "/api/mcp": [[200, { servers: [{ ...server, target: "npx s3cret", reason: "r" }, 5] }], [200, { servers: {} }]],
    "/api/mcp/docs%40mcp.example.org%3A8443%2Fv1%2Fmcp": [[200, { summary: server, tools: [older], resources: [], prompts: [] }]],
    "/api/mcp/files": [[200, { summary: server, tools: [{ ...tool, inputSchema: {} }, null], resources: [], prompts: [] }], [200, {}], [404, { code: "NOT_FOUND", message: "none" }]],
  };
  const { requested } = await connected(t, ({ url }) => answers[url]?.shift());
  const ask = (path) => RED.request("GET", `/redflow/runtimes/rt/mcp${path}`);
  assert.deepEqual((await ask("")).body, { servers: [{ ...server, reason: "r" }] });
  assert.deepEqual(code(await ask("")), [502, "PROTOCOL_MISMATCH"]);
  assert.deepEqual((await ask("/files")).body, { ...server, reason: "", tools: [{ ...tool, description: `${"x".repeat(499)}…` }] });
  assert.deepEqual(code(await ask("/files")), [502, "PROTOCOL_MISMATCH"]);
  assert.deepEqual(code(await ask("/files")), [404, "NOT_FOUND"]);
  const ofNode = await ask("/docs%40mcp.example.org%3A8443%2Fv1%2Fmcp");
  assert.deepEqual(ofNode.body.tools[0].tightened, { read: "read", idempotent: "idempotent" });
  for (const name of ["..", "a.b", "a%2Fb", "x".repeat(41), "a@", "@b", `a@${"x".repeat(401)}`, "a@b%0Ac"]) {
    assert.deepEqual(code(await ask(`/${name}`)), [404, "NOT_FOUND"], name);
  }
  assert.deepEqual(requested(), [...Array(2).fill("GET /api/mcp"), ...Array(3).fill("GET /api/mcp/files"), "GET /api/mcp/docs%40mcp.example.org%3A8443%2Fv1%2Fmcp"]);
});

test("lists the operations of installed nodes without a sidecar", async () => {
  const { get } = RED.settings;
  const file = fileURLToPath(new URL("../../examples/node-red-contrib-ledger/ledger.js", import.meta.url));
  RED.settings.get = (key) => (key === "nodes" ? { "node-red-contrib-ledger": { nodes: { ledger: { types: ["ledger"], file } } } } : get(key));
  const { status, body } = await RED.request("GET", "/redflow/operations");
  RED.settings.get = get;
  const ledger = [{ name: "createRecord", effect: "at_most_once" }, { name: "listRecords", effect: "read" }];
  assert.deepEqual([status, body], [200, { operations: { ledger } }]);
  assert.deepEqual((await RED.request("GET", "/redflow/operations")).body, { operations: {} });
});
