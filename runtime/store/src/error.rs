//! What goes wrong, as users are told it: one sentence with what to do about it.
//!
//! Owns the way from errors of SQLite and the system to codes. Never quotes what is stored.

use crate::directory::private_file;
use redflow_contract::api::ProblemCode;
use redflow_contract::code::{ApiCode, StoreCode};
use redflow_contract::id::RunId;
use redflow_ports::{FileStoreError, StoreError};
use rusqlite::ErrorCode;
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// Why SQLite did not do something in this directory.
pub(crate) fn sqlite(dir: &Path, error: &rusqlite::Error) -> StoreError {
    use rusqlite::Error as E;
    let (code, extended) = match error {
        E::SqliteFailure(failure, _) => (failure.code, failure.extended_code),
        // A value of another type or range than was written.
        E::FromSqlConversionFailure(..)
        | E::IntegralValueOutOfRange(..)
        | E::InvalidColumnType(..)
        | E::Utf8Error(..)
        | E::QueryReturnedNoRows => return damaged(dir, error),
        _ => return unusable(dir, error),
    };
    match code {
        ErrorCode::DiskFull => full(dir),
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
            match why_not_written(&dir.join(format!("probe.{}", std::process::id())), longest) {
                Some(StoreCode::DataFull) => full(dir),
                Some(StoreCode::DataReadOnly) => read_only(dir),
                _ => unusable(dir, error),
            }
        }
        _ => unusable(dir, error),
    }
}

/// SQLite says that a write failed, not that a quota or a limit of file sizes is used up. A write of our own
/// to a new file, as far into it as the longest one reaches, makes the system say it.
pub(crate) fn why_not_written(probe: &Path, longest: u64) -> Option<StoreCode> {
    let write = || {
        let mut file = private_file().write(true).create(true).truncate(true).open(probe)?;
        file.seek(SeekFrom::Start(longest))?;
        file.write_all(&[0; 64 * 1024])?;
        file.sync_all()
    };
    let why: Option<io::Error> = write().err();
    let _ = std::fs::remove_file(probe);
    why.map(|why| writing_code(why.kind()))
}

pub(crate) fn writing_code(kind: ErrorKind) -> StoreCode {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => StoreCode::DataFull,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreCode::DataReadOnly,
        _ => StoreCode::DataUnusable,
    }
}

/// Why the system did not make or write this file or directory.
pub(crate) fn writing(path: &Path, error: &io::Error) -> StoreError {
    match writing_code(error.kind()) {
        StoreCode::DataFull => full(path),
        StoreCode::DataReadOnly => read_only(path),
        _ => unusable(path, error),
    }
}

pub(crate) fn full(path: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataFull,
        format!("There is no room left for {}: make room on its disk, or raise the quota.", path.display()),
    )
}

pub(crate) fn read_only(path: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataReadOnly,
        format!("{} cannot be written: allow it, or name another data directory.", path.display()),
    )
}

pub(crate) fn unusable(path: &Path, why: &dyn std::fmt::Display) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!("{} cannot be used ({why}): mend that, or name another data directory.", path.display()),
    )
}

pub(crate) fn damaged(path: &Path, why: &dyn std::fmt::Display) -> StoreError {
    StoreError::new(
        StoreCode::DataCorrupt,
        format!(
            "What is stored in {} is damaged ({why}): restore a backup, or move it away to begin anew.",
            path.display()
        ),
    )
}

/// A run whose rows are not those that were written.
pub(crate) fn damaged_run(run: &RunId, why: &str) -> StoreError {
    StoreError::new(
        StoreCode::DataCorrupt,
        format!(
            "Run {run} is not stored as it was written ({why}): restore a backup, or remove the damaged run; \
             other runs are not affected."
        ),
    )
}

/// A database that is sound, but not ours.
pub(crate) fn foreign(file: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!("{} belongs to another program: name another data directory.", file.display()),
    )
}

/// Another process drives the runs, which took them from this one while it was at it.
pub(crate) fn displaced(dir: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataLocked,
        format!(
            "Another process has taken over the runs of {}, so this one keeps nothing more: let one process at \
             a time drive them.",
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

/// The writer is gone: the store was closed.
pub(crate) fn closed() -> StoreError {
    StoreError::new(StoreCode::DataUnusable, "The store of runs is closed: open the data directory again.")
}

/// The journal belongs to another handle now.
pub(crate) fn taken_over(run: &RunId) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "The journal of run {run} is written by someone else now: load the run again to go on with it."
        ),
    )
}

/// A batch that does not follow the last one that was kept.
pub(crate) fn gap(run: &RunId) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "A part of the journal of run {run} was never kept: load the run again to go on from what was."
        ),
    )
}

/// A second run with the id or the cause of a first.
pub(crate) fn exists(run: &RunId) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "Run {run} was not begun, because a run with its id or its cause is stored already: go on with that one."
        ),
    )
}

pub(crate) fn too_large(run: &RunId, bytes: usize) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "Run {run} wants to write {bytes} bytes at once, more than a store takes: lower the limits of the run."
        ),
    )
}

pub(crate) fn over(run: &RunId) -> StoreError {
    StoreError::new(StoreCode::RunOver, format!("Run {run} is over already: nothing can be changed in it."))
}

pub(crate) fn unknown(run: &RunId) -> StoreError {
    StoreError::new(
        StoreCode::RunUnknown,
        format!("No run {run} is stored here: list the runs to see which are."),
    )
}

/// As whoever keeps a flow is told it.
pub(crate) fn on_shelf(error: StoreError) -> FileStoreError {
    FileStoreError { code: ProblemCode::Store(error.code), message: error.message }
}

/// A file of the flow that is there, but cannot be read.
pub(crate) fn flow_unreadable(file: &Path, why: &dyn std::fmt::Display) -> FileStoreError {
    on_shelf(StoreError::new(
        StoreCode::DataUnusable,
        format!("{} cannot be read ({why}): mend that, or name another file.", file.display()),
    ))
}

/// A file of the flow that was not written; what was there before still is.
pub(crate) fn flow_unwritten(file: &Path, error: &io::Error) -> FileStoreError {
    let code = writing_code(error.kind());
    let shown = file.display();
    let message = match code {
        StoreCode::DataFull => {
            format!("There is no room left for {shown}: make room on its disk, or raise the quota.")
        }
        StoreCode::DataReadOnly => {
            format!("{shown} cannot be written: allow it, in its directory too, or name another file.")
        }
        _ => format!("{shown} cannot be written ({error}): mend that, or name another file."),
    };
    on_shelf(StoreError::new(code, message))
}

pub(crate) fn flow_too_large(file: &Path, most: usize) -> FileStoreError {
    on_shelf(StoreError::new(
        StoreCode::DataUnusable,
        format!(
            "{} would be larger than {most} bytes, more than is kept: take something out of it.",
            file.display()
        ),
    ))
}

/// A file with a secret that others may read, or that is no file.
pub(crate) fn secret_unsafe(file: &Path, why: &str, mend: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::SecretFileUnsafe),
        message: format!("{} {why}: {mend}.", file.display()),
    }
}

/// Credentials that are there, but cannot be decrypted.
pub(crate) fn credentials_unreadable(file: &Path, key: &Path, why: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::CredentialsUnreadable),
        message: format!(
            "The credentials in {} cannot be read ({why}): restore that file and {} as they were, or delete the \
             first and deploy the credentials again.",
            file.display(),
            key.display()
        ),
    }
}

/// What a UI stores is there, but cannot be decrypted.
pub(crate) fn storage_unreadable(file: &Path, key: &Path, why: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::CredentialsUnreadable),
        message: format!(
            "What the Redflow UI stores in {} cannot be read ({why}): restore that file and {} as they were, or delete \
             the first and enter the credentials there again.",
            file.display(),
            key.display()
        ),
    }
}

/// More than a UI may store; `bound` says how much that is.
pub(crate) fn storage_full(bound: &str) -> FileStoreError {
    FileStoreError {
        code: ProblemCode::Api(ApiCode::StorageFull),
        message: format!("The storage has no room for this: {bound}. Nothing was stored."),
    }
}
