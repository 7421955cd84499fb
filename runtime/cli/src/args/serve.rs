//! The arguments of `redflow serve`, `redflow config` and `redflow token`.

use super::shared::{DATA_HELP, DataOption, PROFILE_HELP, PrivateOption, ProfileName};
use clap::{Args, Subcommand, ValueEnum};
use redflow_contract::api::Scope;
use std::path::PathBuf;

const AFTER_SERVE_HELP: &str = "\
Examples:
  redflow serve                                  the last flow, at 127.0.0.1:1881
  redflow serve --flows flows.json               that file; deploys write into it
  redflow serve --listen 127.0.0.1:0             any free port; the address is printed
  redflow serve --redflow-ui http://localhost:5173 --listen 127.0.0.1:1880
                                                 for the Redflow UI, instead of Node-RED
  redflow serve --node-red http://127.0.0.1:1880 check the flows deployed in that Node-RED
  redflow serve --config /etc/redflow.toml       limits, host names, origins and more
  redflow config show                            the settings and their origins

--redflow-ui is for the Redflow UI, which sends no token. Every page of that origin in a browser on this machine, and \
every program on this machine, can then control the flow. It can also send the keys of nodes to any address, because a \
deploy sets the address a node sends its key to. The UI sends some credentials to http://localhost:1880 whatever address \
it was built for, so listen on 127.0.0.1:1880.

--node-red is for a Node-RED without the palette of Redflow. If it requires users to log in, set NODE_RED_TOKEN to an \
access token. Requests of the Redflow UI are forwarded to it with their own Authorization header, never with that token.

Other requests need the token that `redflow token` prints. `redflow token --browser` prints an address that signs in one \
browser.

After SIGTERM or Ctrl-C, runs finish their current step; the next start resumes them. The same signal again exits at \
once.";

#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_SERVE_HELP)]
pub(crate) struct ServeOptions {
    /// The flow file: read at the start, written by deploys. Default: REDFLOW_FLOWS or the configuration,
    /// else flows.json in the data directory
    #[arg(long, value_name = "FILE")]
    pub(crate) flows: Option<PathBuf>,
    /// The IP address and the port to listen on. Default: REDFLOW_LISTEN or the configuration, else
    /// 127.0.0.1:1881
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// The origin of the Redflow UI, such as http://localhost:5173. Its pages need no token for the routes
    /// they use, so the sidecar must listen on this machine only. The default of --profile becomes `redflow`.
    /// Default: REDFLOW_UI or the configuration, else none
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) redflow_ui: Option<String>,
    /// The address of a Node-RED without the bridge, such as http://127.0.0.1:1880. The sidecar checks every
    /// flow deployed there and runs none of it; see /api/beside. With --redflow-ui, it forwards Admin API
    /// requests and unknown paths there. Default: REDFLOW_NODE_RED or the configuration, else none
    #[arg(long, value_name = "URL")]
    pub(crate) node_red: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataOption,
    #[arg(long, value_enum, help = PROFILE_HELP)]
    pub(crate) profile: Option<ProfileName>,
    #[command(flatten)]
    pub(crate) private: PrivateOption,
    /// Store no runs, no events and no deploys: they end with the process
    #[arg(long)]
    pub(crate) ephemeral: bool,
    /// Stop, as with SIGTERM, when standard input ends. A parent process uses this to leave no orphan. The
    /// input is ignored
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
    /// Print every key with its value and its origin: a flag, the environment, the file, or the default
    Show(ShowConfigOptions),
}

const AFTER_SHOW_HELP: &str = "\
Flags override the environment, which overrides the file, which overrides the defaults. The flags are those of `redflow \
serve`, to see their effect. Secrets are not printed.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_SHOW_HELP)]
pub(crate) struct ShowConfigOptions {
    #[command(flatten)]
    pub(crate) serve: ServeOptions,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const AFTER_TOKEN_HELP: &str = "\
Examples:
  redflow token                                  the token; it is created if there is none
  redflow token --rotate                         a new one; the old one stops working
  redflow token --browser                        an address that signs in one browser, once
  redflow token add grafana --scope read         one more token; it is printed only once
  printf 'header = \"Authorization: Bearer %s\"' \"$(redflow token)\" |
    curl -K - http://127.0.0.1:1881/api/runs     a request without the token on a command line

A running sidecar notices changes within a second. REDFLOW_TOKEN overrides the file.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_TOKEN_HELP)]
pub(crate) struct TokenOptions {
    #[command(subcommand)]
    pub(crate) command: Option<TokenCommand>,
    /// Create a new token; the old one stops working
    #[arg(long)]
    pub(crate) rotate: bool,
    /// Ask the running sidecar for an address that signs in one browser, once
    #[arg(long, conflicts_with = "rotate")]
    pub(crate) browser: bool,
    /// The sidecar to ask. Default: REDFLOW_URL, else the address that `serve` would listen on
    #[arg(long, value_name = "URL", requires = "browser")]
    pub(crate) url: Option<String>,
    #[arg(long, value_name = "DIR", global = true, help = DATA_HELP)]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create one more token with fewer rights; it is printed only once
    Add(AddTokenOptions),
    /// List the added tokens by name
    List,
    /// Remove an added token; it stops working
    Remove {
        /// The name of the token
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddTokenOptions {
    /// The name of the token
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What the token allows; separate several scopes with commas
    #[arg(long, value_name = "SCOPE", value_enum, value_delimiter = ',', required = true)]
    pub(crate) scope: Vec<ScopeName>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ScopeName {
    /// Read flows, runs, events and metrics
    Read,
    /// Start, cancel and answer runs
    Run,
    /// Change the flow
    Deploy,
    /// Everything, and sign in browsers
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
