//! `/api/models`: lists the deployed models, tests a model, and lists the models of its server.
//!
//! Owns which key a request may use. The keys of a deployed node go only to the address that the deployed node names,
//! because a changed address alone must not carry a key away.

use crate::active_flow::FlowBuilder;
use crate::app::App;
use crate::body::{self, RequestBody};
use crate::deployed_models::add_models;
use crate::keyed_models::{KeyedModels, StoredKeys};
use crate::model_test::ModelTester;
use crate::principal::principal;
use crate::response::{ApiResult, Problem, json, printable};
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use redflow_access::Caller;
use redflow_contract::Message;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::catalogue::lookup;
use redflow_contract::code::{ApiCode, DiagnosticCode, RunErrorCode};
use redflow_contract::deployed_model::DeployedModelList;
use redflow_contract::edge::Role;
use redflow_contract::flow::Profile;
use redflow_contract::id::{InstanceId, NodeId, NodeSummary};
use redflow_contract::model_test::ModelTestRequest;
use redflow_contract::run_error::Failure;
use redflow_contract::secret::PASSWORD_MASK;
use redflow_flow::{ProcessSecrets, RawFlow};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use url::{Origin, Url};

/// Bytes of a body.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// How long a test may take, with all its calls. The editor waits 120 s for it.
const MAX_TEST_TIME: Duration = Duration::from_secs(110);

/// The id of the node in the flow that is made of the request.
const NODE: &str = "model";

/// Properties of a node that are not about the model. A disabled node can be tested, too.
const PLACE: [&str; 7] = ["id", "z", "g", "d", "x", "y", "wires"];

/// The models of the sidecar's own flow and of the flows of Node-REDs.
pub(crate) async fn deployed(State(app): State<Arc<App>>) -> ApiResult {
    let mut list = DeployedModelList::clone(&app.active_flow().models);
    app.bridge.all().iter().for_each(|instance| add_models(&mut list, &instance.models()));
    app.run_blocking(move || json(200, &list)).await
}

pub(crate) async fn test(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let (request, _) = body::read_limited(&headers, body, &app, MAX_BODY_BYTES).await?;
    let _slot = app.work_slots.connection_test().ok_or_else(too_many_tests)?;
    Ok(json(200, &tester(&app, &caller, request)?.test(MAX_TEST_TIME).await))
}

pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let (request, _) = body::read_limited(&headers, body, &app, MAX_BODY_BYTES).await?;
    let _slot = app.work_slots.connection_test().ok_or_else(too_many_tests)?;
    let list = tester(&app, &caller, request)?.list().await;
    Ok(json(200, &list.map_err(|Failure { code, message }| problem(code, message))?))
}

fn too_many_tests() -> Problem {
    Problem::new(ApiCode::RateLimited, "Too many models are being tested. Try again later.")
}

/// An error of the model itself, with the code that a run would have.
fn problem(code: RunErrorCode, message: String) -> Problem {
    ApiError { code: ProblemCode::Run(code), message, report: None, revision: None }.into()
}

/// Builds the model of a request. The log says who calls which server: a key of the request may name a variable of the
/// environment, as in a flow that the caller may deploy.
fn tester(app: &App, caller: &Caller, request: ModelTestRequest) -> Result<ModelTester, Problem> {
    let tester = build_tester(app, request)?;
    let (by, address) = (principal(caller), tester.address().unwrap_or_default());
    tracing::info!(by = by.as_str(), address, "a model is tested");
    Ok(tester)
}

fn build_tester(app: &App, request: ModelTestRequest) -> Result<ModelTester, Problem> {
    let ModelTestRequest { type_name, config, credentials, node, instance } = request;
    if lookup(&type_name).role != Role::Model {
        let text = format!("`{}` is not a type of model. /api/catalogue lists them.", printable(&type_name));
        return Err(Problem::new(ApiCode::BodyInvalid, text));
    }
    let models = node.as_ref().and_then(|_| models_of(app, instance.as_ref()));
    let stored = node.as_ref().and_then(|node| models.as_ref()?.get(node));
    let flow_builder = &app.flow_builder;
    let build = |node: &NodeSummary, props: &Message| {
        ModelTester::new(&flow_builder.adapters, &flow_builder.env, node, props)
            .map_err(|reason| problem(RunErrorCode::ConfigInvalid, reason))
    };
    let mut config = match (config, &node) {
        (None, Some(node)) => {
            let deployed = stored.and_then(|stored| stored.models.first());
            let deployed =
                deployed.filter(|model| model.node.type_name == type_name && credentials.is_empty());
            let model = deployed.ok_or_else(|| no_such_model(node))?;
            return build(&model.node, &model.props);
        }
        (config, _) => config.unwrap_or_default(),
    };
    PLACE.iter().for_each(|name| drop(config.remove(*name)));
    config.remove("credentials");
    // An editor shows a stored key as this mask.
    let typed: Map<String, Value> = credentials
        .into_iter()
        .filter(|(_, key)| !key.trim().is_empty() && key != PASSWORD_MASK)
        .map(|(name, key)| (name, Value::from(key)))
        .collect();
    let own = NodeSummary { id: NODE.into(), type_name, name: String::new() };
    let mut props = resolve(flow_builder, &own, with_keys(config, typed.clone()))?;
    let Some(StoredKeys { keys, models }) = stored else { return build(&own, &props) };
    let mut keys = keys.clone();
    keys.retain(|name, _| !typed.contains_key(name));
    if keys.is_empty() {
        return build(&own, &props);
    }
    let all = props.entry("credentials").or_insert_with(|| json!({}));
    if let Some(all) = all.as_object_mut() {
        all.extend(keys);
    }
    let tester = build(&own, &props)?;
    let origin = |tester: &ModelTester| -> Option<Origin> {
        Some(Url::parse(&tester.address()?).ok()?.origin()).filter(Origin::is_tuple)
    };
    let deployed = models.iter().filter(|model| model.node.type_name == own.type_name);
    let mut allowed = deployed.filter_map(|model| origin(&build(&model.node, &model.props).ok()?)).peekable();
    let first = allowed.peek().cloned();
    if !allowed.any(|allowed| Some(allowed) == origin(&tester)) {
        return Err(key_not_sent(first));
    }
    Ok(tester)
}

fn no_such_model(node: &NodeId) -> Problem {
    let node = printable(node.as_str());
    let text = format!(
        "There is no deployed model `{node}` of this type. /api/models lists them. Give `config` with `credentials`, or to \
         test another model."
    );
    Problem::new(ApiCode::NotFound, text)
}

fn with_keys(mut config: Message, keys: Map<String, Value>) -> Message {
    if !keys.is_empty() {
        config.insert("credentials".to_owned(), Value::Object(keys));
    }
    config
}

/// The keys of a Node-RED, or of the sidecar's own flow.
fn models_of(app: &App, instance: Option<&InstanceId>) -> Option<Arc<KeyedModels>> {
    match instance.filter(|id| **id != InstanceId::local()) {
        None => Some(app.active_flow().keyed_models),
        Some(id) => app.bridge.all().iter().find(|known| known.id == *id).map(|known| known.keyed_models()),
    }
}

fn key_not_sent(allowed: Option<Origin>) -> Problem {
    let place = allowed.map(|origin| format!(", which is for {}", origin.ascii_serialization()));
    let text = format!(
        "The key of the deployed node{} was not sent to another address. Type the key again, or deploy the node with \
         the new address first.",
        place.unwrap_or_default()
    );
    Problem::new(ApiCode::KeyNotSent, text)
}

/// Checks and resolves the properties as for a deployed node.
fn resolve(flow_builder: &FlowBuilder, node: &NodeSummary, mut config: Message) -> Result<Message, Problem> {
    config.insert("id".to_owned(), json!(node.id));
    config.insert("type".to_owned(), json!(node.type_name));
    config.insert("z".to_owned(), json!("tab"));
    let flow = json!([{"id": "tab", "type": "tab"}, config]);
    let checked = RawFlow::from_value(flow, &flow_builder.settings.flow_limits)
        .and_then(|raw| flow_builder.check(raw, Profile::Strict));
    let report = match &checked {
        Ok(checked) => &checked.report,
        Err(report) => report,
    };
    let wrong = report.diagnostics.iter().find(|found| found.code == DiagnosticCode::ConfigInvalid);
    if let Some(wrong) = wrong {
        return Err(problem(RunErrorCode::ConfigInvalid, wrong.message.clone()));
    }
    let checked = checked.map_err(Problem::flow_refused)?;
    let ix = checked.flow.find(NODE).ok_or_else(Problem::internal)?;
    Ok(checked.flow.resolved_props(ix, &flow_builder.env, ProcessSecrets::InSecretProperties))
}
