//! `cargo xtask demo`: something to see, one command after the clone.

use crate::{Failure, process, switches};
use std::path::Path;
use std::process::ExitCode;

/// The flow that is shown.
pub(crate) const FLOW: &str = "examples/calculator-loop.json";

const NEXT: &str = "
What to try next:
  cargo run -q -- check examples/calculator-loop.json       what the checker says of the flow
  cargo run -q -- run examples/calculator-loop.json --json  the message that leaves the agent
  cargo run -q -- run examples/survives-a-kill.json         kill it half-way, then: run --resume all
  cargo run -q -- runs                                      what was run, and how it went
  cargo run -q -- explain TOOL_NOT_ALLOWED                  what a code means and how to mend it";

/// Builds the command line and runs the example.
///
/// # Errors
/// If the build fails or the command cannot be started.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [once, json] = switches(args, ["--once", "--json"])?;
    eprintln!("building redflow …");
    process::check(process::cargo(root, ["build", "--quiet", "--package", "redflow-cli"]))?;
    let mut command = process::cargo(root, ["run", "--quiet", "--package", "redflow-cli", "--", "run", FLOW]);
    // A demo leaves nothing behind.
    command.arg("--ephemeral");
    if json {
        command.arg("--json");
    }
    let code = process::exit_code(command)?;
    if !once {
        eprintln!("{NEXT}");
    }
    Ok(code)
}
