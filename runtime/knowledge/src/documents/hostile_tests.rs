//! Hostile documents end quickly, and properties of all documents.

use super::{
    DocumentKind, MAX_DOCUMENT_BYTES, MAX_JSON_VALUES, MAX_PASSAGES, ReadDocument, WHOLE_CHARS, clean,
    count_chars, read_markdown, read_pages, read_text,
};
use proptest::prelude::*;
use redflow_contract::code::ArchiveCode;
use redflow_ports::ArchiveError;
use std::time::{Duration, Instant};

const KINDS: [DocumentKind; 5] = [
    DocumentKind::Markdown,
    DocumentKind::Text,
    DocumentKind::Csv,
    DocumentKind::Json,
    DocumentKind::JsonLines,
];

/// Quadratic work on such a document takes hours; linear work takes seconds, also without optimisation.
const QUICK: Duration = Duration::from_secs(20);

fn check(document: &ReadDocument) {
    assert!(!document.title.trim().is_empty());
    assert!(!document.passages.is_empty() && document.passages.len() <= MAX_PASSAGES);
    for passage in &document.passages {
        assert!(!passage.text.trim().is_empty());
        assert!(count_chars(&passage.text) <= WHOLE_CHARS, "{}", count_chars(&passage.text));
        assert!(passage.headings.len() <= 6);
        assert!(passage.headings.iter().all(|heading| count_chars(heading) <= 200 && !heading.is_empty()));
    }
}

/// Reads a document, which must not take long.
fn check_quick(text: &str, read: impl FnOnce() -> Result<ReadDocument, ArchiveError>) {
    let begin = Instant::now();
    check_result(read());
    let start: String = text.chars().take(40).collect();
    assert!(begin.elapsed() < QUICK, "{:?} for {start:?}", begin.elapsed());
}

fn check_result(result: Result<ReadDocument, ArchiveError>) {
    match result {
        Ok(document) => check(&document),
        Err(error) => {
            assert!(matches!(error.code, ArchiveCode::DocumentUnreadable | ArchiveCode::DocumentTooLarge));
        }
    }
}

/// Repeats a text until it is long enough to show quadratic work.
fn fill(text: &str) -> String {
    text.repeat((1 << 17) / text.len())
}

#[test]
fn text_of_any_form_is_read_in_linear_time() {
    for text in [
        "a",
        "a ",
        "a. ",
        "a.\n",
        "a\n\n",
        "ä",
        "e\u{301}",
        "\u{301}",
        "👧\u{200d}",
        ".",
        "。",
        "\n",
        " ",
        "\n- a",
        "\n ",
        "\t \n  -",
        "1. ",
        "a                                                      ",
        "\r",
        "\r\n",
        "\u{202e}",
        "\u{b}a",
    ] {
        check_quick(text, || read_text(DocumentKind::Text, "a.txt", fill(text).as_bytes()));
    }
}

#[test]
fn markdown_of_any_form_is_read_in_linear_time() {
    for text in [
        "#",
        "# ",
        "#\n",
        "# a\n",
        "###### a\n\n",
        "```\n",
        "```a\n",
        "~~~\n```\n",
        "`",
        "~",
        "a\n=\n",
        "a\n-\n",
        "=\n",
        "-",
        "---\n",
        "|",
        "|-\n",
        "a|b\n-|-\n",
        "|a|\n\n",
        "[",
        "](",
        "# [a](b)",
        "> ",
        "- ",
        "---\ntitle: a\n",
        "title: a\n",
        "    ",
        "#   ",
    ] {
        check_quick(text, || read_markdown("a.md", &fill(text)));
        check_quick(text, || read_markdown("a.md", &format!("---\n{}", text.repeat(5_000))));
        check_quick(text, || read_markdown("a.md", &format!("# {}", text.repeat(5_000))));
    }
}

#[test]
fn many_headings_fences_and_one_long_line_are_read() {
    for text in ["#".repeat(1 << 18), "# a\n".repeat(1 << 18), "```x\n".repeat(1 << 18), "a".repeat(1 << 20)]
    {
        check(&read_markdown("a.md", &text).unwrap());
    }
    let too_long = read_text(DocumentKind::Text, "a.txt", &vec![b'a'; MAX_DOCUMENT_BYTES]).unwrap_err();
    assert_eq!(too_long.code, ArchiveCode::DocumentTooLarge, "it has more than 20000 passages");
}

#[test]
fn rows_of_any_form_are_read_in_linear_time() {
    let wide = format!("{}\n", "column,".repeat(20_000));
    for (header, text) in [
        ("", "a"),
        ("", ","),
        ("", ";"),
        ("", "\n"),
        ("", "\""),
        ("", "a,"),
        ("", "a\n"),
        ("a,b\n", "\"a\"\"b"),
        ("a\n", "b\n"),
        ("a\n", ",\n"),
        ("a\n", ",a"),
        (wide.as_str(), "a\n"),
        (wide.as_str(), "a,"),
        ("a\n\"", "b"),
    ] {
        let text = format!("{header}{}", fill(text));
        check_quick(&text, || read_text(DocumentKind::Csv, "a.csv", text.as_bytes()));
    }
    let name = "n".repeat(1 << 18);
    let amplified = format!("{name}\n{}", "a\n".repeat(1 << 18));
    check_quick(&amplified, || read_text(DocumentKind::Csv, "a.csv", amplified.as_bytes()));
}

#[test]
fn json_of_any_form_is_read_in_linear_time() {
    let nest = |levels: usize, inner: &str| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
    let many = |count: usize, item: &str| format!("[{}0]", format!("{item},").repeat(count));
    let half_mib = format!("\"{}\"", "x ".repeat(1 << 17));
    for text in [
        nest(64, &format!("\"{}\"", "a".repeat(1 << 20))),
        nest(64, &format!("\"{}\"", "\\n".repeat(1 << 19))),
        nest(500_000, ""),
        fill("["),
        fill("\""),
        fill("{\"a\":"),
        many(100_000, "1"),
        many(500, &nest(60, &format!("\"{}\"", "b".repeat(1_300)))),
        many(500, &nest(60, "1,2,3,4,5,6,7,8")),
        format!("{{\"{}\":[{half_mib},{half_mib}]}}", "key/~".repeat(1 << 20)),
    ] {
        check_quick(&text, || read_text(DocumentKind::Json, "a.json", text.as_bytes()));
        check_quick(&text, || read_text(DocumentKind::JsonLines, "a.jsonl", text.as_bytes()));
    }
    check_quick("1", || read_text(DocumentKind::JsonLines, "a.jsonl", fill("1\n").as_bytes()));
    check_quick("\n", || read_text(DocumentKind::JsonLines, "a.jsonl", fill("\n").as_bytes()));
}

#[test]
fn json_has_at_most_a_million_values() {
    let list = |values: usize| format!("[{}0]", "0,".repeat(values - 1));
    let error = read_text(DocumentKind::Json, "a.json", list(MAX_JSON_VALUES + 1).as_bytes()).unwrap_err();
    assert_eq!(error.code, ArchiveCode::DocumentTooLarge);
    assert_eq!(error.message, "The document `a.json` has more than 1000000 JSON values: divide it.");
    check(&read_text(DocumentKind::Json, "a.json", list(MAX_JSON_VALUES).as_bytes()).unwrap());
}

/// Text with all that matters to a reader, in short.
fn lively_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-zäß]{1,12}",
        3 => Just(" ".to_owned()),
        2 => Just("\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => Just(". ".to_owned()),
        1 => "[#`~|=>*_,;\"\\[\\]{}:-]{1,4}",
        1 => "\n#{1,7} ?[a-z]{0,5}\n",
        1 => Just("\n```\n".to_owned()),
        1 => Just("\n|a|b|\n|-|-|\n".to_owned()),
        1 => Just("。e\u{301}👩\u{200d}👧\u{202e}\u{feff}\r".to_owned()),
        1 => (1_usize..3_000, prop_oneof![Just("x"), Just(" "), Just("\n"), Just("w "), Just("w. "), Just("|\n"), Just("#")])
            .prop_map(|(count, text)| text.repeat(count)),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for kind in KINDS {
            check_result(read_text(kind, "a", &bytes));
        }
    }

    #[test]
    fn any_text_is_read_or_refused_always_in_the_same_way(text in lively_text(), name in ".{0,20}") {
        for kind in KINDS {
            let result = read_text(kind, &name, text.as_bytes());
            prop_assert_eq!(&result, &read_text(kind, &name, text.as_bytes()));
            check_result(result);
        }
        check_result(read_pages(&name, Some(&name), &[text.clone(), String::new(), text]));
    }

    #[test]
    fn plain_text_keeps_its_words_and_their_order(text in lively_text()) {
        let Ok(document) = read_text(DocumentKind::Text, "a.txt", text.as_bytes()) else { return Ok(()) };
        let text = clean::clean(&text);
        // Each passage is a part of the text, and begins after the one before.
        let mut from = 0;
        for passage in &document.passages {
            let Some(at) = text[from..].find(&passage.text) else {
                return Err(TestCaseError::fail(format!("not from {from} on: {}", passage.text)));
            };
            from += at + passage.text.chars().next().map_or(1, char::len_utf8);
        }
        // A sentence may end without a space.
        let words = |text: &'_ str| text.split(|c: char| c.is_whitespace() || c == '。').map(str::to_owned).collect::<Vec<_>>();
        let known: std::collections::HashSet<String> =
            document.passages.iter().flat_map(|passage| words(&passage.text)).collect();
        for word in words(&text).iter().filter(|word| !word.is_empty() && count_chars(word) <= 1_200) {
            prop_assert!(known.contains(word), "{}", word);
        }
    }

    #[test]
    fn markdown_loses_no_word(text in "([a-z]{1,9}[ \n.#`|-]{1,3}|\n#{1,6} [a-z]{1,9}\n|\n```\n){0,400}") {
        let Ok(document) = read_markdown("a.md", &text) else { return Ok(()) };
        let known: std::collections::HashSet<&str> =
            document.passages.iter().flat_map(|passage| passage.text.split_whitespace()).collect();
        for word in text.split_whitespace().filter(|word| word.contains(char::is_alphabetic)) {
            prop_assert!(known.contains(word), "{}", word);
        }
    }

    #[test]
    fn no_passage_of_markdown_is_a_heading_alone_before_a_body(
        bodies in prop::collection::vec(("[a-z]{1,9}", 1_usize..2_600, prop::bool::ANY), 1..12),
    ) {
        let text: String = bodies
            .iter()
            .map(|(word, count, has_spaces)| {
                let space = if *has_spaces { " " } else { "" };
                format!("# The {word}\n\n{}\n\n", format!("{word}{space}").repeat(count / word.len() + 1))
            })
            .collect();
        let document = read_markdown("a.md", &text).unwrap();
        for passage in &document.passages {
            prop_assert!(!passage.text.starts_with("# ") || passage.text.contains("\n\n"), "{}", passage.text);
        }
    }
}
