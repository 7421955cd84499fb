//! Prints errors that have a code, with lines of help.

use crate::diagnostics::format_diagnostic;
use crate::exit::Exit;
use crate::terminal::{bold_red, print_note};
use crate::text::printable_line;
use owo_colors::OwoColorize;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::StoreCode;
use redflow_ports::{ArchiveError, FileStoreError, StoreError};
use std::fmt::Write as _;

/// Prints an error about stored runs.
pub(crate) fn print_store_error(error: StoreError) -> Exit {
    print_api_error(from_store(error))
}

/// Prints an error about the flow file or its credentials.
pub(crate) fn print_file_error(FileStoreError { code, message }: FileStoreError) -> Exit {
    print_api_error(ApiError { code, message, report: None, revision: None })
}

/// Prints an error about the archive.
pub(crate) fn print_archive_error(error: ArchiveError) -> Exit {
    print_api_error(error.into())
}

/// Prints an error of the sidecar's API, after the diagnostics that explain it.
pub(crate) fn print_api_error(error: ApiError) -> Exit {
    print_with_help(error, &[])
}

/// Prints an error and lines of help before the one about `redflow explain`.
pub(crate) fn print_with_help(error: ApiError, help: &[String]) -> Exit {
    let ApiError { code, message, report, .. } = error;
    for diagnostic in report.iter().flat_map(|report| &report.diagnostics) {
        print_note(&format_diagnostic(diagnostic));
    }
    let code = code.as_str();
    let mut text =
        format!("{}: {}", format!("error[{code}]").style(bold_red()), printable_line(&message, 800));
    for line in help {
        let _ = write!(text, "\n   = help: {line}");
    }
    print_note(&format!("{text}\n   = help: redflow explain {code}"));
    Exit::Unusable
}

/// An error of a store in the form of the sidecar's API, so that both are handled alike.
pub(crate) fn from_store(StoreError { code, message }: StoreError) -> ApiError {
    store_error(code, message)
}

pub(crate) fn store_error(code: StoreCode, message: String) -> ApiError {
    ApiError { code: ProblemCode::Store(code), message, report: None, revision: None }
}
