//! Takes secrets out of a text that comes in pieces.
//!
//! Owns what is held back: whatever may yet turn out to be the beginning of a secret. Never gives that out,
//! also not at the end.

use super::Scrubber;
use crate::secret::REDACTED;

/// A text on its way out. Holds back no more than a secret has characters, each written in its longest form.
#[derive(Clone)]
pub struct ScrubStream<'a> {
    scrubber: &'a Scrubber,
    held: String,
    /// Bytes at the beginning of `held` that belong to a secret which has been found.
    covered: usize,
}

impl Scrubber {
    /// For a text that comes in pieces. A secret is found wherever it is cut, and also where JSON writes its
    /// characters otherwise.
    #[must_use]
    pub fn stream(&self) -> ScrubStream<'_> {
        ScrubStream { scrubber: self, held: String::new(), covered: 0 }
    }
}

impl ScrubStream<'_> {
    /// Takes a piece and gives what may be shown by now; often nothing.
    pub fn push(&mut self, piece: &str) -> String {
        if self.scrubber.secrets.is_empty() {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        let mut shown = String::new();
        let mut done = 0;
        for (at, character) in self.held.char_indices() {
            let Some(found) = self.secret_at(at) else { break };
            done = at + character.len_utf8();
            if at < self.covered {
                // Another one may begin within the first, and end after it.
                self.covered = self.covered.max(at + found);
            } else if found > 0 {
                shown.push_str(REDACTED);
                self.covered = at + found;
            } else {
                shown.push(character);
            }
        }
        self.held.drain(..done);
        self.covered = self.covered.saturating_sub(done);
        shown
    }

    /// How many bytes the secret has that begins here; 0 if none does, none if that is not known yet.
    fn secret_at(&self, at: usize) -> Option<usize> {
        let mut longest = 0;
        for secret in &self.scrubber.secrets {
            match compare(&self.held[at..], secret) {
                Compared::Different => {}
                Compared::Whole(bytes) => longest = longest.max(bytes),
                Compared::Beginning => return None,
            }
        }
        Some(longest)
    }
}

#[derive(Clone, Copy)]
enum Compared {
    Different,
    /// The text begins with it, so many bytes long.
    Whole(usize),
    /// The text ends before that is known.
    Beginning,
}

/// Whether a text begins with a secret, as it is or as a string of JSON may have it.
fn compare(text: &str, secret: &str) -> Compared {
    // Nearly every place of nearly every text is none of ours.
    if !text.starts_with('\\') && text.chars().next() != secret.chars().next() {
        return Compared::Different;
    }
    // A backslash may stand for itself or begin an escape, so there may be several ways through.
    let (mut places, mut may_go_on) = (vec![0], false);
    for character in secret.chars() {
        let (mut next, ways) = (Vec::new(), ways(character));
        for place in places {
            for way in &ways {
                match begins_with(&text[place..], way) {
                    Some(true) => next.push(place + way.len()),
                    Some(false) => {}
                    None => may_go_on = true,
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
        _ if may_go_on => Compared::Beginning,
        Some(bytes) => Compared::Whole(bytes),
        None => Compared::Different,
    }
}

/// How JSON may write a character in a string; hexadecimal digits in small letters.
fn ways(character: char) -> Vec<String> {
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
    [character.to_string(), numbers].into_iter().chain(short).collect()
}

/// None if the text ends too early to say.
fn begins_with(text: &str, way: &str) -> Option<bool> {
    // Only in an escape do capital letters count as small ones.
    let same = |one: u8, other: u8| {
        if way.starts_with("\\u") { one.eq_ignore_ascii_case(&other) } else { one == other }
    };
    let equal = text.bytes().zip(way.bytes()).all(|(one, other)| same(one, other));
    if equal && text.len() < way.len() { None } else { Some(equal) }
}

#[cfg(test)]
mod tests {
    use super::Scrubber;

    fn scrubber(secrets: &[&str]) -> Scrubber {
        let mut scrubber = Scrubber::default();
        secrets.iter().for_each(|secret| scrubber.add(secret));
        scrubber
    }

    /// What is shown of a text that comes in pieces of so many characters.
    fn shown(scrubber: &Scrubber, text: &str, size: usize) -> String {
        let characters: Vec<char> = text.chars().collect();
        let mut stream = scrubber.stream();
        characters.chunks(size).map(|piece| stream.push(&piece.iter().collect::<String>())).collect()
    }

    /// However a text is cut, this is shown of it.
    fn check(secrets: &[&str], text: &str, expected: &str) {
        let scrubber = scrubber(secrets);
        for size in 1..=text.chars().count() {
            assert_eq!(shown(&scrubber, text, size), expected, "{size} of {text}");
        }
    }

    #[test]
    fn a_secret_is_found_wherever_it_is_cut() {
        check(&[], "nothing is secret", "nothing is secret");
        check(&["sk-verysecret"], "it is sk-verysecret, so", "it is [redacted], so");
        check(&["sk-verysecret"], "sk-verysecresk-verysecret.", "sk-verysecre[redacted].");
        check(&["sk-verysecret"], "sk-verysecretsk-verysecret.", "[redacted][redacted].");
        check(&["schlüssel-ß-€"], "ein schlüssel-ß-€ und ä.", "ein [redacted] und ä.");
    }

    #[test]
    fn the_beginning_of_one_is_never_shown() {
        check(&["sk-verysecret"], "it is sk-verysecre", "it is ");
        check(&["sk-verysecret"], "it is s", "it is ");
        check(&["sk-verysecret"], r"it is \u0073", "it is ");
    }

    #[test]
    fn of_two_that_begin_alike_nothing_is_left() {
        let secrets = ["sk-verysecret", "sk-verysecret-and-longer"];
        check(&secrets, "a sk-verysecret-and-longer b", "a [redacted] b");
        check(&secrets, "a sk-verysecret-and-short b", "a [redacted]-and-short b");
        // The second begins within the first.
        check(&["abcdefgh12", "1234567890"], "x abcdefgh1234567890 y", "x [redacted] y");
    }

    #[test]
    fn json_may_write_it_otherwise() {
        let secrets = ["key/with\"quotes\\"];
        for said in [
            r#"{"m":"key/with"quotes\ it is"}"#,
            r#"{"m":"key/with\"quotes\\ it is"}"#,
            r#"{"m":"key\/with\"quotes\\ it is"}"#,
            r#"{"m":"\u006bey\/with\u0022quotes\u005C it is"}"#,
            r#"{"m":"\u006Bey/with\u0022quotes\\ it is"}"#,
        ] {
            check(&secrets, said, r#"{"m":"[redacted] it is"}"#);
        }
        check(&["geheim-\u{1f511}-x"], r"geheim-\uD83D\udd11-x!", "[redacted]!");
        // What holds no secret stays as it was written.
        check(&secrets, r#"{"m":"\u0041 \\ \" \/ \n"}"#, r#"{"m":"\u0041 \\ \" \/ \n"}"#);
    }

    #[test]
    fn little_is_held_and_little_is_asked() {
        let scrubber = scrubber(&["sk-verysecret", &"\\".repeat(20)]);
        let mut stream = scrubber.stream();
        assert_eq!(stream.push("no secret begins here"), "no secret begins here");
        let backslashes = "\\".repeat(1_000);
        let shown = stream.push(&backslashes);
        assert!(stream.held.len() < 240 && shown.len() < 1_000, "{}", stream.held.len());
    }
}
