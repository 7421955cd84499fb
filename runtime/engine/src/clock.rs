//! The system clock, and ids made from UUIDs.

use redflow_contract::Millis;
use redflow_contract::id::RunId;
use redflow_ports::Clock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Reads the system time and makes random ids; tests use a clock of their own.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn run_id(&self) -> RunId {
        RunId::from(uuid::Uuid::now_v7().to_string())
    }

    fn message_id(&self) -> String {
        // The last 8 bytes of a v7 uuid are random but for two bits.
        let (_, random) = uuid::Uuid::now_v7().as_u64_pair();
        format!("{random:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::SystemClock;
    use redflow_ports::Clock;

    #[test]
    fn ids_are_new_each_time_and_well_formed() {
        let (first, second) = (SystemClock.run_id(), SystemClock.run_id());
        assert!(first < second, "v7 uuids sort by time: {first} {second}");
        assert_eq!(uuid::Uuid::parse_str(first.as_str()).unwrap().get_version_num(), 7);
        let (first, second) = (SystemClock.message_id(), SystemClock.message_id());
        assert_ne!(first, second);
        assert!(first.len() == 16 && first.chars().all(|c| c.is_ascii_hexdigit()), "{first}");
    }
}
