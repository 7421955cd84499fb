//! `/mcp`: the sidecar as an MCP server, by streamable HTTP, for all versions of the protocol.
//!
//! The guard has checked host, origin, token, rate and the scope `read` of every request. This module bounds the bodies
//! and the sessions, and gives every refusal a code. `rmcp` speaks the protocol.

mod agent_call;
mod call_context;
pub(crate) mod changes;
mod completion;
mod content;
mod current_tools;
pub(crate) mod exposed_nodes;
mod handler;
mod keep_alive;
mod problem;
mod quota;
mod resources;
pub(crate) mod server_state;
mod sessions;
pub(crate) mod streams;
mod tool_call;
mod tool_list;
mod tool_names;
mod tools;

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::response::{ApiResult, Problem, json};
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures::StreamExt as _;
use handler::McpHandler;
use keep_alive::keep_alive;
use redflow_access::Caller;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const SESSION_ID: &str = "mcp-session-id";
const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// How often idle sessions are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15);

/// Ends idle sessions, until the task is aborted.
pub(crate) async fn end_idle_sessions(app: Arc<App>) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let now = app.clock.now();
        let is_accepted = |caller: &Caller| app.access.recheck(caller, now).is_ok();
        for session in app.mcp.sessions.sweep(Instant::now(), is_accepted) {
            app.mcp.close(session).await;
        }
    }
}

/// One JSON-RPC message of a client.
pub(crate) async fn message(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult {
    let (mut parts, body) = request.into_parts();
    let (message, bytes) = body::read_json(&parts.headers, RequestBody::new(&caller, body), &app).await?;
    let Value::Object(message) = message else {
        return Err(Problem::new(ApiCode::BodyInvalid, "The body must be one JSON-RPC message, an object."));
    };
    let id = message.get("id").map(Value::to_string);
    let is_initialize = message.get("method").and_then(Value::as_str) == Some("initialize");
    drop(message);
    hide_secrets(&mut parts);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if is_modern(&parts.headers) {
        // These versions have no sessions.
        parts.headers.remove(SESSION_ID);
    }
    let session = session_id(&parts.headers)?;
    if let Some(session) = &session {
        // It is dropped with the request, when that is answered.
        let session_use = app.mcp.sessions.enter(session, &caller, id.clone())?;
        parts.extensions.insert(Arc::new(session_use));
    }
    let request = Request::from_parts(parts, Body::from(bytes));
    if is_initialize && session.is_none() {
        return open_session(app, caller, request).await;
    }
    let heartbeat = app.settings.mcp_heartbeat;
    // A client without sessions gets nothing before the first message, which may be the result of a long run.
    Ok(keep_alive(answer(app, request, CancellationToken::new()), heartbeat, id).await)
}

/// Opens a session. A task of its own: a session whose client disconnects meanwhile must not be lost.
async fn open_session(app: Arc<App>, caller: Caller, request: Request) -> ApiResult {
    let reservation = app.mcp.sessions.reserve(caller)?;
    let task = tokio::spawn(async move {
        let response = answer(app, request, CancellationToken::new()).await;
        if let Some(session) = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()) {
            reservation.open(session.to_owned());
        }
        response
    });
    task.await.map_err(|_| Problem::internal())
}

/// The messages of the server to a session.
pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult {
    let (mut parts, _) = request.into_parts();
    hide_secrets(&mut parts);
    let session = session_id(&parts.headers)?.ok_or_else(no_session)?;
    let session_use = app.mcp.sessions.enter(&session, &caller, None)?;
    let stop = app.stop.clone();
    let response = answer(app, Request::from_parts(parts, Body::empty()), stop).await;
    // The session is in use as long as the stream is open.
    let hold = move |part: Result<Bytes, axum::Error>| {
        let _ = &session_use;
        part
    };
    Ok(response.map(|body| Body::from_stream(body.into_data_stream().map(hold))))
}

/// Ends a session.
pub(crate) async fn end_session(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult {
    let (mut parts, _) = request.into_parts();
    hide_secrets(&mut parts);
    let session = session_id(&parts.headers)?.ok_or_else(no_session)?;
    let session_use = app.mcp.sessions.enter(&session, &caller, None)?;
    let response =
        answer(Arc::clone(&app), Request::from_parts(parts, Body::empty()), app.stop.clone()).await;
    drop(session_use);
    if response.status().is_success() {
        app.mcp.sessions.remove(&session);
    }
    Ok(response)
}

/// Lets `rmcp` answer a request. Streams end when `stop` is cancelled.
async fn answer(app: Arc<App>, request: Request, stop: CancellationToken) -> Response {
    let sessions = Arc::clone(&app.mcp.protocol_sessions);
    let config = app.mcp.protocol_config.clone().with_cancellation_token(stop);
    let service = StreamableHttpService::new(move || Ok(McpHandler::new(Arc::clone(&app))), sessions, config);
    coded(service.handle(request).await.map(Body::new))
}

/// Gives a refusal of `rmcp` without a code ours.
fn coded(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (code, text) = match status.as_u16() {
        404 => (ApiCode::NotFound, "There is no such MCP session. Send `initialize` again."),
        405 => (ApiCode::MethodRefused, "This version of MCP does not have this method."),
        406 => {
            let text =
                "`Accept` must name `application/json` and `text/event-stream`, or for GET the latter.";
            (ApiCode::RequestInvalid, text)
        }
        413 => (ApiCode::BodyTooLarge, "The message is too large."),
        400..=499 => (
            ApiCode::RequestInvalid,
            "This is no message of a version of MCP that this sidecar speaks, or it needs a session: send \
             `initialize` first.",
        ),
        _ => return json(status.as_u16(), &*Problem::internal().0),
    };
    json(status.as_u16(), &ApiError::new(code, text))
}

/// Removes what proves the identity of the caller: the protocol does not need it, and logs must not have it.
fn hide_secrets(parts: &mut Parts) {
    parts.headers.remove(header::AUTHORIZATION);
    parts.headers.remove(header::COOKIE);
}

fn is_modern(headers: &HeaderMap) -> bool {
    let version = headers.get(PROTOCOL_VERSION).and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
}

fn session_id(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut ids = headers.get_all(SESSION_ID).iter();
    let Some(id) = ids.next() else { return Ok(None) };
    match (id.to_str(), ids.next()) {
        (Ok(id), None) => Ok(Some(id.to_owned())),
        _ => Err(Problem::new(ApiCode::RequestInvalid, "`Mcp-Session-Id` must be one visible text.")),
    }
}

fn no_session() -> Problem {
    Problem::new(ApiCode::RequestInvalid, "`Mcp-Session-Id` is missing. Send `initialize` first.")
}
