//! The first thing every request meets: may it come in, and may it do this?
//!
//! Owns what the operator is told of pages that may not: each origin once, and not many.

use crate::answer::{Problem, harden};
use crate::body::printable;
use crate::cors::Cors;
use crate::sidecar::App;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use redflow_access::{AuthMethod, Caller, Origins};
use redflow_contract::api::{ProblemCode, Scope};
use redflow_contract::code::ApiCode;
use redflow_contract::route::{ROUTES, Route};
use redflow_ports::Measurement;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Origins that the operator is told of.
const MAX_TOLD: usize = 16;

/// The origins that were refused where pages of the Redflow UI are expected: most likely that UI, at another address.
#[derive(Default)]
pub(crate) struct RefusedOrigins {
    told: Mutex<BTreeSet<String>>,
}

impl RefusedOrigins {
    /// Says so, once for each.
    fn tell(&self, headers: &HeaderMap, admitted: &str) {
        for origin in headers.get_all(header::ORIGIN) {
            let origin = printable(&String::from_utf8_lossy(origin.as_bytes()));
            // Its own pages may be refused as well, at other routes: that is another matter.
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if origin != admitted && told.len() < MAX_TOLD && told.insert(origin.clone()) {
                tracing::warn!(
                    code = ApiCode::OriginRefused.as_str(),
                    origin,
                    admitted,
                    "pages of this origin are refused; those of the Redflow UI are expected at another one, as \
                     --redflow-ui says"
                );
            }
        }
    }
}

/// Lets a request through, or answers it.
pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().clone();
    let began = Instant::now();
    let cors = Cors::of(&app.access, &request, path.as_deref());
    let mut answer = match admit(&app, &request, path.as_deref(), cors.is_some()) {
        Ok(caller) => match cors.as_ref().and_then(|cors| cors.preflight(&request)) {
            Some(answer) => answer,
            None => {
                request.extensions_mut().insert(caller);
                next.run(request).await
            }
        },
        Err(problem) => {
            let ui = app.settings.access.redflow_ui.as_deref();
            if let Some(ui) = ui.filter(|_| problem.0.code == ProblemCode::Api(ApiCode::OriginRefused)) {
                app.refused_origins.tell(request.headers(), &Origins::origin(ui).unwrap_or_default());
            }
            problem.into_response()
        }
    };
    let (route, status) = (path.as_deref().unwrap_or_default(), answer.status().as_u16());
    app.meter.record(Measurement::Answered { route, status, took: began.elapsed() });
    tracing::debug!(%method, route, status, "answered");
    harden(answer.headers_mut());
    if let Some(cors) = cors {
        cors.open(answer.headers_mut());
    }
    answer
}

/// `for_redflow_ui` says that the request comes from the Redflow UI and goes to an address of its own, or to none.
fn admit(app: &App, request: &Request, path: Option<&str>, for_redflow_ui: bool) -> Result<Caller, Problem> {
    let now = app.clock.now();
    let caller = app.access.authenticate(request.method(), request.uri(), request.headers(), now)?;
    let route = path.and_then(|path| find(request.method(), path));
    // Whoever is let in without a token is let in nowhere else, not even where everybody is.
    if caller.by == AuthMethod::RedflowUi
        && !(for_redflow_ui && route.is_none_or(|route| route.for_redflow_ui))
    {
        return Err(Problem::new(
            ApiCode::OriginRefused,
            "Pages of the Redflow UI may use the routes of Node-RED's Admin API and of Redflow, and no others: send a \
             token with `Authorization: Bearer TOKEN`.",
        ));
    }
    let scope = match route {
        Some(route) => route.scope,
        // What is not there is nobody's business who may not look.
        None => Some(Scope::Read),
    };
    if let Some(scope) = scope {
        app.access.require(&caller, scope)?;
    }
    Ok(caller)
}

fn find(method: &Method, path: &str) -> Option<&'static Route> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    ROUTES.iter().find(|route| route.path == path && route.method.as_str() == method)
}
