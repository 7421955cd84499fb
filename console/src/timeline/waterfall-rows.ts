// The rows of a waterfall: the run, its iterations, their calls, remarks, and the runs that it started. Pure.

import {
  type FailedModelStep,
  type IterationStep,
  type ModelStep,
  type RunRemark,
  type RunSummary,
  type RunTimeline,
  type ToolStep,
  type TreeRun,
  type Unanswered,
  unansweredReason,
} from "@redflow/bindings";
import type { Span } from "./time-scale.js";

/** Which row is chosen. */
export type Selection =
  | { is: "run" }
  | { is: "iteration"; iteration: number }
  | { is: "model"; iteration: number }
  | { is: "failed_model"; iteration: number; seq: number }
  | { is: "tool"; iteration: number; callId: string }
  | { is: "left_out"; iteration: number }
  | { is: "remark"; seq: number }
  | { is: "child"; runId: string };

/** How a call is: running, ended well, failed, or waiting for a person. */
export type BarState = "running" | "done" | "failed" | "waiting";

export interface Bar {
  /** When the work was done. */
  work: Span;
  /** When the call waited for a person. */
  wait?: Span;
  state: BarState;
}

export type Row = { selection: Selection; level: number; bar: Bar } & (
  | { is: "run"; name: string }
  | { is: "iteration"; iteration: number; isFolded: boolean; confidence: number | undefined }
  | { is: "model"; model: ModelStep; unanswered: Unanswered | undefined }
  | { is: "failed_model"; failed: FailedModelStep }
  | { is: "tool"; tool: ToolStep; unanswered: Unanswered | undefined }
  | { is: "left_out"; calls: number; leftOut: number }
  | { is: "remark"; remark: RunRemark }
  | { is: "child"; run: RunSummary; isFolded: boolean | undefined }
);

export interface RowsOptions {
  now: number;
  /** The runs that this run has started, and those that they have started: each after its parent. */
  childRuns: readonly TreeRun[];
  /** The keys of rows that a user has folded or unfolded. Iterations begin unfolded, child runs folded. */
  toggled: ReadonlySet<string>;
}

/** The key of a row. */
export function keyOf(selection: Selection): string {
  const { is, ...place } = selection;
  return [is, ...Object.values(place)].join("-");
}

/** The rows of a run, in the order in which things began. */
export function rowsOf(timeline: RunTimeline, { now, childRuns, toggled }: RowsOptions): Row[] {
  const { steps, remarks, end } = timeline;
  const until = end?.at ?? now;
  const unanswered = end && unansweredReason(end);
  // A run, a remark or an iteration stands where it began.
  const groups: Row[][] = [
    ...steps.map((step) => rowsOfStep(step, { unanswered, until, toggled })),
    ...remarks.map((remark): Row[] => [
      { is: "remark", selection: { is: "remark", seq: remark.seq }, level: 2, bar: pointAt(remark.at), remark },
    ]),
    ...rowsOfChildren(childRuns, now, toggled),
  ];
  const inside = groups.sort((a, b) => startOf(a) - startOf(b)).flat();
  const from = inside.reduce((first, { bar }) => Math.min(first, bar.work.from), timeline.startedAt ?? until);
  const isWaiting = inside.some(({ is, bar }) => is === "tool" && bar.state === "waiting");
  const state = end === undefined ? (isWaiting ? "waiting" : "running") : end.error ? "failed" : "done";
  return [{ is: "run", selection: { is: "run" }, level: 1, bar: { work: { from, to: until }, state }, name: timeline.name }, ...inside];
}

/** The rows of the child runs, in one group for each run that this run itself has started. */
function rowsOfChildren(childRuns: readonly TreeRun[], now: number, toggled: ReadonlySet<string>): Row[][] {
  const groups: Row[][] = [];
  // The rows below a folded run are hidden: those that are deeper than this.
  let hiddenBelow = Infinity;
  childRuns.forEach(({ run, depth }, index) => {
    if (depth > hiddenBelow) {
      return;
    }
    const selection: Selection = { is: "child", runId: run.runId };
    const isParent = (childRuns[index + 1]?.depth ?? 0) > depth;
    const isFolded = isParent ? !toggled.has(keyOf(selection)) : undefined;
    hiddenBelow = isFolded === true ? depth : Infinity;
    const row: Row = { is: "child", selection, level: depth + 1, bar: barOfRun(run, now), run, isFolded };
    if (depth === 1) {
      groups.push([row]);
    } else {
      groups.at(-1)?.push(row);
    }
  });
  return groups;
}

/** The place of each row among the rows below the same one, and how many these are. */
export function placesOf(rows: readonly Row[]): { at: number; of: number }[] {
  const places = rows.map(() => ({ at: 0, of: 0 }));
  /** The rows of the open level and of those above it. */
  const open: number[][] = [];
  const close = (level: number): void => {
    for (const siblings of open.splice(level)) {
      siblings.forEach((row, index) => (places[row] = { at: index + 1, of: siblings.length }));
    }
  };
  rows.forEach(({ level }, index) => {
    close(level);
    (open[level - 1] ??= []).push(index);
  });
  close(0);
  return places;
}

/** The spans in which something ran. */
export function busySpans(rows: readonly Row[]): Span[] {
  return rows.flatMap(({ is, bar }) => (is === "run" || is === "iteration" ? [] : [bar.work]));
}

function startOf([first]: readonly Row[]): number {
  return first?.bar.work.from ?? 0;
}

function pointAt(at: number): Bar {
  return { work: { from: at, to: at }, state: "done" };
}

interface StepOptions {
  unanswered: Unanswered | undefined;
  until: number;
  toggled: ReadonlySet<string>;
}

function rowsOfStep({ iteration, model, failedModels, tools, toolsLeftOut }: IterationStep, { unanswered, until, toggled }: StepOptions): Row[] {
  const selection: Selection = { is: "iteration", iteration };
  const calls: Row[] = tools.map((tool) => ({
    ...{ is: "tool", selection: { is: "tool", iteration, callId: tool.callId }, level: 3 },
    ...{ bar: barOfTool(tool, until, unanswered), tool, unanswered },
  }));
  const modelRow: Row[] = model
    ? [{ is: "model", selection: { is: "model", iteration }, level: 3, bar: barOfModel(model, until, unanswered), model, unanswered }]
    : [];
  const work = around([...modelRow, ...calls]) ?? { from: until, to: until };
  const failed = failedModels.map((failed): Row => {
    const bar: Bar = { work: { from: work.from, to: work.from }, state: "failed" };
    return { is: "failed_model", selection: { is: "failed_model", iteration, seq: failed.seq }, level: 3, bar, failed };
  });
  const leftOut: Row[] =
    toolsLeftOut === 0
      ? []
      : [{ is: "left_out", selection: { is: "left_out", iteration }, level: 3, bar: pointAt(work.to), calls: tools.length + toolsLeftOut, leftOut: toolsLeftOut }];
  const inside = [...failed, ...modelRow, ...calls, ...leftOut];
  // An iteration goes on after a failed tool call.
  const states = [...modelRow, ...calls].map(({ bar }) => bar.state);
  const state = (["waiting", "running"] as const).find((open) => states.includes(open)) ?? modelRow[0]?.bar.state ?? "done";
  const isFolded = toggled.has(keyOf(selection));
  const own: Row = { is: "iteration", selection, level: 2, bar: { work, state }, iteration, isFolded, confidence: model?.confidence };
  return [own, ...(isFolded ? [] : inside)];
}

/** The span around rows, with the time in which they waited. */
function around(rows: readonly Row[]): Span | undefined {
  const spans = rows.flatMap(({ bar }) => (bar.wait === undefined ? [bar.work] : [bar.work, bar.wait]));
  return spans.length === 0
    ? undefined
    : { from: Math.min(...spans.map(({ from }) => from)), to: Math.max(...spans.map(({ to }) => to)) };
}

function barOfModel({ askedAt, answeredAt, durationMs, open }: ModelStep, until: number, unanswered: Unanswered | undefined): Bar {
  const to = open ? until : (answeredAt ?? until);
  const from = askedAt ?? to - (durationMs ?? 0);
  return { work: { from, to: Math.max(from, to) }, state: !open ? "done" : unanswered === undefined ? "running" : "failed" };
}

function barOfTool(tool: ToolStep, until: number, unanswered: Unanswered | undefined): Bar {
  const { calledAt, returnedAt, durationMs, success, open, waiting, waitedSince } = tool;
  const ended = open ? until : (returnedAt ?? until);
  const waitFrom = waiting?.at ?? waitedSince;
  const from = calledAt ?? waitFrom ?? ended - (durationMs ?? 0);
  const to = Math.max(from, waitFrom ?? ended);
  const openState = unanswered !== undefined ? "failed" : waiting !== undefined ? "waiting" : "running";
  const state = open ? openState : success === true ? "done" : "failed";
  return { work: { from, to }, ...(waitFrom !== undefined && { wait: { from: to, to: Math.max(to, ended) } }), state };
}

const CHILD_STATES: Partial<Record<RunSummary["status"], BarState>> = {
  running: "running",
  interrupted: "running",
  waiting: "waiting",
  failed: "failed",
  damaged: "failed",
};

function barOfRun({ startedAt, endedAt, status }: RunSummary, now: number): Bar {
  return { work: { from: startedAt, to: Math.max(startedAt, endedAt ?? now) }, state: CHILD_STATES[status] ?? "done" };
}
