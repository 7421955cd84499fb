//! The archive in an embedded SQLite database, `archive.db` in the data directory.
//!
//! Nothing is opened before the first use, and nothing is created before the first write. Every write is one
//! transaction. Other processes may use the same file: each sees the changes of the others.
//!
//! An encrypted file holds nothing readable but ids, times and sizes. Its text index is in memory, see `words`.

mod collections;
mod database;
mod database_error;
mod documents;
mod entries;
mod expiry;
mod forgetting;
mod indexes;
mod listing;
mod seal;
mod sealed_entries;
mod search;
mod text_index;
mod uses;
mod vector_cache;
mod word_counts;
mod words;

use crate::KeySource;
use database::{File, OpenFile, uncleaned};
use database_error::DbError;
use entries::CollectionRow;
use indexes::Indexes;
use redflow_contract::Millis;
use redflow_contract::archive::{Collection, Document, Entry, SearchHit};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_contract::memory::DataOwner;
use redflow_ports::{
    Archive, ArchiveAnswer, ArchiveError, Clock, EntryFilter, NewCollection, NewEntry, SearchQuery, failpoint,
};
use rusqlite::{TransactionBehavior, params};
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
        entries::stored(self.clock.now())
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
        Ok(done)
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

impl Archive for SqliteArchive {
    fn collections(&self) -> ArchiveAnswer<'_, Vec<Collection>> {
        self.work(|inner| Ok(inner.read(|db| Ok(collections::list(db)?))?.unwrap_or_default()))
    }

    fn collection<'a>(&'a self, name: &'a str) -> ArchiveAnswer<'a, Option<Collection>> {
        let name = name.to_owned();
        self.work(move |inner| Ok(inner.read(|db| Ok(collections::get(db, &name)?))?.flatten()))
    }

    fn create_collection(&self, collection: NewCollection) -> ArchiveAnswer<'_, Collection> {
        self.work(move |inner| {
            collections::check(&collection)?;
            inner.write(|db, now| collections::create(db, &collection, now))
        })
    }

    fn remove_collection<'a>(&'a self, name: &'a str) -> ArchiveAnswer<'a, bool> {
        let name = name.to_owned();
        self.work(move |inner| {
            if !inner.file.exists() {
                return Ok(false);
            }
            inner.write_and_clean(|db, _| collections::remove(db, &name))
        })
    }

    fn rename_collection<'a>(&'a self, name: &'a str, to: &'a str) -> ArchiveAnswer<'a, bool> {
        let (name, to) = (name.to_owned(), to.to_owned());
        self.work(move |inner| {
            if !inner.file.exists() {
                return Ok(false);
            }
            inner.write_and_clean(|db, _| collections::rename(db, &name, &to))
        })
    }

    fn put<'a>(&'a self, collection: &'a str, new: Vec<NewEntry>) -> ArchiveAnswer<'a, Vec<u32>> {
        let name = collection.to_owned();
        self.work(move |inner| {
            inner.write_collection(&name, |db, collection, now| {
                new.iter().try_for_each(|entry| entries::check(entry, collection.dimensions))?;
                new.iter().map(|entry| entries::put(db, collection, None, entry, now)).collect()
            })
        })
    }

    fn get<'a>(&'a self, collection: &'a str, key: &'a str) -> ArchiveAnswer<'a, Option<Entry>> {
        let (name, key) = (collection.to_owned(), key.to_owned());
        self.work(move |inner| {
            inner.read_collection(&name, |db, collection| Ok(entries::get(db, collection.id, &key)?))
        })
    }

    fn history<'a>(&'a self, collection: &'a str, key: &'a str) -> ArchiveAnswer<'a, Vec<Entry>> {
        let (name, key) = (collection.to_owned(), key.to_owned());
        self.work(move |inner| {
            inner.read_collection(&name, |db, collection| Ok(entries::history(db, collection.id, &key)?))
        })
    }

    fn list<'a>(
        &'a self,
        collection: &'a str,
        filter: EntryFilter,
        after: Option<&'a str>,
        limit: usize,
    ) -> ArchiveAnswer<'a, Vec<Entry>> {
        let (name, after) = (collection.to_owned(), after.unwrap_or_default().to_owned());
        self.work(move |inner| {
            inner.read_collection(&name, |db, collection| {
                Ok(listing::list(db, &inner.indexes, collection, &filter, &after, limit)?)
            })
        })
    }

    fn count<'a>(&'a self, collection: &'a str, filter: EntryFilter) -> ArchiveAnswer<'a, u64> {
        let name = collection.to_owned();
        self.work(move |inner| {
            inner.read_collection(&name, |db, collection| {
                Ok(listing::count(db, &inner.indexes, collection, &filter)?)
            })
        })
    }

    fn forget<'a>(&'a self, prefix: &'a str, owner: &'a DataOwner) -> ArchiveAnswer<'a, u64> {
        let (prefix, owner) = (prefix.to_owned(), owner.clone());
        self.work(move |inner| {
            if !inner.file.exists() {
                return Ok(0);
            }
            let forgotten = inner.write(|db, _| forgetting::forget(db, &prefix, &owner))?;
            inner.finish_forgetting()?;
            Ok(forgotten)
        })
    }

    fn remove<'a>(&'a self, collection: &'a str, keys: Vec<String>) -> ArchiveAnswer<'a, u64> {
        let name = collection.to_owned();
        self.work(move |inner| {
            if !inner.file.exists() {
                return Err(unknown(&name));
            }
            inner.write_and_clean(|db, _| {
                let collection = collections::find(db, &name)?;
                let sql = "SELECT id FROM entry WHERE collection = ?1 AND key = ?2";
                let mut ids = Vec::new();
                for key in &keys {
                    let name = db.name("entry", collection.id, key);
                    ids.extend(entries::ids(db, sql, params![collection.id, name])?);
                }
                Ok(entries::remove(db, collection.id, &ids)?)
            })
        })
    }

    fn search<'a>(&'a self, collection: &'a str, query: SearchQuery) -> ArchiveAnswer<'a, Vec<SearchHit>> {
        let name = collection.to_owned();
        self.work(move |inner| {
            let now = inner.now();
            inner.read_collection(&name, |db, collection| {
                search::search(db, &inner.indexes, collection, query, now)
            })
        })
    }

    fn documents<'a>(&'a self, collection: &'a str) -> ArchiveAnswer<'a, Vec<Document>> {
        self.documents_after(collection, None, usize::MAX)
    }

    fn documents_after<'a>(
        &'a self,
        collection: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> ArchiveAnswer<'a, Vec<Document>> {
        let (name, after) = (collection.to_owned(), after.unwrap_or_default().to_owned());
        self.work(move |inner| {
            inner.read_collection(&name, |db, collection| {
                Ok(documents::list(db, collection.id, &after, limit)?)
            })
        })
    }

    fn document<'a>(&'a self, collection: &'a str, name: &'a str) -> ArchiveAnswer<'a, Option<Document>> {
        let (collection, name) = (collection.to_owned(), name.to_owned());
        self.work(move |inner| {
            inner.read_collection(&collection, |db, collection| Ok(documents::get(db, collection.id, &name)?))
        })
    }

    fn add_document(
        &self,
        collection: NewCollection,
        document: Document,
        passages: Vec<NewEntry>,
    ) -> ArchiveAnswer<'_, ()> {
        self.work(move |inner| {
            collections::check(&collection)?;
            inner.write(|db, now| {
                collections::create(db, &collection, now)?;
                let collection = collections::find(db, &collection.name)?;
                passages.iter().try_for_each(|entry| entries::check(entry, collection.dimensions))?;
                documents::put(db, &collection, &document, &passages, now)
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
            inner.write_collection(&name, |db, collection, now| {
                passages.iter().try_for_each(|entry| entries::check(entry, collection.dimensions))?;
                documents::put(db, collection, &document, &passages, now)
            })
        })
    }

    fn passages<'a>(&'a self, collection: &'a str, document: &'a str) -> ArchiveAnswer<'a, Vec<Entry>> {
        self.passages_after(collection, document, 0, usize::MAX)
    }

    fn passages_after<'a>(
        &'a self,
        collection: &'a str,
        document: &'a str,
        skip: usize,
        limit: usize,
    ) -> ArchiveAnswer<'a, Vec<Entry>> {
        let (name, document) = (collection.to_owned(), document.to_owned());
        self.work(move |inner| {
            inner.read_collection(&name, |db, collection| {
                Ok(documents::passages(db, collection.id, &document, skip, limit)?)
            })
        })
    }

    fn remove_document<'a>(&'a self, collection: &'a str, name: &'a str) -> ArchiveAnswer<'a, bool> {
        let (collection, name) = (collection.to_owned(), name.to_owned());
        self.work(move |inner| {
            if !inner.file.exists() {
                return Err(unknown(&collection));
            }
            inner.write_and_clean(|db, _| {
                let collection = collections::find(db, &collection)?;
                Ok(documents::remove(db, collection.id, &name)?)
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
            inner.write(|db, _| Ok(vector_cache::get(db, &embedder, &texts)?))
        })
    }

    fn cache_vectors<'a>(
        &'a self,
        embedder: &'a str,
        vectors: Vec<(Digest, Vec<f32>)>,
    ) -> ArchiveAnswer<'a, ()> {
        let embedder = embedder.to_owned();
        self.work(move |inner| inner.write(|db, _| Ok(vector_cache::put(db, &embedder, &vectors)?)))
    }

    fn drop_cached_vectors<'a>(
        &'a self,
        embedder: &'a str,
        texts: Option<Vec<Digest>>,
    ) -> ArchiveAnswer<'a, ()> {
        let embedder = embedder.to_owned();
        self.work(move |inner| {
            if !inner.file.exists() {
                return Ok(());
            }
            inner.write_and_clean(|db, _| Ok(vector_cache::remove(db, &embedder, texts.as_deref())?))
        })
    }

    fn touch<'a>(
        &'a self,
        collection: &'a str,
        keys: Vec<String>,
        expires_at: Option<Millis>,
    ) -> ArchiveAnswer<'a, ()> {
        let (name, expires_at) = (collection.to_owned(), expires_at.map(entries::stored));
        self.work(move |inner| {
            if keys.is_empty() {
                return Ok(());
            }
            inner.write_collection(&name, |db, collection, now| {
                let touch = |key: &String| uses::touch(db, collection.id, key, expires_at, now);
                Ok(keys.iter().try_for_each(touch)?)
            })
        })
    }

    fn remove_expired(&self) -> ArchiveAnswer<'_, u64> {
        self.work(|inner| {
            if !inner.file.exists() {
                return Ok(0);
            }
            let now = inner.now();
            let state = |db: &Db<'_>| Ok((expiry::is_due(db, now)?, uncleaned(db.connection)?.is_some()));
            let (is_due, is_unclean) = inner.read(state)?.unwrap_or_default();
            let remove = || inner.write_and_clean(|db, now| Ok(expiry::remove(db, now)?));
            let removed = if is_due { remove()? } else { 0 };
            if is_unclean {
                inner.finish_forgetting()?;
            }
            Ok(removed)
        })
    }
}

#[cfg(test)]
#[macro_use]
#[path = "../sqlite_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "../forgetting_tests.rs"]
mod forgetting_tests;

#[cfg(test)]
#[path = "../sealed_tests.rs"]
mod sealed_tests;
