//! Entries that are listed and counted by what is known about them.

use super::entries::{self, COLUMNS, CollectionRow, stored, text_of};
use super::indexes::Indexes;
use super::seal::Db;
use redflow_contract::archive::Entry;
use redflow_ports::EntryFilter;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, params_from_iter};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// Entries after a key, in the order of their keys.
pub(super) fn list(
    db: &Db<'_>,
    indexes: &Indexes,
    collection: &CollectionRow,
    filter: &EntryFilter,
    after: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Entry>> {
    if db.is_sealed() {
        return list_sealed(db, indexes, collection, filter, after, limit);
    }
    let mut conditions = Conditions::of(collection, filter);
    conditions.add("key >", Value::from(after.to_owned()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!("SELECT {COLUMNS} FROM entry WHERE {} ORDER BY key LIMIT {limit}", conditions.sql);
    let mut statement = db.prepare_cached(&sql)?;
    statement.query_map(params_from_iter(conditions.values), |row| entries::read(db, row))?.collect()
}

/// How many entries there are.
pub(super) fn count(
    db: &Db<'_>,
    indexes: &Indexes,
    collection: &CollectionRow,
    filter: &EntryFilter,
) -> rusqlite::Result<u64> {
    if *filter == EntryFilter::default() {
        return Ok(entries::millis(collection.entries));
    }
    if db.is_sealed() {
        return Ok(listed(db, indexes, collection, filter)?.len() as u64);
    }
    let conditions = Conditions::of(collection, filter);
    let sql = format!("SELECT count(*) FROM entry WHERE {}", conditions.sql);
    let count: i64 =
        db.prepare_cached(&sql)?.query_row(params_from_iter(conditions.values), |row| row.get(0))?;
    Ok(entries::millis(count))
}

/// The conditions of a statement, and their values.
struct Conditions {
    sql: String,
    values: Vec<Value>,
}

impl Conditions {
    fn of(collection: &CollectionRow, filter: &EntryFilter) -> Self {
        let mut conditions =
            Self { sql: "collection = ?1".to_owned(), values: vec![Value::from(collection.id)] };
        conditions.add_words("kind", &filter.kinds);
        conditions.add_words("state", &filter.states);
        for (condition, name) in [("user =", &filter.user), ("session =", &filter.session)] {
            if let Some(name) = name {
                conditions.add(condition, Value::from(name.clone()));
            }
        }
        if let Some(since) = filter.since {
            conditions.add("created_at >=", Value::from(stored(since)));
        }
        conditions
    }

    fn add(&mut self, condition: &str, value: Value) {
        self.values.push(value);
        self.sql.push_str(&format!(" AND {condition} ?{}", self.values.len()));
    }

    /// Words of an enum, which need no quotes of their own.
    fn add_words<T: Serialize>(&mut self, column: &str, words: &[T]) {
        if !words.is_empty() {
            let words: Vec<String> = words.iter().map(|word| format!("'{}'", text_of(word))).collect();
            self.sql.push_str(&format!(" AND {column} IN ({})", words.join(", ")));
        }
    }
}

/// The ids of entries of an encrypted collection. The file does not show what they are, but the index in memory knows.
fn listed(
    db: &Db<'_>,
    indexes: &Indexes,
    collection: &CollectionRow,
    filter: &EntryFilter,
) -> rusqlite::Result<Vec<i64>> {
    if *filter == EntryFilter::default() {
        return entries::ids(db, "SELECT id FROM entry WHERE collection = ?1", [collection.id]);
    }
    let index = indexes.get(db, collection)?;
    Ok(index.vectors.read().unwrap_or_else(PoisonError::into_inner).listed(filter))
}

/// Opens all entries that are listed, because the file does not have the order of their keys, and keeps the first.
fn list_sealed(
    db: &Db<'_>,
    indexes: &Indexes,
    collection: &CollectionRow,
    filter: &EntryFilter,
    after: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Entry>> {
    let mut first: BTreeMap<String, Entry> = BTreeMap::new();
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM entry WHERE id = ?1"))?;
    for id in listed(db, indexes, collection, filter)? {
        let Some(entry) = statement.query_row([id], |row| entries::read(db, row)).optional()? else {
            continue;
        };
        if entry.key.as_str() > after {
            first.insert(entry.key.clone(), entry);
            if first.len() > limit {
                first.pop_last();
            }
        }
    }
    Ok(first.into_values().collect())
}
