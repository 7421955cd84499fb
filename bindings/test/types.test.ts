// Type-level tests: this file passes when it compiles. `bindings.test.mjs` also runs what it exports.

import { CATALOGUE, CONTRACT_VERSION, EDGE_TABLE } from "@redflow/bindings";
import type {
  AgentEnvelope,
  AgentOutput,
  AgentResult,
  CheckReport,
  DiagnosticCode,
  EdgeKind,
  EffectClass,
  JournalLine,
  ModelAction,
  RunError,
  RunErrorCode,
  RunEvent,
  RunEventKind,
  RunRequest,
  RunStatus,
  RunSummary,
  Severity,
  StopReason,
  StoreCode,
  ToolHistoryItem,
} from "@redflow/bindings";

/** Compiles only if nothing is left. */
function never(value: never): never {
  throw new Error(`unexpected: ${String(value)}`);
}

/** Compiles only if both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function isTrue<T extends true>(): T | undefined {
  return undefined;
}

// Every optional key of the envelope, its history and its events.
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
  // Whatever came in with the message is kept.
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
  // Catch nodes are told who failed as well.
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
  // The class of a tool call is there; other effects have none.
  { prev: zeros, record: { kind: "effect", id: 1, effect: "call_model", digest: zeros } },
  { prev: zeros, record: { kind: "effect", id: 2, effect: "call_tool", class: "at_most_once", digest: zeros } },
];

// A kind of event or a code that is added makes these fail to compile, here and in every user's switch.

export function describe(event: RunEventKind): string {
  switch (event.type) {
    case "run_started":
      return `${event.name} may call the model ${event.maxIterations} times and use ${event.tools.join(", ")}`;
    case "memory_recalled":
      return `${event.messages} messages`;
    case "memory_cleared":
      return "forgotten";
    case "memory_failed":
      return event.error.message;
    case "model_called":
      return `iteration ${event.iteration}`;
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

export function place(code: DiagnosticCode): "file" | "node" | "wire" | "tool" {
  switch (code) {
    case "FLOW_UNREADABLE":
    case "FLOW_NOT_JSON":
    case "FLOW_TOO_LARGE":
    case "FLOW_TOO_DEEP":
    case "FLOW_SHAPE_UNKNOWN":
    case "DUPLICATE_KEY":
      return "file";
    case "DUPLICATE_ID":
    case "SUBFLOW_CYCLE":
    case "CONFIG_INVALID":
    case "MODEL_MISSING":
    case "MODEL_MULTIPLE":
    case "MEMORY_MULTIPLE":
    case "PROMPT_TEMPLATE_IGNORED":
    case "SECRET_IN_FLOW":
    case "SESSION_SHARED":
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
    case "TOOL_WITHOUT_SCHEMA":
    case "TOOL_CONNECTED_NOT_ALLOWED":
      return "tool";
    default:
      return never(code);
  }
}

export function blame(code: RunErrorCode): "model" | "provider" | "flow" | "tool" | "people" | "machine" {
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
    case "EDGE_REJECTED":
    case "NEEDS_NODE_RED":
    case "TIMEOUT":
    case "BUDGET_EXCEEDED":
      return "flow";
    case "TOOL_ERROR":
    case "TOOL_OUTCOME_UNKNOWN":
      return "tool";
    case "CANCELLED":
    case "APPROVAL_REJECTED":
    case "APPROVAL_EXPIRED":
      return "people";
    case "QUEUE_FULL":
    case "MEMORY_ERROR":
    case "JOURNAL_FAILED":
    case "INTERNAL":
      return "machine";
    default:
      return never(code);
  }
}

export function about(code: StoreCode): "directory" | "run" | "result" {
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
      return "run";
    case "RESULT_INVALID":
      return "result";
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

export function inList(run: RunSummary): string {
  const how = run.code ?? run.waiting?.tool ?? run.status;
  return isOver(run.status) ? `${how} after ${(run.endedAt ?? run.startedAt) - run.startedAt} ms` : how;
}

export function asked(request: RunRequest): string {
  switch (request.type) {
    case "cancel":
      return request.reason;
    case "resolve":
      return `${request.callId} ${request.result.success ? "happened" : (request.result.error ?? "failed")}`;
    default:
      return never(request);
  }
}

export function mayBeRepeated(effect: EffectClass): boolean {
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

// The tables are data with types of their own.
isTrue<Same<typeof CONTRACT_VERSION, 1>>();
isTrue<Same<(typeof EDGE_TABLE)[number]["kind"], EdgeKind>>();
isTrue<Same<Severity, "error" | "warning" | "info">>();
isTrue<Same<StopReason, "final_answer" | "confidence_threshold" | "iteration_limit" | "error">>();
isTrue<Same<ToolHistoryItem["durationMs"], number>>();
export const rows = EDGE_TABLE.length + CATALOGUE.length;

// What must not compile. Each line below is an error, or this file does not compile.

// @ts-expect-error an action is `tool` or `final`
export const noSuchAction: ModelAction = { action: "think", message: "…" };
// @ts-expect-error a tool call says how sure it is
export const noConfidence: ModelAction = { action: "tool", tool: "calculator", input: {} };
// @ts-expect-error the input of a tool is an object
export const textInput: ModelAction = { action: "tool", tool: "calculator", input: "6 * 7", confidence: 1 };
// @ts-expect-error a code is one of ours
export const noSuchCode: RunError = { code: "OOPS", message: "", iteration: 0 };
// @ts-expect-error a diagnostic's code is no run error's
export const wrongSet: RunError = { code: "MODEL_MISSING", message: "", iteration: 0 };
// @ts-expect-error null is said, never left out
export const noMessage: AgentResult = { completed: true, iterations: 1, traceId: "", finalAction: null, stopReason: "error" };
// @ts-expect-error an absent key is left out, never undefined
export const undefinedKey: AgentEnvelope = { ...envelope, memory: undefined };
// @ts-expect-error the envelope has no other keys
export const extraKey: AgentEnvelope = { ...envelope, thoughts: "…" };
// @ts-expect-error an output has an envelope
export const noEnvelope: AgentOutput = { payload: "42", agentResult: output.agentResult };
// @ts-expect-error an instance and an id make a node
export const bareAgent: RunEvent = { ...event, agent: "agent" };
// @ts-expect-error why a run failed is a code of a run, not of the store
export const storeCode: RunSummary = { ...runs[0]!, status: "failed", code: "DATA_FULL" };
// @ts-expect-error a run is somewhere
export const noStatus: RunSummary = { ...runs[0]!, status: "lost" };
// @ts-expect-error a resolution says which call it is for
export const noCall: RunRequest = { type: "resolve", result: { success: true, output: 1 } };
// @ts-expect-error nothing else can be asked
export const noSuchRequest: RunRequest = { type: "restart" };
