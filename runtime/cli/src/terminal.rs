//! Writes data to stdout and notes for people to stderr.

use crate::exit::Exit;
use crate::text::{describe_io_error, is_hidden};
use owo_colors::{OwoColorize, Style};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes text to stdout. A reader that disconnected is no error; a full disk is one.
pub(crate) fn print_text(text: &str) -> Exit {
    write_all(&mut anstream::stdout().lock(), text.as_bytes())
}

/// Writes bytes to stdout unchanged.
pub(crate) fn print_bytes(bytes: &[u8]) -> Exit {
    write_all(&mut std::io::stdout().lock(), bytes)
}

fn write_all(out: &mut dyn std::io::Write, bytes: &[u8]) -> Exit {
    /// Output in many pieces fails many times, but one error is enough.
    static REPORTED: AtomicBool = AtomicBool::new(false);
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            if !REPORTED.swap(true, Ordering::Relaxed) {
                print_error(&format!("cannot write the output: {}", describe_io_error(&error)));
            }
            Exit::Unusable
        }
        _ => Exit::Success,
    }
}

/// Writes one JSON value as one line to stdout. Characters that act on a terminal are written as `\uXXXX`,
/// which every JSON reader takes for the same value.
pub(crate) fn print_json<T: Serialize>(value: &T) -> Exit {
    print_text(&(escape_hidden(&serde_json::to_string(value).unwrap_or_default()) + "\n"))
}

/// Writes one JSON value on several lines to stdout.
pub(crate) fn print_pretty_json<T: Serialize>(value: &T) -> Exit {
    print_text(&(escape_hidden(&serde_json::to_string_pretty(value).unwrap_or_default()) + "\n"))
}

fn escape_hidden(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        // JSON has line feeds only between values.
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

/// Writes one line to stderr.
pub(crate) fn print_note(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = writeln!(out, "{text}");
}

/// Writes a part of a line to stderr.
pub(crate) fn print_part(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

pub(crate) fn print_warning(text: &str) {
    print_note(&format!("{}: {text}", warning_style("warning")));
}

/// Writes an error that has no code to stderr.
pub(crate) fn print_error(text: &str) {
    print_note(&format!("{}: {text}", "error".style(bold_red())));
}

/// Writes an error that has no code, and gives the exit code of unusable input.
pub(crate) fn fail(text: &str) -> Exit {
    print_error(text);
    Exit::Unusable
}

pub(crate) fn warning_style(text: &str) -> String {
    text.yellow().bold().to_string()
}

pub(crate) fn bold_red() -> Style {
    Style::new().red().bold()
}
