// When the checker is asked: after changes, one question at a time, and again when an answer could not be had. Owns the
// waiting and the state; knows neither Node-RED's events nor what is done with a report.

import type { CheckReport } from "@redflow/bindings";
import type { RuntimeList, RuntimeView } from "../admin-api.js";
import type { AskedFlow } from "./flow.mjs";

/** How things stand with the check. */
export type CheckState =
  | { is: "checked"; at: number }
  | { is: "checking" }
  | { is: "not_checked"; reason: string };

/** Why the flow is not checked. */
export type NotChecked =
  | { why: "nothing" }
  | { why: "no_runtime" }
  | { why: "connecting" }
  | { why: "away"; reason: string }
  | { why: "refused"; code: string; message: string; status: number }
  | { why: "unusable"; sentence: string };

/** What a check came to. */
export type Outcome = { report: CheckReport; flow: AskedFlow } | NotChecked;

/** What is around it. */
export interface Surroundings {
  flow(): AskedFlow | undefined;
  runtimes(): Promise<RuntimeList>;
  check(runtime: string, flow: AskedFlow): Promise<CheckReport>;
  /** Whether somebody can see the page. */
  visible(): boolean;
  after(ms: number, act: () => void): void;
  /** What a request failed with. */
  failureOf(error: unknown): NotChecked;
  /** The verdicts of before hold no more. */
  settled(outcome: Outcome): void;
  /** A question is on its way; the verdicts of before hold until it is answered. */
  asking(): void;
}

/** From the first change to the question: a paste is many changes. */
export const DEBOUNCE_MS = 250;

/** How often it is tried again while there is no answer and the page is seen. */
export const RETRY_MS = 15_000;

export class CheckLoop {
  #asked: { text: string; runtime: string; failed: boolean } | undefined;
  /** As it was when the sidecar was last heard of; forgotten when that may have changed. */
  #runtimes: RuntimeList | undefined;
  #waiting = false;
  #busy = false;
  #again = false;
  #retrying = false;
  /** Something happened while nobody could see the page. */
  #missed = false;

  constructor(private readonly around: Surroundings) {}

  /** The flow may have changed. */
  changed(): void {
    if (!this.#waiting) {
      this.#waiting = true;
      this.around.after(DEBOUNCE_MS, () => {
        this.#waiting = false;
        void this.#look();
      });
    }
  }

  /** The sidecar may be another one, or may be back. */
  sidecarChanged(): void {
    this.#runtimes = undefined;
    this.changed();
  }

  /** Somebody can see the page again. */
  seen(): void {
    if (this.#missed) {
      this.#missed = false;
      this.sidecarChanged();
    }
  }

  async #look(): Promise<void> {
    if (this.#busy) {
      this.#again = true;
      return;
    }
    if (!this.around.visible()) {
      this.#missed = true;
      return;
    }
    this.#busy = true;
    try {
      do {
        this.#again = false;
        await this.#ask();
      } while (this.#again);
    } finally {
      this.#busy = false;
    }
  }

  async #ask(): Promise<void> {
    const flow = this.around.flow();
    if (flow === undefined) {
      this.#settle({ why: "nothing" }, undefined);
      return;
    }
    let runtime = "";
    try {
      this.#runtimes ??= await this.around.runtimes();
      const chosen = chooseRuntime(this.#runtimes.runtimes, flow.runtimes);
      if ("why" in chosen) {
        this.#settle(chosen, { text: flow.text, runtime, failed: true });
        return;
      }
      // Another version of a sidecar may judge otherwise.
      runtime = `${chosen.id} ${chosen.state.is === "connected" ? chosen.state.version : ""}`;
      const before = this.#asked;
      if (before !== undefined && !before.failed && before.text === flow.text && before.runtime === runtime) {
        return;
      }
      this.around.asking();
      const report = await this.around.check(chosen.id, flow);
      // An answer about a flow that is no more would put marks on what is no longer so.
      if (this.#again && this.around.flow()?.text !== flow.text) {
        this.#asked = undefined;
        return;
      }
      this.#settle({ report, flow }, { text: flow.text, runtime, failed: false });
    } catch (error) {
      this.#runtimes = undefined;
      const failure = this.around.failureOf(error);
      this.#settle(failure, { text: flow.text, runtime, failed: isPassing(failure) });
    }
  }

  #settle(outcome: Outcome, asked: { text: string; runtime: string; failed: boolean } | undefined): void {
    this.#asked = asked;
    this.around.settled(outcome);
    if (asked?.failed && !this.#retrying) {
      this.#retrying = true;
      this.around.after(RETRY_MS, () => {
        this.#retrying = false;
        if (this.#asked?.failed) {
          this.#runtimes = undefined;
          void this.#look();
        }
      });
    }
  }
}

/** Answers that would be the same to the same question: not JSON, not allowed, too large. */
const FINAL = new Set([400, 401, 403, 413, 415, 422]);

function isPassing(failure: NotChecked): boolean {
  return failure.why !== "refused" || !FINAL.has(failure.status);
}

/** One that is connected, best one that an agent names; else why none is. */
export function chooseRuntime(runtimes: RuntimeView[], named: string[]): RuntimeView | NotChecked {
  const order = (id: string): number => named.indexOf(id) >>> 0;
  const sorted = [...runtimes].sort((one, other) => order(one.id) - order(other.id));
  const connected = sorted.find(({ state }) => state.is === "connected");
  if (connected !== undefined) {
    return connected;
  }
  const first = sorted[0]?.state;
  switch (first?.is) {
    case undefined:
      return { why: "no_runtime" };
    case "away":
      return { why: "away", reason: first.reason };
    case "refused":
      return { why: "refused", code: first.code, message: first.message, status: 0 };
    default:
      return { why: "connecting" };
  }
}
