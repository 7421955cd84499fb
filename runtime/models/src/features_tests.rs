use super::{FEATURES, ImageInput, ModelFeatures, PromptCaching};
use crate::ModelSettings;
use crate::recording::{DeltaLog, Node, RecordedRequest, Recording, Reply, block_on};
use crate::samples::{assistant_calls, tool, tool_result, user};
use crate::transport::Transport;
use pretty_assertions::assert_eq;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::id::{InstanceId, NodeRef};
use redflow_contract::node::NODES;
use redflow_contract::node::declaration::Kind;
use redflow_contract::plan::ToolSpec;
use redflow_contract::transcript::{ChatMessage, Image, ImageType, Transcript};
use redflow_ports::{AnswerKind, CacheKey, ModelRequest, ReplyFormat, SchemaText, ToolChoice};
use serde_json::{Value, json};
use std::sync::Arc;

/// Stands in what the provider sends, to be found in the next request.
const MARK: &str = "the-mark-of-the-test";

/// A call of a node, with what decides about a feature.
struct Probe {
    node: Node,
    choice: ToolChoice,
    format: ReplyFormat,
    streamed: bool,
}

impl Probe {
    fn new(features: &ModelFeatures, more: &Value) -> Self {
        let mut props: Value = serde_json::from_str(features.properties).unwrap();
        props.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        props["credentials"] = json!({"apiKey": "own-key"});
        let node = Node::new(features.node, props);
        Self { node, choice: ToolChoice::Auto, format: ReplyFormat::Text, streamed: false }
    }

    fn with_tools(mut self) -> Self {
        self.node.tools = tools();
        self
    }

    fn call(
        &self,
        script: impl IntoIterator<Item = Reply>,
    ) -> (Option<RecordedRequest>, Option<ModelAnswer>) {
        let recording = Recording::new(script);
        let transport: Arc<dyn Transport> = Arc::<Recording>::clone(&recording);
        let settings = ModelSettings { transport: Some(transport), ..ModelSettings::default() };
        let model = self.node.build(settings).unwrap();
        let mut transcript = Transcript::default();
        self.node.messages.iter().for_each(|message| transcript.push(Arc::new(message.clone())));
        let answer_kind = &AnswerKind::Reply(redflow_ports::Reply {
            tools: self.node.tools.clone().into(),
            choice: self.choice,
            format: self.format.clone(),
            ..redflow_ports::Reply::default()
        });
        let deltas = DeltaLog::default();
        let agent = NodeRef { instance: InstanceId::local(), node_id: "agent".into() };
        let session = self.node.session;
        let request = ModelRequest {
            answer_kind,
            cache_key: session.map(|session| CacheKey { agent: &agent, session: Some(session) }),
            delta_observer: self.streamed.then_some(&deltas),
            ..ModelRequest::for_text(&transcript)
        };
        let answer = block_on(model.call(request)).ok();
        (recording.requests().into_iter().next(), answer)
    }

    /// The body of the request; null if there was none.
    fn body(&self) -> Value {
        self.call([]).0.map_or(Value::Null, |request| request.body)
    }
}

fn tools() -> Vec<ToolSpec> {
    let schema = json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"],
        "additionalProperties": false});
    vec![tool("probe_a", "First.", Some(schema.clone())), tool("probe_b", "Second.", Some(schema))]
}

fn has(body: &Value, text: &str) -> bool {
    body.to_string().contains(text)
}

/// An answer that thinks and calls two tools, as each interface writes it.
fn thinking_answer(url: &str) -> Value {
    let arguments = r#"{"x":"1"}"#;
    if url.contains("/chat/completions") {
        let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        let message = json!({"content": null, "reasoning_content": MARK,
            "tool_calls": [call("c1", "probe_a"), call("c2", "probe_b")]});
        json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    } else if url.contains("/responses") {
        let call = |id: &str, name: &str| json!({"type": "function_call", "id": format!("f{id}"), "call_id": id, "name": name, "arguments": arguments});
        let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": MARK});
        json!({"status": "completed", "output": [reasoning, call("c1", "probe_a"), call("c2", "probe_b")]})
    } else if url.contains("/v1/messages") {
        let call =
            |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"x": "1"}});
        let thinking = json!({"type": "thinking", "thinking": MARK, "signature": "signed"});
        json!({"content": [thinking, call("c1", "probe_a"), call("c2", "probe_b")], "stop_reason": "tool_use"})
    } else if url.contains("enerateContent") {
        let call =
            |id: &str, name: &str| json!({"functionCall": {"id": id, "name": name, "args": {"x": "1"}}});
        let mut first = call("c1", "probe_a");
        first["thoughtSignature"] = MARK.into();
        let parts = json!([first, call("c2", "probe_b")]);
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
    } else {
        let call = |name: &str| json!({"function": {"name": name, "arguments": {"x": "1"}}});
        let message =
            json!({"content": "", "thinking": MARK, "tool_calls": [call("probe_a"), call("probe_b")]});
        json!({"message": message, "done": true})
    }
}

/// Calls the node once, and again with its answer and the results of its calls.
fn two_calls(features: &ModelFeatures) -> (ModelAnswer, Value) {
    let mut probe = Probe::new(features, &json!({})).with_tools();
    let url = probe.call([]).0.unwrap().url;
    let script =
        [Reply::new(200, &[("content-type", "application/json")], &thinking_answer(&url).to_string())];
    let answer = probe.call(script).1.unwrap();
    let reasoning = answer.reasoning.clone();
    probe.node.messages.push(ChatMessage { reasoning, ..assistant_calls(&answer.text, &answer.tool_calls) });
    for call in &answer.tool_calls {
        probe.node.messages.push(tool_result(&call.id, "done"));
    }
    let body = probe.body();
    (answer, body)
}

fn prompt_cache(features: &ModelFeatures) -> PromptCaching {
    let is_declared = declares(features.node, "promptCache");
    let body = |cache: &str, session| {
        let more = if is_declared { json!({"promptCache": cache}) } else { json!({}) };
        let mut probe = Probe::new(features, &more).with_tools();
        probe.node.session = Some(session);
        probe.body()
    };
    let has_key = |cache: &str| body(cache, "ada") != body(cache, "bob");
    assert!(!has_key("off"), "{}: off", features.interface);
    if has_key("auto") {
        PromptCaching::Key
    } else if has_key("5m") {
        PromptCaching::KeyIfSet
    } else if body("5m", "ada") != body("1h", "ada") {
        PromptCaching::Lifetime
    } else {
        assert_eq!(body("5m", "ada"), body("off", "ada"), "{}", features.interface);
        PromptCaching::Provider
    }
}

fn declares(node: &str, property: &str) -> bool {
    properties(node).any(|declared| declared.name == property)
}

fn properties(node: &str) -> impl Iterator<Item = &'static redflow_contract::node::declaration::Property> {
    let declaration = NODES.iter().find(|declared| declared.node_type.name == node).unwrap();
    declaration.property_sets.iter().flat_map(|set| set.properties)
}

fn lists_models(features: &ModelFeatures) -> bool {
    let recording = Recording::with_lists([]);
    let transport: Arc<dyn Transport> = Arc::<Recording>::clone(&recording);
    let settings = ModelSettings { transport: Some(transport), ..ModelSettings::default() };
    let model = Probe::new(features, &json!({})).node.build(settings).unwrap();
    let _ = block_on(model.list_models());
    !recording.list_addresses().is_empty()
}

fn sends_an_image(features: &ModelFeatures, more: &Value) -> bool {
    let mut probe = Probe::new(features, more);
    let image = Image { mime: ImageType::Png, data: "aW1hZ2U".into() };
    probe.node.messages.push(ChatMessage { images: vec![image], ..user("What is this?") });
    has(&probe.body(), "aW1hZ2U")
}

#[test]
fn every_cell_is_what_the_node_sends_and_reads() {
    for features in FEATURES {
        let name = features.interface;
        let plain = || Probe::new(features, &json!({}));
        assert_eq!(has(&plain().with_tools().body(), "probe_a"), features.tools, "{name}: tools");
        let required = Probe { choice: ToolChoice::Required, ..plain().with_tools() }.body();
        assert_eq!(required != plain().with_tools().body(), features.required_calls, "{name}: required");

        let schema = json!({"type": "object", "title": MARK, "properties": {"x": {"type": "string"}},
            "required": ["x"], "additionalProperties": false});
        let schema = || SchemaText::from(serde_json::value::to_raw_value(&schema).unwrap());
        let formatted = |format| Probe { format, ..plain() }.body();
        let strict = has(&formatted(ReplyFormat::Schema(schema())), MARK);
        assert_eq!(strict, features.strict_schema, "{name}: strict schema");
        let whole = has(&formatted(ReplyFormat::WholeSchema(schema())), MARK);
        assert_eq!(whole, features.whole_schema, "{name}: whole schema");
        let json_mode = formatted(ReplyFormat::Json) != plain().body();
        assert_eq!(json_mode, features.json_mode, "{name}: JSON mode");

        let streamed = Probe { streamed: true, ..plain() }.call([]).0.unwrap();
        let is_streamed = streamed.body["stream"] == true || streamed.url.contains("stream");
        assert_eq!(is_streamed, features.streaming, "{name}: streaming");

        let declared = json!({"capabilities": {"vision": true}});
        assert!(sends_an_image(features, &declared), "{name}: declared images");
        let by_table = sends_an_image(features, &json!({}));
        assert_eq!(by_table, features.images == ImageInput::ByTable, "{name}: images");

        let (answer, next) = two_calls(features);
        assert_eq!(answer.tool_calls.len() == 2, features.several_calls, "{name}: several calls");
        assert_eq!(has(&next, MARK), features.thinking, "{name}: thinking");
        assert_eq!(prompt_cache(features), features.prompt_cache, "{name}: prompt cache");
        assert_eq!(lists_models(features), features.model_list, "{name}: list of models");
    }
}

#[test]
fn the_declared_address_is_the_default() {
    for features in FEATURES.iter().filter(|features| !features.properties.contains("baseURL")) {
        let address = properties(features.node).find(|property| property.name == "baseURL");
        if let Some(Kind::Address { example }) = address.map(|property| property.kind) {
            let url = Probe::new(features, &json!({})).call([]).0.unwrap().url;
            assert!(url.starts_with(example), "{url} does not begin with {example}");
        }
    }
}

#[test]
fn every_model_node_with_a_server_has_a_row() {
    let has_server =
        |node: &&&str| properties(node).any(|property| matches!(property.kind, Kind::Address { .. }));
    let native =
        NODES.iter().filter(|node| node.native && node.node_type.role == redflow_contract::edge::Role::Model);
    let mut nodes: Vec<&str> = native.map(|node| node.node_type.name).collect();
    nodes.retain(|node| has_server(&node));
    for node in nodes {
        assert!(FEATURES.iter().any(|features| features.node == node), "{node} has no row");
    }
}
