//! Malformed requests of every kind.

use crate::test_server::{TestServer, settings, start};
use redflow_contract::code::ApiCode;
use std::time::Duration;

async fn start_server() -> TestServer {
    start(&settings(), Duration::from_secs(1))
}

/// Checks that the request gets one error with a code, and that the server still works.
async fn assert_refused(server: &TestServer, status: &str, bytes: &[u8]) -> String {
    let response = server.send(bytes).await;
    let request = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{request}\n=> {response}");
    assert!(response.contains("\r\nconnection: close\r\n"), "{request}\n=> {response}");
    assert!(response.contains(ApiCode::RequestInvalid.as_str()), "{request}\n=> {response}");
    assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "one response: {request}\n=> {response}");
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())), "{response}");
    serde_json::from_str::<redflow_contract::api::ApiError>(body).unwrap();
    server.check_healthy().await;
    response
}

// SECURITY: no-smuggling
#[tokio::test]
async fn ambiguous_lengths_are_refused() {
    let server = start_server().await;
    let smuggled = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    // One reader uses the length, the other one the chunks.
    let both = [
        "Content-Length: 6\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 6",
        "transfer-encoding: CHUNKED\r\ncontent-length: 6",
        "Content-Length: 6\r\nX: y\r\nTransfer-Encoding: chunked\r\nContent-Length: 6",
    ];
    for lines in both {
        let request = format!("POST /echo HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n0\r\n\r\n{smuggled}");
        let response = assert_refused(&server, "400", request.as_bytes()).await;
        assert!(response.contains("both a length and a transfer coding"), "{response}");
        // The same in pieces of every size, after another request.
        for cut in [1, 7, 40, 60, 80] {
            let mut client = server.connect().await;
            client.0.set_nodelay(true).unwrap();
            client.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            for piece in request.as_bytes().chunks(cut) {
                client.write(piece).await;
                tokio::task::yield_now().await;
            }
            let response = client.read_to_end().await;
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
            assert!(response.contains(ApiCode::RequestInvalid.as_str()), "by {cut}: {response}");
            assert_eq!(response.matches("HTTP/1.1 ").count(), 2, "{response}");
        }
    }
    for lines in [
        "Content-Length: 6\r\nContent-Length: 5",
        "Content-Length: 6, 5",
        "Content-Length: +6",
        "Content-Length: -1",
        "Content-Length: 0x6",
        "Content-Length: ",
        "Content-Length: 99999999999999999999999",
        "Content-Length : 6",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding:\x0bchunked",
        "Transfer-Encoding : chunked",
    ] {
        let request = format!("POST /echo HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n0\r\n\r\n{smuggled}");
        assert_refused(&server, "400", request.as_bytes()).await;
    }
    let old =
        format!("POST /echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}");
    assert_refused(&server, "400", old.as_bytes()).await;
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn well_formed_bodies_are_read_whole() {
    let server = start_server().await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        let json = "{\n\"content-length: 9\": 1}";
        let chunked = format!(
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{json}\r\n0\r\n\r\n",
            json.len()
        );
        client.write(chunked.as_bytes()).await;
        let response = client.read_until(": 1}").await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with(json), "{response}");
        client.write(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
        let response = client.read_until("hello").await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    }
    // The same length twice is not ambiguous.
    client.write(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi").await;
    assert!(client.read_until("hi").await.starts_with("HTTP/1.1 200 OK\r\n"));
}

#[tokio::test]
async fn a_truncated_or_wrong_body_does_not_affect_other_requests() {
    let server = start_server().await;
    for body in ["zz\r\n", "5\r\nhello!!", "-1\r\n", "ffffffffffffffffff\r\n", "5;a=\"\r\n"] {
        let mut client = server.connect().await;
        let head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.write(format!("{head}{body}").as_bytes()).await;
        tokio::io::AsyncWriteExt::shutdown(&mut client.0).await.unwrap();
        let response = client.read_to_end().await;
        assert!(!response.contains("200 OK"), "{body:?} => {response}");
        server.check_healthy().await;
    }
}

// SECURITY: no-smuggling
#[tokio::test]
async fn garbage_gets_one_error_and_ends_the_connection() {
    let server = start_server().await;
    let good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for junk in [
        "\0\0\0\0\r\n\r\n".to_owned(),
        "hello\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET / HTTP/3.0\r\n\r\n".to_owned(),
        "GET / HTTP/1.2\r\n\r\n".to_owned(),
        "GET  /  HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET /\u{1}x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\n: empty\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nNo colon\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nX: a\0b\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nX: a\rb\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\0 a TLS hello\r\n\r\n".to_owned(),
        // Headers that continue on the next line.
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a\r\n X: folded\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n".to_owned(),
    ] {
        assert_refused(&server, "400", format!("{junk}{good}{good}").as_bytes()).await;
        // The same after a good request.
        let response = server.send(format!("{good}{junk}{good}").as_bytes()).await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{junk:?} => {response}");
        assert!(response.contains(ApiCode::RequestInvalid.as_str()), "{junk:?} => {response}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 2, "{junk:?} => {response}");
    }
}

#[tokio::test]
async fn lines_may_end_without_a_carriage_return() {
    // RFC 9112 allows it, and all readers agree where such a head ends.
    let server = start_server().await;
    let response = server.send(b"GET / HTTP/1.1\nHost: a\nConnection: close\n\n").await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    let mixed = b"POST /echo HTTP/1.1\nHost: a\nContent-Length: 6\nTransfer-Encoding: chunked\n\n0\r\n\r\n";
    assert_refused(&server, "400", mixed).await;
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let server = start_server().await;
    let line = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    assert_refused(&server, "431", line.as_bytes()).await;
    let lines = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(64));
    assert_refused(&server, "431", lines.as_bytes()).await;
    let endless = format!("GET /{}", "x".repeat(100_000));
    assert_refused(&server, "431", endless.as_bytes()).await;
    let fits = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: {}\r\n\r\n", "x".repeat(32_000));
    assert!(server.send(fits.as_bytes()).await.starts_with("HTTP/1.1 200 OK\r\n"));
    let fits = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{}\r\n", "X: y\r\n".repeat(62));
    assert!(server.send(fits.as_bytes()).await.starts_with("HTTP/1.1 200 OK\r\n"));
    // Trailers after the last chunk of a body are limited too.
    let mut trailers =
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: ".to_vec();
    trailers.extend([b'x'; 200_000]);
    let response = server.send(&trailers).await;
    assert!(!response.contains("200 OK"), "{response}");
    server.check_healthy().await;
}

#[tokio::test]
async fn other_http_versions_get_a_readable_error() {
    let server = start_server().await;
    assert_refused(&server, "400", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    assert_refused(&server, "400", b"PRI * HTTP/2.0\r\n\r\n").await;
    let response = server.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n").await;
    assert!(response.starts_with("HTTP/1.0 200 OK\r\n") && response.ends_with("well"), "{response}");
    let response = server.send(b"GET / HTTP/1.0\r\n\r\n").await;
    assert!(
        response.starts_with("HTTP/1.0 200 OK\r\n"),
        "the guard checks the host, not the listener: {response}"
    );
    // A whole request of HTTP/0.9.
    assert_refused(&server, "400", b"GET /\r\n").await;
    server.check_healthy().await;
}

// SECURITY: no-smuggling
#[tokio::test]
async fn survives_randomly_damaged_requests() {
    let server = start_server().await;
    let good: [&[u8]; 3] = [
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
    ];
    // A fixed seed, so that a failure is reproducible.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    for round in 0..300 {
        let mut bytes = good[round % good.len()].to_vec();
        for _ in 0..=next(4) {
            let index = next(bytes.len());
            match next(4) {
                0 => bytes[index] = u8::try_from(next(256)).unwrap(),
                1 => drop(bytes.remove(index)),
                2 => bytes.insert(index, b"\r\n :,;\0\t"[next(8)]),
                _ => bytes.extend_from_within(index..),
            }
        }
        let mut client = server.connect().await;
        client.write(&bytes).await;
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut client.0).await;
        client.read_to_end().await;
    }
    server.check_healthy().await;
    assert_eq!(server.stop().await, 0);
}
