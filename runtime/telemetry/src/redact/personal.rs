//! Redacts personal data: e-mail addresses, telephone and card numbers, bank accounts.

use super::pattern::compile;
use super::replacer::Replacer;
use regex::Regex;
use std::borrow::Cow;

const IBAN: &str = r"(?-u)[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?";

const CARD: &str = concat!(
    r"(?-u)[0-9]{4}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{1,4}(?:[ -][0-9]{3})?",
    r"|[0-9]{4}[ -][0-9]{6}[ -][0-9]{4,5}",
    r"|[0-9]{13,19}",
);

/// International; area code in brackets; 3-3-4 digits; five pairs; area code that begins with 0.
const PHONE: &str = concat!(
    r"(?-u)\+[0-9(][0-9 ()./-]{6,24}[0-9]",
    r"|\(0?[0-9]{2,5}\)[ -]?[0-9]{3,8}(?:[ -][0-9]{2,8}){0,3}",
    r"|[0-9]{3}-[0-9]{3}-[0-9]{4}|[0-9]{3}\.[0-9]{3}\.[0-9]{4}|[0-9]{3} [0-9]{3} [0-9]{4}",
    r"|0[0-9](?: [0-9]{2}){4}|0[0-9](?:\.[0-9]{2}){4}|0[0-9](?:-[0-9]{2}){4}",
    r"|0[0-9]{2,4}[ /-][0-9]{3,8}(?:[ -][0-9]{2,8}){0,3}",
);

/// The number of digits of a telephone number.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 9..=15;

pub(super) struct PersonalPatterns {
    iban: Regex,
    card: Regex,
    phone: Regex,
}

impl PersonalPatterns {
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self { iban: compile(IBAN)?, card: compile(CARD)?, phone: compile(PHONE)? })
    }

    pub(super) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = redact_emails(text);
        for (pattern, placeholder, confirm) in [
            (&self.iban, "[iban]", iban_length as ConfirmMatch),
            (&self.card, "[card]", card_length),
            (&self.phone, "[phone]", phone_length),
        ] {
            if let Cow::Owned(changed) = redact_matches(&out, pattern, placeholder, confirm) {
                out = Cow::Owned(changed);
            }
        }
        out
    }
}

/// Checks a match, given the text before it and the text that starts with it. Returns the length to redact.
type ConfirmMatch = fn(&str, &str, &str) -> Option<usize>;

/// Replaces each match that `confirm` accepts.
/// A match is short, so searching again after its first word costs little.
fn redact_matches<'a>(
    text: &'a str,
    pattern: &Regex,
    placeholder: &str,
    confirm: ConfirmMatch,
) -> Cow<'a, str> {
    let (mut replacer, mut replaced, mut from) = (Replacer::new(text), 0, 0);
    while let Some(found) = pattern.find_at(text, from) {
        // A replaced part does not form one word with the text after it.
        match confirm(&text[replaced..found.start()], found.as_str(), &text[found.start()..]) {
            Some(length) => {
                replaced = found.start() + length;
                replacer.replace(found.start(), replaced, placeholder);
                from = replaced;
            }
            // Every match begins with an ASCII character. The rest of a longer word is not a number by
            // itself.
            None => from = found.start() + word_length(&text[found.start()..]),
        }
    }
    replacer.finish()
}

/// Redacts addresses with a name, an `@` and a host that ends in a dot and letters.
fn redact_emails(text: &str) -> Cow<'_, str> {
    let (mut replacer, mut from) = (Replacer::new(text), 0);
    let length = |chars: &mut dyn Iterator<Item = char>, extra: &str| -> usize {
        chars.take_while(|c| c.is_alphanumeric() || extra.contains(*c)).map(char::len_utf8).sum()
    };
    while let Some(at) = text[from..].find('@').map(|found| from + found) {
        let local = length(&mut text[from..at].chars().rev(), "._%+-");
        let host = &text[at + 1..][..length(&mut text[at + 1..].chars(), ".-")];
        // The address ends with the letters after its last dot.
        let end = host.char_indices().rev().filter(|(_, c)| *c == '.').find_map(|(dot, _)| {
            let letters = host[dot + 1..].chars().take_while(|c| c.is_alphabetic());
            let (count, bytes) = letters.fold((0, 0), |(count, bytes), c| (count + 1, bytes + c.len_utf8()));
            (dot > 0 && count >= 2).then_some(dot + 1 + bytes)
        });
        from = at + 1;
        if let Some(end) = end.filter(|_| local > 0) {
            from = at + 1 + end;
            replacer.replace(at - local, from, "[email]");
        }
    }
    replacer.finish()
}

/// The number of letters and digits at the start of a text, at least one.
fn word_length(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_alphanumeric).count().max(1)
}

/// Whether a character beside a number makes it part of a longer word.
fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a number between these texts is not part of a longer word, number, date or id.
fn is_separate(before: &str, after: &str) -> bool {
    let separates = |[first, second]: [Option<char>; 2]| match first {
        None => true,
        Some(c) if is_word_character(c) => false,
        Some(':') => !second.is_some_and(|c| c.is_ascii_digit()),
        Some('-' | '.' | '/') => !second.is_some_and(is_word_character),
        Some(_) => true,
    };
    let (mut left, mut right) = (before.chars().rev(), after.chars());
    separates([left.next(), left.next()]) && separates([right.next(), right.next()])
}

fn digits(text: &str) -> impl DoubleEndedIterator<Item = u32> + '_ {
    text.chars().filter_map(|c| c.to_digit(10))
}

/// The ends of the groups of digits in a match, the longest part first.
fn group_ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    let inner = text.char_indices().rev().filter(|(_, c)| !c.is_ascii_alphanumeric()).map(|(at, _)| at);
    std::iter::once(text.len()).chain(inner)
}

/// A word in capitals may follow an account number, so it is also checked without its last groups.
fn iban_length(before: &str, whole: &str, text: &str) -> Option<usize> {
    group_ends(whole).find(|end| {
        let part = &whole[..*end];
        let letters = part.bytes().filter(u8::is_ascii_alphanumeric).count();
        (15..=34).contains(&letters)
            && !before.ends_with(is_word_character)
            && !text[*end..].starts_with(is_word_character)
            && iban_checksum(part) == 1
    })
}

/// The number modulo 97, with its first four characters moved to the end and letters counted from 10.
fn iban_checksum(account: &str) -> u32 {
    let plain: Vec<u32> = account.chars().filter_map(|c| c.to_digit(36)).collect();
    let (head, tail) = plain.split_at(plain.len().min(4));
    tail.iter().chain(head).fold(0, |sum, digit| (sum * if *digit > 9 { 100 } else { 10 } + digit) % 97)
}

fn card_length(before: &str, found: &str, text: &str) -> Option<usize> {
    let number: String = digits(found).filter_map(|digit| char::from_digit(digit, 10)).collect();
    // After a plus it is a telephone number.
    let is_alone = !before.ends_with('+') && is_separate(before, &text[found.len()..]);
    (is_alone && is_issued(&number) && has_valid_luhn_digit(&number)).then_some(found.len())
}

/// Whether an issuer of cards uses such numbers. Times in milliseconds and longer begin with 1, which no
/// issuer uses.
fn is_issued(number: &str) -> bool {
    let prefix = |length: usize| number.get(..length).and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    match number.len() {
        13 => prefix(1) == 4,
        14 => matches!(prefix(2), 30 | 36 | 38 | 39),
        15 => matches!(prefix(2), 34 | 37),
        16 => {
            matches!(prefix(1), 4 | 6)
                || matches!(prefix(2), 35 | 51..=55)
                || matches!(prefix(4), 2200..=2204 | 2221..=2720)
        }
        17 | 18 => matches!(prefix(2), 62 | 64 | 65),
        19 => prefix(1) == 4 || matches!(prefix(2), 62 | 64 | 65),
        _ => false,
    }
}

fn has_valid_luhn_digit(number: &str) -> bool {
    let sum: u32 = digits(number)
        .rev()
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit) {
            (0, digit) => digit,
            (_, digit) => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Numbers may follow a telephone number, so a match is also checked without its last groups.
fn phone_length(before: &str, whole: &str, text: &str) -> Option<usize> {
    group_ends(whole).find(|end| {
        let part = &whole[..*end];
        PHONE_DIGITS.contains(&digits(part).count())
            && part.ends_with(|c: char| c.is_ascii_digit())
            && is_separate(before, &text[*end..])
    })
}
