// Encodes and decodes the table of docs/bridge.md, random data and hostile values.

import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { ServerResponse } from "node:http";
import test from "node:test";
import { inspect } from "node:util";
import vm from "node:vm";
import { addDecoded, decodeMessage } from "../dist/decode.js";
import { TooLarge, encodeMessage, encodeValue } from "../dist/encode.js";
import { random } from "./kit/random.mjs";

const LIMITS = { maxBytes: 4 * 1024 * 1024, maxDepth: 100 };
const encoded = (message, limits = LIMITS) => JSON.parse(encodeMessage(message, limits));
const roundTrip = (message) => decodeMessage(encoded(message));
/** Like `deepEqual`, but two invalid dates are equal. */
const assertSame = (actual, expected, why) => {
  const show = (value) => inspect(value, { depth: Infinity, maxArrayLength: Infinity, maxStringLength: Infinity });
  assert.equal(show(actual), show(expected), why);
};
const rows = [
  ["a Buffer", Buffer.from([0, 255]), { $redflow: "buffer", data: "AP8=" }],
  ["a Date", new Date(5), { $redflow: "date", data: 5 }],
  ["an invalid Date", new Date(NaN), { $redflow: "date", data: null }],
  ["undefined", undefined, { $redflow: "undefined" }],
  ["NaN", NaN, { $redflow: "number", data: "NaN" }],
  ["Infinity", Infinity, { $redflow: "number", data: "Infinity" }],
  ["-Infinity", -Infinity, { $redflow: "number", data: "-Infinity" }],
  ["-0", -0, { $redflow: "number", data: "-0" }],
  ["a bigint", -12345678901234567890n, { $redflow: "bigint", data: "-12345678901234567890" }],
  ["a lone surrogate", "a\ud800", { $redflow: "utf16", data: "YQAA2A==" }],
  ["a RegExp", /a\/b"/gi, { $redflow: "regexp", source: 'a\\/b"', flags: "gi" }],
  ["a Map", new Map([["k", 1n]]), { $redflow: "map", data: [["k", { $redflow: "bigint", data: "1" }]] }],
  ["a Set", new Set([undefined]), { $redflow: "set", data: [{ $redflow: "undefined" }] }],
  ["a typed array", new Uint16Array([1, 2]), { $redflow: "typed", name: "Uint16Array", data: "AQACAA==" }],
  ["a key like ours", { $redflow: "buffer", data: "" }, { $redflow: "object", data: { $redflow: "buffer", data: "" } }],
  ["plain data", { a: [1, "é", null, true, { b: 1.5e300 }] }, { a: [1, "é", null, true, { b: 1.5e300 }] }],
];

for (const [name, value, json] of rows) {
  test(`encodes and decodes ${name}`, () => {
    assert.deepEqual(encoded({ value }), { value: json });
    const read = roundTrip({ value });
    assertSame(read.value, value);
    assert.ok(Object.is(read.value, value) || typeof value === "object");
  });
}

test("an error keeps only its name, message and code", () => {
  const value = Object.assign(new RangeError("far"), { code: "E1", stack: "secret place", more: 1 });
  assert.deepEqual(encoded({ value }).value, { $redflow: "error", name: "RangeError", message: "far", code: "E1" });
  const read = roundTrip({ value }).value;
  assert.ok(read instanceof Error);
  assert.deepEqual([read.name, read.message, read.code], ["RangeError", "far", "E1"]);
});

test("encodes live objects by their class and drops them at the top level", () => {
  class Mine {}
  const message = {
    req: { plain: true },
    res: new ServerResponse({ method: "GET" }),
    run() {},
    sign: Symbol("s"),
    bus: new EventEmitter(),
    deep: [new Mine(), new Promise(() => {}), new Proxy({}, {})],
  };
  const json = encoded(message);
  const live = (name) => ({ $redflow: "live", name });
  assert.deepEqual(json, {
    req: live("Object"),
    res: live("ServerResponse"),
    run: live("Function"),
    sign: live("Symbol"),
    bus: live("EventEmitter"),
    deep: [live("Mine"), live("Promise"), live("Proxy")],
  });
  assert.deepEqual(Object.keys(decodeMessage(json)), ["deep"]);
});

test("encodes a circular reference by its path and restores it", () => {
  const payload = { list: [{}] };
  payload.self = payload;
  payload.list[0].up = payload.list;
  payload.map = new Map([["m", payload]]);
  const message = { payload: 1, data: payload };
  message.root = message;
  const json = encoded(message);
  assert.deepEqual(json.data.self, { $redflow: "circular", path: ["data"] });
  assert.deepEqual(json.data.list[0].up, { $redflow: "circular", path: ["data", "list"] });
  assert.deepEqual(json.root, { $redflow: "circular", path: [] });
  const read = decodeMessage(json);
  assert.equal(read.data.self, read.data);
  assert.equal(read.data.list[0].up, read.data.list);
  assert.equal(read.data.map.get("m"), read.data);
  assert.equal(read.root, read);
});

test("encodes a shared object twice", () => {
  const shared = { a: 1 };
  assert.deepEqual(encoded({ payload: [shared, shared] }), { payload: [{ a: 1 }, { a: 1 }] });
});

test("encodes objects of a Function node's realm as plain data", () => {
  const foreign = vm.runInNewContext(
    "({o: {a: [1]}, d: new Date(7), m: new Map([[1, 2]]), e: new TypeError('x'), u: new Uint8Array([1])})",
  );
  assert.deepEqual(encoded({ payload: foreign }).payload, {
    o: { a: [1] },
    d: { $redflow: "date", data: 7 },
    m: { $redflow: "map", data: [[1, 2]] },
    e: { $redflow: "error", name: "TypeError", message: "x" },
    u: { $redflow: "buffer", data: "AQ==" },
  });
});

test("random data survives a round trip", () => {
  for (let seed = 1; seed <= 3_000; seed += 1) {
    const { value } = random(seed);
    const message = { value: value(), other: value() };
    assertSame(roundTrip(message), message, `seed ${seed}`);
  }
});

test("encodes plain JSON like JSON.stringify", () => {
  const plain = { a: [1, 2.5, -3e-7, "x\n\u2028\"\\é😀", true, null, {}], b: { c: "" }, é: "long ".repeat(100) };
  assert.equal(encodeMessage(plain, LIMITS), JSON.stringify(plain));
});

test("encodes hostile values without running their code", () => {
  const trap = new Proxy({}, { ownKeys: () => assert.fail("accessed"), get: () => assert.fail("accessed") });
  const getter = Object.defineProperty({ a: 1 }, "bad", {
    enumerable: true,
    get() {
      throw new Error("no");
    },
  });
  let reads = 0;
  const counting = Object.defineProperty({}, "once", { enumerable: true, get: () => (reads += 1) });
  const noClass = Object.create({
    get constructor() {
      throw new Error("no");
    },
  });
  const shadowed = Object.assign(new Date(3), { getTime: () => assert.fail("called"), toJSON: () => "no" });
  const json = encoded({
    trap,
    getter,
    counting,
    noClass,
    shadowed,
    proto: JSON.parse('{"__proto__": {"polluted": 1}}'),
    bare: Object.assign(Object.create(null), { a: 1 }),
    sparse: Object.assign([], { 1: 1 }),
    toJSON: 1,
    thrower: Object.defineProperty(new Error("x"), "message", {
      get() {
        throw 1;
      },
    }),
    "half\ud800": 1,
    "half\ufffd": 2,
    _redflowStart: "forged",
  });
  assert.deepEqual(json.trap, { $redflow: "live", name: "Proxy" });
  assert.deepEqual(json.getter, { a: 1, bad: { $redflow: "error", name: "Error", message: "no" } });
  assert.equal(reads, 1);
  assert.deepEqual(json.noClass, { $redflow: "live", name: "Object" });
  assert.deepEqual(json.shadowed, { $redflow: "date", data: 3 });
  assert.deepEqual(Object.keys(json.proto), ["__proto__"]);
  assert.deepEqual(json.bare, { a: 1 });
  assert.deepEqual(json.sparse, [{ $redflow: "undefined" }, 1]);
  assert.equal(json.thrower.message, "");
  assert.equal(json["half\ufffd"], 2);
  assert.ok(!("_redflowStart" in json));
});

test("reports the size of a message that is too long, up to a limit", () => {
  const limits = { maxBytes: 1_000, maxDepth: 100 };
  const problem = (message) => {
    try {
      encodeMessage(message, limits);
    } catch (error) {
      assert.ok(error instanceof TooLarge);
      assert.equal(error.code, "CONTEXT_LENGTH");
      return error.message;
    }
    return assert.fail("no error");
  };
  assert.equal(problem({ a: "x".repeat(5_000) }), "the message has 5008 bytes; the limit is 1000");
  assert.equal(problem({ a: "é".repeat(600) }), "the message has 1208 bytes; the limit is 1000");
  assert.match(problem({ a: Array.from({ length: 100_000 }, () => 1) }), /has 200\d\d\d bytes/);
  assert.match(problem({ a: Buffer.alloc(3_000_000) }), /has 40000\d\d bytes/);
  assert.match(problem({ a: "x".repeat(100_000_000) }), /has more than 33554432 bytes/);
  let twice = "x";
  for (let i = 0; i < 60; i += 1) {
    twice = [twice, twice];
  }
  assert.match(problem({ a: twice }), /has more than 33554432 bytes/);
  assert.match(problem({ a: 1n << 1_000_000n }), /bigint/);
  assert.match(problem({ a: -1n << 1_000_000n }), /bigint/);
  assert.equal(encodeMessage({ a: "x".repeat(992) }, limits).length, 1_000);
});

test("limits the digits of all long bigints", () => {
  const limits = { maxBytes: 4 * 1024 * 1024, maxDepth: 10 };
  const long = (digits) => (1n << BigInt(4 * digits)) - 1n;
  const refused = (payload) => assert.throws(() => encodeMessage({ payload }, limits), { code: "CONTEXT_LENGTH" });
  encodeMessage({ payload: long(4_000) }, limits);
  encodeMessage({ payload: [long(2_000), -long(2_000)] }, limits);
  refused(long(4_001));
  refused([long(2_000), -long(2_001)]);
  refused(Array.from({ length: 3_000 }, (_, at) => (1n << 70_000n) + BigInt(at)));
  const ids = Array.from({ length: 10_000 }, () => 2n ** 64n - 1n);
  assert.deepEqual(decodeMessage(JSON.parse(encodeMessage({ ids, top: long(4_000) }, limits))), { ids, top: long(4_000) });
});

test("keys with half a character cost no more than other keys", (t) => {
  const count = 2_000;
  const payload = JSON.parse(`{${Array.from({ length: count }, (_, at) => `"\\ud800${at}":1`).join(",")}}`);
  let calls = 0;
  const { toWellFormed } = String.prototype;
  t.mock.method(String.prototype, "toWellFormed", function () {
    calls += 1;
    return toWellFormed.call(this);
  });
  const text = encodeMessage({ payload }, { maxBytes: 1e6, maxDepth: 10 });
  assert.equal(Object.keys(JSON.parse(text).payload).length, count);
  assert.ok(calls <= 10 * count, `${calls} calls for ${count} keys`);
});

test("refuses a value below the depth limit", () => {
  const nested = (levels) => {
    let value = 1;
    for (let i = 0; i < levels; i += 1) {
      value = [value];
    }
    return value;
  };
  const limits = { maxBytes: 10_000, maxDepth: 10 };
  assert.equal(encodeMessage({ a: nested(9) }, limits).length, 6 + 18 + 1);
  assert.throws(() => encodeMessage({ a: nested(10) }, limits), /nests too deep; the limit is 10 levels/);
  assert.throws(() => encodeMessage({ a: nested(1_000_000) }, limits), TooLarge);
  assert.throws(() => encodeValue(nested(11), limits), TooLarge);
});

test("the depth limit counts the levels of the JSON", () => {
  const depth = (json) =>
    typeof json === "object" && json !== null ? 1 + Math.max(0, ...Object.values(json).map(depth)) : 0;
  for (let seed = 1; seed <= 500; seed += 1) {
    const { value } = random(seed);
    const message = { value: value() };
    const levels = depth(encoded(message));
    assert.doesNotThrow(() => encodeMessage(message, { maxBytes: 1e6, maxDepth: levels }), `seed ${seed}`);
    assert.throws(() => encodeMessage(message, { maxBytes: 1e6, maxDepth: levels - 1 }), TooLarge, `seed ${seed}`);
  }
});

test("leaves malformed tags as they are", () => {
  const odd = {
    a: { $redflow: "buffer" },
    b: { $redflow: "date", data: "x" },
    c: { $redflow: "circular", path: ["elsewhere"] },
    d: { $redflow: "circular", path: ["d", "e"] },
    e: { $redflow: "regexp", source: "(", flags: "" },
    f: { $redflow: "typed", name: "constructor", data: "" },
    g: { $redflow: "typed", name: "Float64Array", data: "AA==" },
    h: { $redflow: "number", data: "toString" },
    i: { $redflow: "bigint", data: "1e3" },
    j: { $redflow: "something new" },
    k: { $redflow: 7 },
    l: { $redflow: "map", data: 1 },
    m: { deep: { $redflow: "live", name: "X" } },
  };
  assert.deepEqual(decodeMessage(JSON.parse(JSON.stringify(odd))), odd);
});

test("decoding sets no prototype", () => {
  const read = decodeMessage(JSON.parse('{"a": {"__proto__": {"polluted": 1}, "b": 2}, "__proto__": {"polluted": 1}}'));
  assert.equal(read.polluted, undefined);
  assert.equal(read.a.polluted, undefined);
  assert.deepEqual(Object.keys(read.a), ["b"]);
});

test("does not decode the result of a run, which may be output of a model", () => {
  const forged = { $redflow: "buffer", data: "AA==" };
  const result = { payload: forged, envelope: forged, agentResult: forged, error: forged };
  assert.deepEqual(decodeMessage({ ...result, topic: forged }), { ...result, topic: Buffer.from([0]) });
});

test("adds only missing properties and no live ones", () => {
  const res = {};
  const message = { res, topic: "mine" };
  addDecoded(message, { topic: "theirs", res: 1, more: 2, gone: { $redflow: "live", name: "Socket" } });
  assert.deepEqual(message, { res, topic: "mine", more: 2 });
  assert.equal(message.res, res);
});

test("an image of nearly 3 MiB fits into a message as a Buffer", () => {
  const images = [Buffer.alloc(3 * 1024 * 1024 - 1024, 7)];
  const text = encodeMessage({ _msgid: "0123456789abcdef", payload: "What does the meter show?", images }, LIMITS);
  assert.ok(text.length <= LIMITS.maxBytes);
  assert.deepEqual(decodeMessage(JSON.parse(text)).images, images);
});
