// A console that is mounted below a path.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as send } from "node:http";

/** A proxy that removes a path. */
async function proxyBelow(t, path, target) {
  const { hostname, port } = new URL(target);
  const optionsOf = ({ url, method, headers }) => {
    const inner = url.startsWith(path) ? url.slice(path.length) || "/" : "/nowhere";
    // The sidecar sees its own address, as behind any proxy that changes paths.
    const own = { host: `${hostname}:${port}`, ...(headers.origin === undefined ? {} : { origin: target }) };
    return { hostname, port, path: inner, method, headers: { ...headers, ...own } };
  };
  const server = createServer((request, response) => {
    request.pipe(
      send(optionsOf(request), (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      }),
    );
  });
  server.on("upgrade", (request, socket) => {
    const forwarded = send(optionsOf(request));
    forwarded.on("upgrade", (answer, inner, head) => {
      const headers = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${headers.join("")}\r\n`);
      socket.write(head);
      inner.pipe(socket).pipe(inner);
      [inner, socket].forEach((one) => one.on("error", () => one.destroy()));
    });
    forwarded.on("error", () => socket.destroy());
    forwarded.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}${path}`;
}

export async function belowPath(t, browser, console) {
  const run = await console.ask("sums", "Below a path");
  const below = await proxyBelow(t, "/agents", console.url());
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(`${below}${await console.signInPath()}#/runs/${run}`);
  await page.getByRole("main").getByRole("heading", { level: 1, name: "Sums" }).waitFor();
  assert.ok(page.url().startsWith(`${below}/`), page.url());
}
