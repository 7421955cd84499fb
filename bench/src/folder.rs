//! Temporary folders for measurements.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder. Drop removes it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A folder for small files.
    pub(crate) fn temporary() -> std::io::Result<Self> {
        Self::inside(&std::env::temp_dir())
    }

    /// A folder on the disk of the build. Temporary files may be in memory, where a flush costs nothing.
    pub(crate) fn on_disk() -> std::io::Result<Self> {
        let program = std::env::current_exe()?;
        Self::inside(program.parent().and_then(Path::parent).unwrap_or(Path::new(".")))
    }

    fn inside(parent: &Path) -> std::io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("redflow-bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The size of its files in bytes.
    pub(crate) fn bytes(&self) -> std::io::Result<u64> {
        let mut bytes = 0;
        for file in std::fs::read_dir(&self.0)? {
            bytes += file?.metadata()?.len();
        }
        Ok(bytes)
    }

    /// A new folder with the same files.
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
