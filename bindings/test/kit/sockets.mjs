// The WebSockets the client is tested with: that of the package `ws`, and the platform's own, which is what browsers
// have, from Node.js 20 on (`scripts/test.mjs` switches it on there).

import { WebSocket } from "ws";

/** Each with its name. */
export const SOCKETS = [{ name: "ws", WebSocket }];
if (globalThis.WebSocket) {
  SOCKETS.push({ name: "the platform's", WebSocket: globalThis.WebSocket });
}
