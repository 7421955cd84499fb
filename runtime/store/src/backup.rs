//! Copies of the database.
//!
//! Owns how one is made: whole under its name, or not at all. Never writes over a file, and never into the data
//! directory: a copy beside what it was made of is lost with it.

use crate::directory::{Directory, private_file, sync_directory};
use crate::error;
use crate::read::unsigned;
use crate::whole_file::place;
use redflow_contract::code::StoreCode;
use redflow_ports::{StoreError, failpoint};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

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
    let told = |why: io::Error| match why.kind() {
        ErrorKind::AlreadyExists => exists(file),
        kind => unwritten(file, error::writing_code(kind), &why),
    };
    let file = std::path::absolute(file).map_err(told)?;
    if std::fs::symlink_metadata(&file).is_ok() {
        return Err(exists(&file));
    }
    let folder = file.parent().unwrap_or(&file);
    if folder.canonicalize().map_err(told)?.starts_with(directory.path().canonicalize().map_err(told)?) {
        return Err(inside(&file));
    }
    let part = Part::make(&file).map_err(told)?;
    let copied = connection.execute("VACUUM INTO ?1", [part.text(&file)?]);
    copied.map_err(|why| not_copied(directory, &file, &part, &why))?;
    failpoint("backup.copied");
    let runs = count(&part.path).map_err(|why| not_copied(directory, &file, &part, &why))?;
    let finish = || {
        // Opened to write: some systems flush only what one may write.
        let copied = OpenOptions::new().write(true).open(&part.path)?;
        copied.sync_all()?;
        let bytes = copied.metadata()?.len();
        drop(copied);
        place(&part.path, &file)?;
        failpoint("backup.placed");
        sync_directory(folder);
        Ok(bytes)
    };
    let bytes = finish().map_err(told)?;
    Ok(BackupReport { runs, bytes })
}

fn count(part: &Path) -> rusqlite::Result<u64> {
    let copy = Connection::open_with_flags(part, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    part_ways(&copy)?;
    copy.query_row("SELECT count(*) FROM runs", [], |row| unsigned(row.get(0)?))
}

/// From here on other events happen there than here, at the same positions: whoever read them here must not go
/// on there. So the log of the copy gets a name of its own, when somebody first keeps an event in it.
fn part_ways(copy: &Connection) -> rusqlite::Result<()> {
    let named = "SELECT count(*) FROM pragma_table_info('meta') WHERE name = 'log'";
    if copy.query_row(named, [], |row| row.get::<_, i64>(0))? > 0 {
        // If this fails half-way, the copy is thrown away; so it needs no journal.
        copy.query_row("PRAGMA journal_mode = MEMORY", [], |_| Ok(()))?;
        copy.execute("UPDATE meta SET log = NULL", [])?;
    }
    Ok(())
}

fn exists(file: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!("{} exists already: name a file that does not.", file.display()),
    )
}

fn inside(file: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!("{} lies in the data directory itself: name a file outside of it.", file.display()),
    )
}

/// Why the copy was not made. What cannot be read is the trouble of the data directory, what cannot be written
/// that of the copy.
fn not_copied(directory: &Directory, file: &Path, part: &Part, why: &rusqlite::Error) -> StoreError {
    use ErrorCode as C;
    let extended = why.sqlite_error().map_or(0, |failure| failure.extended_code);
    let code = match why.sqlite_error_code() {
        Some(C::DiskFull) => StoreCode::DataFull,
        Some(C::ReadOnly | C::PermissionDenied) => StoreCode::DataReadOnly,
        Some(C::SystemIoFailure | C::CannotOpen) if extended != rusqlite::ffi::SQLITE_IOERR_READ => {
            let length = std::fs::metadata(&part.path).map_or(0, |part| part.len());
            let probe = part.path.with_extension("probe");
            error::why_not_written(&probe, length).unwrap_or(StoreCode::DataUnusable)
        }
        _ => return error::sqlite(directory.path(), why),
    };
    unwritten(file, code, why)
}

fn unwritten(file: &Path, code: StoreCode, why: &dyn std::fmt::Display) -> StoreError {
    let file = file.display();
    let message = match code {
        StoreCode::DataFull => {
            format!(
                "There is no room left for the copy {file}: make room there, or name a file on another disk."
            )
        }
        StoreCode::DataReadOnly => {
            format!("The copy {file} cannot be written: allow it, or name another file.")
        }
        _ => format!("The copy {file} cannot be made ({why}): mend that, or name another file."),
    };
    StoreError::new(code, message)
}

/// The copy while it is being made, beside its final place. Gone when dropped. One whose process died is cleared
/// away by the next that copies to the same place; until then it is in nobody's way.
struct Part {
    path: PathBuf,
    /// Locked, so that others see that somebody still makes it. Where a lock would keep SQLite from writing, a
    /// file that is open cannot be removed either.
    _file: Option<File>,
}

impl Part {
    /// SQLite writes into an empty file, and leaves it the mode it has.
    fn make(file: &Path) -> io::Result<Self> {
        clear(file);
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            let mut name = file.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}-{now}.part", std::process::id()));
            let path = file.with_file_name(name);
            let made = match private_file().write(true).create_new(true).open(&path) {
                Err(why) if why.kind() == ErrorKind::AlreadyExists => continue,
                made => made?,
            };
            if cfg!(windows) {
                return Ok(Self { path, _file: None });
            }
            // Where there are no locks, nothing is cleared away.
            let _ = made.lock();
            // Someone may have taken it for abandoned before it was locked.
            if path.exists() {
                return Ok(Self { path, _file: Some(made) });
            }
        }
    }

    fn text(&self, file: &Path) -> Result<&str, StoreError> {
        let text = self.path.to_str();
        text.ok_or_else(|| unwritten(file, StoreCode::DataUnusable, &"its name is not text"))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        discard(&self.path);
    }
}

/// Removes a part, after what SQLite may have left beside it: without the part nobody would find that.
fn discard(part: &Path) {
    let mut journal = part.as_os_str().to_owned();
    journal.push("-journal");
    let _ = std::fs::remove_file(journal);
    let _ = std::fs::remove_file(part);
}

/// Removes what copies to this place left behind whose processes died.
fn clear(file: &Path) {
    let Some(found) = file.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else { return };
    let left = found.flatten().filter(|entry| is_part(&entry.file_name(), file.file_name()));
    for path in left.map(|entry| entry.path()) {
        // Locked until it is gone: whoever is just making it then finds that out.
        if let Ok(part) = File::open(&path)
            && part.try_lock().is_ok()
        {
            discard(&path);
        }
    }
}

/// Whether this is the name of a part of a copy to that file.
fn is_part(name: &OsStr, file: Option<&OsStr>) -> bool {
    let middle = file.and_then(|file| {
        let rest = name.as_encoded_bytes().strip_prefix(file.as_encoded_bytes())?;
        rest.strip_prefix(b".")?.strip_suffix(b".part")
    });
    middle.is_some_and(|middle| {
        let mut numbers = middle.split(|&byte| byte == b'-');
        let mut number =
            || numbers.next().is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit));
        number() && number() && numbers.next().is_none()
    })
}
