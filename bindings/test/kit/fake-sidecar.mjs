// A fake sidecar that sends whatever a test wants, such as responses that a real one never sends.

import { createServer } from "node:http";
import { WebSocketServer } from "ws";

/**
 * Starts a fake sidecar. `answer(request, response)` handles requests; `onSocket(socket, request, number)` handles
 * sockets; `refuse(request)` may return the status that refuses a socket.
 */
export async function fakeSidecar(t, { answer, onSocket, refuse = () => undefined }) {
  const server = createServer((request, response) => (answer ? answer(request, response) : response.end()));
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => [...offered][0] });
  let number = 0;
  server.on("upgrade", (request, socket, head) => {
    const status = refuse(request);
    if (status) {
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
    } else {
      sockets.handleUpgrade(request, socket, head, (open) => onSocket(open, request, ++number));
    }
  });
  await new Promise((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => {
    for (const client of sockets.clients) {
      client.terminate();
    }
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** Sends hello, answers pings and passes subscriptions to `onSubscribe(request, send)`. */
export function serveEvents(socket, onSubscribe, cursor = "log.0") {
  const send = (message) => socket.send(JSON.stringify(message));
  socket.on("message", (text) => {
    const request = JSON.parse(String(text));
    if (request.type === "ping") {
      send({ type: "pong", id: request.id });
    } else {
      onSubscribe(request, send);
    }
  });
  send({ type: "hello", version: "0.0.0", cursor });
}

/** An event that the sidecar stores. */
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
