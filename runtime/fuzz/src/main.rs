//! `cargo xtask fuzz`: fuzzes all targets, or those that the arguments name.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the command writes to a terminal")]

use redflow_fuzz::{Limits, Target, fuzz, in_process, of_sidecar};
use std::env::consts::EXE_SUFFIX;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const USAGE: &str = "Usage: cargo xtask fuzz [TARGET…] [--seconds N] [--seed N]

Sends random and hostile inputs to everything that reads what strangers send, each target for some seconds
(10 unless told). A panic, a hang or a wrong answer ends the command with 1 and is kept as a case in
runtime/fuzz/cases. The same seed gives the same inputs. Without --seed the time chooses one.

Targets: flow, schema, answer, journal, manifest, egress, image, mcp, oauth, worker, bodies, bridge, events,
comms, requests, jobs";

struct Args {
    targets: Vec<String>,
    seconds: u64,
    seed: u64,
}

fn main() -> ExitCode {
    let args = match read_args(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("{problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn read_args(args: impl Iterator<Item = String>) -> Result<Option<Args>, String> {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map(|time| time.as_secs()).unwrap_or_default();
    let mut read = Args { targets: Vec::new(), seconds: 10, seed: now };
    let mut args = args.peekable();
    while let Some(arg) = args.next() {
        let mut number = || {
            let value = args.next().and_then(|value| value.parse().ok());
            value.ok_or_else(|| format!("{arg} needs a whole number"))
        };
        match arg.as_str() {
            "--help" | "-h" => return Ok(None),
            "--seconds" => read.seconds = number()?,
            "--seed" => read.seed = number()?,
            option if option.starts_with('-') => return Err(format!("unknown option {option}")),
            target => read.targets.push(target.to_owned()),
        }
    }
    Ok(Some(read))
}

fn run(args: &Args) -> Result<(), String> {
    let mut targets = in_process()?;
    let mut sidecar = None;
    let is_wanted = |target: &Arc<dyn Target>| {
        args.targets.is_empty() || args.targets.iter().any(|name| name == target.name())
    };
    if args.targets.is_empty()
        || args.targets.iter().any(|name| targets.iter().all(|known| known.name() != name))
    {
        // `cargo xtask fuzz` has built it beside this program.
        let fuzzer = std::env::current_exe().map_err(|error| error.to_string())?;
        let (of_sidecar, running) = of_sidecar(&fuzzer.with_file_name(format!("redflow{EXE_SUFFIX}")))?;
        targets.extend(of_sidecar);
        sidecar = Some(running);
    }
    for name in &args.targets {
        if targets.iter().all(|target| target.name() != name) {
            return Err(format!("there is no target {name}\n\n{USAGE}"));
        }
    }
    println!("seed {}", args.seed);
    for target in targets.iter().filter(|target| is_wanted(target)) {
        let began = Instant::now();
        let limits = Limits { time: Duration::from_secs(args.seconds), inputs: usize::MAX, seed: args.seed };
        match fuzz(target, limits) {
            Ok((inputs, outcomes)) => {
                let seconds = began.elapsed().as_secs_f64();
                println!("{:8} {inputs} inputs, {outcomes} outcomes in {seconds:.1} s", target.name());
            }
            Err(finding) => {
                let file = finding.file.display();
                return Err(format!("{}: {}\nkept as {file}", target.name(), finding.problem));
            }
        }
    }
    drop(sidecar);
    Ok(())
}
