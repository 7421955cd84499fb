//! Commands to a run that is driven, and the waits that they end.

use super::slots::{Slot, Ticket};
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The reason of a cancel that ends the whole cascade. Stored in journals.
pub(super) const CASCADE_CANCELLED: &str = "interrupted";

/// The latest command to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Control {
    Continue,
    /// End, with this reason.
    Cancel(Arc<str>),
    /// Stop when the next fact is stored.
    Suspend,
    /// Stop at once.
    SuspendNow,
}

/// Why a run stops what it does.
pub(super) enum StopReason {
    Cancel(String),
    Suspend,
}

/// What a run does while it listens for commands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// It only waits: `Suspend` stops it too.
    Waiting,
    /// It performs an effect, which `Suspend` lets finish.
    Performing,
}

/// Waits for a slot, unless a command stops the run first.
pub(super) async fn wait_for_slot(
    mut ticket: Ticket,
    control: &mut watch::Receiver<Control>,
    cancel: &CancellationToken,
) -> Result<Slot, StopReason> {
    tokio::select! {
        biased;
        stop = wait_for_stop(control, cancel, Activity::Waiting) => Err(stop),
        slot = ticket.wait() => slot.ok_or(StopReason::Suspend),
    }
}

/// Waits until a command stops the run.
pub(super) async fn wait_for_stop(
    control: &mut watch::Receiver<Control>,
    cancel: &CancellationToken,
    activity: Activity,
) -> StopReason {
    let command = async {
        loop {
            match &*control.borrow_and_update() {
                Control::Cancel(reason) => return StopReason::Cancel(reason.to_string()),
                Control::SuspendNow => return StopReason::Suspend,
                Control::Suspend if activity == Activity::Waiting => return StopReason::Suspend,
                Control::Continue | Control::Suspend => {}
            }
            if control.changed().await.is_err() {
                // The engine was dropped, and this run ends with it.
                return StopReason::Suspend;
            }
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => StopReason::Cancel(CASCADE_CANCELLED.to_owned()),
        stop = command => stop,
    }
}

/// The answer to a request that a stopping engine does not take.
pub(crate) fn engine_stopped() -> StoreError {
    StoreError::new(StoreCode::RunBlocked, "the engine has stopped")
}
