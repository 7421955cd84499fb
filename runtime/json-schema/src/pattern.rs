//! The cost of a pattern: how much work the search of one text can take.
//!
//! Reads a pattern as the validator does: translated from ECMAScript's syntax to that of `regex`.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// The steps of a search for each byte of the text, if the pattern has only a few positions. Then the engine
/// keeps all its states and reads a byte once.
const STEPS_PER_BYTE: u64 = 2;

/// The steps for each byte and position. The engine follows all positions at once if it cannot keep its states.
const STEPS_PER_POSITION: u64 = 20;

/// The most positions and the largest program whose states the engine keeps.
const FEW_POSITIONS: u64 = 10;
const SMALL_PROGRAM: u64 = 200;

/// The instructions that one range of characters takes.
const INSTRUCTIONS_PER_RANGE: u64 = 4;

/// What the search for a pattern can cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternCost {
    /// The instructions of the compiled pattern, about.
    pub(crate) program: u64,
    /// The steps for each byte of a text.
    pub(crate) steps_per_byte: u64,
    /// The engine reads no more bytes than this.
    reach: u64,
}

impl PatternCost {
    /// The cost of a pattern; none if the validator cannot compile it either.
    pub(crate) fn read(pattern: &str) -> Option<Self> {
        let pattern = jsonschema_regex::to_rust_regex(pattern).ok()?;
        let hir = regex_syntax::parse(&pattern).ok()?;
        let (positions, program) = count(&hir);
        let looks = hir.properties().look_set();
        let is_plain = looks.iter().all(|look| matches!(look, Look::Start | Look::End));
        let steps_per_byte = if positions <= FEW_POSITIONS && program <= SMALL_PROGRAM && is_plain {
            STEPS_PER_BYTE
        } else {
            positions.saturating_mul(STEPS_PER_POSITION)
        };
        let is_anchored = hir.properties().look_set_prefix().contains(Look::Start);
        let longest = hir.properties().maximum_len().filter(|_| is_anchored);
        let reach = longest.map_or(u64::MAX, |bytes| u64::try_from(bytes).unwrap_or(u64::MAX) + 1);
        Some(Self { program, steps_per_byte, reach })
    }

    /// The steps of a search in a text of this many bytes.
    pub(crate) fn steps(self, bytes: usize) -> u64 {
        (bytes as u64).min(self.reach).saturating_add(1).saturating_mul(self.steps_per_byte)
    }
}

/// The characters that a match passes one after another, and the instructions for them, both with repetitions
/// written out.
fn count(hir: &Hir) -> (u64, u64) {
    let sum = |hirs: &[Hir]| {
        hirs.iter().map(count).fold((0_u64, 0_u64), |(positions, program), (p, q)| {
            (positions.saturating_add(p), program.saturating_add(q))
        })
    };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => (1, 1),
        HirKind::Literal(literal) => (literal.0.len() as u64, literal.0.len() as u64),
        HirKind::Class(class) => {
            let ranges = match class {
                Class::Unicode(class) => class.ranges().len(),
                Class::Bytes(class) => class.ranges().len(),
            };
            (1, (ranges as u64).saturating_mul(INSTRUCTIONS_PER_RANGE))
        }
        HirKind::Repetition(repetition) => {
            let (positions, program) = count(&repetition.sub);
            let times = u64::from(repetition.max.unwrap_or(repetition.min).max(1));
            (positions.saturating_mul(times), program.saturating_mul(times))
        }
        HirKind::Capture(capture) => count(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::PatternCost;

    #[test]
    fn counts_positions_and_reach() {
        let steps = |pattern: &str, bytes| PatternCost::read(pattern).unwrap().steps(bytes);
        // A few positions: each byte is read once.
        assert_eq!(steps("[A-Z]{2}", 999), 2_000);
        // Many positions are followed at once.
        assert!(steps("[ab]*a[ab]{500}c", 900_000) > 9_000_000_000);
        // An anchored pattern of bounded length reads no more than that length.
        assert_eq!(steps("^[a-z0-9-]{1,64}$", 65), steps("^[a-z0-9-]{1,64}$", 900_000));
        assert!(steps("^[a-z0-9-]{1,64}", 900_000) < 100_000);
        // Nested repetitions multiply without being written out.
        assert!(PatternCost::read("(((a{900}){900}){900}){900}").unwrap().program > 600_000_000_000);
        assert_eq!(PatternCost::read("(?=a)b"), None);
    }
}
