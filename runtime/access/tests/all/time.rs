//! Peers that take their time.

use crate::house::{open, settings};
use redflow_access::AccessSettings;
use redflow_contract::code::ApiCode;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

fn hasty() -> AccessSettings {
    AccessSettings { head_timeout: Duration::from_millis(200), ..settings() }
}

#[tokio::test]
async fn a_head_that_does_not_arrive_in_time_is_told_so() {
    let house = open(&hasty(), Duration::from_secs(1));
    let answer = house.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ").await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    assert!(answer.contains(ApiCode::RequestTimeout.as_str()), "{answer}");
    house.check_well().await;
    // Drop by drop it does not arrive in time either.
    let client = house.connect().await;
    client.0.set_nodelay(true).unwrap();
    let (mut read, mut write) = client.0.into_split();
    let drops = tokio::spawn(async move {
        let mut beat = tokio::time::interval(Duration::from_millis(20));
        while write.write_all(b"X").await.is_ok() {
            beat.tick().await;
        }
    });
    let mut bytes = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut read, &mut bytes);
    let _ = tokio::time::timeout(crate::house::DEADLINE, read).await.expect("it closes");
    assert!(String::from_utf8_lossy(&bytes).starts_with("HTTP/1.1 408 "));
    drops.await.unwrap();
    house.check_well().await;
}

#[tokio::test]
async fn a_connection_on_which_nothing_comes_is_closed_without_a_word() {
    let house = open(&hasty(), Duration::from_secs(1));
    assert_eq!(house.send(b"").await, "");
    // Also after a good request.
    let mut client = house.connect().await;
    client.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.read_until("well").await;
    assert_eq!(client.rest().await, "");
    house.check_well().await;
}

#[tokio::test]
async fn sockets_that_are_half_open_are_in_nobodys_way() {
    let house = open(&hasty(), Duration::from_secs(1));
    // One that will send no more, in the middle of a head, of a body, and before an answer.
    for bytes in [
        b"".as_slice(),
        b"GET / HTTP/1.1\r\nHos",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello",
        b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let mut client = house.connect().await;
        client.write(bytes).await;
        client.0.shutdown().await.unwrap();
        let answer = client.rest().await;
        assert!(!answer.contains("200 OK"), "{answer}");
        house.check_well().await;
    }
    // Ones that vanish with a reset, while something is on its way to them.
    for _ in 0..20 {
        let mut client = house.connect().await;
        client.write(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await;
        client.read_until("\r\n\r\n").await;
        drop(client);
    }
    house.check_well().await;
    assert_eq!(house.close().await, 0);
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_cut_off() {
    let settings =
        AccessSettings { write_stall: Duration::from_millis(200), max_connections: 1, ..settings() };
    let house = open(&settings, Duration::from_secs(1));
    let mut client = house.connect().await;
    client.write(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n").await;
    client.read_until("\r\n\r\n").await;
    // It has the only place: another is answered when it was thrown out.
    let well = async {
        loop {
            let answer = house.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
            if answer.ends_with("well") {
                break;
            }
            assert!(answer.contains(ApiCode::TooManyConnections.as_str()), "{answer}");
        }
    };
    tokio::time::timeout(crate::house::DEADLINE, well).await.expect("the place is free again");
    assert!(client.rest().await.len() < 64 * 1024 * 1024, "it did not get everything");
}
