//! The database file: its tables, its version, and how connections to it are set up.

use super::database_error::DbError;
use super::seal::{self, Seal};
use super::text_index;
use crate::{Key, KeySource};
use redflow_contract::code::ArchiveCode;
use redflow_ports::{ArchiveError, failpoint};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior};
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Marks the file as ours: `RFAR`.
const APPLICATION_ID: i64 = 0x5246_4152;

/// Marks the file as ours and encrypted: `RFAE`.
const SEALED_APPLICATION_ID: i64 = 0x5246_4145;

/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Each step turns one version of the tables into the next. Released steps never change.
///
/// An entry keeps its id through all its versions. `change` is a log of changed entries, by which every process
/// finds what its index in memory lacks. A collection has a text index of its own, `text_ID`.
///
/// An encrypted file has the same tables with bytes in place of texts, see [`sealed_step`]. It has no text index. All of an
/// entry is sealed in `text`, of a document in `title`, of a collection in `settings`; names are hashes, and other columns
/// are empty except ids, numbers of dimensions and entries, and times that statements need.
const MIGRATIONS: &[&str] = &[
    "CREATE TABLE collection(
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
     INSERT INTO cache_size VALUES (0, 0);",
    "CREATE INDEX entry_by_user ON entry(collection, user, key) WHERE user IS NOT NULL;
     CREATE INDEX entry_by_session ON entry(collection, session, key) WHERE session IS NOT NULL;
     CREATE INDEX entry_by_state ON entry(collection, state, kind);",
    "ALTER TABLE entry ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE entry ADD COLUMN used_at INTEGER;",
    // How often something was forgotten, and up to which of these times no byte of it is left in the file.
    "CREATE TABLE cleaning(forgets INTEGER NOT NULL, cleaned INTEGER NOT NULL) STRICT;
     INSERT INTO cleaning VALUES (0, 0);",
    // Each collection gets a table of the occurrences of words, see `text_index::add_occurrences`.
    "",
    // A memory has few turns that wait and few new notes, and many old turns. In an encrypted file these indexes stay
    // empty, because its columns are.
    "CREATE INDEX entry_pending ON entry(collection, session, key, kind, state)
         WHERE kind = 'episode' AND state = 'live' AND session IS NOT NULL;
     CREATE INDEX entry_notes_by_user ON entry(collection, user, created_at)
         WHERE kind <> 'episode' AND user IS NOT NULL;
     CREATE INDEX entry_notes_by_session ON entry(collection, session, created_at)
         WHERE kind <> 'episode' AND session IS NOT NULL;",
];

/// A step for an encrypted file.
fn sealed_step(step: &str) -> String {
    step.replace(" TEXT", " BLOB")
}

/// A connection, and the seal of the file's values; none if it is not encrypted.
pub(super) struct OpenFile {
    pub(super) connection: Connection,
    pub(super) seal: Option<Seal>,
}

/// The file of the archive.
#[derive(Clone)]
pub(super) struct File {
    /// Absolute.
    path: PathBuf,
    /// Where the key is; none if the file is not encrypted.
    keys: Option<Arc<dyn KeySource>>,
}

impl File {
    pub(super) fn below(data: &Path, keys: Option<Arc<dyn KeySource>>) -> Self {
        let path = data.join("archive.db");
        Self { path: std::path::absolute(&path).unwrap_or(path), keys }
    }

    pub(super) fn exists(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|file| file.len() > 0)
    }

    /// Opens a connection that writes. Creates the file, migrates older versions, and removes the bytes that a forget
    /// left which did not end.
    pub(super) fn open_writer(&self) -> Result<OpenFile, ArchiveError> {
        self.create()?;
        let mut connection = self.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let begin = Instant::now();
        loop {
            match self.set_up(&mut connection) {
                // SQLite does not wait when two processes turn on the write-ahead log.
                Err(DbError::Sqlite(error)) if is_busy(&error) && begin.elapsed() < BUSY_TIMEOUT => {
                    wait_a_moment();
                }
                done => {
                    let seal = done.map_err(|error| self.refused(error))?;
                    // The caller wants something else of the file. If this fails, the mark stays, and the next
                    // forget or removal of expired entries says why.
                    let _ = self.finish_forgetting(&connection);
                    return Ok(OpenFile { connection, seal });
                }
            }
        }
    }

    /// Opens a connection that only reads. The file must exist.
    pub(super) fn open_reader(&self) -> Result<OpenFile, ArchiveError> {
        let connection = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        if self.is_outdated(&connection).map_err(|error| self.refused(error))? {
            // The writer converts it.
            drop(self.open_writer()?);
        }
        let seal = self.seal(&connection).map_err(|error| self.refused(error))?;
        Ok(OpenFile { connection, seal })
    }

    /// Writes the whole file again and empties the write-ahead log, if bytes of what was forgotten may be left there: a
    /// page may have copies of values that were removed since.
    pub(super) fn finish_forgetting(&self, connection: &Connection) -> Result<(), DbError> {
        // Another process may forget something meanwhile, and that stays marked.
        let Some(forgets) = uncleaned(connection)? else { return Ok(()) };
        failpoint("archive.forgotten");
        connection.execute_batch("VACUUM")?;
        failpoint("archive.vacuumed");
        let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        let problem = "another process reads it, so bytes of what was removed are still there; try again";
        if is_busy {
            return Err(self.unusable(&problem).into());
        }
        connection.execute("UPDATE cleaning SET cleaned = max(cleaned, ?1)", [forgets])?;
        Ok(())
    }

    /// The seal of a file that has its tables.
    fn seal(&self, connection: &Connection) -> Result<Option<Seal>, DbError> {
        let Some(keys) = &self.keys else { return Ok(None) };
        let refused = |problem: &str| {
            let reason =
                format!("{problem}; {}, or move the file away and add the documents again", keys.remedy());
            self.unusable(&reason)
        };
        let key = keys.read()?.ok_or_else(|| refused("it is encrypted, and its key is missing"))?;
        let seal = Seal::new(&key);
        match seal::has_key(connection, &seal)? {
            true => Ok(Some(seal)),
            false => Err(refused("it is encrypted with another key").into()),
        }
    }

    fn create(&self) -> Result<(), ArchiveError> {
        if let Some(folder) = self.path.parent() {
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
        match options.open(&self.path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(self.unusable(&error)),
            _ => Ok(()),
        }
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection, ArchiveError> {
        let connect = || {
            let connection =
                Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            connection.set_prepared_statement_cache_capacity(48);
            connection.execute_batch(
                "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA secure_delete = ON;",
            )?;
            if self.keys.is_some() {
                // Nothing of a statement goes into a temporary file.
                connection.execute_batch("PRAGMA temp_store = MEMORY;")?;
            }
            Ok(connection)
        };
        connect().map_err(|error| self.error(&error))
    }

    fn set_up(&self, connection: &mut Connection) -> Result<Option<Seal>, DbError> {
        let is_outdated = self.is_outdated(connection)?;
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL;")?;
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        if mode != "wal" {
            return Err(self.unusable(&"its file system cannot share memory between processes").into());
        }
        connection.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
             PRAGMA journal_size_limit = 67108864;",
        )?;
        if is_outdated {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // Another process may have done it in the meantime.
            let from = self.version(&transaction)?;
            let new_key = match &self.keys {
                Some(keys) if from == 0 => Some(self.new_key(&**keys)?),
                _ => None,
            };
            for step in MIGRATIONS.iter().skip(from) {
                match &self.keys {
                    None => transaction.execute_batch(step)?,
                    Some(_) => transaction.execute_batch(&sealed_step(step))?,
                }
            }
            if self.has_text_index() {
                text_index::add_occurrences(&transaction)?;
            }
            if let Some(key) = &new_key {
                seal::create_check(&transaction, &Seal::new(key))?;
            }
            let (owner, version) = (self.application_id(), MIGRATIONS.len());
            transaction.execute_batch(&format!(
                "PRAGMA application_id = {owner}; PRAGMA user_version = {version};"
            ))?;
            transaction.commit()?;
        }
        self.seal(connection)
    }

    /// The key of a file without tables. It is stored before anything is sealed with it.
    fn new_key(&self, keys: &dyn KeySource) -> Result<Key, ArchiveError> {
        match keys.read()? {
            Some(key) => Ok(key),
            None => keys.create(),
        }
    }

    fn application_id(&self) -> i64 {
        if self.keys.is_some() { SEALED_APPLICATION_ID } else { APPLICATION_ID }
    }

    /// An encrypted file has none.
    fn has_text_index(&self) -> bool {
        self.keys.is_none()
    }

    /// Whether the file lacks something that an earlier version of this program did not make.
    fn is_outdated(&self, connection: &Connection) -> Result<bool, DbError> {
        Ok(self.version(connection)? < MIGRATIONS.len()
            || (self.has_text_index() && !text_index::without_occurrences(connection)?.is_empty()))
    }

    /// The version of the file's tables; 0 if it has none yet.
    fn version(&self, connection: &Connection) -> Result<usize, DbError> {
        // One statement, because another process may create the tables meanwhile.
        let sql = "SELECT (SELECT user_version FROM pragma_user_version), \
             (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)";
        let (version, owner, tables): (i64, i64, i64) =
            connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let version = usize::try_from(version).unwrap_or(usize::MAX);
        let is_new = owner == 0 && version == 0 && tables == 0;
        let problem = match owner {
            _ if is_new => None,
            APPLICATION_ID if self.keys.is_some() => Some(
                "it is not encrypted, and `encrypt` in `[archive]` is true; set it to false, or move the file away \
                 and add the documents again",
            ),
            SEALED_APPLICATION_ID if self.keys.is_none() => {
                Some("it is encrypted; set `encrypt = true` in `[archive]`")
            }
            APPLICATION_ID | SEALED_APPLICATION_ID if version > MIGRATIONS.len() => {
                Some("a newer Redflow Runtime wrote it; use that version")
            }
            APPLICATION_ID | SEALED_APPLICATION_ID => None,
            _ => Some("it belongs to another program"),
        };
        problem.map_or(Ok(version), |problem| Err(self.unusable(&problem).into()))
    }

    pub(super) fn refused(&self, error: DbError) -> ArchiveError {
        match error {
            DbError::Sqlite(error) => self.error(&error),
            DbError::Refused(error) => error,
        }
    }

    /// What an error of SQLite means for the archive.
    fn error(&self, error: &rusqlite::Error) -> ArchiveError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => ArchiveError::new(
                ArchiveCode::ArchiveFull,
                format!(
                    "There is no room left on the disk of {}: make some, and try again.",
                    self.path.display()
                ),
            ),
            _ if is_busy(error) => self.unusable(&"another process writes to it for a long time; try again"),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                self.unusable(&"this user may not use it, or its folder is missing")
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                self.unusable(&"it is damaged; restore a backup, or move it away and add the documents again")
            }
            _ => match error {
                rusqlite::Error::FromSqlConversionFailure(_, _, reason)
                | rusqlite::Error::ToSqlConversionFailure(reason) => self.unusable(reason),
                error => self.unusable(error),
            },
        }
    }

    fn unusable(&self, reason: &dyn std::fmt::Display) -> ArchiveError {
        let message = format!("The archive {} cannot be used: {reason}.", self.path.display());
        ArchiveError::new(ArchiveCode::ArchiveUnreadable, message)
    }
}

/// Marks the file: bytes of what this transaction removes may be left in it.
pub(super) fn mark_forgetting(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE cleaning SET forgets = forgets + 1", []).map(drop)
}

/// How often something was forgotten; none if no byte of it is left.
pub(super) fn uncleaned(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT forgets FROM cleaning WHERE cleaned < forgets";
    connection.query_row(sql, [], |row| row.get(0)).optional()
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
