// The pages on codes: how long one is right, and how much is kept of them.

import assert from "node:assert/strict";
import test from "node:test";
import { CodePages, PAGE_BOUNDS } from "../dist/code-pages.js";

/** A runtime whose sidecar has a page of some length for every code. */
function runtime(length = 10) {
  const asked = [];
  const api = {
    ask: async (method, path) => {
      asked.push(`${method} ${path}`);
      return { text: "x".repeat(length), value: {} };
    },
  };
  return { api, state: { is: "connected", version: "1" }, asked };
}

test("a page is asked for once for each version, and is there while the sidecar is away", async () => {
  const own = runtime();
  const pages = new CodePages(own);
  const once = () => pages.page("TIMEOUT");
  await once();
  assert.equal((await once()).text, "xxxxxxxxxx");
  own.state = { is: "away", reason: "gone" };
  await once();
  assert.deepEqual(own.asked, ["GET /api/codes/TIMEOUT"]);
  own.state = { is: "connected", version: "2" };
  await once();
  await once();
  assert.equal(own.asked.length, 2);
});

test("each runtime has pages of its own", async () => {
  const [one, other] = [runtime(1), runtime(2)];
  await CodePages.of(one).page("TIMEOUT");
  assert.equal((await CodePages.of(other).page("TIMEOUT")).text, "xx");
  assert.equal((await CodePages.of(one).page("TIMEOUT")).text, "x");
  assert.deepEqual([one.asked.length, other.asked.length], [1, 1]);
});

test("no more pages than there may be are kept; the oldest goes", async () => {
  const own = runtime();
  const pages = new CodePages(own, { ...PAGE_BOUNDS, pages: 3 });
  for (const code of ["A", "B", "C", "D", "B", "C", "D"]) {
    await pages.page(code);
  }
  assert.equal(own.asked.length, 4);
  await pages.page("A");
  assert.equal(own.asked.length, 5);
});

test("a page that is too long is passed on and not kept", async () => {
  for (const [length, asked] of [[PAGE_BOUNDS.bytes, 1], [PAGE_BOUNDS.bytes + 1, 2]]) {
    const own = runtime(length);
    const pages = new CodePages(own);
    assert.equal((await pages.page("TIMEOUT")).text.length, length);
    assert.equal((await pages.page("TIMEOUT")).text.length, length);
    assert.equal(own.asked.length, asked);
  }
});
