//! A server that is a program: started without a shell, confined, bounded and ended with its group of processes.

use crate::definition::ServerDefinition;
use crate::repair::repair;
use crate::settings::ConfineCommand;
use crate::text::clean_line;
use redflow_contract::mcp::McpNetwork;
use redflow_contract::scrub::Scrubber;
use secrecy::ExposeSecret as _;
use std::ffi::OsString;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// The most bytes of a message that a program sends.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// How many bytes of the output are read at once.
const READ_BYTES: usize = 65_536;

/// The last bytes of the standard error output that are kept for the reason.
pub(crate) const KEPT_STDERR_BYTES: usize = 4_096;

/// The most lines of the standard error output that are logged in a second.
const LOGGED_LINES_PER_SECOND: u32 = 20;

/// The most characters of a line of the standard error output in a text for people.
const MAX_LINE_CHARS: usize = 300;

/// How long a program has to end by itself.
const END_TIME: Duration = Duration::from_secs(1);

/// How long the last lines of a program that has ended may take.
const LAST_LINES_TIME: Duration = Duration::from_millis(300);

/// A running program. It ends with its group of processes when this is dropped. A process that left the group ends too if
/// the program has namespaces.
pub(crate) struct Program {
    child: Child,
    /// The number of its process group. It is the one of the program, also after the program has ended.
    group: Option<u32>,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_reader: JoinHandle<()>,
    scrubber: Scrubber,
    too_long: Arc<AtomicBool>,
}

/// The pipes to a program.
pub(crate) struct ProgramPipes {
    pub(crate) input: ChildStdin,
    pub(crate) output: CheckedLines<ChildStdout>,
}

impl Program {
    /// Starts the program of a server in its own folder.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub(crate) async fn start(
        definition: &ServerDefinition,
        folder: &Path,
        confine: Option<&ConfineCommand>,
    ) -> Result<(Self, ProgramPipes), String> {
        let own = folder.join(&definition.name);
        make_private_folder(folder)
            .and_then(|()| make_private_folder(&own))
            .map_err(|error| format!("The folder of the program cannot be made: {error}."))?;
        let mut command = command_of(definition, &own, confine);
        let mut child = command.spawn().map_err(|error| {
            let name = definition.server.command.as_deref().unwrap_or_default();
            format!("The program `{}` cannot be started: {error}.", clean_line(name, MAX_LINE_CHARS))
        })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err("The program has no pipes.".to_owned());
        };
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let (kept, scrubber) = (Arc::clone(&stderr), definition.scrubber.clone());
        let reader = read_stderr(errors, kept, scrubber.clone(), definition.name.clone());
        let stderr_reader = tokio::spawn(reader);
        let too_long = Arc::new(AtomicBool::new(false));
        let output = CheckedLines::new(output, Arc::clone(&too_long));
        let group = child.id();
        let program = Self { child, group, stderr, stderr_reader, scrubber, too_long };
        Ok((program, ProgramPipes { input, output }))
    }

    /// Waits until the program has ended.
    pub(crate) async fn ended(&mut self) {
        let _ = self.child.wait().await;
    }

    /// Why the program can no longer be used, for people.
    pub(crate) async fn reason(&mut self) -> String {
        if self.too_long.load(Ordering::Relaxed) {
            return format!("The program sent a message of more than {MAX_MESSAGE_BYTES} bytes.");
        }
        let status = tokio::time::timeout(LAST_LINES_TIME, self.child.wait()).await;
        let mut reason = match status {
            Ok(Ok(status)) => match status.code() {
                Some(code) => format!("The program ended with exit code {code}"),
                None => format!("The program was ended by a signal ({status})"),
            },
            Ok(Err(_)) | Err(_) => "The program closed its output".to_owned(),
        };
        let _ = tokio::time::timeout(LAST_LINES_TIME, &mut self.stderr_reader).await;
        let kept = self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // What was cut may begin within a secret.
        let whole = match kept.len() >= KEPT_STDERR_BYTES {
            true => kept.iter().position(|byte| *byte == b'\n').map_or(kept.len(), |end| end + 1),
            false => 0,
        };
        let text = String::from_utf8_lossy(kept.get(whole..).unwrap_or_default()).into_owned();
        match text.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => {
                let mut line = line.to_owned();
                self.scrubber.text(&mut line);
                reason.push_str(": ");
                reason.push_str(&clean_line(&line, MAX_LINE_CHARS));
            }
            None => reason.push('.'),
        }
        reason
    }

    /// Ends the program: its input is closed already, so it can end by itself.
    pub(crate) async fn stop(mut self) {
        if tokio::time::timeout(END_TIME, self.child.wait()).await.is_err() {
            self.signal_group(GroupSignal::End);
            let _ = tokio::time::timeout(END_TIME, self.child.wait()).await;
        }
    }

    #[cfg(unix)]
    fn signal_group(&mut self, signal: GroupSignal) {
        let number = self.group.and_then(|group| i32::try_from(group).ok());
        if let Some(group) = number.and_then(rustix::process::Pid::from_raw) {
            let signal = match signal {
                GroupSignal::End => rustix::process::Signal::TERM,
                GroupSignal::Kill => rustix::process::Signal::KILL,
            };
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    #[cfg(not(unix))]
    fn signal_group(&mut self, _signal: GroupSignal) {
        let _ = self.child.start_kill();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal_group(GroupSignal::Kill);
        self.stderr_reader.abort();
    }
}

/// How a group of processes is ended.
#[derive(Clone, Copy)]
enum GroupSignal {
    /// They can still do something first.
    End,
    /// At once.
    Kill,
}

/// Makes a folder that only its owner can use, also if it was made before with other rights.
fn make_private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let permissions = path.metadata()?.permissions();
        if permissions.mode() & 0o077 != 0 {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(permissions.mode() & 0o700))?;
        }
    }
    Ok(())
}

fn command_of(definition: &ServerDefinition, folder: &Path, confine: Option<&ConfineCommand>) -> Command {
    let server = &definition.server;
    let program = server.command.as_deref().unwrap_or_default();
    let mut words: Vec<OsString> = Vec::new();
    if let Some(confine) = confine {
        words.extend_from_slice(&confine.words);
        words.extend(confine.namespaces.then(|| "--namespaces".into()));
        words.extend(["--folder".into(), folder.into()]);
        for (flag, paths) in [("--read", &server.read), ("--write", &server.write)] {
            words.extend(paths.iter().flat_map(|path| [flag.into(), path.into()]));
        }
        if server.network == Some(McpNetwork::None) {
            words.extend(["--network".into(), "none".into()]);
        }
        words.push("--".into());
    }
    words.push(program.into());
    words.extend(server.args.iter().map(OsString::from));
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).env_clear().current_dir(folder).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command.env("HOME", folder).env("TMPDIR", folder).envs(&server.env);
    command.envs(definition.secrets.iter().map(|(name, value)| (name, value.expose_secret())));
    #[cfg(unix)]
    command.process_group(0);
    command
}

/// Keeps the last bytes, and logs some lines. It never stops reading, so the program never waits for it.
async fn read_stderr(mut errors: ChildStderr, kept: Arc<Mutex<Vec<u8>>>, scrubber: Scrubber, server: String) {
    let mut chunk = vec![0; KEPT_STDERR_BYTES];
    let mut limit = LogLimit { second: Instant::now(), logged: 0 };
    let mut line = LogLine::default();
    while let Ok(count @ 1..) = errors.read(&mut chunk).await {
        let read = chunk.get(..count).unwrap_or_default();
        {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(read);
            let surplus = kept.len().saturating_sub(KEPT_STDERR_BYTES);
            kept.drain(..surplus);
        }
        if !tracing::enabled!(tracing::Level::DEBUG) {
            continue;
        }
        for mut text in line.complete(read) {
            if limit.admits(Instant::now()) {
                scrubber.text(&mut text);
                tracing::debug!(server, line = clean_line(&text, MAX_LINE_CHARS), "an MCP server wrote");
            }
        }
    }
}

/// Lets some lines of each second through.
struct LogLimit {
    second: Instant,
    logged: u32,
}

impl LogLimit {
    fn admits(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.second) >= Duration::from_secs(1) {
            (self.second, self.logged) = (now, 0);
        }
        self.logged = self.logged.saturating_add(1);
        self.logged <= LOGGED_LINES_PER_SECOND
    }
}

/// A line that is not complete. Only whole lines are logged, because no one finds half a secret.
#[derive(Default)]
struct LogLine {
    begin: Vec<u8>,
    is_too_long: bool,
}

impl LogLine {
    /// The lines that end with these bytes. Empty ones and those that are too long are left out.
    fn complete(&mut self, read: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            self.is_too_long |= self.begin.len() + part.len() > KEPT_STDERR_BYTES;
            if !self.is_too_long {
                self.begin.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                let text = String::from_utf8_lossy(&self.begin).trim().to_owned();
                if !self.is_too_long && !text.is_empty() {
                    lines.push(text);
                }
                *self = Self::default();
            }
        }
        lines
    }
}

/// Reads whole lines, and repairs them. It ends the stream when a line is too long: the reader behind it would drop the
/// line, and its caller would wait for an answer that never comes.
pub(crate) struct CheckedLines<R> {
    inner: R,
    /// The line that is not complete.
    line: Vec<u8>,
    /// Whole lines that the reader has not taken.
    ready: Vec<u8>,
    /// How many bytes of them it has taken.
    taken: usize,
    chunk: Vec<u8>,
    too_long: Arc<AtomicBool>,
}

impl<R> CheckedLines<R> {
    fn new(inner: R, too_long: Arc<AtomicBool>) -> Self {
        let chunk = vec![0; READ_BYTES];
        Self { inner, line: Vec::new(), ready: Vec::new(), taken: 0, chunk, too_long }
    }

    /// Adds what was read. Gives whether the line is short enough.
    fn add(&mut self, count: usize) -> bool {
        let chunk = std::mem::take(&mut self.chunk);
        for part in chunk.get(..count).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() > MAX_MESSAGE_BYTES {
                return false;
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let message = line.get(..line.len() - 1).unwrap_or_default();
                self.ready.extend_from_slice(&repair(message));
                self.ready.push(b'\n');
            }
        }
        self.chunk = chunk;
        true
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for CheckedLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        loop {
            let left = this.ready.get(this.taken..).unwrap_or_default();
            if !left.is_empty() {
                let count = left.len().min(buffer.remaining());
                buffer.put_slice(left.get(..count).unwrap_or_default());
                this.taken += count;
                return Poll::Ready(Ok(()));
            }
            (this.ready, this.taken) = (Vec::new(), 0);
            if this.too_long.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            let mut chunk = ReadBuf::new(&mut this.chunk);
            std::task::ready!(Pin::new(&mut this.inner).poll_read(context, &mut chunk))?;
            let count = chunk.filled().len();
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
            if !this.add(count) {
                this.too_long.store(true, Ordering::Relaxed);
                this.line = Vec::new();
            }
        }
    }
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
