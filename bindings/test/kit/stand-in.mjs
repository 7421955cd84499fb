// A server that says what a test wants it to say: for everything a real sidecar never says.

import { createServer } from "node:http";
import { WebSocketServer } from "ws";

/**
 * Starts one. `answer(request, response)` answers requests; `talk(socket, request, number)` has each socket, which
 * `refuse(request)` may turn away with a status.
 */
export async function standIn(t, { answer, talk, refuse = () => undefined }) {
  const server = createServer((request, response) => (answer ? answer(request, response) : response.end()));
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] });
  let number = 0;
  server.on("upgrade", (request, socket, head) => {
    const status = refuse(request);
    if (status) {
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
    } else {
      sockets.handleUpgrade(request, socket, head, (open) => talk(open, request, ++number));
    }
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => {
    sockets.clients.forEach((client) => client.terminate());
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** Says hello and hears subscriptions: `subscribed(request, say)`. Answers pings. */
export function sidecarSocket(socket, subscribed, cursor = "log.0") {
  const say = (message) => socket.send(JSON.stringify(message));
  socket.on("message", (text) => {
    const request = JSON.parse(String(text));
    if (request.type === "ping") {
      say({ type: "pong", id: request.id });
    } else {
      subscribed(request, say);
    }
  });
  say({ type: "hello", version: "0.0.0", cursor });
}

/** A durable event. */
export const event = (number) => ({
  type: "event",
  cursor: `log.${number}`,
  event: { kind: "flow", at: number, event: { type: "deployed", revision: String(number), agents: 0, refused: 0 } },
});

/** An event of a run. */
export const runEvent = (seq, type = "model_called") => ({
  runId: "run",
  seq,
  at: seq,
  agent: { instance: "local", nodeId: "agent" },
  event: { type, iteration: 1 },
});
