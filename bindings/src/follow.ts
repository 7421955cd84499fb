// The events of one run over HTTP, connection after connection.

import { backoff, pause } from "./backoff.js";
import type { BackoffTiming } from "./backoff.js";
import { RedflowError } from "./error.js";
import { isApiError, misuse, part } from "./http.js";
import type { Transport } from "./http.js";
import type { AbortSignalLike } from "./platform.js";
import type { RunDetail, RunEvent, RunId, RunStatus } from "./types.js";

/** The times of a stream, in milliseconds. */
export interface FollowTiming extends BackoffTiming {
  /** After this long without a byte the stream is taken for dead. */
  idleMs: number;
}

/** The times of a stream if nobody says. */
export const FOLLOW_TIMING: FollowTiming = { idleMs: 60_000, backoffMs: 250, backoffMaxMs: 30_000 };

/** How to follow a run. */
export interface FollowOptions {
  /** Only events whose `seq` is larger. */
  after?: number | undefined;
  /** Ends it; what it throws then is the signal's reason. */
  signal?: AbortSignalLike | undefined;
  /** Other times than the usual ones. */
  timing?: Partial<FollowTiming> | undefined;
}

/**
 * The events of a run until it is over: each once and in order, whatever happens to the connection. Failures that
 * pass are waited out; all others are thrown.
 */
export async function* follow(
  transport: Transport,
  id: RunId,
  { after, signal, timing }: FollowOptions,
): AsyncGenerator<RunEvent, void, undefined> {
  const times = { ...FOLLOW_TIMING, ...timing };
  const path = `/api/runs/${part(id)}`;
  let last = after;
  let failures = 0;
  let over = false;
  for (;;) {
    let wait = 0;
    try {
      const headers: Record<string, string> = last === undefined ? {} : { "last-event-id": String(last) };
      for await (const { type, data } of transport.stream({ path: `${path}/events`, headers, signal }, times.idleMs)) {
        const event = read(type, data);
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
      // The stream ended, and well. That may be the run's end or a sidecar that stops; a run whose end could not be
      // written has no last event.
      if (over) {
        return;
      }
      over = isOver(await transport.json<RunDetail>({ path, signal }));
      failures += over ? 0 : 1;
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

/** An event of the run; nothing for events of kinds that are not known here. */
function read(type: string, data: string): RunEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    throw misuse("The stream has an event that is not JSON.", "MESSAGE_INVALID");
  }
  if (isApiError(value)) {
    throw new RedflowError(value);
  }
  const { seq, event } = (value ?? {}) as Partial<RunEvent>;
  if (typeof seq !== "number" || typeof event?.type !== "string") {
    if (type !== "message") {
      return undefined;
    }
    throw misuse("The stream has an event that is not one of a run.", "MESSAGE_INVALID");
  }
  return value as RunEvent;
}

/** Whether nothing more comes from a run. */
function isOver({ summary: { status }, problem }: RunDetail): boolean {
  const ended: readonly RunStatus[] = ["completed", "stopped", "failed", "damaged"];
  return problem !== undefined || ended.includes(status);
}
