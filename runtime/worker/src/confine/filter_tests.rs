use super::{FilterOptions, known_calls, refused_calls};
use crate::confine::calls::{ALLOWED_CALLS, OLDER_CALLS};
use pretty_assertions::assert_eq;
use seccompiler::{BpfProgram, sock_filter};

/// Every call that a confined program can make. Its first lines explain it.
const CALLS: &str = include_str!("calls.txt");

/// More than the kernel has calls.
const NUMBERS: std::ops::Range<u32> = 0..512;

/// On x86-64 every call has a second number, for programs with short pointers.
const SECOND_NUMBERS: u32 = 0x4000_0000;

const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
const ALLOW: u32 = 0x7fff_0000;

/// The answer of a filter to a call whose arguments are all the same.
fn answer(filter: &[sock_filter], architecture: u32, number: u32, argument: u64) -> u32 {
    let (mut at, mut value) = (0, 0_u32);
    loop {
        let step = &filter[at];
        let jump = |is_true: bool| usize::from(if is_true { step.jt } else { step.jf });
        at += 1;
        match step.code {
            // Loads a word of the call: its number, its architecture, or half of an argument.
            0x20 => {
                value = match step.k {
                    0 => number,
                    4 => architecture,
                    place => (argument >> (8 * (place % 8))) as u32,
                }
            }
            0x05 => at += step.k as usize,
            0x15 => at += jump(value == step.k),
            0x25 => at += jump(value > step.k),
            0x35 => at += jump(value >= step.k),
            0x54 => value &= step.k,
            0x06 => return step.k,
            code => panic!("the code {code:#x} is not known"),
        }
    }
}

fn filters(options: FilterOptions) -> [BpfProgram; 2] {
    [known_calls().unwrap(), refused_calls(options).unwrap()]
}

fn is_allowed(filters: &[BpfProgram; 2], number: u32, argument: u64) -> bool {
    filters.iter().all(|filter| answer(filter, ARCHITECTURE, number, argument) == ALLOW)
}

/// Arguments of which some meet each rule, and others do not.
fn arguments() -> impl Iterator<Item = u64> {
    (0..20).chain([0x200, 0x241, 0x4008_6602, 0x401c_5820, 0x5412, 0x1000_0000, 0x3c00_0000, u64::MAX])
}

const WIDEST: FilterOptions = FilterOptions { has_root: true, has_sockets: true, has_network: true };

// SECURITY: mcp-confined
#[test]
fn a_program_can_make_these_calls_and_no_other() {
    let names: Vec<_> = ALLOWED_CALLS.iter().chain(OLDER_CALLS).collect();
    let mut found = Vec::new();
    let [with, without] = [true, false].map(|has_root| filters(FilterOptions { has_root, ..WIDEST }));
    for number in NUMBERS {
        let count = |filters: &[BpfProgram; 2]| {
            arguments().filter(|value| is_allowed(filters, number, *value)).count()
        };
        let (most, fewest) = (count(&with), count(&without));
        if most > 0 {
            let name = names.iter().find(|(_, call)| *call == i64::from(number)).unwrap().0;
            let is_older = OLDER_CALLS.iter().any(|(older, _)| *older == name);
            let notes = [
                (is_older, " x86-64"),
                (fewest == 0, " namespaces"),
                (most < arguments().count(), " arguments"),
            ];
            let notes: String = notes.iter().filter(|(applies, _)| *applies).map(|(_, note)| *note).collect();
            found.push(format!("{}{notes}", name.trim_start_matches("SYS_")));
        }
        assert!(!is_allowed(&with, number | SECOND_NUMBERS, 0), "{number} has a second number");
    }
    found.sort();
    let is_here = |line: &&str| cfg!(target_arch = "x86_64") || !line.contains("x86-64");
    let expected: Vec<&str> = CALLS.lines().filter(|line| !line.starts_with('#')).filter(is_here).collect();
    assert_eq!(found, expected);
}

// SECURITY: mcp-confined
#[test]
fn a_call_of_another_processor_ends_the_program() {
    let kill = 0x8000_0000;
    for filter in [known_calls().unwrap(), refused_calls(WIDEST).unwrap()] {
        assert_eq!(answer(&filter, 0x4000_0003, 1, 0), kill);
    }
}

// SECURITY: mcp-confined
#[test]
fn some_arguments_are_refused() {
    let (own, other) = ([0], [1, 4_711, u64::MAX]);
    let [unix, inet, inet6, netlink, packet] =
        [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET]
            .map(|family| family as u64);
    let namespaces = [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID].map(|flag| flag as u64);
    let thread = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;
    let read_and_empty = libc::O_TRUNC as u64;
    let write_and_empty = (libc::O_TRUNC | libc::O_WRONLY | libc::O_CREAT) as u64;
    let rows: [(libc::c_long, &[u64], &[u64]); 12] = [
        (libc::SYS_prlimit64, &own, &other),
        (libc::SYS_setpriority, &own, &other),
        (libc::SYS_ioprio_set, &own, &other),
        (libc::SYS_sched_setaffinity, &own, &other),
        (libc::SYS_sched_setscheduler, &own, &other),
        (libc::SYS_sched_setparam, &own, &other),
        (libc::SYS_sched_setattr, &own, &other),
        (libc::SYS_socket, &[inet, inet6, netlink], &[unix, packet, 0]),
        (libc::SYS_socketpair, &[unix], &[]),
        (libc::SYS_clone, &[0, thread], &namespaces),
        (libc::SYS_openat, &[0, write_and_empty], &[read_and_empty]),
        (libc::SYS_ioctl, &[0x5401, 0x5421], &[0x5412, 0x541c, 0x4008_6602, 0x401c_5820]),
    ];
    let usual = filters(FilterOptions { has_sockets: false, ..WIDEST });
    for (call, allowed, refused) in rows {
        let number = u32::try_from(call).unwrap();
        allowed.iter().for_each(|value| assert!(is_allowed(&usual, number, *value), "{call} {value:#x}"));
        refused.iter().for_each(|value| assert!(!is_allowed(&usual, number, *value), "{call} {value:#x}"));
    }
    let sockets = |has_sockets, has_network| {
        let options = filters(FilterOptions { has_root: true, has_sockets, has_network });
        [unix, inet, inet6, netlink].map(|family| is_allowed(&options, libc::SYS_socket as u32, family))
    };
    assert_eq!(sockets(false, false), [false; 4]);
    assert_eq!(sockets(true, false), [true, false, false, false]);
    assert_eq!(sockets(false, true), [false, true, true, true]);
    assert_eq!(sockets(true, true), [true; 4]);
}
