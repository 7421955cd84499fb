//! Writes journals to the files of `--journal`. A journal is evidence, so a file with content is never
//! overwritten.

use crate::files::{display_path, private_options};
use crate::text::describe_io_error;
use redflow_engine::{RunEnd, RunReport};
use redflow_ports::{RunStore, StoreError};
#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{File, Metadata};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The first run uses the named file; the runs it starts use `FILE.2`, `FILE.3` and so on.
pub(crate) struct JournalFiles {
    path: PathBuf,
    first: Option<File>,
    written: u32,
}

pub(crate) enum JournalFileError {
    Store(StoreError),
    File(String),
}

impl JournalFiles {
    /// Opens the first file at once, so that a wrong path shows before anything runs.
    pub(crate) fn create(path: &Path) -> Result<Self, String> {
        let first = new_file(path)?;
        Ok(Self { path: path.to_owned(), first: Some(first), written: 0 })
    }

    /// Writes the journals of these runs from the store, in the order of their starts. Refused runs have
    /// none.
    pub(crate) async fn write(
        &mut self,
        reports: &[RunReport],
        store: &dyn RunStore,
    ) -> Result<(), JournalFileError> {
        for report in reports {
            if matches!(report.end, RunEnd::Refused { .. }) {
                continue;
            }
            if let Some(run) = store.load(&report.run_id).await.map_err(JournalFileError::Store)? {
                self.write_one(&run.journal).map_err(JournalFileError::File)?;
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
        file.write_all(journal).and_then(|()| sync(&file)).map_err(|error| write_failed(&path, &error))
    }
}

/// Flushes a regular file. Devices and pipes do not support it and would give an error.
fn sync(file: &File) -> std::io::Result<()> {
    if file.metadata()?.is_file() { file.sync_data() } else { Ok(()) }
}

fn write_failed(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write the journal {}: {}", display_path(path), describe_io_error(error))
}

fn new_file(path: &Path) -> Result<File, String> {
    let failed = |error| write_failed(path, &error);
    let file = private_options().create(true).append(true).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.len() > 0 {
        return Err(format!(
            "{} is not empty; a journal is never overwritten, so name a new file",
            display_path(path)
        ));
    }
    if metadata.is_file() {
        make_private(&file, &metadata).map_err(failed)?;
    }
    Ok(file)
}

/// Takes the rights of others from an empty file that was there before.
#[cfg(unix)]
fn make_private(file: &File, metadata: &Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { file.set_permissions(Permissions::from_mode(mode & 0o700)) }
}

#[cfg(not(unix))]
const fn make_private(_file: &File, _metadata: &Metadata) -> std::io::Result<()> {
    Ok(())
}
