//! Folders for as long as a measurement takes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is gone when this is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Where small files go.
    pub(crate) fn temporary() -> std::io::Result<Self> {
        Self::inside(&std::env::temp_dir())
    }

    /// On the disk the benchmark was built on: temporary files may be in memory, where a flush costs nothing.
    pub(crate) fn on_disk() -> std::io::Result<Self> {
        let program = std::env::current_exe()?;
        Self::inside(program.parent().and_then(Path::parent).unwrap_or(Path::new(".")))
    }

    fn inside(parent: &Path) -> std::io::Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("redflow-bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// How many bytes its files have.
    pub(crate) fn bytes(&self) -> std::io::Result<u64> {
        let mut bytes = 0;
        for file in std::fs::read_dir(&self.0)? {
            bytes += file?.metadata()?.len();
        }
        Ok(bytes)
    }

    /// Another one with the same files.
    pub(crate) fn copy(&self) -> std::io::Result<Self> {
        let copy = Self::inside(self.0.parent().unwrap_or(Path::new(".")))?;
        for file in std::fs::read_dir(&self.0)? {
            let file = file?;
            std::fs::copy(file.path(), copy.0.join(file.file_name()))?;
        }
        Ok(copy)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
