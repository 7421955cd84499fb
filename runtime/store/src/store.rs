//! The store of the process that drives runs.
//!
//! Owns the lock, the writer and one connection to read by. Never writes by itself: everything goes through the
//! writer's queue.

use crate::chat_lines::ChatQueue;
use crate::chat_rows;
use crate::database;
use crate::directory::Directory;
use crate::error;
use crate::event_body;
use crate::event_ring::{EventLogSettings, LogParts};
use crate::event_rows;
use crate::journal::{Handle, StoreJournal};
use crate::ledger::{Ledger, Mark};
use crate::lock::Lock;
use crate::read::Tables;
use crate::requests;
use crate::writer::{Command, StoreStats, Writer};
use redflow_contract::Millis;
use redflow_contract::chat::ChatItem;
use redflow_contract::code::StoreCode;
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::run::RunSummary;
use redflow_ports::{
    BoxFuture, ChatStore, EventBounds, EventLog, Journal, LoggedEvent, NewRun, PendingRequest, RunFilter,
    RunReader, RunRecord, RunStore, StoreError, StoredRun,
};
use rusqlite::Connection;
use std::future::{pending, ready};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often the driver looks for requests of other processes.
const LOOK: Duration = Duration::from_millis(250);

/// Runs in a data directory, for the one process that drives them. Dropped, it writes down what is queued and
/// lets the next process have them.
#[derive(Debug)]
pub struct Store {
    // In the order of their end: the writer closes the database last and so tidies it up, then the lock goes.
    reads: Reads,
    /// The last request that was given.
    given: Mutex<i64>,
    /// If events are kept.
    log: Option<LogParts>,
    chats: Arc<ChatQueue>,
    writer: Writer,
    _lock: Lock,
}

/// The connection to read by, one question at a time. Whoever waits for it holds no thread.
#[derive(Debug, Clone)]
struct Reads {
    directory: Directory,
    connection: Arc<tokio::sync::Mutex<Connection>>,
}

impl Store {
    /// Opens a data directory to drive its runs. Makes what is not there. Keeps no events.
    ///
    /// # Errors
    /// When another process drives them, or the directory or its database cannot be used.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_as(dir, None)
    }

    /// The same, and keeps events: it is an [`EventLog`] then.
    ///
    /// # Errors
    /// As above.
    pub fn open_with_log(dir: &Path, settings: EventLogSettings) -> Result<Self, StoreError> {
        Self::open_as(dir, Some(settings))
    }

    fn open_as(dir: &Path, settings: Option<EventLogSettings>) -> Result<Self, StoreError> {
        let directory = Directory::named(dir)?;
        directory.make()?;
        let lock = Lock::take(&directory)?;
        directory.make_database()?;
        let told = |why: rusqlite::Error| error::sqlite(directory.path(), &why);
        let connection = database::drive(&directory)?;
        requests::forget_old(&connection).map_err(told)?;
        let chats = ChatQueue::after(chat_rows::last(&connection).map_err(told)?);
        let mut ledger = Ledger::new(directory.path(), connection).map_err(told)?;
        let log = settings.map(|settings| ledger.keep_events(settings)).transpose().map_err(told)?;
        let reads = database::read(&directory)?;
        Ok(Self {
            writer: Writer::start(directory.path(), ledger)?,
            reads: Reads { directory, connection: Arc::new(tokio::sync::Mutex::new(reads)) },
            given: Mutex::new(0),
            log,
            chats,
            _lock: lock,
        })
    }

    /// What it has done since it was opened.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        self.writer.stats()
    }

    /// Asks the database, after everything that is queued now has been written.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Tables<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer.queue.settled().await?;
        self.reads.ask(question).await
    }

    /// If the writer is gone there is nobody to tell: every journal says so by itself.
    fn tell(&self, command: Command) {
        let _ = self.writer.queue.send(command);
    }

    /// Those that nobody was given yet. What no version of ours wrote is refused here.
    fn give(&self, found: Vec<requests::Found>) -> Vec<PendingRequest> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let new = found.into_iter().filter(|found| found.id > *given).collect::<Vec<_>>();
        *given = new.iter().map(|found| found.id).fold(*given, i64::max);
        drop(given);
        let readable = |found: requests::Found| match serde_json::from_str(&found.body) {
            Ok(request) => Some(PendingRequest { id: found.id, run: found.run, request }),
            Err(_) => {
                self.answer(found.id, Some(StoreCode::DataCorrupt));
                None
            }
        };
        new.into_iter().filter_map(readable).collect()
    }

    #[cfg(test)]
    pub(crate) fn patience(&self, patience: Duration) {
        self.tell(Command::Patience(patience));
    }

    #[cfg(test)]
    pub(crate) async fn sql(&self, sql: &str) {
        let (done, written) = tokio::sync::oneshot::channel();
        self.tell(Command::Sql(sql.to_owned(), done));
        written.await.unwrap();
    }
}

impl Reads {
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Tables<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Self { directory, connection } = self.clone();
        let connection = connection.lock_owned().await;
        let asked = tokio::task::spawn_blocking(move || {
            question(&Tables::new(&connection, directory.path(), || true))
        });
        asked.await.unwrap_or_else(|_| Err(error::closed()))
    }
}

impl RunStore for Store {
    fn keeps_events(&self) -> bool {
        self.log.is_some()
    }

    fn create(&self, run: NewRun) -> Box<dyn Journal> {
        Box::new(StoreJournal::begin(self.writer.queue.clone(), run))
    }

    fn reopen(&self, run: &StoredRun) -> Box<dyn Journal> {
        let handle = Handle::new(run.summary.run_id.clone());
        self.tell(Command::Reopen { handle: Arc::clone(&handle), mark: run.mark });
        Box::new(StoreJournal::go_on(self.writer.queue.clone(), handle, run.mark.batches))
    }

    fn load<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |tables| tables.load(&run)))
    }

    fn unfinished(&self) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        Box::pin(self.ask(|tables| tables.unfinished()))
    }

    fn started_by<'a>(&'a self, cause: &'a str) -> BoxFuture<'a, Result<Option<RunId>, StoreError>> {
        let cause = cause.to_owned();
        Box::pin(self.ask(move |tables| tables.started_by(&cause)))
    }

    fn delivered(&self, run: &RunId) {
        self.tell(Command::Mark(Some(Mark::Delivered(run.clone()))));
    }

    fn requests(&self) -> BoxFuture<'_, Vec<PendingRequest>> {
        Box::pin(async move {
            loop {
                let after = *self.given.lock().unwrap_or_else(PoisonError::into_inner);
                // What cannot be read now may be readable the next time.
                let found = self.reads.ask(move |tables| requests::after(tables, after)).await;
                let new = self.give(found.unwrap_or_default());
                if !new.is_empty() {
                    return new;
                }
                tokio::time::sleep(LOOK).await;
            }
        })
    }

    fn answer(&self, request: i64, refused: Option<StoreCode>) {
        self.tell(Command::Mark(Some(Mark::Answer { request, refused })));
    }
}

impl RunReader for Store {
    fn list(&self, filter: RunFilter) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        Box::pin(self.ask(move |tables| tables.newest(&filter)))
    }

    fn look<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>> {
        let run = run.clone();
        Box::pin(self.ask(move |tables| tables.look(&run)))
    }
}

/// Of a store that keeps no events, an empty one that stays so.
impl EventLog for Store {
    fn id(&self) -> &str {
        self.log.as_ref().map_or("", |log| &log.id)
    }

    fn bounds(&self) -> EventBounds {
        self.log.as_ref().map_or(EventBounds { oldest: 0, newest: 0 }, |log| log.ring.bounds())
    }

    fn append(&self, at: Millis, event: FlowEvent) {
        let Some(log) = &self.log else { return };
        let most = log.settings.max_event_bytes;
        // Made here, where a large value is let go at once: only what is kept of it waits.
        let line = self.writer.flow.admit(event, |event| event_body::of_flow(at, event, most));
        if let Some(line) = line {
            self.tell(Command::Mark(Some(Mark::Flow(line))));
        }
    }

    fn after(&self, position: u64, most: usize) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>> {
        let Some(log) = &self.log else { return Box::pin(ready(Ok(Vec::new()))) };
        if let Some(events) = log.ring.after(position, most) {
            return Box::pin(ready(Ok(events)));
        }
        let newest = log.ring.bounds().newest;
        Box::pin(self.reads.ask(move |tables| event_rows::between(tables, position, newest, most)))
    }

    fn wait_past(&self, position: u64) -> BoxFuture<'_, ()> {
        match &self.log {
            Some(log) => Box::pin(log.ring.wait_past(position)),
            None => Box::pin(pending()),
        }
    }
}

impl ChatStore for Store {
    fn say(&self, node: &NodeId, item: ChatItem, keeps: usize) {
        if let Some(line) = self.chats.admit(node, item, keeps) {
            self.tell(Command::Mark(Some(Mark::Chat(line))));
        }
    }

    fn said<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<Vec<ChatItem>, StoreError>> {
        let node = node.clone();
        Box::pin(self.ask(move |tables| chat_rows::said(tables, &node)))
    }

    fn clear<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (done, cleared) = tokio::sync::oneshot::channel();
            let (node, until) = (node.clone(), self.chats.last());
            self.writer.queue.send(Command::ClearChat { node, until, done })?;
            cleared.await.unwrap_or_else(|_| Err(error::closed()))
        })
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
