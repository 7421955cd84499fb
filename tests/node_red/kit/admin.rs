//! A client of Node-RED's Admin API.

use super::TIME_LIMIT;
use crate::client::{Reply, Request, reply};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The Admin API of a Node-RED without users.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admin {
    pub(crate) addr: SocketAddr,
}

impl Admin {
    pub(crate) async fn ask(&self, method: &str, path: &str) -> Reply {
        self.request(method, path).send().await
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request::new(self.addr, method, path)
            .header("node-red-api-version", "v2")
            .header("accept", "application/json")
    }

    /// Whether it responds and its flows have started.
    pub(crate) async fn is_up(&self) -> bool {
        let response = async {
            let mut stream = TcpStream::connect(self.addr).await.ok()?;
            stream.write_all(&self.request("GET", "/flows/state").text()).await.ok()?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.ok()?;
            answer.windows(4).any(|four| four == b"\r\n\r\n").then(|| reply(&answer))
        };
        let answer = timeout(TIME_LIMIT, response).await.ok().flatten();
        answer.is_some_and(|answer| answer.status == 200 && answer.json()["state"] == "start")
    }

    /// Replaces the deployed flows and gives the new revision.
    pub(crate) async fn deploy(&self, kind: &str, flows: &Value) -> String {
        let before = self.ask("GET", "/flows").await.ok(200);
        let body = json!({"rev": before["rev"], "flows": flows});
        let request = self.request("POST", "/flows").header("node-red-deployment-type", kind).json(body);
        request.send().await.ok(200)["rev"].as_str().unwrap().to_owned()
    }

    /// Presses the button of an inject node.
    pub(crate) async fn inject(&self, node: &str) {
        let reply = self.request("POST", &format!("/inject/{node}")).json(json!({})).send().await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }

    /// The sets of nodes: their names, types and errors.
    pub(crate) async fn sets(&self, module: &str) -> Vec<Value> {
        let all = self.ask("GET", "/nodes").await.ok(200);
        all.as_array().unwrap().iter().filter(|set| set["module"] == module).cloned().collect()
    }
}
