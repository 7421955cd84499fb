//! Looking at stored runs, beside their driver or without one.
//!
//! Owns a connection that only reads. Never takes the driver's lock and never makes anything in the directory
//! but the files SQLite itself needs to read.

use crate::backup::{self, BackupReport};
use crate::database;
use crate::directory::Directory;
use crate::error;
use crate::lock::Lock;
use crate::read::{Checked, Tables};
use redflow_contract::id::RunId;
use redflow_contract::run::RunSummary;
use redflow_ports::{RunFilter, StoreError, StoredRun};
use rusqlite::Connection;
use std::path::Path;

/// Stored runs, to look at.
#[derive(Debug)]
pub struct Reader {
    directory: Directory,
    connection: Connection,
}

/// A stored run as far as it is what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoundPart {
    /// Its journal up to there: self-contained, JSON lines. The whole of it if nothing is wrong, or only
    /// something beside it.
    pub journal: Vec<u8>,
    /// What is wrong with the first thing that is not what was written; none if everything is. What
    /// [`Reader::load`] says of the run.
    pub problem: Option<StoreError>,
}

impl Reader {
    /// Opens a data directory to look at it.
    ///
    /// # Errors
    /// When nothing is stored there yet, or it cannot be read.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let directory = Directory::named(dir)?;
        let connection = database::read(&directory)?;
        Ok(Self { directory, connection })
    }

    /// Opens a data directory to look at it; none if nothing was ever stored there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn find(dir: &Path) -> Result<Option<Self>, StoreError> {
        match Self::open(dir) {
            Err(error) if error == error::no_runs(Directory::named(dir)?.path()) => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Runs, the newest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn list(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        self.tables().newest(filter)
    }

    /// One run; none if there is no such run.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn summary(&self, run: &RunId) -> Result<Option<RunSummary>, StoreError> {
        self.tables().summary(run)
    }

    /// Everything of one run; none if there is no such run.
    ///
    /// # Errors
    /// When the database cannot be read, or the run is not what was written.
    pub fn load(&self, run: &RunId) -> Result<Option<StoredRun>, StoreError> {
        self.tables().load(run)
    }

    /// One run as far as it is sound, also if it is damaged; none if there is no such run.
    ///
    /// # Errors
    /// When the database cannot be read. That the run is not what was written is no error here.
    pub fn sound_part(&self, run: &RunId) -> Result<Option<SoundPart>, StoreError> {
        let checked = self.tables().sound_part(run)?;
        Ok(checked.map(|Checked { journal, problem, .. }| SoundPart { journal, problem }))
    }

    /// Every run, the oldest first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn run_ids(&self) -> Result<Vec<RunId>, StoreError> {
        self.tables().run_ids()
    }

    /// Whether some process drives the runs now.
    #[must_use]
    pub fn is_driven(&self) -> bool {
        Lock::is_held(&self.directory)
    }

    /// Copies everything into one new file, as it is at one moment, also while runs are driven. The file
    /// serves as the `redflow.db` of another data directory.
    ///
    /// # Errors
    /// When the file exists already, lies in the data directory or cannot be written.
    pub fn backup(&self, file: &Path) -> Result<BackupReport, StoreError> {
        backup::backup(&self.connection, &self.directory, file)
    }

    fn tables(&self) -> Tables<'_> {
        Tables::new(&self.connection, self.directory.path(), || self.is_driven())
    }
}
