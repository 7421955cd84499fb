import { RedflowClient, RedflowError } from "@redflow/bindings";
import type { EventsOptions, JsonValue } from "@redflow/bindings";

/** As `redflow serve` says when it starts; `redflow token` prints the token. */
export function connect(url: string, token: string): RedflowClient {
  return new RedflowClient({ url, token });
}

/** Asks the one agent of a flow and tells what it does. Asked again with the same key, it is the same run. */
export async function ask(client: RedflowClient, key: string, payload: JsonValue, tell: (line: string) => void) {
  const { runs } = await client.start({ payload }, { idempotencyKey: key });
  const run = runs[0];
  if (!run) {
    throw new Error("nothing was started");
  }
  // Goes on where it was if the connection is lost, and ends with the run.
  for await (const { seq, event } of client.followRun(run.runId)) {
    tell(`${seq} ${event.type}`);
  }
  const { result } = await client.run(run.runId);
  return result?.["payload"];
}

/** Tells what happens in the runs of a sidecar. Who keeps the last cursor misses nothing while away. */
export async function watch(client: RedflowClient, options: EventsOptions, tell: (line: string) => void) {
  try {
    for await (const item of client.events(options)) {
      if (item.type === "event" && item.event.kind === "run") {
        tell(`${item.cursor} ${item.event.event.runId} ${item.event.event.event.type}`);
      }
    }
  } catch (error) {
    // A lost connection is no error. What is thrown needs somebody to decide.
    if (error instanceof RedflowError && (error.code === "EVENTS_GONE" || error.code === "CURSOR_UNKNOWN")) {
      tell("there is a gap: look at the runs, then watch again without `after`");
      return;
    }
    throw error;
  }
}
