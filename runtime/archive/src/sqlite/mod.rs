//! The archive in an embedded SQLite database, `archive.db` in the data directory.
//!
//! Nothing is opened before the first use, and nothing is created before the first write. Every write is one
//! transaction. Other processes may use the same file: each sees the changes of the others.
//!
//! An encrypted file holds nothing readable but ids, times and sizes. Its text index is in memory, see `words`.

mod changes;
mod collections;
mod database;
mod database_error;
mod documents;
mod entries;
mod entry_row;
mod expiry;
mod forgetting;
mod indexes;
mod listing;
mod operations;
mod query_words;
mod seal;
mod sealed_entries;
mod search;
mod text_index;
mod uses;
mod vector_cache;
mod word_counts;
mod words;

use crate::KeySource;
use database::{File, OpenFile};
use database_error::DbError;
use entries::CollectionRow;
use indexes::Indexes;
use redflow_contract::code::ArchiveCode;
use redflow_ports::{ArchiveAnswer, ArchiveError, Clock, failpoint};
use rusqlite::TransactionBehavior;
use seal::Db;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The archive of a data directory.
#[derive(Clone)]
pub struct SqliteArchive(Arc<Inner>);

struct Inner {
    file: File,
    clock: Arc<dyn Clock>,
    writer: Mutex<Option<OpenFile>>,
    reader: Mutex<Option<OpenFile>>,
    indexes: Indexes,
}

impl SqliteArchive {
    /// The archive below this directory. Opens nothing.
    #[must_use]
    pub fn new(data: &Path, clock: Arc<dyn Clock>) -> Self {
        Self::open(File::below(data, None), clock)
    }

    /// The encrypted archive below this directory. Opens nothing, and reads no key.
    #[must_use]
    pub fn sealed(data: &Path, clock: Arc<dyn Clock>, keys: Arc<dyn KeySource>) -> Self {
        Self::open(File::below(data, Some(keys)), clock)
    }

    fn open(file: File, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            file,
            clock,
            writer: Mutex::default(),
            reader: Mutex::default(),
            indexes: Indexes::default(),
        }))
    }

    /// Does work on a thread that may wait.
    fn work<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, ArchiveError> + Send + 'static,
    ) -> ArchiveAnswer<'a, T> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&inner)).await;
            done.unwrap_or_else(|_| {
                let message = "An operation on the archive stopped: please report it.";
                Err(ArchiveError::new(ArchiveCode::ArchiveUnreadable, message))
            })
        })
    }
}

impl Inner {
    fn now(&self) -> i64 {
        entry_row::stored(self.clock.now())
    }

    /// Writes in one transaction. If it fails, nothing is written.
    fn write<T>(&self, work: impl FnOnce(&Db<'_>, i64) -> Result<T, DbError>) -> Result<T, ArchiveError> {
        let mut writer = lock(&self.writer);
        let OpenFile { connection, seal } = open(&mut writer, || self.file.open_writer())?;
        let transact = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let db = Db { connection: &transaction, seal: seal.as_ref() };
            let done = work(&db, self.now())?;
            entries::trim_changes(&db)?;
            failpoint("archive.before-commit");
            transaction.commit()?;
            Ok(done)
        };
        transact().map_err(|error| self.file.refused(error))
    }

    /// Removes something. The bytes of what was removed are gone from the file when it returns, unless another
    /// process still reads them.
    fn write_and_clean<T>(
        &self,
        work: impl FnOnce(&Db<'_>, i64) -> Result<T, DbError>,
    ) -> Result<T, ArchiveError> {
        let done = self.write(work)?;
        self.clean();
        Ok(done)
    }

    /// Gives unused pages back, and empties the write-ahead log.
    fn clean(&self) {
        if let Some(OpenFile { connection, .. }) = lock(&self.writer).as_ref() {
            let clean = || -> rusqlite::Result<()> {
                // Each row is a page that was given back.
                let mut statement = connection.prepare_cached("PRAGMA incremental_vacuum")?;
                let mut rows = statement.query([])?;
                while rows.next()?.is_some() {}
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            };
            // What was asked for is done. A reader that is in the way leaves the rest to the next removal.
            let _ = clean();
        }
    }

    /// Removes the bytes of what was forgotten, if any may be left.
    fn finish_forgetting(&self) -> Result<(), ArchiveError> {
        let mut writer = lock(&self.writer);
        let OpenFile { connection, .. } = open(&mut writer, || self.file.open_writer())?;
        self.file.finish_forgetting(connection).map_err(|error| self.file.refused(error))
    }

    /// Reads in one transaction; none if there is no file.
    fn read<T>(&self, work: impl FnOnce(&Db<'_>) -> Result<T, DbError>) -> Result<Option<T>, ArchiveError> {
        let mut reader = lock(&self.reader);
        if reader.is_none() && !self.file.exists() {
            return Ok(None);
        }
        let OpenFile { connection, seal } = open(&mut reader, || self.file.open_reader())?;
        let transact = || {
            let transaction = connection.transaction()?;
            work(&Db { connection: &transaction, seal: seal.as_ref() })
        };
        transact().map(Some).map_err(|error| self.file.refused(error))
    }

    /// Reads something of a collection that must exist.
    fn read_collection<T>(
        &self,
        name: &str,
        work: impl FnOnce(&Db<'_>, &CollectionRow) -> Result<T, DbError>,
    ) -> Result<T, ArchiveError> {
        self.read(|db| work(db, &collections::find(db, name)?))?.ok_or_else(|| unknown(name))
    }

    /// Writes something of a collection that must exist.
    fn write_collection<T>(
        &self,
        name: &str,
        work: impl FnOnce(&Db<'_>, &CollectionRow, i64) -> Result<T, DbError>,
    ) -> Result<T, ArchiveError> {
        if !self.file.exists() {
            return Err(unknown(name));
        }
        self.write(|db, now| work(db, &collections::find(db, name)?, now))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The open file; opened if it is not yet.
fn open(
    file: &mut Option<OpenFile>,
    open: impl FnOnce() -> Result<OpenFile, ArchiveError>,
) -> Result<&mut OpenFile, ArchiveError> {
    match file {
        Some(file) => Ok(file),
        none => Ok(none.insert(open()?)),
    }
}

fn unknown(name: &str) -> ArchiveError {
    let name: String = name.chars().take(80).collect();
    ArchiveError::new(
        ArchiveCode::CollectionUnknown,
        format!("There is no collection `{name}` in the archive."),
    )
}

#[cfg(test)]
#[macro_use]
#[path = "../sqlite_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "../forgetting_tests.rs"]
mod forgetting_tests;

#[cfg(test)]
#[path = "../listing_tests.rs"]
mod listing_tests;

#[cfg(test)]
#[path = "../sealed_tests.rs"]
mod sealed_tests;
