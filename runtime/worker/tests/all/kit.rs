//! A worker of the test program, and links that make the program behave badly.

use redflow_worker::{HtmlText, PdfText, Worker, WorkerError, WorkerSettings};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The test program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_redflow-worker-program");

/// Enough for documents that a limit of memory or a parser ends, also without optimisation.
const TIMEOUT: Duration = Duration::from_secs(20);

/// For documents that keep a parser busy for longer.
pub(crate) const SHORT: Duration = Duration::from_secs(2);

/// How much longer than its timeout a call may take, on a busy machine.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) fn worker_of(program: impl Into<PathBuf>, timeout: Duration) -> Worker {
    Worker::new(WorkerSettings { program: Some(program.into()), timeout, filter: true })
}

/// Links to the test program. The name of a link says how the program behaves.
pub(crate) struct Links(TempDir);

impl Links {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn program(&self, behaviour: &str) -> PathBuf {
        let link = self.0.path().join(behaviour);
        if !link.exists() {
            std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
        }
        link
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn read_html(html: impl Into<Vec<u8>>) -> Result<HtmlText, WorkerError> {
    read_html_within(TIMEOUT, html)
}

pub(crate) fn read_html_within(time: Duration, html: impl Into<Vec<u8>>) -> Result<HtmlText, WorkerError> {
    in_time(time, || block_on(worker_of(PROGRAM, time).read_html(html.into())))
}

pub(crate) fn read_pdf(pdf: impl Into<Vec<u8>>) -> Result<PdfText, WorkerError> {
    read_pdf_within(TIMEOUT, pdf)
}

pub(crate) fn read_pdf_within(time: Duration, pdf: impl Into<Vec<u8>>) -> Result<PdfText, WorkerError> {
    in_time(time, || block_on(worker_of(PROGRAM, time).read_pdf(pdf.into())))
}

fn in_time<T>(time: Duration, call: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = call();
    assert!(start.elapsed() < time + GRACE, "it took {:?}", start.elapsed());
    result
}
