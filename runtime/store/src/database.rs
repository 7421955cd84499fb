//! The database file: its owner program, its version, and how connections to it are set up.
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
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Each step turns one version of the schema into the next. Released steps never change.
const MIGRATIONS: &[&str] = &[
    // A batch is appended by its rowid: a key of (run, seq) would spread the writes of many runs over as many
    // pages. `head` is the checksum of the columns that never change. `batches` and `sum` seal the state in
    // which a run stopped, and are null while it runs. `cause_run` is the run that its cause names.
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
    // Events in the order they happened. `log` is the id of the event log; it is null until a driver stores
    // events.
    "ALTER TABLE meta ADD COLUMN log TEXT;
     CREATE TABLE events(id INTEGER PRIMARY KEY, run_id TEXT, body TEXT NOT NULL) STRICT;",
    // Chat histories. `used` and the ids of items follow the order in which items were added; `bytes` of a
    // chat is the sum over its items.
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
    // Runs of one agent, of one Node-RED, and failed runs, each by their numbers: a client that watches an
    // agent queries them again and again.
    "CREATE INDEX runs_by_agent ON runs(node_id);
     CREATE INDEX runs_by_instance ON runs(instance);
     CREATE INDEX runs_failed ON runs(id) WHERE code IS NOT NULL;
     CREATE INDEX runs_failed_by_agent ON runs(node_id) WHERE code IS NOT NULL;",
    // The tool whose call an event ended, for the log of each tool. It is null in older events.
    "ALTER TABLE events ADD COLUMN tool TEXT;
     CREATE INDEX events_by_tool ON events(tool, id) WHERE tool IS NOT NULL;",
    // Who started a run, and what it had used when it last stopped, for lists. Both are null in older runs.
    "ALTER TABLE runs ADD COLUMN started_by TEXT;
     ALTER TABLE runs ADD COLUMN tally TEXT;",
    // The run that started a run, or whose message did, as long as it is stored. What runs have used by UTC day,
    // with costs in billionths; older runs are not counted until `redflow runs recount`.
    "ALTER TABLE runs ADD COLUMN parent TEXT;
     UPDATE runs SET parent = cause_run WHERE cause_run IN (SELECT run_id FROM runs);
     CREATE INDEX runs_by_parent ON runs(parent) WHERE parent IS NOT NULL;
     CREATE INDEX runs_by_start ON runs(started_at);
     CREATE INDEX runs_failed_by_start ON runs(started_at) WHERE code IS NOT NULL;
     CREATE INDEX runs_failed_by_end ON runs(ended_at, code, started_at) WHERE code IS NOT NULL;
     CREATE INDEX runs_waiting ON runs(id) WHERE status = 'waiting';
     CREATE TABLE usage(
         day INTEGER NOT NULL,
         instance TEXT NOT NULL,
         node_id TEXT NOT NULL,
         model TEXT NOT NULL,
         runs INTEGER NOT NULL,
         failed INTEGER NOT NULL,
         calls INTEGER NOT NULL,
         input INTEGER NOT NULL,
         output INTEGER NOT NULL,
         cached INTEGER NOT NULL,
         cost INTEGER,
         ms INTEGER NOT NULL,
         PRIMARY KEY (day, instance, node_id, model)
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE tool_usage(
         day INTEGER NOT NULL,
         instance TEXT NOT NULL,
         node_id TEXT NOT NULL,
         tool TEXT NOT NULL,
         calls INTEGER NOT NULL,
         failed INTEGER NOT NULL,
         ms INTEGER NOT NULL,
         PRIMARY KEY (day, instance, node_id, tool)
     ) STRICT, WITHOUT ROWID;",
    // Whose run it is, and the conversation; null in older runs. `unclean` is 1 while bytes of forgotten runs may be
    // left in the files.
    "ALTER TABLE runs ADD COLUMN user TEXT;
     ALTER TABLE runs ADD COLUMN session TEXT;
     CREATE INDEX runs_by_user ON runs(user) WHERE user IS NOT NULL;
     CREATE INDEX runs_by_session ON runs(session) WHERE session IS NOT NULL;
     ALTER TABLE meta ADD COLUMN unclean INTEGER NOT NULL DEFAULT 0;",
    // The calls whose price is not known, so that a sum says what it lacks.
    "ALTER TABLE usage ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0;
     UPDATE usage SET unpriced = calls WHERE cost IS NULL AND input + output > 0;",
];

/// The first version whose events have a tool.
const EVENTS_HAVE_TOOLS: usize = 5;

/// The first version whose runs have a tally and the one who started them.
const RUNS_HAVE_TALLIES: i64 = 6;

/// The first version whose runs have a parent.
const RUNS_HAVE_PARENTS: i64 = 7;

/// Opens the driver's connection. Creates the tables if there are none, and migrates older versions.
pub(crate) fn open_driver(directory: &Directory) -> Result<Connection, StoreError> {
    let dir = directory.path();
    let to_store_error = |error: rusqlite::Error| error::from_sqlite(dir, &error);
    let mut connection = open(directory, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(to_store_error)?;
    let version = version(&connection, directory)?;
    directory.restrict_modes();
    // SQLite accepts this only before the first page is written.
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL;").map_err(to_store_error)?;
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(to_store_error)?;
    if mode != "wal" {
        return Err(error::unusable(dir, &"its file system cannot share memory between processes"));
    }
    set_up_writing(&connection).map_err(to_store_error)?;
    if (1..MIGRATIONS.len()).contains(&version) {
        tracing::info!(
            from = version,
            to = MIGRATIONS.len(),
            "converting the data directory; many runs take some seconds"
        );
    }
    migrate(&mut connection, version, MIGRATIONS).map_err(to_store_error)?;
    Ok(connection)
}

/// Opens a connection that writes while another process may be the driver.
pub(crate) fn open_writer(directory: &Directory) -> Result<Connection, StoreError> {
    let to_store_error = |error: rusqlite::Error| error::from_sqlite(directory.path(), &error);
    open_existing(directory, || {
        let connection = open(directory, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(to_store_error)?;
        set_up_writing(&connection).map_err(to_store_error)?;
        Ok(connection)
    })
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(directory: &Directory) -> Result<Connection, StoreError> {
    let file = directory.database();
    open_existing(directory, || {
        let connection = open(directory, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(|error| error::unusable(&file, &error))?;
        // SQLite reads nothing before the first query.
        let probed = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()));
        let connected = match probed {
            Err(error) if lacks_wal(directory, &error) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                connect(&immutable_uri(&file), flags)
            }
            probed => probed.map(|()| connection),
        };
        connected.map_err(|error| error::from_sqlite(directory.path(), &error))
    })
}

/// Opens a database that must exist. Readers and writers beside a driver use only tables that are the
/// same in every version so far, so no version is too old for them.
fn open_existing(
    directory: &Directory,
    open: impl FnOnce() -> Result<Connection, StoreError>,
) -> Result<Connection, StoreError> {
    let (dir, file) = (directory.path(), directory.database());
    match std::fs::metadata(&file) {
        Ok(metadata) if metadata.len() == 0 => return Err(error::no_runs(dir)),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(error::no_runs(dir)),
        Err(error) => return Err(error::unusable(&file, &error)),
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
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
    Ok(connection)
}

/// A commit is on the disk when it returns, with one flush of the write-ahead log. SQLite copies that log
/// into the database about every 16 MiB. The two `fullfsync` settings matter only on macOS, where a flush
/// otherwise stops at the disk's own cache.
fn set_up_writing(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA fullfsync = ON;
         PRAGMA checkpoint_fullfsync = ON;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 67108864;",
    )
}

/// The version of the file's schema; 0 if it has no tables yet.
fn version(connection: &Connection, directory: &Directory) -> Result<usize, StoreError> {
    let dir = directory.path();
    let query = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .map_err(|error| error::from_sqlite(dir, &error))
    };
    let version = query("PRAGMA user_version")?;
    match query("PRAGMA application_id")? {
        APPLICATION_ID => {}
        0 if version == 0 && query("SELECT count(*) FROM sqlite_schema")? == 0 => return Ok(0),
        _ => return Err(error::foreign_database(&directory.database())),
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

/// Whether the events of this file name the tools whose calls they ended.
pub(crate) fn events_have_tools(connection: &Connection, directory: &Directory) -> Result<bool, StoreError> {
    Ok(version(connection, directory)? >= EVENTS_HAVE_TOOLS)
}

/// Whether the runs of this file have the columns `started_by` and `tally`.
pub(crate) fn runs_have_tallies(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(user_version(connection)? >= RUNS_HAVE_TALLIES)
}

/// Whether the runs of this file have the column `parent`.
pub(crate) fn runs_have_parents(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(user_version(connection)? >= RUNS_HAVE_PARENTS)
}

fn user_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// A database in memory with the newest tables.
pub(crate) fn open_in_memory() -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    migrate(&mut connection, 0, MIGRATIONS)?;
    Ok(connection)
}

/// Migrates a database to the newest version, each step in one transaction.
fn migrate(connection: &mut Connection, from: usize, steps: &[&str]) -> rusqlite::Result<()> {
    for (index, step) in steps.iter().enumerate().skip(from) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.execute_batch(&format!("PRAGMA user_version = {};", index + 1))?;
        transaction.commit()?;
    }
    Ok(())
}

/// The smallest size of the index of the write-ahead log while a process uses the database.
const MIN_WAL_INDEX_BYTES: u64 = 32 * 1024;

/// Whether reading fails only because SQLite cannot create its write-ahead log or the index of it, and no
/// process writes. If a log exists, the database file alone would lack the newest changes.
fn lacks_wal(directory: &Directory, error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE};
    let length = |file: std::path::PathBuf| std::fs::metadata(file).map_or(0, |file| file.len());
    let extended = error.sqlite_error().map_or(0, |failure| failure.extended_code);
    let cannot_create = match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => true,
        Some(ErrorCode::DiskFull) => length(directory.wal_index()) < MIN_WAL_INDEX_BYTES,
        Some(ErrorCode::SystemIoFailure) => {
            [SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_SHMMAP].contains(&extended)
                && length(directory.wal_index()) < MIN_WAL_INDEX_BYTES
        }
        _ => false,
    };
    cannot_create && length(directory.wal()) == 0
}

/// The URI that tells SQLite that no process changes this file.
fn immutable_uri(path: &Path) -> std::path::PathBuf {
    use std::fmt::Write as _;
    let mut uri = String::from(if cfg!(windows) { "file:///" } else { "file:" });
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'/' | b':' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => drop(write!(uri, "%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}

/// A number as SQLite stores it. SQLite has no larger integers; no time or position comes near the limit.
pub(crate) fn to_sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A stored number that cannot be negative.
pub(crate) fn from_sql_integer(number: i64) -> rusqlite::Result<u64> {
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, number))
}

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
