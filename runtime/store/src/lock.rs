//! The lock that makes one process the driver of a directory's runs.
//!
//! Owns the file `lock`, locked by the system for as long as the driver's process lives. Never removes it:
//! two processes could then hold two locks of the same name. If another program removes it, the number of the
//! driver in the database decides; see `runs::run_tables`.
//!
//! Also owns the file `address`: where a driver that is a sidecar listens, so that commands of this machine find it.
//! It counts only while the lock is held, because the next driver removes what a killed one has left. A sidecar that
//! stops removes it before its port is free: another program could take the port and get the token of a command.

use crate::directory::Directory;
use crate::error;
use crate::private_file::private_file;
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a driver retries while other processes briefly hold the lock to check for a driver.
const RETRY_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_PAUSE: Duration = Duration::from_millis(1);

/// The right to drive the runs of a directory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// The file with the address of the driver.
    address: PathBuf,
}

/// The most bytes of the file with the address.
const MAX_ADDRESS_BYTES: u64 = 100;

impl Lock {
    pub(crate) fn take(directory: &Directory) -> Result<Self, StoreError> {
        let path = directory.lock();
        let mut options = private_file();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(|error| error::write_failed(&path, &error))?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => {
                    // The process id only helps the next process to name us: without room for it the lock
                    // holds.
                    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                    let address = directory.address();
                    // A driver that was killed may have left it. Without it there is nothing to remove.
                    let _ = std::fs::remove_file(&address);
                    return Ok(Self { file, address });
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error::unusable(&path, &error)),
            }
            // A process that checks for a driver holds a shared lock for a moment; a driver's lock is
            // exclusive.
            match file.try_lock_shared() {
                Ok(()) => drop(file.unlock()),
                Err(_) => return Err(held_by_driver(directory, &mut file)),
            }
            if started.elapsed() > RETRY_TIMEOUT {
                return Err(held_by_readers(directory));
            }
            std::thread::park_timeout(RETRY_PAUSE);
        }
    }

    /// Writes where this driver listens.
    pub(crate) fn set_address(&self, address: SocketAddr) -> Result<(), StoreError> {
        let mut options = private_file();
        options.write(true).create(true).truncate(true);
        let written = options.open(&self.address).and_then(|mut file| writeln!(file, "{address}"));
        written.map_err(|error| error::write_failed(&self.address, &error))
    }

    /// Removes what [`Self::set_address`] has written. Without it there is nothing to remove.
    pub(crate) fn remove_address(&self) {
        let _ = std::fs::remove_file(&self.address);
    }

    /// Whether a process drives the runs of the directory now.
    pub(crate) fn is_held(directory: &Directory) -> bool {
        let Ok(file) = File::open(directory.lock()) else { return false };
        let tried = file.try_lock_shared();
        if tried.is_ok() {
            drop(file.unlock());
        }
        matches!(tried, Err(TryLockError::WouldBlock))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.remove_address();
        // Otherwise an error could name this process while the next driver has not written its id yet.
        let _ = self.file.set_len(0);
    }
}

/// The right to change the files beside the runs of a directory, while no process drives the runs. It ends
/// when it is dropped.
#[derive(Debug)]
pub struct DriverLock {
    _lock: Lock,
}

impl DriverLock {
    /// Takes the lock. Creates the directory if it does not exist.
    ///
    /// # Errors
    /// When another process drives the runs of the directory, or it cannot be used.
    pub fn take(dir: &Path) -> Result<Self, StoreError> {
        let directory = Directory::at(dir)?;
        directory.create()?;
        Ok(Self { _lock: Lock::take(&directory)? })
    }
}

/// The process that drives the runs of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// No process does.
    None,
    /// A process that does not listen, or does not listen yet.
    Unreachable,
    /// A sidecar that listens at this address.
    Sidecar(SocketAddr),
}

impl Driver {
    /// The driver of a data directory.
    #[must_use]
    pub fn find(dir: &Path) -> Self {
        let Ok(directory) = Directory::at(dir) else { return Self::None };
        Self::decide(|| read_address(&directory), || Lock::is_held(&directory))
    }

    /// An address counts if it is the same before and after the check of the lock. A driver that begins removes the
    /// address of the one before, and one that stops removes its own.
    fn decide(mut read_address: impl FnMut() -> Option<SocketAddr>, is_held: impl FnOnce() -> bool) -> Self {
        let before = read_address();
        if !is_held() {
            return Self::None;
        }
        let after = read_address().filter(|after| before == Some(*after));
        after.map_or(Self::Unreachable, Self::Sidecar)
    }
}

/// The content of the file with the address; none without a usable one.
fn read_address(directory: &Directory) -> Option<SocketAddr> {
    let mut text = String::new();
    File::open(directory.address()).ok()?.take(MAX_ADDRESS_BYTES).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn held_by_driver(directory: &Directory, file: &mut File) -> StoreError {
    let mut text = String::new();
    // On some systems a lock also keeps others from reading: then the process stays unnamed.
    let pid: Option<u32> = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
    let process = pid.map_or_else(|| "Another process".to_owned(), |pid| format!("Process {pid}"));
    locked(format!(
        "{process} drives the runs in {}: stop it, or name another data directory.",
        directory.path().display()
    ))
}

/// No process drives the runs, but another one checked for a driver at every attempt.
fn held_by_readers(directory: &Directory) -> StoreError {
    locked(format!(
        "Other processes read the runs in {} all the time: try again when they have ended.",
        directory.path().display()
    ))
}

fn locked(message: String) -> StoreError {
    StoreError::new(StoreCode::DataLocked, message)
}

#[cfg(test)]
mod tests {
    use super::Driver;
    use std::net::SocketAddr;

    #[test]
    fn an_address_that_changes_meanwhile_does_not_count() {
        let [one, other]: [SocketAddr; 2] = [([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into()];
        let rows = [
            (Some(one), true, Some(one), Driver::Sidecar(one)),
            // The next driver has the lock, and removes what a killed one has left.
            (Some(one), true, None, Driver::Unreachable),
            (Some(one), true, Some(other), Driver::Unreachable),
            (None, true, Some(one), Driver::Unreachable),
            (Some(one), false, Some(one), Driver::None),
        ];
        for (before, is_held, after, expected) in rows {
            let mut reads = [before, after].into_iter();
            let found = Driver::decide(|| reads.next().unwrap(), || is_held);
            assert_eq!(found, expected, "{before:?} {is_held} {after:?}");
        }
    }
}
