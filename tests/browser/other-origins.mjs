// A page of any other origin: it can read nothing and change nothing.

import assert from "node:assert/strict";
import { test } from "node:test";

import { REBOUND } from "./kit/chromium.mjs";
import { fakeAzure, servePages } from "./kit/servers.mjs";
import { example, serve } from "./kit/sidecar.mjs";
import { openPage } from "./kit/ui-page.mjs";

const STORED = { "node-credentials:m": { apiKey: "key-of-the-owner-0123456789" }, theme: "dark" };
const TAB = { label: "Mine now", nodes: [] };
const V2 = { "Node-RED-API-Version": "v2" };

/** The requests of the Redflow UI, each in a form that would succeed with permission. */
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

/** All routes, whatever their permissions. */
const routes = ({ paths }) =>
  Object.entries(paths).flatMap(([path, methods]) => {
    return Object.keys(methods).map((method) => [method.toUpperCase(), path.replace(/\{\w+\}/g, "inject-1")]);
  });

export function testOtherOrigins(browser) {
  test("a page of another origin reads nothing and changes nothing", async (t) => {
    const [ui, elsewhere] = [await servePages(t), await servePages(t)];
    const sidecar = await serve(t, { ui });
    const cloud = await fakeAzure(t, { key: "k", answer: "OK" });
    const owner = await openPage(t, browser(), ui, sidecar.url);
    const other = await openPage(t, browser(), elsewhere, sidecar.url);
    const step = (name, work) => t.test(name, () => other.withTrace(work));

    // Creates data that the page could read or change.
    await owner.withTrace(async () => {
      assert.equal((await owner.call("request", "POST", "/redflow/persistent-storage", { body: STORED })).status, 200);
      await owner.call("startUp");
      assert.equal((await owner.call("sendChat", "chat-node-1", "What is 17 * 3?")).status, 200);
      await owner.until("the answer", 0, (events) => events.some(({ event }) => event === "frame:end"));
    });
    const snapshot = async () => ({
      flow: await sidecar.get("/api/deployment"),
      runs: await sidecar.get("/api/runs?limit=1000"),
      stored: await sidecar.get("/redflow/persistent-storage"),
      chat: await sidecar.get("/chat-node/chat-node-1/history"),
    });
    const before = await snapshot();
    assert.deepEqual(before.flow.flows ?? before.flow.nodes, example());
    assert.equal(before.runs.runs.length, 1);
    assert.equal(before.chat.count, 2);

    /** The requests of the sidecar during the work, by route and status. */
    const countRequests = async (work) => {
      const before = await sidecar.requestCounts();
      await work();
      const changed = Object.entries(await sidecar.requestCounts()).map(([key, count]) => [key, count - (before[key] ?? 0)]);
      return Object.fromEntries(changed.filter(([, count]) => count > 0));
    };

    await step("every request fails", async () => {
      const counts = await countRequests(async () => {
        const all = routes(await sidecar.get("/openapi.json"));
        assert.ok(all.length > 40, `only ${all.length} routes`);
        for (const [method, path, options] of [...calls(cloud.endpoint), ...all]) {
          const outcome = await other.call("requestJson", method, path, options);
          assert.ok(outcome.failed, `${method} ${path}: ${JSON.stringify(outcome)}`);
        }
        assert.ok((await other.call("postInject", "/inject/inject-1")).failed);
      });
      delete counts["/openapi.json 200"];
      assert.deepEqual(Object.keys(counts).filter((key) => !key.endsWith(" 403")), []);
      assert.deepEqual(await other.read("receivedTexts"), []);
    });

    await step("every socket is refused", async () => {
      for (const path of ["/observability", "/admin/observability", "/comms", "/events"]) {
        assert.equal(await other.call("probe", path), "refused", path);
      }
    });

    await step("requests without a CORS preflight have no effect", async () => {
      const body = JSON.stringify({ theme: "light" });
      const counts = await countRequests(async () => {
        assert.equal(await other.call("simpleRequests.image", "/flows"), "no image");
        assert.equal(await other.call("simpleRequests.form", "/inject/inject-1"), "sent");
        // With `no-referrer` the browser does not send the origin.
        for (const options of [{}, { referrerPolicy: "no-referrer" }]) {
          const send = (path, more) => other.call("simpleRequests.fetch", "POST", path, { ...options, ...more });
          for (const attempt of [
            () => send("/inject/inject-1"),
            () => send("/redflow/persistent-storage", { body }),
            () => send("/flows", { body: "[]" }),
            () => send("/chat-node/chat-node-1/clear"),
          ]) {
            // The browser hides the response from the page.
            await assert.rejects(attempt, /Failed to fetch/);
          }
        }
      });
      assert.deepEqual(counts, {
        "/flows 401": 1,
        "/flows 403": 2,
        "/inject/{id} 403": 3,
        "/redflow/persistent-storage 403": 2,
        "/chat-node/{id}/clear 403": 2,
      });
    });

    await step("a domain name that resolves to this machine is refused", async () => {
      // For the browser these are requests to the same origin, so the page could read the responses.
      const context = await browser().newContext({ bypassCSP: true });
      t.after(() => context.close());
      const tab = await context.newPage();
      const opened = await tab.goto(`http://${REBOUND}:${sidecar.port}/`);
      assert.equal(opened.status(), 403);
      const send = async ([method, path]) => {
        const response = await fetch(path, { method });
        return [response.status, (await response.json()).code];
      };
      for (const call of [["GET", "/flows"], ["POST", "/inject/inject-1"], ["GET", "/redflow/persistent-storage"]]) {
        assert.deepEqual(await tab.evaluate(send, call), [403, "HOST_REFUSED"], call.join(" "));
      }
    });

    await step("nothing has changed", async () => {
      assert.deepEqual(await snapshot(), before);
      assert.deepEqual(cloud.requests, []);
    });
  });
}
