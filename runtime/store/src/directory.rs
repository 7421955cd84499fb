//! The data directory: which files it has and who may read them.
//!
//! Owns their names and modes. Never opens a file that SQLite may have open: closing it again would drop the
//! locks of the whole process on it.

use crate::error;
use crate::private_file::{private_file, sync_directory};
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A data directory, by its absolute path: SQLite would read a relative path such as `file:x` as a URI.
#[derive(Debug, Clone)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn at(dir: &Path) -> Result<Self, StoreError> {
        std::path::absolute(dir).map(Self).map_err(|error| error::unusable(dir, &error))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("redflow.db")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// The address at which the driver listens. Only the holder of the lock writes it.
    pub(crate) fn address(&self) -> PathBuf {
        self.0.join("address")
    }

    /// SQLite's write-ahead log: changes that are not in the database file yet.
    pub(crate) fn wal(&self) -> PathBuf {
        self.0.join("redflow.db-wal")
    }

    /// SQLite's index of the write-ahead log, which all processes that use the database share.
    pub(crate) fn wal_index(&self) -> PathBuf {
        self.0.join("redflow.db-shm")
    }

    /// Creates the directory with mode 0700, unless it exists.
    pub(crate) fn create(&self) -> Result<(), StoreError> {
        let missing: Vec<&Path> = self.0.ancestors().take_while(|folder| !folder.exists()).collect();
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.0).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => StoreError::new(
                StoreCode::DataUnusable,
                format!("{} is a file, or lies below one: name a directory instead.", self.0.display()),
            ),
            _ => error::write_failed(&self.0, &error),
        })?;
        missing.into_iter().filter_map(Path::parent).for_each(sync_directory);
        Ok(())
    }

    /// Creates an empty database file, unless it exists. SQLite gives its other files the mode of this one.
    pub(crate) fn create_database(&self) -> Result<(), StoreError> {
        let path = self.database();
        match private_file().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error::write_failed(&path, &error)),
            _ => Ok(()),
        }
    }

    /// Removes the rights of other users from our files. Call it only once the files are known to be ours.
    pub(crate) fn restrict_modes(&self) {
        for file in [self.database(), self.wal(), self.wal_index(), self.lock()] {
            restrict_mode(&file);
        }
    }
}

/// Fails silently for a file of another owner: its mode is that owner's decision.
#[cfg(unix)]
fn restrict_mode(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(file) = std::fs::metadata(path) else { return };
    let mode = file.permissions().mode();
    if mode & 0o077 != 0 {
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o700));
    }
}

#[cfg(not(unix))]
fn restrict_mode(_path: &Path) {}
