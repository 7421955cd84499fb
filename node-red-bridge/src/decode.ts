// Reads what encode.ts wrote. Never makes a live object, and never sets a prototype; what is malformed stays as it
// is. Nothing a model said goes through here: it stays the JSON it is.

import { TAG } from "./encode";
import type { Msg } from "./red";

/** What a message has from the run and not from who sent it: JSON, never decoded. */
export const MADE_BY_RUN: readonly string[] = ["payload", "envelope", "agentResult", "error"];

/** Deeper than that nothing is decoded: the sidecar lets nothing in that is. */
const MAX_DEPTH = 512;

/** Classes a typed array may be of. */
const TYPED: Record<string, (bytes: ArrayBuffer) => unknown> = {
  Int8Array: (bytes) => new Int8Array(bytes),
  Uint8ClampedArray: (bytes) => new Uint8ClampedArray(bytes),
  Int16Array: (bytes) => new Int16Array(bytes),
  Uint16Array: (bytes) => new Uint16Array(bytes),
  Int32Array: (bytes) => new Int32Array(bytes),
  Uint32Array: (bytes) => new Uint32Array(bytes),
  Float32Array: (bytes) => new Float32Array(bytes),
  Float64Array: (bytes) => new Float64Array(bytes),
  BigInt64Array: (bytes) => new BigInt64Array(bytes),
  BigUint64Array: (bytes) => new BigUint64Array(bytes),
};

const NUMBERS: Record<string, number> = { NaN, Infinity, "-Infinity": -Infinity, "-0": -0 };

/** The message as far as it could be stored: live top-level properties are left out. */
export function decodeMessage(message: Msg): Msg {
  return addDecoded({}, message);
}

/** Puts on a message the properties that it lacks, but not those that are live. */
export function addDecoded(target: Msg, message: Msg): Msg {
  const reader = new Reader(target);
  for (const [key, value] of Object.entries(message)) {
    if (key === "__proto__" || Object.hasOwn(target, key)) {
      continue;
    }
    if (MADE_BY_RUN.includes(key)) {
      target[key] = value;
    } else if (tagOf(value) !== "live") {
      target[key] = reader.at(key, value);
    }
  }
  return target;
}

class Reader {
  private readonly path: (string | number)[] = [];
  /** What is being made on the way to where we are; the root first. */
  private readonly open: unknown[];

  constructor(root: unknown) {
    this.open = [root];
  }

  at(step: string | number, value: unknown): unknown {
    if (typeof value !== "object" || value === null || this.path.length >= MAX_DEPTH) {
      return value;
    }
    this.path.push(step);
    const made = this.read(value);
    this.path.pop();
    return made;
  }

  private read(value: object): unknown {
    if (Array.isArray(value)) {
      return this.list(value);
    }
    const tag = tagOf(value);
    if (tag === undefined) {
      return this.plain(value);
    }
    const tagged = value as Record<string, unknown>;
    const made = this.tagged(tag, tagged);
    // What nothing was made of is passed on as it came.
    return made === this ? tagged : made;
  }

  private list(list: unknown[]): unknown[] {
    const made: unknown[] = [];
    this.open.push(made);
    list.forEach((item, at) => made.push(this.at(at, item)));
    this.open.pop();
    return made;
  }

  private plain(value: object): Msg {
    const made: Msg = {};
    this.open.push(made);
    for (const [key, item] of Object.entries(value)) {
      if (key !== "__proto__") {
        made[key] = this.at(key, item);
      }
    }
    this.open.pop();
    return made;
  }

  /** What a tag stands for; the reader itself for nothing. */
  private tagged(tag: string, value: Record<string, unknown>): unknown {
    const { data } = value;
    switch (tag) {
      case "undefined":
        return undefined;
      case "buffer":
        return typeof data === "string" ? Buffer.from(data, "base64") : this;
      case "utf16":
        return typeof data === "string" ? Buffer.from(data, "base64").toString("utf16le") : this;
      case "date":
        return typeof data === "number" || data === null ? new Date(data ?? NaN) : this;
      case "number":
        return typeof data === "string" && Object.hasOwn(NUMBERS, data) ? NUMBERS[data] : this;
      case "bigint":
        return typeof data === "string" && /^-?\d{1,5000}$/.test(data) ? BigInt(data) : this;
      case "object":
        return typeof data === "object" && data !== null && !Array.isArray(data) ? this.plain(data) : this;
      case "circular":
        return this.circular(value["path"]);
      case "error":
        return error(value);
      case "regexp":
        return this.regexp(value);
      case "map":
      case "set":
        return Array.isArray(data) ? this.collection(tag, data) : this;
      case "typed":
        return this.typed(value);
      default:
        return this;
    }
  }

  /** Only what we are inside of can be meant. */
  private circular(path: unknown): unknown {
    const inside = Array.isArray(path) && path.length < this.path.length;
    return inside && path.every((step, at) => step === this.path[at]) ? this.open[path.length] : this;
  }

  private regexp({ source, flags }: Record<string, unknown>): unknown {
    try {
      return typeof source === "string" && typeof flags === "string" ? new RegExp(source, flags) : this;
    } catch {
      return this;
    }
  }

  private collection(tag: "map" | "set", data: unknown[]): unknown {
    const made = tag === "map" ? new Map<unknown, unknown>() : new Set<unknown>();
    this.open.push(made);
    data.forEach((item, at) => {
      const value = this.at(at, item);
      if (made instanceof Set) {
        made.add(value);
      } else if (Array.isArray(value)) {
        made.set(value[0], value[1]);
      }
    });
    this.open.pop();
    return made;
  }

  private typed({ name, data }: Record<string, unknown>): unknown {
    const make = typeof name === "string" && Object.hasOwn(TYPED, name) ? TYPED[name] : undefined;
    if (make === undefined || typeof data !== "string") {
      return this;
    }
    try {
      const bytes = Buffer.from(data, "base64");
      return make(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer);
    } catch {
      return this;
    }
  }
}

function error({ name, message, code }: Record<string, unknown>): Error {
  const made: Error & { code?: unknown } = new Error(typeof message === "string" ? message : "");
  if (typeof name === "string" && name !== "Error") {
    Object.defineProperty(made, "name", { value: name, configurable: true, writable: true });
  }
  if (typeof code === "string" || typeof code === "number") {
    made.code = code;
  }
  return made;
}

function tagOf(value: unknown): string | undefined {
  const tagged = typeof value === "object" && value !== null && Object.hasOwn(value, TAG);
  const tag: unknown = tagged ? (value as Record<string, unknown>)[TAG] : undefined;
  return typeof tag === "string" ? tag : undefined;
}
