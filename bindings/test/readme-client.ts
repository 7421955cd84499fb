import { RedflowClient, RedflowError } from "@redflow/bindings";
import type { EventsOptions, JsonValue } from "@redflow/bindings";

/** `redflow serve` prints the address when it starts; `redflow token` prints the token. */
export function connect(url: string, token: string): RedflowClient {
  return new RedflowClient({ url, token });
}

/** Asks the only agent of a flow and prints its events. A second call with the same key returns the same run. */
export async function ask(client: RedflowClient, key: string, payload: JsonValue, print: (line: string) => void) {
  const { runs } = await client.start({ payload }, { idempotencyKey: key });
  const run = runs[0];
  if (!run) {
    throw new Error("nothing was started");
  }
  // Continues after a lost connection, and ends with the run.
  for await (const { seq, event } of client.followRun(run.runId)) {
    print(`${seq} ${event.type}`);
  }
  const { result } = await client.run(run.runId);
  return result?.["payload"];
}

/** Prints the events of all runs of a sidecar. Store the last cursor to miss nothing while you are away. */
export async function watch(client: RedflowClient, options: EventsOptions, print: (line: string) => void) {
  try {
    for await (const item of client.events(options)) {
      if (item.type === "event" && item.event.kind === "run") {
        print(`${item.cursor} ${item.event.event.runId} ${item.event.event.event.type}`);
      }
    }
  } catch (error) {
    // The client handles lost connections itself. An error here needs a decision.
    if (error instanceof RedflowError && (error.code === "EVENTS_GONE" || error.code === "CURSOR_UNKNOWN")) {
      print("there is a gap: look at the runs, then watch again without `after`");
      return;
    }
    throw error;
  }
}
