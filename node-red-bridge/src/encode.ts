// Encodes a message of Node-RED as JSON, with the tags of docs/bridge.md for values that JSON does not have. Reads each
// property once, and stops when the text is too long or too deep. Never changes a value, and never throws an error of a
// getter.

import { types } from "node:util";
import type { BRIDGE_TAG } from "@redflow/bindings";
import { Failure } from "./failure";

/** The key of an object that stands for a value that JSON does not have. */
export const TAG: typeof BRIDGE_TAG = "$redflow";

/** The property that the sidecar itself sets on a message. */
const START_PROPERTY = "_redflowStart";

/** Properties of a message that count as live, whatever their value is. */
const LIVE_PROPERTIES = new Set(["req", "res"]);

/** A text that is too long is measured up to this size for the error message, which then says "more than". */
const MEASURED_BYTES = 32 * 1024 * 1024;

/** Hexadecimal digits of all long bigints of a message. The time to convert them to decimals grows with the square. */
const BIGINT_DIGITS = 4_000;

/** A bigint with more digits is long. Shorter ones, such as ids of databases, cost no more than other numbers. */
const SHORT_BIGINT_DIGITS = 64;

/** Characters of the name of a live object's class. */
const NAME_LENGTH = 100;

/** Limits of the encoded text. */
export interface EncodeLimits {
  maxBytes: number;
  maxDepth: number;
}

/** The value is too long or nests too deep. */
export class TooLarge extends Failure {
  constructor(what: string, found: string, limit: string) {
    super("CONTEXT_LENGTH", `${what} ${found}; the limit is ${limit}`);
  }
}

/** Encodes a message as a JSON object. `what` is the subject of the error message. */
export function encodeMessage(message: object, limits: EncodeLimits, what = "the message"): string {
  const encoder = new Encoder(limits, what);
  encoder.message(message);
  return encoder.end();
}

/** Encodes a value as JSON. */
export function encodeValue(value: unknown, limits: EncodeLimits, what = "the value"): string {
  const encoder = new Encoder(limits, what);
  encoder.value(value, 1);
  return encoder.end();
}

const { prototype: objectPrototype } = Object;
const shortBigint = 1n << BigInt(4 * SHORT_BIGINT_DIGITS);
const longestBigint = 1n << BigInt(4 * BIGINT_DIGITS);
const typedArrayPrototype: object = Object.getPrototypeOf(Uint8Array.prototype);

/** Text that needs no escape in JSON. */
const PLAIN_TEXT = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const PLAIN_TEXT_LENGTH = 200;

class Encoder {
  private text = "";
  private bytes = 0;
  private bigintDigits = 0;
  /** The path from the root to the current value, and the objects on it with the length of their own path. */
  private readonly path: (string | number)[] = [];
  private readonly open = new Map<object, number>();

  constructor(
    private readonly limits: EncodeLimits,
    private readonly what: string,
  ) {}

  end(): string {
    if (this.bytes > this.limits.maxBytes) {
      throw new TooLarge(this.what, `has ${this.bytes} bytes`, `${this.limits.maxBytes}`);
    }
    return this.text;
  }

  message(message: object): void {
    this.enter(message, 1);
    this.ascii("{");
    let count = 0;
    for (const key of keysOf(message)) {
      if (key === START_PROPERTY) {
        continue;
      }
      const value = read(message, key);
      if (LIVE_PROPERTIES.has(key) && typeof value === "object" && value !== null) {
        this.key(key, count);
        this.live(value, 2);
      } else {
        this.property(key, value, count, 2);
      }
      count += 1;
    }
    this.ascii("}");
    this.leave(message);
  }

  value(value: unknown, depth: number): void {
    switch (typeof value) {
      case "string":
        return this.string(value, depth);
      case "boolean":
        return this.ascii(value ? "true" : "false");
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0)
          ? this.ascii(String(value))
          : this.tag("number", depth, Object.is(value, -0) ? '"-0"' : `"${value}"`);
      case "undefined":
        return this.tag("undefined", depth);
      case "bigint":
        return this.bigint(value, depth);
      case "symbol":
      case "function":
        return this.live(value, depth);
      case "object":
        return value === null ? this.ascii("null") : this.object(value, depth);
    }
  }

  private object(value: object, depth: number): void {
    if (types.isProxy(value)) {
      // Every access could run code of the proxy.
      return this.live(value, depth);
    }
    const pathLength = this.open.get(value);
    if (pathLength !== undefined) {
      this.deeper(depth + 1);
      const steps = this.path.slice(0, pathLength).map((step) => quote(wellFormed(step)));
      return this.wide(`{"${TAG}":"circular","path":[${steps.join(",")}]}`);
    }
    if (Array.isArray(value)) {
      this.enter(value, depth);
      this.list(value, depth);
      return this.leave(value);
    }
    if (isPlain(value)) {
      this.enter(value, depth);
      this.plain(value, depth);
      return this.leave(value);
    }
    this.special(value, depth);
  }

  private list(list: unknown[], depth: number): void {
    this.ascii("[");
    for (let at = 0; at < list.length; at += 1) {
      if (at > 0) {
        this.ascii(",");
      }
      this.path.push(at);
      this.value(read(list, at), depth + 1);
      this.path.pop();
    }
    this.ascii("]");
  }

  private plain(value: object, depth: number): void {
    const keys = keysOf(value);
    const tagged = keys.includes(TAG);
    const inner = tagged ? depth + 1 : depth;
    if (tagged) {
      this.deeper(inner);
      this.ascii(`{"${TAG}":"object","data":`);
    }
    this.ascii("{");
    let count = 0;
    for (const key of keys) {
      this.property(key, read(value, key), count, inner + 1);
      count += 1;
    }
    this.ascii(tagged ? "}}" : "}");
  }

  /** Writes a property after `count` others. */
  private property(key: string, value: unknown, count: number, depth: number): void {
    this.key(key, count);
    this.path.push(key);
    this.value(value, depth);
    this.path.pop();
  }

  private key(key: string, count: number): void {
    if (count > 0) {
      this.ascii(",");
    }
    if (key.length <= PLAIN_TEXT_LENGTH && PLAIN_TEXT.test(key)) {
      this.ascii(`"${key}":`);
    } else {
      this.wide(`${quote(key.toWellFormed())}:`);
    }
  }

  private string(text: string, depth: number): void {
    if (text.length <= PLAIN_TEXT_LENGTH && PLAIN_TEXT.test(text)) {
      return this.ascii(`"${text}"`);
    }
    this.checkRoom(text.length);
    if (text.isWellFormed()) {
      return this.wide(quote(text));
    }
    this.tag("utf16", depth, `"${Buffer.from(text, "utf16le").toString("base64")}"`);
  }

  private bigint(value: bigint, depth: number): void {
    const size = value < 0n ? -value : value;
    if (size >= shortBigint) {
      this.bigintDigits += size < longestBigint ? size.toString(16).length : Infinity;
      if (this.bigintDigits > BIGINT_DIGITS) {
        throw new TooLarge(this.what, "has too many digits in bigints", `${BIGINT_DIGITS} hexadecimal digits`);
      }
    }
    this.tag("bigint", depth, `"${value}"`);
  }

  private special(value: object, depth: number): void {
    // A subclass may override these accessors and throw. Then the object counts as live.
    try {
      if (types.isUint8Array(value)) {
        return this.base64("buffer", "", value, depth);
      }
      if (types.isDate(value)) {
        const ms = Date.prototype.getTime.call(value);
        return this.tag("date", depth, Number.isNaN(ms) ? "null" : String(ms));
      }
      if (types.isRegExp(value)) {
        const source = Reflect.get(RegExp.prototype, "source", value);
        const flags = Reflect.get(RegExp.prototype, "flags", value);
        return this.rest("regexp", depth, `,"source":${quote(wellFormed(source))},"flags":${quote(flags)}`);
      }
      if (types.isTypedArray(value)) {
        const name = String(Reflect.get(typedArrayPrototype, Symbol.toStringTag, value));
        return this.base64("typed", `,"name":${quote(name)}`, value, depth);
      }
    } catch (error) {
      if (error instanceof TooLarge) {
        throw error;
      }
      return this.live(value, depth);
    }
    if (types.isNativeError(value) || value instanceof Error) {
      return this.error(value, depth);
    }
    if (types.isMap(value) || types.isSet(value)) {
      return this.collection(value, depth);
    }
    this.live(value, depth);
  }

  private error(value: object, depth: number): void {
    const [name, message, code] = ["name", "message", "code"].map((key) => read(value, key));
    const text = (part: unknown): string => quote(wellFormed(typeof part === "string" ? part : ""));
    const known = typeof code === "string" ? text(code) : Number.isFinite(code) ? String(code) : undefined;
    if (typeof message === "string") {
      this.checkRoom(message.length);
    }
    const tail = known === undefined ? "" : `,"code":${known}`;
    this.rest("error", depth, `,"name":${text(name)},"message":${text(message)}${tail}`);
  }

  private collection(value: Map<unknown, unknown> | Set<unknown>, depth: number): void {
    const map = types.isMap(value);
    this.enter(value, depth);
    this.deeper(depth + 1);
    this.ascii(`{"${TAG}":"${map ? "map" : "set"}","data":[`);
    let at = 0;
    const each = (item: unknown, key: unknown): void => {
      if (at > 0) {
        this.ascii(",");
      }
      this.path.push(at);
      if (map) {
        this.deeper(depth + 2);
        this.list([key, item], depth + 2);
      } else {
        this.value(item, depth + 2);
      }
      this.path.pop();
      at += 1;
    };
    if (map) {
      Map.prototype.forEach.call(value, each);
    } else {
      Set.prototype.forEach.call(value, each);
    }
    this.ascii("]}");
    this.leave(value);
  }

  private base64(tag: string, more: string, value: ArrayBufferView, depth: number): void {
    this.checkRoom(Math.ceil(value.byteLength / 3) * 4);
    const data = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
    this.rest(tag, depth, `${more},"data":"${data}"`);
  }

  private live(value: unknown, depth: number): void {
    this.rest("live", depth, `,"name":${quote(className(value))}`);
  }

  private tag(tag: string, depth: number, data?: string): void {
    this.rest(tag, depth, data === undefined ? "" : `,"data":${data}`);
  }

  private rest(tag: string, depth: number, rest: string): void {
    this.deeper(depth);
    this.wide(`{"${TAG}":"${tag}"${rest}}`);
  }

  private enter(value: object, depth: number): void {
    this.deeper(depth);
    this.open.set(value, this.path.length);
  }

  private leave(value: object): void {
    this.open.delete(value);
  }

  private deeper(depth: number): void {
    if (depth > this.limits.maxDepth) {
      throw new TooLarge(this.what, "nests too deep", `${this.limits.maxDepth} levels`);
    }
  }

  private ascii(text: string): void {
    this.add(text, text.length);
  }

  private wide(text: string): void {
    this.add(text, Buffer.byteLength(text));
  }

  private add(text: string, bytes: number): void {
    this.bytes += bytes;
    if (this.bytes <= this.limits.maxBytes) {
      this.text += text;
    } else {
      this.text = "";
      this.checkRoom(0);
    }
  }

  /** Stops the encoding if this many further bytes exceed what is measured. */
  private checkRoom(bytes: number): void {
    if (this.bytes + bytes > Math.max(MEASURED_BYTES, this.limits.maxBytes)) {
      throw new TooLarge(this.what, `has more than ${MEASURED_BYTES} bytes`, `${this.limits.maxBytes}`);
    }
  }
}

/**
 * The keys of an object that are encoded. Half a character in a key is replaced. A key that then equals another key of the
 * same object is left out.
 */
function keysOf(owner: object): string[] {
  const keys = Object.keys(owner);
  if (keys.every((key) => key.isWellFormed())) {
    return keys;
  }
  const encoded = new Set(keys);
  return keys.filter((key) => {
    const replaced = key.toWellFormed();
    return replaced === key || (!encoded.has(replaced) && encoded.add(replaced));
  });
}

/** The value of a property, or the error that its getter throws. */
function read(owner: object, key: string | number): unknown {
  try {
    return (owner as Record<string | number, unknown>)[key];
  } catch (error) {
    return error instanceof Error ? error : new Error("the property cannot be read");
  }
}

/** Whether an object is a plain object of any realm: Function nodes run in their own realm. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === objectPrototype || prototype === null) {
    return true;
  }
  return (
    !types.isProxy(prototype) &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype as object, "isPrototypeOf") &&
    Object.hasOwn(prototype as object, "propertyIsEnumerable")
  );
}

function className(value: unknown): string {
  if (typeof value === "function") {
    return "Function";
  }
  if (typeof value === "symbol") {
    return "Symbol";
  }
  if (types.isProxy(value)) {
    return "Proxy";
  }
  try {
    const name: unknown = (value as { constructor?: { name?: unknown } }).constructor?.name;
    return typeof name === "string" && name !== "" ? wellFormed(name.slice(0, NAME_LENGTH)) : "Object";
  } catch {
    return "Object";
  }
}

function wellFormed<T>(text: T): T | string {
  return typeof text === "string" ? text.toWellFormed() : text;
}

function quote(text: unknown): string {
  return JSON.stringify(text);
}
