// The routes of the sidecar as methods. How they are asked is in `http.ts`.

import { readEvents } from "./events.js";
import type { EventsItem, EventsOptions } from "./events.js";
import { follow } from "./follow.js";
import type { FollowOptions } from "./follow.js";
import { Transport, misuse, part } from "./http.js";
import type { CallOptions } from "./http.js";
import type { AbortSignalLike, FetchLike } from "./platform.js";
import type {
  BesideState,
  CancelRequest,
  CheckReport,
  CheckRequest,
  CodeEntry,
  DeployAnswer,
  DeployRequest,
  Deployment,
  EdgeRule,
  FlowList,
  Health,
  InstanceId,
  InstanceList,
  JsonValue,
  NodeId,
  NodeType,
  Profile,
  ReplayReport,
  ResolveRequest,
  RunDetail,
  RunEvent,
  RunId,
  RunList,
  RunStatus,
  RunSummary,
  SignInCode,
  StartAnswer,
  StartRequest,
} from "./types.js";

/** Where the sidecar is and how to talk to it. */
export interface ClientOptions {
  /** Its address, such as `http://127.0.0.1:1881`; on a page, anything relative to it. */
  url: string;
  /** What lets the client in. A page that the sidecar itself serves has a cookie and needs none. */
  token?: string | undefined;
  /** Takes the place of the global `fetch`. */
  fetch?: FetchLike | undefined;
  /** How long a request may take, in milliseconds, 30 seconds if left out; 0 for as long as it likes. */
  timeoutMs?: number | undefined;
}

/** How to start an agent. */
export interface StartOptions extends CallOptions {
  /** The same key starts an agent only once, however often it is asked. */
  idempotencyKey?: string | undefined;
}

/** Which runs. */
export interface RunsFilter {
  /** Only runs that are there. */
  status?: RunStatus | readonly RunStatus[] | undefined;
  /** Only runs of the agent with this node id, in whichever Node-RED. */
  agent?: NodeId | undefined;
  /** Only runs of agents of this instance; `local` is the sidecar's own flow. */
  instance?: InstanceId | undefined;
  /** How many at most, from 1 to 1000; 50 if left out. Of all runs: how many at a time. */
  limit?: number | undefined;
  /** Only runs that began before this one: `next` of the page before. */
  before?: RunId | undefined;
}

/**
 * A sidecar, as `redflow serve` runs it.
 *
 * Every method throws a `RedflowError`, or the reason of the signal it was given. Nothing is asked twice on its own
 * but what `followRun` and `events` follow.
 */
export class RedflowClient {
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
  }

  /** Whether the sidecar is well. */
  health(options?: CallOptions): Promise<Health> {
    return this.#get("/health", options);
  }

  /** The OpenAPI document of the sidecar. */
  openapi(options?: CallOptions): Promise<{ [key: string]: JsonValue }> {
    return this.#get("/openapi.json", options);
  }

  /** Makes a one-time code that lets one browser in. */
  signInCode(options?: CallOptions): Promise<SignInCode> {
    return this.#post("/api/sign-in-codes", undefined, options);
  }

  /** Makes the cookie of this browser worthless. */
  signOut(options?: CallOptions): Promise<void> {
    return this.#transport.done({ ...options, method: "POST", path: "/api/sign-out", redirects: true });
  }

  /** The flow in force, by its tabs, with its agents. */
  flows(options?: CallOptions): Promise<FlowList> {
    return this.#get("/api/flows", options);
  }

  /** The nodes of one tab or subflow, itself first. */
  async flow(id: NodeId, options?: CallOptions): Promise<Deployment> {
    return this.#get(`/api/flows/${part(id)}`, options);
  }

  /** Checks a flow and changes nothing. */
  check(flows: JsonValue, profile?: Profile, options?: CallOptions): Promise<CheckReport> {
    const request: CheckRequest = profile === undefined ? { flows } : { flows, profile };
    return this.#post("/api/flows/check", request, options);
  }

  /** The whole flow in force with its revision. */
  deployment(options?: CallOptions): Promise<Deployment> {
    return this.#get("/api/deployment", options);
  }

  /**
   * Puts a flow in force. `FLOW_REFUSED` comes with every problem as `report`, `REVISION_CONFLICT` with the
   * `revision` that is in force.
   */
  deploy(request: DeployRequest, options?: CallOptions): Promise<DeployAnswer> {
    return this.#post("/api/deployment", request, options);
  }

  /**
   * Starts an agent or fires an inject node. With `wait` the answer comes when everything has come to rest, and is
   * waited for as long as that takes unless `timeoutMs` is given here: `followRun` is better for runs that take long.
   */
  async start(request: StartRequest, options: StartOptions = {}): Promise<StartAnswer> {
    const { idempotencyKey, ...call } = options;
    // Longer ones the sidecar refuses; others no header takes.
    if (idempotencyKey !== undefined && !/^[\x21-\x7e]+$/.test(idempotencyKey)) {
      throw misuse("An idempotency key has letters, digits and signs, and no blanks.");
    }
    const headers: Record<string, string> = idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
    const timeoutMs = call.timeoutMs ?? (request.wait ? 0 : undefined);
    return this.#transport.json({ ...call, timeoutMs, method: "POST", path: "/api/runs", headers, body: request });
  }

  /** A page of runs, the newest first. */
  runs({ status, agent, instance, limit, before }: RunsFilter = {}, options?: CallOptions): Promise<RunList> {
    const statuses = typeof status === "string" ? status : status?.join(",");
    const query = { status: statuses, agent, instance, limit, before };
    return this.#transport.json({ ...options, path: "/api/runs", query });
  }

  /** All runs, the newest first, page by page as they are taken. */
  async *allRuns(filter: RunsFilter = {}, options?: CallOptions): AsyncGenerator<RunSummary, void, undefined> {
    let before = filter.before;
    for (;;) {
      const page = await this.runs({ ...filter, before }, options);
      yield* page.runs;
      if (page.next === undefined || page.next === before) {
        return;
      }
      before = page.next;
    }
  }

  /** One run: events, calls, result. */
  async run(id: RunId, options?: CallOptions): Promise<RunDetail> {
    return this.#get(`/api/runs/${part(id)}`, options);
  }

  /** The events of a run that are there by now. */
  async runEvents(id: RunId, request: CallOptions & { after?: number | undefined } = {}): Promise<RunEvent[]> {
    const { after, ...options } = request;
    return this.#transport.json({ ...options, path: `/api/runs/${part(id)}/events`, query: { after } });
  }

  /**
   * The events of a run as they happen, until it is over: each once and in order. A connection that is lost is made
   * again, after the last event.
   */
  followRun(id: RunId, options: FollowOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
    return follow(this.#transport, id, options);
  }

  /** The journal of a run, byte for byte, for `redflow replay`. */
  async journal(id: RunId, options?: CallOptions): Promise<string> {
    return this.#transport.text({ ...options, path: `/api/runs/${part(id)}/journal`, accept: "application/jsonl" });
  }

  /** Ends a run. Answers when that is kept. */
  async cancel(id: RunId, request: CancelRequest = {}, options?: CallOptions): Promise<RunSummary> {
    return this.#post(`/api/runs/${part(id)}/cancel`, request, options);
  }

  /** Says what came of the call a run waits for; the run goes on. Answers when that is kept. */
  async resolve(id: RunId, request: ResolveRequest, options?: CallOptions): Promise<RunSummary> {
    return this.#post(`/api/runs/${part(id)}/resolve`, request, options);
  }

  /** Proves that the journal of a run is what the machine does with those facts. */
  async replay(id: RunId, options?: CallOptions): Promise<ReplayReport> {
    return this.#post(`/api/runs/${part(id)}/replay`, undefined, options);
  }

  /** The node types, their roles and ports. */
  catalogue(options?: CallOptions): Promise<NodeType[]> {
    return this.#get("/api/catalogue", options);
  }

  /** The Node-REDs whose agents run here, with those agents. */
  instances(options?: CallOptions): Promise<InstanceList> {
    return this.#get("/api/instances", options);
  }

  /** The Node-RED the sidecar stands beside, and what the checker says of its flow; `NOT_FOUND` if there is none. */
  beside(options?: CallOptions): Promise<BesideState> {
    return this.#get("/api/beside", options);
  }

  /** Which port may be wired to which role. */
  edges(options?: CallOptions): Promise<EdgeRule[]> {
    return this.#get("/api/edges", options);
  }

  /** Every code and what it means. */
  codes(options?: CallOptions): Promise<CodeEntry[]> {
    return this.#get("/api/codes", options);
  }

  /** One code with its page. */
  async code(code: string, options?: CallOptions): Promise<CodeEntry> {
    return this.#get(`/api/codes/${part(code)}`, options);
  }

  /**
   * What happens in the sidecar, as it happens: runs, the flow around them and, with `deltas`, answers of models
   * piece by piece. Events come in order, none is missing and none comes twice, whatever happens to the connection;
   * if that cannot be kept, it throws.
   */
  events(options: EventsOptions = {}): AsyncGenerator<EventsItem, void, undefined> {
    const transport = this.#transport;
    const probe = async (signal: AbortSignalLike | undefined): Promise<void> => {
      await this.runs({ limit: 1 }, { signal });
    };
    return readEvents(transport, probe, options);
  }

  #get<T>(path: string, options: CallOptions | undefined): Promise<T> {
    return this.#transport.json({ ...options, path });
  }

  #post<T>(path: string, body: object | undefined, options: CallOptions | undefined): Promise<T> {
    return this.#transport.json({ ...options, method: "POST", path, ...(body === undefined ? {} : { body }) });
  }
}
