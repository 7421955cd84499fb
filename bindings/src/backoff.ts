// Waiting before the next try. Decides nothing about whether there is one.

import { platform } from "./platform.js";
import type { AbortSignalLike } from "./platform.js";

/** How long to wait before trying again. */
export interface BackoffTiming {
  /** The most the first wait may take, in milliseconds; doubles with every failure in a row. */
  backoffMs: number;
  /** The most any wait may take. */
  backoffMaxMs: number;
}

/** Exponential with full jitter: clients that lost the same sidecar do not come back all at once. */
export function backoff(failures: number, timing: BackoffTiming): number {
  const most = Math.min(timing.backoffMaxMs, timing.backoffMs * 2 ** Math.max(0, failures - 1));
  return Math.random() * most;
}

/** Throws the reason of a signal that was given. */
export function throwIfAborted(signal: AbortSignalLike | undefined): void {
  if (signal?.aborted) {
    throw signal.reason;
  }
}

/** Waits, or throws the reason of the signal. */
export function pause(ms: number, signal: AbortSignalLike | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      platform.clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = platform.setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) {
      stop();
    } else {
      signal?.addEventListener("abort", stop);
    }
  });
}
