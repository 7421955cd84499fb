//! Options that several commands share.

use clap::{Args, ValueEnum};
use redflow_contract::flow::Profile;
use std::path::PathBuf;

pub(crate) const DATA_HELP: &str = "\
The data directory, which stores runs and tokens. Default: the one in REDFLOW_DATA or in the configuration, else \
`redflow` in the user's data folder: ~/.local/share (or $XDG_DATA_HOME), on macOS ~/Library/Application Support, on Windows %LOCALAPPDATA%";

pub(crate) const URL_HELP: &str = "\
Use the sidecar at this address, such as http://127.0.0.1:1881, instead of the data directory. Default: the one in \
REDFLOW_URL, unless --data or a flow is given";

pub(crate) const TOKEN_FILE_HELP: &str = "\
The file with the sidecar's token. Default: the token in REDFLOW_TOKEN, else, for a sidecar on this machine, the one in \
the data directory";

pub(crate) const PROFILE_HELP: &str =
    "How strictly agents are checked. Default: REDFLOW_PROFILE or the configuration, else `strict`";

#[derive(Debug, Clone, Args)]
pub(crate) struct DataOption {
    #[arg(long, value_name = "DIR", help = DATA_HELP)]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct SidecarOption {
    #[arg(long, value_name = "URL", help = URL_HELP)]
    pub(crate) url: Option<String>,
    #[arg(long, value_name = "FILE", help = TOKEN_FILE_HELP)]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct PrivateOption {
    /// A host of your own network that tools may reach, such as nas.lan:8123, 192.168.1.5:80 or 10.0.0.0/8:443; can be
    /// repeated. Replaces the list of the configuration. Default: REDFLOW_EGRESS_PRIVATE, separated by commas, or the
    /// configuration, else none
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) allow_private: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProfileName {
    /// Require every property that the schema of Agent Core requires
    Strict,
    /// Give properties that a new Redflow node lacks their defaults, with a warning for each
    Redflow,
}

impl ProfileName {
    /// The value of the flag, the variable and the key.
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
