//! Removes secrets from a text that arrives in pieces.
//!
//! Owns the held text: everything that can still become a secret. Never gives it out, even at the end.

use super::{Scrubber, encodings, floor_char_boundary};
use crate::secret::REDACTED;

/// Bytes of a piece that are searched at once.
const MAX_SEARCHED: usize = 16 * 1024;

/// Bytes that are held. A text that needs more gives out nothing else.
const MAX_HELD: usize = 16 * 1024;

/// Scrubs one text. Holds the end of the text from where a secret can begin.
#[derive(Clone)]
pub struct ScrubStream<'a> {
    scrubber: &'a Scrubber,
    held: String,
    /// The number of bytes at the start of `held` that belong to a secret already replaced.
    covered: usize,
    /// Whether more text had to be held than allowed.
    is_closed: bool,
}

impl Scrubber {
    /// Starts to scrub a text that arrives in pieces. Finds the same secrets as [`Scrubber::text`], wherever the
    /// text is cut.
    #[must_use]
    pub fn stream(&self) -> ScrubStream<'_> {
        ScrubStream { scrubber: self, held: String::new(), covered: 0, is_closed: false }
    }
}

impl ScrubStream<'_> {
    /// Takes a piece and returns the text that is safe by now, which is often empty.
    pub fn push(&mut self, piece: &str) -> String {
        if self.scrubber.secrets.is_empty() {
            return piece.to_owned();
        }
        let (mut safe, mut rest) = (String::new(), piece);
        while !rest.is_empty() && !self.is_closed {
            let (part, after) = rest.split_at(floor_char_boundary(rest, MAX_SEARCHED));
            self.held.push_str(part);
            self.give_out(&mut safe);
            rest = after;
        }
        safe
    }

    /// Moves the safe start of the held text to `safe`.
    fn give_out(&mut self, safe: &mut String) {
        let search = self.scrubber.search();
        let text = self.held.as_bytes();
        let mut found = search.find(text);
        let mut cut = search.find_start(text).unwrap_or(text.len());
        let mut escapes = Vec::new();
        let complete = encodings::decode_all(&self.held, |decoded| {
            let bytes = decoded.complete_bytes();
            found.extend(decoded.ranges(search.find(bytes)));
            cut = cut.min(search.find_start(bytes).map_or(cut, |at| decoded.positions[at]));
            escapes.push(decoded.positions.clone());
        });
        // The next search decodes from the cut on, so the cut must not be inside an escape.
        cut = cut.min(complete);
        let before = |positions: &Vec<usize>, cut: usize| {
            positions[..positions.partition_point(|at| *at <= cut)].last().copied().unwrap_or(0)
        };
        while let Some(lower) = escapes.iter().map(|positions| before(positions, cut)).find(|at| *at < cut) {
            cut = lower;
        }

        let is_covered = self.covered > 0;
        found.extend(is_covered.then_some(0..self.covered));
        let mut shown = 0;
        self.covered = 0;
        for (index, range) in encodings::merge(found).into_iter().enumerate() {
            let is_replaced = is_covered && index == 0;
            if range.start >= cut && !is_replaced {
                break;
            }
            safe.push_str(&self.held[shown..range.start]);
            safe.push_str(if is_replaced { "" } else { REDACTED });
            shown = range.end.min(cut);
            // Another secret can start inside this one and end after it.
            self.covered = range.end.saturating_sub(cut);
        }
        safe.push_str(&self.held[shown..cut]);
        self.held.drain(..cut);
        if self.held.len() > MAX_HELD {
            self.held = String::new();
            self.is_closed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Scrubber;

    fn scrubber(secrets: &[&str]) -> Scrubber {
        let mut scrubber = Scrubber::default();
        secrets.iter().for_each(|secret| scrubber.add(secret));
        scrubber
    }

    /// Scrubs a text in pieces of `size` characters.
    fn scrub_in_pieces(scrubber: &Scrubber, text: &str, size: usize) -> String {
        let characters: Vec<char> = text.chars().collect();
        let mut stream = scrubber.stream();
        characters.chunks(size).map(|piece| stream.push(&piece.iter().collect::<String>())).collect()
    }

    /// The result must not depend on the size of the pieces.
    fn check(secrets: &[&str], text: &str, expected: &str) {
        let scrubber = scrubber(secrets);
        for size in 1..=text.chars().count() {
            assert_eq!(scrub_in_pieces(&scrubber, text, size), expected, "{size} of {text}");
        }
    }

    // SECURITY: deltas
    #[test]
    fn finds_a_secret_wherever_the_text_is_cut() {
        check(&[], "nothing is secret", "nothing is secret");
        check(&["sk-verysecret"], "it is sk-verysecret, so", "it is [redacted], so");
        check(&["sk-verysecret"], "sk-verysecresk-verysecret.", "sk-verysecre[redacted].");
        check(&["sk-verysecret"], "sk-verysecretsk-verysecret.", "[redacted][redacted].");
        check(&["schlüssel-ß-€"], "ein schlüssel-ß-€ und ä.", "ein [redacted] und ä.");
    }

    #[test]
    fn never_shows_the_start_of_a_secret() {
        check(&["sk-verysecret"], "it is sk-verysecre", "it is ");
        check(&["sk-verysecret"], "it is s", "it is ");
        check(&["sk-verysecret"], r"it is \u0073", "it is ");
    }

    #[test]
    fn removes_secrets_that_overlap_or_start_alike() {
        let secrets = ["sk-verysecret", "sk-verysecret-and-longer"];
        check(&secrets, "a sk-verysecret-and-longer b", "a [redacted] b");
        check(&secrets, "a sk-verysecret-and-short b", "a [redacted]-and-short b");
        // The second secret starts inside the first.
        check(&["abcdefgh12", "1234567890"], "x abcdefgh1234567890 y", "x [redacted] y");
    }

    #[test]
    fn removes_secrets_that_json_escapes() {
        let secrets = ["key/with\"quotes\\"];
        for text in [
            r#"{"m":"key/with"quotes\ it is"}"#,
            r#"{"m":"key/with\"quotes\\ it is"}"#,
            r#"{"m":"key\/with\"quotes\\ it is"}"#,
            r#"{"m":"\u006bey\/with\u0022quotes\u005C it is"}"#,
            r#"{"m":"\u006Bey/with\u0022quotes\\ it is"}"#,
        ] {
            check(&secrets, text, r#"{"m":"[redacted] it is"}"#);
        }
        check(&["geheim-\u{1f511}-ß"], "x%67eheim-%F0%9f%94%91%2d%C3%9F%", "x[redacted]");
        check(&["sk-verysecret"], "it is eHNrLXZlcnlzZWNyZXR5, so", "it is eH[redacted]R5, so");
        check(&["sk-verysecret"], "100% sure %qq!", "100% sure %qq!");
        check(&["geheim-\u{1f511}-x"], r"geheim-\uD83D\udd11-x!", "[redacted]!");
        // Text without a secret stays unchanged.
        check(&secrets, r#"{"m":"\u0041 \\ \" \/ \n"}"#, r#"{"m":"\u0041 \\ \" \/ \n"}"#);
    }

    #[test]
    fn finds_every_encoding_that_a_whole_text_is_searched_for() {
        let secret = "sk~ü?very/\\ key";
        let percent = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02x}")).collect() };
        let unicode =
            |text: &str| -> String { text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect() };
        for written in [
            percent(&percent(secret)),
            unicode(&unicode("sk~ü?v")) + &secret["sk~ü?v".len()..],
            percent(&unicode(secret)),
            unicode(&percent(secret)),
            serde_json::to_string(&unicode(secret)).unwrap().replace('"', ""),
        ] {
            let text = format!("a %41 {written} \\n z.");
            let mut whole = text.clone();
            let scrubber = scrubber(&[secret]);
            scrubber.text(&mut whole);
            assert_eq!(whole, "a %41 [redacted] \\n z.", "{written}");
            for size in [1, 2, 3, 5, 7, 50, 1_000] {
                assert_eq!(scrub_in_pieces(&scrubber, &text, size), whole, "{size} of {text}");
            }
        }
    }

    // SECURITY: deltas
    #[test]
    fn any_text_in_pieces_has_the_result_of_the_whole_text() {
        const PARTS: [&str; 16] = [
            "%",
            "25",
            "\\",
            "u00",
            "5c",
            "73",
            "s",
            "k-very",
            "sk-verysecre",
            "t",
            "6",
            "\\u0073",
            "%73",
            "%5Cu00",
            "\\ud83d",
            "ü",
        ];
        let scrubber = scrubber(&["sk-verysecret", "ssssssss", "tttt%\\%tsk-", "\\\\\\\\%%%%"]);
        let mut state = 1_u64;
        let mut random = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % bound
        };
        for _ in 0..3_000 {
            let (count, repeated) = (random(20), random(16));
            let part = |choice: usize| PARTS[if choice < 16 { choice } else { repeated }];
            // The end completes every escape.
            let text: String = (0..count).map(|_| part(random(32))).chain(["............"]).collect();
            let mut whole = text.clone();
            scrubber.text(&mut whole);
            for size in [1, 2, 3, 7] {
                assert_eq!(scrub_in_pieces(&scrubber, &text, size), whole, "{size} of {text}");
            }
        }
    }

    /// Every character could begin an escaped secret.
    // SECURITY: deltas
    #[test]
    fn a_long_text_of_escapes_does_not_hold_the_thread() {
        let secrets: Vec<String> = (0..100).map(|n| format!("{n}-a-secret-of-the-flow")).collect();
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let scrubber = scrubber(&secrets);
        for (text, rest) in [("%", 1), ("\\", 1), ("%2", 2), ("%5c", 3), ("\\u0025", 6)] {
            let text = text.repeat(4 * 1024 * 1024 / text.len());
            let mut stream = scrubber.stream();
            let safe = stream.push(&text);
            assert!(text.len() - safe.len() <= rest * 4, "{}", text.len() - safe.len());
            assert!(text.starts_with(&safe));
        }
    }

    // SECURITY: deltas
    #[test]
    fn holds_a_bounded_part_of_a_long_secret() {
        let long: String = (0..300_000).map(|n| format!("{n:x}-")).collect();
        let scrubber = scrubber(&[&long, "sk-verysecret"]);
        let mut stream = scrubber.stream();
        assert_eq!(stream.push(&format!("a sk-verysecret {}", &long[..10_000])), "a [redacted] ");
        assert_eq!(stream.push("no. "), long[..10_000].to_owned() + "no. ");
        for piece in long.as_bytes().chunks(1_000).take(100) {
            assert_eq!(stream.push(std::str::from_utf8(piece).unwrap()), "");
            assert!(stream.held.len() <= super::MAX_HELD);
        }
        assert_eq!(stream.push("the end"), "", "the whole text follows later");
    }

    #[test]
    fn holds_little_text() {
        let scrubber = scrubber(&["sk-verysecret", &"\\".repeat(20)]);
        let mut stream = scrubber.stream();
        assert_eq!(stream.push("no secret begins here"), "no secret begins here");
        let backslashes = "\\".repeat(1_000);
        let safe = stream.push(&backslashes);
        assert!(stream.held.len() < 240 && safe.len() < 1_000, "{}", stream.held.len());
    }
}
