//! What can be typed. What can be typed after `runs`, `models`, `serve`, `config`, `token`, `credentials`, `flows`,
//! `import` and `export` is in `args_runs`, `args_models`, `args_serve`, `args_credentials`, `args_flows` and
//! `args_exchange`.

use crate::args_credentials::CredentialsOptions;
use crate::args_exchange::{ExportOptions, ImportOptions};
use crate::args_flows::FlowsOptions;
use crate::args_models::ModelsOptions;
use crate::args_runs::{BackupOptions, RunsOptions};
use crate::args_serve::{ConfigCommand, ConfigOptions, ServeOptions, ShowOptions, TokenOptions};
use crate::config::{Flags, LogDefault};
use crate::data_dir::DataOption;
use crate::remote::SidecarOption;
use clap::{Args, Parser, Subcommand, ValueEnum};
use redflow_contract::flow::Profile;
use std::path::PathBuf;

/// Checks and runs the agents in Node-RED flows.
#[derive(Debug, Parser)]
#[command(name = "redflow", version, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// The configuration file (TOML); `redflow config show` lists what it may say. Without it the one in
    /// REDFLOW_CONFIG
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// What is logged to stderr, such as `info` or `redflow_models=debug`. Without it REDFLOW_LOG, else `warn`, or
    /// `info` for `serve`
    #[arg(long, value_name = "FILTER", global = true)]
    pub(crate) log: Option<String>,
}

const AFTER_HELP: &str = "Exit codes: 0 well, 1 the flow or the run is at fault, 2 the input cannot be used, \
3 a run waits for a person or to be resumed.\nEvery code in a message has a page: redflow explain CODE";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check flows: every wire, every binding, every property, all problems at once
    Check(CheckOptions),
    /// Run an agent, or fire an inject node, and watch the iterations
    Run(RunOptions),
    /// Make Node-RED's array of flow files of any shape, such as Redflow's exports
    Import(ImportOptions),
    /// Write a flow as Redflow's exports, one for each tab, or as Node-RED's array
    Export(ExportOptions),
    /// Fetch the flow that a Node-RED has, deploy one there, or see what differs
    Flows(FlowsOptions),
    /// Run a flow as a service: its API, its events, its injects
    Serve(ServeOptions),
    /// List the runs that are kept, look into one, answer it, end it, remove old ones
    Runs(RunsOptions),
    /// Try a model: is it there, does it take the key, does it answer as it should?
    Models(ModelsOptions),
    /// Prove that a journal is what the machine does with those facts
    Replay(ReplayOptions),
    /// Copy all runs into one file, also while they are driven
    Backup(BackupOptions),
    /// Print the token of the sidecar, make another one, or let a browser in
    Token(TokenOptions),
    /// Bring credentials here from Node-RED, or back
    Credentials(CredentialsOptions),
    /// Show every setting and where it comes from
    Config(ConfigOptions),
    /// Explain a code, or list them all
    Explain(ExplainOptions),
    /// Print a JSON Schema, or list them all
    Schema(SchemaOptions),
    /// Write the TypeScript types into a folder
    Types(TypesOptions),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProfileName {
    /// Agent Core's schema to the letter
    Strict,
    /// What a fresh Redflow node lacks takes its default, each with a warning
    Redflow,
}

impl ProfileName {
    /// As it is written everywhere.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Redflow => "redflow",
        }
    }
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Strict => Self::Strict,
            ProfileName::Redflow => Self::Redflow,
        }
    }
}

pub(crate) const PROFILE_HELP: &str =
    "How strictly agents are read. Without it REDFLOW_PROFILE or the configuration says so, else `strict`";

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Flow files: Node-RED or Redflow exports; `-` for standard input
    #[arg(required = true, value_name = "FLOW")]
    pub(crate) flows: Vec<PathBuf>,
    #[arg(long, value_enum, help = PROFILE_HELP)]
    pub(crate) profile: Option<ProfileName>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Let warnings fail the check too
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    #[command(flatten)]
    pub(crate) sidecar: SidecarOption,
}

const AFTER_RUN_HELP: &str = "\
Examples:
  redflow run flow.json --input '\"What is 2 + 2?\"'
  redflow run flow.json --ephemeral            keep nothing
  redflow run --resume all                     go on with everything that was interrupted
  redflow run --url http://127.0.0.1:1881 --node agent --input '\"Hello\"'

Ctrl-C cancels the runs, also those of a sidecar. SIGTERM lets them finish the step they are at, for at most 10 s, \
and leaves them to be resumed; a sidecar's go on without you. Either one again leaves at once.

Exit code: that of the agent that was asked for. Where that is 0, or none was asked for, the worst of all runs \
counts: 3 waits for a person or was suspended, 2 refused or cannot go on, 1 failed.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_RUN_HELP)]
pub(crate) struct RunOptions {
    /// The flow file; `-` for standard input. With --resume it may be left out: each run then goes on with the
    /// file its flow was read from. If that is gone, it goes on by its recorded plan, and its result is printed
    /// but not sent on. With a sidecar it is left out: the sidecar has its flow
    #[arg(value_name = "FLOW", conflicts_with = "url")]
    pub(crate) flow: Option<PathBuf>,
    /// Go on with a run that was interrupted or has been answered; `all` for every one, or for every one of the
    /// flow if one is named
    #[arg(long, value_name = "RUN", conflicts_with_all = ["node", "input", "ephemeral", "url"])]
    pub(crate) resume: Option<String>,
    /// The agent to run or the inject node to fire; may be left out if there is one agent, or one that an inject
    /// node is wired to
    #[arg(long, value_name = "ID")]
    pub(crate) node: Option<String>,
    /// The payload, as JSON: a value, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) input: Option<String>,
    #[arg(long, value_enum, conflicts_with = "url", help = PROFILE_HELP)]
    pub(crate) profile: Option<ProfileName>,
    /// Print the message that left port 3, as one JSON object; if the run is not over, its id and where it is.
    /// With --resume all one object per run
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataOption,
    /// Keep nothing: if the process ends, so do its runs
    #[arg(long, conflicts_with_all = ["data", "url"])]
    pub(crate) ephemeral: bool,
    /// Also write the run's journal to a new file, when the run has come to rest
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) journal: Option<PathBuf>,
    /// Write what was counted and timed to a file when the command ends, in Prometheus' text format
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) metrics: Option<PathBuf>,
    /// Do not show the timeline
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) sidecar: SidecarOption,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayOptions {
    /// A journal file, or the id of a run that is kept
    #[arg(value_name = "JOURNAL|RUN", required_unless_present = "all")]
    pub(crate) journal: Option<PathBuf>,
    /// Every run that is kept
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
    /// The folder; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

impl Arguments {
    /// What of it settings come from too.
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
                logs: if options.quiet { LogDefault::Quiet } else { LogDefault::BesideTimeline },
                ..flags
            },
            Command::Serve(options)
            | Command::Config(ConfigOptions {
                command: ConfigCommand::Show(ShowOptions { serve: options, .. }),
            }) => Flags {
                listen: options.listen.clone(),
                flows: options.flows.clone(),
                data: options.data.data.clone(),
                profile: profile(options.profile),
                redflow_ui: options.redflow_ui.clone(),
                node_red: options.node_red.clone(),
                logs: LogDefault::Service,
                ..flags
            },
            Command::Runs(options) => {
                Flags { data: options.data().data, url: options.sidecar().url, ..flags }
            }
            Command::Replay(options) => {
                Flags { data: options.data.data.clone(), url: options.sidecar.url.clone(), ..flags }
            }
            Command::Token(options) => Flags { data: options.data().data, url: options.url.clone(), ..flags },
            Command::Backup(options) => Flags { data: options.data.data.clone(), ..flags },
            Command::Credentials(options) => {
                let place = options.command.place();
                Flags { data: place.data.data.clone(), flows: place.flows.clone(), ..flags }
            }
            Command::Flows(options) => Flags { node_red: options.node_red().cloned(), ..flags },
            Command::Models(_) | Command::Explain(_) | Command::Schema(_) | Command::Types(_) => flags,
            Command::Import(_) | Command::Export(_) | Command::Completions { .. } => flags,
        }
    }
}
