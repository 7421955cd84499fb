// The events of one run over HTTP, over one connection after the other.

import { backoff, pause } from "./backoff.js";
import type { BackoffTiming } from "./backoff.js";
import { RedflowError } from "./error.js";
import { clientError, isApiError, pathSegment } from "./http.js";
import type { Transport } from "./http.js";
import type { AbortSignalLike } from "./platform.js";
import type { RunDetail, RunEvent, RunId, RunStatus } from "./types.js";

/** The times of a stream, in milliseconds. */
export interface FollowTiming extends BackoffTiming {
  /** After this long without a byte the stream counts as dead. */
  idleMs: number;
}

/** The default times of a stream. */
export const FOLLOW_TIMING: FollowTiming = { idleMs: 60_000, backoffMs: 250, backoffMaxMs: 30_000 };

/** How to follow a run. */
export interface FollowOptions {
  /** Only events whose `seq` is larger. */
  after?: number | undefined;
  /** Ends the stream, which then throws the signal's reason. */
  signal?: AbortSignalLike | undefined;
  /** Overrides some of the default times. */
  timing?: Partial<FollowTiming> | undefined;
}

/** The statuses after which a run emits no event. */
const ENDED: readonly RunStatus[] = ["completed", "stopped", "failed", "damaged"];

/**
 * The events of a run until its end: each once and in order, even if the connection is lost. Retries after transient
 * failures and throws all others.
 */
export async function* followRun(
  transport: Transport,
  id: RunId,
  { after, signal, timing }: FollowOptions,
): AsyncGenerator<RunEvent, void, undefined> {
  const times = { ...FOLLOW_TIMING, ...timing };
  const path = `/api/runs/${pathSegment(id)}`;
  let last = after;
  let failures = 0;
  let ended = false;
  for (;;) {
    let wait = 0;
    try {
      const headers: Record<string, string> = last === undefined ? {} : { "last-event-id": String(last) };
      for await (const { type, data } of transport.stream({ path: `${path}/events`, headers, signal }, times.idleMs)) {
        const event = parseEvent(type, data);
        if (event === undefined || (last !== undefined && event.seq <= last)) {
          continue;
        }
        last = event.seq;
        failures = 0;
        yield event;
        if (event.event.type === "run_finished") {
          return;
        }
      }
      // The stream ended normally: the run ended, or the sidecar stops. The status decides, because a run whose end
      // could not be written has no `run_finished`.
      if (ended) {
        return;
      }
      ended = hasEnded(await transport.json<RunDetail>({ path, signal }));
      failures += ended ? 0 : 1;
    } catch (error) {
      if (!(error instanceof RedflowError && error.retryable)) {
        throw error;
      }
      failures += 1;
      wait = error.retryAfterMs ?? 0;
    }
    if (failures > 0) {
      await pause(Math.min(Math.max(wait, backoff(failures, times)), times.backoffMaxMs), signal);
    }
  }
}

/** An event of the run; nothing for event types that this version does not know. */
function parseEvent(type: string, data: string): RunEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    throw clientError("The stream has an event that is not JSON.", "MESSAGE_INVALID");
  }
  if (isApiError(value)) {
    throw new RedflowError(value);
  }
  const { seq, event } = (value ?? {}) as Partial<RunEvent>;
  if (typeof seq !== "number" || typeof event?.type !== "string") {
    if (type !== "message") {
      return undefined;
    }
    throw clientError("The stream has an event that does not belong to a run.", "MESSAGE_INVALID");
  }
  return value as RunEvent;
}

function hasEnded({ summary: { status }, problem }: RunDetail): boolean {
  return problem !== undefined || ENDED.includes(status);
}
