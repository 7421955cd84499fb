//! Looking at what a data directory holds, beside whoever drives its runs.

use crate::Exit;
use crate::advice::{Advice, shown_id};
use crate::data_dir::DataOption;
use crate::files::shown;
use crate::terminal::{refuse, refuse_with};
use redflow_contract::code::StoreCode;
use redflow_contract::id::RunId;
use redflow_contract::replay::StoreProblem;
use redflow_contract::run::{RunStatus, RunSummary};
use redflow_ports::{StoreError, StoredRun};
use redflow_store::{Reader, SoundPart};
use std::path::{Path, PathBuf};

/// A data directory, and its runs if it has any yet.
pub(crate) struct Stored {
    pub(crate) dir: PathBuf,
    pub(crate) reader: Option<Reader>,
}

/// A run that is there, and where.
pub(crate) struct Kept {
    pub(crate) dir: PathBuf,
    pub(crate) reader: Reader,
    pub(crate) summary: RunSummary,
    /// Its journal, as far as it is sound.
    pub(crate) journal: Vec<u8>,
    /// Why that is not all.
    pub(crate) problem: Option<StoreProblem>,
}

impl Stored {
    /// Opens the directory to look at it. One that is not there yet, or holds nothing yet, is no error.
    pub(crate) fn open(data: &DataOption) -> Result<Self, StoreError> {
        let dir = data.directory()?;
        let reader = Reader::find(&dir)?;
        Ok(Self { dir, reader })
    }

    /// A run, as far as it is sound.
    pub(crate) fn find(self, run: &RunId) -> Result<Option<Kept>, StoreError> {
        let Self { dir, reader: Some(reader) } = self else { return Ok(None) };
        let (summary, journal, problem) = match reader.load(run) {
            Ok(None) => return Ok(None),
            Ok(Some(StoredRun { summary, journal, .. })) => (summary, journal, None),
            Err(StoreError { code: code @ StoreCode::DataCorrupt, message }) => {
                let found = reader.summary(run)?.zip(reader.sound_part(run)?);
                let Some((summary, SoundPart { journal, .. })) = found else { return Ok(None) };
                let summary = RunSummary { status: RunStatus::Damaged, ..summary };
                (summary, journal, Some(StoreProblem { code, message }))
            }
            Err(error) => return Err(error),
        };
        Ok(Some(Kept { dir, reader, summary, journal, problem }))
    }

    /// A run that must be there.
    pub(crate) fn run(data: &DataOption, run: &RunId) -> Result<Kept, Exit> {
        let stored = Self::open(data).map_err(|error| refuse(&error))?;
        let dir = stored.dir.clone();
        let found = stored.find(run).map_err(|error| refuse(&error))?;
        found.ok_or_else(|| refuse_unknown(run, &dir, data))
    }

    /// A run that must be there, and sound.
    pub(crate) fn sound_run(data: &DataOption, run: &RunId) -> Result<Kept, Exit> {
        let kept = Self::run(data, run)?;
        match &kept.problem {
            Some(problem) => Err(refuse_damaged(run, problem, Advice::of(data))),
            None => Ok(kept),
        }
    }
}

/// There is no such run.
pub(crate) fn refuse_unknown(run: &RunId, dir: &Path, data: &DataOption) -> Exit {
    let text = match run.as_str() {
        "" => "The id of the run is empty: give that of a run.".to_owned(),
        _ => format!("No run {} is stored in {}.", shown_id(run), shown(dir)),
    };
    let help = format!("those that are: {}", Advice::of(data).list());
    refuse_with(&StoreError::new(StoreCode::RunUnknown, text), &[help])
}

/// The run is not what was written.
pub(crate) fn refuse_damaged(run: &RunId, problem: &StoreProblem, advice: Advice<'_>) -> Exit {
    refuse_with(&StoreError::new(problem.code, problem.message.clone()), &advice.damaged(run))
}
