//! Who drives the runs of a directory.
//!
//! Owns the file `lock`, locked by the system for as long as the driver's process lives. Never removes it: two
//! processes could then hold two locks of the same name. If somebody else removes it, the number of the driver
//! in the database decides; see `ledger`.

use crate::directory::{Directory, private_file};
use crate::error;
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a driver tries while others only look whether there is one, and how long between two tries.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// The right to drive the runs of a directory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    pub(crate) fn take(directory: &Directory) -> Result<Self, StoreError> {
        let path = directory.lock();
        let mut options = private_file();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(|why| error::writing(&path, &why))?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => {
                    // Only a courtesy to whoever comes second: without room for it the lock still holds.
                    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                    return Ok(Self { file });
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(why)) => return Err(error::unusable(&path, &why)),
            }
            // Someone who only looks holds it for a moment, and shared; a driver does not share it.
            match file.try_lock_shared() {
                Ok(()) => drop(file.unlock()),
                Err(_) => return Err(held(directory, &mut file)),
            }
            if began.elapsed() > PATIENCE {
                return Err(watched(directory));
            }
            std::thread::park_timeout(PAUSE);
        }
    }

    /// Whether some process drives the runs of the directory now.
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
        // Whoever drives next may be asked for its name before it has written it.
        let _ = self.file.set_len(0);
    }
}

/// The right to change what a directory holds beside its runs, while nobody drives them, until it is dropped.
#[derive(Debug)]
pub struct DriverLock {
    _lock: Lock,
}

impl DriverLock {
    /// Takes it. Makes the directory if it is not there.
    ///
    /// # Errors
    /// When another process drives the runs of the directory, or it cannot be used.
    pub fn take(dir: &Path) -> Result<Self, StoreError> {
        let directory = Directory::named(dir)?;
        directory.make()?;
        Ok(Self { _lock: Lock::take(&directory)? })
    }
}

fn held(directory: &Directory, file: &mut File) -> StoreError {
    let mut text = String::new();
    // Where locks keep others from reading too, the process stays unnamed.
    let pid: Option<u32> = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
    let process = pid.map_or_else(|| "Another process".to_owned(), |pid| format!("Process {pid}"));
    locked(format!(
        "{process} drives the runs in {}: stop it, or name another data directory.",
        directory.path().display()
    ))
}

/// Nobody drives the runs, but someone looked at every try.
fn watched(directory: &Directory) -> StoreError {
    locked(format!(
        "Other processes look at the runs in {} all the time: try again when they have ended.",
        directory.path().display()
    ))
}

fn locked(message: String) -> StoreError {
    StoreError::new(StoreCode::DataLocked, message)
}
