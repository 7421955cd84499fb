// The client of this module's routes in the Admin API of Node-RED (admin-api.ts). Owns the addresses.

import type { CancelRequest, CheckReport, CodeEntry, IterationDetail, ModelList, ModelTest, ResolveRequest, RunDetail, RunEvent, RunList, RunSummary } from "@redflow/bindings";
import { MCP_SERVER_MS, MODEL_TEST_MS } from "../admin-api.js";
import type { AgentErrors, LiveText, LogLines, McpServerTools, McpServerViews, ModelForm, OperationList, Problem, RegistryTools, RuntimeList } from "../admin-api.js";

/** A failed request. `status` is 0 if Node-RED itself could not be reached. */
export class RequestError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.message);
  }
}

/** The filters of a list of runs. */
export interface RunsQuery {
  agent?: string;
  status?: string;
  limit?: number;
  before?: string;
}

const segment = encodeURIComponent;

export const adminApi = {
  runtimes: (): Promise<RuntimeList> => get("redflow/runtimes"),
  check: (runtime: string, flows: unknown[]): Promise<CheckReport> => post(`${runtimePath(runtime)}/check`, { flows }),
  runs: (runtime: string, query: RunsQuery): Promise<RunList> => get(`${runtimePath(runtime)}/runs`, query),
  run: (runtime: string, run: string): Promise<RunDetail> => get(runPath(runtime, run)),
  events: (runtime: string, run: string, after: number): Promise<RunEvent[]> =>
    get(`${runPath(runtime, run)}/events`, { after }),
  /** The text that the model of a run writes now; undefined if none is known. */
  text: async (runtime: string, run: string): Promise<LiveText | undefined> => {
    const found = await get<Partial<LiveText>>(`${runPath(runtime, run)}/text`);
    return found.text === undefined ? undefined : (found as LiveText);
  },
  /** The recorded texts of one iteration. */
  iteration: (runtime: string, run: string, number: number): Promise<IterationDetail> =>
    get(`${runPath(runtime, run)}/iterations/${number}`),
  cancel: (runtime: string, run: string, request: CancelRequest): Promise<RunSummary> =>
    post(`${runPath(runtime, run)}/cancel`, request, "redflow.write"),
  resolve: (runtime: string, run: string, request: ResolveRequest): Promise<RunSummary> =>
    post(`${runPath(runtime, run)}/resolve`, request, "redflow.write"),
  code: (runtime: string, code: string): Promise<CodeEntry> => get(`${runtimePath(runtime)}/codes/${segment(code)}`),
  log: (runtime: string): Promise<LogLines> => get(`${runtimePath(runtime)}/log`),
  tools: (runtime: string): Promise<RegistryTools> => get(`${runtimePath(runtime)}/tools`),
  mcpServers: (runtime: string): Promise<McpServerViews> => get(`${runtimePath(runtime)}/mcp`),
  mcpServer: (runtime: string, name: string): Promise<McpServerTools> => get(`${runtimePath(runtime)}/mcp/${segment(name)}`, {}, MCP_SERVER_MS),
  testModel: (runtime: string, form: ModelForm): Promise<ModelTest> =>
    post(`${runtimePath(runtime)}/models/test`, form, "flows.write", MODEL_TEST_MS),
  listModels: (runtime: string, form: ModelForm): Promise<ModelList> =>
    post(`${runtimePath(runtime)}/models/list`, form, "flows.write", MODEL_TEST_MS),
  operations: (): Promise<OperationList> => get("redflow/operations"),
  errors: (agent: string): Promise<AgentErrors> => get(`redflow/agents/${segment(agent)}/errors`),
};

function runtimePath(runtime: string): string {
  return `redflow/runtimes/${segment(runtime)}`;
}

function runPath(runtime: string, run: string): string {
  return `${runtimePath(runtime)}/runs/${segment(run)}`;
}

function get<T>(url: string, query: object = {}, timeout: number = TIMEOUT_MS): Promise<T> {
  return request({ method: "GET", url, data: query, timeout }, "redflow.read");
}

function post<T>(url: string, body: unknown, permission: Permission = "redflow.read", timeout: number = TIMEOUT_MS): Promise<T> {
  return request({ method: "POST", url, data: JSON.stringify(body), contentType: "application/json", timeout }, permission);
}

type Permission = "redflow.read" | "redflow.write" | "flows.write";

/** Whether the user has a permission, as far as the editor knows. Node-RED itself decides. */
export function isAllowed(permission: Permission): boolean {
  return RED.user?.hasPermission(permission) ?? true;
}

/** How long a response usually may take. */
const TIMEOUT_MS = 30_000;

/**
 * Sends a request with jQuery, because the editor has configured it with the user's token. Sends none that the user may not
 * make: views repeat their requests, and each refusal would appear in Node-RED's log.
 */
function request<T>(options: object, permission: Permission): Promise<T> {
  if (!isAllowed(permission)) {
    return Promise.reject(new RequestError(403, { code: "FORBIDDEN", message: "" }));
  }
  return new Promise((resolve, reject) => {
    $.ajax({ timeout: TIMEOUT_MS, ...options, dataType: "json" })
      .done((response: T) => resolve(response))
      .fail((xhr: { status: number; responseJSON?: Partial<Problem> }) => {
        const { code, message } = xhr.responseJSON ?? {};
        const isProblem = typeof code === "string" && typeof message === "string";
        const fallback = xhr.status === 401 || xhr.status === 403 ? "FORBIDDEN" : "NODE_RED_UNREACHABLE";
        reject(new RequestError(xhr.status, isProblem ? { code, message } : { code: fallback, message: "" }));
      });
  });
}
