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
  const pieces = withPauses(whole, calls);
  const pauses = pieces.filter(({ isPause }) => isPause);
  const busyMs = sumOf(calls);
  let idleMs = sumOf(pauses);
  const long = pauses.filter((pause) => lengthOf(pause) >= MIN_PAUSE_MS).sort((a, b) => lengthOf(b) - lengthOf(a));
  const folded = new Set<Piece>();
  for (const pause of long.slice(0, MAX_PAUSES)) {
    if (idleMs <= busyMs) {
      break;
    }
    folded.add(pause);
    idleMs -= lengthOf(pause);
  }
  const foldedWidth = folded.size === 0 ? 0 : Math.min(PAUSE_WIDTH, MAX_PAUSES_WIDTH / folded.size);
  const openWidth = 1 - foldedWidth * folded.size;
  const openMs = Math.max(1, busyMs + idleMs);
  let start = 0;
  for (const piece of pieces) {
    piece.start = start;
    start = Math.min(1, start + (folded.has(piece) ? foldedWidth : (lengthOf(piece) / openMs) * openWidth));
    piece.end = start;
  }
  return { pauses: pauses.filter((pause) => folded.has(pause)), at: (time) => placeIn(pieces, time) };
}

/** Calls without a pause between them, or a pause. */
interface Piece extends Pause {
  isPause: boolean;
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

/** The calls and the pauses before, between and after them, in order. They have no places yet. */
function withPauses(whole: Span, calls: readonly Span[]): Piece[] {
  const pieces: Piece[] = [];
  const add = (from: number, to: number, isPause: boolean): void => {
    if (!isPause || to > from) {
      pieces.push({ from, to, start: 0, end: 0, isPause });
    }
  };
  let last = whole.from;
  for (const { from, to } of calls) {
    add(last, from, true);
    add(from, to, false);
    last = to;
  }
  add(last, whole.to, true);
  return pieces;
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
