//! Sets up logging to standard error and the export of spans.
//!
//! Owns the subscriber of the process. Never writes to standard output, and never waits for a reader.

use crate::line::{LineFormat, RedactingWriter};
use crate::redact::{RedactionLevel, Redactor};
use secrecy::SecretString;
use std::io::IsTerminal as _;
use std::sync::Arc;
use tracing::Subscriber;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{DefaultFields, JsonFields};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// The filter when none is configured: warnings and errors.
pub const DEFAULT_FILTER: &str = "warn";

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, else JSON.
    #[default]
    Auto,
    /// Plain text.
    Human,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    /// All formats, for parsing and help texts.
    pub const ALL: &'static [Self] = &[Self::Auto, Self::Human, Self::Json];

    /// The name in configuration files and arguments.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Human => "human",
            Self::Json => "json",
        }
    }

    /// Parses a name; none if there is no such format.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.as_str() == text)
    }
}

/// The filter, the format and the redaction of log lines, and the export of spans.
#[derive(Debug)]
pub struct LogSettings {
    /// Levels by target: `warn`, or `info,redflow_engine=debug`.
    pub filter: String,
    /// The format of the lines.
    pub format: LogFormat,
    /// What the redactor removes.
    pub redact: RedactionLevel,
    /// Secrets that are removed wherever they occur.
    pub known_secrets: Vec<SecretString>,
    /// The collector that gets the spans; none to send no spans.
    #[cfg(feature = "otel")]
    pub otlp: Option<crate::otel::OtlpCollector>,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            filter: DEFAULT_FILTER.to_owned(),
            format: LogFormat::Auto,
            redact: RedactionLevel::default(),
            known_secrets: Vec::new(),
            #[cfg(feature = "otel")]
            otlp: None,
        }
    }
}

/// Keeps the span exporter alive. When dropped, it sends the remaining spans, for at most five seconds.
#[derive(Debug)]
#[must_use = "the remaining spans are sent when it is dropped"]
pub struct TelemetryGuard {
    #[cfg(feature = "otel")]
    _exporter: Option<crate::otel::ExporterGuard>,
}

/// Starts logging for the whole process. It can be called once.
///
/// # Errors
///
/// One sentence, if a setting is not valid or the process logs already.
pub fn init(settings: &LogSettings) -> Result<TelemetryGuard, String> {
    let format = match settings.format {
        LogFormat::Auto if std::io::stderr().is_terminal() => LineFormat::Human,
        LogFormat::Human => LineFormat::Human,
        LogFormat::Auto | LogFormat::Json => LineFormat::Json,
    };
    let (subscriber, guard) = subscriber(settings, format, std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| "the process logs already".to_owned())?;
    Ok(guard)
}

type LogLayer<S> = Box<dyn Layer<S> + Send + Sync>;

/// Builds the subscriber, with any place to write lines to.
pub(crate) fn subscriber<W>(
    settings: &LogSettings,
    format: LineFormat,
    sink: W,
) -> Result<(impl Subscriber + Send + Sync + 'static, TelemetryGuard), String>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let redactor = Arc::new(Redactor::new(settings.redact, &settings.known_secrets)?);
    let filter = EnvFilter::builder()
        .with_regex(false)
        .parse(&settings.filter)
        .map_err(|_| "the log filter is not a list of levels and targets".to_owned())?;
    let filter = without_foreign_messages(filter, &settings.filter);
    let writer = RedactingWriter { redactor: Arc::clone(&redactor), format, sink };
    let registry = tracing_subscriber::registry().with(log_layer(writer).with_filter(filter));
    #[cfg(feature = "otel")]
    let (layer, exporter) = crate::otel::layer(settings.otlp.as_ref(), &redactor)?;
    // The layer has its own filter: spans are sent whether or not they are logged.
    #[cfg(feature = "otel")]
    let registry = registry.with(layer);
    let guard = TelemetryGuard {
        #[cfg(feature = "otel")]
        _exporter: exporter,
    };
    Ok((registry, guard))
}

/// Turns off the lines of the MCP library, unless the operator names it: they have whole messages of strangers.
fn without_foreign_messages(filter: EnvFilter, written: &str) -> EnvFilter {
    match "rmcp=off".parse() {
        Ok(off) if !written.contains("rmcp") => filter.add_directive(off),
        _ => filter,
    }
}

/// The layer that writes lines. Without colours: their codes between a name and its value would hide both
/// from the redactor.
fn log_layer<S, W>(writer: RedactingWriter<W>) -> LogLayer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // The library would print its own errors past the redactor.
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).log_internal_errors(false);
    match writer.format {
        LineFormat::Json => layer.json().fmt_fields(JsonFields::new()).with_writer(writer).boxed(),
        LineFormat::Human => layer.fmt_fields(DefaultFields::new()).with_writer(writer).boxed(),
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
