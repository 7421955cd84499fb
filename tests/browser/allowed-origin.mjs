// The page of the origin in `--redflow-ui`: all requests of the Redflow UI in its order, without a token.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { assertOrder, assertFrame } from "./kit/frames.mjs";
import { fakeAzure, servePages } from "./kit/servers.mjs";
import { example, serve } from "./kit/sidecar.mjs";
import { openPage } from "./kit/ui-page.mjs";

const SCREENSHOT = fileURLToPath(new URL("dist/page.png", import.meta.url));
const KEY = "key-of-the-azure-resource-0123456789";
const MASK = "__PWRD__";
const ANSWER = "17 * 3 is 51.";

/** Whether a frame has ended. */
const hasEnded = (events) => events.some(({ event }) => event === "frame:end");
/** Whether the events show an agent as failed or refused. */
const terminated = (events, id) =>
  events.some(({ event, nodeId, data }) => {
    return event === "node:output" && nodeId === id && data.semantics.behavior === "terminated";
  });

/** The example with another inject, with an id in the form of the UI. */
const SECOND = "inject 2.b";
const withSecond = () => {
  const nodes = example();
  const inject = nodes.find(({ id }) => id === "inject-1");
  return [...nodes, { ...inject, id: SECOND, name: "Another one", y: 280 }];
};

/** An agent with a model of Azure, with ids in the form of the UI. */
const AZURE = {
  inject: "inject-1766000000001",
  model: "model.azure.openai-1766000000002",
  agent: "agent-core-1766000000003",
};
const withAzure = (endpoint) => {
  const at = { z: "tab", x: 100, y: 600, name: "" };
  const hello = { props: [{ p: "payload" }], payload: "Hello", payloadType: "str" };
  const resource = { endpoint, deployment: "gpt-4o", apiVersion: "2024-12-01-preview" };
  return [
    ...withSecond(),
    { id: AZURE.inject, type: "inject", ...at, ...hello, wires: [[AZURE.agent]] },
    { id: AZURE.agent, type: "agent-core", ...at, wires: [[AZURE.model], [], [], ["debug-1"]] },
    { id: AZURE.model, type: "model.azure.openai", ...at, ...resource, wires: [[AZURE.agent]] },
  ];
};

/** The example with an agent without a model, and a new agent of the UI. */
const NEW_AGENT = "agent-core-1766000000000";
const withRefused = () => {
  const wires = [["debug-1"], [], [], [], ["chat-node-1"]];
  const nodes = example().map((node) => (node.id === "agent-core-1" ? { ...node, wires } : node));
  return [...nodes, { id: NEW_AGENT, type: "agent-core", name: "", z: "tab", x: 1, y: 1, wires: [] }];
};

/** The example with these replies of its model. */
const withReplies = (replies) =>
  example().map((node) => (node.type === "scripted-model" ? { ...node, replies } : node));

export function testAllowedOrigin(browser) {
  test("a page of the allowed origin makes the requests of the Redflow UI in its order", async (t) => {
    const ui = await servePages(t);
    const sidecar = await serve(t, { ui });
    const cloud = await fakeAzure(t, { key: KEY, answer: '{"action":"final","message":"Hello to you.","confidence":1}' });
    const page = await openPage(t, browser(), ui, sidecar.url);
    const step = (name, work) => t.test(name, () => page.withTrace(work));

    /** Runs work that starts a frame. Returns its outcome and the events of the frame. */
    const inFrame = async (work) => {
      const from = (await page.events()).length;
      const outcome = await work();
      return { outcome, events: await page.until("the end of a frame", from, hasEnded) };
    };

    await step("starts with the flow, two probes and the permanent socket", async () => {
      const { loaded, probes, socket } = await page.call("startUp");
      assert.equal(loaded.status, 200);
      assert.match(loaded.type, /^application\/json/);
      assert.deepEqual(loaded.body.flows, example());
      assert.match(loaded.body.rev, /\S/);
      assert.deepEqual([probes, socket], [["open", "open"], "open"]);
      const [first] = await page.until("the first event", 0, (events) => events.length > 0);
      assert.equal(first.event, "connected");
    });

    await step("loads the palette", async () => {
      const { status, type, body } = await page.call("requestJson", "GET", "/nodes");
      assert.equal(status, 200);
      assert.match(type, /^application\/json/);
      const types = body.flatMap((set) => set.types);
      for (const type of ["agent-core", "model.azure.openai", "chat-node", "inject", "debug"]) {
        assert.ok(types.includes(type), type);
      }
    });

    await step("tries both addresses of an unknown inject", async () => {
      const attempts = await page.call("inject", SECOND);
      assert.deepEqual(attempts.map(({ status }) => status), [404, 404]);
      for (const { type, body } of attempts) {
        assert.match(type, /^application\/json/);
        assert.match(body.code, /^[A-Z_]+$/);
      }
    });

    await step("an inject causes one frame with the tool call, and no node stays running", async () => {
      const { outcome, events } = await inFrame(() => page.call("inject", "inject-1"));
      assert.deepEqual(outcome.map(({ status, body }) => [status, body]), [[200, "OK"]]);
      assertFrame(events, "inject-1");
      const modelCall = ["node:output agent-core-1 0 transformed", "node:input scripted-model-1"];
      const modelAnswer = ["node:output scripted-model-1 0 transformed", "node:input agent-core-1"];
      assertOrder(events, [
        "node:output inject-1 0 transformed",
        "node:input agent-core-1",
        ...modelCall,
        ...modelAnswer,
        "node:output agent-core-1 1 transformed",
        "node:input calculator-tool-1",
        "node:output calculator-tool-1 0 transformed",
        "node:input agent-core-1",
        ...modelCall,
        ...modelAnswer,
        "node:output agent-core-1 4 transformed",
        "node:output agent-core-1 3 transformed",
        "node:input debug-1",
        "node:output debug-1 - pass-through",
        "frame:end",
      ]);
      const result = events.find(({ nodeId, data }) => nodeId === "calculator-tool-1" && data.outputs);
      assert.match(JSON.stringify(result.data.outputs[0].payload.preview), /51/);
      const { stats } = events.at(-1).data;
      assert.equal(stats.erroredNodes, 0);
      const states = await page.read("states");
      assert.deepEqual([...new Set(Object.values(states))], ["idle"], JSON.stringify(states));
    });

    await step("deploys a moved node and another inject, and rejects an old revision", async () => {
      const before = (await page.call("flows")).body.rev;
      const nodes = withSecond().map((node) => (node.id === "debug-1" ? { ...node, x: 720.5, y: 181 } : node));
      const { status, body } = await page.call("deploy", nodes);
      assert.equal(status, 200);
      assert.notEqual(body.rev, before);
      const after = (await page.call("flows")).body;
      assert.deepEqual(after, { flows: nodes, rev: body.rev });
      const outdated = await page.call("deploy", example(), before);
      assert.deepEqual([outdated.status, outdated.body.code], [409, "version_mismatch"]);
      assert.equal((await page.call("flows")).body.rev, body.rev, "the rejected deploy changed nothing");
    });

    await step("finds the new inject", async () => {
      const { outcome, events } = await inFrame(() => page.call("inject", SECOND));
      assert.deepEqual(outcome.map(({ status, body }) => [status, body]), [[200, "OK"]]);
      assertFrame(events, SECOND);
    });

    await step("deploys an invalid agent and shows it as refused", async () => {
      const from = (await page.events()).length;
      assert.equal((await page.call("deploy", withRefused())).status, 200);
      for (const id of ["agent-core-1", NEW_AGENT]) {
        await page.until(`the refusal of ${id}`, from, terminated, id);
      }
      // Removes the messages of the injects from the chat.
      assert.equal((await page.call("requestJson", "POST", "/chat-node/chat-node-1/clear")).status, 200);
      const { outcome, events } = await inFrame(() => page.call("sendChat", "chat-node-1", "Are you there?"));
      assert.equal(outcome.status, 200);
      assertFrame(events, "chat-node-1");
      assert.ok(terminated(events, "agent-core-1"));
      const { history } = (await page.call("history", "chat-node-1")).body;
      assert.deepEqual(history.map(({ type }) => type), ["user", "agent"]);
      assert.match(history[1].content, /^[A-Z_]+: /);
      assert.equal((await page.read("states"))["agent-core-1"], "error");
      assert.equal((await page.call("requestJson", "POST", "/chat-node/chat-node-1/clear")).status, 200);
    });

    await step("tests a connection with the right key and a wrong key", async () => {
      const body = { endpoint: cloud.endpoint, deployment: "gpt-4o", apiVersion: "2024-12-01-preview", apiKey: KEY };
      const path = "/azure-openai/test-connection";
      const accepted = await page.call("request", "POST", path, { body });
      assert.deepEqual([accepted.status, accepted.body.success], [200, true], JSON.stringify(accepted));
      const request = cloud.requests.at(-1);
      assert.equal(request.url, "/openai/deployments/gpt-4o/chat/completions?api-version=2024-12-01-preview");
      assert.equal(request.key, KEY);
      const rejected = await page.call("request", "POST", path, { body: { ...body, apiKey: "another-key-9876543210" } });
      assert.deepEqual([rejected.status, rejected.body.success], [401, false], JSON.stringify(rejected));
      assert.match(rejected.body.error, /\S/);
    });

    await step("stores credentials, uses them for the model, and never returns them", async () => {
      assert.equal((await page.call("deploy", withAzure(cloud.endpoint))).status, 200);
      const key = `node-credentials:${AZURE.model}`;
      const put = await page.call("request", "POST", "/redflow/persistent-storage", { body: { [key]: { apiKey: KEY } } });
      assert.equal(put.status, 200);
      const item = await page.call("request", "GET", `/redflow/persistent-storage/${encodeURIComponent(key)}`);
      assert.deepEqual([item.status, item.body.value], [200, { apiKey: MASK }]);
      const all = await page.call("request", "GET", "/redflow/persistent-storage");
      assert.deepEqual(all.body[key], { apiKey: MASK });
      const own = await page.call("request", "GET", `/agent-core/node-credentials/${AZURE.model}`);
      assert.equal(own.body.data.apiKey, MASK);
      const count = cloud.requests.length;
      const { outcome, events } = await inFrame(() => page.call("inject", AZURE.inject));
      assert.equal(outcome[0].status, 200);
      assertFrame(events, AZURE.inject);
      assert.ok(!terminated(events, AZURE.agent));
      assert.deepEqual(cloud.requests.slice(count).map((request) => request.key), [KEY]);
      // The UI knows only the mask. Sending the mask keeps the credentials.
      await page.call("request", "POST", "/redflow/persistent-storage", { body: all.body });
      const again = await inFrame(() => page.call("inject", AZURE.inject));
      assert.ok(!terminated(again.events, AZURE.agent));
      assert.equal(cloud.requests.at(-1).key, KEY);
    });

    await step("a chat over two turns shows each answer when its event arrives", async () => {
      await page.call("openChat", "chat-node-1", "agent-core-1");
      for (const turn of [1, 2]) {
        const { outcome, events } = await inFrame(() => page.call("sendChat", "chat-node-1", `What is 17 * 3? (${turn})`));
        assert.equal(outcome.status, 200);
        assert.deepEqual([outcome.body.success, outcome.body.agentCoreId], [true, "agent-core-1"]);
        assertFrame(events, "chat-node-1");
        const shown = await page.chatLines();
        const { nodeId, history, count } = (await page.call("history", "chat-node-1")).body;
        assert.deepEqual([nodeId, count], ["chat-node-1", history.length]);
        const expected = [1, 2].slice(0, turn).flatMap((turn) => [`user: What is 17 * 3? (${turn})`, `agent: ${ANSWER}`]);
        assert.deepEqual(history.map(({ type, content }) => `${type}: ${content}`), expected);
        assert.deepEqual(shown, expected);
      }
      const cleared = await page.call("requestJson", "POST", "/chat-node/chat-node-1/clear");
      assert.deepEqual([cleared.status, cleared.body.success], [200, true]);
      assert.deepEqual((await page.call("history", "chat-node-1")).body.history, []);
    });

    await step("a failing agent shows its error in the chat and in its state", async () => {
      assert.equal((await page.call("deploy", withReplies(["Fifty-one, I would say."]))).status, 200);
      const { outcome, events } = await inFrame(() => page.call("sendChat", "chat-node-1", "What is 17 * 3?"));
      assert.equal(outcome.status, 200);
      assertFrame(events, "chat-node-1");
      assert.ok(terminated(events, "agent-core-1"));
      const { history } = (await page.call("history", "chat-node-1")).body;
      assert.equal(history.at(-1).type, "agent");
      assert.match(history.at(-1).content, /^INVALID_JSON: /);
      assert.equal((await page.chatLines()).at(-1), `agent: ${history.at(-1).content}`);
      assert.equal((await page.read("states"))["agent-core-1"], "error");
    });

    await step("received no secret, and other routes stay closed", async () => {
      const texts = await page.read("receivedTexts");
      assert.ok(texts.length > 50);
      assert.deepEqual(texts.filter((text) => text.includes(KEY)), []);
      assert.ok(!sidecar.log().includes(KEY));
      for (const path of ["/api/runs", "/api/deployment", "/metrics", "/openapi.json"]) {
        assert.ok((await page.call("request", "GET", path)).failed, path);
      }
      assert.equal(await page.call("probe", "/events"), "refused");
    });

    await page.page.screenshot({ path: SCREENSHOT, fullPage: true });
  });
}
