// Written by `cargo xtask codegen`. Do not edit.

export const CONTRACT_VERSION = 1;

export type JsonValue = number | string | boolean | Array<JsonValue> | { [key in string]: JsonValue } | null;

/**
 * A node of a flow. Any non-empty string: Redflow writes dots, spaces and epoch times into it.
 */
export type NodeId = string;

/**
 * One run of one agent: a uuid v7, also the trace id.
 */
export type RunId = string;

/**
 * One tool call of one run.
 */
export type CallId = string;

/**
 * The Node-RED that owns a flow; `local` for the sidecar's own flow.
 */
export type InstanceId = string;

/**
 * Who started a run or called a tool: `token:NAME`, `node-red:INSTANCE`, `redflow-ui` or `cli`.
 */
export type Principal = string;

/**
 * An effect of one run, numbered from 1 in the order of emission. Facts name the effect that they answer.
 */
export type EffectId = number;

/**
 * A node together with its Node-RED, because two Node-REDs may share one runtime.
 */
export type NodeRef = { 
/**
 * The Node-RED that owns the node.
 */
instance: InstanceId, 
/**
 * The id of the node in that Node-RED.
 */
nodeId: NodeId, };

/**
 * The id, type and name of a node.
 */
export type NodeSummary = { 
/**
 * The id of the node.
 */
id: NodeId, 
/**
 * The Node-RED type.
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
 * A problem that the checker finds in a flow.
 */
export type DiagnosticCode = "FLOW_UNREADABLE" | "FLOW_NOT_JSON" | "FLOW_TOO_LARGE" | "FLOW_TOO_DEEP" | "FLOW_SHAPE_UNKNOWN" | "DUPLICATE_KEY" | "DUPLICATE_ID" | "SUBFLOW_CYCLE" | "CONFIG_INVALID" | "EDGE_TARGET_MISSING" | "EDGE_SELF" | "EDGE_DUPLICATE" | "PORT_OUT_OF_RANGE" | "EDGE_KIND_MISMATCH" | "RESULT_ON_MEMORY_PORT" | "EDGE_FOREIGN_REPLY" | "MODEL_MISSING" | "MODEL_KEY_MISSING" | "MODEL_MULTIPLE" | "MEMORY_MULTIPLE" | "MEMORY_CYCLE" | "MEMORY_MODEL_MISSING" | "TOOL_NAME_INVALID" | "TOOL_NAME_DUPLICATE" | "TOOL_NOT_CONNECTED" | "TOOL_CHAIN_OPEN" | "CREDENTIAL_UNBOUND" | "TOOL_WITHOUT_SCHEMA" | "TOOL_NOT_STRICT" | "TOOL_CONNECTED_NOT_ALLOWED" | "MEMORY_NOT_USED" | "PROMPT_TEMPLATE_IGNORED" | "SESSION_SHARED" | "SECRET_IN_FLOW" | "PROPERTY_UNKNOWN" | "DEFAULT_ASSUMED" | "COLLECTION_UNKNOWN" | "EMBEDDINGS_LEXICAL" | "MCP_SERVER_UNKNOWN" | "MANIFEST_INVALID" | "NEEDS_NODE_RED";

/**
 * Why a run ended without an answer.
 */
export type RunErrorCode = "INVALID_JSON" | "INVALID_ACTION" | "INVALID_CONFIDENCE" | "TOOL_NOT_ALLOWED" | "TOOL_INPUT_INVALID" | "MODEL_REFUSED" | "MODEL_TRUNCATED" | "ITERATION_OVERFLOW" | "CONFIG_INVALID" | "MODEL_KEY_MISSING" | "EDGE_REJECTED" | "NEEDS_NODE_RED" | "MODEL_ERROR" | "MODEL_NOT_FOUND" | "INVALID_CREDENTIALS" | "RATE_LIMIT" | "QUOTA_EXCEEDED" | "IMAGE_INVALID" | "CONTEXT_LENGTH" | "PROVIDER_UNAVAILABLE" | "TIMEOUT" | "CANCELLED" | "BUDGET_EXCEEDED" | "QUEUE_FULL" | "TOOL_ERROR" | "TOOL_UNAVAILABLE" | "MCP_UNAVAILABLE" | "TOOL_OUTCOME_UNKNOWN" | "APPROVAL_REJECTED" | "APPROVAL_EXPIRED" | "MEMORY_ERROR" | "OUTPUT_NOT_JSON" | "OUTPUT_INVALID" | "RUNTIME_UNREACHABLE" | "JOURNAL_FAILED" | "INTERNAL";

/**
 * Why a tool call failed, if the runtime itself refused or ended it. The model reads it in the result.
 */
export type ToolCode = "EGRESS_REFUSED" | "EGRESS_TOO_LARGE" | "TOOL_DENIED" | "TOOL_RATE_LIMITED" | "TOOL_UNAVAILABLE" | "MCP_UNAVAILABLE" | "TOOL_CHANGED" | "TOOL_OUTPUT_INVALID" | "MCP_INPUT_REQUIRED";

/**
 * Why an operation on stored runs or on the data directory failed.
 */
export type StoreCode = "DATA_LOCKED" | "DATA_READ_ONLY" | "DATA_FULL" | "DATA_CORRUPT" | "DATA_NEWER" | "DATA_UNUSABLE" | "RUN_UNKNOWN" | "RUN_OVER" | "RUN_NOT_WAITING" | "RUN_BLOCKED" | "RUN_HUNG" | "RESULT_INVALID";

/**
 * Why an operation on the archive failed: its entries, documents and vectors.
 */
export type ArchiveCode = "COLLECTION_UNKNOWN" | "DOCUMENT_UNKNOWN" | "DOCUMENT_UNREADABLE" | "DOCUMENT_TOO_LARGE" | "MEMORY_CONFLICT" | "ENTRY_INVALID" | "EMBEDDER_MISMATCH" | "EMBEDDINGS_FAILED" | "TEXT_REFUSED" | "ARCHIVE_FULL" | "ARCHIVE_UNREADABLE";

/**
 * Why the sidecar refused a request over HTTP or a socket, or did not start.
 */
export type ApiCode = "UNAUTHORIZED" | "FORBIDDEN" | "HOST_REFUSED" | "ORIGIN_REFUSED" | "SIGN_IN_REFUSED" | "ROUTE_UNKNOWN" | "METHOD_REFUSED" | "NOT_FOUND" | "CONTENT_TYPE_REFUSED" | "BODY_TOO_LARGE" | "BODY_INVALID" | "REQUEST_INVALID" | "REQUEST_TIMEOUT" | "RATE_LIMITED" | "TOO_MANY_CONNECTIONS" | "STOPPING" | "REVISION_CONFLICT" | "FLOW_REFUSED" | "NODE_NOT_STARTABLE" | "IDEMPOTENCY_KEY_REUSED" | "CHAT_NOT_CONNECTED" | "TOOL_REFUSED" | "TOOL_CONFLICT" | "MCP_FAILED" | "MCP_PIN_STALE" | "MCP_LOGIN_REFUSED" | "KEY_NOT_SENT" | "STORAGE_FULL" | "CURSOR_UNKNOWN" | "EVENTS_GONE" | "READER_TOO_SLOW" | "MESSAGE_INVALID" | "MESSAGE_TOO_LARGE" | "CONFIG_FILE_INVALID" | "LISTEN_FAILED" | "SECRET_FILE_UNSAFE" | "CREDENTIALS_UNREADABLE" | "CREDENTIALS_FILE_INVALID" | "SIDECAR_UNREACHABLE" | "PROTOCOL_MISMATCH" | "INSTANCE_TAKEN" | "TOO_MANY_INSTANCES" | "REPLY_DROPPED" | "NODE_RED_UNREACHABLE" | "NODE_RED_REFUSED";

/**
 * How bad a diagnostic is.
 */
export type Severity = "error" | "warning" | "info";

/**
 * A sentence without its words: which one it is, and what stands in its places.
 */
export type Phrase = { 
/**
 * The key in the catalogues. It never changes its meaning.
 */
key: string, 
/**
 * What stands in each place, by its name.
 */
args?: { [name: string]: PhraseArg }, };

/**
 * What stands in one place of a sentence.
 */
export type PhraseArg = string | Phrase;

/**
 * One problem: both nodes, the place, and what to do about it.
 */
export type Diagnostic = { 
/**
 * The kind of problem.
 */
code: DiagnosticCode, 
/**
 * How serious it is.
 */
severity: Severity, 
/**
 * What is wrong, in one sentence.
 */
message: string, 
/**
 * What to do about it, in one sentence.
 */
help: string, 
/**
 * The node with the problem; null if the problem is about the whole file.
 */
node: NodeSummary | null, 
/**
 * The output port of `node`; null if the problem is not about a port.
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
 * The file name that the checker was given.
 */
file: string | null, 
/**
 * The edge kind or the value that belongs in this place.
 */
expected: string | null, 
/**
 * The value that is in this place.
 */
found: string | null, 
/**
 * `message`, for other languages.
 */
messagePhrase?: Phrase, 
/**
 * `help`, for other languages.
 */
helpPhrase?: Phrase, };

/**
 * The result of a check: every problem at once.
 */
export type CheckReport = { 
/**
 * Whether there are no errors. Warnings do not count, unless they were denied.
 */
ok: boolean, 
/**
 * The problems: errors first, then in the order of the file.
 */
diagnostics: Array<Diagnostic>, 
/**
 * The number of further problems of each code, if the list was cut.
 */
omitted?: { [code: string]: number }, };

/**
 * Why a run ended without an answer. The texts are our own; they quote no secret and no library.
 */
export type RunError = { 
/**
 * The kind of failure.
 */
code: RunErrorCode, 
/**
 * What happened, in one sentence.
 */
message: string, 
/**
 * JSON pointer into the model's answer or the configuration; absent if neither is wrong.
 */
pointer?: string, 
/**
 * The rule that was broken there, such as `required` or `maximum`.
 */
rule?: string, 
/**
 * The iteration in which it happened; 0 before the first.
 */
iteration: number, };

/**
 * A code and a sentence, where the context already gives the iteration.
 */
export type Failure = { 
/**
 * The kind of failure.
 */
code: RunErrorCode, 
/**
 * What happened, in one sentence.
 */
message: string, };

/**
 * `msg.error`: the error of the run, and the node that failed.
 */
export type MessageError = { 
/**
 * The kind of failure.
 */
code: RunErrorCode, 
/**
 * What happened, in one sentence.
 */
message: string, 
/**
 * JSON pointer into the model's answer or the configuration; absent if neither is wrong.
 */
pointer?: string, 
/**
 * The rule that was broken there; absent if there is no pointer.
 */
rule?: string, 
/**
 * The iteration in which it happened; 0 before the first.
 */
iteration: number, 
/**
 * The node that failed.
 */
source: ErrorSource, };

/**
 * The node that failed, in the form that Node-RED's Catch nodes use.
 */
export type ErrorSource = { 
/**
 * The id of the node.
 */
id: NodeId, 
/**
 * The type of the node.
 */
type: string, 
/**
 * The name of the node; empty if it has none.
 */
name: string, 
/**
 * How often the node has failed on this message.
 */
count: number, };

/**
 * The two kinds of action.
 */
export type ActionKind = "tool" | "final";

/**
 * One valid answer of a model.
 */
export type ModelAction = { "action": "tool", 
/**
 * The name of the tool, one of `allowedTools`.
 */
tool: string, 
/**
 * The input, valid against the tool's schema.
 */
input: { [key: string]: JsonValue }, 
/**
 * How sure the model is, from 0 to 1.
 */
confidence: number, 
/**
 * A remark of the model; absent if it made none.
 */
message?: string | null, } | { "action": "final", 
/**
 * How sure the model is, from 0 to 1; absent if it did not say.
 */
confidence?: number | null, 
/**
 * The answer; absent if the model gave none.
 */
message?: string | null, };

/**
 * The state of a run as every peer sees it. Keys beyond the founding document are optional.
 */
export type AgentEnvelope = { 
/**
 * The payload of the message that started the run.
 */
input: JsonValue, 
/**
 * The progress of the run.
 */
state: EnvelopeState, 
/**
 * The last exchange with the model; absent before the first.
 */
model?: EnvelopeModel, 
/**
 * The tools and their calls.
 */
tools: EnvelopeTools, 
/**
 * The recalled conversation; absent if no memory is bound or it was not read.
 */
memory?: { [key: string]: JsonValue }, 
/**
 * The run's id, start and events.
 */
observability: EnvelopeObservability, 
/**
 * What the results of the tools come from, each source once, in the order of their first use.
 */
provenance?: Array<Source>, };

/**
 * The progress of a run.
 */
export type EnvelopeState = { 
/**
 * The iteration, from 1; 0 before the first.
 */
iteration: number, 
/**
 * The kind of the last valid action.
 */
lastAction?: ActionKind, 
/**
 * The name of the last tool that was called.
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
 * The last prompt; only with `debug: true`.
 */
lastPrompt?: string, 
/**
 * The last valid action as the model wrote it.
 */
lastResponse?: JsonValue, };

/**
 * The tools of a run and their calls.
 */
export type EnvelopeTools = { 
/**
 * The names of the tools, in the order of `allowedTools`.
 */
available: Array<string>, 
/**
 * The calls, oldest first.
 */
history: Array<ToolHistoryItem>, };

/**
 * One tool call and its outcome.
 */
export type ToolHistoryItem = { 
/**
 * The iteration that made the call.
 */
iteration: number, 
/**
 * The name of the tool.
 */
tool: string, 
/**
 * The input of the call.
 */
input: { [key: string]: JsonValue }, 
/**
 * The output; null if the call failed.
 */
output: JsonValue, 
/**
 * Whether the call succeeded.
 */
success: boolean, 
/**
 * Why the call failed; absent if it succeeded.
 */
error?: string, 
/**
 * `unknown` if it is unknown whether the call took effect; else absent.
 */
outcome?: CallOutcome, 
/**
 * The duration of the call, in milliseconds.
 */
durationMs: number, 
/**
 * The id of the call.
 */
callId: CallId, };

/**
 * The outcome of a call without a result.
 */
export type CallOutcome = "unknown";

/**
 * The run's id, start and events.
 */
export type EnvelopeObservability = { 
/**
 * The id of the run.
 */
traceId: RunId, 
/**
 * The start of the run: ISO 8601, UTC.
 */
startedAt: string, 
/**
 * The events in order. The last one tells how the run ended.
 */
events: Array<EnvelopeEvent>, };

/**
 * One event of a run in its envelope.
 */
export type EnvelopeEvent = { 
/**
 * The iteration of the event.
 */
iteration: number, 
/**
 * What happened.
 */
action: EnvelopeAction, 
/**
 * The name of the tool; absent if the event is not about one.
 */
tool?: string, 
/**
 * The duration in milliseconds; absent if the event has none.
 */
durationMs?: number, 
/**
 * The confidence of the model; absent if the event is not an answer.
 */
confidence?: number, 
/**
 * The error; absent if nothing failed.
 */
error?: Failure, 
/**
 * The time of the event: ISO 8601, UTC.
 */
at?: string, 
/**
 * The start of the text or value; only with `debug: true`.
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
 * The outcome of a run, on the message that leaves the result port.
 */
export type AgentResult = { 
/**
 * True only after a `final` action.
 */
completed: boolean, 
/**
 * The number of iterations that were started.
 */
iterations: number, 
/**
 * The id of the run.
 */
traceId: RunId, 
/**
 * The message of the last action; null if there is none.
 */
message: string | null, 
/**
 * The kind of the last action; null if the run failed.
 */
finalAction: ActionKind | null, 
/**
 * Why the run ended.
 */
stopReason: StopReason, 
/**
 * The error; absent if the run did not fail.
 */
error?: RunError, };

/**
 * The message that leaves the result port, exactly once per run. Other properties of the incoming message stay.
 */
export type AgentOutputKeys = { 
/**
 * The final message, the last tool output, or the error.
 */
payload: JsonValue, 
/**
 * The state of the run.
 */
envelope: AgentEnvelope, 
/**
 * How the run ended.
 */
agentResult: AgentResult, 
/**
 * The error for Catch nodes; absent if the run did not fail.
 */
error?: MessageError, };

/**
 * The `agentResult` of a message on port 4. One message leaves per valid model answer.
 */
export type ModelResponseResult = { 
/**
 * The iteration of the answer.
 */
iteration: number, 
/**
 * The id of the run.
 */
traceId: RunId, 
/**
 * The kind of the action.
 */
action: ActionKind, 
/**
 * The name of the tool; null for a final answer.
 */
tool: string | null, 
/**
 * The confidence of the model; null if it gave none.
 */
confidence: number | null, 
/**
 * The message of the action; null if it has none.
 */
message: string | null, };

/**
 * The answer of a run, and what the run did for it.
 */
export type FullOutput = { 
/**
 * The answer: text, or a value if it had to be JSON; null if the run failed.
 */
response: JsonValue, 
/**
 * The number of iterations that were started.
 */
iterations: number, 
/**
 * The names of the tools that were called, each once, in the order of their first calls.
 */
toolsUsed: Array<string>, 
/**
 * What the run did.
 */
metadata: RunMetadata, };

/**
 * What a run did.
 */
export type RunMetadata = { 
/**
 * The number of iterations that were started.
 */
iterations: number, 
/**
 * The tool calls, in the order of the model's requests.
 */
toolCalls: Array<ToolCallRecord>, 
/**
 * The tokens that models read and wrote.
 */
totalTokens: number, 
/**
 * The cost of the answers, in the currency of the models' prices; null if the price of one is unknown.
 */
totalCost: number | null, 
/**
 * The time from start to end, in milliseconds.
 */
duration: number, 
/**
 * How the run ended.
 */
finishReason: FinishReason, };

/**
 * One tool call and its result.
 */
export type ToolCallRecord = { 
/**
 * The name of the tool, as the model gave it.
 */
toolName: string, 
/**
 * The input: an object, or the model's text if that is not JSON.
 */
arguments: JsonValue, 
/**
 * The result.
 */
result: ToolCallResult, 
/**
 * When the call began.
 */
timestamp: number, 
/**
 * How long it took, in milliseconds.
 */
duration: number, };

/**
 * The result of a tool call.
 */
export type ToolCallResult = { 
/**
 * Whether the call succeeded.
 */
success: boolean, 
/**
 * The output; absent if the call failed.
 */
data?: JsonValue, 
/**
 * Why the call failed; absent if it succeeded.
 */
error?: string, };

/**
 * How a run ended.
 */
export type FinishReason = "completed" | "max_iterations" | "error";

/**
 * The role of a node for an agent. The set may grow.
 */
export type Role = "agent" | "model" | "memory" | "tool" | "chat" | "data";

/**
 * The kind of an output port.
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
 * The shape of a flow file. Export writes the same shape.
 */
export type FlowShape = "array" | "deployment" | "single_flow" | "redflow_export";

/**
 * A node of a flow file: the keys that every node may have. Other properties stand beside them.
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
 * The name its owner gave it; absent if none.
 */
name?: string, 
/**
 * Target ids per output port; may be shorter than the number of ports.
 */
wires?: Array<Array<string>>, 
/**
 * Whether the node is disabled.
 */
d?: boolean, 
/**
 * The group it is in.
 */
g?: string, };

/**
 * One of Agent Core's stop conditions, after validation.
 */
export type StopCondition = { "type": "final_answer", } | { "type": "confidence_threshold", 
/**
 * The confidence, from 0 to 1.
 */
value: number, } | { "type": "iteration_limit", 
/**
 * The iteration, from 1.
 */
value: number, };

/**
 * What a tool call does to the world, and so whether it may be made again.
 */
export type EffectClass = "read" | "idempotent" | "at_most_once";

/**
 * What happens to a run if the outcome of its call is unknown.
 */
export type OnUnknown = "wait" | "fail";

/**
 * Whether a model may call tools.
 */
export type ToolChoice = "auto" | "required" | "none";

/**
 * What the payload of an AI Agent's result is.
 */
export type OutputFormat = "text" | "json" | "full";

/**
 * What a run may spend. Without a number there is no limit.
 */
export type Budget = { 
/**
 * The most tokens that models read and write.
 */
tokens?: number, 
/**
 * The highest cost, in the currency of the models' prices.
 */
cost?: number, 
/**
 * The most model calls.
 */
modelCalls?: number, 
/**
 * The most tool calls.
 */
toolCalls?: number, };

/**
 * A number of a budget.
 */
export type BudgetKind = "tokens" | "cost" | "modelCalls" | "toolCalls";

/**
 * What a run has used.
 */
export type RunTally = { 
/**
 * The iterations that were started.
 */
iterations: number, 
/**
 * The calls of models, those that failed over included.
 */
modelCalls: number, 
/**
 * The calls of tools.
 */
toolCalls: number, 
/**
 * Tokens that models read.
 */
inputTokens: number, 
/**
 * Tokens that models wrote.
 */
outputTokens: number, 
/**
 * The part of `inputTokens` that came from providers' caches.
 */
cachedTokens: number, 
/**
 * The cost, in the currency of the models' prices; absent if no price is known. It has no part for the calls of
 * `unpricedCalls`.
 */
cost?: number, 
/**
 * The answered calls of models whose price is not known.
 */
unpricedCalls?: number, 
/**
 * Whether tokens of a provider that reports none were estimated.
 */
estimated?: boolean, };

/**
 * Texts at which a model stops: a list, or text with commas.
 */
export type StopSequences = string | Array<string>;

/**
 * Texts: a list, or one text with commas.
 */
export type TextList = string | Array<string>;

/**
 * How an HTTP tool proves who it is.
 */
export type HttpAuthentication = "none" | "basic" | "header" | "bearer" | "apiKey";

/**
 * Where an HTTP tool sends its API key.
 */
export type ApiKeyPlace = "header" | "query";

/**
 * Who makes the vectors of texts.
 */
export type Embeddings = "auto" | "openai" | "azure" | "ollama" | "minilm" | "hash";

/**
 * Whether a turn needs one of the tags or all of them.
 */
export type TagMatch = "any" | "all";

/**
 * Whose entries a long memory recalls.
 */
export type MemoryScope = "user" | "session" | "agent" | "flow";

/**
 * How a node proves to an MCP server who it is.
 */
export type McpAuthentication = "none" | "bearer" | "header" | "oauth";

/**
 * A resource of an MCP server that a long memory recalls.
 */
export type ContextSpanConfig = { 
/**
 * The name of the server in the manifest.
 */
server: string, 
/**
 * The address of the resource.
 */
resource: string, 
/**
 * The most tokens of it; 400 by default.
 */
tokens?: number, 
/**
 * Keeps the copy that was read first, until somebody removes it.
 */
pin?: boolean, };

/**
 * How a search compares texts.
 */
export type SearchMode = "semantic" | "lexical" | "hybrid";

/**
 * One of OpenAI's two interfaces.
 */
export type OpenaiApi = "auto" | "chat" | "responses";

/**
 * How a model is made to answer with JSON.
 */
export type StructuredOutput = "auto" | "json_schema" | "json_object" | "none";

/**
 * How a server with OpenAI's API is made to answer with JSON.
 */
export type ResponseFormat = "auto" | "schema" | "json" | "none";

/**
 * How much effort a reasoning model makes.
 */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/**
 * What a model can do, where the built-in table is wrong or does not know it.
 */
export type CapabilityConfig = { 
/**
 * Whether it takes tools natively.
 */
tools?: boolean, 
/**
 * Whether it takes images.
 */
vision?: boolean, 
/**
 * Whether it can stream its answer.
 */
streaming?: boolean, 
/**
 * Whether it can follow a JSON Schema.
 */
jsonSchema?: boolean, 
/**
 * Whether it has a JSON mode.
 */
jsonObject?: boolean, 
/**
 * Whether it takes `temperature` and the like.
 */
sampling?: boolean, 
/**
 * Whether it is a reasoning model.
 */
reasoning?: boolean, 
/**
 * Whether it can be forced to call a tool.
 */
forcedTools?: boolean, 
/**
 * The most tokens it reads.
 */
contextWindow?: number, 
/**
 * The most tokens it writes.
 */
maxOutput?: number, };

/**
 * How long a provider keeps the beginning of a conversation in its cache.
 */
export type PromptCache = "auto" | "off" | "5m" | "1h";

/**
 * What Claude shows of its thinking.
 */
export type ThinkingDisplay = "summarized" | "omitted";

/**
 * How much a Gemini model thinks.
 */
export type ThinkingLevel = "minimal" | "low" | "medium" | "high";

/**
 * How the sidecar identifies itself to Azure.
 */
export type AzureAuthentication = "key" | "entra";

/**
 * A category of a classifier.
 */
export type Category = string | { 
/**
 * The name.
 */
name: string, 
/**
 * What belongs to it, for the model.
 */
description?: string, };

/**
 * The length of a summary.
 */
export type SummaryLength = "short" | "medium" | "long";

/**
 * One property an inject node sets.
 */
export type InjectProperty = { 
/**
 * The property of the message, such as `payload` or `user.name`.
 */
p: string, 
/**
 * The value, as text.
 */
v?: JsonValue, 
/**
 * The type of the value.
 */
vt?: string, };

/**
 * One rule of a change node.
 */
export type ChangeRule = { 
/**
 * The kind of rule: `set`, `change`, `delete` or `move`.
 */
t: string, 
/**
 * The property of the message, such as `payload` or `payload.rooms[0]`.
 */
p: string, 
/**
 * The object that has the property; `msg` if absent.
 */
pt?: string, 
/**
 * The value, or the property to move to.
 */
to?: JsonValue, 
/**
 * The type of `to`; `str` if absent.
 */
tot?: string, 
/**
 * The value to search for.
 */
from?: JsonValue, 
/**
 * The type of `from`; `str` if absent.
 */
fromt?: string, };

/**
 * One variable of a tab, a group, a subflow or the whole flow.
 */
export type EnvVariable = { 
/**
 * The name of the variable.
 */
name: string, 
/**
 * The value, as text.
 */
value?: JsonValue, 
/**
 * The type of the value: `str`, `num`, `bool`, `json`, `env` and others.
 */
type?: string, };

/**
 * An input or output of a subflow.
 */
export type SubflowPort = { 
/**
 * The nodes inside that it is wired to.
 */
wires: Array<SubflowWire>, };

/**
 * One end of a wire inside a subflow.
 */
export type SubflowWire = { 
/**
 * The id of the node inside, or of the subflow itself for its own input.
 */
id: string, 
/**
 * The output port of that node.
 */
port?: number, };

/**
 * Limits on one run. The first fact of the run contains them, so that a replay uses the same ones.
 */
export type RunLimits = { 
/**
 * The most bytes of one model answer.
 */
maxAnswerBytes: number, 
/**
 * The deepest nesting of one model answer.
 */
maxAnswerDepth: number, 
/**
 * The most bytes of one tool result as JSON. A larger result becomes a failed one.
 */
maxResultBytes: number, 
/**
 * The most bytes of the incoming message as JSON.
 */
maxMessageBytes: number, 
/**
 * The deepest nesting of the incoming message and of tool results, so that every journal can be read
 * back.
 */
maxValueDepth: number, };

/**
 * The agent, its bindings and their properties; not the whole flow. Secrets are already replaced.
 */
export type AgentPlan = { 
/**
 * The agent with its own properties.
 */
agent: PlanNode, 
/**
 * The model that it binds.
 */
model: PlanNode, 
/**
 * The models that are called if the first one fails, in their order.
 */
fallbackModels?: Array<PlanNode>, 
/**
 * The memory that it binds; null if none.
 */
memory: PlanNode | null, 
/**
 * The tools that it binds, in the order of their wires.
 */
tools: Array<PlanNode>, 
/**
 * The models and memories that its memory and its tools name.
 */
services?: Array<PlanNode>, };

/**
 * A node of a plan.
 */
export type PlanNode = { 
/**
 * The id, type and name of the node.
 */
node: NodeSummary, 
/**
 * The properties as the flow has them; `${ENV}` stays unresolved.
 */
config: { [key: string]: JsonValue }, };

/**
 * The agent as the machine uses it. The first fact of a run contains it.
 */
export type AgentSpec = { 
/**
 * The id of the agent, with its Node-RED.
 */
agent: NodeRef, 
/**
 * The node type of the agent.
 */
type: string, 
/**
 * The agent's name; empty if it has none.
 */
name: string, 
/**
 * The strategy of its machine; absent for Agent Core's, `react`.
 */
strategy?: string, 
/**
 * The settings of an AI Agent; absent for Agent Core.
 */
converse?: ConverseSpec, 
/**
 * What a run may spend; absent if there is no limit.
 */
budget?: Budget, 
/**
 * The most model calls of a run.
 */
maxIterations: number, 
/**
 * The tools that the model may call, in the order of the prompt.
 */
tools: Array<ToolSpec>, 
/**
 * When to stop before a final answer.
 */
stopConditions: Array<StopCondition>, 
/**
 * Whether outputs and events contain prompts and previews.
 */
debug: boolean, 
/**
 * The longest duration of a run, in milliseconds.
 */
timeoutMs: number, 
/**
 * Whether a memory is bound.
 */
memory: boolean, 
/**
 * Whether port 4 has a wire. If not, the machine makes no message for it.
 */
modelResponseWired: boolean, 
/**
 * The limits of a run.
 */
limits: RunLimits, };

/**
 * The settings of an AI Agent.
 */
export type ConverseSpec = { 
/**
 * What the model is told first in every call.
 */
systemPrompt: string, 
/**
 * The template of the user's message; empty for the payload.
 */
userMessage: string, 
/**
 * Whether the model may call tools.
 */
toolChoice: ToolChoice, 
/**
 * What the payload of the result is.
 */
outputFormat: OutputFormat, 
/**
 * JSON Schema of the answer; absent if any answer is valid.
 */
outputSchema?: JsonValue, 
/**
 * The most tool calls at the same time.
 */
parallelTools: number, 
/**
 * The template of the images; absent if the agent takes none.
 */
images?: string, 
/**
 * The one task of the agent; absent for an AI Agent.
 */
task?: TaskSpec, };

/**
 * The task of an agent that does one thing. With tools its model gives the result by calling `finish_step`.
 */
export type TaskSpec = { 
/**
 * What the agent does.
 */
kind: TaskKind, 
/**
 * The most tokens of the conversation. At 70 % old messages are summed up; at 90 % the agent must finish.
 */
maxTokenLimit: number, };

/**
 * What an agent for one thing does.
 */
export type TaskKind = "objective" | "extract" | "classify" | "summarize";

/**
 * A tool as the model knows it.
 */
export type ToolSpec = { 
/**
 * The name that the model calls it by.
 */
name: string, 
/**
 * What the tool does, for the model.
 */
description: string, 
/**
 * JSON Schema of the input; null if the tool takes any object.
 */
inputSchema: JsonValue | null, 
/**
 * The node of the tool.
 */
node: NodeId, 
/**
 * The effect class that the node declares; null if the tool decides per call.
 */
effect: EffectClass | null, 
/**
 * The longest duration of one call, in milliseconds.
 */
timeoutMs: number, 
/**
 * What happens if the outcome of a call is unknown.
 */
onUnknown: OnUnknown, 
/**
 * The id in the registry; absent for a tool that is a node of its own.
 */
id?: string, 
/**
 * The operation of the node; absent if the tool is no operation of a node.
 */
operation?: string, 
/**
 * SHA-256 of the definition in the registry.
 */
digest?: Digest, 
/**
 * JSON Schema of the output; absent if any output is valid.
 */
outputSchema?: JsonValue, 
/**
 * How often a failed call is made again; absent for never.
 */
retry?: ToolRetry, 
/**
 * Whether the provider must keep to the input schema; absent for the provider's own rule.
 */
strict?: boolean, };

/**
 * How often a failed call is made again. Only calls of class `read` or `idempotent` are.
 */
export type ToolRetry = { 
/**
 * The most further tries.
 */
max: number, 
/**
 * The time before the first further try, in milliseconds. It doubles with each one.
 */
backoffMs: number, };

/**
 * Where a tool comes from.
 */
export type ToolOrigin = "builtin" | "flow" | "node" | "mcp" | "agent" | "manifest";

/**
 * Whether a tool can be called now.
 */
export type ToolState = "ready" | "away" | "changed" | "blocked";

/**
 * Which addresses a tool may reach.
 */
export type NetworkPermission = "none" | "hosts" | "public";

/**
 * What a tool may do with files.
 */
export type FilePermission = "none" | "read" | "write";

/**
 * What a tool needs. Editors show it; a policy can name it.
 */
export type ToolPermissions = { 
/**
 * Which addresses it may reach.
 */
network: NetworkPermission, 
/**
 * What it may do with files.
 */
files: FilePermission, 
/**
 * Whether it starts a program.
 */
process: boolean, 
/**
 * The names of the secrets that it uses.
 */
secrets: Array<string>, };

/**
 * What a rule of the policy does with the calls that it matches.
 */
export type RuleAction = "allow" | "ask" | "deny" | "limit";

/**
 * Which calls of a tool a rule of the policy matches.
 */
export type MatchedCalls = "every" | "some" | "none";

/**
 * A rule of the policy that names a tool.
 */
export type ToolRule = { 
/**
 * Its place in the policy, from 1.
 */
rule: number, 
/**
 * What it does.
 */
action: RuleAction, 
/**
 * Which calls of the tool it matches.
 */
calls: MatchedCalls, };

/**
 * One tool of the registry.
 */
export type ToolEntry = { 
/**
 * The dotted id, such as `weather.current`.
 */
id: string, 
/**
 * The name that models call it by.
 */
name: string, 
/**
 * Where it comes from.
 */
origin: ToolOrigin, 
/**
 * What provides it: the id of a node, `manifest`, or the name of a server.
 */
provider: string, 
/**
 * A short title for people; empty if it has none.
 */
title?: string, 
/**
 * What it does, for the model.
 */
description: string, 
/**
 * JSON Schema of the input; absent if it takes any object.
 */
inputSchema?: JsonValue, 
/**
 * JSON Schema of the output; absent if any output is valid.
 */
outputSchema?: JsonValue, 
/**
 * The effect class of its calls; absent if the tool decides per call.
 */
effect?: EffectClass, 
/**
 * The longest duration of one call, in milliseconds.
 */
timeoutMs: number, 
/**
 * How often a failed call is made again.
 */
retry: ToolRetry, 
/**
 * What it needs.
 */
permissions: ToolPermissions, 
/**
 * SHA-256 of its definition.
 */
digest: Digest, 
/**
 * The type of the node that has it; absent for a tool of the manifest.
 */
nodeType?: string, 
/**
 * Whether it can be called now.
 */
state: ToolState, 
/**
 * Why it cannot be called; absent if it can.
 */
reason?: string, 
/**
 * The Node-RED that has it; absent for the sidecar's own.
 */
instance?: InstanceId, 
/**
 * The rules of the policy that name it, in their order; absent if there are none.
 */
rules?: Array<ToolRule>, };

/**
 * One call of a tool, as the log has it.
 */
export type ToolInvocation = { 
/**
 * When the call ended.
 */
at: number, 
/**
 * The id of the tool.
 */
id: string, 
/**
 * The name that the model called it by.
 */
tool: string, 
/**
 * The run that called; absent for a call outside a run.
 */
runId?: RunId, 
/**
 * The id of the call.
 */
callId: CallId, 
/**
 * The agent that called; absent for a call outside a run.
 */
agent?: NodeRef, 
/**
 * Who started the run, or made the call; absent if unknown.
 */
by?: Principal, 
/**
 * The effect class of the call; absent if it is not recorded.
 */
effect?: EffectClass, 
/**
 * The input.
 */
input: { [key: string]: JsonValue }, 
/**
 * Whether the call succeeded.
 */
success: boolean, 
/**
 * The output; absent if the call failed.
 */
output?: JsonValue, 
/**
 * Why the call failed; absent if it succeeded.
 */
error?: string, 
/**
 * The code of the failure; absent if it has none.
 */
code?: ToolCode, 
/**
 * The duration, in milliseconds.
 */
durationMs: number, 
/**
 * How often the tool was tried: 0 if the call was refused.
 */
tries: number, };

/**
 * The tools that this sidecar knows.
 */
export type ToolList = { 
/**
 * The tools, sorted by id.
 */
tools: Array<ToolEntry>, 
/**
 * A number that grows with every change of the registry. The active flow has a revision of its own.
 */
generation: number, 
/**
 * The problems of the manifest and of registered tools; absent if there are none. A manifest with problems is
 * not used; the one before it stays.
 */
problems?: Array<Diagnostic>, 
/**
 * The rules of the policy; absent if there are none. The `rules` of a tool count them from 1.
 */
policy?: Array<PolicyRule>, };

/**
 * Calls a tool outside a run.
 */
export type ToolCallRequest = { 
/**
 * The input, an object that fits the schema of the tool.
 */
input: { [key: string]: JsonValue }, };

/**
 * A page of calls of one tool, newest first.
 */
export type ToolCallList = { 
/**
 * The calls that have ended.
 */
calls: Array<ToolInvocation>, 
/**
 * Pass it as `before` to get the next page; absent on the last page.
 */
next?: string, };

/**
 * What an agent has, and what it has done since the sidecar started.
 */
export type AgentDetail = { 
/**
 * The agent, and whether it may run.
 */
agent: AgentState, 
/**
 * The Node-RED that has it; absent for the sidecar's own flow.
 */
instance?: InstanceId, 
/**
 * The tools that its model may call now; empty if the agent cannot run.
 */
tools: Array<ToolEntry>, 
/**
 * Why its runs cannot begin now, so that `tools` is empty; absent if they can, and if the agent is refused.
 */
toolsError?: RunError, 
/**
 * The MCP servers that it uses, as they are now; absent if it uses none.
 */
mcpServers?: Array<McpServerSummary>, 
/**
 * The memory of its conversations; absent if it has none.
 */
memory?: AgentMemory, 
/**
 * The number of runs that started.
 */
runs: number, 
/**
 * The calls of each tool, sorted by name.
 */
calls: Array<ToolCallCount>, };

/**
 * The memory of an agent.
 */
export type AgentMemory = { 
/**
 * The id, type and name of the memory.
 */
node: NodeSummary, 
/**
 * How often it was read since the sidecar started.
 */
recalls: number, 
/**
 * How many of these reads found messages.
 */
hits: number, 
/**
 * How full it is; absent if it does not answer in time.
 */
stats?: MemoryStats, };

/**
 * How often an agent called a tool since the sidecar started.
 */
export type ToolCallCount = { 
/**
 * The name that the model calls it by.
 */
tool: string, 
/**
 * The calls that have ended.
 */
calls: number, 
/**
 * How many of them failed.
 */
failed: number, };

/**
 * A collection: entries whose vectors come from the same embedder.
 */
export type Collection = { 
/**
 * Its name, such as `kb/manuals`.
 */
name: string, 
/**
 * The embedder that made its vectors, such as `openai/text-embedding-3-small`.
 */
embedder: string, 
/**
 * The length of its vectors.
 */
dimensions: number, 
/**
 * Settings of its owner, such as the address of the embedder.
 */
settings: { [key: string]: JsonValue }, 
/**
 * The number of its entries.
 */
entries: number, 
/**
 * The number of its documents.
 */
documents: number, 
/**
 * When it was made.
 */
createdAt: number, };

/**
 * A document of a collection. Its passages are entries.
 */
export type Document = { 
/**
 * Its name in the collection: a path below the folder that was added, or an address.
 */
name: string, 
/**
 * Its title, for people.
 */
title: string, 
/**
 * Where it was read: an absolute path or an address.
 */
origin: string, 
/**
 * The digest of its bytes.
 */
digest: Digest, 
/**
 * The number of its bytes.
 */
bytes: number, 
/**
 * The number of its passages.
 */
chunks: number, 
/**
 * Its tags, which all its passages have.
 */
tags: Array<string>, 
/**
 * When this content was added.
 */
addedAt: number, 
/**
 * When it is removed; absent if never.
 */
expiresAt?: number, };

/**
 * Where a passage of a knowledge base stands.
 */
export type PassageMetadata = { 
/**
 * The name of the document.
 */
document: string, 
/**
 * The title of the document.
 */
title: string, 
/**
 * The headings above the passage, the outermost first.
 */
headings?: Array<string>, 
/**
 * The page of a document with pages, from 1.
 */
page?: number, 
/**
 * The first row of a table, or the line of JSON lines, from 1.
 */
row?: number, 
/**
 * The place in a JSON document.
 */
pointer?: string, 
/**
 * The number of the passage in its document, from 1.
 */
chunk: number, 
/**
 * When the passage was added.
 */
addedAt?: number, };

/**
 * A passage that a search in a knowledge base has found.
 */
export type KnowledgePassage = { 
/**
 * The text.
 */
content: string, 
/**
 * How well it fits, from 0 to 1.
 */
score: number, 
/**
 * Where it stands.
 */
metadata: PassageMetadata, 
/**
 * Why it was found.
 */
reason: HitReason, 
/**
 * The digest of its text; absent if it is not known.
 */
digest?: Digest, 
/**
 * Who vouches for it; absent if it is not known.
 */
trust?: Trust, };

/**
 * Why a search has found an entry.
 */
export type HitReason = { 
/**
 * Its rank by meaning, from 1; absent if it is not among the best.
 */
vectorRank?: number, 
/**
 * Its rank by words, from 1; absent if it is not among the best.
 */
textRank?: number, 
/**
 * The cosine of the angle between its vector and the query's; absent without vectors.
 */
cosine?: number, 
/**
 * Its age in milliseconds.
 */
ageMs: number, };

/**
 * All knowledge bases.
 */
export type KnowledgeBaseList = { 
/**
 * The knowledge bases, sorted by name.
 */
knowledgeBases: Array<Collection>, };

/**
 * A page of the documents of a knowledge base.
 */
export type KnowledgeDocumentList = { 
/**
 * The documents, sorted by name.
 */
documents: Array<Document>, 
/**
 * `after` of the next page; absent on the last one.
 */
next?: string, };

/**
 * A passage as it is stored.
 */
export type StoredPassage = { 
/**
 * The text.
 */
content: string, 
/**
 * Where it stands.
 */
metadata: PassageMetadata, };

/**
 * A page of the passages of a document.
 */
export type KnowledgePassageList = { 
/**
 * The passages, in their order.
 */
passages: Array<StoredPassage>, 
/**
 * `after` of the next page: the number of the last passage; absent on the last page.
 */
next?: number, };

/**
 * A search in a knowledge base.
 */
export type KnowledgeSearch = { 
/**
 * What to search for.
 */
text: string, 
/**
 * How texts are compared. By meaning if absent, or by both if the embedder finds words only.
 */
mode?: SearchMode, 
/**
 * The most passages, from 1 to 200; 5 if absent.
 */
limit?: number, 
/**
 * The least score, from 0 to 1. If absent, 0.7 by meaning, else 0.
 */
minScore?: number, 
/**
 * Only passages with one of these tags.
 */
tags?: Array<string>, };

/**
 * What a search has found.
 */
export type KnowledgeSearchResult = { 
/**
 * The passages, the best first.
 */
results: Array<KnowledgePassage>, };

/**
 * Who makes the vectors of a knowledge base. What is absent stays as it is.
 */
export type EmbedderChoice = { 
/**
 * Who makes the vectors.
 */
embeddings?: Embeddings, 
/**
 * The name of the model.
 */
embeddingModel?: string, 
/**
 * The length of the vectors, if the model can shorten them.
 */
dimensions?: number, 
/**
 * The address of a compatible server.
 */
baseURL?: string, 
/**
 * The deployment, for Azure.
 */
deployment?: string, 
/**
 * The version of the API, for Azure.
 */
apiVersion?: string, };

/**
 * What happened to a document.
 */
export type DocumentStatus = "added" | "unchanged" | "estimated";

/**
 * What happened to a document, or to all passages of a knowledge base.
 */
export type DocumentAnswer = { 
/**
 * The name of the document, or of the knowledge base.
 */
document: string, 
/**
 * What happened.
 */
status: DocumentStatus, 
/**
 * Its passages.
 */
passages: number, 
/**
 * The passages whose vectors had to be made.
 */
embedded: number, 
/**
 * The tokens of these passages: counted by the provider, or about how many they would be.
 */
tokens: number, 
/**
 * Their cost; absent if it is not known.
 */
cost?: number, 
/**
 * The places where a secret was replaced; absent if there are none.
 */
masked?: number, 
/**
 * Whether the vectors find meaning. If not, a search finds words only.
 */
findsMeaning: boolean, };

/**
 * What an entry is.
 */
export type EntryKind = "episode" | "fact" | "preference" | "decision" | "summary" | "span" | "chunk" | "log";

/**
 * Whether an entry is found.
 */
export type EntryState = "live" | "pinned" | "archived" | "superseded" | "quarantined";

/**
 * Where an entry comes from.
 */
export type EntrySource = { 
/**
 * The kind of source.
 */
kind: SourceKind, 
/**
 * Its name: a path, an address, a run.
 */
ref: string, 
/**
 * The digest of its content; absent if it is not known.
 */
digest?: Digest, };

/**
 * An entry as it is stored.
 */
export type Entry = { 
/**
 * Its name in the collection.
 */
key: string, 
/**
 * Counts its versions from 1.
 */
version: number, 
/**
 * What it is.
 */
kind: EntryKind, 
/**
 * The text.
 */
text: string, 
/**
 * Anything else that is known about it.
 */
meta: { [key: string]: JsonValue }, 
/**
 * Its tags.
 */
tags: Array<string>, 
/**
 * The user it belongs to; absent if there is none.
 */
user?: string, 
/**
 * The session it was made in; absent if there was none.
 */
session?: string, 
/**
 * Whether it is found.
 */
state: EntryState, 
/**
 * From when it is true.
 */
validFrom: number, 
/**
 * Until when it was true; absent if it still is.
 */
validTo?: number, 
/**
 * When this version was stored.
 */
createdAt: number, 
/**
 * When it is removed; absent if never.
 */
expiresAt?: number, 
/**
 * Who vouches for it.
 */
trust: Trust, 
/**
 * From 0 to 1.
 */
importance: number, 
/**
 * Where it comes from; absent if that is not known.
 */
source?: EntrySource, 
/**
 * The digest of its text.
 */
contentHash: Digest, 
/**
 * The key of the entry that it has replaced; absent if none.
 */
supersedes?: string, };

/**
 * An entry that a search has found, and why.
 */
export type SearchHit = { 
/**
 * The entry.
 */
entry: Entry, 
/**
 * From 0 to 1: `(1 + cosine) / 2`. Without a cosine, how well the words fit.
 */
score: number, 
/**
 * Why it was found.
 */
reason: HitReason, };

/**
 * Whose data is forgotten.
 */
export type DataOwner = { "user": string } | { "session": string } | { "source": string };

/**
 * How full a memory is.
 */
export type MemoryStats = { 
/**
 * The conversations that it keeps; absent if it cannot count them.
 */
conversations?: number, 
/**
 * The entries that it can recall; absent for a short memory.
 */
entries?: number, 
/**
 * The entries that wait for a review; absent for a short memory.
 */
quarantined?: number, };

/**
 * All long memories.
 */
export type MemoryList = { 
/**
 * The memories, sorted by name.
 */
memories: Array<MemoryCollection>, };

/**
 * A long memory.
 */
export type MemoryCollection = { 
/**
 * Its name, such as `tab1/n7`: the flow and the node.
 */
name: string, 
/**
 * The embedder of its vectors.
 */
embedder: string, 
/**
 * The number of its entries.
 */
entries: number, 
/**
 * How many of them wait for a review.
 */
quarantined: number, 
/**
 * When it was made.
 */
createdAt: number, };

/**
 * Which entries to show.
 */
export type MemoryFilter = { 
/**
 * Only entries of this user.
 */
user?: string, 
/**
 * Only entries of this session.
 */
session?: string, 
/**
 * Only entries in this state.
 */
state?: EntryState, 
/**
 * Only entries of this kind.
 */
kind?: EntryKind, };

/**
 * A page of the entries of a memory.
 */
export type MemoryEntryList = { 
/**
 * The entries, sorted by key.
 */
entries: Array<Entry>, 
/**
 * `after` of the next page; absent on the last one.
 */
next?: string, };

/**
 * An entry with its former versions.
 */
export type MemoryEntryDetail = { 
/**
 * The entry.
 */
entry: Entry, 
/**
 * Its former versions, newest first.
 */
history: Array<Entry>, };

/**
 * A line of an export.
 */
export type MemoryExportLine = { 
/**
 * The name of the memory.
 */
memory: string, 
/**
 * An entry of it.
 */
entry: Entry, };

/**
 * A search in a memory.
 */
export type MemorySearch = { 
/**
 * What to search for.
 */
text: string, 
/**
 * How texts are compared; by both if absent.
 */
mode?: SearchMode, 
/**
 * The most entries, from 1 to 200; 8 if absent.
 */
limit?: number, 
/**
 * The least score, from 0 to 1; 0 if absent.
 */
minScore?: number, 
/**
 * Only entries of this user.
 */
user?: string, 
/**
 * Only entries of this session.
 */
session?: string, 
/**
 * Only entries with one of these tags.
 */
tags?: Array<string>, 
/**
 * Only entries of these kinds.
 */
kinds?: Array<EntryKind>, 
/**
 * Only entries that were true at or after this time.
 */
since?: number, 
/**
 * Only entries that were true at or before this time.
 */
until?: number, 
/**
 * What was true at this time; now if absent.
 */
asOf?: number, 
/**
 * Only entries with at least this trust.
 */
minTrust?: Trust, };

/**
 * What a search has found.
 */
export type MemorySearchResult = { 
/**
 * The entries, the best first, and why each was found.
 */
results: Array<SearchHit>, };

/**
 * An entry to store. What is absent stays as it is, or has its default in a new entry.
 */
export type MemoryPut = { 
/**
 * The text.
 */
text: string, 
/**
 * What it is; a fact if absent.
 */
kind?: EntryKind, 
/**
 * Its tags.
 */
tags?: Array<string>, 
/**
 * The user it belongs to.
 */
user?: string, 
/**
 * The session it belongs to.
 */
session?: string, 
/**
 * Whether it is found.
 */
state?: EntryState, 
/**
 * From when it is true.
 */
validFrom?: number, 
/**
 * When it is removed.
 */
expiresAt?: number, 
/**
 * From 0 to 1.
 */
importance?: number, 
/**
 * Anything else that is known about it.
 */
meta?: { [key: string]: JsonValue }, };

/**
 * What a person decides about an entry that waits for a review.
 */
export type Decision = "approve" | "reject";

/**
 * A decision about entries that wait for a review.
 */
export type MemoryReview = { 
/**
 * The name of the memory.
 */
memory: string, 
/**
 * The keys of the entries.
 */
keys: Array<string>, 
/**
 * What to do with them.
 */
decision: Decision, };

/**
 * How many entries a review has changed.
 */
export type MemoryReviewed = { 
/**
 * The entries that were decided. Others did not wait for a review.
 */
decided: number, };

/**
 * Whose data to forget.
 */
export type ForgetRequest = { 
/**
 * Whose data.
 */
owner: DataOwner, 
/**
 * Whether the runs of the owner are removed too, with their journals, events and chats.
 */
runs: boolean, };

/**
 * What was forgotten.
 */
export type ForgetAnswer = { 
/**
 * What was removed.
 */
forgotten: Forgotten, 
/**
 * What could not be removed, and why. The same request again goes on.
 */
problems: Array<string>, };

/**
 * Whether a program may use the network.
 */
export type McpNetwork = "any" | "none";

/**
 * Which definitions of tools are trusted.
 */
export type McpTrust = "first-use" | "pinned";

/**
 * How a client gets tokens.
 */
export type OAuthGrant = "authorization_code" | "client_credentials";

/**
 * How the sidecar proves to a server who it is. The secrets are in the environment, never in the manifest.
 */
export type McpAuth = { "type": "bearer", 
/**
 * The environment variable with the token.
 */
env: string, } | { "type": "header", 
/**
 * The name of the header.
 */
name: string, 
/**
 * The environment variable with its value.
 */
env: string, } | { "type": "oauth", 
/**
 * How the sidecar gets tokens; `authorization_code` by default.
 */
grant?: OAuthGrant, 
/**
 * The id of the client; absent if the issuer registers clients by itself.
 */
clientId?: string, 
/**
 * The environment variable with the secret of the client.
 */
secretEnv?: string, 
/**
 * What the sidecar asks to be allowed; empty for what the server asks for.
 */
scopes?: Array<string>, };

/**
 * An MCP server: a program with `command`, or an address with `url`; never both.
 */
export type McpServer = { 
/**
 * The program that is started. It speaks MCP on its standard input and output.
 */
command?: string, 
/**
 * The arguments of the program, one by one. No shell reads them.
 */
args: Array<string>, 
/**
 * The environment of the program, beside `PATH`, `HOME` and `TMPDIR`.
 */
env: { [key in string]: string }, 
/**
 * The environment variables of the sidecar that the program gets. Their values count as secrets.
 */
secrets: Array<string>, 
/**
 * Further files and folders that the program may read.
 */
read: Array<string>, 
/**
 * Further files and folders that the program may read and write. It has a folder of its own.
 */
write: Array<string>, 
/**
 * Whether the program may use the network; `any` by default.
 */
network?: McpNetwork, 
/**
 * The address of the server, for MCP over streamable HTTP.
 */
url?: string, 
/**
 * How the sidecar proves who it is; absent if the server does not ask.
 */
auth?: McpAuth, 
/**
 * Only these tools of the server: names, or patterns with `*`. Empty for all.
 */
include: Array<string>, 
/**
 * Not these tools: names, or patterns with `*`.
 */
exclude: Array<string>, 
/**
 * The effect classes of tools, by name or pattern with `*`. A name counts before a pattern. Of several patterns that
 * match, the one with the most characters beside `*` counts, and of equal ones the strictest class. Others are
 * `at_most_once`.
 */
effects: { [key in string]: EffectClass }, 
/**
 * The longest time of a call, in milliseconds; 60000 by default.
 */
timeoutMs?: number, 
/**
 * The most bytes of a result; 131072 by default.
 */
maxResultBytes?: number, 
/**
 * Whether the resources of the server are tools too: `list_resources` and `read_resource`.
 */
resources?: boolean, 
/**
 * Which definitions of tools are trusted; `first-use` by default.
 */
trust?: McpTrust, };

/**
 * How far the system confines a program.
 */
export type McpConfinement = { 
/**
 * The version of Landlock, which keeps the program in its folders; absent if the system has none. Then the program
 * is not confined.
 */
landlock?: number, 
/**
 * Whether the program has namespaces of its own: processes, files and a user without rights.
 */
namespaces: boolean, 
/**
 * What follows from what the system does not have. Empty: the program is confined in every way.
 */
gaps: Array<McpConfinementGap>, };

/**
 * What a program can do, or cannot do, because the system lacks something.
 */
export type McpConfinementGap = "unconfined" | "no_modes" | "no_sockets" | "processes" | "signals";

/**
 * Where a server is defined.
 */
export type McpOrigin = "manifest" | "added" | "node";

/**
 * How the sidecar reaches a server.
 */
export type McpTransport = "stdio" | "http";

/**
 * Whether a server can be used now.
 */
export type McpServerState = "idle" | "connecting" | "ready" | "away" | "login_needed" | "blocked";

/**
 * A server, and whether it can be used now.
 */
export type McpServerSummary = { 
/**
 * Its name. The ids of its tools begin with `mcp.NAME.`.
 */
name: string, 
/**
 * What routes and commands call it: its name, or `NAME@HOST/PATH` for the server of a node, because several nodes can
 * give servers the same name.
 */
key: string, 
/**
 * Where it is defined.
 */
origin: McpOrigin, 
/**
 * How the sidecar reaches it.
 */
transport: McpTransport, 
/**
 * The program with its arguments, or the address without a query.
 */
target: string, 
/**
 * Whether it can be used now.
 */
state: McpServerState, 
/**
 * Why it cannot be used; absent if it can.
 */
reason?: string, 
/**
 * The code of the reason; absent if it has none.
 */
code?: ToolCode, 
/**
 * The version of the protocol, such as `2026-07-28`; absent before the first connection.
 */
protocol?: string, 
/**
 * What the server calls itself, with its version; absent before the first connection.
 */
server?: string, 
/**
 * How many of its tools agents can use.
 */
tools: number, 
/**
 * How many of its tools wait for an approval.
 */
changed: number, 
/**
 * When the connection was made or lost last; absent before the first try.
 */
since?: number, 
/**
 * How far the program is confined; absent for an address.
 */
confinement?: McpConfinement, };

/**
 * The servers that this sidecar knows.
 */
export type McpServerList = { 
/**
 * The servers, sorted by name.
 */
servers: Array<McpServerSummary>, };

/**
 * What effect classes become for a tool. What its server says about it can only make them stricter.
 */
export type McpTightened = { 
/**
 * The class that `read` becomes.
 */
read: EffectClass, 
/**
 * The class that `idempotent` becomes.
 */
idempotent: EffectClass, };

/**
 * A tool of a server.
 */
export type McpToolInfo = { 
/**
 * The name that the server gives it.
 */
name: string, 
/**
 * Its id in the registry, `mcp.SERVER.NAME`.
 */
id: string, 
/**
 * What it does, cleaned and cut.
 */
description: string, 
/**
 * The effect class of its calls.
 */
effect: EffectClass, 
/**
 * What the classes of a node's rules become for it.
 */
tightened: McpTightened, 
/**
 * Whether agents can use it: `include` and `exclude` allow it.
 */
included: boolean, 
/**
 * Whether it can be called now.
 */
state: ToolState, 
/**
 * Why it cannot be called; absent if it can.
 */
reason?: string, 
/**
 * JSON Schema of the input.
 */
inputSchema: JsonValue, 
/**
 * The digest of the definition that the server sends now; absent if the server no longer has the tool.
 */
digest?: Digest, 
/**
 * The digest of the approved definition; absent if none is approved.
 */
pinned?: Digest, 
/**
 * What is different from the approved definition, line by line with `-` and `+`; absent if nothing is.
 */
diff?: string, };

/**
 * A resource of a server.
 */
export type McpResourceInfo = { 
/**
 * Its address.
 */
uri: string, 
/**
 * Its name.
 */
name: string, 
/**
 * What it has, cleaned and cut.
 */
description?: string, 
/**
 * Its media type.
 */
mime?: string, };

/**
 * A prompt of a server. `mcp:SERVER/NAME` as a system prompt uses it.
 */
export type McpPromptInfo = { 
/**
 * Its name.
 */
name: string, 
/**
 * What it is for, cleaned and cut.
 */
description?: string, 
/**
 * Whether it needs arguments. Such a prompt cannot be a system prompt.
 */
needsArguments: boolean, };

/**
 * A server with its tools, resources and prompts.
 */
export type McpServerDetail = { 
/**
 * The server.
 */
summary: McpServerSummary, 
/**
 * Its tools, sorted by name, with those that `include` and `exclude` leave out.
 */
tools: Array<McpToolInfo>, 
/**
 * Its resources, at most 200.
 */
resources: Array<McpResourceInfo>, 
/**
 * Its prompts, at most 200.
 */
prompts: Array<McpPromptInfo>, };

/**
 * Approves the definitions of tools.
 */
export type McpPinRequest = { 
/**
 * The tools, each with the digest that the person has seen. Another definition is not approved.
 */
tools: { [key in string]: Digest }, };

/**
 * Begins a sign-in at the issuer of a server.
 */
export type McpLogin = { 
/**
 * The address that the person opens in a browser.
 */
url: string, };

/**
 * The whole manifest.
 */
export type Manifest = { 
/**
 * The tools that it defines.
 */
tools: Array<ManifestTool>, 
/**
 * The MCP servers, by name.
 */
mcp: { [key in string]: McpServer }, 
/**
 * The operations of Node-RED nodes, by their type.
 */
nodes: { [key in string]: { [key in string]: NodeOperation } }, 
/**
 * The roles and their members.
 */
roles: { [key in string]: RoleMembers }, 
/**
 * The rules about calls.
 */
policy: Array<PolicyRule>, };

/**
 * A tool of the manifest, or one that was registered at run time.
 */
export type ManifestTool = { 
/**
 * The dotted id, such as `weather.current`.
 */
id: string, 
/**
 * What a call does.
 */
kind: ManifestToolKind, 
/**
 * A short title for people.
 */
title?: string, 
/**
 * What the tool does, for the model.
 */
description: string, 
/**
 * JSON Schema of the input, an object.
 */
inputSchema: { [key: string]: JsonValue }, 
/**
 * JSON Schema of the output; absent if any output is valid.
 */
outputSchema?: { [key: string]: JsonValue }, 
/**
 * The effect class; by default GET is `read`, PUT and DELETE are `idempotent`, POST is `at_most_once`.
 */
effect?: EffectClass, 
/**
 * The longest duration of one call, in milliseconds; 30000 by default.
 */
timeoutMs?: number, 
/**
 * How often a failed call is made again.
 */
retry?: ToolRetry, 
/**
 * The method of the request; GET by default.
 */
method?: HttpMethod, 
/**
 * The address. `{{input.x}}` stands for a value of the input in the path and the query, never in the host.
 */
url: string, 
/**
 * Further headers; the values may have `{{input.x}}`.
 */
headers?: { [key in string]: string }, 
/**
 * The body, sent as JSON: `"{{input.x}}"` alone stands for the value itself. Without it, POST and PUT send the
 * whole input.
 */
body?: JsonValue, 
/**
 * The key that goes with the request, to the host of `url` only.
 */
credential?: ManifestCredential, 
/**
 * Whether clients of the sidecar's own MCP server may call it; not by default.
 */
mcp?: boolean, };

/**
 * What a call of a manifest tool does.
 */
export type ManifestToolKind = "http";

/**
 * The methods that tools may use.
 */
export type HttpMethod = "GET" | "POST" | "PUT" | "DELETE";

/**
 * A key of a manifest tool. Its value is in the environment, never in the manifest.
 */
export type ManifestCredential = { "type": "basic", 
/**
 * The user name.
 */
user: string, 
/**
 * The environment variable with the password.
 */
env: string, } | { "type": "bearer", 
/**
 * The environment variable with the token.
 */
env: string, } | { "type": "header", 
/**
 * The name of the header.
 */
name: string, 
/**
 * The environment variable with its value.
 */
env: string, } | { "type": "query", 
/**
 * The name of the parameter.
 */
name: string, 
/**
 * The environment variable with its value.
 */
env: string, };

/**
 * An operation of a node that agents can call as a tool.
 */
export type NodeOperation = { 
/**
 * What the operation does, for the model.
 */
description: string, 
/**
 * JSON Schema of the input, an object.
 */
inputSchema: { [key: string]: JsonValue }, 
/**
 * JSON Schema of the result; absent if any result is valid.
 */
outputSchema?: { [key: string]: JsonValue }, 
/**
 * The effect class; `at_most_once` by default.
 */
effect?: EffectClass, 
/**
 * The longest duration of one call, in milliseconds; 30000 by default.
 */
timeout?: number, 
/**
 * How often a failed call is made again.
 */
retry?: ToolRetry, 
/**
 * The properties of the message that the node receives. A text `{{input.x}}` alone stands for the value
 * itself, within a text for its text. Without `payload`, the payload is the input.
 */
msg?: { [key: string]: JsonValue }, 
/**
 * The property of the returned message that is the result; `payload` by default.
 */
result?: string, };

/**
 * One rule of the policy. It has exactly one of `allow`, `ask`, `deny` and `limit`. The other lists narrow the
 * calls that it is about.
 */
export type PolicyRule = { 
/**
 * Only calls that match one of the `allow` rules of a tool are allowed. Ids, names, `prefix.*` or `*`.
 */
allow?: Array<string>, 
/**
 * A person must approve these calls.
 */
ask?: Array<string>, 
/**
 * These calls are refused.
 */
deny?: Array<string>, 
/**
 * These calls are limited.
 */
limit?: Array<string>, 
/**
 * Only calls of these agents, by id or name.
 */
agents?: Array<string>, 
/**
 * Only calls of tools of these nodes, by id or type.
 */
nodes?: Array<string>, 
/**
 * Only calls of tools of these MCP servers.
 */
servers?: Array<string>, 
/**
 * Only calls by members of one of these roles.
 */
roles?: Array<string>, 
/**
 * Only calls of these effect classes.
 */
effect?: Array<EffectClass>, 
/**
 * Only calls of tools that need one of these, such as `network.public`, `files.write`, `process` or
 * `secrets.NAME`.
 */
permissions?: Array<string>, 
/**
 * What a limit counts by; `tool` by default.
 */
per?: LimitScope, 
/**
 * The most calls in a time, such as `30/m`: per `s`, `m`, `h` or `d`.
 */
rate?: string, 
/**
 * The most calls at once within the rate; by default the number of the rate.
 */
burst?: number, 
/**
 * The most calls at the same time.
 */
concurrent?: number, };

/**
 * What a limit counts by.
 */
export type LimitScope = "tool" | "agent" | "session" | "principal";

/**
 * The members of a role.
 */
export type RoleMembers = { 
/**
 * The names of tokens; `main` is the main token.
 */
tokens?: Array<string>, 
/**
 * The ids of Node-REDs.
 */
instances?: Array<string>, 
/**
 * Agents, by id or name.
 */
agents?: Array<string>, };

/**
 * The author of a message.
 */
export type ChatRole = "system" | "user" | "assistant" | "tool";

/**
 * One message of a conversation.
 */
export type ChatMessage = { 
/**
 * The author.
 */
role: ChatRole, 
/**
 * The text.
 */
content: string, 
/**
 * The native tool calls of the model; only from an assistant.
 */
toolCalls?: Array<RequestedCall>, 
/**
 * The id of the call that this is the result of; only from a tool.
 */
toolCallId?: string, 
/**
 * Reasoning that the provider wants back unchanged; only from an assistant.
 */
reasoning?: OpaqueParts, 
/**
 * Images that belong to the text; only from a user.
 */
images?: Array<Image>, };

/**
 * A native tool call of a model.
 */
export type RequestedCall = { 
/**
 * The id that the result names.
 */
id: string, 
/**
 * The name of the tool.
 */
name: string, 
/**
 * The input as JSON text, as the model wrote it. It may be invalid JSON.
 */
arguments: string, };

/**
 * Reasoning of a provider. It goes back unchanged to the same wire, and is never read or shown.
 */
export type OpaqueParts = { 
/**
 * The wire that it came from. Another wire never gets it.
 */
wire: string, 
/**
 * The parts, as the provider sent them.
 */
parts: Array<JsonValue>, 
/**
 * The digest of the request that they answer, if they are valid only after the same conversation.
 */
bound?: Digest, };

/**
 * An image. Copies share the data.
 */
export type Image = { 
/**
 * The format of the image.
 */
mime: ImageType, 
/**
 * The bytes of the file in Base64.
 */
data: string, };

/**
 * A format of images. Most providers with vision take all of them.
 */
export type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

/**
 * What is known about the message that starts a run, besides its payload.
 */
export type InputDetails = { 
/**
 * Whose message it is; absent if that is not known.
 */
user?: string, 
/**
 * When it was made; absent if it was made when the run started.
 */
time?: number, 
/**
 * Its tags.
 */
tags?: Array<string>, };

/**
 * One recorded input.
 */
export type Fact = { "type": "run_started", 
/**
 * When the run started.
 */
at: number, 
/**
 * The id of the run.
 */
runId: RunId, 
/**
 * The session key of the conversation; null if no memory is bound.
 */
session: string | null, 
/**
 * The message that started the run.
 */
message: { [key: string]: JsonValue }, 
/**
 * The agent with every reference resolved.
 */
spec: AgentSpec, 
/**
 * Who started the run; absent if it is unknown.
 */
by?: Principal, 
/**
 * Whose message it is, when it was made, and its tags; absent if nothing is known.
 */
input?: InputDetails, } | { "type": "memory_recalled", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, 
/**
 * The messages, oldest first.
 */
turns: Array<ChatMessage>, 
/**
 * What the messages come from, apart from the conversation; the best first.
 */
sources?: Array<Source>, } | { "type": "memory_failed", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, 
/**
 * Why it failed.
 */
error: Failure, } | { "type": "memory_cleared", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, } | { "type": "memory_appended", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, } | { "type": "images_fetched", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, 
/**
 * The images, in the order of their addresses.
 */
images: Array<Image>, } | { "type": "images_failed", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, 
/**
 * Why it failed.
 */
error: Failure, } | { "type": "model_answered", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, 
/**
 * The answer.
 */
answer: ModelAnswer, } | { "type": "model_failed", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, 
/**
 * Why it failed.
 */
error: Failure, } | { "type": "tool_returned", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, 
/**
 * The result.
 */
result: ToolResult, 
/**
 * How often the tool was tried, if not once: 0 if the call was refused.
 */
tries?: number, } | { "type": "tool_outcome_unknown", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, 
/**
 * Why the outcome is unknown.
 */
reason: string, } | { "type": "outcome_resolved", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, 
/**
 * The outcome.
 */
result: ToolResult, } | { "type": "budget_reached", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * The effect that it answers.
 */
effect: EffectId, 
/**
 * The number of the budget that was reached.
 */
budget: BudgetKind, 
/**
 * The limit.
 */
limit: number, 
/**
 * What the run has spent.
 */
spent: number, } | { "type": "cancel_requested", 
/**
 * When the fact became known.
 */
at: number, 
/**
 * Who cancels, or why.
 */
reason: string, } | { "type": "deadline_reached", 
/**
 * When the fact became known.
 */
at: number, };

/**
 * The answer of a model, with its cost.
 */
export type ModelAnswer = { 
/**
 * The text, unchanged.
 */
text: string, 
/**
 * How the answer ended, as the provider reports it.
 */
finish: ModelFinish, 
/**
 * The tokens used; absent if the provider does not report them.
 */
usage?: Usage, 
/**
 * The native tool calls, in the order of the model.
 */
toolCalls?: Array<RequestedCall>, 
/**
 * Reasoning that the provider wants back unchanged with the next request. Agent Core drops it.
 */
reasoning?: OpaqueParts, 
/**
 * The model that answered, as the provider names it.
 */
model?: string, 
/**
 * The provider's id of the request, for its support.
 */
requestId?: string, 
/**
 * The models that failed or were skipped before this one answered, in their order.
 */
fellOver?: Array<FailedModel>, 
/**
 * The fields of the request that the provider refused, so that the call was made once more without them.
 */
refused?: Array<string>, 
/**
 * The start of the provider's response as it was sent, at most [`MAX_RAW_BYTES`]; only with `debug: true`.
 */
raw?: string, };

/**
 * A model that failed or was skipped, so that the next fallback model was called.
 */
export type FailedModel = { 
/**
 * The model.
 */
model: string, 
/**
 * Why it failed.
 */
code: RunErrorCode, 
/**
 * Whether it was not called, because its window is too small for the conversation.
 */
skipped?: boolean, };

/**
 * How an answer ended.
 */
export type ModelFinish = "stop" | "refused" | "truncated" | "tool_calls";

/**
 * The tokens that a model call used.
 */
export type Usage = { 
/**
 * Tokens that the model read.
 */
inputTokens: number, 
/**
 * Tokens that the model wrote.
 */
outputTokens: number, 
/**
 * The part of `inputTokens` that came from the provider's cache.
 */
cachedTokens?: number, 
/**
 * The part of `inputTokens` that was written into the provider's cache.
 */
cacheWriteTokens?: number, 
/**
 * The part of `outputTokens` that is reasoning and not shown.
 */
reasoningTokens?: number, 
/**
 * The cost, in the currency of the model's price; absent if that is not known.
 */
cost?: number, 
/**
 * Whether the provider reported no tokens, so that they were estimated.
 */
estimated?: boolean, };

/**
 * The result of a tool call. The model reads its JSON without the sources and the images.
 */
export type ToolResult = { 
/**
 * Whether the call succeeded.
 */
success: boolean, 
/**
 * The output, perhaps null; absent if the call failed.
 */
output?: JsonValue, 
/**
 * Why the call failed; absent if it succeeded.
 */
error?: string, 
/**
 * The code of the failure, if the runtime refused or ended the call.
 */
code?: ToolCode, 
/**
 * What the output comes from, the best first. The model does not read it.
 */
sources?: Array<Source>, 
/**
 * Images of the output, at most [`MAX_IMAGES`](crate::transcript::MAX_IMAGES) in a fact. An agent that takes
 * images shows them to its model after the results.
 */
images?: Array<Image>, 
/**
 * What the runtime tells the model about the output, such as that an image was left out.
 */
note?: string, };

/**
 * Where something comes from.
 */
export type SourceKind = "memory" | "knowledge" | "mcp" | "tool" | "document";

/**
 * Who vouches for an entry, from the least to the most.
 */
export type Trust = "external" | "tool" | "agent" | "user" | "operator";

/**
 * Something that a tool result comes from.
 */
export type Source = { 
/**
 * The kind of source.
 */
kind: SourceKind, 
/**
 * Its name. Of a passage: the knowledge base, the document and the number of the passage, such as
 * `manuals/pump.md#2`.
 */
ref: string, 
/**
 * Counts its versions from 1; absent if it has none.
 */
version?: number, 
/**
 * The digest of its text; absent if it is not known.
 */
digest?: Digest, 
/**
 * How well it fits the question, from 0 to 1; absent if nothing was compared.
 */
score?: number, 
/**
 * Who vouches for it.
 */
trust: Trust, };

/**
 * What a consolidation did.
 */
export type Consolidated = { 
/**
 * Entries that are new.
 */
added: number, 
/**
 * Entries that were there already.
 */
confirmed: number, 
/**
 * Entries that a new one has replaced.
 */
superseded: number, 
/**
 * Proposals that were not stored: without a quote, without need, or over a limit.
 */
dropped: number, 
/**
 * Entries among `added` that wait for a review.
 */
quarantined: number, 
/**
 * The tokens that the model used; absent if none was asked.
 */
usage?: Usage, };

/**
 * What was forgotten.
 */
export type Forgotten = { 
/**
 * Entries of long memories.
 */
entries: number, 
/**
 * Conversations of short memories.
 */
conversations: number, 
/**
 * Runs, with their journals, events and chats.
 */
runs: number, };

/**
 * The content of a journal line.
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
 * The strategy of the machine; absent for Agent Core's, `react`.
 */
strategy?: string, 
/**
 * The id of the run.
 */
runId: RunId, 
/**
 * The agent of the run.
 */
agent: NodeRef, 
/**
 * The digest of the plan.
 */
planDigest: Digest, 
/**
 * The run that started this one; absent if none did.
 */
parentRunId?: RunId, 
/**
 * The step of that run; absent if none did.
 */
stepId?: string, } | { "kind": "plan", 
/**
 * The agent and everything it binds.
 */
plan: AgentPlan, } | { "kind": "fact", 
/**
 * The fact.
 */
fact: Fact, } | { "kind": "effect", 
/**
 * The number of the effect.
 */
id: EffectId, 
/**
 * The type of the effect, for people.
 */
effect: string, 
/**
 * The effect class of a tool call, as the engine determined it before the call. After a crash it
 * decides whether the call may be made again. The machine does not know it.
 */
class?: EffectClass, 
/**
 * The digest of the effect.
 */
digest: Digest, } | { "kind": "output", 
/**
 * The digest of the message.
 */
digest: Digest, };

/**
 * One line of a journal.
 */
export type JournalLine = { 
/**
 * The digest of the raw bytes of the line before; zeros in the first line.
 */
prev: Digest, 
/**
 * The content of the line.
 */
record: JournalRecord, };

/**
 * A model to test, or whose server lists its models. It can hold keys, so it has no `Debug`.
 */
export type ModelTestRequest = { 
/**
 * The node type of the model.
 */
type: string, 
/**
 * The properties of the node, as a flow has them; absent to use those of the deployed `node`.
 */
config?: { [key: string]: JsonValue }, 
/**
 * Keys by their names, as the user typed them. They replace those of `node`.
 */
credentials?: { [key in string]: string }, 
/**
 * A deployed node whose keys are used. They go only to the address that the deployed node names.
 */
node?: NodeId, 
/**
 * The Node-RED that has `node`; absent for the flow of the sidecar itself.
 */
instance?: InstanceId, };

/**
 * The test of one model.
 */
export type ModelTest = { 
/**
 * Whether the model answered with a valid action.
 */
ok: boolean, 
/**
 * The node type of the model.
 */
type: string, 
/**
 * The provider, as OpenTelemetry names it.
 */
provider: string, 
/**
 * The model that the request named.
 */
model: string, 
/**
 * The duration of the call, in milliseconds.
 */
durationMs: number, 
/**
 * The tokens used; absent if the provider does not report them.
 */
usage?: Usage, 
/**
 * The model that answered, as the provider names it.
 */
answeredBy?: string, 
/**
 * Why the test failed; absent if it did not.
 */
error?: Failure, 
/**
 * What the request asked for; absent for a model without a server.
 */
sent?: SentRequest, 
/**
 * The beginning of the answer's text, without secrets; absent if there was none.
 */
answer?: string, 
/**
 * The tokens written per second of the call, with the time until the first one.
 */
tokensPerSecond?: number, 
/**
 * Whether the server follows a JSON Schema; absent if that could not be found out.
 */
schema?: SchemaUse, 
/**
 * The program or service that answered; absent if it is not known.
 */
server?: ModelServer, 
/**
 * The most tokens that the model reads and writes; absent if unknown.
 */
contextWindow?: number, 
/**
 * The model that the server has loaded, or the only one that it has; absent if it does not tell.
 */
defaultModel?: string, 
/**
 * What it costs; absent if its price is not known.
 */
price?: ModelPrice, };

/**
 * What a request to a model asks for.
 */
export type SentRequest = { 
/**
 * The address of the request.
 */
address: string, 
/**
 * The model that the request names.
 */
model: string, 
/**
 * The interface of OpenAI that it goes to; absent for other interfaces.
 */
interface?: string, 
/**
 * The interface that requests with tools go to; absent if it is the same.
 */
interfaceForTools?: string, 
/**
 * The fields that the provider has refused, so that the node leaves them out, or asks for less, until the next deploy.
 */
refused?: Array<string>, 
/**
 * The format that it asks the answer to have.
 */
responseFormat: SentFormat, 
/**
 * The most tokens of the answer; absent if the request does not limit them.
 */
maxTokens?: number, };

/**
 * The format that a request asks the answer to have.
 */
export type SentFormat = "json_schema" | "json_object" | "text";

/**
 * Whether a server follows a JSON Schema.
 */
export type SchemaUse = "honoured" | "ignored" | "not_sent";

/**
 * The program or service that a model runs in.
 */
export type ModelServer = "llama.cpp" | "LM Studio" | "vLLM" | "Ollama" | "OpenAI" | "Azure OpenAI" | "Anthropic" | "Google";

/**
 * The models that a server has.
 */
export type ModelList = { 
/**
 * The models, in the order of the server, at most [`MAX_LISTED_MODELS`].
 */
models: Array<ListedModel>, 
/**
 * The program or service that answered; absent if it is not known.
 */
server?: ModelServer, 
/**
 * The model that the server has loaded, or the only one that it has; absent if it does not tell.
 */
defaultModel?: string, };

/**
 * The price of a million tokens.
 */
export type ModelPrice = { 
/**
 * Where the prices come from.
 */
source: PriceSource, 
/**
 * For input tokens.
 */
input: number, 
/**
 * For output tokens.
 */
output: number, 
/**
 * For input tokens from the provider's cache; absent if they cost as much as others.
 */
cached?: number, 
/**
 * For input tokens that the provider's cache stores; absent if they cost as much as others.
 */
cacheWrite?: number, 
/**
 * Other prices for larger requests, the smallest requests first.
 */
tiers?: Array<PriceTier>, };

/**
 * Where the price of a model comes from.
 */
export type PriceSource = "node" | "configuration" | "built_in";

/**
 * The price of a million tokens of a larger request.
 */
export type PriceTier = { 
/**
 * The input tokens of a request above which these prices hold, for the whole request.
 */
above: number, 
/**
 * For input tokens.
 */
input: number, 
/**
 * For output tokens.
 */
output: number, 
/**
 * For input tokens from the provider's cache; absent if they cost as much as others.
 */
cached?: number, 
/**
 * For input tokens that the provider's cache stores; absent if they cost as much as others.
 */
cacheWrite?: number, };

/**
 * A model, and what it can do.
 */
export type ModelDescription = { 
/**
 * The provider, as OpenTelemetry names it.
 */
provider: string, 
/**
 * The model that requests name; empty if the server chooses.
 */
name: string, 
/**
 * Scheme, host and port of its server; absent for a model without a server.
 */
server?: string, 
/**
 * Whether it takes tools natively.
 */
tools: boolean, 
/**
 * Whether it takes images.
 */
vision: boolean, 
/**
 * Whether it can stream its answer.
 */
streaming: boolean, 
/**
 * The most tokens it reads; absent if unknown.
 */
contextWindow?: number, 
/**
 * The most tokens it writes; absent if unknown.
 */
maxOutput?: number, 
/**
 * What it costs; absent if its price is not known.
 */
price?: ModelPrice, };

/**
 * A model node of a deployed flow.
 */
export type DeployedModel = { 
/**
 * The id, type and name of the node.
 */
node: NodeSummary, 
/**
 * The id of its tab or subflow.
 */
tab: NodeId, 
/**
 * The Node-RED that has it; absent for the sidecar's own flow.
 */
instance?: InstanceId, 
/**
 * The first agents that bind it, also those that cannot run.
 */
agents: Array<NodeSummary>, 
/**
 * How many more agents bind it.
 */
omittedAgents: number, 
/**
 * What it is and can do; absent if it cannot be built.
 */
model?: ModelDescription, 
/**
 * Why it cannot be built, and so not be tested; absent if it can.
 */
problem?: string, };

/**
 * The models of the sidecar's own flow, then those of each Node-RED.
 */
export type DeployedModelList = { 
/**
 * The models.
 */
models: Array<DeployedModel>, 
/**
 * How many more there are.
 */
omitted: number, };

/**
 * A model that a server has.
 */
export type ListedModel = { 
/**
 * The name that requests use.
 */
id: string, 
/**
 * The most tokens that it reads and writes; absent if the server does not tell.
 */
contextWindow?: number, };

/**
 * A run in a list.
 */
export type RunSummary = { 
/**
 * The id of the run.
 */
runId: RunId, 
/**
 * The agent of the run.
 */
agent: NodeRef, 
/**
 * The agent's name; empty if it has none.
 */
name: string, 
/**
 * The status of the run.
 */
status: RunStatus, 
/**
 * Why it failed; absent if it did not.
 */
code?: RunErrorCode, 
/**
 * The call whose outcome the run waits for, the oldest of several; absent if it waits for none.
 */
waiting?: WaitingCall, 
/**
 * All calls whose outcome the run waits for, if there are several; the oldest comes first.
 */
questions?: Array<WaitingCall>, 
/**
 * When it started.
 */
startedAt: number, 
/**
 * When it ended; absent if it has not.
 */
endedAt?: number, 
/**
 * Whether its result is delivered.
 */
delivered: boolean, 
/**
 * The file of its flow, to find the flow when the run is resumed; absent if the flow came from no file.
 */
source?: string, 
/**
 * Whether a computation of the run held its process, so that no start resumes it. See `RUN_HUNG`.
 */
hung?: boolean, 
/**
 * Who started it; absent if it is unknown.
 */
by?: Principal, 
/**
 * What it has used, once it has ended or waits; absent before, and if an earlier version ended it.
 */
tally?: RunTally, 
/**
 * The run that started it, or whose message did; absent if none did.
 */
parent?: RunId, 
/**
 * The number of runs that it has started; absent if there are none.
 */
children?: number, };

/**
 * The status of a run.
 */
export type RunStatus = "running" | "interrupted" | "waiting" | "completed" | "stopped" | "failed" | "damaged";

/**
 * A call whose outcome is unknown.
 */
export type WaitingCall = { 
/**
 * The id of the call.
 */
callId: CallId, 
/**
 * The name of the tool.
 */
tool: string, 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * When the machine asked for the call.
 */
askedAt: number, 
/**
 * The input of the call.
 */
input: { [key: string]: JsonValue }, };

/**
 * A request that another process makes about a run.
 */
export type RunRequest = { "type": "cancel", 
/**
 * Who cancels, or why.
 */
reason: string, } | { "type": "resolve", 
/**
 * The call. The outcome is never used for another call.
 */
callId: CallId, 
/**
 * The outcome.
 */
result: ToolResult, };

/**
 * One chat message.
 */
export type ChatItem = { 
/**
 * Identifies the message in its chat. A second message with the same id is ignored.
 */
id: string, 
/**
 * Who wrote the message.
 */
type: ChatSpeaker, 
/**
 * The text.
 */
content: string, 
/**
 * When it was written.
 */
timestamp: number, 
/**
 * The run that wrote it; absent for a person's message.
 */
traceId?: RunId, 
/**
 * The iteration of that run.
 */
iteration?: number, };

/**
 * Who wrote a chat message.
 */
export type ChatSpeaker = "user" | "agent";

/**
 * Sends a chat message to an agent.
 */
export type ChatSend = { 
/**
 * The text.
 */
message: string, 
/**
 * The message as the chat window shows it, a ChatItem. Only its `id` is read; the sidecar makes one if
 * it is absent.
 */
chatMessage?: JsonValue, 
/**
 * Images as data URLs, at most four. They become `msg.images`; the history of the chat does not keep them.
 */
images?: Array<string>, };

/**
 * The answer to a chat request.
 */
export type ChatSent = { 
/**
 * Always true.
 */
success: boolean, 
/**
 * A sentence for people.
 */
message: string, 
/**
 * The agent that received the message; absent if no agent was needed.
 */
agentCoreId?: NodeId, };

/**
 * The messages of a chat, oldest first.
 */
export type ChatHistory = { 
/**
 * The chat node.
 */
nodeId: NodeId, 
/**
 * The messages.
 */
history: Array<ChatItem>, 
/**
 * The number of messages.
 */
count: number, };

/**
 * One event of one run.
 */
export type RunEvent = { 
/**
 * The run that the event belongs to.
 */
runId: RunId, 
/**
 * The number of the event in its run: from 1, without gaps.
 */
seq: number, 
/**
 * When it happened.
 */
at: number, 
/**
 * The agent of the run.
 */
agent: NodeRef, 
/**
 * What happened.
 */
event: RunEventKind, };

/**
 * The kinds of run events.
 */
export type RunEventKind = { "type": "run_started", 
/**
 * The agent's name; empty if it has none.
 */
name: string, 
/**
 * The most model calls of the run.
 */
maxIterations: number, 
/**
 * The names of the tools that the model may call.
 */
tools: Array<string>, 
/**
 * Who started the run; absent if it is unknown.
 */
by?: Principal, } | { "type": "memory_recalled", 
/**
 * The number of messages it returned.
 */
messages: number, 
/**
 * What they come from, apart from the conversation; the best first.
 */
sources?: Array<Source>, } | { "type": "memory_cleared", } | { "type": "memory_failed", 
/**
 * Why it failed.
 */
error: Failure, } | { "type": "images_fetched", 
/**
 * The number of images.
 */
images: number, } | { "type": "summarised", 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The number of messages that it replaced.
 */
messages: number, 
/**
 * The tokens used; absent if unknown.
 */
usage?: Usage, } | { "type": "concluding", 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * Why.
 */
reason: ConclusionReason, } | { "type": "model_called", 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The start of what is new to the model in this run: the input, then the tool's result. Only with
 * `debug: true`.
 */
preview?: string, } | { "type": "model_answered", 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The kind of the action.
 */
action: ActionKind, 
/**
 * The name of the tool; absent for a final answer, and if there are several.
 */
tool?: string, 
/**
 * The names of the tools, if the answer calls several.
 */
tools?: Array<string>, 
/**
 * The confidence of the model; absent if it gave none.
 */
confidence?: number, 
/**
 * The duration of the call, in milliseconds.
 */
durationMs: number, 
/**
 * The tokens used; absent if unknown.
 */
usage?: Usage, 
/**
 * The fields of the request that the provider refused, so that the call was made once more without them.
 */
refused?: Array<string>, 
/**
 * The start of the answer; only with `debug: true`.
 */
preview?: string, } | { "type": "model_fell_over", 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The model that failed.
 */
model: string, 
/**
 * Why it failed.
 */
code: RunErrorCode, } | { "type": "budget_low", 
/**
 * The number of the budget.
 */
budget: BudgetKind, 
/**
 * The limit.
 */
limit: number, 
/**
 * What the run has spent.
 */
spent: number, } | { "type": "budget_reached", 
/**
 * The number of the budget.
 */
budget: BudgetKind, 
/**
 * The limit.
 */
limit: number, 
/**
 * What the run has spent.
 */
spent: number, } | { "type": "tool_called", 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The name of the tool.
 */
tool: string, 
/**
 * The id in the registry; absent for a tool that is a node of its own.
 */
id?: string, 
/**
 * The id of the call.
 */
callId: CallId, 
/**
 * The start of the input; only with `debug: true`.
 */
preview?: string, } | { "type": "tool_returned", 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The name of the tool.
 */
tool: string, 
/**
 * The id in the registry; absent for a tool that is a node of its own.
 */
id?: string, 
/**
 * The id of the call.
 */
callId: CallId, 
/**
 * Whether the call succeeded.
 */
success: boolean, 
/**
 * Why it failed; absent if it succeeded.
 */
error?: string, 
/**
 * The code of the failure; absent if it has none.
 */
code?: ToolCode, 
/**
 * How often the tool was tried, if not once: 0 if the call was refused.
 */
tries?: number, 
/**
 * The duration of the call, in milliseconds.
 */
durationMs: number, 
/**
 * The start of the output; only with `debug: true`.
 */
preview?: string, 
/**
 * What the output comes from, the best first.
 */
sources?: Array<Source>, 
/**
 * The bytes of each image that the model gets.
 */
imageBytes?: Array<number>, } | { "type": "waiting_for_outcome", 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The name of the tool.
 */
tool: string, 
/**
 * The id of the call.
 */
callId: CallId, 
/**
 * Why the outcome is unknown.
 */
reason: string, } | { "type": "run_finished", 
/**
 * True only after a `final` action.
 */
completed: boolean, 
/**
 * Why it ended.
 */
stopReason: StopReason, 
/**
 * The number of iterations that were started.
 */
iterations: number, 
/**
 * The time from start to end, in milliseconds.
 */
durationMs: number, 
/**
 * What the run has used; absent if an earlier version wrote the event.
 */
tally?: RunTally, 
/**
 * The error; absent if the run did not fail.
 */
error?: RunError, };

/**
 * Why an agent for one thing must finish.
 */
export type ConclusionReason = "tokens" | "iterations";

/**
 * An event of the flow around the runs.
 */
export type FlowEvent = { "type": "debug", 
/**
 * The debug node.
 */
node: NodeSummary, 
/**
 * The property that is shown; `msg` for the whole message.
 */
property: string, 
/**
 * The value of the property.
 */
value: JsonValue, } | { "type": "chat", 
/**
 * The chat node.
 */
node: NodeSummary, 
/**
 * The message.
 */
item: ChatItem, 
/**
 * How many messages the node keeps.
 */
keeps: number, } | { "type": "reply_dropped", 
/**
 * The agent that it arrived at.
 */
node: NodeSummary, 
/**
 * Why it was dropped.
 */
reason: string, } | { "type": "tool_invoked", 
/**
 * The call.
 */
call: ToolInvocation, } | { "type": "deployed", 
/**
 * The revision of that flow.
 */
revision: string, 
/**
 * The number of agents in it.
 */
agents: number, 
/**
 * How many of these agents are refused.
 */
refused: number, 
/**
 * The Node-RED that owns the flow; absent for the sidecar's own flow.
 */
instance?: InstanceId, } | { "type": "checked", 
/**
 * The address of that Node-RED.
 */
source: string, 
/**
 * The revision of the flow, as Node-RED names it.
 */
revision: string, 
/**
 * The number of errors.
 */
errors: number, 
/**
 * The number of warnings.
 */
warnings: number, } | { "type": "needs_node_red", 
/**
 * The node where it stopped.
 */
node: NodeSummary, } | { "type": "memory_cleared", 
/**
 * The agent that deleted it.
 */
node: NodeSummary, } | { "type": "memory_consolidated", 
/**
 * The memory.
 */
node: NodeSummary, 
/**
 * What it did.
 */
consolidated: Consolidated, 
/**
 * Why it failed; absent if it succeeded. What it did before is kept.
 */
error?: Failure, } | { "type": "memory_forgotten", 
/**
 * What was removed.
 */
forgotten: Forgotten, } | { "type": "erased", } | { "type": "uncaught", 
/**
 * The node that failed.
 */
node: NodeSummary, 
/**
 * The error as `msg.error` has it.
 */
error: MessageError, } | { "type": "chain_cut", 
/**
 * The agent that was not started again.
 */
node: NodeSummary, 
/**
 * The limit that was reached.
 */
limit: number, };

/**
 * How a run ended.
 */
export type Ending = { "type": "completed" } | { "type": "stopped" } | { "type": "failed", 
/**
 * The code of the error.
 */
code: RunErrorCode, };

/**
 * A call of an operation as a message of its node.
 */
export type OperationCall = { 
/**
 * The properties of the message that the node receives.
 */
msg: { [key: string]: JsonValue }, 
/**
 * The property of the returned message that is the result, such as `payload` or `payload.id`.
 */
result: string, };

/**
 * The result of a replay.
 */
export type ReplayReport = { 
/**
 * Whether the machine did exactly what the journal records.
 */
equal: boolean, 
/**
 * Whether the journal contains the end of the run.
 */
complete: boolean, 
/**
 * The id of the run; null if the header could not be read.
 */
runId: RunId | null, 
/**
 * The number of facts that were replayed.
 */
facts: number, 
/**
 * The number of effects that were compared and equal.
 */
effects: number, 
/**
 * How the run ended; null if it did not.
 */
outcome: Ending | null, 
/**
 * The first difference; null if there is none.
 */
difference: Difference | null, 
/**
 * Why only a part of the journal could be read. Then the report is about the part before the damage.
 */
problem?: StoreProblem, };

/**
 * The first wrong place in a journal.
 */
export type Difference = { 
/**
 * The number of the line, from 1.
 */
line: number, 
/**
 * The kind of the difference.
 */
what: DifferenceKind, 
/**
 * What the journal contains, in short.
 */
recorded?: string, 
/**
 * What the journal should contain, in short.
 */
replayed?: string, 
/**
 * The difference in one sentence.
 */
message: string, };

/**
 * The kinds of differences.
 */
export type DifferenceKind = "too_large" | "unreadable" | "not_canonical" | "chain" | "header" | "plan" | "version" | "fact" | "effect" | "output" | "extra" | "incomplete";

/**
 * A tool call that a journal records.
 */
export type CallRecord = { 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The id of the call.
 */
callId: CallId, 
/**
 * The name of the tool.
 */
tool: string, 
/**
 * The input of the call.
 */
input: { [key: string]: JsonValue }, 
/**
 * The result; null while it is unknown.
 */
result: ToolResult | null, 
/**
 * The id of the tool in the registry; absent for a tool that is a node of its own.
 */
id?: string, 
/**
 * The effect class of the call; absent if it is not recorded.
 */
effect?: EffectClass, 
/**
 * When the run asked for the call; absent if it is not recorded.
 */
startedAt?: number, 
/**
 * The time until the result was known, in milliseconds; absent while it is unknown.
 */
durationMs?: number, 
/**
 * How often the tool was tried: 0 if the call was refused. Absent while it is unknown, and if a person gave
 * the outcome.
 */
tries?: number, };

/**
 * Everything that the journal of a run contains.
 */
export type RunDetail = { 
/**
 * The run as a list shows it.
 */
summary: RunSummary, 
/**
 * The events of the run, oldest first.
 */
events: Array<RunEvent>, 
/**
 * The tool calls with their results, oldest first.
 */
calls: Array<CallRecord>, 
/**
 * The message that left the result port; null if the run has not ended.
 */
result: { [key: string]: JsonValue } | null, 
/**
 * The beginning of the model's answer that ended the run because it was refused; absent if none did.
 */
refusedAnswer?: string, 
/**
 * Where the journal is wrong; absent if it is not.
 */
difference?: Difference, 
/**
 * Why the journal is not complete; absent if it is.
 */
problem?: StoreProblem, };

/**
 * What is wrong with a stored run.
 */
export type StoreProblem = { 
/**
 * The code of the problem.
 */
code: StoreCode, 
/**
 * The problem in one sentence.
 */
message: string, };

/**
 * A durable event.
 */
export type StreamEvent = { "kind": "run", 
/**
 * The event.
 */
event: RunEvent, } | { "kind": "flow", 
/**
 * When it happened.
 */
at: number, 
/**
 * The event.
 */
event: FlowEvent, };

/**
 * A piece of a model's answer. Deltas are never stored; the run's `model_answered` event replaces them.
 */
export type ModelDelta = { 
/**
 * The run that called the model.
 */
runId: RunId, 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The attempt of the call, from 1. A retried call starts its answer again.
 */
attempt: number, 
/**
 * The piece of text.
 */
text: string, };

/**
 * `msg.stream` of a message that leaves an agent's stream port. Such messages are never stored: a missed one is
 * lost, and the result has the whole answer.
 */
export type StreamPart = { 
/**
 * What the payload is.
 */
type: StreamPartKind, 
/**
 * The run that sends it.
 */
runId: RunId, 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The attempt of the model call, from 1. A higher one begins the text of the iteration again.
 */
attempt: number, 
/**
 * The number of the message in its run, from 1, without gaps unless one was lost.
 */
seq: number, };

/**
 * What the payload of a message from a stream port is.
 */
export type StreamPartKind = "text" | "tool" | "end";

/**
 * A message from a reader to the sidecar.
 */
export type EventsRequest = { "type": "subscribe", 
/**
 * Every event after this cursor; `"0"` for every stored event; absent for new events only.
 */
after?: string, 
/**
 * Only events of these runs; absent for every event.
 */
runs?: Array<RunId>, 
/**
 * Only events of these types, such as `tool_returned`; absent for every type. Deltas are no events.
 */
types?: Array<string>, 
/**
 * Whether to send deltas too.
 */
deltas?: boolean, } | { "type": "ping", 
/**
 * Comes back in the `pong`.
 */
id: string, };

/**
 * A message from the sidecar to a reader.
 */
export type EventsMessage = { "type": "hello", 
/**
 * The version of the sidecar.
 */
version: string, 
/**
 * The cursor of the newest event.
 */
cursor: string, } | { "type": "event", 
/**
 * The cursor of this event.
 */
cursor: string, 
/**
 * The event.
 */
event: StreamEvent, } | { "type": "caught_up", 
/**
 * The cursor of the last event.
 */
cursor: string, } | { "type": "delta", 
/**
 * The piece.
 */
delta: ModelDelta, } | { "type": "pong", 
/**
 * The id of the `ping`.
 */
id: string, } | { "type": "closing", 
/**
 * The code of the reason.
 */
code: ProblemCode, 
/**
 * What happened and what to do about it.
 */
message: string, 
/**
 * Events after this cursor may not have arrived; absent without a subscription. A reader that has
 * received later events continues after the last of them.
 */
cursor?: string, };

/**
 * A message to the UI.
 */
export type ObservabilityEvent = { "event": "connected", 
/**
 * When it was sent.
 */
ts: number, 
/**
 * A sentence for people.
 */
message: string, } | { "event": "heartbeat", 
/**
 * When it was sent.
 */
ts: number, 
/**
 * The number of open sockets.
 */
connections: number, } | { "event": "pong", 
/**
 * When it was sent.
 */
ts: number, } | { "event": "frame:start", 
/**
 * When it was sent.
 */
ts: number, 
/**
 * The id of the frame.
 */
frameId: string, 
/**
 * The details.
 */
data: FrameStart, } | { "event": "node:input", 
/**
 * When it was sent.
 */
ts: number, 
/**
 * The id of the frame.
 */
frameId: string, 
/**
 * The id of the node.
 */
nodeId: NodeId, 
/**
 * The details.
 */
data: NodeInput, } | { "event": "node:output", 
/**
 * When it was sent.
 */
ts: number, 
/**
 * The id of the frame; absent for what a deploy reports about a node, and for what a new socket missed.
 */
frameId?: string, 
/**
 * The id of the node.
 */
nodeId: NodeId, 
/**
 * The details.
 */
data: NodeOutput, } | { "event": "node:error", 
/**
 * When it was sent.
 */
ts: number, 
/**
 * The id of the frame; absent for what a deploy reports about a node.
 */
frameId?: string, 
/**
 * The id of the node.
 */
nodeId: NodeId, 
/**
 * The details.
 */
data: NodeError, } | { "event": "frame:end", 
/**
 * When it was sent.
 */
ts: number, 
/**
 * The id of the frame.
 */
frameId: string, 
/**
 * The details.
 */
data: FrameEnd, };

/**
 * The start of a frame.
 */
export type FrameStart = { 
/**
 * The id of the frame.
 */
id: string, 
/**
 * When the cascade started.
 */
startedAt: number, 
/**
 * The node that was started; absent if the cascade started before a UI was connected.
 */
triggerNodeId?: NodeId, };

/**
 * A message that a node received.
 */
export type NodeInput = { 
/**
 * The id of the node.
 */
nodeId: NodeId, 
/**
 * The type of the node.
 */
nodeType: string, 
/**
 * The message.
 */
input: IoEvent | null, 
/**
 * Always true: no message is left out.
 */
sampled: boolean, };

/**
 * A message that a node sent.
 */
export type NodeOutput = { 
/**
 * The id of the node.
 */
nodeId: NodeId, 
/**
 * The type of the node.
 */
nodeType: string, 
/**
 * At most one message, or the value that a debug node shows. The UI goes by the position in this list, not by
 * the port.
 */
outputs: Array<IoEvent>, 
/**
 * What the node did with its input.
 */
semantics?: NodeSemantics, 
/**
 * How long the node took.
 */
timing?: NodeTiming, 
/**
 * False for an answer on port 4 that no chat shows. The UI reads the history of the chat after every other
 * answer, and would show an old one.
 */
sampled?: boolean, };

/**
 * The error of a node.
 */
export type NodeError = { 
/**
 * The id of the node.
 */
nodeId: NodeId, 
/**
 * The type of the node.
 */
nodeType: string, 
/**
 * The code and text of the error.
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
 * The code of the error.
 */
code: string, 
/**
 * The name of the node that failed; absent if it has none.
 */
node?: string, };

/**
 * The end of a frame.
 */
export type FrameEnd = { 
/**
 * The id of the frame.
 */
id: string, 
/**
 * When the cascade ended.
 */
endedAt: number, 
/**
 * The counts of the frame.
 */
stats: FrameStats, };

/**
 * The counts of a frame.
 */
export type FrameStats = { 
/**
 * The number of nodes that took part.
 */
nodeCount: number, 
/**
 * The number of messages that were sent.
 */
outputsEmitted: number, 
/**
 * The number of nodes that wait for a person.
 */
filteredNodes: number, 
/**
 * The number of nodes that failed.
 */
erroredNodes: number, 
/**
 * The time from start to end, in milliseconds.
 */
durationMs: number, };

/**
 * A message that was received or sent.
 */
export type IoEvent = { 
/**
 * Received or sent.
 */
direction: IoDirection, 
/**
 * The output port; absent for a received message.
 */
port?: number, 
/**
 * When it was received or sent.
 */
timestamp: number, 
/**
 * The start of its payload.
 */
payload: PayloadPreview, };

/**
 * Received or sent.
 */
export type IoDirection = "input" | "output";

/**
 * The start of a payload. Values with secret names are hidden, and so is every secret of the flow.
 */
export type PayloadPreview = { 
/**
 * The part that is shown.
 */
preview: JsonValue, 
/**
 * The JavaScript type, or `array`, or `null`.
 */
type: string, 
/**
 * The approximate size of the whole payload, in bytes.
 */
size: number, 
/**
 * Whether the preview leaves something out.
 */
truncated: boolean, 
/**
 * The `agentResult` of an agent's message, on ports 3 and 4.
 */
agentResult?: JsonValue, 
/**
 * The whole text of an agent's message, on port 4.
 */
fullMessage?: string, 
/**
 * The whole answer of a model.
 */
completePayload?: JsonValue, };

/**
 * What a node did with its input.
 */
export type NodeSemantics = { 
/**
 * The role of the node in the frame.
 */
role: NodeRole, 
/**
 * What it did with the message.
 */
behavior: NodeBehavior, };

/**
 * The role of a node in a frame.
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
 * When it received the message.
 */
receivedAt?: number, 
/**
 * When it sent the next message.
 */
sentAt: number, 
/**
 * The time between the two, in milliseconds.
 */
durationMs?: number, };

/**
 * What a token allows. Every scope includes `read`; `admin` includes all scopes.
 */
export type Scope = "read" | "run" | "deploy" | "admin";

/**
 * A code of any set that an answer may carry.
 */
export type ProblemCode = ApiCode | StoreCode | RunErrorCode | ArchiveCode;

/**
 * Why a request failed. Every error answer has this form.
 */
export type ApiError = { 
/**
 * The code; `redflow explain CODE` has a page on it.
 */
code: ProblemCode, 
/**
 * What happened and what to do about it.
 */
message: string, 
/**
 * Every problem of the flow; only with `FLOW_REFUSED`.
 */
report?: CheckReport, 
/**
 * The revision of the active flow; only with `REVISION_CONFLICT`.
 */
revision?: string, };

/**
 * The active flow, by its tabs.
 */
export type FlowList = { 
/**
 * The revision of the active flow: an opaque string.
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
 * The node id of the tab or subflow.
 */
id: NodeId, 
/**
 * `tab` or `subflow`.
 */
type: string, 
/**
 * The name its owner gave it.
 */
label: string, 
/**
 * Whether it is disabled.
 */
disabled: boolean, 
/**
 * The number of nodes on it.
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
 * The id, type and name of the agent.
 */
node: NodeSummary, 
/**
 * Whether it can run. If not, it answers every message with an error.
 */
ready: boolean, 
/**
 * The problems that refuse it; empty if it can run.
 */
problems: Array<Diagnostic>, 
/**
 * The memory of its conversations; absent if it has none or cannot run.
 */
memory?: NodeSummary, };

/**
 * Nodes of the deployed flow, without credentials.
 */
export type Deployment = { 
/**
 * The revision of the active flow: an opaque string.
 */
revision: string, 
/**
 * The nodes, as Node-RED writes them.
 */
flows: Array<JsonValue>, };

/**
 * Replaces the active flow.
 */
export type DeployRequest = { 
/**
 * The flow, in any shape that Node-RED or Redflow writes. Nodes may carry `credentials`, which are
 * stored apart and encrypted. A node without `credentials` keeps the ones it has.
 */
flows: JsonValue, 
/**
 * The revision this flow was made from. If another revision is active by now, nothing is deployed.
 */
revision?: string, 
/**
 * Deploy even if another revision is active by now.
 */
force?: boolean, };

/**
 * The answer to a deploy.
 */
export type DeployAnswer = { 
/**
 * The revision of the new active flow.
 */
revision: string, 
/**
 * The warnings and notes of the checker.
 */
report: CheckReport, };

/**
 * Checks a flow and changes nothing.
 */
export type CheckRequest = { 
/**
 * The flow, in any shape that Node-RED or Redflow writes.
 */
flows: JsonValue, 
/**
 * How strictly agents are read; absent for the server's own setting.
 */
profile?: Profile, 
/**
 * Whether the answer has a drawing of the flow.
 */
graph?: boolean, 
/**
 * The tab or subflow to draw; absent for the first tab.
 */
tab?: NodeId, };

/**
 * Starts an agent, or fires an inject node.
 */
export type StartRequest = { 
/**
 * The agent or inject node. May be absent if the flow has one agent, or one agent that inject nodes are
 * wired to.
 */
node?: NodeId, 
/**
 * The payload. An agent needs one; an inject node has its own.
 */
payload?: JsonValue, 
/**
 * Images for `msg.images`, at most four: data URLs or https addresses. Only for an agent with a payload.
 */
images?: Array<string>, 
/**
 * Whether to answer only when the whole cascade of this start has ended.
 */
wait?: boolean, };

/**
 * The runs that a start caused. Each is stored and survives a crash.
 */
export type StartAnswer = { 
/**
 * The runs, in the order they started.
 */
runs: Array<StartedRun>, };

/**
 * A run that a start caused.
 */
export type StartedRun = { 
/**
 * The id of the run.
 */
runId: RunId, 
/**
 * The agent that runs.
 */
agent: NodeSummary, 
/**
 * The status at the time of the answer.
 */
status: RunStatus, 
/**
 * Why the agent did not start; absent if it did. Such a run is not stored.
 */
refused?: RunError, 
/**
 * The call whose outcome the run waits for; absent if it waits for none.
 */
waiting?: WaitingCall, 
/**
 * The message that left the result port; only if the run has ended and the start waited for it.
 */
result?: { [key: string]: JsonValue }, };

/**
 * A page of runs, newest first.
 */
export type RunList = { 
/**
 * The runs of this page.
 */
runs: Array<RunSummary>, 
/**
 * Pass it as `before` to get the next page; absent on the last page.
 */
next?: RunId, 
/**
 * When the last run started that was looked at, if the search stopped there. Older runs may match: go on with
 * `next`.
 */
searchedTo?: number, };

/**
 * Cancels a run.
 */
export type CancelRequest = { 
/**
 * Who cancels, or why; becomes part of the run's error.
 */
reason?: string, };

/**
 * Gives the outcome of the call that a run waits for.
 */
export type ResolveRequest = { 
/**
 * The call. The outcome is never used for another call.
 */
callId: CallId, 
/**
 * The outcome of the call.
 */
result: ToolResult, };

/**
 * A code and what it means.
 */
export type CodeEntry = { 
/**
 * The code as text.
 */
code: string, 
/**
 * Where the code occurs.
 */
set: CodeSet, 
/**
 * What it means, in one line.
 */
summary: string, 
/**
 * The section of the code in the documentation, in Markdown; only in the answer for one code.
 */
page?: string, 
/**
 * What to do about it, in Markdown: the part "How to fix it" of the section. Only in the answer for one
 * code.
 */
mend?: string, };

/**
 * Where a code occurs.
 */
export type CodeSet = "diagnostic" | "run" | "tool" | "store" | "archive" | "api";

/**
 * Whether the sidecar is healthy.
 */
export type Health = { 
/**
 * Always true: the sidecar answers.
 */
live: boolean, 
/**
 * Whether it takes work: it has an active flow and does not stop.
 */
ready: boolean, 
/**
 * The version of the sidecar.
 */
version: string, };

/**
 * A link that signs in one browser.
 */
export type SignInCode = { 
/**
 * The path to open, with the one-time code in it.
 */
path: string, 
/**
 * When the code expires.
 */
expiresAt: number, };

/**
 * A page of the console that this sidecar serves. A page without a word here does not exist.
 */
export type Feature = "home" | "runs" | "inbox" | "flow" | "check" | "usage" | "models" | "tools" | "mcp" | "knowledge" | "memory" | "settings";

/**
 * Who is signed in, and what this sidecar offers.
 */
export type Session = { 
/**
 * The name of the token, or of the token that opened the session.
 */
name: string, 
/**
 * What it allows. Scopes that another one includes are listed too.
 */
scopes: Array<Scope>, 
/**
 * The pages of the console.
 */
features: Array<Feature>, 
/**
 * The version of the sidecar.
 */
version: string, };

/**
 * Signs a browser in with a token.
 */
export type SignInRequest = { 
/**
 * The token.
 */
token: string, };

/**
 * A text that may be cut.
 */
export type CutText = { 
/**
 * The text, or its beginning.
 */
text: string, 
/**
 * The bytes of the whole text; absent if `text` is the whole.
 */
bytes?: number, };

/**
 * What happened in one iteration of a run, with its texts.
 */
export type IterationDetail = { 
/**
 * The number of the iteration, from 1.
 */
iteration: number, 
/**
 * When the model was called; absent if it was not.
 */
calledAt?: number, 
/**
 * The time until the answer was known, in milliseconds; absent while there is none.
 */
durationMs?: number, 
/**
 * What is new to the model: the input in the first iteration, then the results of tools.
 */
prompt: CutText, 
/**
 * The answer of the model with its tool calls; absent while there is none.
 */
answer?: CutText, 
/**
 * The confidence of the answer; absent if it has none.
 */
confidence?: number, 
/**
 * The model that answered, as its provider names it; absent if it is not recorded.
 */
model?: string, 
/**
 * The provider's id of the request; absent if it sent none.
 */
requestId?: string, 
/**
 * The tokens and the cost; absent if the provider reports none.
 */
usage?: Usage, 
/**
 * The models that failed before this answer.
 */
fellOver?: Array<FailedModel>, 
/**
 * The fields of the request that the provider refused, so that the call was made once more without them.
 */
refused?: Array<string>, 
/**
 * The tool calls, oldest first. A call that was not made is not in the journal.
 */
calls: Array<CallDetail>, 
/**
 * The payload that left the agent, if the run ended in this iteration.
 */
output?: CutText, 
/**
 * The start of the provider's response as it was sent; absent without `debug` on the agent.
 */
raw?: CutText, };

/**
 * A tool call of an iteration, with its texts.
 */
export type CallDetail = { 
/**
 * The id of the call.
 */
callId: CallId, 
/**
 * The name of the tool.
 */
tool: string, 
/**
 * The id of the tool in the registry; absent for a tool that is a node of its own.
 */
id?: string, 
/**
 * The effect class of the call; absent if it is not recorded.
 */
effect?: EffectClass, 
/**
 * When the run asked for the call; absent if it is not recorded.
 */
startedAt?: number, 
/**
 * The time until the result was known, in milliseconds; absent while it is unknown.
 */
durationMs?: number, 
/**
 * How often the tool was tried; absent while it is unknown, and if a person gave the outcome.
 */
tries?: number, 
/**
 * The input.
 */
input: CutText, 
/**
 * Whether the call succeeded; absent while it is unknown.
 */
success?: boolean, 
/**
 * The output, or why the call failed; absent while it is unknown.
 */
result?: CutText, };

/**
 * Lines of a journal.
 */
export type JournalPage = { 
/**
 * The number of the first line, from 1.
 */
from: number, 
/**
 * The lines, each as it is stored.
 */
lines: Array<string>, 
/**
 * The bytes of the only line, if it is longer than a page, so that `lines` has its beginning; absent if all
 * lines are whole.
 */
cut?: number, 
/**
 * All lines of the journal.
 */
total: number, 
/**
 * Pass it as `from` to get the next page; absent on the last page.
 */
next?: number, 
/**
 * Why the journal is not complete; absent if it is.
 */
problem?: StoreProblem, };

/**
 * One step of a run.
 */
export type TraceStep = { 
/**
 * The number of the step, from 1.
 */
number: number, 
/**
 * When it ended.
 */
at: number, 
/**
 * The iteration of the run; 0 before the first model call.
 */
iteration: number, 
/**
 * What happened.
 */
step: TraceStepKind, };

/**
 * What happened in a step.
 */
export type TraceStepKind = { "type": "recall", 
/**
 * The messages it gave.
 */
messages: number, 
/**
 * What they come from, apart from the conversation.
 */
sources?: Array<Source>, 
/**
 * The code of the failure; absent if it succeeded.
 */
code?: RunErrorCode, 
/**
 * The duration, in milliseconds.
 */
durationMs: number, } | { "type": "decide", 
/**
 * The kind of the action; absent if the answer was no valid action.
 */
action?: ActionKind, 
/**
 * The tools that it wants to call.
 */
tools?: Array<string>, 
/**
 * How sure it is, from 0 to 1; absent if it did not say.
 */
confidence?: number, 
/**
 * The model that answered; absent if the provider does not say.
 */
model?: string, 
/**
 * The tokens used; absent if they are not known.
 */
usage?: Usage, 
/**
 * The code of the failure; absent if the model answered.
 */
code?: RunErrorCode, 
/**
 * The start of the answer; only with `debug: true`.
 */
preview?: string, 
/**
 * The duration, in milliseconds.
 */
durationMs: number, } | { "type": "call", 
/**
 * The name of the tool.
 */
tool: string, 
/**
 * The id of the call.
 */
callId: CallId, } | { "type": "return", 
/**
 * The name of the tool.
 */
tool: string, 
/**
 * The id of the call.
 */
callId: CallId, 
/**
 * Whether it succeeded; absent if that is not known.
 */
success?: boolean, 
/**
 * The code of the failure; absent if it has none.
 */
code?: ToolCode, 
/**
 * What the result comes from.
 */
sources?: Array<Source>, 
/**
 * The duration, in milliseconds.
 */
durationMs: number, } | { "type": "append", 
/**
 * The code of the failure; absent if it succeeded.
 */
code?: RunErrorCode, 
/**
 * The duration, in milliseconds.
 */
durationMs: number, } | { "type": "end", 
/**
 * How it ended.
 */
ending: Ending, };

/**
 * The decision trace of a run.
 */
export type RunTrace = { 
/**
 * The run.
 */
runId: RunId, 
/**
 * The steps, in their order.
 */
steps: Array<TraceStep>, 
/**
 * What the run used, each source once.
 */
provenance: Array<Source>, 
/**
 * Whether the run is over. If not, more steps follow.
 */
ended: boolean, };

/**
 * A run below another one.
 */
export type TreeRun = { 
/**
 * The run. Its `parent` is the run above it.
 */
run: RunSummary, 
/**
 * How far it is below the first run, from 1.
 */
depth: number, };

/**
 * The runs that a run has started, and those that they have started.
 */
export type RunTree = { 
/**
 * The runs: each after its parent, those of one parent in the order in which they started.
 */
runs: Array<TreeRun>, 
/**
 * Pass it as `after` to get the next page; absent on the last page.
 */
next?: RunId, };

/**
 * What sums are grouped by.
 */
export type StatsBy = "agent" | "model" | "tool" | "code";

/**
 * Sums of what was used, by UTC day and by one more key.
 */
export type Stats = { 
/**
 * The first day, such as `2026-11-16`.
 */
from: string, 
/**
 * The last day.
 */
to: string, 
/**
 * What the sums are grouped by.
 */
by: StatsBy, 
/**
 * The keys with the largest sums, the largest first. Rows name them by their position.
 */
keys: Array<StatsKey>, 
/**
 * The sums that are not 0, by day and then by key.
 */
rows: Array<StatsRow>, 
/**
 * The time of the oldest failure that was counted, if not all were; only by code.
 */
searchedTo?: number, };

/**
 * A key of sums.
 */
export type StatsKey = { 
/**
 * The id of an agent, the name of a model, the id or the name of a tool, or a code. Empty for all other keys
 * together.
 */
key: string, 
/**
 * The Node-RED of an agent; absent for other keys.
 */
instance?: InstanceId, 
/**
 * The name for people; absent if the key is the name.
 */
name?: string, };

/**
 * The sums of one day and one key.
 */
export type StatsRow = { 
/**
 * The day in UTC.
 */
day: string, 
/**
 * The position of the key in `keys`.
 */
key: number, 
/**
 * Runs that ended. A run with several models counts for the one that answered last. Grouped by tool: 0.
 */
runs: number, 
/**
 * Those of them that failed; grouped by tool, the calls that failed.
 */
failed: number, 
/**
 * Calls of models; grouped by tool, calls of the tool.
 */
calls: number, 
/**
 * Tokens that models read.
 */
inputTokens: number, 
/**
 * Tokens that models wrote.
 */
outputTokens: number, 
/**
 * The part of `inputTokens` that came from providers' caches.
 */
cachedTokens: number, 
/**
 * The cost; absent if no price is known. It has no part for the calls of `unpricedCalls`.
 */
cost?: number, 
/**
 * The answered calls of models whose price is not known; absent if there are none.
 */
unpricedCalls?: number, 
/**
 * The time of the calls, in milliseconds; grouped by code, the time of the runs.
 */
ms: number, };

/**
 * The answer to a check of a flow.
 */
export type CheckAnswer = { 
/**
 * The drawing that was asked for; absent if the whole flow is refused.
 */
graph?: FlowGraph, 
/**
 * Whether there are no errors. Warnings do not count, unless they were denied.
 */
ok: boolean, 
/**
 * The problems: errors first, then in the order of the file.
 */
diagnostics: Array<Diagnostic>, 
/**
 * The number of further problems of each code, if the list was cut.
 */
omitted?: { [code: string]: number }, };

/**
 * A flow as a drawing.
 */
export type FlowGraph = { 
/**
 * The tabs and subflows of the whole file, in its order.
 */
tabs: Array<GraphTab>, 
/**
 * The nodes of the drawn tab. Config nodes that agents bind are among them, without a place.
 */
nodes: Array<GraphNode>, 
/**
 * The wires between them.
 */
wires: Array<GraphWire>, 
/**
 * The problems of these nodes.
 */
diagnostics: Array<Diagnostic>, 
/**
 * Nodes that are not in `nodes`, because there are too many.
 */
omitted: number, 
/**
 * Tabs, wires and problems that are not listed, because there are too many.
 */
omittedParts: number, };

/**
 * A tab or a subflow.
 */
export type GraphTab = { 
/**
 * Its node id.
 */
id: NodeId, 
/**
 * The name its owner gave it.
 */
label: string, 
/**
 * Whether it is a subflow.
 */
isSubflow: boolean, 
/**
 * The number of nodes on it.
 */
nodes: number, 
/**
 * Whether `nodes` of the graph are its nodes.
 */
isDrawn: boolean, };

/**
 * A node of a drawing.
 */
export type GraphNode = { 
/**
 * Its id.
 */
id: NodeId, 
/**
 * Its type.
 */
type: string, 
/**
 * Its name; empty if it has none.
 */
name: string, 
/**
 * What it is to agents.
 */
role: Role, 
/**
 * Its place in the editor, of its centre; absent if it has none.
 */
x?: number, 
/**
 * As `x`.
 */
y?: number, 
/**
 * The number of its outputs.
 */
outputs: number, 
/**
 * Whether it is disabled.
 */
disabled?: boolean, };

/**
 * A wire of a drawing.
 */
export type GraphWire = { 
/**
 * The node at its beginning.
 */
from: NodeId, 
/**
 * The output of that node; absent for a binding by a property.
 */
port?: number, 
/**
 * The node at its end.
 */
to: NodeId, 
/**
 * What it is for. A key that a model names is `data`.
 */
kind: EdgeKind, };

/**
 * The tokens of the sidecar, without the tokens themselves.
 */
export type TokenList = { 
/**
 * The tokens, by name.
 */
tokens: Array<TokenEntry>, };

/**
 * A token in a list.
 */
export type TokenEntry = { 
/**
 * Its name.
 */
name: string, 
/**
 * What it allows.
 */
scopes: Array<Scope>, 
/**
 * When it was made; absent for the main token.
 */
createdAt?: number, 
/**
 * Whether this request was made with it.
 */
isOwn: boolean, };

/**
 * Makes a token.
 */
export type TokenRequest = { 
/**
 * Its name.
 */
name: string, 
/**
 * What it allows.
 */
scopes: Array<Scope>, };

/**
 * A new token. It cannot be read again.
 */
export type NewToken = { 
/**
 * Its name.
 */
name: string, 
/**
 * The token.
 */
token: string, };

/**
 * The settings of the sidecar that are not secret.
 */
export type ConfigView = { 
/**
 * The settings, each with its place in the file, such as `http.proxy`.
 */
settings: Array<ConfigEntry>, };

/**
 * A setting.
 */
export type ConfigEntry = { 
/**
 * Its place in the file.
 */
key: string, 
/**
 * Its value; a secret is replaced.
 */
value: string, 
/**
 * Whether it is set, and not the default.
 */
isSet: boolean, };

/**
 * The state of the attached Node-RED. The sidecar checks every flow deployed there and runs none.
 */
export type AttachedState = { 
/**
 * The address of that Node-RED.
 */
url: string, 
/**
 * Whether its `/comms` socket is open. Without it the sidecar sees deploys late.
 */
connected: boolean, 
/**
 * The version of Node-RED; absent if unknown.
 */
version?: string, 
/**
 * The revision of the flow that was checked last, as Node-RED names it.
 */
revision?: string, 
/**
 * When that flow was checked.
 */
checkedAt?: number, 
/**
 * The result of that check.
 */
report?: CheckReport, 
/**
 * The last failure; absent once it is resolved.
 */
error?: ApiError, };

/**
 * How one flow differs from another, by node id. Equal nodes are not listed.
 */
export type FlowDifferences = { 
/**
 * Nodes that only the first flow has.
 */
added: Array<NodeSummary>, 
/**
 * Nodes that only the second flow has.
 */
removed: Array<NodeSummary>, 
/**
 * Nodes that both flows have and that differ.
 */
changed: Array<NodeDifference>, 
/**
 * Whether the nodes of both flows have a different order. Node-RED derives the order of tabs from it.
 */
reordered: boolean, };

/**
 * How one node differs.
 */
export type NodeDifference = { 
/**
 * The node as the first flow has it.
 */
node: NodeSummary, 
/**
 * The names of the properties that differ, including `wires`. Never their values, because some are
 * secrets.
 */
properties: Array<string>, };

/**
 * A message from Node-RED to the sidecar.
 */
export type BridgeRequest = { "type": "hello", 
/**
 * Always [`BRIDGE_PROTOCOL`].
 */
protocol: string, 
/**
 * Identifies this Node-RED; the same after a restart.
 */
instance: InstanceId, 
/**
 * Identifies what this Node-RED remembers of calls. It changes after a restart, and whenever that
 * memory is lost.
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
 * The `session` of the last `welcome`; absent if there was none.
 */
session?: string, 
/**
 * The last `seq` received in that session; 0 for none.
 */
received: number, } | { "type": "ack", 
/**
 * The last number received.
 */
seq: number, } | { "type": "flows", 
/**
 * The number of this message.
 */
seq: number, 
/**
 * Identifies this flow; comes back in `deployed`.
 */
revision: string, 
/**
 * The nodes as Node-RED has them, without the properties that only Node-RED needs.
 */
flows: Array<JsonValue>, 
/**
 * The credentials of models, memories and tools, by node. The sidecar keeps them in memory only.
 */
credentials: { [key in NodeId]: { [key in string]: string } }, 
/**
 * The operations of installed nodes, from the `package.json` of their packages.
 * They are strangers' files: the sidecar leaves out what is wrong and says so.
 */
nodeTools?: { [type: string]: { [operation: string]: NodeOperation } }, } | { "type": "start", 
/**
 * The number of this message.
 */
seq: number, 
/**
 * Identifies this start. The same start begins at most one run.
 */
start: string, 
/**
 * The agent to start.
 */
node: NodeId, 
/**
 * The message that arrived.
 */
message: { [key in string]: JsonValue }, } | { "type": "cancel", 
/**
 * The number of this message.
 */
seq: number, 
/**
 * The id of the start.
 */
start: string, 
/**
 * Why; becomes part of the run's error.
 */
reason: string, } | { "type": "tool_result", 
/**
 * The number of this message.
 */
seq: number, 
/**
 * The run that made the call.
 */
run: RunId, 
/**
 * The call that was made.
 */
call: CallId, 
/**
 * The outcome.
 */
reply: ToolReply, } | { "type": "watch", 
/**
 * Whether the sidecar shall send run events.
 */
events: boolean, };

/**
 * The outcome of a tool call in Node-RED.
 */
export type ToolReply = { "type": "returned", 
/**
 * The output of the tool.
 */
output: JsonValue, } | { "type": "failed", 
/**
 * Why it failed.
 */
error: string, } | { "type": "unknown", 
/**
 * Why the outcome is unknown.
 */
reason: string, };

/**
 * A service that fails while its agent runs on without it.
 */
export type ServiceProblem = { 
/**
 * The kind of failure.
 */
code: RunErrorCode, 
/**
 * What happened, in one sentence.
 */
message: string, 
/**
 * `message`, for other languages.
 */
phrase?: Phrase, };

/**
 * A message from the sidecar to Node-RED.
 */
export type BridgeMessage = { "type": "welcome", 
/**
 * The version of the sidecar.
 */
version: string, 
/**
 * Identifies the process of the sidecar and the time since which it knows this Node-RED.
 */
session: string, 
/**
 * The last `seq` received from this boot in this session; 0 for none.
 */
received: number, 
/**
 * The limits on what Node-RED may send.
 */
limits: BridgeLimits, } | { "type": "ack", 
/**
 * The last number received.
 */
seq: number, } | { "type": "deployed", 
/**
 * The number of this message.
 */
seq: number, 
/**
 * The revision from `flows`.
 */
revision: string, 
/**
 * Every agent, and whether it can run.
 */
agents: Array<AgentState>, 
/**
 * Every problem of the flow.
 */
report: CheckReport, } | { "type": "flows_refused", 
/**
 * The number of this message.
 */
seq: number, 
/**
 * The revision from `flows`.
 */
revision: string, 
/**
 * Why it was refused.
 */
error: ApiError, } | { "type": "send", 
/**
 * The number of this message.
 */
seq: number, 
/**
 * The agent that sends it.
 */
node: NodeId, 
/**
 * The output port of the agent, from 0.
 */
port: number, 
/**
 * The run that sends it.
 */
run: RunId, 
/**
 * The effect of the run that sends it; absent if the run never started.
 */
effect?: EffectId, 
/**
 * The start that the run belongs to.
 */
start?: string, 
/**
 * Whether this message ends the run.
 */
last: boolean, 
/**
 * The message. If the run failed, it has an `error`, which Catch nodes receive too.
 */
message: { [key in string]: JsonValue }, } | { "type": "stream", 
/**
 * The agent that sends it.
 */
node: NodeId, 
/**
 * The output port of the agent, from 0.
 */
port: number, 
/**
 * The start that the run belongs to.
 */
start?: string, 
/**
 * The message: `payload`, and `stream` with the run and the place in it.
 */
message: { [key: string]: JsonValue }, } | { "type": "start_failed", 
/**
 * The number of this message.
 */
seq: number, 
/**
 * The id of the start.
 */
start: string, 
/**
 * The code of the reason.
 */
code: ProblemCode, 
/**
 * What happened and what to do about it.
 */
message: string, } | { "type": "start_done", 
/**
 * The number of this message.
 */
seq: number, 
/**
 * The id of the start.
 */
start: string, } | { "type": "tool_call", 
/**
 * The number of this message.
 */
seq: number, 
/**
 * The run that calls.
 */
run: RunId, 
/**
 * The call. Node-RED makes the same call at most once.
 */
call: CallId, 
/**
 * The agent that calls.
 */
agent: NodeId, 
/**
 * The node of the tool: a `flow-tool`, or a data node on the agent's tool port.
 */
node: NodeId, 
/**
 * The tool's name, as the model knows it.
 */
tool: string, 
/**
 * The iteration of the run, from 1.
 */
iteration: number, 
/**
 * The input, valid against the tool's schema.
 */
input: { [key in string]: JsonValue }, 
/**
 * The longest duration of the call, in milliseconds.
 */
timeoutMs: number, 
/**
 * Equal for the same run, iteration and call.
 */
idempotencyKey: Digest, 
/**
 * The effect class of the call.
 */
effect: EffectClass, 
/**
 * What the node receives and returns; absent if the call is no operation of a node.
 */
operation?: OperationCall, 
/**
 * Whether the call was already made. Then Node-RED must not make it again, and only reports its
 * outcome.
 */
known?: boolean, } | { "type": "status", 
/**
 * The agent.
 */
node: NodeId, 
/**
 * The run that the status is about.
 */
run: RunId, 
/**
 * The colour of the dot or ring.
 */
fill: StatusFill, 
/**
 * Dot or ring.
 */
shape: StatusShape, 
/**
 * The text beside it.
 */
text: string, 
/**
 * `text`, for other languages.
 */
phrase?: Phrase, } | { "type": "health", 
/**
 * The agent.
 */
node: NodeId, 
/**
 * The service that fails; absent if all work.
 */
problem?: ServiceProblem, } | { "type": "notice", 
/**
 * The node that it is about.
 */
node: NodeId, 
/**
 * The code of the problem.
 */
code: ProblemCode, 
/**
 * What happened.
 */
message: string, } | { "type": "event", 
/**
 * The event.
 */
event: RunEvent, } | { "type": "closing", 
/**
 * The code of the reason.
 */
code: ProblemCode, 
/**
 * What happened and what to do about it.
 */
message: string, };

/**
 * The limits on what Node-RED may send.
 */
export type BridgeLimits = { 
/**
 * The most bytes of one protocol message.
 */
maxFrameBytes: number, 
/**
 * The most bytes of a message that starts a run, as JSON.
 */
maxMessageBytes: number, 
/**
 * The most bytes of a tool's result, as JSON.
 */
maxResultBytes: number, 
/**
 * The deepest nesting of either.
 */
maxValueDepth: number, };

/**
 * The colour of a node status.
 */
export type StatusFill = "red" | "green" | "yellow" | "blue" | "grey";

/**
 * The shape of a node status.
 */
export type StatusShape = "ring" | "dot";

/**
 * A Node-RED that uses the bridge.
 */
export type InstanceState = { 
/**
 * Identifies the Node-RED.
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
 * The revision of its active flow; absent before the first deploy.
 */
revision?: string, 
/**
 * Its agents, and whether they can run.
 */
agents: Array<AgentState>, 
/**
 * The number of messages that it has not acknowledged.
 */
waiting: number, 
/**
 * The number of tool calls that it has not answered.
 */
openCalls: number, };

/**
 * Every Node-RED that uses the bridge.
 */
export type InstanceList = { 
/**
 * The Node-REDs, connected or not.
 */
instances: Array<InstanceState>, };

/**
 * What the runtime knows about a node type.
 */
export type NodeType = { 
/**
 * The Node-RED type; `prefix*` stands for every type with that prefix.
 */
type: string, 
/**
 * The role of such a node for an agent.
 */
role: Role, 
/**
 * The number of inputs: 0 or 1.
 */
inputs: number, 
/**
 * The kind of each output port, in order; null if each node has its own number of outputs.
 */
outputs: Array<PortKind> | null, 
/**
 * The names of the schemas that the properties must satisfy (see [`crate::schemas`]).
 */
schemas: Array<string>, 
/**
 * The name and input of a tool that the type fixes; null for other types.
 */
tool: FixedTool | null, 
/**
 * Whether messages pass through unchanged. The checker then follows the wires behind the node.
 */
transparent: boolean, };

/**
 * A tool whose name and input the node type fixes.
 */
export type FixedTool = { 
/**
 * The name, unless `toolName` gives another.
 */
name: string, 
/**
 * What it does, for the model, unless `description` gives another text.
 */
description: string, 
/**
 * JSON Schema of the input, as text.
 */
inputSchema: string, };

/**
 * One row of the edge table.
 */
export type EdgeRule = { 
/**
 * The kind of edge that this row allows.
 */
kind: EdgeKind, 
/**
 * The ports the edge may leave from.
 */
from: Array<PortKind>, 
/**
 * The roles the edge may go to.
 */
to: Array<Role>, 
/**
 * The least number of such edges an agent needs.
 */
atLeast: number, 
/**
 * The most such edges an agent may have; null for any number.
 */
atMost: number | null, 
/**
 * The code of the diagnostic for fewer edges.
 */
tooFew: DiagnosticCode | null, 
/**
 * The code of the diagnostic for more edges.
 */
tooMany: DiagnosticCode | null, };

/**
 * The properties that every agent may have in addition to its own schema.
 */
export type AgentBindingConfig = { 
/**
 * The id of the model, if no wire binds one.
 */
model?: string, 
/**
 * The id of the memory, if no wire binds one.
 */
memory?: string, 
/**
 * The ids of tools, in addition to those that wires bind.
 */
tools?: Array<string>, 
/**
 * The conversation. Takes precedence over `msg.sessionId` and the memory's own.
 */
sessionId?: string, 
/**
 * Whose messages they are. `{{msg.x}}` is a property of the message. Empty for `msg.userId`, else the memory's own.
 */
userId?: string, 
/**
 * When a message was made: milliseconds since 1970, or a text such as 2026-11-18T09:00:00Z. Empty for `{{msg.timestamp}}`. Without a time, the start of the run.
 */
inputTime?: string, 
/**
 * Tags of the messages, in addition to `msg.tags`. `{{msg.x}}` is a property of the message.
 */
inputTags?: TextList, 
/**
 * The longest time of one run in milliseconds, without the time it waits for a person.
 */
timeout?: number, 
/**
 * The ids of the models that are called in this order if the bound model is overloaded, unreachable or used up.
 */
fallbackModels?: Array<string>, 
/**
 * What one run may spend: `tokens`, `cost`, `modelCalls`, `toolCalls`. At a limit the run fails with `BUDGET_EXCEEDED`.
 */
budget?: Budget, 
/**
 * Whether clients of the sidecar's MCP server may call it.
 */
mcp?: boolean, };

/**
 * The properties of an AI Agent. Those of every agent come in addition. They may also stand in `options`, as those of
 * models.
 */
export type AiAgentConfig = { 
/**
 * What the model is told first, in every call: who it is and how it shall answer.
 */
systemPrompt?: string, 
/**
 * What the model shall answer. `{{json.x}}` is a property of the payload, `{{msg.x}}` one of the message. Empty for the payload.
 */
userMessage?: string, 
/**
 * How often the agent may call the model, 1 to 100. Without an answer by then the run fails with `ITERATION_OVERFLOW`.
 */
maxIterations?: number, 
/**
 * Whether the model calls tools. `required` holds until the first result of a tool.
 */
toolChoice?: ToolChoice, 
/**
 * What the payload of the result is. With `json` an answer that is not JSON goes back to the model twice, then the run fails with `OUTPUT_NOT_JSON`.
 */
outputFormat?: OutputFormat, 
/**
 * A JSON Schema of the answer. An answer that does not fit goes back to the model twice, then the run fails with `OUTPUT_INVALID`.
 */
outputSchema?: string | { [key: string]: JsonValue }, 
/**
 * How many tool calls of one answer run at the same time, 1 to 64.
 */
parallelTools?: number, 
/**
 * The images that the model gets with the message: a data URL, a Buffer, an https address, or a list of up to four. `{{msg.x}}` is a property of the message. Empty for none.
 */
images?: string, 
/**
 * Whether previews of prompts, answers and tool results are stored with the run, and the last prompt in `envelope`.
 */
debug?: boolean, 
/**
 * The same properties again.
 */
options?: AiAgentConfig, };

/**
 * The properties of an agent that reaches one objective. Those of every agent come in addition.
 */
export type AiSimpleAgentConfig = { 
/**
 * What the agent shall reach. `{{json.x}}` is a property of the payload, `{{msg.x}}` one of the message. Empty for the payload.
 */
objective?: string, 
/**
 * What the model is told first, in every call: who it is and how it shall answer.
 */
systemPrompt?: string, 
/**
 * A JSON Schema of the answer. An answer that does not fit goes back to the model twice, then the run fails with `OUTPUT_INVALID`.
 */
outputSchema?: string | { [key: string]: JsonValue }, 
/**
 * How often the agent may call the model, 1 to 100. In the last call it can only finish.
 */
maxIterations?: number, 
/**
 * The most tokens that the model may read. At 70 % a summary replaces old messages, at 90 % the agent can only finish.
 */
maxTokenLimit?: number, 
/**
 * How many tool calls of one answer run at the same time, 1 to 64.
 */
parallelTools?: number, 
/**
 * The images that the model gets with the message: a data URL, a Buffer, an https address, or a list of up to four. `{{msg.x}}` is a property of the message. Empty for none.
 */
images?: string, 
/**
 * Whether previews of prompts, answers and tool results are stored with the run, and the last prompt in `envelope`.
 */
debug?: boolean, 
/**
 * The same properties again.
 */
options?: AiSimpleAgentConfig, };

/**
 * The properties of an agent that extracts values from a text. Those of every agent come in addition.
 */
export type AiExtractorConfig = { 
/**
 * The text to read. `{{json.x}}` is a property of the payload, `{{msg.x}}` one of the message. Empty for the payload.
 */
text?: string, 
/**
 * A JSON Schema of the result. A result that does not fit goes back to the model twice, then the run fails with `OUTPUT_INVALID`.
 */
outputSchema?: string | { [key: string]: JsonValue }, 
/**
 * How often the agent may call the model, 1 to 100. In the last call it can only finish.
 */
maxIterations?: number, 
/**
 * The most tokens that the model may read. At 70 % a summary replaces old messages, at 90 % the agent can only finish.
 */
maxTokenLimit?: number, 
/**
 * The images that the model gets with the message: a data URL, a Buffer, an https address, or a list of up to four. `{{msg.x}}` is a property of the message. Empty for none.
 */
images?: string, 
/**
 * Whether previews of prompts, answers and tool results are stored with the run, and the last prompt in `envelope`.
 */
debug?: boolean, 
/**
 * The same properties again.
 */
options?: AiExtractorConfig, };

/**
 * The properties of an agent that finds the category of a text. Those of every agent come in addition.
 */
export type AiClassifierConfig = { 
/**
 * The text to read. `{{json.x}}` is a property of the payload, `{{msg.x}}` one of the message. Empty for the payload.
 */
text?: string, 
/**
 * The categories, 200 at most. Each one is a text, or an object with `name` and `description`.
 */
categories?: Array<Category>, 
/**
 * Whether a text may have several categories. The payload is then a list.
 */
multiple?: boolean, 
/**
 * How often the agent may call the model, 1 to 100. In the last call it can only finish.
 */
maxIterations?: number, 
/**
 * The most tokens that the model may read. At 70 % a summary replaces old messages, at 90 % the agent can only finish.
 */
maxTokenLimit?: number, 
/**
 * The images that the model gets with the message: a data URL, a Buffer, an https address, or a list of up to four. `{{msg.x}}` is a property of the message. Empty for none.
 */
images?: string, 
/**
 * Whether previews of prompts, answers and tool results are stored with the run, and the last prompt in `envelope`.
 */
debug?: boolean, 
/**
 * The same properties again.
 */
options?: AiClassifierConfig, };

/**
 * The properties of an agent that sums a text up. Those of every agent come in addition.
 */
export type AiSummarizerConfig = { 
/**
 * The text to read. `{{json.x}}` is a property of the payload, `{{msg.x}}` one of the message. Empty for the payload.
 */
text?: string, 
/**
 * How long the summary is. It is never longer than the text.
 */
length?: SummaryLength, 
/**
 * What matters in this summary, for the model: for whom it is, in which language, what it must mention.
 */
instructions?: string, 
/**
 * How often the agent may call the model, 1 to 100. In the last call it can only finish.
 */
maxIterations?: number, 
/**
 * The most tokens that the model may read. At 70 % a summary replaces old messages, at 90 % the agent can only finish.
 */
maxTokenLimit?: number, 
/**
 * Whether previews of prompts, answers and tool results are stored with the run, and the last prompt in `envelope`.
 */
debug?: boolean, 
/**
 * The same properties again.
 */
options?: AiSummarizerConfig, };

/**
 * The properties of `scripted-model`, which answers from a list.
 */
export type ScriptedModelConfig = { 
/**
 * A JSON list. The first call of a run gets the first reply, and so on; the last one repeats. A text is sent as it is, any other value as JSON. For an Agent Core, to call a tool: `{"action": "tool", "tool": "calculator", "input": {"expression": "6 * 7"}, "confidence": 0.9}`. To answer: `{"action": "final", "message": "42"}`. For an AI Agent, a text is the answer; to call tools: `{"toolCalls": [{"name": "calculator", "arguments": {"expression": "6 * 7"}}]}`, also with `text`, `usage`, `finish` and `reasoning`.
 */
replies: Array<JsonValue>, 
/**
 * The delay before each answer in milliseconds, 600000 at most.
 */
delayMs?: number, };

/**
 * The properties of `openai-model`.
 */
export type OpenaiModelConfig = { 
/**
 * The name of a model of the provider.
 */
model?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow. If it is empty, the sidecar uses its environment variable `OPENAI_API_KEY`.
 */
apiKey?: string, 
/**
 * A config node with a key that several models use. A model's own *API key* takes precedence.
 */
keyNode?: string, 
/**
 * For other servers with a compatible API: vLLM, LM Studio, Groq, OpenRouter and others. Empty for OpenAI.
 */
baseURL?: string, 
/**
 * 0 to 2. Sent only if it is set and the model supports it.
 */
temperature?: number, 
/**
 * The most tokens of one answer.
 */
maxTokens?: number, 
/**
 * The interface of OpenAI to use. With `chat`, calls go to Responses if Chat Completions cannot do what they ask.
 */
api?: OpenaiApi, 
/**
 * The organization the calls are billed to.
 */
organization?: string, 
/**
 * The project the calls are billed to.
 */
project?: string, 
/**
 * 0 to 1.
 */
topP?: number, 
/**
 * -2 to 2. Not in the Responses API.
 */
frequencyPenalty?: number, 
/**
 * -2 to 2. Not in the Responses API.
 */
presencePenalty?: number, 
/**
 * A whole number, for repeatable answers.
 */
seed?: number, 
/**
 * Texts at which the model stops, separated by commas, 4 at most. `\n` is a line feed.
 */
stop?: StopSequences, 
/**
 * How much a reasoning model thinks.
 */
reasoningEffort?: ReasoningEffort, 
/**
 * How long the provider keeps the beginning of a conversation. The next call then reads it faster and for less.
 */
promptCache?: PromptCache, 
/**
 * How the sidecar makes the model answer with JSON. `auto` takes a weaker way if the server refuses one.
 */
responseFormat?: ResponseFormat, 
/**
 * The older name of `responseFormat`. It counts while that one is missing or `auto`.
 */
structuredOutput?: StructuredOutput, 
/**
 * Requests JSON also without a schema.
 */
jsonMode?: boolean, 
/**
 * Whether the model streams its answer.
 */
stream?: boolean, 
/**
 * What the model can do, where the built-in table is wrong: `tools`, `vision`, `streaming`, `jsonSchema`, `jsonObject`, `sampling`, `reasoning`, `forcedTools`, `contextWindow`, `maxOutput`.
 */
capabilities?: CapabilityConfig, 
/**
 * A JSON object with further settings of the server, such as `{"top_k": 20}`. It is merged into every request, but never replaces what the node sends.
 */
extraBody: { [key: string]: JsonValue }, 
/**
 * The longest time of one call with its retries, in milliseconds.
 */
timeout?: number, 
/**
 * How often a call is repeated after a temporary failure, 0 to 10.
 */
maxRetries?: number, 
/**
 * The longest time between two pieces of a streamed answer, in milliseconds. Empty for no limit.
 */
idleTimeout?: number, 
/**
 * How many calls of this node run at once, 1 to 1000. Further calls wait. Empty for no limit.
 */
maxConcurrent?: number, 
/**
 * US dollars for a million tokens that the model reads, such as 0.75; 0 if they cost nothing. Only together with *Price of output*. Empty: the price of the configuration counts, else the built-in one, if there is one.
 */
inputPrice?: number, 
/**
 * US dollars for a million tokens that the model writes. Only together with *Price of input*.
 */
outputPrice?: number, 
/**
 * US dollars for a million tokens that come from the provider's cache. Empty for the *Price of input*.
 */
cachedPrice?: number, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: OpenaiModelConfig, };

/**
 * The properties of `anthropic-model`.
 */
export type AnthropicModelConfig = { 
/**
 * The name of a model of the provider.
 */
model?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow. If it is empty, the sidecar uses its environment variable `ANTHROPIC_API_KEY`.
 */
apiKey?: string, 
/**
 * A config node with a key that several models use. A model's own *API key* takes precedence.
 */
keyNode?: string, 
/**
 * 0 to 1. Sent only if it is set and the model supports it.
 */
temperature?: number, 
/**
 * The most tokens of one answer.
 */
maxTokens?: number, 
/**
 * For gateways. Empty for Anthropic.
 */
baseURL?: string, 
/**
 * The version of the API, such as 2026-10-21.
 */
anthropicVersion?: string, 
/**
 * 0 to 1.
 */
topP?: number, 
/**
 * 0 for off.
 */
topK?: number, 
/**
 * Texts at which the model stops, separated by commas. `\n` is a line feed.
 */
stop?: StopSequences, 
/**
 * How much a reasoning model thinks.
 */
reasoningEffort?: ReasoningEffort, 
/**
 * The most tokens for thinking, from 1024; less than *Max tokens*. Newer models take none: set *Reasoning*.
 */
thinkingBudget?: number, 
/**
 * What the provider sends of the model's thoughts. They are in the response of an agent with `debug`, and never part of the answer.
 */
thinkingDisplay?: ThinkingDisplay, 
/**
 * How long the provider keeps the beginning of a conversation. The next call then reads it faster and for less.
 */
promptCache?: PromptCache, 
/**
 * How the sidecar makes the model answer with JSON.
 */
structuredOutput?: StructuredOutput, 
/**
 * Whether the model streams its answer.
 */
stream?: boolean, 
/**
 * What the model can do, where the built-in table is wrong: `tools`, `vision`, `streaming`, `jsonSchema`, `jsonObject`, `sampling`, `reasoning`, `forcedTools`, `contextWindow`, `maxOutput`.
 */
capabilities?: CapabilityConfig, 
/**
 * The longest time of one call with its retries, in milliseconds.
 */
timeout?: number, 
/**
 * How often a call is repeated after a temporary failure, 0 to 10.
 */
maxRetries?: number, 
/**
 * The longest time between two pieces of a streamed answer, in milliseconds. Empty for no limit.
 */
idleTimeout?: number, 
/**
 * How many calls of this node run at once, 1 to 1000. Further calls wait. Empty for no limit.
 */
maxConcurrent?: number, 
/**
 * US dollars for a million tokens that the model reads, such as 0.75; 0 if they cost nothing. Only together with *Price of output*. Empty: the price of the configuration counts, else the built-in one, if there is one.
 */
inputPrice?: number, 
/**
 * US dollars for a million tokens that the model writes. Only together with *Price of input*.
 */
outputPrice?: number, 
/**
 * US dollars for a million tokens that come from the provider's cache. Empty for the *Price of input*.
 */
cachedPrice?: number, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: AnthropicModelConfig, };

/**
 * The properties of `google-model`.
 */
export type GoogleModelConfig = { 
/**
 * The name of a model of the provider.
 */
model?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow. If it is empty, the sidecar uses its environment variable `GEMINI_API_KEY`.
 */
apiKey?: string, 
/**
 * A config node with a key that several models use. A model's own *API key* takes precedence.
 */
keyNode?: string, 
/**
 * 0 to 2. Sent only if it is set and the model supports it.
 */
temperature?: number, 
/**
 * The most tokens of one answer.
 */
maxTokens?: number, 
/**
 * For gateways. Empty for Google.
 */
baseURL?: string, 
/**
 * 0 to 1.
 */
topP?: number, 
/**
 * 0 for off.
 */
topK?: number, 
/**
 * A whole number, for repeatable answers.
 */
seed?: number, 
/**
 * Texts at which the model stops, separated by commas, 5 at most. `\n` is a line feed.
 */
stop?: StopSequences, 
/**
 * How much the model thinks. Models before Gemini 3 accept no level.
 */
thinkingLevel?: ThinkingLevel, 
/**
 * How the sidecar makes the model answer with JSON.
 */
structuredOutput?: StructuredOutput, 
/**
 * Whether the model streams its answer.
 */
stream?: boolean, 
/**
 * What the model can do, where the built-in table is wrong: `tools`, `vision`, `streaming`, `jsonSchema`, `jsonObject`, `sampling`, `reasoning`, `forcedTools`, `contextWindow`, `maxOutput`.
 */
capabilities?: CapabilityConfig, 
/**
 * The longest time of one call with its retries, in milliseconds.
 */
timeout?: number, 
/**
 * How often a call is repeated after a temporary failure, 0 to 10.
 */
maxRetries?: number, 
/**
 * The longest time between two pieces of a streamed answer, in milliseconds. Empty for no limit.
 */
idleTimeout?: number, 
/**
 * How many calls of this node run at once, 1 to 1000. Further calls wait. Empty for no limit.
 */
maxConcurrent?: number, 
/**
 * US dollars for a million tokens that the model reads, such as 0.75; 0 if they cost nothing. Only together with *Price of output*. Empty: the price of the configuration counts, else the built-in one, if there is one.
 */
inputPrice?: number, 
/**
 * US dollars for a million tokens that the model writes. Only together with *Price of input*.
 */
outputPrice?: number, 
/**
 * US dollars for a million tokens that come from the provider's cache. Empty for the *Price of input*.
 */
cachedPrice?: number, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: GoogleModelConfig, };

/**
 * The properties of `model.azure.openai`, as Redflow writes them.
 */
export type AzureModelConfig = { 
/**
 * The resource's address.
 */
endpoint?: string, 
/**
 * The deployment's name.
 */
deployment?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow. If it is empty, the sidecar uses its environment variable `AZURE_OPENAI_API_KEY`.
 */
apiKey?: string, 
/**
 * A config node with a key that several models use. A model's own *API key* takes precedence.
 */
keyNode?: string, 
/**
 * How the sidecar identifies itself. With `entra` it asks Microsoft Entra ID for a token as an application.
 */
authentication?: AzureAuthentication, 
/**
 * The id or the domain of the tenant, for `entra`.
 */
tenantId?: string, 
/**
 * The application (client) id, for `entra`.
 */
clientId?: string, 
/**
 * The secret of the application, for `entra`. Kept in Node-RED's credentials, never in the flow. If it is empty, the sidecar uses its environment variable `AZURE_CLIENT_SECRET`.
 */
clientSecret?: string, 
/**
 * The address that gives tokens, for national clouds. Empty for the public cloud.
 */
authority?: string, 
/**
 * `v1`, or a dated version such as 2024-12-01-preview.
 */
apiVersion?: string, 
/**
 * 0 to 2. Sent only if it is set and the model supports it.
 */
temperature?: number, 
/**
 * The most tokens of one answer.
 */
maxTokens?: number, 
/**
 * 0 to 1.
 */
topP?: number, 
/**
 * Texts at which the model stops, separated by commas, 4 at most. `\n` is a line feed.
 */
stop?: StopSequences, 
/**
 * A whole number, for repeatable answers.
 */
seed?: number, 
/**
 * How much a reasoning model thinks.
 */
reasoningEffort?: ReasoningEffort, 
/**
 * The interface of OpenAI to use. With `chat`, calls go to Responses if Chat Completions cannot do what they ask.
 */
api?: OpenaiApi, 
/**
 * How the sidecar makes the model answer with JSON.
 */
structuredOutput?: StructuredOutput, 
/**
 * Whether the model streams its answer.
 */
stream?: boolean, 
/**
 * What the model can do, where the built-in table is wrong: `tools`, `vision`, `streaming`, `jsonSchema`, `jsonObject`, `sampling`, `reasoning`, `forcedTools`, `contextWindow`, `maxOutput`.
 */
capabilities?: CapabilityConfig, 
/**
 * The longest time of one call with its retries, in milliseconds.
 */
timeoutMs?: number, 
/**
 * How often a call is repeated after a temporary failure, 0 to 10.
 */
maxRetries?: number, 
/**
 * The longest time between two pieces of a streamed answer, in milliseconds. Empty for no limit.
 */
idleTimeout?: number, 
/**
 * How many calls of this node run at once, 1 to 1000. Further calls wait. Empty for no limit.
 */
maxConcurrent?: number, 
/**
 * US dollars for a million tokens that the model reads, such as 0.75; 0 if they cost nothing. Only together with *Price of output*. Empty: the price of the configuration counts, else the built-in one, if there is one.
 */
inputPrice?: number, 
/**
 * US dollars for a million tokens that the model writes. Only together with *Price of input*.
 */
outputPrice?: number, 
/**
 * US dollars for a million tokens that come from the provider's cache. Empty for the *Price of input*.
 */
cachedPrice?: number, 
/**
 * The id of a credential in the Redflow UI. The runtime gets its values with the deploy.
 */
credentialId?: string, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: AzureModelConfig, };

/**
 * The properties of `ollama-model`.
 */
export type OllamaModelConfig = { 
/**
 * The name of a model of the provider.
 */
model?: string, 
/**
 * The address of Ollama for the sidecar. Empty for the sidecar's own machine.
 */
baseURL?: string, 
/**
 * 0 to 2. Sent only if it is set and the model supports it.
 */
temperature?: number, 
/**
 * The most tokens of one answer.
 */
maxTokens?: number, 
/**
 * For a proxy in front of Ollama that needs one. Stored in Node-RED's credentials.
 */
apiKey?: string, 
/**
 * 0 to 1.
 */
topP?: number, 
/**
 * 0 for off.
 */
topK?: number, 
/**
 * A whole number, for repeatable answers.
 */
seed?: number, 
/**
 * Texts at which the model stops, separated by commas. `\n` is a line feed.
 */
stop?: StopSequences, 
/**
 * The context size with which Ollama loads the model, in tokens.
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
 * How the sidecar makes the model answer with JSON.
 */
structuredOutput?: StructuredOutput, 
/**
 * Whether the model streams its answer.
 */
stream?: boolean, 
/**
 * What the model can do, where the built-in table is wrong: `tools`, `vision`, `streaming`, `jsonSchema`, `jsonObject`, `sampling`, `reasoning`, `forcedTools`, `contextWindow`, `maxOutput`.
 */
capabilities?: CapabilityConfig, 
/**
 * The longest time of one call with its retries, in milliseconds.
 */
timeout?: number, 
/**
 * How often a call is repeated after a temporary failure, 0 to 10.
 */
maxRetries?: number, 
/**
 * The longest time between two pieces of a streamed answer, in milliseconds. Empty for no limit.
 */
idleTimeout?: number, 
/**
 * How many calls of this node run at once, 1 to 1000. Further calls wait. Empty for no limit.
 */
maxConcurrent?: number, 
/**
 * US dollars for a million tokens that the model reads, such as 0.75; 0 if they cost nothing. Only together with *Price of output*. Empty: the price of the configuration counts, else the built-in one, if there is one.
 */
inputPrice?: number, 
/**
 * US dollars for a million tokens that the model writes. Only together with *Price of input*.
 */
outputPrice?: number, 
/**
 * US dollars for a million tokens that come from the provider's cache. Empty for the *Price of input*.
 */
cachedPrice?: number, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: OllamaModelConfig, };

/**
 * The properties of a key node.
 */
export type KeyConfig = { 
/**
 * The key of the provider. Kept in Node-RED's credentials, never in the flow.
 */
apiKey?: string, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, };

/**
 * The properties of `buffer-memory`.
 */
export type BufferMemoryConfig = { 
/**
 * The conversation if neither the agent nor the message names one.
 */
sessionId?: string, 
/**
 * The most messages of one conversation.
 */
maxMessages?: number, 
/**
 * The most bytes of one conversation, up to 4194304.
 */
maxBytes?: number, 
/**
 * The most turns of one conversation. A turn is a message with its answer and the tool calls between them.
 */
maxTurns?: number, 
/**
 * The most tokens of one conversation. They are estimated: three bytes are a token.
 */
maxTokens?: number, 
/**
 * Whose conversation it is, if neither the agent nor the message says it. `{{msg.x}}` is a property of the message.
 */
userId?: string, 
/**
 * Only turns with these tags are recalled. `msg.tags` are the tags of a turn.
 */
recallTags?: TextList, 
/**
 * Whether a turn needs one of the tags or all of them.
 */
tagMatch?: TagMatch, 
/**
 * Seconds after which an unused conversation is deleted; 0 for never.
 */
idle?: number, 
/**
 * The same properties again.
 */
options?: BufferMemoryConfig, };

/**
 * The properties of `window-memory`.
 */
export type WindowMemoryConfig = { 
/**
 * The conversation if neither the agent nor the message names one.
 */
sessionId?: string, 
/**
 * How many of the last messages the model receives.
 */
maxMessages?: number, 
/**
 * The most bytes of one conversation, up to 4194304.
 */
maxBytes?: number, 
/**
 * The most turns of one conversation. A turn is a message with its answer and the tool calls between them.
 */
maxTurns?: number, 
/**
 * The most tokens of one conversation. They are estimated: three bytes are a token.
 */
maxTokens?: number, 
/**
 * Whose conversation it is, if neither the agent nor the message says it. `{{msg.x}}` is a property of the message.
 */
userId?: string, 
/**
 * Only turns with these tags are recalled. `msg.tags` are the tags of a turn.
 */
recallTags?: TextList, 
/**
 * Whether a turn needs one of the tags or all of them.
 */
tagMatch?: TagMatch, 
/**
 * Seconds after which an unused conversation is deleted; 0 for never.
 */
idle?: number, 
/**
 * The same properties again.
 */
options?: WindowMemoryConfig, };

/**
 * The properties of `redis-memory`.
 */
export type RedisMemoryConfig = { 
/**
 * The conversation if neither the agent nor the message names one.
 */
sessionId?: string, 
/**
 * `redis://HOST:PORT/DB`, `rediss://` with encryption; instead of host, port, database and TLS. No password here. If neither an address nor a host is given, the sidecar uses `REDIS_URL`, else 127.0.0.1:6379.
 */
url?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow.
 */
password?: string, 
/**
 * Seconds after which an unchanged conversation is deleted; 0 for never.
 */
ttl?: number, 
/**
 * The machine, if there is no address above.
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
 * 32 bytes in base64, with which the conversations are encrypted. Stored in Node-RED's credentials. If it is empty, the sidecar uses `REDFLOW_MEMORY_KEY`.
 */
encryptionKey?: string, 
/**
 * The prefix of every key.
 */
keyPrefix?: string, 
/**
 * The most messages of one conversation.
 */
maxMessages?: number, 
/**
 * The most bytes of one conversation, up to 4194304.
 */
maxBytes?: number, 
/**
 * The most turns of one conversation. A turn is a message with its answer and the tool calls between them.
 */
maxTurns?: number, 
/**
 * The most tokens of one conversation. They are estimated: three bytes are a token.
 */
maxTokens?: number, 
/**
 * Whose conversation it is, if neither the agent nor the message says it. `{{msg.x}}` is a property of the message.
 */
userId?: string, 
/**
 * Only turns with these tags are recalled. `msg.tags` are the tags of a turn.
 */
recallTags?: TextList, 
/**
 * Whether a turn needs one of the tags or all of them.
 */
tagMatch?: TagMatch, 
/**
 * The longest time of one command, in milliseconds.
 */
timeout?: number, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: RedisMemoryConfig, };

/**
 * The properties of `summary-memory`.
 */
export type SummaryMemoryConfig = { 
/**
 * The conversation if neither the agent nor the message names one.
 */
sessionId?: string, 
/**
 * The memory that keeps the last turns of each conversation.
 */
shortMemory?: string, 
/**
 * The model that writes the summary.
 */
model?: string, 
/**
 * When the turns without a summary have more tokens than this, the model sums them up.
 */
maxTokens?: number, 
/**
 * How many of the last turns stay as they are.
 */
keepTurns?: number, 
/**
 * The most tokens of the summary.
 */
summaryTokens?: number, 
/**
 * Whose conversation it is, if neither the agent nor the message says it. `{{msg.x}}` is a property of the message.
 */
userId?: string, 
/**
 * The same properties again.
 */
options?: SummaryMemoryConfig, };

/**
 * The properties of `long-memory`.
 */
export type LongMemoryConfig = { 
/**
 * The conversation if neither the agent nor the message names one.
 */
sessionId?: string, 
/**
 * The memory that keeps the last turns of each conversation. Empty if the agent needs none.
 */
shortMemory?: string, 
/**
 * Whose entries are recalled. Without a user, `user` means the session.
 */
scope?: MemoryScope, 
/**
 * Whose conversation it is, if neither the agent nor the message says it. `{{msg.x}}` is a property of the message.
 */
userId?: string, 
/**
 * The model that reads finished turns and writes down facts, preferences and decisions. Empty to keep whole turns, which a search finds.
 */
model?: string, 
/**
 * How many entries are recalled at most.
 */
topK?: number, 
/**
 * 0 to 1: entries that fit worse are left out. Empty for 0.65, or for 0 if the vectors find words only.
 */
minScore?: number, 
/**
 * The most tokens of the recalled entries.
 */
recallTokens?: number, 
/**
 * Entries with less trust are not recalled.
 */
minTrust?: Trust, 
/**
 * Resources of MCP servers that are recalled with every message: `[{"server": "docs", "resource": "docs://rules", "tokens": 400}]`.
 */
context: ContextSpanConfig[], 
/**
 * After so many new turns of a conversation the memory consolidates; 0 for never.
 */
afterTurns?: number, 
/**
 * Seconds without a turn after which the memory consolidates a conversation; 0 for never.
 */
idleSeconds?: number, 
/**
 * A crontab such as `0 3 * * *`: the memory consolidates all conversations then. Empty for never.
 */
schedule?: string, 
/**
 * Days after which an entry is removed; 0 to keep it. A pinned entry stays.
 */
retentionDays?: number, 
/**
 * Kept in Node-RED's credentials, never in the flow. If it is empty, the sidecar uses its environment variable `OPENAI_API_KEY`.
 */
apiKey?: string, 
/**
 * A config node with a key that several models use. A model's own *API key* takes precedence.
 */
keyNode?: string, 
/**
 * Who makes the vectors of the entries. A memory keeps the one that it was made with.
 */
embeddings?: Embeddings, 
/**
 * The model that makes the vectors.
 */
embeddingModel?: string, 
/**
 * The length of the vectors, if the model can shorten them.
 */
dimensions?: number, 
/**
 * For other servers with a compatible API, and for Ollama.
 */
baseURL?: string, 
/**
 * The deployment, for Azure.
 */
deployment?: string, 
/**
 * The version of the API, for Azure.
 */
apiVersion?: string, 
/**
 * The longest time to make a vector, in milliseconds. Without one the memory searches by words.
 */
timeout?: number, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: LongMemoryConfig, };

/**
 * The properties that every memory node may have.
 */
export type MemoryConfig = { 
/**
 * The conversation if neither the agent nor the message names one.
 */
sessionId?: string, 
/**
 * Whose conversation it is, if neither the agent nor the message says it. `{{msg.x}}` is a property of the message.
 */
userId?: string, };

/**
 * The properties that every tool node may have, and every data node that is used as a tool.
 */
export type ToolConfig = { 
/**
 * The name that the model uses and that the agent's tab *Tools* lists: 1 to 64 letters, digits, `_` or `-`. Each tool of an agent needs its own name. Empty for the node's name.
 */
toolName?: string, 
/**
 * The model uses this text to decide whether to call the tool.
 */
description?: string, 
/**
 * The parameters that the model gives to the tool, as a table or as a JSON Schema of type object. The sidecar rejects other inputs.
 */
inputSchema?: string | { [key: string]: JsonValue }, 
/**
 * What happens when Node-RED or the sidecar restarts during a call. A call that changes nothing, or may be repeated, is made again. A call that must never happen twice is not: the run waits until a person answers whether it happened.
 */
effect?: EffectClass, 
/**
 * The longest time of a call, in milliseconds.
 */
timeout?: number, 
/**
 * Whether a run with an unknown call outcome waits for a person or fails with `TOOL_OUTCOME_UNKNOWN`.
 */
onUnknown?: OnUnknown, 
/**
 * Whether the provider forces the model to keep to the input's schema. It fits only schemas without optional properties. The sidecar checks every input in any case.
 */
strict?: boolean, 
/**
 * Whether clients of the sidecar's MCP server may call it.
 */
mcp?: boolean, };

/**
 * The properties of `http-request-tool`.
 */
export type HttpRequestConfig = { 
/**
 * How the tool proves who it is. The model never sees the values. They go only to *Hosts*, by https, or by http where the operator has allowed that host and port.
 */
authentication?: HttpAuthentication, 
/**
 * The user, for *User and password*.
 */
user?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow.
 */
password?: string, 
/**
 * The name of the header, for *Header*.
 */
headerName?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow.
 */
headerValue?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow.
 */
token?: string, 
/**
 * Where the API key is sent.
 */
apiKeyIn?: ApiKeyPlace, 
/**
 * The name of the header or of the query value with the API key. Empty for `X-Api-Key` and `api_key`.
 */
apiKeyName?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow.
 */
apiKey?: string, 
/**
 * The hosts that the model may call, separated by commas: `api.example.org`, `*.example.org` for the names below it, `nas.lan:8123` for one port. Empty for every public host. Required with *Authentication*, because the model chooses the address.
 */
hosts?: TextList, 
/**
 * The methods that the model may use: `GET`, `POST`, `PUT`, `DELETE`. Empty for all four.
 */
methods?: TextList, 
/**
 * Headers of every request, as a JSON object of names and texts. The model cannot replace them. Keys belong in *Authentication*.
 */
headers: { [key: string]: string }, 
/**
 * The longest time of a call, in milliseconds.
 */
timeout?: number, 
/**
 * Whether the tool follows redirects. Without it, the redirect is the result.
 */
followRedirects?: boolean, 
/**
 * The most redirects of one call, 0 to 20.
 */
maxRedirects?: number, 
/**
 * The most bytes of an answer that the model gets, up to 196608. A longer answer is cut off, and the result has its size and its SHA-256.
 */
maxBodyBytes?: number, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: HttpRequestConfig, };

/**
 * The properties of `knowledge-base-tool`.
 */
export type KnowledgeBaseConfig = { 
/**
 * The name of the knowledge base. `redflow kb add NAME PATH` makes it.
 */
collection?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow. If it is empty, the sidecar uses its environment variable `OPENAI_API_KEY`.
 */
apiKey?: string, 
/**
 * A config node with a key that several models use. A model's own *API key* takes precedence.
 */
keyNode?: string, 
/**
 * How many passages a search gives, unless the model asks for another number.
 */
topK?: number, 
/**
 * 0 to 1: passages that fit worse are left out. Empty for 0.7, or for 0 if the vectors find words only.
 */
minScore?: number, 
/**
 * How the query and the passages are compared.
 */
mode?: SearchMode, 
/**
 * Only documents with one of these tags. Empty for all.
 */
tags?: TextList, 
/**
 * Who makes the vector of the query. It must be the same as for the documents.
 */
embeddings?: Embeddings, 
/**
 * The model that makes the vector of the query. Empty for the one that made the knowledge base.
 */
embeddingModel?: string, 
/**
 * The length of the vectors, if the model can shorten them. Empty for that of the knowledge base.
 */
dimensions?: number, 
/**
 * For other servers with a compatible API, and for Ollama. Empty for the one of the knowledge base.
 */
baseURL?: string, 
/**
 * The deployment, for Azure.
 */
deployment?: string, 
/**
 * The version of the API, for Azure.
 */
apiVersion?: string, 
/**
 * The longest time of a call, in milliseconds.
 */
timeout?: number, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, 
/**
 * The same properties again.
 */
options?: KnowledgeBaseConfig, };

/**
 * The properties of `memory-tool`.
 */
export type MemoryToolConfig = { 
/**
 * The long memory that the agent may search and add to.
 */
memory?: string, 
/**
 * What the names of the tools begin with, if an agent has several memory tools. Empty for `memory`.
 */
toolName?: string, 
/**
 * The same properties again.
 */
options?: MemoryToolConfig, };

/**
 * The properties of `registry-tool`.
 */
export type RegistryToolConfig = { 
/**
 * The ids of the tools, as the registry has them: `weather.current`, or `weather.*` for all below it. `redflow tools list` shows the registry.
 */
ids: Array<string>, 
/**
 * Whether a run with an unknown call outcome waits for a person or fails with `TOOL_OUTCOME_UNKNOWN`.
 */
onUnknown?: OnUnknown, };

/**
 * The properties of `mcp-client`.
 */
export type McpClientConfig = { 
/**
 * The name of an MCP server in the sidecar's manifest. With *Address*, the name that its tools get.
 */
server?: string, 
/**
 * The address of an MCP server that is not in the manifest, for streamable HTTP. Empty to use the server of the manifest.
 */
url?: string, 
/**
 * How the sidecar proves to *Address* who it is. A server of the manifest has its own.
 */
auth?: McpAuthentication, 
/**
 * Kept in Node-RED's credentials, never in the flow.
 */
token?: string, 
/**
 * The name of the header, for *Header*.
 */
headerName?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow.
 */
headerValue?: string, 
/**
 * How the sidecar gets tokens, for *OAuth*. A person signs in once with `redflow mcp login`.
 */
grant?: OAuthGrant, 
/**
 * The id of the client, for *OAuth*. Empty if the issuer registers clients by itself.
 */
clientId?: string, 
/**
 * Kept in Node-RED's credentials, never in the flow.
 */
clientSecret?: string, 
/**
 * What the sidecar asks to be allowed, for *OAuth*. Empty for what the server asks for.
 */
scopes?: TextList, 
/**
 * The tools that the agent may call, separated by commas: names of the server, or patterns such as `read_*`. Empty for all.
 */
include?: TextList, 
/**
 * Tools that the agent may not call, even if *Tools* names them.
 */
exclude?: TextList, 
/**
 * The effect classes of tools, by name or pattern: `{"read_*": "read"}`. Every other tool is `at_most_once`: its calls are never made twice.
 */
effects: { [key: string]: EffectClass }, 
/**
 * Gives the agent `list_resources` and `read_resource` of the server.
 */
resources?: boolean, 
/**
 * Which definitions of tools are trusted. A definition that changes later must be approved: `redflow mcp pin`.
 */
trust?: McpTrust, 
/**
 * The longest time of a call, in milliseconds.
 */
timeout?: number, 
/**
 * The most bytes of a result that the model gets, up to 196608.
 */
maxResultBytes?: number, 
/**
 * Whether a run with an unknown call outcome waits for a person or fails with `TOOL_OUTCOME_UNKNOWN`.
 */
onUnknown?: OnUnknown, 
/**
 * The credentials of the node.
 */
credentials: { [key: string]: JsonValue }, };

/**
 * The properties of an `inject` node.
 */
export type InjectConfig = { 
/**
 * The properties of the message; absent in flows of old editors.
 */
props?: Array<InjectProperty>, 
/**
 * The payload, as text.
 */
payload?: JsonValue, 
/**
 * The type of the payload.
 */
payloadType?: string, 
/**
 * The topic of the message.
 */
topic?: string, 
/**
 * Whether it fires once, shortly after the flow has started.
 */
once?: boolean, 
/**
 * The delay of that, in seconds; a number or its text.
 */
onceDelay?: number | string, 
/**
 * The interval between firings, in seconds; a number or its text, empty for never.
 */
repeat?: number | string, 
/**
 * When it fires: a cron expression of 5 or 6 fields, in local time. `repeat` takes precedence.
 */
crontab?: string, };

/**
 * The properties of a `change` node.
 */
export type ChangeConfig = { 
/**
 * The rules, in order; absent in flows of old editors.
 */
rules?: Array<ChangeRule>, };

/**
 * The properties of a `debug` node.
 */
export type DebugConfig = { 
/**
 * Whether it shows messages.
 */
active?: boolean, 
/**
 * The property to show, or `true` for the whole message.
 */
complete?: JsonValue, 
/**
 * What `complete` names: `msg`, `full` or `jsonata`.
 */
targetType?: string, };

/**
 * The properties of a `catch` node.
 */
export type CatchConfig = { 
/**
 * The nodes whose errors it takes; null for all nodes of the tab, `group` for its group.
 */
scope?: string[] | "group" | null, 
/**
 * Whether it takes only errors that no other Catch node takes.
 */
uncaught?: boolean, };

/**
 * The properties of `link in` and `link out` nodes.
 */
export type LinkConfig = { 
/**
 * The ids of the nodes at the other end.
 */
links?: Array<string>, 
/**
 * `link`, or `return` for a link out that answers a link call.
 */
mode?: string, };

/**
 * The properties of a `tab`.
 */
export type TabConfig = { 
/**
 * The name its owner gave it.
 */
label?: string, 
/**
 * Whether the tab is disabled, so that none of its nodes run.
 */
disabled?: boolean, 
/**
 * The variables of the tab.
 */
env?: Array<EnvVariable>, };

/**
 * The properties of a `subflow`.
 */
export type SubflowConfig = { 
/**
 * The name its owner gave it.
 */
name?: string, 
/**
 * The input: none or one.
 */
in?: Array<SubflowPort>, 
/**
 * The outputs.
 */
out?: Array<SubflowPort>, 
/**
 * The variables of the subflow.
 */
env?: Array<EnvVariable>, };

/**
 * The properties of `group` and `global-config`.
 */
export type GroupConfig = { 
/**
 * The variables of the group, or of the whole flow.
 */
env?: Array<EnvVariable>, };

/** The subprotocol of the event socket. */
export const EVENTS_PROTOCOL = "redflow.events.v1";

/** The prefix of a token that a browser passes as a subprotocol. */
export const TOKEN_PROTOCOL_PREFIX = "redflow.token.";

/** The subprotocol of the bridge socket. */
export const BRIDGE_PROTOCOL = "redflow.bridge.v1";

/** The key of an object that stands for a value that JSON cannot hold. */
export const BRIDGE_TAG = "$redflow";

/** The cursor before the first stored event. */
export const CURSOR_START = "0";

/** The message that leaves the result port: our own keys, and the properties of the incoming message. */
export type AgentOutput = AgentOutputKeys & { [key: string]: unknown };

/** The edge table. An edge that no row allows is refused. */
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

/** The node catalogue: type, role, ports. An unlisted type is a data node. */
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
      "node.ai-agent",
      "node.agent-binding"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "ai-simple-agent",
    "role": "agent",
    "inputs": 1,
    "outputs": [
      "result",
      "stream"
    ],
    "schemas": [
      "node.ai-simple-agent",
      "node.agent-binding"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "ai-extractor",
    "role": "agent",
    "inputs": 1,
    "outputs": [
      "result",
      "stream"
    ],
    "schemas": [
      "node.ai-extractor",
      "node.agent-binding"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "ai-classifier",
    "role": "agent",
    "inputs": 1,
    "outputs": [
      "result",
      "stream"
    ],
    "schemas": [
      "node.ai-classifier",
      "node.agent-binding"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "ai-summarizer",
    "role": "agent",
    "inputs": 1,
    "outputs": [
      "result",
      "stream"
    ],
    "schemas": [
      "node.ai-summarizer",
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
    "type": "google-model",
    "role": "model",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.google-model"
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
    "type": "openai-key",
    "role": "data",
    "inputs": 0,
    "outputs": [],
    "schemas": [
      "node.key"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "anthropic-key",
    "role": "data",
    "inputs": 0,
    "outputs": [],
    "schemas": [
      "node.key"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "google-key",
    "role": "data",
    "inputs": 0,
    "outputs": [],
    "schemas": [
      "node.key"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "azure-openai-key",
    "role": "data",
    "inputs": 0,
    "outputs": [],
    "schemas": [
      "node.key"
    ],
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
    "type": "summary-memory",
    "role": "memory",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.summary-memory"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "long-memory",
    "role": "memory",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.long-memory"
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
      "node.tool",
      "node.http-request-tool"
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
      "node.tool",
      "node.knowledge-base-tool"
    ],
    "tool": {
      "name": "knowledge_base_search",
      "description": "Searches the knowledge base for passages close in meaning to the query.",
      "inputSchema": "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\"},\"limit\":{\"type\":\"integer\",\"minimum\":1}},\"required\":[\"query\"]}"
    },
    "transparent": false
  },
  {
    "type": "memory-tool",
    "role": "tool",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.memory-tool"
    ],
    "tool": null,
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
    "type": "registry-tool",
    "role": "tool",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.registry-tool"
    ],
    "tool": null,
    "transparent": false
  },
  {
    "type": "mcp-client",
    "role": "tool",
    "inputs": 1,
    "outputs": [
      "reply"
    ],
    "schemas": [
      "node.mcp-client"
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
