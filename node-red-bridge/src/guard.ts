// Calls into Node-RED from timers, sockets and events, where an uncaught error would end the process. A message from
// outside can make Node-RED itself throw. Logs such errors once.

import { errorText } from "./failure";
import { RecentSet } from "./recent-set";
import type { DoneCallback, Msg, Red, RedNode, Send } from "./red";

/** How many logged sentences are remembered. */
const REMEMBERED = 100;

const logged = new RecentSet(REMEMBERED);

/** Calls `act` and logs what it throws, as "`what`: error". False if it threw. */
export function guard(RED: Pick<Red, "log">, what: string, act: () => void): boolean {
  try {
    act();
    return true;
  } catch (error) {
    logOnce(RED, what, error);
    return false;
  }
}

/** Logs an error, unless the same sentence was logged before. */
export function logOnce(RED: Pick<Red, "log">, what: string, error: unknown): void {
  const text = `[redflow-runtime] ${what}: ${errorText(error, "an unknown error")}`;
  if (logged.add(text)) {
    try {
      RED.log.error(text);
    } catch {
      // There is no other place to report a log that throws.
    }
  }
}

/** Handles the messages of a node. An error fails the message; if that throws too, it is logged. */
export function onInput(RED: Red, node: RedNode, handle: (message: Msg, send: Send, done: DoneCallback) => void): void {
  node.on("input", (message, send, done) => {
    try {
      handle(message, send, done);
    } catch (error) {
      const what = `${node.type} ${node.id} could not take a message (${errorText(error, "unknown")}), nor report that`;
      guard(RED, what, () => done(error));
    }
  });
}
