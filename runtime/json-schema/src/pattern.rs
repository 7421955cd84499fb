//! The cost of a pattern: how much work the search of one text can take.
//!
//! Reads a pattern as the validator does: translated from ECMAScript's syntax to that of `regex`.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// The steps of a search for each byte of the text, if the pattern has only a few positions. Then the engine
/// keeps all its states and reads a byte once.
const STEPS_PER_BYTE: u64 = 2;

/// The steps for each byte and position that is active. The engine follows them all at once if it cannot keep
/// its states.
const STEPS_PER_POSITION: u64 = 20;

/// The most positions and the largest program whose states the engine keeps.
const FEW_POSITIONS: u64 = 10;
const SMALL_PROGRAM: u64 = 200;

/// What the search for a pattern can cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternCost {
    /// The instructions of the compiled pattern, about.
    pub(crate) program: u64,
    /// The steps for each byte of a text.
    pub(crate) steps_per_byte: u64,
    /// The bytes of the pattern itself. A violation copies them.
    pub(crate) bytes: u64,
    /// The engine reads no more bytes than this.
    reach: u64,
}

impl PatternCost {
    /// The cost of a pattern; none if the validator cannot compile it either.
    pub(crate) fn read(pattern: &str) -> Option<Self> {
        let translated = jsonschema_regex::to_rust_regex(pattern).ok()?;
        let hir = regex_syntax::parse(&translated).ok()?;
        let (positions, program) = (positions(&hir), program(&hir));
        let looks = hir.properties().look_set();
        let is_plain = looks.iter().all(|look| matches!(look, Look::Start | Look::End));
        let is_anchored = hir.properties().look_set_prefix().contains(Look::Start);
        // Without an anchor a match can begin at every byte.
        let starts = if is_anchored { 1 } else { u64::MAX };
        let steps_per_byte = if positions <= FEW_POSITIONS && program <= SMALL_PROGRAM && is_plain {
            STEPS_PER_BYTE
        } else {
            active(&hir, starts).min(positions).saturating_mul(STEPS_PER_POSITION)
        };
        let longest = hir.properties().maximum_len().filter(|_| is_anchored);
        let reach = longest.map_or(u64::MAX, |bytes| u64::try_from(bytes).unwrap_or(u64::MAX) + 1);
        Some(Self { program, steps_per_byte, bytes: pattern.len() as u64, reach })
    }

    /// The steps of a search in a text of this many bytes.
    pub(crate) fn steps(self, bytes: usize) -> u64 {
        (bytes as u64).min(self.reach).saturating_add(1).saturating_mul(self.steps_per_byte)
    }
}

/// The places in a pattern that a match passes one after another, with repetitions written out.
fn positions(hir: &Hir) -> u64 {
    fold(hir, 1)
}

/// The instructions of a compiled pattern, about: one for each position and each range of a class.
fn program(hir: &Hir) -> u64 {
    fold(hir, u64::MAX)
}

/// Adds up the parts of a pattern. A class counts as its ranges, but at most this many.
fn fold(hir: &Hir, class_limit: u64) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(class) => {
            let ranges = match class {
                Class::Unicode(class) => class.ranges().len(),
                Class::Bytes(class) => class.ranges().len(),
            };
            (ranges as u64).clamp(1, class_limit)
        }
        HirKind::Repetition(repetition) => {
            let times = u64::from(repetition.max.unwrap_or(repetition.min).max(1));
            fold(&repetition.sub, class_limit).saturating_mul(times)
        }
        HirKind::Capture(capture) => fold(&capture.sub, class_limit),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(|part| fold(part, class_limit)).fold(0, u64::saturating_add)
        }
    }
}

/// The positions that can be active at once, if a match enters the pattern at this many different bytes.
fn active(hir: &Hir, starts: u64) -> u64 {
    let found = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) | HirKind::Class(_) => starts,
        HirKind::Capture(capture) => active(&capture.sub, starts),
        HirKind::Repetition(repetition) => match lengths(&repetition.sub) {
            // Each copy begins where the one before it ends, so a start is in one copy at a time.
            (shortest, Some(longest)) if shortest == longest => {
                active(&repetition.sub, 1).saturating_mul(starts)
            }
            _ => u64::MAX,
        },
        HirKind::Alternation(parts) => {
            parts.iter().map(|part| active(part, starts)).fold(0, u64::saturating_add)
        }
        HirKind::Concat(parts) => {
            let (mut sum, mut starts) = (0_u64, starts);
            // While parts have one length, each start is in one of them.
            let (mut widest, mut places) = (0_u64, 0_u64);
            for part in parts {
                (widest, places) = (widest.max(active(part, 1)), places.saturating_add(positions(part)));
                let (shortest, longest) = lengths(part);
                let spread = longest.map_or(u64::MAX, |longest| longest - shortest);
                if spread > 0 {
                    sum = sum.saturating_add(starts.saturating_mul(widest).min(places));
                    // The next parts begin at different bytes.
                    (starts, widest, places) = (starts.saturating_add(spread), 0, 0);
                }
            }
            sum.saturating_add(starts.saturating_mul(widest).min(places))
        }
    };
    found.min(positions(hir))
}

/// The fewest and the most characters that a pattern matches; none without a limit.
fn lengths(hir: &Hir) -> (u64, Option<u64>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (0, Some(0)),
        HirKind::Literal(literal) => (literal.0.len() as u64, Some(literal.0.len() as u64)),
        HirKind::Class(_) => (1, Some(1)),
        HirKind::Capture(capture) => lengths(&capture.sub),
        HirKind::Repetition(repetition) => {
            let (shortest, longest) = lengths(&repetition.sub);
            let times = |length: u64, times: u32| length.saturating_mul(u64::from(times));
            let longest = longest.zip(repetition.max).map(|(longest, max)| times(longest, max));
            (times(shortest, repetition.min), longest)
        }
        HirKind::Alternation(parts) => parts.iter().map(lengths).fold((u64::MAX, Some(0)), |sum, part| {
            (sum.0.min(part.0), sum.1.zip(part.1).map(|(one, other)| one.max(other)))
        }),
        HirKind::Concat(parts) => parts.iter().map(lengths).fold((0, Some(0)), |sum, part| {
            let longest = sum.1.zip(part.1).map(|(one, other): (u64, u64)| one.saturating_add(other));
            (u64::saturating_add(sum.0, part.0), longest)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::PatternCost;

    /// The verdict of machine version 2 depends on these numbers. A change of them needs another version.
    #[test]
    fn counts_the_steps_of_patterns() {
        let rows = [
            // Few positions: each byte is read once.
            ("[A-Z]{2}", 2),
            ("^\\S", 2),
            ("^[\\s\\S]+$", 2),
            ("^[a-z]{1,9}$", 40),
            // All positions are active, because a match can begin anywhere.
            ("[ab]*a[ab]{500}c", 10_060),
            ("[a-z0-9-]{1,64}x", 1_300),
            // With an anchor a match begins once, and each repetition of one class has one active position.
            ("^[ab]*a[ab]{500}c", 10_060),
            ("^.{1,2000}$", 40),
            ("^[a-z0-9-]{1,64}$", 40),
            ("^\\p{L}{1,60}$", 40),
            ("^[A-Z]{2}-[0-9]{1,12}$", 40),
            ("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", 20),
            ("^https?://.{1,2000}$", 80),
            ("^(red|green|blue)$", 80),
            ("^[\\w.+-]{1,64}@[\\w-]{1,63}\\.[a-z]{2,20}$", 1_740),
            // Word boundaries of Unicode, and repetitions of parts of different lengths.
            ("\\bword\\b", 120),
            ("^(a{1,3}b){1,90}$", 7_220),
        ];
        let found = rows.map(|(pattern, _)| (pattern, PatternCost::read(pattern).unwrap().steps_per_byte));
        assert_eq!(found, rows);
    }

    #[test]
    fn an_anchored_pattern_of_bounded_length_reads_no_more_than_that() {
        let steps = |pattern: &str, bytes| PatternCost::read(pattern).unwrap().steps(bytes);
        assert_eq!(steps("^[a-z0-9-]{1,64}$", 65), steps("^[a-z0-9-]{1,64}$", 900_000));
        assert!(steps("[ab]*a[ab]{500}c", 900_000) > 9_000_000_000);
    }

    #[test]
    fn repetitions_multiply_without_being_written_out() {
        assert!(PatternCost::read("(((a{900}){900}){900}){900}").unwrap().program > 600_000_000_000);
        assert_eq!(PatternCost::read("(?=a)b"), None);
    }
}
