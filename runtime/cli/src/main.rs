//! The `redflow` command: arguments, wiring, and what people read on the screen.
//!
//! Data goes to stdout, talk to stderr. Exit codes: 0 well, 1 the flow or the run is at fault, 2 the input
//! cannot be used, 3 a run waits for a person or to be resumed.

mod advice;
mod args;
mod args_credentials;
mod args_exchange;
mod args_flows;
mod args_models;
mod args_runs;
mod args_serve;
mod check;
mod conclude;
mod config;
mod credentials;
mod data_dir;
mod drive;
mod exchange;
mod explain;
mod export;
mod files;
mod flow_of;
mod flows;
mod input;
mod interrupt;
mod journal;
mod models;
mod observe;
mod remote;
mod replay;
mod replay_all;
mod resume;
mod run;
mod runs;
mod serve;
#[cfg(feature = "faults")]
mod shifted_clock;
mod start;
mod stored;
mod terminal;
mod timeline;
mod times;
mod token;
mod wiring;
#[cfg(feature = "faults")]
mod witness;

use args::{Arguments, Command};
use args_serve::{ConfigCommand, ConfigOptions};
use clap::{CommandFactory, Parser};
use config::Settings;
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
    let exit = match &arguments.command {
        // What explains a configuration that cannot be used must not need one.
        Command::Explain(options) => explain::explain(options),
        Command::Schema(options) => export::schema(options),
        Command::Types(options) => export::types(options),
        Command::Import(options) => exchange::import(options),
        Command::Export(options) => exchange::export(options),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "redflow", &mut text);
            terminal::data(&String::from_utf8_lossy(&text))
        }
        _ => with_settings(&arguments),
    };
    ExitCode::from(exit as u8)
}

/// Reads the settings, begins to watch, and does what was asked for.
fn with_settings(arguments: &Arguments) -> Exit {
    let settings = match Settings::gather(&arguments.flags()) {
        Ok(settings) => settings,
        Err(wrong) => {
            wrong.tell();
            return Exit::Unusable;
        }
    };
    wiring::configure(&settings);
    let observed = match observe::begin(arguments, &settings) {
        Ok(observed) => observed,
        Err(exit) => return exit,
    };
    let exit = match &arguments.command {
        Command::Check(options) => check::check(options, &settings),
        Command::Run(options) => run::run(options, &settings),
        Command::Serve(options) => serve::serve(options, &settings),
        Command::Flows(options) => flows::flows(options, &settings),
        Command::Runs(options) => runs::runs(options, &settings),
        Command::Replay(options) => replay::replay(options, &settings),
        Command::Models(options) => models::models(options),
        Command::Backup(options) => runs::backup(options),
        Command::Token(options) => token::token(options, &settings),
        Command::Credentials(options) => credentials::credentials(options, &settings),
        Command::Config(ConfigOptions { command: ConfigCommand::Show(options) }) => {
            config::show(&settings, options.json)
        }
        Command::Explain(_) | Command::Schema(_) | Command::Types(_) | Command::Completions { .. } => {
            Exit::Well
        }
        Command::Import(_) | Command::Export(_) => Exit::Well,
    };
    observed.end().max(exit)
}
