//! Starts a program that may use only the files that it needs: `redflow confine`.
//!
//! The process restricts itself, and then becomes the program. Nothing that the program starts can do more.
//!
//! | what | limit | by |
//! |---|---|---|
//! | files | the system to read, its own folder and the declared paths | Landlock |
//! | devices | `null`, `zero`, `full`, `random`, `urandom` | Landlock |
//! | other processes | no memory, no environment; since Linux 6.12 no signal and no abstract socket | Landlock |
//! | network | all or nothing | a filter of system calls |
//! | memory, open files, size of a file | [`PROGRAM_MEMORY_BYTES`], [`PROGRAM_OPEN_FILES`], [`PROGRAM_FILE_BYTES`] | the kernel |
//! | privileges | none; a superuser keeps the rights to its files | the kernel |
//! | life | it ends with its parent | the kernel |

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod network;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod paths;

use std::ffi::OsString;
use std::path::PathBuf;

/// The memory of a program, without what it shares.
pub const PROGRAM_MEMORY_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// The files that a program may have open.
pub const PROGRAM_OPEN_FILES: u64 = 4096;

/// The largest file that a program may write.
pub const PROGRAM_FILE_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// What a program may use beside the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Its own folder, which it starts in. It may read and write there.
    pub folder: PathBuf,
    /// Files and folders that it may read.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may read and write.
    pub write: Vec<PathBuf>,
    /// Whether it has no network. Sockets of this machine that are files stay.
    pub network_none: bool,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The system cannot confine programs.
    #[error(
        "this system cannot confine a program to its folders: it needs Linux 5.13 or newer with Landlock, on x86-64 or \
         64-bit ARM"
    )]
    Unavailable,
    /// A declared path is not there.
    #[error("{} cannot be opened ({reason}): make it, or declare another path", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The reason of the system.
        reason: String,
    },
    /// The system refuses a limit.
    #[error("the system does not let the program be limited: {0}")]
    Limit(String),
    /// The program is not there, or is none.
    #[error("`{}` cannot be started ({source}): check its name and PATH", program.to_string_lossy())]
    Program {
        /// The program.
        program: OsString,
        /// The reason of the system.
        source: std::io::Error,
    },
}

/// Whether this system can confine programs.
#[must_use]
pub fn can_confine() -> bool {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    return linux::is_available();
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    return false;
}

impl Confinement {
    /// Restricts this process and becomes the program. Returns only if that fails; then this process should end, because
    /// it may be restricted already.
    #[must_use]
    pub fn run(self, program: &std::ffi::OsStr, args: &[OsString]) -> ConfineError {
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        return linux::run(&self, program, args);
        #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
        {
            let _ = (self, program, args);
            ConfineError::Unavailable
        }
    }
}
