//! The real `redflow serve` as a process that can be killed and started again, at the end of a cable.

use super::cable::Cable;
use super::node_red::show;
use super::{PATIENCE, eventually};
use crate::built::redflow;
use crate::client::{Reply, Request};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use tempfile::TempDir;

/// The token of every sidecar of these tests.
pub(crate) const TOKEN: &str = "token-of-the-node-red-tests";

/// A sidecar, ended with its test.
pub(crate) struct Sidecar {
    data: TempDir,
    pub(crate) cable: Cable,
    running: Option<(Child, SocketAddr)>,
    said: Arc<Mutex<String>>,
    /// What stands in its configuration, but for the server's hosts.
    config: String,
    /// Further variables of its environment.
    pub(crate) env: Vec<(&'static str, String)>,
}

impl Sidecar {
    /// A cable with nothing at its end yet.
    pub(crate) async fn away() -> Self {
        // What is asked to stop does not wait long for tools that are held.
        Self::away_with("drain_ms = 300\n").await
    }

    /// The same, with more in its configuration.
    pub(crate) async fn away_with(config: &str) -> Self {
        Self {
            data: tempfile::tempdir().unwrap(),
            cable: Cable::new().await,
            running: None,
            said: Arc::default(),
            config: config.to_owned(),
            env: Vec::new(),
        }
    }

    /// Where Node-RED finds it.
    pub(crate) fn url(&self) -> String {
        self.cable.url()
    }

    /// Everything it has said.
    pub(crate) fn log(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Starts it, or starts it again.
    pub(crate) fn come(&mut self) {
        assert!(self.running.is_none(), "it still runs");
        let config = self.data.path().join("sidecar.toml");
        let text = format!("[server]\nhosts = [\"{}\"]\n{}", self.cable.addr, self.config);
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(redflow());
        command.args(["serve", "--listen", "127.0.0.1:0", "--log", "debug", "--config"]).arg(config);
        command.arg("--data").arg(self.data.path()).current_dir(self.data.path()).env("NO_COLOR", "1");
        for (name, _) in std::env::vars_os() {
            let is_ours =
                name.to_str().is_some_and(|name| name.starts_with("REDFLOW_") || name.ends_with("_API_KEY"));
            if is_ours {
                command.env_remove(name);
            }
        }
        command.env("REDFLOW_TOKEN", TOKEN).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (tell, listens) = mpsc::channel();
        let said = Arc::clone(&self.said);
        // Read to the end, or it waits when the pipe is full.
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("listening on http://") {
                    let _ = tell.send(rest.split(['"', ' ']).next().unwrap().parse::<SocketAddr>().unwrap());
                }
                *said.lock().unwrap() += &(line + "\n");
            }
        });
        let Ok(addr) = listens.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the sidecar does not listen: {}", self.log());
        };
        self.cable.lead_to(Some(addr));
        self.running = Some((child, addr));
    }

    /// Ends it as a power cut does.
    pub(crate) fn kill(&mut self) {
        let (mut child, _) = self.running.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        self.cable.lead_to(None);
    }

    /// Ends it as a service manager does.
    pub(crate) async fn stop(&mut self) {
        let (mut child, _) = self.running.take().unwrap();
        let done = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(done.success());
        eventually("the sidecar stops", async || child.try_wait().unwrap()).await;
        self.cable.lead_to(None);
    }

    /// Where it answers itself, without the cable.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.running.as_ref().expect("it does not run").1
    }

    fn request(&self, method: &str, path: &str) -> Request {
        let (_, addr) = self.running.as_ref().expect("it does not run");
        Request::new(*addr, method, path).token(TOKEN)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.request("GET", path).send().await.ok(200)
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.request("POST", path).json(body).send().await
    }

    /// The runs it knows, newest first.
    pub(crate) async fn runs(&self) -> Vec<Value> {
        self.get("/api/runs").await["runs"].as_array().unwrap().clone()
    }

    /// The places where these words stand: files of the data directory, what it said.
    pub(crate) fn holding(&self, words: &str) -> Vec<String> {
        let mut found = files_holding(self.data.path(), words);
        if self.log().contains(words) {
            found.push("its log".to_owned());
        }
        found
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            show("the sidecar", &self.log());
        }
    }
}

/// The files of a folder, and of those in it, that hold these words.
pub(crate) fn files_holding(folder: &Path, words: &str) -> Vec<String> {
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
            // What is deleted meanwhile holds nothing.
            let bytes = std::fs::read(&path).unwrap_or_default();
            if bytes.windows(words.len()).any(|part| part == words.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}
