//! The console where Node.js is missing.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// Only root on Debian installs Node.js. Other users read one sentence that says what to install.
#[test]
fn says_what_to_install_without_node_and_root() {
    let programs = tempfile::tempdir().unwrap();
    let id = programs.path().join("id");
    std::fs::write(&id, "#!/bin/sh\necho 1000\n").unwrap();
    std::fs::set_permissions(&id, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_redflow-xtask"));
    let output = xtask.arg("console").env("PATH", programs.path()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{text}");
    let advice = "Node.js 18 or newer with npm is missing: install both from your system's packages or https://nodejs.org";
    assert_eq!(text.lines().filter(|line| line.contains(advice)).count(), 1, "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}
