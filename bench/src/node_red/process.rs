//! A real Node-RED as a process with its own user directory, as npm installs it.
//!
//! A function node in it starts the runs: one HTTP request for a whole round.

use super::flow::{FlowFiles, ORDERS};
use crate::Failure;
use crate::clock::micros_of;
use crate::folder::Folder;
use redflow_testkit::LoggedProcess;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The log line before its port.
const LISTENING: &str = "now running at http://127.0.0.1:";

/// The log line when its flow has started.
const STARTED: &str = "Started flows";

/// The time limit of a start.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The time limit of a round.
const ROUND_LIMIT: Duration = Duration::from_secs(600);

/// The time limit of a stop.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// How many lines of its log an error shows.
const SHOWN_LINES: usize = 60;

/// Disables requests to the internet, and nothing else.
const SETTINGS: &str = r#"module.exports = {
    uiHost: "127.0.0.1",
    uiPort: 0,
    flowFile: "flows.json",
    credentialSecret: false,
    telemetry: { enabled: false, updateNotification: false },
    externalModules: { autoInstall: false, palette: { allowInstall: false } },
    logging: { console: { level: "info", metrics: false, audit: false } },
};
"#;

/// An installed release line of Node-RED, and our palette module.
pub(crate) struct Installation {
    /// The program of Node.js.
    pub(crate) node: PathBuf,
    /// The folder of the package `node-red`.
    pub(crate) package: PathBuf,
    /// A `node_modules` folder with our packed palette module.
    pub(crate) palette: PathBuf,
}

impl Installation {
    pub(crate) fn version(&self) -> Result<String, Failure> {
        let package: Value = serde_json::from_slice(&std::fs::read(self.package.join("package.json"))?)?;
        let node = Command::new(&self.node).arg("--version").output()?.stdout;
        let version = package["version"].as_str().unwrap_or_default();
        Ok(format!("Node-RED {version}, Node.js {}", String::from_utf8_lossy(&node).trim()))
    }
}

/// A running Node-RED. Drop stops it.
pub(crate) struct NodeRed {
    process: LoggedProcess,
    port: u16,
    /// Removed after the process has ended.
    _folder: Folder,
}

/// Whether the user directory has our palette module.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Palette {
    Installed,
    Missing,
}

impl NodeRed {
    /// Starts it with a flow.
    pub(crate) fn start(
        installation: &Installation,
        files: &FlowFiles,
        palette: Palette,
    ) -> Result<Self, Failure> {
        let folder = Folder::temporary()?;
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("settings.js", SETTINGS)?;
        write("flows.json", &files.flow.to_string())?;
        write("flows_cred.json", &files.credentials.to_string())?;
        if palette == Palette::Installed {
            link(&installation.palette, &folder.path().join("node_modules"))?;
        }
        let mut command = Command::new(&installation.node);
        command.arg(installation.package.join("red.js")).arg("--userDir").arg(folder.path());
        // Without the user's settings, except those of Node.js: they can request a profile.
        command.env_clear().env("HOME", folder.path());
        command
            .envs(["PATH", "NODE_OPTIONS"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        let mut started = Self { process: LoggedProcess::start(command)?, port: 0, _folder: folder };
        started.wait()?;
        Ok(started)
    }

    /// Waits until it listens and its flow has started. The order of the two differs.
    fn wait(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + START_LIMIT;
        let mut started = false;
        while !started || self.port == 0 {
            let Some(line) = self.process.next_line(deadline.saturating_duration_since(Instant::now()))
            else {
                return Err(self.failure("Node-RED did not start"));
            };
            self.port = parse_port(&line).unwrap_or(self.port);
            started |= line.ends_with(STARTED);
        }
        Ok(())
    }

    /// Microseconds of processor time so far, of all its threads.
    pub(crate) fn cpu(&self) -> Result<f64, Failure> {
        micros_of(&self.process.id().to_string())
    }

    /// Runs `runs` runs, `at_once` of them at a time. All must complete.
    pub(crate) fn drive(&self, runs: usize, at_once: usize) -> Result<(), Failure> {
        let counts = self.post_order(runs, at_once).map_err(|failure| self.failure(&failure.to_string()))?;
        if counts["ended"] == json!(runs) && counts["wrong"] == json!(0) {
            return Ok(());
        }
        Err(self.failure(&format!("runs failed: {counts}")))
    }

    fn post_order(&self, runs: usize, at_once: usize) -> Result<Value, Failure> {
        let mut stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))?;
        stream.set_read_timeout(Some(ROUND_LIMIT))?;
        let body = json!({"runs": runs, "atOnce": at_once}).to_string();
        let head = format!(
            "POST {ORDERS} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        let (head, body) = response.split_once("\r\n\r\n").ok_or("Node-RED does not answer")?;
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(format!("Node-RED answers: {head}").into());
        }
        Ok(serde_json::from_str(body)?)
    }

    fn failure(&self, what: &str) -> Failure {
        let log = self.process.stdout();
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        format!("{what}; the end of its log:\n{}", last.join("\n")).into()
    }
}

impl Drop for NodeRed {
    fn drop(&mut self) {
        interrupt(self.process.id());
        let deadline = Instant::now() + STOP_LIMIT;
        // Its output ends with the process.
        while self.process.next_line(deadline.saturating_duration_since(Instant::now())).is_some() {}
    }
}

fn parse_port(line: &str) -> Option<u16> {
    let rest = line.split_once(LISTENING)?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Sends SIGINT, as Ctrl-C does, so that Node.js writes a profile.
#[cfg(unix)]
fn interrupt(id: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    let _ = pid.map(|pid| kill_process(pid, Signal::INT));
}

#[cfg(not(unix))]
fn interrupt(_: u32) {}

#[cfg(unix)]
fn link(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::parse_port;

    #[test]
    fn finds_the_port_in_the_log() {
        assert_eq!(
            parse_port("15 Nov 17:00:00 - [info] Server now running at http://127.0.0.1:40123/"),
            Some(40123)
        );
        assert_eq!(
            parse_port("15 Nov 17:00:00 - [info] connected to redflow 0.1.0 at http://127.0.0.1:1881"),
            None
        );
    }
}
