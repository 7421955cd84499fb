// Requests the explanation of an error: why a run failed, and the page about a code. Caches the responses, up to a limit.

import type { CodeEntry, RunError } from "@redflow/bindings";
import { adminApi } from "./admin-client.mjs";

/** Cached responses of each kind. They are valid forever: the end of a run and a page do not change. */
const MAX_CACHED = 200;

/** Sends each request once. Repeats a failed one. */
export class RequestCache<T> {
  private readonly responses = new Map<string, Promise<T>>();

  constructor(
    private readonly request: (runtime: string, id: string) => Promise<T>,
    private readonly capacity = MAX_CACHED,
  ) {}

  get(runtime: string, id: string): Promise<T> {
    const key = JSON.stringify([runtime, id]);
    const cached = this.responses.get(key);
    if (cached !== undefined) {
      return cached;
    }
    for (const oldest of this.responses.size >= this.capacity ? this.responses.keys() : []) {
      this.responses.delete(oldest);
      break;
    }
    const response = this.request(runtime, id);
    this.responses.set(key, response);
    response.catch(() => this.responses.delete(key));
    return response;
  }
}

const codes = new RequestCache<CodeEntry>((runtime, code) => adminApi.code(runtime, code));

const runErrors = new RequestCache<RunError | undefined>(async (runtime, run) => {
  for (const { event } of (await adminApi.events(runtime, run, 0)).reverse()) {
    if (event.type === "run_finished") {
      return event.error;
    }
  }
  return undefined;
});

/** The entry of a code with its page. */
export const requestCode = (runtime: string, code: string): Promise<CodeEntry> => codes.get(runtime, code);

/** The error of a failed run. */
export const requestRunError = (runtime: string, run: string): Promise<RunError | undefined> => runErrors.get(runtime, run);
