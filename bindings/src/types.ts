// Written by `cargo xtask codegen`. Do not edit.

export const CONTRACT_VERSION = 1;

export type JsonValue = number | string | boolean | Array<JsonValue> | { [key in string]: JsonValue } | null;

/**
 * A node of a flow. Any non-empty string: Redflow writes dots, spaces and epoch times into it.
 */
export type NodeId = string;

/**
 * One run of one agent: a uuid v7 given from outside, also the trace id.
 */
export type RunId = string;

/**
 * One tool call of one run.
 */
export type CallId = string;

/**
 * The Node-RED instance a flow belongs to; `local` when the runtime runs alone.
 */
export type InstanceId = string;

/**
 * An effect of one run, numbered from 1 in the order of emission. Facts name the effect they answer.
 */
export type EffectId = number;

/**
 * A node across instances: two Node-REDs may share one runtime.
 */
export type NodeRef = { 
/**
 * The Node-RED instance.
 */
instance: InstanceId, 
/**
 * The node in that instance.
 */
nodeId: NodeId, };

/**
 * A node as people recognise it.
 */
export type NodeSummary = { 
/**
 * Its id.
 */
id: NodeId, 
/**
 * Its Node-RED type.
 */
type: string, 
/**
 * The name its owner gave it; empty if none.
 */
name: string, };

/**
 * A SHA-256 digest.
 */
export type Digest = string;

/**
 * A problem of a flow, found before anything runs.
 */
export type DiagnosticCode = "FLOW_UNREADABLE" | "FLOW_NOT_JSON" | "FLOW_TOO_LARGE" | "FLOW_TOO_DEEP" | "FLOW_SHAPE_UNKNOWN" | "DUPLICATE_KEY" | "DUPLICATE_ID" | "SUBFLOW_CYCLE" | "CONFIG_INVALID" | "EDGE_TARGET_MISSING" | "EDGE_SELF" | "EDGE_DUPLICATE" | "PORT_OUT_OF_RANGE" | "EDGE_KIND_MISMATCH" | "RESULT_ON_MEMORY_PORT" | "EDGE_FOREIGN_REPLY" | "MODEL_MISSING" | "MODEL_MULTIPLE" | "MEMORY_MULTIPLE" | "TOOL_NAME_INVALID" | "TOOL_NAME_DUPLICATE" | "TOOL_NOT_CONNECTED" | "TOOL_CHAIN_OPEN" | "TOOL_WITHOUT_SCHEMA" | "TOOL_CONNECTED_NOT_ALLOWED" | "PROMPT_TEMPLATE_IGNORED" | "SESSION_SHARED" | "SECRET_IN_FLOW" | "DEFAULT_ASSUMED" | "NEEDS_NODE_RED";

/**
 * Why a run ended without an answer.
 */
export type RunErrorCode = "INVALID_JSON" | "INVALID_ACTION" | "INVALID_CONFIDENCE" | "TOOL_NOT_ALLOWED" | "TOOL_INPUT_INVALID" | "MODEL_REFUSED" | "MODEL_TRUNCATED" | "ITERATION_OVERFLOW" | "CONFIG_INVALID" | "EDGE_REJECTED" | "NEEDS_NODE_RED" | "MODEL_ERROR" | "MODEL_NOT_FOUND" | "INVALID_CREDENTIALS" | "RATE_LIMIT" | "QUOTA_EXCEEDED" | "CONTEXT_LENGTH" | "PROVIDER_UNAVAILABLE" | "TIMEOUT" | "CANCELLED" | "BUDGET_EXCEEDED" | "QUEUE_FULL" | "TOOL_ERROR" | "TOOL_OUTCOME_UNKNOWN" | "APPROVAL_REJECTED" | "APPROVAL_EXPIRED" | "MEMORY_ERROR" | "OUTPUT_NOT_JSON" | "RUNTIME_UNREACHABLE" | "JOURNAL_FAILED" | "INTERNAL";

/**
 * Why something asked about stored runs, or of the data directory, was not done.
 */
export type StoreCode = "DATA_LOCKED" | "DATA_READ_ONLY" | "DATA_FULL" | "DATA_CORRUPT" | "DATA_NEWER" | "DATA_UNUSABLE" | "RUN_UNKNOWN" | "RUN_OVER" | "RUN_NOT_WAITING" | "RUN_BLOCKED" | "RESULT_INVALID";

/**
 * Why the sidecar did not do what was asked of it over HTTP or a socket, or did not start.
 */
export type ApiCode = "UNAUTHORIZED" | "FORBIDDEN" | "HOST_REFUSED" | "ORIGIN_REFUSED" | "SIGN_IN_REFUSED" | "ROUTE_UNKNOWN" | "METHOD_REFUSED" | "NOT_FOUND" | "CONTENT_TYPE_REFUSED" | "BODY_TOO_LARGE" | "BODY_INVALID" | "REQUEST_INVALID" | "REQUEST_TIMEOUT" | "RATE_LIMITED" | "TOO_MANY_CONNECTIONS" | "STOPPING" | "REVISION_CONFLICT" | "FLOW_REFUSED" | "NODE_NOT_STARTABLE" | "CHAT_NOT_CONNECTED" | "STORAGE_FULL" | "CURSOR_UNKNOWN" | "EVENTS_GONE" | "READER_TOO_SLOW" | "MESSAGE_INVALID" | "MESSAGE_TOO_LARGE" | "CONFIG_FILE_INVALID" | "LISTEN_FAILED" | "SECRET_FILE_UNSAFE" | "CREDENTIALS_UNREADABLE" | "CREDENTIALS_FILE_INVALID" | "SIDECAR_UNREACHABLE" | "PROTOCOL_MISMATCH" | "INSTANCE_TAKEN" | "TOO_MANY_INSTANCES" | "REPLY_DROPPED" | "NODE_RED_UNREACHABLE" | "NODE_RED_REFUSED";

/**
 * How bad a diagnostic is.
 */
export type Severity = "error" | "warning" | "info";

/**
 * One problem, with both ends, the place and how to mend it.
 */
export type Diagnostic = { 
/**
 * What kind of problem.
 */
code: DiagnosticCode, 
/**
 * How bad.
 */
severity: Severity, 
/**
 * What is wrong, in one sentence.
 */
message: string, 
/**
 * How to mend it, in one sentence.
 */
help: string, 
/**
 * The node it is about; null when the whole file is.
 */
node: NodeSummary | null, 
/**
 * The output port of `node` it is about.
 */
port: number | null, 
/**
 * The node at the other end of the wire or binding.
 */
target: NodeSummary | null, 
/**
 * JSON pointer to the place: inside `node` if there is one, else inside the file.
 */
pointer: string | null, 
/**
 * The file, as it was named to the checker.
 */
file: string | null, 
/**
 * The edge kind or the value that belongs there.
 */
expected: string | null, 
/**
 * What is there.
 */
found: string | null, };

/**
 * The answer of a check: every problem at once.
 */
export type CheckReport = { 
/**
 * No errors (warnings may be there, unless they were denied).
 */
ok: boolean, 
/**
 * The problems, errors first, then in the order of the file.
 */
diagnostics: Array<Diagnostic>, 
/**
 * How many more there are of each code, when the list was cut.
 */
omitted?: { [code: string]: number }, };

/**
 * Why a run ended without an answer. The texts are ours; they quote no secret and no library.
 */
export type RunError = { 
/**
 * What kind of failure.
 */
code: RunErrorCode, 
/**
 * What happened, in one sentence.
 */
message: string, 
/**
 * JSON pointer into the model's answer or the configuration.
 */
pointer?: string, 
/**
 * The rule that was broken there, such as `required` or `maximum`.
 */
rule?: string, 
/**
 * The iteration it happened in; 0 before the first.
 */
iteration: number, };

/**
 * A code and a sentence, where the iteration is told by the place.
 */
export type Failure = { 
/**
 * What kind of failure.
 */
code: RunErrorCode, 
/**
 * What happened, in one sentence.
 */
message: string, };

/**
 * `msg.error`: the run's error, and Node-RED's word on who failed.
 */
export type MessageError = { 
/**
 * What kind of failure.
 */
code: RunErrorCode, 
/**
 * What happened, in one sentence.
 */
message: string, 
/**
 * JSON pointer into the model's answer or the configuration.
 */
pointer?: string, 
/**
 * The rule that was broken there.
 */
rule?: string, 
/**
 * The iteration it happened in; 0 before the first.
 */
iteration: number, 
/**
 * Who failed.
 */
source: ErrorSource, };

/**
 * Who failed, as Node-RED's Catch nodes tell it.
 */
export type ErrorSource = { 
/**
 * The node.
 */
id: NodeId, 
/**
 * Its type.
 */
type: string, 
/**
 * Its name.
 */
name: string, 
/**
 * How often it has failed on this message.
 */
count: number, };

/**
 * The two kinds of action.
 */
export type ActionKind = "tool" | "final";

/**
 * One validated answer of a model.
 */
export type ModelAction = { "action": "tool", 
/**
 * The tool's name, one of `allowedTools`.
 */
tool: string, 
/**
 * Its input, valid against the tool's schema.
 */
input: { [key: string]: JsonValue }, 
/**
 * How sure the model is, 0 to 1.
 */
confidence: number, 
/**
 * A remark.
 */
message?: string | null, } | { "action": "final", 
/**
 * How sure the model is, 0 to 1.
 */
confidence?: number | null, 
/**
 * The answer.
 */
message?: string | null, };

/**
 * The state of a run as every peer sees it. Keys beyond the founding document are optional.
 */
export type AgentEnvelope = { 
/**
 * The payload the run was started with.
 */
input: JsonValue, 
/**
 * Where the run is.
 */
state: EnvelopeState, 
/**
 * The last exchange with the model.
 */
model?: EnvelopeModel, 
/**
 * The tools and what they were asked.
 */
tools: EnvelopeTools, 
/**
 * What was recalled from memory, if one is bound.
 */
memory?: { [key: string]: JsonValue }, 
/**
 * Who, when, what.
 */
observability: EnvelopeObservability, };

/**
 * Where a run is.
 */
export type EnvelopeState = { 
/**
 * The iteration, from 1; 0 before the first.
 */
iteration: number, 
/**
 * The last valid action.
 */
lastAction?: ActionKind, 
/**
 * The last tool that was called.
 */
lastTool?: string, 
/**
 * True only after a `final` action.
 */
completed: boolean, };

/**
 * The last exchange with the model.
 */
export type EnvelopeModel = { 
/**
 * What the model was sent; only with `debug: true`.
 */
lastPrompt?: string, 
/**
 * The last valid action, as the model wrote it.
 */
lastResponse?: JsonValue, };

/**
 * The tools of a run.
 */
export type EnvelopeTools = { 
/**
 * Names, in the order of `allowedTools`.
 */
available: Array<string>, 
/**
 * The calls, oldest first.
 */
history: Array<ToolHistoryItem>, };

/**
 * One tool call and what came of it.
 */
export type ToolHistoryItem = { 
/**
 * The iteration that asked for it.
 */
iteration: number, 
/**
 * The tool's name.
 */
tool: string, 
/**
 * What it was given.
 */
input: { [key: string]: JsonValue }, 
/**
 * What it gave back; null if it failed.
 */
output: JsonValue, 
/**
 * Whether it worked.
 */
success: boolean, 
/**
 * What went wrong.
 */
error?: string, 
/**
 * `unknown` when nobody knows whether the call happened.
 */
outcome?: CallOutcome, 
/**
 * How long it took.
 */
durationMs: number, 
/**
 * The call's id.
 */
callId: CallId, };

/**
 * What is known of a call that has no result.
 */
export type CallOutcome = "unknown";

/**
 * Who, when, what.
 */
export type EnvelopeObservability = { 
/**
 * The run's id.
 */
traceId: RunId, 
/**
 * ISO 8601, UTC.
 */
startedAt: string, 
/**
 * What happened, in order; the last one says how the run ended.
 */
events: Array<EnvelopeEvent>, };

/**
 * One thing that happened in a run.
 */
export type EnvelopeEvent = { 
/**
 * The iteration it belongs to.
 */
iteration: number, 
/**
 * What happened.
 */
action: EnvelopeAction, 
/**
 * The tool, if one is involved.
 */
tool?: string, 
/**
 * How long it took.
 */
durationMs?: number, 
/**
 * The model's confidence.
 */
confidence?: number, 
/**
 * What went wrong.
 */
error?: Failure, 
/**
 * ISO 8601, UTC.
 */
at?: string, 
/**
 * The beginning of the text or value; only with `debug: true`.
 */
preview?: string, };

/**
 * The names of [`EnvelopeEvent`]s.
 */
export type EnvelopeAction = "model_response" | "tool_request" | "tool_response" | "memory_error" | "completed" | "stopped" | "max_iterations_reached" | "error";

/**
 * Why a run ended.
 */
export type StopReason = "final_answer" | "confidence_threshold" | "iteration_limit" | "error";

/**
 * The outcome of a run, on the message that leaves port 3.
 */
export type AgentResult = { 
/**
 * True only after a `final` action.
 */
completed: boolean, 
/**
 * How many iterations were begun.
 */
iterations: number, 
/**
 * The run's id.
 */
traceId: RunId, 
/**
 * The last action's message; null if there is none.
 */
message: string | null, 
/**
 * The action the run ended on; null if it failed.
 */
finalAction: ActionKind | null, 
/**
 * Why it ended.
 */
stopReason: StopReason, 
/**
 * What went wrong, if it failed.
 */
error?: RunError, };

/**
 * The message that leaves port 3, exactly once per run. Other properties of the incoming message are kept.
 */
export type AgentOutputKeys = { 
/**
 * The final message, the last tool output, or the error.
 */
payload: JsonValue, 
/**
 * The run as one object.
 */
envelope: AgentEnvelope, 
/**
 * How it ended.
 */
agentResult: AgentResult, 
/**
 * On failure, for Catch nodes.
 */
error?: MessageError, };

/**
 * What rides on the messages of port 4, one per valid model answer.
 */
export type ModelResponseResult = { 
/**
 * The iteration.
 */
iteration: number, 
/**
 * The run's id.
 */
traceId: RunId, 
/**
 * What the model decided.
 */
action: ActionKind, 
/**
 * The tool it asked for.
 */
tool: string | null, 
/**
 * How sure it is.
 */
confidence: number | null, 
/**
 * Its message.
 */
message: string | null, };

/**
 * What a node is to an agent. The set may grow.
 */
export type Role = "agent" | "model" | "memory" | "tool" | "chat" | "data";

/**
 * What leaves an output port.
 */
export type PortKind = "model" | "tool" | "memory" | "result" | "model_response" | "stream" | "reply" | "flow_tool" | "chat" | "data";

/**
 * The kind of an edge.
 */
export type EdgeKind = "data" | "model" | "tool" | "tool_chain" | "memory" | "reply";

/**
 * How strictly an agent's configuration is read.
 */
export type Profile = "strict" | "redflow";

/**
 * The wrapping a flow came in, kept for export.
 */
export type FlowShape = "array" | "deployment" | "single_flow" | "redflow_export";

/**
 * A node as the flow file has it: the keys everyone reads. Every other property stands beside them.
 */
export type FlowNode = { 
/**
 * Any non-empty string, unique in the flow.
 */
id: string, 
/**
 * The Node-RED type.
 */
type: string, 
/**
 * The tab or subflow it is on.
 */
z?: string, 
/**
 * The name its owner gave it.
 */
name?: string, 
/**
 * Target ids per output port; may be shorter than the number of ports.
 */
wires?: Array<Array<string>>, 
/**
 * Disabled.
 */
d?: boolean, 
/**
 * The group it is in.
 */
g?: string, };

/**
 * What every agent may say beside its own schema.
 */
export type AgentBindingConfig = { 
/**
 * The bound model's id.
 */
model?: string, 
/**
 * The bound memory's id.
 */
memory?: string, 
/**
 * The bound tools' ids.
 */
tools?: Array<string>, 
/**
 * The conversation; wins over `msg.sessionId` and the memory's.
 */
sessionId?: string, 
/**
 * Milliseconds one run may take.
 */
timeout?: number, };

/**
 * One of Agent Core's stop conditions, after validation.
 */
export type StopCondition = { "type": "final_answer", } | { "type": "confidence_threshold", 
/**
 * 0 to 1.
 */
value: number, } | { "type": "iteration_limit", 
/**
 * From 1.
 */
value: number, };

/**
 * What a tool call may do to the world.
 */
export type EffectClass = "read" | "idempotent" | "at_most_once";

/**
 * What happens to a run when nobody knows whether its call happened.
 */
export type OnUnknown = "wait" | "fail";

/**
 * What every tool node may say; also a data node that is a tool.
 */
export type ToolConfig = { 
/**
 * The name the model calls it by.
 */
toolName?: string, 
/**
 * What it does, for the model.
 */
description?: string, 
/**
 * JSON Schema of its input: an object, or JSON text.
 */
inputSchema?: string | { [key: string]: JsonValue }, 
/**
 * What a call may do to the world.
 */
effect?: EffectClass, 
/**
 * Milliseconds one call may take.
 */
timeout?: number, 
/**
 * What happens when a call's outcome is unknown.
 */
onUnknown?: OnUnknown, };

/**
 * What every memory node may say.
 */
export type MemoryConfig = { 
/**
 * The conversation, when neither the agent nor the message names one.
 */
sessionId?: string, };

/**
 * `scripted-model`: answers from a list, for demos and tests without a network.
 */
export type ScriptedModelConfig = { 
/**
 * The k-th model call of a run gets the k-th reply, the last one repeats. A string goes out as it is,
 * anything else as its JSON.
 */
replies: Array<JsonValue>, 
/**
 * Milliseconds to wait before each answer.
 */
delayMs?: number, };

/**
 * Where a model stops: a comma list, or a list.
 */
export type StopSequences = string | Array<string>;

/**
 * Which of OpenAI's interfaces.
 */
export type OpenaiApi = "chat" | "responses";

/**
 * How a model is made to answer with JSON.
 */
export type StructuredOutput = "auto" | "json_schema" | "json_object" | "none";

/**
 * How hard a reasoning model thinks.
 */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/**
 * What a model can do, where the built-in table is wrong or does not know it.
 */
export type CapabilityConfig = { 
/**
 * Takes tools natively.
 */
tools?: boolean, 
/**
 * Takes pictures.
 */
vision?: boolean, 
/**
 * Can answer in pieces.
 */
streaming?: boolean, 
/**
 * Answers by a JSON Schema.
 */
jsonSchema?: boolean, 
/**
 * Has a JSON mode.
 */
jsonObject?: boolean, 
/**
 * Takes temperature and the like.
 */
sampling?: boolean, 
/**
 * Thinks before it answers.
 */
reasoning?: boolean, 
/**
 * Tokens it can read.
 */
contextWindow?: number, 
/**
 * Tokens it can write.
 */
maxOutput?: number, };

/**
 * `openai-model`: OpenAI, and everything that speaks its language.
 */
export type OpenaiModelConfig = { 
/**
 * The model.
 */
model?: string, 
/**
 * Where the interface is; for others than OpenAI.
 */
baseURL?: string, 
/**
 * Which interface.
 */
api?: OpenaiApi, 
/**
 * The key; better kept in the node's credentials, or as `${NAME}`.
 */
apiKey?: string, 
/**
 * The organization the calls are billed to.
 */
organization?: string, 
/**
 * The project the calls are billed to.
 */
project?: string, 
/**
 * 0 to 2; sent only if it is set and the model takes it.
 */
temperature?: number, 
/**
 * Tokens of one answer.
 */
maxTokens?: number, 
/**
 * Ask for JSON also where no schema is asked for.
 */
jsonMode?: boolean, 
/**
 * 0 to 1.
 */
topP?: number, 
/**
 * -2 to 2.
 */
frequencyPenalty?: number, 
/**
 * -2 to 2.
 */
presencePenalty?: number, 
/**
 * For answers that can be had again.
 */
seed?: number, 
/**
 * Where to stop; at most 4.
 */
stop?: StopSequences, 
/**
 * How hard a reasoning model thinks.
 */
reasoningEffort?: ReasoningEffort, 
/**
 * Let the answer come in pieces.
 */
stream?: boolean, 
/**
 * How the model is made to answer with JSON.
 */
structuredOutput?: StructuredOutput, 
/**
 * What the model can do, where the built-in table is wrong.
 */
capabilities?: CapabilityConfig, 
/**
 * Milliseconds one call may take, retries included.
 */
timeout?: number, 
/**
 * How often a call that failed for now is made again.
 */
maxRetries?: number, 
/**
 * The node's own credentials.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: OpenaiModelConfig, };

/**
 * `anthropic-model`: Claude.
 */
export type AnthropicModelConfig = { 
/**
 * The model.
 */
model?: string, 
/**
 * Where the interface is; for gateways.
 */
baseURL?: string, 
/**
 * The version of the interface, such as 2026-10-21.
 */
anthropicVersion?: string, 
/**
 * The key; better kept in the node's credentials, or as `${NAME}`.
 */
apiKey?: string, 
/**
 * 0 to 1; sent only if it is set and the model takes it.
 */
temperature?: number, 
/**
 * Tokens of one answer.
 */
maxTokens?: number, 
/**
 * 0 to 1.
 */
topP?: number, 
/**
 * 0 for off.
 */
topK?: number, 
/**
 * Where to stop.
 */
stop?: StopSequences, 
/**
 * How much effort the model makes.
 */
reasoningEffort?: ReasoningEffort, 
/**
 * Tokens it may think for; thinking is off without it.
 */
thinkingBudget?: number, 
/**
 * Let the answer come in pieces.
 */
stream?: boolean, 
/**
 * How the model is made to answer with JSON.
 */
structuredOutput?: StructuredOutput, 
/**
 * What the model can do, where the built-in table is wrong.
 */
capabilities?: CapabilityConfig, 
/**
 * Milliseconds one call may take, retries included.
 */
timeout?: number, 
/**
 * How often a call that failed for now is made again.
 */
maxRetries?: number, 
/**
 * The node's own credentials.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: AnthropicModelConfig, };

/**
 * `model.azure.openai`: OpenAI's models at Azure, with the fields Redflow writes.
 */
export type AzureModelConfig = { 
/**
 * The resource, such as `https://NAME.openai.azure.com`.
 */
endpoint?: string, 
/**
 * The deployment.
 */
deployment?: string, 
/**
 * A dated version, or `v1`.
 */
apiVersion?: string, 
/**
 * The key; better kept in the node's credentials, or as `${NAME}`.
 */
apiKey?: string, 
/**
 * Which of the Redflow UI's credentials; the runtime gets them with the deploy.
 */
credentialId?: string, 
/**
 * 0 to 2; sent only if it is set and the model takes it.
 */
temperature?: number, 
/**
 * Tokens of one answer.
 */
maxTokens?: number, 
/**
 * 0 to 1.
 */
topP?: number, 
/**
 * Where to stop; at most 4.
 */
stop?: StopSequences, 
/**
 * For answers that can be had again.
 */
seed?: number, 
/**
 * How hard a reasoning model thinks.
 */
reasoningEffort?: ReasoningEffort, 
/**
 * Let the answer come in pieces.
 */
stream?: boolean, 
/**
 * How the model is made to answer with JSON.
 */
structuredOutput?: StructuredOutput, 
/**
 * What the deployed model can do.
 */
capabilities?: CapabilityConfig, 
/**
 * Milliseconds one call may take, retries included.
 */
timeoutMs?: number, 
/**
 * How often a call that failed for now is made again.
 */
maxRetries?: number, 
/**
 * The node's own credentials.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: AzureModelConfig, };

/**
 * `ollama-model`: models on a machine of your own.
 */
export type OllamaModelConfig = { 
/**
 * The model.
 */
model?: string, 
/**
 * Where Ollama is.
 */
baseURL?: string, 
/**
 * A key, where a proxy before it wants one.
 */
apiKey?: string, 
/**
 * 0 to 2.
 */
temperature?: number, 
/**
 * Tokens of one answer.
 */
maxTokens?: number, 
/**
 * 0 to 1.
 */
topP?: number, 
/**
 * 0 for off.
 */
topK?: number, 
/**
 * For answers that can be had again.
 */
seed?: number, 
/**
 * Where to stop.
 */
stop?: StopSequences, 
/**
 * Tokens of the conversation the model is loaded for.
 */
numCtx?: number, 
/**
 * How long the model stays loaded, such as `5m`.
 */
keepAlive?: string, 
/**
 * Whether a reasoning model thinks.
 */
think?: boolean, 
/**
 * Let the answer come in pieces.
 */
stream?: boolean, 
/**
 * How the model is made to answer with JSON.
 */
structuredOutput?: StructuredOutput, 
/**
 * What the model can do, where the built-in table is wrong.
 */
capabilities?: CapabilityConfig, 
/**
 * Milliseconds one call may take, retries included.
 */
timeout?: number, 
/**
 * How often a call that failed for now is made again.
 */
maxRetries?: number, 
/**
 * The node's own credentials.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: OllamaModelConfig, };

/**
 * `buffer-memory`: whole conversations, in the process.
 */
export type BufferMemoryConfig = { 
/**
 * The conversation, when neither the agent nor the message names one.
 */
sessionId?: string, 
/**
 * Messages of one conversation that are kept.
 */
maxMessages?: number, 
/**
 * Bytes of one conversation that are kept.
 */
maxBytes?: number, 
/**
 * Seconds after which a conversation nobody uses is forgotten; 0 for never.
 */
idle?: number, 
/**
 * The same properties again.
 */
options?: BufferMemoryConfig, };

/**
 * `window-memory`: the last messages of each conversation, in the process.
 */
export type WindowMemoryConfig = { 
/**
 * The conversation, when neither the agent nor the message names one.
 */
sessionId?: string, 
/**
 * Messages the model is reminded of.
 */
maxMessages?: number, 
/**
 * Bytes of one conversation that are kept.
 */
maxBytes?: number, 
/**
 * Seconds after which a conversation nobody uses is forgotten; 0 for never.
 */
idle?: number, 
/**
 * The same properties again.
 */
options?: WindowMemoryConfig, };

/**
 * `redis-memory`: conversations in Redis.
 */
export type RedisMemoryConfig = { 
/**
 * The conversation, when neither the agent nor the message names one.
 */
sessionId?: string, 
/**
 * Seconds after which a conversation nobody adds to is forgotten; 0 for never.
 */
ttl?: number, 
/**
 * What every key begins with.
 */
keyPrefix?: string, 
/**
 * Messages of one conversation that are kept.
 */
maxMessages?: number, 
/**
 * Bytes of one conversation that are kept.
 */
maxBytes?: number, 
/**
 * `redis://HOST:PORT/DB`, instead of the next four; a password in it only in the credentials.
 */
url?: string, 
/**
 * The machine.
 */
host?: string, 
/**
 * The port.
 */
port?: number, 
/**
 * The number of the database.
 */
db?: number, 
/**
 * Whether the connection is encrypted.
 */
tls?: boolean, 
/**
 * The user.
 */
username?: string, 
/**
 * The password; better kept in the node's credentials, or as `${NAME}`.
 */
password?: string, 
/**
 * 32 bytes in base64: turns are stored encrypted with it. Better kept in the node's credentials.
 */
encryptionKey?: string, 
/**
 * Milliseconds one command may take.
 */
timeout?: number, 
/**
 * The node's own credentials.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: RedisMemoryConfig, };

/**
 * One property an inject node sets.
 */
export type InjectProperty = { 
/**
 * The property of the message, such as `payload` or `user.name`.
 */
p: string, 
/**
 * Its value, as text.
 */
v?: JsonValue, 
/**
 * The type of the value.
 */
vt?: string, };

/**
 * `inject`.
 */
export type InjectConfig = { 
/**
 * What the message is made of; absent in flows of old editors.
 */
props?: Array<InjectProperty>, 
/**
 * The payload, as text.
 */
payload?: JsonValue, 
/**
 * The payload's type.
 */
payloadType?: string, 
/**
 * The topic.
 */
topic?: string, 
/**
 * Whether it fires once, a little after the flow has started.
 */
once?: boolean, 
/**
 * How many seconds after that; a number or its text.
 */
onceDelay?: number | string, 
/**
 * It fires every so many seconds; a number or its text, empty for never.
 */
repeat?: number | string, 
/**
 * It fires at these times: a cron expression of 5 or 6 fields, in local time. `repeat` comes first.
 */
crontab?: string, };

/**
 * `debug`.
 */
export type DebugConfig = { 
/**
 * Whether it prints.
 */
active?: boolean, 
/**
 * The property to print, or `true` for the whole message.
 */
complete?: JsonValue, 
/**
 * What `complete` names: `msg`, `full` or `jsonata`.
 */
targetType?: string, };

/**
 * One thing a change node does.
 */
export type ChangeRule = { 
/**
 * What: `set`, `change`, `delete` or `move`.
 */
t: string, 
/**
 * The property of the message, such as `payload` or `payload.rooms[0]`.
 */
p: string, 
/**
 * What it is a property of; `msg` if left out.
 */
pt?: string, 
/**
 * The value, or the property it is moved to.
 */
to?: JsonValue, 
/**
 * The type of that; `str` if left out.
 */
tot?: string, 
/**
 * What is searched for.
 */
from?: JsonValue, 
/**
 * The type of that; `str` if left out.
 */
fromt?: string, };

/**
 * `change`.
 */
export type ChangeConfig = { 
/**
 * What it does, in order; absent in flows of old editors.
 */
rules?: Array<ChangeRule>, };

/**
 * `link in` and `link out`.
 */
export type LinkConfig = { 
/**
 * The ids at the other end.
 */
links?: Array<string>, 
/**
 * `link`, or `return` for a link out that answers a link call.
 */
mode?: string, };

/**
 * `catch`.
 */
export type CatchConfig = { 
/**
 * The nodes it listens to; null for all on the tab, `group` for its group.
 */
scope?: string[] | "group" | null, 
/**
 * Only errors no other catch node took.
 */
uncaught?: boolean, };

/**
 * One variable of a tab, a group, a subflow or the whole flow.
 */
export type EnvVariable = { 
/**
 * Its name.
 */
name: string, 
/**
 * Its value, as text.
 */
value?: JsonValue, 
/**
 * The type of the value: `str`, `num`, `bool`, `json`, `env` and others.
 */
type?: string, };

/**
 * `tab`.
 */
export type TabConfig = { 
/**
 * Its name.
 */
label?: string, 
/**
 * Whether none of its nodes run.
 */
disabled?: boolean, 
/**
 * Its variables.
 */
env?: Array<EnvVariable>, };

/**
 * `group` and `global-config`.
 */
export type GroupConfig = { 
/**
 * Its variables.
 */
env?: Array<EnvVariable>, };

/**
 * An input or output of a subflow.
 */
export type SubflowPort = { 
/**
 * The nodes inside it is joined to.
 */
wires: Array<SubflowWire>, };

/**
 * One end of a wire inside a subflow.
 */
export type SubflowWire = { 
/**
 * The node inside, or the subflow itself for its own input.
 */
id: string, 
/**
 * The node's output.
 */
port?: number, };

/**
 * `subflow`.
 */
export type SubflowConfig = { 
/**
 * Its name.
 */
name?: string, 
/**
 * Its input: none or one.
 */
in?: Array<SubflowPort>, 
/**
 * Its outputs.
 */
out?: Array<SubflowPort>, 
/**
 * Its variables.
 */
env?: Array<EnvVariable>, };

/**
 * Bounds on one run. Part of the run's first fact, so that a replay uses the same ones.
 */
export type RunLimits = { 
/**
 * Bytes of one model answer.
 */
maxAnswerBytes: number, 
/**
 * Nesting of one model answer.
 */
maxAnswerDepth: number, 
/**
 * Bytes of one tool result as JSON; a larger one becomes a failed observation.
 */
maxResultBytes: number, 
/**
 * Bytes of the incoming message as JSON.
 */
maxMessageBytes: number, 
/**
 * Nesting of the incoming message and of tool results, so that every journal can be read back.
 */
maxValueDepth: number, };

/**
 * The agent, its bindings and their properties: not the whole flow. Secrets are replaced before they get here.
 */
export type AgentPlan = { 
/**
 * The agent's own properties.
 */
agent: PlanNode, 
/**
 * The model it binds.
 */
model: PlanNode, 
/**
 * The memory it binds.
 */
memory: PlanNode | null, 
/**
 * The tools it binds, in the order of their wires.
 */
tools: Array<PlanNode>, };

/**
 * A node of a plan.
 */
export type PlanNode = { 
/**
 * Which node.
 */
node: NodeSummary, 
/**
 * Its properties as the flow has them; `${ENV}` stays symbolic.
 */
config: { [key: string]: JsonValue }, };

/**
 * The agent as the machine works by it. Enters the journal with the run's first fact.
 */
export type AgentSpec = { 
/**
 * The agent.
 */
agent: NodeRef, 
/**
 * The agent's type.
 */
type: string, 
/**
 * The agent's name; empty if none.
 */
name: string, 
/**
 * How many model calls at most.
 */
maxIterations: number, 
/**
 * The tools the model may ask for, in the order it is told of them.
 */
tools: Array<ToolSpec>, 
/**
 * When to stop before a final answer.
 */
stopConditions: Array<StopCondition>, 
/**
 * Whether prompts and previews are shown.
 */
debug: boolean, 
/**
 * Milliseconds the run may take.
 */
timeoutMs: number, 
/**
 * Whether a memory is bound.
 */
memory: boolean, 
/**
 * Whether anything is wired to port 4; if not, nothing is made for it.
 */
modelResponseWired: boolean, 
/**
 * The bounds of the run.
 */
limits: RunLimits, };

/**
 * A tool as the model is told of it.
 */
export type ToolSpec = { 
/**
 * The name the model calls it by.
 */
name: string, 
/**
 * What it does.
 */
description: string, 
/**
 * JSON Schema of its input; null if it takes any object.
 */
inputSchema: JsonValue | null, 
/**
 * The node that is the tool.
 */
node: NodeId, 
/**
 * What its node declares of its calls; null if the tool itself decides.
 */
effect: EffectClass | null, 
/**
 * Milliseconds one call may take.
 */
timeoutMs: number, 
/**
 * What happens when a call's outcome is unknown.
 */
onUnknown: OnUnknown, };

/**
 * Who speaks.
 */
export type ChatRole = "system" | "user" | "assistant" | "tool";

/**
 * One message of a conversation.
 */
export type ChatMessage = { 
/**
 * Who speaks.
 */
role: ChatRole, 
/**
 * What is said.
 */
content: string, 
/**
 * The calls the model asks for with it; only of an assistant.
 */
toolCalls?: Array<RequestedCall>, 
/**
 * The call it is the result of; only of a tool.
 */
toolCallId?: string, 
/**
 * What the provider wants back unchanged; only of an assistant.
 */
reasoning?: OpaqueParts, };

/**
 * A call a model asks for natively.
 */
export type RequestedCall = { 
/**
 * What its result names it by.
 */
id: string, 
/**
 * The tool.
 */
name: string, 
/**
 * The input as JSON text, as the model wrote it: perhaps no JSON at all.
 */
arguments: string, };

/**
 * A provider's own reasoning parts: kept to be sent back unchanged to the same wire, never read or shown.
 */
export type OpaqueParts = { 
/**
 * The wire they came by; another one never gets them.
 */
wire: string, 
/**
 * The parts.
 */
parts: Array<JsonValue>, };

/**
 * One thing that became known, and when.
 */
export type Fact = { "type": "run_started", 
/**
 * When.
 */
at: number, 
/**
 * The run.
 */
runId: RunId, 
/**
 * The conversation, if a memory is bound.
 */
session: string | null, 
/**
 * The message that started it.
 */
message: { [key: string]: JsonValue }, 
/**
 * The agent with every reference resolved.
 */
spec: AgentSpec, } | { "type": "memory_recalled", 
/**
 * When.
 */
at: number, 
/**
 * The effect it answers.
 */
effect: EffectId, 
/**
 * Oldest first.
 */
turns: Array<ChatMessage>, } | { "type": "memory_failed", 
/**
 * When.
 */
at: number, 
/**
 * The effect it answers.
 */
effect: EffectId, 
/**
 * Why.
 */
error: Failure, } | { "type": "memory_cleared", 
/**
 * When.
 */
at: number, 
/**
 * The effect it answers.
 */
effect: EffectId, } | { "type": "memory_appended", 
/**
 * When.
 */
at: number, 
/**
 * The effect it answers.
 */
effect: EffectId, } | { "type": "model_answered", 
/**
 * When.
 */
at: number, 
/**
 * The effect it answers.
 */
effect: EffectId, 
/**
 * What it said.
 */
answer: ModelAnswer, } | { "type": "model_failed", 
/**
 * When.
 */
at: number, 
/**
 * The effect it answers.
 */
effect: EffectId, 
/**
 * Why.
 */
error: Failure, } | { "type": "tool_returned", 
/**
 * When.
 */
at: number, 
/**
 * The effect it answers.
 */
effect: EffectId, 
/**
 * What came of it.
 */
result: ToolResult, } | { "type": "tool_outcome_unknown", 
/**
 * When.
 */
at: number, 
/**
 * The effect it answers.
 */
effect: EffectId, 
/**
 * How that came about.
 */
reason: string, } | { "type": "outcome_resolved", 
/**
 * When.
 */
at: number, 
/**
 * The effect it answers.
 */
effect: EffectId, 
/**
 * What came of it.
 */
result: ToolResult, } | { "type": "cancel_requested", 
/**
 * When.
 */
at: number, 
/**
 * Who or why.
 */
reason: string, } | { "type": "deadline_reached", 
/**
 * When.
 */
at: number, };

/**
 * What a model said, with what it cost.
 */
export type ModelAnswer = { 
/**
 * The text, untouched.
 */
text: string, 
/**
 * How the provider says it ended.
 */
finish: ModelFinish, 
/**
 * What it used, if the provider says so.
 */
usage?: Usage, 
/**
 * The calls it asks for natively, in its order.
 */
toolCalls?: Array<RequestedCall>, 
/**
 * What the provider wants back unchanged with the next request. Agent Core never has it.
 */
reasoning?: OpaqueParts, 
/**
 * The model that answered, as the provider calls it.
 */
model?: string, 
/**
 * What the provider calls this request, for its support.
 */
requestId?: string, };

/**
 * How an answer ended.
 */
export type ModelFinish = "stop" | "refused" | "truncated" | "tool_calls";

/**
 * What a model call used.
 */
export type Usage = { 
/**
 * Tokens read.
 */
inputTokens: number, 
/**
 * Tokens written.
 */
outputTokens: number, 
/**
 * Of those read, from the provider's cache.
 */
cachedTokens?: number, 
/**
 * Of those read, written into the provider's cache.
 */
cacheWriteTokens?: number, 
/**
 * Of those written, never shown.
 */
reasoningTokens?: number, 
/**
 * In the currency of the price table.
 */
cost?: number, };

/**
 * What came of a tool call. This, as JSON, is the observation the model reads.
 */
export type ToolResult = { 
/**
 * Whether it worked.
 */
success: boolean, 
/**
 * What it gave; there (perhaps null) when it worked.
 */
output?: JsonValue, 
/**
 * What went wrong; there when it failed.
 */
error?: string, };

/**
 * What a journal records.
 */
export type JournalRecord = { "kind": "header", 
/**
 * The version of the contract's types.
 */
contract: number, 
/**
 * The version of the machine.
 */
machine: number, 
/**
 * The run.
 */
runId: RunId, 
/**
 * The agent.
 */
agent: NodeRef, 
/**
 * The digest of the plan.
 */
planDigest: Digest, 
/**
 * The run that started this one.
 */
parentRunId?: RunId, 
/**
 * The step of that run.
 */
stepId?: string, } | { "kind": "plan", 
/**
 * What the run runs.
 */
plan: AgentPlan, } | { "kind": "fact", 
/**
 * What.
 */
fact: Fact, } | { "kind": "effect", 
/**
 * Its number.
 */
id: EffectId, 
/**
 * Its type, for people.
 */
effect: string, 
/**
 * What a tool call may do to the world, as its driver judged it before the call was made. After a
 * crash this decides whether the call may be made again. The machine knows nothing of it.
 */
class?: EffectClass, 
/**
 * The digest of it.
 */
digest: Digest, } | { "kind": "output", 
/**
 * The digest of it.
 */
digest: Digest, };

/**
 * One line of a journal.
 */
export type JournalLine = { 
/**
 * The digest of the raw bytes of the line before; zeros in the first.
 */
prev: Digest, 
/**
 * What is recorded.
 */
record: JournalRecord, };

/**
 * One try of one model.
 */
export type ModelTest = { 
/**
 * Whether it answered, and with a valid action.
 */
ok: boolean, 
/**
 * The node's type.
 */
type: string, 
/**
 * Who runs it, as OpenTelemetry names it.
 */
provider: string, 
/**
 * The model that was asked for.
 */
model: string, 
/**
 * How long it took.
 */
durationMs: number, 
/**
 * What it used, if the provider says so.
 */
usage?: Usage, 
/**
 * The model that answered, as the provider calls it.
 */
answeredBy?: string, 
/**
 * What is wrong.
 */
error?: Failure, };

/**
 * A run in a list.
 */
export type RunSummary = { 
/**
 * The run.
 */
runId: RunId, 
/**
 * The agent.
 */
agent: NodeRef, 
/**
 * The agent's name; empty if none.
 */
name: string, 
/**
 * Where it is.
 */
status: RunStatus, 
/**
 * Why it failed.
 */
code?: RunErrorCode, 
/**
 * The call whose outcome it waits for.
 */
waiting?: WaitingCall, 
/**
 * When it started.
 */
startedAt: number, 
/**
 * When it ended.
 */
endedAt?: number, 
/**
 * Whether its result has left for good.
 */
delivered: boolean, 
/**
 * The file its flow was read from, if it was one: where to look for the flow when the run is resumed.
 */
source?: string, };

/**
 * Where a run is.
 */
export type RunStatus = "running" | "interrupted" | "waiting" | "completed" | "stopped" | "failed" | "damaged";

/**
 * A call whose outcome nobody knows.
 */
export type WaitingCall = { 
/**
 * The call.
 */
callId: CallId, 
/**
 * The tool.
 */
tool: string, 
/**
 * The iteration.
 */
iteration: number, 
/**
 * When it was to be made.
 */
askedAt: number, 
/**
 * What it was called with.
 */
input: { [key: string]: JsonValue }, };

/**
 * What another process may ask of a run.
 */
export type RunRequest = { "type": "cancel", 
/**
 * Who or why.
 */
reason: string, } | { "type": "resolve", 
/**
 * The call: an answer never goes to another one.
 */
callId: CallId, 
/**
 * What came of it.
 */
result: ToolResult, };

/**
 * One thing that was said.
 */
export type ChatItem = { 
/**
 * Tells it from the others of its chat. What is said again with the same id is not said twice.
 */
id: string, 
/**
 * Who said it.
 */
type: ChatSpeaker, 
/**
 * What.
 */
content: string, 
/**
 * When.
 */
timestamp: number, 
/**
 * The run, if an agent said it.
 */
traceId?: RunId, 
/**
 * Its iteration.
 */
iteration?: number, };

/**
 * Who says something in a chat.
 */
export type ChatSpeaker = "user" | "agent";

/**
 * Says something to an agent.
 */
export type ChatSend = { 
/**
 * What.
 */
message: string, 
/**
 * The same as the window shows it, a ChatItem; only its `id` counts, and one is made if there is none.
 */
chatMessage?: JsonValue, };

/**
 * It was said: the agent has it.
 */
export type ChatSent = { 
/**
 * Always true.
 */
success: boolean, 
/**
 * For people.
 */
message: string, 
/**
 * The agent; absent for what is done without one.
 */
agentCoreId?: NodeId, };

/**
 * What was said in a chat, oldest first.
 */
export type ChatHistory = { 
/**
 * The chat node.
 */
nodeId: NodeId, 
/**
 * What was said.
 */
history: Array<ChatItem>, 
/**
 * How much of it there is.
 */
count: number, };

/**
 * One event of one run. `seq` counts from 1 without gaps.
 */
export type RunEvent = { 
/**
 * The run.
 */
runId: RunId, 
/**
 * Its place in the run.
 */
seq: number, 
/**
 * When.
 */
at: number, 
/**
 * The agent.
 */
agent: NodeRef, 
/**
 * What happened.
 */
event: RunEventKind, };

/**
 * What happened in a run.
 */
export type RunEventKind = { "type": "run_started", 
/**
 * The agent's name.
 */
name: string, 
/**
 * How many model calls at most.
 */
maxIterations: number, 
/**
 * The tools the model may ask for.
 */
tools: Array<string>, } | { "type": "memory_recalled", 
/**
 * How many.
 */
messages: number, } | { "type": "memory_cleared", } | { "type": "memory_failed", 
/**
 * Why.
 */
error: Failure, } | { "type": "model_called", 
/**
 * The iteration.
 */
iteration: number, 
/**
 * The beginning of what it has not been told before in this run: the input, then what the tool gave; only
 * with `debug: true`.
 */
preview?: string, } | { "type": "model_answered", 
/**
 * The iteration.
 */
iteration: number, 
/**
 * What it decided.
 */
action: ActionKind, 
/**
 * The tool it asked for.
 */
tool?: string, 
/**
 * How sure it is.
 */
confidence?: number, 
/**
 * How long it took.
 */
durationMs: number, 
/**
 * What it used.
 */
usage?: Usage, 
/**
 * The beginning of the answer; only with `debug: true`.
 */
preview?: string, } | { "type": "tool_called", 
/**
 * The iteration.
 */
iteration: number, 
/**
 * The tool.
 */
tool: string, 
/**
 * The call.
 */
callId: CallId, 
/**
 * The beginning of the input; only with `debug: true`.
 */
preview?: string, } | { "type": "tool_returned", 
/**
 * The iteration.
 */
iteration: number, 
/**
 * The tool.
 */
tool: string, 
/**
 * The call.
 */
callId: CallId, 
/**
 * Whether it worked.
 */
success: boolean, 
/**
 * What went wrong.
 */
error?: string, 
/**
 * How long it took.
 */
durationMs: number, 
/**
 * The beginning of the output; only with `debug: true`.
 */
preview?: string, } | { "type": "waiting_for_outcome", 
/**
 * The iteration.
 */
iteration: number, 
/**
 * The tool.
 */
tool: string, 
/**
 * The call.
 */
callId: CallId, 
/**
 * How that came about.
 */
reason: string, } | { "type": "run_finished", 
/**
 * True only after a `final` action.
 */
completed: boolean, 
/**
 * Why.
 */
stopReason: StopReason, 
/**
 * How many iterations were begun.
 */
iterations: number, 
/**
 * How long it took.
 */
durationMs: number, 
/**
 * What went wrong.
 */
error?: RunError, };

/**
 * What happened in the flow around the runs.
 */
export type FlowEvent = { "type": "debug", 
/**
 * The debug node.
 */
node: NodeSummary, 
/**
 * The property shown; `msg` for the whole message.
 */
property: string, 
/**
 * Its value.
 */
value: JsonValue, } | { "type": "chat", 
/**
 * The chat node.
 */
node: NodeSummary, 
/**
 * What was said.
 */
item: ChatItem, 
/**
 * How many items the node keeps.
 */
keeps: number, } | { "type": "reply_dropped", 
/**
 * The agent it came to.
 */
node: NodeSummary, 
/**
 * Why it means nothing to it.
 */
reason: string, } | { "type": "deployed", 
/**
 * Its revision.
 */
revision: string, 
/**
 * How many agents it has.
 */
agents: number, 
/**
 * How many of them are refused.
 */
refused: number, 
/**
 * The Node-RED whose flow it is; absent for that of the sidecar itself.
 */
instance?: InstanceId, } | { "type": "checked", 
/**
 * Where that Node-RED is.
 */
source: string, 
/**
 * The flow, as Node-RED names it.
 */
revision: string, 
/**
 * How many errors it has.
 */
errors: number, 
/**
 * How many warnings.
 */
warnings: number, } | { "type": "needs_node_red", 
/**
 * The node.
 */
node: NodeSummary, } | { "type": "memory_cleared", 
/**
 * The agent.
 */
node: NodeSummary, } | { "type": "uncaught", 
/**
 * The node that failed.
 */
node: NodeSummary, 
/**
 * The error.
 */
error: MessageError, } | { "type": "chain_cut", 
/**
 * The agent that was not started again.
 */
node: NodeSummary, 
/**
 * The limit.
 */
limit: number, };

/**
 * How a run ended.
 */
export type Ending = { "type": "completed" } | { "type": "stopped" } | { "type": "failed", 
/**
 * Which.
 */
code: RunErrorCode, };

/**
 * What came of a replay.
 */
export type ReplayReport = { 
/**
 * Whether the machine did again exactly what the journal says.
 */
equal: boolean, 
/**
 * Whether the journal holds the run's end.
 */
complete: boolean, 
/**
 * The run, if the header could be read.
 */
runId: RunId | null, 
/**
 * How many facts were replayed.
 */
facts: number, 
/**
 * How many effects were compared and equal.
 */
effects: number, 
/**
 * How the run ended, if it did.
 */
outcome: Ending | null, 
/**
 * The first difference.
 */
difference: Difference | null, };

/**
 * The first place where a journal is not what it should be.
 */
export type Difference = { 
/**
 * The line, from 1.
 */
line: number, 
/**
 * What kind of thing is wrong.
 */
what: DifferenceKind, 
/**
 * What the journal says, in short.
 */
recorded?: string, 
/**
 * What it should say, in short.
 */
replayed?: string, 
/**
 * The whole thing in one sentence.
 */
message: string, };

/**
 * What may be wrong with a journal.
 */
export type DifferenceKind = "too_large" | "unreadable" | "not_canonical" | "chain" | "header" | "plan" | "version" | "fact" | "effect" | "output" | "extra" | "incomplete";

/**
 * A tool call that was made, or was to be.
 */
export type CallRecord = { 
/**
 * The iteration.
 */
iteration: number, 
/**
 * The tool.
 */
tool: string, 
/**
 * What it was called with.
 */
input: { [key: string]: JsonValue }, 
/**
 * None while nobody knows it.
 */
result: ToolResult | null, };

/**
 * Everything of a run, read back from its journal.
 */
export type RunDetail = { 
/**
 * As in a list.
 */
summary: RunSummary, 
/**
 * What happened.
 */
events: Array<RunEvent>, 
/**
 * What was called with what, and what came of it.
 */
calls: Array<CallRecord>, 
/**
 * What left port 3, if the run is over.
 */
result: { [key: string]: JsonValue } | null, 
/**
 * Where the journal is not sound.
 */
difference?: Difference, 
/**
 * Why it is not all there.
 */
problem?: StoreProblem, };

/**
 * What is wrong with what is stored.
 */
export type StoreProblem = { 
/**
 * The code.
 */
code: StoreCode, 
/**
 * What is wrong.
 */
message: string, };

/**
 * A durable event.
 */
export type StreamEvent = { "kind": "run", 
/**
 * What happened.
 */
event: RunEvent, } | { "kind": "flow", 
/**
 * When.
 */
at: number, 
/**
 * What happened.
 */
event: FlowEvent, };

/**
 * A piece of a model's answer, as it comes in. Never kept; the run's `model_answered` event stands in the place of
 * all of them.
 */
export type ModelDelta = { 
/**
 * The run.
 */
runId: RunId, 
/**
 * The iteration.
 */
iteration: number, 
/**
 * Which try of the call this is, from 1: a call that is made again begins its answer anew.
 */
attempt: number, 
/**
 * The text.
 */
text: string, };

/**
 * What a reader says.
 */
export type EventsRequest = { "type": "subscribe", 
/**
 * Everything after this cursor; `"0"` for everything that is kept; absent for what happens from now on.
 */
after?: string, 
/**
 * Only events of these runs.
 */
runs?: Array<RunId>, 
/**
 * Also pieces of answers as they come in.
 */
deltas?: boolean, } | { "type": "ping", 
/**
 * Comes back.
 */
id: string, };

/**
 * What the sidecar says.
 */
export type EventsMessage = { "type": "hello", 
/**
 * Of the sidecar.
 */
version: string, 
/**
 * The newest event there is.
 */
cursor: string, } | { "type": "event", 
/**
 * To go on after.
 */
cursor: string, 
/**
 * What.
 */
event: StreamEvent, } | { "type": "caught_up", 
/**
 * To go on after.
 */
cursor: string, } | { "type": "delta", 
/**
 * Which.
 */
delta: ModelDelta, } | { "type": "pong", 
/**
 * As it was sent.
 */
id: string, } | { "type": "closing", 
/**
 * Why.
 */
code: ProblemCode, 
/**
 * What happened and what to do.
 */
message: string, 
/**
 * Nothing after it is sure to have arrived; absent if nothing was subscribed. A reader that has had later
 * events goes on after the last of those.
 */
cursor?: string, };

/**
 * One message to the UI.
 */
export type ObservabilityEvent = { "event": "connected", 
/**
 * When.
 */
ts: number, 
/**
 * For people.
 */
message: string, } | { "event": "heartbeat", 
/**
 * When.
 */
ts: number, 
/**
 * Sockets that are open.
 */
connections: number, } | { "event": "pong", 
/**
 * When.
 */
ts: number, } | { "event": "frame:start", 
/**
 * When.
 */
ts: number, 
/**
 * The frame.
 */
frameId: string, 
/**
 * More of it.
 */
data: FrameStart, } | { "event": "node:input", 
/**
 * When.
 */
ts: number, 
/**
 * The frame.
 */
frameId: string, 
/**
 * The node.
 */
nodeId: NodeId, 
/**
 * More of it.
 */
data: NodeInput, } | { "event": "node:output", 
/**
 * When.
 */
ts: number, 
/**
 * The frame; absent for what a deployment says of a node.
 */
frameId?: string, 
/**
 * The node.
 */
nodeId: NodeId, 
/**
 * More of it.
 */
data: NodeOutput, } | { "event": "node:error", 
/**
 * When.
 */
ts: number, 
/**
 * The frame; absent for what a deployment says of a node.
 */
frameId?: string, 
/**
 * The node.
 */
nodeId: NodeId, 
/**
 * More of it.
 */
data: NodeError, } | { "event": "frame:end", 
/**
 * When.
 */
ts: number, 
/**
 * The frame.
 */
frameId: string, 
/**
 * More of it.
 */
data: FrameEnd, };

/**
 * A frame that begins.
 */
export type FrameStart = { 
/**
 * The frame.
 */
id: string, 
/**
 * When.
 */
startedAt: number, 
/**
 * The node that was started; absent if the frame began before anybody looked.
 */
triggerNodeId?: NodeId, };

/**
 * What a node got.
 */
export type NodeInput = { 
/**
 * The node.
 */
nodeId: NodeId, 
/**
 * Its type.
 */
nodeType: string, 
/**
 * The message.
 */
input: IoEvent | null, 
/**
 * Always true: nothing is left out.
 */
sampled: boolean, };

/**
 * What a node sent.
 */
export type NodeOutput = { 
/**
 * The node.
 */
nodeId: NodeId, 
/**
 * Its type.
 */
nodeType: string, 
/**
 * One message at most: the UI goes by the place in this list, not by the port.
 */
outputs: Array<IoEvent>, 
/**
 * What the node did.
 */
semantics?: NodeSemantics, 
/**
 * How long it took.
 */
timing?: NodeTiming, 
/**
 * Always true: nothing is left out.
 */
sampled?: boolean, };

/**
 * What went wrong at a node.
 */
export type NodeError = { 
/**
 * The node.
 */
nodeId: NodeId, 
/**
 * Its type.
 */
nodeType: string, 
/**
 * The error.
 */
error: NodeErrorText, };

/**
 * An error in words.
 */
export type NodeErrorText = { 
/**
 * What happened.
 */
message: string, 
/**
 * Its code.
 */
code: string, };

/**
 * A frame that is over.
 */
export type FrameEnd = { 
/**
 * The frame.
 */
id: string, 
/**
 * When.
 */
endedAt: number, 
/**
 * What was counted.
 */
stats: FrameStats, };

/**
 * What was counted in a frame.
 */
export type FrameStats = { 
/**
 * Nodes that took part.
 */
nodeCount: number, 
/**
 * Messages that were sent.
 */
outputsEmitted: number, 
/**
 * Nodes that wait for a person.
 */
filteredNodes: number, 
/**
 * Nodes that failed.
 */
erroredNodes: number, 
/**
 * How long it took.
 */
durationMs: number, };

/**
 * A message that came or went.
 */
export type IoEvent = { 
/**
 * Which.
 */
direction: IoDirection, 
/**
 * The output it left by.
 */
port?: number, 
/**
 * When.
 */
timestamp: number, 
/**
 * What it carries.
 */
payload: PayloadPreview, };

/**
 * Which way a message went.
 */
export type IoDirection = "input" | "output";

/**
 * The beginning of what a message carries. Values of properties whose names say so are hidden, and so is every
 * secret the flow has.
 */
export type PayloadPreview = { 
/**
 * As much of it as is shown.
 */
preview: JsonValue, 
/**
 * As JavaScript names it, or `array`, or `null`.
 */
type: string, 
/**
 * Its size in bytes, roughly.
 */
size: number, 
/**
 * Whether something is missing.
 */
truncated: boolean, 
/**
 * What an agent says of its run, on ports 3 and 4.
 */
agentResult?: JsonValue, 
/**
 * What an agent says to people, on port 4, whole.
 */
fullMessage?: string, 
/**
 * A model's answer, whole.
 */
completePayload?: JsonValue, };

/**
 * What a node did.
 */
export type NodeSemantics = { 
/**
 * What it is in the frame.
 */
role: NodeRole, 
/**
 * What it did with the message.
 */
behavior: NodeBehavior, };

/**
 * What a node is in a frame.
 */
export type NodeRole = "trigger" | "transform" | "filter" | "generator" | "sink";

/**
 * What a node did with a message.
 */
export type NodeBehavior = "pass-through" | "transformed" | "filtered" | "bifurcated" | "terminated";

/**
 * How long a node took.
 */
export type NodeTiming = { 
/**
 * When the message came.
 */
receivedAt?: number, 
/**
 * When the next one went.
 */
sentAt: number, 
/**
 * The time between.
 */
durationMs?: number, };

/**
 * What a token may do. Each includes none of the others but `read`, which all have; `admin` includes all.
 */
export type Scope = "read" | "run" | "deploy" | "admin";

/**
 * A code of any set that an answer may carry.
 */
export type ProblemCode = ApiCode | StoreCode | RunErrorCode;

/**
 * Why a request was not done. The same everywhere.
 */
export type ApiError = { 
/**
 * The code; `redflow explain CODE` has a page on it.
 */
code: ProblemCode, 
/**
 * What happened and how to mend it.
 */
message: string, 
/**
 * Every problem of the flow, with `FLOW_REFUSED`.
 */
report?: CheckReport, 
/**
 * The revision that is in force, with `REVISION_CONFLICT`.
 */
revision?: string, };

/**
 * The flow that runs, by its tabs.
 */
export type FlowList = { 
/**
 * The revision in force: an opaque string.
 */
revision: string, 
/**
 * Tabs and subflows, in the order of the file.
 */
flows: Array<FlowSummary>, };

/**
 * A tab or a subflow.
 */
export type FlowSummary = { 
/**
 * Its id.
 */
id: NodeId, 
/**
 * `tab` or `subflow`.
 */
type: string, 
/**
 * What people call it.
 */
label: string, 
/**
 * Whether it is switched off.
 */
disabled: boolean, 
/**
 * How many nodes are on it.
 */
nodes: number, 
/**
 * The agents on it.
 */
agents: Array<AgentState>, };

/**
 * An agent, and whether it may run.
 */
export type AgentState = { 
/**
 * The agent.
 */
node: NodeSummary, 
/**
 * Whether it runs; if not, it answers every message with an error.
 */
ready: boolean, 
/**
 * What the checker holds against it.
 */
problems: Array<Diagnostic>, };

/**
 * Nodes of the flow as they were deployed, without credentials.
 */
export type Deployment = { 
/**
 * The revision in force: an opaque string.
 */
revision: string, 
/**
 * The nodes, as Node-RED writes them.
 */
flows: Array<JsonValue>, };

/**
 * Puts a flow in the place of the one that runs.
 */
export type DeployRequest = { 
/**
 * The flow, in any shape Node-RED or Redflow writes. Nodes may carry `credentials`, which are kept apart and
 * encrypted; a node without them keeps those it has.
 */
flows: JsonValue, 
/**
 * The revision this flow was made from. If another one is in force by now, nothing is deployed.
 */
revision?: string, 
/**
 * Deploy whatever is in force.
 */
force?: boolean, };

/**
 * A flow was deployed.
 */
export type DeployAnswer = { 
/**
 * The revision in force now.
 */
revision: string, 
/**
 * What the checker says of it: warnings and notes.
 */
report: CheckReport, };

/**
 * Checks a flow, and changes nothing.
 */
export type CheckRequest = { 
/**
 * The flow, in any shape Node-RED or Redflow writes.
 */
flows: JsonValue, 
/**
 * How strictly agents are read; as the server does if left out.
 */
profile?: Profile, };

/**
 * Starts an agent, or fires an inject node.
 */
export type StartRequest = { 
/**
 * The agent or inject node. May be left out if the flow has one agent, or one that inject nodes are wired to.
 */
node?: NodeId, 
/**
 * The payload. An agent needs one; an inject node has its own.
 */
payload?: JsonValue, 
/**
 * Whether to answer only when everything this sets off has come to rest.
 */
wait?: boolean, };

/**
 * What a start set off. Every run in it is kept: it goes on after a crash.
 */
export type StartAnswer = { 
/**
 * The runs, in the order they began.
 */
runs: Array<StartedRun>, };

/**
 * A run that a start set off.
 */
export type StartedRun = { 
/**
 * The run.
 */
runId: RunId, 
/**
 * The agent.
 */
agent: NodeSummary, 
/**
 * Where it is.
 */
status: RunStatus, 
/**
 * Why the agent did not even begin: such a run is not kept.
 */
refused?: RunError, 
/**
 * The call it waits for.
 */
waiting?: WaitingCall, 
/**
 * What left port 3, if it is over and the start waited for it.
 */
result?: { [key: string]: JsonValue }, };

/**
 * A page of runs, the newest first.
 */
export type RunList = { 
/**
 * The runs.
 */
runs: Array<RunSummary>, 
/**
 * Ask for `before` this run to see older ones; absent on the last page.
 */
next?: RunId, };

/**
 * Ends a run.
 */
export type CancelRequest = { 
/**
 * Who or why; goes into the run's error.
 */
reason?: string, };

/**
 * Says what came of the call a run waits for.
 */
export type ResolveRequest = { 
/**
 * The call: an answer never goes to another one.
 */
callId: CallId, 
/**
 * What came of it.
 */
result: ToolResult, };

/**
 * A code and what it means.
 */
export type CodeEntry = { 
/**
 * The code.
 */
code: string, 
/**
 * Where it comes up.
 */
set: CodeSet, 
/**
 * What it means, in one line.
 */
summary: string, 
/**
 * Its page, in Markdown; only if one code was asked for.
 */
page?: string, 
/**
 * What to do about it, in Markdown: the section "How to mend it" of the page; only if one code was asked for.
 */
mend?: string, };

/**
 * Where a code comes up.
 */
export type CodeSet = "diagnostic" | "run" | "store" | "api";

/**
 * Whether the sidecar is well.
 */
export type Health = { 
/**
 * It answers.
 */
live: boolean, 
/**
 * It takes work: its flow is in force and it is not stopping.
 */
ready: boolean, 
/**
 * Its version.
 */
version: string, };

/**
 * A way in for one browser.
 */
export type SignInCode = { 
/**
 * The path to open, with the code in it. It works once.
 */
path: string, 
/**
 * When it stops working.
 */
expiresAt: number, };

/**
 * What the sidecar knows of the Node-RED it follows. It checks every flow that is deployed there and runs none.
 */
export type AttachedState = { 
/**
 * Where it is.
 */
url: string, 
/**
 * Whether its `/comms` is open: without it deploys are seen late.
 */
connected: boolean, 
/**
 * Its version, if it says so.
 */
version?: string, 
/**
 * The flow that was checked last, as Node-RED names it.
 */
revision?: string, 
/**
 * When it was checked.
 */
checkedAt?: number, 
/**
 * What the checker says of it.
 */
report?: CheckReport, 
/**
 * What went wrong last, if it has not been mended since.
 */
error?: ApiError, };

/**
 * How one flow differs from another, by the ids of their nodes. What is in both and the same is not told.
 */
export type FlowDifferences = { 
/**
 * Nodes that only the first one has.
 */
added: Array<NodeSummary>, 
/**
 * Nodes that only the second one has.
 */
removed: Array<NodeSummary>, 
/**
 * Nodes that both have, and that differ.
 */
changed: Array<NodeDifference>, 
/**
 * Whether the nodes that both have stand in another order. Node-RED keeps the order of tabs by it.
 */
reordered: boolean, };

/**
 * How one node differs.
 */
export type NodeDifference = { 
/**
 * The node, as the first flow has it.
 */
node: NodeSummary, 
/**
 * The names of the properties that differ, `wires` among them. Never their values: some are secrets.
 */
properties: Array<string>, };

/**
 * What Node-RED says.
 */
export type BridgeRequest = { "type": "hello", 
/**
 * [`BRIDGE_PROTOCOL`].
 */
protocol: string, 
/**
 * Which Node-RED this is: the same after a restart.
 */
instance: InstanceId, 
/**
 * Names what it remembers of calls: another one after a restart, and whenever that memory begins anew.
 */
boot: string, 
/**
 * The version of Node-RED.
 */
nodeRed: string, 
/**
 * The version of the palette module.
 */
bridge: string, 
/**
 * The `session` of the last `welcome`, if there was one.
 */
session?: string, 
/**
 * The last `seq` that came in that session; 0 for none.
 */
received: number, } | { "type": "ack", 
/**
 * The number.
 */
seq: number, } | { "type": "flows", 
/**
 * Its number.
 */
seq: number, 
/**
 * Names this flow; comes back in `deployed`.
 */
revision: string, 
/**
 * The nodes, as Node-RED has them, without what only Node-RED needs.
 */
flows: Array<JsonValue>, 
/**
 * The credentials of models, memories and tools, by node. Kept in memory only.
 */
credentials: { [key in NodeId]: { [key in string]: string } }, } | { "type": "start", 
/**
 * Its number.
 */
seq: number, 
/**
 * Names this start: the same one begins one run at most.
 */
start: string, 
/**
 * The agent.
 */
node: NodeId, 
/**
 * The message.
 */
message: { [key in string]: JsonValue }, } | { "type": "cancel", 
/**
 * Its number.
 */
seq: number, 
/**
 * The start.
 */
start: string, 
/**
 * Why.
 */
reason: string, } | { "type": "tool_result", 
/**
 * Its number.
 */
seq: number, 
/**
 * The run.
 */
run: RunId, 
/**
 * The call.
 */
call: CallId, 
/**
 * What came of it.
 */
reply: ToolReply, } | { "type": "watch", 
/**
 * Whether they are.
 */
events: boolean, };

/**
 * What came of a tool call in Node-RED.
 */
export type ToolReply = { "type": "returned", 
/**
 * What it gave.
 */
output: JsonValue, } | { "type": "failed", 
/**
 * Why.
 */
error: string, } | { "type": "unknown", 
/**
 * How that came about.
 */
reason: string, };

/**
 * What the sidecar says.
 */
export type BridgeMessage = { "type": "welcome", 
/**
 * Of the sidecar.
 */
version: string, 
/**
 * Which process of the sidecar this is, and since when it knows this Node-RED.
 */
session: string, 
/**
 * The last `seq` that came from this boot in this session; 0 for none.
 */
received: number, 
/**
 * The bounds on what may be sent.
 */
limits: BridgeLimits, } | { "type": "ack", 
/**
 * The number.
 */
seq: number, } | { "type": "deployed", 
/**
 * Its number.
 */
seq: number, 
/**
 * The revision that was sent.
 */
revision: string, 
/**
 * Every agent, and what the checker holds against it.
 */
agents: Array<AgentState>, 
/**
 * Every problem.
 */
report: CheckReport, } | { "type": "flows_refused", 
/**
 * Its number.
 */
seq: number, 
/**
 * The revision that was sent.
 */
revision: string, 
/**
 * Why.
 */
error: ApiError, } | { "type": "send", 
/**
 * Its number.
 */
seq: number, 
/**
 * The agent.
 */
node: NodeId, 
/**
 * The output.
 */
port: number, 
/**
 * The run.
 */
run: RunId, 
/**
 * Which of the run's effects this is; absent if the run never began.
 */
effect?: EffectId, 
/**
 * The start the run belongs to.
 */
start?: string, 
/**
 * Whether the run is over with it.
 */
last: boolean, 
/**
 * The message. If the run failed it has an `error`, which is for Catch nodes too.
 */
message: { [key in string]: JsonValue }, } | { "type": "start_failed", 
/**
 * Its number.
 */
seq: number, 
/**
 * The start.
 */
start: string, 
/**
 * Why.
 */
code: ProblemCode, 
/**
 * What happened and what to do.
 */
message: string, } | { "type": "start_done", 
/**
 * Its number.
 */
seq: number, 
/**
 * The start.
 */
start: string, } | { "type": "tool_call", 
/**
 * Its number.
 */
seq: number, 
/**
 * The run.
 */
run: RunId, 
/**
 * The call: the same one is made once at most.
 */
call: CallId, 
/**
 * The agent.
 */
agent: NodeId, 
/**
 * The node that is the tool: a `flow-tool`, or a data node on the agent's tool port.
 */
node: NodeId, 
/**
 * The tool's name.
 */
tool: string, 
/**
 * The iteration, from 1.
 */
iteration: number, 
/**
 * The input.
 */
input: { [key in string]: JsonValue }, 
/**
 * Milliseconds it may take.
 */
timeoutMs: number, 
/**
 * The same for the same run, iteration and call.
 */
idempotencyKey: Digest, 
/**
 * What it may do to the world.
 */
effect: EffectClass, 
/**
 * Not to be made: it was made before, and only what came of it is asked for.
 */
known?: boolean, } | { "type": "status", 
/**
 * The agent.
 */
node: NodeId, 
/**
 * The run.
 */
run: RunId, 
/**
 * How it looks.
 */
fill: StatusFill, 
/**
 * The same.
 */
shape: StatusShape, 
/**
 * What it says.
 */
text: string, } | { "type": "notice", 
/**
 * The node.
 */
node: NodeId, 
/**
 * A code.
 */
code: ProblemCode, 
/**
 * What happened.
 */
message: string, } | { "type": "event", 
/**
 * What.
 */
event: RunEvent, } | { "type": "closing", 
/**
 * Why.
 */
code: ProblemCode, 
/**
 * What happened and what to do.
 */
message: string, };

/**
 * The bounds on what Node-RED may send.
 */
export type BridgeLimits = { 
/**
 * Bytes of one message of the protocol.
 */
maxFrameBytes: number, 
/**
 * Bytes of a message that starts a run, as JSON.
 */
maxMessageBytes: number, 
/**
 * Bytes of a tool's result, as JSON.
 */
maxResultBytes: number, 
/**
 * Nesting of both.
 */
maxValueDepth: number, };

/**
 * The colour of a status.
 */
export type StatusFill = "red" | "green" | "yellow" | "blue" | "grey";

/**
 * The shape of a status.
 */
export type StatusShape = "ring" | "dot";

/**
 * A Node-RED the sidecar knows.
 */
export type InstanceState = { 
/**
 * Which.
 */
instance: InstanceId, 
/**
 * Whether its socket is open.
 */
connected: boolean, 
/**
 * The version of Node-RED.
 */
nodeRed: string, 
/**
 * The version of the palette module.
 */
bridge: string, 
/**
 * The flow in force, as Node-RED names it.
 */
revision?: string, 
/**
 * Its agents.
 */
agents: Array<AgentState>, 
/**
 * Messages that wait for it to take them.
 */
waiting: number, 
/**
 * Tool calls it has not answered.
 */
openCalls: number, };

/**
 * Every Node-RED the sidecar knows.
 */
export type InstanceList = { 
/**
 * Which.
 */
instances: Array<InstanceState>, };

/**
 * What is known of a node type.
 */
export type NodeType = { 
/**
 * The Node-RED type; `prefix*` stands for every type that begins so.
 */
type: string, 
/**
 * What it is to an agent.
 */
role: Role, 
/**
 * How many inputs it has: none or one.
 */
inputs: number, 
/**
 * What leaves its outputs, in order; null when the node itself decides how many it has.
 */
outputs: Array<PortKind> | null, 
/**
 * The schemas its properties must satisfy, by name (see [`crate::schemas`]).
 */
schemas: Array<string>, 
/**
 * What the type fixes for a tool.
 */
tool: FixedTool | null, 
/**
 * Messages pass through it unchanged, so edges are judged as if it were not there.
 */
transparent: boolean, };

/**
 * A tool whose name and input are fixed by its type.
 */
export type FixedTool = { 
/**
 * The name it has unless `toolName` says otherwise.
 */
name: string, 
/**
 * What it does, for the model, unless `description` says otherwise.
 */
description: string, 
/**
 * JSON Schema of its input, as text.
 */
inputSchema: string, };

/**
 * One row of the table.
 */
export type EdgeRule = { 
/**
 * The kind of edge this row allows.
 */
kind: EdgeKind, 
/**
 * The ports it may leave from.
 */
from: Array<PortKind>, 
/**
 * The roles it may go to.
 */
to: Array<Role>, 
/**
 * How many an agent must have at least.
 */
atLeast: number, 
/**
 * How many an agent may have; null for any number.
 */
atMost: number | null, 
/**
 * What fewer is called.
 */
tooFew: DiagnosticCode | null, 
/**
 * What more is called.
 */
tooMany: DiagnosticCode | null, };

/** The subprotocol of the socket of events. */
export const EVENTS_PROTOCOL = "redflow.events.v1";

/** What comes before a token that is passed as a subprotocol. */
export const TOKEN_PROTOCOL_PREFIX = "redflow.token.";

/** The subprotocol of the socket of the bridge. */
export const BRIDGE_PROTOCOL = "redflow.bridge.v1";

/** The key of an object that stands for something JSON cannot hold. */
export const BRIDGE_TAG = "$redflow";

/** The cursor before the first event that is kept. */
export const CURSOR_START = "0";

/** What leaves port 3: the keys we write, and whatever came in with the message. */
export type AgentOutput = AgentOutputKeys & { [key: string]: unknown };

/** The edge table: what no row allows is refused. */
export const EDGE_TABLE = [
  {
    "kind": "data",
    "from": [
      "data",
      "chat",
      "result",
      "model_response",
      "stream"
    ],
    "to": [
      "agent"
    ],
    "atLeast": 0,
    "atMost": null,
    "tooFew": null,
    "tooMany": null
  },
  {
    "kind": "model",
    "from": [
      "model"
    ],
    "to": [
      "model"
    ],
    "atLeast": 1,
    "atMost": 1,
    "tooFew": "MODEL_MISSING",
    "tooMany": "MODEL_MULTIPLE"
  },
  {
    "kind": "tool",
    "from": [
      "tool"
    ],
    "to": [
      "tool",
      "data"
    ],
    "atLeast": 0,
    "atMost": null,
    "tooFew": null,
    "tooMany": null
  },
  {
    "kind": "tool_chain",
    "from": [
      "flow_tool"
    ],
    "to": [
      "data"
    ],
    "atLeast": 0,
    "atMost": null,
    "tooFew": null,
    "tooMany": null
  },
  {
    "kind": "memory",
    "from": [
      "memory"
    ],
    "to": [
      "memory"
    ],
    "atLeast": 0,
    "atMost": 1,
    "tooFew": null,
    "tooMany": "MEMORY_MULTIPLE"
  },
  {
    "kind": "data",
    "from": [
      "result",
      "model_response",
      "stream"
    ],
    "to": [
      "data",
      "chat"
    ],
    "atLeast": 0,
    "atMost": null,
    "tooFew": null,
    "tooMany": null
  },
  {
    "kind": "reply",
    "from": [
      "reply",
      "flow_tool"
    ],
    "to": [
      "agent"
    ],
    "atLeast": 0,
    "atMost": null,
    "tooFew": null,
    "tooMany": null
  }
] as const;

/** The node catalogue: type, role, ports. A type that is not listed is a data node. */
export const CATALOGUE = [
  {
    "type": "agent-core",
    "role": "agent",
    "inputs": 1,
    "outputs": [
      "model",
      "tool",
      "memory",
      "result",
      "model_response"
    ],
    "schemas": [
      "agent-core.react",
      "node.agent-binding"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "ai-agent",
    "role": "agent",
    "inputs": 1,
    "outputs": [
      "result",
      "stream"
    ],
    "schemas": [
      "node.agent-binding"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "scripted-model",
    "role": "model",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.scripted-model"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "openai-model",
    "role": "model",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.openai-model"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "anthropic-model",
    "role": "model",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.anthropic-model"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "model.azure.openai",
    "role": "model",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.azure-model"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "ollama-model",
    "role": "model",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.ollama-model"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "model.*",
    "role": "model",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [],
    "tool": null,
    "transparent": false
  },
  {
    "type": "buffer-memory",
    "role": "memory",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.buffer-memory"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "window-memory",
    "role": "memory",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.window-memory"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "redis-memory",
    "role": "memory",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.redis-memory"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "memory.*",
    "role": "memory",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.memory"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "calculator-tool",
    "role": "tool",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.tool"
    ],
    "tool": {
      "name": "calculator",
      "description": "Evaluates an arithmetic expression: + - * / ^, parentheses, decimals.",
      "inputSchema": "{\"type\":\"object\",\"properties\":{\"expression\":{\"type\":\"string\"}},\"required\":[\"expression\"]}"
    },
    "transparent": false
  },
  {
    "type": "http-request-tool",
    "role": "tool",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.tool"
    ],
    "tool": {
      "name": "http_request",
      "description": "Makes one HTTP request and returns status, headers and body.",
      "inputSchema": "{\"type\":\"object\",\"properties\":{\"url\":{\"type\":\"string\"},\"method\":{\"type\":\"string\",\"enum\":[\"GET\",\"POST\",\"PUT\",\"DELETE\"]},\"headers\":{\"type\":\"object\"},\"body\":{}},\"required\":[\"url\",\"method\"]}"
    },
    "transparent": false
  },
  {
    "type": "knowledge-base-tool",
    "role": "tool",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.tool"
    ],
    "tool": {
      "name": "knowledge_base_search",
      "description": "Searches the knowledge base for passages close in meaning to the query.",
      "inputSchema": "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\"},\"limit\":{\"type\":\"integer\",\"minimum\":1}},\"required\":[\"query\"]}"
    },
    "transparent": false
  },
  {
    "type": "flow-tool",
    "role": "tool",
    "inputs": 1,
    "outputs": [
      "flow_tool"
    ],
    "schemas": [
      "node.tool"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "tool.*",
    "role": "tool",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.tool"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "chat-node",
    "role": "chat",
    "inputs": 1,
    "outputs": [
      "chat"
    ],
    "schemas": [],
    "tool": null,
    "transparent": false
  },
  {
    "type": "flow-tool-return",
    "role": "data",
    "inputs": 1,
    "outputs": null,
    "schemas": [],
    "tool": null,
    "transparent": false
  },
  {
    "type": "inject",
    "role": "data",
    "inputs": 0,
    "outputs": null,
    "schemas": [
      "node.inject"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "change",
    "role": "data",
    "inputs": 1,
    "outputs": null,
    "schemas": [
      "node.change"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "debug",
    "role": "data",
    "inputs": 1,
    "outputs": null,
    "schemas": [
      "node.debug"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "comment",
    "role": "data",
    "inputs": 0,
    "outputs": null,
    "schemas": [],
    "tool": null,
    "transparent": false
  },
  {
    "type": "catch",
    "role": "data",
    "inputs": 0,
    "outputs": null,
    "schemas": [
      "node.catch"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "junction",
    "role": "data",
    "inputs": 1,
    "outputs": null,
    "schemas": [],
    "tool": null,
    "transparent": true
  },
  {
    "type": "link in",
    "role": "data",
    "inputs": 0,
    "outputs": null,
    "schemas": [
      "node.link"
    ],
    "tool": null,
    "transparent": true
  },
  {
    "type": "link out",
    "role": "data",
    "inputs": 1,
    "outputs": null,
    "schemas": [
      "node.link"
    ],
    "tool": null,
    "transparent": true
  },
  {
    "type": "tab",
    "role": "data",
    "inputs": 0,
    "outputs": null,
    "schemas": [
      "node.tab"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "subflow",
    "role": "data",
    "inputs": 0,
    "outputs": null,
    "schemas": [
      "node.subflow"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "group",
    "role": "data",
    "inputs": 0,
    "outputs": null,
    "schemas": [
      "node.group"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "global-config",
    "role": "data",
    "inputs": 0,
    "outputs": null,
    "schemas": [
      "node.group"
    ],
    "tool": null,
    "transparent": false
  }
] as const;
