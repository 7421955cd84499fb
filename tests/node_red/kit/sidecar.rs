//! The real `redflow serve` as a process behind a cable. Tests kill it and start it again.

use super::cable::Cable;
use super::node_red::print_log;
use super::{TIME_LIMIT, eventually};
use crate::client::{Reply, Request};
use redflow_testkit::{LoggedProcess, redflow_binary, remove_settings};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The token of every sidecar of these tests.
pub(crate) const TOKEN: &str = "token-of-the-node-red-tests";

/// A sidecar. Drop kills it.
pub(crate) struct Sidecar {
    data: TempDir,
    pub(crate) cable: Cable,
    /// All its processes. Those that have ended keep their logs.
    processes: Vec<LoggedProcess>,
    /// The address of the last process while it runs.
    running: Option<SocketAddr>,
    /// Its configuration, without the server's hosts.
    config: String,
    /// More variables of its environment.
    pub(crate) env: Vec<(&'static str, String)>,
}

impl Sidecar {
    /// A sidecar that is not started yet.
    pub(crate) async fn new() -> Self {
        // A stop must not wait long for tools that the witness holds.
        Self::with_config("drain_ms = 300\n").await
    }

    /// The same with another configuration.
    pub(crate) async fn with_config(config: &str) -> Self {
        Self {
            data: tempfile::tempdir().unwrap(),
            cable: Cable::new().await,
            processes: Vec::new(),
            running: None,
            config: config.to_owned(),
            env: Vec::new(),
        }
    }

    /// Writes the manifest of tools into its data directory.
    pub(crate) fn write_manifest(&self, manifest: &Value) {
        std::fs::write(self.data.path().join("tools.json"), manifest.to_string()).unwrap();
    }

    /// The address for Node-RED.
    pub(crate) fn url(&self) -> String {
        self.cable.url()
    }

    /// The log of all its processes.
    pub(crate) fn log(&self) -> String {
        self.processes.iter().map(LoggedProcess::stderr).collect()
    }

    /// Starts it, also again.
    pub(crate) fn start(&mut self) {
        assert!(self.running.is_none(), "it still runs");
        let config = self.data.path().join("sidecar.toml");
        let text = format!("[server]\nhosts = [\"{}\"]\n{}", self.cable.addr, self.config);
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(redflow_binary().unwrap());
        command.args(["serve", "--listen", "127.0.0.1:0", "--log", "debug", "--config"]).arg(config);
        command.arg("--data").arg(self.data.path()).current_dir(self.data.path()).env("NO_COLOR", "1");
        remove_settings(&mut command);
        command.env("REDFLOW_TOKEN", TOKEN).envs(self.env.iter().map(|(name, value)| (name, value)));
        let mut process = LoggedProcess::start(command).unwrap();
        let addr = process.wait_for_address(TIME_LIMIT).unwrap();
        self.cable.connect_to(Some(addr));
        self.processes.push(process);
        self.running = Some(addr);
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        self.running_process().kill().unwrap();
        self.disconnect();
    }

    /// Ends it as a service manager does.
    pub(crate) async fn stop(&mut self) {
        let process = self.running_process();
        process.terminate().unwrap();
        eventually("the sidecar stops", async || process.has_ended().then_some(())).await;
        self.disconnect();
    }

    fn running_process(&mut self) -> &mut LoggedProcess {
        assert!(self.running.is_some(), "it does not run");
        self.processes.last_mut().unwrap()
    }

    fn disconnect(&mut self) {
        self.running = None;
        self.cable.connect_to(None);
    }

    /// Its own address, without the cable.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.running.expect("it does not run")
    }

    fn request(&self, method: &str, path: &str) -> Request {
        Request::new(self.addr(), method, path).token(TOKEN)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.request("GET", path).send().await.ok(200)
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.request("POST", path).json(body).send().await
    }

    /// Its runs, newest first.
    pub(crate) async fn runs(&self) -> Vec<Value> {
        self.get("/api/runs").await["runs"].as_array().unwrap().clone()
    }

    /// The files of its data directory, and its log, that contain a text.
    pub(crate) fn places_containing(&self, text: &str) -> Vec<String> {
        let mut places = files_containing(self.data.path(), text);
        if self.log().contains(text) {
            places.push("its log".to_owned());
        }
        places
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        if std::thread::panicking() {
            print_log("the sidecar", &self.log());
        }
    }
}

/// The files in a folder and its subfolders that contain a text.
pub(crate) fn files_containing(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // A file may be deleted in the meantime.
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}
