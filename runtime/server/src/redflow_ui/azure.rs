//! `/azure-openai/test-connection`: one small call with what the UI has.
//!
//! Owns the words and the status the UI reads. The call is made by the same adapter as those of agents, under stricter
//! rules: the caller names the address. So the environment's key goes to Azure alone, and what anybody else answers is
//! not told. The key is in no answer and no log.

use super::masked::MASK;
use crate::active_flow::FlowBuilder;
use crate::answer::{Answer, json};
use crate::body;
use crate::sidecar::App;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use redflow_contract::Message;
use redflow_contract::azure::is_azure_host;
use redflow_contract::code::{ApiCode, RunErrorCode};
use redflow_contract::id::{InstanceId, NodeRef, NodeSummary};
use redflow_contract::limits::RunLimits;
use redflow_contract::plan::AgentSpec;
use redflow_contract::run_error::Failure;
use redflow_contract::scrub::Scrubber;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_ports::{AnswerKind, ChatModel, ModelRequest, NodeConfig, ToolChoice};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;
use url::Url;

const TYPE: &str = "model.azure.openai";

/// What the model is asked, and how much it may say.
const QUESTION: &str = "This is a test of the connection. Answer with OK.";
const MAX_TOKENS: u32 = 10;
const TIMEOUT_MS: u64 = 10_000;

/// Bytes of a body.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Tests that are made at the same time, whoever asks for them.
static TESTS: Semaphore = Semaphore::const_new(4);

/// What the UI sends. It holds a key, so nobody can print it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Connection {
    #[serde(default)]
    endpoint: Option<String>,
    #[serde(default)]
    deployment: Option<String>,
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    api_key: Option<String>,
}

/// A model to try, and the secrets that nobody is to read.
struct Trial {
    model: Arc<dyn ChatModel>,
    secrets: Scrubber,
    who: Who,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Azure,
    /// It may be any service of this machine or of the network around it: nobody gets to read there by this.
    Other,
}

impl Who {
    /// Parsed as the adapter does it.
    fn at(endpoint: &str) -> Self {
        let is_azure = |url: &Url| url.scheme() == "https" && url.host_str().is_some_and(is_azure_host);
        if Url::parse(endpoint.trim()).as_ref().is_ok_and(is_azure) { Self::Azure } else { Self::Other }
    }
}

/// Why nothing came of it.
struct Refusal {
    status: u16,
    code: &'static str,
    error: String,
}

pub(crate) async fn test(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Answer {
    let (connection, _) = body::within(&headers, body, &app.settings, MAX_BODY_BYTES).await?;
    let Ok(_place) = TESTS.try_acquire() else {
        let error = "Other connections are being tested; try again when they are done.".to_owned();
        return Ok(Refusal { status: 429, code: ApiCode::RateLimited.as_str(), error }.answer());
    };
    Ok(match attempt(&app.flow_builder, connection).await {
        Ok(answer) => answer,
        Err(refusal) => refusal.answer(),
    })
}

async fn attempt(flow_builder: &FlowBuilder, connection: Connection) -> Result<Response, Refusal> {
    let deployment = connection.deployment.clone();
    let Trial { model, secrets, who } = Trial::of(flow_builder, connection)?;
    let since = Instant::now();
    let answer = ask(&*model).await;
    let duration_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    let answer = answer.map_err(|mut failure| {
        secrets.failure(&mut failure);
        Refusal::of(failure, who)
    })?;
    let mut metadata = json!({"deployment": deployment, "durationMs": duration_ms});
    if let Some(usage) = answer.usage {
        metadata["promptTokens"] = Value::from(usage.input_tokens);
        metadata["completionTokens"] = Value::from(usage.output_tokens);
        metadata["totalTokens"] = Value::from(usage.input_tokens.saturating_add(usage.output_tokens));
    }
    if let Some(mut model) = answer.model.filter(|_| who == Who::Azure) {
        secrets.text(&mut model);
        metadata["model"] = Value::from(model);
    }
    Ok(json(200, &json!({"success": true, "message": "Connection successful", "metadata": metadata})))
}

impl Trial {
    fn of(flow_builder: &FlowBuilder, connection: Connection) -> Result<Self, Refusal> {
        let Connection { endpoint, deployment, api_version, api_key } = connection;
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let (Some(endpoint), Some(deployment), Some(version)) =
            (given(endpoint), given(deployment), given(api_version))
        else {
            return Err(Refusal::bad("`endpoint`, `deployment` and `apiVersion` are needed."));
        };
        let who = Who::at(&endpoint);
        let mut props = Message::new();
        for (name, value) in [("endpoint", endpoint), ("deployment", deployment), ("apiVersion", version)] {
            props.insert(name.to_owned(), Value::from(value));
        }
        props.insert("maxTokens".to_owned(), Value::from(MAX_TOKENS));
        props.insert("timeoutMs".to_owned(), Value::from(TIMEOUT_MS));
        props.insert("maxRetries".to_owned(), Value::from(0));
        if let Some(key) = given(api_key).filter(|key| key != MASK) {
            props.insert("credentials".to_owned(), json!({"apiKey": key}));
        }
        let node = NodeSummary { id: TYPE.into(), type_name: TYPE.to_owned(), name: String::new() };
        let (secrets, has_key) = (RefCell::new(Scrubber::default()), Cell::new(false));
        let takes = |secret: &str| {
            has_key.set(true);
            secrets.borrow_mut().add(secret);
        };
        let env = |name: &str| (flow_builder.env)(name).filter(|_| who == Who::Azure);
        let config = NodeConfig { node: &node, props: &props, env: &env, takes: &takes };
        let Some(build) = flow_builder.adapters.models.get(TYPE) else {
            return Err(Refusal::bad("This build cannot run models of Azure."));
        };
        let model = build(config)
            .map_err(|error| Refusal::bad(&format!("The connection cannot be made: {}.", error.reason)))?;
        if !has_key.get() {
            return Err(Refusal::bad(
                "`apiKey` is needed: send it. The one in AZURE_OPENAI_API_KEY goes to Azure's own hosts over https, and \
                 to no other address.",
            ));
        }
        Ok(Self { model, secrets: secrets.into_inner(), who })
    }
}

async fn ask(model: &dyn ChatModel) -> Result<redflow_contract::fact::ModelAnswer, Failure> {
    let spec = AgentSpec {
        agent: NodeRef { instance: InstanceId::local(), node_id: TYPE.into() },
        type_name: "agent-core".to_owned(),
        name: String::new(),
        max_iterations: 1,
        tools: Vec::new(),
        stop_conditions: Vec::new(),
        debug: false,
        timeout_ms: TIMEOUT_MS,
        memory: false,
        model_response_wired: false,
        limits: RunLimits::default(),
    };
    let mut transcript = Transcript::default();
    transcript.push(Arc::new(ChatMessage::new(ChatRole::User, QUESTION)));
    let answer_kind = AnswerKind::Reply(ToolChoice::None);
    // An answer that is cut off after so few tokens is an answer.
    model
        .call(ModelRequest { iteration: 1, transcript: &transcript, spec: &spec, answer_kind, deltas: None })
        .await
}

impl Refusal {
    /// What was sent cannot be tried.
    fn bad(error: &str) -> Self {
        Self { status: 400, code: ApiCode::BodyInvalid.as_str(), error: error.to_owned() }
    }

    fn of(failure: Failure, who: Who) -> Self {
        let (status, ours) = match failure.code {
            RunErrorCode::InvalidCredentials => (401, "The key was refused there"),
            RunErrorCode::ModelNotFound => (404, "There is no such deployment"),
            RunErrorCode::RateLimit | RunErrorCode::QuotaExceeded => {
                (429, "There were too many requests there")
            }
            RunErrorCode::ProviderUnavailable => {
                (503, "Nobody is there, or somebody who does not answer as Azure does")
            }
            RunErrorCode::Timeout => (504, "There was no answer in time"),
            _ => (502, "The request was refused there, or its answer is not one of Azure's"),
        };
        let error = match who {
            Who::Azure => failure.message,
            Who::Other => format!("{ours}. What was said is told of Azure's own hosts only."),
        };
        Self { status, code: failure.code.as_str(), error }
    }

    fn answer(self) -> Response {
        let Self { status, code, error } = self;
        json(status, &json!({"success": false, "error": error, "code": code, "statusCode": status}))
    }
}

#[cfg(test)]
#[path = "azure_tests.rs"]
mod tests;
