//! Backups: copies of the database.
//!
//! Owns how a backup is made: complete under its name, or not at all. Never overwrites a file, and never
//! writes into the data directory: a backup there would be lost with the data.

use crate::database::from_sql_integer;
use crate::directory::Directory;
use crate::error;
use crate::files::whole_file::link_new;
use crate::private_file::{private_file, sync_directory};
use redflow_contract::code::StoreCode;
use redflow_ports::{StoreError, failpoint};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a copy of the archive waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupReport {
    /// The number of runs in it.
    pub runs: u64,
    /// The size of the file.
    pub bytes: u64,
}

pub(crate) fn backup(
    connection: &Connection,
    directory: &Directory,
    file: &Path,
) -> Result<BackupReport, StoreError> {
    let mut runs = 0;
    let bytes = copy(connection, directory.path(), file, |part| {
        runs = finish_copy(part)?;
        Ok(())
    })?;
    Ok(BackupReport { runs, bytes })
}

/// Copies the archive of a data directory into one new file, as it is at one moment, even while processes use it. The
/// file can serve as the `archive.db` of another data directory. An encrypted archive stays encrypted; its key is not
/// copied. Returns the size of the copy; none if there is no archive.
///
/// # Errors
/// When the file exists, lies in the data directory or cannot be written.
pub fn backup_archive(data: &Path, file: &Path) -> Result<Option<u64>, StoreError> {
    let archive = data.join("archive.db");
    if !std::fs::metadata(&archive).is_ok_and(|archive| archive.len() > 0) {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(&archive, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(connection)
    };
    let connection = open().map_err(|error| error::from_sqlite(data, &error))?;
    copy(&connection, data, file, |_| Ok(())).map(Some)
}

/// Copies a database of a data directory. `finish` may change the copy before it gets its name. Returns its size.
fn copy(
    connection: &Connection,
    data: &Path,
    file: &Path,
    finish: impl FnOnce(&Path) -> rusqlite::Result<()>,
) -> Result<u64, StoreError> {
    let to_store_error = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => exists(file),
        kind => not_written(file, error::write_error_code(kind), &error),
    };
    let file = std::path::absolute(file).map_err(to_store_error)?;
    if std::fs::symlink_metadata(&file).is_ok() {
        return Err(exists(&file));
    }
    let folder = file.parent().unwrap_or(&file);
    let canonical = |path: &Path| path.canonicalize().map_err(to_store_error);
    if canonical(folder)?.starts_with(canonical(data)?) {
        return Err(inside_data_directory(&file));
    }
    let part = PartFile::create(&file).map_err(to_store_error)?;
    let copied = connection.execute("VACUUM INTO ?1", [part.path_text(&file)?]);
    copied.map_err(|error| copy_failed(data, &file, &part, &error))?;
    failpoint("backup.copied");
    finish(&part.path).map_err(|error| copy_failed(data, &file, &part, &error))?;
    let publish = || {
        // Opened for writing, because some systems flush only files that the process may write.
        let copied = OpenOptions::new().write(true).open(&part.path)?;
        copied.sync_all()?;
        let bytes = copied.metadata()?.len();
        drop(copied);
        link_new(&part.path, &file)?;
        failpoint("backup.placed");
        sync_directory(folder);
        Ok(bytes)
    };
    publish().map_err(to_store_error)
}

/// Removes the id of the event log from the copy, and counts its runs.
fn finish_copy(part: &Path) -> rusqlite::Result<u64> {
    let copy = Connection::open_with_flags(part, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    clear_log_id(&copy)?;
    copy.query_row("SELECT count(*) FROM runs", [], |row| from_sql_integer(row.get(0)?))
}

/// From now on the copy and the original get different events at the same positions, so a cursor of one must
/// not work with the other. The event log of the copy gets a new id when a driver first stores an event in
/// it.
fn clear_log_id(copy: &Connection) -> rusqlite::Result<()> {
    let has_column = "SELECT count(*) FROM pragma_table_info('meta') WHERE name = 'log'";
    if copy.query_row(has_column, [], |row| row.get::<_, i64>(0))? > 0 {
        // If this fails half-way, the copy is discarded; so it needs no journal.
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

fn inside_data_directory(file: &Path) -> StoreError {
    StoreError::new(
        StoreCode::DataUnusable,
        format!("{} lies in the data directory itself: name a file outside of it.", file.display()),
    )
}

/// The error of a failed copy. A read error names the data directory, a write error names the copy.
fn copy_failed(data: &Path, file: &Path, part: &PartFile, error: &rusqlite::Error) -> StoreError {
    use ErrorCode as C;
    let extended = error.sqlite_error().map_or(0, |failure| failure.extended_code);
    let code = match error.sqlite_error_code() {
        Some(C::DiskFull) => StoreCode::DataFull,
        Some(C::ReadOnly | C::PermissionDenied) => StoreCode::DataReadOnly,
        Some(C::SystemIoFailure | C::CannotOpen) if extended != rusqlite::ffi::SQLITE_IOERR_READ => {
            let length = std::fs::metadata(&part.path).map_or(0, |part| part.len());
            let probe = part.path.with_extension("probe");
            error::probe_write(&probe, length).unwrap_or(StoreCode::DataUnusable)
        }
        _ => return error::from_sqlite(data, error),
    };
    not_written(file, code, error)
}

fn not_written(file: &Path, code: StoreCode, reason: &dyn Display) -> StoreError {
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
        _ => format!("The copy {file} cannot be made ({reason}): fix that, or name another file."),
    };
    StoreError::new(code, message)
}

/// The copy while SQLite writes it, beside its final place. Removed when dropped. If its process dies, the
/// next backup to the same place removes it.
struct PartFile {
    path: PathBuf,
    /// Locked, so that other processes see that it is still being written. On Windows a lock would keep
    /// SQLite from writing; there an open file cannot be removed anyway.
    _file: Option<File>,
}

impl PartFile {
    /// SQLite writes into an empty file, and does not change its mode.
    fn create(file: &Path) -> io::Result<Self> {
        remove_abandoned(file);
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            let mut name = file.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}-{now}.part", std::process::id()));
            let path = file.with_file_name(name);
            let created = match private_file().write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                created => created?,
            };
            if cfg!(windows) {
                return Ok(Self { path, _file: None });
            }
            // On a file system without locks no part is ever removed as abandoned.
            let _ = created.lock();
            // Another process may have removed it as abandoned before it was locked.
            if path.exists() {
                return Ok(Self { path, _file: Some(created) });
            }
        }
    }

    fn path_text(&self, file: &Path) -> Result<&str, StoreError> {
        let text = self.path.to_str();
        text.ok_or_else(|| not_written(file, StoreCode::DataUnusable, &"its name is not text"))
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        discard(&self.path);
    }
}

/// Removes a part file. SQLite's journal goes first: without the part no later backup would find it.
fn discard(part: &Path) {
    let mut journal = part.as_os_str().to_owned();
    journal.push("-journal");
    let _ = std::fs::remove_file(journal);
    let _ = std::fs::remove_file(part);
}

/// Removes part files of earlier backups to this place whose processes died.
fn remove_abandoned(file: &Path) {
    let Some(entries) = file.parent().and_then(|folder| std::fs::read_dir(folder).ok()) else { return };
    let parts = entries.flatten().filter(|entry| is_part(&entry.file_name(), file.file_name()));
    for path in parts.map(|entry| entry.path()) {
        // Locked until it is removed: a process that is just creating it then notices.
        if let Ok(part) = File::open(&path)
            && part.try_lock().is_ok()
        {
            discard(&path);
        }
    }
}

/// Whether this is the name of a part file of a backup to that file.
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
