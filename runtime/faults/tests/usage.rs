//! The command line of the fault tests. That this file is here makes `cargo test` build the program.

use std::process::Command;

#[test]
fn wrong_arguments_are_named() {
    for (args, problem) in [
        (&["no-such-suite"][..], "unknown suite `no-such-suite`; there are matrix,"),
        (&["--quick", "--long"], "use --quick or --long, not both"),
        (&["--fast"], "unknown argument `--fast`"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_redflow-faults")).args(args).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with(&format!("cargo xtask faults: {problem}")), "{text}");
    }
}
