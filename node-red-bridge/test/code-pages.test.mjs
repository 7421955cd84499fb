// The cache of pages about codes: how long a page is valid, and its limits.

import assert from "node:assert/strict";
import test from "node:test";
import { CodePages, PAGE_LIMITS } from "../dist/code-pages.js";

/** A runtime whose sidecar has a page of this length for every code. */
function runtime(length = 10) {
  const requested = [];
  const api = {
    request: async (method, path) => {
      requested.push(`${method} ${path}`);
      return { text: "x".repeat(length), value: {} };
    },
  };
  return { api, state: { is: "connected", version: "1" }, requested };
}

test("requests a page once for each version and serves it while the sidecar is offline", async () => {
  const own = runtime();
  const pages = new CodePages(own);
  const once = () => pages.page("TIMEOUT");
  await once();
  assert.equal((await once()).text, "xxxxxxxxxx");
  own.state = { is: "offline", reason: "gone" };
  await once();
  assert.deepEqual(own.requested, ["GET /api/codes/TIMEOUT"]);
  own.state = { is: "connected", version: "2" };
  await once();
  await once();
  assert.equal(own.requested.length, 2);
});

test("each runtime has its own pages", async () => {
  const [one, other] = [runtime(1), runtime(2)];
  await CodePages.forRuntime(one).page("TIMEOUT");
  assert.equal((await CodePages.forRuntime(other).page("TIMEOUT")).text, "xx");
  assert.equal((await CodePages.forRuntime(one).page("TIMEOUT")).text, "x");
  assert.deepEqual([one.requested.length, other.requested.length], [1, 1]);
});

test("drops the oldest page beyond the limit", async () => {
  const own = runtime();
  const pages = new CodePages(own, { ...PAGE_LIMITS, pages: 3 });
  for (const code of ["A", "B", "C", "D", "B", "C", "D"]) {
    await pages.page(code);
  }
  assert.equal(own.requested.length, 4);
  await pages.page("A");
  assert.equal(own.requested.length, 5);
});

test("passes on a page that is too long without caching it", async () => {
  for (const [length, count] of [[PAGE_LIMITS.bytes, 1], [PAGE_LIMITS.bytes + 1, 2]]) {
    const own = runtime(length);
    const pages = new CodePages(own);
    assert.equal((await pages.page("TIMEOUT")).text.length, length);
    assert.equal((await pages.page("TIMEOUT")).text.length, length);
    assert.equal(own.requested.length, count);
  }
});
