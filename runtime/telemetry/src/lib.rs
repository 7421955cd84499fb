//! What operators see: metrics, logs and traces.
//!
//! Owns the counters, the log writer and the span exporter, and takes secrets and personal data out of what
//! leaves through them. Never decides anything about a run.

mod line;
mod log;
mod metric;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
mod redact;
mod series;

pub use log::{DEFAULT_FILTER, Format, Guard, LogSettings, init};
pub use metric::{Kind, Metric};
pub use metrics::Metrics;
#[cfg(feature = "otel")]
pub use otel::Otlp;
pub use redact::{Level, Redactor};
