//! Looking at what a data directory holds, beside whoever drives its runs.

use crate::Exit;
use crate::data_dir::DataOption;
use crate::terminal::refuse;
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_contract::run::RunSummary;
use redflow_ports::StoreError;
use redflow_store::Reader;
use std::path::{Path, PathBuf};

/// A data directory, and its runs if it has any yet.
pub(crate) struct Stored {
    pub(crate) dir: PathBuf,
    pub(crate) reader: Option<Reader>,
}

impl Stored {
    /// Opens the directory to look at it. One that is not there yet, or holds nothing yet, is no error.
    pub(crate) fn open(data: &DataOption) -> Result<Self, StoreError> {
        let dir = data.directory()?;
        let reader = Reader::find(&dir)?;
        Ok(Self { dir, reader })
    }

    /// A run that must be there.
    pub(crate) fn run(data: &DataOption, run: &RunId) -> Result<(PathBuf, Reader, RunSummary), Exit> {
        let stored = Self::open(data).map_err(|error| refuse(&error))?;
        let gone = || unknown(run, &stored.dir);
        let reader = stored.reader.ok_or_else(|| refuse(&gone()))?;
        let summary = reader.summary(run).and_then(|found| found.ok_or_else(gone));
        Ok((stored.dir.clone(), reader, summary.map_err(|error| refuse(&error))?))
    }
}

/// There is no such run.
pub(crate) fn unknown(run: &RunId, dir: &Path) -> StoreError {
    let text = format!("No run {run} is stored in {}: `redflow runs` lists those that are.", dir.display());
    StoreError::new(StoreCode::RunUnknown, text)
}
