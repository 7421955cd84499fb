//! The real `redflow`, built with the places where a test may stop it, and a data directory for it.

use super::witness::Witness;
use crate::process;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What takes longer than this hangs.
pub(super) const HANGS: Duration = Duration::from_secs(60);

pub(super) struct Rig {
    binary: PathBuf,
    folder: PathBuf,
    pub(super) witness: Witness,
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct Done {
    /// None if it was killed, or had to be because it hung.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Rig {
    /// Builds the binary and an empty folder to work in.
    pub(super) fn build(root: &Path) -> Result<Self, String> {
        let metadata =
            process::read(process::cargo(root, ["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
        let target =
            PathBuf::from(metadata["target_directory"].as_str().ok_or("cargo names no target folder")?);
        eprintln!("building redflow with failpoints …");
        // The whole workspace, so that its dependencies are the ones the tests have built.
        let build = |features: &[&str]| {
            let mut command = process::cargo(
                root,
                ["build", "--quiet", "--workspace", "--exclude", "redflow-bench", "--bins"],
            );
            command.args(features);
            process::check(command)
        };
        build(&["--features", "redflow-cli/faults"])?;
        let name = format!("redflow{}", std::env::consts::EXE_SUFFIX);
        let binary = target.join("faults").join(&name);
        let wrong = |error: std::io::Error| format!("{}: {error}", binary.display());
        std::fs::create_dir_all(target.join("faults")).map_err(wrong)?;
        std::fs::copy(target.join("debug").join(&name), &binary).map_err(wrong)?;
        // The binary of users goes back to its place.
        build(&[])?;
        let folder = target.join("faults/work");
        let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(wrong)?;
        }
        std::fs::create_dir_all(&folder).map_err(wrong)?;
        Ok(Self { binary, folder, witness: Witness::start()? })
    }

    /// A new, empty place of this name.
    pub(super) fn place(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Writes a flow into a place.
    pub(super) fn flow(place: &Path, flow: &Value) -> Result<String, String> {
        let path = place.join("flow.json");
        std::fs::write(&path, flow.to_string()).map_err(|error| error.to_string())?;
        Ok(path.display().to_string())
    }

    /// `redflow` with the data directory of a place.
    pub(super) fn redflow(&self, place: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(args);
        self.in_place(&mut command, place);
        command
    }

    /// `redflow` under a limit on the size of files, in KiB.
    pub(super) fn redflow_in_a_small_room(&self, place: &Path, kib: u32, args: &[&str]) -> Command {
        // A write beyond the limit is an error, not a signal, once the signal is ignored.
        let script = format!("trap '' XFSZ; ulimit -f {kib}; exec \"$0\" \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &script]).arg(&self.binary).args(args);
        self.in_place(&mut command, place);
        command
    }

    fn in_place(&self, command: &mut Command, place: &Path) {
        command
            .env("REDFLOW_DATA", place.join("data"))
            .env("REDFLOW_WITNESS", self.witness.address.to_string())
            .env_remove("REDFLOW_FAILPOINT")
            .env_remove("REDFLOW_CLOCK_OFFSET_MS");
    }

    /// Runs a command to its end.
    pub(super) fn end(&self, place: &Path, args: &[&str]) -> Result<Done, String> {
        Started::new(self.redflow(place, args))?.end(HANGS)
    }

    /// The runs of a place, as `redflow runs list --json` tells them.
    pub(super) fn runs(&self, place: &Path) -> Result<Vec<Value>, String> {
        let done = self.end(place, &["runs", "list", "--json", "--limit", "100000"])?;
        if done.code != Some(0) {
            return Err(format!("`runs list` ended with {:?}: {}", done.code, done.stderr));
        }
        done.stdout
            .lines()
            .map(|line| serde_json::from_str(line).map_err(|error| error.to_string()))
            .collect()
    }

    /// Whether every stored run replays; says what does not.
    pub(super) fn replay_all(&self, place: &Path) -> Result<(), String> {
        let done = self.end(place, &["replay", "--all"])?;
        if done.code == Some(0) { Ok(()) } else { Err(format!("replay: {}{}", done.stdout, done.stderr)) }
    }
}

/// A command under way, with what it says.
pub(super) struct Started {
    child: Child,
    stderr: mpsc::Receiver<String>,
    said: Vec<String>,
    stdout: mpsc::Receiver<String>,
}

impl Started {
    pub(super) fn new(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", process::shown(&command)))?;
        let (lines, stderr) = mpsc::channel();
        if let Some(pipe) = child.stderr.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    if lines.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let (whole, stdout) = mpsc::channel();
        if let Some(mut pipe) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut text = String::new();
                let _ = pipe.read_to_string(&mut text);
                let _ = whole.send(text);
            });
        }
        Ok(Self { child, stderr, said: Vec::new(), stdout })
    }

    /// Waits until it says something that holds `text`; false if it ended before.
    pub(super) fn says(&mut self, text: &str, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while let Ok(line) = self.stderr.recv_timeout(end.saturating_duration_since(Instant::now())) {
            let found = line.contains(text);
            self.said.push(line);
            if found {
                return true;
            }
        }
        false
    }

    /// SIGKILL, now.
    pub(super) fn kill(mut self) -> Result<(), String> {
        self.child.kill().and_then(|()| self.child.wait()).map(drop).map_err(|error| error.to_string())
    }

    /// SIGTERM, now.
    pub(super) fn terminate(&self) -> Result<(), String> {
        let mut kill = Command::new("kill");
        kill.args(["-TERM", &self.child.id().to_string()]);
        if process::works(kill) { Ok(()) } else { Err("it cannot be told to stop".to_owned()) }
    }

    /// What it has said so far.
    pub(super) fn said(&mut self) -> &[String] {
        self.said.extend(self.stderr.try_iter());
        &self.said
    }

    /// Whether it has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits for its end; kills it if it takes too long.
    pub(super) fn end(mut self, limit: Duration) -> Result<Done, String> {
        let end = Instant::now() + limit;
        let code = loop {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status.code(),
                None if Instant::now() > end => {
                    self.child.kill().and_then(|()| self.child.wait()).map_err(|error| error.to_string())?;
                    return Err(format!("it hangs; it said: {}", self.said.join(" | ")));
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        self.said.extend(self.stderr.iter());
        let stdout = self.stdout.recv().unwrap_or_default();
        Ok(Done { code, stdout, stderr: self.said.join("\n") })
    }
}

/// Whatever goes wrong, nothing is left behind.
impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
