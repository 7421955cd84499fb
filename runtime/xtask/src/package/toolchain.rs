//! What builds `redflow` for a platform: whether it is there, how to get it, and the build itself. Installs nothing.

use super::platform::Platform;
use crate::{process, test};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the standard library's files begin with.
const STANDARD_LIBRARY: &str = "libstd-";

/// What Rust calls this machine.
///
/// # Errors
/// If `rustc` does not say.
pub(crate) fn host(root: &Path) -> Result<String, String> {
    let told = process::read(process::program(root, "rustc", ["-vV"]))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

/// What is missing to build for a platform, and how to get it.
pub(crate) fn missing(root: &Path, platform: &Platform, host: &str) -> Option<String> {
    let there = |name: &str| process::works(process::program(root, name, ["--version"]));
    explain(platform, host, has_target(root, platform.triple), there)
}

fn explain(platform: &Platform, host: &str, target: bool, there: impl Fn(&str) -> bool) -> Option<String> {
    let triple = platform.triple;
    if triple == host {
        return None;
    }
    let mut problems = Vec::new();
    if !target {
        problems.push(format!("the Rust target is not installed: `rustup target add {triple}`"));
    }
    match &platform.cross {
        None => problems.push("it is built on a machine of its own kind only".to_owned()),
        Some(cross) => {
            let absent: Vec<&str> =
                [cross.compiler, cross.strip].into_iter().filter(|name| !there(name)).collect();
            if !absent.is_empty() {
                let names = absent.join(" and ");
                problems.push(format!(
                    "the C tools {names} are not installed: on Debian, `apt-get install {}`",
                    cross.debian
                ));
            }
        }
    }
    let elsewhere = "or build it elsewhere and pack it with `--program FILE`";
    (!problems.is_empty())
        .then(|| format!("{triple} cannot be built here:\n  {}\n  {elsewhere}", problems.join("\n  ")))
}

/// Whether the standard library for a target is there. Asked of its folder, as not every Rust has rustup.
fn has_target(root: &Path, triple: &str) -> bool {
    let asked = process::program(root, "rustc", ["--print", "target-libdir", "--target", triple]);
    let Ok(folder) = process::read(asked) else { return false };
    let entries = std::fs::read_dir(folder.trim()).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(STANDARD_LIBRARY))
}

/// Builds the program for release; says where it is. In a folder of its own, also for this machine: what is built for
/// others names no path of this one.
///
/// # Errors
/// If the build does not succeed.
pub(crate) fn build(root: &Path, platform: &Platform, host: &str) -> Result<PathBuf, String> {
    let mut cargo = process::cargo(root, ["build", "--release", "--locked", "--package", "redflow-cli"]);
    cargo.args(["--target", platform.triple]).env("RUSTFLAGS", flags(root, cargo_home().as_deref()));
    if platform.triple != host {
        cross(&mut cargo, platform);
    }
    test::check(cargo)?;
    let folder = test::target_folder(root)?.join(platform.triple).join("release");
    Ok(folder.join(platform.program()))
}

/// Panics name the files they come from: by these names.
fn flags(root: &Path, cargo_home: Option<&Path>) -> String {
    let places = [(Some(root), "/redflow"), (cargo_home, "/cargo")];
    let flags = places.into_iter().filter_map(|(place, name)| {
        // A path with a blank would be two flags.
        let place = place?.to_str().filter(|place| !place.contains(char::is_whitespace))?;
        Some(format!("--remap-path-prefix={place}={name}"))
    });
    flags.collect::<Vec<_>>().join(" ")
}

fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".cargo")))
}

fn cross(cargo: &mut Command, platform: &Platform) {
    let Some(cross) = &platform.cross else { return };
    let name = platform.triple.replace('-', "_");
    cargo.env(format!("CC_{name}"), cross.compiler);
    // For musl, Rust brings what it links with.
    if platform.libc != Some("musl") {
        cargo.env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), cross.compiler);
    }
}

/// Takes the symbols out of a program: they are a sixth of it. One that cannot be stripped here stays as it is.
pub(crate) fn strip(root: &Path, platform: &Platform, file: &Path) -> bool {
    let host = host(root).is_ok_and(|host| host == platform.triple);
    let name = match &platform.cross {
        Some(cross) if !host => cross.strip,
        _ => "strip",
    };
    let mut strip = process::program(root, name, []);
    strip.arg(file);
    process::works(strip)
}

/// Whether a program is one for this platform, by how its file begins.
pub(crate) fn is_for(platform: &Platform, program: &[u8]) -> bool {
    // Of ELF: the mark, and where the machine stands. Of Mach-O: the mark and the machine. Windows' is only marked.
    let machine =
        |at: usize| program.get(at..at + 2).map(|bytes| u16::from(bytes[0]) | u16::from(bytes[1]) << 8);
    match (platform.os, platform.cpu) {
        ("linux", cpu) => {
            let wanted = match cpu {
                "x64" => 62,
                "arm64" => 183,
                _ => 40,
            };
            program.starts_with(b"\x7fELF") && machine(18) == Some(wanted)
        }
        ("darwin", cpu) => {
            let wanted = if cpu == "arm64" { 12 } else { 7 };
            program.starts_with(b"\xcf\xfa\xed\xfe") && machine(4) == Some(wanted)
        }
        _ => program.starts_with(b"MZ"),
    }
}

/// The oldest glibc that runs a program, by the versions it names.
pub(crate) fn oldest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let begins = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    begins
        .filter_map(|(at, _)| {
            let rest = &program[at + MARK.len()..];
            let end = rest.iter().take(16).position(|byte| !(byte.is_ascii_digit() || *byte == b'.'))?;
            let mut parts = std::str::from_utf8(&rest[..end]).ok()?.split('.');
            Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
        })
        .max()
}

#[cfg(test)]
mod tests {
    use super::{cross, explain, flags, has_target, host, is_for, oldest_glibc};
    use crate::package::platform::{PLATFORMS, by_triple};
    use crate::{process, root};
    use std::path::Path;

    const HERE: &str = "x86_64-unknown-linux-gnu";

    #[test]
    fn what_is_missing_is_named_with_the_way_to_get_it() {
        for (triple, words) in [
            ("aarch64-unknown-linux-gnu", ["aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"]),
            ("armv7-unknown-linux-gnueabihf", ["arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"]),
            ("x86_64-pc-windows-gnu", ["x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"]),
            ("x86_64-unknown-linux-musl", ["musl-gcc", "musl-tools"]),
        ] {
            let platform = by_triple(triple).unwrap();
            let said = explain(platform, HERE, false, |_| false).unwrap();
            assert!(said.starts_with(&format!("{triple} cannot be built here")), "{said}");
            assert!(said.contains(&format!("rustup target add {triple}")), "{said}");
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
            // Of two things that are missing, the one that is there is not named.
            let said = explain(platform, HERE, true, |_| false).unwrap();
            assert!(!said.contains("rustup"), "{said}");
            let said = explain(platform, HERE, false, |_| true).unwrap();
            assert!(!said.contains("apt-get"), "{said}");
            assert_eq!(explain(platform, HERE, true, |_| true), None);
        }
    }

    #[test]
    fn a_mac_is_built_on_a_mac() {
        let mac = by_triple("aarch64-apple-darwin").unwrap();
        assert!(explain(mac, HERE, true, |_| true).unwrap().contains("of its own kind only"));
        assert_eq!(explain(mac, mac.triple, false, |_| false), None);
    }

    #[test]
    fn the_target_of_this_machine_is_there_and_one_that_nobody_has_is_not() {
        assert!(has_target(&root(), &host(&root()).unwrap()));
        assert!(!has_target(&root(), "no-such-target"));
    }

    #[test]
    fn another_platform_is_linked_with_its_own_tools() {
        let env = |triple: &str| -> Vec<String> {
            let mut cargo = process::cargo(&root(), []);
            cross(&mut cargo, by_triple(triple).unwrap());
            let set = cargo.get_envs().map(|(name, value)| {
                format!("{}={}", name.to_string_lossy(), value.unwrap_or_default().to_string_lossy())
            });
            set.collect()
        };
        assert_eq!(
            env("aarch64-unknown-linux-gnu"),
            [
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc",
                "CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc"
            ]
        );
        assert_eq!(env("x86_64-unknown-linux-musl"), ["CC_x86_64_unknown_linux_musl=musl-gcc"]);
    }

    #[test]
    fn paths_of_this_machine_get_other_names() {
        let (root, home) = (Path::new("/some/where"), Path::new("/some/one/.cargo"));
        let wanted = "--remap-path-prefix=/some/where=/redflow --remap-path-prefix=/some/one/.cargo=/cargo";
        assert_eq!(flags(root, Some(home)), wanted);
        assert_eq!(flags(Path::new("/with a blank"), None), "");
    }

    #[test]
    fn a_program_of_another_platform_is_known() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let here = host(&root()).unwrap();
        for platform in PLATFORMS {
            // The C library does not show at the beginning.
            let same = by_triple(&here).is_ok_and(|it| it.os == platform.os && it.cpu == platform.cpu);
            assert_eq!(is_for(platform, &this), same, "{}", platform.triple);
            assert!(!is_for(platform, b""), "{}", platform.triple);
        }
        assert!(is_for(by_triple("x86_64-pc-windows-gnu").unwrap(), b"MZ\x90\0"));
    }

    #[test]
    fn the_newest_symbol_says_which_glibc_is_needed() {
        let program = b"\x7fELF..GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_PRIVATE\0GLIBC_";
        assert_eq!(oldest_glibc(program), Some((2, 34)));
        assert_eq!(oldest_glibc(b"static"), None);
    }
}
