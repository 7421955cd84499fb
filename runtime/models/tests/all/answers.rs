//! Answers of a provider, good and bad ones.

use crate::scripted_server::{ScriptedServer, Step, json, response, stream};
use crate::wires::{ANTHROPIC, CHAT, GEMINI, KEY, OLLAMA, RESPONSES, WIRES, call, call_error, call_text};
use futures::future::join_all;
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::ModelFinish;
use serde_json::{Value, json as value};
use std::sync::Arc;
use tokio::sync::Notify;

#[tokio::test]
async fn the_http_request_of_each_wire() {
    for wire in WIRES {
        let server = ScriptedServer::start([json(wire.answer)]).await;
        assert_eq!(call_text(&*wire.at(&server, value!({}))).await, "hi");
        let seen = server.seen();
        let request = &seen.requests[0];
        let path = match wire.type_name {
            "anthropic-model" => "/v1/messages",
            "ollama-model" => "/api/chat",
            "google-model" => "/v1beta/models/m:generateContent",
            _ if wire.api == "responses" => "/v1/responses",
            _ => "/v1/chat/completions",
        };
        assert_eq!(request.head.lines().next(), Some(format!("POST {path} HTTP/1.1").as_str()));
        assert_eq!(request.header("content-type"), Some("application/json"));
        let (header, key) = match wire.type_name {
            "google-model" => ("x-goog-api-key", KEY.to_owned()),
            // The server is a gateway of Anthropic.
            "anthropic-model" => ("x-api-key", KEY.to_owned()),
            _ => ("authorization", format!("Bearer {KEY}")),
        };
        assert_eq!(request.header(header), Some(key.as_str()));
        assert!(request.header("user-agent").unwrap().starts_with("redflow/"));
        // The request asks for no compression, and has no referer.
        assert_eq!((request.header("accept-encoding"), request.header("referer")), (None, None));
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert!(body.to_string().contains("What is 2+2?"));
    }
}

#[tokio::test]
async fn a_streamed_answer_is_the_same_answer() {
    for wire in WIRES {
        let all = wire.events.concat();
        // Event by event, all at once, and byte by byte.
        let bytes: Vec<&[u8]> = all.as_bytes().chunks(1).collect();
        let server = ScriptedServer::start([stream(wire.events), stream([&all]), stream(bytes)]).await;
        let model = wire.at(&server, value!({"stream": true}));
        for _ in 0..3 {
            let answer = call(&*model).await.unwrap();
            assert_eq!((answer.text.as_str(), answer.finish), ("hi", ModelFinish::Stop), "{wire:?}");
        }
    }
}

#[tokio::test]
async fn a_pause_does_not_end_a_stream() {
    for wire in WIRES {
        let resume = Arc::new(Notify::new());
        let mut script = stream(wire.events);
        script.insert(2, Step::Wait(Arc::clone(&resume)));
        let server = ScriptedServer::start([script]).await;
        let model = wire.at(&server, value!({"stream": true}));
        let call = tokio::spawn(async move { call_text(&*model).await });
        server.wait_until(|seen| seen.requests.len() == 1).await;
        assert!(!call.is_finished());
        resume.notify_one();
        assert_eq!(call.await.unwrap(), "hi");
    }
}

#[tokio::test]
async fn empty_refused_and_truncated_answers() {
    use ModelFinish::{Refused, Stop, Truncated};
    let message = |message: &str, reason: &str| {
        format!(r#"{{"choices":[{{"message":{message},"finish_reason":"{reason}"}}]}}"#)
    };
    let incomplete = |reason: &str| {
        let output = r#"[{"type":"message","content":[{"type":"output_text","text":"ha"}]}]"#;
        format!(r#"{{"status":"incomplete","incomplete_details":{{"reason":"{reason}"}},"output":{output}}}"#)
    };
    let claude =
        |content: &str, reason: &str| format!(r#"{{"content":[{content}],"stop_reason":"{reason}"}}"#);
    let google = |parts: &str, reason: &str| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}},"finishReason":"{reason}"}}]}}"#)
    };
    let block = r#"{"type":"text","text":"ha"}"#;
    let refusal = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]}"#;
    for (wire, body, text, finish) in [
        (CHAT, message(r#"{"content":""}"#, "stop"), "", Stop),
        (CHAT, message(r#"{"content":null}"#, "stop"), "", Stop),
        (CHAT, message(r#"{"content":null,"refusal":"No."}"#, "stop"), "", Refused),
        (CHAT, message(r#"{"content":"ha"}"#, "content_filter"), "ha", Refused),
        (CHAT, message(r#"{"content":"ha"}"#, "length"), "ha", Truncated),
        (RESPONSES, r#"{"status":"completed","output":[]}"#.to_owned(), "", Stop),
        (RESPONSES, refusal.to_owned(), "", Refused),
        (RESPONSES, incomplete("content_filter"), "ha", Refused),
        (RESPONSES, incomplete("max_output_tokens"), "ha", Truncated),
        (ANTHROPIC, claude("", "end_turn"), "", Stop),
        (ANTHROPIC, claude(block, "refusal"), "ha", Refused),
        (ANTHROPIC, claude(block, "max_tokens"), "ha", Truncated),
        (OLLAMA, r#"{"message":{"content":""},"done":true}"#.to_owned(), "", Stop),
        (
            OLLAMA,
            r#"{"message":{"content":"ha"},"done":true,"done_reason":"length"}"#.to_owned(),
            "ha",
            Truncated,
        ),
        (GEMINI, google("", "STOP"), "", Stop),
        (GEMINI, google(r#"{"text":"ha"}"#, "SAFETY"), "ha", Refused),
        (GEMINI, r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#.to_owned(), "", Refused),
        (GEMINI, google(r#"{"text":"ha"}"#, "MAX_TOKENS"), "ha", Truncated),
    ] {
        let server = ScriptedServer::start([json(&body)]).await;
        let answer = call(&*wire.at(&server, value!({}))).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), (text, finish), "{body}");
    }
}

#[tokio::test]
async fn an_error_within_a_stream() {
    let each = WIRES.map(|wire| async move {
        let failing = || stream([wire.events[0], wire.failure]);
        let server = ScriptedServer::start([failing(), failing(), stream(wire.events)]).await;
        let (code, message) = call_error(&*wire.at(&server, value!({"stream": true}))).await;
        assert_eq!(code, RunErrorCode::ProviderUnavailable, "{message}");
        assert!(message.contains("is overloaded or out of order"), "{message}");
        assert!(message.ends_with("Overloaded"), "{message}");
        assert_eq!(server.request_count(), 1);
        // The run has not used the first half, so a retry is safe.
        assert_eq!(call_text(&*wire.at(&server, value!({"stream": true, "maxRetries": 1}))).await, "hi");
        assert_eq!(server.request_count(), 3);
    });
    join_all(each).await;
    let limited = "data: {\"error\":{\"message\":\"Slow down\",\"code\":\"rate_limit_exceeded\"}}\n\n";
    let server = ScriptedServer::start([stream([limited])]).await;
    assert_eq!(call_error(&*CHAT.at(&server, value!({"stream": true}))).await.0, RunErrorCode::RateLimit);
    let broke = "data: {\"error\":{\"message\":\"Pay\",\"code\":\"insufficient_quota\"}}\n\n";
    let server = ScriptedServer::start([stream([broke])]).await;
    let model = CHAT.at(&server, value!({"stream": true, "maxRetries": 2}));
    assert_eq!(call_error(&*model).await.0, RunErrorCode::QuotaExceeded);
}

#[tokio::test]
async fn an_error_with_a_success_status() {
    for (wire, body) in [
        (CHAT, r#"{"error":{"message":"Overloaded","code":"server_is_overloaded"}}"#),
        (RESPONSES, r#"{"status":"failed","error":{"message":"Overloaded","code":"server_error"}}"#),
        (ANTHROPIC, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        (OLLAMA, r#"{"error":"Overloaded"}"#),
        (GEMINI, r#"{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}"#),
    ] {
        let server = ScriptedServer::start([json(body)]).await;
        let (code, message) = call_error(&*wire.at(&server, value!({}))).await;
        assert_eq!(code, RunErrorCode::ProviderUnavailable, "{message}");
        assert!(message.ends_with("Overloaded"), "{message}");
    }
}

#[tokio::test]
async fn a_whole_answer_instead_of_a_stream() {
    for wire in WIRES {
        let charset = [("content-type", "Application/JSON; charset=utf-8")];
        let server = ScriptedServer::start([response(200, &charset, wire.answer)]).await;
        assert_eq!(call_text(&*wire.at(&server, value!({"stream": true}))).await, "hi", "{wire:?}");
    }
}

#[tokio::test]
async fn a_stream_instead_of_a_whole_answer() {
    for wire in WIRES {
        let server = ScriptedServer::start([stream(wire.events)]).await;
        let (code, message) = call_error(&*wire.at(&server, value!({"maxRetries": 2}))).await;
        assert_eq!((code, server.request_count()), (RunErrorCode::ModelError, 1), "{message}");
        assert!(message.contains("sent an invalid answer"), "{message}");
    }
}

#[tokio::test]
async fn bytes_that_are_not_utf8() {
    for wire in WIRES {
        let plain = wire.answer.replace("hi", "\u{7}").into_bytes();
        let broken: Vec<u8> = plain.iter().map(|byte| if *byte == 7 { 0xFF } else { *byte }).collect();
        let server = ScriptedServer::start([json(broken)]).await;
        let (code, message) = call_error(&*wire.at(&server, value!({}))).await;
        assert_eq!(code, RunErrorCode::ModelError);
        assert!(message.ends_with("sent an invalid answer: the answer is not UTF-8"), "{message}");
        let events = wire.events.concat().into_bytes();
        // Within the first text of the stream.
        let at = events.iter().rposition(|byte| *byte == b'h').unwrap();
        let broken = [&events[..at], b"\xC3\x28", &events[at + 1..]].concat();
        let server = ScriptedServer::start([stream([broken])]).await;
        let (code, message) = call_error(&*wire.at(&server, value!({"stream": true}))).await;
        assert_eq!(code, RunErrorCode::ModelError, "{message}");
    }
    // An event name that is not UTF-8.
    let server = ScriptedServer::start([stream([b"event: \xFF\ndata: {}\n\n"])]).await;
    let (code, message) = call_error(&*ANTHROPIC.at(&server, value!({"stream": true}))).await;
    assert_eq!(code, RunErrorCode::ModelError);
    assert!(message.ends_with("the name of an event is not UTF-8"), "{message}");
}

#[tokio::test]
async fn responses_that_are_not_an_answer() {
    let html = [("content-type", "text/html; charset=utf-8")];
    let page = "<!doctype html><title>Please log in</title>";
    let gzip = [("content-type", "application/json"), ("content-encoding", "gzip")];
    // A thousand bytes that would decompress to a million.
    let bomb = [[0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3].as_slice(), &[0; 1_000]].concat();
    for (reply, sentence) in [
        (response(200, &html, page), "it is a web page; check the address"),
        (response(200, &gzip, &bomb), "the answer is compressed, which was not requested"),
    ] {
        for streamed in [false, true] {
            for wire in WIRES {
                let server = ScriptedServer::start([reply.clone()]).await;
                let (code, message) = call_error(&*wire.at(&server, value!({"stream": streamed}))).await;
                assert_eq!(code, RunErrorCode::ModelError);
                let text = format!("sent an invalid answer: {sentence}");
                assert!(message.ends_with(&text), "{message}");
            }
        }
    }
    for reply in [
        vec![Step::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())],
        json(""),
        json("null"),
        json("[]"),
        json("{}"),
        json("\"text\""),
        response(200, &[], "<html>"),
    ] {
        for wire in WIRES {
            let server = ScriptedServer::start([reply.clone()]).await;
            let (code, message) = call_error(&*wire.at(&server, value!({"maxRetries": 2}))).await;
            assert_eq!((code, server.request_count()), (RunErrorCode::ModelError, 1), "{message}");
        }
    }
}

#[tokio::test]
async fn a_stream_without_an_answer() {
    for wire in WIRES {
        for reply in [
            vec![Step::Send(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec())],
            stream::<&str>([]),
            stream([": ping\n\n"]),
            stream([wire.events[0]]),
        ] {
            let server = ScriptedServer::start([reply]).await;
            let (code, message) = call_error(&*wire.at(&server, value!({"stream": true}))).await;
            // Ollama has no comments, so the ping is a malformed line.
            let is_not_json = message.ends_with("the answer is not a JSON object");
            let expected =
                if is_not_json { RunErrorCode::ModelError } else { RunErrorCode::ProviderUnavailable };
            assert_eq!(code, expected, "{message}");
            assert!(is_not_json || message.ends_with("broke off before it ended"), "{message}");
            assert!(!is_not_json || wire.type_name == "ollama-model", "{message}");
        }
    }
}
