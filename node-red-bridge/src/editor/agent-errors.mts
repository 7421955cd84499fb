// What went wrong at an agent, newest first: what the checker holds against it now, runs that failed, and what never became a
// run. Owns the order, the groups and how many are kept; asks nobody and draws nothing.

import type { Diagnostic, RunSummary } from "@redflow/bindings";
import type { AgentError } from "../admin-api.js";

/** Groups kept. */
export const MAX_GROUPS = 50;

/** Runs that a group names. */
export const MAX_RUNS_NAMED = 10;

/** Several of the same, one after the other. */
export interface ErrorGroup {
  /** The same as long as it is the same group, with more in it or not. */
  key: string;
  code: string;
  severity: "error" | "warning";
  /** When the newest was; absent if it is so now. */
  at?: number;
  count: number;
  /** The sentence of the newest; absent if it has to be asked for. */
  message?: string;
  /** What to do; absent if the page of the code says so. */
  help?: string;
  /** The node it is about, if it is not the agent. */
  about?: string;
  /** The failed runs, newest first. */
  runs: { id: string; at: number }[];
}

/** What is known, put together. */
export function errorsOf(now: Diagnostic[], runs: RunSummary[], kept: AgentError[], agent: string): ErrorGroup[] {
  const past: ErrorGroup[] = [
    ...runs.filter(({ status }) => status === "failed").map(ofRun),
    ...kept.map(ofModule),
  ].sort((a, b) => (b.at ?? 0) - (a.at ?? 0));
  return [...checked(now, agent), ...grouped(past)].slice(0, MAX_GROUPS);
}

/** How the sidecar's notice of a run that waits for a person begins. */
const WAITS = /^run (\S{1,200}) waits /;

/** The run that waits for a person's word on a call, if that is what a group is about. */
export function waitingRun({ code, message }: ErrorGroup): string | undefined {
  return code === "TOOL_OUTCOME_UNKNOWN" ? WAITS.exec(message ?? "")?.[1] : undefined;
}

/** How many errors, for the tab: warnings are not counted. */
export function countOf(groups: ErrorGroup[]): number {
  return groups.filter(({ severity }) => severity === "error").reduce((sum, { count }) => sum + count, 0);
}

function checked(now: Diagnostic[], agent: string): ErrorGroup[] {
  const told = now.filter(({ severity }) => severity !== "info");
  const groups = told.map(({ code, severity, message, help, node, port, pointer, target }): ErrorGroup => {
    const about = node !== null && node.id !== agent ? node.name || node.type : undefined;
    return {
      key: JSON.stringify(["now", code, node?.id, port, pointer, target?.id]),
      code,
      severity: severity === "error" ? "error" : "warning",
      count: 1,
      message,
      help,
      ...(about !== undefined && { about }),
      runs: [],
    };
  });
  const unlike = [...new Map(groups.map((group) => [group.key, group])).values()];
  return [...unlike.filter(({ severity }) => severity === "error"), ...unlike.filter(({ severity }) => severity === "warning")];
}

function ofRun({ runId, code, startedAt, endedAt }: RunSummary): ErrorGroup {
  const at = endedAt ?? startedAt;
  return { key: runId, code: code ?? "INTERNAL", severity: "error", at, count: 1, runs: [{ id: runId, at }] };
}

function ofModule({ at, code, message }: AgentError): ErrorGroup {
  return { key: JSON.stringify([at, code, message]), code, severity: "error", at, count: 1, message, runs: [] };
}

/** Neighbours that are the same become one. Its key is the oldest's, so that one more does not make it another. */
function grouped(newestFirst: ErrorGroup[]): ErrorGroup[] {
  const groups: ErrorGroup[] = [];
  for (const one of newestFirst) {
    const last = groups.at(-1);
    if (last !== undefined && last.code === one.code && last.runs.length > 0 === one.runs.length > 0) {
      last.count += 1;
      last.key = one.key;
      last.runs.push(...one.runs.slice(0, MAX_RUNS_NAMED - last.runs.length));
    } else {
      groups.push({ ...one, runs: [...one.runs] });
    }
  }
  return groups;
}
