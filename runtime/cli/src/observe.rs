//! What operators see of a command: its log, its traces and, when it ends, its metrics.

use crate::args::{Arguments, Command};
use crate::config::Config;
use crate::files::{reason, shown};
use crate::terminal::complain;
use crate::{Exit, wiring};
use redflow_telemetry::{Format, Guard, Level, LogSettings};
use std::path::PathBuf;

/// What the timeline shows already is not logged as well.
const DEFAULT_FILTER: &str = "warn,redflow_engine=error";

/// Watches until the command ends.
pub(crate) struct Observed {
    /// Sends what is still to be sent when it is dropped.
    _guard: Guard,
    metrics: Option<PathBuf>,
}

/// Begins to watch.
pub(crate) fn begin(arguments: &Arguments, config: &Config) -> Result<Observed, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let filter =
        arguments.log.clone().or_else(|| variable("REDFLOW_LOG")).or_else(|| config.log.level.clone());
    let settings = LogSettings {
        filter: filter.unwrap_or_else(|| DEFAULT_FILTER.to_owned()),
        format: config.log.format.map_or(Format::Human, Format::from),
        redact: config.log.redact.map_or(Level::All, Level::from),
        #[cfg(feature = "otel")]
        otlp: variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(|endpoint| redflow_telemetry::Otlp {
            endpoint,
            service_name: variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "redflow".to_owned()),
            headers: Vec::new(),
        }),
        ..LogSettings::default()
    };
    let metrics = match &arguments.command {
        Command::Run(options) => options.metrics.clone(),
        _ => None,
    };
    Ok(Observed { _guard: redflow_telemetry::init(&settings)?, metrics })
}

impl Observed {
    /// Writes what is to be written at the end.
    pub(crate) fn end(self) -> Exit {
        let Some(path) = &self.metrics else { return Exit::Well };
        match std::fs::write(path, wiring::metrics().render()) {
            Ok(()) => Exit::Well,
            Err(error) => {
                complain(&format!("the metrics cannot be written to {}: {}", shown(path), reason(&error)));
                Exit::Unusable
            }
        }
    }
}
