// One WebSocket of events: the hello, the heartbeat and the messages that wait for the reader. Never reconnects.

import { RedflowError } from "./error.js";
import { platform } from "./platform.js";
import type { WebSocketConstructor, WebSocketLike } from "./platform.js";
import type { EventsMessage, EventsRequest } from "./types.js";

/** The most characters that wait for a slow reader; a single larger message may wait alone. */
export const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;

/** The messages of the sidecar that a reader receives. */
export type EventsItem = Extract<EventsMessage, { type: "event" | "delta" | "caught_up" }>;

/** Why a socket ended. */
export type SocketEnd =
  /** It did not open; the platform does not report why. */
  | { reason: "refused" }
  /** The connection broke. */
  | { reason: "lost"; message: string }
  /** The sidecar closed it with an error. */
  | { reason: "closing"; error: RedflowError; cursor?: string }
  /** More messages wait than the buffer allows. */
  | { reason: "full" };

/** The times of a socket, in milliseconds. */
export interface SocketTiming {
  /** How long it may take to open. */
  openMs: number;
  /** After this long without a message the client sends a ping. */
  idleMs: number;
  /** How long the sidecar may take to answer the ping. */
  pongMs: number;
}

export interface SocketOptions {
  WebSocket: WebSocketConstructor;
  url: string;
  protocols: string[];
  timing: SocketTiming;
  /** How many messages may wait. */
  buffer: number;
  /** Returns the request to send after the sidecar's hello. */
  onHello(hello: Extract<EventsMessage, { type: "hello" }>): EventsRequest;
}

/** One socket from its opening to its end, with the messages that the reader has not taken yet. */
export class EventSocket {
  readonly #options: SocketOptions;
  readonly #socket: WebSocketLike;
  readonly #waiting: { item: EventsItem; size: number }[] = [];
  #size = 0;
  #greeted = false;
  #end: SocketEnd | undefined;
  #wakeReader: (() => void) | undefined;
  #timer: unknown;

  constructor(options: SocketOptions) {
    this.#options = options;
    this.#socket = new options.WebSocket(options.url, options.protocols);
    this.#setTimer(options.timing.openMs, () => this.#terminate("The sidecar did not send hello in time."));
    this.#socket.addEventListener("message", ({ data }: { data: unknown }) => this.#receive(data));
    this.#socket.addEventListener("close", () => this.#onClose());
    // The text of an error event differs between platforms and may quote the request, so it is not used.
    this.#socket.addEventListener("error", () => this.#onClose());
  }

  /** The next item, or why the socket ended once the reader has taken everything before. */
  async next(): Promise<EventsItem | SocketEnd> {
    for (;;) {
      const first = this.#waiting.shift();
      if (first) {
        this.#size -= first.size;
        return first.item;
      }
      if (this.#end) {
        return this.#end;
      }
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  /** Closes the socket; it receives nothing more. */
  close(): void {
    this.#finish({ reason: "lost", message: "The socket was closed." });
  }

  #receive(data: unknown): void {
    if (this.#end) {
      return;
    }
    this.#setTimer(this.#options.timing.idleMs, () => this.#ping());
    const message = parseMessage(data);
    switch (message?.type) {
      case "hello":
        if (!this.#greeted) {
          this.#greeted = true;
          this.#send(this.#options.onHello(message));
        }
        break;
      case "event":
      case "delta":
      case "caught_up":
        this.#enqueue(message, (data as string).length);
        break;
      case "closing": {
        const { code, message: text, cursor } = message;
        const error = new RedflowError({ code, message: text });
        this.#finish(cursor === undefined ? { reason: "closing", error } : { reason: "closing", error, cursor });
        break;
      }
      case "pong":
        break;
      case undefined: {
        const text = "The sidecar sent a message that is not part of the protocol.";
        this.#finish({ reason: "closing", error: new RedflowError({ code: "MESSAGE_INVALID", message: text }) });
        break;
      }
      default:
        // A newer sidecar may send messages that this version does not know.
        message satisfies never;
    }
  }

  #enqueue(item: EventsItem, size: number): void {
    const { buffer } = this.#options;
    // A reader may miss deltas, so they fill at most half of the buffer and never displace an event.
    if (item.type === "delta" && (this.#waiting.length >= buffer / 2 || this.#size > MAX_WAITING_CHARACTERS / 2)) {
      return;
    }
    if (this.#waiting.length >= buffer || (this.#waiting.length > 0 && this.#size + size > MAX_WAITING_CHARACTERS)) {
      this.#finish({ reason: "full" });
      return;
    }
    this.#waiting.push({ item, size });
    this.#size += size;
    this.#wake();
  }

  /** Detects a dead connection: without a ping it looks like a sidecar that has nothing to send. */
  #ping(): void {
    this.#setTimer(this.#options.timing.pongMs, () => this.#terminate("The sidecar does not answer any more."));
    this.#send({ type: "ping", id: "alive" });
  }

  #send(request: EventsRequest): void {
    try {
      this.#socket.send(JSON.stringify(request));
    } catch {
      this.#onClose();
    }
  }

  #onClose(): void {
    this.#finish(this.#greeted ? { reason: "lost", message: "The connection was lost." } : { reason: "refused" });
  }

  /** Ends a socket whose peer will not answer a close frame. */
  #terminate(message: string): void {
    this.#finish({ reason: "lost", message });
    this.#socket.terminate?.();
  }

  #finish(end: SocketEnd): void {
    if (this.#end) {
      return;
    }
    this.#end = end;
    platform.clearTimeout(this.#timer);
    try {
      this.#socket.close(1000);
    } catch {
      // It was closed before.
    }
    this.#wake();
  }

  #wake(): void {
    this.#wakeReader?.();
    this.#wakeReader = undefined;
  }

  /** Replaces the one timer of the socket. */
  #setTimer(ms: number, call: () => void): void {
    platform.clearTimeout(this.#timer);
    this.#timer = platform.setTimeout(call, ms);
  }
}

/** A message of the protocol; undefined if the data is none. */
function parseMessage(data: unknown): EventsMessage | undefined {
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
