//! A day in UTC, as sums of usage name it.

use crate::Millis;
use std::fmt;

/// The milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A day in UTC: the number of days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

impl Day {
    /// The day of a time.
    #[must_use]
    pub fn of(at: Millis) -> Self {
        Self(i64::try_from(at / DAY_MS).unwrap_or(i64::MAX))
    }

    /// Parses a day such as `2026-11-16`; none if it is no such day.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let date: jiff::civil::Date = text.parse().ok().filter(|_| text.len() == "2026-11-16".len())?;
        let days = epoch().until(date).ok()?.get_days();
        (days >= 0).then(|| Self(i64::from(days)))
    }

    /// The first moment of the day.
    #[must_use]
    pub fn start(self) -> Millis {
        u64::try_from(self.0).unwrap_or_default().saturating_mul(DAY_MS)
    }
}

fn epoch() -> jiff::civil::Date {
    jiff::civil::Date::constant(1970, 1, 1)
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use jiff::ToSpan as _;
        let span = i32::try_from(self.0).ok().and_then(|days| 0.days().try_days(days).ok());
        match span.and_then(|span| epoch().checked_add(span).ok()) {
            Some(date) => write!(formatter, "{date}"),
            // A clock that is wrong by thousands of years.
            None => formatter.write_str("9999-12-31"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Day;

    #[test]
    fn days_are_parsed_and_printed() {
        for (text, number) in
            [("1970-01-01", 0), ("2000-02-29", 11_016), ("2026-11-16", 20_773), ("9999-12-31", 2_932_896)]
        {
            assert_eq!((Day::parse(text), Day(number).to_string().as_str()), (Some(Day(number)), text));
            assert_eq!(Day::of(Day(number).start()), Day(number));
            assert_eq!(Day::of(Day(number + 1).start() - 1), Day(number));
        }
        for bad in ["", "2026", "2026-2-3", "2026-02-30", "1969-12-31", "2026-11-16T00:00", "+002026-11-16"] {
            assert_eq!(Day::parse(bad), None, "{bad}");
        }
        assert_eq!(Day::of(u64::MAX).to_string(), "9999-12-31");
        assert_eq!(Day(2_932_897).to_string(), "9999-12-31");
    }
}
