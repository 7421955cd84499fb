//! `cargo xtask package`: the tarballs of a release, ready for `npm publish` or `npm install`: the palette module, and the
//! `redflow` program as a package for each platform. Owns the order of the work; never publishes, and installs nothing.

mod contents;
mod notices;
pub mod platform;
mod toolchain;

use crate::{Failure, process, test};
use platform::Platform;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask package [OPTIONS]

Builds redflow for release and packs it, with the palette module for Node-RED.

  --target TRIPLE      the platform to build for; may be given again; this machine's if none is given
  --program FILE       pack this program instead of building it; for one target
  --no-bridge          leave the palette module out
  --no-program         make the palette module alone
  --repository URL     where the sources are, written into the packages (the flow library's rule P03)
  --out DIR            where the tarballs go; target/package if not given

The palette module names the packages of its version that lie in DIR as optional: where a release is built on more than
one machine, gather their tarballs there and make the palette module last, with --no-program.

";

/// Where the tarballs go unless somebody says otherwise.
const OUT: &str = "target/package";

/// The only kind of address that is written into packages.
const ADDRESS: &str = "https://";

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    targets: Vec<&'static Platform>,
    program: Option<PathBuf>,
    no_bridge: bool,
    no_program: bool,
    repository: Option<String>,
    out: Option<PathBuf>,
    help: bool,
}

/// Builds and packs what is asked for.
///
/// # Errors
/// If a toolchain is not there, or something cannot be built or packed.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let mut options = options(args)?;
    if options.help {
        print!("{HELP}{}", platform::list());
        return Ok(ExitCode::SUCCESS);
    }
    let host = toolchain::host(root)?;
    if options.targets.is_empty() && !options.no_program {
        options.targets.push(platform::by_triple(&host).map_err(Failure::Usage)?);
    }
    if options.program.is_none() {
        let problems: Vec<String> =
            options.targets.iter().filter_map(|target| toolchain::missing(root, target, &host)).collect();
        if !problems.is_empty() {
            return Err(Failure::Failed(problems.join("\n")));
        }
    }
    test::node(root)?;
    let given = options.out.clone().unwrap_or_else(|| root.join(OUT));
    let out = std::path::absolute(&given).map_err(|error| format!("{}: {error}", given.display()))?;
    let release = contents::Release { root, out: &out, repository: options.repository.as_deref() };
    let mut made = Vec::new();
    for target in &options.targets {
        let built = match &options.program {
            Some(program) => program.clone(),
            None => toolchain::build(root, target, &host)?,
        };
        made.push(release.program(target, &built)?);
    }
    if !options.no_bridge {
        test::install(&root.join("node-red-bridge"))?;
        made.push(release.bridge()?);
    }
    println!();
    for made in &made {
        println!("{made}");
    }
    if options.repository.is_none() {
        println!(
            "without --repository the flow library's rule P03 is not met: do not publish these, install them"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn options(args: &[String]) -> Result<Options, Failure> {
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
            "--repository" => options.repository = Some(address(value()?)?),
            "--out" => options.out = Some(value()?.into()),
            "--help" | "-h" => options.help = true,
            _ => return Err(Failure::Usage(format!("`{arg}` is not understood here"))),
        }
    }
    if options.program.is_some() && options.targets.len() > 1 {
        return Err(Failure::Usage("`--program` is one program: give one `--target`".into()));
    }
    let program = options.program.is_some() || !options.targets.is_empty();
    if options.no_program && (options.no_bridge || program) {
        return Err(Failure::Usage("`--no-program` makes the palette module and nothing else".into()));
    }
    Ok(options)
}

fn address(given: String) -> Result<String, Failure> {
    let rest = given.strip_prefix(ADDRESS).unwrap_or_default();
    let plain = !rest.is_empty() && !rest.contains(|char: char| char.is_whitespace() || char == '@');
    if plain { Ok(given) } else { Err(Failure::Usage(format!("`{given}` is no plain {ADDRESS} address"))) }
}

/// Packs the folder; the name of the tarball is the one npm gives it.
fn npm_pack(folder: &Path, out: &Path) -> Result<(), String> {
    let mut pack = process::program(folder, "npm", ["pack", "--silent", "--ignore-scripts"]);
    pack.arg("--pack-destination").arg(out);
    process::read(pack).map(drop)
}

#[cfg(test)]
mod tests {
    use super::platform::PLATFORMS;
    use super::{Options, options, platform, run};
    use crate::{Failure, root};
    use pretty_assertions::assert_eq;

    fn read(line: &str) -> Result<Options, Failure> {
        options(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_come_in_any_order_and_targets_once() {
        let arm = platform::by_triple("aarch64-unknown-linux-gnu").unwrap();
        let wanted = Options {
            targets: vec![arm],
            no_bridge: true,
            repository: Some("https://example.org/x".into()),
            out: Some("here".into()),
            ..Options::default()
        };
        let line = "--out here --target aarch64-unknown-linux-gnu --no-bridge --target aarch64-unknown-linux-gnu \
                    --repository https://example.org/x";
        assert_eq!(read(line), Ok(wanted));
        assert_eq!(read(""), Ok(Options::default()));
    }

    #[test]
    fn what_is_not_understood_is_a_usage_error() {
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
        for option in ["--target", "--program", "--no-bridge", "--no-program", "--repository", "--out"] {
            assert!(help.contains(option), "{option}");
        }
        assert!(run(&root(), &["--help".to_owned()]).is_ok());
    }

    #[test]
    fn a_toolchain_that_is_not_there_is_named_before_anything_is_built() {
        // No machine has both: one is built on macOS only, the other with a compiler that macOS has not.
        let args = ["--target", "aarch64-apple-darwin", "--target", "x86_64-unknown-linux-musl"];
        let Err(Failure::Failed(said)) = run(&root(), &args.map(str::to_owned)) else {
            panic!("it was built");
        };
        assert!(said.contains("cannot be built here"), "{said}");
    }
}
