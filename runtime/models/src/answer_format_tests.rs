//! Which format of answers each server is asked for, and what happens if it refuses one.

use crate::ModelSettings;
use crate::recording::{Node, Recording, Reply, block_on};
use crate::transport::Transport;
use redflow_contract::code::RunErrorCode;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::Transcript;
use redflow_ports::{ActionSchemas, AnswerKind, ChatModel, ModelRequest, ReplyFormat, SchemaText};
use serde_json::{Value, json};
use std::sync::Arc;

const LOCAL: &str = "http://127.0.0.1:8080/v1";

fn text(name: &str) -> Option<SchemaText> {
    SchemaText::from_value(&json!({ "title": name }))
}

/// An action whose schemas have their names as titles.
fn action() -> AnswerKind {
    AnswerKind::Action(ActionSchemas {
        object: text("object"),
        object_with_range: text("range"),
        branches: text("branches"),
    })
}

/// An action with a tool outside the strict subset.
fn wide_action() -> AnswerKind {
    AnswerKind::Action(ActionSchemas { branches: text("branches"), ..ActionSchemas::default() })
}

/// The title of the schema in a request, or the kind of its format.
fn format_of(body: &Value) -> String {
    let places = ["/response_format/json_schema/schema/title", "/text/format/schema/title", "/format/title"];
    let places =
        places.iter().chain(&["/output_config/format/schema/title", "/response_format/type", "/format"]);
    let places = places.chain(&["/generationConfig/responseJsonSchema/title"]);
    let mut found = places.filter_map(|place| body.pointer(place).and_then(Value::as_str));
    found.next().unwrap_or("text").to_owned()
}

fn requested_format(type_name: &'static str, props: Value, answer_kind: &AnswerKind) -> String {
    format_of(&Node::new(type_name, props).request_for(answer_kind).body)
}

#[test]
fn each_server_gets_the_schema_that_it_takes() {
    let azure =
        json!({"endpoint": "https://mine.openai.azure.com", "deployment": "gpt-4o", "apiVersion": "v1"});
    for (type_name, props, expected, expected_wide) in [
        ("openai-model", json!({"model": "gpt-4o"}), "range", "json_object"),
        ("openai-model", json!({"model": "gpt-4o", "api": "responses"}), "range", "text"),
        ("openai-model", json!({"model": "ft:gpt-4o:me"}), "object", "json_object"),
        ("openai-model", json!({"baseURL": LOCAL}), "branches", "branches"),
        // llama.cpp ignores the schema on this route, so it gets what OpenAI's own servers take.
        ("openai-model", json!({"baseURL": LOCAL, "api": "responses"}), "object", "text"),
        ("openai-model", json!({"baseURL": "https://mine.openai.azure.com/openai/v1"}), "object", "text"),
        ("openai-model", json!({"baseURL": "https://api.groq.com/openai/v1"}), "json_object", "json_object"),
        ("model.azure.openai", azure, "object", "json_object"),
        ("anthropic-model", json!({"model": "claude-sonnet-4-5"}), "object", "text"),
        ("ollama-model", json!({}), "branches", "branches"),
        ("google-model", json!({}), "branches", "branches"),
        ("google-model", json!({"model": "gemma-3-27b-it"}), "text", "text"),
    ] {
        assert_eq!(requested_format(type_name, props.clone(), &action()), expected, "{type_name} {props}");
        assert_eq!(
            requested_format(type_name, props.clone(), &wide_action()),
            expected_wide,
            "{type_name} {props}"
        );
    }
}

#[test]
fn a_reply_by_a_whole_schema_needs_a_server_that_takes_it() {
    let format = ReplyFormat::WholeSchema(text("whole").unwrap());
    let reply = AnswerKind::Reply(redflow_ports::Reply { format, ..Default::default() });
    assert_eq!(requested_format("openai-model", json!({"baseURL": LOCAL}), &reply), "whole");
    assert_eq!(requested_format("openai-model", json!({"model": "gpt-4o"}), &reply), "json_object");
    assert_eq!(requested_format("ollama-model", json!({}), &reply), "whole");
}

#[test]
fn a_node_says_how_it_asks_for_json() {
    for (format, expected) in
        [("auto", "branches"), ("schema", "branches"), ("json", "json_object"), ("none", "text")]
    {
        let props = json!({"baseURL": LOCAL, "responseFormat": format});
        assert_eq!(requested_format("openai-model", props, &action()), expected);
    }
    for (format, older, expected) in [
        (json!(""), "json_object", "json_object"),
        (json!("auto"), "json_object", "json_object"),
        (json!("schema"), "json_object", "branches"),
        (json!("none"), "json_schema", "text"),
    ] {
        let props = json!({"baseURL": LOCAL, "responseFormat": format, "structuredOutput": older});
        assert_eq!(requested_format("openai-model", props.clone(), &action()), expected, "{props}");
    }
}

/// A model at a recording, which keeps what it has learned.
fn model(props: Value, recording: &Arc<Recording>) -> Arc<dyn ChatModel> {
    let transport: Arc<dyn Transport> = Arc::<Recording>::clone(recording);
    let settings = ModelSettings { transport: Some(transport), ..ModelSettings::default() };
    Node::new("openai-model", props).build(settings).unwrap()
}

fn call(model: &Arc<dyn ChatModel>, answer_kind: &AnswerKind) -> Result<String, Failure> {
    let transcript = Transcript::default();
    let request = ModelRequest { answer_kind, ..ModelRequest::for_text(&transcript) };
    block_on(model.call(request)).map(|answer| answer.text)
}

fn refusal(status: u16, message: &str) -> Reply {
    let error = json!({"error": {"code": status, "message": message, "type": "invalid_request_error"}});
    Reply::new(status, &[], &error.to_string())
}

fn formats(recording: &Recording) -> Vec<String> {
    recording.requests().iter().map(|request| format_of(&request.body)).collect()
}

#[test]
fn a_refused_format_is_replaced_by_a_weaker_one_and_remembered() {
    let messages = [
        "JSON schema conversion failed:\nPattern must start with '^' and end with '$'",
        "Failed to initialize samplers: failed to parse grammar",
        "'response_format.type' must be 'json_schema' or 'text'",
    ];
    let recording = Recording::new(messages.map(|message| refusal(400, message)));
    let model = model(json!({"baseURL": LOCAL, "maxRetries": 0}), &recording);
    assert_eq!(call(&model, &action()).unwrap(), "hi");
    assert_eq!(formats(&recording), ["branches", "object", "json_object", "text"]);
    assert_eq!(call(&model, &action()).unwrap(), "hi");
    assert_eq!(formats(&recording)[4..], ["text"], "the model does not ask again for what was refused");
}

#[test]
fn a_proxy_in_front_of_openai_gets_one_object_after_it_refused_the_union() {
    let message = "Invalid schema for response_format 'action': schema must have type 'object'";
    let recording = Recording::new([refusal(400, message)]);
    let model = model(json!({"baseURL": "http://proxy.example/v1"}), &recording);
    for _ in 0..2 {
        call(&model, &action()).unwrap();
    }
    assert_eq!(formats(&recording), ["branches", "object", "object"]);
}

#[test]
fn a_refused_schema_says_nothing_about_that_of_another_agent() {
    let recording = Recording::new([refusal(400, "failed to parse grammar")]);
    let model = model(json!({"baseURL": LOCAL, "maxRetries": 0}), &recording);
    let other = ActionSchemas { branches: text("other"), ..ActionSchemas::default() };
    for action in [action(), AnswerKind::Action(other), action()] {
        call(&model, &action).unwrap();
    }
    assert_eq!(formats(&recording), ["branches", "object", "other", "object"]);
}

#[test]
fn a_server_that_failed_by_itself_is_asked_for_the_same_format_again() {
    let recording = Recording::new([refusal(500, "failed to initialise the grammar")]);
    let model = model(json!({"baseURL": LOCAL, "maxRetries": 0}), &recording);
    call(&model, &action()).unwrap();
    call(&model, &action()).unwrap();
    assert_eq!(formats(&recording), ["branches", "object", "branches"]);
}

#[test]
fn other_refusals_are_not_about_the_format() {
    for reply in [refusal(400, "`temperature` is too high"), refusal(401, "no schema for you")] {
        let recording = Recording::new([reply]);
        let model = model(json!({"baseURL": LOCAL}), &recording);
        call(&model, &action()).unwrap_err();
        assert_eq!(formats(&recording), ["branches"]);
    }
}

#[test]
fn a_format_that_was_not_the_reason_is_asked_for_again() {
    let recording = Recording::new(vec![refusal(400, "the grammar of your question is bad"); 4]);
    let model = model(json!({"baseURL": LOCAL}), &recording);
    assert_eq!(call(&model, &action()).unwrap_err().code, RunErrorCode::ModelError);
    call(&model, &action()).unwrap();
    assert_eq!(formats(&recording), ["branches", "object", "json_object", "text", "branches"]);
}

#[test]
fn a_format_that_the_node_sets_is_never_replaced() {
    for (format, sent) in [("schema", "branches"), ("json", "json_object")] {
        let recording = Recording::new([refusal(400, "response_format is not supported")]);
        let model = model(json!({"baseURL": LOCAL, "responseFormat": format}), &recording);
        let failure = call(&model, &action()).unwrap_err();
        assert_eq!(formats(&recording), [sent]);
        let hint = "set `responseFormat` on the node to schema, json or none";
        assert!(failure.message.ends_with(hint), "{}", failure.message);
    }
}
