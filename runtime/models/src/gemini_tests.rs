use super::{Gemini, MAX_PARTS};
use crate::event_stream::StreamFormat;
use crate::samples::{as_strs, call, opaque, text_parts};
use crate::wire::Reasoning::{self, Discard, Keep};
use crate::wire::{MAX_CALLS, ProviderError, Wire, WireError};
use pretty_assertions::assert_eq;
use proptest::prelude::proptest;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use serde_json::{Value, json};
use std::time::Duration;
use url::Url;

fn wire() -> Gemini {
    Gemini { model: "gemini-3.5-flash".to_owned(), ..Gemini::default() }
}

fn decode(body: &Value) -> Result<ModelAnswer, WireError> {
    wire().decode(body.to_string().as_bytes(), Keep)
}

fn candidate(parts: &Value, reason: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}]})
}

/// The parts of an answer with a thought and two calls at once, of which the first has the signature.
fn signed_parts() -> [Value; 4] {
    [
        json!({"text": "Two calls.", "thought": true}),
        json!({"text": "I look."}),
        json!({"functionCall": {"id": "fc_1", "name": "calculator", "args": {"b": 1.0, "a": "x"}}, "thoughtSignature": "c2ln"}),
        json!({"functionCall": {"name": "clock"}}),
    ]
}

#[test]
fn each_request_has_its_own_address() {
    for (base, stream, expected) in [
        (
            "https://g.example/v1beta/models",
            false,
            "https://g.example/v1beta/models/gemini-3.5-flash:generateContent",
        ),
        (
            "https://g.example/v1beta/models?a=b",
            true,
            "https://g.example/v1beta/models/gemini-3.5-flash:streamGenerateContent?a=b&alt=sse",
        ),
    ] {
        assert_eq!(wire().address(&Url::parse(base).unwrap(), stream).as_str(), expected);
    }
    let other = wire().with_model("a/b?c");
    let base = Url::parse("https://g.example/models").unwrap();
    assert_eq!(other.address(&base, false).as_str(), "https://g.example/models/a%2Fb%3Fc:generateContent");
}

#[test]
fn decodes_a_whole_answer() {
    let mut body = candidate(&json!(signed_parts()), &json!("STOP"));
    body["modelVersion"] = json!("gemini-3.5-flash-001");
    body["responseId"] = json!("r");
    body["usageMetadata"] = json!({
        "promptTokenCount": 60, "cachedContentTokenCount": 30, "candidatesTokenCount": 40,
        "thoughtsTokenCount": 5, "toolUsePromptTokenCount": 7, "totalTokenCount": 112,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 60}],
    });
    let expected = ModelAnswer {
        text: "I look.".to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(Usage {
            input_tokens: 67,
            output_tokens: 45,
            cached_tokens: Some(30),
            reasoning_tokens: Some(5),
            ..Usage::default()
        }),
        tool_calls: vec![call("fc_1", "calculator", r#"{"b":1.0,"a":"x"}"#), call("", "clock", "{}")],
        reasoning: opaque("gemini", &signed_parts()),
        model: Some("gemini-3.5-flash-001".to_owned()),
        ..ModelAnswer::default()
    };
    assert_eq!(decode(&body), Ok(expected.clone()));
    let without_reasoning = wire().decode(body.to_string().as_bytes(), Discard);
    assert_eq!(without_reasoning, Ok(ModelAnswer { reasoning: None, ..expected }));
    // Parts without a signature need not go back as they are.
    let plain = candidate(
        &json!([{"text": "Hi"}, {"functionCall": {"name": "clock", "args": null}}]),
        &json!("STOP"),
    );
    let answer = decode(&plain).unwrap();
    assert_eq!((answer.reasoning, answer.tool_calls), (None, vec![call("", "clock", "{}")]));
}

#[test]
fn reasons_to_finish() {
    use ModelFinish::{Refused, Stop, ToolCalls, Truncated};
    for (reason, without, with) in [
        (json!("STOP"), Stop, ToolCalls),
        (json!("FINISH_REASON_UNSPECIFIED"), Stop, ToolCalls),
        // As an independent mock has it.
        (json!("FUNCTION_CALL"), Stop, ToolCalls),
        (json!("OTHER"), Stop, ToolCalls),
        (json!("OF_TOMORROW"), Stop, ToolCalls),
        (Value::Null, Stop, ToolCalls),
        (json!("MAX_TOKENS"), Truncated, Truncated),
        (json!("SAFETY"), Refused, Refused),
        (json!("RECITATION"), Refused, Refused),
        (json!("LANGUAGE"), Refused, Refused),
        (json!("BLOCKLIST"), Refused, Refused),
        (json!("PROHIBITED_CONTENT"), Refused, Refused),
        (json!("SPII"), Refused, Refused),
        (json!("MODEL_ARMOR"), Refused, Refused),
        (json!("IMAGE_SAFETY"), Refused, Refused),
    ] {
        let finish = |parts: Value| decode(&candidate(&parts, &reason)).unwrap().finish;
        assert_eq!(finish(json!([{"text": "a"}])), without, "{reason}");
        assert_eq!(
            finish(json!([{"functionCall": {"name": "x", "args": {}}}])),
            with,
            "{reason} with a call"
        );
    }
    for reason in [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
    ] {
        let body = json!({"candidates": [{"finishReason": reason, "finishMessage": "print(clock())"}]});
        let error = decode(&body).unwrap_err();
        assert!(matches!(error, WireError::InvalidCall(why) if why.contains(reason)), "{error:?}");
    }
}

#[test]
fn answers_without_content() {
    for (body, finish) in [
        (json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}), ModelFinish::Refused),
        (json!({"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}}), ModelFinish::Refused),
        (json!({"candidates": [{"finishReason": "SAFETY"}]}), ModelFinish::Refused),
        (json!({"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]}), ModelFinish::Stop),
        (json!({"candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}]}), ModelFinish::Truncated),
        // Every token went into thinking.
        (candidate(&json!([{"text": "Hm.", "thought": true}]), &json!("MAX_TOKENS")), ModelFinish::Truncated),
    ] {
        let answer = decode(&body).unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), ("", finish), "{body}");
        let streamed = assemble(std::slice::from_ref(&body), Keep).unwrap();
        assert_eq!(streamed, answer);
    }
}

#[test]
fn an_answer_that_is_withheld_later_is_refused() {
    let call = json!([{"functionCall": {"name": "clock", "args": {}}}]);
    let block = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    let answer = assemble(&[candidate(&call, &json!(null)), block], Keep).unwrap();
    assert_eq!(answer.finish, ModelFinish::Refused);
}

#[test]
fn the_last_event_of_a_gateway_is_no_error() {
    let mut assembler = wire().assembler(Keep);
    let answer = candidate(&json!([{"text": "Hi."}]), &json!("STOP")).to_string();
    assert_eq!(assembler.add_event(None, answer.as_bytes()), Ok(false));
    assert_eq!(assembler.add_event(None, b" [DONE]"), Ok(true));
    assert_eq!(assembler.finish().unwrap().text, "Hi.");
}

#[test]
fn invalid_usage_never_fails_an_answer() {
    let usage = |input_tokens, output_tokens| Some(Usage { input_tokens, output_tokens, ..Usage::default() });
    for (json, expected) in [
        ("null", None),
        ("[]", None),
        ("7", None),
        ("{}", None),
        (r#"{"promptTokenCount":null,"candidatesTokenCount":"3"}"#, None),
        (r#"{"promptTokenCount":-4,"candidatesTokenCount":3}"#, usage(0, 3)),
        (r#"{"promptTokenCount":2.0,"candidatesTokenCount":1e300}"#, usage(2, 0)),
        (r#"{"promptTokenCount":18446744073709551615,"candidatesTokenCount":3}"#, usage(0, 3)),
    ] {
        let body = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"a"}}]}}}}],"usageMetadata":{json}}}"#
        );
        let answer = wire().decode(body.as_bytes(), Discard).unwrap();
        assert_eq!((answer.text.as_str(), answer.usage), ("a", expected), "{json}");
    }
}

const HOSTILE: [&[u8]; 16] = [
    b"",
    b"null",
    b"[]",
    b"[[],null,null,null,null]",
    b"\"text\"",
    b"{\"candidates\":7}",
    b"{\"candidates\":[5]}",
    b"{\"candidates\":[{\"content\":[]}]}",
    b"{\"candidates\":[{\"content\":{\"parts\":{}}}]}",
    b"{\"candidates\":[{\"content\":{\"parts\":[5]}}]}",
    b"{\"candidates\":[{\"content\":{\"parts\":[{\"text\":5}]}}]}",
    b"{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":5}]}}]}",
    b"{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":5}}]}}]}",
    b"{\"candidates\":[{\"finishReason\":5}]}",
    b"{\"candidates\":[{}]} trailing",
    b"{\"candidates\":[{}],\"other\":\"\xff\"}",
];

#[test]
fn malformed_answers_and_events() {
    for body in HOSTILE {
        let shown = String::from_utf8_lossy(body);
        let error = wire().decode(body, Keep).unwrap_err();
        assert!(matches!(error, WireError::Malformed(_)), "{shown} {error:?}");
        let error = wire().assembler(Keep).add_event(None, body).unwrap_err();
        assert!(matches!(error, WireError::Malformed(_)), "{shown} {error:?}");
    }
    for body in [json!({}), json!({"candidates": []}), json!({"candidates": null, "promptFeedback": {}})] {
        assert_eq!(decode(&body), Err(WireError::Malformed("the answer has no candidates")), "{body}");
    }
}

#[test]
fn parts_and_calls_are_bounded() {
    let signed = json!({"text": "a", "thoughtSignature": "s"});
    assert!(decode(&candidate(&json!(vec![&signed; MAX_PARTS]), &json!("STOP"))).is_ok());
    assert_eq!(
        decode(&candidate(&json!(vec![&signed; MAX_PARTS + 1]), &json!("STOP"))),
        Err(WireError::Malformed("the answer has too many parts"))
    );
    // A text in many pieces is one part.
    let many = decode(&candidate(&json!(vec![json!({"text": "a"}); 1_000]), &json!("STOP"))).unwrap();
    assert_eq!(many.text.len(), 1_000);
    let calls = vec![json!({"functionCall": {"name": "x", "args": {}}}); MAX_CALLS + 1];
    assert_eq!(decode(&candidate(&json!(calls), &json!("STOP"))).unwrap().tool_calls.len(), MAX_CALLS);
}

fn error(status: u16, kind: &str, code: &str, message: &str) -> ProviderError {
    ProviderError {
        status,
        kind: kind.to_owned(),
        code: code.to_owned(),
        message: message.to_owned(),
        ..Default::default()
    }
}

fn quota(ids: &[&str], delay: &str) -> Value {
    let violations: Vec<Value> = ids.iter().map(|id| json!({"quotaId": id, "quotaMetric": "m"})).collect();
    json!({"error": {"code": 429, "message": "Slow.", "status": "RESOURCE_EXHAUSTED", "details": [
        {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]}})
}

#[test]
fn errors_of_every_form() {
    let key = json!({"error": {"code": 400, "message": "No key.", "status": "INVALID_ARGUMENT", "details": [
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"},
        {"@type": "type.googleapis.com/google.rpc.LocalizedMessage", "message": "No key."},
    ]}});
    let long = "é".repeat(5_000);
    for (status, body, expected) in [
        (400, key, error(400, "INVALID_ARGUMENT", "API_KEY_INVALID", "No key.")),
        (
            429,
            quota(&["GenerateRequestsPerMinutePerProject"], "2s"),
            error(429, "RESOURCE_EXHAUSTED", "", "Slow."),
        ),
        (
            429,
            quota(&["PerMinute", "GenerateRequestsPerDayPerProjectPerModel-FreeTier"], "2s"),
            error(429, "RESOURCE_EXHAUSTED", "daily_quota_exceeded", "Slow."),
        ),
        (
            429,
            json!({"error": {"code": 429, "details": [{"@type": "x/google.rpc.QuotaFailure", "violations": [
                {"quotaMetric": "host/generate_requests_per_model_per_day"}]}]}}),
            error(429, "", "daily_quota_exceeded", ""),
        ),
        // The stream's address answers with a list.
        (
            503,
            json!([{"error": {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}}]),
            error(503, "UNAVAILABLE", "", "Busy."),
        ),
        // A gateway with the errors of another provider.
        (
            429,
            json!({"error": {"type": "insufficient_quota", "code": "no_credit", "message": "No."}}),
            error(429, "insufficient_quota", "no_credit", "No."),
        ),
        (401, json!({"error": "No."}), error(401, "", "", "No.")),
        (
            400,
            json!({"error": {"message": long, "status": long}}),
            error(400, &"é".repeat(100), "", &"é".repeat(4_000)),
        ),
        (500, json!({"error": {"details": 7, "status": 7, "code": -1}}), error(500, "", "", "")),
        (
            500,
            json!({"error": {"details": [7, {"@type": 7}, {"@type": "a.QuotaFailure", "violations": [7, {}]}]}}),
            error(500, "", "", ""),
        ),
        (502, json!({"error": null}), error(502, "", "", "")),
        (502, json!([]), error(502, "", "", "")),
        (502, json!("text"), error(502, "", "", "text")),
    ] {
        assert_eq!(wire().parse_error(status, body.to_string().as_bytes()), expected, "{body}");
    }
    for body in [b"".as_slice(), b"<html>", b"{\"error\":\"\xff\"}"] {
        assert_eq!(wire().parse_error(502, body), error(502, "", "", ""));
    }
}

#[test]
fn an_error_says_how_long_to_wait() {
    for (delay, wait) in [
        ("20s", Some(Duration::from_secs(20))),
        ("0.25s", Some(Duration::from_millis(250))),
        ("20.04466179s", Some(Duration::from_nanos(20_044_661_790))),
        ("-1s", None),
        ("1e300s", None),
        ("NaNs", None),
        ("20", None),
        ("soon", None),
    ] {
        let body = quota(&[], delay).to_string();
        assert_eq!(wire().requested_wait(body.as_bytes()), wait, "{delay}");
    }
    for body in ["", "[]", "{}", r#"{"error":{"details":[{"@type":"a.RetryInfo","retryDelay":5}]}}"#] {
        assert_eq!(wire().requested_wait(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn errors_with_a_success_status_have_their_own() {
    for (code, status) in
        [(json!(429), 429), (json!(503), 503), (json!(200), 500), (json!(70_000), 500), (json!("x"), 500)]
    {
        let body = json!({"error": {"code": code, "message": "Sorry.", "status": "S"}});
        let found = decode(&body).unwrap_err();
        assert!(matches!(&found, WireError::Provider(error) if error.status == status), "{found:?}");
        let streamed = wire().assembler(Keep).add_event(None, body.to_string().as_bytes());
        assert_eq!(streamed.unwrap_err(), found);
    }
}

fn assemble(events: &[Value], reasoning: Reasoning) -> Result<ModelAnswer, WireError> {
    let mut assembler = wire().assembler(reasoning);
    for event in events {
        // Only the end of the stream ends it.
        assert!(!assembler.add_event(None, event.to_string().as_bytes())?, "{event}");
    }
    assembler.finish()
}

fn parts_event(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "modelVersion": "gemini-3.5-flash",
           "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}})
}

fn text_event(text: &str, is_thought: bool) -> Value {
    let part = if is_thought { json!({"text": text, "thought": true}) } else { json!({"text": text}) };
    parts_event(&json!([part]))
}

/// A whole stream, in which every text arrives in the given parts.
fn stream(thoughts: &[&str], texts: &[&str]) -> Vec<Value> {
    let mut events: Vec<Value> = thoughts.iter().map(|text| text_event(text, true)).collect();
    events.extend(texts.iter().map(|text| text_event(text, false)));
    events.push(parts_event(&json!([signed_parts()[2], {"functionCall": {"name": "clock", "args": {}}}])));
    let mut last = candidate(&json!([{"text": "", "thoughtSignature": "bGFzdA=="}]), &json!("STOP"));
    last["usageMetadata"] = json!({"promptTokenCount": 10, "candidatesTokenCount": 20, "thoughtsTokenCount": 5, "cachedContentTokenCount": 4});
    events.push(last);
    events
}

fn streamed_answer(thought: &str, text: &str) -> ModelAnswer {
    let mut parts = Vec::new();
    parts.extend((!thought.is_empty()).then(|| json!({"text": thought, "thought": true})));
    parts.extend((!text.is_empty()).then(|| json!({"text": text})));
    parts.push(signed_parts()[2].clone());
    parts.push(json!({"functionCall": {"name": "clock", "args": {}}}));
    // A part with a signature is never joined with another one.
    parts.push(json!({"text": "", "thoughtSignature": "bGFzdA=="}));
    ModelAnswer {
        text: text.to_owned(),
        finish: ModelFinish::ToolCalls,
        usage: Some(Usage {
            input_tokens: 10,
            output_tokens: 25,
            cached_tokens: Some(4),
            reasoning_tokens: Some(5),
            ..Usage::default()
        }),
        tool_calls: vec![call("fc_1", "calculator", r#"{"b":1.0,"a":"x"}"#), call("", "clock", "{}")],
        reasoning: opaque("gemini", &parts),
        model: Some("gemini-3.5-flash".to_owned()),
        ..ModelAnswer::default()
    }
}

#[test]
fn assembles_a_stream() {
    let events = stream(&["Let ", "me."], &["He", "llo"]);
    let expected = streamed_answer("Let me.", "Hello");
    assert_eq!(wire().stream_format(), StreamFormat::Sse);
    assert_eq!(assemble(&events, Keep), Ok(expected.clone()));
    assert_eq!(assemble(&events, Discard), Ok(ModelAnswer { reasoning: None, ..expected }));
}

#[test]
fn observers_get_the_text_and_no_thoughts() {
    let mut assembler = wire().assembler(Keep);
    let mut seen = Vec::new();
    for event in stream(&["Secret."], &["He", "llo"]) {
        assembler.add_event(None, event.to_string().as_bytes()).unwrap();
        let mut all = String::new();
        assembler.visit_text(&mut |text| all.push_str(text));
        seen.push(all);
    }
    assert_eq!(seen, ["", "He", "Hello", "Hello", "Hello"]);
}

/// In the middle of a thought, of the text, or of the calls.
#[test]
fn a_stream_that_ends_too_early_is_interrupted() {
    let events = stream(&["Let ", "me."], &["He", "llo"]);
    for end in 0..events.len() {
        assert_eq!(assemble(&events[..end], Keep), Err(WireError::Interrupted), "{end}");
    }
}

#[test]
fn every_event_may_have_a_reason_to_finish() {
    let events = ["a", "b"].map(|text| candidate(&json!([{"text": text}]), &json!("STOP")));
    assert_eq!(assemble(&events, Keep).unwrap().text, "ab");
    // The last one counts.
    let events =
        [candidate(&json!([{"text": "a"}]), &json!("STOP")), candidate(&json!([]), &json!("SAFETY"))];
    assert_eq!(assemble(&events, Keep).unwrap().finish, ModelFinish::Refused);
    let events =
        [text_event("a", false), json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]})];
    assert!(matches!(assemble(&events, Keep), Err(WireError::InvalidCall(_))));
}

#[test]
fn an_error_in_a_stream_ends_it() {
    let mut events = stream(&["T"], &["A"]);
    events.insert(1, json!({"error": {"code": 503, "message": "Stop.", "status": "UNAVAILABLE"}}));
    assert_eq!(assemble(&events, Keep), Err(WireError::Provider(error(503, "UNAVAILABLE", "", "Stop."))));
}

proptest! {
    #[test]
    fn the_answer_does_not_depend_on_how_it_is_split(thoughts in text_parts(), texts in text_parts()) {
        let (thought, text) = (thoughts.concat(), texts.concat());
        let expected = streamed_answer(&thought, &text);
        assert_eq!(assemble(&stream(&[&thought], &[&text]), Keep), Ok(expected.clone()));
        assert_eq!(assemble(&stream(&as_strs(&thoughts), &as_strs(&texts)), Keep), Ok(expected));
    }

    #[test]
    fn no_body_panics(body in "[{}\\[\\]\":,a-z0-9]{0,40}") {
        let _ = wire().decode(body.as_bytes(), Keep);
        let _ = wire().parse_error(500, body.as_bytes());
        let _ = wire().requested_wait(body.as_bytes());
        let mut assembler = wire().assembler(Keep);
        let _ = assembler.add_event(None, body.as_bytes());
        let _ = assembler.finish();
    }
}
