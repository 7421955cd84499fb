//! Forwards requests to the attached Node-RED: its Admin API, and paths that this sidecar does not have.
//!
//! Owns which paths are forwarded. Forwards a token that is meant for Node-RED, and never one of this
//! sidecar. The guard has authenticated the caller before, as for every request.

use crate::app::App;
use crate::response::{ApiResult, Problem, raw};
use axum::body::{Body, HttpBody as _};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use redflow_access::{AuthMethod, Caller};
use redflow_contract::api::Scope;
use redflow_contract::code::ApiCode;
use redflow_contract::route::{ROUTES, RouteId};
use redflow_node_red::{ProxyError, ProxyRequest, ProxyResponse};
use std::sync::Arc;

/// First segments of the paths that are never forwarded.
const OWN_SEGMENTS: [&str; 16] = [
    "api",
    "mcp",
    "oauth",
    "internal",
    "events",
    "observability",
    "bridge",
    "health",
    "metrics",
    "openapi.json",
    "sign-in",
    "console",
    "agent-core",
    "azure-openai",
    "chat-node",
    "redflow",
];

/// Whether a route belongs to Node-RED's Admin API.
pub(crate) fn is_admin_route(route: RouteId) -> bool {
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

/// Forwards a request whose path or method is not in the table of routes. Gives none if it is not forwarded.
pub(crate) async fn forward_unknown(app: &App, caller: &Caller, request: Request) -> Option<ApiResult> {
    let is_own = is_own_path(request.uri().path());
    match app.attached.get() {
        Some(attached) if attached.forwards && !is_own => Some(forward_request(app, caller, request).await),
        _ => None,
    }
}

fn is_own_path(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    first.is_empty() || OWN_SEGMENTS.contains(&first)
}

/// Forwards a request to Node-RED's Admin API.
pub(crate) async fn forward(State(app): State<Arc<App>>, request: Request) -> ApiResult {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else { return Err(Problem::internal()) };
    forward_request(&app, &caller, request).await
}

async fn forward_request(app: &App, caller: &Caller, request: Request) -> ApiResult {
    let Some(attached) = app.attached.get() else { return Err(Problem::internal()) };
    app.access.require(caller, required_scope(&request))?;
    let (head, body) = request.into_parts();
    if head.headers.contains_key(header::UPGRADE) {
        let text = "/comms is the only socket of Node-RED that this sidecar forwards.";
        return Err(Problem::new(ApiCode::RequestInvalid, text));
    }
    let max_bytes = app.settings.max_body_bytes;
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_large(max_bytes));
    }
    let has_body = body.size_hint().exact() != Some(0);
    let proxied = ProxyRequest {
        method: head.method,
        path: head.uri.path(),
        query: head.uri.query(),
        headers: &head.headers,
        authorization: node_red_authorization(caller, &head.headers),
        max_body_bytes: max_bytes,
    };
    let forwarded = attached.node_red.forward(proxied, has_body.then(|| body.into_data_stream())).await;
    let ProxyResponse { status, headers, body } = forwarded.map_err(|error| match error {
        ProxyError::Address => Problem::new(ApiCode::RequestInvalid, "The path has segments such as `..`."),
        ProxyError::BodyTooLarge => too_large(max_bytes),
        ProxyError::NodeRed(error) => error.into(),
    })?;
    let mut response = raw(status.as_u16(), "application/octet-stream", Body::from_stream(body));
    response.headers_mut().remove(header::CONTENT_TYPE);
    response.headers_mut().extend(headers);
    Ok(response)
}

/// The scope that a caller needs for a request to be forwarded: that of the table, or else by the method.
fn required_scope(request: &Request) -> Scope {
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

/// The `Authorization` header that is for Node-RED. A page of the Redflow UI needs no token here, so its
/// token is for Node-RED. The token of any other caller is for this sidecar.
pub(super) fn node_red_authorization<'a>(caller: &Caller, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
    headers.get(header::AUTHORIZATION).filter(|_| caller.auth_method == AuthMethod::RedflowUi)
}

fn too_large(max_bytes: usize) -> Problem {
    let text = format!("The body has more than {max_bytes} bytes, the limit for forwarded requests.");
    Problem::new(ApiCode::BodyTooLarge, text)
}

#[cfg(test)]
mod tests {
    use super::{OWN_SEGMENTS, is_admin_route, is_own_path};
    use redflow_contract::route::{ROUTES, RouteId};

    #[test]
    fn every_route_is_either_own_or_forwarded() {
        for route in ROUTES {
            let is_forwarded = is_admin_route(route.id) || matches!(route.id, RouteId::Comms);
            // Routes of Redflow whose first segment is also one of Node-RED's.
            let is_both = matches!(route.id, RouteId::CredentialFlags | RouteId::AdminObservability);
            assert!(is_forwarded != is_own_path(route.path) || is_both, "{}", route.path);
        }
        for path in ["/", "//", "/api", "/api/none", "//api/none", "/health/x", "/redflow/other"] {
            assert!(is_own_path(path), "{path}");
        }
        for path in ["/flows", "/nodes/x", "/context/global", "/apis", "/auth/token", "/red/red.js"] {
            assert!(!is_own_path(path), "{path}");
        }
        assert!(OWN_SEGMENTS.iter().all(|name| !name.contains('/')));
    }
}
