//! A Node-RED, a sidecar and a witness together, as most tests need them.

use super::eventually;
use super::flow::Flow;
use super::line::Line;
use super::node_red::NodeRed;
use super::sidecar::Sidecar;
use super::witness::Witness;
use serde_json::Value;

/// Where a live model is asked.
pub(crate) const MODEL: &str = "/v1/chat/completions";

pub(crate) struct Scene {
    pub(crate) witness: Witness,
    pub(crate) sidecar: Sidecar,
    pub(crate) node_red: NodeRed,
}

impl Scene {
    /// With a sidecar that runs.
    pub(crate) async fn start(line: Line) -> Self {
        let mut scene = Self::without_sidecar(line).await;
        scene.sidecar.come();
        scene
    }

    /// With a sidecar that is away.
    pub(crate) async fn without_sidecar(line: Line) -> Self {
        let (witness, sidecar) = (Witness::start().await, Sidecar::away().await);
        Self { witness, sidecar, node_red: NodeRed::start(line).await }
    }

    /// A tab with the runtime at the end of the cable.
    pub(crate) fn flow(&self) -> Flow {
        Flow::new(&self.sidecar)
    }

    /// The usual agent with a live model and one tool that asks the witness at `/warmth`.
    pub(crate) fn with_tool(&self, effect: &str) -> Flow {
        self.flow().usual(&self.witness, &["warmth"], &["warmth-tool"]).live(&self.witness).asking_tool(
            &self.witness,
            "warmth",
            effect,
        )
    }

    pub(crate) async fn deploy(&self, flow: &Flow) {
        self.node_red.deploy(&flow.json()).await;
    }

    pub(crate) async fn ask(&self) {
        self.node_red.admin.inject("ask").await;
    }

    /// Asks; the one result more that comes of it.
    pub(crate) async fn answer(&self) -> Value {
        let before = self.witness.seen("/results").len();
        self.ask().await;
        self.witness.bodies("/results", before + 1).await.pop().unwrap()
    }

    /// How often a path was asked.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.witness.seen(path).len()
    }

    /// Waits until the one run that there is has this status; all of it.
    pub(crate) async fn run_is(&self, status: &str) -> Value {
        eventually(format!("a run that is {status}"), async || {
            let runs = self.sidecar.runs().await;
            assert!(runs.len() <= 1, "{runs:#?}");
            runs.into_iter().find(|run| run["status"] == status)
        })
        .await
    }

    /// Waits until the sidecar sees that many Node-REDs.
    pub(crate) async fn connected(&self, count: usize) {
        eventually(format!("{count} Node-REDs at the sidecar"), async || {
            let known = self.sidecar.get("/api/instances").await;
            let here = known["instances"].as_array().unwrap().iter().filter(|one| one["connected"] == true);
            (here.count() == count).then_some(())
        })
        .await;
    }
}
