//! What operators see of a command: its log, its traces and, when it ends, its metrics.

use crate::args::{Arguments, Command};
use crate::config::Config;
use crate::files::{reason, shown};
use crate::terminal::complain;
use crate::{Exit, wiring};
use redflow_telemetry::{Format, Guard, Level, LogSettings};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What is logged unless one says otherwise.
const DEFAULT_FILTER: &str = "warn";
/// The same beside a timeline: what that shows already is not logged as well.
const BESIDE_TIMELINE: &str = "warn,redflow_engine=error";

/// Watches until the command ends.
pub(crate) struct Observed {
    /// Sends what is still to be sent when it is dropped.
    _guard: Guard,
    metrics: Option<(PathBuf, File)>,
}

/// Begins to watch.
pub(crate) fn begin(arguments: &Arguments, config: &Config) -> Result<Observed, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let filter =
        arguments.log.clone().or_else(|| variable("REDFLOW_LOG")).or_else(|| config.log.level.clone());
    let has_timeline = matches!(&arguments.command, Command::Run(options) if !options.quiet);
    let default = if has_timeline { BESIDE_TIMELINE } else { DEFAULT_FILTER };
    let settings = LogSettings {
        filter: filter.unwrap_or_else(|| default.to_owned()),
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
    // Opened before anything runs: a run is not to end in a path that cannot be written.
    let metrics = match &arguments.command {
        Command::Run(options) => options.metrics.clone(),
        _ => None,
    };
    let open = |path: PathBuf| match File::create(&path) {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(unwritable(&path, &error)),
    };
    let metrics = metrics.map(open).transpose()?;
    Ok(Observed { _guard: redflow_telemetry::init(&settings)?, metrics })
}

impl Observed {
    /// Writes what is to be written at the end.
    pub(crate) fn end(self) -> Exit {
        let Some((path, mut file)) = self.metrics else { return Exit::Well };
        match file.write_all(wiring::metrics().render().as_bytes()) {
            Ok(()) => Exit::Well,
            Err(error) => {
                complain(&unwritable(&path, &error));
                Exit::Unusable
            }
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("the metrics cannot be written to {}: {}", shown(path), reason(error))
}
