use super::{DEFAULT_FILTER, LogFormat, LogSettings, subscriber};
use crate::line::{LineFormat, MAX_LINE_BYTES};
use crate::redact::RedactionLevel;
use pretty_assertions::assert_eq;
use secrecy::SecretString;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// Records the written bytes.
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

const FORMATS: [LineFormat; 2] = [LineFormat::Human, LineFormat::Json];

/// The lines that are logged while `act` runs.
fn logged(settings: &LogSettings, format: LineFormat, act: impl FnOnce()) -> Vec<String> {
    let sink = Sink::default();
    let written = sink.clone();
    let (subscriber, _guard) = subscriber(settings, format, move || sink.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, act);
    let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(str::to_owned).collect()
}

fn settings(filter: &str) -> LogSettings {
    LogSettings { filter: filter.to_owned(), ..LogSettings::default() }
}

#[test]
fn messages_of_mcp_servers_are_logged_only_if_the_operator_wants_them() {
    let act = || {
        tracing::warn!(target: "rmcp::service", "a whole message");
        tracing::warn!("ours");
    };
    assert_eq!(logged(&settings("info"), LineFormat::Human, act).len(), 1);
    assert_eq!(logged(&settings("info,rmcp=warn"), LineFormat::Human, act).len(), 2);
}

#[test]
fn message_fields_and_span_fields_are_redacted() {
    let known = vec![SecretString::from("open \"sesame\"")];
    let settings = LogSettings { known_secrets: known, ..settings("info") };
    for format in FORMATS {
        let lines = logged(&settings, format, || {
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
        for expected in ["[redacted]", "[email]", "[phone]", "[card]", "called", "123", "17", "run", "WARN"] {
            assert!(line.contains(expected), "{expected}: {line}");
        }
        if format == LineFormat::Json {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["fields"]["pin"], "[redacted]");
            assert_eq!(line["fields"]["tokens"], 17);
            assert_eq!(line["span"]["apiKey"], "[redacted]");
            assert_eq!(line["spans"][0]["user"], "[email]");
        }
    }
}

#[test]
fn level_off_redacts_nothing() {
    let settings = LogSettings { redact: RedactionLevel::Off, ..settings("warn") };
    for format in FORMATS {
        let lines = logged(&settings, format, || tracing::warn!(password = "hunter2", "to bob@example.com"));
        assert!(lines[0].contains("hunter2") && lines[0].contains("bob@example.com"), "{lines:?}");
    }
}

// SECURITY: foreign-text
#[test]
fn hostile_values_stay_in_their_line() {
    let hostile = "a\nFAKE\r\tb\u{1b}[2J\u{7}\u{9b}\u{2028}\u{202e}\u{7f}\0c";
    for format in FORMATS {
        let lines = logged(&settings("info"), format, || {
            let span = tracing::info_span!("span", shown = %hostile, debug = ?hostile, plain = hostile);
            span.in_scope(
                || tracing::warn!(shown = %hostile, debug = ?hostile, plain = hostile, "{hostile}"),
            );
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        let is_unsafe = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{202e}');
        assert!(!lines[0].contains(is_unsafe), "{:?}", lines[0]);
        if format == LineFormat::Json {
            let line: Value = serde_json::from_str(&lines[0]).unwrap();
            assert_eq!(line["fields"]["plain"], hostile);
        }
    }
}

#[test]
fn long_lines_are_truncated_and_still_redacted() {
    let long =
        format!("password=early {} sk-{}", "x ".repeat(MAX_LINE_BYTES / 2 - 60), "y".repeat(MAX_LINE_BYTES));
    for format in FORMATS {
        let lines = logged(&settings("warn"), format, || tracing::warn!("{long}"));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() < MAX_LINE_BYTES + 200);
        assert!(!lines[0].contains("early") && !lines[0].contains("yyy"), "{format:?}");
        if format == LineFormat::Human {
            assert!(lines[0].ends_with(" [cut]"));
        } else {
            let line: Value = serde_json::from_str(&lines[0]).unwrap();
            assert_eq!(line["fields"]["message"], "a log line was too long");
            assert!(line["fields"]["start"].as_str().unwrap().contains("x x"));
        }
    }
}

#[test]
fn the_filter_selects_the_lines() {
    assert_eq!(LogSettings::default().filter, DEFAULT_FILTER);
    let act = || {
        tracing::info!("quiet");
        tracing::warn!("loud");
        tracing::debug!(target: "redflow_x", "other");
    };
    let count = |filter: &str| logged(&settings(filter), LineFormat::Human, act).len();
    assert_eq!(count(DEFAULT_FILTER), 1);
    assert_eq!(count("info"), 2);
    assert_eq!(count("off"), 0);
    assert_eq!(count("warn,redflow_x=debug"), 2);
}

#[test]
fn an_invalid_filter_is_refused_without_quoting_it() {
    let refused = subscriber(&settings("a=b=c"), LineFormat::Human, std::io::sink).err();
    assert_eq!(refused.as_deref(), Some("the log filter is not a list of levels and targets"));
}

#[test]
fn settings_never_show_a_known_secret() {
    let settings =
        LogSettings { known_secrets: vec![SecretString::from("hunter2")], ..LogSettings::default() };
    assert!(!format!("{settings:?}").contains("hunter2"));
}

#[test]
fn formats_parse_their_own_names() {
    for format in LogFormat::ALL {
        assert_eq!(LogFormat::parse(format.as_str()), Some(*format));
    }
    assert_eq!(LogFormat::parse("xml"), None);
}
