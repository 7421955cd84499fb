// A fake sidecar: a server for the bridge socket and HTTP requests that records what it receives.

import { createServer } from "node:http";
import { WebSocketServer } from "ws";
import { DEFAULT_LIMITS, PROTOCOL } from "../../dist/bridge-session.js";

/**
 * Starts a fake sidecar that sends welcome. `answer` returns the reply to a message, `http` the status and body for a
 * request.
 */
export async function fakeSidecar(t, answer = () => undefined, http = () => [404, {}]) {
  const requests = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (part) => (text += part));
    request.on("end", () => {
      const { method, url, headers } = request;
      const received = { method, url, headers, body: text === "" ? undefined : JSON.parse(text) };
      requests.push(received);
      const [status, value] = http(received);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    });
  });
  const sockets = new WebSocketServer({ server, path: "/bridge", handleProtocols: () => PROTOCOL });
  const messages = [];
  const waiting = new Set();
  sockets.on("connection", (socket) => {
    socket.on("message", (data) => {
      const message = JSON.parse(String(data));
      messages.push(message);
      if (message.type === "hello") {
        const session = `s${messages.length}`;
        socket.send(JSON.stringify({ type: "welcome", version: "9", session, received: 0, limits: DEFAULT_LIMITS }));
      }
      const reply = answer(message);
      if (reply !== undefined) {
        socket.send(JSON.stringify(reply));
      }
      waiting.forEach((check) => check());
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    sockets.clients.forEach((socket) => socket.terminate());
    server.closeAllConnections();
    server.close();
  });
  /** Resolves with the messages for which `matches` is true, when there is one. */
  const untilMessage = (matches) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no such message, only ${JSON.stringify(messages)}`)), 10_000);
      const check = () => {
        const found = messages.filter(matches);
        if (found.length > 0) {
          clearTimeout(timer);
          waiting.delete(check);
          resolve(found);
        }
      };
      waiting.add(check);
      check();
    });
  return { url: `http://127.0.0.1:${server.address().port}`, messages, requests, untilMessage, connections: () => sockets.clients.size };
}
