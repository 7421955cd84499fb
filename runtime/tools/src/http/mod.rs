//! `http-request-tool`: one HTTP request to an address that the model chooses, through the guarded way out.

mod body;
mod credential;
mod exchange;
mod headers;
mod input;
mod manifest_tool;
mod result;
mod template;

pub use manifest_tool::ManifestHttpTool;
pub use template::{FilledRequest, RequestTemplate};

use crate::ToolSettings;
use exchange::{MUST_BE_HTTPS, add_call_headers, exchange, failed, is_open, timeout_of};
use http::{HeaderMap, HeaderName, HeaderValue};
use input::{HttpInput, client_method, effect_of, read_input};
use redflow_contract::Message;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::http_rules::{has_reference, is_transport_header};
use redflow_contract::manifest::HttpMethod;
use redflow_contract::node::{
    EffectClass, HttpRequestConfig, MAX_HTTP_BODY_BYTES, MAX_HTTP_REDIRECTS, TextList,
};
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::is_secret_name;
use redflow_egress::{EgressCredential, EgressRequest, HostPattern};
use redflow_ports::{BoxFuture, BuildError, NodeConfig, Tool, ToolOutcome};
use std::sync::{Arc, Mutex, PoisonError};

/// The bytes of an answer that the model gets, if the node does not say.
const DEFAULT_BODY_BYTES: u32 = 131_072;

/// The redirects of a call, if the node does not say.
const DEFAULT_REDIRECTS: u32 = 5;

/// Makes HTTP requests for a model.
pub struct HttpRequestTool {
    client: ToolSettings,
    hosts: Option<Vec<HostPattern>>,
    methods: Vec<HttpMethod>,
    headers: HeaderMap,
    credential: Option<EgressCredential>,
    /// Whether a request carries a secret: the credential or a header of the node.
    has_secret: bool,
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
    pub fn build(config: NodeConfig<'_>, client: &ToolSettings) -> Result<Arc<dyn Tool>, BuildError> {
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
        let has_secret = credential.is_some() || headers.keys().any(|name| is_secret_name(name.as_str()));
        let credential_header = credential.as_ref().and_then(credential::header_of);
        let taken = headers.keys().cloned().chain(credential_header).collect();
        let follows = settings.follow_redirects.unwrap_or(true);
        let redirects = settings.max_redirects.unwrap_or(DEFAULT_REDIRECTS).min(MAX_HTTP_REDIRECTS);
        let body_bytes = settings.max_body_bytes.unwrap_or(DEFAULT_BODY_BYTES).min(MAX_HTTP_BODY_BYTES);
        let methods = read_methods(&config, &settings)?;
        let scrubber = secrets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Arc::new(Self {
            client: client.clone(),
            hosts,
            methods,
            headers,
            credential,
            has_secret,
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
        if self.has_secret && is_open(&self.client.egress, &input.url) {
            return failed(MUST_BE_HTTPS);
        }
        match exchange(&self.client, self.request(input, call), self.max_body_bytes).await {
            Ok(answer) => ToolOutcome::Returned(ToolResult::ok(result::output(answer, &self.scrubber))),
            Err(outcome) => outcome,
        }
    }

    fn request(&self, input: HttpInput, call: &ToolCall) -> EgressRequest {
        let HttpInput { url, method, mut headers, body } = input;
        headers.extend(self.headers.clone());
        add_call_headers(&mut headers, method, call);
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
        // The value may be a secret, so no text repeats it.
        if value.as_str().is_some_and(has_reference) {
            return Err(config.error(format!(
                "the header `{name}` has a `${{NAME}}` that is not resolved; set the variable, write nothing around \
                 it, and use a secret one only in a header with the name of a secret"
            )));
        }
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
