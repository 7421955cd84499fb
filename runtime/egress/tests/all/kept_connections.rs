//! Connections that stay open for the next request.

use crate::kit::Reply;
use crate::kit::{Server, client, get, net, policy, read, reply};
use bytes::Bytes;
use http::Method;
use redflow_egress::EgressRequest;
use std::time::Duration;

const URL: &str = "http://api.example.org/";

#[tokio::test]
async fn requests_that_change_nothing_share_a_connection_and_others_have_their_own() {
    let server = Server::start(|_| reply(200, "", b"answer")).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    for _ in 0..3 {
        assert_eq!(read(egress.send(get(URL)).await.unwrap()).await.unwrap(), b"answer");
    }
    assert_eq!(server.connections(), 1);
    for _ in 0..2 {
        let post = EgressRequest { method: Method::POST, body: Bytes::from_static(b"x"), ..get(URL) };
        assert_eq!(read(egress.send(post).await.unwrap()).await.unwrap(), b"answer");
    }
    assert_eq!(server.connections(), 3);
    let paths: Vec<_> = server.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(paths, ["/"; 5], "only a proxy gets the whole address");
    assert!(server.requests().iter().all(|request| request.header("host") == Some("api.example.org")));
}

#[tokio::test]
async fn an_answer_that_was_not_read_to_its_end_closes_its_connection() {
    let server = Server::start(|_| reply(200, "", b"answer")).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    drop(egress.send(get(URL)).await.unwrap());
    assert_eq!(read(egress.send(get(URL)).await.unwrap()).await.unwrap(), b"answer");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_server_that_closes_its_connections_is_asked_on_new_ones() {
    let server = Server::start(|request| match reply(200, "", request.path.as_bytes()) {
        Reply::Send(bytes) => Reply::Close(bytes),
        other => other,
    })
    .await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    for call in 1..=3 {
        assert_eq!(read(egress.send(get(URL)).await.unwrap()).await.unwrap(), b"/");
        assert_eq!(server.connections(), call);
        // The end of the connection has to arrive.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
