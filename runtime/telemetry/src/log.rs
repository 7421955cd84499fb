//! Log lines on standard error, and where spans go.
//!
//! Owns what the process says about itself. Never writes to standard output, and never waits for a reader.

use crate::line::Redacting;
use crate::redact::{Level, Redactor};
use secrecy::SecretString;
use std::io::IsTerminal as _;
use std::sync::Arc;
use tracing::Subscriber;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{DefaultFields, JsonFields};
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

/// What is said when nothing else is wanted.
pub const DEFAULT_FILTER: &str = "warn";

/// What a line looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For people on a terminal, else JSON.
    #[default]
    Auto,
    /// Text for people.
    Human,
    /// One JSON object.
    Json,
}

impl Format {
    /// Every format.
    pub const ALL: &'static [Self] = &[Self::Auto, Self::Human, Self::Json];

    /// As it is written everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Human => "human",
            Self::Json => "json",
        }
    }

    /// From its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.as_str() == text)
    }
}

/// What is said, and how.
#[derive(Debug)]
pub struct LogSettings {
    /// Levels by target: `warn`, or `info,redflow_engine=debug`.
    pub filter: String,
    /// What a line looks like.
    pub format: Format,
    /// What is taken out.
    pub redact: Level,
    /// Secrets that are taken out wherever they turn up.
    pub known: Vec<SecretString>,
    /// Where spans are sent.
    #[cfg(feature = "otel")]
    pub otlp: Option<crate::otel::Otlp>,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            filter: DEFAULT_FILTER.to_owned(),
            format: Format::Auto,
            redact: Level::default(),
            known: Vec::new(),
            #[cfg(feature = "otel")]
            otlp: None,
        }
    }
}

/// Keeps telemetry going. Dropped, it sends what is left, for at most five seconds.
#[derive(Debug)]
#[must_use = "spans that are left are sent when it is dropped"]
pub struct Guard {
    #[cfg(feature = "otel")]
    _exporting: Option<crate::otel::Exporting>,
}

/// Logs from now on, once for the whole process.
///
/// # Errors
///
/// One sentence, if the settings cannot be followed or the process logs already.
pub fn init(settings: &LogSettings) -> Result<Guard, String> {
    let human = match settings.format {
        Format::Auto => std::io::stderr().is_terminal(),
        format => format == Format::Human,
    };
    let (subscriber, guard) = subscriber(settings, human, std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| "the process logs already".to_owned())?;
    Ok(guard)
}

type Logging<S> = Box<dyn Layer<S> + Send + Sync>;

/// All of it over any place to write lines to.
pub(crate) fn subscriber<W>(
    settings: &LogSettings,
    human: bool,
    sink: W,
) -> Result<(impl Subscriber + Send + Sync + 'static, Guard), String>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let redactor = Arc::new(Redactor::new(settings.redact, &settings.known)?);
    let filter = EnvFilter::builder()
        .with_regex(false)
        .parse(&settings.filter)
        .map_err(|_| "the log filter is not a list of levels and targets".to_owned())?;
    let logging = Redacting { redactor: Arc::clone(&redactor), json: !human, sink };
    let registry = tracing_subscriber::registry().with(lines(logging).with_filter(filter));
    #[cfg(feature = "otel")]
    let (layer, exporting) = crate::otel::layer(settings.otlp.as_ref(), &redactor)?;
    // It has a filter of its own: spans are sent whether or not they are logged.
    #[cfg(feature = "otel")]
    let registry = registry.with(layer);
    let guard = Guard {
        #[cfg(feature = "otel")]
        _exporting: exporting,
    };
    Ok((registry, guard))
}

/// Writes lines. Without colours: they would stand between a name and its value and hide both from the
/// redactor.
fn lines<S, W>(writer: Redacting<W>) -> Logging<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // What the library cannot format it would print as it is, past the redactor.
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).log_internal_errors(false);
    if writer.json {
        layer.json().fmt_fields(JsonFields::new()).with_writer(writer).boxed()
    } else {
        layer.fmt_fields(DefaultFields::new()).with_writer(writer).boxed()
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
