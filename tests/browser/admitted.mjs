// The page of the origin that `--redflow-ui` names: everything the Redflow UI does, in its order, without a token.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { comeInOrder, holdsTogether } from "./kit/frames.mjs";
import { azure, origin } from "./kit/servers.mjs";
import { example, serve } from "./kit/sidecar.mjs";
import { visit } from "./kit/visit.mjs";

const SCREENSHOT = fileURLToPath(new URL("dist/page.png", import.meta.url));
const KEY = "key-of-the-azure-resource-0123456789";
const MASK = "__PWRD__";
const ANSWER = "17 * 3 is 51.";

/** Whether a frame is over. */
const over = (events) => events.some(({ event }) => event === "frame:end");
/** Whether an agent was shown to have failed or to be refused. */
const terminated = (events, id) =>
  events.some(({ event, nodeId, data }) => {
    return event === "node:output" && nodeId === id && data.semantics.behavior === "terminated";
  });

/** The example with another inject, whose id is as the UI makes them. */
const SECOND = "inject 2.b";
const withSecond = () => {
  const nodes = example();
  const inject = nodes.find(({ id }) => id === "inject-1");
  return [...nodes, { ...inject, id: SECOND, name: "Another one", y: 280 }];
};

/** An agent with a model of Azure, as the UI makes them. */
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

/** The example with an agent whose model is none, and another as the UI makes them. */
const FRESH = "agent-core-1766000000000";
const withRefused = () => {
  const wires = [["debug-1"], [], [], [], ["chat-node-1"]];
  const nodes = example().map((node) => (node.id === "agent-core-1" ? { ...node, wires } : node));
  return [...nodes, { id: FRESH, type: "agent-core", name: "", z: "tab", x: 1, y: 1, wires: [] }];
};

/** The example, with a model that says this. */
const withReplies = (replies) =>
  example().map((node) => (node.type === "scripted-model" ? { ...node, replies } : node));

export function admitted(browser) {
  test("a page of the admitted origin makes the calls of the Redflow UI in its order", async (t) => {
    const ui = await origin(t);
    const sidecar = await serve(t, { ui });
    const cloud = await azure(t, { key: KEY, says: '{"action":"final","message":"Hello to you.","confidence":1}' });
    const page = await visit(t, browser(), ui, sidecar.url);
    const step = (name, work) => t.test(name, () => page.told(work));

    /** Does something that sets a frame off; answers with what came of it, and with the events of that frame. */
    const inFrame = async (work) => {
      const from = (await page.events()).length;
      const outcome = await work();
      return { outcome, events: await page.until("the end of a frame", from, over) };
    };

    await step("it starts up: the flow, two probes, then the socket that stays", async () => {
      const { loaded, probes, socket } = await page.does("startUp");
      assert.equal(loaded.status, 200);
      assert.match(loaded.type, /^application\/json/);
      assert.deepEqual(loaded.body.flows, example());
      assert.match(loaded.body.rev, /\S/);
      assert.deepEqual([probes, socket], [["open", "open"], "open"]);
      const [first] = await page.until("the first word", 0, (events) => events.length > 0);
      assert.equal(first.event, "connected");
    });

    await step("the palette opens", async () => {
      const { status, type, body } = await page.does("ask", "GET", "/nodes");
      assert.equal(status, 200);
      assert.match(type, /^application\/json/);
      const types = body.flatMap((set) => set.types);
      for (const wanted of ["agent-core", "model.azure.openai", "chat-node", "inject", "debug"]) {
        assert.ok(types.includes(wanted), wanted);
      }
    });

    await step("an inject that is not there is looked for at both addresses", async () => {
      const tries = await page.does("inject", SECOND);
      assert.deepEqual(tries.map(({ status }) => status), [404, 404]);
      for (const { type, body } of tries) {
        assert.match(type, /^application\/json/);
        assert.match(body.code, /^[A-Z_]+$/);
      }
    });

    await step("an inject runs: one frame, the tool seen at work, nothing left running", async () => {
      const { outcome, events } = await inFrame(() => page.does("inject", "inject-1"));
      assert.deepEqual(outcome.map(({ status, body }) => [status, body]), [[200, "OK"]]);
      holdsTogether(events, "inject-1");
      const asked = ["node:output agent-core-1 0 transformed", "node:input scripted-model-1"];
      const said = ["node:output scripted-model-1 0 transformed", "node:input agent-core-1"];
      comeInOrder(events, [
        "node:output inject-1 0 transformed",
        "node:input agent-core-1",
        ...asked,
        ...said,
        "node:output agent-core-1 1 transformed",
        "node:input calculator-tool-1",
        "node:output calculator-tool-1 0 transformed",
        "node:input agent-core-1",
        ...asked,
        ...said,
        "node:output agent-core-1 4 transformed",
        "node:output agent-core-1 3 transformed",
        "node:input debug-1",
        "node:output debug-1 pass-through",
        "frame:end",
      ]);
      const result = events.find(({ nodeId, data }) => nodeId === "calculator-tool-1" && data.outputs);
      assert.match(JSON.stringify(result.data.outputs[0].payload.preview), /51/);
      const { stats } = events.at(-1).data;
      assert.equal(stats.erroredNodes, 0);
      const states = await page.has("states");
      assert.deepEqual([...new Set(Object.values(states))], ["idle"], JSON.stringify(states));
    });

    await step("a deploy: a node moved, a wire that was taken away posted again, another inject", async () => {
      const before = (await page.does("flows")).body.rev;
      const nodes = withSecond().map((node) => (node.id === "debug-1" ? { ...node, x: 720.5, y: 181 } : node));
      const { status, body } = await page.does("deploy", nodes);
      assert.equal(status, 200);
      assert.notEqual(body.rev, before);
      const after = (await page.does("flows")).body;
      assert.deepEqual(after, { flows: nodes, rev: body.rev });
      const late = await page.does("deploy", example(), before);
      assert.deepEqual([late.status, late.body.code], [409, "version_mismatch"]);
      assert.equal((await page.does("flows")).body.rev, body.rev, "what came too late changed nothing");
    });

    await step("the inject that was looked for is there when it is looked for again", async () => {
      const { outcome, events } = await inFrame(() => page.does("inject", SECOND));
      assert.deepEqual(outcome.map(({ status, body }) => [status, body]), [[200, "OK"]]);
      holdsTogether(events, SECOND);
    });

    await step("an agent that breaks a rule is deployed, and shown to be refused", async () => {
      const from = (await page.events()).length;
      assert.equal((await page.does("deploy", withRefused())).status, 200);
      for (const id of ["agent-core-1", FRESH]) {
        await page.until(`the refusal of ${id}`, from, terminated, id);
      }
      // What the injects made it say is in the chat too.
      assert.equal((await page.does("ask", "POST", "/chat-node/chat-node-1/clear")).status, 200);
      const { outcome, events } = await inFrame(() => page.does("say", "chat-node-1", "Are you there?"));
      assert.equal(outcome.status, 200);
      holdsTogether(events, "chat-node-1");
      assert.ok(terminated(events, "agent-core-1"));
      const { history } = (await page.does("history", "chat-node-1")).body;
      assert.deepEqual(history.map(({ type }) => type), ["user", "agent"]);
      assert.match(history[1].content, /^[A-Z_]+: /);
      assert.equal((await page.has("states"))["agent-core-1"], "error");
      assert.equal((await page.does("ask", "POST", "/chat-node/chat-node-1/clear")).status, 200);
    });

    await step("a connection is tested, with the right key and with a wrong one", async () => {
      const body = { endpoint: cloud.endpoint, deployment: "gpt-4o", apiVersion: "2024-12-01-preview", apiKey: KEY };
      const path = "/azure-openai/test-connection";
      const well = await page.does("call", "POST", path, { body });
      assert.deepEqual([well.status, well.body.success], [200, true], JSON.stringify(well));
      const asked = cloud.asked.at(-1);
      assert.equal(asked.url, "/openai/deployments/gpt-4o/chat/completions?api-version=2024-12-01-preview");
      assert.equal(asked.key, KEY);
      const ill = await page.does("call", "POST", path, { body: { ...body, apiKey: "another-key-9876543210" } });
      assert.deepEqual([ill.status, ill.body.success], [401, false], JSON.stringify(ill));
      assert.match(ill.body.error, /\S/);
    });

    await step("credentials are stored, used by the model, and never read back", async () => {
      assert.equal((await page.does("deploy", withAzure(cloud.endpoint))).status, 200);
      const key = `node-credentials:${AZURE.model}`;
      const put = await page.does("call", "POST", "/redflow/persistent-storage", { body: { [key]: { apiKey: KEY } } });
      assert.equal(put.status, 200);
      const item = await page.does("call", "GET", `/redflow/persistent-storage/${encodeURIComponent(key)}`);
      assert.deepEqual([item.status, item.body.value], [200, { apiKey: MASK }]);
      const all = await page.does("call", "GET", "/redflow/persistent-storage");
      assert.deepEqual(all.body[key], { apiKey: MASK });
      const own = await page.does("call", "GET", `/agent-core/node-credentials/${AZURE.model}`);
      assert.equal(own.body.data.apiKey, MASK);
      const count = cloud.asked.length;
      const { outcome, events } = await inFrame(() => page.does("inject", AZURE.inject));
      assert.equal(outcome[0].status, 200);
      holdsTogether(events, AZURE.inject);
      assert.ok(!terminated(events, AZURE.agent));
      assert.deepEqual(cloud.asked.slice(count).map((asked) => asked.key), [KEY]);
      // The UI knows only the mask: sent again, it takes nothing away.
      await page.does("call", "POST", "/redflow/persistent-storage", { body: all.body });
      const again = await inFrame(() => page.does("inject", AZURE.inject));
      assert.ok(!terminated(again.events, AZURE.agent));
      assert.equal(cloud.asked.at(-1).key, KEY);
    });

    await step("a chat over two turns; the answer is there when the socket says so", async () => {
      await page.does("look", "chat-node-1", "agent-core-1");
      for (const turn of [1, 2]) {
        const bubbles = (await page.has("bubbles")).length;
        const { outcome, events } = await inFrame(() => page.does("say", "chat-node-1", `What is 17 * 3? (${turn})`));
        assert.equal(outcome.status, 200);
        assert.deepEqual([outcome.body.success, outcome.body.agentCoreId], [true, "agent-core-1"]);
        holdsTogether(events, "chat-node-1");
        await page.page.waitForFunction(() => window.ui.bubbles.every(({ said }) => said !== undefined));
        const shown = (await page.has("bubbles")).slice(bubbles);
        const last = shown.filter(({ port, action }) => port === 4 && action === "final");
        assert.deepEqual(last.map(({ said }) => said), [ANSWER], JSON.stringify(shown));
        const { nodeId, history, count } = (await page.does("history", "chat-node-1")).body;
        assert.deepEqual([nodeId, count], ["chat-node-1", history.length]);
        const wanted = [1, 2].slice(0, turn).flatMap((turn) => [`user: What is 17 * 3? (${turn})`, `agent: ${ANSWER}`]);
        assert.deepEqual(history.map(({ type, content }) => `${type}: ${content}`), wanted);
      }
      const cleared = await page.does("ask", "POST", "/chat-node/chat-node-1/clear");
      assert.deepEqual([cleared.status, cleared.body.success], [200, true]);
      assert.deepEqual((await page.does("history", "chat-node-1")).body.history, []);
    });

    await step("an agent that fails says so in the chat and in its colour", async () => {
      assert.equal((await page.does("deploy", withReplies(["Fifty-one, I would say."]))).status, 200);
      const { outcome, events } = await inFrame(() => page.does("say", "chat-node-1", "What is 17 * 3?"));
      assert.equal(outcome.status, 200);
      holdsTogether(events, "chat-node-1");
      assert.ok(terminated(events, "agent-core-1"));
      const { history } = (await page.does("history", "chat-node-1")).body;
      assert.equal(history.at(-1).type, "agent");
      assert.match(history.at(-1).content, /^INVALID_JSON: /);
      await page.page.waitForFunction(() => window.ui.bubbles.every(({ said }) => said !== undefined));
      assert.equal((await page.has("bubbles")).at(-1).said, history.at(-1).content);
      assert.equal((await page.has("states"))["agent-core-1"], "error");
    });

    await step("no secret came back, and nothing else is open to it", async () => {
      const heard = await page.has("heard");
      assert.ok(heard.length > 50);
      assert.deepEqual(heard.filter((text) => text.includes(KEY)), []);
      assert.ok(!sidecar.log().includes(KEY));
      for (const path of ["/api/runs", "/api/deployment", "/metrics", "/openapi.json"]) {
        assert.ok((await page.does("call", "GET", path)).failed, path);
      }
      assert.equal(await page.does("probe", "/events"), "refused");
    });

    await page.page.screenshot({ path: SCREENSHOT, fullPage: true });
  });
}
