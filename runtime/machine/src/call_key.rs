//! The idempotency key of a tool call.

use redflow_contract::digest::Digest;
use redflow_contract::id::{CallId, RunId};

/// The idempotency key: equal for the same run, iteration and call, and for no other.
pub(crate) fn call_key(run_id: &RunId, iteration: u32, call_id: &CallId) -> Digest {
    Digest::ZERO
        .chain(b'r', run_id.as_str().as_bytes())
        .chain(b'i', &iteration.to_be_bytes())
        .chain(b'c', call_id.as_str().as_bytes())
}
