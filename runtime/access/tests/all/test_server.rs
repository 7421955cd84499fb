//! A small service behind the real listener, and a client that writes and reads bytes.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use http::{StatusCode, header};
use hyper_util::rt::TokioIo;
use redflow_access::{AccessSettings, listen};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The longest wait of any test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: CancellationToken,
    pub(crate) served: JoinHandle<usize>,
    /// Ends one request to `/slow`.
    pub(crate) release: Arc<Notify>,
    /// Notified when a request to `/slow` arrives.
    pub(crate) arrived: Arc<Notify>,
}

pub(crate) fn settings() -> AccessSettings {
    AccessSettings::default()
}

pub(crate) fn start(settings: &AccessSettings, drain: Duration) -> TestServer {
    let listener = listen::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let (shutdown, release, arrived) =
        (CancellationToken::new(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let router = router(Arc::clone(&release), Arc::clone(&arrived));
    let (stop, settings) = (shutdown.clone(), settings.clone());
    let served = tokio::spawn(async move { listen::serve(listener, router, &settings, stop, drain).await });
    TestServer { address, shutdown, served, release, arrived }
}

fn router(release: Arc<Notify>, arrived: Arc<Notify>) -> Router {
    let slow = move || async move {
        arrived.notify_one();
        release.notified().await;
        "at last"
    };
    Router::new()
        .route("/", get(|| async { "well" }))
        .route("/echo", post(|body: String| async move { body }))
        .route("/slow", get(slow))
        .route("/endless", get(|| async { Body::from(vec![b'x'; 64 * 1024 * 1024]) }))
        .route("/socket", get(socket))
}

/// Upgrades to a socket that echoes everything.
async fn socket(mut request: Request) -> impl IntoResponse {
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let (mut read, mut write) = tokio::io::split(TokioIo::new(upgraded));
        let _ = tokio::io::copy(&mut read, &mut write).await;
    });
    (StatusCode::SWITCHING_PROTOCOLS, [(header::CONNECTION, "upgrade"), (header::UPGRADE, "echo")])
}

impl TestServer {
    pub(crate) async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// Sends bytes, and returns everything received until the connection is closed.
    pub(crate) async fn send(&self, bytes: &[u8]) -> String {
        let mut client = self.connect().await;
        client.write(bytes).await;
        client.read_to_end().await
    }

    /// Checks that a good request gets its response.
    pub(crate) async fn check_healthy(&self) {
        let response = self.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("well"), "{response}");
    }

    /// Stops, and returns how many connections were aborted.
    pub(crate) async fn stop(self) -> usize {
        self.shutdown.cancel();
        tokio::time::timeout(DEADLINE, self.served).await.expect("the server stops").unwrap()
    }
}

pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    /// Ignores a peer that stopped reading.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let _ = tokio::time::timeout(DEADLINE, self.0.write_all(bytes)).await.expect("the server reads");
    }

    /// Reads until the connection is closed or reset.
    pub(crate) async fn read_to_end(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = tokio::time::timeout(DEADLINE, self.0.read_to_end(&mut bytes))
            .await
            .expect("the connection closes");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Reads until this text arrived.
    pub(crate) async fn read_until(&mut self, end: &str) -> String {
        let mut text = String::new();
        let read = async {
            while !text.contains(end) {
                let byte = self.0.read_u8().await.unwrap_or_else(|why| panic!("{why} after {text}"));
                text.push(char::from(byte));
            }
        };
        tokio::time::timeout(DEADLINE, read).await.expect("the server responds");
        text
    }
}
