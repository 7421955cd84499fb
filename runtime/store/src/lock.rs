//! Who drives the runs of a directory.
//!
//! Owns the file `lock`, locked by the system for as long as the driver's process lives. Never removes it: two
//! processes could then hold two locks of the same name.

use crate::directory::{Directory, private_file};
use crate::error;
use redflow_contract::code::StoreCode;
use redflow_ports::StoreError;
use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};

/// How often a driver tries again while others only look whether there is one.
const TRIES: usize = 1000;

/// The right to drive the runs of a directory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn take(directory: &Directory) -> Result<Self, StoreError> {
        let path = directory.lock();
        let mut options = private_file();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(|why| error::writing(&path, &why))?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => {
                    // Only a courtesy to whoever comes second: without room for it the lock still holds.
                    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                    return Ok(Self { _file: file });
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(why)) => return Err(error::unusable(&path, &why)),
            }
            // Someone who only looks holds it for a moment, and shared; a driver does not share it.
            match file.try_lock_shared() {
                Ok(()) => drop(file.unlock()),
                Err(_) => break,
            }
            std::thread::yield_now();
        }
        Err(held(directory, &mut file))
    }

    /// Whether some process drives the runs of the directory now.
    pub(crate) fn is_held(directory: &Directory) -> bool {
        let Ok(file) = File::open(directory.lock()) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

fn held(directory: &Directory, file: &mut File) -> StoreError {
    let mut text = String::new();
    // Where locks keep others from reading too, the process stays unnamed.
    let pid: Option<u32> = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
    let process = pid.map_or_else(|| "Another process".to_owned(), |pid| format!("Process {pid}"));
    StoreError::new(
        StoreCode::DataLocked,
        format!(
            "{process} drives the runs in {}: stop it, or name another data directory.",
            directory.path().display()
        ),
    )
}
