// The routes of the sidecar as methods. `http.ts` sends the requests.

import { readEvents } from "./events.js";
import type { EventsItem, EventsOptions } from "./events.js";
import { followRun } from "./follow-run.js";
import type { FollowOptions } from "./follow-run.js";
import { Transport, clientError, pathSegment } from "./http.js";
import type { CallOptions } from "./http.js";
import type { AbortSignalLike, BlobLike, FetchLike } from "./platform.js";
import type {
  AgentDetail,
  AttachedState,
  CancelRequest,
  CheckAnswer,
  CheckReport,
  CheckRequest,
  CodeEntry,
  ConfigView,
  DeployAnswer,
  DeployRequest,
  DeployedModelList,
  Deployment,
  DocumentAnswer,
  EdgeRule,
  EmbedderChoice,
  Entry,
  FlowGraph,
  FlowList,
  ForgetAnswer,
  ForgetRequest,
  Health,
  InstanceId,
  InstanceList,
  IterationDetail,
  JournalPage,
  JsonValue,
  KnowledgeBaseList,
  KnowledgeDocumentList,
  KnowledgePassageList,
  KnowledgeSearch,
  KnowledgeSearchResult,
  ManifestTool,
  McpLogin,
  McpPinRequest,
  McpServerDetail,
  McpServerList,
  MemoryEntryDetail,
  MemoryEntryList,
  MemoryExportLine,
  MemoryFilter,
  MemoryList,
  MemoryPut,
  MemoryReview,
  MemoryReviewed,
  MemorySearch,
  MemorySearchResult,
  ModelList,
  ModelTest,
  ModelTestRequest,
  NewToken,
  NodeId,
  NodeType,
  Profile,
  ReplayReport,
  ResolveRequest,
  RunDetail,
  RunErrorCode,
  RunEvent,
  RunId,
  RunList,
  RunStatus,
  RunSummary,
  RunTrace,
  RunTree,
  Session,
  SignInCode,
  StartAnswer,
  StartRequest,
  Stats,
  StatsBy,
  TokenList,
  TokenRequest,
  ToolCallList,
  ToolCallRequest,
  ToolEntry,
  ToolInvocation,
  ToolList,
} from "./types.js";

/** How long an export may wait for its next byte, in milliseconds. */
const EXPORT_IDLE_MS = 60_000;

/** The path of an MCP server. */
function mcpPath(name: string): string {
  return `/api/mcp/${pathSegment(name)}`;
}

/** The path of an entry of a long memory. */
function entryPath(memory: string, key: string): string {
  return `/api/memory/${pathSegment(memory)}/entries/${pathSegment(key)}`;
}

/** The address of the sidecar and how to send requests to it. */
export interface ClientOptions {
  /** Its address, such as `http://127.0.0.1:1881`; in a page it may be relative to the page. */
  url: string;
  /** The access token. A page that the sidecar itself serves has a cookie and needs none. */
  token?: string | undefined;
  /** Replaces the global `fetch`. */
  fetch?: FetchLike | undefined;
  /** How long a request may take, in milliseconds; 30 seconds if left out, 0 for no limit. */
  timeoutMs?: number | undefined;
}

/** How to start an agent. */
export interface StartOptions extends CallOptions {
  /** Requests with the same key start an agent only once. */
  idempotencyKey?: string | undefined;
}

/** Selects runs. */
export interface RunsFilter {
  /** Only runs with one of these statuses. */
  status?: RunStatus | readonly RunStatus[] | undefined;
  /** Only runs of the agent with this node id, in any Node-RED. */
  agent?: NodeId | undefined;
  /** Only runs of agents of this instance; `local` is the sidecar's own flow. */
  instance?: InstanceId | undefined;
  /** Only runs that started at this time or later, in milliseconds since 1970. */
  since?: number | undefined;
  /** Only runs that started before this time, in milliseconds since 1970. */
  until?: number | undefined;
  /** Only runs that failed with this code. */
  code?: RunErrorCode | undefined;
  /** Only runs whose id begins with this; listed by their ids. */
  prefix?: string | undefined;
  /** With `true`, only runs that no other run started. */
  roots?: boolean | undefined;
  /** The most runs of one page, from 1 to 1000; 50 if left out. */
  limit?: number | undefined;
  /** Only runs that began before this one: `next` of the previous page. */
  before?: RunId | undefined;
}

/** Selects runs below a run. */
export interface TreeFilter {
  /** Only runs that follow this one: `next` of the previous page. */
  after?: RunId | undefined;
  /** The most runs of one page, from 1 to 500; 500 if left out. */
  limit?: number | undefined;
}

/** Selects sums. */
export interface StatsFilter {
  /** What the sums are grouped by. */
  by: StatsBy;
  /** The first day, such as `2026-11-16`; 14 days in all if left out. */
  from?: string | undefined;
  /** The last day; today if left out. */
  to?: string | undefined;
}

/** Selects events of a run. Only one of `after` and `before` can be given. */
export interface EventPage {
  /** Only events with a larger `seq`. */
  after?: number | undefined;
  /** Only events with a smaller `seq`: the last ones. */
  before?: number | undefined;
  /** The most events, from 1 to 1000. If left out: 1000 with `before`, else all. */
  limit?: number | undefined;
}

/** Selects lines of a journal. */
export interface JournalPageRequest {
  /** The number of the first line, from 1; 1 if left out. */
  from?: number | undefined;
  /** The most lines, from 1 to 200; 200 if left out. */
  lines?: number | undefined;
}

/** How to add a document. The embedder counts only for a new knowledge base. */
export interface AddDocumentOptions extends CallOptions, EmbedderChoice {
  /** What the bytes are, such as `md`. If left out, the end of the document's name says it. */
  kind?: string | undefined;
  /** Where the document was read; its name if left out. */
  origin?: string | undefined;
  /** The tags of the document. */
  tags?: readonly string[] | undefined;
  /** Remove the document after so many days; never if left out. */
  retentionDays?: number | undefined;
  /** With `true`, nothing is stored: the answer says what it would cost. */
  dryRun?: boolean | undefined;
}

/**
 * A client of a sidecar (`redflow serve`).
 *
 * Every method throws a `RedflowError`, or the reason of the signal that you passed. Only `followRun` and `events`
 * retry.
 *
 * @example
 * ```ts
 * const client = new RedflowClient({ url, token });
 * const { runs } = await client.start({ payload: "6 * 7?", wait: true });
 * console.log(runs[0]?.result?.["payload"]);
 * ```
 */
export class RedflowClient {
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
  }

  /** Whether the sidecar is live and ready. */
  health(options?: CallOptions): Promise<Health> {
    return this.#get("/health", options);
  }

  /** The OpenAPI document of the sidecar. */
  openapi(options?: CallOptions): Promise<{ [key: string]: JsonValue }> {
    return this.#get("/openapi.json", options);
  }

  /** Who is signed in, and what the sidecar offers. */
  session(options?: CallOptions): Promise<Session> {
    return this.#get("/api/session", options);
  }

  /** Signs this browser in with a token. Only a page of the sidecar can do it. */
  signIn(token: string, options?: CallOptions): Promise<Session> {
    return this.#post("/sign-in", { token }, options);
  }

  /** Creates a one-time code that signs one browser in. */
  signInCode(options?: CallOptions): Promise<SignInCode> {
    return this.#post("/api/sign-in-codes", undefined, options);
  }

  /** Ends the session of this browser: its cookie is no longer valid. */
  signOut(options?: CallOptions): Promise<void> {
    return this.#transport.execute({ ...options, method: "POST", path: "/api/sign-out", expectsRedirect: true });
  }

  /** The names and scopes of the tokens. */
  tokens(options?: CallOptions): Promise<TokenList> {
    return this.#get("/api/tokens", options);
  }

  /** Makes a token. No later answer contains it. */
  addToken(request: TokenRequest, options?: CallOptions): Promise<NewToken> {
    return this.#post("/api/tokens", request, options);
  }

  /** Removes a token. It and its sessions stop working at once. */
  async removeToken(name: string, options?: CallOptions): Promise<void> {
    await this.#transport.execute({ ...options, method: "DELETE", path: `/api/tokens/${pathSegment(name)}` });
  }

  /** The settings of the sidecar, without secrets. */
  config(options?: CallOptions): Promise<ConfigView> {
    return this.#get("/api/config", options);
  }

  /** The tabs of the active flow with their agents. */
  flows(options?: CallOptions): Promise<FlowList> {
    return this.#get("/api/flows", options);
  }

  /** The nodes of one tab or subflow; the tab or subflow itself is first. */
  async flow(id: NodeId, options?: CallOptions): Promise<Deployment> {
    return this.#get(`/api/flows/${pathSegment(id)}`, options);
  }

  /** One tab or subflow of an active flow as a drawing: its nodes, wires and problems. */
  async flowGraph(request: CallOptions & { tab?: NodeId | undefined; instance?: InstanceId | undefined } = {}): Promise<FlowGraph> {
    const { tab, instance, ...options } = request;
    return this.#transport.json({ ...options, path: "/api/flows/graph", query: { tab, instance } });
  }

  /** Checks a flow without deploying it, and draws one tab or subflow of it. */
  checkAndDraw(flows: JsonValue, request: CallOptions & { profile?: Profile | undefined; tab?: NodeId | undefined } = {}): Promise<CheckAnswer> {
    const { profile, tab, ...options } = request;
    return this.#post("/api/flows/check", { flows, profile, tab, graph: true }, options);
  }

  /** Checks a flow without deploying it. */
  check(flows: JsonValue, profile?: Profile, options?: CallOptions): Promise<CheckReport> {
    const request: CheckRequest = profile === undefined ? { flows } : { flows, profile };
    return this.#post("/api/flows/check", request, options);
  }

  /** The whole active flow with its revision. */
  deployment(options?: CallOptions): Promise<Deployment> {
    return this.#get("/api/deployment", options);
  }

  /**
   * Deploys a flow. `FLOW_REFUSED` carries every problem in `report`, `REVISION_CONFLICT` the `revision` of the active
   * flow.
   *
   * @example
   * ```ts
   * const { flows, revision } = await client.deployment();
   * // Fails with `REVISION_CONFLICT` if another client has deployed since.
   * const deployed = await client.deploy({ flows, revision });
   * console.log(deployed.revision === revision);
   * ```
   */
  deploy(request: DeployRequest, options?: CallOptions): Promise<DeployAnswer> {
    return this.#post("/api/deployment", request, options);
  }

  /** The models of the active flow and of the flows of Node-REDs: who binds them, what they can do and cost. */
  models(options?: CallOptions): Promise<DeployedModelList> {
    return this.#get("/api/models", options);
  }

  /**
   * Tests a model with one or two small calls. `KEY_NOT_SENT` means that the key of the deployed `node` belongs to
   * another address. A local model can take long, so there is no timeout unless you pass `timeoutMs`.
   */
  testModel(request: ModelTestRequest, options: CallOptions = {}): Promise<ModelTest> {
    return this.#post("/api/models/test", request, { timeoutMs: 0, ...options });
  }

  /** The models that the server of a model has. */
  listModels(request: ModelTestRequest, options?: CallOptions): Promise<ModelList> {
    return this.#post("/api/models/list", request, options);
  }

  /**
   * Starts an agent or fires an inject node. With `wait` the response comes after the whole cascade has ended, without
   * a timeout unless you pass `timeoutMs` here. Use `followRun` for long runs.
   */
  async start(request: StartRequest, options: StartOptions = {}): Promise<StartAnswer> {
    const { idempotencyKey, ...call } = options;
    // A header cannot carry other characters. The sidecar itself refuses keys that are too long.
    if (idempotencyKey !== undefined && !/^[\x21-\x7e]+$/.test(idempotencyKey)) {
      throw clientError("An idempotency key must consist of visible ASCII characters without blanks.");
    }
    const headers: Record<string, string> = idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
    const timeoutMs = call.timeoutMs ?? (request.wait ? 0 : undefined);
    return this.#transport.json({ ...call, timeoutMs, method: "POST", path: "/api/runs", headers, body: request });
  }

  /** One page of runs, newest first. */
  runs({ status, roots, ...filter }: RunsFilter = {}, options?: CallOptions): Promise<RunList> {
    const statuses = typeof status === "string" ? status : status?.join(",");
    const query = { status: statuses, ...filter, roots: roots?.toString() };
    return this.#transport.json({ ...options, path: "/api/runs", query });
  }

  /**
   * All runs, newest first. Requests the next page when you have read the previous one.
   *
   * @example
   * ```ts
   * for await (const { name, status } of client.allRuns({ status: ["completed", "failed"] })) {
   *   console.log(name, status);
   * }
   * ```
   */
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

  /** One run with its events, calls and result. */
  async run(id: RunId, options?: CallOptions): Promise<RunDetail> {
    return this.#get(`/api/runs/${pathSegment(id)}`, options);
  }

  /** One run as a list shows it. */
  async runSummary(id: RunId, options?: CallOptions): Promise<RunSummary> {
    return this.#transport.json({ ...options, path: `/api/runs/${pathSegment(id)}`, query: { only: "summary" } });
  }

  /** The runs that a run has started, and those that they have started: each after its parent. */
  async runTree(id: RunId, { after, limit }: TreeFilter = {}, options?: CallOptions): Promise<RunTree> {
    const query = { after, limit };
    return this.#transport.json({ ...options, path: `/api/runs/${pathSegment(id)}/tree`, query });
  }

  /**
   * What runs have used by UTC day, and by agent, model, tool or code.
   *
   * @example
   * ```ts
   * const { keys, rows } = await client.stats({ by: "agent" });
   * for (const { key, runs, calls } of rows) {
   *   console.log(keys[key]?.name, runs, calls);
   * }
   * ```
   */
  async stats({ by, from, to }: StatsFilter, options?: CallOptions): Promise<Stats> {
    return this.#transport.json({ ...options, path: "/api/stats", query: { by, from, to } });
  }

  /**
   * One iteration of a run: the question, the answer, the inputs and results of tools. Each text is cut at 64 KiB; with `full`
   * there are up to 4 MiB together.
   */
  async runIteration(id: RunId, iteration: number, request: CallOptions & { full?: boolean | undefined } = {}): Promise<IterationDetail> {
    const { full, ...options } = request;
    const path = `/api/runs/${pathSegment(id)}/iterations/${iteration}`;
    return this.#transport.json({ ...options, path, query: { full: full === true ? "true" : undefined } });
  }

  /** The decision trace of a run so far: what it recalled, decided and called, and what all of it comes from. */
  async runTrace(id: RunId, request: CallOptions & { after?: number | undefined } = {}): Promise<RunTrace> {
    const { after, ...options } = request;
    return this.#transport.json({ ...options, path: `/api/runs/${pathSegment(id)}/trace`, query: { after } });
  }

  /** The events of a run so far: all, or at most `limit` of them, those after or the last ones before a `seq`. */
  async runEvents(id: RunId, request: CallOptions & EventPage = {}): Promise<RunEvent[]> {
    const { after, before, limit, ...options } = request;
    return this.#transport.json({ ...options, path: `/api/runs/${pathSegment(id)}/events`, query: { after, before, limit } });
  }

  /**
   * The events of a run as they happen, until it ends: each once and in order. Reconnects after a lost connection and
   * resumes after the last event.
   *
   * @example
   * ```ts
   * const { runs } = await client.start({ payload: "6 * 7?" });
   * for (const { runId } of runs) {
   *   for await (const { seq, event } of client.followRun(runId)) {
   *     console.log(seq, event.type);
   *   }
   * }
   * ```
   */
  followRun(id: RunId, options: FollowOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
    return followRun(this.#transport, id, options);
  }

  /** The journal of a run, byte for byte, for `redflow replay`. */
  async journal(id: RunId, options?: CallOptions): Promise<string> {
    return this.#transport.text({ ...options, path: `/api/runs/${pathSegment(id)}/journal`, accept: "application/jsonl" });
  }

  /** Lines of the journal of a run: at most `lines` of them, up to 200 and 1 MiB. */
  async journalPage(id: RunId, request: CallOptions & JournalPageRequest = {}): Promise<JournalPage> {
    const { from = 1, lines, ...options } = request;
    return this.#transport.json({ ...options, path: `/api/runs/${pathSegment(id)}/journal`, query: { from, lines } });
  }

  /** A report of a run to show to others, as Markdown: what it did, without what was said. It cannot be replayed. */
  async runReport(id: RunId, options?: CallOptions): Promise<string> {
    return this.#transport.text({ ...options, path: `/api/runs/${pathSegment(id)}/report`, accept: "text/markdown" });
  }

  /** Cancels a run. Resolves when the store has recorded it. */
  async cancel(id: RunId, request: CancelRequest = {}, options?: CallOptions): Promise<RunSummary> {
    return this.#post(`/api/runs/${pathSegment(id)}/cancel`, request, options);
  }

  /** Reports the outcome of the call that a run waits for. Resolves when the store has recorded it; the run resumes. */
  async resolve(id: RunId, request: ResolveRequest, options?: CallOptions): Promise<RunSummary> {
    return this.#post(`/api/runs/${pathSegment(id)}/resolve`, request, options);
  }

  /** Replays the facts of a run through the machine and compares the result with its journal. */
  async replay(id: RunId, options?: CallOptions): Promise<ReplayReport> {
    return this.#post(`/api/runs/${pathSegment(id)}/replay`, undefined, options);
  }

  /** The tools of the registry and of the active flows. */
  tools(options?: CallOptions): Promise<ToolList> {
    return this.#get("/api/tools", options);
  }

  /** One tool, by its id or its name. */
  async tool(id: string, options?: CallOptions): Promise<ToolEntry> {
    return this.#get(`/api/tools/${pathSegment(id)}`, options);
  }

  /** Registers a tool, or replaces one that was registered. `TOOL_REFUSED` carries every problem in `report`. */
  registerTool(tool: ManifestTool, options?: CallOptions): Promise<ToolEntry> {
    return this.#post("/api/tools", tool, options);
  }

  /** Removes a tool that was registered. */
  async removeTool(id: string, options?: CallOptions): Promise<void> {
    await this.#transport.execute({ ...options, method: "DELETE", path: `/api/tools/${pathSegment(id)}` });
  }

  /** Calls a tool outside a run. A call that fails or is refused has `success: false`. */
  async callTool(id: string, input: { [key: string]: JsonValue }, options?: CallOptions): Promise<ToolInvocation> {
    const request: ToolCallRequest = { input };
    return this.#post(`/api/tools/${pathSegment(id)}/call`, request, options);
  }

  /** The calls of a tool that have ended, newest first. */
  async toolCalls(
    id: string,
    request: CallOptions & { limit?: number | undefined; before?: string | undefined } = {},
  ): Promise<ToolCallList> {
    const { limit, before, ...options } = request;
    return this.#transport.json({ ...options, path: `/api/tools/${pathSegment(id)}/calls`, query: { limit, before } });
  }

  /** The knowledge bases. */
  knowledgeBases(options?: CallOptions): Promise<KnowledgeBaseList> {
    return this.#get("/api/kb", options);
  }

  /** Removes a knowledge base with all its documents. */
  async removeKnowledgeBase(name: string, options?: CallOptions): Promise<void> {
    await this.#transport.execute({ timeoutMs: 0, ...options, method: "DELETE", path: `/api/kb/${pathSegment(name)}` });
  }

  /** The documents of a knowledge base, sorted by name. */
  async documents(
    name: string,
    request: CallOptions & { limit?: number | undefined; after?: string | undefined } = {},
  ): Promise<KnowledgeDocumentList> {
    const { limit, after, ...options } = request;
    return this.#transport.json({ ...options, path: `/api/kb/${pathSegment(name)}/documents`, query: { limit, after } });
  }

  /**
   * Adds a document, in place of an earlier one of the same name, and makes the knowledge base if there is none. Resolves
   * when the document is stored. Embedders can take long, so there is no timeout unless you pass `timeoutMs`.
   */
  async addDocument(
    name: string,
    document: string,
    bytes: Uint8Array | BlobLike,
    { signal, timeoutMs = 0, tags, dryRun, ...more }: AddDocumentOptions = {},
  ): Promise<DocumentAnswer> {
    const query = { document, tag: tags, dryRun: dryRun?.toString(), ...more };
    return this.#transport.json({ signal, timeoutMs, method: "POST", path: `/api/kb/${pathSegment(name)}/documents`, query, bytes });
  }

  /** Removes a document of a knowledge base. */
  async removeDocument(name: string, document: string, options?: CallOptions): Promise<void> {
    const path = `/api/kb/${pathSegment(name)}/documents`;
    await this.#transport.execute({ timeoutMs: 0, ...options, method: "DELETE", path, query: { document } });
  }

  /** The passages of a document, in their order. */
  async passages(
    name: string,
    document: string,
    request: CallOptions & { limit?: number | undefined; after?: number | undefined } = {},
  ): Promise<KnowledgePassageList> {
    const { limit, after, ...options } = request;
    return this.#transport.json({ ...options, path: `/api/kb/${pathSegment(name)}/passages`, query: { document, limit, after } });
  }

  /** Searches a knowledge base, the best passage first. Each passage says why it was found. */
  async searchKnowledge(name: string, search: KnowledgeSearch, options?: CallOptions): Promise<KnowledgeSearchResult> {
    return this.#post(`/api/kb/${pathSegment(name)}/search`, search, options);
  }

  /** Makes all vectors of a knowledge base again. There is no timeout unless you pass `timeoutMs`. */
  async reindexKnowledge(name: string, embedder: EmbedderChoice = {}, options: CallOptions = {}): Promise<DocumentAnswer> {
    return this.#post(`/api/kb/${pathSegment(name)}/reindex`, embedder, { timeoutMs: 0, ...options });
  }

  /** The long memories. */
  memories(options?: CallOptions): Promise<MemoryList> {
    return this.#get("/api/memory", options);
  }

  /** The entries of a long memory, sorted by key. Its name is `FLOW/NODE`. */
  async memoryEntries(
    memory: string,
    request: CallOptions & MemoryFilter & { limit?: number | undefined; after?: string | undefined } = {},
  ): Promise<MemoryEntryList> {
    const { user, session, state, kind, limit, after, ...options } = request;
    const query = { user, session, state, kind, limit, after };
    return this.#transport.json({ ...options, path: `/api/memory/${pathSegment(memory)}/entries`, query });
  }

  /** An entry of a long memory, with its former versions. */
  async memoryEntry(memory: string, key: string, options?: CallOptions): Promise<MemoryEntryDetail> {
    return this.#get(entryPath(memory, key), options);
  }

  /** Searches a long memory, the best entry first. Each says why it was found. */
  async searchMemory(memory: string, search: MemorySearch, options?: CallOptions): Promise<MemorySearchResult> {
    return this.#post(`/api/memory/${pathSegment(memory)}/search`, search, options);
  }

  /**
   * Stores an entry with the trust of the operator. What `entry` leaves out stays as it is. With `version`, only that
   * version is replaced, and 0 stores a new entry only; else it fails with `MEMORY_CONFLICT`. There is no timeout unless you
   * pass `timeoutMs`.
   */
  async putMemoryEntry(
    memory: string,
    key: string,
    entry: MemoryPut,
    request: CallOptions & { version?: number | undefined } = {},
  ): Promise<Entry> {
    const { version, ...options } = request;
    const headers: Record<string, string> =
      version === undefined ? {} : version === 0 ? { "if-none-match": "*" } : { "if-match": `"${version}"` };
    const path = entryPath(memory, key);
    return this.#transport.json({ timeoutMs: 0, ...options, method: "PUT", path, headers, body: entry });
  }

  /** Removes an entry of a long memory with its former versions. */
  async removeMemoryEntry(memory: string, key: string, options?: CallOptions): Promise<void> {
    await this.#transport.execute({ timeoutMs: 0, ...options, method: "DELETE", path: entryPath(memory, key) });
  }

  /** Removes a long memory with all its entries. */
  async removeMemory(memory: string, options?: CallOptions): Promise<void> {
    const path = `/api/memory/${pathSegment(memory)}`;
    await this.#transport.execute({ timeoutMs: 0, ...options, method: "DELETE", path });
  }

  /** Decides about entries that wait for a review. */
  async reviewMemory(review: MemoryReview, options: CallOptions = {}): Promise<MemoryReviewed> {
    return this.#post("/api/memory/review", review, { timeoutMs: 0, ...options });
  }

  /**
   * Removes the data of a user, a session or a source, so that no byte is left. What could not be removed is in `problems`.
   * There is no timeout unless you pass `timeoutMs`.
   */
  async forget(request: ForgetRequest, options: CallOptions = {}): Promise<ForgetAnswer> {
    return this.#post("/api/memory/forget", request, { timeoutMs: 0, ...options });
  }

  /** All entries of one long memory, or of all of them, as they arrive. */
  async *exportMemory(
    request: CallOptions & { memory?: string | undefined; user?: string | undefined; session?: string | undefined } = {},
  ): AsyncGenerator<MemoryExportLine, void, undefined> {
    const { memory, user, session, ...options } = request;
    const path = memory === undefined ? "/api/memory/export" : `/api/memory/${pathSegment(memory)}/export`;
    const sent = { ...options, path, query: { user, session } };
    for await (const line of this.#transport.lines(sent, "application/x-ndjson", EXPORT_IDLE_MS)) {
      yield JSON.parse(line) as MemoryExportLine;
    }
  }

  /** The MCP servers that agents can use. */
  mcpServers(options?: CallOptions): Promise<McpServerList> {
    return this.#get("/api/mcp", options);
  }

  /**
   * An MCP server with its tools, resources and prompts. `name` is the `key` of the server, here and below. The sidecar
   * connects to it first, if it is not connected. There is no timeout unless you pass `timeoutMs`.
   */
  async mcpServer(name: string, options: CallOptions = {}): Promise<McpServerDetail> {
    return this.#get(mcpPath(name), { timeoutMs: 0, ...options });
  }

  /** Connects to an MCP server again and reads its lists. There is no timeout unless you pass `timeoutMs`. */
  async connectMcp(name: string, options: CallOptions = {}): Promise<McpServerDetail> {
    return this.#post(`${mcpPath(name)}/connect`, undefined, { timeoutMs: 0, ...options });
  }

  /** Approves definitions of tools: for each tool the digest that a person has seen. */
  async pinMcpTools(name: string, tools: McpPinRequest["tools"], options?: CallOptions): Promise<McpServerDetail> {
    const request: McpPinRequest = { tools };
    return this.#post(`${mcpPath(name)}/pin`, request, options);
  }

  /** Begins a sign-in at the issuer of an MCP server. A person opens the address of the answer. */
  async loginMcp(name: string, options?: CallOptions): Promise<McpLogin> {
    return this.#post(`${mcpPath(name)}/login`, undefined, options);
  }

  /** Removes the tokens that the sidecar has for an MCP server. */
  async logoutMcp(name: string, options?: CallOptions): Promise<void> {
    await this.#transport.execute({ ...options, method: "DELETE", path: `${mcpPath(name)}/login` });
  }

  /** One agent with its tools and its memory, and what it has done since the sidecar started. */
  async agentState(
    id: NodeId,
    request: CallOptions & { instance?: InstanceId | undefined } = {},
  ): Promise<AgentDetail> {
    const { instance, ...options } = request;
    return this.#transport.json({ ...options, path: `/api/agents/${pathSegment(id)}/state`, query: { instance } });
  }

  /** The node types, their roles and ports. */
  catalogue(options?: CallOptions): Promise<NodeType[]> {
    return this.#get("/api/catalogue", options);
  }

  /** The Node-REDs whose agents this sidecar runs, with those agents. */
  instances(options?: CallOptions): Promise<InstanceList> {
    return this.#get("/api/instances", options);
  }

  /** The attached Node-RED and the checker's report of its flow; `NOT_FOUND` if there is none. */
  attached(options?: CallOptions): Promise<AttachedState> {
    return this.#get("/api/beside", options);
  }

  /** Which port may have a wire to which role. */
  edges(options?: CallOptions): Promise<EdgeRule[]> {
    return this.#get("/api/edges", options);
  }

  /** Every code with its meaning. */
  codes(options?: CallOptions): Promise<CodeEntry[]> {
    return this.#get("/api/codes", options);
  }

  /** One code with its page. */
  async code(code: string, options?: CallOptions): Promise<CodeEntry> {
    return this.#get(`/api/codes/${pathSegment(code)}`, options);
  }

  /**
   * The events of the sidecar as they happen: of runs, of the flow and, with `deltas`, the deltas of model answers.
   * Delivers every event once and in order, even if the connection is lost; throws if that is impossible.
   *
   * @example
   * ```ts
   * for await (const item of client.events({ after: CURSOR_START })) {
   *   if (item.type === "caught_up") {
   *     break; // These were the stored events. Without `break`, new ones follow as they happen.
   *   }
   *   if (item.type === "event" && item.event.kind === "run") {
   *     console.log(item.event.event.event.type);
   *   }
   * }
   * ```
   */
  events(options: EventsOptions = {}): AsyncGenerator<EventsItem, void, undefined> {
    const probe = async (signal: AbortSignalLike | undefined): Promise<void> => {
      await this.runs({ limit: 1 }, { signal });
    };
    return readEvents(this.#transport, probe, options);
  }

  #get<T>(path: string, options: CallOptions | undefined): Promise<T> {
    return this.#transport.json({ ...options, path });
  }

  #post<T>(path: string, body: object | undefined, options: CallOptions | undefined): Promise<T> {
    return this.#transport.json({ ...options, method: "POST", path, ...(body === undefined ? {} : { body }) });
  }
}
