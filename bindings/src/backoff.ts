// Delays between retries. Does not decide whether to retry.

import { platform } from "./platform.js";
import type { AbortSignalLike } from "./platform.js";

/** How long to wait before trying again. */
export interface BackoffTiming {
  /** The longest first wait, in milliseconds; doubles with every failure in a row. */
  backoffMs: number;
  /** The longest wait of all. */
  backoffMaxMs: number;
}

/** Exponential with full jitter, so that clients that lost the same sidecar do not all reconnect at once. */
export function backoff(failures: number, timing: BackoffTiming): number {
  const longest = Math.min(timing.backoffMaxMs, timing.backoffMs * 2 ** Math.max(0, failures - 1));
  return Math.random() * longest;
}

/** Throws the reason of the signal if it was aborted. */
export function throwIfAborted(signal: AbortSignalLike | undefined): void {
  if (signal?.aborted) {
    throw signal.reason;
  }
}

/** Waits, or throws the reason of the signal when it is aborted. */
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
