//! Stands in for an Azure OpenAI resource: takes requests as it does, and answers as it does.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// What it does with a request.
pub(crate) enum Turn {
    /// The model says this.
    Say(String),
    /// The model says this when it is let go on.
    SayLater(String),
    /// An error.
    Refuse(u16, Value),
    /// Bytes that are no HTTP.
    Garbage,
    /// Nothing, ever.
    Silence,
}

/// A request it got.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Its first line.
    pub(crate) line: String,
    /// The key it came with.
    pub(crate) key: Option<String>,
    pub(crate) body: Value,
}

#[derive(Default)]
struct Shared {
    turns: Mutex<VecDeque<Turn>>,
    asked: Mutex<Vec<Asked>>,
}

/// A server that ends with its test. What it is not told to do, it answers with a final action.
pub(crate) struct Azure {
    pub(crate) addr: SocketAddr,
    shared: Arc<Shared>,
    /// How many may go on that wait.
    pub(crate) go_on: Arc<Semaphore>,
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
        let go_on = Arc::new(Semaphore::new(0));
        let (of_task, waits) = (Arc::clone(&shared), Arc::clone(&go_on));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&of_task), Arc::clone(&waits)));
            }
        });
        Self { addr, shared, go_on, task }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// The keys of all requests so far.
    pub(crate) fn keys(&self) -> Vec<Option<String>> {
        self.asked().into_iter().map(|asked| asked.key).collect()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, waits: Arc<Semaphore>) -> Option<()> {
    let asked = read(&mut stream).await?;
    shared.asked.lock().unwrap().push(asked);
    let turn = shared.turns.lock().unwrap().pop_front();
    let turn = turn.unwrap_or_else(|| Turn::Say(json!({"action": "final", "message": "42"}).to_string()));
    let (status, body) = match turn {
        Turn::Say(text) => (200, completion(&text)),
        Turn::SayLater(text) => {
            waits.acquire().await.ok()?.forget();
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

async fn read(stream: &mut TcpStream) -> Option<Asked> {
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
        return Some(Asked { line, key: header("api-key"), body });
    }
}

/// A chat completion in Azure's words.
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
