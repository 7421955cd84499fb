//! Journals as files: `--journal FILE`. A journal is evidence, so a file that holds something is never
//! written over.

use crate::files::{reason, shown};
use redflow_contract::id::RunId;
use redflow_ports::{BoxFuture, Journal, JournalError, JournalStore};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The first run goes to the named file, those it sets off to `FILE.2`, `FILE.3` and so on.
pub(crate) struct FileJournals {
    path: PathBuf,
    first: Mutex<Option<File>>,
    opened: Mutex<u32>,
}

impl FileJournals {
    /// Opens the named file at once, so that a bad path is known before anything runs.
    pub(crate) fn create(path: &Path) -> Result<Self, String> {
        let file = new_file(path)?;
        Ok(Self { path: path.to_owned(), first: Mutex::new(Some(file)), opened: Mutex::new(0) })
    }
}

fn new_file(path: &Path) -> Result<File, String> {
    let wrong =
        |error: &std::io::Error| format!("cannot write the journal {}: {}", shown(path), reason(error));
    let file = File::options().create(true).append(true).open(path).map_err(|error| wrong(&error))?;
    if file.metadata().map_err(|error| wrong(&error))?.len() > 0 {
        return Err(format!(
            "{} is not empty; a journal is never written over, so name a new file",
            shown(path)
        ));
    }
    Ok(file)
}

impl JournalStore for FileJournals {
    fn open(&self, _: &RunId) -> Result<Box<dyn Journal>, JournalError> {
        let number = {
            let mut opened = self.opened.lock().map_err(|_| JournalError("poisoned".to_owned()))?;
            *opened += 1;
            *opened
        };
        let first = self.first.lock().map_err(|_| JournalError("poisoned".to_owned()))?.take();
        let file = match first {
            Some(file) => file,
            None => {
                let mut name = self.path.clone().into_os_string();
                name.push(format!(".{number}"));
                new_file(Path::new(&name)).map_err(JournalError)?
            }
        };
        Ok(Box::new(FileJournal { file }))
    }
}

struct FileJournal {
    file: File,
}

impl Journal for FileJournal {
    fn append<'a>(&'a mut self, lines: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        let mut text = lines.join("\n");
        text.push('\n');
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        Box::pin(std::future::ready(written.map_err(|error| JournalError(reason(&error)))))
    }
}

/// Keeps nothing.
pub(crate) struct NoJournals;

impl JournalStore for NoJournals {
    fn open(&self, _: &RunId) -> Result<Box<dyn Journal>, JournalError> {
        Ok(Box::new(Self))
    }
}

impl Journal for NoJournals {
    fn append<'a>(&'a mut self, _: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
