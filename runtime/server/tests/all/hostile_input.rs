//! Hostile input: none of it stops the sidecar.

use crate::client::{PATIENCE, Request, Socket, raw, reply};
use crate::kit::{Setup, TOKEN, TestSidecar, plain_flow, token};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use redflow_contract::stream::{EventsMessage, EventsRequest};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn assert_serves(sidecar: &TestSidecar) {
    assert_eq!(sidecar.get("/health").await.ok(200)["live"], true);
}

// SECURITY: strict-json, timeouts
#[tokio::test]
async fn refuses_a_body_that_is_too_large_too_slow_or_incomplete() {
    let mut setup = Setup::default();
    setup.settings.max_body_bytes = 10_000;
    setup.settings.max_body_keys = 100;
    setup.settings.body_timeout = Duration::from_millis(300);
    let sidecar = setup.start(Some(plain_flow())).await;
    let post = || sidecar.request("POST", "/api/flows/check").token(TOKEN);
    post().json(json!({"flows": ["x".repeat(20_000)]})).send().await.refused(413, "BODY_TOO_LARGE");
    let keys: serde_json::Map<String, serde_json::Value> =
        (0..101).map(|n| (n.to_string(), json!(1))).collect();
    post().json(json!(keys)).send().await.refused(413, "BODY_TOO_LARGE");
    // Values of two bytes each take thirty times as much memory once they are parsed.
    post().json(json!({"flows": vec![0; 101]})).send().await.refused(413, "BODY_TOO_LARGE");
    post().json(json!({"flows": vec![json!([]); 101]})).send().await.refused(413, "BODY_TOO_LARGE");
    // The header announces too many bytes, so the body is not read.
    post().json(json!({})).header("content-length", "20000").send().await.refused(413, "BODY_TOO_LARGE");
    // The body is announced and never sent.
    post().json(json!({})).header("content-length", "5000").send().await.refused(408, "REQUEST_TIMEOUT");
    // Endless chunks.
    let head =
        post().header("content-type", "application/json").header("transfer-encoding", "chunked").text();
    let endless = [head, b"400\r\n".to_vec(), b"x".repeat(0x400), b"\r\n".to_vec()].concat();
    let endless =
        [endless, [b"400\r\n".to_vec(), b"x".repeat(0x400), b"\r\n".to_vec()].concat().repeat(30)].concat();
    reply(&raw(sidecar.addr, &endless).await).refused(413, "BODY_TOO_LARGE");
    assert_serves(&sidecar).await;
}

#[tokio::test]
async fn limits_the_body_of_a_start_to_a_message() {
    let mut setup = Setup::default();
    setup.settings.run_limits.max_message_bytes = 1000;
    let sidecar = setup.start(Some(plain_flow())).await;
    let start =
        |bytes: usize| sidecar.post("/api/runs", json!({"node": "agent", "payload": "x".repeat(bytes)}));
    start(100_000).await.refused(413, "BODY_TOO_LARGE");
    // A flow may be larger than a message.
    sidecar.post("/api/flows/check", json!({"flows": ["x".repeat(100_000)]})).await.ok(200);
    start(10).await.ok(202);
}

#[tokio::test]
async fn reads_more_large_bodies_than_there_are_slots() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let check =
        |_| sidecar.post("/api/flows/check", json!({"flows": [{"id": "n", "type": "x".repeat(400_000)}]}));
    for answer in futures::future::join_all((0..12).map(check)).await {
        answer.ok(200);
    }
}

/// Begins a large check with a token, and never ends it. It has a slot if it sends more than the buffers of
/// the system hold.
async fn begin_slow_check(sidecar: &TestSidecar, token: &str, bytes: usize) -> TcpStream {
    let request = sidecar.request("POST", "/api/flows/check").token(token);
    let head = request.header("content-type", "application/json").header("content-length", "40000000").text();
    let mut stream = TcpStream::connect(sidecar.addr).await.unwrap();
    stream.write_all(&head).await.unwrap();
    timeout(PATIENCE, stream.write_all(&b" ".repeat(bytes))).await.unwrap().unwrap();
    stream
}

/// More than the buffers of a connection hold.
const MANY_BYTES: usize = 24_000_000;

// SECURITY: work-slots
#[tokio::test]
async fn slow_bodies_of_one_token_keep_no_deploy_out() {
    let setup = Setup::default();
    let reader = token(setup.dir.path(), "reader", &[Scope::Read], 1);
    let sidecar = setup.start(Some(plain_flow())).await;
    let mut slow = Vec::new();
    for bytes in [MANY_BYTES, MANY_BYTES, 300_000, 300_000, 300_000, 300_000] {
        slow.push(begin_slow_check(&sidecar, &reader, bytes).await);
    }
    deploy_large_flow(&sidecar).await;
    // Nobody waited for their slots, so they are still open.
    for stream in &mut slow {
        let read = timeout(Duration::from_millis(10), stream.read_u8()).await;
        assert!(read.is_err(), "{read:?}");
    }
}

// SECURITY: work-slots
#[tokio::test]
async fn slow_bodies_give_way_when_others_wait() {
    let setup = Setup::default();
    let readers = ["one", "two"].map(|name| token(setup.dir.path(), name, &[Scope::Read], 1));
    let sidecar = setup.start(Some(plain_flow())).await;
    let mut slow = Vec::new();
    for reader in readers.iter().cycle().take(4) {
        slow.push(begin_slow_check(&sidecar, reader, MANY_BYTES).await);
    }
    deploy_large_flow(&sidecar).await;
    let answers = slow.iter_mut().map(|stream| async {
        let mut answer = Vec::new();
        let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        answer
    });
    let answers = futures::future::join_all(answers).await;
    let ended: Vec<_> = answers.iter().filter(|answer| !answer.is_empty()).collect();
    assert!(!ended.is_empty());
    for answer in ended {
        reply(answer).refused(408, "REQUEST_TIMEOUT");
    }
}

/// Deploys a flow that needs a slot.
async fn deploy_large_flow(sidecar: &TestSidecar) {
    let mut flows = plain_flow();
    let comment = json!({"id": "big", "type": "comment", "info": "x".repeat(400_000)});
    flows.as_array_mut().unwrap().push(comment);
    sidecar.post("/api/deployment", json!({"flows": flows, "force": true})).await.ok(200);
}

// SECURITY: no-smuggling
#[tokio::test]
async fn refuses_smuggled_requests() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let host = sidecar.addr.to_string();
    let line = format!(
        "POST /api/runs HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\n\
                        content-type: application/json\r\n"
    );
    let hidden = format!("GET /api/flows HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    let forms = [
        format!("{line}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{line}transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n{{}}{hidden}"),
        format!("{line}content-length: 2\r\ncontent-length: 60\r\n\r\n{{}}{hidden}"),
        format!("{line}content-length: 2, 60\r\n\r\n{{}}{hidden}"),
        format!("{line}content-length: +2\r\n\r\n{{}}{hidden}"),
        format!("{line}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{line}transfer-encoding: identity\r\n\r\n{{}}{hidden}"),
    ];
    for form in forms {
        let answer = raw(sidecar.addr, form.as_bytes()).await;
        let text = String::from_utf8_lossy(&answer);
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{form}\n{text}");
        assert!(text.starts_with("HTTP/1.1 4"), "{form}\n{text}");
    }
    let junk: [&[u8]; 6] = [
        b"\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\n b\r\n\r\n",
        &[0xff; 4096],
    ];
    for bytes in junk {
        let mut stream = TcpStream::connect(sidecar.addr).await.unwrap();
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
        assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    }
    // The host of an absolute target is checked too.
    let request =
        format!("GET http://evil.example/health HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    reply(&raw(sidecar.addr, request.as_bytes()).await).refused(403, "HOST_REFUSED");
    assert_serves(&sidecar).await;
}

// SECURITY: connection-limit
#[tokio::test]
async fn survives_a_thousand_sockets_at_once() {
    let mut setup = Setup::default();
    setup.settings.access.max_connections = 300;
    let sidecar = setup.start(Some(plain_flow())).await;
    let bearer = format!("Bearer {TOKEN}");
    let opened = futures::future::join_all((0..1000).map(|_| async {
        let tcp = TcpStream::connect(sidecar.addr).await.ok()?;
        let request = http::Request::builder()
            .uri(format!("ws://{}/events", sidecar.addr))
            .header("host", sidecar.addr.to_string())
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .header("authorization", &bearer)
            .body(())
            .unwrap();
        let opened = timeout(PATIENCE, tokio_tungstenite::client_async(request, tcp)).await.ok()?.ok()?;
        Some(Socket { stream: opened.0 })
    }))
    .await;
    let mut open: Vec<Socket> = opened.into_iter().flatten().collect();
    assert!((1..=300).contains(&open.len()), "{} are open", open.len());
    for socket in &mut open {
        assert!(matches!(socket.hear().await, EventsMessage::Hello { .. }));
        socket.say(&EventsRequest::Ping { id: "1".to_owned() }).await;
    }
    for socket in &mut open {
        assert_eq!(socket.hear().await, EventsMessage::Pong { id: "1".to_owned() });
    }
    drop(open);
    crate::kit::eventually("there is room again", || async {
        let answer = raw(sidecar.addr, &Request::new(sidecar.addr, "GET", "/health").text()).await;
        String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
}

// SECURITY: message-limit
#[tokio::test]
async fn closes_a_socket_after_invalid_frames() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let open = || async {
        let mut stream = TcpStream::connect(sidecar.addr).await.unwrap();
        let request = Request::new(sidecar.addr, "GET", "/events")
            .token(TOKEN)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        stream.write_all(&request.text()).await.unwrap();
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("hello") {
            assert!(timeout(PATIENCE, stream.read_buf(&mut seen)).await.unwrap().unwrap() > 0);
        }
        stream
    };
    // A frame of 2^62 bytes, endless fragments, compression without negotiation, a missing mask, an unknown
    // opcode, and a text that is not UTF-8.
    let endless: Vec<u8> = [vec![0x01, 0x82, 0, 0, 0, 0, b'a', b'b']]
        .into_iter()
        .chain(std::iter::repeat_n([vec![0x00, 0xfe, 0x10, 0x00, 0, 0, 0, 0], vec![b'a'; 4096]].concat(), 40))
        .flatten()
        .collect();
    let forms: [Vec<u8>; 6] = [
        vec![0x81, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4],
        endless,
        vec![0xc1, 0x82, 0, 0, 0, 0, 1, 2],
        vec![0x81, 0x02, b'h', b'i'],
        vec![0x8f, 0x80, 0, 0, 0, 0],
        vec![0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe],
    ];
    for form in forms {
        let mut stream = open().await;
        let _ = stream.write_all(&form).await;
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the socket is closed");
    }
    assert_serves(&sidecar).await;
}

// SECURITY: timeouts
#[tokio::test]
async fn frees_the_connection_of_a_silent_socket() {
    let mut setup = Setup::default();
    setup.settings.heartbeat = Duration::from_millis(100);
    setup.settings.access.max_connections = 1;
    let sidecar = setup.start(Some(plain_flow())).await;
    let silent = sidecar.socket().await;
    // It answers no ping, so its connection is freed.
    crate::kit::eventually("there is room again", || async {
        let answer = raw(sidecar.addr, &Request::new(sidecar.addr, "GET", "/health").text()).await;
        String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
    drop(silent);
}

// SECURITY: rate-limit
#[tokio::test]
async fn refuses_too_many_requests() {
    let mut setup = Setup::default();
    setup.settings.access.requests_per_second = 1;
    setup.settings.access.request_burst = 5;
    let sidecar = setup.start(Some(plain_flow())).await;
    let mut refused = 0;
    for _ in 0..10 {
        let answer = sidecar.get("/api/flows").await;
        if answer.status != 200 {
            answer.refused(429, "RATE_LIMITED");
            assert_eq!(answer.header("retry-after"), Some("1"));
            refused += 1;
        }
    }
    assert!(refused >= 4);
}

#[tokio::test]
async fn survives_hostile_flows() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    // Deep nesting, control characters in an id, and a long type.
    let deep = (0..90).fold(json!(1), |value, _| json!([value]));
    let odd = json!([{"id": "<script>\u{202e}", "type": "tab", "label": deep}, {"id": "n", "type": "x".repeat(5000)}]);
    sidecar.post("/api/flows/check", json!({"flows": odd})).await;
    let wide: Vec<_> = (0..20_000).map(|n| json!({"id": n.to_string(), "type": "debug", "z": "t"})).collect();
    sidecar.post("/api/flows/check", json!({"flows": wide})).await.ok(200);
    assert_serves(&sidecar).await;
}
