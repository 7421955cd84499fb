use super::GOOGLE_MODEL;
use crate::ModelSettings;
use crate::recording::{Node, RecordedRequest, Recording, Reply, block_on, reply};
use crate::samples::{assistant_calls, call, tool_result, user, with_reasoning};
use crate::transport::Transport;
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::node::declaration::Initial;
use redflow_contract::node::{
    CapabilityConfig, GoogleModelConfig, StopSequences, StructuredOutput, ThinkingLevel,
};
use redflow_contract::transcript::{ChatMessage, Transcript};
use redflow_ports::{ModelRequest, ToolChoice};
use serde_json::{Value, json};
use std::sync::Arc;

fn request(props: Value) -> RecordedRequest {
    Node::new("google-model", props).request()
}

#[test]
fn defaults() {
    let request = request(json!({}));
    let address = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.8-flash:generateContent";
    assert_eq!((request.url.as_str(), GOOGLE_MODEL), (address, "gemini-3.8-flash"));
    let headers: Vec<&str> = request.headers.keys().map(String::as_str).collect();
    assert_eq!(headers, ["content-type", "x-goog-api-key"]);
    assert_eq!(request.header("x-goog-api-key"), Some("gk-of-the-environment"));
    assert_eq!(request.settings(), json!({"generationConfig": {"maxOutputTokens": 16_384}}));
    // The default of the node's form.
    let declared =
        GoogleModelConfig::SET.properties.iter().find(|property| property.name == "model").unwrap();
    assert_eq!(declared.default, Initial::Text(GOOGLE_MODEL));
}

#[test]
fn every_property() {
    let config = GoogleModelConfig {
        model: Some("models/gemini-3-flash-preview".to_owned()),
        base_url: Some("https://gateway.example/google/v1/models/".to_owned()),
        api_key: Some("second-choice".to_owned()),
        key_node: None,
        temperature: Some(0.5),
        max_tokens: Some(5_000),
        top_p: Some(0.9),
        top_k: Some(40),
        seed: Some(-7),
        stop: Some(StopSequences::List(vec!["END".to_owned()])),
        thinking_level: Some(ThinkingLevel::Minimal),
        structured_output: Some(StructuredOutput::None),
        stream: Some(true),
        capabilities: Some(CapabilityConfig { vision: Some(false), ..CapabilityConfig::default() }),
        timeout: Some(1_234),
        max_retries: Some(0),
        idle_timeout: Some(60_000),
        max_concurrent: Some(1),
        input_price: Some(1.0),
        output_price: Some(2.0),
        cached_price: Some(0.5),
        credentials: json!({"apiKey": "own-key"}).as_object().cloned(),
        options: None,
    };
    let flat = serde_json::to_value(config).unwrap();
    let mut inner = flat.clone();
    let credentials = inner.as_object_mut().unwrap().remove("credentials");
    for props in [flat, json!({"options": inner, "credentials": credentials})] {
        let request = request(props.clone());
        assert_eq!(
            request.url,
            "https://gateway.example/google/v1/models/gemini-3-flash-preview:streamGenerateContent?alt=sse"
        );
        assert_eq!(request.header("x-goog-api-key"), Some("own-key"));
        assert_eq!(
            request.settings(),
            json!({"generationConfig": {
                "temperature": 0.5, "topP": 0.9, "topK": 40, "maxOutputTokens": 5_000, "seed": -7,
                "stopSequences": ["END"], "thinkingConfig": {"thinkingLevel": "MINIMAL"},
            }})
        );
        let failed = Recording::new(vec![Reply::new(500, &[], ""); 2]);
        let node = Node::new("google-model", props);
        node.call(&reply(ToolChoice::None), &failed, ModelSettings::default()).unwrap_err();
        assert_eq!(failed.requests().len(), 1);
    }
}

#[test]
fn newer_models_get_no_sampling() {
    let sampling = |model: &str| {
        let props = json!({"model": model, "temperature": 0.5, "topP": 0.9, "topK": 4});
        request(props).body["generationConfig"].clone()
    };
    assert_eq!(sampling("gemini-3.8-flash"), json!({"maxOutputTokens": 16_384}));
    let all = json!({"temperature": 0.5, "topP": 0.9, "topK": 4, "maxOutputTokens": 4_096});
    assert_eq!(sampling("gemini-2.0-flash"), all);
    // `topK` 0 means off.
    let off = request(json!({"model": "gemini-2.0-flash", "topK": 0}));
    assert_eq!(off.body["generationConfig"], json!({"maxOutputTokens": 4_096}));
}

#[test]
fn properties_that_do_not_fit() {
    for (props, error) in [
        (
            json!({"model": "gemini-2.5-pro", "thinkingLevel": "low"}),
            "`gemini-2.5-pro` has no levels of thinking; remove `thinkingLevel`, or use Gemini 3 or newer",
        ),
        (json!({"seed": 2_147_483_648_i64}), "`seed` must be from -2147483648 to 2147483647 for Google"),
        (json!({"stop": "a,b,c,d,e,f"}), "`stop` has 6 sequences; at most 5 are allowed"),
        (
            json!({"baseURL": "https://generativelanguage.googleapis.com/v1beta?key=AIza"}),
            "`baseURL` must not hold a key; put it into the node's credentials",
        ),
    ] {
        assert_eq!(Node::new("google-model", props).build_error(), error);
    }
}

#[test]
fn the_key_may_have_the_name_of_other_google_products() {
    for (env, key) in [
        (vec![("GOOGLE_API_KEY", "other")], "other"),
        (vec![("GOOGLE_API_KEY", "other"), ("GEMINI_API_KEY", "own")], "own"),
    ] {
        let request = Node::with_env("google-model", json!({}), env).request();
        assert_eq!(request.header("x-goog-api-key"), Some(key));
    }
}

fn answer(parts: &Value) -> Reply {
    let body = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    Reply::new(200, &[], &body.to_string())
}

fn refused(message: &str) -> Reply {
    let error = json!({"code": 400, "message": message, "status": "INVALID_ARGUMENT"});
    Reply::new(400, &[], &json!({ "error": error }).to_string())
}

/// A node whose conversation has a call with a signature.
fn signed_conversation() -> Node {
    let mut node = Node::new("google-model", json!({"maxRetries": 0}));
    let part = json!({"functionCall": {"name": "clock", "args": {}}, "thoughtSignature": "c2ln"});
    let calls = [call("call_0", "clock", "{}")];
    node.messages = vec![
        user("What time is it?"),
        with_reasoning("gemini", &[part], assistant_calls("", &calls)),
        tool_result("call_0", "12:00"),
    ];
    node
}

fn signature_of(request: &RecordedRequest) -> &Value {
    &request.body["contents"][1]["parts"][0]["thoughtSignature"]
}

#[test]
fn a_refused_signature_is_not_sent_again() {
    let node = signed_conversation();
    let recording =
        Recording::new([refused("Corrupted thought signature."), answer(&json!([{"text": "Noon."}]))]);
    let found = node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default()).unwrap();
    let requests = recording.requests();
    assert_eq!((found.text.as_str(), requests.len()), ("Noon.", 2));
    assert_eq!(signature_of(&requests[0]), "c2ln");
    assert_eq!(signature_of(&requests[1]), "skip_thought_signature_validator");
    // A provider that refuses this too ends the call.
    let twice = Recording::new(vec![refused("Function call is missing a thought_signature."); 5]);
    let failure = node.call(&reply(ToolChoice::Auto), &twice, ModelSettings::default()).unwrap_err();
    assert_eq!((failure.code, twice.requests().len()), (RunErrorCode::ModelError, 2), "{}", failure.message);
    assert!(failure.message.contains("missing a thought_signature"), "{}", failure.message);
}

fn transcript(messages: &[ChatMessage]) -> Transcript {
    let mut transcript = Transcript::default();
    messages.iter().for_each(|message| transcript.push(Arc::new(message.clone())));
    transcript
}

#[test]
fn the_thoughts_of_the_new_answer_go_back_and_the_refused_ones_do_not() {
    let mut node = signed_conversation();
    let signed = json!([{"functionCall": {"name": "clock", "args": {}}, "thoughtSignature": "bmV3"}]);
    let recording = Recording::new([refused("Corrupted thought signature."), answer(&signed)]);
    let transport: Arc<dyn Transport> = Arc::<Recording>::clone(&recording);
    let settings = ModelSettings { transport: Some(transport), ..ModelSettings::default() };
    let model = node.build(settings).unwrap();
    let first = block_on(model.call(ModelRequest::for_text(&transcript(&node.messages)))).unwrap();
    assert!(first.reasoning.is_some(), "{first:?}");
    // The next call of the run.
    let id = first.tool_calls[0].id.clone();
    let reasoning = first.reasoning.clone();
    node.messages.push(ChatMessage { reasoning, ..assistant_calls("", &first.tool_calls) });
    node.messages.push(tool_result(&id, "12:01"));
    block_on(model.call(ModelRequest::for_text(&transcript(&node.messages)))).unwrap();
    let requests = recording.requests();
    assert_eq!(requests.len(), 3, "the second call is made once");
    let signature = |turn: usize| &requests[2].body["contents"][turn]["parts"][0]["thoughtSignature"];
    assert_eq!((signature(1), signature(3)), (&json!("skip_thought_signature_validator"), &json!("bmV3")));
    // Another node has not refused it.
    let other = Recording::new([]);
    node.call(&reply(ToolChoice::Auto), &other, ModelSettings::default()).unwrap();
    assert_eq!(signature_of(&other.requests()[0]), "c2ln");
}

#[test]
fn the_first_error_stays_if_a_request_without_thoughts_is_refused_too() {
    let node = signed_conversation();
    let signature = "Corrupted thought signature.";
    for (second, code, part) in [
        (refused("Expected `thinking`, but found `tool_use`."), RunErrorCode::ModelError, signature),
        // These have causes of their own.
        (Reply::new(503, &[], "{}"), RunErrorCode::ProviderUnavailable, "HTTP 503"),
        (
            refused("The input token count exceeds the maximum number of tokens allowed."),
            RunErrorCode::ContextLength,
            "longer than",
        ),
    ] {
        let recording = Recording::new([refused(signature), second]);
        let failure = node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default()).unwrap_err();
        assert_eq!((failure.code, recording.requests().len()), (code, 2), "{}", failure.message);
        assert!(failure.message.contains(part), "{}", failure.message);
        assert!(failure.message.ends_with("(after 2 attempts)"), "{}", failure.message);
    }
}

/// Without a thought in the conversation the same request would be refused again.
#[test]
fn a_refused_signature_of_no_thought_is_not_sent_again() {
    let mut node = signed_conversation();
    node.messages[1].reasoning = None;
    let recording = Recording::new(vec![refused("Corrupted thought signature."); 2]);
    node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default()).unwrap_err();
    assert_eq!(recording.requests().len(), 1);
}

#[test]
fn a_call_that_the_provider_cannot_read_is_made_again() {
    let bad = || Reply::new(200, &[], r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#);
    let node = Node::new("google-model", json!({"maxRetries": 1}));
    let recording = Recording::new([bad(), answer(&json!([{"text": "Noon."}]))]);
    let found = node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default()).unwrap();
    assert_eq!((found.text.as_str(), recording.requests().len()), ("Noon.", 2));
    let always = Recording::new([bad(), bad()]);
    let failure = node.call(&reply(ToolChoice::Auto), &always, ModelSettings::default()).unwrap_err();
    assert_eq!(failure.code, RunErrorCode::ModelError);
    assert_eq!(
        failure.message,
        "Google (generativelanguage.googleapis.com) could not read the call that `gemini-3.8-flash` wrote: it is \
         not valid (MALFORMED_FUNCTION_CALL); describe the inputs of the tools more simply, or use another model \
         (after 2 attempts)"
    );
}

#[test]
fn waits_as_long_as_the_body_says() {
    let details = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}]);
    let error =
        json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}).to_string();
    // A header comes first.
    for (headers, wait) in [(vec![], 7_500), (vec![("retry-after", "3")], 3_000)] {
        let recording = Recording::new([Reply::new(429, &headers, &error)]);
        let node = Node::new("google-model", json!({"maxRetries": 1}));
        node.call(&reply(ToolChoice::Auto), &recording, ModelSettings::default()).unwrap();
        assert_eq!(recording.waits(), [wait]);
    }
}

/// Only newer models take JSON and tools at the same time.
#[test]
fn json_that_does_not_go_with_tools_is_asked_for_by_the_prompt() {
    let refusal = refused("Function calling with a response mime type: 'application/json' is unsupported");
    let recording = Recording::new([refusal]);
    let mut node = Node::new("google-model", json!({"model": "gemini-2.5-flash"}));
    node.tools = crate::samples::two_tools();
    let format = redflow_ports::ReplyFormat::Json;
    let kind = redflow_ports::AnswerKind::Reply(redflow_ports::Reply { format, ..Default::default() });
    node.call(&kind, &recording, ModelSettings::default()).unwrap();
    let kinds: Vec<Value> = recording
        .requests()
        .iter()
        .map(|request| request.body["generationConfig"]["responseMimeType"].clone())
        .collect();
    assert_eq!(kinds, [json!("application/json"), Value::Null]);
}
