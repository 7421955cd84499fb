//! More connections than the limit allows.

use crate::test_server::{DEADLINE, settings, start};
use redflow_access::AccessSettings;
use redflow_contract::code::ApiCode;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

// SECURITY: connection-limit
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_1000_connections_only_64_are_served_and_the_others_are_refused() {
    let server = start(&AccessSettings { max_connections: 64, ..settings() }, Duration::from_secs(5));
    let proceed = CancellationToken::new();
    let (sender, mut refused) = mpsc::unbounded_channel();
    let mut clients = JoinSet::new();
    for _ in 0..1000 {
        let (address, wait, sender) = (server.address, proceed.clone(), sender.clone());
        clients.spawn(async move {
            let mut client =
                crate::test_server::Client(tokio::net::TcpStream::connect(address).await.unwrap());
            client.write(b"GET / HTTP/1.1\r\n").await;
            tokio::select! {
                // Accepted connections get no response until their request is complete.
                response = client.read_to_end() => {
                    sender.send(response).unwrap();
                    false
                }
                () = wait.cancelled() => {
                    client.write(b"Host: a\r\nConnection: close\r\n\r\n").await;
                    client.read_to_end().await.ends_with("well")
                }
            }
        });
    }
    let mut with_code = 0;
    for n in 0..1000 - 64 {
        let response = tokio::time::timeout(DEADLINE, refused.recv())
            .await
            .unwrap_or_else(|_| panic!("{n} were refused"));
        let response = response.unwrap();
        // Connections beyond `max_refusals` are closed without a response.
        if !response.is_empty() {
            assert!(response.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{response}");
            assert!(response.contains(ApiCode::TooManyConnections.as_str()), "{response}");
            with_code += 1;
        }
    }
    assert!(with_code > 0, "some got a code");
    proceed.cancel();
    let mut served = 0;
    while let Some(client) = clients.join_next().await {
        served += usize::from(client.unwrap());
    }
    assert_eq!(served, 64);
    server.check_healthy().await;
    assert_eq!(server.stop().await, 0);
}

// SECURITY: connection-limit
#[tokio::test]
async fn an_upgraded_socket_counts_until_it_is_closed() {
    let server = start(&AccessSettings { max_connections: 1, ..settings() }, Duration::from_secs(5));
    let mut socket = server.connect().await;
    socket.write(b"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
    let response = socket.read_until("\r\n\r\n").await;
    assert!(response.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{response}");
    // Bytes that look like a response of hyper are not replaced on an upgraded socket.
    let bare = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
    socket.write(bare.as_bytes()).await;
    assert_eq!(socket.read_until("\r\n\r\n").await, bare);
    let too_many = server.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(too_many.contains(ApiCode::TooManyConnections.as_str()), "{too_many}");
    socket.write(b"still here").await;
    assert_eq!(socket.read_until("here").await, "still here");
    drop(socket);
    let free = async {
        while server.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.contains("503") {}
    };
    tokio::time::timeout(DEADLINE, free).await.expect("the permit is free again");
    server.check_healthy().await;
}
