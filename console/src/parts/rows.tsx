// A table that draws only the rows in sight. All rows have one height; details are shown beside, never between.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** The height of a row in pixels; the style sheet has the same. */
export const ROW_HEIGHT = 44;
/** The rows that are drawn above and below those in sight. */
const MARGIN = 8;

export interface Range {
  from: number;
  to: number;
}

/** The rows to draw. */
export function rowsInSight(count: number, scrolled: number, height: number): Range {
  const first = Math.floor(Math.max(0, scrolled) / ROW_HEIGHT) - MARGIN;
  const last = Math.ceil((Math.max(0, scrolled) + height) / ROW_HEIGHT) + MARGIN;
  const from = Math.max(0, Math.min(first, count));
  return { from, to: Math.max(from, Math.min(count, last)) };
}

export interface Column<Row> {
  name: string;
  title: string;
  isNumber?: boolean;
  view: (row: Row) => ComponentChildren;
}

interface RowsProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  keyOf: (row: Row) => string;
  /** The class of the table, which sets the widths of the columns. */
  class: string;
  /** The view goes back to the top when it changes. */
  turn?: number;
  /** Called when the last row comes into sight. */
  onEnd?: () => void;
  /** Whether the reader is at the top and points at no row. */
  onRest?: (isAtRest: boolean) => void;
}

export function Rows<Row>(props: RowsProps<Row>) {
  const { label, rows, columns, keyOf, turn, onEnd, onRest } = props;
  const box = useRef<HTMLDivElement>(null);
  const [scrolled, setScrolled] = useState(0);
  const [height, setHeight] = useState(800);
  /** The row with the focus. It stays also out of sight, so that the focus does. */
  const [focused, setFocused] = useState<string | undefined>();
  const isPointed = useRef(false);
  const report = (): void => onRest?.(!isPointed.current && (box.current?.scrollTop ?? 0) < ROW_HEIGHT);
  const point = (isThere: boolean): void => {
    isPointed.current = isThere;
    report();
  };
  useEffect(() => {
    const measure = (): void => setHeight(box.current?.clientHeight || 800);
    measure();
    report();
    window.addEventListener("resize", measure);
    return () => window.removeEventListener("resize", measure);
  }, []);
  useEffect(() => box.current?.scrollTo(0, 0), [turn]);
  const { from, to } = rowsInSight(rows.length, scrolled, height);
  const drawn = rows.slice(from, to).map((row, index) => ({ row, index: from + index }));
  const kept = focused === undefined ? -1 : rows.findIndex((row) => keyOf(row) === focused);
  const keptRow = rows[kept];
  if (keptRow !== undefined && (kept < from || kept >= to)) {
    drawn.splice(kept < from ? 0 : drawn.length, 0, { row: keptRow, index: kept });
  }
  useEffect(() => {
    if (rows.length > 0 && to === rows.length) {
      onEnd?.();
    }
  }, [to, rows.length]);
  return (
    <div
      class={`rows ${props.class}`}
      ref={box}
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      onScroll={(event: Event) => {
        setScrolled((event.currentTarget as HTMLElement).scrollTop);
        report();
      }}
      onPointerEnter={() => point(true)}
      onPointerLeave={() => point(false)}
    >
      <div role="rowgroup" class="rows-head">
        <div role="row" class="row" aria-rowindex={1}>
          {columns.map(({ name, title, isNumber }) => (
            <div key={name} role="columnheader" class={`cell-${name}${isNumber ? " number" : ""}`}>
              {title}
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="rows-body" style={{ height: `${rows.length * ROW_HEIGHT}px` }}>
        {drawn.map(({ row, index }) => (
          <div
            key={keyOf(row)}
            role="row"
            class="row"
            aria-rowindex={index + 2}
            style={{ transform: `translateY(${index * ROW_HEIGHT}px)` }}
            onFocusIn={() => setFocused(keyOf(row))}
            onFocusOut={() => setFocused(undefined)}
          >
            {columns.map(({ name, isNumber, view }) => (
              <div key={name} role="cell" class={`cell-${name}${isNumber ? " number" : ""}`}>
                {view(row)}
              </div>
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}
