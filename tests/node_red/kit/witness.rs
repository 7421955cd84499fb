//! A server that is never killed: tools ask it what they do, results are told to it, models are behind it. So it knows
//! how often each was, whatever else has died meanwhile.

use super::eventually;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    /// By their names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    /// JSON, or the text.
    pub(crate) body: Value,
}

#[derive(Default)]
struct Place {
    seen: Vec<Seen>,
    /// One after the other, and the last one again and again.
    answers: Vec<(u16, Value)>,
    used: usize,
    gate: Option<watch::Sender<bool>>,
}

pub(crate) struct Witness {
    addr: SocketAddr,
    places: Arc<Mutex<HashMap<String, Place>>>,
    listening: JoinHandle<()>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Witness {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let places = Arc::default();
        let of_task = Arc::clone(&places);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&of_task)));
            }
        });
        Self { addr, places, listening }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    fn at<T>(&self, path: &str, act: impl FnOnce(&mut Place) -> T) -> T {
        act(self.places.lock().unwrap().entry(path.to_owned()).or_default())
    }

    /// What is answered at a path: one after the other, and the last one again and again.
    pub(crate) fn answers(&self, path: &str, answers: impl IntoIterator<Item = Value>) {
        self.at(path, |place| {
            place.answers = answers.into_iter().map(|body| (200, body)).collect();
            place.used = 0;
        });
    }

    /// Answers at a path wait from now on.
    pub(crate) fn hold(&self, path: &str) {
        self.at(path, |place| place.gate = Some(watch::channel(false).0));
    }

    /// Those that wait are given, and later ones at once.
    pub(crate) fn let_go(&self, path: &str) {
        self.at(path, |place| place.gate.take().unwrap().send_replace(true));
    }

    /// The requests at a path so far.
    pub(crate) fn seen(&self, path: &str) -> Vec<Seen> {
        self.at(path, |place| place.seen.clone())
    }

    /// Waits for that many requests at a path; their bodies. More than that are too many.
    #[track_caller]
    pub(crate) fn bodies(&self, path: &str, count: usize) -> impl Future<Output = Vec<Value>> {
        eventually(format!("{count} requests at {path}"), async move || {
            let bodies: Vec<Value> = self.seen(path).into_iter().map(|seen| seen.body).collect();
            assert!(bodies.len() <= count, "{path}: {bodies:#?}");
            (bodies.len() == count).then_some(bodies)
        })
    }
}

/// As a model of OpenAI's kind answers.
pub(crate) fn completion(action: &Value) -> Value {
    json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4.1-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": action.to_string()}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
}

async fn serve(mut stream: TcpStream, places: Arc<Mutex<HashMap<String, Place>>>) -> Option<()> {
    let seen = read(&mut stream).await?;
    let (answer, gate) = {
        let mut places = places.lock().unwrap();
        let place = places.entry(seen.path.clone()).or_default();
        place.seen.push(seen);
        let answer = place.answers.get(place.used.min(place.answers.len().saturating_sub(1))).cloned();
        place.used += 1;
        (answer, place.gate.as_ref().map(watch::Sender::subscribe))
    };
    if let Some(mut gate) = gate {
        // A gate that is gone is open too.
        let _ = gate.wait_for(|open| *open).await;
    }
    let (status, body) = answer.unwrap_or((200, json!({})));
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
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
        let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        if bytes.len() < end + 4 + length {
            continue;
        }
        let path = line.split(' ').nth(1)?.to_owned();
        let text = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        return Some(Seen { path, headers, body });
    }
}
