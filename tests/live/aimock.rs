//! The mock of the providers as a process, with a recorder before it.

use crate::recorder::Recorder;
use crate::validator;
use redflow_testkit::{HttpRequest, LoggedProcess};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The time limit of a start.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The oldest version that runs the mock.
const OLDEST_NODE: (u32, u32) = (20, 15);

/// A running mock. Drop kills it.
pub(crate) struct Aimock {
    port: u16,
    _process: LoggedProcess,
    recorder: Recorder,
    _fixtures: tempfile::TempDir,
}

/// How a mock is started.
#[derive(Default)]
pub(crate) struct Options<'a> {
    /// Milliseconds between the pieces of a stream.
    pub(crate) latency: u32,
    /// The only key that it accepts.
    pub(crate) key: Option<&'a str>,
}

impl Aimock {
    pub(crate) fn start(fixtures: &[Value]) -> Self {
        Self::start_with(fixtures, Options::default())
    }

    pub(crate) fn start_with(fixtures: &[Value], options: Options<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fixtures.json");
        std::fs::write(&file, json!({"fixtures": fixtures}).to_string()).unwrap();
        let mut command = Command::new(node());
        command.arg(peers().join("node_modules/@copilotkit/aimock/dist/cli.js"));
        command.args(["-p", "0", "-h", "127.0.0.1", "--strict", "--log-level", "info"]);
        command.args(["-l", &options.latency.to_string(), "-f"]).arg(&file);
        command.env_remove("AIMOCK_API_KEYS");
        if let Some(key) = options.key {
            command.env("AIMOCK_API_KEYS", key);
        }
        let mut process = LoggedProcess::start(command).unwrap();
        let port = process.wait_for_address(START_LIMIT).unwrap().port();
        let mock = Self { port, _process: process, recorder: Recorder::before(port), _fixtures: folder };
        assert_eq!(mock.get("/health"), json!({"status": "ok"}));
        mock
    }

    /// The address of the recorder.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.recorder.port)
    }

    /// The requests since the last call. Each must satisfy the validator.
    #[track_caller]
    pub(crate) fn requests(&self) -> Vec<HttpRequest> {
        let requests = self.recorder.take();
        for request in &requests {
            let problems = validator::problems_of(request);
            assert!(problems.is_empty(), "{} {problems:#?}\n{:#}", request.path, request.json().unwrap());
        }
        requests
    }

    /// Drops the requests since the last call, after a failed test of a table.
    pub(crate) fn forget_requests(&self) {
        drop(self.recorder.take());
    }

    /// The status of every response of the mock.
    pub(crate) fn statuses(&self) -> Vec<u64> {
        let journal = self.get("/__aimock/journal");
        let entries = journal.as_array().unwrap();
        entries.iter().map(|entry| entry["response"]["status"].as_u64().unwrap()).collect()
    }

    fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        // HTTP 1.0 has no chunked bodies.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// A Node.js that runs the mock, with the mock installed. The system's own, or one from npm if that is too old.
fn node() -> PathBuf {
    let peers = peers();
    let ours = peers.join("node22");
    install(&peers);
    let version = Command::new("node").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if version.is_ok_and(|version| runs_the_mock(&version)) {
        return "node".into();
    }
    install(&ours);
    let node = ours.join("node_modules/.bin/node");
    assert!(
        node.exists(),
        "these tests need Node.js {}.{} or newer, and npm has none for this system: install one",
        OLDEST_NODE.0,
        OLDEST_NODE.1
    );
    node
}

/// Installs what the lock file names, unless that was done since it last changed.
fn install(folder: &Path) {
    // Each test is a process of its own: one of them installs, the others wait for it.
    std::fs::create_dir_all(peers().join("dist")).unwrap();
    let lock = File::create(peers().join("dist/install.lock")).unwrap();
    lock.lock().unwrap();
    let changed = |name: &str| std::fs::metadata(folder.join(name)).and_then(|data| data.modified()).ok();
    // npm writes this file last.
    let installed = changed("node_modules/.package-lock.json");
    let is_new = |name: &str| changed(name) > installed;
    if installed.is_some() && !is_new("package.json") && !is_new("package-lock.json") {
        return;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(folder).stdin(Stdio::null());
    let done = npm.output().expect("these tests need npm, to install the mock of the providers");
    assert!(done.status.success(), "`npm ci` failed: {}", String::from_utf8_lossy(&done.stderr));
}

fn runs_the_mock(version: &str) -> bool {
    let mut numbers = version.trim().trim_start_matches('v').split('.').map_while(|part| part.parse().ok());
    numbers.next().zip(numbers.next()).is_some_and(|found| found >= OLDEST_NODE)
}

#[test]
fn knows_which_versions_of_node_run_the_mock() {
    for (version, fits) in
        [("v18.19.0\n", false), ("v20.14.9", false), ("v20.15.0", true), ("v22.1.0", true), ("what", false)]
    {
        assert_eq!(runs_the_mock(version), fits, "{version}");
    }
}

/// The Node.js from npm runs the mock too. Systems with an old Node.js use it.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
#[ignore = "fetches 100 MB; run it after changing tests/peers/node22"]
fn the_node_from_npm_runs() {
    let ours = peers().join("node22");
    install(&ours);
    let output = Command::new(ours.join("node_modules/.bin/node")).arg("--version").output().unwrap();
    assert!(runs_the_mock(&String::from_utf8_lossy(&output.stdout)));
}
