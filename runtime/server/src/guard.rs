//! The middleware that every request passes first: checks its origin, token, scope and rate.

use crate::app::App;
use crate::cors::Cors;
use crate::response::{Problem, add_security_headers};
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use redflow_access::{AuthMethod, Caller, Origins};
use redflow_contract::api::{ApiError, ProblemCode, Scope};
use redflow_contract::code::ApiCode;
use redflow_contract::route::{ROUTES, Route};
use redflow_ports::Measurement;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

/// Passes a request on, or refuses it.
pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().clone();
    let began = Instant::now();
    let cors = Cors::for_request(&app.access, &request, path.as_deref());
    let mut response = match admit(&app, &request, path.as_deref(), cors.as_ref()) {
        Ok(caller) => match cors.as_ref().and_then(|cors| cors.preflight(&request)) {
            Some(response) => response,
            None => {
                request.extensions_mut().insert(caller);
                next.run(request).await
            }
        },
        Err(problem) => {
            let ui = app.settings.access.redflow_ui.as_deref();
            if let Some(ui) = ui.filter(|_| problem.0.code == ProblemCode::Api(ApiCode::OriginRefused)) {
                let admitted = Origins::origin(ui).unwrap_or_default();
                app.refused_origins.log(request.headers(), &admitted, app.access.tokens());
            }
            problem.into_response()
        }
    };
    // The client may have sent the token in the wrong place, and the error quotes that place.
    if let Some(error) = response.extensions_mut().remove::<Arc<ApiError>>()
        && let Cow::Owned(message) = app.access.tokens().mask(&error.message)
    {
        response = Problem::from(ApiError { message, ..ApiError::clone(&error) }).into_response();
    }
    let (route, status) = (path.as_deref().unwrap_or_default(), response.status().as_u16());
    app.meter.record(Measurement::RequestAnswered { route, status, took: began.elapsed() });
    tracing::debug!(%method, route, status, "answered a request");
    add_security_headers(response.headers_mut());
    if let Some(cors) = cors {
        cors.allow_reading(response.headers_mut());
    }
    response
}

/// Authenticates the caller and checks its scope. `cors` is set for requests of the Redflow UI to its own
/// routes, or to none.
fn admit(app: &App, request: &Request, path: Option<&str>, cors: Option<&Cors>) -> Result<Caller, Problem> {
    let now = app.clock.now();
    let caller = app.access.authenticate(request.method(), request.uri(), request.headers(), now)?;
    let route = path.and_then(|path| find_route(request.method(), path));
    // A page that needs no token gets its own routes only. Even public routes are refused.
    if caller.auth_method == AuthMethod::RedflowUi
        && !(cors.is_some() && route.is_none_or(|route| route.for_redflow_ui))
    {
        return Err(Problem::new(
            ApiCode::OriginRefused,
            "Pages of the Redflow UI may use the routes of Node-RED's Admin API and of Redflow only. For other \
             routes send a token with `Authorization: Bearer TOKEN`.",
        ));
    }
    let scope = match route {
        Some(route) => route.scope,
        // Only callers that may read learn which routes do not exist.
        None => Some(Scope::Read),
    };
    if let Some(scope) = scope {
        app.access.require(&caller, scope)?;
    }
    Ok(caller)
}

fn find_route(method: &Method, path: &str) -> Option<&'static Route> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    ROUTES.iter().find(|route| route.path == path && route.method.as_str() == method)
}
