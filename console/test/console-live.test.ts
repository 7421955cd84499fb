// The live connection, over the client of the bindings and a socket of the test.

import { FakeSocket, answerWith, until } from "./console-kit.js";
import assert from "node:assert/strict";
import test from "node:test";
import { type EventsItem, RedflowClient } from "@redflow/bindings";
import { DELIVERY_MS, HIDDEN_MS, Live, MAX_HELD } from "../src/live.js";
import type { Interest } from "../src/live.js";

/** A connection whose timers the test runs. */
function connect(t: { after: (act: () => void) => void }) {
  FakeSocket.all.length = 0;
  answerWith(() => ({ runs: [] }));
  const client = new RedflowClient({ url: "." });
  const timers = new Map<number, { call: () => void; ms: number }>();
  const seen = { reads: 0, missed: [] as boolean[], items: [] as EventsItem[][], signedOut: 0, failures: [] as unknown[] };
  let now = 1_000;
  let ids = 0;
  const live = new Live({
    events: (options) => client.events({ ...options, timing: { backoffMs: 1, backoffMaxMs: 2 } }),
    now: () => now,
    setTimeout: (call, ms) => {
      ids += 1;
      timers.set(ids, { call, ms });
      return ids;
    },
    clearTimeout: (timer) => void timers.delete(timer),
    allTypes: [],
    onItems: () => undefined,
    onOpen: () => undefined,
    onSignedOut: () => (seen.signedOut += 1),
    onFailure: (error) => void (error === undefined || seen.failures.push(error)),
  });
  /** Runs the timers of one length. */
  const run = (ms: number): number => {
    const due = [...timers].filter(([, timer]) => timer.ms === ms);
    for (const [id, { call }] of due) {
      timers.delete(id);
      call();
    }
    return due.length;
  };
  let finishRead: (() => void) | undefined;
  const follow = (isHeld = false) => {
    const interest: Interest = {
      types: ["memory_cleared"],
      read: async (_, hasMissed) => {
        seen.reads += 1;
        seen.missed.push(hasMissed);
        if (isHeld) {
          await new Promise<void>((resolve) => (finishRead = resolve));
        }
      },
      take: (items) => void seen.items.push([...items]),
    };
    const stop = live.follow(interest);
    t.after(stop);
    return { stop, interest };
  };
  const socket = async (count: number): Promise<FakeSocket> => {
    await until(`socket ${count}`, () => FakeSocket.all.length >= count);
    const found = FakeSocket.all[count - 1];
    assert.ok(found);
    return found;
  };
  return { live, seen, run, follow, socket, timers, finish: () => finishRead?.(), pass: (ms: number) => (now += ms) };
}

const hello = (cursor: string) => ({ type: "hello", version: "1", cursor });
const event = (cursor: string) => ({
  type: "event",
  cursor,
  event: { kind: "run", event: { runId: "r", seq: 1, at: 1, agent: { instance: "local", nodeId: "a" }, event: { type: "memory_cleared" } } },
});

test("reads after hello, then takes the events after its cursor, at most one delivery in a quarter of a second", async (t) => {
  const { seen, run, follow, socket, live } = connect(t);
  const { stop } = follow();
  const first = await socket(1);
  assert.equal(first.url, "ws://sidecar.test/mount/events");
  first.deliver(hello("7"));
  await until("the page is read", () => seen.reads === 1);
  assert.deepEqual(first.sent, [{ type: "subscribe", after: "7", types: ["memory_cleared"] }]);
  assert.equal(live.state.value.kind, "open");
  first.deliver(event("8"));
  first.deliver(event("9"));
  first.deliver(event("9"));
  await until("a delivery is due", () => run(DELIVERY_MS) === 1);
  assert.deepEqual(seen.items.map((items) => items.length), [2]);
  assert.equal(run(DELIVERY_MS), 0);
  stop();
  assert.ok(first.isClosed);
});

test("events wait while the page is read; with too many the page is read again", async (t) => {
  const { seen, run, follow, socket, finish } = connect(t);
  follow(true);
  const first = await socket(1);
  first.deliver(hello("0"));
  await until("reading", () => seen.reads === 1);
  for (let index = 1; index <= MAX_HELD + 1; index += 1) {
    first.deliver(event(String(index)));
    if (index % 500 === 0) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(run(DELIVERY_MS), 0);
  finish();
  await until("read again", () => seen.reads === 2);
  finish();
  await until("a delivery is due", () => run(DELIVERY_MS) === 1);
  assert.ok((seen.items[0]?.length ?? 0) < MAX_HELD);
});

test("reads of a page run one after the other, and events wait for all of them", async (t) => {
  const { seen, run, follow, socket, finish, live } = connect(t);
  const { interest, stop } = follow(true);
  const first = await socket(1);
  first.deliver(hello("0"));
  await until("reading", () => seen.reads === 1);
  live.refresh(interest);
  live.refresh(interest);
  let loads = 0;
  void live.load(interest, async () => void (loads += 1));
  first.deliver(event("1"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([seen.reads, loads, run(DELIVERY_MS)], [1, 0, 0]);
  finish();
  await until("one read for both", () => seen.reads === 2);
  assert.deepEqual([loads, run(DELIVERY_MS)], [0, 0]);
  finish();
  await until("the event is due", () => run(DELIVERY_MS) === 1);
  assert.deepEqual([loads, seen.reads, seen.items.length], [1, 2, 1]);
  // A delay is shared.
  live.refresh(interest, 700);
  live.refresh(interest, 700);
  assert.equal(run(700), 1);
  await until("read", () => seen.reads === 3);
  stop();
  live.refresh(interest);
  await live.load(interest, async () => assert.fail("the page is gone"));
  assert.equal(seen.reads, 3);
});

test("only what the page has taken is not sent again; lost events are said", async (t) => {
  const { seen, run, follow, socket, live } = connect(t);
  follow();
  const first = await socket(1);
  first.deliver(hello("1"));
  await until("read", () => seen.reads === 1);
  first.deliver({ type: "caught_up", cursor: "3" });
  await until("a delivery", () => run(DELIVERY_MS) === 1);
  assert.equal(seen.items.length, 0);
  first.deliver(event("4"));
  await new Promise((resolve) => setTimeout(resolve, 10));
  live.retry();
  const second = await socket(2);
  second.deliver(hello("9"));
  await until("subscribed", () => second.sent.length === 1);
  assert.equal(second.sent[0]?.["after"], "3");
  second.deliver({ type: "closing", code: "EVENTS_GONE", message: "gone" });
  await until("begins anew", () => run(0) === 1);
  (await socket(3)).deliver(hello("20"));
  await until("read again", () => seen.reads === 3);
  assert.deepEqual(seen.missed, [false, false, true]);
});

test("a page without a socket is read once", async (t) => {
  const { seen, follow, socket, live } = connect(t);
  follow();
  for (let count = 1; count <= 3; count += 1) {
    (await socket(count)).break();
  }
  await until("the page is read", () => seen.reads === 1);
  assert.equal(live.state.value.kind, "offline");
  (await socket(4)).deliver(hello("0"));
  await until("it is read again with a socket", () => seen.reads === 2);
});

test("a lost connection shows since when; the next one resumes after the last event and reads again", async (t) => {
  const { seen, follow, socket, live, pass } = connect(t);
  follow();
  const first = await socket(1);
  first.deliver(hello("1"));
  first.deliver(event("5"));
  await until("read", () => seen.reads === 1);
  await new Promise((resolve) => setTimeout(resolve, 5));
  first.break();
  await until("offline", () => live.state.value.kind === "offline");
  const { value } = live.state;
  assert.ok(value.kind === "offline" && value.since === 1_000 && value.error.code === "SIDECAR_UNREACHABLE");
  pass(50);
  const second = await socket(2);
  second.break();
  const third = await socket(3);
  assert.ok(live.state.value.kind === "offline" && live.state.value.since === 1_000);
  third.deliver(hello("9"));
  await until("open", () => live.state.value.kind === "open");
  assert.deepEqual(third.sent[0]?.["after"], "5");
  await until("read again", () => seen.reads === 2);
});

test("a page that stays hidden is disconnected, and resumed where it was", async (t) => {
  const { seen, run, follow, socket, live } = connect(t);
  follow();
  const first = await socket(1);
  first.deliver(hello("1"));
  first.deliver(event("4"));
  await until("read", () => seen.reads === 1);
  await until("delivered", () => run(DELIVERY_MS) === 1);
  live.setHidden(true);
  live.setHidden(false);
  assert.equal(run(HIDDEN_MS), 0);
  live.setHidden(true);
  assert.equal(run(HIDDEN_MS), 1);
  assert.ok(first.isClosed);
  live.setHidden(false);
  const second = await socket(2);
  second.deliver(hello("9"));
  await until("subscribed", () => second.sent.length === 1);
  assert.equal(second.sent[0]?.["after"], "4");
});

test("events that are gone: a new connection from now on, and the page is read again", async (t) => {
  const { seen, run, follow, socket, live } = connect(t);
  follow();
  const first = await socket(1);
  first.deliver(hello("1"));
  await until("read", () => seen.reads === 1);
  first.deliver({ type: "closing", code: "EVENTS_GONE", message: "gone" });
  await until("begins anew", () => run(0) === 1);
  const second = await socket(2);
  second.deliver(hello("20"));
  await until("subscribed", () => second.sent.length === 1);
  assert.equal(second.sent[0]?.["after"], "20");
  await until("read again", () => seen.reads === 2);
  assert.equal(live.state.value.kind, "open");
});

test("an ended session signs out; another failure is shown and tried again later", async (t) => {
  const { seen, follow, socket, run, live } = connect(t);
  follow();
  const first = await socket(1);
  first.deliver({ type: "closing", code: "UNAUTHORIZED", message: "over" });
  await until("signed out", () => seen.signedOut === 1);
  live.retry();
  const second = await socket(2);
  second.deliver({ type: "closing", code: "FORBIDDEN", message: "no" });
  await until("offline", () => live.state.value.kind === "offline");
  assert.equal(run(5_000), 1);
  await socket(3);
});
