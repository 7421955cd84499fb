//! `redflow mcp serve` beside a sidecar: passes the messages of a client on standard input on to the `/mcp` of the
//! sidecar, and its answers to standard output.
//!
//! Every request gets an answer, also if the sidecar is killed meanwhile. A session that the sidecar no longer knows,
//! because it has started again, is opened again: the client does not notice.

use super::client_message::{ClientMessage, ParamHeaders, VERSION_HEADER};
use crate::exit::{CommandResult, Exit};
use crate::sidecar::{EventReader, SidecarClient};
use crate::terminal::print_error;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes of a message of the client. The sidecar refuses larger ones.
const MAX_LINE_BYTES: u64 = 8 * 1024 * 1024;

/// Answers that wait until the client reads them.
const MAX_WAITING: usize = 64;

const SESSION_ID: &str = "mcp-session-id";

/// The time before the stream of notifications is opened again.
const STREAM_PAUSE: Duration = Duration::from_secs(1);

/// How long requests under way may take after the client has closed its side, and answers to be written.
const DRAIN: Duration = Duration::from_secs(5);

/// How long the next message may wait for the answer to `initialize` or to a notification, which come one by one.
const ORDERED_TIME: Duration = Duration::from_secs(15);

/// The code of a request that the sidecar did not answer.
const UNREACHABLE: &str = "SIDECAR_UNREACHABLE";

const NO_ANSWER: &str = "the sidecar does not answer; is it still starting, or has it too much to do?";

/// Passes messages on until the client closes its side.
pub(super) async fn bridge<R, W>(sidecar: SidecarClient, reader: R, writer: W) -> CommandResult
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    bridge_within(sidecar, reader, writer, ORDERED_TIME).await
}

async fn bridge_within<R, W>(
    sidecar: SidecarClient,
    reader: R,
    writer: W,
    ordered_time: Duration,
) -> CommandResult
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (answers, waiting) = mpsc::channel(MAX_WAITING);
    let writing = tokio::spawn(write_answers(waiting, writer));
    let bridge = Arc::new(Bridge {
        sidecar,
        ordered_time,
        answers,
        session: Mutex::default(),
        opening: tokio::sync::Mutex::default(),
        open: Mutex::default(),
        param_headers: Mutex::default(),
    });
    let mut tasks = Tasks { requests: JoinSet::new(), following: None };
    let mut reader = BufReader::new(reader);
    let mut exit = Exit::Success;
    loop {
        let mut line = Vec::new();
        let read = (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await;
        match read {
            Ok(0) | Err(_) => break,
            Ok(_) if line.len() as u64 >= MAX_LINE_BYTES => {
                let text = "the MCP client sent a message of more than 8 MiB";
                print_error(text);
                bridge.write(&error_answer(&Value::Null, -32600, "BODY_TOO_LARGE", text)).await;
                exit = Exit::Failure;
                break;
            }
            Ok(_) => {}
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Value>(&line) {
            Ok(message) => bridge.pass_on(&message, line, &mut tasks).await,
            Err(_) => {
                bridge.write(&error_answer(&Value::Null, -32700, "BODY_INVALID", "this is no JSON")).await;
            }
        }
        while tasks.requests.try_join_next().is_some() {}
    }
    let Tasks { mut requests, following } = tasks;
    // Answers of the last requests are worth a moment, also for `printf … | redflow mcp serve`.
    let _ = timeout(DRAIN, async { while requests.join_next().await.is_some() {} }).await;
    requests.shutdown().await;
    if let Some(following) = following {
        following.abort();
        let _ = following.await;
    }
    bridge.end().await;
    drop(bridge);
    let _ = timeout(DRAIN, writing).await;
    Ok(exit)
}

/// The tasks of a bridge.
struct Tasks {
    /// One for each request that is under way.
    requests: JoinSet<()>,
    /// Reads the notifications of the session.
    following: Option<JoinHandle<()>>,
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
    /// The `initialize` of the client, which opens the session again.
    initialize: Option<Arc<ClientMessage>>,
}

struct Bridge {
    sidecar: SidecarClient,
    /// The longest time that the next message waits.
    ordered_time: Duration,
    answers: mpsc::Sender<String>,
    session: Mutex<ProtocolSession>,
    /// Held while the session is opened again, so that one request does it.
    opening: tokio::sync::Mutex<()>,
    /// The requests that are under way, by their ids.
    open: Mutex<HashMap<String, AbortHandle>>,
    /// The arguments of tools that are sent as headers too.
    param_headers: Mutex<ParamHeaders>,
}

/// How a stream of messages has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamEnd {
    /// It had the answer to the request.
    Answered,
    /// It had none.
    Cut,
    /// It had none before the deadline.
    Late,
    /// An event is too large to be read.
    TooLarge,
}

impl Bridge {
    async fn pass_on(self: &Arc<Self>, message: &Value, line: Vec<u8>, tasks: &mut Tasks) {
        let message = {
            let param_headers = self.param_headers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::new(ClientMessage::new(message, line, &param_headers))
        };
        if let Some(cancelled) = &message.cancels
            && self.session().id.is_none()
        {
            // Without sessions, a request is cancelled by disconnecting.
            if let Some(request) = self.open().remove(cancelled) {
                request.abort();
            }
            return;
        }
        let Some(key) = message.id.as_ref().map(Value::to_string).filter(|_| !message.is_initialize()) else {
            // The next message needs the session, and notifications stay in their order. A sidecar that does not
            // answer must not keep the client's next messages and its end from being read.
            self.answer(&message, Some(Instant::now() + self.ordered_time)).await;
            if message.method == "notifications/initialized" && tasks.following.is_none() {
                tasks.following = Some(tokio::spawn(Arc::clone(self).follow_notifications()));
            }
            return;
        };
        let bridge = Arc::clone(self);
        let task_key = key.clone();
        // Locked until the task is known: it may end at once.
        let mut open = self.open();
        let task = tasks.requests.spawn(async move {
            bridge.answer(&message, None).await;
            bridge.open().remove(&task_key);
        });
        open.insert(key, task);
    }

    fn request(&self, method: Method, session: &ProtocolSession) -> RequestBuilder {
        let request = self.sidecar.request(method, &["mcp"], &[]);
        let request = request.header(ACCEPT, "application/json, text/event-stream");
        let headers = [(SESSION_ID, &session.id), (VERSION_HEADER, &session.version)];
        let set = headers.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        set.fold(request, |request, (name, value)| request.header(name, value))
    }

    async fn send(&self, message: &ClientMessage, session: &ProtocolSession) -> reqwest::Result<Response> {
        let none = ProtocolSession::default();
        let has_session = !message.is_modern() && !message.is_initialize();
        let request = self.request(Method::POST, if has_session { session } else { &none });
        let headers = message.headers.clone();
        request
            .headers(headers)
            .header(CONTENT_TYPE, "application/json")
            .body(message.body.clone())
            .send()
            .await
    }

    /// Sends a message, and writes what comes back before the deadline. A session that the sidecar does not know is
    /// opened again first.
    async fn answer(&self, message: &Arc<ClientMessage>, deadline: Option<Instant>) {
        let refuse = async |code: &str, text: &str| {
            if let Some(id) = &message.id {
                self.write(&error_answer(id, -32000, code, text)).await;
            }
        };
        let session = self.session().clone();
        let is_unknown = |response: &Response| response.status() == StatusCode::NOT_FOUND;
        let uses_session = session.id.is_some() && !message.is_modern() && !message.is_initialize();
        let exchange = async {
            let sent = self.send(message, &session).await;
            if uses_session && sent.as_ref().is_ok_and(is_unknown) && self.open_again(&session).await {
                let session = self.session().clone();
                return self.send(message, &session).await;
            }
            sent
        };
        let response = match before(deadline, exchange).await {
            Some(Ok(response)) => response,
            Some(Err(_)) => {
                return refuse(UNREACHABLE, "the sidecar cannot be reached; is `redflow serve` running?")
                    .await;
            }
            None => return refuse(UNREACHABLE, NO_ANSWER).await,
        };
        if message.is_initialize() {
            *self.session() = ProtocolSession {
                id: session_id(&response),
                version: None,
                initialize: Some(Arc::clone(message)),
            };
        }
        if is_stream(&response) {
            let end = self.write_stream(response, message.id.as_ref(), deadline).await;
            let text = match end {
                StreamEnd::Answered => return,
                StreamEnd::Cut => {
                    "the sidecar closed the connection before it answered; a run that has begun may go on: see `redflow \
                     runs list`"
                }
                StreamEnd::Late => NO_ANSWER,
                StreamEnd::TooLarge => "the answer of the sidecar is too large to be passed on",
            };
            return refuse(UNREACHABLE, text).await;
        }
        let status = response.status();
        let body = match before(deadline, response.bytes()).await {
            Some(Ok(body)) => body,
            Some(Err(_)) => {
                return refuse(UNREACHABLE, "the sidecar closed the connection before it answered").await;
            }
            None => return refuse(UNREACHABLE, NO_ANSWER).await,
        };
        match serde_json::from_slice::<Value>(&body) {
            Ok(answer) if answer.get("jsonrpc").is_some() => {
                self.note(&answer);
                self.write(&answer).await;
            }
            Ok(error) => {
                let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
                refuse(&text("code"), &text("message")).await;
            }
            Err(_) => {
                let text = format!("the sidecar answered with status {} and no JSON", status.as_u16());
                refuse(UNREACHABLE, &text).await;
            }
        }
    }

    /// Opens the session again with the `initialize` of the client. False if that fails.
    async fn open_again(&self, lost: &ProtocolSession) -> bool {
        let _one = self.opening.lock().await;
        let now = self.session().clone();
        if now.id != lost.id {
            // Another request was faster.
            return now.id.is_some();
        }
        let Some(initialize) = now.initialize else { return false };
        let Ok(response) = self.send(&initialize, &ProtocolSession::default()).await else { return false };
        let (id, version) = (session_id(&response), now.version);
        // The client has its answer already.
        if id.is_none() || response.bytes().await.is_err() {
            return false;
        }
        let session = ProtocolSession { id, version, initialize: Some(initialize) };
        *self.session() = session.clone();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        let request =
            self.request(Method::POST, &session).header(CONTENT_TYPE, "application/json").body(ready);
        request.send().await.is_ok_and(|response| response.status().is_success())
    }

    /// Writes the messages of a stream until it ends, or until the deadline.
    async fn write_stream(
        &self,
        mut response: Response,
        id: Option<&Value>,
        deadline: Option<Instant>,
    ) -> StreamEnd {
        let mut reader = EventReader::new();
        let mut end = StreamEnd::Cut;
        loop {
            let piece = match before(deadline, response.chunk()).await {
                Some(Ok(Some(piece))) => piece,
                Some(Ok(None) | Err(_)) => return end,
                None => return if end == StreamEnd::Cut { StreamEnd::Late } else { end },
            };
            let Ok(events) = reader.push(&piece) else {
                return if end == StreamEnd::Cut { StreamEnd::TooLarge } else { end };
            };
            for event in events {
                let Ok(message) = serde_json::from_str::<Value>(&event) else { continue };
                let is_answer = message.get("result").or_else(|| message.get("error")).is_some();
                if is_answer && message.get("id") == id {
                    end = StreamEnd::Answered;
                }
                self.note(&message);
                self.write(&message).await;
            }
        }
    }

    /// Remembers what later requests need: the version of the session, and which arguments are headers too.
    fn note(&self, message: &Value) {
        let result = &message["result"];
        if let Some(version) = result["protocolVersion"].as_str() {
            self.session().version = Some(version.to_owned());
        }
        if let Some(tools) = result["tools"].as_array() {
            self.param_headers.lock().unwrap_or_else(PoisonError::into_inner).add(tools);
        }
    }

    /// Writes the notifications of a session, until it ends.
    async fn follow_notifications(self: Arc<Self>) {
        while !self.answers.is_closed() {
            let session = self.session().clone();
            if session.id.is_none() {
                return;
            }
            match self.request(Method::GET, &session).send().await {
                Ok(response) if is_stream(&response) => {
                    self.write_stream(response, None, None).await;
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND => {
                    self.open_again(&session).await;
                }
                // This sidecar has no such stream.
                Ok(response) if response.status() == StatusCode::METHOD_NOT_ALLOWED => return,
                // It may be starting, or has too much to do.
                Ok(_) | Err(_) => {}
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
        let session = self.session().clone();
        if session.id.is_some() {
            let _ = timeout(DRAIN, self.request(Method::DELETE, &session).send()).await;
        }
    }

    fn session(&self) -> MutexGuard<'_, ProtocolSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, AbortHandle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a future gives before the deadline; none after it.
async fn before<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

fn session_id(response: &Response) -> Option<String> {
    response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned)
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn error_answer(id: &Value, number: i32, code: &str, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": number, "message": text, "data": {"code": code}}})
}

#[cfg(test)]
#[path = "bridge_tests.rs"]
mod tests;
