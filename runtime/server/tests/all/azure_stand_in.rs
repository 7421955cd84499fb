//! A stand-in for an Azure OpenAI server.

use redflow_testkit::{HttpRequest, HttpServer, json_response};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// What the server does with a request.
pub(crate) enum Turn {
    /// Answers with this text.
    Answer(String),
    /// Answers with this text after a permit of `release`.
    AnswerLater(String),
    /// Answers with this status and error.
    Refuse(u16, Value),
    /// Sends bytes that are no HTTP.
    Garbage,
    /// Never answers.
    Silence,
}

#[derive(Default)]
struct Shared {
    turns: Mutex<VecDeque<Turn>>,
    requests: Mutex<Vec<HttpRequest>>,
}

/// A server that ends with its test. Without further turns it answers with a final action.
pub(crate) struct Azure {
    server: HttpServer,
    shared: Arc<Shared>,
    /// Each permit releases one delayed answer.
    pub(crate) release: Arc<Semaphore>,
}

impl Azure {
    pub(crate) async fn start(turns: impl IntoIterator<Item = Turn>) -> Self {
        let shared = Arc::new(Shared::default());
        shared.turns.lock().unwrap().extend(turns);
        let release = Arc::new(Semaphore::new(0));
        let (server_shared, server_release) = (Arc::clone(&shared), Arc::clone(&release));
        let server = HttpServer::start(move |request| {
            respond(request, Arc::clone(&server_shared), Arc::clone(&server_release))
        });
        Self { server: server.await.unwrap(), shared, release }
    }

    pub(crate) fn endpoint(&self) -> String {
        self.server.url("")
    }

    pub(crate) fn requests(&self) -> Vec<HttpRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The keys of all requests so far.
    pub(crate) fn keys(&self) -> Vec<Option<String>> {
        self.requests().iter().map(|request| request.header("api-key").map(str::to_owned)).collect()
    }
}

async fn respond(request: HttpRequest, shared: Arc<Shared>, release: Arc<Semaphore>) -> Vec<u8> {
    shared.requests.lock().unwrap().push(request);
    let turn = shared.turns.lock().unwrap().pop_front();
    let turn = turn.unwrap_or_else(|| Turn::Answer(json!({"action": "final", "message": "42"}).to_string()));
    let (status, body) = match turn {
        Turn::Answer(text) => (200, completion(&text)),
        Turn::AnswerLater(text) => {
            release.acquire().await.unwrap().forget();
            (200, completion(&text))
        }
        Turn::Refuse(status, error) => (status, json!({"error": error})),
        Turn::Garbage => return b"220 mail.example ESMTP\r\n".to_vec(),
        Turn::Silence => std::future::pending().await,
    };
    json_response(status, &[("apim-request-id", "r-1")], &body)
}

/// A chat completion in Azure's format.
fn completion(text: &str) -> Value {
    let harmless = json!({"filtered": false, "severity": "safe"});
    let filters = json!({"hate": harmless, "self_harm": harmless, "sexual": harmless, "violence": harmless});
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "gpt-4o-2024-08-06",
        "system_fingerprint": "fp_1",
        "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": filters}],
        "choices": [{"index": 0, "finish_reason": "stop", "logprobs": null, "content_filter_results": filters,
                     "message": {"role": "assistant", "content": text, "refusal": null}}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
    })
}
