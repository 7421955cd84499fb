//! The real clock and real ids.

use redflow_contract::Millis;
use redflow_contract::id::RunId;
use redflow_ports::Clock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn run_id(&self) -> RunId {
        RunId(uuid::Uuid::now_v7().to_string())
    }

    fn message_id(&self) -> String {
        // The last 8 bytes of a v7 uuid are random but for two bits.
        let bytes = uuid::Uuid::now_v7().into_bytes();
        bytes[8..].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
