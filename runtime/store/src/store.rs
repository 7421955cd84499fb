//! The store of the process that drives runs.
//!
//! Owns the lock, the writer and one connection to read by. Never writes by itself: everything goes through the
//! writer's queue.

use crate::database;
use crate::directory::Directory;
use crate::error;
use crate::journal::{Handle, StoreJournal};
use crate::ledger::{Ledger, Mark};
use crate::lock::Lock;
use crate::read::Tables;
use crate::requests;
use crate::writer::{Command, StoreStats, Writer};
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_contract::run::RunSummary;
use redflow_ports::{BoxFuture, Journal, NewRun, PendingRequest, RunStore, StoreError, StoredRun};
use rusqlite::Connection;
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
    writer: Writer,
    _lock: Lock,
}

/// The connection to read by, one question at a time.
#[derive(Debug, Clone)]
struct Reads {
    directory: Directory,
    connection: Arc<Mutex<Connection>>,
}

impl Store {
    /// Opens a data directory to drive its runs. Makes what is not there.
    ///
    /// # Errors
    /// When another process drives them, or the directory or its database cannot be used.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let directory = Directory::named(dir)?;
        directory.make()?;
        let lock = Lock::take(&directory)?;
        directory.make_database()?;
        let told = |why: rusqlite::Error| error::sqlite(directory.path(), &why);
        let connection = database::drive(&directory)?;
        requests::forget_old(&connection).map_err(told)?;
        let ledger = Ledger::new(directory.path(), connection).map_err(told)?;
        let reads = database::read(&directory)?;
        Ok(Self {
            writer: Writer::start(directory.path(), ledger)?,
            reads: Reads { directory, connection: Arc::new(Mutex::new(reads)) },
            given: Mutex::new(0),
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
        let asked = tokio::task::spawn_blocking(move || {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            question(&Tables::new(&connection, directory.path(), || true))
        });
        asked.await.unwrap_or_else(|_| Err(error::closed()))
    }
}

impl RunStore for Store {
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

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
