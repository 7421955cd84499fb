//! A tool of the manifest, kind `http`: one request to a fixed host.

use super::credential::basic;
use super::exchange::{Answer, MUST_BE_HTTPS, add_call_headers, exchange, failed, is_open, timeout_of};
use super::input::client_method;
use super::result::content_type_of;
use super::template::RequestTemplate;
use super::{DEFAULT_BODY_BYTES, DEFAULT_REDIRECTS};
use crate::ToolSettings;
use http::HeaderName;
use http::header::AUTHORIZATION;
use redflow_contract::Message;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::http_rules::{is_header_value, is_transport_header};
use redflow_contract::manifest::ManifestCredential;
use redflow_contract::node::EffectClass;
use redflow_contract::scrub::Scrubber;
use redflow_egress::{EgressCredential, EgressRequest, HostPattern};
use redflow_ports::{BoxFuture, ManifestToolConfig, Tool, ToolOutcome};
use secrecy::SecretString;
use serde_json::Value;
use std::sync::Arc;

/// The most bytes of an answer in the text of a failed call.
const MAX_PROBLEM_BYTES: usize = 500;

/// Makes one request to the host of its definition.
pub struct ManifestHttpTool {
    client: ToolSettings,
    template: RequestTemplate,
    host: HostPattern,
    effect: EffectClass,
    credential: Option<EgressCredential>,
    scrubber: Scrubber,
}

impl ManifestHttpTool {
    /// Builds the tool. Reports every spelling of its key, to remove it from results.
    ///
    /// # Errors
    /// A sentence that says what is wrong, without the key.
    pub fn build(config: ManifestToolConfig<'_>, client: &ToolSettings) -> Result<Arc<dyn Tool>, String> {
        let ManifestToolConfig { tool, env, on_secret } = config;
        let template = RequestTemplate::read(tool).map_err(|problems| problems.join("; "))?;
        let host = HostPattern::parse(&template.host)?;
        let mut secrets = Vec::new();
        let credential = tool.credential.as_ref();
        let credential = credential.map(|own| read_credential(own, &host, env, &mut secrets)).transpose()?;
        let mut scrubber = Scrubber::default();
        for secret in &secrets {
            scrubber.add(secret);
            on_secret(secret);
        }
        let effect = tool.effect.unwrap_or_else(|| template.method.effect());
        Ok(Arc::new(Self { client: client.clone(), template, host, effect, credential, scrubber }))
    }

    async fn send(&self, call: &ToolCall) -> ToolOutcome {
        let filled = match self.template.fill(&call.input) {
            Ok(filled) => filled,
            Err(problem) => return failed(problem),
        };
        if self.credential.is_some() && is_open(&self.client.egress, &filled.url) {
            return failed(MUST_BE_HTTPS);
        }
        let mut headers = filled.headers;
        add_call_headers(&mut headers, self.template.method, call);
        let request = EgressRequest {
            method: client_method(self.template.method),
            url: filled.url,
            headers,
            credential: self.credential.clone(),
            hosts: Some(vec![self.host.clone()]),
            body: filled.body,
            max_redirects: DEFAULT_REDIRECTS,
            timeout: timeout_of(call),
            max_body_bytes: u64::MAX,
        };
        match exchange(&self.client, request, usize::try_from(DEFAULT_BODY_BYTES).unwrap_or(usize::MAX)).await
        {
            Ok(answer) => ToolOutcome::Returned(self.result(answer)),
            Err(outcome) => outcome,
        }
    }

    /// The body is the output. A status from 300 is a failure: a redirect that was not followed has no result either.
    fn result(&self, answer: Answer) -> ToolResult {
        let content_type = content_type_of(&answer.headers);
        let mut shown = answer.body.show(content_type.as_deref(), &self.scrubber);
        let status = answer.status.as_u16();
        if status >= 300 {
            let body =
                shown.get("body").map(|body| body.as_str().map_or_else(|| body.to_string(), str::to_owned));
            let mut body = body.unwrap_or_default();
            body.truncate(self.scrubber.cut_at(&body, MAX_PROBLEM_BYTES));
            return ToolResult::failed(format!("the server answered with status {status}: {body}"));
        }
        let is_whole = shown.len() == 1;
        let body = if is_whole { shown.remove("body") } else { None };
        ToolResult::ok(body.unwrap_or(Value::Object(shown)))
    }
}

fn read_credential(
    credential: &ManifestCredential,
    host: &HostPattern,
    env: &dyn Fn(&str) -> Option<String>,
    secrets: &mut Vec<String>,
) -> Result<EgressCredential, String> {
    let variable = credential.env();
    let secret = env(variable).map(|secret| secret.trim().to_owned()).filter(|secret| !secret.is_empty());
    let secret = secret.ok_or_else(|| format!("the environment variable `{variable}` is not set"))?;
    if !is_header_value(&secret) {
        return Err(format!("the environment variable `{variable}` has characters that cannot be sent"));
    }
    secrets.push(secret.clone());
    let hosts = vec![host.clone()];
    let header = |name: HeaderName, value: String, hosts| EgressCredential::Header {
        name,
        value: SecretString::from(value),
        hosts,
    };
    Ok(match credential {
        ManifestCredential::Basic { user, .. } => {
            let (value, spellings) = basic(user, &secret)?;
            secrets.extend(spellings);
            header(AUTHORIZATION, value, hosts)
        }
        ManifestCredential::Bearer { .. } => header(AUTHORIZATION, format!("Bearer {secret}"), hosts),
        ManifestCredential::Header { name, .. } => {
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok();
            let usable = parsed.filter(|name| !is_transport_header(name.as_str()));
            header(usable.ok_or("the name of the credential's header cannot be used")?, secret, hosts)
        }
        ManifestCredential::Query { name, .. } => {
            EgressCredential::Query { name: name.clone(), value: SecretString::from(secret), hosts }
        }
    })
}

impl Tool for ManifestHttpTool {
    fn effect(&self, _: &Message) -> EffectClass {
        self.effect
    }

    fn call<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(self.send(call))
    }
}
