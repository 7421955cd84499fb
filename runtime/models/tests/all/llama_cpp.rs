//! A peer that speaks the wire of llama.cpp's server, with its errors to the letter.

use crate::scripted_server::{ScriptedServer, Step, chunk, json, response, stream, stream_head};
use crate::wires::{CHAT, WIRES, call, call_error, call_text};
use futures::future::join;
use redflow_contract::code::RunErrorCode as Code;
use redflow_contract::id::NodeSummary;
use redflow_contract::transcript::Transcript;
use redflow_models::{ModelSettings, register};
use redflow_ports::{
    ActionSchemas, Adapters, AnswerKind, ModelRequest, ModelWait, NodeConfig, SchemaText, WaitObserver,
};
use serde_json::{Value, json as value};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

const HEADERS: [(&str, &str); 2] =
    [("server", "llama.cpp"), ("content-type", "application/json; charset=utf-8")];

fn error(status: u16, kind: &str, message: &str) -> Vec<Step> {
    let error = value!({"code": status, "message": message, "type": kind});
    response(status, &HEADERS, value!({ "error": error }).to_string())
}

/// A whole answer, as the server writes it.
fn answer(text: &str) -> Vec<Step> {
    let message = value!({"role": "assistant", "content": text});
    json(
        value!({
            "choices": [{"finish_reason": "stop", "index": 0, "message": message}],
            "created": 1_763_300_000, "model": "gpt-3.5-turbo", "system_fingerprint": "b9272-1d7ab2b94",
            "object": "chat.completion", "id": "chatcmpl-9QkT",
            "usage": {"completion_tokens": 12, "prompt_tokens": 83, "total_tokens": 95},
            "timings": {"prompt_n": 83, "prompt_ms": 41.2, "predicted_n": 12, "predicted_per_second": 61.5},
        })
        .to_string(),
    )
}

fn piece(delta: Value, finish_reason: Option<&str>) -> String {
    let choice = value!({"finish_reason": finish_reason, "index": 0, "delta": delta});
    let body = value!({"choices": [choice], "id": "chatcmpl-9QkT", "object": "chat.completion.chunk"});
    format!("data: {body}\n\n")
}

fn requested(server: &ScriptedServer, index: usize) -> Value {
    serde_json::from_slice(&server.seen().requests[index].body).unwrap()
}

#[tokio::test]
async fn an_action_is_asked_for_by_branches() {
    let server = ScriptedServer::start([answer(r#"{"action":"final","confidence":1,"message":"4"}"#)]).await;
    let model = CHAT.at(&server, value!({}));
    let branches = SchemaText::from_value(&value!({"anyOf": [{"type": "object"}]}));
    let answer_kind = &AnswerKind::Action(ActionSchemas { branches, ..ActionSchemas::default() });
    let transcript = Transcript::default();
    let request = ModelRequest { answer_kind, ..ModelRequest::for_text(&transcript) };
    let answer = model.call(request).await.unwrap();
    assert!(answer.text.starts_with("{\"action\":\"final\""), "{}", answer.text);
    assert_eq!(answer.usage.unwrap().input_tokens, 83);
    let schema = value!({"name": "action", "schema": {"anyOf": [{"type": "object"}]}, "strict": true});
    let expected = value!({"type": "json_schema", "json_schema": schema});
    assert_eq!(requested(&server, 0)["response_format"], expected);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_has_its_code() {
    let too_long =
        "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it";
    for reply in [
        error(400, "exceed_context_size_error", too_long),
        error(500, "exceed_context_size_error", too_long),
        error(500, "server_error", "Context size has been exceeded."),
        stream([format!(
            "error: {{}}\ndata: {}\n\n",
            value!({"error": {"code": 400, "message": too_long, "type": "exceed_context_size_error"}})
        )]),
    ] {
        let server = ScriptedServer::start([reply]).await;
        let model = CHAT.at(&server, value!({"maxRetries": 2, "stream": true}));
        let (code, message) = call_error(&*model).await;
        assert_eq!((code, server.request_count()), (Code::ContextLength, 1), "{message}");
        assert!(message.contains("the conversation is longer than"), "{message}");
    }
}

#[tokio::test]
async fn an_address_with_the_path_of_the_request_works() {
    for path in ["/v1", "/v1/", "/v1/chat/completions", "/v1/chat/completions/"] {
        let server = ScriptedServer::start([answer("hi")]).await;
        let model = CHAT.at(&server, value!({"baseURL": format!("{}{path}", server.url())}));
        assert_eq!(call_text(&*model).await, "hi");
        let head = server.seen().requests[0].head.clone();
        assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{head}");
    }
}

#[tokio::test]
async fn a_wrong_address_is_shown() {
    let server = ScriptedServer::start([error(404, "not_found_error", "File Not Found")]).await;
    let url = format!("{}/api?tenant=7", server.url());
    let model = CHAT.at(&server, value!({ "baseURL": url }));
    let (code, message) = call_error(&*model).await;
    assert_eq!(code, Code::ModelNotFound);
    let address = format!("; the request went to {}/api/chat/completions", server.url());
    assert!(message.ends_with(&address), "{message}");
}

#[tokio::test]
async fn further_settings_never_replace_what_the_node_sends() {
    let extra = value!({"top_k": 20, "temperature": 2, "cache_prompt": true, "max_tokens": 7});
    let server = ScriptedServer::start([answer("hi")]).await;
    let model = CHAT.at(&server, value!({"extraBody": extra, "temperature": 0.5, "maxTokens": 50}));
    call_text(&*model).await;
    let body = requested(&server, 0);
    assert_eq!(
        [&body["top_k"], &body["cache_prompt"], &body["temperature"], &body["max_tokens"]],
        [&value!(20), &value!(true), &value!(0.5), &value!(50)]
    );
}

#[tokio::test]
async fn a_stream_that_stands_still_is_ended() {
    for wire in WIRES {
        let stalled = vec![stream_head(), Step::Send(chunk(wire.events[0])), Step::Hang];
        let server = ScriptedServer::start([stalled]).await;
        let model = wire.at(&server, value!({"stream": true, "idleTimeout": 100}));
        let (code, message) = call_error(&*model).await;
        assert_eq!(code, Code::Timeout);
        assert!(message.ends_with("did not go on for 100 ms (`idleTimeout`)"), "{message}");
        server.wait_until(|seen| seen.disconnects == 1).await;
    }
    // A retry begins the answer again.
    let first = piece(value!({"role": "assistant", "content": null}), None);
    let stalled = vec![stream_head(), Step::Send(chunk(&first)), Step::Hang];
    let whole = stream([first, piece(value!({"content": "hi"}), None), piece(value!({}), Some("stop"))]);
    let server = ScriptedServer::start([stalled, whole]).await;
    let model = CHAT.at(&server, value!({"stream": true, "idleTimeout": 100, "maxRetries": 1}));
    assert_eq!(call_text(&*model).await, "hi");
}

#[derive(Default)]
struct WaitLog(Mutex<Vec<Option<ModelWait>>>);

impl WaitObserver for WaitLog {
    fn waiting(&self, reason: Option<ModelWait>) {
        self.0.lock().unwrap().push(reason);
    }
}

#[tokio::test]
async fn a_node_makes_no_more_calls_at_once_than_it_may() {
    let (reply, log) = (Arc::new(Notify::new()), WaitLog::default());
    let held = |text: &str| [vec![Step::Wait(Arc::clone(&reply))], answer(text)].concat();
    let server = ScriptedServer::start([held("first"), held("second"), answer("third")]).await;
    let model = CHAT.at(&server, value!({"maxConcurrent": 1}));
    let transcript = Transcript::default();
    let observed = ModelRequest { wait_observer: Some(&log), ..ModelRequest::for_text(&transcript) };
    let second = async {
        server.wait_until(|seen| seen.requests.len() == 1).await;
        // A call that is given up while it waits takes no slot.
        let given_up = Arc::clone(&model);
        let given_up = tokio::spawn(async move { call(&*given_up).await });
        tokio::task::yield_now().await;
        given_up.abort();
        let waiting = model.call(observed);
        let release = async {
            tokio::task::yield_now().await;
            assert_eq!(server.request_count(), 1, "the second call has not begun");
            reply.notify_one();
            server.wait_until(|seen| seen.requests.len() == 2).await;
            reply.notify_one();
        };
        join(waiting, release).await.0.unwrap().text
    };
    let (first, second) = join(call_text(&*model), second).await;
    assert_eq!((first.as_str(), second.as_str()), ("first", "second"));
    assert_eq!(*log.0.lock().unwrap(), [Some(ModelWait::Busy), None]);
    assert_eq!(call_text(&*model).await, "third");
}

#[tokio::test]
async fn the_wait_for_a_model_ends_with_the_head_of_another_answer() {
    let (rest, log) = (Arc::new(Notify::new()), WaitLog::default());
    let loading = || error(503, "unavailable_error", "Loading model");
    let first = chunk(piece(value!({"content": "hi"}), None));
    let last = chunk(piece(value!({}), Some("stop")));
    let held = vec![
        stream_head(),
        Step::Wait(Arc::clone(&rest)),
        Step::Send(first),
        Step::Send(last),
        Step::Send(chunk("data: [DONE]\n\n")),
        Step::Send(b"0\r\n\r\n".to_vec()),
    ];
    let server = ScriptedServer::start([loading(), held, loading(), error(400, "e", "no")]).await;
    let model = CHAT.at(&server, value!({"stream": true}));
    let transcript = Transcript::default();
    let request = || ModelRequest { wait_observer: Some(&log), ..ModelRequest::for_text(&transcript) };
    let release = async {
        while log.0.lock().unwrap().last() != Some(&None) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        rest.notify_one();
    };
    let (answer, ()) = join(model.call(request()), release).await;
    assert_eq!(answer.unwrap().text, "hi");
    let waits = [Some(ModelWait::Loading), None];
    assert_eq!(*log.0.lock().unwrap(), waits);
    assert_eq!(model.call(request()).await.unwrap_err().code, Code::ModelError);
    assert_eq!(*log.0.lock().unwrap(), [waits, waits].concat(), "an error is an answer, too");
}

#[tokio::test]
async fn the_wait_for_other_calls_is_part_of_the_timeout() {
    let server = ScriptedServer::start([vec![Step::Hang]]).await;
    let mut adapters = Adapters::default();
    register(&mut adapters, ModelSettings::default());
    let node = NodeSummary { id: "m".into(), type_name: "openai-model".to_owned(), name: String::new() };
    // The models of two deploys of the same node.
    let [earlier, later] = [60_000, 300].map(|timeout| {
        let props = value!({"baseURL": server.url(), "model": "m", "maxConcurrent": 1, "timeout": timeout});
        let props = props.as_object().unwrap();
        let config = NodeConfig::new(&node, props, &|_| None, &|_| ());
        adapters.models["openai-model"](config).unwrap()
    });
    let first = tokio::spawn(async move { call(&*earlier).await });
    server.wait_until(|seen| seen.requests.len() == 1).await;
    let (code, message) = call_error(&*later).await;
    assert_eq!((code, server.request_count()), (Code::Timeout, 1));
    assert!(message.contains("`maxConcurrent` of its node limits the calls at once"), "{message}");
    first.abort();
}
