//! Journals as files: `--journal FILE`. A journal is evidence, so a file that holds something is never
//! written over.
//!
//! Owns the names of the files. What goes into them is read back from the store when the runs have come to
//! rest.

use crate::files::{reason, shown};
use redflow_engine::{RunEnd, RunReport};
use redflow_ports::{RunStore, StoreError};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The first run goes to the named file, those it sets off to `FILE.2`, `FILE.3` and so on.
pub(crate) struct JournalFiles {
    path: PathBuf,
    first: Option<File>,
    written: u32,
}

/// Why a journal is not in its file.
pub(crate) enum Unwritten {
    /// The store does not give it.
    Store(StoreError),
    /// The file does not take it.
    File(String),
}

impl JournalFiles {
    /// Opens the named file at once, so that a bad path is known before anything runs.
    pub(crate) fn create(path: &Path) -> Result<Self, String> {
        let first = new_file(path)?;
        Ok(Self { path: path.to_owned(), first: Some(first), written: 0 })
    }

    /// Writes the journals of these runs, in the order in which they began. A run that never began has none.
    pub(crate) async fn write(
        &mut self,
        reports: &[RunReport],
        store: &dyn RunStore,
    ) -> Result<(), Unwritten> {
        for report in reports {
            if matches!(report.end, RunEnd::Refused { .. }) {
                continue;
            }
            if let Some(run) = store.load(&report.run_id).await.map_err(Unwritten::Store)? {
                self.write_one(&run.journal).map_err(Unwritten::File)?;
            }
        }
        Ok(())
    }

    fn write_one(&mut self, journal: &[u8]) -> Result<(), String> {
        self.written += 1;
        let (mut file, path) = match self.first.take() {
            Some(file) => (file, self.path.clone()),
            None => {
                let mut name = self.path.clone().into_os_string();
                name.push(format!(".{}", self.written));
                let path = PathBuf::from(name);
                (new_file(&path)?, path)
            }
        };
        file.write_all(journal).and_then(|()| flush(&file)).map_err(|error| unwritable(&path, &error))
    }
}

/// Devices and pipes have nothing to flush to, and say so.
fn flush(file: &File) -> std::io::Result<()> {
    if file.metadata()?.is_file() { file.sync_data() } else { Ok(()) }
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write the journal {}: {}", shown(path), reason(error))
}

fn new_file(path: &Path) -> Result<File, String> {
    let wrong = |error| unwritable(path, &error);
    let file = File::options().create(true).append(true).open(path).map_err(wrong)?;
    if file.metadata().map_err(wrong)?.len() > 0 {
        return Err(format!(
            "{} is not empty; a journal is never written over, so name a new file",
            shown(path)
        ));
    }
    Ok(file)
}
