// Type-level tests: this file passes when it compiles. `bindings.test.mjs` also runs its exports.

import { CATALOGUE, CURSOR_START, EDGE_TABLE } from "@redflow/bindings";
import type {
  AgentEnvelope,
  AgentOutput,
  AgentResult,
  ApiError,
  CONTRACT_VERSION,
  CheckReport,
  DeployRequest,
  EVENTS_PROTOCOL,
  EdgeKind,
  EventsItem,
  EventsMessage,
  EventsRequest,
  JournalLine,
  JsonValue,
  ModelAction,
  ProblemCode,
  RedflowClient,
  RedflowError,
  RunDetail,
  RunError,
  RunEvent,
  RunList,
  RunRequest,
  RunSummary,
  Severity,
  StartAnswer,
  StartRequest,
  StopReason,
  StreamEvent,
  ToolHistoryItem,
} from "@redflow/bindings";

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
