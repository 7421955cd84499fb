//! The real `redflow`, built with places to stop at, and a data directory for it.

use super::witness::Witness;
use redflow_testkit::{Exit, LoggedProcess};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn binary_name() -> String {
    format!("redflow{}", std::env::consts::EXE_SUFFIX)
}

/// A process that takes longer hangs.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(60);

pub(super) struct Rig {
    binary: PathBuf,
    pub(super) target: PathBuf,
    work: PathBuf,
    pub(super) witness: Witness,
}

impl Rig {
    /// The `redflow` beside this program, with an empty work folder.
    pub(super) fn beside_this_program() -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let folder = program.parent().ok_or("this program is in no folder")?;
        let (binary, target) = (folder.join(binary_name()), folder.parent().unwrap_or(folder).to_owned());
        if !binary.exists() {
            return Err(format!(
                "{} is missing: run `cargo xtask faults`, which builds it",
                binary.display()
            ));
        }
        Self::new(binary, target)
    }

    fn new(binary: PathBuf, target: PathBuf) -> Result<Self, String> {
        let work = target.join("faults/work");
        let failed = |error: std::io::Error| format!("{}: {error}", work.display());
        if work.exists() {
            std::fs::remove_dir_all(&work).map_err(failed)?;
        }
        std::fs::create_dir_all(&work).map_err(failed)?;
        Ok(Self { binary, target, work, witness: Witness::start()? })
    }

    /// A new, empty folder of this name.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.work.join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Writes a flow into a folder and returns its path.
    pub(super) fn write_flow(folder: &Path, flow: &Value) -> Result<String, String> {
        let path = folder.join("flow.json");
        std::fs::write(&path, flow.to_string()).map_err(|error| error.to_string())?;
        Ok(path.display().to_string())
    }

    /// `redflow` with the data directory of a folder.
    pub(super) fn redflow(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args);
        self.set_env(&mut command, folder);
        command
    }

    /// `redflow` under a limit on the size of files, in KiB.
    pub(super) fn redflow_with_file_limit(&self, folder: &Path, kib: u32, args: &[&str]) -> Command {
        // A write beyond the limit is an error, not a signal, once the signal is ignored.
        let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).arg(&self.binary).args(args);
        self.set_env(&mut command, folder);
        command
    }

    fn set_env(&self, command: &mut Command, folder: &Path) {
        command
            .env("REDFLOW_DATA", folder.join("data"))
            .env("REDFLOW_WITNESS", self.witness.address.to_string())
            .env_remove("REDFLOW_FAILPOINT")
            .env_remove("REDFLOW_CLOCK_OFFSET_MS");
    }

    /// Runs `redflow` to its end.
    pub(super) fn run(&self, folder: &Path, args: &[&str]) -> Result<Exit, String> {
        LoggedProcess::start(self.redflow(folder, args))?.wait(TIME_LIMIT)
    }

    /// The runs of a folder, from `redflow runs list --json`.
    pub(super) fn list_runs(&self, folder: &Path) -> Result<Vec<Value>, String> {
        let exit = self.run(folder, &["runs", "list", "--json", "--limit", "100000"])?;
        if exit.code != Some(0) {
            return Err(format!("`runs list` ended with {:?}: {}", exit.code, exit.stderr));
        }
        exit.stdout
            .lines()
            .map(|line| serde_json::from_str(line).map_err(|error| error.to_string()))
            .collect()
    }

    /// Replays every stored run. An error names the differences.
    pub(super) fn replay_all(&self, folder: &Path) -> Result<(), String> {
        let exit = self.run(folder, &["replay", "--all"])?;
        if exit.code == Some(0) { Ok(()) } else { Err(format!("replay: {}{}", exit.stdout, exit.stderr)) }
    }
}
