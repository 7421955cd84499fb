// The fixed port to which the Redflow UI posts credentials, whatever address it was built for.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";

import { servePages } from "./kit/servers.mjs";
import { serve } from "./kit/sidecar.mjs";
import { openPage } from "./kit/ui-page.mjs";

const PORT = 1880;

const isFree = () =>
  new Promise((resolve) => {
    const server = createServer();
    server.on("error", () => resolve(false));
    server.listen(PORT, "127.0.0.1", () => server.close(() => resolve(true)));
  });

export function testFixedPort(browser) {
  test(`accepts credentials at localhost:${PORT}`, async (t) => {
    if (!(await isFree())) {
      const reason = `another program listens at 127.0.0.1:${PORT}: end it to run this test`;
      assert.notEqual(process.env.CI, "true", reason);
      console.error(`NOT TESTED: ${reason}`);
      t.skip(reason);
      return;
    }
    const ui = await servePages(t);
    const sidecar = await serve(t, { ui, listen: `127.0.0.1:${PORT}` });
    const page = await openPage(t, browser(), ui, `http://localhost:${PORT}`);
    await page.withTrace(async () => {
      const { loaded, probes, socket } = await page.call("startUp");
      assert.deepEqual([loaded.status, probes, socket], [200, ["open", "open"], "open"]);
      const [key, apiKey] = ["node-credentials:scripted-model-1", "key-at-the-fixed-port-0123456789"];
      const put = await page.call("request", "POST", "/redflow/persistent-storage", { body: { [key]: { apiKey } } });
      assert.equal(put.status, 200);
      const { status, body } = await page.call("request", "GET", `/redflow/persistent-storage/${encodeURIComponent(key)}`);
      assert.deepEqual([status, body.value], [200, { apiKey: "__PWRD__" }]);
      const [attempt] = await page.call("inject", "inject-1");
      assert.deepEqual([attempt.status, attempt.body], [200, "OK"]);
      await page.until("the end of the frame", 0, (events) => events.some(({ event }) => event === "frame:end"));
      assert.equal((await sidecar.get("/api/runs")).runs.length, 1);
    });
  });
}
