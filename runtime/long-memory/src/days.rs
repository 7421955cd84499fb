//! Days that an input names: `yesterday`, `last week`, `2026-11-16`, in English, German and Spanish.

use crate::words::words;
use redflow_contract::Millis;
use redflow_contract::day::Day;

/// Words, and the days that they mean: from so many days before today until so many days before it.
const DAYS: &[(&[&str], (i64, i64))] = &[
    (&["yesterday"], (1, 1)),
    (&["gestern"], (1, 1)),
    (&["ayer"], (1, 1)),
    (&["today"], (0, 0)),
    (&["heute"], (0, 0)),
    (&["hoy"], (0, 0)),
    (&["last", "week"], (7, 1)),
    (&["letzte", "woche"], (7, 1)),
    (&["letzter", "woche"], (7, 1)),
    (&["semana", "pasada"], (7, 1)),
];

/// The bytes of a day such as `2026-11-16`.
const DATE: usize = 10;

/// The first and the last moment of the days that a text names; none if it names none. Days are those of UTC.
pub(crate) fn named_days(text: &str, at: Millis) -> Option<(Millis, Millis)> {
    let (first, last) = date(text).map(|day| (day, day)).or_else(|| {
        let (words, today) = (words(text), Day::of(at).0);
        let is_named = |(name, _): &&(&[&str], (i64, i64))| {
            words.windows(name.len()).any(|some| some.iter().map(String::as_str).eq(name.iter().copied()))
        };
        let (_, (from, until)) = DAYS.iter().find(is_named)?;
        Some((Day((today - from).max(0)), Day((today - until).max(0))))
    })?;
    Some((first.start(), Day(last.0.saturating_add(1)).start().saturating_sub(1)))
}

/// The first date of a text.
fn date(text: &str) -> Option<Day> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    (0..bytes.len().saturating_sub(DATE - 1))
        .filter(|&at| (at == 0 || !is_digit(at - 1)) && is_digit(at) && !is_digit(at + DATE))
        .find_map(|at| Day::parse(text.get(at..at + DATE)?))
}

#[cfg(test)]
mod tests {
    use super::named_days;
    use redflow_contract::iso_time;

    #[test]
    fn days_are_found_in_three_languages() {
        let at = 1_763_424_000_000 + 3_600_000; // 2025-11-18T01:00
        let days = |text: &str| {
            named_days(text, at).map(|(since, until)| {
                let (since, until) = (iso_time(since), iso_time(until));
                (since[..16].to_owned(), until[..16].to_owned())
            })
        };
        let range = |from: &str, until: &str| Some((format!("{from}T00:00"), format!("{until}T23:59")));
        for text in ["What happened yesterday?", "GESTERN war", "¿Qué pasó ayer?"] {
            assert_eq!(days(text), range("2025-11-17", "2025-11-17"), "{text}");
        }
        for text in ["today's list", "heute", "hoy"] {
            assert_eq!(days(text), range("2025-11-18", "2025-11-18"), "{text}");
        }
        for text in ["tickets of last week", "letzte Woche", "la semana pasada"] {
            assert_eq!(days(text), range("2025-11-11", "2025-11-17"), "{text}");
        }
        assert_eq!(days("on 2025-10-02, please"), range("2025-10-02", "2025-10-02"));
        for text in ["", "last", "the week", "2025-13-02", "12025-10-02", "2025-10-021", "é2025"] {
            assert_eq!(days(text), None, "{text}");
        }
        assert_eq!(named_days("yesterday", 5), Some((0, 86_399_999)));
    }
}
