//! The handle of an engine: each method sends a command to the engine task and waits for the answer.

use super::command::Command;
use crate::flow::BuiltFlow;
use crate::origin::StartedRuns;
use crate::ports::{EngineLimits, Ports};
use crate::report::RunReport;
use crate::run::computations::{Computation, Computations};
use crate::run::control::engine_stopped;
use crate::start::{Start, StartError, StartOrder, StartOutcome};
use crate::state::EngineState;
use crate::state::completion::{PendingStart, Reply};
use crate::state::flow_calls::FlowCalls;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::{CallId, RunId};
use redflow_contract::run::RunRequest;
use redflow_ports::StoreError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Messages of ports 1 and 4 that may wait for the task; then the run that sends waits.
const MAX_WAITING_OUTGOING: usize = 32;

/// Commands that may wait for the task; then the caller waits.
const MAX_WAITING_COMMANDS: usize = 256;

/// Drives the runs of one flow. Dropping it drops its runs where they are. Their journals stay, so that they
/// continue when they are resumed.
pub struct Engine {
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
    computations: Arc<Computations>,
    pub(super) flow_calls: Arc<FlowCalls>,
}

impl Engine {
    /// Starts an engine as a task of the current runtime. Without a flow it only resumes runs, and their
    /// results go only into the reports.
    #[must_use]
    pub fn new(flow: Option<BuiltFlow>, ports: Ports, limits: EngineLimits) -> Self {
        let (commands, received_commands) = mpsc::channel(MAX_WAITING_COMMANDS);
        let (outgoing, received_outgoing) = mpsc::channel(MAX_WAITING_OUTGOING);
        let state = EngineState::new(flow, ports, limits, outgoing);
        let (computations, flow_calls) = (Arc::clone(&state.computations), Arc::clone(&state.flow_calls));
        let task = tokio::spawn(state.run_loop(received_commands, received_outgoing));
        Self { commands, task, computations, flow_calls }
    }

    /// The computations of runs that go on now. A watchdog can call this while the engine's thread is busy.
    #[must_use]
    pub fn computations(&self) -> Vec<Computation> {
        self.computations.active()
    }

    /// Starts a node and waits until nothing of the cascade moves any more. The reports come in the order in
    /// which the runs began. After a cancel the runs end and no other begins.
    pub async fn run(&self, start: Start, cancel: &CancellationToken) -> Vec<RunReport> {
        let cancel = cancel.clone();
        self.send(|reply| Command::Start { start, cancel, reply }).await.unwrap_or_default()
    }

    /// Starts a node of the flow. Returns when every run that it sets off before any of them has a result is
    /// stored, so that the caller can rely on the runs. A node that reaches no agent begins none.
    ///
    /// # Errors
    /// When nothing was started; the error says why.
    pub async fn start(
        &self,
        order: StartOrder,
        cancel: &CancellationToken,
    ) -> Result<StartOutcome, StartError> {
        let (reports, rest) = oneshot::channel();
        let cancel = cancel.clone();
        let start =
            |reply| Command::StartAcknowledged(Box::new(PendingStart { order, cancel, reports, reply }));
        let started = self.send(start).await.unwrap_or(Err(StartError::Stopping))?;
        let StartedRuns { runs, refused } = started;
        Ok(StartOutcome { runs, refused, reports: rest })
    }

    /// Turns the schedules of inject nodes on, also those of flows that are deployed later. Firings that were
    /// missed before are skipped.
    pub async fn begin_schedules(&self) {
        self.send(|reply| Command::BeginSchedules { reply }).await;
    }

    /// Resumes these runs, drives them, and waits for the cascades of their results.
    pub async fn resume(&self, runs: Vec<RunId>, cancel: &CancellationToken) -> Vec<RunReport> {
        let cancel = cancel.clone();
        let reports = self.send(|reply| Command::Resume { runs, cancel, reply }).await;
        reports.and_then(Result::ok).unwrap_or_default()
    }

    /// Resumes every unfinished run of this flow, and sends every result that was not delivered. Cancels runs
    /// whose agent the flow no longer has. Ignores runs of other flow files.
    ///
    /// # Errors
    /// When the store cannot list the runs.
    pub async fn recover(&self, cancel: &CancellationToken) -> Result<Vec<RunReport>, StoreError> {
        let cancel = cancel.clone();
        self.send(|reply| Command::Recover { cancel, reply }).await.unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Cancels a run, live or not. Returns when the end is stored.
    ///
    /// # Errors
    /// When the run is unknown or over, or the store fails.
    pub async fn cancel(&self, run: RunId, reason: String) -> Result<(), StoreError> {
        self.request(run, RunRequest::Cancel { reason }).await
    }

    /// Gives the outcome of the call that a run waits for; the run continues.
    ///
    /// # Errors
    /// When the run is unknown or does not wait for that call, the result is too large, or the store fails.
    pub async fn resolve(&self, run: RunId, call_id: CallId, result: ToolResult) -> Result<(), StoreError> {
        self.request(run, RunRequest::Resolve { call_id, result }).await
    }

    /// Replaces the flow. Runs continue with the plan they began with; runs of removed agents are cancelled.
    pub async fn deploy(&self, flow: BuiltFlow) {
        let flow = Box::new(flow);
        self.send(|reply| Command::Deploy { flow, reply }).await;
    }

    /// Stops the engine. Runs finish their current effect, for at most the time of `drain`. Returns when the
    /// last run has stopped; a replay that takes longer leaves its run as it was. The engine takes no commands afterwards.
    pub async fn shutdown(&self, drain: Duration) {
        self.send(|reply| Command::Shutdown { drain, reply }).await;
    }

    async fn request(&self, run: RunId, request: RunRequest) -> Result<(), StoreError> {
        let answer = self.send(|reply| Command::Request { run, request, reply }).await;
        answer.unwrap_or_else(|| Err(engine_stopped()))
    }

    /// Sends a command and waits for its answer; none if the task has stopped.
    pub(super) async fn send<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.ok()?;
        answer.await.ok()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.task.abort();
    }
}
