//! Errors as users read them: one sentence that says what happened and what to do.
//!
//! Owns the mapping from errors of SQLite and the system to codes. Never quotes stored data.

use crate::private_file::private_file;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::id::RunId;
use redflow_ports::{FileStoreError, StoreError};
use rusqlite::ErrorCode;
use std::fmt::Display;
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// Maps an error of SQLite on the database in this data directory.
pub(crate) fn from_sqlite(dir: &Path, error: &rusqlite::Error) -> StoreError {
    use rusqlite::Error as E;
    let (code, extended) = match error {
        E::SqliteFailure(failure, _) => (failure.code, failure.extended_code),
        // A stored value has another type or range than the one that was written.
        E::FromSqlConversionFailure(..)
        | E::IntegralValueOutOfRange(..)
        | E::InvalidColumnType(..)
        | E::Utf8Error(..)
        | E::QueryReturnedNoRows => return damaged(dir, error),
        _ => return unusable(dir, error),
    };
    match code {
        ErrorCode::DiskFull => disk_full(dir),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => read_only(dir),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => damaged(dir, error),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::new(
            StoreCode::DataUnusable,
            format!(
                "The database in {} is busy: close the program that holds it and try again.",
                dir.display()
            ),
        ),
        ErrorCode::SystemIoFailure | ErrorCode::CannotOpen
            if extended != rusqlite::ffi::SQLITE_IOERR_READ =>
        {
            let length = |name| std::fs::metadata(dir.join(name)).map_or(0, |file| file.len());
            let longest = length("redflow.db").max(length("redflow.db-wal"));
            match probe_write(&dir.join(format!("probe.{}", std::process::id())), longest) {
                Some(StoreCode::DataFull) => disk_full(dir),
                Some(StoreCode::DataReadOnly) => read_only(dir),
                _ => unusable(dir, error),
            }
        }
        _ => unusable(dir, error),
    }
}

/// Finds out why a write failed. SQLite reports only that it failed, not that a quota or a limit of file
/// sizes is used up. A write of our own to a new file, as far into it as the longest file reaches, makes the
/// system report it.
pub(crate) fn probe_write(probe: &Path, longest: u64) -> Option<StoreCode> {
    let write = || {
        let mut file = private_file().write(true).create(true).truncate(true).open(probe)?;
        file.seek(SeekFrom::Start(longest))?;
        file.write_all(&[0; 64 * 1024])?;
        file.sync_all()
    };
    let error: Option<io::Error> = write().err();
    let _ = std::fs::remove_file(probe);
    error.map(|error| write_error_code(error.kind()))
}

pub(crate) fn write_error_code(kind: ErrorKind) -> StoreCode {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => StoreCode::DataFull,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreCode::DataReadOnly,
        _ => StoreCode::DataUnusable,
    }
}

/// The system could not create or write this file or directory.
pub(crate) fn write_failed(path: &Path, error: &io::Error) -> StoreError {
    match write_error_code(error.kind()) {
        StoreCode::DataFull => disk_full(path),
        StoreCode::DataReadOnly => read_only(path),
        _ => unusable(path, error),
    }
}

fn disk_full(path: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataFull,
        format!("There is no room left for {}: make room on its disk, or raise the quota.", path.display()),
    )
}

fn read_only(path: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataReadOnly,
        format!("{} cannot be written: allow it, or name another data directory.", path.display()),
    )
}

pub(crate) fn unusable(path: &Path, reason: &dyn Display) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!("{} cannot be used ({reason}): fix that, or name another data directory.", path.display()),
    )
}

pub(crate) fn damaged(path: &Path, reason: &dyn Display) -> StoreError {
    StoreError::new(
        StoreCode::DataCorrupt,
        format!(
            "The data in {} is damaged ({reason}): restore a backup, or move the data away to start over.",
            path.display()
        ),
    )
}

/// The stored rows of a run are not the rows that were written.
pub(crate) fn damaged_run(run: &RunId, reason: &str) -> StoreError {
    StoreError::new(
        StoreCode::DataCorrupt,
        format!(
            "Run {run} is not stored as it was written ({reason}): restore a backup, or remove the damaged run; \
             other runs are not affected."
        ),
    )
}

/// The database is sound, but another program made it.
pub(crate) fn foreign_database(file: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!("{} belongs to another program: name another data directory.", file.display()),
    )
}

/// Runs are forgotten, but their bytes may be left in the files.
pub(crate) fn not_cleaned(dir: &Path, error: &rusqlite::Error) -> StoreError {
    if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) {
        return StoreError::new(
            StoreCode::DataUnusable,
            format!(
                "The runs are removed, but another program reads the database in {}, so their bytes are still in its \
                 files: close that program, then forget again or restart.",
                dir.display()
            ),
        );
    }
    let StoreError { code, message } = from_sqlite(dir, error);
    let text =
        format!("The runs are removed, but their bytes are still in the files: forget again. {message}");
    StoreError::new(code, text)
}

/// Another process became the driver while this one was driving the runs.
pub(crate) fn displaced(dir: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataLocked,
        format!(
            "Another process has taken over the runs of {}, so this one stores nothing more: let only one process \
             drive them at a time.",
            dir.display()
        ),
    )
}

pub(crate) fn no_runs(dir: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "No runs are stored in {} yet: run a flow with this data directory first, or name another.",
            dir.display()
        ),
    )
}

/// The writer thread has ended, because the store was closed.
pub(crate) fn store_closed() -> StoreError {
    StoreError::new(StoreCode::DataUnusable, "The store of runs is closed: open the data directory again.")
}

/// The journal belongs to another handle now.
pub(crate) fn journal_taken_over(run: &RunId) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "The journal of run {run} now has another writer: load the run again to continue from what is stored."
        ),
    )
}

/// A batch does not follow the last stored one.
pub(crate) fn missing_batch(run: &RunId) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "A part of the journal of run {run} was never stored: load the run again to continue from what is stored."
        ),
    )
}

/// A run with this id or this cause exists.
pub(crate) fn run_exists(run: &RunId) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "Run {run} was not started, because a run with its id or its cause is stored already: continue that run."
        ),
    )
}

pub(crate) fn batch_too_large(run: &RunId, bytes: usize) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "Run {run} tried to write {bytes} bytes at once, more than the store accepts: lower the limits of the run."
        ),
    )
}

pub(crate) fn run_over(run: &RunId) -> StoreError {
    StoreError::new(StoreCode::RunOver, format!("Run {run} is over already: nothing can be changed in it."))
}

pub(crate) fn run_unknown(run: &RunId) -> StoreError {
    StoreError::new(
        StoreCode::RunUnknown,
        format!("No run {run} is stored here: list the runs to see which are."),
    )
}

/// The same error for a caller that stores files.
pub(crate) fn to_file_error(error: StoreError) -> FileStoreError {
    FileStoreError { code: ProblemCode::Store(error.code), message: error.message }
}

/// The file exists, but cannot be read.
pub(crate) fn file_unreadable(file: &Path, reason: &dyn Display) -> FileStoreError {
    to_file_error(StoreError::new(
        StoreCode::DataUnusable,
        format!("{} cannot be read ({reason}): fix that, or name another file.", file.display()),
    ))
}

/// The file was not written; the previous one is still in place.
pub(crate) fn file_not_written(file: &Path, error: &io::Error) -> FileStoreError {
    let code = write_error_code(error.kind());
    let name = file.display();
    let message = match code {
        StoreCode::DataFull => {
            format!("There is no room left for {name}: make room on its disk, or raise the quota.")
        }
        StoreCode::DataReadOnly => {
            format!("{name} cannot be written: allow it, in its directory too, or name another file.")
        }
        _ => format!("{name} cannot be written ({error}): fix that, or name another file."),
    };
    to_file_error(StoreError::new(code, message))
}

pub(crate) fn file_too_large(file: &Path, max_bytes: usize) -> FileStoreError {
    to_file_error(StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "{} would be larger than {max_bytes} bytes, which is the limit: take something out of it.",
            file.display()
        ),
    ))
}

/// A file with a secret is open to other users, or is not a regular file.
pub(crate) fn secret_file_unsafe(file: &Path, reason: &str, remedy: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::SecretFileUnsafe),
        message: format!("{} {reason}: {remedy}.", file.display()),
    }
}

/// The credentials file exists, but cannot be decrypted.
pub(crate) fn credentials_unreadable(file: &Path, key: &Path, reason: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::CredentialsUnreadable),
        message: format!(
            "The credentials in {} cannot be read ({reason}): restore that file and {} as they were, or delete the \
             first and deploy the credentials again.",
            file.display(),
            key.display()
        ),
    }
}

/// The file of the UI storage exists, but cannot be decrypted.
pub(crate) fn ui_storage_unreadable(file: &Path, key: &Path, reason: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::CredentialsUnreadable),
        message: format!(
            "The storage of the Redflow UI in {} cannot be read ({reason}): restore that file and {} as they were, or \
             delete the first and enter the credentials there again.",
            file.display(),
            key.display()
        ),
    }
}

/// The file of the tokens of MCP servers exists, but cannot be decrypted.
pub(crate) fn mcp_tokens_unreadable(file: &Path, key: &Path, reason: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::CredentialsUnreadable),
        message: format!(
            "The tokens of MCP servers in {} cannot be read ({reason}): restore that file and {} as they were, or \
             delete the first and sign in again with `redflow mcp login NAME`.",
            file.display(),
            key.display()
        ),
    }
}

/// The file with the pins of an MCP server exists, but cannot be read.
pub(crate) fn mcp_pins_unreadable(file: &Path, reason: &str) -> FileStoreError {
    to_file_error(StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "The approved definitions in {} cannot be read ({reason}): restore that file, or delete it and approve \
             the tools again with `redflow mcp pin NAME`.",
            file.display()
        ),
    ))
}

/// A storage would pass a limit; `limit` is a sentence without its full stop.
pub(crate) fn storage_full(limit: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::StorageFull),
        message: format!("The storage has no room for this: {limit}. Nothing was stored."),
    }
}
