//! `/flows`: reads and deploys the whole flow.

use super::error::{AdminError, AdminResult};
use crate::active_flow::ActiveFlow;
use crate::app::App;
use crate::body::{self, LARGE, RequestBody};
use crate::deploy::{self, Tolerance, revision_conflict};
use crate::redflow_ui::wires::pad_wires;
use crate::response::{Problem, json, raw};
use crate::work_slots::{BodySlot, work_on_body};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use redflow_contract::code::ApiCode;
use redflow_contract::limits::FlowLimits;
use redflow_flow::RawFlow;
use serde_json::{Map, Value, json as value};
use std::sync::Arc;

/// The version of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// A bare array of nodes.
    V1,
    /// An object with the nodes and their revision.
    V2,
}

impl Version {
    fn from_headers(headers: &HeaderMap) -> Result<Self, AdminError> {
        match single_value(headers, "node-red-api-version") {
            Ok(None | Some("v1")) => Ok(Self::V1),
            Ok(Some("v2")) => Ok(Self::V2),
            Ok(Some(_)) | Err(()) => Err(AdminError::UnknownApiVersion),
        }
    }
}

/// Where the flow comes from. In Node-RED the header also says which nodes restart: all, those that changed,
/// or those on changed tabs. Here a deploy ends only runs whose agent was removed, and unchanged nodes lose
/// nothing. So `full`, `nodes` and `flows` are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeploySource {
    Body,
    /// The stored flow is loaded again.
    Store,
}

impl DeploySource {
    fn from_headers(headers: &HeaderMap) -> Result<Self, AdminError> {
        match single_value(headers, "node-red-deployment-type") {
            Ok(None | Some("full" | "nodes" | "flows")) => Ok(Self::Body),
            Ok(Some("reload")) => Ok(Self::Store),
            Ok(Some(_)) | Err(()) => {
                let text = "`Node-RED-Deployment-Type` must be `full`, `nodes`, `flows` or `reload`.";
                Err(AdminError::new(ApiCode::RequestInvalid, text))
            }
        }
    }
}

/// The value of a header, if there is one. More than one value is an error.
fn single_value<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(only), None) => only.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

/// The whole flow. Its JSON text is stored ready, so that a request need not write it again. The Redflow UI gets
/// longer wires; the stored flow and its revision stay as they are.
pub(crate) async fn flows(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> AdminResult {
    let active = app.active_flow();
    let version = Version::from_headers(&headers)?;
    let mut nodes = Arc::clone(&active.nodes);
    if app.access.redflow_ui(&uri, &headers).is_some() {
        let pad = move || pad_wires(&nodes).into();
        nodes = if active.nodes.len() > LARGE { app.run_blocking(pad).await? } else { pad() };
    }
    let text = match version {
        Version::V1 => nodes.to_string(),
        Version::V2 => format!(r#"{{"flows":{nodes},"rev":"{}"}}"#, active.revision()),
    };
    Ok(raw(200, "application/json", text))
}

pub(crate) async fn deploy(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: RequestBody,
) -> AdminResult {
    let version = Version::from_headers(&headers)?;
    let active = match DeploySource::from_headers(&headers)? {
        DeploySource::Store => reload(app).await?,
        DeploySource::Body => {
            let (document, slot) = body::read_flow(&headers, body, &app).await?;
            // This copies the flow.
            let parse = move || DeployBody::parse(version, document);
            let (parsed, slot) = work_on_body(slot, parse).await?;
            let DeployBody { flow, revision } = parsed?;
            let make = move |before: &ActiveFlow, limits: &FlowLimits| {
                if revision.is_some_and(|revision| revision != before.revision()) {
                    return Err(revision_conflict(before));
                }
                RawFlow::from_value(flow, limits).map_err(Problem::flow_refused)
            };
            change(app, slot, make).await?
        }
    };
    Ok(match version {
        Version::V1 => StatusCode::NO_CONTENT.into_response(),
        Version::V2 => json(200, &value!({"rev": active.revision()})),
    })
}

/// The flow always runs; this sidecar cannot stop it.
pub(crate) async fn state() -> Response {
    json(200, &value!({"state": "start"}))
}

/// Deploys a flow that is made from the active one. An agent with errors is refused, the rest runs.
pub(super) async fn change<M>(app: Arc<App>, slot: BodySlot, make: M) -> Result<ActiveFlow, Problem>
where
    M: FnOnce(&ActiveFlow, &FlowLimits) -> Result<RawFlow, Problem> + Send + 'static,
{
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    // A task of its own, so that a deploy that began ends also when the client disconnects.
    let deploying = tokio::spawn(async move {
        let _slot = slot;
        deploy::change(&app, Tolerance::RefuseAgents, make).await
    });
    deploying.await.map_err(|_| Problem::internal())?
}

async fn reload(app: Arc<App>) -> Result<ActiveFlow, Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    tokio::spawn(async move { deploy::reload(&app).await }).await.map_err(|_| Problem::internal())?
}

/// The body of a deploy.
struct DeployBody {
    /// `{flows, credentials}`.
    flow: Value,
    /// The revision that the flow was made from. Without one any flow is replaced.
    revision: Option<Value>,
}

impl DeployBody {
    fn parse(version: Version, document: Value) -> Result<Self, Problem> {
        let mut wrapped = match (version, document) {
            (Version::V1, flows @ Value::Array(_)) => {
                return Ok(Self { flow: flows, revision: None });
            }
            (Version::V1, _) => {
                return Err(invalid(
                    "The body must be an array of nodes, or `{flows, rev}` with `Node-RED-API-Version: v2`.",
                ));
            }
            (Version::V2, Value::Object(wrapped)) => wrapped,
            (Version::V2, _) => return Err(invalid("The body must be an object: `{flows, rev}`.")),
        };
        let flows = wrapped.swap_remove("flows").filter(Value::is_array);
        let flows = flows.ok_or_else(|| invalid("`flows` must be an array of nodes."))?;
        let credentials = match wrapped.swap_remove("credentials") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(own)) if own.get("$").is_none_or(|text| !text.is_string()) => own,
            Some(Value::Object(_)) => {
                let text = "`credentials` are encrypted. Import Node-RED's credentials file with \
                            `redflow credentials import`.";
                return Err(invalid(text));
            }
            Some(_) => {
                return Err(invalid("`credentials` must be an object: for each node its names and values."));
            }
        };
        let revision = wrapped.swap_remove("rev");
        Ok(Self { flow: value!({"flows": flows, "credentials": credentials}), revision })
    }
}

pub(super) fn invalid(text: impl Into<String>) -> Problem {
    Problem::new(ApiCode::BodyInvalid, text)
}
