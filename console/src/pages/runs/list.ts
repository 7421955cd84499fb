// The list of runs as data: its filter in the address, and how pages and events change its rows.

import type { EventsItem, RunErrorCode, RunEvent, RunStatus, RunSummary, RunsFilter } from "@redflow/bindings";

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

/** Whether a run that just began can be in the list. The sidecar knows the rest. */
export function mayContain({ status, agent, instance, prefix, code }: ListFilter, { agent: by, runId }: RunEvent): boolean {
  return (
    code === undefined &&
    (status === undefined || status.includes("running")) &&
    (agent === undefined || agent === by.nodeId) &&
    (instance === undefined || instance === by.instance) &&
    (prefix === undefined || runId.startsWith(prefix))
  );
}

/** The rows after a new first page: it replaces its part of the list, older rows stay. */
export function mergeFirstPage(rows: readonly RunSummary[], page: readonly RunSummary[], isLast: boolean): RunSummary[] {
  const last = page.at(-1);
  if (last === undefined || isLast) {
    return [...page];
  }
  const inPage = new Set(page.map(({ runId }) => runId));
  const older = rows.filter((row) => !inPage.has(row.runId) && isOlder(row, last));
  return [...page, ...older].slice(0, MAX_ROWS);
}

function isOlder(row: RunSummary, than: RunSummary): boolean {
  return row.startedAt < than.startedAt || (row.startedAt === than.startedAt && row.runId < than.runId);
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
  switch (event.type) {
    case "waiting_for_outcome":
      return { ...run, status: "waiting" };
    case "tool_returned":
    case "model_called":
      return { ...run, status: "running" };
    case "run_finished": {
      const status = event.error !== undefined ? "failed" : event.completed ? "completed" : "stopped";
      const { waiting: _waiting, questions: _questions, ...rest } = run;
      return {
        ...rest,
        status,
        endedAt: at,
        ...(event.error === undefined ? {} : { code: event.error.code }),
        ...(event.tally === undefined ? {} : { tally: event.tally }),
      };
    }
    default:
      return run;
  }
}

/** The run events among the items. */
export function runEvents(items: readonly EventsItem[]): RunEvent[] {
  return items.flatMap((item) => (item.type === "event" && item.event.kind === "run" ? [item.event.event] : []));
}

/** The rows after events, and the runs that began and may belong to the list. */
export function applyEvents(rows: readonly RunSummary[], events: readonly RunEvent[], filter: ListFilter) {
  const known = new Map(rows.map((row, index) => [row.runId, index]));
  const begun = new Set<string>();
  let next: RunSummary[] | undefined;
  for (const event of events) {
    const index = known.get(event.runId);
    if (index === undefined) {
      const isNew = event.event.type === "run_started" ? mayContain(filter, event) : mayJoin(filter, event);
      if (isNew) {
        begun.add(event.runId);
      }
      continue;
    }
    const row = (next ?? rows)[index];
    if (row !== undefined) {
      const changed = applyEvent(row, event);
      if (changed !== row) {
        next ??= [...rows];
        next[index] = changed;
      }
    }
  }
  return { rows: next ?? rows, begun: [...begun] };
}

/** Whether a run that is not in the list may belong to it after this event, because the filter asks for its new status. */
function mayJoin({ status = [] }: ListFilter, { event }: RunEvent): boolean {
  if (event.type === "waiting_for_outcome") {
    return status.includes("waiting") && !status.includes("running");
  }
  const end = event.type !== "run_finished" ? undefined : event.error !== undefined ? "failed" : event.completed ? "completed" : "stopped";
  return end !== undefined && status.includes(end) && !status.includes("running");
}
