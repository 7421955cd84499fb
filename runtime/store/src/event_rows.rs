//! Events in the database.
//!
//! Owns their table: the positions they get, when the oldest go, and that nobody reads one before it is on the
//! disk. Never decides what goes into one transaction.

use crate::error;
use crate::event_ring::{EventLogSettings, EventRing, LogParts, Room, new_log_id, run_bodies};
use crate::read::{Tables, unsigned};
use redflow_contract::event::RunEvent;
use redflow_contract::id::RunId;
use redflow_ports::{EventBounds, LoggedEvent, StoreError};
use rusqlite::{Connection, params};
use std::sync::Arc;

/// How many of the newest events are also in memory, and how many bytes of them.
const RECENT: usize = 4096;
const RECENT_BYTES: usize = 8 * 1024 * 1024;

/// How many events more than wanted there may be before the oldest go, so that they go many at a time.
const SLACK: u64 = 1024;

/// How many go in one transaction, and how many more for each that came in it: so there are never more and more.
const STEP: u64 = 4096;
const STEP_EACH: u64 = 2;

/// The writing side of the table.
pub(crate) struct EventRows {
    log: LogParts,
    /// What is on the disk.
    kept: EventBounds,
    /// What will be, if the transaction is committed.
    written: EventBounds,
    /// What was written in it.
    fresh: Vec<LoggedEvent>,
}

impl EventRows {
    /// Goes on after what is there. The first time the log is given its name.
    pub(crate) fn open(connection: &Connection, settings: EventLogSettings) -> rusqlite::Result<Self> {
        connection.execute("UPDATE meta SET log = ?1 WHERE log IS NULL", [new_log_id()])?;
        let id: String = connection.query_row("SELECT log FROM meta", [], |row| row.get(0))?;
        // Two questions: for both in one SQLite would look at every row.
        let (first, last): (Option<i64>, Option<i64>) = connection.query_row(
            "SELECT (SELECT min(id) FROM events), (SELECT max(id) FROM events)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let newest = unsigned(last.unwrap_or(0))?;
        let oldest = first.map_or(Ok(newest), |first| unsigned(first.saturating_sub(1)))?;
        let kept = EventBounds { oldest, newest };
        let log = LogParts {
            id: id.into(),
            settings: settings.usable(),
            ring: Arc::new(EventRing::new(kept, RECENT, RECENT_BYTES)),
        };
        Ok(Self { log, kept, written: kept, fresh: Vec::new() })
    }

    pub(crate) fn log(&self) -> &LogParts {
        &self.log
    }

    /// Writes the events of a batch.
    pub(crate) fn of_run(&mut self, connection: &Connection, events: Vec<RunEvent>) -> rusqlite::Result<()> {
        let most = self.log.settings.max_event_bytes;
        run_bodies(events, most).try_for_each(|(run, body)| self.write(connection, run, body.into()))
    }

    /// Writes an event of the flow.
    pub(crate) fn of_flow(&mut self, connection: &Connection, body: &Arc<str>) -> rusqlite::Result<()> {
        self.write(connection, None, Arc::clone(body))
    }

    fn write(&mut self, connection: &Connection, run: Option<RunId>, json: Arc<str>) -> rusqlite::Result<()> {
        let position = self.written.newest + 1;
        connection
            .prepare_cached("INSERT INTO events(id, run_id, body) VALUES (?1, ?2, ?3)")?
            .execute(params![number(position), run.as_ref().map(RunId::as_str), json])?;
        self.written.newest = position;
        self.fresh.push(LoggedEvent { position, run, json });
        Ok(())
    }

    /// Removes some of the oldest, if there are too many.
    pub(crate) fn trim(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let EventBounds { oldest, newest } = self.written;
        let most = self.log.settings.max_events as u64;
        if newest - oldest <= most.saturating_add(SLACK) {
            return Ok(());
        }
        let step = STEP + STEP_EACH * self.fresh.len() as u64;
        let until = (newest - most).min(oldest + step);
        connection.prepare_cached("DELETE FROM events WHERE id <= ?1")?.execute([number(until)])?;
        self.written.oldest = until;
        Ok(())
    }

    /// Everything written is on the disk now, and may be read.
    pub(crate) fn committed(&mut self) {
        if self.kept != self.written {
            self.kept = self.written;
            self.log.ring.show(self.fresh.drain(..), self.kept.oldest);
        }
    }

    /// Nothing of it is. The next events get the same positions.
    pub(crate) fn rolled_back(&mut self) {
        self.written = self.kept;
        self.fresh.clear();
    }
}

/// Events after a position up to another one, as the database has them.
pub(crate) fn between(
    tables: &Tables<'_>,
    position: u64,
    newest: u64,
    most: usize,
) -> Result<Vec<LoggedEvent>, StoreError> {
    let ask = || {
        let mut statement = tables.connection().prepare_cached(
            "SELECT id, run_id, body FROM events WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3",
        )?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut rows = statement.query([number(position), number(newest), most])?;
        let (mut found, mut room) = (Vec::<LoggedEvent>::new(), Room::default());
        while let Some(row) = rows.next()? {
            let json = row.get_ref(2)?.as_str()?;
            if !room.has(json.len()) {
                break;
            }
            let run = row.get::<_, Option<String>>(1)?.map(RunId::from);
            found.push(LoggedEvent { position: unsigned(row.get(0)?)?, run, json: json.into() });
        }
        Ok(found)
    };
    let found = ask().map_err(|why| tables.told(&why))?;
    // The oldest may have gone meanwhile; others do not.
    if found.windows(2).any(|pair| pair[0].position + 1 != pair[1].position) {
        return Err(error::damaged(tables.dir(), &"an event is missing"));
    }
    Ok(found)
}

/// As SQLite has whole numbers.
fn number(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}
