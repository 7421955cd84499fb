//! Commands of the engine's callers to its task.

use crate::flow::BuiltFlow;
use crate::report::RunReport;
use crate::start::Start;
use crate::state::completion::{PendingStart, RecoveryResult, Reply};
use redflow_contract::id::RunId;
use redflow_contract::run::RunRequest;
use redflow_ports::StoreError;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(super) enum Command {
    Start { start: Start, cancel: CancellationToken, reply: Reply<Vec<RunReport>> },
    StartAcknowledged(Box<PendingStart>),
    BeginSchedules { reply: Reply<()> },
    Resume { runs: Vec<RunId>, cancel: CancellationToken, reply: Reply<RecoveryResult> },
    Recover { cancel: CancellationToken, reply: Reply<RecoveryResult> },
    Request { run: RunId, request: RunRequest, reply: Reply<Result<(), StoreError>> },
    Deploy { flow: Box<BuiltFlow>, reply: Reply<()> },
    Shutdown { drain: Duration, reply: Reply<()> },
}
