// What tests take from iterators.

import { setTimeout as sleep } from "node:timers/promises";

/** The first items, until one is the last by `isLast`, or all. Ends the iterator. */
export async function collect(iterator, isLast = () => false) {
  const items = [];
  for await (const item of iterator) {
    items.push(item);
    if (isLast(item, items)) {
      break;
    }
  }
  return items;
}

/** Waits until something is so; fails with `what` if that takes too long. */
export async function until(what, check, ms = 20_000) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await check();
    if (value) {
      return value;
    }
    if (Date.now() > end) {
      throw new Error(`not in time: ${what}`);
    }
    await sleep(5);
  }
}

/** What a promise is rejected with. */
export async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it was not rejected");
}
