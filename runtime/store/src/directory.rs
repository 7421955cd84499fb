//! The data directory: which files it has and who may read them.
//!
//! Owns their names and modes. Never opens a file that SQLite may have open: closing it again would drop the
//! locks of the whole process on it.

use crate::error;
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A data directory, by its absolute path: SQLite would take a path such as `file:x` for an address.
#[derive(Debug, Clone)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn named(dir: &Path) -> Result<Self, StoreError> {
        std::path::absolute(dir).map(Self).map_err(|why| error::unusable(dir, &why))
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

    /// SQLite's log of what is not in the database file yet.
    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("redflow.db-wal")
    }

    /// SQLite's index of that log, which all who use the database share.
    pub(crate) fn index(&self) -> PathBuf {
        self.0.join("redflow.db-shm")
    }

    /// Makes the directory if it is not there, for its owner alone.
    pub(crate) fn make(&self) -> Result<(), StoreError> {
        let made: Vec<&Path> = self.0.ancestors().take_while(|folder| !folder.exists()).collect();
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.0).map_err(|why| match why.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => StoreError::new(
                StoreCode::DataUnusable,
                format!("{} is a file, or lies below one: name a directory instead.", self.0.display()),
            ),
            _ => error::writing(&self.0, &why),
        })?;
        made.into_iter().filter_map(Path::parent).for_each(sync_directory);
        Ok(())
    }

    /// Makes an empty database file if there is none. SQLite gives its other files the mode of this one.
    pub(crate) fn make_database(&self) -> Result<(), StoreError> {
        let path = self.database();
        match private_file().write(true).create_new(true).open(&path) {
            Err(why) if why.kind() != ErrorKind::AlreadyExists => Err(error::writing(&path, &why)),
            _ => Ok(()),
        }
    }

    /// Takes the rights of others at our files away. Only once it is known that they are ours.
    pub(crate) fn tighten(&self) {
        for file in [self.database(), self.log(), self.index(), self.lock()] {
            tighten(&file);
        }
    }
}

/// How files are made here: for their owner alone.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Takes the rights of others away. Fails for a file of somebody else, whose business it then is.
#[cfg(unix)]
fn tighten(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(file) = std::fs::metadata(path) else { return };
    let mode = file.permissions().mode();
    if mode & 0o077 != 0 {
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o700));
    }
}

#[cfg(not(unix))]
fn tighten(_path: &Path) {}

/// Writes down which files a directory has. Only some systems can; the others do it by themselves.
pub(crate) fn sync_directory(path: &Path) {
    if let Ok(directory) = File::open(path) {
        let _ = directory.sync_all();
    }
}
