//! Reading what the user names, never more than is allowed.

use crate::terminal::printable_line;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::diagnostic::Diagnostic;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Reads a file, or standard input for `-`, up to one byte more than the limit.
pub(crate) fn read_bounded(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path == Path::new("-") {
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

/// The same for what has to be a file, or standard input: who opens a pipe by its name may wait for ever.
pub(crate) fn read_file(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    if path != Path::new("-") {
        let found = std::fs::metadata(path)?;
        if !found.is_file() && !found.is_dir() {
            return Err(io::Error::other("it is no regular file; pass a pipe as standard input, with `-`"));
        }
    }
    read_bounded(path, limit)
}

/// Reads a flow file; what is wrong comes back as a diagnostic.
pub(crate) fn read_flow(path: &Path, limit: usize) -> Result<Vec<u8>, Box<Diagnostic>> {
    let said = |code, message: String, help: &str| Box::new(Diagnostic::new(code, message, help.to_owned()));
    let bytes = read_bounded(path, limit).map_err(|error| {
        let message = format!("the flow file cannot be read: {}", reason(&error));
        said(DiagnosticCode::FlowUnreadable, message, "Check the path and the file's permissions.")
    })?;
    if bytes.len() > limit {
        let message = format!("the flow file has more than {limit} bytes");
        return Err(said(DiagnosticCode::FlowTooLarge, message, "Split the flow into several files."));
    }
    Ok(bytes)
}

/// Where a file is, whatever the working directory; none for standard input, pipes, and names that are not
/// text.
pub(crate) fn whole_path(path: &Path) -> Option<Arc<str>> {
    let whole = std::fs::canonicalize(path).ok().filter(|_| path != Path::new("-"))?;
    let text = whole.to_str().filter(|_| whole.is_file())?;
    Some(Arc::from(text))
}

/// A path as it is shown.
pub(crate) fn shown(path: &Path) -> String {
    printable_line(&path.display().to_string(), 200)
}

/// An I/O error in words.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
