//! Times: each one has an end, and no server makes the sidecar hurry.

use crate::kit::{Kit, lines, until};
use crate::peer::{Peer, Reply, method_of, modern, result};
use pretty_assertions::assert_eq;
use redflow_contract::mcp::McpServerState;
use redflow_mcp::ServerTimes;
use redflow_ports::{McpServers as _, ToolProvider as _};
use redflow_testkit::HttpRequest;
use serde_json::json;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3_600);

fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// The longest number of acts since a time, with such a pause between them. A slow machine does fewer.
fn most(begin: Instant, pause: Duration) -> usize {
    usize::try_from(begin.elapsed().as_millis() / pause.as_millis()).unwrap() + 2
}

fn state(kit: &Kit) -> McpServerState {
    kit.hub.list().servers[0].state
}

/// A page of tools that is valid so long, with a next page if there is a mark.
fn page(request: &HttpRequest, ttl_ms: u64, mark: Option<&str>) -> Vec<u8> {
    let page = json!({"resultType": "complete", "ttlMs": ttl_ms, "cacheScope": "private", "tools": [],
        "nextCursor": mark});
    match result(request, &[], &page) {
        Reply::Send(bytes) => bytes,
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let short =
        ServerTimes { connect: Duration::from_secs(1), page: HOUR, list: HOUR, ..ServerTimes::default() };
    let long = ServerTimes { connect: HOUR, page: HOUR, list: HOUR, ..ServerTimes::default() };
    let rows: [(&'static str, ServerTimes, &str); 4] = [
        ("server/discover", short, "It does not answer within 1 s."),
        ("tools/list", short, "It does not answer within 1 s."),
        ("tools/list", ServerTimes { page: millis(200), ..long }, "The server did not answer in time."),
        ("tools/list", ServerTimes { list: millis(200), ..long }, "The server did not answer in time."),
    ];
    for (silent, times, expected) in rows {
        let peer = Peer::start(move |request| match method_of(request).as_str() {
            method if method == silent => Reply::Never,
            _ => modern(request),
        })
        .await;
        let kit = Kit::with_private_in(&[peer.server.addr], times);
        kit.define_all(json!({"test": {"url": peer.url()}}));
        assert!(kit.tools().await.is_empty());
        assert_eq!((kit.reason().as_str(), state(&kit)), (expected, McpServerState::Connecting), "{silent}");
    }
}

/// Each page comes in time, and there is always another one.
#[tokio::test]
async fn all_pages_of_a_list_have_one_end() {
    let peer = Peer::start(|request| match method_of(request).as_str() {
        "tools/list" => Reply::Late(millis(100), page(request, 0, Some("more"))),
        _ => modern(request),
    })
    .await;
    let times = ServerTimes { connect: HOUR, page: HOUR, list: millis(700), ..ServerTimes::default() };
    let kit = Kit::with_private_in(&[peer.server.addr], times);
    kit.define_all(json!({"test": {"url": peer.url()}}));
    assert!(kit.tools().await.is_empty());
    assert_eq!(kit.reason(), "The server did not answer in time.");
    let pages = peer.messages("tools/list").len();
    assert!((1..=8).contains(&pages), "{pages}");
}

#[tokio::test]
async fn a_list_is_read_again_when_it_is_no_longer_valid_but_not_at_once() {
    let pause = millis(100);
    let rows = [
        // The server says that it is never valid, and that it is valid for ever.
        (0, ServerTimes { shortest_validity: pause, longest_validity: HOUR, ..ServerTimes::default() }, true),
        (
            u64::MAX,
            ServerTimes { shortest_validity: pause, longest_validity: pause, ..ServerTimes::default() },
            true,
        ),
        (1, ServerTimes { shortest_validity: HOUR, longest_validity: HOUR, ..ServerTimes::default() }, false),
    ];
    let (begin, mut open) = (Instant::now(), Vec::new());
    for (ttl_ms, times, is_read_again) in rows {
        let peer = Peer::start(move |request| match method_of(request).as_str() {
            "tools/list" => Reply::Send(page(request, ttl_ms, None)),
            _ => modern(request),
        })
        .await;
        let kit = Kit::with_private_in(&[peer.server.addr], times);
        kit.define_all(json!({"test": {"url": peer.url()}}));
        kit.tools().await;
        open.push((ttl_ms, peer, kit, is_read_again));
    }
    for (ttl_ms, peer, _, is_read_again) in &open {
        let reads = || peer.messages("tools/list").len();
        if *is_read_again {
            until("the list is read again and again", || reads() > 3).await;
            assert!(reads() <= most(begin, pause), "{ttl_ms}: {}", reads());
        } else {
            assert_eq!(reads(), 1, "{ttl_ms}");
        }
    }
}

#[tokio::test]
async fn a_server_that_always_says_that_its_list_has_changed_is_asked_seldom() {
    let pause = millis(200);
    let kit = Kit::with_times(ServerTimes { shortest_refresh: pause, ..ServerTimes::default() });
    let begin = Instant::now();
    kit.define("always-changes", json!({}));
    kit.tools().await;
    until("the list is read again and again", || lines(&kit.file()).len() > 3).await;
    let reads = lines(&kit.file()).len();
    assert!(reads <= most(begin, pause), "{reads}");
}

#[tokio::test]
async fn only_a_connection_that_lasts_ends_the_counting_of_failures() {
    let quick = ServerTimes { first_delay: millis(2), longest_delay: millis(2), ..ServerTimes::default() };
    let start = async |stable: Duration| {
        let kit = Kit::with_times(ServerTimes { stable, ..quick });
        kit.define("dies", json!({}));
        kit.tools().await;
        kit
    };
    let (short, long) = (start(HOUR).await, start(Duration::ZERO).await);
    until("it is offline", || state(&short) == McpServerState::Offline).await;
    until("it connects again and again", || {
        assert_ne!(state(&long), McpServerState::Offline);
        lines(&long.file()).len() > 12
    })
    .await;
}

/// Servers of the newest protocol send changes only to those who listen.
#[tokio::test]
async fn a_change_arrives_over_a_subscription() {
    let kit = Kit::with("modern-listens", json!({}));
    let echo = kit.tool("echo").await;
    let listens = || lines(&kit.file()).iter().filter(|line| *line == "listen").count();
    let has_new = || kit.hub.tools().iter().any(|tool| tool.entry.id == "mcp.test.new");
    until("it listens", || listens() == 1).await;
    assert!(!has_new());
    let call = crate::kit::call(json!({}), 10_000);
    echo.tool.call(&call).await;
    until("the new tool is there", has_new).await;
    assert_eq!(listens(), 1);
    let summary = kit.hub.list().servers.remove(0);
    assert_eq!((summary.protocol.as_deref(), summary.state), (Some("2026-07-28"), McpServerState::Ready));
}

/// A change between two subscriptions would be missed, so the lists are read again.
#[tokio::test]
async fn a_subscription_that_ended_is_made_again_after_a_while() {
    let pause = millis(300);
    let kit = Kit::with_times(ServerTimes { subscribe_delay: pause, ..ServerTimes::default() });
    kit.define("modern-listens", json!({}));
    let count = kit.tool("count").await;
    let listens = || lines(&kit.file()).iter().filter(|line| *line == "listen").count();
    until("it listens", || listens() == 1).await;
    let end = Instant::now();
    count.tool.call(&crate::kit::call(json!({}), 10_000)).await;
    until("it listens again", || listens() == 2).await;
    assert!(end.elapsed() >= pause, "{:?}", end.elapsed());
    until("the lists are read again", || kit.hub.tools().iter().any(|tool| tool.entry.id == "mcp.test.new"))
        .await;
}
