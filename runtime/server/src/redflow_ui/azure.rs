//! `/azure-openai/test-connection`: tests a connection with one small model call.
//!
//! Owns the texts and the status codes that the UI reads. The call uses the adapter of the agents, under
//! stricter rules, because the caller chooses the address. So the key of the environment goes to Azure only,
//! and the answer of any other server stays hidden. The key is in no response and no log line.

use crate::active_flow::FlowBuilder;
use crate::app::App;
use crate::body::{self, RequestBody};
use crate::response::{ApiResult, json};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use redflow_contract::Message;
use redflow_contract::azure::is_azure_host;
use redflow_contract::code::{ApiCode, RunErrorCode};
use redflow_contract::id::NodeSummary;
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::Scrubber;
use redflow_contract::secret::PASSWORD_MASK;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_ports::{ChatModel, ModelRequest, NodeConfig};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Instant;
use url::Url;

/// The node type whose adapter makes the call.
const TYPE: &str = "model.azure.openai";

/// The question, and the limits on the answer.
const QUESTION: &str = "This is a test of the connection. Answer with OK.";
const MAX_TOKENS: u32 = 10;
const TIMEOUT_MS: u64 = 10_000;

/// Bytes of a body.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// The request of the UI. It holds a key, so it has no `Debug`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AzureConnection {
    #[serde(default)]
    endpoint: Option<String>,
    #[serde(default)]
    deployment: Option<String>,
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    api_key: Option<String>,
}

/// A model to test, and the secrets that no response may contain.
struct ConnectionTest {
    model: Arc<dyn ChatModel>,
    secrets: Scrubber,
    server: ServerOwner,
}

/// Who owns the server that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerOwner {
    Azure,
    /// Possibly an internal service. A caller must not read its answers through this sidecar.
    Other,
}

impl ServerOwner {
    /// Parses the endpoint as the adapter does.
    fn at(endpoint: &str) -> Self {
        let is_azure = |url: &Url| url.scheme() == "https" && url.host_str().is_some_and(is_azure_host);
        if Url::parse(endpoint.trim()).as_ref().is_ok_and(is_azure) { Self::Azure } else { Self::Other }
    }
}

/// Why a test failed.
struct TestFailure {
    status: u16,
    code: &'static str,
    error: String,
}

pub(crate) async fn test(State(app): State<Arc<App>>, headers: HeaderMap, body: RequestBody) -> ApiResult {
    let (connection, _) = body::read_limited(&headers, body, &app, MAX_BODY_BYTES).await?;
    let Some(_slot) = app.work_slots.connection_test() else {
        let error = "Too many connections are being tested. Try again later.".to_owned();
        return Ok(TestFailure { status: 429, code: ApiCode::RateLimited.as_str(), error }.response());
    };
    Ok(run_test(&app.flow_builder, connection).await.unwrap_or_else(TestFailure::response))
}

async fn run_test(flow_builder: &FlowBuilder, connection: AzureConnection) -> Result<Response, TestFailure> {
    let deployment = connection.deployment.clone();
    let ConnectionTest { model, secrets, server } = ConnectionTest::new(flow_builder, connection)?;
    let since = Instant::now();
    let answer = call_model(&*model).await;
    let duration_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    let answer = answer.map_err(|mut failure| {
        secrets.failure(&mut failure);
        TestFailure::from_model(failure, server)
    })?;
    let mut metadata = json!({"deployment": deployment, "durationMs": duration_ms});
    if let Some(usage) = answer.usage {
        metadata["promptTokens"] = Value::from(usage.input_tokens);
        metadata["completionTokens"] = Value::from(usage.output_tokens);
        metadata["totalTokens"] = Value::from(usage.input_tokens.saturating_add(usage.output_tokens));
    }
    if let Some(mut model) = answer.model.filter(|_| server == ServerOwner::Azure) {
        secrets.text(&mut model);
        metadata["model"] = Value::from(model);
    }
    Ok(json(200, &json!({"success": true, "message": "Connection successful", "metadata": metadata})))
}

impl ConnectionTest {
    fn new(flow_builder: &FlowBuilder, connection: AzureConnection) -> Result<Self, TestFailure> {
        let AzureConnection { endpoint, deployment, api_version, api_key } = connection;
        let non_empty = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let (Some(endpoint), Some(deployment), Some(version)) =
            (non_empty(endpoint), non_empty(deployment), non_empty(api_version))
        else {
            return Err(TestFailure::invalid("`endpoint`, `deployment` and `apiVersion` are required."));
        };
        let server = ServerOwner::at(&endpoint);
        let mut props = Message::new();
        for (name, value) in [("endpoint", endpoint), ("deployment", deployment), ("apiVersion", version)] {
            props.insert(name.to_owned(), Value::from(value));
        }
        props.insert("maxTokens".to_owned(), Value::from(MAX_TOKENS));
        props.insert("timeoutMs".to_owned(), Value::from(TIMEOUT_MS));
        props.insert("maxRetries".to_owned(), Value::from(0));
        if let Some(key) = non_empty(api_key).filter(|key| key != PASSWORD_MASK) {
            props.insert("credentials".to_owned(), json!({"apiKey": key}));
        }
        let node = NodeSummary { id: TYPE.into(), type_name: TYPE.to_owned(), name: String::new() };
        let (secrets, has_key) = (RefCell::new(Scrubber::default()), Cell::new(false));
        let takes = |secret: &str| {
            has_key.set(true);
            secrets.borrow_mut().add(secret);
        };
        let env = |name: &str| (flow_builder.env)(name).filter(|_| server == ServerOwner::Azure);
        let config = NodeConfig::new(&node, &props, &env, &takes);
        let Some(build) = flow_builder.adapters.models.get(TYPE) else {
            return Err(TestFailure::invalid("This build has no models of Azure."));
        };
        let model = build(config).map_err(|error| {
            TestFailure::invalid(&format!("The connection is invalid: {}.", error.reason))
        })?;
        if !has_key.get() {
            return Err(TestFailure::invalid(
                "`apiKey` is required. The key in AZURE_OPENAI_API_KEY is sent to Azure's own hosts over https \
                 only.",
            ));
        }
        Ok(Self { model, secrets: secrets.into_inner(), server })
    }
}

async fn call_model(model: &dyn ChatModel) -> Result<redflow_contract::fact::ModelAnswer, Failure> {
    let mut transcript = Transcript::default();
    transcript.push(Arc::new(ChatMessage::new(ChatRole::User, QUESTION)));
    // An answer that is cut at the token limit is a success too.
    model.call(ModelRequest::for_text(&transcript)).await
}

impl TestFailure {
    fn invalid(error: &str) -> Self {
        Self { status: 400, code: ApiCode::BodyInvalid.as_str(), error: error.to_owned() }
    }

    fn from_model(failure: Failure, server: ServerOwner) -> Self {
        let (status, summary) = match failure.code {
            RunErrorCode::InvalidCredentials => (401, "The server refused the key"),
            RunErrorCode::ModelNotFound => (404, "The server has no such deployment"),
            RunErrorCode::RateLimit | RunErrorCode::QuotaExceeded => {
                (429, "The server received too many requests")
            }
            RunErrorCode::ProviderUnavailable => {
                (503, "The server is unavailable, or does not answer like Azure")
            }
            RunErrorCode::Timeout => (504, "The server did not answer in time"),
            _ => (502, "The server refused the request, or does not answer like Azure"),
        };
        let error = match server {
            ServerOwner::Azure => failure.message,
            ServerOwner::Other => format!("{summary}. Its answer is shown for Azure's own hosts only."),
        };
        Self { status, code: failure.code.as_str(), error }
    }

    fn response(self) -> Response {
        let Self { status, code, error } = self;
        json(status, &json!({"success": false, "error": error, "code": code, "statusCode": status}))
    }
}

#[cfg(test)]
#[path = "azure_tests.rs"]
mod tests;
