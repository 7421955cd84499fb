//! Questions to the Admin API, each with its bound in bytes and in time.

use crate::address::below;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::json::{JsonLimits, parse_strict};
use redflow_contract::limits::FlowLimits;
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// Where the access token comes from. Never from a flag: whoever lists processes would see it.
pub const TOKEN_VARIABLE: &str = "NODE_RED_TOKEN";

/// Bytes of an answer, as of a flow.
pub(crate) const MAX_ANSWER_BYTES: usize = 40 * 1024 * 1024;
/// How long Node-RED may say nothing. A deploy is answered when the nodes before it have stopped, which may take 15 s.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
/// Characters of what Node-RED says that are repeated.
const MAX_QUOTED: usize = 200;

/// Nesting of an answer: a flow, and what it is wrapped in.
const ROOM_AROUND_FLOWS: usize = 2;

const API_VERSION: HeaderName = HeaderName::from_static("node-red-api-version");
const DEPLOYMENT_TYPE: HeaderName = HeaderName::from_static("node-red-deployment-type");

/// One Node-RED, and the right to ask it.
#[derive(Clone)]
pub struct NodeRed {
    pub(crate) base: Url,
    pub(crate) client: Client,
    pub(crate) token: Option<SecretString>,
    bearer: Option<HeaderValue>,
}

/// Without the token.
impl fmt::Debug for NodeRed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeRed").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// The flow that Node-RED has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct DeployedFlow {
    /// Its nodes, without credentials.
    pub flows: Value,
    /// What Node-RED calls it. Means nothing but that it is the same.
    pub rev: String,
}

/// What a deploy stops and starts anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeployType {
    /// Everything.
    Full,
    /// Tabs with changes.
    Flows,
    /// Changed nodes.
    Nodes,
}

impl DeployType {
    fn as_header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Full => "full",
            Self::Flows => "flows",
            Self::Nodes => "nodes",
        })
    }
}

impl NodeRed {
    /// A Node-RED at an address that [`crate::parse_address`] gave. The client must follow no redirects and speak HTTP/1.1
    /// only: `/comms` needs it.
    ///
    /// # Errors
    /// A sentence, if the token cannot stand in a header.
    pub fn new(base: Url, client: Client, token: Option<SecretString>) -> Result<Self, String> {
        let bearer = token.as_ref().map(|token| {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
            let mut value =
                value.map_err(|_| format!("the token in {TOKEN_VARIABLE} cannot stand in a header"))?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        Ok(Self { base, client, bearer: bearer.transpose()?, token })
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &str {
        self.base.as_str()
    }

    /// The flow that it has.
    ///
    /// # Errors
    /// `NODE_RED_UNREACHABLE`, `NODE_RED_REFUSED`.
    pub async fn flows(&self) -> Result<DeployedFlow, ApiError> {
        let request = self.ask(Method::GET, "/flows")?.header(API_VERSION, "v2");
        let body = self.answer(request).await?;
        let deployed: DeployedFlow = self.read(&body)?;
        if !deployed.flows.is_array() {
            return Err(self.foreign("its flow is no list of nodes"));
        }
        Ok(deployed)
    }

    /// Deploys a flow in the place of the one that `rev` names. Gives what Node-RED calls the new one.
    ///
    /// # Errors
    /// As for [`NodeRed::flows`]; `NODE_RED_REFUSED` also if another flow is there.
    pub async fn deploy(&self, flows: &Value, rev: &str, how: DeployType) -> Result<String, ApiError> {
        #[derive(Deserialize)]
        struct Answer {
            rev: String,
        }
        let body = serde_json::to_vec(&json!({"flows": flows, "rev": rev})).unwrap_or_default();
        let request = self
            .ask(Method::POST, "/flows")?
            .header(API_VERSION, "v2")
            .header(DEPLOYMENT_TYPE, how.as_header())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let body = self.answer(request).await?;
        Ok(self.read::<Answer>(&body)?.rev)
    }

    /// Its version, if it says so.
    pub async fn version(&self) -> Option<String> {
        let body = self.answer(self.ask(Method::GET, "/settings").ok()?).await.ok()?;
        let settings: Value = serde_json::from_slice(&body).ok()?;
        settings.get("version")?.as_str().map(quoted)
    }

    /// Whether it asks who somebody is at all. One that does not refuses whoever shows a token at `/comms`.
    pub(crate) async fn wants_users(&self) -> Result<bool, ApiError> {
        let body = self.answer(self.ask(Method::GET, "/auth/login")?).await?;
        let login: Value = self.read(&body)?;
        Ok(login.as_object().is_some_and(|login| !login.is_empty()))
    }

    fn ask(&self, method: Method, path: &str) -> Result<RequestBuilder, ApiError> {
        let url = below(&self.base, path, None).ok_or_else(|| self.foreign("its address cannot be used"))?;
        let request = self.client.request(method, url).header(ACCEPT, "application/json");
        Ok(match &self.bearer {
            Some(bearer) => request.header(AUTHORIZATION, bearer.clone()),
            None => request,
        })
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Vec<u8>, ApiError> {
        let response = self.sent(request).await?;
        let status = response.status();
        let body = self.body(response).await?;
        if status.is_success() { Ok(body) } else { Err(self.refused(status, &body)) }
    }

    /// The head of an answer.
    pub(crate) async fn sent(&self, request: RequestBuilder) -> Result<Response, ApiError> {
        match timeout(SILENCE, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.unreachable(why(&error))),
            Err(_) => Err(self.unreachable("it does not answer")),
        }
    }

    /// The next piece of an answer; none at its end.
    pub(crate) async fn piece(&self, response: &mut Response) -> Result<Option<Bytes>, ApiError> {
        match timeout(SILENCE, response.chunk()).await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(self.unreachable(why(&error))),
            Err(_) => Err(self.unreachable("it says nothing any more")),
        }
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, ApiError> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece(&mut response).await? {
            if bytes.len() + piece.len() > MAX_ANSWER_BYTES {
                return Err(self.foreign(&format!("its answer has more than {MAX_ANSWER_BYTES} bytes")));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    fn read<T: for<'a> Deserialize<'a>>(&self, body: &[u8]) -> Result<T, ApiError> {
        let depth = FlowLimits::default().max_depth + ROOM_AROUND_FLOWS;
        let value = parse_strict(body, JsonLimits { max_bytes: MAX_ANSWER_BYTES, max_depth: depth }).ok();
        let read = value.and_then(|value| serde_json::from_value(value).ok());
        read.ok_or_else(|| self.foreign("its answer is not what Node-RED answers"))
    }

    pub(crate) fn unreachable(&self, why: &str) -> ApiError {
        let text = format!("No Node-RED answers at {}: {why}. Does it run there?", self.base);
        ApiError::new(ApiCode::NodeRedUnreachable, text)
    }

    /// That its `/comms` was there and is closed.
    #[must_use]
    pub fn lost(&self) -> ApiError {
        self.unreachable("it closed its /comms")
    }

    pub(crate) fn foreign(&self, why: &str) -> ApiError {
        let text = format!(
            "What answers at {} is no Node-RED: {why}. With `httpAdminRoot` in its settings, that path is part of the \
             address.",
            self.base
        );
        ApiError::new(ApiCode::NodeRedUnreachable, text)
    }

    /// What a refusal means, and what to do about it.
    pub(crate) fn refused(&self, status: StatusCode, body: &[u8]) -> ApiError {
        let number = status.as_u16();
        let text = match status {
            StatusCode::UNAUTHORIZED if self.bearer.is_none() => {
                format!("Node-RED at {} wants an access token (401): set {TOKEN_VARIABLE}.", self.base)
            }
            StatusCode::UNAUTHORIZED => format!(
                "Node-RED at {} does not take the access token in {TOKEN_VARIABLE} (401): it is wrong or too old, or may \
                 not do this.",
                self.base
            ),
            StatusCode::CONFLICT => format!(
                "Another flow was deployed in Node-RED at {} meanwhile (409): pull it, merge, and push again.",
                self.base
            ),
            StatusCode::NOT_FOUND => return self.foreign("it knows no such address (404)"),
            _ if status.is_redirection() => return self.foreign(&format!("it sends elsewhere ({number})")),
            _ => {
                let said = said(body).map(|said| format!(": {said}")).unwrap_or_default();
                format!("Node-RED at {} refused ({number}){said}.", self.base)
            }
        };
        ApiError::new(ApiCode::NodeRedRefused, text)
    }
}

/// What Node-RED says of its refusal.
fn said(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let text = |key: &str| body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (text("code"), text("message")) {
        (Some(code), Some(message)) => Some(quoted(&format!("{code}, {message}"))),
        (code, message) => code.or(message).map(quoted),
    }
}

/// A stranger's text: short, and nothing that acts on a terminal.
fn quoted(text: &str) -> String {
    let text: String = text.chars().take(MAX_QUOTED).map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.trim_end_matches('.').to_owned()
}

/// What a library's error means, without its words.
pub(crate) fn why(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "no connection was made in time"
    } else if error.is_connect() {
        "nothing listens there, or its name or its certificate is not known here"
    } else {
        "the connection was lost before the answer ended"
    }
}
