//! Points in time and durations, formatted for people.

use redflow_contract::{Millis, iso_time};
use std::time::Duration;

/// A point in time in UTC, to the second.
pub(crate) fn format_time(at: Millis) -> String {
    let text = iso_time(at);
    match text.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => text,
    }
}

/// The milliseconds of a duration.
pub(crate) fn to_millis(duration: Duration) -> Millis {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A duration in its two largest units at most.
pub(crate) fn format_duration(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds}.{} s", millis % 1000 / 100),
        60..3600 => format!("{minutes} m {} s", seconds % 60),
        3600..86_400 => format!("{hours} h {} m", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::{format_duration, format_time};

    #[test]
    fn times_are_utc_to_the_second() {
        assert_eq!(format_time(1_766_000_000_999), "2025-12-17T19:33:20Z");
        assert_eq!(format_time(u64::MAX), "18446744073709551615ms");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        let rows = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1000, "1.0 s"),
            (59_999, "59.9 s"),
            (60_000, "1 m 0 s"),
            (3_599_999, "59 m 59 s"),
            (3_600_000, "1 h 0 m"),
            (86_400_000, "1 d 0 h"),
            (90_000_000_000, "1041 d 16 h"),
        ];
        for (millis, text) in rows {
            assert_eq!(format_duration(millis), text);
        }
    }
}
