//! What tells who somebody is: e-mail addresses, telephone and card numbers, bank accounts.

use super::compile;
use super::cuts::Cuts;
use regex::Regex;
use std::borrow::Cow;

const IBAN: &str = r"(?-u)[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?";

const CARD: &str = concat!(
    r"(?-u)[0-9]{4}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{1,4}(?:[ -][0-9]{3})?",
    r"|[0-9]{4}[ -][0-9]{6}[ -][0-9]{4,5}",
    r"|[0-9]{13,19}",
);

/// International; with the area code in brackets; 3-3-4; five pairs; an area code that begins with 0.
const PHONE: &str = concat!(
    r"(?-u)\+[0-9(][0-9 ()./-]{6,24}[0-9]",
    r"|\(0?[0-9]{2,5}\)[ -]?[0-9]{3,8}(?:[ -][0-9]{2,8}){0,3}",
    r"|[0-9]{3}-[0-9]{3}-[0-9]{4}|[0-9]{3}\.[0-9]{3}\.[0-9]{4}|[0-9]{3} [0-9]{3} [0-9]{4}",
    r"|0[0-9](?: [0-9]{2}){4}|0[0-9](?:\.[0-9]{2}){4}|0[0-9](?:-[0-9]{2}){4}",
    r"|0[0-9]{2,4}[ /-][0-9]{3,8}(?:[ -][0-9]{2,8}){0,3}",
);

/// Digits of a telephone number.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 9..=15;

/// Finds them.
pub(super) struct Personal {
    iban: Regex,
    card: Regex,
    phone: Regex,
}

impl Personal {
    pub(super) fn new() -> Result<Self, String> {
        Ok(Self { iban: compile(IBAN)?, card: compile(CARD)?, phone: compile(PHONE)? })
    }

    pub(super) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut out = emails(text);
        for (pattern, mark, length) in [
            (&self.iban, "[iban]", iban as Judge),
            (&self.card, "[card]", card),
            (&self.phone, "[phone]", phone),
        ] {
            if let Cow::Owned(changed) = replace(&out, pattern, mark, length) {
                out = Cow::Owned(changed);
            }
        }
        out
    }
}

/// Of a match, with the text before it and the text it begins: how much of it is meant.
type Judge = fn(&str, &str, &str) -> Option<usize>;

/// Puts the mark in the place of each match that `judge` confirms.
/// A match is short, so that to look again behind its first character costs little.
fn replace<'a>(text: &'a str, pattern: &Regex, mark: &str, judge: Judge) -> Cow<'a, str> {
    let (mut cuts, mut cut, mut from) = (Cuts::new(text), 0, 0);
    while let Some(found) = pattern.find_at(text, from) {
        // What was replaced joins nothing to what follows it.
        match judge(&text[cut..found.start()], found.as_str(), &text[found.start()..]) {
            Some(length) => {
                cut = found.start() + length;
                cuts.put(found.start(), cut, mark);
                from = cut;
            }
            // Every match begins with an ASCII character. The rest of a longer word is no number of its own.
            None => from = found.start() + word_length(&text[found.start()..]),
        }
    }
    cuts.done()
}

/// Addresses with a name, an `@` and a host that ends in a dot and letters.
fn emails(text: &str) -> Cow<'_, str> {
    let (mut cuts, mut from) = (Cuts::new(text), 0);
    let length = |chars: &mut dyn Iterator<Item = char>, extra: &str| -> usize {
        chars.take_while(|c| c.is_alphanumeric() || extra.contains(*c)).map(char::len_utf8).sum()
    };
    while let Some(at) = text[from..].find('@').map(|found| from + found) {
        let local = length(&mut text[from..at].chars().rev(), "._%+-");
        let host = &text[at + 1..][..length(&mut text[at + 1..].chars(), ".-")];
        // What follows the last dot with letters behind it is no part of the address.
        let end = host.char_indices().rev().filter(|(_, c)| *c == '.').find_map(|(dot, _)| {
            let letters = host[dot + 1..].chars().take_while(|c| c.is_alphabetic());
            let (count, bytes) = letters.fold((0, 0), |(count, bytes), c| (count + 1, bytes + c.len_utf8()));
            (dot > 0 && count >= 2).then_some(dot + 1 + bytes)
        });
        from = at + 1;
        if let Some(end) = end.filter(|_| local > 0) {
            from = at + 1 + end;
            cuts.put(at - local, from, "[email]");
        }
    }
    cuts.done()
}

/// The letters and digits a text begins with, at least its first character.
fn word_length(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_alphanumeric).count().max(1)
}

/// What makes two texts one word.
fn joins(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a number between these is not part of a longer word, number, date or id.
fn stands_alone(before: &str, after: &str) -> bool {
    let free = |[first, second]: [Option<char>; 2]| match first {
        None => true,
        Some(c) if joins(c) => false,
        Some(':') => !second.is_some_and(|c| c.is_ascii_digit()),
        Some('-' | '.' | '/') => !second.is_some_and(joins),
        Some(_) => true,
    };
    let (mut left, mut right) = (before.chars().rev(), after.chars());
    free([left.next(), left.next()]) && free([right.next(), right.next()])
}

fn digits(text: &str) -> impl DoubleEndedIterator<Item = u32> + '_ {
    text.chars().filter_map(|c| c.to_digit(10))
}

/// The ends of the groups of a match, the longest part first.
fn group_ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    let inner = text.char_indices().rev().filter(|(_, c)| !c.is_ascii_alphanumeric()).map(|(at, _)| at);
    std::iter::once(text.len()).chain(inner)
}

/// A word of capitals may follow an account number: it is tried without its last groups too.
fn iban(before: &str, whole: &str, text: &str) -> Option<usize> {
    group_ends(whole).find(|end| {
        let part = &whole[..*end];
        let letters = part.bytes().filter(u8::is_ascii_alphanumeric).count();
        (15..=34).contains(&letters)
            && !before.ends_with(joins)
            && !text[*end..].starts_with(joins)
            && checksum(part) == 1
    })
}

/// The number modulo 97, its first four characters moved to the end and letters counted from 10.
fn checksum(account: &str) -> u32 {
    let plain: Vec<u32> = account.chars().filter_map(|c| c.to_digit(36)).collect();
    let (head, tail) = plain.split_at(plain.len().min(4));
    tail.iter().chain(head).fold(0, |sum, digit| (sum * if *digit > 9 { 100 } else { 10 } + digit) % 97)
}

fn card(before: &str, found: &str, text: &str) -> Option<usize> {
    let number: String = digits(found).filter_map(|digit| char::from_digit(digit, 10)).collect();
    // Behind a plus it is a telephone number.
    let alone = !before.ends_with('+') && stands_alone(before, &text[found.len()..]);
    (alone && is_issued(&number) && luhn(&number)).then_some(found.len())
}

/// Whether somebody issues cards with such numbers. Times in milliseconds and longer begin with 1: nobody does.
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

fn luhn(number: &str) -> bool {
    let sum: u32 = digits(number)
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit) {
            (0, digit) => digit,
            (_, digit) => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Numbers may follow a telephone number: what has too many digits is tried without its last groups too.
fn phone(before: &str, whole: &str, text: &str) -> Option<usize> {
    group_ends(whole).find(|end| {
        let part = &whole[..*end];
        PHONE_DIGITS.contains(&digits(part).count())
            && part.ends_with(|c: char| c.is_ascii_digit())
            && stands_alone(before, &text[*end..])
    })
}
