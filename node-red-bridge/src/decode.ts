// Decodes messages that encode.ts has encoded. Never creates a live object and never sets a prototype. Leaves malformed
// values as they are. Does not decode output of a model: it stays plain JSON.

import { TAG } from "./encode";
import type { Msg } from "./red";

/** The properties of a message that the run sets. They stay plain JSON. */
export const RESULT_PROPERTIES: readonly string[] = ["payload", "envelope", "agentResult", "error"];

/** Values below this depth stay encoded; the sidecar accepts no deeper messages. */
const MAX_DEPTH = 512;

/** Creates each class of typed array. */
const TYPED_ARRAYS: Record<string, (bytes: ArrayBuffer) => unknown> = {
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

/** The decoded message without its live top-level properties. */
export function decodeMessage(message: Msg): Msg {
  return addDecoded({}, message);
}

/** Adds the properties that a message lacks, except live ones. */
export function addDecoded(target: Msg, message: Msg): Msg {
  const decoder = new Decoder(target);
  for (const [key, value] of Object.entries(message)) {
    if (key === "__proto__" || Object.hasOwn(target, key)) {
      continue;
    }
    if (RESULT_PROPERTIES.includes(key)) {
      target[key] = value;
    } else if (tagOf(value) !== "live") {
      target[key] = decoder.decode(key, value);
    }
  }
  return target;
}

class Decoder {
  private readonly path: (string | number)[] = [];
  /** The objects on the path, the root first. Circular references point to them. */
  private readonly open: unknown[];

  constructor(root: unknown) {
    this.open = [root];
  }

  decode(step: string | number, value: unknown): unknown {
    if (typeof value !== "object" || value === null || this.path.length >= MAX_DEPTH) {
      return value;
    }
    this.path.push(step);
    const result = this.decodeObject(value);
    this.path.pop();
    return result;
  }

  private decodeObject(value: object): unknown {
    if (Array.isArray(value)) {
      return this.list(value);
    }
    const tag = tagOf(value);
    if (tag === undefined) {
      return this.plain(value);
    }
    const tagged = value as Record<string, unknown>;
    const result = this.decodeTagged(tag, tagged);
    // `this` stands for a malformed value.
    return result === this ? tagged : result;
  }

  private list(list: unknown[]): unknown[] {
    const result: unknown[] = [];
    this.open.push(result);
    list.forEach((item, at) => result.push(this.decode(at, item)));
    this.open.pop();
    return result;
  }

  private plain(value: object): Msg {
    const result: Msg = {};
    this.open.push(result);
    for (const [key, item] of Object.entries(value)) {
      if (key !== "__proto__") {
        result[key] = this.decode(key, item);
      }
    }
    this.open.pop();
    return result;
  }

  /** The value of a tagged object; `this` if it is malformed. */
  private decodeTagged(tag: string, value: Record<string, unknown>): unknown {
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
        return decodeError(value);
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

  /** A reference to an object on the path to this value. Others are malformed. */
  private circular(path: unknown): unknown {
    const isAbove = Array.isArray(path) && path.length < this.path.length;
    return isAbove && path.every((step, at) => step === this.path[at]) ? this.open[path.length] : this;
  }

  private regexp({ source, flags }: Record<string, unknown>): unknown {
    try {
      return typeof source === "string" && typeof flags === "string" ? new RegExp(source, flags) : this;
    } catch {
      return this;
    }
  }

  private collection(tag: "map" | "set", data: unknown[]): unknown {
    const result = tag === "map" ? new Map<unknown, unknown>() : new Set<unknown>();
    this.open.push(result);
    data.forEach((item, at) => {
      const value = this.decode(at, item);
      if (result instanceof Set) {
        result.add(value);
      } else if (Array.isArray(value)) {
        result.set(value[0], value[1]);
      }
    });
    this.open.pop();
    return result;
  }

  private typed({ name, data }: Record<string, unknown>): unknown {
    const create = typeof name === "string" && Object.hasOwn(TYPED_ARRAYS, name) ? TYPED_ARRAYS[name] : undefined;
    if (create === undefined || typeof data !== "string") {
      return this;
    }
    try {
      const bytes = Buffer.from(data, "base64");
      return create(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
    } catch {
      return this;
    }
  }
}

function decodeError({ name, message, code }: Record<string, unknown>): Error {
  const error: Error & { code?: unknown } = new Error(typeof message === "string" ? message : "");
  if (typeof name === "string" && name !== "Error") {
    Object.defineProperty(error, "name", { value: name, configurable: true, writable: true });
  }
  if (typeof code === "string" || typeof code === "number") {
    error.code = code;
  }
  return error;
}

function tagOf(value: unknown): string | undefined {
  const tagged = typeof value === "object" && value !== null && Object.hasOwn(value, TAG);
  const tag: unknown = tagged ? (value as Record<string, unknown>)[TAG] : undefined;
  return typeof tag === "string" ? tag : undefined;
}
