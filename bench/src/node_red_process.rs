//! A real Node-RED in a process of its own, as npm installs it, with a user directory of its own.
//!
//! Runs are made inside it, by orders over HTTP: one request for a whole round.

use crate::Failure;
use crate::clock::micros_of;
use crate::folder::Folder;
use crate::node_red_flow::{Deployed, ORDERS};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What it says when it listens, before its port.
const UP: &str = "now running at http://127.0.0.1:";

/// What it says when its flow is there, which may be later.
const STARTED: &str = "Started flows";

/// From its start until its flow answers.
const STARTS_WITHIN: Duration = Duration::from_secs(120);

/// The longest round.
const ORDER_WITHIN: Duration = Duration::from_secs(600);

/// From being asked to stop until it is stopped.
const STOPS_WITHIN: Duration = Duration::from_secs(20);

/// Lines of its log that are kept.
const LINES: usize = 60;

/// What Node-RED looks up when nobody says otherwise is switched off; nothing else is.
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

/// Where a line of Node-RED is installed, and our palette module for it.
pub(crate) struct Line {
    /// The program of Node.js.
    pub(crate) node: PathBuf,
    /// The folder of the package `node-red`.
    pub(crate) package: PathBuf,
    /// A `node_modules` folder with our palette module as it is packed.
    pub(crate) palette: PathBuf,
}

impl Line {
    pub(crate) fn version(&self) -> Result<String, Failure> {
        let package: Value = serde_json::from_slice(&std::fs::read(self.package.join("package.json"))?)?;
        let node = Command::new(&self.node).arg("--version").output()?.stdout;
        let version = package["version"].as_str().unwrap_or_default();
        Ok(format!("Node-RED {version}, Node.js {}", String::from_utf8_lossy(&node).trim()))
    }
}

/// A Node-RED that answers. Stopped when this is dropped.
pub(crate) struct NodeRed {
    child: Child,
    port: u16,
    log: Arc<Mutex<VecDeque<String>>>,
    told: Receiver<Told>,
    /// Goes after the process.
    _folder: Folder,
}

/// What matters of what it says. Its end is the end of the channel.
enum Told {
    Listens(u16),
    Started,
}

impl NodeRed {
    /// Starts one with this flow.
    pub(crate) fn start(line: &Line, deployed: &Deployed, with_palette: bool) -> Result<Self, Failure> {
        let folder = Folder::temporary()?;
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("settings.js", SETTINGS)?;
        write("flows.json", &deployed.flow.to_string())?;
        write("flows_cred.json", &deployed.credentials.to_string())?;
        if with_palette {
            link(&line.palette, &folder.path().join("node_modules"))?;
        }
        let mut command = Command::new(&line.node);
        command.arg(line.package.join("red.js")).arg("--userDir").arg(folder.path());
        // Nothing of whoever measures, but what they want of Node.js: a profile, for example.
        command.env_clear().env("HOME", folder.path());
        command
            .envs(["PATH", "NODE_OPTIONS"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn()?;
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let told = listen(child.stdout.take().ok_or("Node-RED says nothing")?, &log);
        let mut started = Self { child, port: 0, log, told, _folder: folder };
        started.wait()?;
        Ok(started)
    }

    /// Until it listens and its flow is there.
    fn wait(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + STARTS_WITHIN;
        let mut started = false;
        while !started || self.port == 0 {
            match self.told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Told::Listens(port)) => self.port = port,
                Ok(Told::Started) => started = true,
                Err(RecvTimeoutError::Timeout) => return Err(self.failure("Node-RED did not start")),
                Err(RecvTimeoutError::Disconnected) => return Err(self.failure("Node-RED stopped")),
            }
        }
        Ok(())
    }

    /// Microseconds of processor time so far, of all its threads.
    pub(crate) fn cpu(&self) -> Result<f64, Failure> {
        micros_of(&self.child.id().to_string())
    }

    /// So many runs, so many of them at any time; all must end well.
    pub(crate) fn drive(&self, runs: usize, at_once: usize) -> Result<(), Failure> {
        let told = self.order(runs, at_once).map_err(|failure| self.failure(&failure.to_string()))?;
        if told["ended"] == json!(runs) && told["wrong"] == json!(0) {
            return Ok(());
        }
        Err(self.failure(&format!("runs went wrong: {told}")))
    }

    fn order(&self, runs: usize, at_once: usize) -> Result<Value, Failure> {
        let mut stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))?;
        stream.set_read_timeout(Some(ORDER_WITHIN))?;
        let body = json!({"runs": runs, "atOnce": at_once}).to_string();
        let head = format!(
            "POST {ORDERS} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("Node-RED does not answer")?;
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(format!("Node-RED answers: {head}").into());
        }
        Ok(serde_json::from_str(body)?)
    }

    fn failure(&self, what: &str) -> Failure {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = log.iter().map(String::as_str).collect();
        format!("{what}; the last it said:\n{}", lines.join("\n")).into()
    }
}

impl Drop for NodeRed {
    fn drop(&mut self) {
        ask_to_stop(&self.child);
        let deadline = Instant::now() + STOPS_WITHIN;
        // What it says ends with it.
        while self.told.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps the last it says, and hands on what matters.
fn listen(said: impl Read + Send + 'static, log: &Arc<Mutex<VecDeque<String>>>) -> Receiver<Told> {
    let (tell, told) = channel();
    let log = Arc::clone(log);
    std::thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            let matters = port(&line).map(Told::Listens);
            if let Some(matters) = matters.or_else(|| line.ends_with(STARTED).then_some(Told::Started)) {
                // Nobody may be listening any more.
                let _ = tell.send(matters);
            }
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            if log.len() == LINES {
                log.pop_front();
            }
            log.push_back(line);
        }
    });
    told
}

fn port(line: &str) -> Option<u16> {
    let rest = line.split_once(UP)?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// As a person does with Ctrl-C, so that a profile is written.
#[cfg(unix)]
fn ask_to_stop(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let _ = pid.map(|pid| kill_process(pid, Signal::INT));
}

#[cfg(not(unix))]
fn ask_to_stop(_: &Child) {}

#[cfg(unix)]
fn link(there: &Path, here: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(there, here)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::port;

    #[test]
    fn node_red_says_where_it_is() {
        assert_eq!(
            port("15 Nov 17:00:00 - [info] Server now running at http://127.0.0.1:40123/"),
            Some(40123)
        );
        assert_eq!(
            port("15 Nov 17:00:00 - [info] connected to redflow 0.1.0 at http://127.0.0.1:1881"),
            None
        );
    }
}
