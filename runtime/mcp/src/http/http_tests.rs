use super::oauth::MAX_CHALLENGE_BYTES;
use super::test_kit::{
    MemoryStore, Peer, Reply, URL, all_tokens, connect, json_reply, legacy, method_of, modern, reply,
    stream_head,
};
use super::{HttpEndpoint, HttpFailure, HttpTimes, MAX_ANSWER_BYTES, MAX_EVENT_BYTES, ResolvedAuth};
use http::HeaderName;
use redflow_testkit::HttpRequest;
use rmcp::model::CallToolRequestParams;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

/// Much shorter than the times of a connection.
const SHORT: Duration = Duration::from_secs(3);

fn bearer() -> ResolvedAuth {
    ResolvedAuth::Bearer("SECRET-token".into())
}

async fn failure_of(endpoint: &HttpEndpoint) -> HttpFailure {
    let error = timeout(SOON, connect(endpoint)).await.unwrap().err().unwrap();
    assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
    HttpFailure::of_connection(&error).unwrap_or_else(|| panic!("{error:?}"))
}

/// The failure of a tool call that is answered like this.
async fn call_failure(answer: impl Fn(&HttpRequest) -> Reply + Send + Sync + 'static) -> HttpFailure {
    let peer = Peer::start(move |request| match method_of(request).as_str() {
        "tools/call" => answer(request),
        _ => legacy(request, "one"),
    })
    .await;
    let connection = connect(&peer.endpoint(bearer())).await.unwrap();
    let call = connection.call_tool(CallToolRequestParams::new("echo"));
    let error = timeout(SOON, call).await.unwrap().unwrap_err();
    assert_eq!(peer.messages("tools/call").len(), 1, "a call is sent once");
    HttpFailure::of_call(&error).unwrap_or_else(|| panic!("{error:?}"))
}

#[tokio::test]
async fn a_server_of_the_era_of_initialize() {
    let peer = Peer::start(|request| legacy(request, "one")).await;
    let connection = connect(&peer.endpoint(ResolvedAuth::None)).await.unwrap();
    let tools = connection.list_all_tools().await.unwrap();
    assert_eq!(tools[0].name, "echo");
    let result = connection.call_tool(CallToolRequestParams::new("echo")).await.unwrap();
    assert_eq!(result.content.len(), 1);
    connection.cancel().await.unwrap();
    let call = &peer.messages("tools/call")[0];
    assert_eq!(call.header("mcp-session-id"), Some("one"));
    assert_eq!(call.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(call.header("accept"), Some("text/event-stream, application/json"));
    assert_eq!(call.header("content-type"), Some("application/json"));
    assert_eq!(call.header("authorization"), None);
    let ended = peer.requests().into_iter().find(|request| request.method == "DELETE").unwrap();
    assert_eq!(ended.header("mcp-session-id"), Some("one"));
}

#[tokio::test]
async fn a_server_of_the_era_of_discover() {
    let peer = Peer::start(modern).await;
    let connection = connect(&peer.endpoint(ResolvedAuth::None)).await.unwrap();
    assert_eq!(connection.list_all_tools().await.unwrap().len(), 1);
    let list = &peer.messages("tools/list")[0];
    assert_eq!(list.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(list.header("mcp-method"), Some("tools/list"));
    assert_eq!(list.header("mcp-session-id"), None);
}

#[tokio::test]
async fn a_secret_goes_with_each_request_to_the_server() {
    let header = ResolvedAuth::Header { name: HeaderName::from_static("x-key"), value: "SECRET-key".into() };
    for (auth, name, value) in
        [(bearer(), "authorization", "Bearer SECRET-token"), (header, "x-key", "SECRET-key")]
    {
        let peer = Peer::start(modern).await;
        let endpoint = peer.endpoint(auth.clone());
        connect(&endpoint).await.unwrap().list_all_tools().await.unwrap();
        assert!(peer.requests().iter().all(|request| request.header(name) == Some(value)));
        assert!(!format!("{endpoint:?} {auth:?}").contains("SECRET"));
    }
}

// SECURITY: mcp-http
#[tokio::test]
async fn a_secret_goes_nowhere_unencrypted() {
    let peer = Peer::start(modern).await;
    let new = |url: &str, auth| {
        let tokens = all_tokens(&MemoryStore::new());
        HttpEndpoint::new(url, auth, peer.egress(), &tokens, "docs".to_owned(), HttpTimes::default())
            .map(drop)
    };
    let error = new("http://other.example.org/mcp", bearer()).unwrap_err();
    assert!(error.contains("add `other.example.org:80` to `[egress] private`"), "{error}");
    assert_eq!(new("http://other.example.org/mcp", ResolvedAuth::None), Ok(()));
    assert_eq!(new("https://other.example.org/mcp", bearer()), Ok(()));
    for name in ["mcp-session-id", "content-length"] {
        let own = ResolvedAuth::Header { name: HeaderName::from_static(name), value: "x".into() };
        assert!(new(URL, own).unwrap_err().contains("belongs to the protocol"));
    }
}

// SECURITY: mcp-http
#[tokio::test]
async fn an_inward_address_is_refused() {
    let peer = Peer::start(modern).await;
    let new = |url: &str| {
        let tokens = all_tokens(&MemoryStore::new());
        let (auth, key) = (ResolvedAuth::None, "docs".to_owned());
        HttpEndpoint::new(url, auth, peer.egress(), &tokens, key, HttpTimes::default())
    };
    let error = new("http://127.0.0.1/mcp").err().unwrap();
    assert!(error.contains("the rule `address`"), "{error}");
    // The name says nothing, its address does.
    let failure = failure_of(&new("http://inward.example.org/mcp").unwrap()).await;
    assert_eq!((failure.rule, failure.is_sent), (Some("address"), false));
    assert!(peer.requests().is_empty());
}

// SECURITY: mcp-http
#[tokio::test]
async fn a_redirect_leads_neither_inward_nor_to_others() {
    for (status, location, rule) in [
        (307, "http://127.0.0.1/mcp", "address"),
        (302, "http://10.0.0.1/", "address"),
        (307, "http://other.example.org/mcp", "redirect"),
        (302, "/other", "redirect"),
    ] {
        let peer = Peer::start(move |_| reply(status, &format!("location: {location}\r\n"), "")).await;
        let failure = failure_of(&peer.endpoint(bearer())).await;
        assert_eq!(failure.rule, Some(rule), "{location}: {failure:?}");
        assert!(
            peer.requests().iter().all(|request| {
                request.header("host") == Some("mcp.example.org") && request.path == "/mcp"
            })
        );
    }
}

#[tokio::test]
async fn a_redirect_within_the_server_keeps_the_message() {
    let peer = Peer::start(|request| match request.path.as_str() {
        "/mcp" => reply(307, "location: http://mcp.example.org/mcp/\r\n", ""),
        _ => modern(request),
    })
    .await;
    connect(&peer.endpoint(bearer())).await.unwrap().list_all_tools().await.unwrap();
    let last = peer.requests().pop().unwrap();
    assert_eq!((last.path.as_str(), method_of(&last).as_str()), ("/mcp/", "tools/list"));
    assert_eq!(last.header("authorization"), Some("Bearer SECRET-token"));
    // Not for ever.
    let peer = Peer::start(|_| reply(308, "location: /mcp\r\n", "")).await;
    let failure = failure_of(&peer.endpoint(bearer())).await;
    assert!(failure.text.contains("more than 3 times"), "{failure:?}");
    assert_eq!((failure.rule, peer.requests().len() % 4), (Some("redirect"), 0));
}

#[tokio::test]
async fn a_stream_without_an_end_holds_up_no_other_call() {
    let peer = Peer::start(|request| match (request.method.as_str(), method_of(request).as_str()) {
        ("GET", _) => Reply::Hang(stream_head()),
        (_, "tools/call") => Reply::Endless(stream_head(), b": ping\n\ndata: {}\n\n".repeat(100)),
        _ => legacy(request, "one"),
    })
    .await;
    let connection = connect(&peer.endpoint(ResolvedAuth::None)).await.unwrap();
    let mut calls = Vec::new();
    for _ in 0..10 {
        let peer = connection.peer().clone();
        calls.push(tokio::spawn(async move { peer.call_tool(CallToolRequestParams::new("echo")).await }));
    }
    for _ in 0..10 {
        assert_eq!(timeout(SOON, connection.list_all_tools()).await.unwrap().unwrap().len(), 1);
    }
    assert!(calls.iter().all(|call| !call.is_finished()));
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn an_event_is_bounded() {
    let peer = Peer::start(|request| match method_of(request).as_str() {
        "tools/call" => {
            let mut bytes = stream_head();
            bytes.extend_from_slice(b"data: ");
            Reply::Endless(bytes, vec![b'x'; MAX_EVENT_BYTES / 4])
        }
        _ => legacy(request, "one"),
    })
    .await;
    let connection = connect(&peer.endpoint(ResolvedAuth::None)).await.unwrap();
    let call = connection.call_tool(CallToolRequestParams::new("echo"));
    assert!(timeout(SOON, call).await.unwrap().is_err());
    assert_eq!(connection.list_all_tools().await.unwrap().len(), 1, "the connection is still usable");
}

#[tokio::test]
async fn an_answer_is_bounded() {
    let head = "HTTP/1.1 200 X\r\ncontent-type: application/json\r\n";
    let announced = format!("{head}content-length: 40000000\r\n\r\n").into_bytes();
    let endless = format!("{head}\r\n").into_bytes();
    let text = format!("larger than {MAX_ANSWER_BYTES} bytes");
    let failure = call_failure(move |_| Reply::Endless(announced.clone(), vec![b' '; 1 << 20])).await;
    assert!(failure.text.contains(&text) && failure.is_sent, "{failure:?}");
    let failure = call_failure(move |_| Reply::Endless(endless.clone(), vec![b' '; 1 << 20])).await;
    assert!(failure.text.contains(&text) && failure.is_sent, "{failure:?}");
}

#[tokio::test]
async fn a_session_that_has_ended_is_told_and_no_other_one_begins() {
    let peer = Peer::start(|request| match method_of(request).as_str() {
        // The server has begun to do it.
        "tools/call" if request.json().unwrap()["params"]["name"] == "slow" => Reply::Hang(stream_head()),
        "tools/call" | "tools/list" => reply(404, "", ""),
        _ => legacy(request, "one"),
    })
    .await;
    let (endpoint, session_end) = (peer.endpoint(ResolvedAuth::None), Arc::<Notify>::default());
    let transport = endpoint.transport(session_end.clone());
    let connection = rmcp::ServiceExt::serve((), transport).await.unwrap();
    let caller = connection.peer().clone();
    let slow = tokio::spawn(async move { caller.call_tool(CallToolRequestParams::new("slow")).await });
    while peer.messages("tools/call").is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let error = connection.call_tool(CallToolRequestParams::new("echo")).await.unwrap_err();
    let failure = HttpFailure::of_call(&error).unwrap_or_else(|| panic!("{error:?}"));
    assert!(failure.is_session_end && !failure.is_sent, "{failure:?}");
    // The call knows it. For another request the connection tells it.
    assert!(timeout(Duration::from_millis(50), session_end.notified()).await.is_err());
    assert!(connection.list_all_tools().await.is_err());
    timeout(SOON, session_end.notified()).await.unwrap();
    let sent = ["initialize", "tools/call", "tools/list"].map(|method| peer.messages(method).len());
    assert_eq!(sent, [1, 2, 1], "no other session begins");
    // No one makes up an answer for a call that the server may have done.
    assert!(!slow.is_finished());
    drop(connection);
    let lost = timeout(SOON, slow).await.unwrap().unwrap().unwrap_err();
    assert!(!matches!(lost, rmcp::ServiceError::McpError(_)), "{lost:?}");
}

/// Times that a test can wait for.
fn short_times() -> HttpTimes {
    let long = HttpTimes::default();
    assert!(long.plain >= Duration::from_secs(10) && long.issuer >= Duration::from_secs(10));
    let short = Duration::from_millis(200);
    HttpTimes { result: short, plain: short, silent: short, issuer: short }
}

#[tokio::test]
async fn a_request_has_an_end() {
    let peer = Peer::start(|request| match method_of(request).as_str() {
        "tools/call" => Reply::Hang(Vec::new()),
        _ => legacy(request, "one"),
    })
    .await;
    let times = HttpTimes { plain: HttpTimes::default().plain, ..short_times() };
    let connection = connect(&peer.endpoint_in(ResolvedAuth::None, times)).await.unwrap();
    let error = timeout(SHORT, connection.call_tool(CallToolRequestParams::new("echo"))).await;
    let failure = HttpFailure::of_call(&error.unwrap().unwrap_err()).unwrap();
    assert!(failure.is_sent, "{failure:?}");
    // A message without a result has a time of its own.
    let peer = Peer::start(|request| match method_of(request).as_str() {
        "notifications/initialized" => Reply::Hang(Vec::new()),
        _ => legacy(request, "one"),
    })
    .await;
    let times = HttpTimes { plain: short_times().plain, ..HttpTimes::default() };
    let connected = timeout(SHORT, connect(&peer.endpoint_in(ResolvedAuth::None, times))).await;
    assert!(connected.unwrap().is_err());
}

#[tokio::test]
async fn a_silent_stream_ends_and_is_opened_again() {
    let peer = Peer::start(|request| match request.method.as_str() {
        "GET" => Reply::Hang([stream_head(), b"retry: 100\n\n".to_vec()].concat()),
        _ => legacy(request, "one"),
    })
    .await;
    let times = HttpTimes { silent: short_times().silent, ..HttpTimes::default() };
    let connection = connect(&peer.endpoint_in(ResolvedAuth::None, times)).await.unwrap();
    let gets = || peer.requests().iter().filter(|request| request.method == "GET").count();
    timeout(SHORT, async {
        while gets() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    drop(connection);
}

#[tokio::test]
async fn a_failure_says_whether_the_call_was_sent() {
    let lost = call_failure(|_| Reply::Send(Vec::new())).await;
    assert!(lost.is_sent && lost.rule.is_none() && !lost.needs_login, "{lost:?}");
    let refused = call_failure(|_| reply(401, "", "SECRET-token")).await;
    assert!(!refused.is_sent && refused.needs_login, "{refused:?}");
    let scope = "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"a\"\r\n";
    let refused = call_failure(move |_| reply(403, scope, "")).await;
    assert!(!refused.is_sent && refused.needs_login && refused.text.contains("the scope `a`"), "{refused:?}");
    // A longer challenge counts as none.
    let long = |bytes: usize| {
        let begin = "Bearer error=\"insufficient_scope\", scope=\"a\", x=\"";
        format!("www-authenticate: {begin}{}\"\r\n", "x".repeat(bytes - begin.len() - 1))
    };
    for (bytes, is_read) in [(MAX_CHALLENGE_BYTES, true), (MAX_CHALLENGE_BYTES + 1, false)] {
        let head = long(bytes);
        let refused = call_failure(move |_| reply(403, &head, "")).await;
        assert_eq!((refused.needs_login, refused.text.contains("`a`")), (is_read, is_read), "{refused:?}");
    }
    let broken = call_failure(|_| reply(500, "", "SECRET-token")).await;
    assert!(broken.is_sent && !broken.text.contains("SECRET"), "{broken:?}");
    let wrong = call_failure(|_| reply(200, "content-type: text/html\r\n", "<SECRET-token>")).await;
    assert!(wrong.is_sent && !wrong.text.contains("SECRET"), "{wrong:?}");
    let wrong = call_failure(|_| json_reply(200, "", &json!({"SECRET-token": 1}))).await;
    assert!(wrong.is_sent && !wrong.text.contains("SECRET"), "{wrong:?}");
    // No process listens there.
    let peer = Peer::start(modern).await;
    let endpoint = peer.endpoint(ResolvedAuth::None);
    drop(peer);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let failure = failure_of(&endpoint).await;
    assert!(!failure.is_sent && failure.rule.is_none(), "{failure:?}");
}
