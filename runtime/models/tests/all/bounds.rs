//! Answers without end, and answers that never come.

use crate::ask::{CHAT, Case, OLLAMA, WIRES, ask, fails};
use crate::server::{Server, Step, chunk, head, stream_head};
use futures::future::join_all;
use redflow_contract::code::RunErrorCode as Code;
use serde_json::json as value;

/// Far more than anyone reads, and than any socket holds.
const TOO_MUCH: usize = 256 << 20;

#[tokio::test]
async fn too_much_is_not_read_to_its_end() {
    let long = |length: &str| Step::Send(format!("{}{length}\r\n\r\n", head(200, &[])).into_bytes());
    let spaces = vec![b' '; 1 << 16];
    let line = [spaces.as_slice(), b"\n"].concat();
    // What is not asked for in pieces is read the same way for all; streams are cut in two ways.
    let plain = [
        vec![long(&format!("content-length: {TOO_MUCH}")), Step::Flood(spaces.clone())],
        vec![long("transfer-encoding: chunked"), Step::Flood(chunk(&spaces))],
        vec![long("connection: close"), Step::Flood(spaces.clone())],
    ];
    // Lines that say nothing, and one that does not end.
    let streams =
        || [vec![stream_head(), Step::Flood(chunk(&line))], vec![stream_head(), Step::Flood(chunk(&spaces))]];
    for (wire, streamed, scripts) in
        [(CHAT, false, plain.to_vec()), (CHAT, true, streams().to_vec()), (OLLAMA, true, streams().to_vec())]
    {
        for script in scripts {
            let server = Server::start([script]).await;
            let model = wire.at(&server, value!({"stream": streamed, "maxRetries": 2}));
            let (code, message) = fails(&*model).await;
            assert_eq!((code, server.requests()), (Code::ModelError, 1), "{message}");
            assert!(message.ends_with("has more than 8388608 bytes"), "{message}");
            // The other side is told to stop by an end of the connection.
            let seen = server.until(|seen| seen.gone == 1).await;
            assert!(seen.flooded < TOO_MUCH, "{}", seen.flooded);
        }
    }
}

#[tokio::test]
async fn an_error_without_end_is_read_as_far_as_it_makes_sense() {
    let script =
        vec![Step::Send(format!("{}\r\n", head(401, &[])).into_bytes()), Step::Flood(vec![b'x'; 1 << 16])];
    let server = Server::start([script]).await;
    assert_eq!(fails(&*CHAT.at(&server, value!({}))).await.0, Code::InvalidCredentials);
    server.until(|seen| seen.gone == 1).await;
}

#[tokio::test]
async fn what_takes_too_long_is_given_up() {
    let cases: [Case; 7] = [
        ("no word", false, |_| vec![Step::Hold]),
        ("a head that drips", false, |_| {
            vec![
                Step::Send(head(200, &[]).into_bytes()),
                Step::Send(b"x-slow: ".to_vec()),
                Step::Drip(b"x".to_vec()),
            ]
        }),
        ("a body that drips", false, |_| {
            let head = format!("{}content-length: 9999999\r\n\r\n", head(200, &[]));
            vec![Step::Send(head.into_bytes()), Step::Drip(b" ".to_vec())]
        }),
        ("an error that drips", false, |_| {
            let head = format!("{}content-length: 9999999\r\n\r\n", head(500, &[]));
            vec![Step::Send(head.into_bytes()), Step::Drip(b" ".to_vec())]
        }),
        ("a stream that drips", true, |_| vec![stream_head(), Step::Drip(chunk("\n"))]),
        ("a stream that stops", true, |wire| {
            vec![stream_head(), Step::Send(chunk(wire.events[0])), Step::Hold]
        }),
        ("a stream without its last event", true, |wire| {
            let (_, events) = wire.events.split_last().unwrap();
            let events = events.iter().filter(|event| !event.contains("finish_reason"));
            vec![stream_head(), Step::Send(chunk(events.copied().collect::<String>())), Step::Hold]
        }),
    ];
    let each = cases.iter().flat_map(|case| WIRES.map(|wire| (case, wire)));
    let each = each.map(|((name, streamed, slow), wire)| async move {
        let server = Server::start([slow(wire)]).await;
        let model = wire.at(&server, value!({"stream": streamed, "timeout": 1_000, "maxRetries": 2}));
        let (code, message) = fails(&*model).await;
        assert_eq!((code, server.requests()), (Code::Timeout, 1), "{name}: {message}");
        assert!(message.ends_with("did not answer within 1000 ms"), "{name}: {message}");
        server.until(|seen| seen.gone == 1).await;
    });
    join_all(each).await;
}

#[tokio::test]
async fn who_no_longer_waits_hangs_up() {
    for wire in WIRES {
        for (streamed, script) in [
            (false, vec![Step::Hold]),
            (false, vec![Step::Send(format!("{}\r\n", head(200, &[])).into_bytes()), Step::Hold]),
            (true, vec![stream_head(), Step::Send(chunk(wire.events[0])), Step::Hold]),
        ] {
            let server = Server::start([script]).await;
            let model = wire.at(&server, value!({"stream": streamed}));
            let call = tokio::spawn(async move { ask(&*model).await });
            server.until(|seen| seen.requests.len() == 1).await;
            assert!(!call.is_finished());
            call.abort();
            server.until(|seen| seen.gone == 1).await;
        }
    }
}
