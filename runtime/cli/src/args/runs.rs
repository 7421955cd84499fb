//! The arguments of `redflow runs` and `redflow backup`.

use super::shared::{DATA_HELP, DataOption, SidecarOption, TOKEN_FILE_HELP, URL_HELP};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use redflow_contract::code::RunErrorCode;
use redflow_contract::run::RunStatus;
use std::path::PathBuf;
use std::time::Duration;

/// The most characters of a reason or an error that a person gives.
const MAX_REASON: usize = 1000;

const AFTER_HELP: &str = "\
Examples:
  redflow runs                                     the newest 50
  redflow runs --status waiting                    the runs that wait for a person
  redflow runs --code TIMEOUT --since 24h          the runs of a day that took too long
  redflow runs show RUN                            the steps of a run
  redflow runs show RUN --iteration 2              what the model was asked and answered in one step
  redflow runs resolve RUN --done --result '{\"id\": 17}'
  redflow runs prune --older-than 30d --keep 1000
  redflow runs events RUN --follow --url http://127.0.0.1:1881

With REDFLOW_URL set, the commands use the runs of that sidecar, unless --data is given.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RunsOptions {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    #[command(flatten)]
    pub(crate) list: ListOptions,
    #[arg(long, value_name = "DIR", global = true, help = DATA_HELP)]
    pub(crate) data: Option<PathBuf>,
    #[arg(long, value_name = "URL", global = true, help = URL_HELP)]
    url: Option<String>,
    #[arg(long, value_name = "FILE", global = true, help = TOKEN_FILE_HELP)]
    token_file: Option<PathBuf>,
}

impl RunsOptions {
    /// The sidecar options, which can be anywhere on the command line.
    pub(crate) fn sidecar(&self) -> SidecarOption {
        SidecarOption { url: self.url.clone(), token_file: self.token_file.clone() }
    }

    /// The error if an option of the list precedes another command, where it has no effect.
    pub(crate) fn misplaced_option(&self) -> Option<String> {
        let ListOptions { status, agent, since, until, code, prefix, roots, limit, json } = &self.list;
        let command = self.command.as_ref()?.name();
        let given = [
            (!status.is_empty(), "--status <STATUS>"),
            (agent.is_some(), "--agent <NODE>"),
            (since.is_some(), "--since <TIME>"),
            (until.is_some(), "--until <TIME>"),
            (code.is_some(), "--code <CODE>"),
            (prefix.is_some(), "--prefix <ID>"),
            (*roots, "--roots"),
            (limit.is_some(), "--limit <N>"),
            (*json, "--json"),
        ];
        let (_, option) = given.into_iter().find(|(is_given, _)| *is_given)?;
        Some(format!("the subcommand '{command}' cannot be used with '{option}' before it"))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, the newest first; the same as `redflow runs`
    List(ListOptions),
    /// Show a run: its status, its steps and its result
    Show(ShowOptions),
    /// Print the events of a run, one per line
    Events(EventsOptions),
    /// Print the journal of a run, for `redflow replay`
    Export(JournalOptions),
    /// Cancel a run that has not ended
    Cancel(CancelOptions),
    /// Answer whether the call happened that a run waits for
    Resolve(ResolveOptions),
    /// Remove ended runs that match all given options, or damaged runs
    Prune(PruneOptions),
    /// Count again what runs have used, from their journals; no process may drive the runs meanwhile
    Recount(RecountOptions),
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
            Self::Recount(_) => "recount",
        }
    }
}

/// The number of listed runs without --limit.
pub(crate) const DEFAULT_LIST_LIMIT: u32 = 50;

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// Only runs with this status; can be repeated
    #[arg(long, value_name = "STATUS", value_enum)]
    pub(crate) status: Vec<StatusName>,
    /// Only runs of the agent with this node id
    #[arg(long, value_name = "NODE")]
    pub(crate) agent: Option<String>,
    /// Only runs that started at most this long ago: 90s, 15m, 12h, 30d, 8w
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) since: Option<Duration>,
    /// Only runs that started longer ago than this
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) until: Option<Duration>,
    /// Only runs that failed with this code
    #[arg(long, value_name = "CODE", value_parser = parse_code)]
    pub(crate) code: Option<RunErrorCode>,
    /// Only runs whose id begins with this
    #[arg(long, value_name = "ID", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) prefix: Option<String>,
    /// Only runs that no other run started
    #[arg(long)]
    pub(crate) roots: bool,
    /// The most runs to list; default 50
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
    /// It has not ended and no process drives it
    Interrupted,
    /// It waits for a person to answer whether a call happened
    Waiting,
    /// It ended with a final answer
    Completed,
    /// A stop condition ended it
    Stopped,
    /// It ended with an error
    Failed,
    /// Its stored data has changed since it was written
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
pub(crate) struct ShowRunOptions {
    /// The id of the run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowOptions {
    #[command(flatten)]
    pub(crate) show: ShowRunOptions,
    /// Show only this iteration, with the texts of the model and of its tools
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iteration: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct EventsOptions {
    #[command(flatten)]
    pub(crate) show: ShowRunOptions,
    /// Follow the run until it ends; only with a sidecar
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JournalOptions {
    /// The id of the run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

#[derive(Debug, Args)]
pub(crate) struct CancelOptions {
    /// The id of the run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The reason, for the journal
    #[arg(long, value_name = "TEXT", default_value = "cancelled by hand", value_parser = parse_reason)]
    pub(crate) reason: String,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("outcome").args(["done", "not_done"]).required(true)))]
pub(crate) struct ResolveOptions {
    /// The id of the run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// The id of the call, if the run waits for several
    #[arg(long, value_name = "ID")]
    pub(crate) call: Option<String>,
    /// The call happened
    #[arg(long)]
    pub(crate) done: bool,
    /// The result of the call as JSON: a value, @FILE, or - for standard input; default null
    #[arg(long, value_name = "JSON", allow_hyphen_values = true, conflicts_with = "not_done")]
    pub(crate) result: Option<String>,
    /// The call did not happen; the model receives this as an error
    #[arg(long)]
    pub(crate) not_done: bool,
    /// The reason why it did not happen, for the model
    #[arg(long, value_name = "TEXT", conflicts_with = "done", value_parser = parse_reason)]
    pub(crate) error: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").args(["older_than", "keep", "damaged"]).required(true).multiple(true)))]
pub(crate) struct PruneOptions {
    /// Runs that ended longer ago than this: 90s, 15m, 12h, 30d, 8w
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) older_than: Option<Duration>,
    /// All but the newest N
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    /// Also runs whose result is not delivered; the result is lost
    #[arg(long)]
    pub(crate) undelivered: bool,
    /// Damaged runs of any age. Without --older-than and --keep, only these
    #[arg(long)]
    pub(crate) damaged: bool,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Use it after an update from a version that did not count, or if the sums look wrong. A day that counts more runs \
than are stored stays as it is, because the journals of the other runs were removed.")]
pub(crate) struct RecountOptions {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
To restore a copy, stop every redflow process that uses the data directory, put the copy there as redflow.db, and \
remove redflow.db-wal and redflow.db-shm. Or put it into an empty directory as redflow.db and use that with --data.

Knowledge bases are copied into FILE.archive. Restore it in the same way, as archive.db. Keys are not copied: keep \
archive.key and credentials.key yourself.

A restored copy resets every run to its state at the time of the copy. Calls that were made later can be made again.")]
pub(crate) struct BackupOptions {
    /// The file to create
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataOption,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_code(text: &str) -> Result<RunErrorCode, String> {
    RunErrorCode::parse(text).ok_or_else(|| "no run fails with this code; see `redflow explain`".to_owned())
}

/// Parses a number with a unit: seconds, minutes, hours, days or weeks.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let problem = || "give a number and a unit: 90s, 15m, 12h, 30d or 8w".to_owned();
    let unit = text.chars().last().ok_or_else(problem)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        'w' => 7 * 24 * 60 * 60,
        _ => return Err(problem()),
    };
    let number = &text[..text.len() - unit.len_utf8()];
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(problem());
    }
    let total = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    total.map(Duration::from_secs).ok_or_else(|| "the time is too long".to_owned())
}

/// Accepts a short text for a journal.
fn parse_reason(text: &str) -> Result<String, String> {
    if text.chars().count() > MAX_REASON {
        return Err(format!("at most {MAX_REASON} characters"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{parse_duration, parse_reason};

    #[test]
    fn a_duration_is_a_number_with_a_unit() {
        let rows =
            [("0s", 0), ("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000), ("8w", 4_838_400)];
        for (text, seconds) in rows {
            assert_eq!(parse_duration(text).map(|time| time.as_secs()), Ok(seconds), "{text}");
        }
        for text in
            ["", "30", "d", "-1d", "+1d", "1.5h", "1 d", "30days", "1y", "∞d", "1µ", "99999999999999999999w"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert!(parse_duration("18446744073709551615w").is_err(), "it overflows");
    }

    #[test]
    fn a_reason_has_a_length_limit() {
        assert!(parse_reason(&"ä".repeat(1000)).is_ok());
        assert!(parse_reason(&"a".repeat(1001)).is_err());
    }
}
