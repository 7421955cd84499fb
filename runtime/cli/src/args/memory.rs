//! The arguments of `redflow memory`.

use super::kb::ModeName;
use super::runs::parse_duration;
use super::shared::{DATA_HELP, SidecarOption, TOKEN_FILE_HELP, URL_HELP};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use redflow_contract::archive::{EntryKind, EntryState, Trust};
use redflow_contract::knowledge_api::MAX_RETENTION_DAYS;
use redflow_contract::memory::DataOwner;
use redflow_contract::memory_api::MemoryFilter;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

const AFTER_HELP: &str = "\
Examples:
  redflow memory list                        the long memories
  redflow memory list tab1/n7 --user ada     what one knows about a user
  redflow memory search tab1/n7 \"which tea does she like?\"
  redflow memory put tab1/n7 tea \"Ada drinks green tea.\" --user ada --kind preference
  redflow memory review                      what waits for a person
  redflow memory forget --user ada --runs    remove all that is stored about a user
  redflow memory export --output memory.jsonl

A `long-memory` node makes its memory, with the name FLOW/NODE, when it stores the first entry.
With REDFLOW_URL set, the commands use that sidecar, unless --data is given.";

const KINDS: [&str; 8] = ["episode", "fact", "preference", "decision", "summary", "span", "chunk", "log"];
const STATES: [&str; 5] = ["live", "pinned", "archived", "superseded", "quarantined"];
const TRUSTS: [&str; 5] = ["external", "tool", "agent", "user", "operator"];

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct MemoryOptions {
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,
    #[arg(long, value_name = "DIR", global = true, help = DATA_HELP)]
    pub(crate) data: Option<PathBuf>,
    #[arg(long, value_name = "URL", global = true, help = URL_HELP)]
    url: Option<String>,
    #[arg(long, value_name = "FILE", global = true, help = TOKEN_FILE_HELP)]
    token_file: Option<PathBuf>,
}

impl MemoryOptions {
    /// The sidecar options, which can be anywhere on the command line.
    pub(crate) fn sidecar(&self) -> SidecarOption {
        SidecarOption { url: self.url.clone(), token_file: self.token_file.clone() }
    }

    /// Whether the command line names something local.
    pub(crate) fn names_local(&self) -> bool {
        let names_flow = matches!(&self.command, MemoryCommand::Forget(options) if options.flow.is_some());
        self.data.is_some() || names_flow
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List the long memories, or the entries of one
    #[command(after_help = "Example:\n  redflow memory list tab1/n7 --user ada --kind preference")]
    List(ListMemoryOptions),
    /// Search for entries, and show why each was found
    #[command(
        after_help = "Example:\n  redflow memory search tab1/n7 \"which tea does she like?\" --user ada"
    )]
    Search(SearchMemoryOptions),
    /// Show an entry with its former versions
    #[command(after_help = "Example:\n  redflow memory show tab1/n7 tea")]
    Show {
        /// The memory: FLOW/NODE
        #[arg(value_name = "MEMORY")]
        memory: String,
        /// The key of the entry, as `redflow memory list MEMORY` shows it
        #[arg(value_name = "KEY")]
        key: String,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Store an entry, or change one. What no option names stays as it is
    #[command(
        after_help = "Example:\n  redflow memory put tab1/n7 tea \"Ada drinks green tea.\" --user ada --if-version 3"
    )]
    Put(PutMemoryOptions),
    /// List what waits for a person, approve it or reject it
    #[command(after_help = "Example:\n  redflow memory review tab1/n7 --approve key-1 key-2")]
    Review(ReviewOptions),
    /// Remove all data of a user, a session or a source. No byte of it stays in the files
    #[command(after_help = "\
Example:
  redflow memory forget --user ada --runs --url http://127.0.0.1:1881

Conversations in the memory of a running sidecar are removed only with --url. Backups are yours to remove.")]
    Forget(ForgetOptions),
    /// Print all entries, one JSON object per line
    #[command(after_help = "Example:\n  redflow memory export tab1/n7 --user ada --output ada.jsonl")]
    Export(ExportMemoryOptions),
    /// Remove an entry, or a whole memory. Nothing of it stays in the file
    #[command(after_help = "Example:\n  redflow memory remove tab1/n7 tea")]
    Remove {
        /// The memory: FLOW/NODE
        #[arg(value_name = "MEMORY")]
        memory: String,
        /// The key of the entry. Without one, the whole memory is removed
        #[arg(value_name = "KEY")]
        key: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Print what was removed as one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ListMemoryOptions {
    /// The memory: FLOW/NODE
    #[arg(value_name = "MEMORY")]
    pub(crate) memory: Option<String>,
    /// Only entries of this user
    #[arg(long, value_name = "USER", requires = "memory")]
    pub(crate) user: Option<String>,
    /// Only entries of this session: FLOW:NAME
    #[arg(long, value_name = "SESSION", requires = "memory")]
    pub(crate) session: Option<String>,
    /// Only entries in this state
    #[arg(long, value_name = "STATE", requires = "memory",
        value_parser = PossibleValuesParser::new(STATES).try_map(parse_word::<EntryState>))]
    pub(crate) state: Option<EntryState>,
    /// Only entries of this kind
    #[arg(long, value_name = "KIND", requires = "memory",
        value_parser = PossibleValuesParser::new(KINDS).try_map(parse_word::<EntryKind>))]
    pub(crate) kind: Option<EntryKind>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

impl ListMemoryOptions {
    /// Which entries the options choose.
    pub(crate) fn filter(&self) -> MemoryFilter {
        let Self { user, session, state, kind, .. } = self;
        MemoryFilter { user: user.clone(), session: session.clone(), state: *state, kind: *kind }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SearchMemoryOptions {
    /// The memory: FLOW/NODE
    #[arg(value_name = "MEMORY")]
    pub(crate) memory: String,
    /// What to search for
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// How texts are compared. Default: by both
    #[arg(long, value_name = "M", value_enum)]
    pub(crate) mode: Option<ModeName>,
    /// The most entries
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,
    /// The least score, from 0 to 1
    #[arg(long, value_name = "SCORE")]
    pub(crate) min_score: Option<f32>,
    /// Only entries of this user
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Only entries of this session: FLOW:NAME
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Only entries with this tag; can be repeated, and one of them is enough
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Only entries of this kind; can be repeated
    #[arg(long, value_name = "KIND",
        value_parser = PossibleValuesParser::new(KINDS).try_map(parse_word::<EntryKind>))]
    pub(crate) kind: Vec<EntryKind>,
    /// Only entries that were true within this time until now, such as 7d
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) since: Option<Duration>,
    /// Only entries that were true longer ago than this
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) until: Option<Duration>,
    /// What was true so long ago
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) as_of: Option<Duration>,
    /// Only entries with at least this trust
    #[arg(long, value_name = "TRUST",
        value_parser = PossibleValuesParser::new(TRUSTS).try_map(parse_word::<Trust>))]
    pub(crate) min_trust: Option<Trust>,
    /// Print one JSON object per entry
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PutMemoryOptions {
    /// The memory: FLOW/NODE
    #[arg(value_name = "MEMORY")]
    pub(crate) memory: String,
    /// The key of the entry
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// The text; `-` for standard input
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// What it is. Default: a fact
    #[arg(long, value_name = "KIND",
        value_parser = PossibleValuesParser::new(KINDS).try_map(parse_word::<EntryKind>))]
    pub(crate) kind: Option<EntryKind>,
    /// A tag of the entry; can be repeated
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// The user it belongs to
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// The session it belongs to: FLOW:NAME
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// It never expires, and no model can end it
    #[arg(long)]
    pub(crate) pin: bool,
    /// Remove it after so many days
    #[arg(long, value_name = "DAYS", conflicts_with = "pin",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RETENTION_DAYS)))]
    pub(crate) expires_days: Option<u32>,
    /// Replace only this version; 0 if there must be none
    #[arg(long, value_name = "N")]
    pub(crate) if_version: Option<u32>,
    /// Print the entry as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReviewOptions {
    /// The memory: FLOW/NODE. Without one, what waits in all of them is listed
    #[arg(value_name = "MEMORY")]
    pub(crate) memory: Option<String>,
    /// The keys of entries that can be recalled from now on
    #[arg(long, value_name = "KEY", num_args = 1.., requires = "memory", conflicts_with = "reject")]
    pub(crate) approve: Vec<String>,
    /// The keys of entries that are removed
    #[arg(long, value_name = "KEY", num_args = 1.., requires = "memory")]
    pub(crate) reject: Vec<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetOptions {
    #[command(flatten)]
    owner: OwnerOption,
    /// Also remove the owner's runs, with their journals, events and chats
    #[arg(long)]
    pub(crate) runs: bool,
    /// Also the conversations in the Redis memories of this flow. A sidecar knows its own flow
    #[arg(long, value_name = "FILE")]
    pub(crate) flow: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose data is forgotten.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct OwnerOption {
    /// All data of this user
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The data of this session: FLOW:NAME
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Entries from this source: a run, a document, an address
    #[arg(long, value_name = "REF")]
    source: Option<String>,
}

impl ForgetOptions {
    /// The owner, as the data names it; none without a name.
    pub(crate) fn owner(&self) -> Option<DataOwner> {
        let OwnerOption { user, session, source } = &self.owner;
        let owner = match (user, session, source) {
            (Some(user), ..) => DataOwner::User(user.clone()),
            (_, Some(session), _) => DataOwner::Session(session.clone()),
            (.., source) => DataOwner::Source(source.clone()?),
        };
        owner.normalised()
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExportMemoryOptions {
    /// The memory: FLOW/NODE. Without one, all of them
    #[arg(value_name = "MEMORY")]
    pub(crate) memory: Option<String>,
    /// Only entries of this user
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// Only entries of this session: FLOW:NAME
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// The file to write. Default: standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Print one JSON object per line, which it always does
    #[arg(long)]
    pub(crate) json: bool,
}

/// A word that JSON would write for this type.
fn parse_word<T: DeserializeOwned>(word: String) -> Result<T, serde_json::Error> {
    serde_json::from_value(Value::String(word))
}
