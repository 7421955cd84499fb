//! Starts other programs. Their output goes to our own unless a function returns it.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// Features with which everything that the tests need is built once: the tests, their examples, the lints and the
/// program that the other steps start.
pub const TEST_FEATURES: [&str; 2] = ["--features", "redflow-cli/faults,redflow-cli/otel"];

/// What cargo tells the programs that it runs. A cargo inside would take some of it for a change of its packages and
/// compile them again.
const OF_CARGO: &[&str] =
    &["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_CRATE_NAME", "CARGO_BIN_NAME", "CARGO_PRIMARY_PACKAGE"];

/// A command of the `cargo` that runs us, in the folder `root`.
#[must_use]
pub fn cargo<const N: usize>(root: &Path, args: [&str; N]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| OF_CARGO.iter().any(|start| name.starts_with(start))) {
            command.env_remove(name);
        }
    }
    command
}

/// A command of any other program, in `folder`.
#[must_use]
pub fn program<const N: usize>(folder: &Path, name: &str, args: [&str; N]) -> Command {
    let mut command = Command::new(name);
    command.args(args).current_dir(folder);
    command
}

/// The command as a person would type it.
#[must_use]
pub fn command_line(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_stem().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Whether the program exists and succeeds. Hides its output.
#[must_use]
pub fn works(mut command: Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the program's stdout.
///
/// # Errors
/// If it cannot be started, fails, or writes no UTF-8. The message of a failure contains its stderr.
pub fn read(mut command: Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| not_started(&command, &error))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` failed ({}): {}", command_line(&command), output.status, stderr.trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{}` wrote no UTF-8", command_line(&command)))
}

/// Returns the stdout of a cargo command, which uses no network if possible and never changes `Cargo.lock`.
///
/// # Errors
/// As for [`read`].
pub fn read_cargo(root: &Path, args: &[&str]) -> Result<String, String> {
    let run = |network: &[&str]| {
        let mut command = cargo(root, []);
        command.args(args).arg("--locked").args(network);
        read(command)
    };
    run(&["--offline"]).or_else(|_| run(&[]))
}

/// The target triple of this machine.
///
/// # Errors
/// If `rustc` does not report it.
pub fn host(root: &Path) -> Result<String, String> {
    let version = read(program(root, "rustc", ["-vV"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

/// Runs the program.
///
/// # Errors
/// If it cannot be started or fails.
pub fn check(mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|error| not_started(&command, &error))?;
    success(&command, status)
}

/// Runs the program with `text` on its stdin.
///
/// # Errors
/// If it cannot be started or fails.
pub fn check_with_input(mut command: Command, text: &str) -> Result<(), String> {
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(|error| not_started(&command, &error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that stops reading early reports the reason by its status.
        let _ = stdin.write_all(text.as_bytes());
    }
    let status = child.wait().map_err(|error| not_started(&command, &error))?;
    success(&command, status)
}

/// Runs the program and returns its exit code.
///
/// # Errors
/// If it cannot be started, or a signal stops it.
pub fn exit_code(mut command: Command) -> Result<ExitCode, String> {
    let status = command.status().map_err(|error| not_started(&command, &error))?;
    match status.code() {
        Some(code) => Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)),
        None => Err(format!("`{}` was stopped ({status})", command_line(&command))),
    }
}

fn success(command: &Command, status: ExitStatus) -> Result<(), String> {
    if status.success() { Ok(()) } else { Err(format!("`{}` failed ({status})", command_line(command))) }
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!("{}: {error}", command_line(command))
}

#[cfg(test)]
mod tests {
    use super::{cargo, check, check_with_input, command_line, exit_code, program, read, works};
    use crate::root;

    #[test]
    fn a_missing_program_is_an_error_not_a_panic() {
        let missing = || program(&root(), "no-such-program-anywhere", []);
        assert!(!works(missing()));
        for error in [
            read(missing()).map(drop),
            check(missing()),
            check_with_input(missing(), ""),
            exit_code(missing()).map(drop),
        ] {
            assert!(error.unwrap_err().contains("no-such-program-anywhere"));
        }
    }

    #[test]
    fn the_error_of_a_failed_program_contains_its_stderr() {
        let error = read(cargo(&root(), ["no-such-subcommand"])).unwrap_err();
        assert!(error.starts_with("`cargo no-such-subcommand` failed"), "{error}");
        assert!(error.contains("no such command"), "{error}");
    }

    #[test]
    fn prints_commands_as_typed() {
        assert_eq!(command_line(&cargo(&root(), ["fmt", "--all"])), "cargo fmt --all");
        assert!(works(cargo(&root(), ["--version"])));
    }
}
