//! A server at Node-RED's address that is not a Node-RED, or a hostile one. The tests of the whole product
//! use a real one.

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

/// A server that responds to every request with these bytes, then repeats `more` if given. Reports the
/// request heads.
async fn start_server(response: &str, more: Option<Vec<u8>>) -> (NodeRed, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, heads) = channel();
    let response = response.to_owned();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = read_head(&mut stream).await;
            let _ = sender.send(head);
            let _ = stream.write_all(response.as_bytes()).await;
            while let Some(more) = &more
                && stream.write_all(more).await.is_ok()
            {}
            // Read until the client closes the connection.
            while stream.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {}
        }
    });
    let client = client();
    let token = Some(SecretString::from(TOKEN));
    (NodeRed::new(parse_address(&url).unwrap(), client, token).unwrap(), heads)
}

fn client() -> reqwest::Client {
    // The HTTP client needs a TLS provider, even without https.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

async fn read_head(stream: &mut TcpStream) -> String {
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
fn assert_error(error: &ApiError, code: &str, words: &str) {
    assert!(error.code.as_str() == code && error.message.contains(words), "{error:?}");
    assert!(!error.message.contains("hush"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_not_node_red_is_reported() {
    for (response, words) in [
        (ok("<html>"), "is not a Node-RED: its response is not one of Node-RED"),
        (ok("[]"), "its response is not one of Node-RED"),
        (ok(r#"{"flows":{},"rev":"1"}"#), "its flow is not a list of nodes"),
        (ok(r#"{"flows":[],"rev":"1","rev":"2"}"#), "its response is not one of Node-RED"),
        (
            ok(&format!(r#"{{"flows":[{}{}],"rev":"1"}}"#, "[".repeat(5000), "]".repeat(5000))),
            "its response is not one of Node-RED",
        ),
        (
            "HTTP/1.1 302 Found\r\nlocation: http://evil.example/\r\ncontent-length: 0\r\n\r\n".to_owned(),
            "redirects (302)",
        ),
        ("HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n".to_owned(), "httpAdminRoot"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(), "is not a Node-RED"),
    ] {
        let (node_red, heads) = start_server(&response, None).await;
        assert_error(&node_red.flows().await.unwrap_err(), "NODE_RED_UNREACHABLE", words);
        let head = heads.recv().unwrap();
        assert!(
            head.starts_with("get /flows http/1.1") && head.contains("node-red-api-version: v2"),
            "{head}"
        );
        assert!(head.contains(&format!("authorization: bearer {TOKEN}")), "{head}");
        // There was one request, and no retry.
        assert!(heads.try_recv().is_err());
    }
}

#[tokio::test]
async fn the_reason_of_a_refusal_is_quoted_without_control_characters() {
    let reason = r#"{"code":"invalid_flow","message":"Error:\u001b[31m too bad."}"#;
    let response = format!("HTTP/1.1 400 X\r\ncontent-length: {}\r\n\r\n{reason}", reason.len());
    let (node_red, _heads) = start_server(&response, None).await;
    let error = node_red.deploy(&json!([]), "1", DeployType::Nodes).await.unwrap_err();
    assert_error(&error, "NODE_RED_REFUSED", "refused (400): invalid_flow, Error: [31m too bad.");
}

#[tokio::test]
async fn an_endless_response_is_not_read_to_its_end() {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    let (node_red, _heads) = start_server(head, Some(vec![b' '; 1 << 16])).await;
    assert_error(&node_red.flows().await.unwrap_err(), "NODE_RED_UNREACHABLE", "more than 41943040 bytes");
}

fn post<'a>(path: &'a str, headers: &'a HeaderMap) -> ProxyRequest<'a> {
    ProxyRequest {
        method: Method::POST,
        path,
        query: Some("a=b"),
        headers,
        authorization: None,
        max_body_bytes: 10,
    }
}

fn body(chunks: &[&'static str]) -> Option<stream::Iter<std::vec::IntoIter<Result<Bytes, Infallible>>>> {
    let chunks: Vec<_> = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
    Some(stream::iter(chunks))
}

// SECURITY: forwarded-requests
#[tokio::test]
async fn a_forwarded_request_is_bounded_and_carries_no_secret_of_ours() {
    use futures::StreamExt as _;
    let (node_red, heads) = start_server(&ok("fine"), None).await;
    let mut headers = HeaderMap::new();
    for name in
        ["cookie", "authorization", "connection", "x-forwarded-for", "origin", "te", "upgrade", "accept"]
    {
        headers.insert(name, HeaderValue::from_static("hush"));
    }
    let forwarded = node_red.forward(post("/x/y", &headers), body(&["1234567890"])).await;
    let chunks: Vec<_> = forwarded.map_err(|why| format!("{why:?}")).unwrap().body.collect().await;
    assert_eq!(chunks.into_iter().map(Result::unwrap).collect::<Vec<_>>().concat(), b"fine");
    let head = heads.recv().unwrap();
    assert!(head.starts_with("post /x/y?a=b http/1.1\r\n"), "{head}");
    // Only one of these headers passes.
    assert_eq!((head.matches("hush").count(), head.contains("accept: hush")), (1, true), "{head}");

    let refused = node_red.forward(post("/x", &headers), body(&["12345", "67890", "1"])).await;
    assert!(matches!(refused, Err(ProxyError::BodyTooLarge)));
    let refused = node_red.forward(post("/../x", &headers), body(&[])).await;
    assert!(matches!(refused, Err(ProxyError::Address)));
}

// SECURITY: forwarded-requests
#[tokio::test]
async fn a_response_that_is_too_large_is_not_forwarded() {
    use futures::StreamExt as _;
    let headers = HeaderMap::new();
    let (node_red, _heads) = start_server("HTTP/1.1 200 OK\r\ncontent-length: 41943041\r\n\r\n", None).await;
    match node_red.forward(post("/x", &headers), body(&[])).await {
        Err(ProxyError::NodeRed(error)) => {
            assert_error(&error, "NODE_RED_REFUSED", "more than 41943040 bytes")
        }
        _ => panic!("it was forwarded"),
    }
    let (node_red, _heads) =
        start_server("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", Some(vec![b' '; 1 << 16])).await;
    let Ok(mut forwarded) = node_red.forward(post("/x", &headers), body(&[])).await else {
        panic!("no response")
    };
    let mut bytes = 0;
    let end = loop {
        match forwarded.body.next().await {
            Some(Ok(chunk)) => bytes += chunk.len(),
            end => break end,
        }
    };
    assert!(end.is_some_and(|end| end.is_err()) && bytes <= 41_943_040, "{bytes}");
}

#[tokio::test]
async fn a_failed_websocket_handshake_is_an_error() {
    for (response, code, words) in [
        ("HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n", "NODE_RED_REFUSED", "does not open its /comms"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "NODE_RED_REFUSED", "refused (200)"),
        (
            "HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: no\r\n\r\n",
            "NODE_RED_UNREACHABLE",
            "its WebSocket handshake is wrong",
        ),
    ] {
        let (node_red, heads) = start_server(response, None).await;
        let Err(error) = node_red.socket(None).await else { panic!("{response}: it was opened") };
        assert_error(&error, code, words);
        assert!(!heads.recv().unwrap().contains("hush"));
    }
}

#[tokio::test]
async fn a_closed_upgrade_means_that_comms_is_not_open() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            read_head(&mut stream).await;
        }
    });
    let node_red = NodeRed::new(parse_address(&url).unwrap(), client(), None).unwrap();
    let Err(error) = node_red.socket(None).await else { panic!("it was opened") };
    assert_error(&error, "NODE_RED_REFUSED", "does not open its /comms");
}
