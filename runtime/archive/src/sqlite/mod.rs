//! The archive in an embedded SQLite database, `archive.db` in the data directory.
//!
//! Nothing is opened before the first use, and nothing is created before the first write. Every write is one
//! transaction. Other processes may use the same file: each sees the changes of the others.

mod collections;
mod database;
mod database_error;
mod documents;
mod entries;
mod indexes;
mod search;
mod text_index;
mod vector_cache;

use database::File;
use database_error::DbError;
use entries::CollectionRow;
use indexes::Indexes;
use redflow_contract::archive::{Collection, Document, Entry, SearchHit};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_ports::{
    Archive, ArchiveAnswer, ArchiveError, Clock, NewCollection, NewEntry, SearchQuery, failpoint,
};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The archive of a data directory.
#[derive(Clone)]
pub struct SqliteArchive(Arc<Inner>);

struct Inner {
    file: File,
    clock: Arc<dyn Clock>,
    writer: Mutex<Option<Connection>>,
    reader: Mutex<Option<Connection>>,
    indexes: Indexes,
}

impl SqliteArchive {
    /// The archive below this directory. Opens nothing.
    #[must_use]
    pub fn new(data: &Path, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            file: File::below(data),
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
        entries::stored(self.clock.now())
    }

    fn refused(&self, error: DbError) -> ArchiveError {
        match error {
            DbError::Sqlite(error) => self.file.error(&error),
            DbError::Refused(error) => error,
        }
    }

    /// Writes in one transaction. If it fails, nothing is written.
    fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>, i64) -> Result<T, DbError>,
    ) -> Result<T, ArchiveError> {
        let mut writer = lock(&self.writer);
        let connection = open(&mut writer, || self.file.open_writer())?;
        let transact = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction, self.now())?;
            entries::trim_changes(&transaction)?;
            failpoint("archive.before-commit");
            transaction.commit()?;
            Ok(done)
        };
        transact().map_err(|error| self.refused(error))
    }

    /// Removes something. The bytes of what was removed are gone from the file when it returns, unless another
    /// process still reads them.
    fn write_and_clean<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>, i64) -> Result<T, DbError>,
    ) -> Result<T, ArchiveError> {
        let done = self.write(work)?;
        if let Some(connection) = lock(&self.writer).as_ref() {
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
        Ok(done)
    }

    /// Reads in one transaction; none if there is no file.
    fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, DbError>,
    ) -> Result<Option<T>, ArchiveError> {
        let mut reader = lock(&self.reader);
        if reader.is_none() && !self.file.exists() {
            return Ok(None);
        }
        let connection = open(&mut reader, || self.file.open_reader())?;
        let transact = || {
            let transaction = connection.transaction()?;
            work(&transaction)
        };
        transact().map(Some).map_err(|error| self.refused(error))
    }

    /// Reads something of a collection that must exist.
    fn read_collection<T>(
        &self,
        name: &str,
        work: impl FnOnce(&Connection, &CollectionRow) -> Result<T, DbError>,
    ) -> Result<T, ArchiveError> {
        self.read(|connection| work(connection, &find(connection, name)?))?.ok_or_else(|| unknown(name))
    }

    /// Writes something of a collection that must exist.
    fn write_collection<T>(
        &self,
        name: &str,
        work: impl FnOnce(&Transaction<'_>, &CollectionRow, i64) -> Result<T, DbError>,
    ) -> Result<T, ArchiveError> {
        if !self.file.exists() {
            return Err(unknown(name));
        }
        self.write(|transaction, now| work(transaction, &find(transaction, name)?, now))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection; opened if there is none yet.
fn open(
    connection: &mut Option<Connection>,
    open: impl FnOnce() -> Result<Connection, ArchiveError>,
) -> Result<&mut Connection, ArchiveError> {
    match connection {
        Some(connection) => Ok(connection),
        none => Ok(none.insert(open()?)),
    }
}

fn find(connection: &Connection, name: &str) -> Result<CollectionRow, DbError> {
    let row = connection
        .prepare_cached("SELECT id, dimensions, entries FROM collection WHERE name = ?1")?
        .query_row([name], |row| {
            Ok(CollectionRow {
                id: row.get(0)?,
                dimensions: usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                entries: row.get(2)?,
            })
        })
        .optional()?;
    row.ok_or_else(|| unknown(name).into())
}

fn unknown(name: &str) -> ArchiveError {
    let name: String = name.chars().take(80).collect();
    ArchiveError::new(
        ArchiveCode::CollectionUnknown,
        format!("There is no collection `{name}` in the archive."),
    )
}

impl Archive for SqliteArchive {
    fn collections(&self) -> ArchiveAnswer<'_, Vec<Collection>> {
        self.work(|inner| {
            Ok(inner.read(|connection| Ok(collections::list(connection)?))?.unwrap_or_default())
        })
    }

    fn collection<'a>(&'a self, name: &'a str) -> ArchiveAnswer<'a, Option<Collection>> {
        let name = name.to_owned();
        self.work(move |inner| {
            Ok(inner.read(|connection| Ok(collections::get(connection, &name)?))?.flatten())
        })
    }

    fn create_collection(&self, collection: NewCollection) -> ArchiveAnswer<'_, Collection> {
        self.work(move |inner| {
            collections::check(&collection)?;
            inner.write(|transaction, now| collections::create(transaction, &collection, now))
        })
    }

    fn remove_collection<'a>(&'a self, name: &'a str) -> ArchiveAnswer<'a, bool> {
        let name = name.to_owned();
        self.work(move |inner| {
            if !inner.file.exists() {
                return Ok(false);
            }
            inner.write_and_clean(|transaction, _| collections::remove(transaction, &name))
        })
    }

    fn rename_collection<'a>(&'a self, name: &'a str, to: &'a str) -> ArchiveAnswer<'a, bool> {
        let (name, to) = (name.to_owned(), to.to_owned());
        self.work(move |inner| {
            if !inner.file.exists() {
                return Ok(false);
            }
            inner.write_and_clean(|transaction, _| collections::rename(transaction, &name, &to))
        })
    }

    fn put<'a>(&'a self, collection: &'a str, new: Vec<NewEntry>) -> ArchiveAnswer<'a, Vec<u32>> {
        let name = collection.to_owned();
        self.work(move |inner| {
            inner.write_collection(&name, |transaction, collection, now| {
                new.iter().try_for_each(|entry| entries::check(entry, collection.dimensions))?;
                new.iter().map(|entry| entries::put(transaction, collection, None, entry, now)).collect()
            })
        })
    }

    fn get<'a>(&'a self, collection: &'a str, key: &'a str) -> ArchiveAnswer<'a, Option<Entry>> {
        let (name, key) = (collection.to_owned(), key.to_owned());
        self.work(move |inner| {
            inner.read_collection(&name, |connection, collection| {
                let columns = entries::COLUMNS;
                let sql = format!("SELECT {columns} FROM entry WHERE collection = ?1 AND key = ?2");
                let mut statement = connection.prepare_cached(&sql)?;
                Ok(statement.query_row(params![collection.id, key], entries::read).optional()?)
            })
        })
    }

    fn history<'a>(&'a self, collection: &'a str, key: &'a str) -> ArchiveAnswer<'a, Vec<Entry>> {
        let (name, key) = (collection.to_owned(), key.to_owned());
        self.work(move |inner| {
            inner.read_collection(&name, |connection, collection| {
                let sql = "SELECT body FROM entry_history WHERE entry =
                     (SELECT id FROM entry WHERE collection = ?1 AND key = ?2) ORDER BY version DESC";
                let mut statement = connection.prepare_cached(sql)?;
                let rows = statement.query_map(params![collection.id, key], |row| entries::json(row, 0))?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
        })
    }

    fn list<'a>(
        &'a self,
        collection: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> ArchiveAnswer<'a, Vec<Entry>> {
        let (name, after) = (collection.to_owned(), after.unwrap_or_default().to_owned());
        self.work(move |inner| {
            inner.read_collection(&name, |connection, collection| {
                let columns = entries::COLUMNS;
                let sql = format!(
                    "SELECT {columns} FROM entry WHERE collection = ?1 AND key > ?2 ORDER BY key LIMIT ?3"
                );
                let mut statement = connection.prepare_cached(&sql)?;
                let limit = i64::try_from(limit).unwrap_or(i64::MAX);
                let rows = statement.query_map(params![collection.id, after, limit], entries::read)?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
        })
    }

    fn remove<'a>(&'a self, collection: &'a str, keys: Vec<String>) -> ArchiveAnswer<'a, u64> {
        let name = collection.to_owned();
        self.work(move |inner| {
            if !inner.file.exists() {
                return Err(unknown(&name));
            }
            inner.write_and_clean(|transaction, _| {
                let collection = find(transaction, &name)?;
                let sql = "SELECT id FROM entry WHERE collection = ?1 AND key = ?2";
                let mut ids = Vec::new();
                for key in &keys {
                    ids.extend(entries::ids(transaction, sql, params![collection.id, key])?);
                }
                Ok(entries::remove(transaction, collection.id, &ids)?)
            })
        })
    }

    fn search<'a>(&'a self, collection: &'a str, query: SearchQuery) -> ArchiveAnswer<'a, Vec<SearchHit>> {
        let name = collection.to_owned();
        self.work(move |inner| {
            let now = inner.now();
            inner.read_collection(&name, |connection, collection| {
                search::search(connection, &inner.indexes, collection, query, now)
            })
        })
    }

    fn documents<'a>(&'a self, collection: &'a str) -> ArchiveAnswer<'a, Vec<Document>> {
        let name = collection.to_owned();
        self.work(move |inner| {
            inner.read_collection(&name, |connection, collection| {
                Ok(documents::list(connection, collection.id)?)
            })
        })
    }

    fn put_document<'a>(
        &'a self,
        collection: &'a str,
        document: Document,
        passages: Vec<NewEntry>,
    ) -> ArchiveAnswer<'a, ()> {
        let name = collection.to_owned();
        self.work(move |inner| {
            inner.write_collection(&name, |transaction, collection, now| {
                passages.iter().try_for_each(|entry| entries::check(entry, collection.dimensions))?;
                documents::put(transaction, collection, &document, &passages, now)
            })
        })
    }

    fn passages<'a>(&'a self, collection: &'a str, document: &'a str) -> ArchiveAnswer<'a, Vec<Entry>> {
        let (name, document) = (collection.to_owned(), document.to_owned());
        self.work(move |inner| {
            inner.read_collection(&name, |connection, collection| {
                Ok(documents::passages(connection, collection.id, &document)?)
            })
        })
    }

    fn remove_document<'a>(&'a self, collection: &'a str, name: &'a str) -> ArchiveAnswer<'a, bool> {
        let (collection, name) = (collection.to_owned(), name.to_owned());
        self.work(move |inner| {
            if !inner.file.exists() {
                return Err(unknown(&collection));
            }
            inner.write_and_clean(|transaction, _| {
                let collection = find(transaction, &collection)?;
                Ok(documents::remove(transaction, collection.id, &name)?)
            })
        })
    }

    fn cached_vectors<'a>(
        &'a self,
        embedder: &'a str,
        texts: Vec<Digest>,
    ) -> ArchiveAnswer<'a, Vec<Option<Vec<f32>>>> {
        let embedder = embedder.to_owned();
        self.work(move |inner| {
            if !inner.file.exists() {
                return Ok(vec![None; texts.len()]);
            }
            inner.write(|transaction, _| Ok(vector_cache::get(transaction, &embedder, &texts)?))
        })
    }

    fn cache_vectors<'a>(
        &'a self,
        embedder: &'a str,
        vectors: Vec<(Digest, Vec<f32>)>,
    ) -> ArchiveAnswer<'a, ()> {
        let embedder = embedder.to_owned();
        self.work(move |inner| {
            inner.write(|transaction, _| Ok(vector_cache::put(transaction, &embedder, &vectors)?))
        })
    }

    fn remove_expired(&self) -> ArchiveAnswer<'_, u64> {
        self.work(|inner| {
            if !inner.file.exists() {
                return Ok(0);
            }
            let now = inner.now();
            let sql = "SELECT DISTINCT collection FROM entry WHERE expires_at <= ?1 AND state <> 'pinned'";
            let expired = inner.read(|connection| Ok(entries::ids(connection, sql, [now])?))?;
            if expired.is_none_or(|collections| collections.is_empty()) {
                return Ok(0);
            }
            inner.write_and_clean(|transaction, now| {
                let mut removed = 0;
                for collection in entries::ids(transaction, sql, [now])? {
                    let sql = "SELECT id FROM entry
                         WHERE collection = ?1 AND expires_at <= ?2 AND state <> 'pinned'";
                    let ids = entries::ids(transaction, sql, [collection, now])?;
                    removed += entries::remove(transaction, collection, &ids)?;
                }
                Ok(removed)
            })
        })
    }
}

#[cfg(test)]
#[path = "../sqlite_tests.rs"]
mod tests;
