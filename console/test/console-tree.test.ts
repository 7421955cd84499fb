// The runs below a run: read page by page, up to a limit.

import assert from "node:assert/strict";
import test from "node:test";
import type { TreeRun } from "@redflow/bindings";
import { MAX_TREE_RUNS, readTree, replaceBeginning } from "../src/tree.js";

const child = (number: number, name = "A"): TreeRun => ({
  run: { runId: `r${number}`, agent: { instance: "local", nodeId: "a" }, name, status: "completed", startedAt: number, delivered: true },
  depth: 1,
});
const children = (count: number, name?: string): TreeRun[] => Array.from({ length: count }, (_, index) => child(index, name));

/** A sidecar with so many runs in pages of 500. */
function pagesOf(count: number) {
  const asked: (string | undefined)[] = [];
  const readPage = async (after: string | undefined) => {
    asked.push(after);
    const from = after === undefined ? 0 : Number(after.slice(1)) + 1;
    const runs = children(Math.min(count, from + 500)).slice(from);
    return from + 500 < count ? { runs, next: runs.at(-1)?.run.runId ?? "" } : { runs };
  };
  return { asked, readPage };
}

test("a tree is read page by page, and each page is shown at once", async () => {
  const { asked, readPage } = pagesOf(1_201);
  const taken: [number, boolean][] = [];
  const isCut = await readTree(readPage, (runs, isAll) => taken.push([runs.length, isAll]));
  assert.deepEqual([isCut, asked], [false, [undefined, "r499", "r999"]]);
  assert.deepEqual(taken, [[500, false], [1_000, false], [1_201, true]]);
});

test("a larger tree ends at the limit, and says so", async () => {
  for (const [count, isCut] of [[MAX_TREE_RUNS, false], [MAX_TREE_RUNS + 1, true], [MAX_TREE_RUNS * 2, true]] as const) {
    const { asked, readPage } = pagesOf(count);
    let last: readonly TreeRun[] = [];
    assert.equal(await readTree(readPage, (runs) => (last = runs)), isCut, String(count));
    assert.deepEqual([last.length, asked.length], [MAX_TREE_RUNS, MAX_TREE_RUNS / 500]);
  }
});

test("a tree that is read again keeps its rows meanwhile", () => {
  const old = children(4, "old");
  const names = (runs: readonly TreeRun[]): string[] => runs.map(({ run }) => `${run.runId} ${run.name}`);
  assert.deepEqual(names(replaceBeginning(old, children(2, "new"))), ["r0 new", "r1 new", "r2 old", "r3 old"]);
  assert.deepEqual(names(replaceBeginning(old, children(4, "new"))), names(children(4, "new")));
  assert.deepEqual(names(replaceBeginning([], children(1, "new"))), ["r0 new"]);
  // New runs may stand at the end of a page.
  assert.deepEqual(names(replaceBeginning(old, children(5, "new"))), names(children(5, "new")));
});
