//! Starts a program that may use only the files that it needs: `redflow confine`.
//!
//! The process restricts itself, and then becomes the program. Nothing that the program starts can do more.
//!
//! | what | limit | by |
//! |---|---|---|
//! | files | the system to read, its own folder and the declared paths | Landlock; with namespaces it has a root of its own with nothing else |
//! | modes, owners, times, attributes of files | with namespaces those of its own folders, else none | the root, a filter of system calls |
//! | devices | `null`, `zero`, `full`, `random`, `urandom` | Landlock |
//! | other processes | no memory, no environment, no limits, no priority; no signal with namespaces or since Linux 6.12 | Landlock, the filter, namespaces |
//! | sockets of this machine | pairs of its own, and declared ones with namespaces | the filter, the root |
//! | network | all or nothing | the filter |
//! | other system calls | those of a list, `confine/calls.rs` | the filter |
//! | memory, open files, size of a file | [`PROGRAM_MEMORY_BYTES`], [`PROGRAM_OPEN_FILES`], [`PROGRAM_FILE_BYTES`] | the kernel |
//! | new files | for their owner alone | the kernel |
//! | privileges | none | the kernel |
//! | life | it ends with its parent; with namespaces its children do too | the kernel |

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod calls;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod namespaces;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod paths;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod root;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The memory of a program, without what it shares.
pub const PROGRAM_MEMORY_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// The files that a program may have open.
pub const PROGRAM_OPEN_FILES: u64 = 4096;

/// The largest file that a program may write.
pub const PROGRAM_FILE_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// What a program may use beside the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// Its own folder, which it starts in. It may read and write there.
    pub folder: PathBuf,
    /// Files and folders that it may read, and sockets.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may read and write, and sockets.
    pub write: Vec<PathBuf>,
    /// Whether it has no network.
    pub network_none: bool,
    /// Whether it gets namespaces of its own. Then it is an error if the kernel refuses them.
    pub namespaces: bool,
}

/// What this system has to confine programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfineSupport {
    /// The version of Landlock.
    pub landlock: u32,
    /// Whether programs can have namespaces of their own.
    pub namespaces: bool,
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
    /// A declared path is the root.
    #[error("`/` cannot be declared: declare the folders that the program needs")]
    Root,
    /// The program could replace a declared path by a link to anything, which the next start would follow.
    #[error(
        "{} is inside {}, where the program can write: declare the outer path alone, or one that is elsewhere",
        path.display(),
        outer.display()
    )]
    Inside {
        /// The path.
        path: PathBuf,
        /// The path around it.
        outer: PathBuf,
    },
    /// The kernel cannot keep the program from other sockets.
    #[error(
        "{} is a socket, and this system cannot limit a program to one: it needs Linux 6.12 or newer and namespaces for \
         users",
        path.display()
    )]
    Socket {
        /// The path.
        path: PathBuf,
    },
    /// The kernel refuses namespaces.
    #[error("the system does not give the program namespaces of its own: {0}")]
    Namespaces(std::io::Error),
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

/// What this system has to confine programs; none if it cannot. `check` is a process that calls [`check_namespaces`] and
/// succeeds if that does.
#[must_use]
pub fn confine_support(check: &mut Command) -> Option<ConfineSupport> {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    return linux::support(check);
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        let _ = check;
        None
    }
}

/// Takes all steps to confine a program with namespaces, without a program. Restricts this process.
///
/// # Errors
/// The step that the system refuses.
pub fn check_namespaces() -> Result<ExitCode, ConfineError> {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    return linux::check();
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    Err(ConfineError::Unavailable)
}

impl Confinement {
    /// Restricts this process and becomes the program. With namespaces it starts itself again inside them, with the same
    /// arguments, which must lead here; then it gives the exit code of the program.
    ///
    /// # Errors
    /// Why the program did not start. Then this process should end, because it may be restricted already.
    pub fn run(self, program: &std::ffi::OsStr, args: &[OsString]) -> Result<ExitCode, ConfineError> {
        #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
        return linux::run(&self, program, args);
        #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
        {
            let _ = (self, program, args);
            Err(ConfineError::Unavailable)
        }
    }
}
