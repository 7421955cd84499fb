//! What a limited process cannot do.

use crate::kit::Links;
use redflow_worker::{CPU_SECONDS, MEMORY_BYTES, STACK_BYTES};
use std::process::{Command, Output};

fn attempt(act: &str) -> Output {
    let links = Links::new();
    Command::new(links.program("forbidden"))
        .arg(act)
        .env_clear()
        .current_dir(links.folder())
        .output()
        .unwrap()
}

fn is_refused(act: &str) -> bool {
    let output = attempt(act);
    match output.stdout.as_slice() {
        b"refused" => true,
        b"done" => false,
        _ => panic!("{act}: {:?} {}", output.status, String::from_utf8_lossy(&output.stderr)),
    }
}

// SECURITY: worker-confined
#[test]
fn a_worker_opens_no_files() {
    for act in ["open-file", "write-file", "list-folder"] {
        assert!(is_refused(act), "{act}");
    }
    // Not even without the filter: the limit of open files is another lock.
    assert!(is_refused("file-without-filter"));
}

// SECURITY: worker-confined
#[test]
fn a_worker_makes_no_connections() {
    for act in ["tcp", "udp"] {
        assert!(is_refused(act), "{act}");
    }
}

// SECURITY: worker-confined
#[test]
fn a_worker_starts_nothing() {
    for act in ["process", "thread"] {
        assert!(is_refused(act), "{act}");
    }
}

// SECURITY: worker-confined
#[test]
fn a_worker_has_bounded_memory() {
    assert!(is_refused("memory"));
}

// SECURITY: worker-confined
#[test]
fn a_worker_uses_what_is_open_and_shows_its_limits() {
    assert!(!is_refused("nothing"));
    let output = attempt("read-limits");
    let limits = String::from_utf8_lossy(&output.stdout).into_owned();
    for (name, values) in [
        ("Max cpu time", [CPU_SECONDS, CPU_SECONDS + 1]),
        ("Max file size", [0, 0]),
        ("Max data size", [MEMORY_BYTES; 2]),
        ("Max stack size", [STACK_BYTES; 2]),
        ("Max core file size", [0, 0]),
        ("Max processes", [0, 0]),
        ("Max open files", [0, 0]),
    ] {
        let row = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let found: Vec<u64> = row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        assert_eq!(found, values, "{name}: {row}");
    }
}
