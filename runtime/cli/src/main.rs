//! The `redflow` command: arguments, adapters, and output for people and scripts.
//!
//! Data goes to stdout, notes and errors to stderr. `exit` has the exit codes.

mod archive;
mod args;
mod commands;
mod config;
mod context;
mod data_dir;
mod diagnostics;
mod errors;
mod exit;
mod files;
mod hints;
mod input;
mod journal_files;
mod knowledge;
mod loaded_flow;
mod memories;
mod node_red;
mod run_source;
mod session;
#[cfg(feature = "faults")]
mod shifted_clock;
mod sidecar;
mod signals;
mod streamed_text;
mod telemetry;
mod terminal;
mod text;
mod timeline;
mod times;
#[cfg(feature = "faults")]
mod witness;

use args::{Arguments, Command, ConfigCommand, ConfigOptions, ToolsCommand, ToolsOptions};
use clap::{CommandFactory as _, Parser as _};
use config::Settings;
use context::AppContext;
use exit::{CommandResult, Exit};
use std::process::ExitCode;
use telemetry::Telemetry;
use terminal::fail;

/// A run costs less processor time than with the allocator of the system; bench/README.md has the figures.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run(&arguments).unwrap_or_else(ExitCode::from)
}

/// Runs the command. The commands that explain or convert must work without a valid configuration.
fn run(arguments: &Arguments) -> Result<ExitCode, Exit> {
    let configured = |command: &dyn Fn(&AppContext) -> CommandResult| run_with_context(arguments, command);
    let result = match &arguments.command {
        Command::Check(options) => configured(&|context| commands::check(options, context)),
        Command::Run(options) => configured(&|context| commands::run(options, context)),
        Command::Flows(options) => configured(&|context| commands::flows(options, context)),
        Command::Serve(options) => configured(&|context| commands::serve(options, context)),
        Command::Runs(options) => configured(&|context| commands::runs(options, context)),
        Command::Models(options) => configured(&|context| commands::models(options, context)),
        Command::Egress(options) => configured(&|context| commands::egress(options, context)),
        Command::Replay(options) => configured(&|context| commands::replay(options, context)),
        Command::Backup(options) => configured(&|context| commands::backup(options, context)),
        Command::Token(options) => configured(&|context| commands::token(options, context)),
        Command::Credentials(options) => configured(&|context| commands::credentials(options, context)),
        Command::Config(ConfigOptions { command: ConfigCommand::Show(options) }) => {
            configured(&|context| Ok(commands::show_config(options, &context.settings)))
        }
        Command::Tools(ToolsOptions { command: ToolsCommand::Check(options), .. }) => {
            Ok(commands::check_manifest(options))
        }
        Command::Embeddings(options) => configured(&|context| commands::embeddings(options, context)),
        Command::Memory(options) => configured(&|context| commands::memory(options, context)),
        Command::Mcp(options) => configured(&|context| commands::mcp(options, context)),
        Command::Kb(options) => configured(&|context| commands::kb(options, context)),
        Command::Tools(options) => configured(&|context| commands::tools(options, context)),
        Command::Import(options) => commands::import(options),
        Command::Export(options) => commands::export(options),
        Command::Explain(options) => Ok(commands::explain(options)),
        Command::Schema(options) => Ok(commands::schema(options)),
        Command::Types(options) => Ok(commands::types(options)),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "redflow", &mut text);
            Ok(terminal::print_text(&String::from_utf8_lossy(&text)))
        }
        Command::Worker { no_filter } => commands::worker(*no_filter),
        Command::Confine(options) => return commands::confine(options),
    };
    result.map(ExitCode::from)
}

/// Reads the settings, starts the telemetry, and runs the command.
fn run_with_context(arguments: &Arguments, command: &dyn Fn(&AppContext) -> CommandResult) -> CommandResult {
    let settings = Settings::load(&arguments.flags()).map_err(|errors| {
        errors.print();
        Exit::Unusable
    })?;
    // A command may hold keys and tokens, and it starts programs of others.
    redflow_worker::hide_memory().map_err(|error| fail(&error.to_string()))?;
    let context = AppContext::new(settings);
    let telemetry = Telemetry::start(arguments, &context.settings)?;
    let (Ok(exit) | Err(exit)) = command(&context);
    Ok(telemetry.finish(&context.metrics).max(exit))
}
