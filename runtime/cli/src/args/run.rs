//! The arguments of `redflow run`.

use super::shared::{DataOption, PROFILE_HELP, PrivateOption, ProfileName, SidecarOption};
use clap::Args;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  redflow run flow.json --input '\"What is 2 + 2?\"'
  redflow run flow.json --ephemeral            store nothing
  redflow run --resume all                     resume all interrupted runs
  redflow run --url http://127.0.0.1:1881 --node agent --input '\"Hello\"'

Ctrl-C cancels the runs, also those of a sidecar. SIGTERM lets them finish their current step, for at most 10 s, and \
leaves them to be resumed; a sidecar continues its runs. The same signal again exits at once.

Exit code: that of the requested agent. If it is 0, or no agent was requested, the worst of all runs: 3 a run waits for \
a person or was suspended, 2 a run was refused or cannot continue, 1 a run failed.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RunOptions {
    /// The flow file; `-` for standard input. Optional with --resume: each run then continues with the file
    /// its flow was read from. Without that file, it continues with its recorded plan, and its result is
    /// printed but not sent on. Not allowed with a sidecar, which has its own flow
    #[arg(value_name = "FLOW", conflicts_with = "url")]
    pub(crate) flow: Option<PathBuf>,
    /// Resume a run that was interrupted or has been answered; `all` for all such runs, or for those of FLOW
    #[arg(long, value_name = "RUN", conflicts_with_all = ["node", "input", "image", "ephemeral", "url"])]
    pub(crate) resume: Option<String>,
    /// The agent to run or the inject node to fire. Optional if the flow has one agent, or one agent with an
    /// inject node
    #[arg(long, value_name = "ID")]
    pub(crate) node: Option<String>,
    /// The payload as JSON: a value, @FILE, or - for standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) input: Option<String>,
    /// An image for the agent, as `msg.images`: a PNG, JPEG, GIF or WebP file, or an https address. At most four
    #[arg(long, value_name = "FILE", requires = "input")]
    pub(crate) image: Vec<String>,
    #[arg(long, value_enum, conflicts_with = "url", help = PROFILE_HELP)]
    pub(crate) profile: Option<ProfileName>,
    /// Print the message of the result port as one JSON object, or the id and the status of a run that has not ended.
    /// With --resume all, print one object per run
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataOption,
    /// Store nothing: the runs end with the process
    #[arg(long, conflicts_with_all = ["data", "url"])]
    pub(crate) ephemeral: bool,
    /// Also write the journal of the run to a new file, when the run has stopped
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) journal: Option<PathBuf>,
    /// Write metrics to a file when the command ends, in the text format of Prometheus
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) metrics: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) private: PrivateOption,
    /// Hide the timeline
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) sidecar: SidecarOption,
}
