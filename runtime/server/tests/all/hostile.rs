//! What strangers send: nothing of it stops the sidecar.

use crate::client::{PATIENCE, Request, Socket, raw, reply};
use crate::kit::{Setup, TOKEN, World, plain};
use pretty_assertions::assert_eq;
use redflow_contract::stream::{EventsMessage, EventsRequest};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn still_serves(world: &World) {
    assert_eq!(world.get("/health").await.ok(200)["live"], true);
}

#[tokio::test]
async fn a_body_that_is_too_large_too_slow_or_cut_off() {
    let mut setup = Setup::default();
    setup.settings.max_body_bytes = 10_000;
    setup.settings.max_body_keys = 100;
    setup.settings.body_timeout = Duration::from_millis(300);
    let world = setup.start(Some(plain())).await;
    let post = || world.request("POST", "/api/flows/check").token(TOKEN);
    post().json(json!({"flows": ["x".repeat(20_000)]})).send().await.refused(413, "BODY_TOO_LARGE");
    let keys: serde_json::Map<String, serde_json::Value> =
        (0..101).map(|n| (n.to_string(), json!(1))).collect();
    post().json(json!(keys)).send().await.refused(413, "BODY_TOO_LARGE");
    // Of two bytes each there are millions, and each takes thirty times as much once it is read.
    post().json(json!({"flows": vec![0; 101]})).send().await.refused(413, "BODY_TOO_LARGE");
    post().json(json!({"flows": vec![json!([]); 101]})).send().await.refused(413, "BODY_TOO_LARGE");
    // Announced as too large: nobody waits for it.
    post().json(json!({})).header("content-length", "20000").send().await.refused(413, "BODY_TOO_LARGE");
    // Announced and never sent.
    post().json(json!({})).header("content-length", "5000").send().await.refused(408, "REQUEST_TIMEOUT");
    // In pieces without end.
    let head =
        post().header("content-type", "application/json").header("transfer-encoding", "chunked").text();
    let endless = [head, b"400\r\n".to_vec(), b"x".repeat(0x400), b"\r\n".to_vec()].concat();
    let endless =
        [endless, [b"400\r\n".to_vec(), b"x".repeat(0x400), b"\r\n".to_vec()].concat().repeat(30)].concat();
    reply(&raw(world.addr, &endless).await).refused(413, "BODY_TOO_LARGE");
    still_serves(&world).await;
}

#[tokio::test]
async fn a_start_takes_no_more_than_a_message() {
    let mut setup = Setup::default();
    setup.settings.run_limits.max_message_bytes = 1000;
    let world = setup.start(Some(plain())).await;
    let start =
        |bytes: usize| world.post("/api/runs", json!({"node": "agent", "payload": "x".repeat(bytes)}));
    start(100_000).await.refused(413, "BODY_TOO_LARGE");
    // A flow may be larger than a message.
    world.post("/api/flows/check", json!({"flows": ["x".repeat(100_000)]})).await.ok(200);
    start(10).await.ok(202);
}

#[tokio::test]
async fn more_large_bodies_than_there_are_turns_are_all_read() {
    let world = World::with(plain()).await;
    let check =
        |_| world.post("/api/flows/check", json!({"flows": [{"id": "n", "type": "x".repeat(400_000)}]}));
    for answer in futures::future::join_all((0..12).map(check)).await {
        answer.ok(200);
    }
}

#[tokio::test]
async fn requests_that_are_two_at_once_are_one_or_none() {
    let world = World::with(plain()).await;
    let host = world.addr.to_string();
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
        let answer = raw(world.addr, form.as_bytes()).await;
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
        let mut stream = TcpStream::connect(world.addr).await.unwrap();
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
        assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    }
    // An absolute target must be ours too.
    let request =
        format!("GET http://evil.example/health HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    reply(&raw(world.addr, request.as_bytes()).await).refused(403, "HOST_REFUSED");
    still_serves(&world).await;
}

#[tokio::test]
async fn a_thousand_sockets_at_once() {
    let mut setup = Setup::default();
    setup.settings.access.max_connections = 300;
    let world = setup.start(Some(plain())).await;
    let bearer = format!("Bearer {TOKEN}");
    let opened = futures::future::join_all((0..1000).map(|_| async {
        let tcp = TcpStream::connect(world.addr).await.ok()?;
        let request = http::Request::builder()
            .uri(format!("ws://{}/events", world.addr))
            .header("host", world.addr.to_string())
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
        let answer = raw(world.addr, &Request::new(world.addr, "GET", "/health").text()).await;
        String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
}

#[tokio::test]
async fn frames_that_are_giant_endless_or_none() {
    let world = World::with(plain()).await;
    let open = || async {
        let mut stream = TcpStream::connect(world.addr).await.unwrap();
        let request = Request::new(world.addr, "GET", "/events")
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
    // Announces 2^62 bytes; continues for ever; is compressed though nobody agreed to that; is not masked; is no
    // frame; says it is text and is not.
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
    still_serves(&world).await;
}

#[tokio::test]
async fn a_socket_that_has_gone_without_a_word_is_let_go() {
    let mut setup = Setup::default();
    setup.settings.heartbeat = Duration::from_millis(100);
    setup.settings.access.max_connections = 1;
    let world = setup.start(Some(plain())).await;
    let silent = world.socket().await;
    // Open, and never answering: its place is free again.
    crate::kit::eventually("there is room again", || async {
        let answer = raw(world.addr, &Request::new(world.addr, "GET", "/health").text()).await;
        String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200").then_some(())
    })
    .await;
    drop(silent);
}

#[tokio::test]
async fn too_many_requests_are_told_so() {
    let mut setup = Setup::default();
    setup.settings.access.requests_per_second = 1;
    setup.settings.access.request_burst = 5;
    let world = setup.start(Some(plain())).await;
    let mut refused = 0;
    for _ in 0..10 {
        let answer = world.get("/api/flows").await;
        if answer.status != 200 {
            answer.refused(429, "RATE_LIMITED");
            assert_eq!(answer.header("retry-after"), Some("1"));
            refused += 1;
        }
    }
    assert!(refused >= 4);
}

#[tokio::test]
async fn a_flow_that_stops_everything_else_does_not_stop_the_sidecar() {
    let world = World::with(plain()).await;
    // Deep, wide, and with a name of everything.
    let deep = (0..90).fold(json!(1), |value, _| json!([value]));
    let odd = json!([{"id": "<script>\u{202e}", "type": "tab", "label": deep}, {"id": "n", "type": "x".repeat(5000)}]);
    world.post("/api/flows/check", json!({"flows": odd})).await;
    let wide: Vec<_> = (0..20_000).map(|n| json!({"id": n.to_string(), "type": "debug", "z": "t"})).collect();
    world.post("/api/flows/check", json!({"flows": wide})).await.ok(200);
    still_serves(&world).await;
}
