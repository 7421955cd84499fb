//! The messages of Node-RED to its editor: statuses, the debug sidebar, deploys.

use super::{TIME_LIMIT, eventually};
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;

/// An open socket that a task reads all the time.
pub(crate) struct Comms {
    messages: Arc<Mutex<Vec<(String, Value)>>>,
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
        let opened = timeout(TIME_LIMIT, client_async(format!("ws://{addr}/comms"), tcp)).await.unwrap();
        let (mut socket, _) = opened.unwrap();
        for topic in ["status/#", "debug", "notification/#", "redflow/#"] {
            socket.send(Message::text(json!({"subscribe": topic}).to_string())).await.unwrap();
        }
        let messages = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&messages);
        let reading = tokio::spawn(async move {
            while let Some(Ok(message)) = socket.next().await {
                let Message::Text(text) = message else { continue };
                let Ok(Value::Array(all)) = serde_json::from_str(&text) else { continue };
                let received = all
                    .into_iter()
                    .map(|one| (one["topic"].as_str().unwrap_or_default().to_owned(), one["data"].clone()));
                shared.lock().unwrap().extend(received);
            }
        });
        Self { messages, reading }
    }

    /// All messages of a topic, in order.
    pub(crate) fn messages(&self, topic: &str) -> Vec<Value> {
        let messages = self.messages.lock().unwrap();
        messages.iter().filter(|(known, _)| known == topic).map(|(_, data)| data.clone()).collect()
    }

    /// The deployed revisions.
    pub(crate) fn deploys(&self) -> Vec<String> {
        let deploys = self.messages("notification/runtime-deploy");
        deploys.iter().filter_map(|data| data["revision"].as_str().map(str::to_owned)).collect()
    }

    /// Waits until the status of a node matches, and gives it.
    #[track_caller]
    pub(crate) fn wait_for_status(
        &self,
        node: &str,
        is_expected: impl Fn(&Value) -> bool,
    ) -> impl Future<Output = Value> {
        eventually(format!("a status of {node}"), async move || {
            self.messages(&format!("status/{node}")).pop().filter(|status| is_expected(status))
        })
    }

    /// Waits for `count` messages of a debug node.
    #[track_caller]
    pub(crate) fn wait_for_debug(&self, node: &str, count: usize) -> impl Future<Output = Vec<Value>> {
        eventually(format!("{count} messages at {node}"), async move || {
            let messages: Vec<_> =
                self.messages("debug").into_iter().filter(|one| one["id"] == node).collect();
            (messages.len() >= count).then_some(messages)
        })
    }
}
