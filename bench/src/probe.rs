//! The benchmark once more, as a process of its own.

use crate::Failure;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

/// Such a process. Killed when this is dropped.
pub(crate) struct Probe(Child);

impl Probe {
    /// Starts one: what kind of probe it is, and what it is to do.
    pub(crate) fn start(kind: &str, args: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(kind).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(Self(command.spawn()?))
    }

    /// Its number, as the system has it.
    pub(crate) fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// What it says, once it is where it is to be.
    pub(crate) fn figures(&mut self) -> Result<Figures, Failure> {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().ok_or("a probe says nothing")?).read_line(&mut line)?;
        Ok(Figures(serde_json::from_str(&line).map_err(|_| "a probe stopped before its time")?))
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a probe says, by name.
pub(crate) struct Figures(Value);

impl Figures {
    pub(crate) fn get(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or(f64::NAN)
    }

    pub(crate) fn count(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_default()
    }
}

/// Says something as a probe.
pub(crate) fn tell(figures: &Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{figures}")?;
    out.flush()
}

/// Waits for the end: whoever listens kills this process, or is gone.
pub(crate) fn wait_for_the_end() -> std::io::Result<()> {
    std::io::stdin().read_to_end(&mut Vec::new()).map(drop)
}

/// Says something, and waits for the end.
pub(crate) fn say(figures: &Value) -> Result<(), Failure> {
    tell(figures)?;
    Ok(wait_for_the_end()?)
}
