//! `/api/mcp`: the MCP servers whose tools agents use, the approval of their tools, and sign-ins at their issuers.

use crate::app::App;
use crate::body::{self, RequestBody};
use crate::principal::principal;
use crate::request::Path;
use crate::response::{ApiResult, Problem, json, printable, raw};
use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use redflow_access::Caller;
use redflow_contract::api::ApiError;
use redflow_contract::code::ApiCode;
use redflow_contract::mcp::{McpPinRequest, McpServerList};
use redflow_contract::secret::mask_secrets;
use redflow_ports::{McpAnswer, McpServers};
use std::sync::Arc;

/// The path that issuers send people back to.
const CALLBACK: &str = "/oauth/callback";

/// Sign-ins that end at the same time. The route needs no token.
pub(crate) const MAX_CALLBACKS: usize = 4;

/// Bytes of the query of a callback.
const MAX_CALLBACK_BYTES: usize = 8 * 1024;

/// A page without any text of a request.
macro_rules! page {
    ($title:literal, $text:literal) => {
        concat!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>",
            $title,
            "</title><style>body{font:16px system-ui;margin:4em auto;max-width:32em}</style><h1>",
            $title,
            "</h1><p>",
            $text,
            "</p></html>\n"
        )
    };
}

const SIGNED_IN: &str = page!("Signed in", "You are signed in. You can close this window.");

const NOT_SIGNED_IN: &str = page!(
    "Not signed in",
    "The sign-in has failed. Begin again with <code>redflow mcp login</code>, or on the page MCP of the console. The \
     log of the sidecar has the reason."
);

pub(crate) async fn list(State(app): State<Arc<App>>) -> ApiResult {
    let servers = app.tool_definitions.registry.mcp().map_or_else(McpServerList::default, |mcp| mcp.list());
    Ok(json(200, &servers))
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(name): Path) -> ApiResult {
    let detail = finish(&app, servers(&app, &name)?.show(&name)).await?;
    Ok(json(200, &detail))
}

pub(crate) async fn connect(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    body: RequestBody,
) -> ApiResult {
    body::expect_none(body, &app).await?;
    let mcp = servers(&app, &name)?;
    log(&caller, &name, "connects to an MCP server");
    let detail = finish(&app, mcp.connect(&name)).await?;
    Ok(json(200, &detail))
}

pub(crate) async fn pin(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    let request: McpPinRequest = body::read_message(&headers, body, &app).await?;
    let mcp = servers(&app, &name)?;
    log(&caller, &name, "approves tools of an MCP server");
    let detail = finish(&app, mcp.pin(&name, request)).await?;
    Ok(json(200, &detail))
}

pub(crate) async fn login(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    headers: HeaderMap,
    body: RequestBody,
) -> ApiResult {
    body::expect_none(body, &app).await?;
    let (mcp, redirect) = (servers(&app, &name)?, callback_address(&app, &headers));
    log(&caller, &name, "begins a sign-in at the issuer of an MCP server");
    let login = finish(&app, mcp.login(&name, &redirect)).await?;
    Ok(json(200, &login))
}

pub(crate) async fn logout(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path,
    body: RequestBody,
) -> ApiResult {
    body::expect_none(body, &app).await?;
    let mcp = servers(&app, &name)?;
    log(&caller, &name, "removes the tokens of an MCP server");
    finish(&app, mcp.logout(&name)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The end of a sign-in. It needs no token: a browser comes from the issuer, and the state in the query proves that
/// the sign-in began here.
pub(crate) async fn callback(
    State(app): State<Arc<App>>,
    method: Method,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> ApiResult {
    // Programs that only look at a link must not spend its code.
    if method == Method::HEAD {
        return Ok(html(200, ""));
    }
    let query = query.unwrap_or_default();
    if query.len() > MAX_CALLBACK_BYTES {
        return Ok(html(400, NOT_SIGNED_IN));
    }
    let Some(mcp) = app.tool_definitions.registry.mcp() else { return Ok(html(404, NOT_SIGNED_IN)) };
    let Ok(_permit) = app.oauth_callbacks.try_acquire() else {
        let text =
            format!("{MAX_CALLBACKS} sign-ins end at this moment, which is the limit. Load the page again.");
        return Err(Problem::new(ApiCode::TooManyConnections, text));
    };
    let address = format!("{}?{query}", callback_address(&app, &headers));
    match finish(&app, mcp.finish_login(&address)).await {
        Ok(name) => {
            tracing::info!(server = printable(&name), "signed in at the issuer of an MCP server");
            Ok(html(200, SIGNED_IN))
        }
        Err(Problem(error)) => {
            let (code, reason) = (error.code.as_str(), printable(&error.message));
            tracing::warn!(code, "a sign-in at the issuer of an MCP server failed: {reason}");
            Ok(html(error.code.status(), NOT_SIGNED_IN))
        }
    }
}

fn html(status: u16, text: &'static str) -> Response {
    raw(status, "text/html; charset=utf-8", Body::from(text))
}

/// The address of the callback, as the caller reaches this sidecar. The guard has checked the host.
fn callback_address(app: &App, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let access = &app.settings.access;
    let is_https = access.https && access.hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
    format!("{}://{host}{CALLBACK}", if is_https { "https" } else { "http" })
}

fn servers<'a>(app: &'a App, name: &str) -> Result<&'a Arc<dyn McpServers>, Problem> {
    app.tool_definitions.registry.mcp().ok_or_else(|| {
        let text = format!("There is no MCP server `{}`. This build has no MCP.", printable(name));
        Problem::new(ApiCode::NotFound, text)
    })
}

/// Waits for an answer, unless the sidecar stops. Errors may quote names of the request, which can be secrets.
async fn finish<T>(app: &App, answer: McpAnswer<'_, T>) -> Result<T, Problem> {
    let answer = tokio::select! {
        answer = answer => answer,
        () = app.stop.cancelled() => return Err(Problem::stopping()),
    };
    answer.map_err(|error| {
        let message = mask_secrets(&error.message).into_owned();
        ApiError { message, ..error }.into()
    })
}

fn log(caller: &Caller, name: &str, what: &str) {
    let (by, server) = (principal(caller), printable(name));
    tracing::info!(by = by.as_str(), server, "{what}");
}
