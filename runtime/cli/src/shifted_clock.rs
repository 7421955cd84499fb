//! A clock with an offset for tests, in `REDFLOW_CLOCK_OFFSET_MS`. Only with the feature `faults`.

use redflow_contract::Millis;
use redflow_contract::id::RunId;
use redflow_engine::SystemClock;
use redflow_ports::Clock;

/// The system clock plus an offset in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShiftedClock {
    offset: i64,
}

impl ShiftedClock {
    /// The offset is 0 without the variable.
    pub(crate) fn from_environment() -> Self {
        let offset = std::env::var("REDFLOW_CLOCK_OFFSET_MS").ok().and_then(|text| text.parse().ok());
        Self { offset: offset.unwrap_or(0) }
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Millis {
        SystemClock.now().saturating_add_signed(self.offset)
    }

    fn run_id(&self) -> RunId {
        SystemClock.run_id()
    }

    fn message_id(&self) -> String {
        SystemClock.message_id()
    }
}
