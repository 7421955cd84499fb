// The live connection of a tab: one socket, whatever the page. A page says which events it needs and how it is read. After the
// sidecar's hello the page is read, then it takes the events after that hello. So nothing is missed; doubles are possible.
// Whatever else a page reads goes through `refresh` and `load`: one read after the other, and events wait meanwhile. So no
// answer is older than an event that the page has taken.

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

/** The events that a list needs: starts, waits and ends. A wait ends when the call returns. */
export const LIST_TYPES: readonly string[] = ["run_started", "waiting_for_outcome", "tool_returned", "run_finished"];

/** What a page needs of the live connection. */
export interface Interest {
  runs?: readonly RunId[];
  types?: readonly string[];
  deltas?: boolean;
  /** Reads the page. With `hasMissed` events are lost, so that what was read before may be out of date. */
  read(signal: AbortSignal, hasMissed: boolean): Promise<void>;
  /** Takes the items that came since the last delivery. */
  take(items: readonly EventsItem[]): void;
}

/** What a page without events needs: to know that the sidecar is offline, or that the session has ended. */
const WATCH: Interest = {
  types: ["deployed"],
  read: async () => undefined,
  take: () => undefined,
};

export type LiveState =
  | { kind: "connecting" }
  | { kind: "open" }
  /** The sidecar does not answer. */
  | { kind: "offline"; since: number; nextTryAt: number; error: RedflowError };

/** What the connection needs of its surroundings. */
export interface LiveHost {
  events(options: EventsOptions): AsyncIterable<EventsItem>;
  now(): number;
  setTimeout(call: () => void, ms: number): number;
  clearTimeout(timer: number): void;
  /** The types of the events that `onItems` needs, unless a page follows single runs. */
  allTypes: readonly string[];
  /** Takes all items, whatever the page needs. */
  onItems(items: readonly EventsItem[]): void;
  /** Called at each hello of the sidecar. */
  onOpen(version: string): void;
  /** Called when the session has ended. */
  onSignedOut(): void;
  /** Called when a page cannot be read; without an error when another page is followed. */
  onFailure(error?: unknown): void;
}

/** Whether an item is of one of these types. Without types all are. */
function isOf(item: EventsItem, types: readonly string[] | undefined): boolean {
  if (types === undefined || item.type !== "event") {
    return true;
  }
  const { event } = item;
  return types.includes(event.kind === "run" ? event.event.event.type : event.event.type);
}

export class Live {
  readonly state = signal<LiveState>({ kind: "connecting" });
  readonly #host: LiveHost;
  #interest: Interest | undefined;
  #watchers = 0;
  #stop: AbortController | undefined;
  #cursor: string | undefined;
  #held: EventsItem[] = [];
  /** Ends the reads of this page, which run one after the other. */
  #reads = new AbortController();
  #lastRead: Promise<void> = Promise.resolve();
  #readCount = 0;
  /** Whether a read of the page waits for its turn. */
  #isPageDue = false;
  #deliveryTimer: number | undefined;
  #refreshTimer: number | undefined;
  #hiddenTimer: number | undefined;
  #isHidden = false;
  /** Whether the page of this interest was read at least once. */
  #wasRead = false;
  /** Whether events were lost since the page was read. */
  #hasMissed = false;

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

  /** Reads a page again, at the latest after `delayMs`. Does nothing for a page that is no longer shown. */
  refresh(interest: Interest, delayMs = 0): void {
    if (interest !== this.#interest || this.#stop === undefined) {
      return;
    }
    if (delayMs === 0) {
      this.#readPage(interest);
      return;
    }
    this.#refreshTimer ??= this.#host.setTimeout(() => {
      this.#refreshTimer = undefined;
      this.#readPage(interest);
    }, delayMs);
  }

  /** Reads more for a page that is still shown. */
  async load(interest: Interest, read: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (interest === this.#interest && this.#stop !== undefined) {
      await this.#read(interest, read);
    }
  }

  /** Tells that the page is visible or hidden. A page that stays hidden is disconnected, and resumed where it was. */
  setHidden(isHidden: boolean): void {
    this.#hiddenTimer = this.#clear(this.#hiddenTimer);
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
    this.#hasMissed = false;
    this.#host.onFailure();
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
    const reason = new Error("The page has no use for the connection.");
    this.#stop?.abort(reason);
    this.#stop = undefined;
    this.#held = [];
    this.#endReads(reason);
    this.#deliveryTimer = this.#clear(this.#deliveryTimer);
  }

  #endReads(reason: Error): void {
    this.#reads.abort(reason);
    this.#reads = new AbortController();
    this.#lastRead = Promise.resolve();
    this.#readCount = 0;
    this.#isPageDue = false;
    this.#refreshTimer = this.#clear(this.#refreshTimer);
  }

  #clear(timer: number | undefined): undefined {
    if (timer !== undefined) {
      this.#host.clearTimeout(timer);
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    const interest = this.#interest;
    if (interest === undefined) {
      return;
    }
    const { runs, deltas } = interest;
    const types = interest.types && [...new Set([...interest.types, ...(runs === undefined ? this.#host.allTypes : [])])];
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
          // Without a cursor the subscription begins at this hello, and the page may have been read long before.
          this.#hasMissed ||= this.#wasRead && this.#cursor === undefined;
          this.#endReads(new Error("The sidecar is read again."));
          this.#readPage(interest);
          this.#host.onOpen(state.version);
        } else if (state.state === "waiting") {
          this.#setOffline(state.error, state.delayMs);
          // A proxy without sockets still lets the page be read.
          if (!this.#wasRead) {
            this.#readPage(interest);
          }
        }
      },
    };
    try {
      for await (const item of this.#host.events(options)) {
        this.#hold(item, interest);
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
      this.#setOffline(problem, delay);
    }
    this.#host.setTimeout(() => {
      if (!signal.aborted) {
        this.#open();
      }
    }, delay);
  }

  #setOffline(error: RedflowError, delayMs: number): void {
    const { value } = this.state;
    const since = value.kind === "offline" ? value.since : this.#host.now();
    this.state.value = { kind: "offline", since, nextTryAt: this.#host.now() + delayMs, error };
  }

  /** Reads the page after the reads before. One read that waits is enough. */
  #readPage(interest: Interest): void {
    if (this.#isPageDue) {
      return;
    }
    this.#isPageDue = true;
    this.#wasRead = true;
    void this.#read(interest, async (signal) => {
      const hasMissed = this.#hasMissed;
      this.#isPageDue = false;
      this.#hasMissed = false;
      try {
        await interest.read(signal, hasMissed);
      } catch (error) {
        this.#hasMissed ||= hasMissed && interest === this.#interest;
        throw error;
      }
    });
  }

  #read(interest: Interest, read: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.#reads;
    const before = this.#lastRead;
    const work = async (): Promise<void> => {
      await before;
      try {
        if (!signal.aborted) {
          await read(signal);
        }
      } catch (error) {
        if (!signal.aborted) {
          this.#report(error);
        }
      }
      if (!signal.aborted) {
        this.#readCount -= 1;
        this.#schedule(interest);
      }
    };
    this.#readCount += 1;
    this.#lastRead = work();
    return this.#lastRead;
  }

  #report(error: unknown): void {
    if (error instanceof RedflowError && error.code === "UNAUTHORIZED") {
      this.#host.onSignedOut();
    } else {
      this.#host.onFailure(error);
    }
  }

  #hold(item: EventsItem, interest: Interest): void {
    if (this.#held.length >= MAX_HELD) {
      this.#held = [];
      this.#hasMissed = true;
      this.#readPage(interest);
    }
    this.#held.push(item);
    this.#schedule(interest);
  }

  #schedule(interest: Interest): void {
    if (this.#deliveryTimer !== undefined || this.#readCount > 0 || this.#held.length === 0) {
      return;
    }
    this.#deliveryTimer = this.#host.setTimeout(() => {
      this.#deliveryTimer = undefined;
      if (this.#readCount > 0) {
        return;
      }
      const items = this.#held;
      this.#held = [];
      // Only what the page has taken is not sent again after a break.
      this.#cursor = items.findLast((item) => item.type !== "delta")?.cursor ?? this.#cursor;
      const events = items.filter(({ type }) => type !== "caught_up");
      const taken = events.filter((item) => isOf(item, interest.types));
      if (taken.length > 0) {
        interest.take(taken);
      }
      this.#host.onItems(events);
    }, DELIVERY_MS);
  }
}
