//! Time and ids, which the pure crates must not make themselves.

use redflow_contract::Millis;
use redflow_contract::id::RunId;

/// Gives the time and fresh ids.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Millis;
    /// A new run id: a uuid v7.
    fn run_id(&self) -> RunId;
    /// A new Node-RED message id: 16 hex digits.
    fn message_id(&self) -> String;
}
