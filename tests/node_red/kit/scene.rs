//! A Node-RED, a sidecar and a witness, which most tests need together.

use super::eventually;
use super::flow::Flow;
use super::node_red::{NodeRed, Setup};
use super::release_line::ReleaseLine;
use super::sidecar::Sidecar;
use super::witness::Witness;
use serde_json::Value;

/// The path of the live model.
pub(crate) const MODEL: &str = "/v1/chat/completions";

pub(crate) struct Scene {
    pub(crate) witness: Witness,
    pub(crate) sidecar: Sidecar,
    pub(crate) node_red: NodeRed,
}

impl Scene {
    pub(crate) async fn start(line: ReleaseLine) -> Self {
        Self::start_with(line, Setup::default()).await
    }

    /// Node-RED is set up before it starts.
    pub(crate) async fn start_with(line: ReleaseLine, setup: Setup) -> Self {
        let (witness, mut sidecar) = (Witness::start().await, Sidecar::new().await);
        sidecar.start();
        Self { witness, sidecar, node_red: NodeRed::start_with(line, setup).await }
    }

    /// The sidecar is not started yet.
    pub(crate) async fn without_sidecar(line: ReleaseLine) -> Self {
        let (witness, sidecar) = (Witness::start().await, Sidecar::new().await);
        Self { witness, sidecar, node_red: NodeRed::start(line).await }
    }

    /// A tab with a runtime node that uses the cable.
    pub(crate) fn flow(&self) -> Flow {
        Flow::new(&self.sidecar)
    }

    /// The standard agent with a live model and one tool that asks the witness at `/warmth`.
    pub(crate) fn with_tool(&self, effect: &str) -> Flow {
        self.flow()
            .standard_agent(&self.witness, &["warmth"], &["warmth-tool"])
            .live(&self.witness)
            .http_tool(&self.witness, "warmth", effect)
    }

    pub(crate) async fn deploy(&self, flow: &Flow) {
        self.node_red.deploy(&flow.json()).await;
    }

    pub(crate) async fn send_question(&self) {
        self.node_red.admin.inject("ask").await;
    }

    /// Sends a question and waits for its one result.
    pub(crate) async fn ask(&self) -> Value {
        let before = self.witness.requests("/results").len();
        self.send_question().await;
        self.witness.wait_for_bodies("/results", before + 1).await.pop().unwrap()
    }

    /// The number of requests at a path.
    pub(crate) fn count_requests(&self, path: &str) -> usize {
        self.witness.requests(path).len()
    }

    /// Waits until the only run has this status, and gives it.
    pub(crate) async fn wait_for_run(&self, status: &str) -> Value {
        eventually(format!("a run that is {status}"), async || {
            let runs = self.sidecar.runs().await;
            assert!(runs.len() <= 1, "{runs:#?}");
            runs.into_iter().find(|run| run["status"] == status)
        })
        .await
    }

    /// Waits until `count` Node-REDs are connected to the sidecar.
    pub(crate) async fn wait_for_connections(&self, count: usize) {
        eventually(format!("{count} Node-REDs at the sidecar"), async || {
            let response = self.sidecar.get("/api/instances").await;
            let connected =
                response["instances"].as_array().unwrap().iter().filter(|one| one["connected"] == true);
            (connected.count() == count).then_some(())
        })
        .await;
    }
}
