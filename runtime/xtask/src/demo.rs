//! `cargo xtask demo`: shows a run with one command after the clone.
//!
//! Builds the console and the program, starts a sidecar with the demo flow, runs the flow through the sidecar's API, and
//! prints a link to open. All data is in `target/demo`.

use crate::{Failure, console, process, switches, tools};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

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
  {redflow} runs                       # list the runs and their results
  {redflow} run --input '\"Again?\"'    # run it again
  curl -H \"Authorization: Bearer $({redflow} token)\" $REDFLOW_URL/api/flows
  {redflow} explain TOOL_NOT_ALLOWED   # what a code means and how to fix it

Ctrl-C stops the sidecar.";

/// Builds `redflow`, starts a sidecar and runs the flow on it.
///
/// # Errors
/// If the build fails or the sidecar does not start.
pub fn run(root: &Path, args: &[String]) -> Result<ExitCode, Failure> {
    let [once, json] = switches(args, ["--once", "--json"])?;
    // Scripts that read the output open no page.
    let with_console = !once && !json;
    eprintln!("1/3 building redflow: some minutes the first time on two cores, seconds later");
    let program = build(root, with_console)?;
    eprintln!("2/3 starting a sidecar with {FLOW}");
    let data = prepare(root)?;
    let mut sidecar = match DemoSidecar::start(&program, &data, LISTEN) {
        Ok(sidecar) => sidecar,
        Err(_) => DemoSidecar::start(&program, &data, ANY_PORT)?,
    };
    eprintln!("3/3 running the agent");
    let mut command = redflow(&program, &data, "run");
    command.args(["--url", &sidecar.url]);
    if json {
        command.arg("--json");
    }
    let code = process::exit_code(command)?;
    if once {
        return Ok(code);
    }
    let mut token = redflow(&program, &data, "token");
    token.args(["--browser", "--url", &sidecar.url]);
    let sign_in = process::read(token)?;
    let mut runs = redflow(&program, &data, "runs");
    runs.args(["--json", "--limit", "1", "--url", &sidecar.url]);
    let link = link(&sign_in, &process::read(runs)?);
    eprintln!("\nThe sidecar is running. Open this link in a browser; it works once:\n  {link}");
    let here = program.strip_prefix(root).unwrap_or(&program).display().to_string();
    eprintln!("{}", NEXT.replace("{url}", &sidecar.url).replace("{redflow}", &here));
    let status = sidecar.child.wait().map_err(|error| format!("the sidecar: {error}"))?;
    if status.success() { Ok(code) } else { Err(Failure::Failed(format!("the sidecar stopped ({status})"))) }
}

/// Builds the console and the program side by side. Gives the program.
fn build(root: &Path, with_console: bool) -> Result<PathBuf, String> {
    let build = || process::check(process::cargo(root, ["build", "--package", "redflow-cli"]));
    std::thread::scope(|scope| {
        let console = with_console.then(|| scope.spawn(|| console::prepare(root)));
        build()?;
        match console.map(std::thread::ScopedJoinHandle::join) {
            None => Ok(()),
            // The program embeds the console. If that was ready late, the last two crates are built again.
            Some(Ok(Ok(()))) => build(),
            Some(result) => {
                let why = result.ok().and_then(Result::err).unwrap_or_default();
                eprintln!("{why}\nWithout the console, the address of the sidecar shows a small page.");
                Ok(())
            }
        }
    })?;
    let name = format!("redflow{}", std::env::consts::EXE_SUFFIX);
    Ok(tools::target_folder(root)?.join("debug").join(name))
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

fn redflow(program: &Path, data: &Path, command: &str) -> Command {
    let mut redflow = Command::new(program);
    redflow.arg(command).arg("--data").arg(data);
    redflow
}

/// A sidecar process that stops when this is dropped. It also stops when this process ends, whatever ends it, because
/// that closes its stdin.
struct DemoSidecar {
    child: Child,
    /// To wait for the process would close its stdin.
    _stdin: Option<ChildStdin>,
    url: String,
}

impl DemoSidecar {
    fn start(program: &Path, data: &Path, listen: &str) -> Result<Self, String> {
        let mut command = redflow(program, data, "serve");
        command.args(["--listen", listen, "--log", "warn", "--stop-with-stdin"]);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("redflow serve: {error}"))?;
        let mut lines = child.stderr.take().map(BufReader::new).into_iter().flat_map(|stderr| stderr.lines());
        let stdin = child.stdin.take();
        let mut printed = Vec::new();
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some(url) = line.split(LISTENING).nth(1).and_then(|rest| rest.split_whitespace().next()) {
                let url = url.to_owned();
                eprintln!("redflow serve is listening on {url}");
                // The sidecar would block on a full pipe, so a thread keeps reading.
                std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
                return Ok(Self { child, _stdin: stdin, url });
            }
            printed.push(line);
        }
        let _ = child.wait();
        Err(format!("the sidecar did not start:\n{}", printed.join("\n")))
    }
}

impl Drop for DemoSidecar {
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
