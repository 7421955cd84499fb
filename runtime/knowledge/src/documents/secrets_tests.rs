//! Secrets in documents of each kind.

use super::{DocumentKind, MAX_DOCUMENT_BYTES, ReadDocument, clean_name, read_pages, read_text};
use pretty_assertions::assert_eq;

const KEY: &str = "sk-ant-api03-AbC_dEf-0123456789";

fn read(kind: DocumentKind, text: &str) -> ReadDocument {
    read_text(kind, "a", text.as_bytes()).unwrap()
}

#[test]
fn no_kind_of_document_keeps_a_secret() {
    let rows = [
        (DocumentKind::Markdown, format!("---\ntitle: {KEY}\n---\n# {KEY}\n\n{KEY}\n"), 3),
        (DocumentKind::Text, format!("key={KEY};{KEY}"), 2),
        (DocumentKind::Csv, format!("name,{KEY}\nkey,\"{KEY}\"\n"), 2),
        (DocumentKind::Json, format!(r#"{{"env": "A=1\nK={KEY}", "{KEY}": "x", "b": ["a\n{KEY}"]}}"#), 3),
        (DocumentKind::JsonLines, format!("{{\"a\": \"{KEY}\"}}\n{{\"{KEY}\": 1}}\n"), 2),
    ];
    for (kind, text, count) in rows {
        let document = read(kind, &text);
        assert_eq!(document.masked, count, "{kind:?}");
        let shown = format!("{document:?}");
        assert!(!shown.contains("sk-ant") && shown.contains("[redacted]"), "{shown}");
    }
    let table = read(DocumentKind::Csv, "name,address,mail\nsrv,http://db:5432,admin@example.com\n");
    assert_eq!(table.masked, 0, "two fields are no password");
    let pages = [KEY.to_owned(), "page".to_owned()];
    assert_eq!(read_pages("a.pdf", None, &pages).unwrap().masked, 1);
}

#[test]
fn a_secret_is_replaced_before_a_passage_ends_inside_it() {
    // Longer than a passage, so it would be divided.
    let token = format!("eyJhbGciOiJIUzI1NiJ9.{}.c2ln", "AbC1".repeat(1_000));
    let lines = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n".repeat(80);
    let key = format!("-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----");
    let document = read(DocumentKind::Text, &format!("First.\n\n{token}\n\n{key}\n\nLast."));
    let texts: Vec<&str> = document.passages.iter().map(|passage| passage.text.as_str()).collect();
    assert_eq!((texts, document.masked), (vec!["First.\n\n[redacted]\n\n[redacted]\n\nLast."], 2));
}

#[test]
fn masked_keys_of_json_keep_their_values() {
    let other = KEY.replace("0123", "9876");
    let document = read(DocumentKind::Json, &format!(r#"{{"{KEY}": "one", "{other}": "two"}}"#));
    let text = &document.passages[0].text;
    assert!(text.contains("one") && text.contains("two"), "{text}");
}

#[test]
fn ordinary_text_stays_and_costs_little() {
    let text = "The digest da39a3ee5e6b4b0d3255bfef95601890afd80709 of sk-learn at https://bob@host/.";
    let document = read(DocumentKind::Text, text);
    assert_eq!((document.passages[0].text.as_str(), document.masked), (text, 0));
    // Marks of secrets that are none, as many as fit. A search that is not linear would not end.
    for part in ["-----BEGIN PRIVATE KEY-----", "://", "://a:", "sk-", "eyJ.", "-----BEGIN "] {
        let text = part.repeat(MAX_DOCUMENT_BYTES / 8 / part.len());
        let _ = read_text(DocumentKind::Text, "a", text.as_bytes());
    }
}

#[test]
fn names_lose_what_cannot_be_seen() {
    for (name, expected) in [
        ("shop/prices.csv", "shop/prices.csv"),
        ("a\u{200b}\u{202e}b\u{1b}\n.md ", "ab.md"),
        ("Grüße 👍.md", "Grüße 👍.md"),
        ("\u{feff}\u{e0041}", ""),
    ] {
        assert_eq!(clean_name(name), expected);
    }
}
