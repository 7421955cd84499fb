// The scale of a waterfall: from times to places between 0 and 1. The whole run always fits. Long pauses, in which nothing runs,
// are folded to a narrow band, so that they do not squeeze the calls. Pure.

/** A span of time, in milliseconds. */
export interface Span {
  from: number;
  to: number;
}

/** A folded pause and its place. */
export interface Pause extends Span {
  start: number;
  end: number;
}

export interface TimeScale {
  /** The place of a time, from 0 to 1. Never falls as the time grows. */
  at(time: number): number;
  /** The folded pauses, in order. */
  pauses: Pause[];
}

/** Shorter pauses are not folded. */
export const MIN_PAUSE_MS = 1_000;

/** The most pauses that are folded, the longest. */
export const MAX_PAUSES = 100;

/** The width of a folded pause, if there are few. */
const PAUSE_WIDTH = 0.04;

/** The most width of all folded pauses together. */
const MAX_PAUSES_WIDTH = 0.3;

/**
 * The scale of a span in which `busy` are the times of calls. Folds the longest pauses, until those that are left are together not
 * longer than the calls.
 */
export function timeScale(whole: Span, busy: readonly Span[]): TimeScale {
  const calls = merge(whole, busy);
  const pauses = pausesBetween(whole, calls);
  const busyMs = sumOf(calls);
  let idleMs = sumOf(pauses);
  const folded = new Set<Span>();
  for (const pause of pauses.toSorted((a, b) => lengthOf(b) - lengthOf(a))) {
    if (idleMs <= busyMs || lengthOf(pause) < MIN_PAUSE_MS || folded.size === MAX_PAUSES) {
      break;
    }
    folded.add(pause);
    idleMs -= lengthOf(pause);
  }
  const foldedWidth = folded.size === 0 ? 0 : Math.min(PAUSE_WIDTH, MAX_PAUSES_WIDTH / folded.size);
  const openWidth = 1 - foldedWidth * folded.size;
  const openMs = Math.max(1, busyMs + idleMs);
  const pieces: (Pause & { isFolded: boolean })[] = [];
  let start = 0;
  for (const piece of [...calls, ...pauses].sort((a, b) => a.from - b.from || a.to - b.to)) {
    const isFolded = folded.has(piece);
    const end = Math.min(1, start + (isFolded ? foldedWidth : (lengthOf(piece) / openMs) * openWidth));
    pieces.push({ ...piece, start, end, isFolded });
    start = end;
  }
  return { pauses: pieces.filter(({ isFolded }) => isFolded), at: (time) => placeIn(pieces, time) };
}

function lengthOf({ from, to }: Span): number {
  return to - from;
}

function sumOf(spans: readonly Span[]): number {
  return spans.reduce((sum, span) => sum + lengthOf(span), 0);
}

/** The spans without overlaps, inside the whole. */
function merge(whole: Span, spans: readonly Span[]): Span[] {
  const inside = spans
    .map(({ from, to }) => ({ from: Math.max(whole.from, from), to: Math.min(whole.to, Math.max(from, to)) }))
    .filter(({ from, to }) => from <= to)
    .sort((a, b) => a.from - b.from);
  const merged: Span[] = [];
  for (const span of inside) {
    const last = merged.at(-1);
    if (last !== undefined && span.from <= last.to) {
      last.to = Math.max(last.to, span.to);
    } else {
      merged.push({ ...span });
    }
  }
  return merged;
}

function pausesBetween(whole: Span, calls: readonly Span[]): Span[] {
  const starts = [whole.from, ...calls.map(({ to }) => to)];
  const ends = [...calls.map(({ from }) => from), whole.to];
  return starts.map((from, index) => ({ from, to: ends[index] ?? from })).filter(({ from, to }) => to > from);
}

function placeIn(pieces: readonly Pause[], time: number): number {
  let [low, high] = [0, pieces.length - 1];
  // The first piece that ends at this time or later.
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((pieces[middle]?.to ?? 0) < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const piece = pieces[low];
  if (piece === undefined || time <= piece.from || lengthOf(piece) === 0) {
    return piece?.start ?? 0;
  }
  return time >= piece.to ? piece.end : piece.start + ((time - piece.from) / lengthOf(piece)) * (piece.end - piece.start);
}
