// What the editor may ask over Node-RED's admin side (admin-api.ts), and who may ask it. Passes an allow-list of requests
// on to the sidecar, for runs of this Node-RED alone; never gives out a credential or the code of a foreign node.

import type { LogLines, Problem, RuntimeList } from "./admin-api";
import { runtimeById, runtimeList } from "./bridge";
import { CodePages } from "./code-pages";
import { errors } from "./errors";
import { reduced } from "./flows";
import { report } from "./guard";
import type { AdminHandler, Red } from "./red";
import { OwnRuns } from "./own-runs";
import type { Runtime } from "./runtime";
import { NotDone } from "./sidecar-api";
import type { ApiAnswer } from "./sidecar-api";

type Request = Parameters<AdminHandler>[0];
type Response = Parameters<AdminHandler>[1];

/** What an endpoint gives: a value, or an answer of the sidecar as it came. */
type Given = { json: unknown } | Pick<ApiAnswer, "text">;

type Endpoint = (request: Request) => Given | Promise<Given>;

/** Ids of runs, and codes: nothing that could lead elsewhere in a path. */
const RUN = /^[A-Za-z0-9_-]{1,128}$/;
const CODE = /^[A-Z][A-Z0-9_]{0,63}$/;
const STATUSES = /^[a-z_]{1,20}(,[a-z_]{1,20}){0,9}$/;
const MAX_NODE_ID = 500;
const MAX_PAGE = 200;
const MAX_SEQ = 4_294_967_295;

/** The code for nodes that only Node-RED can run. */
const ALONE = "NEEDS_NODE_RED";

/** Registers the endpoints. */
export function serveEditor(RED: Red): void {
  const [read, write] = [RED.auth.needsPermission("redflow.read"), RED.auth.needsPermission("redflow.write")];
  const get = (path: string, endpoint: Endpoint): void => {
    RED.httpAdmin.get(`/redflow/${path}`, read, handler(RED, endpoint));
  };
  const post = (path: string, permission: AdminHandler, endpoint: Endpoint): void => {
    RED.httpAdmin.post(`/redflow/${path}`, permission, handler(RED, endpoint));
  };
  get("runtimes", () => ({ json: runtimeList(RED) satisfies RuntimeList }));
  get("agents/:id/errors", (request) => ({ json: { errors: errors.of(request.params["id"] ?? "") } }));
  get("runtimes/:id/log", (request) => ({ json: { lines: runtimeOf(request).log() } satisfies LogLines }));
  get("runtimes/:id/codes/:code", (request) => CodePages.of(runtimeOf(request)).page(codeOf(request)));
  get("runtimes/:id/runs", (request) => OwnRuns.of(runtimeOf(request)).list(listQuery(request)));
  get("runtimes/:id/runs/:run", (request) => OwnRuns.of(runtimeOf(request)).show(runOf(request)));
  get("runtimes/:id/runs/:run/events", (request) => {
    const after = numberOf(queryOf(request), "after", 0, MAX_SEQ);
    return OwnRuns.of(runtimeOf(request)).events(runOf(request), after ?? 0);
  });
  post("runtimes/:id/check", read, (request) => check(runtimeOf(request), bodyOf(request)));
  for (const verb of ["cancel", "resolve"] as const) {
    post(`runtimes/:id/runs/:run/${verb}`, write, (request) => {
      return OwnRuns.of(runtimeOf(request)).tell(runOf(request), verb, bodyOf(request));
    });
  }
}

/** Checks a flow as the editor has it. Of the nodes that are not ours only what the checker needs leaves Node-RED. */
async function check({ api }: Runtime, body: Record<string, unknown>): Promise<Given> {
  const { flows } = body;
  const sound = Array.isArray(flows) && flows.every((node) => isRecord(node) && typeof node["type"] === "string");
  if (!sound) {
    throw new NotDone(400, "BODY_INVALID", "`flows` is a list of nodes, each with an `id` and a `type`.");
  }
  const { nodes, tooDeep } = reduced(flows);
  if (tooDeep !== undefined) {
    throw new NotDone(422, "FLOW_TOO_DEEP", tooDeep);
  }
  const { value } = await api.ask("POST", "/api/flows/check", { flows: nodes });
  return { json: besideNodeRed(value) };
}

/** What a checker says that thinks of a sidecar alone is no news here: that a node needs Node-RED. */
function besideNodeRed(report: unknown): unknown {
  if (!isRecord(report) || !Array.isArray(report["diagnostics"])) {
    throw new NotDone(502, "PROTOCOL_MISMATCH", "what the sidecar answered is no report; use matching versions");
  }
  const { omitted, ...rest } = report;
  const left = Object.entries(isRecord(omitted) ? omitted : {}).filter(([code]) => code !== ALONE);
  const diagnostics = report["diagnostics"].filter((one) => !isRecord(one) || one["code"] !== ALONE);
  return { ...rest, diagnostics, ...(left.length > 0 ? { omitted: Object.fromEntries(left) } : {}) };
}

function codeOf(request: Request): string {
  const code = request.params["code"] ?? "";
  if (!CODE.test(code)) {
    throw new NotDone(404, "NOT_FOUND", "There is no such code: codes are in capital letters.");
  }
  return code;
}

function runtimeOf(request: Request): Runtime {
  const runtime = runtimeById(request.params["id"] ?? "");
  if (runtime === undefined) {
    throw new NotDone(404, "NOT_FOUND", "There is no such redflow-runtime in the flow that runs; deploy it.");
  }
  return runtime;
}

function runOf(request: Request): string {
  const run = request.params["run"] ?? "";
  if (!RUN.test(run)) {
    throw new NotDone(404, "RUN_UNKNOWN", "There is no such run: this is no id of one.");
  }
  return run;
}

function queryOf(request: Request): URLSearchParams {
  return new URLSearchParams((request.url ?? "").split("?").slice(1).join("?"));
}

/** Which runs are wanted. What is not known is left out, as jQuery may add something of its own. */
function listQuery(request: Request): Record<string, string> {
  const query = queryOf(request);
  const wanted: Record<string, string> = {};
  const take = (name: string, sound: (value: string) => boolean, what: string): void => {
    const value = query.get(name);
    if (value !== null && value !== "") {
      if (!sound(value)) {
        throw new NotDone(400, "REQUEST_INVALID", `\`${name}\` is ${what}.`);
      }
      wanted[name] = value;
    }
  };
  take("agent", (value) => value.length <= MAX_NODE_ID, `the id of a node, of at most ${MAX_NODE_ID} characters`);
  take("status", (value) => STATUSES.test(value), "a status of runs, or several with commas between them");
  take("before", (value) => RUN.test(value), "the id of a run");
  const limit = numberOf(query, "limit", 1, MAX_PAGE);
  return limit === undefined ? wanted : { ...wanted, limit: String(limit) };
}

function numberOf(query: URLSearchParams, name: string, least: number, most: number): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") {
    return undefined;
  }
  const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN;
  if (!(value >= least && value <= most)) {
    throw new NotDone(400, "REQUEST_INVALID", `\`${name}\` is a whole number from ${least} to ${most}.`);
  }
  return value;
}

/** Node-RED has read the body already, and refused one over its `apiMaxLength`. */
function bodyOf(request: Request): Record<string, unknown> {
  // A form of another web page can send text, but no JSON: that would need the consent of this server.
  if (!/^application\/json\s*(;|$)/i.test(request.headers["content-type"] ?? "")) {
    throw new NotDone(415, "CONTENT_TYPE_REFUSED", "Send JSON, announced as application/json.");
  }
  const { body } = request as Request & { body?: unknown };
  if (!isRecord(body)) {
    throw new NotDone(400, "BODY_INVALID", "The body is a JSON object.");
  }
  return body;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whatever happens, there is an answer, and nothing is thrown at Node-RED. */
function handler(RED: Red, endpoint: Endpoint): AdminHandler {
  return (request, response) => {
    answered(RED, endpoint, request, response).catch((error: unknown) => {
      report(RED, "an answer to the editor could not be sent", error);
    });
  };
}

async function answered(RED: Red, endpoint: Endpoint, request: Request, response: Response): Promise<void> {
  try {
    const given = await endpoint(request);
    send(response, 200, "json" in given ? JSON.stringify(given.json) : given.text);
  } catch (error) {
    if (!(error instanceof NotDone)) {
      report(RED, "a request of the editor failed", error);
    }
    const { status, code, message } = error instanceof NotDone ? error : FAILED;
    send(response, status, JSON.stringify({ code, message } satisfies Problem));
  }
}

const FAILED = new NotDone(500, "INTERNAL", "The request failed; the log of Node-RED says more.");

function send(response: Response, status: number, text: string): void {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.setHeader("cache-control", "no-store");
  response.setHeader("x-content-type-options", "nosniff");
  response.end(text);
}
