// The list of runs as data: its filter in the address, and how pages and events change its rows.

import type { EventsItem, RunErrorCode, RunEvent, RunEventKind, RunId, RunStatus, RunSummary, RunsFilter, TreeRun } from "@redflow/bindings";

/** The most rows that a list holds. */
export const MAX_ROWS = 10_000;

export const STATUSES: readonly RunStatus[] = ["running", "interrupted", "waiting", "completed", "stopped", "failed", "damaged"];
/** The statuses of runs that have not ended. */
export const OPEN_STATUSES: readonly RunStatus[] = ["running", "interrupted", "waiting"];
/** The periods of the filter, in hours. */
export const PERIODS: Readonly<Record<string, number>> = { "1h": 1, "24h": 24, "7d": 168, "30d": 720 };

const HOUR_MS = 3_600_000;

/** The filter of a list. */
export interface ListFilter extends RunsFilter {
  status?: readonly RunStatus[] | undefined;
  /** The age of the oldest runs, a key of `PERIODS`. */
  period?: string;
}

/** The filter of an address. Values that the console does not know are left out. */
export function filterOf(query: Readonly<Record<string, string>>): ListFilter {
  const names = (query["status"] ?? "").split(",");
  const status = STATUSES.filter((name) => names.includes(name));
  const text = (name: string): string | undefined => (query[name] ?? "").trim().slice(0, 200) || undefined;
  const period = query["period"];
  return {
    status: status.length > 0 ? status : undefined,
    agent: text("agent"),
    instance: text("instance"),
    // The sidecar says if there is no such code.
    code: text("code")?.toUpperCase() as RunErrorCode | undefined,
    prefix: text("prefix")?.toLowerCase(),
    roots: query["roots"] === "true" ? true : undefined,
    ...(period !== undefined && period in PERIODS ? { period } : {}),
  };
}

/** The request of a filter. */
export function requestOf({ period, ...query }: ListFilter, now: number): ListFilter {
  const hours = period === undefined ? undefined : PERIODS[period];
  return hours === undefined ? query : { ...query, since: now - hours * HOUR_MS };
}

/** The status that an event gives its run; undefined if it gives none. */
export function statusAfter(event: RunEventKind): RunStatus | undefined {
  switch (event.type) {
    case "waiting_for_outcome":
      return "waiting";
    // The answer to a call that waited.
    case "tool_returned":
    case "run_started":
      return "running";
    case "run_finished":
      return event.error !== undefined ? "failed" : event.completed ? "completed" : "stopped";
    default:
      return undefined;
  }
}

/** What a filter looks at. A part that is not known is left out. */
type Known = Pick<RunSummary, "runId" | "agent" | "status"> & Partial<Pick<RunSummary, "code" | "startedAt" | "parent">>;

/** Whether a run may belong to the list: nothing that is known of it contradicts the filter. */
export function mayMatch({ status, agent, instance, code, since, until, prefix, roots }: ListFilter, run: Known): boolean {
  const { startedAt } = run;
  return (
    (status === undefined || status.includes(run.status)) &&
    (agent === undefined || agent === run.agent.nodeId) &&
    (instance === undefined || instance === run.agent.instance) &&
    (code === undefined || code === run.code) &&
    (startedAt === undefined || since === undefined || startedAt >= since) &&
    (startedAt === undefined || until === undefined || startedAt < until) &&
    (prefix === undefined || run.runId.startsWith(prefix)) &&
    (roots === undefined || run.parent === undefined)
  );
}

/** The rows after the next page. */
export function appendPage(rows: readonly RunSummary[], page: readonly RunSummary[]): RunSummary[] {
  const known = new Set(rows.map(({ runId }) => runId));
  return [...rows, ...page.filter(({ runId }) => !known.has(runId))].slice(0, MAX_ROWS);
}

/** A run after one of its events. Events may come twice. */
export function applyEvent(run: RunSummary, { at, event }: RunEvent): RunSummary {
  if (run.endedAt !== undefined) {
    return run;
  }
  const status = statusAfter(event) ?? run.status;
  const { waiting, questions, ...rest } = run;
  if (event.type === "tool_returned") {
    // A run waits until each of its questions has an answer.
    const asked = questions ?? (waiting === undefined ? [] : [waiting]);
    const left = asked.filter(({ callId }) => callId !== event.callId);
    if (run.status !== "waiting" || (left.length > 0 && left.length === asked.length)) {
      return run;
    }
    return left[0] === undefined ? { ...rest, status } : { ...run, waiting: left[0], questions: left };
  }
  if (event.type !== "run_finished") {
    return status === run.status ? run : { ...run, status };
  }
  return {
    ...rest,
    status,
    endedAt: at,
    ...(event.error === undefined ? {} : { code: event.error.code }),
    ...(event.tally === undefined ? {} : { tally: event.tally }),
  };
}

/** The descendants of a run that the list shows, and how to get more of them. */
export interface Opened {
  runs: readonly TreeRun[];
  /** The last run, if more follow. */
  next: RunId | undefined;
}

/** The descendants of a run, after events. */
export function applyToChildren(runs: readonly TreeRun[], events: readonly RunEvent[]): readonly TreeRun[] {
  const change = (run: RunSummary): RunSummary => events.filter(({ runId }) => runId === run.runId).reduce(applyEvent, run);
  return events.length === 0 ? runs : runs.map((child) => ({ ...child, run: change(child.run) }));
}

/** A run of the list, or the place after the descendants that were read. */
export type Line = { run: RunSummary; depth: number } | { moreOf: RunId; next: RunId };

/** The lines of the list. */
export function linesOf(rows: readonly RunSummary[], opened: ReadonlyMap<RunId, Opened>): Line[] {
  return rows.flatMap((run): Line[] => {
    const { runs = [], next } = opened.get(run.runId) ?? {};
    return [{ run, depth: 0 }, ...runs, ...(next === undefined ? [] : [{ moreOf: run.runId, next }])];
  });
}

/** The key of a line. A run can stand in the list by itself and below its parent. */
export function keyOfLine(line: Line): string {
  return "run" in line ? `${line.depth} ${line.run.runId}` : `more ${line.moreOf}`;
}

/** The run events among the items. */
export function runEvents(items: readonly EventsItem[]): RunEvent[] {
  return items.flatMap((item) => (item.type === "event" && item.event.kind === "run" ? [item.event.event] : []));
}

/** Whether events change which runs wait for a person, given those that do. */
export function changesWaiting(events: readonly RunEvent[], waiting: ReadonlySet<RunId>): boolean {
  return events.some(({ runId, event }) => event.type === "waiting_for_outcome" || (event.type !== "run_started" && waiting.has(runId)));
}

/** The rows after events, and whether the sidecar has other ones: a run may belong to the list now, or no longer does. */
export function applyEvents(rows: readonly RunSummary[], events: readonly RunEvent[], filter: ListFilter) {
  const known = new Map(rows.map((row, index) => [row.runId, index]));
  let next: RunSummary[] | undefined;
  let isOutdated = false;
  for (const event of events) {
    const index = known.get(event.runId);
    const row = index === undefined ? undefined : (next ?? rows)[index];
    if (index === undefined || row === undefined) {
      isOutdated ||= mayJoin(filter, event);
      continue;
    }
    const changed = applyEvent(row, event);
    if (changed !== row) {
      next ??= [...rows];
      next[index] = changed;
      isOutdated ||= !mayMatch(filter, changed);
    }
  }
  return { rows: next ?? rows, isOutdated };
}

/** Whether a run that the list does not have may belong to it after this event. */
function mayJoin(filter: ListFilter, { runId, agent, at, event }: RunEvent): boolean {
  const status = statusAfter(event);
  // In a list of every status only a run that begins is new.
  const isNews = event.type === "run_started" || filter.status !== undefined || filter.code !== undefined;
  if (status === undefined || !isNews) {
    return false;
  }
  const code = event.type === "run_finished" ? event.error?.code : undefined;
  const run = { runId, agent, status, ...(code === undefined ? {} : { code }), ...(event.type === "run_started" ? { startedAt: at } : {}) };
  return mayMatch(filter, run);
}
