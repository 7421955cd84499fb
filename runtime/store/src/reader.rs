//! Reads stored runs, with or without a driver.
//!
//! Owns a connection that only reads. Never takes the driver's lock. Never creates a file in the directory,
//! apart from those that SQLite itself needs to read.

use crate::backup::{self, BackupReport};
use crate::database;
use crate::directory::Directory;
use crate::error;
use crate::events::rows;
use crate::lock::Lock;
use crate::runs::queries::{CheckedRun, RunQueries};
use redflow_contract::api::RunList;
use redflow_contract::id::RunId;
use redflow_contract::run::RunSummary;
use redflow_ports::{LoggedEvent, RunFilter, StoreError, StoredRun, ToolCallQuery};
use rusqlite::Connection;
use std::path::Path;

/// Read access to the runs of a data directory.
#[derive(Debug)]
pub struct Reader {
    directory: Directory,
    connection: Connection,
}

/// The part of a stored run that is as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntactPart {
    /// The journal up to the first damage: self-contained JSON lines. Complete if the run is intact, or if the
    /// damage is outside the journal.
    pub journal: Vec<u8>,
    /// The first damage, as [`Reader::load`] reports it; none if the run is intact.
    pub problem: Option<StoreError>,
}

impl Reader {
    /// Opens a data directory for reading.
    ///
    /// # Errors
    /// When nothing is stored there yet, or it cannot be read.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let directory = Directory::at(dir)?;
        let connection = database::open_reader(&directory)?;
        Ok(Self { directory, connection })
    }

    /// Opens a data directory for reading; none if nothing was ever stored there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn find(dir: &Path) -> Result<Option<Self>, StoreError> {
        match Self::open(dir) {
            Err(error) if error == error::no_runs(Directory::at(dir)?.path()) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Runs, the newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, filter: &RunFilter) -> Result<RunList, StoreError> {
        self.queries().newest(filter)
    }

    /// The summary of one run; none if there is no such run.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn summary(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        self.queries().summary(run)
    }

    /// One run with its journal; none if there is no such run.
    ///
    /// # Errors
    /// When the database cannot be read, or the run is damaged.
    pub fn load(&self, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
        self.queries().load(run)
    }

    /// The intact part of one run, even of a damaged one; none if there is no such run.
    ///
    /// # Errors
    /// When the database cannot be read. Damage of the run is not an error here.
    pub fn intact_part(&self, run: &RunId) -> Result<Option<IntactPart>, StoreError> {
        let checked = self.queries().check(run)?;
        Ok(checked.map(|CheckedRun { journal, problem, .. }| IntactPart { journal, problem }))
    }

    /// The ids of all runs, the oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn run_ids(&self) -> Result<Vec<RunId>, StoreError> {
        self.queries().run_ids()
    }

    /// The events that ended calls of a tool, newest first. A database that no later version has opened has none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn tool_calls(&self, query: &ToolCallQuery) -> Result<Vec<LoggedEvent>, StoreError> {
        if !database::events_have_tools(&self.connection, &self.directory)? {
            return Ok(Vec::new());
        }
        rows::calls(&self.connection, query).map_err(|error| self.queries().error(&error))
    }

    /// Whether a process drives the runs now.
    #[must_use]
    pub fn is_driven(&self) -> bool {
        Lock::is_held(&self.directory)
    }

    /// Copies the database into one new file, as it is at one moment, even while a process drives the runs.
    /// The file can serve as the `redflow.db` of another data directory.
    ///
    /// # Errors
    /// When the file exists, lies in the data directory or cannot be written.
    pub fn backup(&self, file: &Path) -> Result<BackupReport, StoreError> {
        backup::backup(&self.connection, &self.directory, file)
    }

    fn queries(&self) -> RunQueries<'_> {
        RunQueries::new(&self.connection, self.directory.path(), || self.is_driven())
    }
}
