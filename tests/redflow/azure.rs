//! A stand-in for an Azure OpenAI resource. It checks requests against Azure's documentation and answers as Azure does.
//! The answer depends on the last message of the request, so runs may ask at the same time.

use crate::validator;
use redflow_testkit::{HttpRequest, HttpServer, json_response};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The deployment of these tests.
pub(crate) const DEPLOYMENT: &str = "gpt-4";

/// The version of its interface, as the Redflow UI sets it.
pub(crate) const VERSION: &str = "2024-02-15-preview";

/// The only key that it accepts.
pub(crate) const KEY: &str = "4b1d-the-key-only-azure-may-see-c97e";

/// The tokens of every answer: prompt, completion, total.
pub(crate) const USAGE: (u64, u64, u64) = (41, 9, 50);

/// How it answers.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    Act(Value),
    Say(&'static str),
    /// Waits for [`Azure::release_one`] first.
    ActLater(Value),
    ActAfter(Duration, Value),
    /// With an HTTP status.
    Refuse(u16),
    /// Never.
    Silence,
}

/// The action that ends a run.
pub(crate) fn final_answer(message: &str) -> Value {
    json!({"action": "final", "message": message, "confidence": 0.95})
}

/// The action that calls a tool.
pub(crate) fn tool_call(tool: &str, input: Value) -> Value {
    json!({"action": "tool", "tool": tool, "input": input, "confidence": 0.8, "message": format!("asking {tool}")})
}

/// The turns for requests whose last message contains a text. They are taken in order, and the last one repeats.
pub(crate) struct Rule {
    text: &'static str,
    turns: Vec<Turn>,
    used: usize,
}

pub(crate) fn when(text: &'static str, turns: impl IntoIterator<Item = Turn>) -> Rule {
    Rule { text, turns: turns.into_iter().collect(), used: 0 }
}

struct Shared {
    rules: Mutex<Vec<Rule>>,
    bodies: Mutex<Vec<Value>>,
    problems: Mutex<Vec<String>>,
    releases: Semaphore,
}

/// A server that ends with its test.
pub(crate) struct Azure {
    shared: Arc<Shared>,
    server: HttpServer,
}

impl Azure {
    pub(crate) async fn start(rules: Vec<Rule>) -> Self {
        let (bodies, problems, releases) = (Mutex::default(), Mutex::default(), Semaphore::new(0));
        let shared = Arc::new(Shared { rules: Mutex::new(rules), bodies, problems, releases });
        let in_server = Arc::clone(&shared);
        let server = HttpServer::start(move |request| answer(request, Arc::clone(&in_server))).await.unwrap();
        Self { shared, server }
    }

    pub(crate) fn endpoint(&self) -> String {
        self.server.url("")
    }

    /// The bodies of all requests, in order.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.shared.bodies.lock().unwrap().clone()
    }

    /// Lets one answer go that waits.
    pub(crate) fn release_one(&self) {
        self.shared.releases.add_permits(1);
    }

    /// Everything that was wrong with the requests.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.shared.problems.lock().unwrap().clone()
    }
}

impl Shared {
    fn next_turn(&self, request: &HttpRequest) -> Turn {
        let mut problems = validator::problems_of(request);
        let path = format!("/openai/deployments/{DEPLOYMENT}/chat/completions?api-version={VERSION}");
        if request.path != path {
            problems.push(format!("the path is {}", request.path));
        }
        if request.header("api-key") != Some(KEY) || request.header("authorization").is_some() {
            problems.push("it needs the key in `api-key` and no `authorization`".to_owned());
        }
        let body = request.json().unwrap();
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let last = last["content"].as_str().unwrap_or_default();
        let mut rules = self.rules.lock().unwrap();
        let turn = rules.iter_mut().find(|rule| last.contains(rule.text)).map(|rule| {
            rule.used += 1;
            rule.turns[(rule.used - 1).min(rule.turns.len() - 1)].clone()
        });
        if turn.is_none() {
            problems.push(format!("no rule for: {last}"));
        }
        self.problems.lock().unwrap().extend(problems);
        self.bodies.lock().unwrap().push(body);
        turn.unwrap_or(Turn::Refuse(404))
    }
}

async fn answer(request: HttpRequest, shared: Arc<Shared>) -> Vec<u8> {
    let (status, body) = match shared.next_turn(&request) {
        Turn::Act(action) => (200, completion(&action.to_string())),
        Turn::Say(text) => (200, completion(text)),
        Turn::ActLater(action) => {
            shared.releases.acquire().await.unwrap().forget();
            (200, completion(&action.to_string()))
        }
        Turn::ActAfter(time, action) => {
            tokio::time::sleep(time).await;
            (200, completion(&action.to_string()))
        }
        Turn::Refuse(status) => (status, refusal(status)),
        Turn::Silence => std::future::pending().await,
    };
    json_response(status, &[("apim-request-id", "8c1f"), ("x-ms-region", "Nowhere")], &body)
}

fn completion(text: &str) -> Value {
    let harmless = json!({"filtered": false, "severity": "safe"});
    let filters = json!({"hate": harmless, "self_harm": harmless, "sexual": harmless, "violence": harmless});
    let (prompt, completion, total) = USAGE;
    json!({
        "id": "chatcmpl-9xQ", "object": "chat.completion", "created": 1_766_000_000, "model": "gpt-4-0613",
        "system_fingerprint": "fp_5b26d85e12",
        "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": filters}],
        "choices": [{"index": 0, "finish_reason": "stop", "logprobs": null, "content_filter_results": filters,
                     "message": {"role": "assistant", "content": text, "refusal": null}}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total},
    })
}

fn refusal(status: u16) -> Value {
    json!({"error": {"code": status.to_string(), "message": "The server had an error while processing your request."}})
}
