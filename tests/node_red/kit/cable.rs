//! What lies between Node-RED and the sidecar: it can be cut, held up, and led elsewhere.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

/// An address that stays while what is behind it comes and goes.
pub(crate) struct Cable {
    pub(crate) addr: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

struct Shared {
    behind: Mutex<Option<SocketAddr>>,
    open: Mutex<Vec<AbortHandle>>,
    made: Mutex<usize>,
    flows: watch::Sender<bool>,
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut();
    }
}

impl Cable {
    /// Leads nowhere yet: who connects is turned away.
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            behind: Mutex::default(),
            open: Mutex::default(),
            made: Mutex::default(),
            flows: watch::channel(true).0,
        });
        let of_task = Arc::clone(&shared);
        let listening = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let behind = *of_task.behind.lock().unwrap();
                let Some(behind) = behind else { continue };
                *of_task.made.lock().unwrap() += 1;
                let task = tokio::spawn(join(client, behind, of_task.flows.subscribe()));
                of_task.open.lock().unwrap().push(task.abort_handle());
            }
        });
        Self { addr, shared, listening }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Where new connections lead from now on.
    pub(crate) fn lead_to(&self, behind: Option<SocketAddr>) {
        *self.shared.behind.lock().unwrap() = behind;
    }

    /// Ends every connection; new ones can be made.
    pub(crate) fn cut(&self) {
        for task in self.shared.open.lock().unwrap().drain(..) {
            task.abort();
        }
    }

    /// From now on nothing passes, in either direction, though every connection stays open.
    pub(crate) fn stall(&self) {
        self.shared.flows.send_replace(false);
    }

    pub(crate) fn flow_again(&self) {
        self.shared.flows.send_replace(true);
    }

    /// How many connections were made.
    pub(crate) fn made(&self) -> usize {
        *self.shared.made.lock().unwrap()
    }
}

async fn join(client: TcpStream, behind: SocketAddr, flows: watch::Receiver<bool>) {
    let Ok(server) = TcpStream::connect(behind).await else { return };
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    // If one of them ends, both do.
    tokio::select! {
        () = pass(from_client, to_server, flows.clone()) => {}
        () = pass(from_server, to_client, flows) => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut flows: watch::Receiver<bool>) {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let Ok(count @ 1..) = from.read(&mut bytes).await else { return };
        if flows.wait_for(|flows| *flows).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
