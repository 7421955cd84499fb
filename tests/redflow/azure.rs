//! Stands in for an Azure OpenAI resource: takes requests as it does, holds them to what it documents, and answers as
//! it does. What it says follows from what it was asked last, so that runs may ask at the same time.

use crate::recorder::Seen;
use crate::validator;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// The deployment of these tests.
pub(crate) const DEPLOYMENT: &str = "gpt-4";

/// The version of its interface, as the Redflow UI fills it in.
pub(crate) const VERSION: &str = "2024-02-15-preview";

/// The only key it takes.
pub(crate) const KEY: &str = "4b1d-the-key-only-azure-may-see-c97e";

/// What it counts for every answer.
pub(crate) const USAGE: (u64, u64, u64) = (41, 9, 50);

/// How it answers.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    /// With an action.
    Act(Value),
    /// With a text.
    Say(&'static str),
    /// With an action, when it is let go on.
    ActLater(Value),
    /// With an action, after that long.
    ActAfter(Duration, Value),
    /// With an error.
    Refuse(u16),
    /// Not at all.
    Silence,
}

/// For good.
pub(crate) fn says(message: &str) -> Value {
    json!({"action": "final", "message": message, "confidence": 0.95})
}

/// With a call.
pub(crate) fn calls(tool: &str, input: Value) -> Value {
    json!({"action": "tool", "tool": tool, "input": input, "confidence": 0.8, "message": format!("asking {tool}")})
}

/// What it does when the last message has these words: one after the other, and the last one again and again.
pub(crate) struct When {
    words: &'static str,
    turns: Vec<Turn>,
    used: usize,
}

pub(crate) fn when(words: &'static str, turns: impl IntoIterator<Item = Turn>) -> When {
    When { words, turns: turns.into_iter().collect(), used: 0 }
}

struct Shared {
    whens: Mutex<Vec<When>>,
    asked: Mutex<Vec<Value>>,
    problems: Mutex<Vec<String>>,
    go_on: Semaphore,
}

/// A server that ends with its test.
pub(crate) struct Azure {
    addr: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Azure {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Azure {
    pub(crate) async fn start(whens: Vec<When>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (asked, problems, go_on) = (Mutex::default(), Mutex::default(), Semaphore::new(0));
        let shared = Arc::new(Shared { whens: Mutex::new(whens), asked, problems, go_on });
        let of_task = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&of_task)));
            }
        });
        Self { addr, shared, task }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The bodies it got, in order.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// One of those that wait goes on.
    pub(crate) fn let_go(&self) {
        self.shared.go_on.add_permits(1);
    }

    /// Everything that was wrong with what it was asked.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.shared.problems.lock().unwrap().clone()
    }
}

impl Shared {
    fn turn(&self, request: &Seen) -> Turn {
        let mut problems = validator::problems_of(request);
        let path = format!("/openai/deployments/{DEPLOYMENT}/chat/completions?api-version={VERSION}");
        if request.path != path {
            problems.push(format!("asked at {}", request.path));
        }
        if request.header("api-key") != Some(KEY) || request.header("authorization").is_some() {
            problems.push("not with the key, or not with it alone".to_owned());
        }
        let body = request.body();
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        let last = last["content"].as_str().unwrap_or_default();
        let mut whens = self.whens.lock().unwrap();
        let turn = whens.iter_mut().find(|when| last.contains(when.words)).map(|when| {
            when.used += 1;
            when.turns[(when.used - 1).min(when.turns.len() - 1)].clone()
        });
        if turn.is_none() {
            problems.push(format!("nobody expected: {last}"));
        }
        self.problems.lock().unwrap().extend(problems);
        self.asked.lock().unwrap().push(body);
        turn.unwrap_or(Turn::Refuse(404))
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) -> Option<()> {
    let request = read(&mut stream).await?;
    let (status, body) = match shared.turn(&request) {
        Turn::Act(action) => (200, completion(&action.to_string())),
        Turn::Say(text) => (200, completion(text)),
        Turn::ActLater(action) => {
            shared.go_on.acquire().await.ok()?.forget();
            (200, completion(&action.to_string()))
        }
        Turn::ActAfter(time, action) => {
            tokio::time::sleep(time).await;
            (200, completion(&action.to_string()))
        }
        Turn::Refuse(status) => (status, refusal(status)),
        Turn::Silence => std::future::pending().await,
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\napim-request-id: 8c1f\r\nx-ms-region: Nowhere\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.ok()
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let (line, rest) = head.split_once("\r\n").unwrap();
        let pairs = rest.lines().filter_map(|line| line.split_once(':'));
        let headers: BTreeMap<String, String> =
            pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
        let length: usize = headers["content-length"].parse().unwrap();
        if bytes.len() < end + 4 + length {
            continue;
        }
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        return Some(Seen { method, path, headers, bytes: bytes.split_off(end + 4) });
    }
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
