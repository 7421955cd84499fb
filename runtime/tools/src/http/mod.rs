//! `http-request-tool`: one HTTP request to an address that the model chooses, through the guarded way out.

mod body;
mod credential;
mod headers;
mod input;
mod result;

use body::KeptBody;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use input::{HttpInput, client_method, effect_of, read_input};
use redflow_contract::Message;
use redflow_contract::code::ToolCode;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::http_rules::is_transport_header;
use redflow_contract::node::{
    EffectClass, HttpRequestConfig, MAX_HTTP_BODY_BYTES, MAX_HTTP_REDIRECTS, TextList,
};
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::is_secret_name;
use redflow_contract::tool::manifest::HttpMethod;
use redflow_egress::{Egress, EgressCredential, EgressError, EgressRequest, HostPattern};
use redflow_ports::{BoxFuture, BuildError, NodeConfig, Tool, ToolOutcome};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The bytes of an answer that the model gets, if the node does not say.
const DEFAULT_BODY_BYTES: u32 = 131_072;

/// The redirects of a call, if the node does not say.
const DEFAULT_REDIRECTS: u32 = 5;

/// The header with the key of a call that changes something.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How long before the engine's deadline a call gives up. The engine cannot know whether a byte was sent.
const BEFORE_DEADLINE: Duration = Duration::from_millis(50);

/// Makes HTTP requests for a model.
pub struct HttpRequestTool {
    egress: Egress,
    hosts: Option<Vec<HostPattern>>,
    methods: Vec<HttpMethod>,
    headers: HeaderMap,
    credential: Option<EgressCredential>,
    /// The headers that the model cannot set.
    taken: Vec<HeaderName>,
    max_redirects: u32,
    max_body_bytes: usize,
    /// Knows the secrets of this node, so that a cut body does not end inside one.
    scrubber: Scrubber,
}

impl HttpRequestTool {
    /// Builds the tool from the properties of its node.
    ///
    /// # Errors
    /// When a property cannot be used, or the credentials are bound to no host.
    pub fn build(config: NodeConfig<'_>, egress: &Egress) -> Result<Arc<dyn Tool>, BuildError> {
        let settings: HttpRequestConfig = config.typed_with_options()?;
        let secrets = Mutex::new(Scrubber::default());
        let on_secret = |secret: &str| {
            secrets.lock().unwrap_or_else(PoisonError::into_inner).add(secret);
            (config.on_secret)(secret);
        };
        let config = NodeConfig { on_secret: &on_secret, ..config };
        let hosts = read_hosts(&config, &settings)?;
        let headers = read_headers(&config, &settings)?;
        let credential = credential::read_credential(&config, &settings, hosts.as_deref())?;
        let credential_header = credential.as_ref().and_then(credential::header_of);
        let taken = headers.keys().cloned().chain(credential_header).collect();
        let follows = settings.follow_redirects.unwrap_or(true);
        let redirects = settings.max_redirects.unwrap_or(DEFAULT_REDIRECTS).min(MAX_HTTP_REDIRECTS);
        let body_bytes = settings.max_body_bytes.unwrap_or(DEFAULT_BODY_BYTES).min(MAX_HTTP_BODY_BYTES);
        let methods = read_methods(&config, &settings)?;
        let scrubber = secrets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Arc::new(Self {
            egress: egress.clone(),
            hosts,
            methods,
            headers,
            credential,
            taken,
            max_redirects: if follows { redirects } else { 0 },
            max_body_bytes: usize::try_from(body_bytes).unwrap_or(usize::MAX),
            scrubber,
        }))
    }

    async fn send(&self, call: &ToolCall) -> ToolOutcome {
        let input = match read_input(&call.input, &self.methods, &self.taken) {
            Ok(input) => input,
            Err(problem) => return failed(problem),
        };
        if let Some(problem) = self.unsafe_credential(&input.url) {
            return failed(problem);
        }
        let request = self.request(input, call);
        let response = match self.egress.send(request).await {
            Ok(response) => response,
            Err(error) => return outcome_of(&error),
        };
        let mut kept = KeptBody::new(self.max_body_bytes);
        let mut body = response.body;
        loop {
            match body.chunk().await {
                Ok(Some(chunk)) => kept.push(&chunk),
                Ok(None) => break,
                Err(error) => return answered(response.status, &error),
            }
        }
        let output = result::output(response.status, &response.headers, kept, &self.scrubber);
        ToolOutcome::Returned(ToolResult::ok(output))
    }

    /// Why the credential cannot go to an address; none if it can, or if the address is refused anyway.
    fn unsafe_credential(&self, url: &str) -> Option<String> {
        let judged = self.egress.judge(url).ok().filter(|_| self.credential.is_some())?;
        let is_open = judged.scheme == "http" && !judged.is_private;
        is_open.then(|| "this tool sends credentials, so the address must begin with https://".to_owned())
    }

    fn request(&self, input: HttpInput, call: &ToolCall) -> EgressRequest {
        let HttpInput { url, method, mut headers, body } = input;
        headers.extend(self.headers.clone());
        if method != HttpMethod::Get
            && let Ok(key) = HeaderValue::from_str(&call.idempotency_key.to_hex())
        {
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        EgressRequest {
            method: client_method(method),
            url,
            headers,
            credential: self.credential.clone(),
            hosts: self.hosts.clone(),
            body,
            max_redirects: self.max_redirects,
            timeout: timeout_of(call),
            // A longer body is cut, and its digest needs all of it up to the operator's bound.
            max_body_bytes: u64::MAX,
        }
    }
}

/// The time of a call, which ends before the engine's.
fn timeout_of(call: &ToolCall) -> Duration {
    let whole = Duration::from_millis(call.timeout_ms);
    whole.saturating_sub(BEFORE_DEADLINE.min(whole / 10))
}

fn failed(problem: impl Into<String>) -> ToolOutcome {
    ToolOutcome::Returned(ToolResult::failed(problem))
}

/// The outcome of a call without an answer. If no byte was sent, it just failed.
fn outcome_of(error: &EgressError) -> ToolOutcome {
    match error {
        EgressError::Refused(refusal) => {
            ToolOutcome::Returned(ToolResult::refused(ToolCode::EgressRefused, refusal.to_string()))
        }
        EgressError::TooLarge { .. } => {
            ToolOutcome::Returned(ToolResult::refused(ToolCode::EgressTooLarge, error.to_string()))
        }
        EgressError::Failed { sent: true, .. } | EgressError::TimedOut { sent: true } => {
            ToolOutcome::Unknown { reason: format!("the request was sent, but {error}") }
        }
        EgressError::Failed { .. } | EgressError::TimedOut { .. } => {
            failed(format!("nothing was sent: {error}"))
        }
    }
}

/// The outcome of a call whose answer has a body that cannot be read. The server has answered, so the call has happened.
fn answered(status: StatusCode, error: &EgressError) -> ToolOutcome {
    let text = format!("the server answered with status {}, but {error}", status.as_u16());
    ToolOutcome::Returned(match error {
        EgressError::Refused(_) => ToolResult::refused(ToolCode::EgressRefused, text),
        EgressError::TooLarge { .. } => ToolResult::refused(ToolCode::EgressTooLarge, text),
        EgressError::Failed { .. } | EgressError::TimedOut { .. } => ToolResult::failed(text),
    })
}

fn read_hosts(
    config: &NodeConfig<'_>,
    settings: &HttpRequestConfig,
) -> Result<Option<Vec<HostPattern>>, BuildError> {
    let hosts = settings.hosts.as_ref().map(TextList::list).unwrap_or_default();
    let parse =
        |host: &str| HostPattern::parse(host).map_err(|problem| config.error(format!("`hosts`: {problem}")));
    let hosts = hosts.into_iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(hosts).filter(|hosts| !hosts.is_empty()))
}

fn read_methods(
    config: &NodeConfig<'_>,
    settings: &HttpRequestConfig,
) -> Result<Vec<HttpMethod>, BuildError> {
    let named = settings.methods.as_ref().map(TextList::list).unwrap_or_default();
    if named.is_empty() {
        return Ok(HttpMethod::ALL.to_vec());
    }
    let parse = |name: &str| {
        HttpMethod::parse(name).ok_or_else(|| config.error("`methods` may name GET, POST, PUT and DELETE"))
    };
    named.into_iter().map(parse).collect()
}

fn read_headers(config: &NodeConfig<'_>, settings: &HttpRequestConfig) -> Result<HeaderMap, BuildError> {
    let mut headers = HeaderMap::new();
    for (name, value) in settings.headers.iter().flatten() {
        let parsed =
            HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| !is_transport_header(name.as_str()));
        let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
        let (Some(name), Some(value)) = (parsed, value) else {
            return Err(
                config.error("`headers` has a name or a value that cannot be sent; run `redflow check`")
            );
        };
        if is_secret_name(name.as_str())
            && let Ok(secret) = value.to_str()
        {
            (config.on_secret)(secret);
        }
        headers.insert(name, value);
    }
    Ok(headers)
}

impl Tool for HttpRequestTool {
    fn effect(&self, input: &Message) -> EffectClass {
        effect_of(input)
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(self.send(call))
    }
}
