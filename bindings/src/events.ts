// The events of a sidecar, socket after socket: where to go on, when to try again, when to give up.

import { backoff, pause, throwIfAborted } from "./backoff.js";
import type { BackoffTiming } from "./backoff.js";
import { RedflowError } from "./error.js";
import { misuse } from "./http.js";
import type { Transport } from "./http.js";
import { Line } from "./line.js";
import type { Ending, EventsItem, LineTiming } from "./line.js";
import { platform } from "./platform.js";
import type { AbortSignalLike, WebSocketConstructor } from "./platform.js";
import { EVENTS_PROTOCOL, TOKEN_PROTOCOL_PREFIX } from "./types.js";
import type { RunId } from "./types.js";

export type { EventsItem } from "./line.js";

/** The times of a subscription, in milliseconds. */
export interface EventsTiming extends LineTiming, BackoffTiming {}

/** The times of a subscription if nobody says. */
export const EVENTS_TIMING: EventsTiming = {
  openMs: 10_000,
  idleMs: 30_000,
  pongMs: 10_000,
  backoffMs: 250,
  backoffMaxMs: 30_000,
};

/** How many messages wait for a reader if nobody says. */
export const EVENTS_BUFFER = 1_000;

/** How many cursors are remembered, to know an event that comes again. */
const REMEMBERED_CURSORS = 1_024;

/** How a subscription stands. */
export type EventsState =
  /** A socket is being opened; how many in a row came to nothing. */
  | { state: "connecting"; failures: number }
  /** It is open. */
  | { state: "open"; version: string }
  /** It ended, and the next one is opened after a while. */
  | { state: "waiting"; failures: number; delayMs: number; error: RedflowError };

/** How to subscribe. */
export interface EventsOptions {
  /** Everything after this cursor; `CURSOR_START` for everything that is kept; what happens from now on if left out. */
  after?: string | undefined;
  /** Only events of these runs. */
  runs?: readonly RunId[] | undefined;
  /** Also pieces of answers as they come in; a reader who takes his time misses some. */
  deltas?: boolean | undefined;
  /** Ends it; what it throws then is the signal's reason. */
  signal?: AbortSignalLike | undefined;
  /** Takes the place of the global `WebSocket`; Node.js has one from version 22 on. */
  WebSocket?: WebSocketConstructor | undefined;
  /** Is told how the subscription stands. Must not throw. */
  onState?: ((state: EventsState) => void) | undefined;
  /** How many messages may wait for the reader; with more the socket is closed until he has taken them. */
  buffer?: number | undefined;
  /** Other times than the usual ones. */
  timing?: Partial<EventsTiming> | undefined;
}

/**
 * Reads events over one socket after the other. `probe` asks the sidecar over HTTP: of a socket that is refused
 * nobody learns why.
 */
export async function* readEvents(
  transport: Transport,
  probe: (signal: AbortSignalLike | undefined) => Promise<void>,
  options: EventsOptions,
): AsyncGenerator<EventsItem, void, undefined> {
  const { signal, runs, deltas, onState } = options;
  const timing = { ...EVENTS_TIMING, ...options.timing };
  const seen = new Seen();
  let position = options.after;
  let failures = 0;
  for (;;) {
    throwIfAborted(signal);
    onState?.({ state: "connecting", failures });
    const line = open(transport, options, timing, (hello) => {
      // From now on means from here on, however often the connection is lost before the first event.
      position ??= hello.cursor;
      onState?.({ state: "open", version: hello.version });
      return {
        type: "subscribe",
        after: position,
        ...(runs === undefined ? {} : { runs: [...runs] }),
        ...(deltas ? { deltas } : {}),
      };
    });
    const stop = (): void => line.close();
    signal?.addEventListener("abort", stop);
    let ending: Ending;
    try {
      for (;;) {
        const next = await line.next();
        throwIfAborted(signal);
        if ("how" in next) {
          ending = next;
          break;
        }
        if (next.type !== "delta") {
          failures = 0;
          position = next.cursor;
          if (next.type === "event" && !seen.add(next.cursor)) {
            continue;
          }
        }
        yield next;
      }
    } finally {
      signal?.removeEventListener("abort", stop);
      line.close();
    }
    if (ending.how === "full") {
      continue;
    }
    const error = await reason(ending, probe, signal);
    if (!error.retryable) {
      throw error;
    }
    if (ending.how === "closing" && ending.cursor !== undefined && runs !== undefined) {
      // Later than the last event that came, if others came after it that were not asked for.
      position = ending.cursor;
    }
    failures += 1;
    const delayMs = Math.min(Math.max(error.retryAfterMs ?? 0, backoff(failures, timing)), timing.backoffMaxMs);
    onState?.({ state: "waiting", failures, delayMs, error });
    await pause(delayMs, signal);
  }
}

function open(
  transport: Transport,
  { WebSocket = platform.WebSocket, buffer = EVENTS_BUFFER }: EventsOptions,
  timing: LineTiming,
  onHello: ConstructorParameters<typeof Line>[0]["onHello"],
): Line {
  if (!WebSocket) {
    throw misuse("There is no `WebSocket` here: pass one, such as that of the package `ws`.");
  }
  const protocols = [EVENTS_PROTOCOL, ...transport.tokenProtocol(TOKEN_PROTOCOL_PREFIX)];
  // http becomes ws, https becomes wss.
  const url = `${transport.base.replace(/^http/, "ws")}/events`;
  try {
    return new Line({ WebSocket, url, protocols, timing, buffer, onHello });
  } catch (error) {
    throw misuse(transport.scrub(`No socket can be opened here: ${String(error)}`));
  }
}

/** Why there is no line any more. */
async function reason(
  ending: Exclude<Ending, { how: "full" }>,
  probe: (signal: AbortSignalLike | undefined) => Promise<void>,
  signal: AbortSignalLike | undefined,
): Promise<RedflowError> {
  switch (ending.how) {
    case "closing":
      return ending.error;
    case "lost":
      return new RedflowError({ code: "SIDECAR_UNREACHABLE", message: ending.message });
    case "refused":
      try {
        await probe(signal);
      } catch (error) {
        if (error instanceof RedflowError) {
          return error;
        }
        throw error;
      }
      return new RedflowError({ code: "SIDECAR_UNREACHABLE", message: "The sidecar answers, but opens no socket." });
  }
}

/** Cursors, the last ones. */
class Seen {
  readonly #cursors = new Set<string>();

  /** Whether it is new. */
  add(cursor: string): boolean {
    if (this.#cursors.has(cursor)) {
      return false;
    }
    this.#cursors.add(cursor);
    if (this.#cursors.size > REMEMBERED_CURSORS) {
      for (const oldest of this.#cursors) {
        this.#cursors.delete(oldest);
        break;
      }
    }
    return true;
  }
}
