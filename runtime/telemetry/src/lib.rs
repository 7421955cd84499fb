//! Metrics, logs and traces for operators.
//!
//! Owns the counters, the log writer and the span exporter, and removes secrets and personal data from logs
//! and spans. Never decides anything about a run.
//!
//! A metric is a row in `metric`, recorded through `ports::Meter`.

mod line;
mod log;
mod metric;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
mod redact;
mod series;

pub use log::{DEFAULT_FILTER, LogFormat, LogSettings, TelemetryGuard, init};
pub use metrics::Metrics;
#[cfg(feature = "otel")]
pub use otel::OtlpCollector;
pub use redact::{RedactionLevel, Redactor};
