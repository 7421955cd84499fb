// Runs the examples of the README and of the doc comments with the real sidecar. `npm run examples` extracts and
// compiles them.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import test from "node:test";

import { CURSOR_START } from "@redflow/bindings";
import { answer, line } from "../dist-test/examples/readme-1.js";
import { ask, connect, watch } from "../dist-test/examples/readme-2.js";
import * as samples from "../dist-test/types.test.js";
import { rejection } from "./kit/collect.mjs";
import { TOKEN, serve, sums } from "./kit/sidecar.mjs";
import { SOCKETS } from "./kit/sockets.mjs";

const LIMIT = { timeout: 120_000 };
const [{ WebSocket }] = SOCKETS;

/** The events of a run of `sums(1)`. */
const EVENTS = [
  "run_started",
  "model_called",
  "model_answered",
  "tool_called",
  "tool_returned",
  "model_called",
  "model_answered",
  "run_finished",
];

/** What each example of a doc comment prints. They run in this order, with one sidecar. */
const PRINTED = {
  "client-1.js": [["42"]],
  "client-2.js": [[true]],
  "client-3.js": [["Desk", "completed"]],
  "client-4.js": [["Desk", 1, 2]],
  "client-5.js": EVENTS.map((type, index) => [index + 1, type]),
  "client-6.js": [...EVENTS, ...EVENTS].map((type) => [type]),
  "error-1.js": [[404, false]],
};

test("the examples of the doc comments work", LIMIT, async (t) => {
  const folder = new URL("../dist-test/examples/", import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith(".js"));
  assert.deepEqual(names.sort(), [...Object.keys(PRINTED), "readme-1.js", "readme-2.js"]);
  const { url, client } = await serve(t, { flow: sums(1) });
  const own = globalThis.WebSocket;
  globalThis.WebSocket = WebSocket;
  t.after(() => (globalThis.WebSocket = own));
  for (const [name, expected] of Object.entries(PRINTED)) {
    const { run } = await import(new URL(name, folder).href);
    const log = t.mock.method(console, "log", () => undefined);
    await run(client, url, TOKEN);
    log.mock.restore();
    assert.deepEqual(log.mock.calls.map((call) => call.arguments), expected, name);
  }
});

test("the examples of the README work without a sidecar", () => {
  assert.equal(answer(samples.output), "42");
  assert.equal(answer(samples.failed), "TOOL_INPUT_INVALID: The tool input breaks the tool's schema.");
  assert.equal(line(samples.event), "run_started");
});

test("the examples of the README work with a sidecar", LIMIT, async (t) => {
  const { url } = await serve(t, { flow: sums(1) });
  const client = connect(url, TOKEN);
  const lines = [];
  assert.equal(await ask(client, "key", "6 * 7?", (line) => lines.push(line)), "42");
  assert.equal(lines[0], "1 run_started");
  assert.match(lines.at(-1), /run_finished$/);
  assert.equal(await ask(client, "key", "6 * 7?", () => undefined), "42");
  assert.equal((await client.runs()).runs.length, 1);

  const controller = new AbortController();
  const seen = [];
  const options = { WebSocket, after: CURSOR_START, signal: controller.signal };
  const print = (line) => (seen.push(line), line.endsWith("run_finished") && controller.abort());
  assert.equal((await rejection(watch(client, options, print))).name, "AbortError");
  assert.equal(seen.length, lines.length);
  await watch(client, { WebSocket, after: "elsewhere.1" }, (line) => seen.push(line));
  assert.match(seen.at(-1), /^there is a gap/);
});
