//! Each kind of document, each limit, each refusal.

use super::{
    DocumentKind, HEADING_CHARS, MAX_DOCUMENT_BYTES, MAX_PASSAGES, PASSAGE_CHARS, Passage, Place,
    ReadDocument, WHOLE_CHARS, count_chars, read_markdown, read_pages, read_text,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::ArchiveCode::{self, DocumentTooLarge, DocumentUnreadable};

fn markdown(text: &str) -> ReadDocument {
    read_markdown("notes/guide.md", text).unwrap()
}

fn read(kind: DocumentKind, name: &str, text: &str) -> ReadDocument {
    read_text(kind, name, text.as_bytes()).unwrap()
}

fn refusal(kind: DocumentKind, name: &str, bytes: &[u8]) -> (ArchiveCode, String) {
    let error = read_text(kind, name, bytes).unwrap_err();
    (error.code, error.message)
}

fn texts(document: &ReadDocument) -> Vec<&str> {
    document.passages.iter().map(|passage| passage.text.as_str()).collect()
}

fn places(document: &ReadDocument) -> Vec<Place> {
    document.passages.iter().map(|passage| passage.place.clone()).collect()
}

fn pointer(text: &str) -> Place {
    Place::Pointer(text.to_owned())
}

fn sentences(from: usize, to: usize) -> String {
    (from..to).map(|number| format!("This is sentence number {number}.")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_kind_comes_from_the_name_or_the_content_type() {
    use DocumentKind::{Csv, Html, Json, JsonLines, Markdown, Pdf, Text};
    for (name, kind) in [
        ("a.md", Some(Markdown)),
        ("folder.d/A.MARKDOWN", Some(Markdown)),
        ("a.txt", Some(Text)),
        ("a.text", Some(Text)),
        ("a.b.Log", Some(Text)),
        ("a.rst", Some(Text)),
        ("a.csv", Some(Csv)),
        ("a.tsv", Some(Csv)),
        ("a.json", Some(Json)),
        ("a.jsonl", Some(JsonLines)),
        ("a.ndjson", Some(JsonLines)),
        ("a.html", Some(Html)),
        ("a.HTM", Some(Html)),
        ("a.pdf", Some(Pdf)),
        (".md", Some(Markdown)),
        ("a.docx", None),
        ("a.md/b", None),
        ("md", None),
        ("", None),
        ("a.", None),
    ] {
        assert_eq!(DocumentKind::of_name(name), kind, "{name}");
    }
    for (text, kind) in [
        ("text/markdown", Some(Markdown)),
        ("text/plain; charset=utf-8", Some(Text)),
        (" Text/CSV ;header=present", Some(Csv)),
        ("application/json", Some(Json)),
        ("application/x-ndjson", Some(JsonLines)),
        ("application/jsonl", Some(JsonLines)),
        ("text/html;charset=utf-8", Some(Html)),
        ("application/pdf", Some(Pdf)),
        ("application/octet-stream", None),
        ("", None),
    ] {
        assert_eq!(DocumentKind::of_content_type(text), kind, "{text}");
    }
}

#[test]
fn text_is_decoded_and_cleaned() {
    let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(bytes).collect()
    };
    for (bytes, text) in [
        ("plain ä".into(), "plain ä"),
        ("\u{feff}with a mark".into(), "with a mark"),
        (utf16("ä😀", u16::to_le_bytes), "ä😀"),
        (utf16("ä😀", u16::to_be_bytes), "ä😀"),
        ("a\r\nb\rc\nd".into(), "a\nb\nc\nd"),
        ("a\u{1b}[31mb\u{7f}\u{85}\tc\u{7}".into(), "a[31mb\tc"),
        ("x\u{202e}y\u{2066}z\u{200e}\u{200f}\u{61c}\u{feff}!".into(), "xyz!"),
    ] {
        let bytes: Vec<u8> = bytes;
        let document = read_text(DocumentKind::Text, "a.txt", &bytes).unwrap();
        assert_eq!(texts(&document), [text]);
        assert_eq!(document.passages[0].place, Place::Whole);
    }
}

#[test]
fn what_is_not_text_is_refused_with_its_line() {
    for (kind, name, bytes, message) in [
        (
            DocumentKind::Text,
            "a.txt",
            &b"one\ntwo \xff"[..],
            "The document `a.txt` is not UTF-8 in line 2: save it as UTF-8 text.",
        ),
        (
            DocumentKind::Csv,
            "a.csv",
            b"a\n\nb\0",
            "The document `a.csv` has a NUL in line 3, so it is not text: save it as UTF-8 text.",
        ),
        (
            DocumentKind::Text,
            "a.txt",
            b"\xff\xfea",
            "The document `a.txt` begins as UTF-16 and is not: save it as UTF-8 text.",
        ),
        (
            DocumentKind::Json,
            "a.json",
            b"{\n\"secret\": 1,\n}",
            "The document `a.json` is not JSON in line 3: correct it there.",
        ),
        (
            DocumentKind::JsonLines,
            "a.jsonl",
            b"{}\n\n{\"a\": }\n",
            "The document `a.jsonl` is not JSON in line 3: correct it there.",
        ),
        (
            DocumentKind::Json,
            "a.json",
            b"{\"a\": 1, \"a\": 2, \"a\": 3}",
            "The document `a.json` has 2 repeated keys: give each key of an object once.",
        ),
        (
            DocumentKind::JsonLines,
            "a.jsonl",
            b"{}\n{\"a\": 1, \"a\": 2}",
            "The document `a.jsonl` has a repeated key in line 2: give each key of an object once.",
        ),
        (
            DocumentKind::Html,
            "a.html",
            b"<p>x</p>",
            "The document `a.html` is HTML: convert it to Markdown first.",
        ),
        (
            DocumentKind::Pdf,
            "a.pdf",
            b"%PDF-1.7",
            "The document `a.pdf` is a PDF: convert it to pages of text first.",
        ),
    ] {
        assert_eq!(refusal(kind, name, bytes), (DocumentUnreadable, message.to_owned()));
    }
}

#[test]
fn a_document_without_text_is_refused() {
    let no_text = "The document `a` has no text: there is nothing that a search can find.";
    use DocumentKind::{Csv, Json, JsonLines, Markdown, Text};
    for kind in [Markdown, Text, Csv, Json, JsonLines] {
        for bytes in [&b""[..], b" \n\t\r\n ", b"\xef\xbb\xbf", b"\xff\xfe \0", "\u{a0}\n\u{3000}".as_bytes()]
        {
            assert_eq!(
                refusal(kind, "a", bytes),
                (DocumentUnreadable, no_text.to_owned()),
                "{kind:?} {bytes:?}"
            );
        }
    }
    for text in ["---\ntitle: x\n---\n", "---\n", "***\n\n___"] {
        assert_eq!(read_markdown("a", text).unwrap_err().message, no_text, "{text}");
    }
    for pages in [&[][..], &[String::new(), " \u{202e}\n".to_owned()]] {
        assert_eq!(read_pages("a", Some("title"), pages).unwrap_err().message, no_text);
    }
}

#[test]
fn an_error_names_the_start_of_a_long_name_on_one_line() {
    let name = format!("a\u{202e}\n{}.txt", "ä".repeat(500));
    let (_, message) = refusal(DocumentKind::Text, &name, b"");
    assert!(message.starts_with("The document `a ää"), "{message}");
    assert_eq!(message.matches('ä').count(), 77);
}

#[test]
fn the_title_is_a_heading_the_front_matter_or_the_name() {
    for (text, title) in [
        ("# The guide\ntext", "The guide"),
        ("text\n\n## Two\ntext\n# One #\ntext", "One"),
        ("The title\n===\ntext", "The title"),
        ("# [Get **started**](http://example.test/a) with `x`\ntext", "Get started with x"),
        ("# a[0] ![logo](l.png) b](c\n text", "a[0] logo b](c"),
        ("---\ntitle: \"From the front\"\ntags: [a]\n---\n# Other\ntext", "From the front"),
        ("---\r\ntitle: Plain \r\n...\r\ntext", "Plain"),
        ("---\ntags: a\n---\n# Heading\ntext", "Heading"),
        ("---\ntitle: ' '\n---\ntext", "guide"),
        ("---\ntitle: no end\n\ntext", "guide"),
        ("```\n# code\n```\n", "guide"),
        ("#no heading\n####### none\n    # code", "guide"),
    ] {
        assert_eq!(markdown(text).title, title, "{text}");
    }
    for (name, title) in [
        ("notes/2026/plan.v2.txt", "plan.v2"),
        ("C:\\notes\\plan.txt", "plan"),
        ("README", "README"),
        (".txt", ".txt"),
        ("https://example.test/docs/", "docs"),
        ("a  b\n.txt", "a b"),
        ("", "Untitled"),
        ("///", "Untitled"),
    ] {
        assert_eq!(read(DocumentKind::Text, name, "text").title, title, "{name}");
    }
    let long = read(DocumentKind::Text, &"ä".repeat(1_000), "text").title;
    assert_eq!(count_chars(&long), HEADING_CHARS);
}

#[test]
fn front_matter_is_no_passage() {
    assert_eq!(texts(&markdown("---\ntitle: A\n---\n\nbody")), ["body"]);
    assert_eq!(texts(&markdown("---\ntitle: A\n\nbody")), ["title: A\n\nbody"], "it has no end");
}

#[test]
fn markdown_is_divided_at_headings() {
    let text =
        "before\n\n# A\n\nin a\n\nmore of a\n\n## B\nin b\n\nC\n---\nin c\n\n#### D\nin d\n# E #\nin e";
    let passages: Vec<(String, Vec<String>)> =
        markdown(text).passages.into_iter().map(|passage| (passage.text, passage.headings)).collect();
    let expected: Vec<(&str, &[&str])> = vec![
        ("before", &[]),
        ("# A\n\nin a\n\nmore of a", &["A"]),
        ("## B\nin b", &["A", "B"]),
        ("C\n---\nin c", &["A", "C"]),
        ("#### D\nin d", &["A", "C", "D"]),
        ("# E #\nin e", &["E"]),
    ];
    let expected: Vec<(String, Vec<String>)> = expected
        .into_iter()
        .map(|(text, headings)| {
            (text.to_owned(), headings.iter().map(|&heading| heading.to_owned()).collect())
        })
        .collect();
    assert_eq!(passages, expected);
}

#[test]
fn a_heading_without_a_body_is_joined_to_what_follows() {
    for (text, expected) in [
        ("# A\n## B\n\nbody", &["# A\n## B\n\nbody"][..]),
        ("# A\nbody\n# B\n# C\nmore", &["# A\nbody", "# B\n# C\nmore"]),
        ("# A\nbody\n## B\n", &["# A\nbody", "## B"]),
        ("# A", &["# A"]),
    ] {
        assert_eq!(texts(&markdown(text)), expected, "{text}");
    }
    // A body that fills a passage alone, of each kind, still follows its heading.
    let paragraph = sentences(0, 50)[..1_195].to_owned();
    let code = format!("```\n{}\n```", "x = 1\n".repeat(398));
    let word = "x".repeat(1_199);
    for body in [&paragraph, &code, &word] {
        let document = markdown(&format!("# The heading\n\n{body}\n"));
        assert!(texts(&document)[0].starts_with("# The heading\n\n"));
        assert!(texts(&document).iter().all(|text| count_chars(text) > 15), "{:?}", texts(&document));
    }
}

#[test]
fn headings_in_fences_and_underlines_of_other_blocks_do_not_count() {
    for text in [
        "```\n# no\n```",
        "~~~ sh\n# no\n```\n# no\n~~~",
        "````\n```\n# no\n````",
        "  - item\n    ```\n# no\n    ```",
        "```\n# never closed",
        "- item\n---\ntext",
        "> quote\n---\ntext",
        "two\nlines\n---\ntext",
        "text\n\n---\n\nmore",
        "| a | b |\n|---|---|\n| # | 1 |",
        "#\n##\n# #",
    ] {
        assert!(markdown(text).passages.iter().all(|passage| passage.headings.is_empty()), "{text}");
    }
    let inline = markdown("``` a ``` b\n# A\ntext");
    assert_eq!(inline.passages.last().unwrap().headings, ["A"], "marks on one line are no fence");
}

#[test]
fn headings_are_bounded() {
    let text: String = (1..=6).map(|level| format!("{} {}\n", "#".repeat(level), "h".repeat(300))).collect();
    let document = markdown(&format!("{text}body"));
    let last = document.passages.last().unwrap();
    assert_eq!(
        last.headings.iter().map(|heading| count_chars(heading)).collect::<Vec<_>>(),
        [HEADING_CHARS; 6]
    );
    assert!(last.text.ends_with("body"));
}

#[test]
fn short_neighbours_are_joined_and_long_ones_overlap() {
    let paragraphs: Vec<String> = (0..9).map(|number| sentences(number * 10, number * 10 + 10)).collect();
    let document = read(DocumentKind::Text, "a.txt", &paragraphs.join("\n\n"));
    assert_eq!(document.passages.len(), 3);
    for pair in document.passages.windows(2) {
        let repeated = overlap(&pair[0], &pair[1]);
        assert!((75..=200).contains(&count_chars(repeated)), "{repeated}");
        assert!(repeated.starts_with("This is"), "{repeated}");
    }
    // Sections do not overlap.
    let sections: String = (0..3).map(|number| format!("# S{number}\n\n{}\n\n", sentences(0, 30))).collect();
    for pair in markdown(&sections).passages.windows(2) {
        assert_eq!(overlap(&pair[0], &pair[1]), "");
    }
}

/// The longest end of a passage that the next one begins with.
fn overlap<'p>(first: &'p Passage, second: &Passage) -> &'p str {
    let mut ends = first.text.char_indices().map(|(at, _)| &first.text[at..]);
    ends.find(|end| second.text.starts_with(end)).unwrap_or("")
}

#[test]
fn a_long_paragraph_is_cut_at_sentences_then_lines_then_words_then_letters() {
    let first = |text: &str| read(DocumentKind::Text, "a.txt", text).passages.swap_remove(0).text;
    assert!(first(&sentences(0, 100)).ends_with('.'));
    assert!(first(&"これは文です。".repeat(400)).ends_with('。'));
    let items: String = (0..200).map(|number| format!("- the item {number}\n")).collect();
    let cut = first(&items);
    assert!(items[cut.len()..].starts_with("\n- "), "{cut}");
    let lines: String = (0..200).map(|number| format!("{number} a line of a log\n")).collect();
    assert!(first(&lines).ends_with("a line of a log"));
    let words = "word ".repeat(1_000);
    assert!(first(&words).ends_with("word") && count_chars(&first(&words)) > PASSAGE_CHARS - 10);
    assert_eq!(count_chars(&first(&"ä".repeat(5_000))), PASSAGE_CHARS);
    // `e` and its accent stay together.
    let accents = format!("x{}", "e\u{301}".repeat(2_000));
    let document = read(DocumentKind::Text, "a.txt", &accents);
    assert!(texts(&document).iter().all(|text| text.ends_with('\u{301}') && !text.starts_with('\u{301}')));
    let family = "👩\u{200d}👩\u{200d}👧".repeat(500);
    let document = read(DocumentKind::Text, "a.txt", &format!("a{family}"));
    assert!(texts(&document).iter().all(|text| text.ends_with('👧')));
}

#[test]
fn letters_without_a_space_overlap() {
    let text: String = (0..1_000).map(|number| format!("{number:04}")).collect();
    let document = read(DocumentKind::Text, "a.txt", &text);
    let lengths: Vec<usize> = texts(&document).iter().map(|text| count_chars(text)).collect();
    assert_eq!(lengths, [1_200, 1_200, 1_200, 850]);
    for pair in document.passages.windows(2) {
        assert_eq!(count_chars(overlap(&pair[0], &pair[1])), 150);
    }
}

#[test]
fn code_and_tables_stay_whole() {
    let code = format!("```rust\n{}```", "let value = 1;\n".repeat(150));
    let table = format!("| name | value |\n|---|---|\n{}", "| a | b |\n".repeat(200));
    for block in [code.trim_end(), table.trim_end()] {
        let size = count_chars(block);
        assert!(size > PASSAGE_CHARS && size < WHOLE_CHARS);
        let document = markdown(&format!("before\n\n{block}\n\nafter"));
        assert_eq!(texts(&document), ["before", block, "after"]);
        let document = markdown(&format!("text\n\n# H\n\n{block}\n\nafter"));
        assert_eq!(texts(&document), ["text", &format!("# H\n\n{block}"), "after"]);
    }
    // Longer ones are cut at their lines.
    for (line, count) in [("| a | b |\n", 500), ("let value = 1;\n", 300)] {
        let block = line.repeat(count);
        let text = if line.starts_with('|') {
            format!("| name | value |\n|---|---|\n{block}")
        } else {
            format!("```\n{block}```")
        };
        let document = markdown(&text);
        assert!(document.passages.len() > 3);
        assert!(
            texts(&document).iter().all(|text| text.ends_with(['|', ';', '`'])),
            "{:?}",
            texts(&document)
        );
    }
    // A row stays whole as well.
    let row = format!("| {} | {} |", sentences(0, 25), sentences(0, 25));
    let document = markdown(&format!("|a|b|\n|-|-|\n{row}\n{row}\n| c | d |\n"));
    assert_eq!(texts(&document), ["|a|b|\n|-|-|", &row, &row, "| c | d |"]);
}

#[test]
fn a_table_may_follow_a_line_and_needs_no_outer_marks() {
    let rows = "a cell | another cell\n".repeat(60);
    let text = format!("A line before.\nname | value\n--- | ---\n{rows}\nafter");
    let document = markdown(&text);
    assert_eq!(texts(&document)[0], "A line before.");
    assert!(texts(&document)[1].starts_with("name | value\n--- | ---\na cell"));
    assert_eq!(document.passages.len(), 3);
}

#[test]
fn rows_are_lines_of_names_and_values() {
    for (name, text, expected) in [
        ("a.csv", "name,age\nAda,36\nBob,41\n", "name: Ada\nage: 36\n\nname: Bob\nage: 41"),
        ("a.csv", "name;age, years\r\nAda;36\r\n", "name;age: Ada;36"),
        ("a.csv", "name;age;city\nAda;36;\"a; b\"", "name: Ada\nage: 36\ncity: a; b"),
        ("a.tsv", "name\tage\nAda, L.\t36", "name: Ada, L.\nage: 36"),
        ("a.TSV", "\tage\n1\t36", "column 1: 1\nage: 36"),
        ("a.csv", "a,b\n1\n1,2,3,4\n", "a: 1\n\na: 1\nb: 2\ncolumn 3: 3\ncolumn 4: 4"),
        ("a.csv", "a,,\"c\nd\"\n1,2, 3 \n,,\n", "a: 1\ncolumn 2: 2\nc d: 3"),
        ("a.csv", "a,b\n\"x \"\"y\"\"\",\"one\ntwo\"", "a: x \"y\"\nb: one\ntwo"),
        ("a.csv", "\n\na,b\n\n1,2", "a: 1\nb: 2"),
        ("a.csv", "a,b\n\"never closed,2\n3", "a: never closed,2\n3"),
    ] {
        let document = read(DocumentKind::Csv, name, text);
        assert_eq!(texts(&document), [expected], "{text}");
        assert_eq!(places(&document), [Place::Row(1)], "{text}");
        assert_eq!(document.title, "a");
    }
}

#[test]
fn rows_are_joined_kept_whole_or_cut() {
    let long = sentences(0, 60);
    let text = format!(
        "id,text\n{}7,\"{}\"\n8,short\n9,\"{long}{long}\"\n10,x",
        "1,small\n".repeat(6),
        &sentences(0, 80)[..1_900]
    );
    let document = read(DocumentKind::Csv, "a.csv", &text);
    let rows: Vec<u64> = document
        .passages
        .iter()
        .map(|passage| if let Place::Row(row) = passage.place { row } else { 0 })
        .collect();
    assert_eq!(rows, [1, 7, 8, 9, 9, 9, 9, 10]);
    assert_eq!(count_chars(texts(&document)[1]), 1_900 + "id: 7\ntext: ".len());
    assert!(document.passages.iter().skip(2).all(|passage| count_chars(&passage.text) <= PASSAGE_CHARS));
    let many = format!("id,text\n{}", "1,a value\n".repeat(500));
    let document = read(DocumentKind::Csv, "a.csv", &many);
    assert_eq!(places(&document)[..2], [Place::Row(1), Place::Row(58)]);
    assert!(document.passages.iter().all(|passage| count_chars(&passage.text) <= PASSAGE_CHARS));
}

#[test]
fn a_csv_of_a_header_is_its_header() {
    for text in ["name,age", "name, age\n", "name,age\n,\n"] {
        let document = read(DocumentKind::Csv, "a.csv", text);
        assert_eq!(texts(&document), ["name, age"]);
        assert_eq!(places(&document), [Place::Whole]);
    }
    assert_eq!(refusal(DocumentKind::Csv, "a.csv", b",,\n,,").0, DocumentUnreadable);
}

#[test]
fn a_small_json_value_is_one_passage() {
    for (text, expected) in [
        (r#"{"b": 1, "a": [true, null]}"#, "{\n  \"b\": 1,\n  \"a\": [\n    true,\n    null\n  ]\n}"),
        ("\u{feff} 12 ", "12"),
        (r#""x\u202ey\u0007""#, r#""xy\u0007""#),
    ] {
        let document = read(DocumentKind::Json, "a.json", text);
        assert_eq!(texts(&document), [expected]);
        assert_eq!(places(&document), [pointer("")]);
    }
}

#[test]
fn a_large_json_value_is_divided_by_member() {
    let long = sentences(0, 60);
    let medium = format!("{} And more text.", sentences(0, 42));
    let text = serde_json::json!({
        "first": 1,
        "second": "two",
        "a/b": {"text": long, "small": [1]},
        "list": [{"x": medium}, {"x": 2}, {"x": 3}],
        "last": null,
    });
    let document = read(DocumentKind::Json, "a.json", &text.to_string());
    let found: Vec<(Place, Vec<String>)> =
        document.passages.iter().map(|passage| (passage.place.clone(), passage.headings.clone())).collect();
    let key = |name: &str| vec![name.to_owned()];
    assert_eq!(
        found,
        [
            (pointer("/first"), vec![]),
            (pointer("/a~1b/text"), vec!["a/b".to_owned(), "text".to_owned()]),
            (pointer("/a~1b/text"), vec!["a/b".to_owned(), "text".to_owned()]),
            (pointer("/a~1b/small"), key("a/b")),
            (pointer("/list/0"), key("list")),
            (pointer("/list/1"), key("list")),
            (pointer("/last"), vec![]),
        ]
    );
    assert_eq!(texts(&document)[0], "\"first\": 1\n\"second\": \"two\"");
    assert!(texts(&document)[1].starts_with("This is sentence number 0."));
    assert_eq!(texts(&document)[3], "\"small\": [\n  1\n]");
    assert_eq!(texts(&document)[5], "{\n  \"x\": 2\n}\n{\n  \"x\": 3\n}");
    assert_eq!(texts(&document)[6], "\"last\": null");
}

#[test]
fn elements_of_a_list_are_joined_with_the_pointer_of_the_first() {
    let text = serde_json::to_string(&(0..600).collect::<Vec<_>>()).unwrap();
    let document = read(DocumentKind::Json, "a.json", &text);
    assert_eq!(places(&document), [pointer("/0"), pointer("/327")]);
    assert!(texts(&document)[1].starts_with("327\n328\n"));
}

#[test]
fn keys_and_pointers_are_bounded() {
    let key = "k".repeat(10_000);
    let text = format!("{{\"{key}\": {{\"{key}\": [\"{}\"], \"b\": 1}}}}", "x ".repeat(2_000));
    let document = read(DocumentKind::Json, "a.json", &text);
    for passage in &document.passages {
        let Place::Pointer(pointer) = &passage.place else { panic!() };
        assert_eq!(count_chars(pointer), super::POINTER_CHARS);
        assert!(passage.headings.iter().all(|heading| count_chars(heading) == HEADING_CHARS));
    }
    let nested = (0..10)
        .fold(format!("\"{}\"", "x ".repeat(2_000)), |inner, level| format!("{{\"k{level}\": {inner}}}"));
    let document = read(DocumentKind::Json, "a.json", &nested);
    assert_eq!(document.passages[0].headings, ["k5", "k4", "k3", "k2", "k1", "k0"], "the innermost");
}

#[test]
fn json_nests_at_most_64_levels() {
    let deep = |levels: usize| format!("{}1{}", "[\n".repeat(levels), "]".repeat(levels));
    assert!(read_text(DocumentKind::Json, "a.json", deep(64).as_bytes()).is_ok());
    let message = "The document `a.json` nests deeper than 64 levels in line 65: make it flatter.";
    assert_eq!(
        refusal(DocumentKind::Json, "a.json", deep(65).as_bytes()),
        (DocumentUnreadable, message.to_owned())
    );
    let lines = format!("1\n{}", deep(65).replace('\n', ""));
    let message = "The document `a.jsonl` nests deeper than 64 levels in line 2: make it flatter.";
    assert_eq!(refusal(DocumentKind::JsonLines, "a.jsonl", lines.as_bytes()).1, message);
}

#[test]
fn lines_of_json_are_joined_and_divided() {
    let long = sentences(0, 60);
    let text = format!(
        "{{\"b\": 1, \"a\": 2}}\r\n\n[ 1 ]\n{{\"text\": \"{}\"}}\n{{\"id\": 1, \"text\": \"{long}{long}\"}}\n7",
        &sentences(0, 80)[..1_900]
    );
    let document = read(DocumentKind::JsonLines, "a.jsonl", &text);
    let rows = [1, 4, 5, 5, 5, 5, 5, 6].map(Place::Row);
    assert_eq!(places(&document), rows);
    assert_eq!(texts(&document)[0], "{\"b\":1,\"a\":2}\n[1]");
    assert_eq!(texts(&document)[2], "\"id\": 1");
    assert_eq!(document.passages[3].headings, ["text"]);
    assert_eq!(texts(&document)[7], "7");
}

#[test]
fn pages_do_not_share_passages() {
    let pages = ["one".to_owned(), " \n".to_owned(), sentences(0, 60), "fo\0ur".to_owned()];
    let document = read_pages("folder/report.pdf", None, &pages).unwrap();
    assert_eq!(document.title, "report");
    assert_eq!(places(&document), [Place::Page(1), Place::Page(3), Place::Page(3), Place::Page(4)]);
    assert_eq!(texts(&document)[3], "four");
    for (title, expected) in [(" The\nreport ", "The report"), ("\u{202e} ", "report")] {
        assert_eq!(read_pages("report.pdf", Some(title), &pages).unwrap().title, expected);
    }
}

#[test]
fn a_document_has_at_most_32_mib() {
    let message = "The document `a` has 33554433 bytes, and at most 33554432 are read: divide it.";
    let large = vec![b' '; MAX_DOCUMENT_BYTES + 1];
    for kind in [DocumentKind::Text, DocumentKind::Json, DocumentKind::Pdf] {
        assert_eq!(refusal(kind, "a", &large), (DocumentTooLarge, message.to_owned()));
    }
    let text = String::from_utf8(large).unwrap();
    assert_eq!(read_markdown("a", &text).unwrap_err().message, message);
    let (first, second) = text.split_at(MAX_DOCUMENT_BYTES / 2);
    let pages = [first.to_owned(), second.to_owned()];
    assert_eq!(read_pages("a", None, &pages).unwrap_err().message, message);
    assert_eq!(refusal(DocumentKind::Text, "a", &text.as_bytes()[1..]).0, DocumentUnreadable, "only blank");
}

#[test]
fn a_document_has_at_most_20000_passages() {
    let sections = |count: usize| "# h\nx\n".repeat(count);
    assert_eq!(markdown(&sections(MAX_PASSAGES)).passages.len(), MAX_PASSAGES);
    let error = read_markdown("a.md", &sections(MAX_PASSAGES + 1)).unwrap_err();
    assert_eq!(error.code, DocumentTooLarge);
    assert_eq!(error.message, "The document `a.md` has more than 20000 passages: divide it.");
    let pages = vec!["x".to_owned(); MAX_PASSAGES + 1];
    assert_eq!(read_pages("a", None, &pages).unwrap_err().code, DocumentTooLarge);
}
