//! What can be typed after `runs`, and after `backup`.

use crate::data_dir::{DATA_HELP, DataOption};
use crate::remote::{SidecarOption, TOKEN_FILE_HELP, URL_HELP};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use redflow_contract::run::RunStatus;
use std::path::PathBuf;
use std::time::Duration;

/// The most characters of a reason or an error that a person gives.
const MOST_WORDS: usize = 1000;

const AFTER_HELP: &str = "\
Examples:
  redflow runs                                     the newest 50
  redflow runs --status waiting                    those that wait for a person
  redflow runs show RUN                            what it did, step by step
  redflow runs resolve RUN --done --result '{\"id\": 17}'
  redflow runs prune --older-than 30d --keep 1000
  redflow runs events RUN --follow --url http://127.0.0.1:1881

With REDFLOW_URL set, runs are those of that sidecar, unless --data is given.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RunsOptions {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    #[command(flatten)]
    pub(crate) list: ListOptions,
    #[arg(long, value_name = "DIR", global = true, help = DATA_HELP)]
    data: Option<PathBuf>,
    #[arg(long, value_name = "URL", global = true, help = URL_HELP)]
    url: Option<String>,
    #[arg(long, value_name = "FILE", global = true, help = TOKEN_FILE_HELP)]
    token_file: Option<PathBuf>,
}

impl RunsOptions {
    /// Which sidecar, wherever among the words it was named.
    pub(crate) fn sidecar(&self) -> SidecarOption {
        SidecarOption { url: self.url.clone(), token_file: self.token_file.clone() }
    }

    /// Which data directory, wherever among the words it was named.
    pub(crate) fn data(&self) -> DataOption {
        DataOption { data: self.data.clone() }
    }

    /// An option of a list that stands before a command, where it would mean nothing.
    pub(crate) fn misplaced(&self) -> Option<String> {
        let ListOptions { status, agent, limit, json } = &self.list;
        let command = self.command.as_ref()?.name();
        let option = match (status.as_slice(), agent, limit, json) {
            ([_, ..], ..) => "--status <STATUS>",
            (_, Some(_), ..) => "--agent <NODE>",
            (_, _, Some(_), _) => "--limit <N>",
            (.., true) => "--json",
            _ => return None,
        };
        Some(format!("the subcommand '{command}' cannot be used with '{option}' before it"))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, the newest first; the same as `redflow runs`
    List(ListOptions),
    /// Show a run: where it is, what it did, and its result
    Show(LookOptions),
    /// Print the events of a run, one per line
    Events(EventsOptions),
    /// Print the journal of a run, as `redflow replay` reads it
    Export(ExportOptions),
    /// End a run that is not over
    Cancel(CancelOptions),
    /// Say what happened to the call a run waits for
    Resolve(ResolveOptions),
    /// Remove runs that are over and for which all that is given holds, or that are damaged
    Prune(PruneOptions),
}

impl RunsCommand {
    fn name(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Show(_) => "show",
            Self::Events(_) => "events",
            Self::Export(_) => "export",
            Self::Cancel(_) => "cancel",
            Self::Resolve(_) => "resolve",
            Self::Prune(_) => "prune",
        }
    }
}

/// How many runs are listed if nobody says how many.
pub(crate) const LISTED: u32 = 50;

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// Only runs of this status; may be given several times
    #[arg(long, value_name = "STATUS", value_enum)]
    pub(crate) status: Vec<StatusName>,
    /// Only runs of the agent with this node id
    #[arg(long, value_name = "NODE")]
    pub(crate) agent: Option<String>,
    /// How many at most; 50 if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Print one JSON object per run instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum StatusName {
    /// A process drives it
    Running,
    /// It is not over and nobody drives it
    Interrupted,
    /// It waits until someone says what happened to a call
    Waiting,
    /// It ended with a final answer
    Completed,
    /// A stop condition ended it
    Stopped,
    /// It ended with an error
    Failed,
    /// What is stored of it is not what was written
    Damaged,
}

impl From<StatusName> for RunStatus {
    fn from(name: StatusName) -> Self {
        match name {
            StatusName::Running => Self::Running,
            StatusName::Interrupted => Self::Interrupted,
            StatusName::Waiting => Self::Waiting,
            StatusName::Completed => Self::Completed,
            StatusName::Stopped => Self::Stopped,
            StatusName::Failed => Self::Failed,
            StatusName::Damaged => Self::Damaged,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct LookOptions {
    /// The run's id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EventsOptions {
    #[command(flatten)]
    pub(crate) look: LookOptions,
    /// Go on until the run is over; with a sidecar only
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// The run's id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

#[derive(Debug, Args)]
pub(crate) struct CancelOptions {
    /// The run's id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Why, for whoever reads it later
    #[arg(long, value_name = "TEXT", default_value = "cancelled by hand", value_parser = words)]
    pub(crate) reason: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("outcome").args(["done", "not_done"]).required(true)))]
pub(crate) struct ResolveOptions {
    /// The run's id
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The call happened
    #[arg(long)]
    pub(crate) done: bool,
    /// What it gave, as JSON: a value, @FILE, or - for standard input; null if left out
    #[arg(long, value_name = "JSON", allow_hyphen_values = true, conflicts_with = "not_done")]
    pub(crate) result: Option<String>,
    /// The call did not happen; the model is told so
    #[arg(long)]
    pub(crate) not_done: bool,
    /// Why it did not happen, for the model
    #[arg(long, value_name = "TEXT", conflicts_with = "done", value_parser = words)]
    pub(crate) error: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").args(["older_than", "keep", "damaged"]).required(true).multiple(true)))]
pub(crate) struct PruneOptions {
    /// Those that ended longer ago than this: 90s, 15m, 12h, 30d, 8w
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) older_than: Option<Duration>,
    /// All but the newest N
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    /// Also those whose result has not left for good; it is lost then
    #[arg(long)]
    pub(crate) undelivered: bool,
    /// Those that are not stored as they were written, whatever their age; without --older-than and --keep only
    /// those
    #[arg(long)]
    pub(crate) damaged: bool,
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
To restore a copy, stop every redflow that uses the data directory, put the copy there as redflow.db, and remove \
redflow.db-wal and redflow.db-shm. Or put it into an empty directory as redflow.db, and name that with --data.

A restored copy takes every run back to where it was when the copy was made: calls that were made since may be \
made again.")]
pub(crate) struct BackupOptions {
    /// The new file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataOption,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// A number and its unit: seconds, minutes, hours, days or weeks.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "give a number and a unit: 90s, 15m, 12h, 30d or 8w".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let number = &text[..text.len() - unit.len_utf8()];
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let total = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    total.map(Duration::from_secs).ok_or_else(|| "that is longer than can be counted".to_owned())
}

/// A few words for a journal.
fn words(text: &str) -> Result<String, String> {
    if text.chars().count() > MOST_WORDS {
        return Err(format!("at most {MOST_WORDS} characters"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{duration, words};

    #[test]
    fn times_are_a_number_and_a_unit() {
        let rows =
            [("0s", 0), ("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000), ("8w", 4_838_400)];
        for (text, seconds) in rows {
            assert_eq!(duration(text).map(|time| time.as_secs()), Ok(seconds), "{text}");
        }
        for text in
            ["", "30", "d", "-1d", "+1d", "1.5h", "1 d", "30days", "1y", "∞d", "1µ", "99999999999999999999w"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(duration("18446744073709551615w").is_err(), "it overflows");
    }

    #[test]
    fn reasons_are_short() {
        assert!(words(&"ä".repeat(1000)).is_ok());
        assert!(words(&"a".repeat(1001)).is_err());
    }
}
