//! Events in the database.
//!
//! Owns their table: the positions they get, when the oldest are removed, and that no reader sees an event
//! before it is on the disk. Never decides what goes into one transaction.

use super::body;
use super::log::{EventLogHandle, EventLogSettings, new_log_id};
use super::ring::{AnswerBudget, EventRing};
use crate::database::{from_sql_integer, to_sql_integer};
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_ports::{EventBounds, LoggedEvent};
use rusqlite::{Connection, params};
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
    /// The events inserted in the open transaction.
    inserted: Vec<LoggedEvent>,
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
        Ok(Self { log, committed, pending: committed, inserted: Vec::new() })
    }

    pub(crate) fn log(&self) -> &EventLogHandle {
        &self.log
    }

    pub(crate) fn insert_run_events(
        &mut self,
        connection: &Connection,
        events: Vec<RunEvent>,
    ) -> rusqlite::Result<()> {
        let max_bytes = self.log.settings.max_event_bytes;
        body::run_events(events, max_bytes)
            .try_for_each(|(run, json)| self.insert(connection, run, json.into()))
    }

    pub(crate) fn insert_flow_event(
        &mut self,
        connection: &Connection,
        json: &Arc<str>,
    ) -> rusqlite::Result<()> {
        self.insert(connection, None, Arc::clone(json))
    }

    fn insert(
        &mut self,
        connection: &Connection,
        run: Option<RunId>,
        json: Arc<str>,
    ) -> rusqlite::Result<()> {
        let position = self.pending.newest + 1;
        connection
            .prepare_cached("INSERT INTO events(id, run_id, body) VALUES (?1, ?2, ?3)")?
            .execute(params![to_sql_integer(position), run.as_ref().map(RunId::as_str), json])?;
        self.pending.newest = position;
        self.inserted.push(LoggedEvent { position, run, json });
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

    /// The transaction is on the disk: readers may see its events.
    pub(crate) fn on_commit(&mut self) {
        if self.committed != self.pending {
            self.committed = self.pending;
            self.log.ring.publish(self.inserted.drain(..), self.committed.oldest);
        }
    }

    /// The transaction failed: the next events get the same positions.
    pub(crate) fn on_rollback(&mut self) {
        self.pending = self.committed;
        self.inserted.clear();
    }
}

/// The stored events after a position, up to `newest`.
pub(crate) fn events_between(
    connection: &Connection,
    position: u64,
    newest: u64,
    most: usize,
) -> rusqlite::Result<Vec<LoggedEvent>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, run_id, body FROM events WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3",
    )?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut rows = statement.query([to_sql_integer(position), to_sql_integer(newest), most])?;
    let (mut events, mut budget) = (Vec::new(), AnswerBudget::default());
    while let Some(row) = rows.next()? {
        let json = row.get_ref(2)?.as_str()?;
        if !budget.take(json.len()) {
            break;
        }
        let run = row.get::<_, Option<String>>(1)?.map(RunId::from);
        events.push(LoggedEvent { position: from_sql_integer(row.get(0)?)?, run, json: json.into() });
    }
    Ok(events)
}

/// Whether an event is missing between two others. The oldest may be removed meanwhile; others may not.
pub(crate) fn has_gap(events: &[LoggedEvent]) -> bool {
    events.windows(2).any(|pair| pair[0].position + 1 != pair[1].position)
}
