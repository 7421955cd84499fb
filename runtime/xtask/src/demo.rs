//! `cargo xtask demo`: something to see, one command after the clone.
//!
//! A sidecar with the demo flow, one run of it by the sidecar's own interface, and an address to open. Everything it
//! keeps is in `target/demo`.

use crate::{Failure, process, switches};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

/// The flow that is shown.
pub(crate) const FLOW: &str = "examples/calculator-loop.json";

/// Where it listens, if that is free.
const LISTEN: &str = "127.0.0.1:1881";
const ANY_PORT: &str = "127.0.0.1:0";

/// What `redflow serve` says when it is up, before its address.
const UP: &str = "listening on ";

const NEXT: &str = "
What to try next, in another terminal:
  export REDFLOW_DATA=target/demo REDFLOW_URL={url}
  cargo run -q -- runs                       # what was run, and how it went
  cargo run -q -- run --input '\"Again?\"'    # run it again
  curl -H \"Authorization: Bearer $(cargo run -q -- token)\" $REDFLOW_URL/api/flows
  cargo run -q -- explain TOOL_NOT_ALLOWED   # what a code means and how to mend it

Ctrl-C stops the sidecar.";

/// Builds the command line, starts a sidecar and runs the example on it.
///
/// # Errors
/// If the build fails or the sidecar does not start.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [once, json] = switches(args, ["--once", "--json"])?;
    eprintln!("building redflow …");
    process::check(process::cargo(root, ["build", "--quiet", "--package", "redflow-cli"]))?;
    let data = prepare(root)?;
    let mut sidecar = match Sidecar::start(root, &data, LISTEN) {
        Ok(sidecar) => sidecar,
        Err(_) => Sidecar::start(root, &data, ANY_PORT)?,
    };
    let mut command = redflow(root, &data, "run");
    command.args(["--url", &sidecar.url]);
    if json {
        command.arg("--json");
    }
    let code = process::exit_code(command)?;
    if once {
        return Ok(code);
    }
    let sign_in = process::read({
        let mut command = redflow(root, &data, "token");
        command.args(["--browser", "--url", &sidecar.url]);
        command
    })?;
    eprintln!("\nThe sidecar is up. Open this in a browser; it works once:\n  {}", sign_in.trim());
    eprintln!("{}", NEXT.replace("{url}", &sidecar.url));
    let status = sidecar.child.wait().map_err(|error| format!("the sidecar: {error}"))?;
    if status.success() { Ok(code) } else { Err(Failure::Failed(format!("the sidecar stopped ({status})"))) }
}

/// A data directory with the demo flow and nothing else.
fn prepare(root: &Path) -> Result<PathBuf, String> {
    let data = root.join("target/demo");
    let told = |error: std::io::Error| format!("target/demo: {error}");
    if data.exists() {
        std::fs::remove_dir_all(&data).map_err(told)?;
    }
    std::fs::create_dir_all(&data).map_err(told)?;
    std::fs::copy(root.join(FLOW), data.join("flows.json")).map_err(told)?;
    Ok(data)
}

fn redflow(root: &Path, data: &Path, command: &str) -> Command {
    let mut redflow = process::cargo(root, ["run", "--quiet", "--package", "redflow-cli", "--", command]);
    redflow.arg("--data").arg(data);
    redflow
}

/// A sidecar; stopped when it is dropped.
struct Sidecar {
    child: Child,
    url: String,
}

impl Sidecar {
    fn start(root: &Path, data: &Path, listen: &str) -> Result<Self, String> {
        let mut command = redflow(root, data, "serve");
        command.args(["--listen", listen, "--log", "warn"]).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("redflow serve: {error}"))?;
        let mut said = child.stderr.take().map(BufReader::new).into_iter().flat_map(|lines| lines.lines());
        let mut told = Vec::new();
        for line in said.by_ref().map_while(Result::ok) {
            if let Some(url) = line.split(UP).nth(1).and_then(|rest| rest.split_whitespace().next()) {
                let url = url.to_owned();
                eprintln!("redflow serve is listening on {url}");
                // It says little more, but must not wait for somebody who does not listen.
                std::thread::spawn(move || said.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
                return Ok(Self { child, url });
            }
            told.push(line);
        }
        let _ = child.wait();
        Err(format!("the sidecar did not start:\n{}", told.join("\n")))
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
