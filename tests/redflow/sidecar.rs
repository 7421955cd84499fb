//! The real binary as a process, as a user of Redflow starts it.

use crate::built::redflow;
use crate::client::PATIENCE;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use tempfile::TempDir;

/// Where the UI's pages come from.
pub(crate) const ORIGIN: &str = "http://localhost:5173";

/// A sidecar, ended with its test.
pub(crate) struct Sidecar {
    running: Running,
    pub(crate) addr: SocketAddr,
    data: TempDir,
    said: [JoinHandle<String>; 2],
}

/// Nothing outlives its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is left of one that has stopped.
pub(crate) struct Remains {
    pub(crate) data: TempDir,
    /// What it wrote to stdout and stderr.
    pub(crate) said: [String; 2],
}

impl Sidecar {
    pub(crate) fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut command = Command::new(redflow());
        command.args([
            "serve",
            "--redflow-ui",
            ORIGIN,
            "--listen",
            "127.0.0.1:0",
            "--log",
            "debug",
            "--data",
        ]);
        command.arg(data.path()).current_dir(data.path()).env("NO_COLOR", "1");
        for (name, _) in std::env::vars_os() {
            let is_ours =
                name.to_str().is_some_and(|name| name.starts_with("REDFLOW_") || name.ends_with("_API_KEY"));
            if is_ours {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        let mut stdout = running.0.stdout.take().unwrap();
        let mut stderr = BufReader::new(running.0.stderr.take().unwrap());
        let (tell, listens) = mpsc::channel();
        // Both are read to the end, or it waits when a pipe is full.
        let errors = std::thread::spawn(move || {
            let mut said = String::new();
            loop {
                let begin = said.len();
                if stderr.read_line(&mut said).unwrap() == 0 {
                    return said;
                }
                if let Some((_, rest)) = said[begin..].split_once("listening on http://") {
                    let addr = rest.split(['"', ' ', '\n']).next().unwrap().parse::<SocketAddr>();
                    let _ = tell.send(addr);
                }
            }
        });
        let output = std::thread::spawn(move || {
            let mut said = String::new();
            stdout.read_to_string(&mut said).unwrap();
            said
        });
        match listens.recv_timeout(PATIENCE) {
            Ok(Ok(addr)) => Self { running, addr, data, said: [output, errors] },
            other => {
                drop(running);
                panic!("it does not listen: {other:?}: {}", errors.join().unwrap());
            }
        }
    }

    /// Its own token, for what the UI does not do.
    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.data.path().join("token")).unwrap().trim().to_owned()
    }

    /// Asks it to stop, as a service manager does.
    pub(crate) fn ask_to_stop(&self) {
        let done = Command::new("kill").args(["-TERM", &self.running.0.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    /// Waits until it has stopped.
    pub(crate) fn stopped(mut self) -> Remains {
        let status = self.running.0.wait().unwrap();
        let said = self.said.map(|reading| reading.join().unwrap());
        assert!(status.success(), "{status}: {}", said[1]);
        Remains { data: self.data, said }
    }
}

impl Remains {
    /// The places where these words stand: files of the data directory, what it said.
    pub(crate) fn holding(&self, words: &str) -> Vec<String> {
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
                if holds(&std::fs::read(&path).unwrap(), words) {
                    found.push(path.display().to_string());
                }
            }
        }
        assert!(files >= 3, "nothing was kept");
        found.extend(self.said.iter().filter(|said| said.contains(words)).cloned());
        found
    }
}

pub(crate) fn holds(bytes: &[u8], words: &str) -> bool {
    bytes.windows(words.len()).any(|part| part == words.as_bytes())
}
