//! What the two processes say to each other: one job and one answer, each a header line of JSON and then bytes.

use crate::error::DocumentProblem;
use serde::{Deserialize, Serialize};

/// The longest header line. Ours are far shorter.
pub(crate) const MAX_HEADER_BYTES: u64 = 1024;

/// The argument that makes the program a worker.
pub(crate) const WORKER_ARGUMENT: &str = "worker";

/// The argument of a worker that sets no filter of system calls.
pub(crate) const NO_FILTER_ARGUMENT: &str = "--no-filter";

/// What a worker is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobKind {
    Pdf,
    Html,
}

/// The first line of a job. The document follows.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobHeader {
    pub(crate) job: JobKind,
    pub(crate) bytes: usize,
}

/// The first line of an answer. The result follows, if there is one.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerHeader {
    pub(crate) ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<FailureReason>,
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureReason {
    /// The worker could not limit itself, so it did not read its job.
    Sandbox,
    /// The document.
    #[serde(untagged)]
    Document(DocumentProblem),
}

impl AnswerHeader {
    pub(crate) const fn result(bytes: usize) -> Self {
        Self { ok: true, bytes: Some(bytes), reason: None }
    }

    pub(crate) const fn failure(reason: FailureReason) -> Self {
        Self { ok: false, bytes: None, reason: Some(reason) }
    }
}

/// The header as a line. Headers always serialise; an empty line is refused by the reader.
pub(crate) fn header_line(header: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(header).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::{AnswerHeader, FailureReason, JobHeader, JobKind, header_line};
    use crate::error::DocumentProblem;
    use pretty_assertions::assert_eq;

    #[test]
    fn headers_are_lines_of_json() {
        let job = JobHeader { job: JobKind::Pdf, bytes: 7 };
        assert_eq!(header_line(&job), b"{\"job\":\"pdf\",\"bytes\":7}\n");
        assert_eq!(header_line(&AnswerHeader::result(3)), b"{\"ok\":true,\"bytes\":3}\n");
        for (reason, name) in [
            (FailureReason::Sandbox, "sandbox"),
            (FailureReason::Document(DocumentProblem::NoText), "no_text"),
        ] {
            let line = header_line(&AnswerHeader::failure(reason));
            assert_eq!(line, format!("{{\"ok\":false,\"reason\":\"{name}\"}}\n").as_bytes());
            let read: AnswerHeader = serde_json::from_slice(&line).unwrap();
            assert_eq!(read, AnswerHeader::failure(reason));
        }
    }

    #[test]
    fn other_headers_are_refused() {
        for text in ["", "{}", "[]", r#"{"ok":false,"reason":"other"}"#, r#"{"ok":true,"bytes":-1}"#] {
            assert!(serde_json::from_str::<AnswerHeader>(text).is_err(), "{text}");
        }
        for text in [r#"{"job":"js","bytes":1}"#, r#"{"job":"pdf"}"#, r#"{"job":"pdf","bytes":1,"x":1}"#] {
            assert!(serde_json::from_str::<JobHeader>(text).is_err(), "{text}");
        }
    }
}
