//! Time and ids, which the pure crates must not make themselves.

use redflow_contract::Millis;
use redflow_contract::id::RunId;

/// Gives the time and fresh ids.
///
/// ```
/// use redflow_contract::{Millis, id::RunId};
/// use redflow_ports::Clock;
///
/// /// Always gives the same time and ids, for tests.
/// struct FixedClock;
///
/// impl Clock for FixedClock {
///     fn now(&self) -> Millis {
///         1_767_225_600_000
///     }
///
///     fn run_id(&self) -> RunId {
///         "019b76da-a800-7000-8000-000000000001".into()
///     }
///
///     fn message_id(&self) -> String {
///         "0123456789abcdef".to_owned()
///     }
/// }
///
/// let clock: &dyn Clock = &FixedClock;
/// assert_eq!((clock.now(), clock.message_id().len()), (1_767_225_600_000, 16));
/// ```
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Millis;
    /// A new run id: a uuid v7.
    fn run_id(&self) -> RunId;
    /// A new Node-RED message id: 16 hex digits.
    fn message_id(&self) -> String;
}
