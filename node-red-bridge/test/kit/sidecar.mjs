// The socket of a sidecar, and what it answers over HTTP, as a server that notes what it hears.

import { createServer } from "node:http";
import { WebSocketServer } from "ws";
import { DEFAULT_LIMITS, PROTOCOL } from "../../dist/conversation.js";

/**
 * A sidecar that says welcome and notes what it hears. `answer` gives what it says to a message, `http` what it answers to
 * a request: a status and a value.
 */
export async function sidecar(t, answer = () => undefined, http = () => [404, {}]) {
  const requests = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (part) => (text += part));
    request.on("end", () => {
      const { method, url, headers } = request;
      const asked = { method, url, headers, body: text === "" ? undefined : JSON.parse(text) };
      requests.push(asked);
      const [status, value] = http(asked);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    });
  });
  const sockets = new WebSocketServer({ server, path: "/bridge", handleProtocols: () => PROTOCOL });
  const heard = [];
  const waiting = new Set();
  sockets.on("connection", (socket) => {
    socket.on("message", (data) => {
      const message = JSON.parse(String(data));
      heard.push(message);
      if (message.type === "hello") {
        const session = `s${heard.length}`;
        socket.send(JSON.stringify({ type: "welcome", version: "9", session, received: 0, limits: DEFAULT_LIMITS }));
      }
      const said = answer(message);
      if (said !== undefined) {
        socket.send(JSON.stringify(said));
      }
      waiting.forEach((look) => look());
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    sockets.clients.forEach((socket) => socket.terminate());
    server.closeAllConnections();
    server.close();
  });
  const until = (wanted) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`never heard; only ${JSON.stringify(heard)}`)), 10_000);
      const look = () => {
        const found = heard.filter(wanted);
        if (found.length > 0) {
          clearTimeout(timer);
          waiting.delete(look);
          resolve(found);
        }
      };
      waiting.add(look);
      look();
    });
  return { url: `http://127.0.0.1:${server.address().port}`, heard, requests, until };
}
