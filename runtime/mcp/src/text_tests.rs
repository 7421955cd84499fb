use super::{canonical, clean, clean_and_cut, clean_line, cut_bytes, matches_pattern};
use pretty_assertions::assert_eq;
use serde_json::json;

// SECURITY: mcp-text
#[test]
fn a_text_loses_what_hides_something() {
    let hidden = "a\u{202e}b\u{200b}c\u{7}d\u{feff}e\u{2066}f\u{e0041}g\u{ad}h\u{fe0f}";
    assert_eq!(clean(hidden), "abcdefgh");
    assert_eq!(clean("two\nlines\tß 日本"), "two\nlines\tß 日本");
    assert_eq!(clean_line("two\nlines", 80), "two lines");
}

// SECURITY: mcp-text
#[test]
fn a_long_text_ends_with_a_sign() {
    assert_eq!(clean_and_cut("12345", 5), "12345");
    assert_eq!(clean_and_cut("123456", 5), "1234…");
    assert_eq!(clean_and_cut("12345\u{200b}", 5), "12345");
    assert_eq!(cut_bytes("aé", 2), "a");
}

// SECURITY: mcp-text
#[test]
fn a_pattern_matches_the_whole_text() {
    let rows = [
        ("read", "read", true),
        ("read", "reader", false),
        ("read_*", "read_file", true),
        ("read_*", "read_", true),
        ("read_*", "write_file", false),
        ("*_file", "read_file", true),
        ("*_file", "read_files", false),
        ("a*b*c", "a1b2c", true),
        ("a*b*c", "a1c2b", false),
        ("a*a", "a", false),
        ("*", "", true),
        ("*", "anything", true),
        ("**", "x", true),
        ("", "x", false),
    ];
    for (pattern, text, expected) in rows {
        assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
    }
}

// SECURITY: mcp-text
#[test]
fn the_order_of_keys_does_not_count() {
    let (one, other) = (json!({"b": [{"y": 1, "x": 2}], "a": 0}), json!({"a": 0, "b": [{"x": 2, "y": 1}]}));
    assert_eq!(canonical(&one).to_string(), canonical(&other).to_string());
    assert_eq!(canonical(&one).to_string(), r#"{"a":0,"b":[{"x":2,"y":1}]}"#);
}
