//! A stand-in for an Azure OpenAI server.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

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

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    /// The request line.
    pub(crate) line: String,
    pub(crate) key: Option<String>,
    pub(crate) body: Value,
}

#[derive(Default)]
struct Shared {
    turns: Mutex<VecDeque<Turn>>,
    requests: Mutex<Vec<ReceivedRequest>>,
}

/// A server that ends with its test. Without further turns it answers with a final action.
pub(crate) struct Azure {
    pub(crate) addr: SocketAddr,
    shared: Arc<Shared>,
    /// Each permit releases one delayed answer.
    pub(crate) release: Arc<Semaphore>,
    task: JoinHandle<()>,
}

impl Drop for Azure {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Azure {
    pub(crate) async fn start(turns: impl IntoIterator<Item = Turn>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        shared.turns.lock().unwrap().extend(turns);
        let release = Arc::new(Semaphore::new(0));
        let (task_shared, task_release) = (Arc::clone(&shared), Arc::clone(&release));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&task_shared), Arc::clone(&task_release)));
            }
        });
        Self { addr, shared, release, task }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The keys of all requests so far.
    pub(crate) fn keys(&self) -> Vec<Option<String>> {
        self.requests().into_iter().map(|request| request.key).collect()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, release: Arc<Semaphore>) -> Option<()> {
    let request = read(&mut stream).await?;
    shared.requests.lock().unwrap().push(request);
    let turn = shared.turns.lock().unwrap().pop_front();
    let turn = turn.unwrap_or_else(|| Turn::Answer(json!({"action": "final", "message": "42"}).to_string()));
    let (status, body) = match turn {
        Turn::Answer(text) => (200, completion(&text)),
        Turn::AnswerLater(text) => {
            release.acquire().await.ok()?.forget();
            (200, completion(&text))
        }
        Turn::Refuse(status, error) => (status, json!({"error": error})),
        Turn::Garbage => {
            stream.write_all(b"220 mail.example ESMTP\r\n").await.ok()?;
            return Some(());
        }
        Turn::Silence => std::future::pending().await,
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\napim-request-id: r-1\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.ok()
}

async fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        let length: usize = header("content-length").unwrap().parse().unwrap();
        if bytes.len() < end + 4 + length {
            continue;
        }
        let line = head.lines().next().unwrap().to_owned();
        let body = serde_json::from_slice(&bytes[end + 4..]).unwrap();
        return Some(ReceivedRequest { line, key: header("api-key"), body });
    }
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
