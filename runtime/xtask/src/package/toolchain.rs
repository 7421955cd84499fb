//! Builds `redflow` for a platform, and names the tools that are missing. Installs nothing.

use super::platform::Platform;
use crate::{process, tools};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The beginning of the standard library's file names.
const STANDARD_LIBRARY: &str = "libstd-";

/// What a machine has for building.
#[derive(Clone, Copy)]
struct Tools<'a> {
    host: &'a str,
    has_target: &'a dyn Fn(&str) -> bool,
    has_program: &'a dyn Fn(&str) -> bool,
}

/// Names what is missing to build for a platform, and how to get it.
pub(crate) fn missing(root: &Path, platform: &Platform, host: &str) -> Option<String> {
    let has_target = |triple: &str| has_target(root, triple);
    let has_program = |name: &str| process::works(process::program(root, name, ["--version"]));
    missing_tools(platform, Tools { host, has_target: &has_target, has_program: &has_program })
}

fn missing_tools(platform: &Platform, tools: Tools<'_>) -> Option<String> {
    let triple = platform.triple;
    if triple == tools.host {
        return None;
    }
    let mut problems = Vec::new();
    if !(tools.has_target)(triple) {
        problems.push(format!("the Rust target is not installed: `rustup target add {triple}`"));
    }
    if let Some(cross) = &platform.cross {
        let (compiler, package) = (cross.compiler, cross.debian);
        if !(tools.has_program)(compiler) {
            problems.push(format!("{compiler} not installed: on Debian, `apt-get install {package}`"));
        }
    } else {
        problems.push("only a machine of the same kind can build it".to_owned());
    }
    let elsewhere = "or build it elsewhere and pack it with `--program FILE`";
    (!problems.is_empty())
        .then(|| format!("{triple} cannot be built here:\n  {}\n  {elsewhere}", problems.join("\n  ")))
}

/// Whether the standard library for a target is installed. Not every Rust has rustup, so this looks into the
/// library's folder.
fn has_target(root: &Path, triple: &str) -> bool {
    let print = process::program(root, "rustc", ["--print", "target-libdir", "--target", triple]);
    let Ok(folder) = process::read(print) else { return false };
    let mut entries = std::fs::read_dir(folder.trim()).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().starts_with(STANDARD_LIBRARY))
}

/// A build of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Build<'a> {
    /// The release build of this machine, as `cargo build --release` makes it. If it is current, nothing is built.
    Own(&'a Platform),
    /// A build for others, in the folder of its target: its flags replace this machine's paths.
    ForOthers { platform: &'a Platform, host: &'a str },
}

impl Build<'_> {
    pub(crate) fn platform(&self) -> &Platform {
        match self {
            Self::Own(platform) | Self::ForOthers { platform, .. } => platform,
        }
    }

    /// Builds the program for release and returns its path.
    pub(crate) fn run(&self, root: &Path) -> Result<PathBuf, String> {
        tools::check(self.command(root))?;
        Ok(self.program(&tools::target_folder(root)?))
    }

    fn command(&self, root: &Path) -> Command {
        let mut cargo = process::cargo(root, ["build", "--release", "--locked", "--package", "redflow-cli"]);
        if let Self::ForOthers { platform, host } = self {
            cargo.args(["--target", platform.triple]).env("RUSTFLAGS", flags(root, cargo_home().as_deref()));
            if platform.triple != *host {
                use_cross_tools(&mut cargo, platform);
            }
        }
        cargo
    }

    /// The program in cargo's target folder.
    fn program(&self, target_folder: &Path) -> PathBuf {
        let folder = match self {
            Self::Own(_) => target_folder.to_owned(),
            Self::ForOthers { platform, .. } => target_folder.join(platform.triple),
        };
        folder.join("release").join(self.platform().program())
    }
}

/// Replaces the paths of this machine, which messages of panics would contain.
fn flags(root: &Path, cargo_home: Option<&Path>) -> String {
    let folders = [(Some(root), "/redflow"), (cargo_home, "/cargo")];
    let flags = folders.into_iter().filter_map(|(folder, name)| {
        // A path with a space would become two flags.
        let folder = folder?.to_str().filter(|folder| !folder.contains(char::is_whitespace))?;
        Some(format!("--remap-path-prefix={folder}={name}"))
    });
    flags.collect::<Vec<_>>().join(" ")
}

fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(std::env::home_dir()?.join(".cargo")))
}

fn use_cross_tools(cargo: &mut Command, platform: &Platform) {
    let Some(cross) = &platform.cross else { return };
    let name = platform.triple.replace('-', "_");
    cargo.env(format!("CC_{name}"), cross.compiler);
    // For musl, Rust brings its own linker files.
    if platform.libc != Some("musl") {
        cargo.env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), cross.compiler);
    }
}

/// Whether the first bytes of a program fit the platform.
pub(crate) fn is_for(platform: &Platform, program: &[u8]) -> bool {
    // ELF has the machine at byte 18, and Mach-O at byte 4. For Windows we compare the mark alone.
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

/// The oldest glibc that runs a program: the newest version among its symbols.
pub(crate) fn oldest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let marks = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    marks
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
    use super::{Build, Tools, flags, has_target, is_for, missing_tools, oldest_glibc, use_cross_tools};
    use crate::package::platform::{PLATFORMS, by_triple};
    use crate::{process, root};
    use std::path::Path;

    const NOTHING: Tools<'_> =
        Tools { host: "x86_64-unknown-linux-gnu", has_target: &|_| false, has_program: &|_| false };

    #[test]
    fn names_what_is_missing_and_how_to_get_it() {
        for (triple, words) in [
            ("aarch64-unknown-linux-gnu", ["aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"]),
            ("armv7-unknown-linux-gnueabihf", ["arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"]),
            ("x86_64-pc-windows-gnu", ["x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"]),
            ("x86_64-unknown-linux-musl", ["musl-gcc", "musl-tools"]),
        ] {
            let platform = by_triple(triple).unwrap();
            let message = missing_tools(platform, NOTHING).unwrap();
            assert!(message.starts_with(&format!("{triple} cannot be built here")), "{message}");
            assert!(message.contains(&format!("rustup target add {triple}")), "{message}");
            assert!(words.iter().all(|word| message.contains(word)), "{message}");
            // It does not name what is installed.
            let with_target = Tools { has_target: &|_| true, ..NOTHING };
            let message = missing_tools(platform, with_target).unwrap();
            assert!(!message.contains("rustup"), "{message}");
            let with_programs = Tools { has_program: &|_| true, ..NOTHING };
            let message = missing_tools(platform, with_programs).unwrap();
            assert!(!message.contains("apt-get"), "{message}");
            assert_eq!(missing_tools(platform, Tools { has_target: &|_| true, ..with_programs }), None);
        }
    }

    #[test]
    fn only_a_mac_builds_for_a_mac() {
        let mac = by_triple("aarch64-apple-darwin").unwrap();
        let everything = Tools { has_target: &|_| true, has_program: &|_| true, ..NOTHING };
        assert!(missing_tools(mac, everything).unwrap().contains("only a machine of the same kind"));
        assert_eq!(missing_tools(mac, Tools { host: mac.triple, ..NOTHING }), None);
    }

    #[test]
    fn finds_the_target_of_this_machine_and_no_unknown_target() {
        assert!(has_target(&root(), &process::host(&root()).unwrap()));
        assert!(!has_target(&root(), "no-such-target"));
    }

    #[test]
    fn links_for_another_platform_with_its_own_tools() {
        let env = |triple: &str| -> Vec<String> {
            let mut cargo = process::cargo(&root(), []);
            use_cross_tools(&mut cargo, by_triple(triple).unwrap());
            // The variables without a value are those that cargo does not inherit.
            let variables = cargo.get_envs().filter_map(|(name, value)| {
                Some(format!("{}={}", name.to_string_lossy(), value?.to_string_lossy()))
            });
            variables.collect()
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
    fn only_a_build_for_others_has_its_own_folder_and_flags() {
        let host = "x86_64-unknown-linux-gnu";
        let platform = by_triple(host).unwrap();
        let folder = Path::new("target");
        let parts = |build: Build<'_>| {
            let command = build.command(&root());
            let args: Vec<String> =
                command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
            let sets_flags = command.get_envs().any(|(name, _)| name == "RUSTFLAGS");
            (args.join(" "), sets_flags, build.program(folder))
        };
        // The same command as in the README, so that cargo finds what is built.
        let own = "build --release --locked --package redflow-cli";
        assert_eq!(parts(Build::Own(platform)), (own.to_owned(), false, "target/release/redflow".into()));
        let program = Path::new("target").join(host).join("release/redflow");
        let for_others = Build::ForOthers { platform, host };
        assert_eq!(parts(for_others), (format!("{own} --target {host}"), true, program));
    }

    #[test]
    fn replaces_the_paths_of_this_machine() {
        let (root, home) = (Path::new("/some/where"), Path::new("/some/one/.cargo"));
        let wanted = "--remap-path-prefix=/some/where=/redflow --remap-path-prefix=/some/one/.cargo=/cargo";
        assert_eq!(flags(root, Some(home)), wanted);
        assert_eq!(flags(Path::new("/with a blank"), None), "");
    }

    #[test]
    fn recognises_a_program_of_another_platform() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let here = process::host(&root()).unwrap();
        for platform in PLATFORMS {
            // The first bytes do not tell which C library it uses.
            let same = by_triple(&here).is_ok_and(|host| host.os == platform.os && host.cpu == platform.cpu);
            assert_eq!(is_for(platform, &this), same, "{}", platform.triple);
            assert!(!is_for(platform, b""), "{}", platform.triple);
        }
        assert!(is_for(by_triple("x86_64-pc-windows-gnu").unwrap(), b"MZ\x90\0"));
    }

    #[test]
    fn the_newest_symbol_decides_which_glibc_is_needed() {
        let program = b"\x7fELF..GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_PRIVATE\0GLIBC_";
        assert_eq!(oldest_glibc(program), Some((2, 34)));
        assert_eq!(oldest_glibc(b"static"), None);
    }
}
