// What people do with the Redflow UI, against a page that behaves as the UI does: reload, a restart of the sidecar, a
// new agent, a wrong wire.

import assert from "node:assert/strict";
import { test } from "node:test";

import { fakeModel } from "./kit/model.mjs";
import { servePages } from "./kit/servers.mjs";
import { example, serve } from "./kit/sidecar.mjs";
import { openPage } from "./kit/ui-page.mjs";
import { eventually } from "./kit/wait.mjs";

const [CHAT, AGENT, MODEL] = ["chat-node-1", "agent-core-1", "model-1766000000001"];
const CALL = { action: "tool", tool: "calculator", input: { expression: "17 * 3" }, confidence: 0.9 };
const answer = (message) => ({ action: "final", message, confidence: 1 });

/** The example with a model that the test controls. */
const withModel = ({ url }) =>
  example().map((node) => {
    if (node.type === "scripted-model") {
      const { z, x, y, wires } = node;
      return { id: MODEL, type: "openai-model", name: "Model", z, x, y, model: "gpt-4.1-mini", baseURL: url, apiKey: "none", wires };
    }
    const rewired = (node.wires ?? []).map((targets) => targets.map((id) => (id === "scripted-model-1" ? MODEL : id)));
    return { ...node, wires: rewired };
  });

/** The text of a refused agent on the socket. */
const refusal = (events, id) =>
  events.findLast(({ event, nodeId }) => event === "node:error" && nodeId === id)?.data.error.message;

export function testScenarios(browser) {
  test("the Redflow UI gets further: reload, restart, a new agent, a wrong wire", async (t) => {
    const ui = await servePages(t);
    const sidecar = await serve(t, { ui });
    const model = await fakeModel();
    t.after(() => model.stop());
    const page = await openPage(t, browser(), ui, sidecar.url);
    const step = (name, work) => t.test(name, () => page.withTrace(work));
    const ask = (text) => page.call("sendChat", CHAT, text);

    await step("after a reload, a step without a message does not show the answer before", async () => {
      await page.call("startUp");
      assert.equal((await page.call("deploy", withModel(model))).status, 200);
      await page.call("openChat", CHAT, AGENT);
      model.setAnswers(answer("Good morning."));
      await ask("Hello");
      assert.deepEqual(await page.chatLines(), ["user: Hello", "agent: Good morning."]);
      await page.reload();
      await page.call("openChat", CHAT, AGENT);
      await page.call("startUp");
      await page.page.waitForFunction(() => window.ui.chatWindow.messages.length === 1);
      model.setAnswers(CALL, answer("It is 51."));
      await ask("What is 17 * 3?");
      await page.until("the end of the run", 0, (events) => events.some(({ event }) => event === "frame:end"));
      assert.deepEqual((await page.chatLines()).slice(1), ["user: What is 17 * 3?", "agent: It is 51."]);
      const answers = (await page.events()).filter(({ nodeId, data }) => {
        return nodeId === AGENT && data.outputs?.[0]?.port === 4;
      });
      // The first one repeats the answer before, because this page has not seen it.
      assert.deepEqual(answers.map(({ data }) => data.sampled), [true, false, true]);
    });

    await step("a page that was offline during a restart gets the answer and no node stays running", async () => {
      model.hold();
      model.setAnswers(answer("I was offline."));
      await ask("Are you there?");
      await eventually("the call of the model", () => model.waiting() === 1);
      await sidecar.kill();
      await page.page.waitForFunction(() => window.ui.connections.at(-1).code !== undefined);
      // The sidecar is down, and the page comes back late: all of it happens while the page is offline.
      await page.call("stayOffline");
      await sidecar.restart();
      model.release();
      await eventually("the answer", async () => {
        const { runs } = await sidecar.get("/api/runs");
        return runs[0].status === "completed";
      });
      assert.equal((await page.read("chatWindow")).isWaiting, true);
      assert.equal((await page.read("states"))[MODEL], "running");
      assert.equal(await page.call("connect"), "open");
      assert.equal((await page.chatLines()).at(-1), "agent: I was offline.");
      assert.equal((await page.read("connections")).at(-1).path, "/admin/observability");
      await page.page.waitForFunction(() => Object.values(window.ui.states).every((state) => state !== "running"));
    });

    await step("a page that missed nothing shows nothing twice when it connects again", async () => {
      const lines = await page.chatLines();
      const from = (await page.events()).length;
      await page.call("connect");
      await page.until("the repeated answer", from, (events) => events.some(({ nodeId }) => nodeId === "agent-core-1"));
      await ask("Again?");
      assert.deepEqual(await page.chatLines(), [...lines, "user: Again?", "agent: I was offline."]);
    });

    await step("a new agent can be wired, and calls the tool that is wired to it", async () => {
      const [agent, tool] = ["agent-core-1766000000010", "calculator-tool-1766000000011"];
      const [chat, copy] = ["chat-node-1766000000012", "model-1766000000013"];
      await page.call("loadCanvas");
      const { url } = model;
      for (const node of [
        { id: agent, type: "agent-core", z: "tab" },
        { id: tool, type: "calculator-tool", z: "tab" },
        { id: chat, type: "chat-node", z: "tab" },
        { id: copy, type: "openai-model", z: "tab", model: "gpt-4.1-mini", baseURL: url, apiKey: "none" },
      ]) {
        await page.call("addNode", node);
      }
      // A new node has one output until it is saved.
      assert.match(await page.call("connectNodes", agent, 1, tool), /only 1 output/);
      assert.equal((await page.call("saveCanvas")).status, 200);
      const wires = [[agent, 0, copy], [agent, 1, tool], [agent, 3, "debug-1"]];
      const replies = [copy, tool, chat].map((source) => [source, 0, agent]);
      for (const [source, port, target] of [...wires, ...replies]) {
        assert.equal(await page.call("connectNodes", source, port, target), undefined, `${source} ${port}`);
      }
      assert.equal((await page.call("saveCanvas")).status, 200);
      await page.call("openChat", chat, agent);
      model.setAnswers(CALL, answer("Still 51."));
      await page.call("sendChat", chat, "What is 17 * 3?");
      assert.deepEqual(await page.chatLines(), ["user: What is 17 * 3?", "agent: Still 51."]);
      assert.equal((await page.read("states"))[tool], "idle");
      // The wires are longer for the UI only.
      const { flows } = await sidecar.get("/api/deployment");
      assert.equal(flows.find(({ id }) => id === agent).wires.length, 5);
      assert.deepEqual(flows.find(({ id }) => id === chat).wires, [[agent]]);
    });

    await step("a wrong wire is explained, comes back when it is deleted, and goes with its node", async () => {
      await page.call("loadCanvas");
      await page.call("openChat", CHAT, AGENT);
      assert.equal(await page.call("connectNodes", AGENT, 3, MODEL), undefined);
      assert.equal((await page.call("saveCanvas")).status, 200);
      await ask("Hello?");
      const [, bubble] = await page.chatLines();
      assert.match(bubble, /^agent: EDGE_REJECTED: .*port 3.*Model.*Move the wire to port 0/s);
      assert.match(refusal(await page.events(), AGENT), /port 3.*Move the wire to port 0/s);
      await page.call("removeWire", AGENT, 3, MODEL);
      await page.call("saveCanvas");
      await ask("Hello?");
      assert.match((await page.chatLines()).at(-1), /EDGE_REJECTED/, "the wire came back");
      // The way that docs/redflow.md gives.
      const { id, wires, ...copy } = withModel(model).find((node) => node.id === MODEL);
      await page.call("removeNode", id);
      await page.call("addNode", { ...copy, id: `${id}-2` });
      await page.call("connectNodes", AGENT, 0, `${id}-2`);
      await page.call("connectNodes", `${id}-2`, 0, AGENT);
      await page.call("saveCanvas");
      model.setAnswers(answer("Hello."));
      await ask("Hello?");
      assert.equal((await page.chatLines()).at(-1), "agent: Hello.");
    });
  });
}
