// Reads what a page shows, once or live.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { EventsItem, RunId } from "@redflow/bindings";
import { live, readFailure } from "../app.js";

export interface Loaded<T> {
  value: T | undefined;
  error: unknown;
  again: () => void;
}

/** Reads a value when `keys` change. An old value stays until the next one is there. */
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): Loaded<T> {
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
    // What could not be read while the sidecar was away is read when it is back.
    if (isBack && state.error !== undefined) {
      setTurn((old) => old + 1);
    }
  }, [isBack]);
  const again = useCallback(() => setTurn((old) => old + 1), []);
  return { ...state, again };
}

interface LiveOptions {
  runs?: readonly RunId[];
  types?: readonly string[];
  deltas?: boolean;
  read(signal: AbortSignal): Promise<void>;
  take(items: readonly EventsItem[]): void;
}

/** Connects the page to the live events while `keys` stay the same. */
export function useLive(options: LiveOptions, keys: readonly unknown[]): void {
  const latest = useRef(options);
  latest.current = options;
  useEffect(() => {
    readFailure.value = undefined;
    const { runs, types, deltas } = options;
    return live.follow({
      ...(runs === undefined ? {} : { runs }),
      ...(types === undefined ? {} : { types }),
      ...(deltas === undefined ? {} : { deltas }),
      read: async (signal) => {
        await latest.current.read(signal);
        readFailure.value = undefined;
      },
      take: (items) => latest.current.take(items),
    });
  }, keys);
}
