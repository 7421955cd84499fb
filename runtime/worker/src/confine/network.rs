//! The filter for a program without a network.

use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// On x86-64 every call has a second number for programs with short pointers.
#[cfg(target_arch = "x86_64")]
const NUMBERS: [libc::c_long; 2] = [0, 0x4000_0000];
#[cfg(not(target_arch = "x86_64"))]
const NUMBERS: [libc::c_long; 1] = [0];

/// Refuses every socket but those between processes of this machine.
pub(super) fn refuse_network() -> Result<(), Error> {
    apply_filter(&program()?)
}

fn program() -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<libc::c_long, Vec<SeccompRule>> = BTreeMap::new();
    for number in NUMBERS {
        let family =
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, libc::AF_UNIX as u64)?;
        rules.insert(libc::SYS_socket | number, vec![SeccompRule::new(vec![family])?]);
        // It makes sockets too, and no filter sees them.
        rules.insert(libc::SYS_io_uring_setup | number, Vec::new());
    }
    let refuse = SeccompAction::Errno(libc::EACCES as u32);
    let architecture = if cfg!(target_arch = "x86_64") { TargetArch::x86_64 } else { TargetArch::aarch64 };
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?.try_into()
}
