// The other servers of the tests: origins that serve the test page, and a fake Azure OpenAI.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const FILES = {
  "/": ["text/html; charset=utf-8", "index.html"],
  "/canvas.js": ["text/javascript; charset=utf-8", "canvas.js"],
  "/ui.js": ["text/javascript; charset=utf-8", "ui.js"],
};

async function listen(t, handle) {
  const server = createServer(handle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return server.address().port;
}

/** Serves the test page at a new origin. Returns the origin. */
export async function servePages(t) {
  const port = await listen(t, (request, response) => {
    const [type, name] = FILES[new URL(request.url, "http://localhost").pathname] ?? [];
    if (!name) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": type, "cache-control": "no-store" });
    response.end(readFileSync(new URL(`../page/${name}`, import.meta.url)));
  });
  return `http://localhost:${port}`;
}

/** A fake Azure OpenAI resource that accepts one key and always gives this answer. Records its requests. */
export async function fakeAzure(t, { key, answer }) {
  const requests = [];
  const port = await listen(t, async (request, response) => {
    const parts = [];
    for await (const part of request) {
      parts.push(part);
    }
    const body = JSON.parse(Buffer.concat(parts).toString() || "null");
    requests.push({ method: request.method, url: request.url, key: request.headers["api-key"], body });
    const reply = (status, value) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value));
    };
    if (request.headers["api-key"] !== key) {
      const message = "Access denied due to invalid subscription key or wrong API endpoint.";
      reply(401, { error: { code: "401", message } });
      return;
    }
    const message = { role: "assistant", content: answer };
    reply(200, {
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1,
      model: "gpt-4o",
      choices: [{ index: 0, finish_reason: "stop", message }],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    });
  });
  return { endpoint: `http://127.0.0.1:${port}`, requests };
}
