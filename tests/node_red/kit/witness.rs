//! A server that is never killed. Tools ask it, flows post their results to it, and models are behind it. So it counts
//! how often each happened, even when other processes were killed.

use super::eventually;
use redflow_testkit::{HttpRequest, HttpServer, json_response};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    /// The names are in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    /// JSON, or the text.
    pub(crate) body: Value,
}

#[derive(Default)]
struct Endpoint {
    requests: Vec<RecordedRequest>,
    /// Given in order; the last one repeats.
    answers: Vec<Value>,
    answered: usize,
    gate: Option<watch::Sender<bool>>,
}

/// By path.
type Endpoints = Mutex<HashMap<String, Endpoint>>;

pub(crate) struct Witness {
    endpoints: Arc<Endpoints>,
    server: HttpServer,
}

impl Witness {
    pub(crate) async fn start() -> Self {
        let endpoints = Arc::<Endpoints>::default();
        let shared = Arc::clone(&endpoints);
        let server = HttpServer::start(move |request| answer(request, Arc::clone(&shared))).await.unwrap();
        Self { endpoints, server }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    fn at<T>(&self, path: &str, act: impl FnOnce(&mut Endpoint) -> T) -> T {
        act(self.endpoints.lock().unwrap().entry(path.to_owned()).or_default())
    }

    /// Sets the answers at a path. They are given in order, and the last one repeats.
    pub(crate) fn set_answers(&self, path: &str, answers: impl IntoIterator<Item = Value>) {
        self.at(path, |endpoint| {
            endpoint.answers = answers.into_iter().collect();
            endpoint.answered = 0;
        });
    }

    /// Holds all answers at a path until [`Self::release`].
    pub(crate) fn hold(&self, path: &str) {
        self.at(path, |endpoint| endpoint.gate = Some(watch::channel(false).0));
    }

    /// Gives the held answers, and later ones at once.
    pub(crate) fn release(&self, path: &str) {
        self.at(path, |endpoint| endpoint.gate.take().unwrap().send_replace(true));
    }

    /// The requests at a path so far.
    pub(crate) fn requests(&self, path: &str) -> Vec<RecordedRequest> {
        self.at(path, |endpoint| endpoint.requests.clone())
    }

    /// Waits for `count` requests at a path and gives their bodies. More requests fail the test.
    #[track_caller]
    pub(crate) fn wait_for_bodies(&self, path: &str, count: usize) -> impl Future<Output = Vec<Value>> {
        eventually(format!("{count} requests at {path}"), async move || {
            let bodies: Vec<Value> = self.requests(path).into_iter().map(|request| request.body).collect();
            assert!(bodies.len() <= count, "{path}: {bodies:#?}");
            (bodies.len() == count).then_some(bodies)
        })
    }
}

/// The response of a model with the interface of OpenAI.
pub(crate) fn completion(action: &Value) -> Value {
    json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4.1-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": action.to_string()}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
}

async fn answer(request: HttpRequest, endpoints: Arc<Endpoints>) -> Vec<u8> {
    let text = || Value::String(String::from_utf8_lossy(&request.body).into_owned());
    let body = serde_json::from_slice(&request.body).unwrap_or_else(|_| text());
    let (answer, gate) = {
        let mut endpoints = endpoints.lock().unwrap();
        let endpoint = endpoints.entry(request.path).or_default();
        endpoint.requests.push(RecordedRequest { headers: request.headers, body });
        let index = endpoint.answered.min(endpoint.answers.len().saturating_sub(1));
        endpoint.answered += 1;
        (endpoint.answers.get(index).cloned(), endpoint.gate.as_ref().map(watch::Sender::subscribe))
    };
    if let Some(mut gate) = gate {
        // A gate that was dropped is open.
        let _ = gate.wait_for(|open| *open).await;
    }
    json_response(200, &[], &answer.unwrap_or_else(|| json!({})))
}
