// Decides when to check the flow: after changes, one request at a time, and again after a failure. Independent of Node-RED's
// events and of the use of a report.

import type { CheckReport, Phrase } from "@redflow/bindings";
import type { RuntimeList, RuntimeView } from "../admin-api.js";
import type { FlowToCheck } from "./flow.mjs";

/** The state of the check. */
export type CheckState =
  | { is: "checked"; at: number }
  | { is: "checking" }
  | { is: "not_checked"; reason: string };

/** The reason why the flow is not checked. */
export type NotChecked =
  | { why: "nothing" }
  | { why: "no_runtime" }
  | { why: "connecting" }
  | { why: "offline"; reason: string; phrase?: Phrase | undefined }
  | { why: "refused"; code: string; message: string; phrase?: Phrase | undefined; status: number }
  | { why: "unusable"; sentence: string };

/** The outcome of a check. */
export type Outcome = { report: CheckReport; flow: FlowToCheck } | NotChecked;

/** The environment of the loop. */
export interface CheckEnvironment {
  flow(): FlowToCheck | undefined;
  runtimes(): Promise<RuntimeList>;
  check(runtime: string, flow: FlowToCheck): Promise<CheckReport>;
  /** Whether the page is visible. */
  visible(): boolean;
  after(ms: number, act: () => void): void;
  /** The reason of a failed request. */
  failureOf(error: unknown): NotChecked;
  /** A new outcome replaces the previous verdicts. */
  onOutcome(outcome: Outcome): void;
  /** A request starts. The previous verdicts stay valid until its response. */
  onRequest(): void;
}

/** From the first change to the request: one paste causes many changes. */
export const DEBOUNCE_MS = 250;

/** How often a failed check is repeated while the page is visible. */
export const RETRY_MS = 15_000;

export class CheckLoop {
  #last: { text: string; runtime: string; failed: boolean } | undefined;
  /** The cached list of runtimes; dropped when it may have changed. */
  #runtimes: RuntimeList | undefined;
  #scheduled = false;
  #busy = false;
  #again = false;
  #retrying = false;
  /** Whether a check was skipped because the page was hidden. */
  #missed = false;

  constructor(private readonly env: CheckEnvironment) {}

  /** The flow may have changed. */
  changed(): void {
    if (!this.#scheduled) {
      this.#scheduled = true;
      this.env.after(DEBOUNCE_MS, () => {
        this.#scheduled = false;
        void this.#run();
      });
    }
  }

  /** The sidecar may be another one, or available again. */
  sidecarChanged(): void {
    this.#runtimes = undefined;
    this.changed();
  }

  /** The page is visible again. */
  onVisible(): void {
    if (this.#missed) {
      this.#missed = false;
      this.sidecarChanged();
    }
  }

  async #run(): Promise<void> {
    if (this.#busy) {
      this.#again = true;
      return;
    }
    if (!this.env.visible()) {
      this.#missed = true;
      return;
    }
    this.#busy = true;
    try {
      do {
        this.#again = false;
        await this.#check();
      } while (this.#again);
    } finally {
      this.#busy = false;
    }
  }

  async #check(): Promise<void> {
    const flow = this.env.flow();
    if (flow === undefined) {
      this.#finish({ why: "nothing" }, undefined);
      return;
    }
    let runtime = "";
    try {
      this.#runtimes ??= await this.env.runtimes();
      const chosen = chooseRuntime(this.#runtimes.runtimes, flow.runtimes);
      if ("why" in chosen) {
        this.#finish(chosen, { text: flow.text, runtime, failed: true });
        return;
      }
      // Another version of the sidecar may check otherwise.
      runtime = `${chosen.id} ${chosen.state.is === "connected" ? chosen.state.version : ""}`;
      const before = this.#last;
      if (before !== undefined && !before.failed && before.text === flow.text && before.runtime === runtime) {
        return;
      }
      this.env.onRequest();
      const report = await this.env.check(chosen.id, flow);
      // The report of an outdated flow would mark the wrong nodes.
      if (this.#again && this.env.flow()?.text !== flow.text) {
        this.#last = undefined;
        return;
      }
      this.#finish({ report, flow }, { text: flow.text, runtime, failed: false });
    } catch (error) {
      this.#runtimes = undefined;
      const failure = this.env.failureOf(error);
      this.#finish(failure, { text: flow.text, runtime, failed: isTransient(failure) });
    }
  }

  #finish(outcome: Outcome, request: { text: string; runtime: string; failed: boolean } | undefined): void {
    this.#last = request;
    this.env.onOutcome(outcome);
    if (request?.failed && !this.#retrying) {
      this.#retrying = true;
      this.env.after(RETRY_MS, () => {
        this.#retrying = false;
        if (this.#last?.failed) {
          this.#runtimes = undefined;
          void this.#run();
        }
      });
    }
  }
}

/** Statuses that the same request would get again: not JSON, not allowed, too large. */
const FINAL_STATUSES = new Set([400, 401, 403, 413, 415, 422]);

function isTransient(failure: NotChecked): boolean {
  return failure.why !== "refused" || !FINAL_STATUSES.has(failure.status);
}

/** A connected runtime, preferably one that an agent names; else the reason why there is none. */
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
    case "offline":
      return { why: "offline", reason: first.reason, phrase: first.phrase };
    case "refused":
      return { why: "refused", code: first.code, message: first.message, phrase: first.phrase, status: 0 };
    default:
      return { why: "connecting" };
  }
}
