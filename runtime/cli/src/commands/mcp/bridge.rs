//! `redflow mcp serve --url URL`: passes the messages of a client on standard input on to the `/mcp` of a sidecar, and its
//! answers to standard output.

use crate::exit::{CommandResult, Exit};
use crate::sidecar::{EventReader, Sidecar};
use crate::terminal::print_error;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Bytes of a message of the client. The sidecar refuses larger ones.
const MAX_LINE_BYTES: u64 = 8 * 1024 * 1024;

/// Answers that wait until the client reads them.
const MAX_WAITING: usize = 64;

/// The first version of the protocol without sessions.
const MODERN: &str = "2026-07-28";

const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The time before the stream of notifications is opened again.
const STREAM_PAUSE: Duration = Duration::from_secs(1);

/// Passes messages on until the client closes its side.
pub(super) async fn bridge<R, W>(sidecar: Sidecar, reader: R, writer: W) -> CommandResult
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (answers, waiting) = mpsc::channel(MAX_WAITING);
    let writing = tokio::spawn(write_answers(waiting, writer));
    let bridge = Arc::new(Bridge { sidecar, answers, session: Mutex::default(), open: Mutex::default() });
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        let read = (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await;
        match read {
            Ok(0) | Err(_) => break,
            Ok(_) if line.len() as u64 >= MAX_LINE_BYTES => {
                print_error("the MCP client sent a message of more than 8 MiB");
                return Ok(Exit::Failure);
            }
            Ok(_) => {}
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Value>(&line) {
            Ok(message) => bridge.pass_on(message, line).await,
            Err(_) => {
                bridge.write(&error_answer(&Value::Null, -32700, "BODY_INVALID", "this is no JSON")).await
            }
        }
    }
    bridge.end().await;
    drop(bridge);
    writing.abort();
    Ok(Exit::Success)
}

async fn write_answers<W: AsyncWrite + Unpin>(mut waiting: mpsc::Receiver<String>, mut writer: W) {
    while let Some(answer) = waiting.recv().await {
        if writer.write_all(answer.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

/// The session with the sidecar, for versions of the protocol that have one.
#[derive(Default, Clone)]
struct ProtocolSession {
    id: Option<String>,
    version: Option<String>,
}

struct Bridge {
    sidecar: Sidecar,
    answers: mpsc::Sender<String>,
    session: Mutex<ProtocolSession>,
    /// The requests that are under way, by their ids.
    open: Mutex<HashMap<String, AbortHandle>>,
}

impl Bridge {
    async fn pass_on(self: &Arc<Self>, message: Value, line: Vec<u8>) {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let version = message["params"]["_meta"][VERSION_KEY].as_str().map(str::to_owned);
        let id = message.get("id").cloned();
        let is_modern = |version: &String| version.as_str() >= MODERN;
        let has_session = self.session().id.is_some();
        if method == "notifications/cancelled" && !has_session {
            // Without sessions, a request is cancelled by disconnecting.
            if let Some(request) = self.open().remove(&message["params"]["requestId"].to_string()) {
                request.abort();
            }
            return;
        }
        let mut request = self.request(Method::POST, version.as_ref().filter(|version| is_modern(version)));
        if version.as_ref().is_some_and(is_modern) {
            request = request.header("mcp-method", &method);
            let name = message["params"]["name"].as_str().or_else(|| message["params"]["uri"].as_str());
            if let Some(name) = name {
                request = request.header("mcp-name", name);
            }
        }
        let request = request.header(CONTENT_TYPE, "application/json").body(line);
        let is_first = method == "initialize";
        let bridge = Arc::clone(self);
        let key = id.as_ref().map(Value::to_string);
        let task_key = key.clone();
        let task = tokio::spawn(async move {
            bridge.answer(request, id, is_first).await;
            if let Some(key) = task_key {
                bridge.open().remove(&key);
            }
        });
        if is_first || key.is_none() {
            // The next message needs the session, and notifications stay in their order.
            let _ = task.await;
        } else if let Some(key) = key
            && !task.is_finished()
        {
            self.open().insert(key, task.abort_handle());
        }
        if method == "notifications/initialized" {
            tokio::spawn(Arc::clone(self).follow_notifications());
        }
    }

    fn request(&self, method: Method, version: Option<&String>) -> RequestBuilder {
        let request = self.sidecar.request(method, &["mcp"], &[]);
        let request = request.header(ACCEPT, "application/json, text/event-stream");
        if let Some(version) = version {
            return request.header(PROTOCOL_VERSION, version);
        }
        let ProtocolSession { id, version } = self.session().clone();
        let headers = [(SESSION_ID, id), (PROTOCOL_VERSION, version)];
        let set = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
        set.fold(request, |request, (name, value)| request.header(name, value))
    }

    /// Sends a request, and writes what comes back.
    async fn answer(&self, request: RequestBuilder, id: Option<Value>, is_first: bool) {
        let refuse = async |code: &str, text: &str| {
            if let Some(id) = &id {
                self.write(&error_answer(id, -32000, code, text)).await;
            }
        };
        let Ok(response) = request.send().await else {
            return refuse("SIDECAR_UNREACHABLE", "the sidecar cannot be reached").await;
        };
        if is_first {
            let session = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
            self.session().id = session.map(str::to_owned);
        }
        if is_stream(&response) {
            self.write_stream(response, is_first).await;
            return;
        }
        let Ok(body) = response.bytes().await else {
            return refuse("SIDECAR_UNREACHABLE", "the sidecar closed the connection").await;
        };
        match serde_json::from_slice::<Value>(&body) {
            Ok(answer) if answer.get("jsonrpc").is_some() => self.write(&answer).await,
            Ok(error) => {
                let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
                refuse(&text("code"), &text("message")).await;
            }
            // A notification has no answer.
            Err(_) => {}
        }
    }

    async fn write_stream(&self, mut response: Response, is_first: bool) {
        let mut reader = EventReader::new();
        while let Ok(Some(piece)) = response.chunk().await {
            let Ok(events) = reader.push(&piece) else { return };
            for event in events {
                let Ok(message) = serde_json::from_str::<Value>(&event) else { continue };
                if is_first && let Some(version) = message["result"]["protocolVersion"].as_str() {
                    self.session().version = Some(version.to_owned());
                }
                self.write(&message).await;
            }
        }
    }

    /// Writes the notifications of a session, until it ends.
    async fn follow_notifications(self: Arc<Self>) {
        while self.session().id.is_some() && !self.answers.is_closed() {
            match self.request(Method::GET, None).send().await {
                Ok(response) if is_stream(&response) => self.write_stream(response, false).await,
                Ok(_) => return,
                Err(_) => {}
            }
            tokio::time::sleep(STREAM_PAUSE).await;
        }
    }

    async fn write(&self, message: &Value) {
        // Fails if the client no longer reads, which ends the program soon.
        let _ = self.answers.send(format!("{message}\n")).await;
    }

    /// Ends the session.
    async fn end(&self) {
        if self.session().id.is_some() {
            let _ = self.request(Method::DELETE, None).send().await;
        }
    }

    fn session(&self) -> MutexGuard<'_, ProtocolSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn error_answer(id: &Value, number: i32, code: &str, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": number, "message": text, "data": {"code": code}}})
}
