// A page for tests of the console: a small DOM, and a sidecar that answers what a test says.

import { Window } from "happy-dom";
import { type ComponentChild, render } from "preact";

const window = new Window({ url: "http://sidecar.test/mount/" });
Object.assign(globalThis, {
  window,
  document: window.document,
  location: window.location,
  localStorage: window.localStorage,
  HTMLElement: window.HTMLElement,
  requestAnimationFrame: (act: () => void) => setTimeout(act, 0),
  cancelAnimationFrame: clearTimeout,
});
Object.defineProperty(globalThis, "navigator", { value: window.navigator, configurable: true });

/** What the sidecar answers to a request, at once or later. */
export type Answers = (method: string, path: string, body: unknown, headers: Readonly<Record<string, string>>) => unknown;

/** A refusal of the sidecar. */
export class Refusal {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly message: string,
  ) {}
}

/** The requests that were made, such as `GET /api/session`. */
export const requests: string[] = [];
let answers: Answers = () => undefined;

/** Lets the sidecar answer. Undefined is `NOT_FOUND`. */
export function answerWith(next: Answers): void {
  answers = next;
  requests.length = 0;
}

Object.assign(globalThis, {
  fetch: async (url: string | URL, init: { method?: string; headers?: Record<string, string>; body?: unknown; signal?: AbortSignal } = {}) => {
    const { pathname, search } = new URL(String(url));
    const path = pathname.replace(/^\/mount/, "") + search;
    const method = init.method ?? "GET";
    requests.push(`${method} ${path}`);
    const body: unknown = typeof init.body === "string" ? JSON.parse(init.body) : init.body;
    const answer = await answers(method, path, body, init.headers ?? {});
    init.signal?.throwIfAborted();
    const found = answer ?? new Refusal(404, "NOT_FOUND", `no answer to ${path}`);
    return found instanceof Refusal ? Response.json({ code: found.code, message: found.message }, { status: found.status }) : Response.json(found);
  },
});

/** A socket that the test opens, feeds and breaks. */
export class FakeSocket {
  static readonly all: FakeSocket[] = [];
  readonly sent: { type: string; [key: string]: unknown }[] = [];
  readonly #listeners = new Map<string, ((event: { data?: unknown }) => void)[]>();
  isClosed = false;

  constructor(
    readonly url: string,
    readonly protocols?: string[],
  ) {
    FakeSocket.all.push(this);
  }

  addEventListener(type: string, listener: (event: { data?: unknown }) => void): void {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  send(data: string): void {
    this.sent.push(JSON.parse(data) as { type: string });
  }

  close(): void {
    this.isClosed = true;
  }

  /** Delivers a message of the sidecar. */
  deliver(message: object): void {
    this.#emit("message", { data: JSON.stringify(message) });
  }

  /** Breaks the connection. */
  break(): void {
    this.isClosed = true;
    this.#emit("close", {});
  }

  #emit(type: string, event: { data?: unknown }): void {
    for (const listener of this.#listeners.get(type) ?? []) {
      listener(event);
    }
  }
}
Object.assign(globalThis, { WebSocket: FakeSocket });
// A connection is tried again after a random time. A very short one would pass before a test has seen that the sidecar
// is offline.
Math.random = () => 0.5;

/** Draws in a new place of the page, until the test ends. */
export function draw(t: { after: (act: () => void) => void }, content: ComponentChild): HTMLElement {
  const root = document.body.appendChild(document.createElement("div"));
  t.after(() => {
    render(null, root);
    root.remove();
  });
  render(content, root);
  return root;
}

/** Waits until a condition holds; fails after ten seconds. */
export async function until(what: string, isSo: () => boolean): Promise<void> {
  for (let turn = 0; turn < 2_000; turn += 1) {
    if (isSo()) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`never: ${what}`);
}
