//! Connections that fail, at every possible moment.

use crate::scripted_server::{ScriptedServer, Step, chunk, head, json, stream, stream_head, unused_address};
use crate::wires::{CHAT, Case, WIRES, Wire, call_error, call_text, streamed, whole};
use futures::future::join_all;
use redflow_contract::code::RunErrorCode as Code;
use redflow_models::ModelSettings;
use serde_json::json as value;

#[tokio::test]
async fn no_server_listens() {
    let address = unused_address().await;
    let model = CHAT.at_url(&format!("http://{address}"), value!({}), ModelSettings::default()).unwrap();
    let (code, message) = call_error(&*model).await;
    assert_eq!(code, Code::ProviderUnavailable);
    assert_eq!(
        message,
        format!("OpenAI's interface ({address}) could not be reached: nothing listens there")
    );
}

/// Half of an answer, then this step.
fn half(wire: Wire, end: Step) -> Vec<Step> {
    let (first, _) = wire.answer.split_at(wire.answer.len() / 2);
    let head = format!("{}content-length: {}\r\n\r\n", head(200, &[]), wire.answer.len());
    vec![Step::Send([head.as_bytes(), first.as_bytes()].concat()), end]
}

#[tokio::test]
async fn a_broken_connection_is_retried() {
    let cases: [Case; 9] = [
        whole("closed before the head", |_| vec![Step::Close]),
        whole("reset before the head", |_| vec![Step::Reset]),
        whole("closed in the head", |_| vec![Step::Send(b"HTTP/1.1 200 O".to_vec()), Step::Close]),
        whole("closed in the body", |wire| half(wire, Step::Close)),
        whole("reset in the body", |wire| half(wire, Step::Reset)),
        whole("an invalid chunk", |_| {
            vec![stream_head(), Step::Send(b"no number\r\n".to_vec()), Step::Close]
        }),
        streamed("an incomplete chunk", |wire| {
            let part = chunk(wire.events[0]);
            vec![stream_head(), Step::Send(part[..part.len() / 2].to_vec()), Step::Close]
        }),
        streamed("closed in the stream", |wire| {
            vec![stream_head(), Step::Send(chunk(wire.events[0])), Step::Close]
        }),
        streamed("reset in the stream", |wire| {
            vec![stream_head(), Step::Send(chunk(wire.events[0])), Step::Reset]
        }),
    ];
    // All at once, because each waits half a second before its retry.
    let each = cases.iter().flat_map(|case| WIRES.map(|wire| (case, wire)));
    let each = each.map(|(Case { name, stream, script }, wire)| async move {
        let server = ScriptedServer::start([script(wire), script(wire), json(wire.answer)]).await;
        let (code, message) = call_error(&*wire.at(&server, value!({"stream": stream}))).await;
        assert_eq!((code, server.request_count()), (Code::ProviderUnavailable, 1), "{name}: {message}");
        assert!(message.contains("the connection was lost before the answer ended"), "{name}: {message}");
        let model = wire.at(&server, value!({"stream": stream, "maxRetries": 1}));
        assert_eq!(call_text(&*model).await, "hi", "{name}");
        assert_eq!(server.request_count(), 3, "{name}");
    });
    join_all(each).await;
}

#[tokio::test]
async fn a_response_that_is_not_http_is_not_retried() {
    let many = (0..300).map(|n| format!("x-{n}: {n}\r\n")).collect::<String>();
    let huge = format!("x-huge: {}\r\n", "x".repeat(1 << 20));
    for bytes in [
        "SSH-2.0-OpenSSH_9.9\r\n".to_owned(),
        "-ERR unknown command 'POST'\r\n".to_owned(),
        "\u{15}\u{3}\u{1}\0\u{2}\u{2}F".to_owned(),
        "HTTP/9.9 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 abc OK\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nno header\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n".to_owned(),
        format!("{}{many}\r\n", head(200, &[])),
        format!("{}{huge}\r\n", head(200, &[])),
    ] {
        let start = bytes.chars().take(40).collect::<String>();
        let server = ScriptedServer::start([vec![Step::Send(bytes.into_bytes()), Step::Hang]]).await;
        let (code, message) = call_error(&*CHAT.at(&server, value!({"maxRetries": 2}))).await;
        assert_eq!((code, server.request_count()), (Code::ProviderUnavailable, 1), "{start:?}: {message}");
        let sentence = "could not be reached: what it sends is not HTTP; check the address";
        assert!(message.ends_with(sentence), "{start:?}: {message}");
    }
}

/// As a careless proxy does it: the stream ends properly, but within an event.
#[tokio::test]
async fn a_stream_that_ends_within_an_event_is_retried() {
    for wire in WIRES {
        let event = wire.events[0].trim_end();
        let half = &event[..event.len() - 3];
        let server = ScriptedServer::start([stream([half]), stream([half]), json(wire.answer)]).await;
        let (code, message) = call_error(&*wire.at(&server, value!({"stream": true}))).await;
        assert_eq!((code, server.request_count()), (Code::ProviderUnavailable, 1), "{message}");
        assert!(message.ends_with("broke off before it ended"), "{message}");
        let model = wire.at(&server, value!({"stream": true, "maxRetries": 1}));
        assert_eq!((call_text(&*model).await.as_str(), server.request_count()), ("hi", 3));
    }
}

/// The status arrives, but the body never ends.
#[tokio::test]
async fn an_endless_error_body_does_not_change_the_error() {
    let head = format!("{}content-length: 1000\r\n\r\n{{", head(429, &[("retry-after", "3600")]));
    let server = ScriptedServer::start([vec![Step::Send(head.into_bytes()), Step::Hang]]).await;
    let (code, message) = call_error(&*CHAT.at(&server, value!({"maxRetries": 2}))).await;
    assert_eq!((code, server.request_count()), (Code::RateLimit, 1), "{message}");
    assert!(message.contains("it asks to wait 3600 s"), "{message}");
}
