// The endpoints of the editor in Node-RED's Admin API (admin-api.ts), with their permissions. Forwards an allow-list of
// requests to the sidecar, for runs of this Node-RED only. Never returns a credential or the code of another node.

import type { LogLines, OperationList, Problem, RuntimeList } from "./admin-api";
import { bodyOf, isJsonRequest, sendJson } from "./admin-http";
import type { AdminRequest, AdminResponse } from "./admin-http";
import { agentErrors } from "./agent-errors";
import { CodePages } from "./code-pages";
import { reduceFlow } from "./flows";
import { logOnce } from "./guard";
import { InstanceRuns } from "./instance-runs";
import { LiveTexts } from "./live-texts";
import { mcpServer, mcpServers } from "./mcp-servers";
import { askModel } from "./model-test";
import { listOperations } from "./node-tools";
import { isRecord } from "./record";
import type { AdminHandler, Red } from "./red";
import { registryTools } from "./registry-tools";
import type { Runtime } from "./runtime";
import { runtimeById, runtimeList } from "./runtime-registry";
import { ApiFailure } from "./sidecar-api";
import type { ApiResponse } from "./sidecar-api";

/** The result of an endpoint: a value, or the text of a sidecar's response. */
type Result = { json: unknown } | Pick<ApiResponse, "text">;

type Endpoint = (request: AdminRequest) => Result | Promise<Result>;

/** The form of run ids, codes and statuses. None can change the path of a request. */
const RUN_ID = /^[A-Za-z0-9_-]{1,128}$/;
const CODE = /^[A-Z][A-Z0-9_]{0,63}$/;
const STATUSES = /^[a-z_]{1,20}(,[a-z_]{1,20}){0,9}$/;
const MAX_NODE_ID = 500;
const MAX_PAGE = 200;
const MAX_SEQ = 4_294_967_295;

/** The code for nodes that only Node-RED can run. */
const NEEDS_NODE_RED = "NEEDS_NODE_RED";

/** Registers the endpoints. */
export function serveEditor(RED: Red): void {
  const permissions = ["redflow.read", "redflow.write", "flows.write"].map((name) => RED.auth.needsPermission(name));
  const [read, write, deploy] = permissions as [AdminHandler, AdminHandler, AdminHandler];
  const get = (path: string, endpoint: Endpoint): void => {
    RED.httpAdmin.get(`/redflow/${path}`, read, handler(RED, endpoint));
  };
  const post = (path: string, permission: AdminHandler, endpoint: Endpoint): void => {
    RED.httpAdmin.post(`/redflow/${path}`, permission, handler(RED, endpoint));
  };
  get("runtimes", () => ({ json: runtimeList(RED) satisfies RuntimeList }));
  get("agents/:id/errors", (request) => ({ json: { errors: agentErrors.list(request.params["id"] ?? "") } }));
  get("operations", () => ({ json: listOperations(RED) satisfies OperationList }));
  get("runtimes/:id/tools", async (request) => ({ json: await registryTools(runtimeOf(request)) }));
  get("runtimes/:id/mcp", async (request) => ({ json: await mcpServers(runtimeOf(request)) }));
  get("runtimes/:id/mcp/:name", async (request) => ({ json: await mcpServer(runtimeOf(request), request.params["name"] ?? "") }));
  get("runtimes/:id/log", (request) => ({ json: { lines: runtimeOf(request).log() } satisfies LogLines }));
  get("runtimes/:id/codes/:code", (request) => CodePages.forRuntime(runtimeOf(request)).page(codeOf(request)));
  get("runtimes/:id/runs", (request) => InstanceRuns.forRuntime(runtimeOf(request)).list(listQuery(request)));
  get("runtimes/:id/runs/:run", (request) => InstanceRuns.forRuntime(runtimeOf(request)).show(runOf(request)));
  get("runtimes/:id/runs/:run/events", (request) => {
    const after = numberOf(queryOf(request), "after", 0, MAX_SEQ);
    return InstanceRuns.forRuntime(runtimeOf(request)).events(runOf(request), after ?? 0);
  });
  get("runtimes/:id/runs/:run/text", async (request) => {
    const [runtime, run] = [runtimeOf(request), runOf(request)];
    await InstanceRuns.forRuntime(runtime).requireOwn(run);
    return { json: LiveTexts.forRuntime(runtime).follow(run) ?? {} };
  });
  get("runtimes/:id/runs/:run/iterations/:number", (request) => {
    const number = numberOf(new URLSearchParams(request.params), "number", 1, MAX_SEQ);
    return InstanceRuns.forRuntime(runtimeOf(request)).iteration(runOf(request), number ?? 1);
  });
  post("runtimes/:id/check", read, (request) => check(RED, runtimeOf(request), requireBody(request)));
  for (const verb of ["test", "list"] as const) {
    // A form may name environment variables, and its address gets their values: the right of a deploy.
    post(`runtimes/:id/models/${verb}`, deploy, (request) => askModel(runtimeOf(request), verb, requireBody(request)));
  }
  for (const verb of ["cancel", "resolve"] as const) {
    post(`runtimes/:id/runs/:run/${verb}`, write, (request) => {
      return InstanceRuns.forRuntime(runtimeOf(request)).act(runOf(request), verb, requireBody(request));
    });
  }
}

/** Checks the flow of the editor. Of nodes that the sidecar does not run only wiring properties leave Node-RED. */
async function check(RED: Red, { api }: Runtime, body: Record<string, unknown>): Promise<Result> {
  const { flows } = body;
  const isValid = Array.isArray(flows) && flows.every((node) => isRecord(node) && typeof node["type"] === "string");
  if (!isValid) {
    throw new ApiFailure(400, "BODY_INVALID", "`flows` must be a list of nodes, each with an `id` and a `type`.");
  }
  const { nodes, tooDeep } = reduceFlow(flows, (id) => RED.nodes.getCredentials(id));
  if (tooDeep !== undefined) {
    throw new ApiFailure(422, "FLOW_TOO_DEEP", tooDeep.text);
  }
  const { value } = await api.request("POST", "/api/flows/check", { flows: nodes });
  return { json: withoutNeedsNodeRed(value) };
}

/** Drops the diagnostics that a node needs Node-RED: the checker does not know that it runs with one. */
function withoutNeedsNodeRed(report: unknown): unknown {
  if (!isRecord(report) || !Array.isArray(report["diagnostics"])) {
    throw new ApiFailure(502, "PROTOCOL_MISMATCH", "the sidecar's response is not a report; use matching versions");
  }
  const { omitted, ...rest } = report;
  const counts = Object.entries(isRecord(omitted) ? omitted : {}).filter(([code]) => code !== NEEDS_NODE_RED);
  const diagnostics = report["diagnostics"].filter((one) => !isRecord(one) || one["code"] !== NEEDS_NODE_RED);
  return { ...rest, diagnostics, ...(counts.length > 0 ? { omitted: Object.fromEntries(counts) } : {}) };
}

function codeOf(request: AdminRequest): string {
  const code = request.params["code"] ?? "";
  if (!CODE.test(code)) {
    throw new ApiFailure(404, "NOT_FOUND", "There is no such code: codes have capital letters.");
  }
  return code;
}

function runtimeOf(request: AdminRequest): Runtime {
  const runtime = runtimeById(request.params["id"] ?? "");
  if (runtime === undefined) {
    throw new ApiFailure(404, "NOT_FOUND", "The running flow has no such redflow-runtime; deploy it.");
  }
  return runtime;
}

function runOf(request: AdminRequest): string {
  const run = request.params["run"] ?? "";
  if (!RUN_ID.test(run)) {
    throw new ApiFailure(404, "RUN_UNKNOWN", "There is no such run: this is not the id of a run.");
  }
  return run;
}

function queryOf(request: AdminRequest): URLSearchParams {
  return new URLSearchParams((request.url ?? "").split("?").slice(1).join("?"));
}

/** The valid filters of a request. Ignores unknown parameters, because jQuery may add its own. */
function listQuery(request: AdminRequest): Record<string, string> {
  const query = queryOf(request);
  const filters: Record<string, string> = {};
  const read = (name: string, isValid: (value: string) => boolean, form: string): void => {
    const value = query.get(name);
    if (value !== null && value !== "") {
      if (!isValid(value)) {
        throw new ApiFailure(400, "REQUEST_INVALID", `\`${name}\` must be ${form}.`);
      }
      filters[name] = value;
    }
  };
  read("agent", (value) => value.length <= MAX_NODE_ID, `the id of a node, of at most ${MAX_NODE_ID} characters`);
  read("status", (value) => STATUSES.test(value), "a status of runs, or several with commas between them");
  read("before", (value) => RUN_ID.test(value), "the id of a run");
  const limit = numberOf(query, "limit", 1, MAX_PAGE);
  return limit === undefined ? filters : { ...filters, limit: String(limit) };
}

function numberOf(query: URLSearchParams, name: string, min: number, max: number): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") {
    return undefined;
  }
  const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN;
  if (!(value >= min && value <= max)) {
    throw new ApiFailure(400, "REQUEST_INVALID", `\`${name}\` must be a whole number from ${min} to ${max}.`);
  }
  return value;
}

function requireBody(request: AdminRequest): Record<string, unknown> {
  if (!isJsonRequest(request)) {
    throw new ApiFailure(415, "CONTENT_TYPE_REFUSED", "Send JSON, announced as application/json.");
  }
  const body = bodyOf(request);
  if (body === undefined) {
    throw new ApiFailure(400, "BODY_INVALID", "The body must be a JSON object.");
  }
  return body;
}

/** Always sends a response, and never throws into Node-RED. */
function handler(RED: Red, endpoint: Endpoint): AdminHandler {
  return (request, response) => {
    respond(RED, endpoint, request, response).catch((error: unknown) => {
      logOnce(RED, "a response to the editor could not be sent", error);
    });
  };
}

async function respond(RED: Red, endpoint: Endpoint, request: AdminRequest, response: AdminResponse): Promise<void> {
  try {
    const result = await endpoint(request);
    sendJson(response, 200, "json" in result ? JSON.stringify(result.json) : result.text);
  } catch (error) {
    if (!(error instanceof ApiFailure)) {
      logOnce(RED, "a request of the editor failed", error);
    }
    const { status, code, message } = error instanceof ApiFailure ? error : FAILED;
    sendJson(response, status, JSON.stringify({ code, message } satisfies Problem));
  }
}

const FAILED = new ApiFailure(500, "INTERNAL", "The request failed; see the log of Node-RED.");
