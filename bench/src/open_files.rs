//! The limit of open files of a process.

/// Raises the limit of open files of this process to its maximum, and gives it. Child processes inherit it.
#[cfg(unix)]
pub(crate) fn raise_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let allowed = if raised.is_ok() { limit.maximum } else { limit.current };
    allowed.unwrap_or(u64::MAX)
}

/// This system does not report it: a client with too many sockets fails.
#[cfg(not(unix))]
pub(crate) fn raise_limit() -> u64 {
    u64::MAX
}
