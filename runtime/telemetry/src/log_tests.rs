use super::{DEFAULT_FILTER, Format, LogSettings, subscriber};
use crate::line::MAX_LINE;
use crate::redact::Level;
use pretty_assertions::assert_eq;
use secrecy::SecretString;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// Keeps what is written.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is written while `act` runs.
fn logged(settings: &LogSettings, human: bool, act: impl FnOnce()) -> Vec<String> {
    let sink = Sink::default();
    let written = sink.clone();
    let (subscriber, _guard) = subscriber(settings, human, move || sink.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, act);
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(str::to_owned).collect()
}

fn settings(filter: &str) -> LogSettings {
    LogSettings { filter: filter.to_owned(), ..LogSettings::default() }
}

#[test]
fn message_fields_and_span_fields_are_redacted() {
    let known = vec![SecretString::from("open \"sesame\"")];
    let settings = LogSettings { known, ..settings("info") };
    for human in [true, false] {
        let lines = logged(&settings, human, || {
            let span = tracing::info_span!("run", apiKey = "span-hunter", user = "bob@example.com", run = 7);
            span.in_scope(|| {
                let open = "open \"sesame\"";
                tracing::warn!(
                    password = "field-hunter",
                    pin = 9876,
                    token = %"display-hunter",
                    debug = ?("sk-abcdefgh12345678", open),
                    card = 4_111_111_111_111_111_u64,
                    promptTokens = 123,
                    tokens = 17,
                    "called +49 30 1234567 with {open} and Bearer message-hunter1"
                );
            });
        });
        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        for hidden in ["hunter", "9876", "sesame", "sk-abc", "bob@", "1234567 ", "41111111"] {
            assert!(!line.contains(hidden), "{hidden}: {line}");
        }
        for kept in ["[redacted]", "[email]", "[phone]", "[card]", "called", "123", "17", "run", "WARN"] {
            assert!(line.contains(kept), "{kept}: {line}");
        }
        if !human {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["fields"]["pin"], "[redacted]");
            assert_eq!(line["fields"]["tokens"], 17);
            assert_eq!(line["span"]["apiKey"], "[redacted]");
            assert_eq!(line["spans"][0]["user"], "[email]");
        }
    }
}

#[test]
fn off_shows_everything() {
    let settings = LogSettings { redact: Level::Off, ..settings("warn") };
    for human in [true, false] {
        let lines = logged(&settings, human, || tracing::warn!(password = "hunter2", "to bob@example.com"));
        assert!(lines[0].contains("hunter2") && lines[0].contains("bob@example.com"), "{lines:?}");
    }
}

#[test]
fn hostile_values_stay_in_their_line() {
    let hostile = "a\nFAKE\r\tb\u{1b}[2J\u{7}\u{9b}\u{2028}\u{202e}\u{7f}\0c";
    for human in [true, false] {
        let lines = logged(&settings("info"), human, || {
            let span = tracing::info_span!("span", shown = %hostile, debug = ?hostile, plain = hostile);
            span.in_scope(
                || tracing::warn!(shown = %hostile, debug = ?hostile, plain = hostile, "{hostile}"),
            );
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        let moves = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{202e}');
        assert!(!lines[0].contains(moves), "{:?}", lines[0]);
        if !human {
            let line: Value = serde_json::from_str(&lines[0]).unwrap();
            assert_eq!(line["fields"]["plain"], hostile);
        }
    }
}

#[test]
fn long_lines_are_cut_and_still_redacted() {
    let long = format!("password=early {} sk-{}", "x ".repeat(MAX_LINE / 2 - 60), "y".repeat(MAX_LINE));
    for human in [true, false] {
        let lines = logged(&settings("warn"), human, || tracing::warn!("{long}"));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() < MAX_LINE + 200);
        assert!(!lines[0].contains("early") && !lines[0].contains("yyy"), "{human}");
        if human {
            assert!(lines[0].ends_with(" [cut]"));
        } else {
            let line: Value = serde_json::from_str(&lines[0]).unwrap();
            assert_eq!(line["fields"]["message"], "a log line was too long");
            assert!(line["fields"]["start"].as_str().unwrap().contains("x x"));
        }
    }
}

#[test]
fn the_filter_decides() {
    assert_eq!(LogSettings::default().filter, DEFAULT_FILTER);
    let act = || {
        tracing::info!("quiet");
        tracing::warn!("loud");
        tracing::debug!(target: "redflow_x", "other");
    };
    let count = |filter: &str| logged(&settings(filter), true, act).len();
    assert_eq!(count(DEFAULT_FILTER), 1);
    assert_eq!(count("info"), 2);
    assert_eq!(count("off"), 0);
    assert_eq!(count("warn,redflow_x=debug"), 2);
}

#[test]
fn a_wrong_filter_is_refused_in_our_words() {
    let refused = subscriber(&settings("a=b=c"), true, std::io::sink).err();
    assert_eq!(refused.as_deref(), Some("the log filter is not a list of levels and targets"));
}

#[test]
fn settings_never_show_a_known_secret() {
    let settings = LogSettings { known: vec![SecretString::from("hunter2")], ..LogSettings::default() };
    assert!(!format!("{settings:?}").contains("hunter2"));
}

#[test]
fn formats_have_names() {
    for format in Format::ALL {
        assert_eq!(Format::parse(format.as_str()), Some(*format));
    }
    assert_eq!(Format::parse("xml"), None);
}
