//! Which handler answers which route of the contract's table.

use crate::admin::{comms, deploy, info as admin, inject, tabs};
use crate::answer::{Answer, Problem};
use crate::redflow_ui::{azure, chat, observability, storage};
use crate::sidecar::App;
use crate::{attached, bridge, flows, guard, info, pages, run_events, runs, socket, starts};
use axum::Router;
use axum::extract::{Extension, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::routing::{MethodRouter, delete, get, post, put};
use redflow_access::Caller;
use redflow_contract::code::ApiCode;
use redflow_contract::route::{Method, ROUTES, RouteId};
use std::sync::Arc;

/// Every route, behind the guard.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let forwards = app.beside.get().is_some_and(|beside| beside.forwards);
    let mut router = Router::new();
    for route in ROUTES {
        router = router.route(route.path, handler(route.id, forwards));
    }
    router
        .route("/api/flows/check", get(flows::check_tab))
        .fallback(unknown)
        .method_not_allowed_fallback(other_method)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(app), guard::guard))
        .with_state(Arc::clone(app))
}

/// `forwards` says that what is Node-RED's goes on to one.
fn handler(route: RouteId, forwards: bool) -> MethodRouter<Arc<App>> {
    match route {
        RouteId::Comms if forwards => get(attached::comms),
        its if forwards && attached::is_node_reds(its) => forwarded(its),
        RouteId::Health => get(info::health),
        RouteId::HealthLive => get(info::live),
        RouteId::HealthReady => get(info::ready),
        RouteId::Metrics => get(info::metrics),
        RouteId::OpenApi => get(info::openapi),
        RouteId::Events => get(socket::events),
        RouteId::Bridge => get(bridge::bridge),
        RouteId::Instances => get(bridge::list),
        RouteId::Home => get(pages::home),
        RouteId::SignIn => get(pages::sign_in),
        RouteId::SignInCodes => post(pages::sign_in_codes),
        RouteId::SignOut => post(pages::sign_out),
        RouteId::Flows => get(flows::list),
        RouteId::Flow => get(flows::one),
        RouteId::Check => post(flows::check),
        RouteId::Deployment => get(flows::deployment),
        RouteId::Deploy => post(flows::deploy),
        RouteId::StartRun => post(starts::start),
        RouteId::Runs => get(runs::list),
        RouteId::Run => get(runs::one),
        RouteId::RunEvents => get(run_events::events),
        RouteId::RunJournal => get(runs::journal),
        RouteId::CancelRun => post(runs::cancel),
        RouteId::ResolveRun => post(runs::resolve),
        RouteId::ReplayRun => post(runs::replay),
        RouteId::Catalogue => get(info::catalogue),
        RouteId::Edges => get(info::edges),
        RouteId::Codes => get(info::codes),
        RouteId::Code => get(info::code),
        RouteId::Beside => get(attached::beside),
        RouteId::AdminFlows => get(deploy::flows),
        RouteId::AdminDeploy => post(deploy::deploy),
        RouteId::AdminFlowsState => get(deploy::state),
        RouteId::AdminFlow => get(tabs::one),
        RouteId::AdminAddFlow => post(tabs::add),
        RouteId::AdminPutFlow => put(tabs::put),
        RouteId::AdminDeleteFlow => delete(tabs::delete),
        RouteId::AdminNodes => get(admin::nodes),
        RouteId::AdminSettings => get(admin::settings),
        RouteId::AdminDiagnostics => get(admin::diagnostics),
        RouteId::AdminInject => post(inject::inject),
        RouteId::Comms => get(comms::comms),
        RouteId::Observability => get(observability::observability),
        RouteId::ChatSend => post(chat::send),
        RouteId::ChatHistory => get(chat::history),
        RouteId::ChatClear => post(chat::clear),
        RouteId::AgentSchema => get(storage::schema),
        RouteId::NodeCredentials => get(storage::node_credentials),
        RouteId::CredentialFlags => get(storage::credential_flags),
        RouteId::Storage => get(storage::all),
        RouteId::StoragePut => post(storage::put),
        RouteId::StorageItem => get(storage::item),
        RouteId::StorageDelete => delete(storage::delete),
        RouteId::AzureTest => post(azure::test),
    }
}

/// One that goes on to Node-RED.
fn forwarded(route: RouteId) -> MethodRouter<Arc<App>> {
    let row = ROUTES.iter().find(|row| row.id == route);
    match row.map_or(Method::Get, |row| row.method) {
        Method::Get => get(attached::forward),
        Method::Post => post(attached::forward),
        Method::Put => put(attached::forward),
        Method::Delete => delete(attached::forward),
    }
}

/// The part of an address that varies. The library's own would refuse what is no text without a code.
pub(crate) struct Path(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Path {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = axum::extract::Path::<String>::from_request_parts(parts, state).await;
        found.map(|axum::extract::Path(part)| Self(part)).map_err(|_| {
            Problem::new(ApiCode::RequestInvalid, "The address stands for bytes that are no UTF-8 text.")
        })
    }
}

async fn unknown(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answer {
    attached::unknown(&app, &caller, request).await.unwrap_or_else(|()| {
        Err(Problem::new(
            ApiCode::RouteUnknown,
            "There is nothing at this address; /openapi.json lists what there is.",
        ))
    })
}

async fn other_method(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Answer {
    attached::unknown(&app, &caller, request).await.unwrap_or_else(|()| {
        let text = "This address does not take this method; see /openapi.json.";
        Err(Problem::new(ApiCode::MethodRefused, text))
    })
}
