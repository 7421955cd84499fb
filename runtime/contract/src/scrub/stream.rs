//! Removes secrets from a text that arrives in pieces.
//!
//! Owns the held text: everything that can still become a secret. Never gives it out, even at the end.

use super::Scrubber;
use crate::secret::REDACTED;

/// Scrubs one text. Holds at most as many characters as the longest secret has, each in its longest JSON
/// form.
#[derive(Clone)]
pub struct ScrubStream<'a> {
    scrubber: &'a Scrubber,
    held: String,
    /// The number of bytes at the start of `held` that belong to a secret already found.
    covered: usize,
}

impl Scrubber {
    /// Starts to scrub a text that arrives in pieces. Finds a secret wherever the text is cut, also in base64,
    /// and also if its characters are escaped.
    #[must_use]
    pub fn stream(&self) -> ScrubStream<'_> {
        ScrubStream { scrubber: self, held: String::new(), covered: 0 }
    }
}

impl ScrubStream<'_> {
    /// Takes a piece and returns the text that is safe by now, which is often empty.
    pub fn push(&mut self, piece: &str) -> String {
        if self.scrubber.secrets.is_empty() {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        let mut safe = String::new();
        let mut done = 0;
        for (at, character) in self.held.char_indices() {
            let Some(found) = self.secret_at(at) else { break };
            done = at + character.len_utf8();
            if at < self.covered {
                // Another secret can start inside the first one and end after it.
                self.covered = self.covered.max(at + found);
            } else if found > 0 {
                safe.push_str(REDACTED);
                self.covered = at + found;
            } else {
                safe.push(character);
            }
        }
        self.held.drain(..done);
        self.covered = self.covered.saturating_sub(done);
        safe
    }

    /// The length in bytes of the secret that starts here; 0 if none does, none if more text is needed.
    fn secret_at(&self, at: usize) -> Option<usize> {
        let mut longest = 0;
        for form in &self.scrubber.forms {
            match compare(&self.held[at..], form) {
                Comparison::Different => {}
                Comparison::Equal(bytes) => longest = longest.max(bytes),
                Comparison::NeedsMore => return None,
            }
        }
        Some(longest)
    }
}

#[derive(Clone, Copy)]
enum Comparison {
    Different,
    /// The text starts with the secret, which takes this many bytes.
    Equal(usize),
    /// The text ends before the secret does.
    NeedsMore,
}

/// Compares the start of a text with a secret, plain or with characters escaped as in JSON or in a URL.
fn compare(text: &str, secret: &str) -> Comparison {
    // A fast answer for nearly every position of nearly every text.
    if !text.starts_with(['\\', '%']) && text.chars().next() != secret.chars().next() {
        return Comparison::Different;
    }
    // A backslash can stand for itself or start an escape, so several positions can match.
    let (mut places, mut needs_more) = (vec![0], false);
    for character in secret.chars() {
        let (mut next, forms) = (Vec::new(), escaped_forms(character));
        for place in places {
            for form in &forms {
                match starts_with_form(&text[place..], form) {
                    Some(true) => next.push(place + form.len()),
                    Some(false) => {}
                    None => needs_more = true,
                }
            }
        }
        next.sort_unstable();
        next.dedup();
        places = next;
        if places.is_empty() {
            break;
        }
    }
    match places.pop() {
        _ if needs_more => Comparison::NeedsMore,
        Some(bytes) => Comparison::Equal(bytes),
        None => Comparison::Different,
    }
}

/// The forms that a character can have in a JSON string and in a URL, with hexadecimal digits in small letters.
fn escaped_forms(character: char) -> Vec<String> {
    let short = match character {
        '"' | '\\' | '/' => Some(character),
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        _ => None,
    };
    let numbers: String =
        character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    let short = short.map(|letter| format!("\\{letter}"));
    let percent: String =
        character.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02x}")).collect();
    [character.to_string(), numbers, percent].into_iter().chain(short).collect()
}

/// Whether a text starts with a form; none if the text ends too early to tell.
fn starts_with_form(text: &str, form: &str) -> Option<bool> {
    // Hexadecimal digits of an escape may be capital letters.
    let same = |one: u8, other: u8| {
        if form.starts_with("\\u") || form.starts_with('%') {
            one.eq_ignore_ascii_case(&other)
        } else {
            one == other
        }
    };
    let equal = text.bytes().zip(form.bytes()).all(|(one, other)| same(one, other));
    if equal && text.len() < form.len() { None } else { Some(equal) }
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
    fn holds_little_text() {
        let scrubber = scrubber(&["sk-verysecret", &"\\".repeat(20)]);
        let mut stream = scrubber.stream();
        assert_eq!(stream.push("no secret begins here"), "no secret begins here");
        let backslashes = "\\".repeat(1_000);
        let safe = stream.push(&backslashes);
        assert!(stream.held.len() < 240 && safe.len() < 1_000, "{}", stream.held.len());
    }
}
