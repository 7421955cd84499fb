//! The arguments of `redflow mcp`.

use super::mcp_serve::McpServeOptions;
use super::shared::{DATA_HELP, SidecarOption, TOKEN_FILE_HELP, URL_HELP};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  redflow mcp add files --read ~/notes -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 ~/notes
  redflow mcp add tracker --address https://mcp.example.com/mcp --oauth
  redflow mcp login tracker                  sign in once, in a browser
  redflow mcp list                           the servers and their states
  redflow mcp show files                     the tools of a server, and what has changed
  redflow mcp call files list_directory '{\"path\": \".\"}'
  redflow mcp pin files                      approve changed definitions of tools

With REDFLOW_URL set, the commands use that sidecar, unless --data is given. `add` and `remove` always change the data
directory, and a running sidecar follows within seconds.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct McpOptions {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
    #[arg(long, value_name = "DIR", global = true, help = DATA_HELP)]
    pub(crate) data: Option<PathBuf>,
    #[arg(long, value_name = "URL", global = true, help = URL_HELP)]
    url: Option<String>,
    #[arg(long, value_name = "FILE", global = true, help = TOKEN_FILE_HELP)]
    token_file: Option<PathBuf>,
    /// A host of your own network that servers may have, such as nas.lan:8123; can be repeated. Replaces the list of the
    /// configuration
    #[arg(long, value_name = "HOST:PORT", global = true)]
    pub(crate) allow_private: Vec<String>,
}

impl McpOptions {
    /// The sidecar options, which can be anywhere on the command line.
    pub(crate) fn sidecar(&self) -> SidecarOption {
        SidecarOption { url: self.url.clone(), token_file: self.token_file.clone() }
    }

    /// The flow file of `serve`.
    pub(crate) fn flows(&self) -> Option<PathBuf> {
        match &self.command {
            McpCommand::Serve(options) => options.flows.clone(),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Be an MCP server on standard input and output, for a client that starts programs
    #[command(after_help = AFTER_SERVE_HELP)]
    Serve(McpServeOptions),
    /// Add a server: a program on this machine, or an address
    #[command(after_help = AFTER_ADD_HELP)]
    Add(Box<AddServerOptions>),
    /// List the servers and their states
    #[command(after_help = "Example:\n  redflow mcp list --url http://127.0.0.1:1881")]
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Connect to a server, and show its tools, resources and prompts
    #[command(after_help = "Example:\n  redflow mcp show files")]
    Show(NamedServer),
    /// Connect to a server, and list its tools with their effect classes
    #[command(after_help = "Example:\n  redflow mcp tools files --json")]
    Tools(NamedServer),
    /// Call a tool of a server once, outside a run
    #[command(after_help = "\
Examples:
  redflow mcp call files list_directory '{\"path\": \".\"}'
  echo '{\"path\": \".\"}' | redflow mcp call files list_directory -")]
    Call(CallServerOptions),
    /// Sign in at the issuer of a server, in a browser
    #[command(after_help = "\
Examples:
  redflow mcp login tracker
  redflow mcp login tracker --url http://127.0.0.1:1881    the sidecar keeps the tokens")]
    Login {
        /// The name of the server
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove the tokens of a server
    #[command(after_help = "Example:\n  redflow mcp logout tracker")]
    Logout {
        /// The name of the server
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Show what is different in the tools of a server, and approve it
    #[command(after_help = "Example:\n  redflow mcp pin files read_file")]
    Pin(PinOptions),
    /// Remove a server that was added, with its pins and tokens
    #[command(after_help = "Example:\n  redflow mcp remove files")]
    Remove {
        /// The name of the server
        #[arg(value_name = "NAME")]
        name: String,
    },
}

const AFTER_SERVE_HELP: &str = "\
Examples:
  redflow mcp serve                              the agents and flow tools of the sidecar that runs with this data
                                                 directory, also of its Node-REDs; without one, of the last flow
  redflow mcp serve --flows flows.json           the agents and flow tools of that file, in a sidecar of its own
  redflow mcp serve --url http://127.0.0.1:1881  the agents and flow tools of another sidecar

It ends when the client closes standard input. Notes and the log go to standard error. Only one process without a
listener can use a data directory: for several clients at once, start `redflow serve` first.";

const AFTER_ADD_HELP: &str = "\
Examples:
  redflow mcp add files --read ~/notes -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 ~/notes
  redflow mcp add github --secret GITHUB_TOKEN --effect 'get_*=read' -- npx -y @example/github-server@1.4.0
  redflow mcp add tracker --address https://mcp.example.com/mcp --bearer-env TRACKER_TOKEN
  redflow mcp add tracker --address https://mcp.example.com/mcp --oauth --scope issues.read

A program is started without a shell, with PATH and what --env and --secret name. On Linux it can use only its own
folder, the system's programs and what --read and --write name. Secrets stay in the environment of the sidecar: name
their variables, never their values.";

#[derive(Debug, Args)]
pub(crate) struct AddServerOptions {
    /// The name: letters, digits, `_` and `-`. The ids of its tools are mcp.NAME.TOOL
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) program: ProgramOptions,
    #[command(flatten)]
    pub(crate) remote: AddressOptions,
    /// The effect class of tools: a name or pattern, and `read`, `idempotent` or `at_most_once`; can be repeated.
    /// Default: at_most_once
    #[arg(long, value_name = "PATTERN=CLASS")]
    pub(crate) effect: Vec<String>,
    /// Use only these tools: a name or a pattern with `*`; can be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) include: Vec<String>,
    /// Do not use these tools: a name or a pattern with `*`; can be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Which definitions of tools count: the first ones, or only approved ones
    #[arg(long, value_name = "TRUST", value_parser = PossibleValuesParser::new(["first-use", "pinned"]))]
    pub(crate) trust: Option<String>,
    /// The longest time of a call, in milliseconds. Default: 60000
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// The most bytes of a result. Default: 131072
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_result_bytes: Option<u64>,
    /// Whether the resources of the server are tools too
    #[arg(long, value_name = "BOOL")]
    pub(crate) resources: Option<bool>,
    /// Replace a server that was added with this name
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProgramOptions {
    /// A variable of the program's environment; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A variable of the sidecar's environment that the program gets; its value counts as a secret; can be repeated
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) secret: Vec<String>,
    /// A file or folder that the program may read; can be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,
    /// A file or folder that the program may read and write; can be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,
    /// Whether the program may use the network. Default: any
    #[arg(long, value_name = "NETWORK", value_parser = PossibleValuesParser::new(["any", "none"]))]
    pub(crate) network: Option<String>,
    /// The program and its arguments, after `--`
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AddressOptions {
    /// The address of a server over streamable HTTP
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "env", "secret", "read", "write", "network"])]
    pub(crate) address: Option<String>,
    /// The variable of the sidecar's environment with a bearer token
    #[arg(long, value_name = "VARIABLE", requires = "address", conflicts_with_all = ["header", "oauth"])]
    pub(crate) bearer_env: Option<String>,
    /// A header, and the variable of the sidecar's environment with its value
    #[arg(long, value_name = "NAME=VARIABLE", requires = "address", conflicts_with = "oauth")]
    pub(crate) header: Option<String>,
    /// Sign in with OAuth: afterwards use `redflow mcp login NAME`
    #[arg(long, requires = "address")]
    pub(crate) oauth: bool,
    /// The id of the OAuth client. Default: the issuer registers one
    #[arg(long, value_name = "ID", requires = "oauth")]
    pub(crate) client_id: Option<String>,
    /// The variable of the sidecar's environment with the secret of the OAuth client
    #[arg(long, value_name = "VARIABLE", requires = "oauth")]
    pub(crate) client_secret_env: Option<String>,
    /// An OAuth scope; can be repeated. Default: those that the server asks for
    #[arg(long, value_name = "SCOPE", requires = "oauth")]
    pub(crate) scope: Vec<String>,
    /// How the sidecar gets tokens. Default: authorization_code, by a person
    #[arg(long, value_name = "GRANT", requires = "oauth", value_parser = PossibleValuesParser::new(["authorization_code", "client_credentials"]))]
    pub(crate) grant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NamedServer {
    /// The name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallServerOptions {
    /// The name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The name of the tool, as the server calls it
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// The input as a JSON object, `@FILE`, or `-` for standard input
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(crate) input: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PinOptions {
    /// The name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The tools. Default: all that wait for an approval
    #[arg(value_name = "TOOL")]
    pub(crate) tools: Vec<String>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `redflow confine`, which the program uses for itself.
#[derive(Debug, Args)]
pub(crate) struct ConfineOptions {
    /// Take all steps with namespaces, but start nothing
    #[arg(long, exclusive = true)]
    pub(crate) check: bool,
    /// Give the program namespaces of its own
    #[arg(long)]
    pub(crate) namespaces: bool,
    /// The program's own folder
    #[arg(long, value_name = "DIR", required_unless_present = "check")]
    pub(crate) folder: Option<PathBuf>,
    /// A file or folder that it may read; can be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,
    /// A file or folder that it may read and write; can be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,
    /// Whether it may use the network
    #[arg(long, value_name = "NETWORK", value_parser = PossibleValuesParser::new(["any", "none"]))]
    pub(crate) network: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "check", value_name = "PROGRAM")]
    pub(crate) command: Vec<std::ffi::OsString>,
}
