//! Answers: decoded, bounded, and whole.

use crate::kit::{Reply, Server, after_answer, client, error_of, get, net, policy, post, raw, read, reply};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderValue, Method};
use redflow_egress::{EgressError, EgressRequest, MAX_HEAD_BYTES, MAX_HEADERS, Rule};
use std::io::Write;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The error or body of an answer with these bytes.
async fn outcome(bytes: Vec<u8>) -> Result<Vec<u8>, EgressError> {
    let server = Server::start(move |_| Reply::Close(bytes.clone())).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    read(egress.send(get("http://api.example.org/")).await?).await
}

fn is_failure(outcome: &Result<Vec<u8>, EgressError>, part: &str) -> bool {
    matches!(outcome, Err(EgressError::Failed { sent: true, reason }) if reason.contains(part))
}

#[tokio::test]
async fn sends_what_was_asked_and_nothing_that_breaks_the_frame() {
    let server = Server::start(|_| reply(200, "x-answer: 1\r\n", b"ok")).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    let mut request = post("http://api.example.org/a/b?c=d%20e#f", "{}");
    for (name, value) in [
        ("host", "evil.example.org"),
        ("content-length", "9"),
        ("transfer-encoding", "chunked"),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("expect", "100-continue"),
        ("te", "trailers"),
        ("proxy-authorization", "x"),
        ("accept-encoding", "br"),
        ("x-own", "1"),
    ] {
        request.headers.insert(name, HeaderValue::from_static(value));
    }
    let answer = egress.send(request).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.headers["x-answer"].as_bytes()), (200, &b"1"[..]));
    assert_eq!(answer.url, "http://api.example.org/a/b?c=d%20e");
    assert_eq!(read(answer).await.unwrap(), b"ok");
    let seen = server.requests().pop().unwrap();
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str(), seen.body.as_slice()),
        ("POST", "/a/b?c=d%20e", &b"{}"[..])
    );
    let names: Vec<&str> = seen.headers.keys().map(String::as_str).collect();
    assert_eq!(names, ["accept", "accept-encoding", "content-length", "host", "user-agent", "x-own"]);
    assert_eq!(
        (seen.header("host"), seen.header("accept-encoding")),
        (Some("api.example.org"), Some("gzip"))
    );
    assert_eq!(seen.header("content-length"), Some("2"));
}

#[tokio::test]
async fn a_request_without_a_body_says_so_where_a_body_is_usual() {
    let server = Server::start(|_| reply(200, "", b"ok")).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    for (method, length) in
        [(Method::POST, Some("0")), (Method::PUT, Some("0")), (Method::GET, None), (Method::DELETE, None)]
    {
        let request = EgressRequest { method: method.clone(), ..get("http://api.example.org/") };
        read(egress.send(request).await.unwrap()).await.unwrap();
        assert_eq!(server.requests().pop().unwrap().header("content-length"), length, "{method}");
    }
}

#[tokio::test]
async fn decodes_gzip_as_a_stream() {
    let text = "0123456789".repeat(20_000);
    let body = gzip(text.as_bytes());
    let server = Server::start(move |_| reply(200, "content-encoding: gzip\r\n", &body)).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    let answer = egress.send(get("http://api.example.org/")).await.unwrap();
    assert!(
        !answer.headers.contains_key("content-encoding") && !answer.headers.contains_key("content-length")
    );
    assert_eq!(read(answer).await.unwrap(), text.as_bytes());
    // Two members, the old name, an empty body and an answer without a body.
    let mut members = gzip(b"one ");
    members.extend(gzip(b"two"));
    assert_eq!(outcome(raw(200, "content-encoding: x-gzip\r\n", &members)).await.unwrap(), b"one two");
    assert_eq!(outcome(raw(200, "content-encoding: gzip\r\n", b"")).await.unwrap(), b"");
    assert_eq!(outcome(raw(200, "content-encoding: identity\r\n", b"x")).await.unwrap(), b"x");
    assert_eq!(outcome(b"HTTP/1.1 204 X\r\ncontent-encoding: br\r\n\r\n".to_vec()).await.unwrap(), b"");
}

// SECURITY: egress-limits
#[tokio::test]
async fn other_and_stacked_encodings_are_refused() {
    for headers in [
        "content-encoding: br\r\n",
        "content-encoding: deflate\r\n",
        "content-encoding: zstd\r\n",
        "content-encoding: gzip, gzip\r\n",
        "content-encoding: gzip\r\ncontent-encoding: gzip\r\n",
        "content-encoding: identity\r\ncontent-encoding: gzip\r\n",
        "content-encoding: gzip;q=1\r\n",
    ] {
        let body = gzip(b"x");
        let server = Server::start(move |_| reply(200, headers, &body)).await;
        let (egress, _) = client(policy(|_| ()), net(&server));
        let error = error_of(&egress, post("http://api.example.org/", "x")).await;
        assert_eq!((error.verdict(), error.is_sent()), (Rule::Bounds.as_str(), false), "{headers}");
        assert!(
            error.to_string().starts_with("the server answered with status 200, but the request is"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_damaged_gzip_body_is_an_error() {
    let whole = gzip(&"text ".repeat(500).into_bytes());
    let mut changed = whole.clone();
    let last = changed.len() - 6;
    changed[last] ^= 0xff;
    let mut followed = whole.clone();
    followed.extend_from_slice(b"more");
    for body in [b"no gzip at all".to_vec(), whole[..whole.len() - 9].to_vec(), changed, followed] {
        let outcome = outcome(raw(200, "content-encoding: gzip\r\n", &body)).await;
        assert!(is_failure(&outcome, "gzip"), "{outcome:?}");
    }
}

// SECURITY: egress-limits
#[tokio::test]
async fn the_body_is_bounded_after_decoding() {
    let limit = 1 << 20;
    let exact = vec![b'x'; limit];
    assert_eq!(outcome(raw(200, "", &exact)).await.unwrap().len(), limit);
    assert_eq!(outcome(raw(200, "content-encoding: gzip\r\n", &gzip(&exact))).await.unwrap().len(), limit);
    let too_large = Err(EgressError::TooLarge { limit: limit as u64 });
    assert_eq!(outcome(raw(200, "", &vec![b'x'; limit + 1])).await, too_large);
    // 100 MB become 100 KB, and stop after the first megabyte.
    let bomb = gzip(&vec![0; 100 << 20]);
    assert!(bomb.len() < limit);
    assert_eq!(outcome(raw(200, "content-encoding: gzip\r\n", &bomb)).await, too_large);
}

// SECURITY: egress-limits
#[tokio::test]
async fn an_endless_body_is_bounded() {
    let chunked = "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n";
    let empty = gzip(b"");
    let mut empty_member = format!("{:x}\r\n", empty.len()).into_bytes();
    empty_member.extend_from_slice(&empty);
    empty_member.extend_from_slice(b"\r\n");
    for (limit, first, again) in [
        // Each part is small, and takes as long as a large one.
        (1 << 16, format!("{chunked}\r\n"), b"4\r\nabcd\r\n".repeat(1000)),
        (1 << 20, "HTTP/1.1 200 X\r\n\r\n".to_owned(), vec![b'x'; 4096]),
        // Encoded bytes without an end that decode to nothing.
        (1 << 16, format!("{chunked}content-encoding: gzip\r\n\r\n"), empty_member.repeat(100)),
    ] {
        let server = Server::start(move |_| Reply::Endless(first.clone().into_bytes(), again.clone())).await;
        let (egress, _) = client(policy(|_| ()), net(&server));
        let request = EgressRequest { max_body_bytes: limit, ..get("http://api.example.org/") };
        assert_eq!(error_of(&egress, request).await, EgressError::TooLarge { limit });
    }
    // An announced size is not read first.
    let server =
        Server::start(|_| Reply::Hang(b"HTTP/1.1 200 X\r\ncontent-length: 2000000\r\n\r\n".to_vec())).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    let error = error_of(&egress, get("http://api.example.org/")).await;
    assert_eq!(error, EgressError::TooLarge { limit: 1 << 20 });
}

#[tokio::test]
async fn the_operators_bound_is_never_exceeded() {
    let server = Server::start(|_| reply(200, "", &[b'x'; 101])).await;
    let (egress, _) = client(policy(|settings| settings.max_body_bytes = 100), net(&server));
    let error = error_of(&egress, get("http://api.example.org/")).await;
    assert_eq!(error, EgressError::TooLarge { limit: 100 });
    assert_eq!(error.verdict(), "too_large");
    let request = EgressRequest { max_body_bytes: 50, ..get("http://api.example.org/") };
    assert_eq!(error_of(&egress, request).await, EgressError::TooLarge { limit: 50 });
}

// SECURITY: egress-limits
#[tokio::test]
async fn the_head_is_bounded() {
    let head = |count: usize| {
        let headers: String = (1..count).map(|n| format!("x-{n}: 1\r\n")).collect();
        raw(200, &headers, b"ok")
    };
    assert_eq!(outcome(head(MAX_HEADERS)).await.unwrap(), b"ok");
    // hyper reads no head that is this large, so the status is not known.
    let too_large = "the head of the answer has more than";
    assert!(is_failure(&outcome(head(MAX_HEADERS + 1)).await, too_large));
    let long = |bytes: usize| raw(200, &format!("x-long: {}\r\n", "x".repeat(bytes)), b"ok");
    assert_eq!(outcome(long(MAX_HEAD_BYTES - 200)).await.unwrap(), b"ok");
    let error = outcome(long(MAX_HEAD_BYTES)).await.unwrap_err();
    assert_eq!(error.verdict(), "too_large");
    assert_eq!(after_answer(error), (Some(200), EgressError::HeadTooLarge));
    let server =
        Server::start(|_| Reply::Endless(b"HTTP/1.1 200 X\r\n".to_vec(), b"x-a: b\r\n".repeat(50))).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    let error = error_of(&egress, get("http://api.example.org/")).await;
    assert!(error.to_string().contains(too_large), "{error}");
}

#[tokio::test]
async fn what_is_no_http_is_an_error() {
    for bytes in ["SSH-2.0-OpenSSH_9.6\r\n", "220 mail ESMTP\r\n", "<html></html>", "HTTP/1.1 abc\r\n\r\n"] {
        let outcome = outcome(bytes.as_bytes().to_vec()).await;
        assert!(is_failure(&outcome, "not HTTP"), "{bytes}: {outcome:?}");
    }
    // Both lengths at once, or two of them, are the tools of request smuggling.
    for headers in
        ["content-length: 2\r\ncontent-length: 3\r\n", "content-length: +2\r\n", "content-length: x\r\n"]
    {
        let outcome = outcome(format!("HTTP/1.1 200 X\r\n{headers}\r\nok").into_bytes()).await;
        assert!(outcome.is_err(), "{headers}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_lost_connection_is_an_error() {
    let lost = outcome(b"HTTP/1.1 200 X\r\ncontent-length: 10\r\n\r\nhalf".to_vec()).await;
    assert!(is_failure(&lost, "lost"), "{lost:?}");
    let lost = outcome(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n".to_vec()).await;
    assert!(is_failure(&lost, "lost"), "{lost:?}");
    assert!(is_failure(&outcome(Vec::new()).await, "lost"));
}

#[tokio::test]
async fn a_head_request_has_no_body() {
    let server = Server::start(|_| {
        Reply::Send(b"HTTP/1.1 200 X\r\ncontent-length: 99\r\ncontent-encoding: br\r\n\r\n".to_vec())
    })
    .await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    let request = EgressRequest { method: Method::HEAD, ..get("http://api.example.org/") };
    let answer = egress.send(request).await.unwrap();
    assert_eq!(answer.headers["content-length"], "99");
    assert_eq!(read(answer).await.unwrap(), b"");
}
