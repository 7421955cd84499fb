//! The real binary as a process, as a user of Redflow starts it.

use crate::client::PATIENCE;
use redflow_testkit::{LoggedProcess, redflow_binary, remove_settings};
use std::net::SocketAddr;
use std::process::Command;
use tempfile::TempDir;

/// The origin of the UI's pages.
pub(crate) const ORIGIN: &str = "http://localhost:5173";

/// A sidecar. Drop kills it.
pub(crate) struct Sidecar {
    process: LoggedProcess,
    pub(crate) addr: SocketAddr,
    data: TempDir,
}

/// The data and the output of a sidecar that has stopped.
pub(crate) struct StoppedSidecar {
    pub(crate) data: TempDir,
    /// Stdout and stderr.
    pub(crate) output: [String; 2],
}

impl Sidecar {
    pub(crate) fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = Command::new(redflow_binary().unwrap());
        command.args(["serve", "--redflow-ui", ORIGIN, "--listen", "127.0.0.1:0"]);
        command.args(["--log", "debug", "--data"]).arg(data.path());
        command.current_dir(data.path()).env("NO_COLOR", "1");
        remove_settings(&mut command);
        let mut process = LoggedProcess::start(command).unwrap();
        let addr = process.wait_for_address(PATIENCE).unwrap();
        Self { process, addr, data }
    }

    /// Its own token, for requests that the UI does not send.
    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.data.path().join("token")).unwrap().trim().to_owned()
    }

    /// Asks it to stop, as a service manager does.
    pub(crate) fn terminate(&self) {
        self.process.terminate().unwrap();
    }

    /// Waits until it has stopped.
    pub(crate) fn wait(self) -> StoppedSidecar {
        let exit = self.process.wait(PATIENCE).unwrap();
        assert_eq!(exit.code, Some(0), "{}", exit.stderr);
        StoppedSidecar { data: self.data, output: [exit.stdout, exit.stderr] }
    }
}

impl StoppedSidecar {
    /// The files of the data directory, and the output, that contain a text.
    pub(crate) fn places_containing(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut files = 0;
        let mut folders = vec![self.data.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                files += 1;
                if contains(&std::fs::read(&path).unwrap(), text) {
                    found.push(path.display().to_string());
                }
            }
        }
        assert!(files >= 3, "nothing was stored");
        found.extend(self.output.iter().filter(|output| output.contains(text)).cloned());
        found
    }
}

pub(crate) fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}
