//! The caller's side: starts a process for each document, gives it the job and bounds it.

use crate::error::WorkerError;
use crate::jobs::{HtmlText, PdfText};
use crate::limits::{FILTER_AVAILABLE, MAX_JOB_BYTES, MAX_RESULT_BYTES};
use crate::protocol::{
    AnswerHeader, FailureReason, JobHeader, JobKind, MAX_HEADER_BYTES, NO_FILTER_ARGUMENT, WORKER_ARGUMENT,
    header_line,
};
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

/// The workers that one [`Worker`] has at once. More documents wait.
pub const MAX_PROCESSES: usize = 2;

/// The time for a document, if the settings name no other.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The whole environment of a worker. The program's allocator then takes memory as it needs it. Otherwise it takes a
/// gibibyte at its start, before the limit of memory is set, and the limit would come too late.
const ENVIRONMENT: [(&str, &str); 1] = [("MIMALLOC_ARENA_EAGER_COMMIT", "0")];

/// How workers are started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSettings {
    /// The program that is a worker if its first argument is `worker`. None: this program.
    pub program: Option<PathBuf>,
    /// The time for a document. Then its worker is killed.
    pub timeout: Duration,
    /// Whether a worker must filter its system calls. Without it, only the limits of memory, time and files apply,
    /// and on some systems none but the timeout.
    pub filter: bool,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self { program: None, timeout: DEFAULT_TIMEOUT, filter: true }
    }
}

/// Reads documents in processes of their own.
///
/// A dropped future kills its process. On Linux a process also ends with the thread that started it, so poll the
/// futures on threads that live as long as the runtime.
#[derive(Debug)]
pub struct Worker {
    settings: WorkerSettings,
    slots: Semaphore,
}

impl Worker {
    /// Starts no process yet.
    #[must_use]
    pub const fn new(settings: WorkerSettings) -> Self {
        Self { settings, slots: Semaphore::const_new(MAX_PROCESSES) }
    }

    /// Reads an HTML document as Markdown. Bytes that are not UTF-8 become replacement characters.
    ///
    /// # Errors
    /// Why there is no text.
    pub async fn read_html(&self, html: Vec<u8>) -> Result<HtmlText, WorkerError> {
        self.perform(JobKind::Html, html).await
    }

    /// Reads the text of a PDF document, page by page.
    ///
    /// # Errors
    /// Why there is no text.
    pub async fn read_pdf(&self, pdf: Vec<u8>) -> Result<PdfText, WorkerError> {
        self.perform(JobKind::Pdf, pdf).await
    }

    async fn perform<T>(&self, job: JobKind, document: Vec<u8>) -> Result<T, WorkerError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        if document.len() > MAX_JOB_BYTES {
            return Err(WorkerError::TooLarge);
        }
        if self.settings.filter && !FILTER_AVAILABLE {
            return Err(WorkerError::SandboxUnavailable);
        }
        let result = {
            let _slot = self.slots.acquire().await.map_err(|_| WorkerError::NotStarted)?;
            let mut child = self.command().spawn().map_err(|_| WorkerError::NotStarted)?;
            let exchange = exchange(&mut child, job, &document);
            let answer = tokio::time::timeout(self.settings.timeout, exchange).await;
            // It has answered, or it gets no more time. Its status tells whether the kernel ended it before.
            let _ = child.start_kill();
            let status = child.wait().await;
            match answer {
                Ok(Some(answer)) => answer?,
                Ok(None) if status.is_ok_and(is_out_of_time) => return Err(WorkerError::TimedOut),
                Ok(None) => return Err(WorkerError::Ended),
                Err(_) => return Err(WorkerError::TimedOut),
            }
        };
        drop(document);
        // A large result takes a while to parse.
        let parsed = tokio::task::spawn_blocking(move || serde_json::from_slice(&result).ok()).await;
        parsed.ok().flatten().ok_or(WorkerError::Ended)
    }

    fn command(&self) -> Command {
        let mut command = match &self.settings.program {
            Some(program) => Command::new(program),
            None => this_program(),
        };
        command.arg(WORKER_ARGUMENT);
        if !self.settings.filter {
            command.arg(NO_FILTER_ARGUMENT);
        }
        command.env_clear().envs(ENVIRONMENT).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Its own group: the signals of a terminal are for this process, which ends its workers.
        #[cfg(unix)]
        command.process_group(0).current_dir("/");
        command
    }
}

/// This program, even if its file was replaced since it started.
#[cfg(target_os = "linux")]
fn this_program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("redflow");
    command
}

/// This program. Without its path the start fails.
#[cfg(not(target_os = "linux"))]
fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap_or_default())
}

/// Gives the job to the worker and reads its answer. None: it ended without one, or sent something else.
async fn exchange(child: &mut Child, job: JobKind, document: &[u8]) -> Option<Result<Vec<u8>, WorkerError>> {
    let mut input = child.stdin.take()?;
    let output = child.stdout.take()?;
    let send = async move {
        let header = header_line(&JobHeader { job, bytes: document.len() });
        // A worker that ends early closes the pipe. Its answer says why, so the error says nothing new.
        if input.write_all(&header).await.is_ok() {
            let _ = input.write_all(document).await;
        }
    };
    let receive = async move {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        (&mut output).take(MAX_HEADER_BYTES).read_until(b'\n', &mut line).await.ok()?;
        let header: AnswerHeader = serde_json::from_slice(&line).ok()?;
        match header {
            AnswerHeader { ok: true, bytes: Some(bytes), reason: None } if bytes <= MAX_RESULT_BYTES => {
                let mut result = Vec::new();
                output.take(bytes as u64).read_to_end(&mut result).await.ok()?;
                (result.len() == bytes).then_some(Ok(result))
            }
            AnswerHeader { ok: false, bytes: None, reason: Some(reason) } => Some(Err(match reason {
                FailureReason::Sandbox => WorkerError::SandboxUnavailable,
                FailureReason::Document(problem) => WorkerError::Unreadable(problem),
            })),
            _ => None,
        }
    };
    // An answer may come before the whole job is read.
    tokio::pin!(send, receive);
    tokio::select! {
        biased;
        answer = &mut receive => answer,
        () = &mut send => receive.await,
    }
}

/// Whether the kernel ended the worker because it used its processor time.
#[cfg(unix)]
fn is_out_of_time(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(rustix::process::Signal::XCPU.as_raw())
}

#[cfg(not(unix))]
const fn is_out_of_time(_: ExitStatus) -> bool {
    false
}
