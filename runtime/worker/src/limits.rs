//! The limits of a worker: sizes, and what it sets for itself before it reads its job.

/// The largest document.
pub const MAX_JOB_BYTES: usize = 32 * 1024 * 1024;

/// The largest result, as JSON.
pub const MAX_RESULT_BYTES: usize = 32 * 1024 * 1024;

/// The most pages of a document.
pub const MAX_PAGES: usize = 20_000;

/// The memory of a worker. A document of [`MAX_JOB_BYTES`] as a tree needs several times its size.
pub const MEMORY_BYTES: u64 = 512 * 1024 * 1024;

/// The stack of a worker. Parsers of nested documents call themselves.
pub const STACK_BYTES: u64 = 8 * 1024 * 1024;

/// The processor time of a worker, for the case that its parent no longer kills it.
pub const CPU_SECONDS: u64 = 30;

/// Whether there is a filter of system calls for this system.
pub(crate) const FILTER_AVAILABLE: bool =
    cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));

/// A limit that the system refuses. A worker without its limits must not read a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system does not let the process limit itself")]
pub struct LimitError;

/// Limits this process for the rest of its life: it can read and write its pipes, use [`MEMORY_BYTES`] and
/// [`CPU_SECONDS`], and end. It ends with its parent. Without `filter`, it can still make other system calls.
///
/// # Errors
/// A limit that the system refuses.
pub fn limit_self(filter: bool) -> Result<(), LimitError> {
    #[cfg(target_os = "linux")]
    linux::limit_self().map_err(|_| LimitError)?;
    if filter { set_filter() } else { Ok(()) }
}

/// Keeps the memory of this process, with its keys, from other processes of its user and from files: no process reads it,
/// and a crash leaves no dump. Elsewhere than on Linux it does nothing.
///
/// # Errors
/// A limit that the system refuses.
pub fn hide_memory() -> Result<(), LimitError> {
    #[cfg(target_os = "linux")]
    linux::hide_memory().map_err(|_| LimitError)?;
    Ok(())
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn set_filter() -> Result<(), LimitError> {
    filter::set().map_err(|_| LimitError)
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
const fn set_filter() -> Result<(), LimitError> {
    Err(LimitError)
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{drop_capabilities, lower_limit};

#[cfg(target_os = "linux")]
mod linux {
    use super::{CPU_SECONDS, MEMORY_BYTES, STACK_BYTES};
    use rustix::io::Result;
    use rustix::process::{
        DumpableBehavior, Resource, Rlimit, Signal, getrlimit, set_dumpable_behavior,
        set_parent_process_death_signal, setrlimit,
    };
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

    pub(super) fn limit_self() -> Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        set_no_new_privs(true)?;
        hide_memory()?;
        // At the first value the process gets the signal that says why, at the second one it is killed.
        lower_limit(Resource::Cpu, CPU_SECONDS, CPU_SECONDS + 1)?;
        lower_limit(Resource::Data, MEMORY_BYTES, MEMORY_BYTES)?;
        lower_limit(Resource::Stack, STACK_BYTES, STACK_BYTES)?;
        lower_limit(Resource::Fsize, 0, 0)?;
        // The open pipes stay open.
        lower_limit(Resource::Nofile, 0, 0)?;
        lower_limit(Resource::Nproc, 0, 0)
    }

    pub(super) fn hide_memory() -> Result<()> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        lower_limit(Resource::Core, 0, 0)
    }

    /// Leaves a superuser no rights: they open ways around the rules, such as changing files of others. Without new
    /// privileges the program does not get them back.
    pub(crate) fn drop_capabilities() -> Result<()> {
        let empty = CapabilitySet::empty();
        let none = CapabilitySets { effective: empty, permitted: empty, inheritable: empty };
        // Most users have none, and a service manager may refuse the call.
        if capabilities(None)? == none { Ok(()) } else { set_capabilities(None, none) }
    }

    /// Sets a limit, or keeps the one that is lower.
    pub(crate) fn lower_limit(resource: Resource, current: u64, maximum: u64) -> Result<()> {
        let earlier = getrlimit(resource);
        let lowest = |new: u64| earlier.maximum.map_or(new, |earlier| earlier.min(new));
        setrlimit(resource, Rlimit { current: Some(lowest(current)), maximum: Some(lowest(maximum)) })
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter {
    use seccompiler::{
        BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
        SeccompFilter, SeccompRule, TargetArch, apply_filter_all_threads,
    };
    use std::collections::BTreeMap;

    /// The calls for pipes, memory, time and the end. None of them opens anything.
    const ALLOWED: &[libc::c_long] = &[
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_ppoll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
        libc::SYS_brk,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_munmap,
        libc::SYS_futex,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_sched_yield,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// The calls for memory that could make code of data. The third argument has the access.
    const WITHOUT_CODE: &[libc::c_long] = &[libc::SYS_mmap, libc::SYS_mprotect];

    /// Refuses every other call. It does not kill, because allocators and C libraries also ask harmless questions,
    /// such as the number of processors, and go on without an answer.
    pub(super) fn set() -> Result<(), Error> {
        apply_filter_all_threads(&program()?)
    }

    fn program() -> Result<BpfProgram, BackendError> {
        let any = ALLOWED.iter().map(|call| (*call, Vec::new()));
        let mut rules: BTreeMap<libc::c_long, Vec<SeccompRule>> = any.collect();
        for call in WITHOUT_CODE {
            rules.insert(*call, vec![rule(2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)?]);
        }
        // `abort` sends a signal; it may only go to this process.
        rules.insert(libc::SYS_tgkill, vec![rule(0, SeccompCmpOp::Eq, u64::from(std::process::id()))?]);
        let refuse = SeccompAction::Errno(libc::EPERM as u32);
        SeccompFilter::new(rules, refuse, SeccompAction::Allow, architecture())?.try_into()
    }

    fn rule(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
        SeccompRule::new(vec![condition])
    }

    const fn architecture() -> TargetArch {
        if cfg!(target_arch = "x86_64") { TargetArch::x86_64 } else { TargetArch::aarch64 }
    }
}
