// The live connection of a tab: one socket, whatever the page. A page says which events it needs and how it is read. After the
// sidecar's hello the page is read, then it takes the events after that hello. So nothing is missed; doubles are possible.

import { signal } from "@preact/signals";
import { RedflowError } from "@redflow/bindings";
import type { EventsItem, EventsOptions, RunId } from "@redflow/bindings";

/** The least time between two deliveries: a page is drawn at most four times a second. */
export const DELIVERY_MS = 250;
/** How long a hidden page stays connected. */
export const HIDDEN_MS = 60_000;
/** The most items that wait for a page that is being read. With more, the page is read again. */
export const MAX_HELD = 5_000;
/** The wait after a failure that is not the connection's. */
const FAILURE_MS = 5_000;

/** The events that a list needs: starts, waits and ends. */
export const LIST_TYPES: readonly string[] = ["run_started", "waiting_for_outcome", "run_finished"];

/** What a page needs of the live connection. */
export interface Interest {
  runs?: readonly RunId[];
  types?: readonly string[];
  deltas?: boolean;
  /** Reads the page. */
  read(signal: AbortSignal): Promise<void>;
  /** Takes the items that came since the last delivery. */
  take(items: readonly EventsItem[]): void;
}

/** What a page without events needs: to know that the sidecar is away, or that the session has ended. */
const WATCH: Interest = {
  types: ["deployed"],
  read: async () => undefined,
  take: () => undefined,
};

export type LiveState =
  | { kind: "connecting" }
  | { kind: "open" }
  /** The sidecar does not answer. */
  | { kind: "away"; since: number; nextTryAt: number; error: RedflowError };

/** What the connection needs of its surroundings. */
export interface LiveHost {
  events(options: EventsOptions): AsyncIterable<EventsItem>;
  now(): number;
  setTimeout(call: () => void, ms: number): number;
  clearTimeout(timer: number): void;
  /** Called when the session has ended. */
  onSignedOut(): void;
  /** Called when a page cannot be read. */
  onFailure(error: unknown): void;
}

export class Live {
  readonly state = signal<LiveState>({ kind: "connecting" });
  readonly #host: LiveHost;
  #interest: Interest | undefined;
  #watchers = 0;
  #stop: AbortController | undefined;
  #cursor: string | undefined;
  #held: EventsItem[] = [];
  #isReading = false;
  #mustReadAgain = false;
  #timer: number | undefined;
  #hiddenTimer: number | undefined;
  #isHidden = false;
  /** Whether the page of this interest was read at least once. */
  #wasRead = false;

  constructor(host: LiveHost) {
    this.#host = host;
  }

  /** Connects for a page. Returns how to end that. */
  follow(interest: Interest): () => void {
    this.#connect(interest);
    return () => {
      if (this.#interest === interest) {
        this.#connect(this.#watchers > 0 ? WATCH : undefined);
      }
    };
  }

  /** Stays connected also while no page needs events. Returns how to end that. */
  watch(): () => void {
    this.#watchers += 1;
    if (this.#interest === undefined) {
      this.#connect(WATCH);
    }
    return () => {
      this.#watchers -= 1;
      if (this.#watchers === 0 && this.#interest === WATCH) {
        this.#connect(undefined);
      }
    };
  }

  /** Tries again now. */
  retry(): void {
    this.#open();
  }

  /** Tells that the page is visible or hidden. A page that stays hidden is disconnected, and resumed where it was. */
  setHidden(isHidden: boolean): void {
    this.#clear("hidden");
    if (isHidden) {
      this.#hiddenTimer = this.#host.setTimeout(() => {
        this.#isHidden = true;
        this.#close();
      }, HIDDEN_MS);
    } else if (this.#isHidden) {
      this.#isHidden = false;
      this.retry();
    }
  }

  #connect(interest: Interest | undefined): void {
    this.#interest = interest;
    this.#cursor = undefined;
    this.#wasRead = false;
    this.#open();
  }

  #open(): void {
    this.#close();
    if (this.#isHidden || this.#interest === undefined) {
      return;
    }
    const stop = new AbortController();
    this.#stop = stop;
    void this.#run(stop.signal);
  }

  #close(): void {
    this.#stop?.abort(new Error("The page has no use for the connection."));
    this.#stop = undefined;
    this.#held = [];
    this.#isReading = false;
    this.#mustReadAgain = false;
    this.#clear("delivery");
  }

  #clear(which: "delivery" | "hidden"): void {
    const timer = which === "delivery" ? this.#timer : this.#hiddenTimer;
    if (timer !== undefined) {
      this.#host.clearTimeout(timer);
    }
    if (which === "delivery") {
      this.#timer = undefined;
    } else {
      this.#hiddenTimer = undefined;
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    const interest = this.#interest;
    if (interest === undefined) {
      return;
    }
    const { runs, types, deltas } = interest;
    const after = this.#cursor;
    const options: EventsOptions = {
      signal,
      runs,
      types,
      deltas,
      after,
      onState: (state) => {
        if (signal.aborted) {
          return;
        }
        if (state.state === "open") {
          this.state.value = { kind: "open" };
          void this.#read(interest, signal);
        } else if (state.state === "waiting") {
          this.#setAway(state.error, state.delayMs);
          // A proxy without sockets still lets the page be read.
          if (!this.#wasRead) {
            void this.#read(interest, signal);
          }
        }
      },
    };
    try {
      for await (const item of this.#host.events(options)) {
        if (item.type !== "delta") {
          this.#cursor = item.cursor;
        }
        this.#hold(item, interest, signal);
      }
    } catch (error) {
      if (!signal.aborted) {
        this.#fail(error, signal);
      }
    }
  }

  #fail(error: unknown, signal: AbortSignal): void {
    const problem = error instanceof RedflowError ? error : new RedflowError({ code: "INTERNAL", message: String(error) });
    if (problem.code === "UNAUTHORIZED") {
      this.#host.onSignedOut();
      return;
    }
    // The events since the cursor are gone, or the socket is refused for another reason: begin anew.
    this.#cursor = undefined;
    const delay = problem.code === "EVENTS_GONE" || problem.code === "CURSOR_UNKNOWN" ? 0 : FAILURE_MS;
    if (delay > 0) {
      this.#setAway(problem, delay);
    }
    this.#host.setTimeout(() => {
      if (!signal.aborted) {
        this.#open();
      }
    }, delay);
  }

  #setAway(error: RedflowError, delayMs: number): void {
    const { value } = this.state;
    const since = value.kind === "away" ? value.since : this.#host.now();
    this.state.value = { kind: "away", since, nextTryAt: this.#host.now() + delayMs, error };
  }

  async #read(interest: Interest, signal: AbortSignal): Promise<void> {
    this.#isReading = true;
    this.#wasRead = true;
    try {
      do {
        this.#mustReadAgain = false;
        await interest.read(signal);
      } while (this.#mustReadAgain && !signal.aborted);
    } catch (error) {
      if (!signal.aborted) {
        if (error instanceof RedflowError && error.code === "UNAUTHORIZED") {
          this.#host.onSignedOut();
        } else {
          this.#host.onFailure(error);
        }
      }
    } finally {
      if (!signal.aborted) {
        this.#isReading = false;
        this.#schedule(interest, signal);
      }
    }
  }

  #hold(item: EventsItem, interest: Interest, signal: AbortSignal): void {
    if (item.type === "caught_up") {
      return;
    }
    if (this.#held.length >= MAX_HELD) {
      this.#held = [];
      if (this.#isReading) {
        this.#mustReadAgain = true;
      } else {
        void this.#read(interest, signal);
      }
    }
    this.#held.push(item);
    this.#schedule(interest, signal);
  }

  #schedule(interest: Interest, signal: AbortSignal): void {
    if (this.#timer !== undefined || this.#isReading || this.#held.length === 0) {
      return;
    }
    this.#timer = this.#host.setTimeout(() => {
      this.#timer = undefined;
      if (signal.aborted || this.#isReading) {
        return;
      }
      const items = this.#held;
      this.#held = [];
      interest.take(items);
    }, DELIVERY_MS);
  }
}
