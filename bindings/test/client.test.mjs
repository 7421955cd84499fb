// The client against the real sidecar, also over a network that loses connections.

import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";

import { CATALOGUE, CURSOR_START, EDGE_TABLE, RedflowClient, RedflowError } from "@redflow/bindings";
import { collect, rejection, until } from "./kit/collect.mjs";
import { network } from "./kit/network.mjs";
import { TOKEN, flow, folder, serve, sums } from "./kit/sidecar.mjs";
import { SOCKETS } from "./kit/sockets.mjs";

const LIMIT = { timeout: 120_000 };
const QUICK = { backoffMs: 5, backoffMaxMs: 50 };
const UNKNOWN_RUN = "0".repeat(8) + "-0000-7000-8000-" + "0".repeat(12);
const [{ WebSocket }] = SOCKETS;

/** Asserts a RedflowError with this code that does not contain the token. */
function expect(error, code, details = {}) {
  assert.ok(error instanceof RedflowError, inspect(error));
  assert.equal(error.code, code, error.message);
  for (const [key, value] of Object.entries(details)) {
    assert.deepEqual(error[key], value, key);
  }
  assert.ok(!(inspect(error, { depth: 9, showHidden: true }) + error.stack).includes(TOKEN));
}

const cursors = (items) => items.filter(({ type }) => type === "event").map(({ cursor }) => cursor);
const seqs = (events) => events.map(({ seq }) => seq);
const range = (from, to) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const isEnd = ({ event }) => event?.kind === "run" && event.event.event.type === "run_finished";

/** All stored events. */
const readStored = (client, options = {}) =>
  collect(client.events({ WebSocket, after: CURSOR_START, ...options }), ({ type }) => type === "caught_up");

/** Repeats the request until it succeeds. */
async function retry(request) {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof RedflowError && error.retryable)) {
        throw error;
      }
    }
  }
}

/** Starts `count` runs, one after the other, and waits for each. */
async function startAll(client, count, prefix) {
  const ids = [];
  for (const number of range(1, count)) {
    const start = () => client.start({ payload: number, wait: true }, { idempotencyKey: `${prefix}-${number}` });
    ids.push((await retry(start)).runs[0].runId);
  }
  return ids;
}

test("every route has a method that works", LIMIT, async (t) => {
  const requested = new Set();
  const { url, client: plain } = await serve(t, { flow: sums(1) });
  const fetch = (address, init) => {
    requested.add(`${init.method} ${new URL(address).pathname}`);
    return globalThis.fetch(address, init);
  };
  const client = new RedflowClient({ url, token: TOKEN, fetch });

  const health = await client.health();
  assert.deepEqual([health.live, health.ready], [true, true]);

  const { flows, revision } = await client.flows();
  assert.deepEqual(flows.map(({ id, label }) => [id, label]), [["tab", "Test"]]);
  assert.deepEqual(flows[0].agents.map(({ node, ready }) => [node.id, ready]), [["agent", true]]);
  assert.deepEqual((await client.flow("tab")).flows[0].id, "tab");
  assert.deepEqual((await client.flowGraph({ tab: "tab" })).tabs.map(({ id, isDrawn }) => [id, isDrawn]), [["tab", true]]);
  assert.equal((await client.checkAndDraw(sums(2), { tab: "tab" })).graph.nodes.length, 5);
  const deployment = await client.deployment();
  assert.deepEqual([deployment.revision, deployment.flows.length], [revision, 6]);
  assert.equal((await client.check(sums(2))).ok, true);
  assert.equal((await client.check(sums(2), "redflow")).ok, true);
  const deployed = await client.deploy({ flows: sums(2), revision });
  assert.notEqual(deployed.revision, revision);
  assert.equal((await client.deployment()).revision, deployed.revision);

  const { models } = await client.models();
  assert.deepEqual(models.map(({ node, agents }) => [node.type, agents.map(({ id }) => id)]), [["scripted-model", ["agent"]]]);
  assert.equal((await client.testModel({ type: "scripted-model", node: models[0].node.id })).type, "scripted-model");
  const model = { type: "scripted-model", config: { replies: ["hello"] } };
  const tested = await client.testModel(model);
  assert.deepEqual([tested.ok, tested.error.code, tested.answer], [false, "INVALID_JSON", "hello"]);
  expect(await rejection(client.listModels(model)), "CONFIG_INVALID", { status: 422 });

  const { runs } = await client.start({ node: "agent", payload: "6 * 7?", wait: true });
  assert.deepEqual(runs.map(({ status, result }) => [status, result.payload]), [["completed", "42"]]);
  const [{ runId }] = runs;
  assert.deepEqual((await client.runs({ limit: 1 })).runs.map((run) => run.runId), [runId]);
  const { agent } = (await client.runs({ limit: 1 })).runs[0];
  const idsOf = async (filter) => (await client.runs(filter)).runs.map((run) => run.runId);
  assert.deepEqual(await idsOf({ agent: agent.nodeId, instance: agent.instance, limit: 1 }), [runId]);
  assert.deepEqual(await idsOf({ agent: "unknown" }), []);
  assert.deepEqual(await idsOf({ instance: "unknown" }), []);
  assert.deepEqual(await idsOf({ prefix: runId, roots: true, since: 0 }), [runId]);
  assert.deepEqual(await client.runTree(runId), { runs: [] });
  const stats = await client.stats({ by: "agent" });
  assert.deepEqual(stats.keys.map(({ key }) => key), [agent.nodeId]);
  assert.ok(stats.rows[0].runs >= 1);
  const detail = await client.run(runId);
  assert.equal(detail.summary.status, "completed");
  const { iterations } = detail.summary.tally;
  const last = await client.runIteration(runId, iterations);
  assert.deepEqual([last.iteration, typeof last.prompt.text, typeof last.output.text], [iterations, "string", "string"]);
  assert.deepEqual(await client.runIteration(runId, iterations, { full: true }), last);
  assert.deepEqual(await client.runSummary(runId), detail.summary);
  assert.deepEqual(await client.runEvents(runId, { before: 3, limit: 1 }), [detail.events[1]]);
  assert.ok((await client.runReport(runId)).startsWith("# Report of a run"));
  const trace = await client.runTrace(runId);
  assert.deepEqual([trace.runId, trace.ended, trace.steps.at(-1).step.type], [runId, true, "end"]);
  assert.deepEqual((await client.runTrace(runId, { after: 1 })).steps, trace.steps.slice(1));
  const page = await client.journalPage(runId, { from: 2, lines: 1 });
  assert.deepEqual([page.lines.length, page.from, page.next], [1, 2, 3]);
  const events = await client.runEvents(runId);
  assert.deepEqual(events, detail.events);
  assert.equal(events.at(-1).event.type, "run_finished");
  assert.deepEqual(seqs(await client.runEvents(runId, { after: 2 })), seqs(events).slice(2));
  assert.deepEqual(await collect(client.followRun(runId)), events);
  assert.deepEqual(await collect(client.followRun(runId, { after: 2 })), events.slice(2));
  const journal = await client.journal(runId);
  assert.ok(journal.endsWith("\n") && JSON.parse(journal.split("\n")[0]).record.kind === "header");
  assert.equal((await client.replay(runId)).equal, true);
  expect(await rejection(client.cancel(runId, { reason: "too late" })), "RUN_OVER", { status: 409 });
  const result = { success: true, output: 1 };
  const error = await rejection(client.resolve(runId, { callId: "call-1", result }));
  assert.ok(["RUN_OVER", "RUN_NOT_WAITING"].includes(error.code), error.code);

  const { tools } = await client.tools();
  assert.ok(tools.length > 0);
  assert.deepEqual(await client.tool(tools[0].id), tools[0]);
  const { calls } = await client.toolCalls(tools[0].id, { limit: 5 });
  assert.ok(calls.every(({ id }) => id === tools[0].id));
  expect(await rejection(client.callTool("no.such", {})), "NOT_FOUND", { status: 404 });
  expect(await rejection(client.removeTool("no.such")), "NOT_FOUND", { status: 404 });
  const incomplete = await rejection(client.registerTool({ id: "weather" }));
  expect(incomplete, "TOOL_REFUSED", { status: 422 });
  assert.ok(incomplete.report.diagnostics.every(({ code }) => code === "MANIFEST_INVALID"));
  assert.equal((await client.agentState("agent")).agent.ready, true);

  const bytes = new TextEncoder().encode("# Pump\n\nPress the red button.\n");
  const estimated = await client.addDocument("manuals", "pump.md", bytes, { dryRun: true, embeddings: "hash" });
  assert.deepEqual([estimated.status, estimated.passages], ["estimated", 1]);
  const tags = ["pumps", "line 1"];
  assert.equal((await client.addDocument("manuals", "pump.md", bytes, { tags })).status, "added");
  assert.equal((await client.addDocument("manuals", "pump.md", new Blob([bytes]), { tags })).status, "unchanged");
  assert.deepEqual((await client.knowledgeBases()).knowledgeBases.map(({ name, embedder }) => [name, embedder]), [["manuals", "hash"]]);
  const { documents } = await client.documents("manuals", { limit: 1 });
  assert.deepEqual(documents.map((document) => [document.name, document.title, document.tags.toSorted()]), [["pump.md", "Pump", tags.toSorted()]]);
  assert.deepEqual(await client.documents("manuals", { after: "pump.md" }), { documents: [] });
  const { passages } = await client.passages("manuals", "pump.md", { limit: 1 });
  assert.deepEqual(passages.map(({ metadata }) => metadata.chunk), [1]);
  const { results } = await client.searchKnowledge("manuals", { text: "red button", tags: ["pumps"] });
  assert.deepEqual(results.map(({ content }) => content), passages.map(({ content }) => content));
  assert.equal((await client.reindexKnowledge("manuals", { embeddings: "hash" })).passages, 1);
  await client.removeDocument("manuals", "pump.md");
  expect(await rejection(client.removeDocument("manuals", "pump.md")), "DOCUMENT_UNKNOWN", { status: 404 });
  await client.removeKnowledgeBase("manuals");
  expect(await rejection(client.documents("manuals")), "COLLECTION_UNKNOWN", { status: 404 });

  assert.deepEqual(await client.memories(), { memories: [] });
  const unknown = [
    () => client.memoryEntries("tab1/n7", { user: "ada", state: "live", limit: 1 }),
    () => client.memoryEntry("tab1/n7", "tea"),
    () => client.searchMemory("tab1/n7", { text: "tea" }),
    () => client.putMemoryEntry("tab1/n7", "tea", { text: "Ada drinks tea." }, { version: 1 }),
    () => client.removeMemoryEntry("tab1/n7", "tea"),
    () => client.removeMemory("tab1/n7"),
    () => client.reviewMemory({ memory: "tab1/n7", keys: ["tea"], decision: "approve" }),
    () => client.exportMemory({ memory: "tab1/n7" }).next(),
  ];
  for (const ask of unknown) {
    expect(await rejection(ask()), "COLLECTION_UNKNOWN", { status: 404 });
  }
  assert.deepEqual(await client.exportMemory({ user: "ada" }).next(), { done: true, value: undefined });
  const nothing = { entries: 0, conversations: 0, runs: 0 };
  assert.deepEqual(await client.forget({ owner: { user: "ada" }, runs: true }), { forgotten: nothing, problems: [] });
  expect(await rejection(client.forget({ owner: { user: " " }, runs: false })), "REQUEST_INVALID", { status: 400 });

  assert.deepEqual(await client.mcpServers(), { servers: [] });
  const noServer = [
    () => client.mcpServer("files"),
    () => client.connectMcp("files"),
    () => client.pinMcpTools("files", { read_file: "0".repeat(64) }),
    () => client.loginMcp("files"),
    () => client.logoutMcp("files"),
  ];
  for (const ask of noServer) {
    expect(await rejection(ask()), "NOT_FOUND", { status: 404 });
  }

  assert.deepEqual(await client.instances(), { instances: [] });
  expect(await rejection(client.attached()), "NOT_FOUND", { status: 404 });

  assert.deepEqual(await client.catalogue(), CATALOGUE);
  assert.deepEqual(await client.edges(), EDGE_TABLE);
  const codes = await client.codes();
  assert.ok(codes.some(({ code, set }) => code === "EVENTS_GONE" && set === "api"));
  const gone = await client.code("EVENTS_GONE");
  assert.match(gone.page, /^## EVENTS_GONE/);
  assert.ok(gone.mend.length > 0 && gone.page.trim().endsWith(gone.mend));
  assert.ok(codes.every(({ mend }) => mend === undefined));
  const added = await client.addToken({ name: "dashboard", scopes: ["run"] });
  const session = await new RedflowClient({ url, token: added.token }).session();
  assert.deepEqual([session.name, session.scopes], ["dashboard", ["read", "run"]]);
  assert.equal((await client.session()).name, "main");
  assert.deepEqual((await client.tokens()).tokens.map(({ name, isOwn }) => [name, isOwn]), [["dashboard", false], ["main", true]]);
  await client.removeToken("dashboard");
  expect(await rejection(client.removeToken("dashboard")), "NOT_FOUND", { status: 404 });
  assert.ok((await client.config()).settings.some(({ key }) => key === "server.listen"));
  const { path, expiresAt } = await client.signInCode();
  assert.ok(path.startsWith("/") && expiresAt > 0);
  await client.signOut();

  // The OpenAPI document lists every route; this test must have used each.
  const { paths } = await plain.openapi();
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  assert.ok(routes.length > 20);
  const missing = routes.filter((route) => {
    const pattern = new RegExp(`^${route.replace(/\{\w+\}/g, "[^/]+")}$`);
    return route.includes(" /api/") && ![...requested].some((one) => pattern.test(one));
  });
  assert.deepEqual(missing, []);
});

test("reports the errors of the sidecar", LIMIT, async (t) => {
  const { url, client } = await serve(t, { flow: sums(1) });
  const wrong = new RedflowClient({ url, token: "rf_not-the-one-0123456789" });
  expect(await rejection(wrong.flows()), "UNAUTHORIZED", { status: 401, retryable: false });
  expect(await rejection(new RedflowClient({ url }).flows()), "UNAUTHORIZED", { status: 401 });
  const elsewhere = new RedflowClient({ url: url.replace("127.0.0.1", "127.0.0.2"), token: TOKEN });
  assert.ok((await rejection(elsewhere.flows())) instanceof RedflowError);

  const broken = sums(1).filter(({ id }) => id !== "model");
  const refused = await rejection(client.deploy({ flows: broken, force: true }));
  expect(refused, "FLOW_REFUSED", { status: 422 });
  assert.ok(refused.report.diagnostics.some(({ severity }) => severity === "error"));
  const { revision } = await client.deployment();
  await client.deploy({ flows: sums(2), revision });
  const late = await rejection(client.deploy({ flows: sums(3), revision }));
  expect(late, "REVISION_CONFLICT", { status: 409, revision: (await client.deployment()).revision });

  expect(await rejection(client.run(UNKNOWN_RUN)), "RUN_UNKNOWN", { status: 404 });
  expect(await rejection(collect(client.followRun(UNKNOWN_RUN))), "RUN_UNKNOWN");
  expect(await rejection(client.flow("nothing")), "NOT_FOUND");
  expect(await rejection(client.code("NOTHING")), "NOT_FOUND");
  expect(await rejection(client.start({ node: "result", payload: 1 })), "NODE_NOT_STARTABLE", { status: 422 });
  expect(await rejection(client.start({ nodes: "agent" })), "BODY_INVALID", { status: 400 });
  expect(await rejection(client.runs({ limit: 0 })), "REQUEST_INVALID", { status: 400 });
});

test("starts an agent once for the same idempotency key", LIMIT, async (t) => {
  const { client } = await serve(t, { flow: sums(1) });
  const start = () => client.start({ payload: 1 }, { idempotencyKey: "once" });
  const [first, second] = await Promise.all([start(), start()]);
  assert.equal(first.runs[0].runId, second.runs[0].runId);
  const other = await client.start({ payload: 1 }, { idempotencyKey: "twice" });
  assert.notEqual(other.runs[0].runId, first.runs[0].runId);
  await collect(client.followRun(other.runs[0].runId));
  assert.equal((await collect(client.allRuns())).length, 2);
});

test("allRuns reads every page", LIMIT, async (t) => {
  const { client } = await serve(t, { flow: sums(0) });
  const ids = await startAll(client, 7, "page");
  const found = await collect(client.allRuns({ limit: 2 }));
  assert.deepEqual(found.map(({ runId }) => runId), [...ids].reverse());
  assert.deepEqual(await collect(client.allRuns({ status: "failed" })), []);
  assert.equal((await collect(client.allRuns({ status: ["completed", "failed"], limit: 3 }))).length, 7);
  assert.equal((await collect(client.allRuns({ limit: 2 }), (_, runs) => runs.length === 3)).length, 3);
});

test("cancels a run while following it", LIMIT, async (t) => {
  const { client } = await serve(t, { flow: sums(3, 60_000) });
  const [{ runId }] = (await client.start({ payload: 1 })).runs;
  const events = [];
  for await (const event of client.followRun(runId)) {
    events.push(event);
    if (event.event.type === "model_called") {
      assert.equal((await client.cancel(runId, { reason: "enough" })).status, "failed");
    }
  }
  assert.equal(events.at(-1).event.error.code, "CANCELLED");
  assert.deepEqual(events, await client.runEvents(runId));
});

test("followRun delivers every event when the network cuts connections", LIMIT, async (t) => {
  const net = await network(t);
  const { port, client: direct } = await serve(t, { flow: sums(8, 20), hosts: [net.host] });
  net.forwardTo(port);
  let budget = 400;
  net.cutAfter(() => (budget += 100));
  const [{ runId }] = (await direct.start({ payload: 1 })).runs;
  const client = new RedflowClient({ url: net.url, token: TOKEN });
  const events = await collect(client.followRun(runId, { timing: QUICK }));
  assert.deepEqual(events, await direct.runEvents(runId));
  assert.ok(net.count() > 3, `${net.count()} connections`);
});

test("followRun delivers every event when connections freeze", LIMIT, async (t) => {
  const net = await network(t);
  const { port, client: direct } = await serve(t, { flow: sums(3, 100), hosts: [net.host] });
  net.forwardTo(port);
  const [{ runId }] = (await direct.start({ payload: 1 })).runs;
  const client = new RedflowClient({ url: net.url, token: TOKEN });
  const events = [];
  for await (const event of client.followRun(runId, { timing: { ...QUICK, idleMs: 1_000 } })) {
    events.push(event);
    if (event.seq === 2) {
      net.freeze();
    }
  }
  assert.deepEqual(events, await direct.runEvents(runId));
  assert.ok(net.count() > 1);
});

test("a request over a frozen connection times out", LIMIT, async (t) => {
  const net = await network(t);
  const { port } = await serve(t, { flow: sums(1), hosts: [net.host] });
  net.forwardTo(port);
  const client = new RedflowClient({ url: net.url, token: TOKEN, timeoutMs: 300 });
  await client.flows();
  net.freeze();
  net.freezeNew();
  expect(await rejection(client.flows()), "REQUEST_TIMEOUT", { retryable: true });
  net.passNew();
  net.cut();
  await retry(() => client.flows());
});

for (const { name, WebSocket } of SOCKETS) {
  const check = (what, run) => {
    test(`${what} (${name})`, LIMIT, run);
  };

  check("reads events from the start, from a cursor, new ones only, and of one run", async (t) => {
    const { client } = await serve(t, { flow: sums(1) });
    const [first, second] = await startAll(client, 2, "before");
    const all = await readStored(client, { WebSocket });
    const events = all.slice(0, -1);
    assert.equal(new Set(cursors(all)).size, events.length);
    for (const runId of [first, second]) {
      const own = events.filter(({ event }) => event.kind === "run" && event.event.runId === runId);
      assert.deepEqual(own.map(({ event }) => event.event), await client.runEvents(runId));
    }
    assert.deepEqual(await readStored(client, { WebSocket, after: events[4].cursor }), all.slice(5));
    const filtered = await readStored(client, { WebSocket, runs: [second] });
    assert.deepEqual(seqs(filtered.slice(0, -1).map(({ event }) => event.event)), seqs(await client.runEvents(second)));
    // The cursor of caught_up is after every event.
    assert.deepEqual(cursors(await readStored(client, { WebSocket, after: all.at(-1).cursor })), []);

    let open;
    const opened = new Promise((resolve) => (open = resolve));
    const onState = ({ state }) => state === "open" && open();
    const reader = collect(client.events({ WebSocket, onState, signal: t.signal }), isEnd);
    await opened;
    const [third] = await startAll(client, 1, "now");
    const now = (await reader).filter(({ event }) => event?.kind === "run");
    assert.deepEqual(now.map(({ event }) => event.event), await client.runEvents(third));
  });

  check("delivers the deltas of an answer to connected readers only", async (t) => {
    const answer = { action: "final", message: "A long answer. ".repeat(20), confidence: 1 };
    const { client } = await serve(t, { flow: flow([answer], 50) });
    const text = (items) => items.map(({ delta }) => delta?.text ?? "").join("");
    // A delta may arrive after the event of its answer, even after the end of the run.
    let caughtUp = false;
    const options = { WebSocket, deltas: true, signal: t.signal };
    const reader = collect(client.events(options), (item, items) => {
      caughtUp ||= item.type === "caught_up";
      return items.some(isEnd) && text(items).endsWith("}");
    });
    await until("caught up", () => caughtUp);
    const [runId] = await startAll(client, 1, "delta");
    const items = await reader;
    assert.deepEqual(JSON.parse(text(items)), answer);
    for (const { delta } of items.filter(({ type }) => type === "delta")) {
      assert.deepEqual([delta.runId, delta.iteration, delta.attempt], [runId, 1, 1]);
    }
    const durable = items.filter(({ event }) => event?.kind === "run").map(({ event }) => event.event);
    assert.deepEqual(durable, await client.runEvents(runId));
    const later = await readStored(client, { WebSocket, deltas: true });
    assert.ok(later.every(({ type }) => type !== "delta"), "deltas are not stored");
  });

  check("delivers every event once over an unreliable network", async (t) => {
    const net = await network(t);
    const { port, client: direct } = await serve(t, { flow: sums(4, 2), hosts: [net.host] });
    net.forwardTo(port);
    let budget = 500;
    net.cutAfter(() => (budget += 300));
    const client = new RedflowClient({ url: net.url, token: TOKEN });
    const runCount = 30;
    let ends = 0;
    const timing = { ...QUICK, openMs: 2_000, idleMs: 200, pongMs: 200 };
    const reader = collect(client.events({ WebSocket, after: CURSOR_START, timing, signal: t.signal }), (item) => {
      ends += isEnd(item) ? 1 : 0;
      return ends === runCount;
    });
    const trouble = setInterval(() => [net.cut, net.freeze, net.cut][net.count() % 3](), 40);
    t.after(() => clearInterval(trouble));
    await startAll(direct, runCount, "run");
    // Every run has ended. The reader now gets longer connections, but they still end.
    net.cutAfter(() => 50_000);
    clearInterval(trouble);
    const got = cursors(await reader);
    const all = cursors(await readStored(direct, { WebSocket }));
    assert.deepEqual(got, all.slice(0, got.length));
    assert.ok(net.count() > 5, `${net.count()} connections`);
  });

  check("replaces a frozen connection", async (t) => {
    const net = await network(t);
    const { port, client: direct } = await serve(t, { flow: sums(1), hosts: [net.host] });
    net.forwardTo(port);
    const client = new RedflowClient({ url: net.url, token: TOKEN });
    const states = [];
    const timing = { ...QUICK, idleMs: 100, pongMs: 300 };
    const options = { WebSocket, timing, signal: t.signal, onState: (state) => states.push(state) };
    const reader = collect(client.events(options), isEnd);
    await until("open", () => states.some(({ state }) => state === "open"));
    net.freeze();
    const [runId] = await startAll(direct, 1, "dead");
    const events = (await reader).filter(({ event }) => event?.kind === "run").map(({ event }) => event.event);
    assert.deepEqual(events, await direct.runEvents(runId));
    const waits = states.filter(({ state }) => state === "waiting");
    assert.equal(waits[0].error.message, "The sidecar does not answer any more.");
  });

  check("keeps the connection to an idle sidecar", async (t) => {
    const { client } = await serve(t, { flow: sums(1) });
    const states = [];
    const timing = { ...QUICK, idleMs: 5, pongMs: 20_000 };
    const options = { WebSocket, timing, signal: AbortSignal.timeout(300), onState: (state) => states.push(state) };
    assert.equal((await rejection(collect(client.events(options)))).name, "TimeoutError");
    assert.deepEqual(states.map(({ state }) => state), ["connecting", "open"]);
  });

  check("a slow reader gets every event", async (t) => {
    const { client } = await serve(t, { flow: sums(4) });
    await startAll(client, 20, "slow");
    const all = await readStored(client, { WebSocket });
    const states = [];
    const items = [];
    const options = { WebSocket, after: CURSOR_START, buffer: 16, onState: ({ state }) => states.push(state) };
    for await (const item of client.events(options)) {
      items.push(item);
      if (item.cursor === cursors(all).at(-1)) {
        break;
      }
      // Slow, because the reader does other work between two events.
      await new Promise((done) => setImmediate(done));
    }
    assert.deepEqual(cursors(items), cursors(all));
    assert.ok(states.filter((state) => state === "open").length > 1, "more messages came than the buffer holds");
    assert.ok(!states.includes("waiting"), "a full buffer is no failure");
  });

  check("loses no event when the sidecar stops, is killed and restarts", async (t) => {
    const net = await network(t);
    const path = folder(t);
    const options = { path, hosts: [net.host], persistent: true };
    let sidecar = await serve(t, { ...options, flow: sums(4, 5) });
    net.forwardTo(sidecar.port);
    const client = new RedflowClient({ url: net.url, token: TOKEN });
    const runCount = 40;
    const ends = new Set();
    const timing = { ...QUICK, openMs: 2_000 };
    const reader = collect(client.events({ WebSocket, after: CURSOR_START, timing, signal: t.signal }), (item) => {
      if (isEnd(item)) {
        ends.add(item.event.event.runId);
      }
      return ends.size === runCount;
    });
    const starter = (async () => {
      const ids = [];
      for (const number of range(1, runCount)) {
        const start = () => client.start({ payload: number }, { idempotencyKey: `run-${number}` });
        const { runs } = await retry(async () => {
          await new Promise((done) => setImmediate(done));
          return start();
        });
        ids.push(runs[0].runId);
      }
      return ids;
    })();
    for (const [signal, after] of [["SIGTERM", 5], ["SIGKILL", 12], ["SIGKILL", 20]]) {
      await until(`${after} runs have ended`, () => ends.size >= after, 60_000);
      await sidecar.end(signal);
      sidecar = await serve(t, options);
      net.forwardTo(sidecar.port);
    }
    const ids = await starter;
    assert.equal(new Set(ids).size, runCount);
    const got = cursors(await reader);
    assert.deepEqual([...ends].sort(), [...ids].sort());
    const all = cursors(await readStored(sidecar.client, { WebSocket }));
    assert.deepEqual(got, all.slice(0, got.length));
    for (const id of ids) {
      assert.equal((await sidecar.client.replay(id)).equal, true);
    }
  });

  check("followRun resumes after the sidecar stops and is killed", async (t) => {
    const net = await network(t);
    const path = folder(t);
    const options = { path, hosts: [net.host], persistent: true };
    let sidecar = await serve(t, { ...options, flow: sums(4, 50) });
    net.forwardTo(sidecar.port);
    const client = new RedflowClient({ url: net.url, token: TOKEN });
    const [{ runId }] = (await client.start({ payload: 1 })).runs;
    const events = [];
    const signals = ["SIGTERM", "SIGKILL"];
    for await (const event of client.followRun(runId, { timing: QUICK })) {
      events.push(event);
      if (event.event.type === "tool_returned" && signals.length > 0) {
        await sidecar.end(signals.shift());
        sidecar = await serve(t, options);
        net.forwardTo(sidecar.port);
      }
    }
    assert.deepEqual(events, await sidecar.client.runEvents(runId));
    assert.equal(events.at(-1).event.completed, true);
  });

  check("throws for a wrong token, an unknown cursor, too many runs and deleted events", async (t) => {
    const { url, client } = await serve(t, { flow: sums(1), settings: ["events_kept = 10"] });
    const wrong = new RedflowClient({ url, token: "rf_not-the-one-0123456789" });
    expect(await rejection(collect(wrong.events({ WebSocket }))), "UNAUTHORIZED");
    expect(await rejection(collect(new RedflowClient({ url }).events({ WebSocket }))), "UNAUTHORIZED");
    for (const after of ["", "x", "nothing.1", "nothing.zz"]) {
      expect(await rejection(collect(client.events({ WebSocket, after }))), "CURSOR_UNKNOWN");
    }
    expect(await rejection(collect(client.events({ WebSocket, runs: Array(1001).fill("r") }))), "MESSAGE_INVALID");

    const first = (await readStored(client, { WebSocket })).at(-1).cursor;
    await until("the first events are deleted", async () => {
      await startAll(client, 5, `gone-${Math.random()}`);
      const reader = collect(client.events({ WebSocket, after: first }), ({ type }) => type === "caught_up");
      const error = await reader.then(() => null, (error) => error);
      return error && (expect(error, "EVENTS_GONE"), true);
    });
  });
}

test("a signed-in browser needs no token", LIMIT, async (t) => {
  const { url, client } = await serve(t, { flow: sums(1) });
  const { path } = await client.signInCode();
  const entered = await fetch(url + path, { redirect: "manual" });
  const cookie = entered.headers.get("set-cookie")?.split(";")[0];
  assert.ok(cookie, `${entered.status}`);
  // The headers that a browser adds by itself.
  const headers = { cookie, origin: url, "sec-fetch-site": "same-origin" };
  const browserFetch = (address, init) => {
    assert.equal(init.credentials, "same-origin");
    return globalThis.fetch(address, { ...init, headers: { ...init.headers, ...headers } });
  };
  class BrowserSocket extends WebSocket {
    constructor(address, protocols) {
      assert.deepEqual(protocols, ["redflow.events.v1"]);
      super(address, protocols, { headers: { cookie, origin: url } });
    }
  }
  const page = new RedflowClient({ url, fetch: browserFetch });
  const [runId] = await startAll(page, 1, "page");
  const items = await readStored(page, { WebSocket: BrowserSocket });
  assert.ok(items.some((item) => isEnd(item) && item.event.event.runId === runId));
  assert.equal((await page.session()).name, "main");
  const added = await client.addToken({ name: "reader", scopes: ["read"] });
  assert.deepEqual((await page.signIn(added.token)).scopes, ["read"]);
  expect(await rejection(page.flows()), "UNAUTHORIZED");
  const { path: again } = await client.signInCode();
  headers.cookie = (await fetch(url + again, { redirect: "manual" })).headers.get("set-cookie")?.split(";")[0];
  await page.signOut();
  expect(await rejection(page.flows()), "UNAUTHORIZED");
  expect(await rejection(collect(page.events({ WebSocket: BrowserSocket }))), "UNAUTHORIZED");
});

test("waits for a sidecar that starts later", LIMIT, async (t) => {
  const net = await network(t);
  const client = new RedflowClient({ url: net.url, token: TOKEN });
  const states = [];
  const onState = (state) => states.push(state);
  const options = { WebSocket, after: CURSOR_START, timing: QUICK, onState, signal: t.signal };
  const reader = collect(client.events(options), isEnd);
  await until("three attempts", () => states.filter(({ state }) => state === "waiting").length >= 3);
  expect(states.find(({ state }) => state === "waiting").error, "SIDECAR_UNREACHABLE");
  const { port, client: direct } = await serve(t, { flow: sums(0), hosts: [net.host] });
  net.forwardTo(port);
  const [runId] = await startAll(direct, 1, "late");
  assert.equal((await reader).at(-1).event.event.runId, runId);
});

test("the log of the sidecar contains no token", LIMIT, async (t) => {
  const { client, log, end } = await serve(t, { flow: sums(1) });
  await startAll(client, 1, "log");
  await readStored(client);
  await end("SIGTERM");
  assert.ok(log().length > 0 && !log().includes(TOKEN), log());
});
