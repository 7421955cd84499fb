// The number of runs that wait for a person, which the menu shows on every page.

import { signal } from "@preact/signals";
import type { EventsItem, RunId, RunList } from "@redflow/bindings";
import { changesWaiting, runEvents } from "./pages/runs/list.js";

/** The most waiting runs that are counted. */
export const MOST_WAITING = 200;
/** The least time between two reads. */
const REFRESH_MS = 1_000;

export class WaitingCount {
  /** The number; undefined before it is known. */
  readonly value = signal<{ count: number; hasMore: boolean } | undefined>(undefined);
  readonly #list: (limit: number, signal: AbortSignal) => Promise<RunList>;
  #waiting: ReadonlySet<RunId> = new Set();
  #stop: AbortController | undefined;
  #timer: number | undefined;

  constructor(list: (limit: number, signal: AbortSignal) => Promise<RunList>) {
    this.#list = list;
  }

  /** Counts anew. An earlier count that is not there yet is given up. */
  async read(): Promise<void> {
    this.#stop?.abort(new Error("The runs are counted anew."));
    const stop = new AbortController();
    this.#stop = stop;
    try {
      const { runs, next } = await this.#list(MOST_WAITING, stop.signal);
      if (!stop.signal.aborted) {
        this.#waiting = new Set(runs.map(({ runId }) => runId));
        this.value.value = { count: runs.length, hasMore: next !== undefined };
      }
    } catch {
      // Without the number the menu is still of use.
    }
  }

  /** Counts anew soon if the events change the number. */
  take(items: readonly EventsItem[]): void {
    if (this.#timer === undefined && changesWaiting(runEvents(items), this.#waiting)) {
      this.#timer = window.setTimeout(() => {
        this.#timer = undefined;
        void this.read();
      }, REFRESH_MS);
    }
  }
}
