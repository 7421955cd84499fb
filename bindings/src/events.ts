// The subscription to a sidecar's events: opens one socket after the other, resumes, retries, gives up.

import { backoff, pause, throwIfAborted } from "./backoff.js";
import type { BackoffTiming } from "./backoff.js";
import { RedflowError } from "./error.js";
import { EventSocket } from "./event-socket.js";
import type { EventsItem, SocketEnd, SocketOptions, SocketTiming } from "./event-socket.js";
import { clientError } from "./http.js";
import type { Transport } from "./http.js";
import { platform } from "./platform.js";
import type { AbortSignalLike, WebSocketConstructor } from "./platform.js";
import { EVENTS_PROTOCOL, TOKEN_PROTOCOL_PREFIX } from "./types.js";
import type { RunId } from "./types.js";

export type { EventsItem } from "./event-socket.js";

/** The times of a subscription, in milliseconds. */
export interface EventsTiming extends SocketTiming, BackoffTiming {}

/** The default times of a subscription. */
export const EVENTS_TIMING: EventsTiming = {
  openMs: 10_000,
  idleMs: 30_000,
  pongMs: 10_000,
  backoffMs: 250,
  backoffMaxMs: 30_000,
};

/** How many messages wait for a reader by default. */
export const EVENTS_BUFFER = 1_000;

/** How many cursors are remembered, to recognise an event that the sidecar sends again. */
const REMEMBERED_CURSORS = 1_024;

/** The state of a subscription. */
export type EventsState =
  /** A socket is being opened, after this many failures in a row. */
  | { state: "connecting"; failures: number }
  /** It is open. */
  | { state: "open"; version: string }
  /** It ended, and the next one is opened after `delayMs`. */
  | { state: "waiting"; failures: number; delayMs: number; error: RedflowError };

/** How to subscribe. */
export interface EventsOptions {
  /** Everything after this cursor; `CURSOR_START` for everything that is stored; only new events if left out. */
  after?: string | undefined;
  /** Only events of these runs. */
  runs?: readonly RunId[] | undefined;
  /** Only events of these types, such as `tool_returned`. */
  types?: readonly string[] | undefined;
  /** Also the deltas of model answers; a slow reader misses some. */
  deltas?: boolean | undefined;
  /** Ends the subscription, which then throws the signal's reason. */
  signal?: AbortSignalLike | undefined;
  /** Replaces the global `WebSocket`; Node.js has one from version 22 on. */
  WebSocket?: WebSocketConstructor | undefined;
  /** Receives every change of the subscription's state. Must not throw. */
  onState?: ((state: EventsState) => void) | undefined;
  /** How many messages may wait for the reader; with more the socket is closed until the reader has taken them. */
  buffer?: number | undefined;
  /** Overrides some of the default times. */
  timing?: Partial<EventsTiming> | undefined;
}

/** Makes any request to the sidecar over HTTP. */
type Probe = (signal: AbortSignalLike | undefined) => Promise<void>;

/**
 * Reads events over one socket after the other. `probe` finds out why the sidecar refused a socket: the platform does
 * not report the response to a refused upgrade.
 */
export async function* readEvents(
  transport: Transport,
  probe: Probe,
  options: EventsOptions,
): AsyncGenerator<EventsItem, void, undefined> {
  const { signal, runs, types, deltas, onState } = options;
  const timing = { ...EVENTS_TIMING, ...options.timing };
  const seen = new SeenCursors();
  let position = options.after;
  let failures = 0;
  for (;;) {
    throwIfAborted(signal);
    onState?.({ state: "connecting", failures });
    const socket = openSocket(transport, options, timing, (hello) => {
      // A subscription to new events starts here, even if the connection is lost before the first event.
      position ??= hello.cursor;
      onState?.({ state: "open", version: hello.version });
      return {
        type: "subscribe",
        after: position,
        ...(runs === undefined ? {} : { runs: [...runs] }),
        ...(types === undefined ? {} : { types: [...types] }),
        ...(deltas ? { deltas } : {}),
      };
    });
    const stop = (): void => socket.close();
    signal?.addEventListener("abort", stop);
    let end: SocketEnd;
    try {
      for (;;) {
        const next = await socket.next();
        throwIfAborted(signal);
        if ("reason" in next) {
          end = next;
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
      socket.close();
    }
    if (end.reason === "full") {
      continue;
    }
    const error = await errorOf(end, probe, signal);
    if (!error.retryable) {
      throw error;
    }
    if (end.reason === "closing" && end.cursor !== undefined && runs !== undefined) {
      // Events of other runs may lie between the last event received and this cursor.
      position = end.cursor;
    }
    failures += 1;
    const delayMs = Math.min(Math.max(error.retryAfterMs ?? 0, backoff(failures, timing)), timing.backoffMaxMs);
    onState?.({ state: "waiting", failures, delayMs, error });
    await pause(delayMs, signal);
  }
}

function openSocket(
  transport: Transport,
  { WebSocket = platform.WebSocket, buffer = EVENTS_BUFFER }: EventsOptions,
  timing: SocketTiming,
  onHello: SocketOptions["onHello"],
): EventSocket {
  if (!WebSocket) {
    throw clientError("This platform has no `WebSocket`: pass one, such as that of the package `ws`.");
  }
  const protocols = [EVENTS_PROTOCOL, ...transport.tokenProtocol(TOKEN_PROTOCOL_PREFIX)];
  // http becomes ws, https becomes wss.
  const url = `${transport.base.replace(/^http/, "ws")}/events`;
  try {
    return new EventSocket({ WebSocket, url, protocols, timing, buffer, onHello });
  } catch (error) {
    throw clientError(transport.scrub(`The WebSocket cannot be opened: ${String(error)}`));
  }
}

/** The error for the end of a socket. */
async function errorOf(
  end: Exclude<SocketEnd, { reason: "full" }>,
  probe: Probe,
  signal: AbortSignalLike | undefined,
): Promise<RedflowError> {
  switch (end.reason) {
    case "closing":
      return end.error;
    case "lost":
      return new RedflowError({ code: "SIDECAR_UNREACHABLE", message: end.message });
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

/** The cursors of the latest events. */
class SeenCursors {
  readonly #cursors = new Set<string>();

  /** Adds a cursor. False if it was there before. */
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
