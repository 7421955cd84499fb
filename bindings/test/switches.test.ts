// Switches over every event, code and state: this file passes when it compiles. A new one makes it fail, here and in every
// user's code. `bindings.test.mjs` also runs its exports.

import { RedflowError } from "@redflow/bindings";
import type {
  ApiCode,
  ArchiveCode,
  CodeSet,
  DiagnosticCode,
  EffectClass,
  EventsItem,
  EventsMessage,
  EventsRequest,
  EventsState,
  FlowEvent,
  ObservabilityEvent,
  ProblemCode,
  RunErrorCode,
  RunEventKind,
  RunRequest,
  RunStatus,
  RunSummary,
  Scope,
  StoreCode,
  StreamEvent,
} from "@redflow/bindings";

/** Compiles only if a switch handles every case. */
function never(value: never): never {
  throw new Error(`unexpected: ${String(value)}`);
}

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
      return `${event.messages} messages of ${event.sources?.length ?? 0} sources`;
    case "memory_cleared":
      return "forgotten";
    case "memory_failed":
      return event.error.message;
    case "images_fetched":
      return `${event.images} images`;
    case "summarised":
      return `${event.messages} messages in iteration ${event.iteration}`;
    case "concluding":
      return `${event.reason} in iteration ${event.iteration}`;
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
    case "MEMORY_CYCLE":
    case "MEMORY_MODEL_MISSING":
    case "MEMORY_NOT_USED":
    case "PROMPT_TEMPLATE_IGNORED":
    case "SECRET_IN_FLOW":
    case "SESSION_SHARED":
    case "COLLECTION_UNKNOWN":
    case "MCP_SERVER_UNKNOWN":
    case "EMBEDDINGS_LEXICAL":
    case "PROPERTY_UNKNOWN":
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
    case "TOOL_NOT_STRICT":
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
    case "IMAGE_INVALID":
      return "flow";
    case "TOOL_ERROR":
    case "TOOL_UNAVAILABLE":
    case "MCP_UNAVAILABLE":
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
    case "MCP_FAILED":
    case "MCP_PIN_STALE":
    case "MCP_LOGIN_REFUSED":
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
    case "memory_consolidated":
      return `${event.node.id}: ${event.consolidated.added} new entries`;
    case "memory_forgotten":
      return `${event.forgotten.entries} entries`;
    case "erased":
      return event.type;
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
