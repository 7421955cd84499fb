//! Servers at addresses: calls, sessions, refusals, and nodes with one address.

use crate::kit::{Kit, SECRET, call, refusal, until};
use crate::nodes::build;
use crate::peer::{Peer, Reply, event, legacy, method_of, modern, result, status, tools};
use pretty_assertions::assert_eq;
use redflow_contract::code::ToolCode;
use redflow_contract::mcp::{McpPinRequest, McpServerState};
use redflow_contract::tool::ToolState;
use redflow_ports::{McpServers as _, ToolOutcome, ToolProvider};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A hub with one server `test` at the address of a peer.
fn kit(peer: &Peer, more: Value) -> Kit {
    let kit = Kit::with_private(&[peer.server.addr]);
    let mut server = json!({"url": peer.url()});
    server.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    kit.define_all(json!({"test": server}));
    kit
}

fn state(kit: &Kit) -> McpServerState {
    kit.hub.list().servers[0].state
}

#[tokio::test]
async fn both_eras_are_called_over_http() {
    for is_modern in [false, true] {
        let peer =
            Peer::start(move |request| if is_modern { modern(request) } else { legacy(request, "one") })
                .await;
        let kit = kit(&peer, json!({"auth": {"type": "bearer", "env": "TEST_SECRET"}}));
        assert_eq!(kit.text("echo", json!({"text": "hello"})).await, "hello");
        let repeated = kit.result("echo", json!({"text": SECRET})).await;
        assert!(!format!("{repeated:?}").contains(SECRET));
        let call = &peer.messages("tools/call")[0];
        assert_eq!(call.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
        assert_eq!(state(&kit), McpServerState::Ready);
        kit.hub.stop().await;
    }
}

#[tokio::test]
async fn one_wrong_tool_does_not_hide_the_others_over_http() {
    let list = json!({"tools": [tools()[0], {"name": "text", "inputSchema": "none"}], "_meta": {"x": 1},
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
    for is_stream in [false, true] {
        let list = list.clone();
        let peer = Peer::start(move |request| match method_of(request).as_str() {
            "tools/list" if is_stream => event(request, &list),
            "tools/list" => result(request, &[], &list),
            _ => modern(request),
        })
        .await;
        let kit = kit(&peer, json!({}));
        let states: Vec<_> = kit.entries().await.iter().map(|entry| entry.state).collect();
        assert_eq!(states, [ToolState::Ready, ToolState::Blocked], "{is_stream}");
    }
}

// SECURITY: mcp-effect
#[tokio::test]
async fn a_session_that_ends_leaves_open_calls_unknown_and_the_next_one_works() {
    let (sessions, is_over) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
    let over = Arc::clone(&is_over);
    let peer = Peer::start(move |request| {
        let is_old = request.header("mcp-session-id") == Some("s0");
        match method_of(request).as_str() {
            "initialize" => legacy(request, &format!("s{}", sessions.fetch_add(1, Ordering::SeqCst))),
            // It has begun to do it.
            "tools/call" if is_old && !over.load(Ordering::SeqCst) => Reply::Never,
            "tools/call" if is_old => status(404),
            _ => legacy(request, ""),
        }
    })
    .await;
    let kit = kit(&peer, json!({}));
    let (first, second) = (kit.tool("count").await, kit.tool("echo").await);
    let open = tokio::spawn(async move { first.tool.call(&call(json!({}), 30_000)).await });
    until("the first call arrives", || peer.messages("tools/call").len() == 1).await;
    is_over.store(true, Ordering::SeqCst);
    let next = second.tool.call(&call(json!({"text": "again"}), 30_000)).await;
    assert!(
        matches!(&next, ToolOutcome::Returned(result) if result.output == Some(json!("again"))),
        "{next:?}"
    );
    // The model must not be told that it failed: it would call it again.
    let open = open.await.unwrap();
    assert!(matches!(&open, ToolOutcome::Unknown { .. }), "{open:?}");
    assert_eq!(peer.messages("initialize").len(), 2);
    let counted =
        |request: &&redflow_testkit::HttpRequest| request.json().unwrap()["params"]["name"] == "count";
    assert_eq!(peer.messages("tools/call").iter().filter(counted).count(), 1);
}

/// What a server sends before it closes the connection of a call.
fn last_words() -> [(&'static str, &'static str); 6] {
    [
        ("nothing", ""),
        ("half a head", "HTTP/1.1 200 X\r\ncontent-type: app"),
        (
            "half a body",
            "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"json",
        ),
        ("no event", "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n"),
        ("half an event", "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"js"),
        (
            "an event to go on after",
            "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\nid: 1\ndata: \n\n",
        ),
    ]
}

// SECURITY: mcp-effect
#[tokio::test]
async fn a_call_whose_server_hangs_up_ends_at_once() {
    for is_modern in [false, true] {
        for (name, words) in last_words() {
            // It does not let the client go on with a stream.
            let peer =
                Peer::start(move |request| match (request.method.as_str(), method_of(request).as_str()) {
                    (_, "tools/call") => Reply::Send(words.into()),
                    ("GET", _) => Reply::Send(Vec::new()),
                    _ if is_modern => modern(request),
                    _ => legacy(request, "one"),
                })
                .await;
            let kit = kit(&peer, json!({"effects": {"echo": "read"}}));
            let tools = [kit.tool("count").await, kit.tool("echo").await];
            let begin = std::time::Instant::now();
            let count = tools[0].tool.call(&call(json!({}), 30_000)).await;
            assert!(matches!(&count, ToolOutcome::Unknown { .. }), "{name}: {count:?}");
            let echo = tools[1].tool.call(&call(json!({}), 30_000)).await;
            assert_eq!(refusal(&echo).0, Some(ToolCode::McpUnavailable), "{name}");
            assert!(begin.elapsed().as_secs() < 5, "{name} {is_modern}: {:?}", begin.elapsed());
        }
    }
}

#[tokio::test]
async fn a_refused_secret_is_tried_again_and_no_sign_in_is_advised() {
    let is_refused = Arc::new(AtomicBool::new(true));
    let refused = Arc::clone(&is_refused);
    let peer = Peer::start(
        move |request| {
            if refused.load(Ordering::SeqCst) { status(401) } else { modern(request) }
        },
    )
    .await;
    let kit = kit(&peer, json!({"auth": {"type": "bearer", "env": "TEST_SECRET"}}));
    assert!(kit.tools().await.is_empty());
    assert_eq!(state(&kit), McpServerState::Connecting);
    let reason = kit.reason();
    assert!(reason.contains("refuses the token") && !reason.contains("mcp login"), "{reason}");
    // It comes back without a person.
    is_refused.store(false, Ordering::SeqCst);
    until("it is ready", || state(&kit) == McpServerState::Ready).await;
}

#[tokio::test]
async fn a_node_gets_the_tools_for_resources_once_the_server_is_up() {
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let peer = Peer::start(move |request| match method_of(request).as_str() {
        _ if !up.load(Ordering::SeqCst) => status(503),
        "server/discover" => result(
            request,
            &[],
            &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                "cacheScope": "private", "capabilities": {"resources": {}}}),
        ),
        _ => modern(request),
    })
    .await;
    let kit = kit(&peer, json!({}));
    let provider = build(&kit, json!({"server": "test", "resources": true})).unwrap();
    provider.ready().await;
    let before = provider.generation();
    assert!(provider.tools().is_empty());
    is_up.store(true, Ordering::SeqCst);
    until("it is ready", || state(&kit) == McpServerState::Ready).await;
    // An agent that keeps tools by their generation reads them again.
    assert!(provider.generation() > before);
    assert_eq!(provider.tools().len(), 2);
}

fn ids(provider: &Arc<dyn ToolProvider>) -> Vec<(String, ToolState)> {
    provider.tools().iter().map(|tool| (tool.entry.id.clone(), tool.entry.state)).collect()
}

#[tokio::test]
async fn nodes_with_one_address_share_their_pins() {
    let peer = Peer::start(modern).await;
    let kit = Kit::with_private(&[peer.server.addr]);
    let node = |include: &str| {
        build(&kit, json!({"url": peer.url(), "server": "docs", "trust": "pinned", "include": include}))
            .unwrap()
    };
    let (one, other) = (node("echo"), node("echo, count"));
    one.ready().await;
    other.ready().await;
    assert_eq!(ids(&one), [("mcp.docs.echo".to_owned(), ToolState::Changed)]);
    let key = format!("docs@{}/mcp", peer.server.addr);
    let tool = kit.hub.show(&key).await.unwrap().tools.into_iter().find(|tool| tool.name == "echo").unwrap();
    let tools = [("echo".to_owned(), tool.digest.unwrap())].into();
    kit.hub.pin(&key, McpPinRequest { tools }).await.unwrap();
    assert_eq!(ids(&one), [("mcp.docs.echo".to_owned(), ToolState::Ready)]);
    let expected =
        [("mcp.docs.count".to_owned(), ToolState::Changed), ("mcp.docs.echo".to_owned(), ToolState::Ready)];
    assert_eq!(ids(&other), expected, "the approval counts for both");
}

#[tokio::test]
async fn two_paths_of_one_host_are_two_servers() {
    let other =
        json!([{"name": "echo", "description": "Does something else.", "inputSchema": {"type": "object"}}]);
    let peer = Peer::start(move |request| match (request.path.as_str(), method_of(request).as_str()) {
        ("/other", "tools/list") => result(
            request,
            &[],
            &json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": other}),
        ),
        _ => modern(request),
    })
    .await;
    let kit = Kit::with_private(&[peer.server.addr]);
    for path in ["/mcp", "/other"] {
        let node =
            build(&kit, json!({"url": peer.server.url(path), "server": "docs", "include": "echo"})).unwrap();
        node.ready().await;
        assert_eq!(ids(&node), [("mcp.docs.echo".to_owned(), ToolState::Ready)], "{path}");
    }
    assert_eq!(kit.store.pins.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_server_without_a_listener_is_not_called() {
    let peer = Peer::start(modern).await;
    let kit = kit(&peer, json!({}));
    let tool = kit.tool("echo").await;
    drop(peer);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let outcome = tool.tool.call(&call(json!({}), 5_000)).await;
    assert_eq!(refusal(&outcome).0, Some(ToolCode::McpUnavailable));
}

/// A server that asks has taken the call. It may have acted before it asked.
#[tokio::test]
async fn a_session_that_ends_after_a_question_does_not_repeat_the_call() {
    let sessions = AtomicUsize::new(0);
    let peer = Peer::start(move |request| {
        let is_answered = !request.json().unwrap_or_default()["params"]["requestState"].is_null();
        match method_of(request).as_str() {
            "initialize" => legacy(request, &format!("s{}", sessions.fetch_add(1, Ordering::SeqCst))),
            "tools/call" if is_answered => status(404),
            "tools/call" => {
                let asked = json!({"resultType": "input_required", "inputRequests": {}, "requestState": "s"});
                result(request, &[], &asked)
            }
            _ => legacy(request, ""),
        }
    })
    .await;
    let kit = kit(&peer, json!({"effects": {"echo": "read"}}));
    let outcome = kit.call("count", json!({})).await;
    assert!(
        matches!(&outcome, ToolOutcome::Unknown { reason } if reason.contains("asked a question")),
        "{outcome:?}"
    );
    let sent = |name: &str| {
        let calls = peer.messages("tools/call");
        calls.iter().filter(|call| call.json().unwrap()["params"]["name"] == name).count()
    };
    assert_eq!(sent("count"), 2, "the call, and the answer to the question");
    // Reading twice does no harm, but it is not done either.
    let (code, text) = {
        let outcome = kit.call("echo", json!({})).await;
        let (code, text) = refusal(&outcome);
        (code, text.to_owned())
    };
    assert_eq!((code, sent("echo")), (Some(ToolCode::McpUnavailable), 2), "{text}");
}

#[tokio::test]
async fn servers_of_nodes_with_one_name_are_told_apart_by_their_keys() {
    let peer = Peer::start(modern).await;
    let kit = Kit::with_private(&[peer.server.addr]);
    let node = |path: &str, more: Value| {
        let mut props = json!({"url": peer.server.url(path), "server": "docs", "trust": "pinned"});
        props.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        build(&kit, props).unwrap()
    };
    let client = |id: &str| json!({"auth": "oauth", "clientId": id});
    let nodes = [
        node("/a", json!({})),
        node("/b", json!({})),
        node("/c", client("one")),
        node("/c", client("two")),
        // They differ in something that is not part of the address.
        node("/d", json!({"timeout": 1_000})),
        node("/d", json!({"timeout": 2_000})),
    ];
    let servers = kit.hub.list().servers;
    let mut keys: Vec<&str> = servers.iter().map(|server| server.key.as_str()).collect();
    keys.dedup();
    assert_eq!((keys.len(), servers.iter().all(|server| server.name == "docs")), (6, true), "{keys:?}");
    let numbered: Vec<&&str> = keys.iter().filter(|key| key.contains("/d#")).collect();
    assert_eq!(numbered.len(), 2, "{keys:?}");
    for server in &servers {
        let shown = kit.hub.show(&server.key).await.unwrap().summary;
        assert_eq!((&shown.key, &shown.target), (&server.key, &server.target));
    }
    // What people are told to do is about the server that they look at.
    nodes[1].ready().await;
    let reason = nodes[1].tools()[0].entry.reason.clone().unwrap();
    let key = format!("docs@{}/b", peer.server.addr);
    assert!(reason.contains(&format!("`redflow mcp pin {key}`")), "{reason}");
    let second = servers.iter().find(|server| server.key == key).unwrap();
    let tools = kit.hub.show(&key).await.unwrap().tools;
    let all = tools.iter().map(|tool| (tool.name.clone(), tool.digest.unwrap())).collect();
    kit.hub.pin(&second.key, McpPinRequest { tools: all }).await.unwrap();
    let states =
        |node: &Arc<dyn ToolProvider>| node.tools().iter().map(|tool| tool.entry.state).collect::<Vec<_>>();
    assert_eq!(states(&nodes[1]), [ToolState::Ready; 2]);
    nodes[0].ready().await;
    assert_eq!(states(&nodes[0]), [ToolState::Changed; 2], "the other one is not approved");
    // A server of the manifest with the name has the name alone.
    kit.define_all(json!({"docs": {"url": peer.url()}}));
    assert_eq!(kit.hub.show("docs").await.unwrap().summary.key, "docs");
}

#[tokio::test]
async fn a_call_that_a_token_does_not_allow_names_the_scope() {
    let peer = Peer::start(|request| match method_of(request).as_str() {
        "tools/call" => Reply::Send(redflow_testkit::json_response(
            403,
            &[("www-authenticate", "Bearer error=\"insufficient_scope\", scope=\"files.write\"")],
            &json!({}),
        )),
        _ => modern(request),
    })
    .await;
    let kit = kit(&peer, json!({"auth": {"type": "bearer", "env": "TEST_SECRET"}}));
    let outcome = kit.call("echo", json!({})).await;
    let (code, text) = refusal(&outcome);
    assert_eq!(code, Some(ToolCode::McpUnavailable));
    assert!(
        text.contains("the server asks for the scope `files.write`") && !text.contains("mcp login"),
        "{text}"
    );
    assert_eq!(state(&kit), McpServerState::Ready);
}
