//! A process whose output is read while it runs, such as a sidecar.

use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a process is asked whether it has ended.
const POLL: Duration = Duration::from_millis(2);

/// What a server prints before its address.
const LISTENING: &str = "listening on http://";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

#[derive(Debug, Default)]
struct Log {
    lines: Vec<(Stream, String)>,
    /// How many of the two streams are at their end.
    ended: usize,
}

impl Log {
    fn text(&self, stream: Stream) -> String {
        let lines = self.lines.iter().filter(|(of, _)| *of == stream);
        lines.flat_map(|(_, line)| [line.as_str(), "\n"]).collect()
    }

    fn has_ended(&self) -> bool {
        self.ended == 2
    }
}

/// The log, and a signal for each change of it.
type SharedLog = Arc<(Mutex<Log>, Condvar)>;

/// A running process. Drop kills it.
#[derive(Debug)]
pub struct LoggedProcess {
    child: Child,
    log: SharedLog,
    /// How many lines [`Self::next_line`] has given.
    read_lines: usize,
}

/// How a process ended.
#[derive(Debug)]
pub struct Exit {
    /// None if a signal ended it.
    pub code: Option<i32>,
    /// Everything it printed to stdout.
    pub stdout: String,
    /// Everything it printed to stderr.
    pub stderr: String,
}

impl LoggedProcess {
    /// Starts a command without stdin.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let log = SharedLog::default();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        read_in_background(stdout, Stream::Stdout, Arc::clone(&log));
        read_in_background(stderr, Stream::Stderr, Arc::clone(&log));
        Ok(Self { child, log, read_lines: 0 })
    }

    /// Waits for the next line of stdout or stderr. Gives none if the process ends before or takes too long.
    pub fn next_line(&mut self, limit: Duration) -> Option<String> {
        let end = Instant::now() + limit;
        let mut log = lock(&self.log);
        loop {
            if let Some((_, line)) = log.lines.get(self.read_lines) {
                self.read_lines += 1;
                return Some(line.clone());
            }
            let left = end.saturating_duration_since(Instant::now());
            if log.has_ended() || left.is_zero() {
                return None;
            }
            log = self.log.1.wait_timeout(log, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for the next line that contains `text`, and skips the lines before it.
    pub fn wait_for(&mut self, text: &str, limit: Duration) -> Option<String> {
        let end = Instant::now() + limit;
        loop {
            let line = self.next_line(end.saturating_duration_since(Instant::now()))?;
            if line.contains(text) {
                return Some(line);
            }
        }
    }

    /// Waits until a server prints its address.
    ///
    /// # Errors
    /// If it prints none in time. The message contains its output.
    pub fn wait_for_address(&mut self, limit: Duration) -> Result<SocketAddr, String> {
        let line = self.wait_for(LISTENING, limit);
        line.and_then(|line| parse_address(&line))
            .ok_or_else(|| format!("the server does not listen: {}{}", self.stdout(), self.stderr()))
    }

    /// Everything it has printed to stdout so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        lock(&self.log).text(Stream::Stdout)
    }

    /// Everything it has printed to stderr so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        lock(&self.log).text(Stream::Stderr)
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Sends SIGTERM, as a service manager does.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn terminate(&self) -> Result<(), String> {
        let status = Command::new("kill").args(["-TERM", &self.id().to_string()]).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            other => Err(format!("SIGTERM cannot be sent: {other:?}")),
        }
    }

    /// Sends SIGKILL, as a crash does, and waits for the end.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn kill(&mut self) -> Result<(), String> {
        self.child.kill().and_then(|()| self.child.wait()).map(drop).map_err(|error| error.to_string())
    }

    /// Waits for the end and for all output.
    ///
    /// # Errors
    /// If it takes too long, which kills it.
    pub fn wait(mut self, limit: Duration) -> Result<Exit, String> {
        let end = Instant::now() + limit;
        let code = loop {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status.code(),
                None if Instant::now() > end => {
                    return Err(format!("the process hangs; its output: {}{}", self.stdout(), self.stderr()));
                }
                None => pause(),
            }
        };
        let mut log = lock(&self.log);
        while !log.has_ended() {
            log = self.log.1.wait(log).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(Exit { code, stdout: log.text(Stream::Stdout), stderr: log.text(Stream::Stderr) })
    }
}

impl Drop for LoggedProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Removes the settings of the user who runs the tests from a command: `REDFLOW_*` and the keys of providers.
pub fn remove_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let is_setting =
            name.to_str().is_some_and(|name| name.starts_with("REDFLOW_") || name.ends_with("_API_KEY"));
        if is_setting {
            command.env_remove(name);
        }
    }
}

/// Reads a stream to its end: a process stops at a full pipe.
fn read_in_background(pipe: Option<impl Read + Send + 'static>, stream: Stream, log: SharedLog) {
    std::thread::spawn(move || {
        let mut reader = pipe.map(BufReader::new);
        let mut line = Vec::new();
        while reader.as_mut().is_some_and(|pipe| pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0))
        {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
            lock(&log).lines.push((stream, text));
            log.1.notify_all();
            line.clear();
        }
        lock(&log).ended += 1;
        log.1.notify_all();
    });
}

#[allow(
    clippy::disallowed_methods,
    reason = "the standard library cannot wait for a process with a time limit"
)]
fn pause() {
    std::thread::sleep(POLL);
}

fn lock(log: &SharedLog) -> MutexGuard<'_, Log> {
    log.0.lock().unwrap_or_else(PoisonError::into_inner)
}

fn parse_address(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(LISTENING)?;
    let address = rest.split(|char: char| char.is_whitespace() || char == '"').next()?;
    address.trim_end_matches(':').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{LoggedProcess, parse_address};
    use std::process::Command;
    use std::time::Duration;

    const LIMIT: Duration = Duration::from_secs(60);

    fn start(script: &str) -> LoggedProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        LoggedProcess::start(command).unwrap()
    }

    #[test]
    fn finds_the_address_in_what_a_server_prints() {
        let address = Some(([127, 0, 0, 1], 40123).into());
        for line in [
            "redflow 0.1.0 listening on http://127.0.0.1:40123: 1 tab with 1 agent",
            "listening on http://127.0.0.1:40123",
            r#"{"message":"listening on http://127.0.0.1:40123"}"#,
        ] {
            assert_eq!(parse_address(line), address, "{line}");
        }
        assert_eq!(parse_address("redflow 0.1.0 starts"), None);
    }

    #[cfg(unix)]
    #[test]
    fn reads_both_streams_and_the_exit_code() {
        let mut process = start("echo one; echo two >&2; sleep 0.1; echo three >&2; exit 3");
        assert_eq!(process.wait_for("th", LIMIT).as_deref(), Some("three"));
        assert_eq!(process.wait_for("th", LIMIT), None, "each line is given once");
        let exit = process.wait(LIMIT).unwrap();
        assert_eq!(
            (exit.code, exit.stdout.as_str(), exit.stderr.as_str()),
            (Some(3), "one\n", "two\nthree\n")
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_hangs_is_an_error_with_its_output() {
        let mut process = start("echo here; sleep 100");
        process.wait_for("here", LIMIT).unwrap();
        assert!(process.wait(Duration::from_millis(1)).unwrap_err().contains("here"));
        assert!(start("exit 1").wait_for_address(LIMIT).unwrap_err().contains("does not listen"));
    }
}
