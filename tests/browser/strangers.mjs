// A page of any other origin: it learns nothing, and changes nothing.

import assert from "node:assert/strict";
import { test } from "node:test";

import { REBOUND } from "./kit/chromium.mjs";
import { azure, origin } from "./kit/servers.mjs";
import { example, serve } from "./kit/sidecar.mjs";
import { visit } from "./kit/visit.mjs";

const STORED = { "node-credentials:m": { apiKey: "key-of-the-owner-0123456789" }, theme: "dark" };
const TAB = { label: "Mine now", nodes: [] };
const V2 = { "Node-RED-API-Version": "v2" };

/** What the Redflow UI asks, each so that it would do something if it were let in. */
const calls = (endpoint) => [
  ["GET", "/flows", { headers: V2 }],
  ["GET", "/flows"],
  ["POST", "/flows", { headers: { ...V2, "Node-RED-Deployment-Type": "full" }, body: { flows: [] } }],
  ["GET", "/flow/tab"],
  ["POST", "/flow", { body: TAB }],
  ["PUT", "/flow/tab", { body: TAB }],
  ["DELETE", "/flow/tab"],
  ["GET", "/nodes"],
  ["GET", "/settings"],
  ["GET", "/diagnostics"],
  ["POST", "/inject/inject-1"],
  ["POST", "/admin/inject/inject-1"],
  ["POST", "/chat-node/chat-node-1/send", { body: { message: "Hello" } }],
  ["GET", "/chat-node/chat-node-1/history"],
  ["POST", "/chat-node/chat-node-1/clear"],
  ["GET", "/agent-core/schema"],
  ["GET", "/agent-core/node-credentials/m"],
  ["GET", "/credentials/m"],
  ["GET", "/redflow/persistent-storage"],
  ["POST", "/redflow/persistent-storage", { body: { theme: "light" } }],
  ["GET", "/redflow/persistent-storage/theme"],
  ["DELETE", "/redflow/persistent-storage/theme"],
  ["POST", "/azure-openai/test-connection", { body: { endpoint, deployment: "d", apiVersion: "v", apiKey: "k" } }],
];

/** Every route there is, whoever may use it. */
const routes = ({ paths }) =>
  Object.entries(paths).flatMap(([path, ways]) => {
    return Object.keys(ways).map((method) => [method.toUpperCase(), path.replace(/\{\w+\}/g, "inject-1")]);
  });

export function strangers(browser) {
  test("a page of another origin learns nothing and changes nothing", async (t) => {
    const [ui, elsewhere] = [await origin(t), await origin(t)];
    const sidecar = await serve(t, { ui });
    const cloud = await azure(t, { key: "k", says: "OK" });
    const owner = await visit(t, browser(), ui, sidecar.url);
    const stranger = await visit(t, browser(), elsewhere, sidecar.url);
    const step = (name, work) => t.test(name, () => stranger.told(work));

    // There is something to take and something to break.
    await owner.told(async () => {
      assert.equal((await owner.does("call", "POST", "/redflow/persistent-storage", { body: STORED })).status, 200);
      await owner.does("startUp");
      assert.equal((await owner.does("say", "chat-node-1", "What is 17 * 3?")).status, 200);
      await owner.until("the answer", 0, (events) => events.some(({ event }) => event === "frame:end"));
    });
    const all = async () => ({
      flow: await sidecar.ask("/api/deployment"),
      runs: await sidecar.ask("/api/runs?limit=1000"),
      stored: await sidecar.ask("/redflow/persistent-storage"),
      said: await sidecar.ask("/chat-node/chat-node-1/history"),
    });
    const before = await all();
    assert.deepEqual(before.flow.flows ?? before.flow.nodes, example());
    assert.equal(before.runs.runs.length, 1);
    assert.equal(before.said.count, 2);

    /** How the sidecar answered while the work was done. */
    const meanwhile = async (work) => {
      const before = await sidecar.answered();
      await work();
      const changed = Object.entries(await sidecar.answered()).map(([key, count]) => [key, count - (before[key] ?? 0)]);
      return Object.fromEntries(changed.filter(([, count]) => count > 0));
    };

    await step("no call comes through", async () => {
      const answers = await meanwhile(async () => {
        const all = routes(await sidecar.ask("/openapi.json"));
        assert.ok(all.length > 40, `there are ${all.length} routes`);
        for (const [method, path, options] of [...calls(cloud.endpoint), ...all]) {
          const outcome = await stranger.does("ask", method, path, options);
          assert.ok(outcome.failed, `${method} ${path}: ${JSON.stringify(outcome)}`);
        }
        assert.ok((await stranger.does("fire", "/inject/inject-1")).failed);
      });
      delete answers["/openapi.json 200"];
      assert.deepEqual(Object.keys(answers).filter((key) => !key.endsWith(" 403")), []);
      assert.deepEqual(await stranger.has("heard"), []);
    });

    await step("no socket opens", async () => {
      for (const path of ["/observability", "/admin/observability", "/comms", "/events"]) {
        assert.equal(await stranger.does("probe", path), "refused", path);
      }
    });

    await step("what needs no permission to be sent does nothing", async () => {
      const body = JSON.stringify({ theme: "light" });
      const answers = await meanwhile(async () => {
        assert.equal(await stranger.does("unasked.picture", "/flows"), "no picture");
        assert.equal(await stranger.does("unasked.form", "/inject/inject-1"), "sent");
        // With the second the browser does not say where it comes from.
        for (const options of [{}, { referrerPolicy: "no-referrer" }]) {
          const send = (path, more) => stranger.does("unasked.fetch", "POST", path, { ...options, ...more });
          for (const sending of [
            () => send("/inject/inject-1"),
            () => send("/redflow/persistent-storage", { body }),
            () => send("/flows", { body: "[]" }),
            () => send("/chat-node/chat-node-1/clear"),
          ]) {
            // The browser keeps the answer from the page.
            await assert.rejects(sending, /Failed to fetch/);
          }
        }
      });
      assert.deepEqual(answers, {
        "/flows 401": 1,
        "/flows 403": 2,
        "/inject/{id} 403": 3,
        "/redflow/persistent-storage 403": 2,
        "/chat-node/{id}/clear 403": 2,
      });
    });

    await step("a name of the web that leads to this machine opens nothing", async () => {
      // Whatever the page is by then: what it asks is of its own origin to the browser, which lets it read the answer.
      const context = await browser().newContext({ bypassCSP: true });
      t.after(() => context.close());
      const tab = await context.newPage();
      const opened = await tab.goto(`http://${REBOUND}:${sidecar.port}/`);
      assert.equal(opened.status(), 403);
      const ask = async ([method, path]) => {
        const answer = await fetch(path, { method });
        return [answer.status, (await answer.json()).code];
      };
      for (const call of [["GET", "/flows"], ["POST", "/inject/inject-1"], ["GET", "/redflow/persistent-storage"]]) {
        assert.deepEqual(await tab.evaluate(ask, call), [403, "HOST_REFUSED"], call.join(" "));
      }
    });

    await step("all is as it was", async () => {
      assert.deepEqual(await all(), before);
      assert.deepEqual(cloud.asked, []);
    });
  });
}
