//! What can be typed after `serve`, `config` and `token`.

use crate::args::{PROFILE_HELP, ProfileName};
use crate::data_dir::{DATA_HELP, DataOption};
use clap::{Args, Subcommand, ValueEnum};
use redflow_contract::api::Scope;
use std::path::PathBuf;

const AFTER_SERVE_HELP: &str = "\
Examples:
  redflow serve                                  the flow it had when it stopped, at 127.0.0.1:1881
  redflow serve --flows flows.json               that file; deployments are written into it
  redflow serve --listen 127.0.0.1:0             any free port; the address is printed
  redflow serve --redflow-ui http://localhost:5173 --listen 127.0.0.1:1880
                                                 for the Redflow UI, in the place of Node-RED
  redflow serve --node-red http://127.0.0.1:1880 check what is deployed in that Node-RED
  redflow serve --config /etc/redflow.toml       limits, host names, origins and more
  redflow config show                            what would count, and where it comes from

--redflow-ui is for the Redflow UI, which sends no token: whoever can open a page of that origin in a browser on this \
machine, and every program that runs here, controls the flow, and can have the keys of its nodes sent to any address: who \
deploys says where a node sends its key. That UI sends some credentials to http://localhost:1880, \
whatever address it was built for: listen at 127.0.0.1:1880.

--node-red is for a Node-RED without our palette module. Where it asks for users, give an access token of it in \
NODE_RED_TOKEN. What pages of the Redflow UI ask of it goes on with their own Authorization, never with that token.

Other requests need the token that `redflow token` prints. `redflow token --browser` prints an address that lets one browser \
in.

SIGTERM and Ctrl-C let runs finish the step they are at and leave them to be resumed; the next start goes on with \
them. Either one again leaves at once.";

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_SERVE_HELP)]
pub(crate) struct ServeOptions {
    /// The flow file: read at the start, and written by deployments. Without it REDFLOW_FLOWS or the configuration
    /// says so, else flows.json in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) flows: Option<PathBuf>,
    /// Where to listen: an IP address and a port. Without it REDFLOW_LISTEN or the configuration says so, else
    /// 127.0.0.1:1881
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// The one origin whose pages come in without a token, such as http://localhost:5173: to the routes that the
    /// Redflow UI uses, and only where this machine alone can reach the sidecar. The profile is `redflow` then, unless
    /// one says otherwise. Without it REDFLOW_UI or the configuration says so, else there is none
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) redflow_ui: Option<String>,
    /// A Node-RED without the bridge to stand beside, such as http://127.0.0.1:1880: every flow that is deployed there is
    /// checked, and none of it runs here; see /api/beside. With --redflow-ui its Admin API and what is not known here go
    /// on to it. Without it REDFLOW_NODE_RED or the configuration says so, else there is none
    #[arg(long, value_name = "URL")]
    pub(crate) node_red: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataOption,
    #[arg(long, value_enum, help = PROFILE_HELP)]
    pub(crate) profile: Option<ProfileName>,
    /// Keep no runs, no events and no deployments: if the process ends, so do they
    #[arg(long)]
    pub(crate) ephemeral: bool,
    /// Stop, as SIGTERM does, when standard input ends: for a parent process that must leave no orphan. What comes in
    /// there is not read
    #[arg(long)]
    pub(crate) stop_with_stdin: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigOptions {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every key, its value, and where that comes from: a flag, the environment, the file, or the default
    Show(ShowOptions),
}

const AFTER_SHOW_HELP: &str = "\
A flag counts before the environment, that before the file, and that before the default. Flags are those of `redflow \
serve`, to see what they would give. Secrets are not shown.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_SHOW_HELP)]
pub(crate) struct ShowOptions {
    #[command(flatten)]
    pub(crate) serve: ServeOptions,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const AFTER_TOKEN_HELP: &str = "\
Examples:
  redflow token                                  the token; it is made if there is none
  redflow token --rotate                         another one; the old one works no more
  redflow token --browser                        an address that lets one browser in, once
  redflow token add grafana --scope read         a further token; it is shown this once
  printf 'header = \"Authorization: Bearer %s\"' \"$(redflow token)\" |
    curl -K - http://127.0.0.1:1881/api/runs     a request that does not show it on a command line

A sidecar that runs takes up changes within a second. REDFLOW_TOKEN counts instead of the file.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_TOKEN_HELP)]
pub(crate) struct TokenOptions {
    #[command(subcommand)]
    pub(crate) command: Option<TokenCommand>,
    /// Make another token; the old one works no more
    #[arg(long)]
    pub(crate) rotate: bool,
    /// Ask the running sidecar for an address that lets one browser in, once
    #[arg(long, conflicts_with = "rotate")]
    pub(crate) browser: bool,
    /// The sidecar to ask. Without it REDFLOW_URL, else the address `serve` would listen at
    #[arg(long, value_name = "URL", requires = "browser")]
    pub(crate) url: Option<String>,
    #[arg(long, value_name = "DIR", global = true, help = DATA_HELP)]
    data: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl TokenOptions {
    /// Which data directory, wherever among the words it was named.
    pub(crate) fn data(&self) -> DataOption {
        DataOption { data: self.data.clone() }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a further token that may do less; it is shown this once
    Add(AddOptions),
    /// List the further tokens by their names
    List,
    /// Make a further token worthless
    Remove {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddOptions {
    /// What it is called
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What it may do; several are separated by commas
    #[arg(long, value_name = "SCOPE", value_enum, value_delimiter = ',', required = true)]
    pub(crate) scope: Vec<ScopeName>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ScopeName {
    /// Look at flows, runs, events and metrics
    Read,
    /// Start, cancel and answer runs
    Run,
    /// Change the flow
    Deploy,
    /// Everything, and let browsers in
    Admin,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Read => Self::Read,
            ScopeName::Run => Self::Run,
            ScopeName::Deploy => Self::Deploy,
            ScopeName::Admin => Self::Admin,
        }
    }
}
