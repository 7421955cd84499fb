//! Reads the files that users name, with a limit on their size, and writes files.

use crate::text::{describe_io_error, printable_line};
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::sync::Arc;

/// Reads a file, or standard input for `-`, up to one byte more than the limit.
pub(crate) fn read_bounded(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if is_stdio(path) {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::Error::other("it is a folder; name a file in it"));
        }
        file.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Reads a regular file, or standard input for `-`. A named pipe is refused, because opening one can block
/// forever.
pub(crate) fn read_file(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    if !is_stdio(path) {
        let metadata = std::fs::metadata(path)?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(io::Error::other(
                "it is not a regular file; pass a pipe as standard input, with `-`",
            ));
        }
    }
    read_bounded(path, limit)
}

/// Reads a flow file; a failure becomes a diagnostic.
pub(crate) fn read_flow(path: &Path, limit: usize) -> Result<Vec<u8>, Box<Diagnostic>> {
    let problem =
        |code, message: String, help: &str| Box::new(Diagnostic::new(code, message, help.to_owned()));
    let bytes = read_bounded(path, limit).map_err(|error| {
        let message = format!("the flow file cannot be read: {}", describe_io_error(&error));
        problem(DiagnosticCode::FlowUnreadable, message, "Check the path and the file's permissions.")
    })?;
    if bytes.len() > limit {
        let message = format!("the flow file has more than {limit} bytes");
        return Err(problem(DiagnosticCode::FlowTooLarge, message, "Split the flow into several files."));
    }
    Ok(bytes)
}

/// Options for a new file that only its owner can read, from its first byte.
pub(crate) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Whether a file that exists may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overwrite {
    Never,
    Allowed,
}

impl Overwrite {
    /// Reads the flag `--force`.
    pub(crate) fn from_force(force: bool) -> Self {
        if force { Self::Allowed } else { Self::Never }
    }
}

/// Writes a file, and creates its folder.
pub(crate) fn write_file(path: &Path, bytes: &[u8], overwrite: Overwrite) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let force = overwrite == Overwrite::Allowed;
    if force && std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return replace_file(&std::fs::canonicalize(path)?, bytes);
    }
    let mut how = OpenOptions::new();
    // `create_new` also protects a file that another process created a moment ago.
    how.write(true).create(force).create_new(!force);
    how.open(path)?.write_all(bytes)
}

/// Replaces a file by a rename, so that readers see the old bytes or the new ones, never a part.
fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let permissions = std::fs::metadata(path)?.permissions();
    let replaced = OpenOptions::new().write(true).create_new(true).open(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.set_permissions(permissions)?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    });
    if replaced.is_err() {
        // The file may not exist.
        let _ = std::fs::remove_file(&new);
    }
    replaced
}

/// Whether a path means standard input or standard output.
pub(crate) fn is_stdio(path: &Path) -> bool {
    path == Path::new("-")
}

/// The absolute path of a file. None for standard input, pipes, and names that are not UTF-8.
pub(crate) fn absolute_path(path: &Path) -> Option<Arc<str>> {
    let absolute = std::fs::canonicalize(path).ok().filter(|_| !is_stdio(path))?;
    let text = absolute.to_str().filter(|_| absolute.is_file())?;
    Some(Arc::from(text))
}

/// A path on one line, for messages.
pub(crate) fn display_path(path: &Path) -> String {
    printable_line(&path.display().to_string(), 200)
}
