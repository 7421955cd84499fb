//! Without free descriptors, connections wait; they are served once some are free again.

#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use axum::Router;
use axum::routing::get;
use redflow_access::{AccessSettings, listen};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(30);
const CLIENTS: usize = 20;

// SECURITY: file-descriptors
#[tokio::test]
async fn accepts_connections_again_once_descriptors_are_free() {
    let listener = listen::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    // These connections wait in the queue of the system.
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        clients.push(client);
    }
    let before = getrlimit(Resource::Nofile);
    let next = std::fs::File::open("/dev/null").map(|file| std::os::fd::AsRawFd::as_raw_fd(&file)).unwrap();
    let limit = u64::try_from(next).unwrap() + 3;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: before.maximum }).unwrap();

    let shutdown = CancellationToken::new();
    let router = Router::new().route("/", get(|| async { "well" }));
    let stop = shutdown.clone();
    let served = tokio::spawn(async move {
        listen::serve(listener, router, &AccessSettings::default(), stop, Duration::from_secs(5)).await
    });
    // The first three get responses, the others have to wait.
    let mut clients = clients.into_iter();
    let mut first: Vec<_> = clients.by_ref().take(3).collect();
    for client in &mut first {
        check_response(client).await;
    }
    assert!(TcpStream::connect(address).await.is_err(), "no descriptor is left");

    setrlimit(Resource::Nofile, before).unwrap();
    for mut client in clients {
        check_response(&mut client).await;
    }
    drop(first);
    shutdown.cancel();
    assert_eq!(tokio::time::timeout(DEADLINE, served).await.expect("the server stops").unwrap(), 0);
}

async fn check_response(client: &mut TcpStream) {
    let mut text = String::new();
    let read = async {
        while !text.ends_with("well") {
            text.push(char::from(client.read_u8().await.unwrap()));
        }
    };
    tokio::time::timeout(DEADLINE, read).await.expect("the server responds");
}
