//! Text for people: untrusted text without control characters, counts, sizes and I/O errors.

use redflow_contract::Message;
use serde_json::Value;
use std::fmt::Write as _;
use std::io;

/// Invisible characters, and characters that change the direction of the text after them.
pub(crate) fn is_hidden(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Untrusted text with control characters, escape sequences and direction overrides escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) || (c.is_control() && c != '\n' && c != '\t') {
            let _ = write!(out, "\\u{{{:x}}}", c as u32);
        } else {
            out.push(c);
        }
    }
    out
}

/// Untrusted text on one line, cut to `limit` characters.
pub(crate) fn printable_line(text: &str, limit: usize) -> String {
    let line = printable(text).replace(['\n', '\t'], " ");
    if line.chars().count() <= limit {
        return line;
    }
    let mut cut: String = line.chars().take(limit).collect();
    cut.push('…');
    cut
}

/// A number with its noun, which gets a plural `s`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A number of bytes in its largest binary unit, with one decimal digit.
pub(crate) fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return count(usize::try_from(bytes).unwrap_or(usize::MAX), "byte");
    }
    // Tenths are counted, so that nothing is rounded twice.
    let (mut tenths, mut unit) = (bytes.saturating_mul(10) / 1024, 0);
    while tenths >= 10 * 1024 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// The payload of a message: text as it is, anything else as JSON.
pub(crate) fn format_payload(message: &Message) -> String {
    let text = match message.get("payload") {
        Some(Value::String(text)) => printable(text),
        Some(other) => printable(&serde_json::to_string_pretty(other).unwrap_or_default()),
        None => String::new(),
    };
    text + "\n"
}

/// The reason of an I/O error, without the number that the system adds.
pub(crate) fn describe_io_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{format_size, printable, printable_line};

    #[test]
    fn hostile_text_is_escaped() {
        assert_eq!(printable("a\u{1b}[31mred\u{7}"), "a\\u{1b}[31mred\\u{7}");
        assert_eq!(printable("x\u{202e}y\u{200b}"), "x\\u{202e}y\\u{200b}");
        assert_eq!(printable("zwei\nZeilen 🙂"), "zwei\nZeilen 🙂");
        assert_eq!(printable_line("a\nb", 9), "a b");
        assert_eq!(printable_line("abcdef", 3), "abc…");
    }

    #[test]
    fn sizes_have_one_decimal_digit() {
        let rows = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1024 * 1024, "1.0 MiB"),
            (5 * 1024 * 1024 * 1024, "5.0 GiB"),
            (1 << 60, "1048576.0 TiB"),
        ];
        for (bytes, text) in rows {
            assert_eq!(format_size(bytes), text);
        }
    }
}
