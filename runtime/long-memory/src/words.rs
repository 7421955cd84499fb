//! Words of texts: whether two texts say the same, and whether one stands in the other.

use std::collections::BTreeSet;

/// Words that say little in English, German and Spanish. Words that negate are not among them.
const SMALL_WORDS: &[&str] = &[
    "a",
    "an",
    "and",
    "are",
    "as",
    "at",
    "be",
    "been",
    "but",
    "by",
    "do",
    "does",
    "for",
    "from",
    "had",
    "has",
    "have",
    "he",
    "her",
    "his",
    "i",
    "im",
    "in",
    "is",
    "it",
    "its",
    "m",
    "me",
    "my",
    "of",
    "on",
    "or",
    "our",
    "re",
    "s",
    "she",
    "so",
    "that",
    "the",
    "their",
    "they",
    "this",
    "to",
    "too",
    "us",
    "was",
    "we",
    "were",
    "will",
    "with",
    "you",
    "your",
    "user",
    "users",
    "assistant",
    "really",
    "very",
    "also",
    "just",
    "please",
    "well",
    "now",
    "then",
    "aber",
    "auch",
    "auf",
    "aus",
    "bei",
    "bin",
    "das",
    "dass",
    "dem",
    "den",
    "der",
    "des",
    "die",
    "ein",
    "eine",
    "einen",
    "einer",
    "er",
    "es",
    "für",
    "hat",
    "habe",
    "ich",
    "im",
    "ist",
    "mein",
    "meine",
    "mich",
    "mir",
    "mit",
    "nutzer",
    "sehr",
    "sein",
    "sich",
    "sie",
    "sind",
    "und",
    "vom",
    "von",
    "war",
    "was",
    "wir",
    "zu",
    "zum",
    "al",
    "como",
    "con",
    "de",
    "del",
    "el",
    "ella",
    "en",
    "era",
    "está",
    "estoy",
    "ha",
    "he",
    "la",
    "las",
    "los",
    "lo",
    "mi",
    "mis",
    "me",
    "muy",
    "o",
    "para",
    "por",
    "que",
    "se",
    "ser",
    "soy",
    "su",
    "sus",
    "también",
    "un",
    "una",
    "usuario",
    "y",
    "yo",
];

/// Words that negate.
const NEGATIONS: &[&str] = &[
    "not", "no", "never", "none", "without", "cannot", "t", "dont", "doesnt", "isnt", "wont", "cant",
    "nicht", "kein", "keine", "keinen", "keiner", "nie", "niemals", "ohne", "nunca", "jamás", "sin",
    "ningún", "ninguna", "tampoco",
];

/// Words of courtesy in English, German and Spanish. A text of them says nothing that is worth remembering.
const COURTESIES: &[&str] = &[
    "all",
    "bye",
    "cool",
    "done",
    "fine",
    "good",
    "great",
    "hello",
    "hi",
    "morning",
    "nice",
    "noted",
    "ok",
    "okay",
    "perfect",
    "right",
    "sure",
    "thank",
    "thanks",
    "welcome",
    "yes",
    "alles",
    "bitte",
    "danke",
    "erledigt",
    "gern",
    "gerne",
    "gut",
    "hallo",
    "ja",
    "klar",
    "morgen",
    "notiert",
    "prima",
    "tag",
    "verstanden",
    "anotado",
    "bien",
    "bueno",
    "buenos",
    "claro",
    "días",
    "entendido",
    "gracias",
    "hecho",
    "hola",
    "nada",
    "perfecto",
    "sí",
    "vale",
];

/// Two words with this many first letters in common count as forms of one word.
const STEM: usize = 4;

/// The words of a text, in small letters.
pub(crate) fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The words that say something.
pub(crate) fn content_words(text: &str) -> BTreeSet<String> {
    words(text).into_iter().filter(|word| !SMALL_WORDS.contains(&word.as_str())).collect()
}

/// How many words of a text say something, apart from courtesies.
pub(crate) fn weight(text: &str) -> usize {
    content_words(text).iter().filter(|word| !COURTESIES.contains(&word.as_str())).count()
}

/// The numbers of a text, and whether it negates. Texts that differ in them do not say the same.
pub(crate) fn details(text: &str) -> (BTreeSet<String>, bool) {
    let words = words(text);
    let negates = words.iter().any(|word| NEGATIONS.contains(&word.as_str()));
    (words.into_iter().filter(|word| word.chars().any(|c| c.is_ascii_digit())).collect(), negates)
}

/// Whether two texts have the same words, in any order.
pub(crate) fn has_same_words(one: &str, other: &str) -> bool {
    let words = content_words(one);
    !words.is_empty() && words == content_words(other)
}

/// Whether the words that two texts share stand in the same order in both. `Bob reports to Ada` is not `Ada reports to
/// Bob`.
pub(crate) fn has_same_order(one: &str, other: &str) -> bool {
    let (shared_one, shared_other) = (content_words(one), content_words(other));
    let in_order = |text: &str| -> Vec<String> {
        let is_shared = |word: &String| shared_one.contains(word) && shared_other.contains(word);
        words(text).into_iter().filter(is_shared).collect()
    };
    in_order(one) == in_order(other)
}

/// The part of the first text's words that the other text has too, from 0 to 1.
pub(crate) fn shared(text: &str, other: &str) -> f64 {
    let (words, others) = (content_words(text), content_words(other));
    if words.is_empty() {
        return 0.0;
    }
    let is_known = |word: &&String| others.iter().any(|other| is_same_word(word, other));
    words.iter().filter(is_known).count() as f64 / words.len() as f64
}

fn is_same_word(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let has_digit = |word: &str| word.chars().any(|c| c.is_ascii_digit());
    let stem = |word: &str| word.chars().take(STEM).collect::<Vec<char>>();
    let (first, second) = (stem(one), stem(other));
    !has_digit(one) && !has_digit(other) && first.len() == STEM && first == second
}

/// A text in small letters with single spaces, to look for it in another one.
pub(crate) fn normalised(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ").to_lowercase()
}

/// A text with single spaces. Its letters stay as they are.
pub(crate) fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{details, has_same_order, has_same_words, shared, weight};

    #[test]
    fn order_and_small_words_do_not_matter() {
        assert!(has_same_words("My favourite editor is Helix.", "Helix is really my favourite editor"));
        assert!(!has_same_words("I like tea", "I do not like tea"));
        assert!(!has_same_words("the", "a"));
        assert!(has_same_order("Bob reports to Ada", "Bob now also reports to Ada"));
        assert!(!has_same_order("Bob reports to Ada", "Ada reports to Bob"));
        assert_eq!((weight("All right, thanks!"), weight("I live in Berlin")), (0, 2));
    }

    #[test]
    fn forms_of_a_word_are_shared_and_numbers_are_not() {
        assert!(shared("The user lives in Berlin", "I live in Berlin") > 0.99);
        assert!(shared("Order 4711", "Order 4712") < 0.6);
        assert!(shared("The password is hunter2", "I live in Berlin") < 0.1);
        assert_eq!(details("no 12 of 3b"), (["12".to_owned(), "3b".to_owned()].into(), true));
    }
}
