//! Beginning and ending.

use crate::house::{DEADLINE, open, settings};
use redflow_access::{AccessSettings, listen};
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use std::time::Duration;

#[tokio::test]
async fn what_is_under_way_is_finished_and_nothing_new_is_taken() {
    // Nothing ends here because its time is up.
    let house = open(&AccessSettings { head_timeout: 10 * DEADLINE, ..settings() }, DEADLINE);
    let mut idle = house.connect().await;
    idle.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    idle.read_until("well").await;
    let mut fresh = house.connect().await;
    let mut busy = house.connect().await;
    busy.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    house.arrived.notified().await;
    house.shutdown.cancel();
    // Who waits for nothing is let go at once.
    assert_eq!(idle.rest().await, "");
    assert_eq!(fresh.rest().await, "");
    assert!(!house.served.is_finished());
    let refused = async { while tokio::net::TcpStream::connect(house.address).await.is_ok() {} };
    tokio::time::timeout(DEADLINE, refused).await.expect("nothing new is taken");
    house.release.notify_one();
    let answer = busy.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("at last"), "{answer}");
    drop((idle, fresh, busy));
    assert_eq!(house.close().await, 0);
}

#[tokio::test]
async fn what_does_not_end_in_time_is_cut() {
    let house = open(&settings(), Duration::from_millis(50));
    let mut busy = house.connect().await;
    busy.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await;
    house.arrived.notified().await;
    let mut socket = house.connect().await;
    socket.write(b"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n").await;
    socket.read_until("\r\n\r\n").await;
    assert_eq!(house.close().await, 2);
    assert_eq!(busy.rest().await, "");
}

#[tokio::test]
async fn who_is_answered_early_can_finish_and_gets_no_reset() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let house = open(&AccessSettings { linger: DEADLINE, ..settings() }, Duration::from_secs(1));
    let mut client = house.connect().await;
    client.write(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(40_000)).as_bytes()).await;
    let answer = client.read_until("}").await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    for _ in 0..60 {
        client.0.write_all(&[b'x'; 1000]).await.expect("what is still to come is taken");
    }
    client.0.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(DEADLINE, client.0.read_to_end(&mut rest)).await.expect("it closes");
    assert_eq!(read.unwrap(), 0);
    house.check_well().await;
}

#[tokio::test]
async fn an_address_that_cannot_be_listened_at_says_why() {
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
