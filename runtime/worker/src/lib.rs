//! Reads PDF and HTML documents in a process of its own, with limits; and confines programs of others.
//!
//! Parsers of such formats panic, loop and use much memory on hostile input. So [`Worker`] starts a process for each
//! document, and the process limits itself before it reads a byte of it. Whatever happens there, the caller gets a
//! text or a [`WorkerError`].
//!
//! | limit | value | who enforces it |
//! |---|---|---|
//! | size of a document and of its text | [`MAX_JOB_BYTES`], [`MAX_RESULT_BYTES`] | both processes |
//! | pages of a PDF | [`MAX_PAGES`] | both processes |
//! | time | [`WorkerSettings::timeout`] | the caller kills the worker |
//! | processor time, memory | [`CPU_SECONDS`], [`MEMORY_BYTES`] | the kernel |
//! | files, sockets, processes, signals | none | the kernel, by a filter of system calls |
//! | workers at once | [`MAX_PROCESSES`] | [`Worker`] |
//!
//! | module | what it owns |
//! |---|---|
//! | `worker` | the caller's side: starts a process, gives it a job, bounds it |
//! | `error` | why a document has no text |
//! | `protocol` | what the two processes say to each other |
//! | `run` | the worker's side: limits first, then one job |
//! | `limits` | the limits that a worker sets for itself |
//! | `jobs` | the jobs, a file each |
//! | `confine` | starts a program that may use only the files that it needs |

mod confine;
mod error;
mod jobs;
mod limits;
mod protocol;
mod run;
mod worker;

pub use confine::{
    ConfineError, ConfineSupport, Confinement, PROGRAM_FILE_BYTES, PROGRAM_MEMORY_BYTES, PROGRAM_OPEN_FILES,
    check_namespaces, confine_support,
};
pub use error::{DocumentProblem, WorkerError};
pub use jobs::{HtmlText, PdfText};
pub use limits::{
    CPU_SECONDS, LimitError, MAX_JOB_BYTES, MAX_PAGES, MAX_RESULT_BYTES, MEMORY_BYTES, STACK_BYTES,
    hide_memory, limit_self,
};
pub use run::{RunError, run};
pub use worker::{DEFAULT_TIMEOUT, MAX_PROCESSES, Worker, WorkerSettings};
