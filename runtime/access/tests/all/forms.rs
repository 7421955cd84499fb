//! Requests in every bad form.

use crate::house::{House, open, settings};
use redflow_contract::code::ApiCode;
use std::time::Duration;

async fn house() -> House {
    open(&settings(), Duration::from_secs(1))
}

/// Refused with a code, closed, and the next one is served.
async fn refused(house: &House, status: &str, bytes: &[u8]) -> String {
    let answer = house.send(bytes).await;
    let what = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}\n=> {answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{what}\n=> {answer}");
    assert!(answer.contains(ApiCode::RequestInvalid.as_str()), "{what}\n=> {answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "one answer: {what}\n=> {answer}");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())), "{answer}");
    serde_json::from_str::<redflow_contract::api::ApiError>(body).unwrap();
    house.check_well().await;
    answer
}

#[tokio::test]
async fn lengths_that_leave_a_doubt_are_refused() {
    let house = house().await;
    let smuggled = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    // A length for one reader, chunks for the other.
    let both = [
        "Content-Length: 6\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 6",
        "transfer-encoding: CHUNKED\r\ncontent-length: 6",
        "Content-Length: 6\r\nX: y\r\nTransfer-Encoding: chunked\r\nContent-Length: 6",
    ];
    for lines in both {
        let request = format!("POST /echo HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n0\r\n\r\n{smuggled}");
        let answer = refused(&house, "400", request.as_bytes()).await;
        assert!(answer.contains("both a length and a transfer coding"), "{answer}");
        // However it is cut into pieces, and behind another one.
        for cut in [1, 7, 40, 60, 80] {
            let mut client = house.connect().await;
            client.0.set_nodelay(true).unwrap();
            client.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
            for piece in request.as_bytes().chunks(cut) {
                client.write(piece).await;
                tokio::task::yield_now().await;
            }
            let answer = client.rest().await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(answer.contains(ApiCode::RequestInvalid.as_str()), "by {cut}: {answer}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 2, "{answer}");
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
        refused(&house, "400", request.as_bytes()).await;
    }
    let old =
        format!("POST /echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}");
    refused(&house, "400", old.as_bytes()).await;
    assert_eq!(house.close().await, 0);
}

#[tokio::test]
async fn bodies_in_good_form_are_read_whole() {
    let house = house().await;
    let mut client = house.connect().await;
    for _ in 0..3 {
        let json = "{\n\"content-length: 9\": 1}";
        let chunked = format!(
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{json}\r\n0\r\n\r\n",
            json.len()
        );
        client.write(chunked.as_bytes()).await;
        let answer = client.read_until(": 1}").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with(json), "{answer}");
        client.write(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").await;
        let answer = client.read_until("hello").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    // The same length twice says one thing only.
    client.write(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi").await;
    assert!(client.read_until("hi").await.starts_with("HTTP/1.1 200 OK\r\n"));
}

#[tokio::test]
async fn a_body_that_breaks_off_or_lies_takes_nobody_along() {
    let house = house().await;
    for body in ["zz\r\n", "5\r\nhello!!", "-1\r\n", "ffffffffffffffffff\r\n", "5;a=\"\r\n"] {
        let mut client = house.connect().await;
        let head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.write(format!("{head}{body}").as_bytes()).await;
        tokio::io::AsyncWriteExt::shutdown(&mut client.0).await.unwrap();
        let answer = client.rest().await;
        assert!(!answer.contains("200 OK"), "{body:?} => {answer}");
        house.check_well().await;
    }
}

#[tokio::test]
async fn junk_is_answered_once_and_nothing_after_it() {
    let house = house().await;
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
        // A line that goes on in the next one.
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a\r\n X: folded\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n".to_owned(),
    ] {
        refused(&house, "400", format!("{junk}{good}{good}").as_bytes()).await;
        // Behind a good one it is the same.
        let answer = house.send(format!("{good}{junk}{good}").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{junk:?} => {answer}");
        assert!(answer.contains(ApiCode::RequestInvalid.as_str()), "{junk:?} => {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 2, "{junk:?} => {answer}");
    }
}

#[tokio::test]
async fn lines_may_end_without_a_carriage_return() {
    // As RFC 9112 allows; no two readers disagree on where such a head ends.
    let house = house().await;
    let answer = house.send(b"GET / HTTP/1.1\nHost: a\nConnection: close\n\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let mixed = b"POST /echo HTTP/1.1\nHost: a\nContent-Length: 6\nTransfer-Encoding: chunked\n\n0\r\n\r\n";
    refused(&house, "400", mixed).await;
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused() {
    let house = house().await;
    let line = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    refused(&house, "431", line.as_bytes()).await;
    let lines = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(64));
    refused(&house, "431", lines.as_bytes()).await;
    let endless = format!("GET /{}", "x".repeat(100_000));
    refused(&house, "431", endless.as_bytes()).await;
    let just = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: {}\r\n\r\n", "x".repeat(32_000));
    assert!(house.send(just.as_bytes()).await.starts_with("HTTP/1.1 200 OK\r\n"));
    let just = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{}\r\n", "X: y\r\n".repeat(62));
    assert!(house.send(just.as_bytes()).await.starts_with("HTTP/1.1 200 OK\r\n"));
    // Also those behind the last chunk of a body.
    let mut trailers =
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: ".to_vec();
    trailers.extend([b'x'; 200_000]);
    let answer = house.send(&trailers).await;
    assert!(!answer.contains("200 OK"), "{answer}");
    house.check_well().await;
}

#[tokio::test]
async fn other_versions_get_an_answer_they_can_read() {
    let house = house().await;
    refused(&house, "400", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    refused(&house, "400", b"PRI * HTTP/2.0\r\n\r\n").await;
    let answer = house.send(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("well"), "{answer}");
    let answer = house.send(b"GET / HTTP/1.0\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.0 200 OK\r\n"),
        "the guard asks for the host, not the listener: {answer}"
    );
    // HTTP/0.9 had no more than this.
    refused(&house, "400", b"GET /\r\n").await;
    house.check_well().await;
}

#[tokio::test]
async fn whatever_is_sent_is_survived() {
    let house = house().await;
    let good: [&[u8]; 3] = [
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
    ];
    // A fixed sequence: what fails once fails again.
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
            let place = next(bytes.len());
            match next(4) {
                0 => bytes[place] = u8::try_from(next(256)).unwrap(),
                1 => drop(bytes.remove(place)),
                2 => bytes.insert(place, b"\r\n :,;\0\t"[next(8)]),
                _ => bytes.extend_from_within(place..),
            }
        }
        let mut client = house.connect().await;
        client.write(&bytes).await;
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut client.0).await;
        client.rest().await;
    }
    house.check_well().await;
    assert_eq!(house.close().await, 0);
}
