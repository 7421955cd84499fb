//! The home page, and the sign-in of browsers: a one-time code becomes a session cookie.

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::request::{query_pairs, unknown_parameter};
use crate::response::{ApiResult, json, raw, redirect};
use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use redflow_access::Caller;
use redflow_contract::api::Scope;
use std::sync::Arc;

const HTML: &str = "text/html; charset=utf-8";

pub(crate) async fn sign_in_codes(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    body: RequestBody,
) -> ApiResult {
    body::expect_none(body, &app).await?;
    Ok(json(200, &app.access.sign_in_code(&caller, app.clock.now())?))
}

pub(crate) async fn sign_in(
    State(app): State<Arc<App>>,
    method: Method,
    RawQuery(query): RawQuery,
) -> ApiResult {
    // Programs that only look at a link, such as chats and mail filters, must not spend its code.
    if method == Method::HEAD {
        return Ok(raw(200, HTML, Body::empty()));
    }
    let mut code = None;
    for (name, value) in query_pairs(query.as_deref()) {
        match name.as_str() {
            "code" => code = Some(value),
            other => return Err(unknown_parameter(other)),
        }
    }
    let cookie = app.access.sign_in(code.as_deref().unwrap_or_default(), app.clock.now())?;
    Ok(with_cookie(cookie))
}

pub(crate) async fn sign_out(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    body::expect_none(body, &app).await?;
    Ok(with_cookie(app.access.sign_out(&headers)))
}

fn with_cookie(cookie: HeaderValue) -> Response {
    let mut response = redirect("/");
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    response
}

pub(crate) async fn home(State(app): State<Arc<App>>, Extension(caller): Extension<Caller>) -> Response {
    let signed_in = app.access.require(&caller, Scope::Read).is_ok();
    let active = app.active_flow();
    let state = if signed_in {
        format!(
            "<p>You are signed in. The active flow has {} and {}.</p>\
             <p><a href=\"/api/flows\">flows</a> · <a href=\"/api/runs\">runs</a> · \
             <a href=\"/openapi.json\">API description</a> · <a href=\"/metrics\">metrics</a></p>\
             <form method=\"post\" action=\"/api/sign-out\"><button>Sign out</button></form>",
            count(active.list.flows.len(), "tab"),
            count(active.agents().count(), "agent"),
        )
    } else {
        "<p>You are not signed in. Run <code>redflow token --browser</code> on the machine of the sidecar and open \
         the address that it prints.</p>"
            .to_owned()
    };
    let version = env!("CARGO_PKG_VERSION");
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Redflow Runtime</title>\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem;\
         color:#222;background:#fff}}a{{color:#8f0000}}code{{background:#eee;padding:.1em .3em}}</style>\
         <h1>Redflow Runtime</h1><p>Version {version} is running.</p>{state}</html>"
    );
    raw(200, HTML, page)
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
