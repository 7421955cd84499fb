//! Finding and reading files of the tree.

use std::path::Path;

/// Folders that hold nothing written by a person.
const SKIPPED: &[&str] = &[".git", "node_modules", "dist", "dist-test"];

/// The files under `folder`, sorted, as paths from `root` with `/` between the parts. A folder that does not
/// exist is empty.
pub(crate) fn list(root: &Path, folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    walk(root, folder, &mut found);
    found.sort();
    found
}

fn walk(root: &Path, folder: &str, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && path != "target" && !SKIPPED.contains(&name.as_str()) => {
                walk(root, &path, found);
            }
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
}

/// The folders directly in `folder`, sorted, as paths from `root`.
pub(crate) fn folders(root: &Path, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .map(|name| format!("{folder}/{name}"))
        .collect();
    found.sort();
    found
}

/// The text of a file.
pub(crate) fn read(root: &Path, path: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
}

/// The texts of `paths`; what cannot be read is a problem.
pub(crate) fn read_all(root: &Path, paths: Vec<String>, problems: &mut Vec<String>) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for path in paths {
        match read(root, &path) {
            Ok(text) => texts.push((path, text)),
            Err(problem) => problems.push(problem),
        }
    }
    texts
}
