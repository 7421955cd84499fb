//! How the driving of a run ends.

use crate::start::{EarlierRun, StartInput};
use redflow_contract::code::StoreCode;
use redflow_contract::effect::Ending;
use redflow_contract::fact::Fact;
use redflow_contract::flow_message::FlowMessage;
use redflow_contract::id::EffectId;
use redflow_contract::journal::JournalRecord;
use redflow_contract::run::WaitingCall;
use redflow_ports::{RunStore, StoreError};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) enum RunExit {
    Finished {
        effect: EffectId,
        ending: Ending,
        message: Arc<FlowMessage>,
        /// Whether the message may have been sent before.
        resent: bool,
    },
    /// The run waits for a person's answers about these calls, the oldest first.
    Waiting(Vec<WaitingCall>),
    /// The run can be resumed later; with the reason, unless a shutdown suspended it.
    Suspended(Option<StoreError>),
    /// The store did not take the run. The message comes back, so that the agent can answer it with the
    /// error.
    NotStored(StoreError, Arc<FlowMessage>),
    /// The cause of the run began another one before: this one, where it is known.
    Duplicate(Option<EarlierRun>),
}

/// Looks up the run of a cause.
pub(crate) async fn find_earlier_run(
    store: &dyn RunStore,
    cause: Option<&str>,
) -> Result<Option<EarlierRun>, StoreError> {
    let Some(cause) = cause else { return Ok(None) };
    let Some(run) = store.find_by_cause(cause).await? else { return Ok(None) };
    let stored = store.load(&run).await?;
    Ok(stored.map(|stored| EarlierRun {
        run,
        agent: stored.summary.agent.node_id,
        input: first_input(&stored.journal),
    }))
}

/// The input in the first fact of a journal. None if that fact is not readable.
fn first_input(journal: &[u8]) -> Option<StartInput> {
    // The header and the plan come first.
    let line = journal.split(|&byte| byte == b'\n').nth(2)?;
    let JournalRecord::Fact { fact } = redflow_machine::read_line(line)?.record else {
        return None;
    };
    let Fact::RunStarted { message, .. } = *fact else { return None };
    Some(StartInput::of_message(message))
}

/// The error of a machine that cannot continue. That is a fault of the engine, and the journal stays as it
/// is.
pub(super) fn cannot_continue(why: &dyn std::fmt::Display) -> StoreError {
    StoreError::new(StoreCode::RunBlocked, format!("the run cannot continue: {why}"))
}

pub(super) fn already_over() -> StoreError {
    StoreError::new(StoreCode::RunOver, "the run is over already")
}
