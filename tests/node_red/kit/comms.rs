//! What Node-RED tells its editor: statuses, the debug sidebar, deploys.

use super::{PATIENCE, eventually};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

/// An open socket that is read all the time.
pub(crate) struct Comms {
    heard: Arc<Mutex<Vec<(String, Value)>>>,
    reading: JoinHandle<()>,
}

impl Drop for Comms {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Comms {
    pub(crate) async fn open(addr: SocketAddr) -> Self {
        let tcp = tokio::net::TcpStream::connect(addr).await.unwrap();
        let opened = timeout(PATIENCE, client_async(format!("ws://{addr}/comms"), tcp)).await.unwrap();
        let (mut socket, _) = opened.unwrap();
        for topic in ["status/#", "debug", "notification/#", "redflow/#"] {
            socket.send(Message::text(json!({"subscribe": topic}).to_string())).await.unwrap();
        }
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&heard);
        let reading = tokio::spawn(async move {
            while let Some(Ok(message)) = socket.next().await {
                let Message::Text(text) = message else { continue };
                let Ok(Value::Array(all)) = serde_json::from_str(&text) else { continue };
                let told = all
                    .into_iter()
                    .map(|one| (one["topic"].as_str().unwrap_or_default().to_owned(), one["data"].clone()));
                notes.lock().unwrap().extend(told);
            }
        });
        Self { heard, reading }
    }

    /// Everything that was told about a topic, in order.
    pub(crate) fn told(&self, topic: &str) -> Vec<Value> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|(known, _)| known == topic).map(|(_, data)| data.clone()).collect()
    }

    /// The revisions that have been deployed.
    pub(crate) fn deploys(&self) -> Vec<String> {
        let told = self.told("notification/runtime-deploy");
        told.iter().filter_map(|data| data["revision"].as_str().map(str::to_owned)).collect()
    }

    /// Waits until the status that a node shows is as wanted; that one.
    #[track_caller]
    pub(crate) fn status(&self, node: &str, wanted: impl Fn(&Value) -> bool) -> impl Future<Output = Value> {
        eventually(format!("a status of {node}"), async move || {
            self.told(&format!("status/{node}")).pop().filter(|status| wanted(status))
        })
    }

    /// Waits until a debug node has shown that many messages.
    #[track_caller]
    pub(crate) fn debug(&self, node: &str, count: usize) -> impl Future<Output = Vec<Value>> {
        eventually(format!("{count} messages at {node}"), async move || {
            let shown: Vec<_> = self.told("debug").into_iter().filter(|one| one["id"] == node).collect();
            (shown.len() >= count).then_some(shown)
        })
    }
}
