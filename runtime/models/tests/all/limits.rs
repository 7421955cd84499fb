//! Endless answers, and answers that never arrive.

use crate::scripted_server::{ScriptedServer, Step, chunk, head, stream_head};
use crate::wires::{CHAT, Case, OLLAMA, WIRES, call, call_error, streamed, whole};
use futures::future::join_all;
use redflow_contract::code::RunErrorCode as Code;
use serde_json::json as value;

/// Far more than a model reads, and than a socket buffers.
const TOO_MUCH: usize = 1 << 30;

// SECURITY: answer-limits
#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let long = |length: &str| Step::Send(format!("{}{length}\r\n\r\n", head(200, &[])).into_bytes());
    let spaces = vec![b' '; 1 << 16];
    let line = [spaces.as_slice(), b"\n"].concat();
    // Whole answers are read in the same way for all wires; there are two stream formats.
    let plain = [
        vec![long(&format!("content-length: {TOO_MUCH}")), Step::Flood(spaces.clone())],
        vec![long("transfer-encoding: chunked"), Step::Flood(chunk(&spaces))],
        vec![long("connection: close"), Step::Flood(spaces.clone())],
    ];
    // One line without an end, and empty lines.
    let stream = |bytes: &[u8]| vec![vec![stream_head(), Step::Flood(chunk(bytes))]];
    for (wire, streamed, scripts, limit) in [
        (CHAT, false, plain.to_vec(), 8 << 20),
        (CHAT, true, stream(&spaces), 8 << 20),
        (OLLAMA, true, stream(&spaces), 8 << 20),
        (CHAT, true, stream(&line), 256 << 20),
    ] {
        for script in scripts {
            let server = ScriptedServer::start([script]).await;
            let model = wire.at(&server, value!({"stream": streamed, "maxRetries": 2}));
            let (code, message) = call_error(&*model).await;
            assert_eq!((code, server.request_count()), (Code::ModelError, 1), "{message}");
            assert!(message.ends_with(&format!("has more than {limit} bytes")), "{message}");
            // The model closes the connection, so the server stops.
            let seen = server.wait_until(|seen| seen.disconnects == 1).await;
            assert!(seen.flooded < TOO_MUCH, "{}", seen.flooded);
        }
    }
}

// SECURITY: answer-limits
#[tokio::test]
async fn an_endless_error_is_not_read_to_its_end() {
    let script =
        vec![Step::Send(format!("{}\r\n", head(401, &[])).into_bytes()), Step::Flood(vec![b'x'; 1 << 16])];
    let server = ScriptedServer::start([script]).await;
    assert_eq!(call_error(&*CHAT.at(&server, value!({}))).await.0, Code::InvalidCredentials);
    server.wait_until(|seen| seen.disconnects == 1).await;
}

// SECURITY: answer-limits
#[tokio::test]
async fn slow_answers_time_out() {
    let cases: [Case; 7] = [
        whole("no word", |_| vec![Step::Hang]),
        whole("a head that drips", |_| {
            vec![
                Step::Send(head(200, &[]).into_bytes()),
                Step::Send(b"x-slow: ".to_vec()),
                Step::Drip(b"x".to_vec()),
            ]
        }),
        whole("a body that drips", |_| {
            let head = format!("{}content-length: 9999999\r\n\r\n", head(200, &[]));
            vec![Step::Send(head.into_bytes()), Step::Drip(b" ".to_vec())]
        }),
        whole("an error that drips", |_| {
            let head = format!("{}content-length: 9999999\r\n\r\n", head(500, &[]));
            vec![Step::Send(head.into_bytes()), Step::Drip(b" ".to_vec())]
        }),
        streamed("a stream that drips", |_| vec![stream_head(), Step::Drip(chunk("\n"))]),
        streamed("a stream that stops", |wire| {
            vec![stream_head(), Step::Send(chunk(wire.events[0])), Step::Hang]
        }),
        streamed("a stream without its last event", |wire| {
            let (_, events) = wire.events.split_last().unwrap();
            let events = events.iter().filter(|event| !event.contains("finish_reason"));
            vec![stream_head(), Step::Send(chunk(events.copied().collect::<String>())), Step::Hang]
        }),
    ];
    let each = cases.iter().flat_map(|case| WIRES.map(|wire| (case, wire)));
    let each = each.map(|(Case { name, stream, script }, wire)| async move {
        let server = ScriptedServer::start([script(wire)]).await;
        let model = wire.at(&server, value!({"stream": stream, "timeout": 1_000, "maxRetries": 2}));
        let (code, message) = call_error(&*model).await;
        assert_eq!((code, server.request_count()), (Code::Timeout, 1), "{name}: {message}");
        assert!(message.ends_with("did not answer within 1000 ms"), "{name}: {message}");
        server.wait_until(|seen| seen.disconnects == 1).await;
    });
    join_all(each).await;
}

// SECURITY: answer-limits
#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    for wire in WIRES {
        for (streamed, script) in [
            (false, vec![Step::Hang]),
            (false, vec![Step::Send(format!("{}\r\n", head(200, &[])).into_bytes()), Step::Hang]),
            (true, vec![stream_head(), Step::Send(chunk(wire.events[0])), Step::Hang]),
        ] {
            let server = ScriptedServer::start([script]).await;
            let model = wire.at(&server, value!({"stream": streamed}));
            let call = tokio::spawn(async move { call(&*model).await });
            server.wait_until(|seen| seen.requests.len() == 1).await;
            assert!(!call.is_finished());
            call.abort();
            server.wait_until(|seen| seen.disconnects == 1).await;
        }
    }
}
