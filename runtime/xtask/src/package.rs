//! `cargo xtask package`: makes the tarballs of a release for `npm publish` or `npm install`: the palette
//! module and the `redflow` program for each platform. Publishes nothing and installs nothing.

mod contents;
mod notices;
pub mod platform;
mod size;
mod toolchain;

use crate::{Failure, console, process, tools};
use platform::Platform;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toolchain::Build;

const HELP: &str = "\
Usage: cargo xtask package [OPTIONS]

Builds redflow for release and packs it, with the palette module for Node-RED. Without --target it packs the
release build of this machine, and builds only what is not current. A program that is larger than
bench/ceilings.json allows is refused; one of --program may have any size.

  --target TRIPLE      a platform to build for, for others: without the paths of this machine; can be repeated
  --program FILE       pack this program instead of building it; for one target
  --no-bridge          leave the palette module out
  --no-program         make only the palette module
  --repository URL     the address of the sources, written into the packages (the flow library's rule P03)
  --keep-size          write the size of the program and its parts into bench/ceilings.json
  --out DIR            the folder for the tarballs; the default is target/package

The palette module lists the packages of its version in DIR as optional dependencies. If you build a release
on several machines, collect their tarballs in DIR and make the palette module last, with --no-program.

";

/// The default folder of the tarballs.
const OUT: &str = "target/package";

/// Packages name only addresses that begin with this.
const ADDRESS: &str = "https://";

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    targets: Vec<&'static Platform>,
    program: Option<PathBuf>,
    no_bridge: bool,
    no_program: bool,
    keep_size: bool,
    repository: Option<String>,
    out: Option<PathBuf>,
    help: bool,
}

/// Builds and packs what the arguments name.
///
/// # Errors
/// If a toolchain is missing, or a build or packing fails.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let options = parse(args)?;
    if options.help {
        print!("{HELP}{}", platform::list());
        return Ok(ExitCode::SUCCESS);
    }
    let host = process::host(root)?;
    let builds = builds(&options, &host)?;
    if options.program.is_none() {
        let platforms = builds.iter().map(Build::platform);
        let problems: Vec<String> =
            platforms.filter_map(|platform| toolchain::missing(root, platform, &host)).collect();
        if !problems.is_empty() {
            return Err(Failure::Failed(problems.join("\n")));
        }
    }
    tools::node(root)?;
    if !builds.is_empty() {
        console::prepare(root)?;
    }
    let folder = options.out.clone().unwrap_or_else(|| root.join(OUT));
    let out = std::path::absolute(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let release = contents::Release {
        root,
        out: &out,
        check_size: options.program.is_none(),
        keep_size: options.keep_size,
        repository: options.repository.as_deref(),
    };
    let mut tarballs = Vec::new();
    for build in &builds {
        let program = match &options.program {
            Some(program) => program.clone(),
            None => build.run(root)?,
        };
        tarballs.push(release.pack_program(build.platform(), &program)?);
    }
    if !options.no_bridge {
        tools::install(&root.join("node-red-bridge"))?;
        tarballs.push(release.pack_palette()?);
    }
    println!();
    for tarball in &tarballs {
        println!("{tarball}");
    }
    if options.repository.is_none() {
        println!("install these, but do not publish them: the flow library's rule P03 needs --repository");
    }
    Ok(ExitCode::SUCCESS)
}

/// The builds that the options ask for. Without a target, the machine's own.
fn builds<'a>(options: &Options, host: &'a str) -> Result<Vec<Build<'a>>, Failure> {
    if options.no_program {
        return Ok(Vec::new());
    }
    if options.targets.is_empty() {
        return Ok(vec![Build::Own(platform::by_triple(host).map_err(Failure::Usage)?)]);
    }
    Ok(options.targets.iter().map(|platform| Build::ForOthers { platform, host }).collect())
}

fn parse(args: &[String]) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value =
            || args.next().cloned().ok_or_else(|| Failure::Usage(format!("`{arg}` needs a value")));
        match arg.as_str() {
            "--target" => {
                let target = platform::by_triple(&value()?).map_err(Failure::Usage)?;
                if !options.targets.contains(&target) {
                    options.targets.push(target);
                }
            }
            "--program" => options.program = Some(value()?.into()),
            "--no-bridge" => options.no_bridge = true,
            "--no-program" => options.no_program = true,
            "--keep-size" => options.keep_size = true,
            "--repository" => options.repository = Some(plain_address(value()?)?),
            "--out" => options.out = Some(value()?.into()),
            "--help" | "-h" => options.help = true,
            _ => return Err(Failure::Usage(format!("unknown argument `{arg}`"))),
        }
    }
    if options.program.is_some() && options.targets.len() > 1 {
        return Err(Failure::Usage("`--program` names one program: give only one `--target`".into()));
    }
    let wants_program = options.program.is_some() || !options.targets.is_empty();
    if options.no_program && (options.no_bridge || wants_program) {
        return Err(Failure::Usage("`--no-program` makes only the palette module".into()));
    }
    Ok(options)
}

fn plain_address(text: String) -> Result<String, Failure> {
    let rest = text.strip_prefix(ADDRESS).unwrap_or_default();
    let is_plain = !rest.is_empty() && !rest.contains(|char: char| char.is_whitespace() || char == '@');
    if is_plain { Ok(text) } else { Err(Failure::Usage(format!("`{text}` is no plain {ADDRESS} address"))) }
}

/// Packs the folder. npm chooses the name of the tarball, see [`platform::tarball`].
fn npm_pack(folder: &Path, out: &Path) -> Result<(), String> {
    let mut pack = process::program(folder, "npm", ["pack", "--silent", "--ignore-scripts"]);
    pack.arg("--pack-destination").arg(out);
    process::read(pack).map(drop)
}

#[cfg(test)]
mod tests {
    use super::platform::PLATFORMS;
    use super::{Build, Options, builds, parse, platform, run};
    use crate::{Failure, root};
    use pretty_assertions::assert_eq;

    fn read(line: &str) -> Result<Options, Failure> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn accepts_options_in_any_order_and_ignores_repeated_targets() {
        let arm = platform::by_triple("aarch64-unknown-linux-gnu").unwrap();
        let wanted = Options {
            targets: vec![arm],
            no_bridge: true,
            repository: Some("https://example.org/x".into()),
            out: Some("here".into()),
            ..Options::default()
        };
        let line = "--out here --target aarch64-unknown-linux-gnu --no-bridge \
                    --target aarch64-unknown-linux-gnu --repository https://example.org/x";
        assert_eq!(read(line), Ok(wanted));
        assert_eq!(read(""), Ok(Options::default()));
    }

    #[test]
    fn without_a_target_packs_the_build_of_this_machine() {
        let host = "x86_64-unknown-linux-gnu";
        let choice = |line: &str| builds(&read(line).unwrap(), host).unwrap();
        assert!(matches!(choice("")[..], [Build::Own(platform)] if platform.triple == host));
        assert!(choice("--no-program").is_empty());
        let named = choice("--target x86_64-unknown-linux-gnu");
        assert!(matches!(named[..], [Build::ForOthers { .. }]), "a release has no path of this machine");
        assert!(matches!(builds(&Options::default(), "m68k-unknown-none"), Err(Failure::Usage(_))));
    }

    #[test]
    fn reports_wrong_options_as_a_usage_error() {
        for line in [
            "--target",
            "--target m68k-unknown-none",
            "--out",
            "--fast",
            "--repository git@example.org:x",
            "--repository https://somebody:secret@example.org/x",
            "--repository https://",
            "--no-program --no-bridge",
            "--no-program --target x86_64-unknown-linux-gnu",
            "--no-program --program a",
            "--program a --target x86_64-unknown-linux-gnu --target aarch64-unknown-linux-gnu",
        ] {
            assert!(matches!(read(line), Err(Failure::Usage(_))), "{line}");
        }
    }

    #[test]
    fn help_names_every_platform_and_option() {
        let help = format!("{}{}", super::HELP, platform::list());
        for target in PLATFORMS {
            assert!(help.contains(target.triple) && help.contains(&target.package()), "{}", target.triple);
        }
        for option in
            ["--target", "--program", "--no-bridge", "--no-program", "--repository", "--keep-size", "--out"]
        {
            assert!(help.contains(option), "{option}");
        }
        assert!(run(&root(), &["--help".to_owned()]).is_ok());
    }

    #[test]
    fn names_a_missing_toolchain_before_it_builds() {
        // No machine has both: one target needs macOS, and the other a compiler that macOS does not have.
        let args = ["--target", "aarch64-apple-darwin", "--target", "x86_64-unknown-linux-musl"];
        let Err(Failure::Failed(message)) = run(&root(), &args.map(str::to_owned)) else {
            panic!("both were built");
        };
        assert!(message.contains("cannot be built here"), "{message}");
    }
}
