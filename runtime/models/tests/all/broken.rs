//! Connections that are never made, or break at every place they can.

use crate::ask::{CHAT, Case, WIRES, Wire, fails, text};
use crate::server::{Server, Step, chunk, head, json, nowhere, stream, stream_head};
use futures::future::join_all;
use redflow_contract::code::RunErrorCode as Code;
use redflow_models::ModelSettings;
use serde_json::json as value;

#[tokio::test]
async fn nobody_listens() {
    let place = nowhere().await;
    let model = CHAT.at_url(&format!("http://{place}"), value!({}), ModelSettings::default()).unwrap();
    let (code, message) = fails(&*model).await;
    assert_eq!(code, Code::ProviderUnavailable);
    assert_eq!(message, format!("OpenAI's interface ({place}) could not be reached: nothing listens there"));
}

/// Half of an answer, and what comes before and after it.
fn half(wire: Wire, ending: Step) -> Vec<Step> {
    let (first, _) = wire.answer.split_at(wire.answer.len() / 2);
    let head = format!("{}content-length: {}\r\n\r\n", head(200, &[]), wire.answer.len());
    vec![Step::Send([head.as_bytes(), first.as_bytes()].concat()), ending]
}

#[tokio::test]
async fn wherever_it_breaks_it_is_tried_again() {
    let cases: [Case; 9] = [
        ("closed before the head", false, |_| vec![Step::Close]),
        ("reset before the head", false, |_| vec![Step::Reset]),
        ("closed in the head", false, |_| vec![Step::Send(b"HTTP/1.1 200 O".to_vec()), Step::Close]),
        ("closed in the body", false, |wire| half(wire, Step::Close)),
        ("reset in the body", false, |wire| half(wire, Step::Reset)),
        ("no chunk where one should be", false, |_| {
            vec![stream_head(), Step::Send(b"no number\r\n".to_vec()), Step::Close]
        }),
        ("a chunk that breaks off", true, |wire| {
            let piece = chunk(wire.events[0]);
            vec![stream_head(), Step::Send(piece[..piece.len() / 2].to_vec()), Step::Close]
        }),
        ("closed in the stream", true, |wire| {
            vec![stream_head(), Step::Send(chunk(wire.events[0])), Step::Close]
        }),
        ("reset in the stream", true, |wire| {
            vec![stream_head(), Step::Send(chunk(wire.events[0])), Step::Reset]
        }),
    ];
    // All at once: each waits half a second between its tries.
    let each = cases.iter().flat_map(|case| WIRES.map(|wire| (case, wire)));
    let each = each.map(|((name, streamed, broken), wire)| async move {
        let server = Server::start([broken(wire), broken(wire), json(wire.answer)]).await;
        let (code, message) = fails(&*wire.at(&server, value!({"stream": streamed}))).await;
        assert_eq!((code, server.requests()), (Code::ProviderUnavailable, 1), "{name}: {message}");
        assert!(message.contains("the connection was lost before the answer ended"), "{name}: {message}");
        let model = wire.at(&server, value!({"stream": streamed, "maxRetries": 1}));
        assert_eq!(text(&*model).await, "hi", "{name}");
        assert_eq!(server.requests(), 3, "{name}");
    });
    join_all(each).await;
}

#[tokio::test]
async fn what_is_no_http_is_not_tried_again() {
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
        let shown = bytes.chars().take(40).collect::<String>();
        let server = Server::start([vec![Step::Send(bytes.into_bytes()), Step::Hold]]).await;
        let (code, message) = fails(&*CHAT.at(&server, value!({"maxRetries": 2}))).await;
        assert_eq!((code, server.requests()), (Code::ProviderUnavailable, 1), "{shown:?}: {message}");
        let sentence = "could not be reached: what it sends is not HTTP; check the address";
        assert!(message.ends_with(sentence), "{shown:?}: {message}");
    }
}

/// The way of proxies that notice nothing: the stream ends in good order, in the midst of an event.
#[tokio::test]
async fn a_stream_that_ends_in_the_midst_of_an_event_is_tried_again() {
    for wire in WIRES {
        let event = wire.events[0].trim_end();
        let half = &event[..event.len() - 3];
        let server = Server::start([stream([half]), stream([half]), json(wire.answer)]).await;
        let (code, message) = fails(&*wire.at(&server, value!({"stream": true}))).await;
        assert_eq!((code, server.requests()), (Code::ProviderUnavailable, 1), "{message}");
        assert!(message.ends_with("broke off before it ended"), "{message}");
        let model = wire.at(&server, value!({"stream": true, "maxRetries": 1}));
        assert_eq!((text(&*model).await.as_str(), server.requests()), ("hi", 3));
    }
}

/// The status is there; what it says beside it never comes.
#[tokio::test]
async fn an_error_that_never_ends_is_the_error_it_began_as() {
    let head = format!("{}content-length: 1000\r\n\r\n{{", head(429, &[("retry-after", "3600")]));
    let server = Server::start([vec![Step::Send(head.into_bytes()), Step::Hold]]).await;
    let (code, message) = fails(&*CHAT.at(&server, value!({"maxRetries": 2}))).await;
    assert_eq!((code, server.requests()), (Code::RateLimit, 1), "{message}");
    assert!(message.contains("it asks to wait 3600 s"), "{message}");
}
