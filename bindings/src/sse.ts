// Takes server-sent events apart. Reads from nothing itself, keeps no more than one event.

import { RedflowError } from "./error.js";

/** The most characters of one event, with its names; more is not taken from any server. */
export const MAX_SSE_EVENT = 4 * 1024 * 1024;

/** An event of a stream of server-sent events. */
export interface SseEvent {
  /** Its type; `message` if it says none. */
  type: string;
  /** Its data. */
  data: string;
}

/** Takes a stream of server-sent events apart, as it comes in. */
export class SseParser {
  #limit: number;
  #line: string[] = [];
  #size = 0;
  #data: string[] = [];
  #type = "";
  #first = true;
  #afterReturn = false;

  constructor(limit: number = MAX_SSE_EVENT) {
    this.#limit = limit;
  }

  /** The events that are complete with this piece. Throws if one becomes larger than the limit. */
  push(text: string): SseEvent[] {
    const events: SseEvent[] = [];
    let from = 0;
    // A line may end in a return at the end of one piece and a feed at the beginning of the next.
    if (this.#afterReturn && text.length > 0) {
      this.#afterReturn = false;
      if (text[0] === "\n") {
        from = 1;
      }
    }
    const ends = /\r\n|\n|\r/g;
    ends.lastIndex = from;
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      this.#keep(text.slice(from, end.index));
      from = ends.lastIndex;
      this.#afterReturn = end[0] === "\r" && from === text.length;
      const event = this.#endLine();
      if (event) {
        events.push(event);
      }
    }
    this.#keep(text.slice(from));
    return events;
  }

  #keep(part: string): void {
    this.#size += part.length;
    if (this.#size > this.#limit) {
      const message = `The stream has an event of more than ${this.#limit} characters.`;
      throw new RedflowError({ code: "MESSAGE_TOO_LARGE", message });
    }
    if (part !== "") {
      this.#line.push(part);
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
      // Comments and fields that are not kept take no room; where to go on is in the data.
      this.#size -= line.length;
      if (field === "event") {
        this.#type = value;
      }
    }
    return undefined;
  }

  #dispatch(): SseEvent | undefined {
    const event = { type: this.#type || "message", data: this.#data.join("\n") };
    const any = this.#data.length > 0;
    this.#data = [];
    this.#type = "";
    this.#size = 0;
    return any ? event : undefined;
  }
}
