//! Failures of memories.

use redflow_contract::code::RunErrorCode;
use redflow_contract::run_error::Failure;

pub(crate) fn memory_error(message: impl Into<String>) -> Failure {
    Failure { code: RunErrorCode::MemoryError, message: message.into() }
}

/// The turn is larger than a conversation may be.
pub(crate) fn turn_too_large(bytes: usize, limit: usize) -> Failure {
    memory_error(format!("the turn has {bytes} bytes; the limit is {limit}"))
}
