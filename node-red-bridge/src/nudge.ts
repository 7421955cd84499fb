// Tells open editors that the list of runtimes has changed. Owns how often; never says what has changed: every editor
// hears it, also one whose user may not read it.

import { guarded } from "./guard";
import type { Red } from "./red";

/** The topic on /comms. */
const TOPIC = "redflow/runtimes";

/** Milliseconds that a change waits, so that many are told at once. */
const TELL_AFTER_MS = 100;

let telling = false;

/** Something in the list of runtimes is another now. */
export function tellEditors(RED: Red): void {
  if (telling) {
    return;
  }
  telling = true;
  setTimeout(() => {
    telling = false;
    guarded(RED, "the editors could not be told of a change", () => RED.comms.publish(TOPIC, {}, false));
  }, TELL_AFTER_MS).unref();
}
