//! The archive of this process. Commands and tools build theirs here, so that all follow the settings.

use crate::config::{ARCHIVE_KEY_VARIABLE, Settings};
use redflow_archive::{Key, KeySource, SqliteArchive};
use redflow_contract::code::ArchiveCode;
use redflow_ports::{ArchiveError, Clock, FileStoreError};
use redflow_store::{ArchiveKeyFile, parse_key};
use secrecy::{ExposeSecret as _, SecretString};
use std::path::Path;
use std::sync::Arc;

/// The archive of a data directory. Opens nothing.
pub(crate) fn archive(settings: &Settings, data: &Path, clock: Arc<dyn Clock>) -> Arc<SqliteArchive> {
    let archive = match settings.archive.encrypt {
        false => SqliteArchive::new(data, clock),
        true => {
            let keys = Keys { given: settings.archive.key.clone(), file: ArchiveKeyFile::new(data) };
            SqliteArchive::sealed(data, clock, Arc::new(keys))
        }
    };
    Arc::new(archive)
}

/// The key of the environment, else of the data directory.
struct Keys {
    given: Option<SecretString>,
    file: ArchiveKeyFile,
}

impl KeySource for Keys {
    fn read(&self) -> Result<Option<Key>, ArchiveError> {
        match &self.given {
            // The settings have checked it.
            Some(key) => Ok(parse_key(key.expose_secret())),
            None => self.file.read().map_err(|error| unusable(&error)),
        }
    }

    fn create(&self) -> Result<Key, ArchiveError> {
        self.file.create().map_err(|error| unusable(&error))
    }

    fn remedy(&self) -> String {
        format!("restore {}, or set {ARCHIVE_KEY_VARIABLE} to its key", self.file.path().display())
    }
}

fn unusable(error: &FileStoreError) -> ArchiveError {
    let message = format!("The key of the archive cannot be used: {}", error.message);
    ArchiveError::new(ArchiveCode::ArchiveUnreadable, message)
}
