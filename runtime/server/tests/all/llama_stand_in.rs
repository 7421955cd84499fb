//! A stand-in for a server of llama.cpp that still loads its model.

use redflow_testkit::{HttpRequest, HttpServer, json_response};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server that answers its first request with the error of a model that is being loaded.
pub(crate) async fn loading_server() -> HttpServer {
    let requests = Arc::new(AtomicUsize::new(0));
    let server = HttpServer::start(move |request| {
        let number = requests.fetch_add(1, Ordering::Relaxed);
        async move { respond(&request, number) }
    });
    server.await.unwrap()
}

fn respond(request: &HttpRequest, number: usize) -> Vec<u8> {
    if number == 0 {
        let error = json!({"code": 503, "message": "Loading model", "type": "unavailable_error"});
        return json_response(503, &[("server", "llama.cpp")], &json!({ "error": error }));
    }
    // Agent Core asks by a union of its actions, `final` last.
    let body = request.json().unwrap();
    let branches = &body["response_format"]["json_schema"]["schema"]["anyOf"];
    assert_eq!(branches[1]["properties"]["action"]["enum"], json!(["final"]), "{body}");
    let text = json!({"action": "final", "confidence": 1, "message": "42"}).to_string();
    let choice =
        json!({"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}});
    json_response(200, &[("server", "llama.cpp")], &json!({"object": "chat.completion", "choices": [choice]}))
}

/// A flow whose agent has the model of this server.
pub(crate) fn flow_with_model(server: &HttpServer) -> Value {
    let mut flow = crate::kit::plain_flow();
    let model = flow.as_array_mut().unwrap().iter_mut().find(|node| node["id"] == "model").unwrap();
    *model = json!({"id": "model", "type": "openai-model", "z": "tab", "model": "any", "stream": false,
        "baseURL": server.url("/v1/chat/completions"), "wires": [["agent"]]});
    flow
}
