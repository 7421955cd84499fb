//! `cargo xtask demo`: shows a run with one command after the clone.
//!
//! Builds the console, starts a sidecar with the demo flow, runs the flow through the sidecar's API, and prints a link to open. All
//! data is in `target/demo`.

use crate::{Failure, console, process, switches};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

/// The flow of the demo. The tests compare its output with the bindings too.
pub(crate) const FLOW: &str = "examples/calculator-loop.json";

/// The sidecar's address. If the port is taken, the system chooses another one.
const LISTEN: &str = "127.0.0.1:1881";
const ANY_PORT: &str = "127.0.0.1:0";

/// `redflow serve` prints this before its address.
const LISTENING: &str = "listening on ";

const NEXT: &str = "
Try next, in another terminal:
  export REDFLOW_DATA=target/demo REDFLOW_URL={url}
  cargo run -q -- runs                       # list the runs and their results
  cargo run -q -- run --input '\"Again?\"'    # run it again
  curl -H \"Authorization: Bearer $(cargo run -q -- token)\" $REDFLOW_URL/api/flows
  cargo run -q -- explain TOOL_NOT_ALLOWED   # what a code means and how to fix it

Ctrl-C stops the sidecar.";

/// Builds `redflow`, starts a sidecar and runs the flow on it.
///
/// # Errors
/// If the build fails or the sidecar does not start.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [once, json] = switches(args, ["--once", "--json"])?;
    // Scripts that read the output open no page.
    if !once
        && !json
        && let Err(why) = console::prepare(root)
    {
        eprintln!("{why}\nWithout the console, the address of the sidecar shows a small page.");
    }
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
    let mut token = redflow(root, &data, "token");
    token.args(["--browser", "--url", &sidecar.url]);
    let sign_in = process::read(token)?;
    let mut runs = redflow(root, &data, "runs");
    runs.args(["--json", "--limit", "1", "--url", &sidecar.url]);
    let link = link(&sign_in, &process::read(runs)?);
    eprintln!("\nThe sidecar is running. Open this link in a browser; it works once:\n  {link}");
    eprintln!("{}", NEXT.replace("{url}", &sidecar.url));
    let status = sidecar.child.wait().map_err(|error| format!("the sidecar: {error}"))?;
    if status.success() { Ok(code) } else { Err(Failure::Failed(format!("the sidecar stopped ({status})"))) }
}

/// The address that signs a browser in and shows the first run of a list, if it has one.
fn link(sign_in: &str, runs: &str) -> String {
    let run: Option<serde_json::Value> = runs.lines().next().and_then(|line| serde_json::from_str(line).ok());
    let id = run.as_ref().and_then(|run| run["runId"].as_str());
    let place = id.map(|id| format!("#/runs/{id}")).unwrap_or_default();
    format!("{}{place}", sign_in.trim())
}

/// Makes a data directory that holds only the demo flow.
fn prepare(root: &Path) -> Result<PathBuf, String> {
    let data = root.join("target/demo");
    let failed = |error: std::io::Error| format!("target/demo: {error}");
    if data.exists() {
        std::fs::remove_dir_all(&data).map_err(failed)?;
    }
    std::fs::create_dir_all(&data).map_err(failed)?;
    std::fs::copy(root.join(FLOW), data.join("flows.json")).map_err(failed)?;
    Ok(data)
}

fn redflow(root: &Path, data: &Path, command: &str) -> Command {
    let mut redflow = process::cargo(root, ["run", "--quiet", "--package", "redflow-cli", "--", command]);
    redflow.arg("--data").arg(data);
    redflow
}

/// A sidecar process that stops when this is dropped.
struct Sidecar {
    child: Child,
    url: String,
}

impl Sidecar {
    fn start(root: &Path, data: &Path, listen: &str) -> Result<Self, String> {
        let mut command = redflow(root, data, "serve");
        command.args(["--listen", listen, "--log", "warn"]).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("redflow serve: {error}"))?;
        let mut lines = child.stderr.take().map(BufReader::new).into_iter().flat_map(|stderr| stderr.lines());
        let mut printed = Vec::new();
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some(url) = line.split(LISTENING).nth(1).and_then(|rest| rest.split_whitespace().next()) {
                let url = url.to_owned();
                eprintln!("redflow serve is listening on {url}");
                // The sidecar would block on a full pipe, so a thread keeps reading.
                std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
                return Ok(Self { child, url });
            }
            printed.push(line);
        }
        let _ = child.wait();
        Err(format!("the sidecar did not start:\n{}", printed.join("\n")))
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::link;
    use pretty_assertions::assert_eq;

    #[test]
    fn the_link_signs_in_and_shows_the_run() {
        let sign_in = "http://127.0.0.1:1881/sign-in?code=c0de\n";
        let runs = "{\"runId\": \"0197\", \"status\": \"completed\"}\n";
        assert_eq!(link(sign_in, runs), "http://127.0.0.1:1881/sign-in?code=c0de#/runs/0197");
        assert_eq!(link(sign_in, ""), "http://127.0.0.1:1881/sign-in?code=c0de");
    }
}
