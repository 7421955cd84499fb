//! The first thing every request meets: may it come in, and may it do this?

use crate::answer::{Problem, harden};
use crate::sidecar::App;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use redflow_contract::api::Scope;
use redflow_contract::route::{ROUTES, Route};
use redflow_door::Caller;
use redflow_ports::Measure;
use std::sync::Arc;
use std::time::Instant;

/// Lets a request through, or answers it.
pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().clone();
    let began = Instant::now();
    let answer = match admit(&app, &request, path.as_deref()) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let mut answer = answer;
    let (route, status) = (path.as_deref().unwrap_or_default(), answer.status().as_u16());
    app.meter.record(Measure::Answered { route, status, took: began.elapsed() });
    tracing::debug!(%method, route, status, "answered");
    harden(answer.headers_mut());
    answer
}

fn admit(app: &App, request: &Request, path: Option<&str>) -> Result<Caller, Problem> {
    let now = app.clock.now();
    let caller = app.door.admit(request.method(), request.uri(), request.headers(), now)?;
    let scope = match path.and_then(|path| find(request.method(), path)) {
        Some(route) => route.scope,
        // What is not there is nobody's business who may not look.
        None => Some(Scope::Read),
    };
    if let Some(scope) = scope {
        app.door.require(&caller, scope)?;
    }
    Ok(caller)
}

fn find(method: &Method, path: &str) -> Option<&'static Route> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    ROUTES.iter().find(|route| route.path == path && route.method.as_str() == method)
}
