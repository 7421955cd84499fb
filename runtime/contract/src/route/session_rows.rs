//! The rows of the route table about sessions, tokens, the configuration and the files of the console.

use super::{Answer, Method, Route, RouteId, get, open, post};
use crate::api::Scope;

pub(super) const SESSION: Route = get(
    RouteId::Session,
    "/api/session",
    "Who is signed in, and what the sidecar offers.",
    Answer::Json("Session"),
);

pub(super) const SIGN_IN_WITH_TOKEN: Route = open(post(
    RouteId::SignInWithToken,
    "/sign-in",
    Scope::Read,
    "Exchanges a token for a cookie of this browser, with the scopes of the token. Only for pages of the sidecar.",
    Some("SignInRequest"),
    Answer::Json("Session"),
));

pub(super) const TOKENS: Route = Route {
    scope: Some(Scope::Admin),
    ..get(
        RouteId::Tokens,
        "/api/tokens",
        "The names and scopes of the tokens. Never the tokens themselves.",
        Answer::Json("TokenList"),
    )
};

pub(super) const ADD_TOKEN: Route = Route {
    answer: (201, Answer::Json("NewToken")),
    ..post(
        RouteId::AddToken,
        "/api/tokens",
        Scope::Admin,
        "Makes a token, which works at once. No later answer contains it.",
        Some("TokenRequest"),
        Answer::Json("NewToken"),
    )
};

pub(super) const REMOVE_TOKEN: Route = Route {
    method: Method::Delete,
    scope: Some(Scope::Admin),
    answer: (204, Answer::Empty),
    ..get(
        RouteId::RemoveToken,
        "/api/tokens/{name}",
        "Removes a token. It and its sessions stop working at once. The main token cannot be removed.",
        Answer::Empty,
    )
};

pub(super) const CONFIG: Route = Route {
    scope: Some(Scope::Admin),
    ..get(
        RouteId::Config,
        "/api/config",
        "The settings of the sidecar. Secrets are replaced.",
        Answer::Json("ConfigView"),
    )
};

pub(super) const CONSOLE_FILE: Route = open(get(
    RouteId::ConsoleFile,
    "/console/{digest}/{file}",
    "A file of the console. 404 if the digest is not that of this console: then reload the page.",
    Answer::Text("*/*"),
));
