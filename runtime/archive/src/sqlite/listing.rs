//! Entries that are listed and counted by what is known about them.

use super::entries::{self, CollectionRow, text_of};
use super::entry_row::{self, COLUMNS, stored};
use super::indexes::Indexes;
use super::seal::Db;
use redflow_contract::archive::{Entry, EntryKind, EntryState};
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
    let (sql, values) = list_statement(collection, filter, after, limit);
    let mut statement = db.prepare_cached(&sql)?;
    statement.query_map(params_from_iter(values), |row| entries::read(db, row))?.collect()
}

/// A statement with its values.
type Statement = (String, Vec<Value>);

pub(super) fn list_statement(
    collection: &CollectionRow,
    filter: &EntryFilter,
    after: &str,
    limit: usize,
) -> Statement {
    let mut conditions = Conditions::of(collection, filter);
    conditions.add("key >", Value::from(after.to_owned()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let Conditions { sql, values } = conditions;
    let sql = format!("SELECT {COLUMNS} FROM {} WHERE {sql} ORDER BY key LIMIT {limit}", table(filter));
    (sql, values)
}

/// How many entries there are.
pub(super) fn count(
    db: &Db<'_>,
    indexes: &Indexes,
    collection: &CollectionRow,
    filter: &EntryFilter,
) -> rusqlite::Result<u64> {
    if *filter == EntryFilter::default() {
        return Ok(entry_row::millis(collection.entries));
    }
    if db.is_sealed() {
        return Ok(listed(db, indexes, collection, filter)?.len() as u64);
    }
    let (sql, values) = count_statement(collection, filter);
    let count: i64 = db.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0))?;
    Ok(entry_row::millis(count))
}

pub(super) fn count_statement(collection: &CollectionRow, filter: &EntryFilter) -> Statement {
    let Conditions { sql, values } = Conditions::of(collection, filter);
    (format!("SELECT count(*) FROM {} WHERE {sql}", table(filter)), values)
}

/// The sessions of entries after a session, in their order.
pub(super) fn sessions(
    db: &Db<'_>,
    indexes: &Indexes,
    collection: &CollectionRow,
    filter: &EntryFilter,
    after: &str,
    limit: usize,
) -> rusqlite::Result<Vec<String>> {
    if db.is_sealed() {
        let index = indexes.get(db, collection)?;
        let vectors = index.vectors.read().unwrap_or_else(PoisonError::into_inner);
        return Ok(vectors.sessions(filter, after, limit));
    }
    let mut sessions: Vec<String> = Vec::new();
    // One by one, because a session may have many entries.
    while sessions.len() < limit {
        let (sql, values) =
            session_statement(collection, filter, sessions.last().map_or(after, String::as_str));
        let next =
            db.prepare_cached(&sql)?.query_row(params_from_iter(values), |row| row.get(0)).optional()?;
        match next {
            Some(session) => sessions.push(session),
            None => break,
        }
    }
    Ok(sessions)
}

pub(super) fn session_statement(collection: &CollectionRow, filter: &EntryFilter, after: &str) -> Statement {
    let mut conditions = Conditions::of(collection, filter);
    conditions.add("session >", Value::from(after.to_owned()));
    let Conditions { sql, values } = conditions;
    let table = if is_pending(filter) { PENDING } else { ENTRIES };
    (format!("SELECT session FROM {table} WHERE {sql} ORDER BY session LIMIT 1"), values)
}

/// The ids of some entries.
pub(super) fn ids(
    db: &Db<'_>,
    indexes: &Indexes,
    collection: &CollectionRow,
    filter: &EntryFilter,
    limit: usize,
) -> rusqlite::Result<Vec<i64>> {
    if db.is_sealed() {
        let mut ids = listed(db, indexes, collection, filter)?;
        ids.truncate(limit);
        return Ok(ids);
    }
    let Conditions { sql, values } = Conditions::of(collection, filter);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = format!("SELECT id FROM {} WHERE {sql} LIMIT {limit}", table(filter));
    entries::ids(db, &sql, params_from_iter(values))
}

const ENTRIES: &str = "entry";
/// The turns of a session that wait.
const PENDING: &str = "entry INDEXED BY entry_pending";

/// The table of a filter, with the index that holds the fewest entries. SQLite knows no numbers of entries, and would take
/// one that holds all turns.
fn table(filter: &EntryFilter) -> &'static str {
    let is_of_notes =
        filter.since.is_some() && !filter.kinds.is_empty() && !filter.kinds.contains(&EntryKind::Episode);
    match filter {
        EntryFilter { session: Some(_), .. } if is_pending(filter) => PENDING,
        EntryFilter { user: Some(_), .. } if is_of_notes => "entry INDEXED BY entry_notes_by_user",
        EntryFilter { session: Some(_), .. } if is_of_notes => "entry INDEXED BY entry_notes_by_session",
        _ => ENTRIES,
    }
}

fn is_pending(filter: &EntryFilter) -> bool {
    filter.kinds == [EntryKind::Episode] && filter.states == [EntryState::Live]
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
        if !filter.kinds.is_empty() && !filter.kinds.contains(&EntryKind::Episode) {
            // Says again what the list says, because SQLite uses an index of notes only then.
            conditions.sql.push_str(" AND kind <> 'episode'");
        }
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
        let words: Vec<String> = words.iter().map(|word| format!("'{}'", text_of(word))).collect();
        match words.as_slice() {
            [] => {}
            // SQLite uses an index with a condition only if the statement has the same one.
            [word] => self.sql.push_str(&format!(" AND {column} = {word}")),
            words => self.sql.push_str(&format!(" AND {column} IN ({})", words.join(", "))),
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
