// The WebSocket implementations that the tests use: the package `ws`, and from Node.js 20 on the platform's own, which
// behaves like that of a browser (`scripts/test.mjs` switches it on).

import { WebSocket } from "ws";

export const SOCKETS = [{ name: "ws", WebSocket }];
if (globalThis.WebSocket) {
  SOCKETS.push({ name: "the platform's", WebSocket: globalThis.WebSocket });
}
