//! Start and shutdown of the listener.

use crate::test_server::{DEADLINE, settings, start};
use redflow_access::{AccessSettings, listen};
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use std::time::Duration;

#[tokio::test]
async fn shutdown_finishes_open_requests_and_accepts_no_new_connections() {
    // No timeout may end a connection in this test.
    let server = start(&AccessSettings { head_timeout: 10 * DEADLINE, ..settings() }, DEADLINE);
    let mut idle = server.connect().await;
    idle.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    idle.read_until("well").await;
    let mut fresh = server.connect().await;
    let mut busy = server.connect().await;
    busy.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    server.arrived.notified().await;
    server.shutdown.cancel();
    // Idle connections are closed at once.
    assert_eq!(idle.read_to_end().await, "");
    assert_eq!(fresh.read_to_end().await, "");
    assert!(!server.served.is_finished());
    let refused = async { while tokio::net::TcpStream::connect(server.address).await.is_ok() {} };
    tokio::time::timeout(DEADLINE, refused).await.expect("no new connection is accepted");
    server.release.notify_one();
    let response = busy.read_to_end().await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("at last"), "{response}");
    drop((idle, fresh, busy));
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn shutdown_aborts_requests_that_do_not_end_in_time() {
    let server = start(&settings(), Duration::from_millis(50));
    let mut busy = server.connect().await;
    busy.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    server.arrived.notified().await;
    let mut socket = server.connect().await;
    socket.write(b"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
    socket.read_until("\r\n\r\n").await;
    assert_eq!(server.stop().await, 2);
    assert_eq!(busy.read_to_end().await, "");
}

#[tokio::test]
async fn a_client_with_an_early_response_gets_no_reset() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let server = start(&AccessSettings { linger: DEADLINE, ..settings() }, Duration::from_secs(1));
    let mut client = server.connect().await;
    client.write(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(40_000)).as_bytes()).await;
    let response = client.read_until("}").await;
    assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
    for _ in 0..60 {
        client.0.write_all(&[b'x'; 1000]).await.expect("the server still reads");
    }
    client.0.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let read =
        tokio::time::timeout(DEADLINE, client.0.read_to_end(&mut rest)).await.expect("the connection closes");
    assert_eq!(read.unwrap(), 0);
    server.check_healthy().await;
}

#[tokio::test]
async fn a_failed_bind_says_why() {
    let taken = listen::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = taken.local_addr().unwrap();
    let cases = [
        (address.to_string(), "another program"),
        ("192.0.2.1:1881".to_owned(), "does not have that address"),
    ];
    for (address, why) in cases {
        let error = listen::bind(address.parse().unwrap()).unwrap_err();
        assert_eq!(error.code, ProblemCode::Api(ApiCode::ListenFailed));
        assert!(error.message.contains(why) && error.message.contains(&address), "{}", error.message);
        assert!(error.message.contains("--listen"), "{}", error.message);
    }
}
