//! Lists and reads files of the tree.

use std::path::Path;

/// Folders with files that tools wrote.
const SKIPPED: &[&str] = &[".git", "node_modules", "dist", "dist.part", "dist-test"];

/// The files under `folder`, sorted, as paths from `root` with `/` between the parts.
#[must_use]
pub fn list(root: &Path, folder: &str) -> Vec<String> {
    let mut paths = Vec::new();
    collect(root, folder, &mut paths);
    paths.sort();
    paths
}

fn collect(root: &Path, folder: &str, paths: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && path != "target" && !SKIPPED.contains(&name.as_str()) => {
                collect(root, &path, paths);
            }
            Ok(kind) if kind.is_file() => paths.push(path),
            _ => {}
        }
    }
}

/// The folders directly in `folder`, sorted, as paths from `root`.
#[must_use]
pub fn folders(root: &Path, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let mut paths: Vec<String> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .map(|name| format!("{folder}/{name}"))
        .collect();
    paths.sort();
    paths
}

/// Reads a text file.
///
/// # Errors
/// If the file cannot be read or is not UTF-8. The message names `path`.
pub fn read(root: &Path, path: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
}
