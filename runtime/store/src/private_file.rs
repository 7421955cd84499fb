//! How this crate creates files: readable and writable by their owner alone.

use std::fs::{File, OpenOptions};
use std::path::Path;

/// Options for a new file with mode 0600.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Flushes the list of files of a directory to the disk. Some systems cannot; those flush it by themselves.
pub(crate) fn sync_directory(path: &Path) {
    if let Ok(directory) = File::open(path) {
        let _ = directory.sync_all();
    }
}
