//! The command line: all commands, with the arguments of the small ones.

mod credentials;
mod egress;
mod embeddings;
mod exchange;
mod flows;
mod kb;
mod mcp;
mod mcp_serve;
mod memory;
mod models;
mod run;
mod runs;
mod serve;
mod shared;
mod tools;

pub(crate) use credentials::{
    CredentialsCommand, CredentialsExportOptions, CredentialsImportOptions, CredentialsOptions,
    CredentialsTarget,
};
pub(crate) use egress::{EgressCommand, EgressOptions};
pub(crate) use embeddings::{EmbeddingsCommand, EmbeddingsOptions};
pub(crate) use exchange::{ExportOptions, ImportOptions, Shape};
pub(crate) use flows::{DiffOptions, FlowsCommand, FlowsOptions, PullOptions, PushOptions};
pub(crate) use kb::{AddOptions, EmbedderOptions, KbCommand, KbOptions, SearchOptions};
pub(crate) use mcp::{
    AddServerOptions, AddressOptions, CallServerOptions, ConfineOptions, McpCommand, McpOptions, NamedServer,
    PinOptions, ProgramOptions,
};
pub(crate) use mcp_serve::McpServeOptions;
pub(crate) use memory::{
    ExportMemoryOptions, ForgetOptions, ListMemoryOptions, MemoryCommand, MemoryOptions, PutMemoryOptions,
    ReviewOptions, SearchMemoryOptions,
};
pub(crate) use models::{ModelTestOptions, ModelsCommand, ModelsOptions};
pub(crate) use run::RunOptions;
pub(crate) use runs::{
    BackupOptions, CancelOptions, DEFAULT_LIST_LIMIT, JournalOptions, ListOptions, PruneOptions,
    RecountOptions, ResolveOptions, RunsCommand, RunsOptions, ShowRunOptions,
};
pub(crate) use serve::{
    AddTokenOptions, ConfigCommand, ConfigOptions, ServeOptions, ShowConfigOptions, TokenCommand,
    TokenOptions,
};
pub(crate) use shared::{DataOption, ProfileName, SidecarOption};
pub(crate) use tools::{
    CallToolOptions, CheckManifestOptions, ShowToolOptions, ToolCallsOptions, ToolsCommand, ToolsOptions,
};

use crate::config::{Flags, LogDefault};
use clap::{Args, Parser, Subcommand};
use shared::PROFILE_HELP;
use std::path::PathBuf;

/// Checks and runs the agents in Node-RED flows.
#[derive(Debug, Parser)]
#[command(name = "redflow", version, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// The configuration file (TOML); `redflow config show` lists its keys. Default: the one in
    /// REDFLOW_CONFIG
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// What to log to stderr, such as `info` or `redflow_models=debug`. Default: REDFLOW_LOG, else `warn`, or
    /// `info` for `serve`
    #[arg(long, value_name = "FILTER", global = true)]
    pub(crate) log: Option<String>,
}

const AFTER_HELP: &str = "Exit codes: 0 success, 1 the flow or the run failed, 2 the input cannot be used, 3 a run \
waits for a person or must be resumed.\nEvery code in a message has a page: redflow explain CODE";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check flows: wires, agents and properties; report all problems at once
    Check(CheckOptions),
    /// Run an agent, or fire an inject node, and show each iteration
    Run(RunOptions),
    /// Convert flow files of any shape, such as exports of Redflow, to Node-RED's array
    Import(ImportOptions),
    /// Convert a flow to exports of Redflow, one file per tab, or to Node-RED's array
    Export(ExportOptions),
    /// Pull, push or compare the flow of a running Node-RED
    Flows(FlowsOptions),
    /// Run a flow as a service with an API, events and scheduled inject nodes
    Serve(ServeOptions),
    /// List, show, answer, cancel or remove stored runs
    Runs(RunsOptions),
    /// Test a model: its address, its key and its answer
    Models(ModelsOptions),
    /// Test which addresses tools may reach
    Egress(EgressOptions),
    /// List, show and call tools, see their calls, or check a manifest
    Tools(ToolsOptions),
    /// Add, list and call MCP servers, sign in, and approve their tools
    Mcp(McpOptions),
    /// Add documents to knowledge bases, search them, list and remove them
    Kb(KbOptions),
    /// List, search and change what agents remember for long, review it, or forget people
    Memory(MemoryOptions),
    /// Install a model that makes vectors on this machine
    Embeddings(EmbeddingsOptions),
    /// Replay a journal and compare every effect with the recorded one
    Replay(ReplayOptions),
    /// Copy all runs into one file and the knowledge bases into another, even while a process uses them
    Backup(BackupOptions),
    /// Print or replace the sidecar's token, manage more tokens, or sign in a browser
    Token(TokenOptions),
    /// Import credentials from Node-RED, or export them to it
    Credentials(CredentialsOptions),
    /// Show all settings and their origins
    Config(ConfigOptions),
    /// Explain a code, or list all codes
    Explain(ExplainOptions),
    /// Print a JSON Schema, or list all schemas
    Schema(SchemaOptions),
    /// Write the TypeScript types into a folder
    Types(TypesOptions),
    /// Print the completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Read one document in this process; the program starts it for itself
    #[command(hide = true)]
    Worker {
        /// Set no filter of system calls
        #[arg(long)]
        no_filter: bool,
    },
    /// Become a program that can use only what it needs; the program starts it for itself
    #[command(hide = true)]
    Confine(ConfineOptions),
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Flow files, exported from Node-RED or Redflow; `-` for standard input
    #[arg(required = true, value_name = "FLOW")]
    pub(crate) flows: Vec<PathBuf>,
    #[arg(long, value_enum, help = PROFILE_HELP)]
    pub(crate) profile: Option<ProfileName>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    #[command(flatten)]
    pub(crate) sidecar: SidecarOption,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// A journal file, or the id of a stored run
    #[arg(value_name = "JOURNAL|RUN", required_unless_present = "all")]
    pub(crate) journal: Option<PathBuf>,
    /// Replay all stored runs
    #[arg(long, conflicts_with_all = ["journal", "url"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) data: DataOption,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sidecar: SidecarOption,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// The code, such as EDGE_KIND_MISMATCH
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaOptions {
    /// The schema, such as agent-core.react
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TypesOptions {
    /// The folder; it is created if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

impl Arguments {
    /// The flags that override settings.
    pub(crate) fn flags(&self) -> Flags {
        let flags = Flags { config: self.config.clone(), log: self.log.clone(), ..Flags::default() };
        let profile = |name: Option<ProfileName>| name.map(ProfileName::as_str);
        match &self.command {
            Command::Check(options) => {
                Flags { profile: profile(options.profile), url: options.sidecar.url.clone(), ..flags }
            }
            Command::Run(options) => Flags {
                data: options.data.data.clone(),
                profile: profile(options.profile),
                url: options.sidecar.url.clone(),
                allow_private: options.private.allow_private.clone(),
                logs: if options.quiet { LogDefault::Quiet } else { LogDefault::WithTimeline },
                ..flags
            },
            Command::Serve(options)
            | Command::Config(ConfigOptions {
                command: ConfigCommand::Show(ShowConfigOptions { serve: options, .. }),
            }) => Flags {
                listen: options.listen.clone(),
                flows: options.flows.clone(),
                data: options.data.data.clone(),
                profile: profile(options.profile),
                redflow_ui: options.redflow_ui.clone(),
                node_red: options.node_red.clone(),
                allow_private: options.private.allow_private.clone(),
                logs: LogDefault::Service,
                ..flags
            },
            Command::Runs(options) => {
                Flags { data: options.data.clone(), url: options.sidecar().url, ..flags }
            }
            Command::Replay(options) => {
                Flags { data: options.data.data.clone(), url: options.sidecar.url.clone(), ..flags }
            }
            Command::Token(options) => {
                Flags { data: options.data.clone(), url: options.url.clone(), ..flags }
            }
            Command::Backup(options) => Flags { data: options.data.data.clone(), ..flags },
            Command::Credentials(options) => {
                let target = options.command.target();
                Flags { data: target.data.data.clone(), flows: target.flows.clone(), ..flags }
            }
            Command::Flows(options) => Flags { node_red: options.node_red().cloned(), ..flags },
            Command::Egress(EgressOptions { command: EgressCommand::Test(options) }) => {
                Flags { allow_private: options.private.allow_private.clone(), ..flags }
            }
            Command::Tools(options) => Flags {
                data: options.data.clone(),
                url: options.sidecar().url,
                allow_private: options.allow_private(),
                ..flags
            },
            Command::Mcp(options) => Flags {
                flows: options.flows(),
                data: options.data.clone(),
                url: options.sidecar().url,
                allow_private: options.allow_private.clone(),
                ..flags
            },
            Command::Embeddings(options) => Flags { data: options.data.clone(), ..flags },
            Command::Kb(options) => Flags {
                data: options.data.clone(),
                url: options.sidecar().url,
                allow_private: options.allow_private(),
                ..flags
            },
            Command::Memory(options) => {
                Flags { data: options.data.clone(), url: options.sidecar().url, ..flags }
            }
            Command::Models(_) | Command::Explain(_) | Command::Schema(_) => flags,
            Command::Types(_) | Command::Import(_) | Command::Export(_) => flags,
            Command::Completions { .. } | Command::Worker { .. } | Command::Confine(_) => flags,
        }
    }
}
