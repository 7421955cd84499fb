//! Copies of the database.
//!
//! Owns how one is made: whole under its name, or not at all. Never writes over a file.

use crate::directory::{Directory, private_file, sync_directory};
use crate::error;
use crate::read::unsigned;
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupReport {
    /// How many runs.
    pub runs: u64,
    /// How large the file is.
    pub bytes: u64,
}

pub(crate) fn backup(
    connection: &Connection,
    directory: &Directory,
    file: &Path,
) -> Result<BackupReport, StoreError> {
    let told = |why: &io::Error| match why.kind() {
        ErrorKind::AlreadyExists => exists(file),
        _ => error::writing(file, why),
    };
    let file = std::path::absolute(file).map_err(|why| told(&why))?;
    if file.exists() {
        return Err(exists(&file));
    }
    let folder = file.parent().unwrap_or(directory.path()).to_owned();
    let part = Part::make(&file).map_err(|why| told(&why))?;
    let sqlite = |why: rusqlite::Error| error::sqlite(&folder, &why);
    connection.execute("VACUUM INTO ?1", [part.text()?]).map_err(sqlite)?;
    let runs = count(&part.0).map_err(sqlite)?;
    let finish = || {
        // Opened to write: some systems flush only what one may write.
        let copied = OpenOptions::new().write(true).open(&part.0)?;
        copied.sync_all()?;
        let bytes = copied.metadata()?.len();
        drop(copied);
        place(&part.0, &file)?;
        sync_directory(&folder);
        Ok(bytes)
    };
    let bytes = finish().map_err(|why: io::Error| told(&why))?;
    Ok(BackupReport { runs, bytes })
}

/// Gives the copy its name, unless something has that name.
fn place(part: &Path, file: &Path) -> io::Result<()> {
    match std::fs::hard_link(part, file) {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => {
            // A file system without links. Whoever makes the file just now loses it; nobody can prevent that
            // there.
            if file.exists() { Err(ErrorKind::AlreadyExists.into()) } else { std::fs::rename(part, file) }
        }
        linked => linked,
    }
}

fn count(part: &Path) -> rusqlite::Result<u64> {
    let copy = Connection::open_with_flags(part, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    copy.query_row("SELECT count(*) FROM runs", [], |row| unsigned(row.get(0)?))
}

fn exists(file: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!("{} exists already: name a file that does not.", file.display()),
    )
}

/// The copy while it is being made, beside its final place. Gone when dropped.
struct Part(PathBuf);

impl Part {
    /// SQLite writes into an empty file, and leaves it the mode it has.
    fn make(file: &Path) -> io::Result<Self> {
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let path = file.with_file_name(name);
        private_file().write(true).create_new(true).open(&path)?;
        Ok(Self(path))
    }

    fn text(&self) -> Result<&str, StoreError> {
        self.0.to_str().ok_or_else(|| error::unusable(&self.0, &"its name is not text"))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
