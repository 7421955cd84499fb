//! An error inside a transaction: of SQLite, or of what was asked.

use redflow_ports::ArchiveError;

/// Why a transaction is not committed.
#[derive(Debug)]
pub(super) enum DbError {
    /// SQLite failed.
    Sqlite(rusqlite::Error),
    /// The request cannot be done.
    Refused(ArchiveError),
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<ArchiveError> for DbError {
    fn from(error: ArchiveError) -> Self {
        Self::Refused(error)
    }
}
