// Notifies open editors that the list of runtimes has changed. Limits how often. The notice says no more than that,
// because every editor receives it, also one whose user may not read the list.

import { guard } from "./guard";
import type { Red } from "./red";

/** The topic on /comms. */
const TOPIC = "redflow/runtimes";

/** Milliseconds that a notice waits for further changes. */
const DELAY_MS = 100;

let pending = false;

/** Notifies the editors soon, once for all changes until then. */
export function notifyEditors(RED: Red): void {
  if (pending) {
    return;
  }
  pending = true;
  setTimeout(() => {
    pending = false;
    guard(RED, "the editors could not be notified of a change", () => RED.comms.publish(TOPIC, {}, false));
  }, DELAY_MS).unref();
}
