//! Connections never use the last descriptors. The test changes the limit of its process, so it needs its
//! own.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use redflow_access::listen::raise_open_file_limit;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn set_limit(current: u64, maximum: u64) {
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: Some(maximum) }).unwrap();
}

// SECURITY: file-descriptors
#[test]
fn raises_the_limit_as_far_as_needed_and_leaves_some_descriptors() {
    set_limit(300, 1500);
    assert_eq!(raise_open_file_limit(100), 100);
    assert_eq!(getrlimit(Resource::Nofile).current, Some(300), "the limit was high enough");
    assert_eq!(raise_open_file_limit(1000), 1000);
    assert_eq!(getrlimit(Resource::Nofile).current, Some(1128));
    set_limit(300, 500);
    assert_eq!(raise_open_file_limit(1000), 372);
    set_limit(100, 100);
    assert_eq!(raise_open_file_limit(1000), 1);
}
