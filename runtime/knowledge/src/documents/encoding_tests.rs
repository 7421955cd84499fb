use super::decode_web_text;
use proptest::prelude::*;

const SAMPLES: [(&str, &[u8], &str); 12] = [
    ("windows-1252", b"caf\xe9 \x80 5", "café € 5"),
    ("ISO-8859-1", b"caf\xe9 \x80 5", "café € 5"),
    ("iso-8859-2", b"\xb1\xea", "ąę"),
    ("windows-1251", b"\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"),
    ("koi8-r", b"\xd0\xd2\xc9\xd7\xc5\xd4", "привет"),
    ("Shift_JIS", b"\x93\xfa\x96{\x8c\xea", "日本語"),
    ("EUC-JP", b"\xc6\xfc\xcb\xdc", "日本"),
    ("iso-2022-jp", b"\x1b$BF|K\\\x1b(B", "日本"),
    ("GBK", b"\xd6\xd0\xce\xc4", "中文"),
    ("gb2312", b"\xd6\xd0\xce\xc4", "中文"),
    ("big5", b"\xa4\xa4\xa4\xe5", "中文"),
    ("euc-kr", b"\xc7\xd1\xb1\xb9", "한국"),
];

fn decode(content_type: &str, bytes: &[u8]) -> Option<String> {
    decode_web_text(bytes, Some(content_type), false)
}

#[test]
fn the_content_type_names_the_encoding() {
    for (label, bytes, text) in SAMPLES {
        for content_type in [
            format!("text/html; charset={label}"),
            format!("text/plain;charset=\"{label}\""),
            format!("Text/CSV; header=present; Charset='{label}' "),
        ] {
            assert_eq!(decode(&content_type, bytes).as_deref(), Some(text), "{content_type}");
        }
    }
}

#[test]
fn the_meta_of_html_names_the_encoding() {
    for (label, bytes, text) in SAMPLES {
        for (meta, content_type) in [
            (format!("<!doctype html><META charset={label}><p>"), "text/html"),
            (format!("<html><head><meta  charset = '{label}' /><p>"), "text/html; charset=of-tomorrow"),
            (
                format!(
                    "<meta name=a><meta http-equiv=Content-Type content=\"text/html; charset={label}\"><p>"
                ),
                "application/xhtml+xml",
            ),
            (format!("<!-- <meta charset=utf-8> --><meta charset=\"{label}\"><p>"), "text/html"),
        ] {
            let page = [meta.as_bytes(), bytes].concat();
            assert_eq!(decode(content_type, &page), Some(format!("{meta}{text}")), "{meta}");
            assert_eq!(decode("text/plain", &page), None, "only HTML has a meta");
        }
    }
}

#[test]
fn a_byte_order_mark_counts_most_and_the_content_type_more_than_the_meta() {
    for (content_type, bytes, text) in [
        ("text/html; charset=gbk", b"\xff\xfea\0\xe9\0".as_slice(), Some("aé")),
        ("", b"\xfe\xff\0a\0\xe9", Some("aé")),
        ("text/html; charset=gbk", b"\xef\xbb\xbf\xc3\xa9", None),
        ("text/html", b"\xef\xbb\xbf<meta charset=gbk>\xc3\xa9", None),
        ("text/html; charset=windows-1252", b"<meta charset=gbk>\xe9", Some("<meta charset=gbk>é")),
        ("text/html; charset=utf-8", b"<meta charset=gbk>\xe9", None),
        ("text/plain; charset=utf-16le", b"a\0\xe9\0", Some("aé")),
    ] {
        assert_eq!(decode(content_type, bytes).as_deref(), text, "{content_type} {bytes:?}");
    }
}

#[test]
fn what_announces_no_known_encoding_is_left_alone() {
    let late = [b" ".repeat(1024), b"<meta charset=gbk>\xe9".to_vec()].concat();
    for (content_type, bytes) in [
        ("text/html", b"caf\xe9".as_slice()),
        ("text/html; charset=of-tomorrow", b"caf\xe9"),
        ("text/html; charset=", b"caf\xe9"),
        // A name that stands for an attack.
        ("text/html; charset=hz-gb-2312", b"caf\xe9"),
        ("text/html", b"<meta charset=utf-8>caf\xe9"),
        ("text/html", b"<meta charset=utf-16>caf\xe9"),
        ("text/html", b"<meta name=charset><p>caf\xe9"),
        ("text/html", b"<meta charset"),
        ("text/html", b"<meta charset=gbk"),
        ("text/html", b"<!-- <meta charset=gbk> caf\xe9"),
        ("text/html", &late),
        // UTF-8, whatever it names.
        ("text/html", "<meta charset=iso-8859-1>grün".as_bytes()),
        ("", b""),
        ("", b"caf\xe9"),
    ] {
        assert_eq!(decode(content_type, bytes), None, "{content_type} {bytes:?}");
    }
    assert_eq!(decode_web_text(b"caf\xe9", None, false), None);
}

#[test]
fn characters_that_an_encoding_does_not_have_are_replaced() {
    assert_eq!(decode("text/plain; charset=shift_jis", b"a\xffb\x93").as_deref(), Some("a\u{fffd}b\u{fffd}"));
    // A cut one is left out.
    let cut = decode_web_text(b"\x93\xfa\x93", Some("text/plain; charset=shift_jis"), true);
    assert_eq!(cut.as_deref(), Some("日"));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_left_alone(bytes in proptest::collection::vec(any::<u8>(), 0..300), goes_on: bool) {
        for label in ["shift_jis", "gb18030", "iso-2022-jp", "utf-16", "windows-1252", "x-user-defined"] {
            let content_type = format!("text/html; charset={label}");
            if let Some(text) = decode_web_text(&bytes, Some(&content_type), goes_on) {
                prop_assert!(text.len() <= 3 * bytes.len() + 3);
            }
        }
        let page = [b"<meta charset=big5>", bytes.as_slice()].concat();
        let _ = decode_web_text(&page, Some("text/html"), goes_on);
    }
}
