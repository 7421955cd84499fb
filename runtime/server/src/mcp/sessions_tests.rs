//! Tests of the sessions of MCP clients.

use super::{MAX_IDLE, MAX_REQUESTS, MAX_SESSIONS, McpSessions};
use crate::response::Problem;
use pretty_assertions::assert_eq;
use redflow_access::Caller;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

fn caller(name: &str) -> Caller {
    let mut caller = Caller::anonymous();
    caller.token_name = Arc::from(name);
    caller
}

fn code<T>(result: Result<T, Problem>) -> &'static str {
    result.err().map_or("", |Problem(error)| error.code.as_str())
}

// SECURITY: mcp-serve
#[test]
fn no_more_sessions_than_the_limit_are_open_or_being_opened() {
    let sessions = Arc::new(McpSessions::default());
    let reserve = |name: &str| sessions.reserve(caller(name));
    let of = |name: &str| (0..MAX_SESSIONS / 2).map(|_| reserve(name).unwrap()).collect::<Vec<_>>();
    let mut reservations = of("a");
    // One token cannot take the places of others.
    assert_eq!(code(reserve("a")), "TOO_MANY_CONNECTIONS");
    let others = of("b");
    assert_eq!(code(reserve("c")), "TOO_MANY_CONNECTIONS");
    reservations.pop().unwrap().open("one".to_owned());
    assert_eq!(code(reserve("a")), "TOO_MANY_CONNECTIONS");
    // One that was not opened gives its place back, and so does one that has ended.
    reservations.pop();
    assert_eq!(code(reserve("a")), "");
    sessions.remove("one");
    drop((reservations, others));
    assert_eq!(of("a").len() + of("b").len(), MAX_SESSIONS);
}

// SECURITY: mcp-serve
#[test]
fn a_session_belongs_to_its_token() {
    let sessions = Arc::new(McpSessions::default());
    sessions.reserve(caller("a")).unwrap().open("one".to_owned());
    assert_eq!(code(sessions.enter("one", &caller("a"), None)), "");
    assert_eq!(code(sessions.enter("one", &caller("b"), None)), "NOT_FOUND");
    assert_eq!(code(sessions.enter("two", &caller("a"), None)), "NOT_FOUND");
}

// SECURITY: mcp-serve
#[test]
fn the_ids_of_requests_that_are_under_way_are_unique() {
    let sessions = Arc::new(McpSessions::default());
    sessions.reserve(caller("a")).unwrap().open("one".to_owned());
    let enter = |id: &str| sessions.enter("one", &caller("a"), Some(id.to_owned()));
    let first = enter("1").unwrap();
    assert_eq!(code(enter("1")), "REQUEST_INVALID");
    drop(first);
    assert_eq!(code(enter("1")), "");
    let all: Vec<_> = (0..MAX_REQUESTS).map(|id| enter(&id.to_string()).unwrap()).collect();
    assert_eq!(code(enter("more")), "RATE_LIMITED");
    drop(all);
    assert_eq!(code(enter("more")), "");
}

// SECURITY: mcp-serve
#[test]
fn an_idle_session_ends_and_one_in_use_does_not() {
    let sessions = Arc::new(McpSessions::default());
    for id in ["idle", "used"] {
        sessions.reserve(caller("a")).unwrap().open(id.to_owned());
    }
    let _stream = sessions.enter("used", &caller("a"), None).unwrap();
    let now = Instant::now();
    assert_eq!(sessions.sweep(now + MAX_IDLE - Duration::from_secs(60), |_| true), Vec::<String>::new());
    assert_eq!(sessions.sweep(now + MAX_IDLE, |_| true), ["idle"]);
    // A token that is no longer accepted ends even a session in use.
    assert_eq!(sessions.sweep(now, |caller| &*caller.token_name != "a"), ["used"]);
    assert_eq!(sessions.remove_all(), Vec::<String>::new());
}
