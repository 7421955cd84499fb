//! The `redflow` command: arguments, wiring, and what people read on the screen.
//!
//! Data goes to stdout, talk to stderr. Exit codes: 0 well, 1 the flow or the run is at fault, 2 the input
//! cannot be used, 3 a run waits for a person or to be resumed.

mod advice;
mod args;
mod args_models;
mod args_runs;
mod check;
mod conclude;
mod config;
mod data_dir;
mod drive;
mod explain;
mod export;
mod files;
mod flow_of;
mod input;
mod interrupt;
mod journal;
mod models;
mod observe;
mod replay;
mod replay_all;
mod resume;
mod run;
mod runs;
#[cfg(feature = "faults")]
mod shifted_clock;
mod start;
mod stored;
mod terminal;
mod timeline;
mod times;
mod wiring;
#[cfg(feature = "faults")]
mod witness;

use args::{Arguments, Command};
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Exit {
    Well = 0,
    Fault = 1,
    Unusable = 2,
    Waiting = 3,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let observed = match prepare(&arguments) {
        Ok(observed) => observed,
        Err(text) => {
            terminal::complain(&text);
            return ExitCode::from(Exit::Unusable as u8);
        }
    };
    let exit = match arguments.command {
        Command::Check(options) => check::check(&options),
        Command::Run(options) => run::run(&options),
        Command::Runs(options) => runs::runs(&options),
        Command::Replay(options) => replay::replay(&options),
        Command::Models(options) => models::models(&options),
        Command::Backup(options) => runs::backup(&options),
        Command::Explain(options) => explain::explain(&options),
        Command::Schema(options) => export::schema(&options),
        Command::Types(options) => export::types(&options),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "redflow", &mut text);
            terminal::data(&String::from_utf8_lossy(&text))
        }
    };
    ExitCode::from(observed.end().max(exit) as u8)
}

/// Reads the configuration and begins to watch.
fn prepare(arguments: &Arguments) -> Result<observe::Observed, String> {
    let config = config::Config::read(arguments.config.as_deref())?;
    wiring::configure(&config)?;
    observe::begin(arguments, &config)
}
