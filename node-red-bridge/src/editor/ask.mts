// Asks this module's part in Node-RED. Owns the addresses; knows nothing of what is done with the answers.

import type { CancelRequest, CheckReport, CodeEntry, ResolveRequest, RunDetail, RunEvent, RunList, RunSummary } from "@redflow/bindings";
import type { AgentErrors, LogLines, Problem, RuntimeList } from "../admin-api.js";

/** What did not work, as the other side says it. `status` is 0 if Node-RED itself could not be reached. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.message);
  }
}

/** Which runs of a list. */
export interface RunsQuery {
  agent?: string;
  status?: string;
  limit?: number;
  before?: string;
}

const part = encodeURIComponent;

export const ask = {
  runtimes: (): Promise<RuntimeList> => get("redflow/runtimes"),
  check: (runtime: string, flows: unknown[]): Promise<CheckReport> => post(`${of(runtime)}/check`, { flows }),
  runs: (runtime: string, query: RunsQuery): Promise<RunList> => get(`${of(runtime)}/runs`, query),
  run: (runtime: string, run: string): Promise<RunDetail> => get(ofRun(runtime, run)),
  events: (runtime: string, run: string, after: number): Promise<RunEvent[]> =>
    get(`${ofRun(runtime, run)}/events`, { after }),
  cancel: (runtime: string, run: string, request: CancelRequest): Promise<RunSummary> =>
    post(`${ofRun(runtime, run)}/cancel`, request, "redflow.write"),
  resolve: (runtime: string, run: string, request: ResolveRequest): Promise<RunSummary> =>
    post(`${ofRun(runtime, run)}/resolve`, request, "redflow.write"),
  code: (runtime: string, code: string): Promise<CodeEntry> => get(`${of(runtime)}/codes/${part(code)}`),
  log: (runtime: string): Promise<LogLines> => get(`${of(runtime)}/log`),
  errors: (agent: string): Promise<AgentErrors> => get(`redflow/agents/${part(agent)}/errors`),
};

function of(runtime: string): string {
  return `redflow/runtimes/${part(runtime)}`;
}

function ofRun(runtime: string, run: string): string {
  return `${of(runtime)}/runs/${part(run)}`;
}

function get<T>(url: string, query: object = {}): Promise<T> {
  return request({ method: "GET", url, data: query }, "redflow.read");
}

function post<T>(url: string, body: unknown, permission: Permission = "redflow.read"): Promise<T> {
  return request({ method: "POST", url, data: JSON.stringify(body), contentType: "application/json" }, permission);
}

type Permission = "redflow.read" | "redflow.write";

/** Whether this person may, as far as the editor knows. Node-RED decides. */
export function isAllowed(permission: Permission): boolean {
  return RED.user?.hasPermission(permission) ?? true;
}

/** How long an answer may take before it counts as none. */
const PATIENCE_MS = 30_000;

/**
 * By jQuery: the editor has taught it the token of the person. What is known to be refused is not asked: views ask again and
 * again, and each refusal would stand in Node-RED's log.
 */
function request<T>(options: object, permission: Permission): Promise<T> {
  if (!isAllowed(permission)) {
    return Promise.reject(new Refused(403, { code: "FORBIDDEN", message: "" }));
  }
  return new Promise((resolve, reject) => {
    $.ajax({ ...options, dataType: "json", timeout: PATIENCE_MS })
      .done((answer: T) => resolve(answer))
      .fail((xhr: { status: number; responseJSON?: Partial<Problem> }) => {
        const { code, message } = xhr.responseJSON ?? {};
        const known = typeof code === "string" && typeof message === "string";
        const words = xhr.status === 401 || xhr.status === 403 ? "FORBIDDEN" : "NODE_RED_UNREACHABLE";
        reject(new Refused(xhr.status, known ? { code, message } : { code: words, message: "" }));
      });
  });
}
