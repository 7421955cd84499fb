//! The processes of a program that a sidecar has started.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

/// The processes whose `HOME` is this folder, as this process sees them. Such a program may have numbers of its own, so it
/// cannot say which it is. None where there is no `/proc`.
#[must_use]
pub fn processes_at_home(home: &Path) -> Vec<u32> {
    let Ok(home) = home.canonicalize() else { return Vec::new() };
    let is_at_home = |process: &Path| {
        let variables = std::fs::read(process.join("environ")).unwrap_or_default();
        let mut variables = variables.split(|byte| *byte == 0);
        let found = variables.find_map(|variable| variable.strip_prefix(b"HOME="));
        found.is_some_and(|found| Path::new(OsStr::from_bytes(found)) == home)
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        is_at_home(&entry.path()).then_some(number)
    });
    numbers.collect()
}

/// Kills the processes whose `HOME` is this folder.
///
/// # Errors
/// If there is none, or they cannot be killed.
pub fn kill_at_home(home: &Path) -> Result<(), String> {
    let processes = processes_at_home(home);
    if processes.is_empty() {
        return Err(format!("no process has the home {}", home.display()));
    }
    // One of them may end with another one.
    let numbers = processes.iter().map(u32::to_string);
    Command::new("kill").arg("-9").args(numbers).output().map_err(|error| error.to_string())?;
    Ok(())
}
