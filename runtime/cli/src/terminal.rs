//! Writing to the screen. What comes from a flow or a model is shown as text, whatever it holds.

use owo_colors::{OwoColorize, Style};
use redflow_contract::code::Severity;
use std::fmt::Write as _;
use std::io::Write as _;

/// Writes data to stdout. A reader that went away is no error of ours.
pub(crate) fn data(text: &str) {
    let mut out = anstream::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Writes one line of talk to stderr.
pub(crate) fn talk(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = writeln!(out, "{text}");
}

/// Writes an error of the command itself to stderr.
pub(crate) fn complain(text: &str) {
    talk(&format!("{}: {text}", "error".style(bold_red())));
}

pub(crate) fn bold_red() -> Style {
    Style::new().red().bold()
}

pub(crate) fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Error => bold_red(),
        Severity::Warning => Style::new().yellow().bold(),
        Severity::Info => Style::new().cyan().bold(),
    }
}

/// Text from strangers without control characters, escape sequences and direction overrides.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        if hidden || (c.is_control() && c != '\n' && c != '\t') {
            let _ = write!(out, "\\u{{{:x}}}", c as u32);
        } else {
            out.push(c);
        }
    }
    out
}

/// The same on one line, cut to a number of characters.
pub(crate) fn printable_line(text: &str, most: usize) -> String {
    let line = printable(text).replace(['\n', '\t'], " ");
    if line.chars().count() <= most {
        return line;
    }
    let mut cut: String = line.chars().take(most).collect();
    cut.push('…');
    cut
}

/// A count with its noun.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::{printable, printable_line};

    #[test]
    fn hostile_text_is_shown_as_text() {
        assert_eq!(printable("a\u{1b}[31mred\u{7}"), "a\\u{1b}[31mred\\u{7}");
        assert_eq!(printable("x\u{202e}y\u{200b}"), "x\\u{202e}y\\u{200b}");
        assert_eq!(printable("zwei\nZeilen 🙂"), "zwei\nZeilen 🙂");
        assert_eq!(printable_line("a\nb", 9), "a b");
        assert_eq!(printable_line("abcdef", 3), "abc…");
    }
}
