//! The worker's side: limits first, then one job and one answer.

use crate::error::DocumentProblem;
use crate::jobs;
use crate::limits::{MAX_JOB_BYTES, MAX_RESULT_BYTES, limit_self};
use crate::protocol::{AnswerHeader, FailureReason, JobHeader, JobKind, MAX_HEADER_BYTES, header_line};
use serde::Serialize;
use std::io::{self, BufRead, Read as _, Write};

/// Why a worker did not answer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The pipes do not work.
    #[error("the worker cannot read its job or write its answer")]
    Pipe(#[from] io::Error),
    /// The input is not a job.
    #[error("this command is for the program itself: it expects a job on standard input")]
    NotAJob,
}

/// Makes this process a worker: limits it, reads one job from standard input, and writes the answer to standard
/// output. A panic of a parser is not caught: it ends the process, and the caller takes that as the answer.
///
/// # Errors
/// Why there is no answer.
pub fn run(filter: bool) -> Result<(), RunError> {
    let mut output = take_output()?;
    if limit_self(filter).is_err() {
        output.write_all(&header_line(&AnswerHeader::failure(FailureReason::Sandbox)))?;
        return Ok(());
    }
    let (job, document) = read_job(&mut io::stdin().lock())?;
    let result = match job {
        JobKind::Html => jobs::read_html(document).and_then(|text| to_json(&text)),
        JobKind::Pdf => jobs::read_pdf(document).and_then(|text| to_json(&text)),
    };
    match result {
        Ok(result) => {
            output.write_all(&header_line(&AnswerHeader::result(result.len())))?;
            output.write_all(&result)?;
        }
        Err(problem) => {
            output.write_all(&header_line(&AnswerHeader::failure(FailureReason::Document(problem))))?;
        }
    }
    Ok(output.flush()?)
}

/// Takes standard output for the answer. What a library prints goes nowhere.
#[cfg(unix)]
fn take_output() -> io::Result<impl Write> {
    let output = rustix::io::dup(io::stdout())?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(std::fs::File::from(output))
}

#[cfg(not(unix))]
fn take_output() -> io::Result<impl Write> {
    Ok(io::stdout())
}

fn read_job(input: &mut impl BufRead) -> Result<(JobKind, Vec<u8>), RunError> {
    let mut line = Vec::new();
    input.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
    let header: JobHeader = serde_json::from_slice(&line).map_err(|_| RunError::NotAJob)?;
    if header.bytes > MAX_JOB_BYTES {
        return Err(RunError::NotAJob);
    }
    let mut document = Vec::with_capacity(header.bytes);
    input.take(header.bytes as u64).read_to_end(&mut document)?;
    if document.len() == header.bytes { Ok((header.job, document)) } else { Err(RunError::NotAJob) }
}

fn to_json(text: &impl Serialize) -> Result<Vec<u8>, DocumentProblem> {
    let json = serde_json::to_vec(text).map_err(|_| DocumentProblem::TextTooLarge)?;
    if json.len() > MAX_RESULT_BYTES { Err(DocumentProblem::TextTooLarge) } else { Ok(json) }
}

#[cfg(test)]
mod tests {
    use super::{RunError, read_job};
    use crate::limits::MAX_JOB_BYTES;
    use crate::protocol::JobKind;

    #[test]
    fn a_job_is_its_header_and_its_bytes() {
        let (job, document) = read_job(&mut &b"{\"job\":\"html\",\"bytes\":3}\nabcdef"[..]).unwrap();
        assert_eq!((job, document.as_slice()), (JobKind::Html, &b"abc"[..]));
    }

    #[test]
    fn anything_else_is_no_job() {
        let too_large = format!("{{\"job\":\"pdf\",\"bytes\":{}}}\n", MAX_JOB_BYTES + 1);
        let long_line = "x".repeat(1 << 20);
        for input in ["", "\n", "{\"job\":\"html\",\"bytes\":3}\nab", &too_large, &long_line] {
            assert!(matches!(read_job(&mut input.as_bytes()), Err(RunError::NotAJob)), "{:.40}", input);
        }
    }
}
