//! The HTTP client of rmcp's transport.

use super::HttpTimes;
use super::events::{MAX_EVENT_BYTES, events, events_until_error};
use super::failure::HttpError;
use super::oauth::{MAX_CHALLENGE_BYTES, OAuth};
use super::scopes::{missing_scopes, missing_text};
use crate::repair::repair;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use redflow_egress::{
    Egress, EgressBody, EgressCredential, EgressError, EgressRequest, EgressResponse, HostPattern,
};
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use secrecy::{ExposeSecret, SecretString};
use sse_stream::Sse;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use url::{Origin, Url};

/// The largest answer that is no stream.
pub const MAX_ANSWER_BYTES: u64 = 4 * 1024 * 1024;

/// The most redirects, all within the server. Some servers lead from `/mcp` to `/mcp/`.
const MAX_REDIRECTS: usize = 3;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

/// Begins the id of each event of the answer to a message. The library goes on with a broken stream for ever, so it must
/// know the streams whose end is the end of a call from those for news.
const ANSWER_MARK: &str = "answer ";

/// The headers that a caller may not set.
const RESERVED: [HeaderName; 3] = [ACCEPT, SESSION_ID, LAST_EVENT_ID];

type HttpResult<T> = Result<T, StreamableHttpError<HttpError>>;

/// How requests prove who sends them.
#[derive(Clone)]
pub(super) enum Access {
    None,
    Header { name: HeaderName, value: SecretString },
    OAuth(Arc<OAuth>),
}

/// The client of one server.
#[derive(Clone)]
pub struct EgressClient {
    shared: Arc<Shared>,
    /// Is told when the server has ended the session.
    session_end: Arc<Notify>,
}

struct Shared {
    /// The address of the server.
    url: Arc<str>,
    egress: Egress,
    /// The only host that gets the credential.
    host: HostPattern,
    origin: Origin,
    access: Access,
    times: HttpTimes,
}

impl std::fmt::Debug for EgressClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EgressClient").field("host", &self.shared.host).finish_non_exhaustive()
    }
}

/// A request without its credential.
struct Plan {
    method: Method,
    url: Arc<str>,
    headers: HeaderMap,
    body: Bytes,
    timeout: Duration,
    /// How long a stream may be silent.
    idle: Duration,
}

impl EgressClient {
    pub(super) fn new(
        url: Arc<str>,
        egress: Egress,
        (host, origin): (HostPattern, Origin),
        access: Access,
        times: HttpTimes,
    ) -> Self {
        let shared = Arc::new(Shared { url, egress, host, origin, access, times });
        Self { shared, session_end: Arc::default() }
    }

    /// The same client, for another session.
    pub(super) fn for_session(&self, session_end: Arc<Notify>) -> Self {
        Self { shared: Arc::clone(&self.shared), session_end }
    }

    pub(super) fn oauth(&self) -> Option<&Arc<OAuth>> {
        match &self.shared.access {
            Access::OAuth(oauth) => Some(oauth),
            _ => None,
        }
    }

    /// Sends a request. If the server refuses a token, it tries once with another one.
    async fn send(&self, plan: Plan) -> HttpResult<EgressResponse> {
        let Access::OAuth(oauth) = &self.shared.access else {
            return self.check_access(self.send_with(&plan, self.fixed_credential()).await?);
        };
        let failed = |text| StreamableHttpError::Client(HttpError::OAuth(text));
        let token = oauth.token().await.map_err(failed)?;
        let answer = self.send_with(&plan, token.as_ref().map(|token| self.bearer(token))).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return self.check_access(answer);
        }
        oauth.note_challenge(challenge(&answer.headers));
        let Some(refused) = token else { return self.check_access(answer) };
        match oauth.renew(Some(&refused)).await.map_err(failed)? {
            Some(token) => self.check_access(self.send_with(&plan, Some(self.bearer(&token))).await?),
            None => self.check_access(answer),
        }
    }

    /// Whether the server accepts who sent the request. The next sign-in asks for the scopes that are missing.
    fn check_access(&self, answer: EgressResponse) -> HttpResult<EgressResponse> {
        let challenge = challenge(&answer.headers);
        match answer.status {
            StatusCode::UNAUTHORIZED => {
                Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge.to_owned())))
            }
            StatusCode::FORBIDDEN if !challenge.is_empty() => {
                let missing = missing_scopes(challenge, &self.shared.url);
                let text = (!missing.is_empty()).then(|| missing.join(" "));
                if let Some(oauth) = self.oauth() {
                    // Another sign-in would give the same token.
                    if oauth.has_fixed_scopes() && !missing.is_empty() {
                        let text = format!(
                            "{}; `scopes` of the server do not have it: add it there, and sign in again",
                            missing_text(text.as_deref())
                        );
                        return Err(StreamableHttpError::Client(HttpError::OAuth(text)));
                    }
                    oauth.note_missing_scopes(missing);
                }
                let error = InsufficientScopeError::new(challenge.to_owned(), text);
                Err(StreamableHttpError::InsufficientScope(error))
            }
            _ => Ok(answer),
        }
    }

    /// Sends a request without a body.
    async fn send_plain(
        &self,
        method: Method,
        url: Arc<str>,
        headers: HeaderMap,
        idle: Duration,
    ) -> HttpResult<EgressResponse> {
        let timeout = self.shared.times.plain;
        self.send(Plan { method, url, headers, body: Bytes::new(), timeout, idle }).await
    }

    fn fixed_credential(&self) -> Option<EgressCredential> {
        let Access::Header { name, value } = &self.shared.access else { return None };
        let hosts = vec![self.shared.host.clone()];
        Some(EgressCredential::Header { name: name.clone(), value: value.clone(), hosts })
    }

    fn bearer(&self, token: &SecretString) -> EgressCredential {
        let value = format!("Bearer {}", token.expose_secret()).into();
        EgressCredential::Header {
            name: http::header::AUTHORIZATION,
            value,
            hosts: vec![self.shared.host.clone()],
        }
    }

    /// Sends a request, and follows redirects that keep method and body, within the server.
    async fn send_with(
        &self,
        plan: &Plan,
        credential: Option<EgressCredential>,
    ) -> HttpResult<EgressResponse> {
        let mut url = plan.url.to_string();
        for _ in 0..=MAX_REDIRECTS {
            let request = EgressRequest {
                method: plan.method.clone(),
                url: url.clone(),
                headers: plan.headers.clone(),
                credential: credential.clone(),
                hosts: Some(vec![self.shared.host.clone()]),
                body: plan.body.clone(),
                max_redirects: 0,
                timeout: plan.timeout,
                max_body_bytes: MAX_ANSWER_BYTES,
            };
            let answer = self.shared.egress.send_for_stream(request, plan.idle).await.map_err(failed)?;
            if !answer.status.is_redirection() {
                return Ok(answer);
            }
            url = self.next_url(&url, &answer)?;
        }
        Err(refused_redirect(format!("the server redirects more than {MAX_REDIRECTS} times")))
    }

    /// The address of a redirect that may be followed.
    fn next_url(&self, url: &str, answer: &EgressResponse) -> HttpResult<String> {
        let status = answer.status.as_u16();
        let location = answer.headers.get(LOCATION).and_then(|location| location.to_str().ok());
        let next = location.and_then(|location| Url::parse(url).ok()?.join(location).ok());
        let Some(next) = next else {
            return Err(refused_redirect(format!(
                "the server answered with status {status} without an address"
            )));
        };
        // Says it for an address of the own network first.
        if let Err(refusal) = self.shared.egress.judge(next.as_str()) {
            return Err(failed(EgressError::from(refusal).after_answer(answer.status)));
        }
        if next.origin() != self.shared.origin || !matches!(status, 307 | 308) {
            let host = next.host_str().unwrap_or_default();
            return Err(refused_redirect(format!(
                "the server redirects with status {status} to `{host}`, which is not followed; set the address that \
                 it leads to"
            )));
        }
        Ok(next.into())
    }
}

fn challenge(headers: &HeaderMap) -> &str {
    let challenge = headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    challenge.filter(|challenge| challenge.len() <= MAX_CHALLENGE_BYTES).unwrap_or_default()
}

fn failed(error: EgressError) -> StreamableHttpError<HttpError> {
    StreamableHttpError::Client(HttpError::Egress(error))
}

fn refused_redirect(text: String) -> StreamableHttpError<HttpError> {
    StreamableHttpError::Client(HttpError::Redirect(text))
}

/// The headers of a request.
fn headers_of(session: Option<&str>, custom: HashMap<HeaderName, HeaderValue>) -> HttpResult<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in custom {
        if RESERVED.contains(&name) {
            return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
        }
        headers.insert(name, value);
    }
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if let Some(session) = session {
        let value = HeaderValue::from_str(session)
            .map_err(|_| unexpected("the server has an unusable session id"))?;
        headers.insert(SESSION_ID, value);
    }
    Ok(headers)
}

fn unexpected(text: impl Into<Cow<'static, str>>) -> StreamableHttpError<HttpError> {
    StreamableHttpError::UnexpectedServerResponse(text.into())
}

/// An error status as rmcp reports it: without the body, which may repeat a secret of the request.
fn status_error(status: StatusCode, headers: &HeaderMap) -> StreamableHttpError<HttpError> {
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        return HttpStatusError::new(status.as_u16(), retry_after).into();
    }
    unexpected(format!("the server answered with status {}", status.as_u16()))
}

fn is_kind(headers: &HeaderMap, kind: &str) -> bool {
    let value = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    value.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind.as_bytes()))
}

fn unexpected_kind(headers: &HeaderMap) -> StreamableHttpError<HttpError> {
    let value = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let text = value.map(|value| String::from_utf8_lossy(value).chars().take(100).collect());
    StreamableHttpError::UnexpectedContentType(text)
}

async fn read(mut body: EgressBody, status: StatusCode) -> HttpResult<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk().await.map_err(|error| failed(error.after_answer(status)))? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The body of an error; empty if it is not readable soon.
async fn read_error(body: EgressBody, status: StatusCode, most: Duration) -> Vec<u8> {
    let bytes = tokio::time::timeout(most, read(body, status)).await;
    bytes.ok().and_then(Result::ok).unwrap_or_default()
}

fn is_call(message: &ClientJsonRpcMessage) -> bool {
    let ClientJsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::CallToolRequest(_))
}

/// What a refused message becomes. A server that does not know `server/discover` may refuse it in any form; rmcp then
/// begins with `initialize`, but only after an error with the id of the request.
fn refused(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    status: StatusCode,
    body: &[u8],
) -> Option<ServerJsonRpcMessage> {
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return None;
    }
    let error = match serde_json::from_slice(body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !has_session
        && status.is_client_error()
    {
        let text = format!("the server answered with status {}", status.as_u16());
        let error = error.map_or_else(|| ErrorData::invalid_request(text, None), |error| error.error);
        return Some(ServerJsonRpcMessage::error(error, Some(request.id.clone())));
    }
    error.map(ServerJsonRpcMessage::Error)
}

impl StreamableHttpClient for EgressClient {
    type Error = HttpError;

    // rmcp gives the size of events to other methods, which call these. It is always ours.
    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let mut headers = headers_of(session_id.as_deref(), custom_headers)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let body = Bytes::from(serde_json::to_vec(&message)?);
        let needs_result = matches!(message, ClientJsonRpcMessage::Request(_));
        let times = self.shared.times;
        let timeout = if needs_result { times.result } else { times.plain };
        let plan = Plan { method: Method::POST, url: uri, headers, body, timeout, idle: times.result };
        let answer = self.send(plan).await?;
        let (status, headers) = (answer.status, answer.headers);
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            // The end of the connection would hide from a call that it was not taken. So the call itself tells it.
            if !is_call(&message) {
                self.session_end.notify_one();
            }
            return Err(StreamableHttpError::SessionExpired);
        }
        let new_session = headers.get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if !status.is_success() {
            if status == StatusCode::TOO_MANY_REQUESTS {
                return Err(status_error(status, &headers));
            }
            // An error of the server counts, also if its body is not readable.
            let body = if is_kind(&headers, EVENT_STREAM) {
                Vec::new()
            } else {
                read_error(answer.body, status, times.plain).await
            };
            return match refused(&message, session_id.is_some(), status, &body) {
                Some(error) => Ok(StreamableHttpPostResponse::Json(error, new_session)),
                None => Err(status_error(status, &headers)),
            };
        }
        if is_kind(&headers, EVENT_STREAM) {
            let events = events(answer.body, MAX_EVENT_BYTES).map(|event| event.map(marked)).boxed();
            return Ok(StreamableHttpPostResponse::Sse(events, new_session));
        }
        if !needs_result && !is_kind(&headers, JSON) {
            // Some servers answer with an empty 200 instead of 202.
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !is_kind(&headers, JSON) {
            return Err(unexpected_kind(&headers));
        }
        let body = read(answer.body, status).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&repair(&body)) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, new_session)),
            Err(_) if !needs_result => Ok(StreamableHttpPostResponse::Accepted),
            Err(_) => Err(unexpected("the answer is no message of MCP")),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<()> {
        let headers = headers_of(Some(&session_id), custom_headers)?;
        let answer = self.send_plain(Method::DELETE, uri, headers, self.shared.times.plain).await?;
        // A server need not let clients end sessions.
        if answer.status.is_success() || answer.status == StatusCode::METHOD_NOT_ALLOWED {
            return Ok(());
        }
        Err(status_error(answer.status, &answer.headers))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<BoxStream<'static, Result<Sse, SseError>>> {
        let last = last_event_id.as_deref();
        if let Some(id) = last.and_then(|id| id.strip_prefix(ANSWER_MARK)) {
            let events = self.open_stream(uri, session_id.as_deref(), Some(id), custom_headers).await;
            // The server has hung up. Of this error the library knows that another try is of no use.
            let events = events.map_err(|_| StreamableHttpError::ServerDoesNotSupportSse)?;
            return Ok(events.map(|event| event.map(marked)).boxed());
        }
        self.open_stream(uri, session_id.as_deref(), last, custom_headers).await
    }
}

/// The same event, as one of the answer to a message.
fn marked(mut event: Sse) -> Sse {
    event.id = event.id.map(|id| format!("{ANSWER_MARK}{id}"));
    event
}

impl EgressClient {
    /// Opens a stream of the server's, or goes on with one after an event.
    async fn open_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<&str>,
        last_event_id: Option<&str>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> HttpResult<BoxStream<'static, Result<Sse, SseError>>> {
        let mut headers = headers_of(session_id, custom_headers)?;
        if let Some(Ok(id)) = last_event_id.map(HeaderValue::from_str) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let answer = self.send_plain(Method::GET, uri, headers, self.shared.times.silent).await?;
        if answer.status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !answer.status.is_success() {
            return Err(status_error(answer.status, &answer.headers));
        }
        if !is_kind(&answer.headers, EVENT_STREAM) {
            return Err(unexpected_kind(&answer.headers));
        }
        Ok(events_until_error(answer.body, MAX_EVENT_BYTES))
    }
}
