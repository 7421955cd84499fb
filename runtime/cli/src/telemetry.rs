//! Starts the log and the traces of a command, and writes its metrics when it ends.

use crate::args::{Arguments, Command};
use crate::config::{ConfigErrors, Settings};
use crate::exit::Exit;
use crate::files::display_path;
use crate::terminal::fail;
use crate::text::describe_io_error;
use redflow_telemetry::{LogSettings, Metrics, TelemetryGuard};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

pub(crate) struct Telemetry {
    /// Sends the remaining traces when it is dropped.
    _guard: TelemetryGuard,
    metrics_file: Option<(PathBuf, File)>,
}

impl Telemetry {
    pub(crate) fn start(arguments: &Arguments, settings: &Settings) -> Result<Self, Exit> {
        #[cfg(feature = "otel")]
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let level = &settings.log.level;
        let logs = LogSettings {
            filter: level.value.clone(),
            format: settings.log.format.value,
            redact: settings.log.redact.value,
            known_secrets: settings.token.iter().cloned().collect(),
            #[cfg(feature = "otel")]
            otlp: variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(|endpoint| redflow_telemetry::OtlpCollector {
                endpoint,
                service_name: variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "redflow".to_owned()),
                headers: Vec::new(),
            }),
        };
        let metrics_path = match &arguments.command {
            Command::Run(options) => options.metrics.clone(),
            _ => None,
        };
        // The file is opened before anything runs, so that a wrong path does not show after a long run.
        let open = |path: PathBuf| match File::create(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(write_failed(&path, &error)),
        };
        let metrics_file = metrics_path.map(open).transpose()?;
        let guard = redflow_telemetry::init(&logs).map_err(|text| {
            ConfigErrors::single(&level.origin, &text).print();
            Exit::Unusable
        })?;
        Ok(Self { _guard: guard, metrics_file })
    }

    /// Writes the metrics file, if the user asked for one.
    pub(crate) fn finish(self, metrics: &Metrics) -> Exit {
        let Some((path, mut file)) = self.metrics_file else { return Exit::Success };
        match file.write_all(metrics.render().as_bytes()) {
            Ok(()) => Exit::Success,
            Err(error) => write_failed(&path, &error),
        }
    }
}

fn write_failed(path: &Path, error: &std::io::Error) -> Exit {
    let (path, why) = (display_path(path), describe_io_error(error));
    fail(&format!("the metrics cannot be written to {path}: {why}"))
}
