use crate::ModelSettings;
use crate::providers::OPENAI_MODEL;
use crate::recording::{Node, Recording, Reply, block_on, reply};
use crate::transport::Transport;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::ModelAnswer;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_ports::{ChatModel, ModelRequest, ToolChoice};
use serde_json::{Value, json};
use std::sync::Arc;

fn refusal(status: u16, message: &str, param: &str) -> Reply {
    Reply::new(status, &[], &json!({"error": {"message": message, "param": param}}).to_string())
}

/// A model whose server responds from this script.
fn model(type_name: &'static str, props: Value, recording: &Arc<Recording>) -> Arc<dyn ChatModel> {
    let transport: Arc<dyn Transport> = Arc::<Recording>::clone(recording);
    Node::as_written(type_name, props)
        .build(ModelSettings { transport: Some(transport), ..ModelSettings::default() })
        .unwrap()
}

fn call(model: &dyn ChatModel, choice: ToolChoice) -> Result<ModelAnswer, Failure> {
    let mut transcript = Transcript::default();
    transcript.push(Arc::new(ChatMessage::new(ChatRole::User, "Hi")));
    let tools = if choice == ToolChoice::None { Vec::new() } else { crate::samples::two_tools() };
    let kind = match reply(choice) {
        redflow_ports::AnswerKind::Reply(reply) => {
            redflow_ports::AnswerKind::Reply(redflow_ports::Reply { tools: tools.into(), ..reply })
        }
        action => action,
    };
    block_on(model.call(ModelRequest { answer_kind: &kind, ..ModelRequest::for_text(&transcript) }))
}

fn bodies(recording: &Recording) -> Vec<Value> {
    recording.requests().into_iter().map(|request| request.body).collect()
}

fn urls(recording: &Recording) -> Vec<String> {
    let path = |url: &str| url.split_once("/v1/").map_or("", |(_, rest)| rest).to_owned();
    recording.requests().iter().map(|request| path(&request.url)).collect()
}

const TOOLS_NEED_RESPONSES: &str = "Function tools with reasoning_effort are not supported for this model in \
     /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.";

#[test]
fn a_refused_field_is_left_out_until_the_next_deploy() {
    let recording = Recording::new([refusal(
        400,
        "Unsupported value: 'temperature' does not support 0.7 with this model.",
        "temperature",
    )]);
    let props = json!({"model": "gpt-9-nova", "temperature": 0.7, "topP": 0.5});
    let node = model("openai-model", props.clone(), &recording);
    let answer = call(&*node, ToolChoice::None).unwrap();
    assert_eq!((answer.text.as_str(), answer.refused), ("hi", vec!["temperature".to_owned()]));
    // The next call has learnt it, and says nothing of it.
    assert!(call(&*node, ToolChoice::None).unwrap().refused.is_empty());
    let sent = |body: &Value| (body.get("temperature").is_some(), body.get("top_p").is_some());
    let all: Vec<_> = bodies(&recording).iter().map(sent).collect();
    assert_eq!(all, [(true, true), (false, true), (false, true)]);
    let described = node.describe_request(&reply(ToolChoice::None)).unwrap();
    assert_eq!(described.refused, ["temperature"]);
    // A deploy makes another model.
    let deployed = model("openai-model", props, &recording);
    call(&*deployed, ToolChoice::None).unwrap();
    assert_eq!(bodies(&recording).last().map(sent), Some((true, true)));
}

#[test]
fn a_change_that_does_not_help_is_not_remembered() {
    let recording = Recording::new([
        refusal(400, "Unsupported parameter: 'temperature'", "temperature"),
        refusal(400, "No.", ""),
    ]);
    let node = model("openai-model", json!({"model": "gpt-9", "temperature": 0.7}), &recording);
    let failure = call(&*node, ToolChoice::None).unwrap_err();
    assert_eq!(failure.code, RunErrorCode::ModelError);
    assert!(failure.message.ends_with("No. (after 2 attempts)"), "{}", failure.message);
    call(&*node, ToolChoice::None).unwrap();
    assert_eq!(bodies(&recording)[2]["temperature"], 0.7);
}

#[test]
fn a_call_makes_four_requests_at_most() {
    let fields = ["temperature", "top_p", "reasoning_effort", "prompt_cache_retention", "seed"];
    let all = fields.map(|field| refusal(400, &format!("Unsupported parameter: '{field}'"), field));
    let props = json!({"model": "gpt-9", "temperature": 0.7, "topP": 0.5, "reasoningEffort": "low", "seed": 1,
        "promptCache": "1h"});
    let recording = Recording::new(all);
    let node = model("openai-model", props, &recording);
    let failure = call(&*node, ToolChoice::None).unwrap_err();
    assert_eq!(recording.requests().len(), 4);
    // The last error is shown.
    let end = "Unsupported parameter: 'prompt_cache_retention' (after 4 attempts)";
    assert!(failure.message.ends_with(end), "{}", failure.message);
}

#[test]
fn a_field_that_is_refused_for_ever_ends_the_call() {
    for message in ["Unsupported parameter: 'temperature'", "We will not take a temperature."] {
        let recording = Recording::new(vec![refusal(400, message, ""); 9]);
        let node = model("openai-model", json!({"model": "gpt-9", "temperature": 0.7}), &recording);
        call(&*node, ToolChoice::None).unwrap_err();
        assert_eq!(recording.requests().len(), 2, "{message}");
    }
    // A refusal of nothing that is there.
    let recording =
        Recording::new(vec![refusal(400, "Unsupported parameter: 'logit_bias'", "logit_bias"); 9]);
    let node = model("openai-model", json!({}), &recording);
    call(&*node, ToolChoice::None).unwrap_err();
    assert_eq!(recording.requests().len(), 1);
}

#[test]
fn each_way_to_openai_begins_where_the_model_needs_it() {
    let tools = ToolChoice::Auto;
    for (props, choice, expected) in [
        (json!({}), tools, "responses"),
        (json!({}), ToolChoice::None, "responses"),
        (json!({"model": "gpt-5.4-mini"}), tools, "responses"),
        (json!({"model": "gpt-9"}), tools, "responses"),
        (json!({"model": "gpt-4o"}), tools, "chat/completions"),
        (json!({"model": "gpt-5"}), tools, "chat/completions"),
        // A setting that only Chat Completions has.
        (json!({"seed": 1}), ToolChoice::None, "chat/completions"),
        (json!({"api": "chat"}), ToolChoice::None, "chat/completions"),
        (json!({"api": "chat"}), tools, "responses"),
        (json!({"api": "chat", "reasoningEffort": "none"}), tools, "chat/completions"),
        (json!({"api": "chat", "model": "gpt-4o"}), tools, "chat/completions"),
        (json!({"api": "responses", "model": "gpt-4o"}), tools, "responses"),
        (json!({"baseURL": "https://gateway.example/v1", "apiKey": "k"}), tools, "chat/completions"),
        (
            json!({"baseURL": "https://gateway.example/v1", "apiKey": "k", "model": OPENAI_MODEL}),
            tools,
            "chat/completions",
        ),
    ] {
        let recording = Recording::new([]);
        call(&*model("openai-model", props.clone(), &recording), choice).unwrap();
        assert_eq!(urls(&recording), [expected], "{props}");
    }
}

#[test]
fn a_refused_interface_is_replaced_by_the_other_one() {
    for (props, script, expected) in [
        (
            json!({"model": "gpt-9", "seed": 1}),
            vec![refusal(400, TOOLS_NEED_RESPONSES, "tools")],
            vec!["chat/completions", "responses", "responses"],
        ),
        (
            json!({"model": "m", "baseURL": "https://gateway.example/v1", "apiKey": "k"}),
            vec![refusal(400, TOOLS_NEED_RESPONSES, "tools")],
            vec!["chat/completions", "responses", "responses"],
        ),
        (
            json!({}),
            vec![Reply::new(404, &[], "Not Found")],
            vec!["responses", "chat/completions", "chat/completions"],
        ),
    ] {
        let recording = Recording::new(script);
        let node = model("openai-model", props.clone(), &recording);
        assert_eq!(call(&*node, ToolChoice::Auto).unwrap().refused.len(), 1, "{props}");
        call(&*node, ToolChoice::Auto).unwrap();
        assert_eq!(urls(&recording), expected, "{props}");
    }
    // Both are refused: the last error is shown.
    let recording = Recording::new([
        Reply::new(404, &[], "Not Found"),
        refusal(400, TOOLS_NEED_RESPONSES, "tools"),
        refusal(400, "unreachable", ""),
    ]);
    let failure = call(&*model("openai-model", json!({}), &recording), ToolChoice::Auto).unwrap_err();
    assert!(recording.requests().len() <= 4, "{}", failure.message);
    assert!(failure.message.contains("unreachable"), "{}", failure.message);
}

#[test]
fn an_interface_that_a_person_has_chosen_is_never_changed() {
    let recording = Recording::new(vec![Reply::new(404, &[], "Not Found"); 3]);
    let props = json!({"api": "responses"});
    let failure = call(&*model("openai-model", props, &recording), ToolChoice::Auto).unwrap_err();
    assert_eq!(urls(&recording), ["responses"]);
    assert!(failure.message.contains("\"auto\""), "{}", failure.message);
}

#[test]
fn a_model_that_cannot_be_forced_chooses_freely() {
    let refused = "tool_choice: type \"tool\" and \"any\" are not supported for this model.";
    let recording = Recording::new([refusal(400, refused, "")]);
    let node = model("anthropic-model", json!({"model": "claude-haiku-5-5"}), &recording);
    assert_eq!(call(&*node, ToolChoice::Required).unwrap().refused, ["tool_choice"]);
    call(&*node, ToolChoice::Required).unwrap();
    let choices: Vec<Value> =
        bodies(&recording).iter().map(|body| body["tool_choice"]["type"].clone()).collect();
    assert_eq!(choices, ["any", "auto", "auto"]);
}

#[test]
fn a_server_without_the_other_interface_gets_the_first_one_without_an_effort() {
    let recording = Recording::new([
        refusal(400, TOOLS_NEED_RESPONSES, "reasoning_effort"),
        refusal(404, "Invalid URL (POST /v1/responses)", ""),
    ]);
    let props = json!({"model": "gpt-6-luna", "baseURL": "https://gateway.example/v1", "apiKey": "k"});
    let node = model("openai-model", props, &recording);
    assert_eq!(call(&*node, ToolChoice::Auto).unwrap().refused, ["reasoning_effort"]);
    call(&*node, ToolChoice::Auto).unwrap();
    let chat = "chat/completions";
    assert_eq!(urls(&recording), [chat, "responses", chat, chat]);
    let efforts: Vec<Value> =
        bodies(&recording).iter().map(|body| body["reasoning_effort"].clone()).collect();
    assert_eq!(efforts, [Value::Null, Value::Null, json!("none"), json!("none")]);
    // It refuses everything: the last error is shown.
    let recording = Recording::new([
        refusal(400, TOOLS_NEED_RESPONSES, "reasoning_effort"),
        refusal(404, "Invalid URL (POST /v1/responses)", ""),
        refusal(400, "No.", ""),
    ]);
    let props = json!({"model": "gpt-6-luna", "baseURL": "https://gateway.example/v1", "apiKey": "k"});
    let failure = call(&*model("openai-model", props, &recording), ToolChoice::Auto).unwrap_err();
    assert!(failure.message.ends_with("No. (after 3 attempts)"), "{}", failure.message);
}

#[test]
fn what_a_person_adds_is_not_left_out_because_of_its_plain_name() {
    let body = json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {
        "raw": "{\"error\": {\"message\": \"Invalid image: this type is not supported\"}}"}}});
    let recording = Recording::new(vec![Reply::new(400, &[], &body.to_string()); 2]);
    let props = json!({"model": "m", "baseURL": "https://openrouter.ai/api/v1", "apiKey": "k",
        "extraBody": {"provider": {"data_collection": "deny"}}});
    let failure = call(&*model("openai-model", props, &recording), ToolChoice::None).unwrap_err();
    assert_eq!(recording.requests().len(), 1, "{}", failure.message);
}

#[test]
fn a_lower_limit_for_a_long_conversation_does_not_stay() {
    let rate = "Request too large for model `m` on tokens per minute (TPM): Limit 8000, Requested 11796, please reduce \
                your message size and try again.";
    let window = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (4904 in the \
                  messages, 4096 in the completion).";
    for (status, message, limits) in [
        (413, rate, [json!(4_096), json!(300), json!(4_096)]),
        (400, window, [json!(4_096), Value::Null, json!(4_096)]),
    ] {
        let recording = Recording::new([refusal(status, message, "")]);
        let props = json!({"model": "m", "baseURL": "https://server.example/v1", "apiKey": "k"});
        let node = model("openai-model", props, &recording);
        assert_eq!(call(&*node, ToolChoice::None).unwrap().refused, ["max_tokens"], "{message}");
        call(&*node, ToolChoice::None).unwrap();
        let sent: Vec<Value> = bodies(&recording).iter().map(|body| body["max_tokens"].clone()).collect();
        assert_eq!(sent, limits, "{message}");
    }
}

#[test]
fn a_limit_of_the_node_is_never_renamed() {
    let message = "max_tokens: 20000 > 8192, which is the maximum allowed number of output tokens for m";
    for (type_name, props) in [
        ("anthropic-model", json!({"model": "claude-9", "maxTokens": 20_000})),
        ("openai-model", json!({"model": "m", "maxTokens": 20_000, "baseURL": "http://localhost:1/v1"})),
    ] {
        let recording = Recording::new(vec![refusal(400, message, ""); 4]);
        let failure = call(&*model(type_name, props, &recording), ToolChoice::None).unwrap_err();
        assert_eq!(recording.requests().len(), 1, "{}", failure.message);
        assert!(failure.message.ends_with(message), "{}", failure.message);
    }
}

#[test]
fn the_name_of_a_refused_field_is_shown_shortened() {
    let name = "an_own_field_".repeat(40);
    let recording = Recording::new([refusal(400, &format!("Unknown parameter: '{name}'"), "")]);
    let node = model("openai-model", json!({"model": "gpt-4o", "extraBody": {name: 1}}), &recording);
    let refused = call(&*node, ToolChoice::None).unwrap().refused;
    assert_eq!(refused[0].chars().count(), 101);
    assert_eq!(node.describe_request(&reply(ToolChoice::None)).unwrap().refused, refused);
}

#[test]
fn a_cut_off_answer_counts_for_the_four_requests() {
    let fields = ["temperature", "top_p", "seed"];
    let mut script: Vec<Reply> =
        fields.map(|field| refusal(400, &format!("Unsupported parameter: '{field}'"), field)).into();
    script.push(cut_off(""));
    let props =
        json!({"model": "m", "baseURL": "http://localhost:1/v1", "temperature": 0.7, "topP": 0.5, "seed": 1});
    let recording = Recording::new(script);
    let answer = call(&*model("openai-model", props, &recording), ToolChoice::None).unwrap();
    assert_eq!((answer.text.as_str(), recording.requests().len()), ("", 4));
    // A limit that the provider has named is not exceeded.
    let message = "max_tokens is too large: 4096. It must be at most 2048.";
    let recording = Recording::new([refusal(400, message, ""), cut_off("")]);
    let local = json!({"model": "m", "baseURL": "http://localhost:1/v1"});
    call(&*model("openai-model", local, &recording), ToolChoice::None).unwrap();
    assert_eq!(recording.requests().len(), 2);
}

#[test]
fn each_request_of_a_call_has_its_own_price() {
    // Requests with more than 272 000 tokens cost twice as much. Neither of these has.
    let large = || cut_off_after("", 200_000);
    let recording = Recording::new([large(), large()]);
    let node = model("openai-model", json!({"model": "gpt-6-luna", "api": "chat"}), &recording);
    let usage = call(&*node, ToolChoice::None).unwrap().usage.unwrap();
    assert_eq!(usage.input_tokens, 400_000);
    let expected = (400_000.0 * 0.10 + 2.0 * 4_096.0 * 0.50) / 1e6;
    assert!((usage.cost.unwrap() - expected).abs() < 1e-9, "{usage:?}");
}

fn cut_off(text: &str) -> Reply {
    cut_off_after(text, 10)
}

fn cut_off_after(text: &str, prompt_tokens: u32) -> Reply {
    let body = json!({"choices": [{"message": {"content": text}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 4_096}});
    Reply::new(200, &[("content-type", "application/json")], &body.to_string())
}

#[test]
fn an_answer_without_text_that_is_cut_off_is_asked_for_once_more() {
    let local = |more: Value| {
        let mut props = json!({"model": "m", "baseURL": "http://localhost:1/v1"});
        props.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        props
    };
    for (props, script, limits) in [
        (local(json!({})), vec![cut_off("")], vec![4_096, 8_192]),
        (local(json!({})), vec![cut_off(""), cut_off("")], vec![4_096, 8_192]),
        (local(json!({"capabilities": {"maxOutput": 5_000}})), vec![cut_off("")], vec![4_096, 5_000]),
        (local(json!({"capabilities": {"maxOutput": 4_096}})), vec![cut_off("")], vec![4_096]),
        // There is text, or a person has set the limit.
        (local(json!({})), vec![cut_off("So")], vec![4_096]),
        (local(json!({"maxTokens": 100})), vec![cut_off("")], vec![100]),
    ] {
        let recording = Recording::new(script);
        let answer = call(&*model("openai-model", props.clone(), &recording), ToolChoice::None).unwrap();
        let sent: Vec<u64> =
            bodies(&recording).iter().map(|body| body["max_tokens"].as_u64().unwrap()).collect();
        assert_eq!(sent, limits, "{props}");
        // Both requests are paid.
        if limits.len() == 2 {
            assert!(answer.usage.unwrap().output_tokens > 4_096, "{props}");
        }
    }
}
