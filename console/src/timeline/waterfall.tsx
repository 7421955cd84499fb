// The wide timeline: a tree of rows, each a sentence and a bar. Draws only the rows in view, however long the run is. The page
// owns which row is chosen; arrow keys choose another one.

import { type RunSummary, type RunTimeline, type TreeRun, activeCalls } from "@redflow/bindings";
import type { ReadonlySignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatConfidence } from "./chart.js";
import { Clock } from "./clock.js";
import { useEnvironment } from "./environment.js";
import { Foreign, Sentence } from "./foreign.js";
import { FailedModelSentence, ModelNumbers, ModelSentence, RemarkSentence, ToolNumbers, ToolSentence } from "./sentences.js";
import { type LiveText, LivePreview } from "./steps.js";
import { type TimeScale, timeScale } from "./time-scale.js";
import { type Bar, type Row, type Selection, busySpans, keyOf, placesOf, rowsOf } from "./waterfall-rows.js";

/** The height of a row; larger where fingers point. Each has a class of its own in timeline.css. */
const [ROW_PX, TOUCH_ROW_PX] = [30, 44];

/** How many rows are drawn before and after those in view. */
const OVERSCAN = 10;

/** The height of the view before it is measured. */
const UNMEASURED_PX = 600;

/** How far each level is indented, up to the most levels. */
const [INDENT_PX, MAX_INDENT] = [14, 8];

/** The narrowest bar, so that a short call is visible. */
const MIN_BAR = 0.004;

/** Rows show the places of this many folded pauses; with more, only the axis does. */
const MAX_BANDS = 10;

/** A folded pause that is narrower has no label of its own. */
const MIN_LABEL_WIDTH = 0.03;

const NO_RUNS: readonly TreeRun[] = [];
const NONE_TOGGLED: ReadonlySet<string> = new Set();

/** A tree of rows with bars. The page shows the chosen row beside it. */
export interface WideLayout {
  mode: "wide";
  /** The runs that this run has started, and those that they have started. */
  childRuns?: readonly TreeRun[];
  chosen: Selection;
  onChoose: (selection: Selection) => void;
  /** Opens a run that this run has started. */
  onOpenRun?: (run: RunSummary) => void;
  /** The address of such a run, for a link. */
  addressOf?: (run: RunSummary) => string;
}

export interface WaterfallProps {
  timeline: RunTimeline;
  clock: ReadonlySignal<number>;
  live: LiveText | undefined;
  layout: WideLayout;
}

export function Waterfall({ timeline, clock, live, layout }: WaterfallProps): VNode {
  const [toggled, setToggled] = useState(NONE_TOGGLED);
  const childRuns = layout.childRuns ?? NO_RUNS;
  // Only a run that goes on is drawn again when the clock ticks.
  const now = timeline.end === undefined ? clock.value : clock.peek();
  // There may be thousands of rows, so they are made only when they change.
  const rows = useMemo(() => rowsOf(timeline, { now, childRuns, toggled }), [timeline, now, childRuns, toggled]);
  // A fold moves no bar.
  const scale = useMemo(() => scaleOf(toggled.size === 0 ? rows : rowsOf(timeline, { now, childRuns, toggled: NONE_TOGGLED }), now), [rows]);
  const toggle = (selection: Selection): void => {
    const next = new Set(toggled);
    if (!next.delete(keyOf(selection))) {
      next.add(keyOf(selection));
    }
    setToggled(next);
  };
  const isWriting = live !== undefined && activeCalls(timeline).some(({ callId, iteration }) => callId === undefined && iteration === live.iteration);
  return (
    <>
      <LeftOut timeline={timeline} />
      <Axis scale={scale.time} length={scale.length} />
      <Tree {...{ rows, timeline, clock, layout, toggle }} scale={scale.time} />
      {isWriting && <LivePreview live={live} />}
    </>
  );
}

function scaleOf(rows: readonly Row[], now: number): { time: TimeScale; length: number } {
  const ends = rows.flatMap(({ bar }) => [bar.work.to, bar.wait?.to ?? bar.work.to]);
  const whole = { from: rows[0]?.bar.work.from ?? now, to: ends.reduce((latest, end) => Math.max(latest, end), 0) };
  return { time: timeScale(whole, busySpans(rows)), length: whole.to - whole.from };
}

function LeftOut({ timeline: { stepsLeftOut: n, remarksLeftOut: remarks } }: { timeline: RunTimeline }): VNode | null {
  const { words } = useEnvironment();
  return n + remarks === 0 ? null : <p class="redflow-hint">{words("timeline.leftOut", { n, remarks })}</p>;
}

const percent = (place: number): string => `${(place * 100).toFixed(3)}%`;

/** The length of the run, and the folded pauses. */
function Axis({ scale: { pauses }, length }: { scale: TimeScale; length: number }): VNode {
  const { words, formats } = useEnvironment();
  const idle = pauses.reduce((sum, { from, to }) => sum + to - from, 0);
  return (
    <>
      {pauses.length > 0 && <p class="redflow-hint">{words("timeline.pauses", { n: pauses.length, length: formats.duration(idle) })}</p>}
      <div class="redflow-axis" aria-hidden="true">
        <span />
        <svg class="redflow-bars" width="100%" height="16">
          {pauses.map(({ from, to, start, end }) => (
            <g key={from}>
              <Band start={start} end={end} />
              {end - start >= MIN_LABEL_WIDTH && (
                <text x={percent((start + end) / 2)} y="11" text-anchor="middle">
                  {formats.duration(to - from)}
                </text>
              )}
              <title>{words("timeline.pause", { length: formats.duration(to - from) })}</title>
            </g>
          ))}
        </svg>
        <span class="redflow-took">{formats.duration(length)}</span>
      </div>
    </>
  );
}

function Band({ start, end }: { start: number; end: number }): VNode {
  return <rect class="redflow-pause" x={percent(start)} width={percent(end - start)} y="0" height="100%" />;
}

interface TreeProps extends Pick<WaterfallProps, "timeline" | "clock" | "layout"> {
  rows: Row[];
  scale: TimeScale;
  /** Folds or unfolds a row. */
  toggle: (selection: Selection) => void;
}

function Tree({ rows, timeline, clock, layout, scale, toggle }: TreeProps): VNode {
  const { words } = useEnvironment();
  const view = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, rowPx] = useSizes(view, rows.length);
  const chosenKey = keyOf(layout.chosen);
  const chosen = useMemo(() => Math.max(0, rows.findIndex(({ selection }) => keyOf(selection) === chosenKey)), [rows, chosenKey]);
  const first = Math.max(0, Math.floor(top / rowPx) - OVERSCAN);
  const shown = rows.slice(first, Math.ceil((top + height) / rowPx) + OVERSCAN);
  const after = rows.length - first - shown.length;
  // A row that comes into view takes the elements of one that has left it: to change them is faster than to make new ones.
  const slots = Math.ceil(height / rowPx) + 1 + 2 * OVERSCAN;
  const places = useMemo(() => placesOf(rows), [rows]);
  const id = useId();
  const isChosenShown = chosen >= first && chosen < first + shown.length;
  useLayoutEffect(() => scrollTo(view.current, chosen, rowPx), [chosen, rowPx]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[chosen];
    if (row === undefined || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const act = actionOf(event.key, { rows, at: chosen, row });
    if (act === undefined) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    if (act.is === "toggle") {
      toggle(row.selection);
    } else if (act.is === "open") {
      layout.onOpenRun?.(act.run);
    } else if (act.row !== undefined) {
      layout.onChoose(act.row.selection);
    }
  };
  return (
    <div
      ref={view}
      class={`redflow-waterfall${rowPx === TOUCH_ROW_PX ? " redflow-touch" : ""}`}
      role="tree"
      tabIndex={0}
      aria-label={words("timeline.waterfall")}
      aria-activedescendant={isChosenShown ? `${id}-${chosen}` : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
    >
      <div role="presentation" style={{ height: `${first * rowPx}px` }} />
      {shown.map((row, index) => (
        <TreeRow
          key={(first + index) % slots}
          {...{ row, clock, scale, layout, toggle }}
          id={`${id}-${first + index}`}
          since={sinceOf(timeline, row)}
          isChosen={first + index === chosen}
          place={places[first + index] ?? { at: 1, of: 1 }}
        />
      ))}
      <div role="presentation" style={{ height: `${after * rowPx}px` }} />
    </div>
  );
}

/** The height of the view and that of a row. The view grows with its rows, up to a limit. */
function useSizes(view: { current: HTMLDivElement | null }, rows: number): [number, number] {
  const [height, setHeight] = useState(UNMEASURED_PX);
  const [rowPx] = useState(() => (globalThis.matchMedia?.("(pointer: coarse), (max-width: 600px)").matches ? TOUCH_ROW_PX : ROW_PX));
  const measure = (): void => setHeight(view.current?.clientHeight || UNMEASURED_PX);
  useLayoutEffect(measure, [rows]);
  useEffect(() => {
    globalThis.addEventListener?.("resize", measure);
    return () => globalThis.removeEventListener?.("resize", measure);
  }, []);
  return [height, rowPx];
}

/** Scrolls as little as possible until a row is in view. */
function scrollTo(view: HTMLElement | null, at: number, rowPx: number): void {
  if (view === null || view.clientHeight === 0) {
    return;
  }
  const [rowTop, rowBottom] = [at * rowPx, (at + 1) * rowPx];
  if (rowTop < view.scrollTop) {
    view.scrollTop = rowTop;
  } else if (rowBottom > view.scrollTop + view.clientHeight) {
    view.scrollTop = rowBottom - view.clientHeight;
  }
}

function sinceOf(timeline: RunTimeline, { selection }: Row): number | undefined {
  if (selection.is !== "model" && selection.is !== "tool") {
    return undefined;
  }
  const id = selection.is === "tool" ? selection.callId : undefined;
  return activeCalls(timeline).find(({ iteration, callId }) => iteration === selection.iteration && callId === id)?.since;
}

type Action = { is: "choose"; row: Row | undefined } | { is: "toggle" } | { is: "open"; run: RunSummary };

/** Whether rows below it are hidden; undefined if it has none. */
function foldOf(row: Row): boolean | undefined {
  return row.is === "iteration" || row.is === "child" ? row.isFolded : undefined;
}

/** What a key does, as in every tree. Undefined if it does nothing here. */
function actionOf(key: string, { rows, at, row }: { rows: readonly Row[]; at: number; row: Row }): Action | undefined {
  switch (key) {
    case "ArrowDown":
      return { is: "choose", row: rows[at + 1] };
    case "ArrowUp":
      return { is: "choose", row: rows[at - 1] };
    case "Home":
      return { is: "choose", row: rows[0] };
    case "End":
      return { is: "choose", row: rows.at(-1) };
    case "ArrowLeft":
      return foldOf(row) === false ? { is: "toggle" } : { is: "choose", row: rows.slice(0, at).findLast(({ level }) => level < row.level) };
    case "ArrowRight":
      return foldOf(row) === true ? { is: "toggle" } : { is: "choose", row: (rows[at + 1]?.level ?? 0) > row.level ? rows[at + 1] : undefined };
    case "Enter":
      return row.is === "child" ? { is: "open", run: row.run } : undefined;
    default:
      return undefined;
  }
}

interface TreeRowProps extends Pick<TreeProps, "clock" | "scale" | "layout" | "toggle"> {
  id: string;
  row: Row;
  /** Since when its call runs; undefined if it does not. */
  since: number | undefined;
  isChosen: boolean;
  place: { at: number; of: number };
}

function TreeRow({ row, id, clock, scale, layout, toggle, since, isChosen, place }: TreeRowProps): VNode {
  const isFolded = foldOf(row);
  const onClick = (): void => {
    if (isFolded !== undefined && isChosen) {
      toggle(row.selection);
    }
    layout.onChoose(row.selection);
  };
  return (
    <div
      id={id}
      class={`redflow-row redflow-row-${row.is}`}
      role="treeitem"
      aria-level={row.level}
      aria-posinset={place.at}
      aria-setsize={place.of}
      aria-selected={isChosen}
      {...(isFolded !== undefined && { "aria-expanded": !isFolded })}
      onClick={onClick}
      onDblClick={() => row.is === "child" && layout.onOpenRun?.(row.run)}
    >
      <span class="redflow-row-text" style={{ paddingInlineStart: `${Math.min(row.level, MAX_INDENT) * INDENT_PX}px` }}>
        <RowSentence row={row} addressOf={layout.addressOf} />
      </span>
      <RowBar bar={row.bar} scale={scale} />
      <span class="redflow-row-numbers">
        <RowNumbers row={row} />
        {since !== undefined && <Clock clock={clock} since={since} />}
      </span>
    </div>
  );
}

function RowSentence({ row, addressOf }: { row: Row; addressOf: WideLayout["addressOf"] }): VNode {
  const { words } = useEnvironment();
  switch (row.is) {
    case "run":
      return <Sentence of="timeline.run" values={{ name: <Foreign as="span" text={row.name} /> }} />;
    case "iteration":
      return <>{words("timeline.iteration", { iteration: row.iteration })}</>;
    case "model":
      return <ModelSentence model={row.model} unanswered={row.unanswered} />;
    case "failed_model":
      return <FailedModelSentence failed={row.failed} />;
    case "tool":
      return <ToolSentence tool={row.tool} unanswered={row.unanswered} />;
    case "left_out":
      return <>{`${words("timeline.tool.count", { n: row.calls })} ${words("timeline.tool.leftOut", { n: row.leftOut })}`}</>;
    case "remark":
      return <RemarkSentence remark={row.remark} />;
    case "child": {
      const name = <Foreign as="span" text={row.run.name} />;
      // The tree has one stop for Tab; there Enter opens the run.
      const link = addressOf === undefined ? name : <a href={addressOf(row.run)} tabIndex={-1}>{name}</a>;
      const values = { name: link, status: words(`timeline.status.${row.run.status}`) };
      return <Sentence of="timeline.childRun" values={values} />;
    }
  }
}

function RowNumbers({ row }: { row: Row }): VNode | null {
  const { words, formats } = useEnvironment();
  const { work } = row.bar;
  switch (row.is) {
    case "model":
      return <ModelNumbers model={row.model} />;
    case "tool":
      return <ToolNumbers tool={row.tool} />;
    case "run":
    case "child":
      return <span class="redflow-took">{formats.duration(work.to - work.from)}</span>;
    case "iteration":
      // The model's row has it, unless it is hidden.
      return row.isFolded && row.confidence !== undefined ? (
        <span class="redflow-confidence" title={words("timeline.chart.title")}>
          {formatConfidence(formats, row.confidence)}
        </span>
      ) : null;
    case "failed_model":
    case "left_out":
    case "remark":
      return null;
  }
}

function RowBar({ bar: { work, wait, state }, scale }: { bar: Bar; scale: TimeScale }): VNode {
  const spans = wait === undefined ? [{ ...work, name: state }] : [{ ...work, name: "done" }, { ...wait, name: "waiting" }];
  return (
    <svg class="redflow-bars" width="100%" height="100%" aria-hidden="true">
      {(scale.pauses.length > MAX_BANDS ? [] : scale.pauses).map(({ from, start, end }) => (
        <Band key={from} start={start} end={end} />
      ))}
      {spans.map(({ from, to, name }) => {
        const width = Math.max(MIN_BAR, scale.at(to) - scale.at(from));
        const x = Math.min(scale.at(from), 1 - width);
        return <rect key={name} class={`redflow-bar redflow-bar-${name}`} x={percent(x)} width={percent(width)} y="50%" height="10" rx="2" />;
      })}
    </svg>
  );
}
