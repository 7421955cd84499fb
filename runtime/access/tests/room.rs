//! Connections never take the last descriptors. Changes what the whole process may open, so it has one of its own.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use redflow_access::listen::raise_open_file_limit;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn limit(current: u64, maximum: u64) {
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: Some(maximum) }).unwrap();
}

#[test]
fn the_limit_is_raised_as_far_as_it_goes_and_some_descriptors_are_left() {
    limit(300, 1500);
    assert_eq!(raise_open_file_limit(100), 100);
    assert_eq!(getrlimit(Resource::Nofile).current, Some(300), "it was enough");
    assert_eq!(raise_open_file_limit(1000), 1000);
    assert_eq!(getrlimit(Resource::Nofile).current, Some(1128));
    limit(300, 500);
    assert_eq!(raise_open_file_limit(1000), 372);
    limit(100, 100);
    assert_eq!(raise_open_file_limit(1000), 1);
}
