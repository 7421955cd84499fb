//! A peer at Node-RED's address that is none, or a hostile one: what no real Node-RED does. What a real one does is in
//! the tests of the whole.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, Method};
use pretty_assertions::assert_eq;
use redflow_contract::api::ApiError;
use redflow_node_red::{DeployType, NodeRed, ProxyError, ProxyRequest, parse_address};
use secrecy::SecretString;
use serde_json::json;
use std::convert::Infallible;
use std::sync::mpsc::{Receiver, channel};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const TOKEN: &str = "hush-hush-token";

/// A peer that answers every request with these bytes, then perhaps with some more again and again, and tells what it
/// was asked.
async fn peer(answer: &str, more: Option<Vec<u8>>) -> (NodeRed, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, asked) = channel();
    let answer = answer.to_owned();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = head(&mut stream).await;
            let _ = sender.send(head);
            let _ = stream.write_all(answer.as_bytes()).await;
            while let Some(more) = &more
                && stream.write_all(more).await.is_ok()
            {}
            // Until the other side has had enough.
            while stream.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {}
        }
    });
    let client = client();
    let token = Some(SecretString::from(TOKEN));
    (NodeRed::new(parse_address(&url).unwrap(), client, token).unwrap(), asked)
}

fn client() -> reqwest::Client {
    // Only a client that could speak TLS needs to know how.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

async fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => bytes.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&bytes).to_lowercase()
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[track_caller]
fn is(error: &ApiError, code: &str, words: &str) {
    assert!(error.code.as_str() == code && error.message.contains(words), "{error:?}");
    assert!(!error.message.contains("hush"), "{error:?}");
}

#[tokio::test]
async fn what_is_no_node_red_is_told_so() {
    for (answer, words) in [
        (ok("<html>"), "is no Node-RED: its answer is not what Node-RED answers"),
        (ok("[]"), "is not what Node-RED answers"),
        (ok(r#"{"flows":{},"rev":"1"}"#), "its flow is no list of nodes"),
        (ok(r#"{"flows":[],"rev":"1","rev":"2"}"#), "is not what Node-RED answers"),
        (
            ok(&format!(r#"{{"flows":[{}{}],"rev":"1"}}"#, "[".repeat(5000), "]".repeat(5000))),
            "is not what Node-RED answers",
        ),
        (
            "HTTP/1.1 302 Found\r\nlocation: http://evil.example/\r\ncontent-length: 0\r\n\r\n".to_owned(),
            "sends elsewhere (302)",
        ),
        ("HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n".to_owned(), "httpAdminRoot"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(), "is no Node-RED"),
    ] {
        let (node_red, asked) = peer(&answer, None).await;
        is(&node_red.flows().await.unwrap_err(), "NODE_RED_UNREACHABLE", words);
        let head = asked.recv().unwrap();
        assert!(
            head.starts_with("get /flows http/1.1") && head.contains("node-red-api-version: v2"),
            "{head}"
        );
        assert!(head.contains(&format!("authorization: bearer {TOKEN}")), "{head}");
        // It was asked once, and nobody else.
        assert!(asked.try_recv().is_err());
    }
}

#[tokio::test]
async fn refusals_are_quoted_as_far_as_they_are_text() {
    let said = r#"{"code":"invalid_flow","message":"Error:\u001b[31m too bad."}"#;
    let answer = format!("HTTP/1.1 400 X\r\ncontent-length: {}\r\n\r\n{said}", said.len());
    let (node_red, _asked) = peer(&answer, None).await;
    let error = node_red.deploy(&json!([]), "1", DeployType::Nodes).await.unwrap_err();
    is(&error, "NODE_RED_REFUSED", "refused (400): invalid_flow, Error: [31m too bad.");
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read_to_it() {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    let (node_red, _asked) = peer(head, Some(vec![b' '; 1 << 16])).await;
    is(&node_red.flows().await.unwrap_err(), "NODE_RED_UNREACHABLE", "more than 41943040 bytes");
}

fn asked<'a>(path: &'a str, headers: &'a HeaderMap) -> ProxyRequest<'a> {
    ProxyRequest {
        method: Method::POST,
        path,
        query: Some("a=b"),
        headers,
        authorization: None,
        max_body_bytes: 10,
    }
}

fn body(pieces: &[&'static str]) -> Option<stream::Iter<std::vec::IntoIter<Result<Bytes, Infallible>>>> {
    let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
    Some(stream::iter(pieces))
}

#[tokio::test]
async fn what_goes_on_is_bounded_and_carries_no_secret_of_ours() {
    use futures::StreamExt as _;
    let (node_red, heads) = peer(&ok("fine"), None).await;
    let mut headers = HeaderMap::new();
    for name in
        ["cookie", "authorization", "connection", "x-forwarded-for", "origin", "te", "upgrade", "accept"]
    {
        headers.insert(name, HeaderValue::from_static("hush"));
    }
    let forwarded = node_red.forward(asked("/x/y", &headers), body(&["1234567890"])).await;
    let pieces: Vec<_> = forwarded.map_err(|why| format!("{why:?}")).unwrap().body.collect().await;
    assert_eq!(pieces.into_iter().map(Result::unwrap).collect::<Vec<_>>().concat(), b"fine");
    let head = heads.recv().unwrap();
    assert!(head.starts_with("post /x/y?a=b http/1.1\r\n"), "{head}");
    // Of all these, one means something to Node-RED.
    assert_eq!((head.matches("hush").count(), head.contains("accept: hush")), (1, true), "{head}");

    let refused = node_red.forward(asked("/x", &headers), body(&["12345", "67890", "1"])).await;
    assert!(matches!(refused, Err(ProxyError::BodyTooLarge)));
    let refused = node_red.forward(asked("/../x", &headers), body(&[])).await;
    assert!(matches!(refused, Err(ProxyError::Address)));
}

#[tokio::test]
async fn an_answer_that_is_too_large_does_not_go_back() {
    use futures::StreamExt as _;
    let headers = HeaderMap::new();
    let (node_red, _asked) = peer("HTTP/1.1 200 OK\r\ncontent-length: 41943041\r\n\r\n", None).await;
    match node_red.forward(asked("/x", &headers), body(&[])).await {
        Err(ProxyError::NodeRed(error)) => is(&error, "NODE_RED_REFUSED", "more than 41943040 bytes"),
        _ => panic!("it went back"),
    }
    let (node_red, _asked) =
        peer("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", Some(vec![b' '; 1 << 16])).await;
    let Ok(mut forwarded) = node_red.forward(asked("/x", &headers), body(&[])).await else {
        panic!("no answer")
    };
    let mut bytes = 0;
    let end = loop {
        match forwarded.body.next().await {
            Some(Ok(piece)) => bytes += piece.len(),
            end => break end,
        }
    };
    assert!(end.is_some_and(|end| end.is_err()) && bytes <= 41_943_040, "{bytes}");
}

#[tokio::test]
async fn a_socket_that_is_none_is_refused() {
    for (answer, code, words) in [
        ("HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n", "NODE_RED_REFUSED", "does not open its /comms"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "NODE_RED_REFUSED", "refused (200)"),
        (
            "HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: no\r\n\r\n",
            "NODE_RED_UNREACHABLE",
            "does not open a socket as it should",
        ),
    ] {
        let (node_red, heads) = peer(answer, None).await;
        let Err(error) = node_red.socket(None).await else { panic!("{answer}: it was opened") };
        is(&error, code, words);
        assert!(!heads.recv().unwrap().contains("hush"));
    }
}

#[tokio::test]
async fn an_upgrade_that_is_cut_off_means_that_there_is_no_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            head(&mut stream).await;
        }
    });
    let node_red = NodeRed::new(parse_address(&url).unwrap(), client(), None).unwrap();
    let Err(error) = node_red.socket(None).await else { panic!("it was opened") };
    is(&error, "NODE_RED_REFUSED", "does not open its /comms");
}
