//! Requests to the Admin API, each bounded in bytes and time.

use crate::address::{TOKEN_VARIABLE, join};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::json::{JsonLimits, count_values, parse_exact, read_typed};
use redflow_contract::limits::FlowLimits;
use reqwest::{Client, RequestBuilder, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// Enough for a large flow.
pub(crate) const MAX_RESPONSE_BYTES: usize = 40 * 1024 * 1024;
/// How long Node-RED may send nothing. It responds to a deploy when the old nodes have stopped, which may
/// take 15 s.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Characters of a text of Node-RED that an error repeats.
const MAX_QUOTED_CHARS: usize = 200;

/// The nesting that a response adds around the flow.
const RESPONSE_DEPTH: usize = 2;

/// Object keys and list elements of a response.
const MAX_RESPONSE_VALUES: usize = 2_000_000;

const API_VERSION: HeaderName = HeaderName::from_static("node-red-api-version");
const DEPLOYMENT_TYPE: HeaderName = HeaderName::from_static("node-red-deployment-type");

/// A client of one Node-RED, with its access token.
#[derive(Clone)]
pub struct NodeRed {
    pub(crate) base: Url,
    pub(crate) client: Client,
    pub(crate) token: Option<SecretString>,
    bearer: Option<HeaderValue>,
}

/// Leaves out the token.
impl fmt::Debug for NodeRed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeRed").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// The flow that is deployed in Node-RED.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct DeployedFlow {
    /// A list of nodes, without credentials.
    pub flows: Value,
    /// Node-RED's revision of the flow. Equal revisions mean equal flows.
    pub rev: String,
}

/// What a deploy restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeployType {
    /// All nodes.
    Full,
    /// The tabs with changes.
    Flows,
    /// The changed nodes.
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
    /// `base` comes from [`crate::parse_address`]. `client` must not follow redirects, and must use HTTP/1.1
    /// only, which `/comms` needs.
    ///
    /// # Errors
    /// A sentence, if the token cannot be a header value.
    pub fn new(base: Url, client: Client, token: Option<SecretString>) -> Result<Self, String> {
        let bearer = token.as_ref().map(|token| {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
            let mut value =
                value.map_err(|_| format!("the token in {TOKEN_VARIABLE} cannot be a header value"))?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        Ok(Self { base, client, bearer: bearer.transpose()?, token })
    }

    /// Its address, which ends with a slash.
    #[must_use]
    pub fn url(&self) -> &str {
        self.base.as_str()
    }

    /// Reads the deployed flow.
    ///
    /// # Errors
    /// `NODE_RED_UNREACHABLE`, `NODE_RED_REFUSED`.
    pub async fn flows(&self) -> Result<DeployedFlow, ApiError> {
        let request = self.request(Method::GET, "/flows")?.header(API_VERSION, "v2");
        let body = self.send(request).await?;
        // A flow can be large, so it is parsed on another thread.
        let parsed = tokio::task::spawn_blocking(move || parse_response(&body)).await;
        let deployed: DeployedFlow = parsed.ok().flatten().ok_or_else(|| self.unknown_response())?;
        if !deployed.flows.is_array() {
            return Err(self.not_node_red("its flow is not a list of nodes"));
        }
        Ok(deployed)
    }

    /// Replaces the flow of revision `rev`. Returns the new revision.
    ///
    /// # Errors
    /// As for [`NodeRed::flows`]; `NODE_RED_REFUSED` also if the deployed flow has another revision.
    pub async fn deploy(
        &self,
        flows: &Value,
        rev: &str,
        deploy_type: DeployType,
    ) -> Result<String, ApiError> {
        #[derive(Deserialize)]
        struct Deployed {
            rev: String,
        }
        let body = serde_json::to_vec(&json!({"flows": flows, "rev": rev})).unwrap_or_default();
        let request = self
            .request(Method::POST, "/flows")?
            .header(API_VERSION, "v2")
            .header(DEPLOYMENT_TYPE, deploy_type.as_header())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let body = self.send(request).await?;
        let deployed: Deployed = parse_response(&body).ok_or_else(|| self.unknown_response())?;
        Ok(deployed.rev)
    }

    /// The version of Node-RED. None if it cannot be read.
    pub async fn version(&self) -> Option<String> {
        let body = self.send(self.request(Method::GET, "/settings").ok()?).await.ok()?;
        let settings: Value = serde_json::from_slice(&body).ok()?;
        settings.get("version")?.as_str().map(quote)
    }

    /// Whether Node-RED requires a login. One without logins refuses a token at `/comms`.
    pub(crate) async fn requires_login(&self) -> Result<bool, ApiError> {
        let body = self.send(self.request(Method::GET, "/auth/login")?).await?;
        let login: Value = parse_response(&body).ok_or_else(|| self.unknown_response())?;
        Ok(login.as_object().is_some_and(|login| !login.is_empty()))
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ApiError> {
        let url =
            join(&self.base, path, None).ok_or_else(|| self.not_node_red("its address cannot be used"))?;
        let request = self.client.request(method, url).header(ACCEPT, "application/json");
        Ok(match &self.bearer {
            Some(bearer) => request.header(AUTHORIZATION, bearer.clone()),
            None => request,
        })
    }

    /// Returns the body of a successful response.
    async fn send(&self, request: RequestBuilder) -> Result<Vec<u8>, ApiError> {
        let response = self.send_head(request).await?;
        let status = response.status();
        let body = self.read_body(response).await?;
        if status.is_success() { Ok(body) } else { Err(self.refused(status, &body)) }
    }

    /// Returns the response once its head has arrived.
    async fn send_head(&self, request: RequestBuilder) -> Result<Response, ApiError> {
        match timeout(RESPONSE_TIMEOUT, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.unreachable(explain(&error))),
            Err(_) => Err(self.unreachable("it does not respond")),
        }
    }

    /// The next part of the body, or none at its end.
    pub(crate) async fn next_chunk(&self, response: &mut Response) -> Result<Option<Bytes>, ApiError> {
        match timeout(RESPONSE_TIMEOUT, response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) => Err(self.unreachable(explain(&error))),
            Err(_) => Err(self.unreachable("it stopped sending")),
        }
    }

    async fn read_body(&self, mut response: Response) -> Result<Vec<u8>, ApiError> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.next_chunk(&mut response).await? {
            if bytes.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(
                    self.not_node_red(&format!("its response has more than {MAX_RESPONSE_BYTES} bytes"))
                );
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn unknown_response(&self) -> ApiError {
        self.not_node_red("its response is not one of Node-RED")
    }

    pub(crate) fn unreachable(&self, why: &str) -> ApiError {
        let text = format!("No Node-RED answers at {}: {why}. Does it run there?", self.base);
        ApiError::new(ApiCode::NodeRedUnreachable, text)
    }

    /// The error for a `/comms` that was open and is now closed.
    #[must_use]
    pub fn comms_closed(&self) -> ApiError {
        self.unreachable("it closed its /comms")
    }

    pub(crate) fn not_node_red(&self, why: &str) -> ApiError {
        let text = format!(
            "What answers at {} is not a Node-RED: {why}. If Node-RED's settings have `httpAdminRoot`, that path is part of \
             the address.",
            self.base
        );
        ApiError::new(ApiCode::NodeRedUnreachable, text)
    }

    /// Explains an error status, with a remedy.
    pub(crate) fn refused(&self, status: StatusCode, body: &[u8]) -> ApiError {
        let number = status.as_u16();
        let text = match status {
            StatusCode::UNAUTHORIZED if self.bearer.is_none() => {
                format!("Node-RED at {} wants an access token (401): set {TOKEN_VARIABLE}.", self.base)
            }
            StatusCode::UNAUTHORIZED => format!(
                "Node-RED at {} does not take the access token in {TOKEN_VARIABLE} (401): it is wrong or expired, or it \
                 lacks the permission.",
                self.base
            ),
            StatusCode::CONFLICT => format!(
                "Another flow was deployed in Node-RED at {} in the meantime (409): pull it, merge, and push again.",
                self.base
            ),
            StatusCode::NOT_FOUND => return self.not_node_red("it does not know the path (404)"),
            _ if status.is_redirection() => return self.not_node_red(&format!("it redirects ({number})")),
            _ => {
                let reason = refusal_reason(body).map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("Node-RED at {} refused ({number}){reason}.", self.base)
            }
        };
        ApiError::new(ApiCode::NodeRedRefused, text)
    }
}

fn refusal_reason(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let text = |key: &str| body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (text("code"), text("message")) {
        (Some(code), Some(message)) => Some(quote(&format!("{code}, {message}"))),
        (code, message) => code.or(message).map(quote),
    }
}

/// A short version of a foreign text, without control characters that could act on a terminal.
fn quote(text: &str) -> String {
    let text: String =
        text.chars().take(MAX_QUOTED_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.trim_end_matches('.').to_owned()
}

/// Explains an error of the HTTP client in our own words.
pub(crate) fn explain(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "the connection timed out"
    } else if error.is_connect() {
        "no server listens there, or its name or its certificate is unknown here"
    } else {
        "the connection was lost before the response ended"
    }
}

/// Parses a response; none if it is not JSON, too large, or of another shape.
fn parse_response<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    if count_values(body) > MAX_RESPONSE_VALUES {
        return None;
    }
    let max_depth = FlowLimits::default().max_depth + RESPONSE_DEPTH;
    let value = parse_exact(body, JsonLimits { max_bytes: MAX_RESPONSE_BYTES, max_depth }).ok()?;
    read_typed(value).ok()
}
