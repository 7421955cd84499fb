// Parses server-sent events. Does no I/O and holds at most one event.

import { RedflowError } from "./error.js";

/** The most characters of one event, with its field names. Protects against an endless event. */
export const MAX_SSE_EVENT = 4 * 1024 * 1024;

/** One server-sent event. */
export interface SseEvent {
  /** Its type; `message` by default. */
  type: string;
  data: string;
}

/** Parses a stream of server-sent events chunk by chunk. */
export class SseParser {
  readonly #limit: number;
  #line: string[] = [];
  #size = 0;
  #data: string[] = [];
  #type = "";
  #first = true;
  #afterReturn = false;

  constructor(limit: number = MAX_SSE_EVENT) {
    this.#limit = limit;
  }

  /** Returns the events that this chunk completes. Throws if one becomes larger than the limit. */
  push(text: string): SseEvent[] {
    const events: SseEvent[] = [];
    let from = 0;
    // A line may end with \r at the end of one chunk and \n at the start of the next.
    if (this.#afterReturn && text.length > 0) {
      this.#afterReturn = false;
      if (text[0] === "\n") {
        from = 1;
      }
    }
    const ends = /\r\n|\n|\r/g;
    ends.lastIndex = from;
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      this.#append(text.slice(from, end.index));
      from = ends.lastIndex;
      this.#afterReturn = end[0] === "\r" && from === text.length;
      const event = this.#endLine();
      if (event) {
        events.push(event);
      }
    }
    this.#append(text.slice(from));
    return events;
  }

  #append(text: string): void {
    this.#size += text.length;
    if (this.#size > this.#limit) {
      const message = `The stream has an event of more than ${this.#limit} characters.`;
      throw new RedflowError({ code: "MESSAGE_TOO_LARGE", message });
    }
    if (text !== "") {
      this.#line.push(text);
    }
  }

  #endLine(): SseEvent | undefined {
    let line = this.#line.join("");
    this.#line = [];
    if (this.#first) {
      this.#first = false;
      line = line.replace(/^\uFEFF/, "");
    }
    if (line === "") {
      return this.#dispatch();
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") {
      this.#data.push(value);
    } else {
      // Comments and ignored fields do not count. The `id` field is ignored too: the data holds the position.
      this.#size -= line.length;
      if (field === "event") {
        this.#type = value;
      }
    }
    return undefined;
  }

  #dispatch(): SseEvent | undefined {
    const event = { type: this.#type || "message", data: this.#data.join("\n") };
    const hasData = this.#data.length > 0;
    this.#data = [];
    this.#type = "";
    this.#size = 0;
    return hasData ? event : undefined;
  }
}
