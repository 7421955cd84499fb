use super::{MAX_TOKENS, Tokenizer, VOCABULARY, normal_form, words};
use pretty_assertions::assert_eq;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

/// A vocabulary of our own. The numbers are the places in this list.
const TOKENS: [&str; 22] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "##ord", "hello", "world", "!", "a", "##a",
    "b", "naive", "東", "京", "don", "'", "t", "##", "cafe",
];

fn tokenizer() -> Tokenizer {
    Tokenizer::from_list(&TOKENS.join("\n")).unwrap()
}

/// The tokens of a text, without the first and the last one.
fn tokens(text: &str) -> Vec<&'static str> {
    let tokens = tokenizer().tokens(text);
    let names: Vec<&str> = tokens.iter().map(|id| TOKENS[*id as usize]).collect();
    assert_eq!((names[0], names[names.len() - 1]), ("[CLS]", "[SEP]"));
    names[1..names.len() - 1].to_vec()
}

#[test]
fn words_are_split_into_the_longest_known_parts() {
    for (text, expected) in [
        ("Hello, WORLD!", &["hello", "[UNK]", "world", "!"][..]),
        ("unaffordable", &["un", "##aff", "##ord", "##able"]),
        ("unaffordably", &["[UNK]"]),
        ("aaa ab", &["a", "##a", "##a", "[UNK]"]),
        ("naïve nai\u{308}ve CAFÉ", &["naive", "naive", "cafe"]),
        ("東京a", &["東", "京", "a"]),
        ("don't", &["don", "'", "t"]),
        ("a\u{200b}\u{0}a\u{fffd}\ta", &["a", "##a", "a"]),
        ("[CLS] [sep]", &["[UNK]", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "[UNK]"]),
        ("##", &["[UNK]", "[UNK]"]),
        ("", &[]),
        (" \n\u{a0}\u{3000}", &[]),
    ] {
        assert_eq!(tokens(text), expected, "{text:?}");
    }
    assert_eq!(tokens(&"a".repeat(100)).len(), 100);
    assert_eq!(tokens(&"a".repeat(101)), ["[UNK]"]);
    assert_eq!(tokenizer().tokens(&"a ".repeat(1_000)).len(), MAX_TOKENS);
    assert_eq!(tokenizer().tokens(&"aaaaaaaa ".repeat(100)).len(), MAX_TOKENS);
}

#[test]
fn texts_have_a_normal_form_as_in_bert() {
    for (text, expected) in [
        ("Crème brûlée, Ærøskøbing", "creme brulee, ærøskøbing"),
        ("Łódź STRASSE straße", "łodz strasse straße"),
        ("İstanbul", "istanbul"),
        ("Йод Ёлка", "иод елка"),
        ("Tiếng Việt", "tieng viet"),
        ("ΑΣ ά", "ασ α"),
        ("हिन्दी", "हिनदी"),
    ] {
        assert_eq!(normal_form(text), expected);
    }
    let all: Vec<&str> = words("a—b “c” foo_bar@x.com  3.14%").collect();
    assert_eq!(
        all,
        ["a", "—", "b", "“", "c", "”", "foo", "_", "bar", "@", "x", ".", "com", "3", ".", "14", "%"]
    );
}

#[test]
fn a_vocabulary_of_another_model_is_refused() {
    let json = r###"{"version":"1.0","model":{"type":"WordPiece","vocab":{"[CLS]":0,"[SEP]":1,"[UNK]":2,"a":3,"##a":4}}}"###;
    assert_eq!(Tokenizer::from_json(json).unwrap().tokens("aa b"), [0, 3, 4, 2, 1]);
    let many: String = (0..=VOCABULARY).map(|number| format!("{number}\n")).collect();
    for list in ["", "[CLS]\n[SEP]\n", &format!("[CLS]\n[SEP]\n[UNK]\n{many}")] {
        assert!(Tokenizer::from_list(list).is_err());
    }
    for json in [
        "",
        "[]",
        "{}",
        r#"{"model":{"vocab":{"[CLS]":0}}}"#,
        &json.replace(":4", ":-4"),
        &json.replace(":4", ":40000"),
    ] {
        assert!(Tokenizer::from_json(json).is_err(), "{json}");
    }
}

proptest! {
    #[test]
    fn every_text_has_tokens(text in "\\PC{0,300}") {
        let tokens = tokenizer().tokens(&text);
        prop_assert!((2..=MAX_TOKENS).contains(&tokens.len()));
        prop_assert!(tokens[1..tokens.len() - 1].iter().all(|id| *id != 2 && *id != 3));
        prop_assert_eq!(normal_form(&text).matches(char::is_control).count(), 0);
    }
}
