// The words to what went wrong: why a run failed, and what to do about a code. Owns asking for them, one after the other, and
// how many are kept for the next time.

import type { CodeEntry, RunError } from "@redflow/bindings";
import { ask } from "./ask.mjs";

/** Answers kept of each kind. What a run said at its end and what a page says does not change. */
const MAX_KEPT = 200;

/** Answers that are asked for once. One that failed is asked for again. */
export class Remembered<T> {
  private readonly known = new Map<string, Promise<T>>();

  constructor(
    private readonly get: (runtime: string, id: string) => Promise<T>,
    private readonly most = MAX_KEPT,
  ) {}

  of(runtime: string, id: string): Promise<T> {
    const key = JSON.stringify([runtime, id]);
    const known = this.known.get(key);
    if (known !== undefined) {
      return known;
    }
    for (const oldest of this.known.size >= this.most ? this.known.keys() : []) {
      this.known.delete(oldest);
      break;
    }
    const asked = this.get(runtime, id);
    this.known.set(key, asked);
    asked.catch(() => this.known.delete(key));
    return asked;
  }
}

const codes = new Remembered<CodeEntry>((runtime, code) => ask.code(runtime, code));

const ends = new Remembered<RunError | undefined>(async (runtime, run) => {
  for (const { event } of (await ask.events(runtime, run, 0)).reverse()) {
    if (event.type === "run_finished") {
      return event.error;
    }
  }
  return undefined;
});

/** The page on a code. */
export const aboutCode = (runtime: string, code: string): Promise<CodeEntry> => codes.of(runtime, code);

/** Why a run failed. */
export const whyFailed = (runtime: string, run: string): Promise<RunError | undefined> => ends.of(runtime, run);
