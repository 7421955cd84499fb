// Groups the errors of an agent, newest first: the checker's current problems, failed runs, and errors without a run. Pure:
// sends no request and draws nothing.

import type { Diagnostic, RunSummary } from "@redflow/bindings";
import type { AgentError } from "../admin-api.js";
import { phraseText } from "./phrases.mjs";

/** The most groups. */
export const MAX_GROUPS = 50;

/** The most runs that a group lists. */
export const MAX_RUNS_NAMED = 10;

/** Equal errors in a row. */
export interface ErrorGroup {
  /** Stays the same when the group grows. */
  key: string;
  code: string;
  severity: "error" | "warning";
  /** The time of the newest; absent for a current problem of the checker. */
  at?: number;
  count: number;
  /** The message of the newest; absent if it must be requested. */
  message?: string;
  /** How to fix it; absent if the page of the code has it. */
  help?: string;
  /** The node with the problem, if it is not the agent. */
  about?: string;
  /** The failed runs, newest first. */
  runs: { id: string; at: number }[];
}

/** Merges the checker's problems, failed runs and errors without a run into groups. */
export function errorsOf(problems: Diagnostic[], runs: RunSummary[], withoutRun: AgentError[], agent: string): ErrorGroup[] {
  const [lasting, others] = [withoutRun.filter(isLasting), withoutRun.filter((error) => !isLasting(error))];
  const past: ErrorGroup[] = [
    ...runs.filter(({ status }) => status === "failed").map(groupOfRun),
    ...others.map(groupOfError),
  ].sort((a, b) => (b.at ?? 0) - (a.at ?? 0));
  return [...groupsOfProblems(problems, agent), ...lasting.map(groupOfLasting), ...mergeEqual(past)].slice(0, MAX_GROUPS);
}

/** The start of the sidecar's notice about a run that waits for a person. */
const WAITING_NOTICE = /^run (\S{1,200}) waits /;

/** The run that waits for a person's answer, if the group is about one. */
export function waitingRun({ code, message }: ErrorGroup): string | undefined {
  return code === "TOOL_OUTCOME_UNKNOWN" ? WAITING_NOTICE.exec(message ?? "")?.[1] : undefined;
}

/** The number of errors for the tab, without warnings. */
export function countOf(groups: ErrorGroup[]): number {
  return groups.filter(({ severity }) => severity === "error").reduce((sum, { count }) => sum + count, 0);
}

function groupsOfProblems(problems: Diagnostic[], agent: string): ErrorGroup[] {
  const relevant = problems.filter(({ severity }) => severity !== "info");
  const groups = relevant.map(({ code, severity, message, help, node, port, pointer, target }): ErrorGroup => {
    const name = node !== null && node.id !== agent ? node.name || node.type : undefined;
    const about = name !== undefined && message.includes(name) ? undefined : name;
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
  const unique = [...new Map(groups.map((group) => [group.key, group])).values()];
  return [...unique.filter(({ severity }) => severity === "error"), ...unique.filter(({ severity }) => severity === "warning")];
}

function groupOfRun({ runId, code, startedAt, endedAt }: RunSummary): ErrorGroup {
  const at = endedAt ?? startedAt;
  return { key: runId, code: code ?? "INTERNAL", severity: "error", at, count: 1, runs: [{ id: runId, at }] };
}

function groupOfError({ at, code, message, phrase }: AgentError): ErrorGroup {
  const key = JSON.stringify([at, code, message]);
  return { key, code, severity: "error", at: at ?? 0, count: 1, message: phraseText(phrase, message), runs: [] };
}

/** A service that fails while the agent runs on without it. */
function groupOfLasting({ code, message, phrase }: AgentError): ErrorGroup {
  const key = JSON.stringify(["lasting", code]);
  return { key, code, severity: "warning", count: 1, message: phraseText(phrase, message), runs: [] };
}

function isLasting({ at }: AgentError): boolean {
  return at === undefined;
}

/** Merges equal neighbours. The key is that of the oldest, so that it stays the same when the group grows. */
function mergeEqual(newestFirst: ErrorGroup[]): ErrorGroup[] {
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
