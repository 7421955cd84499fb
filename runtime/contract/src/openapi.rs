//! Generates `schemas/openapi.json` from the route table and the types that it names. Built only for `cargo
//! xtask codegen` and its drift test.

use crate::api::Scope;
use crate::route::{ANY_BODY, Answer, BYTES_BODY, ROUTES, Route};
use crate::{
    api, archive, attached, bridge, catalogue, chat, console, deployed_model, diagnostic, edge, event,
    knowledge_api, manifest, mcp, memory_api, model_test, observability, replay, run, stream, tool, tool_api,
    trace,
};
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// The prefix of references to types.
const TYPES: &str = "#/components/schemas/";

/// The text of `schemas/openapi.json`.
#[must_use]
pub fn openapi() -> String {
    let mut paths = Map::new();
    for route in ROUTES {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_ascii_lowercase()] = operation(route);
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Redflow Runtime",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "The HTTP interface of the sidecar. Every error is an ApiError. `GET /api/codes/{code}` explains its code.",
        },
        "servers": [{"url": "http://127.0.0.1:1881"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": types(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "The token that `redflow token` prints."},
                "session": {
                    "type": "apiKey", "in": "cookie", "name": "redflow_session",
                    "description": "The cookie that a browser gets for a one-time code or a token.",
                },
            },
        },
    });
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

fn operation(route: &Route) -> Value {
    let scope = route.scope.map_or("open", Scope::as_str);
    let mut parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    parameters.extend(route.query.iter().map(|query| {
        json!({
            "name": query.name, "in": "query", "description": query.about, "schema": {"type": "string"},
        })
    }));
    let (status, answer) = route.answer;
    let mut responses = Map::new();
    responses.insert(status.to_string(), success(answer));
    responses.insert(
        "default".to_owned(),
        json!({"description": "Why the request failed.", "content": content("application/json", &reference("ApiError"))}),
    );
    let mut operation = json!({
        "operationId": format!("{:?}", route.id),
        "description": route.about,
        "x-scope": scope,
        "responses": responses,
    });
    if route.scope.is_none() {
        operation["security"] = json!([]);
    }
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(body) = route.body {
        let content = match body {
            ANY_BODY => content("application/json", &json!({})),
            BYTES_BODY => content(BYTES_BODY, &json!({})),
            name => content("application/json", &reference(name)),
        };
        operation["requestBody"] = json!({"required": true, "content": content});
    }
    operation
}

fn success(answer: Answer) -> Value {
    match answer {
        Answer::Json(name) => {
            json!({"description": "Success.", "content": content("application/json", &reference(name))})
        }
        Answer::OneOf(names) => {
            let types: Vec<Value> = names.iter().map(|name| reference(name)).collect();
            let one = json!({"oneOf": types});
            json!({"description": "Success.", "content": content("application/json", &one)})
        }
        Answer::List(name) => {
            let list = json!({"type": "array", "items": reference(name)});
            json!({"description": "Success.", "content": content("application/json", &list)})
        }
        Answer::Events(name) => {
            let list = json!({"type": "array", "items": reference(name)});
            let mut both = content("application/json", &list);
            both["text/event-stream"] = json!({"schema": {"type": "string"}});
            json!({"description": "Success. In a stream, the data of each event is one of them.", "content": both})
        }
        Answer::JsonOrEvents(whole, event) => {
            let mut both = content("application/json", &reference(whole));
            both["text/event-stream"] = json!({"schema": {"type": "string"}});
            let about = format!("Success. In a stream, the data of each event is a {event}.");
            json!({"description": about, "content": both})
        }
        Answer::Text(kind) => {
            json!({"description": "Success.", "content": content(kind, &json!({"type": "string"}))})
        }
        Answer::TextOrJson(kind, name) => {
            let mut both = content(kind, &json!({"type": "string"}));
            both["application/json"] = json!({"schema": reference(name)});
            json!({"description": "Success.", "content": both})
        }
        Answer::Foreign => {
            json!({"description": "Success. Node-RED or Redflow defines the shape.", "content": content("application/json", &json!({}))})
        }
        Answer::Empty => json!({"description": "Success."}),
        Answer::Socket => json!({"description": "The connection becomes a WebSocket."}),
        Answer::Redirect => json!({"description": "Continue at the address in `Location`."}),
    }
}

fn content(kind: &str, schema: &Value) -> Value {
    json!({kind: {"schema": schema}})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{TYPES}{name}")})
}

macro_rules! add {
    ($generator:expr, $($type:ty),+ $(,)?) => {{
        $(add_type::<$type>($generator);)+
    }};
}

fn add_type<T: JsonSchema>(generator: &mut SchemaGenerator) {
    let _ = generator.subschema_for::<T>();
}

/// Every type that a route or a socket names, and the types they contain.
fn types() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = TYPES.trim_start_matches('#').trim_end_matches('/').into()
    });
    let mut generator = settings.into_generator();
    add!(
        &mut generator,
        api::ApiError,
        api::FlowList,
        api::Deployment,
        api::DeployRequest,
        api::DeployAnswer,
        api::CheckRequest,
        api::StartRequest,
        api::StartAnswer,
        api::RunList,
        api::CancelRequest,
        api::ResolveRequest,
        api::CodeEntry,
        api::Health,
        api::SignInCode,
        tool::ToolEntry,
        tool::ToolInvocation,
        tool_api::ToolList,
        tool_api::ToolCallRequest,
        tool_api::ToolCallList,
        tool_api::AgentDetail,
        manifest::ManifestTool,
        mcp::McpServerList,
        mcp::McpServerDetail,
        mcp::McpPinRequest,
        mcp::McpLogin,
        knowledge_api::KnowledgeBaseList,
        knowledge_api::KnowledgeDocumentList,
        knowledge_api::KnowledgePassageList,
        knowledge_api::KnowledgeSearch,
        knowledge_api::KnowledgeSearchResult,
        knowledge_api::EmbedderChoice,
        knowledge_api::DocumentAnswer,
        memory_api::MemoryList,
        memory_api::MemoryEntryList,
        memory_api::MemorySearch,
        memory_api::MemorySearchResult,
        memory_api::MemoryEntryDetail,
        memory_api::MemoryPut,
        archive::Entry,
        memory_api::MemoryReview,
        memory_api::MemoryReviewed,
        memory_api::ForgetRequest,
        memory_api::ForgetAnswer,
        model_test::ModelTestRequest,
        model_test::ModelTest,
        model_test::ModelList,
        deployed_model::DeployedModelList,
        console::Session,
        console::SignInRequest,
        console::IterationDetail,
        console::JournalPage,
        trace::RunTrace,
        console::RunTree,
        console::Stats,
        console::CheckAnswer,
        console::FlowGraph,
        console::TokenList,
        console::TokenRequest,
        console::NewToken,
        console::ConfigView,
        attached::AttachedState,
        bridge::InstanceList,
        bridge::BridgeRequest,
        bridge::BridgeMessage,
        diagnostic::CheckReport,
        event::RunEvent,
        run::RunSummary,
        replay::RunDetail,
        replay::ReplayReport,
        stream::EventsRequest,
        stream::EventsMessage,
        chat::ChatSend,
        chat::ChatSent,
        chat::ChatHistory,
        observability::ObservabilityEvent,
        catalogue::NodeType,
        edge::EdgeRule,
    );
    let mut types = generator.take_definitions(true);
    types.sort_keys();
    types
}
