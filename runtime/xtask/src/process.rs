//! Starting other programs. Their output goes straight through unless it is asked for.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// `cargo`, the same one that runs us, in the folder `root`.
pub(crate) fn cargo<const N: usize>(root: &Path, args: [&str; N]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root);
    command
}

/// Any other program, in `folder`.
pub(crate) fn program<const N: usize>(folder: &Path, name: &str, args: [&str; N]) -> Command {
    let mut command = Command::new(name);
    command.args(args).current_dir(folder);
    command
}

/// As one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_stem().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Whether the program is there and content. Says nothing.
pub(crate) fn works(mut command: Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// What the program writes to stdout; its stderr only if it fails.
pub(crate) fn read(mut command: Command) -> Result<String, String> {
    let done =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{}: {error}", shown(&command)))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(format!("`{}` failed ({}): {}", shown(&command), done.status, said.trim()));
    }
    String::from_utf8(done.stdout).map_err(|_| format!("`{}` wrote no UTF-8", shown(&command)))
}

/// Runs it in the open.
pub(crate) fn check(mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{}: {error}", shown(&command)))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed ({status})", shown(&command))) }
}

/// Runs it in the open with `text` on its stdin.
pub(crate) fn check_with_input(mut command: Command, text: &str) -> Result<(), String> {
    let name = shown(&command);
    let mut child = command.stdin(Stdio::piped()).spawn().map_err(|error| format!("{name}: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that stops reading early says why by its status.
        let _ = stdin.write_all(text.as_bytes());
    }
    let status = child.wait().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{name}` failed ({status})")) }
}

/// Runs it in the open and hands its exit code on.
pub(crate) fn exit_code(mut command: Command) -> Result<ExitCode, String> {
    let status = command.status().map_err(|error| format!("{}: {error}", shown(&command)))?;
    match status.code() {
        Some(code) => Ok(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)),
        None => Err(format!("`{}` was stopped ({status})", shown(&command))),
    }
}

#[cfg(test)]
mod tests {
    use super::{cargo, check, check_with_input, exit_code, program, read, shown, works};
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
    fn a_failing_program_tells_what_it_said() {
        let error = read(cargo(&root(), ["no-such-subcommand"])).unwrap_err();
        assert!(error.starts_with("`cargo no-such-subcommand` failed"), "{error}");
        assert!(error.contains("no such command"), "{error}");
    }

    #[test]
    fn commands_are_shown_as_typed() {
        assert_eq!(shown(&cargo(&root(), ["fmt", "--all"])), "cargo fmt --all");
        assert!(works(cargo(&root(), ["--version"])));
    }
}
