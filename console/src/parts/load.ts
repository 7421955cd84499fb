// Reads what a page shows, once or live.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { live, readFailure } from "../app.js";
import type { Interest } from "../live.js";

export interface LoadState<T> {
  value: T | undefined;
  error: unknown;
  again: () => void;
}

/** Reads a value when `keys` change. An old value stays until the next one is there. */
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): LoadState<T> {
  const [state, setState] = useState<{ value: T | undefined; error: unknown }>({ value: undefined, error: undefined });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    read(stop.signal).then(
      (value) => (stop.signal.aborted ? undefined : setState({ value, error: undefined })),
      (error: unknown) => (stop.signal.aborted ? undefined : setState((old) => ({ value: old.value, error }))),
    );
    return () => stop.abort(new Error("The page has changed."));
  }, [...keys, turn]);
  const isBack = live.state.value.kind === "open";
  useEffect(() => {
    // What could not be read while the sidecar was offline is read when it is back.
    if (isBack && state.error !== undefined) {
      setTurn((old) => old + 1);
    }
  }, [isBack]);
  const again = useCallback(() => setTurn((old) => old + 1), []);
  return { ...state, again };
}

/** How a page that is connected reads more. What it does after the page was left has no effect. */
export interface LivePage {
  /** Reads the page again, at the latest after `delayMs`. */
  refresh: (delayMs?: number) => void;
  /** Reads something else of the page. Its events wait meanwhile. */
  load: (read: (signal: AbortSignal) => Promise<void>) => Promise<void>;
}

/** Connects the page to the live events while `keys` stay the same. */
export function useLive(options: Interest, keys: readonly unknown[]): LivePage {
  const latest = useRef(options);
  latest.current = options;
  const followed = useRef<Interest | undefined>(undefined);
  useEffect(() => {
    const interest: Interest = {
      ...options,
      read: async (signal, hasMissed) => {
        await latest.current.read(signal, hasMissed);
        if (!signal.aborted) {
          readFailure.value = undefined;
        }
      },
      take: (items) => latest.current.take(items),
    };
    followed.current = interest;
    return live.follow(interest);
  }, keys);
  return useMemo(
    () => ({
      refresh: (delayMs) => followed.current && live.refresh(followed.current, delayMs),
      load: async (read) => followed.current && live.load(followed.current, read),
    }),
    [],
  );
}
