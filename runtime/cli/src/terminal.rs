//! Writing to the screen. What comes from a flow or a model is shown as text, whatever it holds.

use crate::Exit;
use crate::check::render_one;
use crate::files::reason;
use owo_colors::{OwoColorize, Style};
use redflow_contract::api::ApiError;
use redflow_contract::code::Severity;
use redflow_ports::StoreError;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes data to stdout. A reader that went away is no error of ours; a full disk is one.
pub(crate) fn data(text: &str) -> Exit {
    written(&mut anstream::stdout().lock(), text.as_bytes())
}

/// Writes bytes to stdout as they are.
pub(crate) fn raw_data(bytes: &[u8]) -> Exit {
    written(&mut std::io::stdout().lock(), bytes)
}

fn written(out: &mut dyn std::io::Write, bytes: &[u8]) -> Exit {
    /// What is written in many pieces fails in many pieces, and is told once.
    static TOLD: AtomicBool = AtomicBool::new(false);
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            if !TOLD.swap(true, Ordering::Relaxed) {
                complain(&format!("cannot write the output: {}", reason(&error)));
            }
            Exit::Unusable
        }
        _ => Exit::Well,
    }
}

/// Writes one JSON value as one line to stdout. What acts on a terminal, or is taken for an escape sequence
/// on the way, is written `\uXXXX`: the same value to every reader.
pub(crate) fn json<T: Serialize>(value: &T) -> Exit {
    data(&(visible(&serde_json::to_string(value).unwrap_or_default()) + "\n"))
}

/// The same over several lines.
pub(crate) fn pretty_json<T: Serialize>(value: &T) -> Exit {
    data(&(visible(&serde_json::to_string_pretty(value).unwrap_or_default()) + "\n"))
}

fn visible(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        // In JSON a line only ends between values.
        if c != '\n' && (c.is_control() || is_hidden(c)) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
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

/// Says why something about stored runs was not done, with its code.
pub(crate) fn refuse(error: &StoreError) -> Exit {
    refuse_with(error, &[])
}

/// The same, with more lines of help.
pub(crate) fn refuse_with(error: &StoreError, help: &[String]) -> Exit {
    coded(error.code.as_str(), &error.message, help)
}

fn coded(code: &str, message: &str, help: &[String]) -> Exit {
    let mut text =
        format!("{}: {}", format!("error[{code}]").style(bold_red()), printable_line(message, 800));
    for line in help {
        let _ = write!(text, "\n   = help: {line}");
    }
    talk(&format!("{text}\n   = help: redflow explain {code}"));
    Exit::Unusable
}

/// Says why the interface did not do what was asked, with its code, and every problem of the flow if that is why.
pub(crate) fn refuse_api(error: &ApiError, help: &[String]) -> Exit {
    for diagnostic in error.report.iter().flat_map(|report| &report.diagnostics) {
        talk(&render_one(diagnostic));
    }
    coded(error.code.as_str(), &error.message, help)
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

/// Characters that cannot be seen, or that turn the direction of what follows.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text from strangers without control characters, escape sequences and direction overrides.
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
