//! Slow and silent peers.

use crate::test_server::{settings, start};
use redflow_access::AccessSettings;
use redflow_contract::code::ApiCode;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

fn short_head_timeout() -> AccessSettings {
    AccessSettings { head_timeout: Duration::from_millis(200), ..settings() }
}

// SECURITY: timeouts
#[tokio::test]
async fn a_late_head_gets_408() {
    let server = start(&short_head_timeout(), Duration::from_secs(1));
    let response = server.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ").await;
    assert!(response.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{response}");
    assert!(response.contains(ApiCode::RequestTimeout.as_str()), "{response}");
    server.check_healthy().await;
    // The same for a head that arrives byte by byte.
    let client = server.connect().await;
    client.0.set_nodelay(true).unwrap();
    let (mut read, mut write) = client.0.into_split();
    let writer = tokio::spawn(async move {
        let mut interval = tokio::time::interval(Duration::from_millis(20));
        while write.write_all(b"X").await.is_ok() {
            interval.tick().await;
        }
    });
    let mut bytes = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut bytes);
    let _ = tokio::time::timeout(crate::test_server::DEADLINE, read).await.expect("the connection closes");
    assert!(String::from_utf8_lossy(&bytes).starts_with("HTTP/1.1 408 "));
    writer.await.unwrap();
    server.check_healthy().await;
}

// SECURITY: timeouts
#[tokio::test]
async fn an_idle_connection_is_closed_without_a_response() {
    let server = start(&short_head_timeout(), Duration::from_secs(1));
    assert_eq!(server.send(b"").await, "");
    // Also after a good request.
    let mut client = server.connect().await;
    client.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.read_until("well").await;
    assert_eq!(client.read_to_end().await, "");
    server.check_healthy().await;
}

// SECURITY: connection-limit
#[tokio::test]
async fn half_open_connections_do_not_affect_others() {
    let server = start(&short_head_timeout(), Duration::from_secs(1));
    // Clients that stop sending in the middle of a head, of a body, and before a response.
    for bytes in [
        b"".as_slice(),
        b"GET / HTTP/1.1\r\nHos",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello",
        b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let mut client = server.connect().await;
        client.write(bytes).await;
        client.0.shutdown().await.unwrap();
        let response = client.read_to_end().await;
        assert!(!response.contains("200 OK"), "{response}");
        server.check_healthy().await;
    }
    // Clients that reset the connection while a response is on its way.
    for _ in 0..20 {
        let mut client = server.connect().await;
        client.write(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.read_until("\r\n\r\n").await;
        drop(client);
    }
    server.check_healthy().await;
    assert_eq!(server.stop().await, 0);
}

// SECURITY: timeouts
#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let settings =
        AccessSettings { write_stall: Duration::from_millis(200), max_connections: 1, ..settings() };
    let server = start(&settings, Duration::from_secs(1));
    let mut client = server.connect().await;
    client.write(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.read_until("\r\n\r\n").await;
    // It has the only permit, so another request succeeds only after the disconnect.
    let healthy = async {
        loop {
            let response = server.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
            if response.ends_with("well") {
                break;
            }
            assert!(response.contains(ApiCode::TooManyConnections.as_str()), "{response}");
        }
    };
    tokio::time::timeout(crate::test_server::DEADLINE, healthy).await.expect("the permit is free again");
    assert!(client.read_to_end().await.len() < 64 * 1024 * 1024, "the response was cut off");
}
