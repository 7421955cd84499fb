//! The benchmark itself as a child process.

use crate::Failure;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

/// A child process. Drop kills it.
pub(crate) struct Probe(Child);

impl Probe {
    /// Starts one with the kind of probe and its arguments.
    pub(crate) fn start(kind: &str, args: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(kind).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(Self(command.spawn()?))
    }

    /// Its process id.
    pub(crate) fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Waits for its figures.
    pub(crate) fn figures(&mut self) -> Result<Figures, Failure> {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().ok_or("a probe has no stdout")?).read_line(&mut line)?;
        Ok(Figures(serde_json::from_str(&line).map_err(|_| "a probe stopped too early")?))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The figures of a probe, by name.
pub(crate) struct Figures(Value);

impl Figures {
    pub(crate) fn get(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or(f64::NAN)
    }

    pub(crate) fn count(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_default()
    }
}

/// Prints figures for the parent process.
pub(crate) fn print_figures(figures: &Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{figures}")?;
    out.flush()
}

/// Waits until the parent process kills this one or ends.
pub(crate) fn wait_for_end() -> std::io::Result<()> {
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

/// Prints figures and waits for the end.
pub(crate) fn print_and_wait(figures: &Value) -> Result<(), Failure> {
    print_figures(figures)?;
    Ok(wait_for_end()?)
}
