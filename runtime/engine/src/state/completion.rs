//! Work of the engine task that has ended, with its outcome.

use crate::flow::schedule::FirstTime;
use crate::origin::{Origin, StartAck, StartedRuns};
use crate::report::RunReport;
use crate::run::exit::RunExit;
use crate::run::maintenance_job::MaintenanceJob;
use crate::start::{EarlierRun, StartError, StartOrder};
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::{NodeId, NodeSummary, RunId};
use redflow_contract::run::RunSummary;
use redflow_contract::run_error::Failure;
use redflow_ports::{MaintenanceOutcome, PendingRequest, StoreError};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub(crate) type Reply<T> = oneshot::Sender<T>;

pub(crate) type RecoveryResult = Result<Vec<RunReport>, StoreError>;

pub(crate) enum Completion {
    Run {
        run: RunId,
        /// The index of its report in the cascade.
        report: usize,
        /// The agent of a resumed run.
        agent: Option<NodeSummary>,
        exit: RunExit,
        /// Waits for the run to be stored, if it was not.
        start_ack: Option<Arc<StartAck>>,
    },
    /// The run that an earlier start with the same key has begun, if there is one.
    EarlierRunFound(Box<PendingStart>, Result<Option<EarlierRun>, StoreError>),
    /// Requests of other processes.
    RequestsReceived(Vec<PendingRequest>),
    /// A request of another process was answered.
    RequestAnswered(i64, Result<(), StoreError>),
    /// A person's answer for a run was stored or refused.
    AnswerStored {
        run: RunId,
        answer: Result<(), StoreError>,
        reply: Reply<Result<(), StoreError>>,
    },
    MemoryCleared(Box<MemoryClear>),
    /// A message of this agent does not wait for tools any more. It has this number.
    ToolsAwaited(NodeId, u64),
    /// A memory has ended its work after runs.
    MemoryMaintained(Box<MaintenanceJob>, MaintenanceOutcome),
    HostDelivered(Box<HostDelivery>),
    UnfinishedRunsLoaded(Result<Vec<RunSummary>, StoreError>, RecoveryPurpose),
    FirstTimesFound(Vec<FirstTime>),
    /// The time that a shutdown gives to effects is over.
    DrainTimeElapsed,
}

/// A start whose caller waits.
pub(crate) struct PendingStart {
    pub(crate) order: StartOrder,
    pub(crate) cancel: CancellationToken,
    /// Takes the reports when nothing of the cascade moves any more.
    pub(crate) reports: Reply<Vec<RunReport>>,
    pub(crate) reply: Reply<Result<StartedRuns, StartError>>,
}

/// A message that only clears the memory of an agent, and the result.
pub(crate) struct MemoryClear {
    pub(crate) agent: NodeId,
    pub(crate) message: Arc<FlowMessage>,
    pub(crate) origin: Origin,
    pub(crate) result: Result<(), Failure>,
}

/// A message that was given to the host.
pub(crate) struct HostDelivery {
    pub(crate) origin: Origin,
    pub(crate) arrived: bool,
}

/// Why the unfinished runs of the store were loaded.
pub(crate) enum RecoveryPurpose {
    /// Resume all of them.
    Recover(CancellationToken, Reply<RecoveryResult>),
    /// Resume only these.
    Resume(Vec<RunId>, CancellationToken, Reply<RecoveryResult>),
    /// A deploy removed their agents.
    CancelRemoved,
}
