//! The database file: its tables, its version, and how connections to it are set up.

use redflow_contract::code::ArchiveCode;
use redflow_ports::ArchiveError;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Marks the file as ours: `RFAR`.
const APPLICATION_ID: i64 = 0x5246_4152;

/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Each step turns one version of the tables into the next. Released steps never change.
///
/// An entry keeps its id through all its versions. `change` is a log of changed entries, by which every process
/// finds what its index in memory lacks. A collection has a text index of its own, `text_ID`.
const MIGRATIONS: &[&str] = &["PRAGMA application_id = 1380335954;
     CREATE TABLE collection(
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         name TEXT NOT NULL UNIQUE,
         embedder TEXT NOT NULL,
         dimensions INTEGER NOT NULL,
         settings TEXT NOT NULL,
         entries INTEGER NOT NULL,
         created_at INTEGER NOT NULL
     ) STRICT;
     CREATE TABLE document(
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         collection INTEGER NOT NULL,
         name TEXT NOT NULL,
         title TEXT NOT NULL,
         origin TEXT NOT NULL,
         digest TEXT NOT NULL,
         bytes INTEGER NOT NULL,
         chunks INTEGER NOT NULL,
         tags TEXT NOT NULL,
         added_at INTEGER NOT NULL,
         UNIQUE (collection, name)
     ) STRICT;
     CREATE TABLE entry(
         id INTEGER PRIMARY KEY AUTOINCREMENT,
         collection INTEGER NOT NULL,
         key TEXT NOT NULL,
         document INTEGER,
         version INTEGER NOT NULL,
         kind TEXT NOT NULL,
         text TEXT NOT NULL,
         meta TEXT NOT NULL,
         tags TEXT NOT NULL,
         user TEXT,
         session TEXT,
         state TEXT NOT NULL,
         valid_from INTEGER NOT NULL,
         valid_to INTEGER,
         created_at INTEGER NOT NULL,
         expires_at INTEGER,
         trust TEXT NOT NULL,
         importance REAL NOT NULL,
         source TEXT,
         content_hash TEXT NOT NULL,
         supersedes TEXT,
         UNIQUE (collection, key)
     ) STRICT;
     CREATE INDEX entry_by_document ON entry(document) WHERE document IS NOT NULL;
     CREATE INDEX entry_by_expiry ON entry(expires_at) WHERE expires_at IS NOT NULL;
     CREATE TABLE entry_history(
         entry INTEGER NOT NULL,
         version INTEGER NOT NULL,
         body TEXT NOT NULL,
         PRIMARY KEY (entry, version)
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE vector(entry INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
     CREATE TABLE code(
         collection INTEGER NOT NULL,
         entry INTEGER NOT NULL,
         scale REAL NOT NULL,
         data BLOB NOT NULL,
         PRIMARY KEY (collection, entry)
     ) STRICT, WITHOUT ROWID;
     CREATE TABLE change(
         seq INTEGER PRIMARY KEY AUTOINCREMENT,
         collection INTEGER NOT NULL,
         entry INTEGER NOT NULL
     ) STRICT;
     CREATE TABLE embedding_cache(
         id INTEGER PRIMARY KEY,
         embedder TEXT NOT NULL,
         text TEXT NOT NULL,
         data BLOB NOT NULL,
         used INTEGER NOT NULL,
         UNIQUE (embedder, text)
     ) STRICT;
     CREATE INDEX embedding_cache_by_use ON embedding_cache(used);
     CREATE TABLE cache_size(bytes INTEGER NOT NULL, uses INTEGER NOT NULL) STRICT;
     INSERT INTO cache_size VALUES (0, 0);"];

/// The file of the archive, by its absolute path.
#[derive(Debug, Clone)]
pub(super) struct File(PathBuf);

impl File {
    pub(super) fn below(data: &Path) -> Self {
        let path = data.join("archive.db");
        Self(std::path::absolute(&path).unwrap_or(path))
    }

    pub(super) fn exists(&self) -> bool {
        std::fs::metadata(&self.0).is_ok_and(|file| file.len() > 0)
    }

    /// Opens a connection that writes. Creates the file, and migrates older versions.
    pub(super) fn open_writer(&self) -> Result<Connection, ArchiveError> {
        self.create()?;
        let mut connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let begin = Instant::now();
        loop {
            match self.set_up(&mut connection) {
                // SQLite does not wait when two processes turn on the write-ahead log.
                Err(error) if is_busy(&error) && begin.elapsed() < BUSY_TIMEOUT => {
                    wait_a_moment();
                }
                done => {
                    done.map_err(|error| self.error(&error))??;
                    return Ok(connection);
                }
            }
        }
    }

    /// Opens a connection that only reads. The file must exist.
    pub(super) fn open_reader(&self) -> Result<Connection, ArchiveError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let version = self.version(&connection).map_err(|error| self.error(&error))??;
        if version < MIGRATIONS.len() {
            // An earlier version of this program made it. The writer converts it.
            drop(self.open_writer()?);
        }
        Ok(connection)
    }

    fn create(&self) -> Result<(), ArchiveError> {
        if let Some(folder) = self.0.parent() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder).map_err(|error| self.unusable(&error))?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&self.0) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(self.unusable(&error)),
            _ => Ok(()),
        }
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection, ArchiveError> {
        let connect = || {
            let connection = Connection::open_with_flags(&self.0, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.set_prepared_statement_cache_capacity(48);
            connection.execute_batch(
                "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON;",
            )?;
            Ok(connection)
        };
        connect().map_err(|error| self.error(&error))
    }

    fn set_up(&self, connection: &mut Connection) -> rusqlite::Result<Result<(), ArchiveError>> {
        let version = match self.version(connection)? {
            Ok(version) => version,
            Err(error) => return Ok(Err(error)),
        };
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL;")?;
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Ok(Err(self.unusable(&"its file system cannot share memory between processes")));
        }
        connection.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
             PRAGMA journal_size_limit = 67108864;",
        )?;
        if version < MIGRATIONS.len() {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have done it in the meantime.
            let from = user_version(&transaction)?;
            for step in MIGRATIONS.iter().skip(from) {
                transaction.execute_batch(step)?;
            }
            transaction.execute_batch(&format!("PRAGMA user_version = {};", MIGRATIONS.len()))?;
            transaction.commit()?;
        }
        Ok(Ok(()))
    }

    /// The version of the file's tables; 0 if it has none yet.
    fn version(&self, connection: &Connection) -> rusqlite::Result<Result<usize, ArchiveError>> {
        // One transaction, because another process may create the tables meanwhile.
        let transaction = connection.unchecked_transaction()?;
        let number = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
        let version = user_version(&transaction)?;
        let owner = number("PRAGMA application_id")?;
        let is_new = owner == 0 && version == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0;
        Ok(if owner != APPLICATION_ID && !is_new {
            Err(self.unusable(&"it belongs to another program"))
        } else if version > MIGRATIONS.len() {
            Err(self.unusable(&"a newer Redflow Runtime wrote it; use that version"))
        } else {
            Ok(version)
        })
    }

    /// What an error of SQLite means for the archive.
    pub(super) fn error(&self, error: &rusqlite::Error) -> ArchiveError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => ArchiveError::new(
                ArchiveCode::ArchiveFull,
                format!(
                    "There is no room left on the disk of {}: make some, and try again.",
                    self.0.display()
                ),
            ),
            _ if is_busy(error) => self.unusable(&"another process writes to it for a long time; try again"),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                self.unusable(&"this user may not use it, or its folder is missing")
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                self.unusable(&"it is damaged; restore a backup, or move it away and add the documents again")
            }
            _ => self.unusable(error),
        }
    }

    pub(super) fn unusable(&self, reason: &dyn std::fmt::Display) -> ArchiveError {
        let message = format!("The archive {} cannot be used: {reason}.", self.0.display());
        ArchiveError::new(ArchiveCode::ArchiveUnreadable, message)
    }
}

/// Waits on a thread that may wait.
#[allow(
    clippy::disallowed_methods,
    reason = "this code runs on a thread of its own, never in the async runtime"
)]
fn wait_a_moment() {
    std::thread::sleep(Duration::from_millis(20));
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn user_version(connection: &Connection) -> rusqlite::Result<usize> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}
