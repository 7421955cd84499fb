// Helpers for async iterators and promises.

import { setTimeout as sleep } from "node:timers/promises";

/** The items up to and including the first for which `isLast` is true, or all. Closes the iterator. */
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

/** Waits until `check` returns a true value; fails with `what` if that takes too long. */
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

/** The error that the promise is rejected with. */
export async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("the promise was not rejected");
}
