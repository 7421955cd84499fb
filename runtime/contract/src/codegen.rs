//! Generates `bindings/src/types.ts` and `schemas/`. Built only for `cargo xtask codegen` and its drift test,
//! never for the shipped binary.

use crate::{
    action, api, attached, bridge, catalogue, chat, code, diagnostic, digest, edge, effect, envelope, event,
    fact, flow, id, journal, limits, model_test, node_config, observability, plan, replay, run, run_error,
    service_config, stream, transcript,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use ts_rs::TS;

/// A generated file: its name in its folder, and its text.
pub type GeneratedFile = (String, String);

macro_rules! declarations {
    ($config:expr, $($type:ty),+ $(,)?) => {{
        let mut out = String::new();
        $(declaration::<$type>($config, &mut out);)+
        out
    }};
}

fn declaration<T: TS>(config: &ts_rs::Config, out: &mut String) {
    out.push('\n');
    if let Some(docs) = T::docs() {
        out.push_str(&docs);
    }
    let _ = writeln!(out, "export {}", T::decl(config));
}

/// The text of `bindings/src/types.ts`.
#[must_use]
pub fn typescript() -> String {
    let config = ts_rs::Config::new().with_large_int("number");
    let mut out = String::from("// Written by `cargo xtask codegen`. Do not edit.\n");
    let _ = write!(out, "\nexport const CONTRACT_VERSION = {};\n", crate::CONTRACT_VERSION);
    out += &declarations!(
        &config,
        Value,
        id::NodeId,
        id::RunId,
        id::CallId,
        id::InstanceId,
        id::EffectId,
        id::NodeRef,
        id::NodeSummary,
        digest::Digest,
        code::DiagnosticCode,
        code::RunErrorCode,
        code::StoreCode,
        code::ApiCode,
        code::Severity,
        diagnostic::Diagnostic,
        diagnostic::CheckReport,
        run_error::RunError,
        run_error::Failure,
        run_error::MessageError,
        run_error::ErrorSource,
        action::ActionKind,
        action::ModelAction,
        envelope::AgentEnvelope,
        envelope::EnvelopeState,
        envelope::EnvelopeModel,
        envelope::EnvelopeTools,
        envelope::ToolHistoryItem,
        envelope::CallOutcome,
        envelope::EnvelopeObservability,
        envelope::EnvelopeEvent,
        envelope::EnvelopeAction,
        envelope::StopReason,
        envelope::AgentResult,
        envelope::AgentOutput,
        envelope::ModelResponseResult,
        edge::Role,
        edge::PortKind,
        edge::EdgeKind,
        flow::Profile,
        flow::FlowShape,
        flow::FlowNode,
        node_config::AgentBindingConfig,
        node_config::StopCondition,
        node_config::EffectClass,
        node_config::OnUnknown,
        node_config::ToolConfig,
        node_config::MemoryConfig,
        node_config::ScriptedModelConfig,
        service_config::StopSequences,
        service_config::OpenaiApi,
        service_config::StructuredOutput,
        service_config::ReasoningEffort,
        service_config::CapabilityConfig,
        service_config::OpenaiModelConfig,
        service_config::AnthropicModelConfig,
        service_config::AzureModelConfig,
        service_config::OllamaModelConfig,
        service_config::BufferMemoryConfig,
        service_config::WindowMemoryConfig,
        service_config::RedisMemoryConfig,
        node_config::InjectProperty,
        node_config::InjectConfig,
        node_config::DebugConfig,
        node_config::ChangeRule,
        node_config::ChangeConfig,
        node_config::LinkConfig,
        node_config::CatchConfig,
        node_config::EnvVariable,
        node_config::TabConfig,
        node_config::GroupConfig,
        node_config::SubflowPort,
        node_config::SubflowWire,
        node_config::SubflowConfig,
        limits::RunLimits,
        plan::AgentPlan,
        plan::PlanNode,
        plan::AgentSpec,
        plan::ToolSpec,
        transcript::ChatRole,
        transcript::ChatMessage,
        transcript::RequestedCall,
        transcript::OpaqueParts,
        fact::Fact,
        fact::ModelAnswer,
        fact::ModelFinish,
        fact::Usage,
        fact::ToolResult,
        journal::JournalRecord,
        journal::JournalLine,
        model_test::ModelTest,
        run::RunSummary,
        run::RunStatus,
        run::WaitingCall,
        run::RunRequest,
        chat::ChatItem,
        chat::ChatSpeaker,
        chat::ChatSend,
        chat::ChatSent,
        chat::ChatHistory,
        event::RunEvent,
        event::RunEventKind,
        event::FlowEvent,
        effect::Ending,
        replay::ReplayReport,
        replay::Difference,
        replay::DifferenceKind,
        replay::CallRecord,
        replay::RunDetail,
        replay::StoreProblem,
        stream::StreamEvent,
        stream::ModelDelta,
        stream::EventsRequest,
        stream::EventsMessage,
        observability::ObservabilityEvent,
        observability::FrameStart,
        observability::NodeInput,
        observability::NodeOutput,
        observability::NodeError,
        observability::NodeErrorText,
        observability::FrameEnd,
        observability::FrameStats,
        observability::IoEvent,
        observability::IoDirection,
        observability::PayloadPreview,
        observability::NodeSemantics,
        observability::NodeRole,
        observability::NodeBehavior,
        observability::NodeTiming,
        api::Scope,
        api::ProblemCode,
        api::ApiError,
        api::FlowList,
        api::FlowSummary,
        api::AgentState,
        api::Deployment,
        api::DeployRequest,
        api::DeployAnswer,
        api::CheckRequest,
        api::StartRequest,
        api::StartAnswer,
        api::StartedRun,
        api::RunList,
        api::CancelRequest,
        api::ResolveRequest,
        api::CodeEntry,
        api::CodeSet,
        api::Health,
        api::SignInCode,
        attached::AttachedState,
        attached::FlowDifferences,
        attached::NodeDifference,
        bridge::BridgeRequest,
        bridge::ToolReply,
        bridge::BridgeMessage,
        bridge::BridgeLimits,
        bridge::StatusFill,
        bridge::StatusShape,
        bridge::InstanceState,
        bridge::InstanceList,
        catalogue::NodeType,
        catalogue::FixedTool,
        edge::EdgeRule,
    );
    let _ = write!(out, "\n/** The subprotocol of the event socket. */\n");
    let _ = writeln!(out, "export const EVENTS_PROTOCOL = {:?};", stream::EVENTS_PROTOCOL);
    let _ = write!(out, "\n/** The prefix of a token that a browser passes as a subprotocol. */\n");
    let _ = writeln!(out, "export const TOKEN_PROTOCOL_PREFIX = {:?};", stream::TOKEN_PROTOCOL_PREFIX);
    let _ = write!(out, "\n/** The subprotocol of the bridge socket. */\n");
    let _ = writeln!(out, "export const BRIDGE_PROTOCOL = {:?};", bridge::BRIDGE_PROTOCOL);
    let _ = write!(out, "\n/** The key of an object that stands for a value that JSON cannot hold. */\n");
    let _ = writeln!(out, "export const BRIDGE_TAG = {:?};", bridge::TAG);
    let _ = write!(out, "\n/** The cursor before the first stored event. */\n");
    let _ = writeln!(out, "export const CURSOR_START = {:?};", stream::CURSOR_START);
    out += "\n/** The message that leaves port 3: our own keys, and the properties of the incoming message. */\n";
    out += "export type AgentOutput = AgentOutputKeys & { [key: string]: unknown };\n";
    let _ = write!(out, "\n/** The edge table. An edge that no row allows is refused. */\n");
    let table = serde_json::to_string_pretty(edge::EDGE_TABLE).unwrap_or_default();
    let _ = writeln!(out, "export const EDGE_TABLE = {table} as const;");
    let _ = write!(out, "\n/** The node catalogue: type, role, ports. An unlisted type is a data node. */\n");
    let rows = serde_json::to_string_pretty(catalogue::CATALOGUE).unwrap_or_default();
    let _ = writeln!(out, "export const CATALOGUE = {rows} as const;");
    out
}

/// The generated files of `schemas/`.
#[must_use]
pub fn schemas() -> Vec<GeneratedFile> {
    let mut files = vec![
        whole::<envelope::AgentEnvelope>("agent-envelope"),
        whole::<envelope::AgentOutput>("agent-output"),
        whole::<envelope::AgentResult>("agent-result"),
        whole::<envelope::ModelResponseResult>("model-response-result"),
        whole::<run_error::RunError>("run-error"),
        whole::<diagnostic::CheckReport>("check-report"),
        whole::<event::RunEvent>("run-event"),
        whole::<run::RunSummary>("run-summary"),
        whole::<model_test::ModelTest>("model-test"),
        whole::<plan::AgentPlan>("agent-plan"),
        whole::<plan::AgentSpec>("agent-spec"),
        whole::<flow::FlowNode>("flow-node"),
        whole::<node_config::AgentBindingConfig>("node.agent-binding"),
        whole::<node_config::ToolConfig>("node.tool"),
        whole::<node_config::MemoryConfig>("node.memory"),
        whole::<node_config::ScriptedModelConfig>("node.scripted-model"),
        whole::<service_config::OpenaiModelConfig>("node.openai-model"),
        whole::<service_config::AnthropicModelConfig>("node.anthropic-model"),
        whole::<service_config::AzureModelConfig>("node.azure-model"),
        whole::<service_config::OllamaModelConfig>("node.ollama-model"),
        whole::<service_config::BufferMemoryConfig>("node.buffer-memory"),
        whole::<service_config::WindowMemoryConfig>("node.window-memory"),
        whole::<service_config::RedisMemoryConfig>("node.redis-memory"),
        whole::<node_config::InjectConfig>("node.inject"),
        whole::<node_config::DebugConfig>("node.debug"),
        whole::<node_config::ChangeConfig>("node.change"),
        whole::<node_config::LinkConfig>("node.link"),
        whole::<node_config::CatchConfig>("node.catch"),
        whole::<node_config::TabConfig>("node.tab"),
        whole::<node_config::GroupConfig>("node.group"),
        whole::<node_config::SubflowConfig>("node.subflow"),
    ];
    files.extend(variants::<action::ModelAction>("model-action", "action"));
    files.extend(variants::<fact::Fact>("fact", "type"));
    files.extend(variants::<journal::JournalRecord>("journal", "kind"));
    files.extend(variants::<event::FlowEvent>("flow-event", "type"));
    files
}

fn schema<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

fn whole<T: JsonSchema>(name: &str) -> GeneratedFile {
    file(name, &schema::<T>())
}

/// Makes one file per variant of a tagged union. A validator reports little about a `oneOf`, so readers look
/// at the tag first and then validate that variant.
fn variants<T: JsonSchema>(name: &str, tag: &str) -> Vec<GeneratedFile> {
    let union = schema::<T>();
    let definitions = union.get("$defs").cloned().unwrap_or(json!({}));
    let list = union.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    list.into_iter()
        .filter_map(|variant| {
            let tag = variant.pointer(&format!("/properties/{tag}/const"))?.as_str()?.to_owned();
            let mut root = Map::new();
            root.insert("$schema".into(), union.get("$schema")?.clone());
            root.insert("title".into(), Value::from(format!("{name}.{tag}")));
            root.extend(variant.as_object()?.clone());
            let used = used_definitions(&Value::Object(root.clone()), &definitions);
            if !used.is_empty() {
                root.insert("$defs".into(), Value::Object(used));
            }
            Some(file(&format!("{name}.{tag}"), &Value::Object(root)))
        })
        .collect()
}

/// The definitions a schema refers to, directly or through others.
fn used_definitions(schema: &Value, definitions: &Value) -> Map<String, Value> {
    let mut used = Map::new();
    let mut texts = vec![schema.to_string()];
    while let Some(text) = texts.pop() {
        for (name, definition) in definitions.as_object().into_iter().flatten() {
            if text.contains(&format!("\"#/$defs/{name}\"")) && !used.contains_key(name) {
                used.insert(name.clone(), definition.clone());
                texts.push(definition.to_string());
            }
        }
    }
    used.sort_keys();
    used
}

fn file(name: &str, schema: &Value) -> GeneratedFile {
    let text = serde_json::to_string_pretty(schema).unwrap_or_default();
    (format!("{name}.schema.json"), text + "\n")
}
