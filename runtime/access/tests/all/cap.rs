//! More connections than there may be.

use crate::house::{DEADLINE, open, settings};
use redflow_access::AccessSettings;
use redflow_contract::code::ApiCode;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_at_once_are_too_many_for_sixty_four_places() {
    let house = open(&AccessSettings { max_connections: 64, ..settings() }, Duration::from_secs(5));
    let go_on = CancellationToken::new();
    let (tell, mut refused) = mpsc::unbounded_channel();
    let mut clients = JoinSet::new();
    for _ in 0..1000 {
        let (address, wait, tell) = (house.address, go_on.clone(), tell.clone());
        clients.spawn(async move {
            let mut client = crate::house::Client(tokio::net::TcpStream::connect(address).await.unwrap());
            client.write(b"GET / HTTP/1.1\r\n").await;
            tokio::select! {
                // Those that have a place hear nothing until their request is whole.
                answer = client.rest() => {
                    tell.send(answer).unwrap();
                    false
                }
                () = wait.cancelled() => {
                    client.write(b"Host: a\r\nConnection: close\r\n\r\n").await;
                    client.rest().await.ends_with("well")
                }
            }
        });
    }
    let mut coded = 0;
    for n in 0..1000 - 64 {
        let answer = tokio::time::timeout(DEADLINE, refused.recv())
            .await
            .unwrap_or_else(|_| panic!("{n} were refused"));
        let answer = answer.unwrap();
        // Those that were too many even to be told were closed.
        if !answer.is_empty() {
            assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
            assert!(answer.contains(ApiCode::TooManyConnections.as_str()), "{answer}");
            coded += 1;
        }
    }
    assert!(coded > 0, "some were told why");
    go_on.cancel();
    let mut served = 0;
    while let Some(client) = clients.join_next().await {
        served += usize::from(client.unwrap());
    }
    assert_eq!(served, 64);
    house.check_well().await;
    assert_eq!(house.close().await, 0);
}

#[tokio::test]
async fn a_socket_keeps_its_place_until_it_is_closed() {
    let house = open(&AccessSettings { max_connections: 1, ..settings() }, Duration::from_secs(5));
    let mut socket = house.connect().await;
    socket.write(b"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
    let answer = socket.read_until("\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{answer}");
    // What looks like an answer of the HTTP library is just bytes here.
    let bare = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
    socket.write(bare.as_bytes()).await;
    assert_eq!(socket.read_until("\r\n\r\n").await, bare);
    let too_many = house.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(too_many.contains(ApiCode::TooManyConnections.as_str()), "{too_many}");
    socket.write(b"still here").await;
    assert_eq!(socket.read_until("here").await, "still here");
    drop(socket);
    let free = async {
        while house.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.contains("503") {}
    };
    tokio::time::timeout(DEADLINE, free).await.expect("the place is free again");
    house.check_well().await;
}
