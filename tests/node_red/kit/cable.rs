//! The connection between Node-RED and the sidecar. A test can cut it, stall it and connect it to another address.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

/// An address that stays the same while the server behind it changes.
pub(crate) struct Cable {
    pub(crate) addr: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

struct Shared {
    target: Mutex<Option<SocketAddr>>,
    connections: Mutex<Vec<AbortHandle>>,
    connection_count: Mutex<usize>,
    open_gate: watch::Sender<bool>,
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut();
    }
}

impl Cable {
    /// Connected to nothing yet: it closes every connection.
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: Mutex::default(),
            connections: Mutex::default(),
            connection_count: Mutex::default(),
            open_gate: watch::channel(true).0,
        });
        let in_task = Arc::clone(&shared);
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let target = *in_task.target.lock().unwrap();
                let Some(target) = target else { continue };
                *in_task.connection_count.lock().unwrap() += 1;
                let task = tokio::spawn(join(client, target, in_task.open_gate.subscribe()));
                in_task.connections.lock().unwrap().push(task.abort_handle());
            }
        });
        Self { addr, shared, listening }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The target of new connections from now on.
    pub(crate) fn connect_to(&self, target: Option<SocketAddr>) {
        *self.shared.target.lock().unwrap() = target;
    }

    /// Ends every connection. New ones are possible.
    pub(crate) fn cut(&self) {
        for task in self.shared.connections.lock().unwrap().drain(..) {
            task.abort();
        }
    }

    /// Stops all data in both directions. The connections stay open.
    pub(crate) fn stall(&self) {
        self.shared.open_gate.send_replace(false);
    }

    pub(crate) fn resume(&self) {
        self.shared.open_gate.send_replace(true);
    }

    /// The number of connections so far.
    pub(crate) fn connection_count(&self) -> usize {
        *self.shared.connection_count.lock().unwrap()
    }
}

async fn join(client: TcpStream, target: SocketAddr, open_gate: watch::Receiver<bool>) {
    let Ok(server) = TcpStream::connect(target).await else { return };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    // If one direction ends, both do.
    tokio::select! {
        () = pass(from_client, to_server, open_gate.clone()) => {}
        () = pass(from_server, to_client, open_gate) => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open_gate: watch::Receiver<bool>) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let Ok(count @ 1..) = from.read(&mut bytes).await else { return };
        if open_gate.wait_for(|open| *open).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
