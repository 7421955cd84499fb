// The port that the Redflow UI posts credentials to, whatever address it was built for.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";

import { origin } from "./kit/servers.mjs";
import { serve } from "./kit/sidecar.mjs";
import { visit } from "./kit/visit.mjs";

const PORT = 1880;

const isFree = () =>
  new Promise((done) => {
    const server = createServer();
    server.on("error", () => done(false));
    server.listen(PORT, "127.0.0.1", () => server.close(() => done(true)));
  });

export function fixedPort(browser) {
  test(`credentials come in at localhost:${PORT}`, async (t) => {
    if (!(await isFree())) {
      const why = `something else listens at 127.0.0.1:${PORT}: end it to have this tested`;
      assert.notEqual(process.env.CI, "true", why);
      console.error(`NOT TESTED: ${why}`);
      t.skip(why);
      return;
    }
    const ui = await origin(t);
    const sidecar = await serve(t, { ui, listen: `127.0.0.1:${PORT}` });
    const page = await visit(t, browser(), ui, `http://localhost:${PORT}`);
    await page.told(async () => {
      const { loaded, probes, socket } = await page.does("startUp");
      assert.deepEqual([loaded.status, probes, socket], [200, ["open", "open"], "open"]);
      const [key, apiKey] = ["node-credentials:scripted-model-1", "key-at-the-fixed-port-0123456789"];
      const put = await page.does("call", "POST", "/redflow/persistent-storage", { body: { [key]: { apiKey } } });
      assert.equal(put.status, 200);
      const { status, body } = await page.does("call", "GET", `/redflow/persistent-storage/${encodeURIComponent(key)}`);
      assert.deepEqual([status, body.value], [200, { apiKey: "__PWRD__" }]);
      const [tried] = await page.does("inject", "inject-1");
      assert.deepEqual([tried.status, tried.body], [200, "OK"]);
      await page.until("the end of the frame", 0, (events) => events.some(({ event }) => event === "frame:end"));
      assert.equal((await sidecar.ask("/api/runs")).runs.length, 1);
    });
  });
}
