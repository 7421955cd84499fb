//! Generates `bindings/src/types.ts` and `schemas/`. Built only for `cargo xtask codegen` and its drift test,
//! never for the shipped binary.

use crate::{
    action, api, archive, attached, bridge, catalogue, chat, code, console, deployed_model, diagnostic,
    digest, edge, effect, envelope, event, fact, flow, full_output, id, input, journal, knowledge_api,
    limits, manifest, mcp, memory, memory_api, model_test, node, observability, phrase, plan, policy, replay,
    run, run_error, source, stream, tally, tool, tool_api, trace, transcript,
};
use node::declaration::{JsonShape, Kind, Property, PropertySet, Whole};
use node::source::{schema, typescript as declaration, written_schema};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

mod nodes;

pub use nodes::{docs, nodes, palette_types, phrases, sidecar_types};

/// A generated file: its name in its folder, and its text.
pub type GeneratedFile = (String, String);

const WRITTEN: &str = "// Written by `cargo xtask codegen`. Do not edit.\n";

macro_rules! declarations {
    ($config:expr, $($type:ty),+ $(,)?) => { [$(declaration::<$type>($config)),+].concat() };
}

/// The text of `bindings/src/types.ts`.
#[must_use]
pub fn typescript() -> String {
    let config = ts_rs::Config::new().with_large_int("number");
    let mut out = String::from(WRITTEN);
    let _ = write!(out, "\nexport const CONTRACT_VERSION = {};\n", crate::CONTRACT_VERSION);
    out += &declarations!(
        &config,
        Value,
        id::NodeId,
        id::RunId,
        id::CallId,
        id::InstanceId,
        id::Principal,
        id::EffectId,
        id::NodeRef,
        id::NodeSummary,
        digest::Digest,
        code::DiagnosticCode,
        code::RunErrorCode,
        code::ToolCode,
        code::StoreCode,
        code::ArchiveCode,
        code::ApiCode,
        code::Severity,
        phrase::Phrase,
        phrase::PhraseArg,
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
        full_output::FullOutput,
        full_output::RunMetadata,
        full_output::ToolCallRecord,
        full_output::ToolCallResult,
        full_output::FinishReason,
        edge::Role,
        edge::PortKind,
        edge::EdgeKind,
        flow::Profile,
        flow::FlowShape,
        flow::FlowNode,
        node::StopCondition,
        node::EffectClass,
        node::OnUnknown,
        node::ToolChoice,
        node::OutputFormat,
        node::Budget,
        node::BudgetKind,
        tally::RunTally,
        node::StopSequences,
        node::TextList,
        node::HttpAuthentication,
        node::ApiKeyPlace,
        node::Embeddings,
        node::TagMatch,
        node::MemoryScope,
        node::McpAuthentication,
        node::ContextSpanConfig,
        archive::SearchMode,
        node::OpenaiApi,
        node::StructuredOutput,
        node::ResponseFormat,
        node::ReasoningEffort,
        node::CapabilityConfig,
        node::PromptCache,
        node::ThinkingDisplay,
        node::ThinkingLevel,
        node::AzureAuthentication,
        node::Category,
        node::SummaryLength,
        node::InjectProperty,
        node::ChangeRule,
        node::EnvVariable,
        node::SubflowPort,
        node::SubflowWire,
        limits::RunLimits,
        plan::AgentPlan,
        plan::PlanNode,
        plan::AgentSpec,
        plan::ConverseSpec,
        plan::TaskSpec,
        plan::TaskKind,
        plan::ToolSpec,
        tool::ToolRetry,
        tool::ToolOrigin,
        tool::ToolState,
        tool::NetworkPermission,
        tool::FilePermission,
        tool::ToolPermissions,
        tool::RuleAction,
        tool::MatchedCalls,
        tool::ToolRule,
        tool::ToolEntry,
        tool::ToolInvocation,
        tool_api::ToolList,
        tool_api::ToolCallRequest,
        tool_api::ToolCallList,
        tool_api::AgentDetail,
        tool_api::AgentMemory,
        tool_api::ToolCallCount,
        archive::Collection,
        archive::Document,
        archive::PassageMetadata,
        archive::KnowledgePassage,
        archive::HitReason,
        knowledge_api::KnowledgeBaseList,
        knowledge_api::KnowledgeDocumentList,
        knowledge_api::StoredPassage,
        knowledge_api::KnowledgePassageList,
        knowledge_api::KnowledgeSearch,
        knowledge_api::KnowledgeSearchResult,
        knowledge_api::EmbedderChoice,
        knowledge_api::DocumentStatus,
        knowledge_api::DocumentAnswer,
        archive::EntryKind,
        archive::EntryState,
        archive::EntrySource,
        archive::Entry,
        archive::SearchHit,
        memory::DataOwner,
        memory::MemoryStats,
        memory_api::MemoryList,
        memory_api::MemoryCollection,
        memory_api::MemoryFilter,
        memory_api::MemoryEntryList,
        memory_api::MemoryEntryDetail,
        memory_api::MemoryExportLine,
        memory_api::MemorySearch,
        memory_api::MemorySearchResult,
        memory_api::MemoryPut,
        memory_api::Decision,
        memory_api::MemoryReview,
        memory_api::MemoryReviewed,
        memory_api::ForgetRequest,
        memory_api::ForgetAnswer,
        mcp::McpNetwork,
        mcp::McpTrust,
        mcp::OAuthGrant,
        mcp::McpAuth,
        mcp::McpServer,
        mcp::McpConfinement,
        mcp::McpConfinementGap,
        mcp::McpOrigin,
        mcp::McpTransport,
        mcp::McpServerState,
        mcp::McpServerSummary,
        mcp::McpServerList,
        mcp::McpTightened,
        mcp::McpToolInfo,
        mcp::McpResourceInfo,
        mcp::McpPromptInfo,
        mcp::McpServerDetail,
        mcp::McpPinRequest,
        mcp::McpLogin,
        manifest::Manifest,
        manifest::ManifestTool,
        manifest::ManifestToolKind,
        manifest::HttpMethod,
        manifest::ManifestCredential,
        manifest::NodeOperation,
        policy::PolicyRule,
        policy::LimitScope,
        policy::RoleMembers,
        transcript::ChatRole,
        transcript::ChatMessage,
        transcript::RequestedCall,
        transcript::OpaqueParts,
        transcript::Image,
        transcript::ImageType,
        input::InputDetails,
        fact::Fact,
        fact::ModelAnswer,
        fact::FailedModel,
        fact::ModelFinish,
        fact::Usage,
        fact::ToolResult,
        archive::SourceKind,
        archive::Trust,
        source::Source,
        memory::Consolidated,
        memory::Forgotten,
        journal::JournalRecord,
        journal::JournalLine,
        model_test::ModelTestRequest,
        model_test::ModelTest,
        model_test::SentRequest,
        model_test::SentFormat,
        model_test::SchemaUse,
        model_test::ModelServer,
        model_test::ModelList,
        deployed_model::ModelPrice,
        deployed_model::PriceSource,
        deployed_model::PriceTier,
        deployed_model::ModelDescription,
        deployed_model::DeployedModel,
        deployed_model::DeployedModelList,
        model_test::ListedModel,
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
        event::ConclusionReason,
        event::FlowEvent,
        effect::Ending,
        effect::OperationCall,
        replay::ReplayReport,
        replay::Difference,
        replay::DifferenceKind,
        replay::CallRecord,
        replay::RunDetail,
        replay::StoreProblem,
        stream::StreamEvent,
        stream::ModelDelta,
        stream::StreamPart,
        stream::StreamPartKind,
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
        console::Feature,
        console::Session,
        console::SignInRequest,
        console::CutText,
        console::IterationDetail,
        console::CallDetail,
        console::JournalPage,
        trace::TraceStep,
        trace::TraceStepKind,
        trace::RunTrace,
        console::TreeRun,
        console::RunTree,
        console::StatsBy,
        console::Stats,
        console::StatsKey,
        console::StatsRow,
        console::CheckAnswer,
        console::FlowGraph,
        console::GraphTab,
        console::GraphNode,
        console::GraphWire,
        console::TokenList,
        console::TokenEntry,
        console::TokenRequest,
        console::NewToken,
        console::ConfigView,
        console::ConfigEntry,
        attached::AttachedState,
        attached::FlowDifferences,
        attached::NodeDifference,
        bridge::BridgeRequest,
        bridge::ToolReply,
        bridge::ServiceProblem,
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
    out.extend(node::property_sets().filter_map(|set| config_type(set, &config)));
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
    out += "\n/** The message that leaves the result port: our own keys, and the properties of the incoming message. */\n";
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
        whole::<full_output::FullOutput>("full-output"),
        whole::<run_error::RunError>("run-error"),
        whole::<diagnostic::CheckReport>("check-report"),
        whole::<event::RunEvent>("run-event"),
        whole::<run::RunSummary>("run-summary"),
        whole::<model_test::ModelTest>("model-test"),
        whole::<plan::AgentPlan>("agent-plan"),
        whole::<plan::AgentSpec>("agent-spec"),
        file("tool-manifest", &written_schema::<manifest::Manifest>()),
        whole::<tool::ToolEntry>("tool-entry"),
        whole::<flow::FlowNode>("flow-node"),
    ];
    files.extend(node::property_sets().filter_map(config_schema));
    files.extend(variants::<action::ModelAction>("model-action", "action"));
    files.extend(variants::<fact::Fact>("fact", "type"));
    files.extend(variants::<journal::JournalRecord>("journal", "kind"));
    files.extend(variants::<event::FlowEvent>("flow-event", "type"));
    files
}

/// The TypeScript type of a property set. Its docs are the declared help texts.
fn config_type(set: &PropertySet, config: &ts_rs::Config) -> Option<String> {
    let mut text = (set.source?.typescript)(config);
    for Property { name, help, .. } in set.properties {
        for field in [format!("{name}?: "), format!("{name}: ")] {
            text = text.replacen(&format!(" {field}"), &format!(" \n/**\n * {help}\n */\n{field}"), 1);
        }
    }
    Some(text)
}

/// The schema of a property set, with the declared help texts and limits.
fn config_schema(set: &PropertySet) -> Option<GeneratedFile> {
    let mut schema = (set.source?.schema)();
    for property in set.properties {
        let pointer = format!("/properties/{}", property.name);
        if let Some(rule) = schema.pointer_mut(&pointer) {
            if *rule == true {
                *rule = json!({});
            }
            rule["description"] = property.help.into();
            rule.as_object_mut().into_iter().for_each(|rule| rule.extend(limits(property.kind)));
        }
    }
    bound_integers(&mut schema);
    Some(file(set.schema, &schema))
}

/// Gives every integer without limits those of its Rust type. Otherwise the checker would accept a number that
/// no node can be built with. Floats, which editors write, hold integers of up to 53 bits.
fn bound_integers(schema: &mut Value) {
    const EXACT: i64 = 9_007_199_254_740_991;
    match schema {
        Value::Object(rule) => {
            let (least, greatest) = match rule.get("format").and_then(Value::as_str) {
                Some("uint16") => (0, i64::from(u16::MAX)),
                Some("uint32") => (0, i64::from(u32::MAX)),
                Some("uint64") => (0, EXACT),
                Some("int64") => (-EXACT, EXACT),
                _ => return rule.values_mut().for_each(bound_integers),
            };
            rule.entry("minimum").or_insert(least.into());
            rule.entry("maximum").or_insert(greatest.into());
        }
        Value::Array(items) => items.iter_mut().for_each(bound_integers),
        _ => {}
    }
}

/// The limits that a kind has in the schema, where its type does not have them.
fn limits(kind: Kind) -> Map<String, Value> {
    let rows = match kind {
        Kind::Line { max } => vec![("maxLength", max.map(Value::from))],
        Kind::Whole(Whole { min, max, .. }) => {
            vec![("minimum", min.map(Value::from)), ("maximum", max.map(Value::from))]
        }
        Kind::Decimal { min, max } => vec![("minimum", Some(json!(min))), ("maximum", Some(json!(max)))],
        Kind::Day => vec![("pattern", Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}$".into()))],
        Kind::Json { shape: JsonShape::List, .. } => vec![("minItems", Some(1.into()))],
        _ => vec![],
    };
    rows.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// The text of the palette's `http-statuses.ts`: which code gives a failed request which status.
#[must_use]
pub fn http_statuses() -> String {
    let runs = code::RunErrorCode::ALL.iter().map(|code| (code.as_str(), code.http_status()));
    let api = code::ApiCode::ALL.iter().map(|code| (code.as_str(), code.class()));
    let mut out =
        format!("{WRITTEN}\n/** The HTTP status of a response if a message failed with a code. */\n");
    out += "export const HTTP_STATUSES: Readonly<Record<string, number>> = {\n";
    for (code, status) in runs.chain(api) {
        let _ = writeln!(out, "  {code}: {status},");
    }
    out + "};\n"
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
