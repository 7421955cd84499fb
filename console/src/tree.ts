// Reads the runs below a run, page by page, up to a limit.

import type { RunId, RunTree, TreeRun } from "@redflow/bindings";

/** The most runs of a tree that are read. */
export const MAX_TREE_RUNS = 10_000;

/** Reads one page of a tree, after the last run of the page before. */
type ReadPage = (after: RunId | undefined) => Promise<RunTree>;

/** Reads a tree. `take` gets what is read so far after each page, and whether that is all. Returns whether more runs exist. */
export async function readTree(readPage: ReadPage, take: (runs: readonly TreeRun[], isAll: boolean) => void): Promise<boolean> {
  const runs: TreeRun[] = [];
  let next: RunId | undefined;
  let isAll: boolean;
  do {
    const page = await readPage(next);
    runs.push(...page.runs.slice(0, MAX_TREE_RUNS - runs.length));
    next = page.next;
    isAll = next === undefined || runs.length >= MAX_TREE_RUNS;
    take([...runs], isAll);
  } while (!isAll);
  return next !== undefined;
}

/** The rows while a tree is read again: what is read so far, and the old rows after that. */
export function replaceBeginning(old: readonly TreeRun[], read: readonly TreeRun[]): readonly TreeRun[] {
  const last = read.at(-1)?.run.runId;
  const place = old.findIndex(({ run }) => run.runId === last);
  return place < 0 || place + 1 >= old.length ? read : [...read, ...old.slice(place + 1)];
}
