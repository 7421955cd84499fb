//! What operators see of a command: its log, its traces and, when it ends, its metrics.

use crate::args::{Arguments, Command};
use crate::config::{Settings, Wrong};
use crate::files::{reason, shown};
use crate::terminal::complain;
use crate::{Exit, wiring};
use redflow_telemetry::{Guard, LogSettings};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Watches until the command ends.
pub(crate) struct Observed {
    /// Sends what is still to be sent when it is dropped.
    _guard: Guard,
    metrics: Option<(PathBuf, File)>,
}

/// Begins to watch.
pub(crate) fn begin(arguments: &Arguments, settings: &Settings) -> Result<Observed, Exit> {
    #[cfg(feature = "otel")]
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let level = &settings.log.level;
    let logs = LogSettings {
        filter: level.value.clone(),
        format: settings.log.format.value,
        redact: settings.log.redact.value,
        known: settings.token.iter().cloned().collect(),
        #[cfg(feature = "otel")]
        otlp: variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(|endpoint| redflow_telemetry::Otlp {
            endpoint,
            service_name: variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "redflow".to_owned()),
            headers: Vec::new(),
        }),
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
    let metrics = metrics.map(open).transpose().map_err(|text| {
        complain(&text);
        Exit::Unusable
    })?;
    let guard = redflow_telemetry::init(&logs).map_err(|text| {
        Wrong::at(&level.origin, &text).tell();
        Exit::Unusable
    })?;
    Ok(Observed { _guard: guard, metrics })
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
