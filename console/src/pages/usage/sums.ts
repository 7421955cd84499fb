// Sums by day as data: the series of a plot, the rows of its table, and a CSV file.

import type { Stats, StatsRow } from "@redflow/bindings";

export const MEASURES = ["cost", "tokens", "cached", "runs", "failed", "calls"] as const;
export type Measure = (typeof MEASURES)[number];

export const DAY_MS = 86_400_000;
/** The most days of a plot. */
export const MAX_DAYS = 400;

/** The UTC day of a time. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** All days from the first to the last, with both. */
export function daysBetween(from: string, to: string): string[] {
  const [first, last] = [Date.parse(from), Date.parse(to)];
  const count = Number.isFinite(first) && Number.isFinite(last) ? Math.floor((last - first) / DAY_MS) + 1 : 0;
  return Array.from({ length: Math.max(0, Math.min(MAX_DAYS, count)) }, (_, index) => dayOf(first + index * DAY_MS));
}

/** What a row says of a measure. Tokens from caches are counted apart. */
export function valueOf(row: StatsRow, measure: Measure): number {
  switch (measure) {
    case "cost":
      return row.cost ?? 0;
    case "tokens":
      return row.inputTokens + row.outputTokens - row.cachedTokens;
    case "cached":
      return row.cachedTokens;
    case "runs":
      return row.runs;
    case "failed":
      return row.failed;
    case "calls":
      return row.calls;
  }
}

/** One key of a plot, with a value for each day. */
export interface Series {
  /** The name of the key; empty for all other keys together. */
  name: string;
  values: ReadonlyMap<string, number>;
  total: number;
}

/** The series of a measure, in the order of the keys. Keys without a value are left out. */
export function seriesOf(stats: Stats, measure: Measure): Series[] {
  const all = stats.keys.map(({ key, name }): { name: string; values: Map<string, number>; total: number } => ({
    name: name ?? key,
    values: new Map(),
    total: 0,
  }));
  for (const row of stats.rows) {
    const series = all[row.key];
    const value = valueOf(row, measure);
    if (series !== undefined && value > 0) {
      series.values.set(row.day, (series.values.get(row.day) ?? 0) + value);
      series.total += value;
    }
  }
  return all.filter(({ total }) => total > 0);
}

/** The calls whose price is not known. The cost has no part for them. */
export function unpricedCallsOf({ rows }: Pick<Stats, "rows">): number {
  return rows.reduce((sum, { unpricedCalls = 0 }) => sum + unpricedCalls, 0);
}

/** A field of a CSV file. A spreadsheet must not take a stranger's text for a formula. */
export function csvField(value: string | number): string {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The sums as a CSV file. */
export function csvOf(stats: Stats): string {
  const head = ["day", stats.by, "runs", "failed", "calls", "inputTokens", "outputTokens", "cachedTokens", "cost", "unpricedCalls", "ms", "instance"];
  const lines = stats.rows.map((row) => {
    const key = stats.keys[row.key];
    return [
      row.day,
      key?.key === "" ? "other" : (key?.key ?? ""),
      row.runs,
      row.failed,
      row.calls,
      row.inputTokens,
      row.outputTokens,
      row.cachedTokens,
      row.cost ?? "",
      row.unpricedCalls ?? 0,
      row.ms,
      key?.instance ?? "",
    ];
  });
  return [head, ...lines].map((fields) => fields.map(csvField).join(",")).join("\r\n");
}
