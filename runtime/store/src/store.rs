//! The store of the process that drives runs.
//!
//! Owns the lock, the writer and one connection for reading. Never writes by itself: every write goes through
//! the queue of the writer.

use crate::chats::queue::ChatQueue;
use crate::chats::rows as chat_rows;
use crate::database;
use crate::directory::Directory;
use crate::error;
use crate::events::log::{EventLogHandle, EventLogSettings};
use crate::events::{body, rows as event_rows};
use crate::lock::Lock;
use crate::requests::{self, StoredRequest};
use crate::runs::batch::JournalHandle;
use crate::runs::journal::StoreJournal;
use crate::runs::queries::RunQueries;
use crate::runs::run_tables::RunTables;
use crate::write_queue::{BackgroundWrite, WriteCommand};
use crate::writer::{StoreStats, Writer};
use redflow_contract::Millis;
use redflow_contract::api::RunList;
use redflow_contract::chat::ChatItem;
use redflow_contract::code::StoreCode;
use redflow_contract::console::{RunTree, Stats};
use redflow_contract::event::FlowEvent;
use redflow_contract::id::{NodeId, RunId};
use redflow_contract::memory::DataOwner;
use redflow_contract::run::RunSummary;
use redflow_ports::{
    BoxFuture, ChatStore, EventBounds, EventLog, ForgottenRuns, Journal, LoggedEvent, NewRun, PendingRequest,
    RunFilter, RunReader, RunRecord, RunStore, StatsQuery, StoreError, StoredRun, ToolCallQuery, TreeQuery,
};
use rusqlite::Connection;
use std::future::{pending, ready};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How often the driver looks for requests of other processes.
const REQUEST_INTERVAL: Duration = Duration::from_millis(250);

/// The runs of a data directory, for the one process that drives them. When dropped, it writes everything
/// that is queued and gives up the lock.
#[derive(Debug)]
pub struct Store {
    // Dropped in this order: the writer closes the database last, so SQLite removes its extra files; then the
    // lock.
    reads: ReadConnection,
    /// For lists, sums and whole runs. They may take long, and no start of a run waits for them.
    list_reads: ReadConnection,
    /// The last request that was returned.
    last_request: Mutex<i64>,
    /// None if events are not stored.
    log: Option<EventLogHandle>,
    chats: Arc<ChatQueue>,
    writer: Writer,
    lock: Lock,
}

/// The connection for reading, one query at a time. A caller that waits for it blocks no thread.
#[derive(Debug, Clone)]
struct ReadConnection {
    directory: Directory,
    connection: Arc<tokio::sync::Mutex<Connection>>,
}

impl Store {
    /// Opens a data directory to drive its runs. Creates the directory and its database if needed. Stores no
    /// events.
    ///
    /// # Errors
    /// When another process drives the runs, or the directory or its database cannot be used.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_as(dir, None)
    }

    /// The same, and stores events: then it is an [`EventLog`].
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_with_log(dir: &Path, settings: EventLogSettings) -> Result<Self, StoreError> {
        Self::open_as(dir, Some(settings))
    }

    fn open_as(dir: &Path, settings: Option<EventLogSettings>) -> Result<Self, StoreError> {
        let directory = Directory::at(dir)?;
        directory.create()?;
        let lock = Lock::take(&directory)?;
        directory.create_database()?;
        let to_store_error = |error: rusqlite::Error| error::from_sqlite(directory.path(), &error);
        let connection = database::open_driver(&directory)?;
        requests::remove_old(&connection).map_err(to_store_error)?;
        let last_number = chat_rows::last_number(&connection).map_err(to_store_error)?;
        let mut tables = RunTables::take_over(directory.path(), connection).map_err(to_store_error)?;
        if tables.is_unclean().map_err(to_store_error)? {
            tracing::info!("removing what is left of forgotten runs from the files");
            if let Err(error) = tables.clean() {
                let error = error::not_cleaned(directory.path(), &error);
                tracing::warn!(%error, "bytes of forgotten runs are still in the files");
            }
        }
        let log = settings.map(|settings| tables.store_events(settings));
        let log = log.transpose().map_err(to_store_error)?;
        let reads = ReadConnection::open(&directory)?;
        let list_reads = ReadConnection::open(&directory)?;
        Ok(Self {
            writer: Writer::start(directory.path(), tables)?,
            reads,
            list_reads,
            last_request: Mutex::new(0),
            log,
            chats: ChatQueue::starting_after(last_number),
            lock,
        })
    }

    /// Writes where this process listens, so that commands of this machine find it. See [`crate::Driver::find`].
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_address(&self, address: SocketAddr) -> Result<(), StoreError> {
        self.lock.set_address(address)
    }

    /// Removes the address, so that no command looks for this process there. Call it before the listener closes.
    pub fn remove_address(&self) {
        self.lock.remove_address();
    }

    /// Counts of flushes, batches and bytes since the store was opened.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        self.writer.stats()
    }

    /// Runs a query, after everything that is queued now is written.
    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&RunQueries<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer.queue.wait_until_written().await?;
        self.reads.query(query).await
    }

    /// The same for lists, sums and whole runs.
    async fn query_list<T: Send + 'static>(
        &self,
        query: impl FnOnce(&RunQueries<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.writer.queue.wait_until_written().await?;
        self.list_reads.query(query).await
    }

    /// Queues a command without an answer. After the writer has ended, every journal reports that by itself.
    fn send(&self, command: WriteCommand) {
        let _ = self.writer.queue.send(command);
    }

    fn send_background(&self, write: BackgroundWrite) {
        self.send(WriteCommand::Background(Some(write)));
    }

    /// Selects the requests that were not returned before. Refuses those that this version cannot read.
    fn new_requests(&self, stored: Vec<StoredRequest>) -> Vec<PendingRequest> {
        let mut last = self.last_request.lock().unwrap_or_else(PoisonError::into_inner);
        let new = stored.into_iter().filter(|request| request.id > *last).collect::<Vec<_>>();
        *last = new.iter().map(|request| request.id).fold(*last, i64::max);
        drop(last);
        let parse = |stored: StoredRequest| match serde_json::from_str(&stored.body) {
            Ok(request) => Some(PendingRequest { id: stored.id, run: stored.run, request }),
            Err(_) => {
                self.answer_request(stored.id, Some(StoreCode::DataCorrupt));
                None
            }
        };
        new.into_iter().filter_map(parse).collect()
    }

    #[cfg(test)]
    pub(crate) fn set_busy_timeout(&self, timeout: Duration) {
        self.send(WriteCommand::BusyTimeout(timeout));
    }

    #[cfg(test)]
    pub(crate) async fn sql(&self, sql: &str) {
        let (done, written) = tokio::sync::oneshot::channel();
        self.send(WriteCommand::Sql(sql.to_owned(), done));
        written.await.unwrap();
    }
}

impl ReadConnection {
    fn open(directory: &Directory) -> Result<Self, StoreError> {
        let connection = database::open_reader(directory)?;
        Ok(Self { directory: directory.clone(), connection: Arc::new(tokio::sync::Mutex::new(connection)) })
    }

    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&RunQueries<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Self { directory, connection } = self.clone();
        let connection = connection.lock_owned().await;
        let result = tokio::task::spawn_blocking(move || {
            query(&RunQueries::new(&connection, directory.path(), || true))
        });
        result.await.unwrap_or_else(|_| Err(error::store_closed()))
    }
}

impl RunStore for Store {
    fn keeps_events(&self) -> bool {
        self.log.is_some()
    }

    fn create(&self, run: NewRun) -> Box<dyn Journal> {
        Box::new(StoreJournal::create(self.writer.queue.clone(), run))
    }

    fn reopen(&self, run: &StoredRun) -> Box<dyn Journal> {
        let handle = JournalHandle::new(run.summary.run_id.clone());
        self.send(WriteCommand::Reopen { handle: Arc::clone(&handle), mark: run.mark });
        Box::new(StoreJournal::reopen(self.writer.queue.clone(), handle, run.mark.batches))
    }

    fn load<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<StoredRun>, StoreError>> {
        let run = run.clone();
        Box::pin(self.query(move |queries| queries.load(&run)))
    }

    fn unfinished_runs(&self) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        Box::pin(self.query(|queries| queries.unfinished()))
    }

    fn find_by_cause<'a>(&'a self, cause: &'a str) -> BoxFuture<'a, Result<Option<RunId>, StoreError>> {
        let cause = cause.to_owned();
        Box::pin(self.query(move |queries| queries.started_by(&cause)))
    }

    fn mark_delivered(&self, run: &RunId) {
        self.send_background(BackgroundWrite::Delivered(run.clone()));
    }

    fn mark_hung(&self, run: &RunId, hung: bool) {
        self.send_background(BackgroundWrite::Hung { run: run.clone(), hung });
    }

    fn requests(&self) -> BoxFuture<'_, Vec<PendingRequest>> {
        Box::pin(async move {
            loop {
                let last = *self.last_request.lock().unwrap_or_else(PoisonError::into_inner);
                let stored = self.reads.query(move |queries| {
                    let stored = requests::unanswered_after(queries.connection(), last);
                    stored.map_err(|error| queries.error(&error))
                });
                // A failed query is tried again the next time.
                let new = self.new_requests(stored.await.unwrap_or_default());
                if !new.is_empty() {
                    return new;
                }
                tokio::time::sleep(REQUEST_INTERVAL).await;
            }
        })
    }

    fn answer_request(&self, request: i64, refused: Option<StoreCode>) {
        self.send_background(BackgroundWrite::Answer { request, refused });
    }

    fn forget_runs<'a>(&'a self, owner: &'a DataOwner) -> BoxFuture<'a, Result<ForgottenRuns, StoreError>> {
        Box::pin(async move {
            let (done, removed) = tokio::sync::oneshot::channel();
            let command = WriteCommand::Forget { owner: owner.clone(), forgotten: None, done };
            self.writer.queue.send(command)?;
            removed.await.unwrap_or_else(|_| Err(error::store_closed()))
        })
    }
}

impl RunReader for Store {
    fn list(&self, filter: RunFilter) -> BoxFuture<'_, Result<RunList, StoreError>> {
        Box::pin(self.query_list(move |queries| queries.newest(&filter)))
    }

    fn summary<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunSummary>, StoreError>> {
        let run = run.clone();
        Box::pin(self.query_list(move |queries| queries.summary(&run)))
    }

    fn tree(&self, query: TreeQuery) -> BoxFuture<'_, Result<Option<RunTree>, StoreError>> {
        Box::pin(self.query_list(move |queries| queries.tree(&query)))
    }

    fn stats(&self, query: StatsQuery) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(self.query_list(move |queries| queries.stats(query)))
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreError>> {
        let run = run.clone();
        Box::pin(self.query_list(move |queries| queries.record(&run)))
    }
}

/// A store without events is a log that stays empty.
impl EventLog for Store {
    fn id(&self) -> &str {
        self.log.as_ref().map_or("", |log| &log.id)
    }

    fn bounds(&self) -> EventBounds {
        self.log.as_ref().map_or(EventBounds { oldest: 0, newest: 0 }, |log| log.ring.bounds())
    }

    fn append(&self, at: Millis, event: FlowEvent) {
        let Some(log) = &self.log else { return };
        let max_bytes = log.settings.max_event_bytes;
        // Serialised here, so that a large value is freed at once and only the shortened JSON waits.
        let queued = self.writer.flow_events.accept(event, |event| body::flow_event(at, event, max_bytes));
        if let Some(event) = queued {
            self.send_background(BackgroundWrite::FlowEvent(event));
        }
    }

    fn read_after(&self, position: u64, most: usize) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>> {
        let Some(log) = &self.log else { return Box::pin(ready(Ok(Vec::new()))) };
        if let Some(events) = log.ring.after(position, most) {
            return Box::pin(ready(Ok(events)));
        }
        let (newest, ring) = (log.ring.bounds().newest, Arc::clone(&log.ring));
        Box::pin(self.reads.query(move |queries| {
            let events = event_rows::events_between(queries.connection(), position, newest, most);
            let events = events.map_err(|error| queries.error(&error))?;
            let is_missing = events.is_empty() && ring.bounds().oldest <= position && position < newest;
            if is_missing || event_rows::has_gap(&events) {
                return Err(error::damaged(queries.dir(), &"an event is missing"));
            }
            Ok(events)
        }))
    }

    fn read_calls(&self, query: ToolCallQuery) -> BoxFuture<'_, Result<Vec<LoggedEvent>, StoreError>> {
        if self.log.is_none() {
            return Box::pin(ready(Ok(Vec::new())));
        }
        Box::pin(self.query(move |queries| {
            event_rows::calls(queries.connection(), &query).map_err(|error| queries.error(&error))
        }))
    }

    fn wait_past(&self, position: u64) -> BoxFuture<'_, ()> {
        match &self.log {
            Some(log) => Box::pin(log.ring.wait_past(position)),
            None => Box::pin(pending()),
        }
    }

    fn wait_for_flow_event(&self, position: u64) -> BoxFuture<'_, u64> {
        match &self.log {
            Some(log) => Box::pin(log.ring.wait_for_flow_event(position)),
            None => Box::pin(pending()),
        }
    }
}

impl ChatStore for Store {
    fn append(&self, node: &NodeId, item: ChatItem, keeps: usize) {
        if let Some(item) = self.chats.accept(node, item, keeps) {
            self.send_background(BackgroundWrite::ChatItem(item));
        }
    }

    fn items<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<Vec<ChatItem>, StoreError>> {
        let node = node.clone();
        Box::pin(self.query(move |queries| {
            let items = chat_rows::items(queries.connection(), &node);
            let items = items.map_err(|error| queries.error(&error))?;
            items.iter().map(|json| read_chat_item(queries, json)).collect()
        }))
    }

    fn latest(&self, limit: usize) -> BoxFuture<'_, Result<Vec<(NodeId, ChatItem)>, StoreError>> {
        Box::pin(self.query(move |queries| {
            let latest = chat_rows::latest(queries.connection(), limit);
            let latest = latest.map_err(|error| queries.error(&error))?;
            let read = |(node, json): (String, String)| Ok((node.into(), read_chat_item(queries, &json)?));
            latest.into_iter().map(read).collect()
        }))
    }

    fn clear<'a>(&'a self, node: &'a NodeId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (done, cleared) = tokio::sync::oneshot::channel();
            let (node, until) = (node.clone(), self.chats.last_number());
            self.writer.queue.send(WriteCommand::ClearChat { node, until, done })?;
            cleared.await.unwrap_or_else(|_| Err(error::store_closed()))
        })
    }
}

fn read_chat_item(queries: &RunQueries<'_>, json: &str) -> Result<ChatItem, StoreError> {
    // The message of the JSON library is left out, because it may quote the chat.
    serde_json::from_str(json).map_err(|_| error::damaged(queries.dir(), &"an item of a chat is unreadable"))
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
