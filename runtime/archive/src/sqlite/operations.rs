//! What an archive can do, each on a thread that may wait.

use super::database::uncleaned;
use super::entries;
use super::entry_row;
use super::seal::Db;
use super::{
    SqliteArchive, collections, documents, expiry, forgetting, listing, search, unknown, uses, vector_cache,
};
use redflow_contract::Millis;
use redflow_contract::archive::{Collection, Document, Entry, SearchHit};
use redflow_contract::digest::Digest;
use redflow_contract::memory::DataOwner;
use redflow_ports::{Archive, ArchiveAnswer, EntryFilter, NewCollection, NewEntry, SearchQuery};
use rusqlite::params;

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

    fn sessions<'a>(
        &'a self,
        collection: &'a str,
        filter: EntryFilter,
        after: Option<&'a str>,
        limit: usize,
    ) -> ArchiveAnswer<'a, Vec<String>> {
        let (name, after) = (collection.to_owned(), after.unwrap_or_default().to_owned());
        self.work(move |inner| {
            inner.read_collection(&name, |db, collection| {
                Ok(listing::sessions(db, &inner.indexes, collection, &filter, &after, limit)?)
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

    fn remove_listed<'a>(
        &'a self,
        collection: &'a str,
        filter: EntryFilter,
        limit: usize,
    ) -> ArchiveAnswer<'a, u64> {
        let name = collection.to_owned();
        self.work(move |inner| {
            let removed = inner.write_collection(&name, |db, collection, _| {
                let ids = listing::ids(db, &inner.indexes, collection, &filter, limit)?;
                Ok(entries::remove(db, collection.id, &ids)?)
            })?;
            if removed < limit as u64 {
                inner.clean();
            }
            Ok(removed)
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
        let (name, expires_at) = (collection.to_owned(), expires_at.map(entry_row::stored));
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
