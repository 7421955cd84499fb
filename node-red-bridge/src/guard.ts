// Calls into Node-RED from where nobody would catch what they throw: timers, sockets and events. A message that a
// stranger made can make Node-RED itself throw, and that must not end it. Owns how that is said; mends nothing.

import { wordsOf } from "./failure";
import { Recent } from "./recent";
import type { Done, Red, RedNode, Send, Msg } from "./red";

/** Sentences that are not said again. */
const REMEMBERED = 100;

const said = new Recent(REMEMBERED);

/** Does something, and gives whether it went well. What is thrown is logged once and goes no further. */
export function guarded(RED: Pick<Red, "log">, what: string, act: () => void): boolean {
  try {
    act();
    return true;
  } catch (error) {
    report(RED, what, error);
    return false;
  }
}

/** Says once that something was thrown. */
export function report(RED: Pick<Red, "log">, what: string, error: unknown): void {
  const text = `[redflow-runtime] ${what}: ${wordsOf(error, "something was thrown that is no error")}`;
  if (said.add(text)) {
    try {
      RED.log.error(text);
    } catch {
      // A log that throws cannot be told of it.
    }
  }
}

/** Takes a node's messages. What is thrown fails the message, and if even that throws, it is logged. */
export function onInput(RED: Red, node: RedNode, take: (message: Msg, send: Send, done: Done) => void): void {
  node.on("input", (message, send, done) => {
    try {
      take(message, send, done);
    } catch (error) {
      const what = `${node.type} ${node.id} could not take a message (${wordsOf(error, "unknown")}), nor say so`;
      guarded(RED, what, () => done(error));
    }
  });
}
