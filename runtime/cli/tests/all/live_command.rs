//! A running command whose stderr a test reads live, and signals for it.

use crate::kit::{Call, Output, Running, code_of};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::process::{ChildStderr, Command};

/// A running command, and the part of its stderr that was read.
pub(crate) struct LiveCommand {
    pub(crate) running: Running,
    stderr: BufReader<ChildStderr>,
    read: String,
}

impl LiveCommand {
    pub(crate) fn start(call: Call, input: &str) -> Self {
        let mut running = call.spawn();
        running.0.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let stderr = BufReader::new(running.0.stderr.take().unwrap());
        Self { running, stderr, read: String::new() }
    }

    /// Reads stderr up to a line with this beginning, with or without the tag of its run.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, words: &str) {
        loop {
            let begin = self.read.len();
            let more = self.stderr.read_line(&mut self.read).unwrap();
            assert!(more > 0, "stderr ended without `{words}`: {}", self.read);
            let line = &self.read[begin..];
            let untagged = line.split_once(' ').filter(|(tag, _)| tag.len() == 6).map(|(_, rest)| rest);
            if line.starts_with(words) || untagged.is_some_and(|line| line.starts_with(words)) {
                return;
            }
        }
    }

    /// Sends a signal, such as `-INT`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.running.0.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Kills the process, as a crash would.
    pub(crate) fn kill(mut self) {
        self.running.0.kill().unwrap();
        self.running.0.wait().unwrap();
    }

    #[track_caller]
    pub(crate) fn end(mut self) -> Output {
        let mut stdout = String::new();
        self.running.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut self.read).unwrap();
        Output { code: code_of(self.running.0.wait().unwrap()), stdout, stderr: self.read }
    }
}
