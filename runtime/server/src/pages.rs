//! The sign-in of browsers: a one-time code or a token becomes a session cookie.

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::request::{query_pairs, unknown_parameter};
use crate::response::{ApiResult, json, raw, redirect};
use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, Method, header};
use axum::response::Response;
use redflow_access::{Caller, PeerAddress};
use redflow_contract::api::Scope;
use redflow_contract::console::{Feature, Session, SignInRequest};
use std::sync::Arc;

const HTML: &str = "text/html; charset=utf-8";

/// Bytes of a body that has a token.
const MAX_SIGN_IN_BYTES: usize = 4 * 1024;

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
    headers: HeaderMap,
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
    let cookie = app.access.sign_in(code.as_deref().unwrap_or_default(), &headers, app.clock.now())?;
    app.save_sessions().await;
    // A relative address, so that it also works below another path. It has no fragment, so browsers keep theirs.
    let mut response = redirect("./");
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

pub(crate) async fn sign_in_with_token(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<PeerAddress>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let (SignInRequest { token }, _) = body::read_limited(&headers, body, &app, MAX_SIGN_IN_BYTES).await?;
    let (cookie, caller) = app.access.sign_in_with_token(&token, peer, &headers, app.clock.now())?;
    app.save_sessions().await;
    let mut response = json(200, &session_of(&caller));
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

pub(crate) async fn sign_out(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    body::expect_none(body, &app).await?;
    let cookie = app.access.sign_out(&headers);
    // A crash after the answer must not open the session again.
    app.save_sessions().await;
    let mut response = redirect("../");
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

pub(crate) async fn session(Extension(caller): Extension<Caller>) -> Response {
    json(200, &session_of(&caller))
}

fn session_of(caller: &Caller) -> Session {
    Session {
        name: caller.token_name.to_string(),
        scopes: Scope::ALL.into_iter().filter(|scope| caller.may(*scope)).collect(),
        features: Feature::ALL.to_vec(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
