//! The filter of system calls that every confined program has.

use super::calls::{ALLOWED_CALLS, MODE_CALLS, OLDER_CALLS};
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// The flags of `clone` that make namespaces. Inside one of its own a process has rights that it does not have outside.
const NAMESPACE_FLAGS: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// The personality that a process has, and the question for it.
const PERSONALITIES: [u64; 2] = [0, 0xffff_ffff];

/// Changes of the attributes of an open file: `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR`.
const ATTRIBUTE_REQUESTS: [u64; 2] = [0x4008_6602, 0x401c_5820];

/// Types words into a terminal: `TIOCSTI` and `TIOCLINUX`.
const TERMINAL_REQUESTS: [u64; 2] = [0x5412, 0x541c];

/// The families of sockets of a network, with the one that names its interfaces.
const NETWORK_FAMILIES: [libc::c_int; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// What differs between programs.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilterOptions {
    /// Whether it has a root of its own, where nothing but its folders can be changed.
    pub(super) has_root: bool,
    /// Whether it may use the sockets that it sees as files.
    pub(super) has_sockets: bool,
    pub(super) has_network: bool,
}

/// Filters the calls of this thread, and of all that it starts.
pub(super) fn set(options: FilterOptions) -> Result<(), Error> {
    apply_filter(&known_calls()?)?;
    apply_filter(&refused_calls(options)?)
}

/// Lets the calls of the list pass. For the others it answers as an older kernel does.
fn known_calls() -> Result<BpfProgram, BackendError> {
    let calls = ALLOWED_CALLS.iter().chain(OLDER_CALLS);
    let mut rules: BTreeMap<libc::c_long, Vec<SeccompRule>> =
        calls.map(|(_, call)| (*call, Vec::new())).collect();
    let flags = SeccompCmpOp::MaskedEq(NAMESPACE_FLAGS.unsigned_abs().into());
    rules.insert(libc::SYS_clone, vec![rule(&[condition(0, flags, 0)?])?]);
    let personality = |value: &u64| rule(&[condition(0, SeccompCmpOp::Eq, *value)?]);
    let personalities = PERSONALITIES.iter().map(personality).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_personality, personalities);
    let refuse = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, architecture())?.try_into()
}

/// Refuses what calls of the list can do to others.
fn refused_calls(options: FilterOptions) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<libc::c_long, Vec<SeccompRule>> = BTreeMap::new();
    // The limits and the priority of another process. 0 is the process itself.
    let of_others = [
        (libc::SYS_prlimit64, 0),
        (libc::SYS_sched_setaffinity, 0),
        (libc::SYS_sched_setattr, 0),
        (libc::SYS_sched_setparam, 0),
        (libc::SYS_sched_setscheduler, 0),
        (libc::SYS_setpriority, 1),
        (libc::SYS_ioprio_set, 1),
    ];
    for (call, argument) in of_others {
        rules.insert(call, vec![rule(&[condition(argument, SeccompCmpOp::Ne, 0)?])?]);
    }
    rules.insert(libc::SYS_socket, other_families(options)?);
    // Landlock before Linux 6.2 lets a file be emptied that may be read.
    let emptied = |argument| {
        let flags = SeccompCmpOp::MaskedEq((libc::O_TRUNC | libc::O_ACCMODE).unsigned_abs().into());
        rule(&[condition(argument, flags, libc::O_TRUNC.unsigned_abs().into())?])
    };
    rules.insert(libc::SYS_openat, vec![emptied(2)?]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, vec![emptied(1)?]);
    let requests = ATTRIBUTE_REQUESTS.iter().chain(&TERMINAL_REQUESTS);
    let request = |request: &u64| rule(&[condition(1, SeccompCmpOp::Eq, *request)?]);
    rules.insert(libc::SYS_ioctl, requests.map(request).collect::<Result<_, _>>()?);
    if !options.has_root {
        rules.extend(MODE_CALLS.iter().map(|call| (*call, Vec::new())));
    }
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture())?.try_into()
}

/// Matches sockets of every family but the allowed ones.
fn other_families(options: FilterOptions) -> Result<Vec<SeccompRule>, BackendError> {
    let network = NETWORK_FAMILIES.iter().filter(|_| options.has_network);
    let families = network.chain(Some(&libc::AF_UNIX).filter(|_| options.has_sockets));
    let is_other = families.map(|family| condition(0, SeccompCmpOp::Ne, family.unsigned_abs().into()));
    let is_other = is_other.collect::<Result<Vec<_>, _>>()?;
    // Without a rule the call itself matches.
    if is_other.is_empty() { Ok(Vec::new()) } else { Ok(vec![SeccompRule::new(is_other)?]) }
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn rule(conditions: &[SeccompCondition]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.to_vec())
}

const fn architecture() -> TargetArch {
    if cfg!(target_arch = "x86_64") { TargetArch::x86_64 } else { TargetArch::aarch64 }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
