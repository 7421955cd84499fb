//! Events in the database.
//!
//! Owns their table: the positions they get, when the oldest are removed, and that no reader sees an event
//! before it is on the disk. Never decides what goes into one transaction.

use super::body::{self, EventBody, erased_json, erased_run_json};
use super::log::{EventLogHandle, EventLogSettings, new_log_id};
use super::ring::{AnswerBudget, EventRing};
use crate::database::{from_sql_integer, to_sql_integer};
use crate::removed_runs::RemovedRuns;
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_ports::{EventBounds, EventJson, LoggedEvent, ToolCallQuery};
use rusqlite::{Connection, Rows, params};
use std::collections::HashMap;
use std::sync::Arc;

/// The newest events that are also in memory, and their bytes.
const MAX_RECENT: usize = 4096;
const MAX_RECENT_BYTES: usize = 8 * 1024 * 1024;

/// Events beyond the limit before the oldest are removed, so that many are removed at a time.
const SLACK: u64 = 1024;

/// Events removed in one transaction, plus this many for each event added in it. So removal is faster than
/// growth.
const TRIM_STEP: u64 = 4096;
const TRIM_PER_EVENT: u64 = 2;

/// The writing side of the table.
pub(crate) struct EventRows {
    log: EventLogHandle,
    /// The events that are on the disk.
    committed: EventBounds,
    /// The events that will be on the disk after the open transaction.
    pending: EventBounds,
    /// The events inserted in the open transaction, each with its bytes.
    inserted: Vec<(LoggedEvent, usize)>,
    /// The events replaced in the open transaction, by their positions.
    erased: HashMap<u64, EventJson>,
}

impl EventRows {
    /// Continues after the stored events. Gives the log its id if it has none.
    pub(crate) fn open(connection: &Connection, settings: EventLogSettings) -> rusqlite::Result<Self> {
        connection.execute("UPDATE meta SET log = ?1 WHERE log IS NULL", [new_log_id()])?;
        let id: String = connection.query_row("SELECT log FROM meta", [], |row| row.get(0))?;
        // Two subqueries: for both values in one SQLite would read every row.
        let (first, last): (Option<i64>, Option<i64>) = connection.query_row(
            "SELECT (SELECT min(id) FROM events), (SELECT max(id) FROM events)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let newest = from_sql_integer(last.unwrap_or(0))?;
        let oldest = first.map_or(Ok(newest), |first| from_sql_integer(first.saturating_sub(1)))?;
        let committed = EventBounds { oldest, newest };
        let log = EventLogHandle {
            id: id.into(),
            settings: settings.with_minimums(),
            ring: Arc::new(EventRing::new(committed, MAX_RECENT, MAX_RECENT_BYTES)),
        };
        Ok(Self { log, committed, pending: committed, inserted: Vec::new(), erased: HashMap::new() })
    }

    pub(crate) fn log(&self) -> &EventLogHandle {
        &self.log
    }

    pub(crate) fn insert_run_events(
        &mut self,
        connection: &Connection,
        events: &[RunEvent],
    ) -> rusqlite::Result<()> {
        let max_bytes = self.log.settings.max_event_bytes;
        body::run_events(events, max_bytes).try_for_each(|body| self.insert(connection, body))
    }

    pub(crate) fn insert(&mut self, connection: &Connection, body: EventBody) -> rusqlite::Result<()> {
        let EventBody { run, tool, json, bytes } = body;
        let position = self.pending.newest + 1;
        connection
            .prepare_cached("INSERT INTO events(id, run_id, tool, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![to_sql_integer(position), run.as_ref().map(RunId::as_str), tool, &*json])?;
        self.pending.newest = position;
        self.inserted.push((LoggedEvent { position, run, tool, json }, bytes));
        Ok(())
    }

    /// Removes some of the oldest events, if there are too many.
    pub(crate) fn trim(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let EventBounds { oldest, newest } = self.pending;
        let max_events = self.log.settings.max_events as u64;
        if newest - oldest <= max_events.saturating_add(SLACK) {
            return Ok(());
        }
        let step = TRIM_STEP + TRIM_PER_EVENT * self.inserted.len() as u64;
        let until = (newest - max_events).min(oldest + step);
        connection.prepare_cached("DELETE FROM events WHERE id <= ?1")?.execute([to_sql_integer(until)])?;
        self.pending.oldest = until;
        Ok(())
    }

    /// Replaces the events of removed runs. Their positions stay.
    pub(crate) fn erase(&mut self, connection: &Connection, removed: &RemovedRuns) -> rusqlite::Result<()> {
        self.erased.extend(erase(connection, removed)?);
        for (event, bytes) in &mut self.inserted {
            if let Some(json) = self.erased.get(&event.position) {
                *bytes = json.len();
                let position = event.position;
                *event = LoggedEvent { position, run: None, tool: None, json: json.clone() };
            }
        }
        Ok(())
    }

    /// The transaction is on the disk: readers may see its events.
    pub(crate) fn on_commit(&mut self) {
        if !self.erased.is_empty() {
            self.log.ring.replace(&std::mem::take(&mut self.erased));
        }
        if self.committed != self.pending {
            self.committed = self.pending;
            self.log.ring.publish(self.inserted.drain(..), self.committed.oldest);
        }
    }

    /// The transaction failed: the next events get the same positions.
    pub(crate) fn on_rollback(&mut self) {
        self.pending = self.committed;
        self.inserted.clear();
        self.erased.clear();
    }
}

/// Replaces the stored events of removed runs. Returns what is at their positions now. Nothing tells any more whose
/// the runs were that are not stored: they were removed earlier, so their events go too.
pub(crate) fn erase(
    connection: &Connection,
    removed: &RemovedRuns,
) -> rusqlite::Result<HashMap<u64, EventJson>> {
    let mut erased = HashMap::new();
    let mut read = connection.prepare(
        "SELECT id, run_id IS NULL, body FROM events
         WHERE run_id IS NULL OR NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = events.run_id)",
    )?;
    let mut rows = read.query([])?;
    while let Some(row) = rows.next()? {
        let (is_of_flow, json) = (row.get(1)?, row.get_ref(2)?.as_str()?);
        let json = if is_of_flow { erased_json(json, removed) } else { Some(erased_run_json(json)) };
        if let Some(json) = json {
            erased.insert(from_sql_integer(row.get(0)?)?, EventJson::from(json));
        }
    }
    drop(rows);
    let replace = "UPDATE events SET run_id = NULL, tool = NULL, body = ?2 WHERE id = ?1";
    let mut replace = connection.prepare(replace)?;
    for (position, json) in &erased {
        replace.execute(params![to_sql_integer(*position), &**json])?;
    }
    Ok(erased)
}

/// The stored events after a position, up to `newest`.
pub(crate) fn events_between(
    connection: &Connection,
    position: u64,
    newest: u64,
    most: usize,
) -> rusqlite::Result<Vec<LoggedEvent>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, run_id, tool, body FROM events WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3",
    )?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    read_events(statement.query([to_sql_integer(position), to_sql_integer(newest), most])?)
}

/// The stored events that ended calls of a tool, newest first.
pub(crate) fn calls(connection: &Connection, query: &ToolCallQuery) -> rusqlite::Result<Vec<LoggedEvent>> {
    let mut statement = connection.prepare_cached(
        // Two lists, each from the index: for `tool IN` SQLite would sort all calls.
        "SELECT * FROM (SELECT id, run_id, tool, body FROM events WHERE tool = ?1 AND id < ?3
             ORDER BY id DESC LIMIT ?4)
         UNION ALL
         SELECT * FROM (SELECT id, run_id, tool, body FROM events WHERE tool = ?2 AND ?2 <> ?1 AND id < ?3
             ORDER BY id DESC LIMIT ?4)
         ORDER BY id DESC LIMIT ?4",
    )?;
    let before = query.before.map_or(i64::MAX, to_sql_integer);
    let most = i64::try_from(query.most).unwrap_or(i64::MAX);
    read_events(statement.query(params![query.id, query.name, before, most])?)
}

fn read_events(mut rows: Rows<'_>) -> rusqlite::Result<Vec<LoggedEvent>> {
    let (mut events, mut budget) = (Vec::new(), AnswerBudget::default());
    while let Some(row) = rows.next()? {
        let json = row.get_ref(3)?.as_str()?;
        if !budget.take(json.len()) {
            break;
        }
        let run = row.get::<_, Option<String>>(1)?.map(RunId::from);
        let (position, tool) = (from_sql_integer(row.get(0)?)?, row.get(2)?);
        events.push(LoggedEvent { position, run, tool, json: json.into() });
    }
    Ok(events)
}

/// Whether an event is missing between two others. The oldest may be removed meanwhile; others may not.
pub(crate) fn has_gap(events: &[LoggedEvent]) -> bool {
    events.windows(2).any(|pair| pair[0].position + 1 != pair[1].position)
}
