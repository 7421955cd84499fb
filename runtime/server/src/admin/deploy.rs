//! `/flows`: the whole flow, read and deployed.

use super::refusal::{Answer, Refusal};
use crate::active_flow::ActiveFlow;
use crate::answer::{Problem, bytes_of, json};
use crate::body::{self, Turn};
use crate::deploy::{Tolerance, conflict, refused};
use crate::sidecar::App;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use redflow_contract::code::ApiCode;
use redflow_contract::limits::FlowLimits;
use redflow_flow::RawFlow;
use serde_json::{Map, Value, json as value};
use std::sync::Arc;

/// How the flow is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// Not at all.
    V1,
    /// With its revision.
    V2,
}

impl Version {
    fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        match one(headers, "node-red-api-version") {
            Ok(None | Some("v1")) => Ok(Self::V1),
            Ok(Some("v2")) => Ok(Self::V2),
            Ok(Some(_)) | Err(()) => Err(Refusal::ApiVersion),
        }
    }
}

/// Where the flow comes from. Node-RED also tells by this header which nodes it stops and starts: all, those that
/// changed, or those on tabs that changed. Here a deploy stops nothing but runs whose agent is gone, and nodes that did
/// not change lose nothing, so `full`, `nodes` and `flows` are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Body,
    Shelf,
}

impl Source {
    fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        match one(headers, "node-red-deployment-type") {
            Ok(None | Some("full" | "nodes" | "flows")) => Ok(Self::Body),
            Ok(Some("reload")) => Ok(Self::Shelf),
            Ok(Some(_)) | Err(()) => {
                let text = "`Node-RED-Deployment-Type` is `full`, `nodes`, `flows` or `reload`.";
                Err(Refusal::new(ApiCode::RequestInvalid, text))
            }
        }
    }
}

/// The one value of a header, if there is one.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(only), None) => only.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

/// The whole flow. Its text is kept as it is, and not made anew for everyone who asks.
pub(crate) async fn flows(State(app): State<Arc<App>>, headers: HeaderMap) -> Answer {
    let told = app.active_flow();
    let text = match Version::of(&headers)? {
        Version::V1 => told.nodes.to_string(),
        Version::V2 => format!(r#"{{"flows":{},"rev":"{}"}}"#, told.nodes, told.revision()),
    };
    Ok(bytes_of(200, "application/json", text))
}

pub(crate) async fn deploy(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Answer {
    let version = Version::of(&headers)?;
    let told = match Source::of(&headers)? {
        Source::Shelf => reload(app).await?,
        Source::Body => {
            let (document, turn) = body::flow(&headers, body, &app.settings).await?;
            let Wanted { flow, revision } = Wanted::read(version, document)?;
            let make = move |before: &ActiveFlow, limits: &FlowLimits| {
                if revision.is_some_and(|made_from| made_from != before.revision()) {
                    return Err(conflict(before));
                }
                RawFlow::from_value(flow, limits).map_err(refused)
            };
            change(app, turn, make).await?
        }
    };
    Ok(match version {
        Version::V1 => StatusCode::NO_CONTENT.into_response(),
        Version::V2 => json(200, &value!({"rev": told.revision()})),
    })
}

/// The flow always runs: it cannot be stopped without being taken away.
pub(crate) async fn state() -> Response {
    json(200, &value!({"state": "start"}))
}

/// Puts a flow in force that is made of the one before. An agent with errors is refused, the rest runs.
pub(super) async fn change<M>(app: Arc<App>, turn: Turn, make: M) -> Result<ActiveFlow, Problem>
where
    M: FnOnce(&ActiveFlow, &FlowLimits) -> Result<RawFlow, Problem> + Send + 'static,
{
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    // What has begun is done, also when nobody waits for it any more.
    let deploying = tokio::spawn(async move {
        let _turn = turn;
        app.change(Tolerance::RefuseAgents, make).await
    });
    deploying.await.map_err(|_| Problem::internal())?
}

async fn reload(app: Arc<App>) -> Result<ActiveFlow, Problem> {
    if app.stop.is_cancelled() {
        return Err(Problem::stopping());
    }
    tokio::spawn(async move { app.reload().await }).await.map_err(|_| Problem::internal())?
}

/// What a body asks for.
struct Wanted {
    /// `{flows, credentials}`.
    flow: Value,
    /// The revision it was made from, whatever that is; none deploys over anything.
    revision: Option<Value>,
}

impl Wanted {
    fn read(version: Version, document: Value) -> Result<Self, Problem> {
        let mut wrapped = match (version, document) {
            (Version::V1, flows @ Value::Array(_)) => {
                return Ok(Self { flow: flows, revision: None });
            }
            (Version::V1, _) => {
                return Err(invalid(
                    "The body is an array of nodes, or `{flows, rev}` with `Node-RED-API-Version: v2`.",
                ));
            }
            (Version::V2, Value::Object(wrapped)) => wrapped,
            (Version::V2, _) => return Err(invalid("The body is an object: `{flows, rev}`.")),
        };
        let flows = wrapped.swap_remove("flows").filter(Value::is_array);
        let flows = flows.ok_or_else(|| invalid("`flows` is an array of nodes."))?;
        let credentials = match wrapped.swap_remove("credentials") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(own)) if own.get("$").is_none_or(|text| !text.is_string()) => own,
            Some(Value::Object(_)) => {
                let text = "`credentials` are encrypted. `redflow credentials import` takes Node-RED's credentials file.";
                return Err(invalid(text));
            }
            Some(_) => {
                return Err(invalid("`credentials` is an object: for each node its names and values."));
            }
        };
        let revision = wrapped.swap_remove("rev");
        Ok(Self { flow: value!({"flows": flows, "credentials": credentials}), revision })
    }
}

pub(super) fn invalid(text: impl Into<String>) -> Problem {
    Problem::new(ApiCode::BodyInvalid, text)
}
