//! Forgets the entries of an owner, with all that was made of them.

use super::database::mark_forgetting;
use super::database_error::DbError;
use super::entries::{self, CollectionRow};
use super::entry_row::{COLUMNS, EntryRow};
use super::seal::Db;
use super::{collections, documents, text_index, vector_cache};
use redflow_contract::archive::{Collection, Entry};
use redflow_contract::digest::Digest;
use redflow_contract::memory::DataOwner;
use redflow_ports::EmbedPurpose;
use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};
use std::collections::{BTreeSet, HashSet};

/// Between a source and a part of it.
const PART: char = '#';

/// Removes the entries of an owner from the collections that begin with this prefix. Returns how many there were. Marks the
/// file, because their bytes may be left in it.
pub(super) fn forget(db: &Db<'_>, prefix: &str, owner: &DataOwner) -> Result<u64, DbError> {
    mark_forgetting(db.connection)?;
    let all = collections::list(db)?;
    let mut cached = HashSet::new();
    let mut forgotten = 0;
    for collection in all.iter().filter(|collection| collection.name.starts_with(prefix)) {
        let collection = collections::find(db, &collection.name)?;
        forgotten += forget_in(db, &collection, owner, &mut cached)?;
    }
    let cached: Vec<Digest> = cached.into_iter().collect();
    for embedder in embedders(db, &all)? {
        vector_cache::remove(db, &embedder, Some(&cached))?;
    }
    Ok(forgotten)
}

/// The embedders of which vectors may be cached. An encrypted file has no name of one but in its collections.
fn embedders(db: &Db<'_>, collections: &[Collection]) -> rusqlite::Result<BTreeSet<String>> {
    if db.is_sealed() {
        let is_used: bool = db
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM embedding_cache)")?
            .query_row([], |row| row.get(0))?;
        let collections = collections.iter().filter(|_| is_used);
        return Ok(collections.map(|collection| collection.embedder.clone()).collect());
    }
    let mut statement = db.prepare_cached("SELECT DISTINCT embedder FROM embedding_cache")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn forget_in(
    db: &Db<'_>,
    collection: &CollectionRow,
    owner: &DataOwner,
    cached: &mut HashSet<Digest>,
) -> Result<u64, DbError> {
    let mut note = |entry: &Entry| {
        cached.insert(Digest::of(entry.text.as_bytes()));
        cached.extend(EmbedPurpose::ALL.map(|purpose| purpose.cached_name(&entry.text)));
    };
    let (mut ids, mut documents) = (Vec::new(), BTreeSet::new());
    let mut statement = db.prepare_cached(&select_entries(db, owner))?;
    let mut rows = statement.query(params_from_iter(values(db, collection, owner)))?;
    while let Some(row) = rows.next()? {
        let entry = entries::read(db, row)?;
        if is_owned(&entry, owner) {
            note(&entry);
            ids.push(row.get(18)?);
            documents.extend(row.get::<_, Option<i64>>(20)?);
        }
    }
    drop(rows);
    let owned: HashSet<i64> = ids.iter().copied().collect();
    for (id, former) in former_versions(db, collection, owner, &ids)? {
        note(&former);
        if !owned.contains(&id) {
            db.prepare_cached("DELETE FROM entry_history WHERE entry = ?1 AND version = ?2")?
                .execute(params![id, former.version])?;
        }
    }
    if ids.is_empty() {
        return Ok(0);
    }
    let removed = entries::remove_with(db, collection.id, &ids, |_, _| Ok(()))?;
    if !db.is_sealed() {
        text_index::rebuild(db, collection.id)?;
    }
    documents::remove_empty(db, &documents.into_iter().collect::<Vec<_>>())?;
    Ok(removed)
}

fn is_owned(entry: &Entry, owner: &DataOwner) -> bool {
    match owner {
        DataOwner::User(user) => entry.user.as_ref() == Some(user),
        DataOwner::Session(session) => entry.session.as_ref() == Some(session),
        DataOwner::Source(source) => entry.source.as_ref().is_some_and(|found| {
            found.reference.strip_prefix(source).is_some_and(|rest| rest.is_empty() || rest.starts_with(PART))
        }),
    }
}

/// Selects the entries that may belong to the owner. All of an encrypted collection may.
fn select_entries(db: &Db<'_>, owner: &DataOwner) -> String {
    let condition = match owner {
        _ if db.is_sealed() => "",
        DataOwner::User(_) => "AND user = ?2",
        DataOwner::Session(_) => "AND session = ?2",
        DataOwner::Source(_) => "AND instr(source ->> '$.ref', ?2) = 1",
    };
    format!("SELECT {COLUMNS} FROM entry WHERE collection = ?1 {condition}")
}

fn values(db: &Db<'_>, collection: &CollectionRow, owner: &DataOwner) -> Vec<Value> {
    let (DataOwner::User(name) | DataOwner::Session(name) | DataOwner::Source(name)) = owner;
    let mut values = vec![Value::from(collection.id)];
    if !db.is_sealed() {
        values.push(Value::from(name.clone()));
    }
    values
}

/// The former versions of these entries, and those of others that belonged to the owner, each with the entry's id.
fn former_versions(
    db: &Db<'_>,
    collection: &CollectionRow,
    owner: &DataOwner,
    ids: &[i64],
) -> rusqlite::Result<Vec<(i64, Entry)>> {
    let read = |row: &Row<'_>| -> rusqlite::Result<(i64, Entry)> {
        let (id, version) = (row.get(1)?, row.get(2)?);
        if !db.is_sealed() {
            return Ok((id, entries::json(row, 0)?));
        }
        let name = row.get_ref(3)?.as_blob()?;
        let former = EntryRow { collection: collection.id, id, version, document: None, name };
        Ok((id, db.open_json(row, 0, former.place("entry_history"))?))
    };
    let select = "SELECT body, entry_history.entry, entry_history.version, entry.key
         FROM entry_history JOIN entry ON entry.id = entry_history.entry";
    let condition = match owner {
        _ if db.is_sealed() => "",
        DataOwner::User(_) => "AND body ->> '$.user' = ?2",
        DataOwner::Session(_) => "AND body ->> '$.session' = ?2",
        DataOwner::Source(_) => "AND instr(body ->> '$.source.ref', ?2) = 1",
    };
    let mut statement = db.prepare_cached(&format!("{select} WHERE entry.collection = ?1 {condition}"))?;
    let mut found = Vec::new();
    let mut rows = statement.query(params_from_iter(values(db, collection, owner)))?;
    while let Some(row) = rows.next()? {
        let (id, former) = read(row)?;
        if is_owned(&former, owner) {
            found.push((id, former));
        }
    }
    drop(rows);
    let mut statement = db.prepare_cached(&format!("{select} WHERE entry_history.entry = ?1"))?;
    for id in ids {
        for former in statement.query_map([id], read)? {
            found.push(former?);
        }
    }
    Ok(found)
}
