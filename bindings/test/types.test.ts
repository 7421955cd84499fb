// Type-level tests: this file passes when it compiles. `bindings.test.mjs` also runs its exports.

import { CATALOGUE, CURSOR_START, EDGE_TABLE, RedflowError } from "@redflow/bindings";
import type {
  AgentEnvelope,
  AgentOutput,
  AgentResult,
  ApiCode,
  ApiError,
  ArchiveCode,
  CONTRACT_VERSION,
  CheckReport,
  CodeSet,
  DeployRequest,
  DiagnosticCode,
  EVENTS_PROTOCOL,
  EdgeKind,
  EffectClass,
  EventsItem,
  EventsMessage,
  EventsRequest,
  EventsState,
  FlowEvent,
  JournalLine,
  JsonValue,
  ModelAction,
  ObservabilityEvent,
  ProblemCode,
  RedflowClient,
  RunDetail,
  RunError,
  RunErrorCode,
  RunEvent,
  RunEventKind,
  RunList,
  RunRequest,
  RunStatus,
  RunSummary,
  Scope,
  Severity,
  StartAnswer,
  StartRequest,
  StopReason,
  StoreCode,
  StreamEvent,
  ToolHistoryItem,
} from "@redflow/bindings";

/** Compiles only if a switch handles every case. */
function never(value: never): never {
  throw new Error(`unexpected: ${String(value)}`);
}

/** Compiles only if both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function isTrue<T extends true>(): T | undefined {
  return undefined;
}

// An envelope with every optional key, also in its history and its events.
export const envelope: AgentEnvelope = {
  input: { question: "What is 6 times 7?", tags: ["a", 1, null, true] },
  state: { iteration: 2, lastAction: "final", lastTool: "calculator", completed: true },
  model: { lastPrompt: "You are …", lastResponse: { action: "final", message: "42" } },
  tools: {
    available: ["calculator"],
    history: [
      {
        iteration: 1,
        tool: "calculator",
        input: { expression: "6 * 7" },
        output: 42,
        success: true,
        durationMs: 3,
        callId: "call-1",
      },
      {
        iteration: 1,
        tool: "calculator",
        input: {},
        output: null,
        success: false,
        error: "lost",
        outcome: "unknown",
        durationMs: 3,
        callId: "call-2",
      },
    ],
  },
  memory: { turns: [] },
  observability: {
    traceId: "0199b0c0-0000-7000-8000-000000000000",
    startedAt: "2025-12-17T19:33:20.123Z",
    events: [
      { iteration: 1, action: "model_response", durationMs: 10, confidence: 0.9, preview: "{…}" },
      { iteration: 1, action: "tool_request", tool: "calculator", at: "2025-12-17T19:33:20.123Z" },
      { iteration: 1, action: "tool_response", tool: "calculator", durationMs: 3 },
      { iteration: 2, action: "memory_error", error: { code: "MEMORY_ERROR", message: "The memory failed." } },
      { iteration: 2, action: "completed" },
    ],
  },
};

export const output: AgentOutput = {
  payload: "42",
  envelope,
  agentResult: {
    completed: true,
    iterations: 2,
    traceId: envelope.observability.traceId,
    message: "42",
    finalAction: "final",
    stopReason: "final_answer",
  },
  // The output keeps every other property of the incoming message.
  topic: "sums",
  _msgid: "1",
};

export const error: RunError = {
  code: "TOOL_INPUT_INVALID",
  message: "The tool input breaks the tool's schema.",
  pointer: "/input/expression",
  rule: "required",
  iteration: 1,
};

export const failed: AgentOutput = {
  payload: { ...error },
  envelope: { ...envelope, state: { iteration: 1, completed: false } },
  agentResult: {
    completed: false,
    iterations: 1,
    traceId: envelope.observability.traceId,
    message: null,
    finalAction: null,
    stopReason: "error",
    error,
  },
  // Catch nodes also receive the node that failed.
  error: { ...error, source: { id: "a", type: "agent-core", name: "Agent", count: 1 } },
};

export const actions: ModelAction[] = [
  { action: "tool", tool: "calculator", input: { expression: "6 * 7" }, confidence: 0.9 },
  { action: "final", message: "42" },
  { action: "final", confidence: null, message: null },
];

export const report: CheckReport = {
  ok: false,
  diagnostics: [
    {
      code: "MODEL_MISSING",
      severity: "error",
      message: "The agent has no model.",
      help: "Wire a model to port 0.",
      node: { id: "agent", type: "agent-core", name: "" },
      port: 0,
      target: null,
      pointer: null,
      file: "flow.json",
      expected: "model",
      found: null,
    },
  ],
  omitted: { EDGE_SELF: 3 },
};

export const event: RunEvent = {
  runId: envelope.observability.traceId,
  seq: 1,
  at: 1_766_000_000_123,
  agent: { instance: "local", nodeId: "agent" },
  event: { type: "run_started", name: "", maxIterations: 5, tools: ["calculator"] },
};

export const runs: RunSummary[] = [
  {
    runId: envelope.observability.traceId,
    agent: { instance: "local", nodeId: "agent" },
    name: "",
    status: "running",
    startedAt: 1_766_000_000_123,
    delivered: false,
  },
  {
    runId: envelope.observability.traceId,
    agent: { instance: "local", nodeId: "agent" },
    name: "Counting",
    status: "waiting",
    waiting: { callId: "call-2", tool: "mail", iteration: 2, askedAt: 1_766_000_000_200, input: { to: "Ada" } },
    source: "flows.json",
    startedAt: 1_766_000_000_123,
    delivered: false,
  },
  {
    runId: envelope.observability.traceId,
    agent: { instance: "local", nodeId: "agent" },
    name: "Counting",
    status: "failed",
    code: "JOURNAL_FAILED",
    startedAt: 1_766_000_000_123,
    endedAt: 1_766_000_000_456,
    delivered: true,
  },
];

export const requests: RunRequest[] = [
  { type: "cancel", reason: "by hand" },
  { type: "resolve", callId: "call-2", result: { success: true, output: null } },
  { type: "resolve", callId: "call-2", result: { success: false, error: "It did not happen." } },
];

const zeros = "0".repeat(64);
export const journal: JournalLine[] = [
  // Tool calls have an effect class; other effects have none.
  { prev: zeros, record: { kind: "effect", id: 1, effect: "call_model", digest: zeros } },
  { prev: zeros, record: { kind: "effect", id: 2, effect: "call_tool", class: "at_most_once", digest: zeros } },
];

// Requests and responses of the HTTP interface.
export const starts: StartRequest[] = [{}, { payload: null }, { node: "agent", payload: { a: [1] }, wait: true }];
export const started: StartAnswer = {
  runs: [
    { runId: "r", agent: { id: "a", type: "agent-core", name: "" }, status: "running" },
    { runId: "s", agent: { id: "a", type: "agent-core", name: "" }, status: "failed", refused: error, result: {} },
  ],
};
export const deploy: DeployRequest = { flows: [], revision: "r1", force: true };
export const page: RunList = { runs, next: envelope.observability.traceId };
export const detail: RunDetail = { summary: runs[0]!, events: [event], calls: [], result: null };
export const apiErrors: ApiError[] = [
  { code: "FLOW_REFUSED", message: "The flow has errors.", report },
  { code: "REVISION_CONFLICT", message: "Another one came first.", revision: "r2" },
  { code: "RUN_OVER", message: "The run is over." },
];

export const eventsRequests: EventsRequest[] = [
  { type: "subscribe" },
  { type: "subscribe", after: CURSOR_START, runs: ["r"], deltas: true },
  { type: "ping", id: "1" },
];

export const eventsMessages: EventsMessage[] = [
  { type: "hello", version: "0.1.0", cursor: "log.0" },
  { type: "event", cursor: "log.1", event: { kind: "run", event } },
  {
    type: "event",
    cursor: "log.2",
    event: { kind: "flow", at: 1, event: { type: "deployed", revision: "r2", agents: 1, refused: 0 } },
  },
  { type: "caught_up", cursor: "log.2" },
  { type: "delta", delta: { runId: "r", iteration: 1, attempt: 1, text: "4" } },
  { type: "pong", id: "1" },
  { type: "closing", code: "STOPPING", message: "Come back.", cursor: "log.2" },
];

// A new event type or code makes these switches fail to compile, here and in every user's code.

export function describeObservability(event: ObservabilityEvent): string {
  switch (event.event) {
    case "connected":
      return event.message;
    case "heartbeat":
      return `${event.connections} connections`;
    case "pong":
      return "here";
    case "frame:start":
      return `${event.frameId} by ${event.data.triggerNodeId ?? "an unknown node"}`;
    case "node:input":
      return `${event.nodeId} gets ${event.data.input?.payload.type ?? "nothing"}`;
    case "node:output":
      return `${event.nodeId} sends ${event.data.outputs.length}: ${event.data.semantics?.behavior ?? ""}`;
    case "node:error":
      return `${event.data.error.code}: ${event.data.error.message}`;
    case "frame:end":
      return `${event.data.stats.durationMs} ms`;
    default:
      return never(event);
  }
}

export function describeRunEvent(event: RunEventKind): string {
  switch (event.type) {
    case "run_started":
      return `${event.name} canWrite call the model ${event.maxIterations} times and use ${event.tools.join(", ")}`;
    case "memory_recalled":
      return `${event.messages} messages`;
    case "memory_cleared":
      return "forgotten";
    case "memory_failed":
      return event.error.message;
    case "model_called":
      return `iteration ${event.iteration}`;
    case "model_fell_over":
      return `${event.model} failed with ${event.code}`;
    case "budget_low":
    case "budget_reached":
      return `${event.spent} of ${event.limit} ${event.budget}`;
    case "model_answered":
      return `${event.action} in ${event.durationMs} ms`;
    case "tool_called":
      return `${event.tool} as ${event.callId}`;
    case "tool_returned":
      return event.success ? "success" : (event.error ?? "failure");
    case "waiting_for_outcome":
      return event.reason;
    case "run_finished":
      return `${event.stopReason} after ${event.iterations}`;
    default:
      return never(event);
  }
}

export function locationOf(code: DiagnosticCode): "file" | "node" | "wire" | "tool" {
  switch (code) {
    case "FLOW_UNREADABLE":
    case "FLOW_NOT_JSON":
    case "FLOW_TOO_LARGE":
    case "FLOW_TOO_DEEP":
    case "FLOW_SHAPE_UNKNOWN":
    case "DUPLICATE_KEY":
    case "MANIFEST_INVALID":
      return "file";
    case "DUPLICATE_ID":
    case "SUBFLOW_CYCLE":
    case "CONFIG_INVALID":
    case "MODEL_KEY_MISSING":
    case "MODEL_MISSING":
    case "MODEL_MULTIPLE":
    case "MEMORY_MULTIPLE":
    case "PROMPT_TEMPLATE_IGNORED":
    case "SECRET_IN_FLOW":
    case "SESSION_SHARED":
    case "COLLECTION_UNKNOWN":
    case "EMBEDDINGS_LEXICAL":
    case "DEFAULT_ASSUMED":
    case "NEEDS_NODE_RED":
      return "node";
    case "EDGE_TARGET_MISSING":
    case "EDGE_SELF":
    case "EDGE_DUPLICATE":
    case "PORT_OUT_OF_RANGE":
    case "EDGE_KIND_MISMATCH":
    case "RESULT_ON_MEMORY_PORT":
    case "EDGE_FOREIGN_REPLY":
      return "wire";
    case "TOOL_NAME_INVALID":
    case "TOOL_NAME_DUPLICATE":
    case "TOOL_NOT_CONNECTED":
    case "TOOL_CHAIN_OPEN":
    case "CREDENTIAL_UNBOUND":
    case "TOOL_WITHOUT_SCHEMA":
    case "TOOL_CONNECTED_NOT_ALLOWED":
      return "tool";
    default:
      return never(code);
  }
}

export function sourceOf(code: RunErrorCode): "model" | "provider" | "flow" | "tool" | "people" | "machine" {
  switch (code) {
    case "INVALID_JSON":
    case "INVALID_ACTION":
    case "INVALID_CONFIDENCE":
    case "TOOL_NOT_ALLOWED":
    case "TOOL_INPUT_INVALID":
    case "MODEL_REFUSED":
    case "MODEL_TRUNCATED":
    case "ITERATION_OVERFLOW":
    case "OUTPUT_NOT_JSON":
    case "OUTPUT_INVALID":
      return "model";
    case "MODEL_ERROR":
    case "MODEL_NOT_FOUND":
    case "INVALID_CREDENTIALS":
    case "RATE_LIMIT":
    case "QUOTA_EXCEEDED":
    case "CONTEXT_LENGTH":
    case "PROVIDER_UNAVAILABLE":
      return "provider";
    case "CONFIG_INVALID":
    case "MODEL_KEY_MISSING":
    case "EDGE_REJECTED":
    case "NEEDS_NODE_RED":
    case "TIMEOUT":
    case "BUDGET_EXCEEDED":
      return "flow";
    case "TOOL_ERROR":
    case "TOOL_UNAVAILABLE":
    case "TOOL_OUTCOME_UNKNOWN":
      return "tool";
    case "CANCELLED":
    case "APPROVAL_REJECTED":
    case "APPROVAL_EXPIRED":
      return "people";
    case "QUEUE_FULL":
    case "MEMORY_ERROR":
    case "JOURNAL_FAILED":
    case "RUNTIME_UNREACHABLE":
    case "INTERNAL":
      return "machine";
    default:
      return never(code);
  }
}

export function subjectOf(code: StoreCode): "directory" | "run" | "result" {
  switch (code) {
    case "DATA_LOCKED":
    case "DATA_READ_ONLY":
    case "DATA_FULL":
    case "DATA_CORRUPT":
    case "DATA_NEWER":
    case "DATA_UNUSABLE":
      return "directory";
    case "RUN_UNKNOWN":
    case "RUN_OVER":
    case "RUN_NOT_WAITING":
    case "RUN_BLOCKED":
    case "RUN_HUNG":
      return "run";
    case "RESULT_INVALID":
      return "result";
    default:
      return never(code);
  }
}

export function archivePartOf(code: ArchiveCode): "collection" | "document" | "entry" | "vectors" | "file" {
  switch (code) {
    case "COLLECTION_UNKNOWN":
      return "collection";
    case "DOCUMENT_UNKNOWN":
    case "DOCUMENT_UNREADABLE":
    case "TEXT_REFUSED":
    case "DOCUMENT_TOO_LARGE":
      return "document";
    case "MEMORY_CONFLICT":
    case "ENTRY_INVALID":
      return "entry";
    case "EMBEDDER_MISMATCH":
    case "EMBEDDINGS_FAILED":
      return "vectors";
    case "ARCHIVE_FULL":
    case "ARCHIVE_UNREADABLE":
      return "file";
    default:
      return never(code);
  }
}

function isOver(status: RunStatus): boolean {
  switch (status) {
    case "running":
    case "interrupted":
    case "damaged":
    case "waiting":
      return false;
    case "completed":
    case "stopped":
    case "failed":
      return true;
    default:
      return never(status);
  }
}

export function describeRun(run: RunSummary): string {
  const how = run.code ?? run.waiting?.tool ?? run.status;
  return isOver(run.status) ? `${how} after ${(run.endedAt ?? run.startedAt) - run.startedAt} ms` : how;
}

export function describeRunRequest(request: RunRequest): string {
  switch (request.type) {
    case "cancel":
      return request.reason;
    case "resolve":
      return `${request.callId} ${request.result.success ? "happened" : (request.result.error ?? "failed")}`;
    default:
      return never(request);
  }
}

export function isRepeatable(effect: EffectClass): boolean {
  switch (effect) {
    case "read":
    case "idempotent":
      return true;
    case "at_most_once":
      return false;
    default:
      return never(effect);
  }
}

export function responsibleFor(code: ApiCode): "caller" | "network" | "flow" | "reader" | "operator" {
  switch (code) {
    case "UNAUTHORIZED":
    case "FORBIDDEN":
    case "HOST_REFUSED":
    case "ORIGIN_REFUSED":
    case "SIGN_IN_REFUSED":
    case "ROUTE_UNKNOWN":
    case "METHOD_REFUSED":
    case "NOT_FOUND":
    case "CONTENT_TYPE_REFUSED":
    case "BODY_TOO_LARGE":
    case "TOOL_REFUSED":
    case "TOOL_CONFLICT":
    case "KEY_NOT_SENT":
    case "STORAGE_FULL":
    case "BODY_INVALID":
    case "REQUEST_INVALID":
    case "RATE_LIMITED":
    case "IDEMPOTENCY_KEY_REUSED":
      return "caller";
    case "REQUEST_TIMEOUT":
    case "TOO_MANY_CONNECTIONS":
    case "STOPPING":
    case "SIDECAR_UNREACHABLE":
      return "network";
    case "REVISION_CONFLICT":
    case "CHAT_NOT_CONNECTED":
    case "FLOW_REFUSED":
    case "NODE_NOT_STARTABLE":
      return "flow";
    case "CURSOR_UNKNOWN":
    case "EVENTS_GONE":
    case "READER_TOO_SLOW":
    case "MESSAGE_INVALID":
    case "MESSAGE_TOO_LARGE":
      return "reader";
    case "CONFIG_FILE_INVALID":
    case "LISTEN_FAILED":
    case "SECRET_FILE_UNSAFE":
    case "CREDENTIALS_UNREADABLE":
    case "CREDENTIALS_FILE_INVALID":
    case "NODE_RED_REFUSED":
    case "NODE_RED_UNREACHABLE":
    case "PROTOCOL_MISMATCH":
    case "INSTANCE_TAKEN":
    case "TOO_MANY_INSTANCES":
    case "REPLY_DROPPED":
      return "operator";
    default:
      return never(code);
  }
}

function describeFlowEvent(event: FlowEvent): string {
  switch (event.type) {
    case "debug":
      return `${event.node.name} shows ${event.property}`;
    case "deployed":
      return `${event.revision} with ${event.agents} agents`;
    case "needs_node_red":
    case "memory_cleared":
      return event.node.id;
    case "uncaught":
      return event.error.message;
    case "chain_cut":
      return `more than ${event.limit} in a row`;
    case "chat":
      return `${event.item.type}: ${event.item.content}`;
    case "reply_dropped":
      return `${event.node.id}: ${event.reason}`;
    case "tool_invoked":
      return `${event.call.id} took ${event.call.durationMs} ms`;
    case "checked":
      return `${event.source}: ${event.errors} errors`;
    default:
      return never(event);
  }
}

function describeStreamEvent(event: StreamEvent): string {
  switch (event.kind) {
    case "run":
      return describeRunEvent(event.event.event);
    case "flow":
      return describeFlowEvent(event.event);
    default:
      return never(event);
  }
}

export function describeMessage(message: EventsMessage): string {
  switch (message.type) {
    case "hello":
      return `version ${message.version}`;
    case "event":
      return describeStreamEvent(message.event);
    case "caught_up":
      return `all until ${message.cursor}`;
    case "delta":
      return message.delta.text;
    case "pong":
      return message.id;
    case "closing":
      return `${message.code}: ${message.message}`;
    default:
      return never(message);
  }
}

export function describeRequest(request: EventsRequest): string {
  switch (request.type) {
    case "subscribe":
      return `after ${request.after ?? "now"}`;
    case "ping":
      return request.id;
    default:
      return never(request);
  }
}

/** The client passes on some of the sidecar's messages. */
export function cursorOf(item: EventsItem): string | null {
  switch (item.type) {
    case "event":
    case "caught_up":
      return item.cursor;
    case "delta":
      return null;
    default:
      return never(item);
  }
}

export function describeState(state: EventsState): string {
  switch (state.state) {
    case "connecting":
      return `after ${state.failures} failures`;
    case "open":
      return state.version;
    case "waiting":
      return `${state.delayMs} ms because of ${state.error.code}`;
    default:
      return never(state);
  }
}

export function canWrite(scope: Scope): boolean {
  switch (scope) {
    case "read":
      return false;
    case "run":
    case "deploy":
    case "admin":
      return true;
    default:
      return never(scope);
  }
}

export function nameOfSet(set: CodeSet): string {
  switch (set) {
    case "diagnostic":
    case "run":
    case "tool":
    case "store":
    case "archive":
    case "api":
      return set;
    default:
      return never(set);
  }
}

/** The code of a codeOf error, if it is a RedflowError. */
export function codeOf(error: unknown): ProblemCode | null {
  return error instanceof RedflowError ? error.code : null;
}

// The tables and constants have literal types.
isTrue<Same<typeof CONTRACT_VERSION, 1>>();
isTrue<Same<(typeof EDGE_TABLE)[number]["kind"], EdgeKind>>();
isTrue<Same<Severity, "error" | "warning" | "info">>();
isTrue<Same<StopReason, "final_answer" | "confidence_threshold" | "iteration_limit" | "error">>();
isTrue<Same<ToolHistoryItem["durationMs"], number>>();
isTrue<Same<typeof EVENTS_PROTOCOL, "redflow.events.v1">>();
isTrue<Same<ApiError["code"], ProblemCode>>();
isTrue<Same<RedflowError["code"], ProblemCode>>();
isTrue<Same<EventsItem["type"], "event" | "delta" | "caught_up">>();
isTrue<Same<Awaited<ReturnType<RedflowClient["start"]>>, StartAnswer>>();
isTrue<Same<Awaited<ReturnType<RedflowClient["runs"]>>, RunList>>();
isTrue<Same<Awaited<ReturnType<RedflowClient["openapi"]>>, { [key: string]: JsonValue }>>();
export const rows = EDGE_TABLE.length + CATALOGUE.length;

// Each of these must be a type error: an unused `@ts-expect-error` does not compile.

// @ts-expect-error an action is `tool` or `final`
export const noSuchAction: ModelAction = { action: "think", message: "…" };
// @ts-expect-error a tool call has a confidence
export const noConfidence: ModelAction = { action: "tool", tool: "calculator", input: {} };
// @ts-expect-error the input of a tool is an object
export const textInput: ModelAction = { action: "tool", tool: "calculator", input: "6 * 7", confidence: 1 };
// @ts-expect-error a code is one of the known codes
export const noSuchCode: RunError = { code: "OOPS", message: "", iteration: 0 };
// @ts-expect-error a diagnostic code is not a run error code
export const wrongSet: RunError = { code: "MODEL_MISSING", message: "", iteration: 0 };
// @ts-expect-error a null value is never left out
export const noMessage: AgentResult = { completed: true, iterations: 1, traceId: "", finalAction: null, stopReason: "error" };
// @ts-expect-error an absent key is left out, never undefined
export const undefinedKey: AgentEnvelope = { ...envelope, memory: undefined };
// @ts-expect-error the envelope has no other keys
export const extraKey: AgentEnvelope = { ...envelope, thoughts: "…" };
// @ts-expect-error an output has an envelope
export const noEnvelope: AgentOutput = { payload: "42", agentResult: output.agentResult };
// @ts-expect-error a node is an instance and an id
export const bareAgent: RunEvent = { ...event, agent: "agent" };
// @ts-expect-error a failed run has a run error code, not a store code
export const storeCode: RunSummary = { ...runs[0]!, status: "failed", code: "DATA_FULL" };
// @ts-expect-error a run has a known status
export const noStatus: RunSummary = { ...runs[0]!, status: "lost" };
// @ts-expect-error a resolution names its call
export const noCall: RunRequest = { type: "resolve", result: { success: true, output: 1 } };
// @ts-expect-error a request is cancel or resolve
export const noSuchRequest: RunRequest = { type: "restart" };
// @ts-expect-error a diagnostic code is not an API code
export const diagnosticCode: ApiError = { code: "MODEL_MISSING", message: "" };
// @ts-expect-error a stream event has a kind
export const noKind: StreamEvent = { event };
// @ts-expect-error deltas have no cursor
export const cursorOfDelta = (item: EventsItem) => item.type === "delta" && item.cursor;
// @ts-expect-error a flow is JSON
export const noJson: DeployRequest = { flows: () => [] };
// @ts-expect-error a filter takes known statuses
export const noSuchStatus = (client: RedflowClient) => client.runs({ status: "lost" });
// @ts-expect-error a sidecar has an address
export const noUrl: ConstructorParameters<typeof RedflowClient>[0] = { token: "x" };
