//! The database file: whose it is, which version it has, how connections to it are set up.
//!
//! Owns the schema and its migrations. Never changes a file that is not ours or that a newer version wrote.

use crate::directory::Directory;
use crate::error;
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// Marks the file as ours: `RFLW`.
const APPLICATION_ID: i64 = 0x5246_4c57;

/// How long a statement waits for another process that writes.
const BUSY: Duration = Duration::from_secs(5);

/// What makes each version out of the one before. Released ones never change.
const MIGRATIONS: &[&str] = &[
    // A batch is appended by its rowid: a key of (run, seq) would spread the writes of many runs over as many
    // pages. `head` is the sum of what never changes of a run; `batches` and `sum` seal where it stopped and are
    // null while it goes on. `cause_run` is the run that its cause names.
    "PRAGMA application_id = 1380338775;
     CREATE TABLE meta(driver INTEGER NOT NULL) STRICT;
     INSERT INTO meta VALUES (0);
     CREATE TABLE plans(id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, json TEXT NOT NULL) STRICT;
     CREATE TABLE runs(
         id INTEGER PRIMARY KEY,
         run_id TEXT NOT NULL UNIQUE,
         plan INTEGER,
         instance TEXT NOT NULL,
         node_id TEXT NOT NULL,
         name TEXT NOT NULL,
         started_at INTEGER NOT NULL,
         cause TEXT,
         cause_run TEXT,
         source TEXT,
         head TEXT NOT NULL,
         driver INTEGER NOT NULL,
         status TEXT NOT NULL,
         code TEXT,
         waiting TEXT,
         ended_at INTEGER,
         delivered INTEGER NOT NULL DEFAULT 0,
         batches INTEGER,
         sum TEXT
     ) STRICT;
     CREATE UNIQUE INDEX runs_by_cause ON runs(cause) WHERE cause IS NOT NULL;
     CREATE INDEX runs_unfinished ON runs(id) WHERE ended_at IS NULL OR delivered = 0;
     CREATE TABLE batches(
         id INTEGER PRIMARY KEY,
         run INTEGER NOT NULL,
         seq INTEGER NOT NULL,
         epoch INTEGER NOT NULL,
         active_ms INTEGER NOT NULL,
         lines BLOB NOT NULL,
         sum TEXT NOT NULL
     ) STRICT;
     CREATE INDEX batches_by_run ON batches(run);
     CREATE TABLE requests(
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         run_id TEXT NOT NULL,
         body TEXT NOT NULL,
         at INTEGER NOT NULL,
         answered INTEGER NOT NULL DEFAULT 0,
         refused TEXT
     ) STRICT;",
    // What happened, in the order it became true. `log` names these events; it is null until somebody keeps any.
    "ALTER TABLE meta ADD COLUMN log TEXT;
     CREATE TABLE events(id INTEGER PRIMARY KEY, run_id TEXT, body TEXT NOT NULL) STRICT;",
    // What was said in chats. `used` and the numbers of items follow the order in which it was said; `bytes` of a
    // chat are those of its items.
    "CREATE TABLE chats(
         id INTEGER PRIMARY KEY,
         node TEXT NOT NULL UNIQUE,
         used INTEGER NOT NULL,
         bytes INTEGER NOT NULL
     ) STRICT;
     CREATE TABLE chat_items(
         id INTEGER PRIMARY KEY,
         chat INTEGER NOT NULL,
         item TEXT NOT NULL,
         bytes INTEGER NOT NULL,
         body TEXT NOT NULL
     ) STRICT;
     CREATE INDEX chat_items_by_chat ON chat_items(chat);
     CREATE UNIQUE INDEX chat_items_once ON chat_items(chat, item);",
    // Runs of one agent, of one Node-RED, and those that failed, each by their numbers: whoever watches an agent asks
    // for them over and over.
    "CREATE INDEX runs_by_agent ON runs(node_id);
     CREATE INDEX runs_by_instance ON runs(instance);
     CREATE INDEX runs_failed ON runs(id) WHERE code IS NOT NULL;
     CREATE INDEX runs_failed_by_agent ON runs(node_id) WHERE code IS NOT NULL;",
];

/// The driver's connection: the database is made if there is none, and brought up to date.
pub(crate) fn drive(directory: &Directory) -> Result<Connection, StoreError> {
    let dir = directory.path();
    let told = |why: rusqlite::Error| error::sqlite(dir, &why);
    let mut connection = open(directory, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(told)?;
    let version = version(&connection, directory)?;
    directory.tighten();
    // Can only be chosen before the first page is written.
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL;").map_err(told)?;
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(told)?;
    if mode != "wal" {
        return Err(error::unusable(dir, &"its file system cannot share memory between processes"));
    }
    set_up_writing(&connection).map_err(told)?;
    migrate(&mut connection, version, MIGRATIONS).map_err(told)?;
    Ok(connection)
}

/// A connection that writes beside the driver.
pub(crate) fn write(directory: &Directory) -> Result<Connection, StoreError> {
    let told = |why: rusqlite::Error| error::sqlite(directory.path(), &why);
    existing(directory, || {
        let connection = open(directory, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(told)?;
        set_up_writing(&connection).map_err(told)?;
        Ok(connection)
    })
}

/// A connection that only reads.
pub(crate) fn read(directory: &Directory) -> Result<Connection, StoreError> {
    let file = directory.database();
    existing(directory, || {
        let connection =
            open(directory, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|why| error::unusable(&file, &why))?;
        // Nothing is read until the first question.
        let asked = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
        let connected = match asked {
            Err(why) if lacks_log(directory, &why) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                connect(&unchanging(&file), flags)
            }
            asked => asked.map(|()| connection),
        };
        connected.map_err(|why| error::sqlite(directory.path(), &why))
    })
}

/// A database that must be there already. What is read and written beside a driver is the same in every version
/// so far, so none is too old.
fn existing(
    directory: &Directory,
    open: impl FnOnce() -> Result<Connection, StoreError>,
) -> Result<Connection, StoreError> {
    let (dir, file) = (directory.path(), directory.database());
    match std::fs::metadata(&file) {
        Ok(found) if found.len() == 0 => return Err(error::no_runs(dir)),
        Ok(_) => {}
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Err(error::no_runs(dir)),
        Err(why) => return Err(error::unusable(&file, &why)),
    }
    let connection = open()?;
    match version(&connection, directory)? {
        0 => Err(error::no_runs(dir)),
        _ => Ok(connection),
    }
}

fn open(directory: &Directory, flags: OpenFlags) -> rusqlite::Result<Connection> {
    connect(&directory.database(), flags)
}

fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
    Ok(connection)
}

/// A commit is on the disk when it returns: one flush of the log for each. The log goes into the database
/// about every 16 MiB. The two about `fullfsync` mean something on macOS only, where a flush else stops at the
/// disk's own cache.
fn set_up_writing(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA fullfsync = ON;
         PRAGMA checkpoint_fullfsync = ON;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 67108864;",
    )
}

/// Which version the file has; 0 if there is nothing in it yet.
fn version(connection: &Connection, directory: &Directory) -> Result<usize, StoreError> {
    let dir = directory.path();
    let ask = |sql: &str| {
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(|why| error::sqlite(dir, &why))
    };
    let version = ask("PRAGMA user_version")?;
    match ask("PRAGMA application_id")? {
        APPLICATION_ID => {}
        0 if version == 0 && ask("SELECT count(*) FROM sqlite_schema")? == 0 => return Ok(0),
        _ => return Err(error::foreign(&directory.database())),
    }
    match usize::try_from(version) {
        Ok(version) if version > MIGRATIONS.len() => Err(StoreError::new(
            StoreCode::DataNewer,
            format!(
                "{} was written by a newer Redflow Runtime: use that version, or name another data directory.",
                dir.display()
            ),
        )),
        Ok(version) if version > 0 => Ok(version),
        _ => Err(error::damaged(dir, &"its version is missing")),
    }
}

/// Brings a database up to date, each version whole or not at all.
fn migrate(connection: &mut Connection, from: usize, steps: &[&str]) -> rusqlite::Result<()> {
    for (index, step) in steps.iter().enumerate().skip(from) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.execute_batch(&format!("PRAGMA user_version = {};", index + 1))?;
        transaction.commit()?;
    }
    Ok(())
}

/// The least that SQLite's index of the log has while somebody uses the database.
const INDEX: u64 = 32 * 1024;

/// Whether reading fails only because SQLite may not make its log or finds no room for the index of it, and
/// nobody writes. If a log is there, the database alone would not be the whole truth.
fn lacks_log(directory: &Directory, why: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
    let length = |file: std::path::PathBuf| std::fs::metadata(file).map_or(0, |file| file.len());
    let extended = why.sqlite_error().map_or(0, |failure| failure.extended_code);
    let cannot = match why.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => true,
        Some(ErrorCode::DiskFull) => length(directory.index()) < INDEX,
        Some(ErrorCode::SystemIoFailure) => {
            [SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_SHMMAP].contains(&extended)
                && length(directory.index()) < INDEX
        }
        _ => false,
    };
    cannot && length(directory.log()) == 0
}

/// The address of a file that nobody changes.
fn unchanging(path: &Path) -> std::path::PathBuf {
    use std::fmt::Write as _;
    let mut address = String::from(if cfg!(windows) { "file:///" } else { "file:" });
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => address.push('/'),
            b'/' | b':' | b'.' | b'-' | b'_' => address.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => address.push(char::from(byte)),
            _ => drop(write!(address, "%{byte:02x}")),
        }
    }
    address.push_str("?immutable=1");
    address.into()
}

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
