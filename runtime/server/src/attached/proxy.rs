//! Requests that go on to Node-RED: the Admin API, and addresses that nobody here knows.
//!
//! Owns which addresses are whose, and what of a caller's token goes on: one that was brought for Node-RED, never one
//! of ours. Who may come in was decided before, as for every request.

use crate::answer::{Answer, Problem, bytes_of};
use crate::sidecar::App;
use axum::body::{Body, HttpBody as _};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use redflow_access::{AuthMethod, Caller};
use redflow_contract::api::Scope;
use redflow_contract::code::ApiCode;
use redflow_contract::route::{ROUTES, RouteId};
use redflow_node_red::{ProxyError, ProxyRequest, ProxyResponse};
use std::sync::Arc;

/// What stays ours whatever comes after it.
const OURS: [&str; 12] = [
    "api",
    "events",
    "observability",
    "bridge",
    "health",
    "metrics",
    "openapi.json",
    "sign-in",
    "agent-core",
    "azure-openai",
    "chat-node",
    "redflow",
];

/// Whether a route is one of Node-RED's own, which goes on to it where there is one.
pub(crate) fn is_node_reds(route: RouteId) -> bool {
    matches!(
        route,
        RouteId::AdminFlows
            | RouteId::AdminDeploy
            | RouteId::AdminFlowsState
            | RouteId::AdminFlow
            | RouteId::AdminAddFlow
            | RouteId::AdminPutFlow
            | RouteId::AdminDeleteFlow
            | RouteId::AdminNodes
            | RouteId::AdminSettings
            | RouteId::AdminDiagnostics
            | RouteId::AdminInject
    )
}

/// A request at an address that is not in our table, or asked as it does not say: it goes on, unless the address is ours.
/// Gives the request back if so.
pub(crate) async fn unknown(app: &App, caller: &Caller, request: Request) -> Result<Answer, ()> {
    let is_ours = is_ours(request.uri().path());
    match app.beside.get() {
        Some(beside) if beside.forwards && !is_ours => Ok(go_on(app, caller, request).await),
        _ => Err(()),
    }
}

fn is_ours(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    first.is_empty() || OURS.contains(&first)
}

/// A request at an address of Node-RED's Admin API.
pub(crate) async fn forward(State(app): State<Arc<App>>, request: Request) -> Answer {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else { return Err(Problem::internal()) };
    go_on(&app, &caller, request).await
}

async fn go_on(app: &App, caller: &Caller, request: Request) -> Answer {
    let Some(beside) = app.beside.get() else { return Err(Problem::internal()) };
    app.access.require(caller, needed(&request))?;
    let (head, body) = request.into_parts();
    if head.headers.contains_key(header::UPGRADE) {
        let text = "Of Node-RED's sockets /comms goes on from here, and no other.";
        return Err(Problem::new(ApiCode::RequestInvalid, text));
    }
    let most = app.settings.max_body_bytes;
    if body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let has_body = body.size_hint().exact() != Some(0);
    let asked = ProxyRequest {
        method: head.method,
        path: head.uri.path(),
        query: head.uri.query(),
        headers: &head.headers,
        authorization: for_node_red(caller, &head.headers),
        max_body_bytes: most,
    };
    let forwarded = beside.node_red.forward(asked, has_body.then(|| body.into_data_stream())).await;
    let ProxyResponse { status, headers, body } = forwarded.map_err(|refusal| match refusal {
        ProxyError::Address => {
            Problem::new(ApiCode::RequestInvalid, "The address has parts such as `..` that lead elsewhere.")
        }
        ProxyError::BodyTooLarge => too_large(most),
        ProxyError::NodeRed(error) => error.into(),
    })?;
    let mut answer = bytes_of(status.as_u16(), "application/octet-stream", Body::from_stream(body));
    answer.headers_mut().remove(header::CONTENT_TYPE);
    answer.headers_mut().extend(headers);
    Ok(answer)
}

/// What a caller must be allowed to have a request go on. What is in our table is judged by it before.
fn needed(request: &Request) -> Scope {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let known = ROUTES
        .iter()
        .find(|route| Some(route.path) == path && route.method.as_str() == request.method().as_str());
    match known.and_then(|route| route.scope) {
        Some(scope) => scope,
        None if matches!(*request.method(), Method::GET | Method::HEAD) => Scope::Read,
        None => Scope::Deploy,
    }
}

/// What a caller brought for Node-RED: a page of the Redflow UI needs no token here, so one that it sends is Node-RED's.
/// Everybody else's is ours.
pub(super) fn for_node_red<'a>(caller: &Caller, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
    headers.get(header::AUTHORIZATION).filter(|_| caller.by == AuthMethod::RedflowUi)
}

fn too_large(most: usize) -> Problem {
    let text = format!("The body has more than {most} bytes, which is what goes on to Node-RED.");
    Problem::new(ApiCode::BodyTooLarge, text)
}

#[cfg(test)]
mod tests {
    use super::{OURS, is_node_reds, is_ours};
    use redflow_contract::route::{ROUTES, RouteId};

    #[test]
    fn every_route_of_the_table_is_ours_or_node_reds() {
        for route in ROUTES {
            let is_its = is_node_reds(route.id) || matches!(route.id, RouteId::Comms);
            // Redflow's own, at an address that Node-RED uses for something else.
            let is_both = route.id == RouteId::CredentialFlags;
            assert!(is_its != is_ours(route.path) || is_both, "{}", route.path);
        }
        for path in ["/", "//", "/api", "/api/none", "//api/none", "/health/x", "/redflow/other"] {
            assert!(is_ours(path), "{path}");
        }
        for path in ["/flows", "/nodes/x", "/context/global", "/apis", "/auth/token", "/red/red.js"] {
            assert!(!is_ours(path), "{path}");
        }
        assert!(OURS.iter().all(|name| !name.contains('/')));
    }
}
