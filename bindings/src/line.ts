// One socket of events: hello, heartbeat, what waits for the reader. Never opens a second one.

import { RedflowError } from "./error.js";
import { platform } from "./platform.js";
import type { WebSocketConstructor, WebSocketLike } from "./platform.js";
import type { EventsMessage, EventsRequest } from "./types.js";

/** The most characters that wait for a reader who takes his time; a larger message may wait alone. */
export const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;

/** What a reader gets to see, of what comes over the socket. */
export type EventsItem = Extract<EventsMessage, { type: "event" | "delta" | "caught_up" }>;

/** How a line ended. */
export type Ending =
  /** It came to nothing; why is not said to who opens a socket. */
  | { how: "refused" }
  /** It broke. */
  | { how: "lost"; message: string }
  /** The sidecar closed it and said why. */
  | { how: "closing"; error: RedflowError; cursor?: string }
  /** More waits than may wait. */
  | { how: "full" };

/** The times of a line, in milliseconds. */
export interface LineTiming {
  /** How long it may take to open. */
  openMs: number;
  /** After this long without a message the sidecar is asked whether it is there. */
  idleMs: number;
  /** How long it may take to answer that. */
  pongMs: number;
}

/** What a line needs. */
export interface LineOptions {
  WebSocket: WebSocketConstructor;
  url: string;
  protocols: string[];
  timing: LineTiming;
  /** How many messages may wait. */
  buffer: number;
  /** What to say once the sidecar has said hello. */
  onHello(hello: Extract<EventsMessage, { type: "hello" }>): EventsRequest;
}

/** One socket, from its opening to its end, and what came over it and was not taken yet. */
export class Line {
  readonly #options: LineOptions;
  readonly #socket: WebSocketLike;
  readonly #waiting: { item: EventsItem; size: number }[] = [];
  #size = 0;
  #greeted = false;
  #ending: Ending | undefined;
  #wake: (() => void) | undefined;
  #timer: unknown;

  constructor(options: LineOptions) {
    this.#options = options;
    this.#socket = new options.WebSocket(options.url, options.protocols);
    this.#after(options.timing.openMs, () => this.#die("The sidecar did not say hello in time."));
    this.#socket.addEventListener("message", ({ data }: { data: unknown }) => this.#hear(data));
    this.#socket.addEventListener("close", () => this.#lose());
    // What an error says differs from place to place and may quote the request; that it closes is enough.
    this.#socket.addEventListener("error", () => this.#lose());
  }

  /** The next item, or how the line ended once everything that came before was taken. */
  async next(): Promise<EventsItem | Ending> {
    for (;;) {
      const first = this.#waiting.shift();
      if (first) {
        this.#size -= first.size;
        return first.item;
      }
      if (this.#ending) {
        return this.#ending;
      }
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Closes it; nothing more comes. */
  close(): void {
    this.#end({ how: "lost", message: "The socket was closed." });
  }

  #hear(data: unknown): void {
    if (this.#ending) {
      return;
    }
    const { idleMs } = this.#options.timing;
    this.#after(idleMs, () => this.#ask());
    const message = parsed(data);
    switch (message?.type) {
      case "hello":
        if (!this.#greeted) {
          this.#greeted = true;
          this.#say(this.#options.onHello(message));
        }
        break;
      case "event":
      case "delta":
      case "caught_up":
        this.#keep(message, (data as string).length);
        break;
      case "closing": {
        const { code, message: text, cursor } = message;
        const error = new RedflowError({ code, message: text });
        this.#end(cursor === undefined ? { how: "closing", error } : { how: "closing", error, cursor });
        break;
      }
      case "pong":
        break;
      case undefined: {
        const text = "The sidecar sent a message that is not one of the protocol.";
        this.#end({ how: "closing", error: new RedflowError({ code: "MESSAGE_INVALID", message: text }) });
        break;
      }
      default:
        // A newer sidecar may have more to say than this knows of.
        message satisfies never;
    }
  }

  #keep(item: EventsItem, size: number): void {
    const { buffer } = this.#options;
    // Pieces of answers may be missed: they never fill the room that events need.
    if (item.type === "delta" && (this.#waiting.length >= buffer / 2 || this.#size > MAX_WAITING_CHARACTERS / 2)) {
      return;
    }
    if (this.#waiting.length >= buffer || (this.#waiting.length > 0 && this.#size + size > MAX_WAITING_CHARACTERS)) {
      this.#end({ how: "full" });
      return;
    }
    this.#waiting.push({ item, size });
    this.#size += size;
    this.#awake();
  }

  /** A peer that is gone without a word looks like one that has nothing to say: so it is asked. */
  #ask(): void {
    this.#after(this.#options.timing.pongMs, () => this.#die("The sidecar does not answer any more."));
    this.#say({ type: "ping", id: "alive" });
  }

  #say(request: EventsRequest): void {
    try {
      this.#socket.send(JSON.stringify(request));
    } catch {
      this.#lose();
    }
  }

  #lose(): void {
    this.#end(this.#greeted ? { how: "lost", message: "The connection was lost." } : { how: "refused" });
  }

  /** Ends a socket whose peer cannot be expected to answer a farewell. */
  #die(message: string): void {
    this.#end({ how: "lost", message });
    this.#socket.terminate?.();
  }

  #end(ending: Ending): void {
    if (this.#ending) {
      return;
    }
    this.#ending = ending;
    platform.clearTimeout(this.#timer);
    try {
      this.#socket.close(1000);
    } catch {
      // It was closed before.
    }
    this.#awake();
  }

  #awake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  #after(ms: number, call: () => void): void {
    platform.clearTimeout(this.#timer);
    this.#timer = platform.setTimeout(call, ms);
  }
}

/** A message, or nothing if it is none. */
function parsed(data: unknown): EventsMessage | undefined {
  if (typeof data !== "string") {
    return undefined;
  }
  try {
    const message = JSON.parse(data) as { type?: unknown } | null;
    return typeof message?.type === "string" ? (message as EventsMessage) : undefined;
  } catch {
    return undefined;
  }
}
