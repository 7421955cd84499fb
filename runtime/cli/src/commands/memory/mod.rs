//! `redflow memory`: lists, searches and changes the long memories of a data directory or a sidecar, and forgets the data
//! of people.

mod export;
mod forget;
mod print;

use crate::args::{
    ForgetOptions, ListMemoryOptions, MemoryCommand, MemoryOptions, PutMemoryOptions, ReviewOptions,
    SearchMemoryOptions,
};
use crate::context::{AppContext, clock};
use crate::errors::{print_api_error, print_store_error};
use crate::exit::{CommandResult, Exit};
use crate::files::read_bounded;
use crate::memories::{LocalMemories, RemoteMemories};
use crate::session::new_runtime;
use crate::sidecar::{LocalTarget, select_sidecar};
use crate::signals::{RunLifetime, StopSignals, listen};
use crate::terminal::{fail, print_json, print_note, print_part, print_text};
use crate::text::{describe_io_error, printable_line};
use crate::times::to_millis;
use redflow_contract::archive::{Entry, EntryState, MAX_ENTRY_TEXT};
use redflow_contract::memory_api::{
    Decision, ForgetRequest, MAX_ENTRIES_PAGE, MemoryFilter, MemoryPut, MemorySearch,
};
use redflow_ports::Memories;
use serde::Serialize;
use serde_json::json;
use std::future::Future;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The most characters of a note.
const MAX_NOTE: usize = 800;

/// The milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// What a command prints when Ctrl-C stops it.
const STOPPED: &str = "stopped; nothing is half stored";

/// What `forget` prints: it has many steps, and a sidecar goes on with its own.
const STOPPED_FORGET: &str = "stopped; part may be forgotten; run it again";

/// What `remove` prints.
const STOPPED_REMOVE: &str = "stopped; it may be removed already; run it again";

/// What the commands share.
struct MemoryContext {
    memories: Arc<dyn Memories>,
    /// Those of the data directory; none for a sidecar.
    local: Option<Arc<LocalMemories>>,
    /// The directory or the address, for messages.
    place: String,
}

pub(crate) fn memory(options: &MemoryOptions, context: &AppContext) -> CommandResult {
    let target = LocalTarget::named_if(options.names_local());
    let shared = match select_sidecar(&options.sidecar(), &context.settings, target)? {
        Some(sidecar) => {
            let place = printable_line(sidecar.url().as_str(), 200);
            MemoryContext { memories: Arc::new(RemoteMemories::new(sidecar)), local: None, place }
        }
        None => {
            let data = context.settings.data_dir().map_err(print_store_error)?;
            let local = context.memories()?.clone();
            let place = data.display().to_string();
            MemoryContext { memories: local.clone(), local: Some(local), place }
        }
    };
    match &options.command {
        MemoryCommand::List(options) => wait(shared.list(options), STOPPED),
        MemoryCommand::Search(options) => wait(shared.search(options), STOPPED),
        MemoryCommand::Show { memory, key, json } => wait(shared.show(memory, key, *json), STOPPED),
        MemoryCommand::Put(options) => wait(shared.put(options), STOPPED),
        MemoryCommand::Review(options) => wait(shared.review(options), STOPPED),
        MemoryCommand::Forget(options) => forget(&shared, options, context),
        MemoryCommand::Export(options) => wait(export::export(&shared, options), STOPPED),
        MemoryCommand::Remove { memory, key, yes, json } => {
            let what = if key.is_some() { "the entry" } else { "the memory with all its entries" };
            confirm(&format!("Remove {what} for ever?"), *yes)?;
            wait(shared.remove(memory, key.as_deref(), *json), STOPPED_REMOVE)
        }
    }
}

/// Runs a command until it ends or Ctrl-C is pressed, and then prints `stopped`. What it has stored by then stays.
fn wait(command: impl Future<Output = CommandResult>, stopped: &str) -> CommandResult {
    let runtime = new_runtime()?;
    let signals = StopSignals::default();
    // Without signals the command still works; Ctrl-C then ends it at once.
    let _ = listen(signals.clone(), RunLifetime::Ephemeral);
    runtime.block_on(async {
        tokio::select! {
            result = command => result,
            () = signals.cancel.cancelled() => {
                print_note(stopped);
                Err(Exit::Failure)
            }
        }
    })
}

/// Asks on a terminal. A program that calls the command has decided already.
fn confirm(question: &str, yes: bool) -> Result<(), Exit> {
    if yes || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Ok(());
    }
    print_part(&format!("{question} [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    if read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    print_note("nothing was removed");
    Err(Exit::Failure)
}

fn forget(shared: &MemoryContext, options: &ForgetOptions, context: &AppContext) -> CommandResult {
    let Some(owner) = options.owner() else {
        return Err(fail("the name is empty: name a user, a session or a source"));
    };
    if shared.is_remote() && options.flow.is_some() {
        return Err(fail("--flow is for a data directory: a sidecar knows its own flow"));
    }
    let what = if options.runs { "all data and all runs" } else { "all data" };
    confirm(&format!("Remove {what} of this owner for ever?"), options.yes)?;
    let forgetting = async {
        let answer = if shared.is_remote() {
            let request = ForgetRequest { owner, runs: options.runs };
            shared.memories.forget(request).await.map_err(print_api_error)?
        } else {
            forget::forget_locally(context, options, owner).await?
        };
        forget::print_answer(&answer, options.json)
    };
    wait(forgetting, STOPPED_FORGET)
}

impl MemoryContext {
    fn is_remote(&self) -> bool {
        self.local.is_none()
    }

    /// Prints what the data directory's memories did without vectors. A sidecar logs it.
    fn print_notes(&self) {
        if let Some(note) = self.local.as_ref().and_then(|local| local.take_note()) {
            print_note(&printable_line(&note, MAX_NOTE));
        }
    }

    async fn list(&self, options: &ListMemoryOptions) -> CommandResult {
        if let Some(memory) = &options.memory {
            check_names(&[&options.user, &options.session])?;
            let print = |entries: &[Entry]| print_all(entries, options.json, print::format_entries);
            return self.print_pages(memory, &options.filter(), print).await;
        }
        let all = self.memories.list().await.map_err(print_api_error)?;
        if all.is_empty() {
            print_note(&format!("no long memories in {}", self.place));
            return Ok(Exit::Success);
        }
        Ok(print_all(&all, options.json, print::format_memories))
    }

    /// Prints the entries of a memory page by page, so that a large memory needs little room. It ends when the output
    /// cannot be written.
    async fn print_pages(
        &self,
        memory: &str,
        filter: &MemoryFilter,
        mut print: impl FnMut(&[Entry]) -> Exit,
    ) -> CommandResult {
        let mut after = None;
        loop {
            let page = self.memories.entries(memory, filter, after.as_deref(), MAX_ENTRIES_PAGE).await;
            let page = page.map_err(print_api_error)?;
            let printed = print(&page.entries);
            after = page.next;
            if after.is_none() || printed != Exit::Success {
                return Ok(printed);
            }
        }
    }

    async fn show(&self, memory: &str, key: &str, json: bool) -> CommandResult {
        let detail = self.memories.show(memory, key).await.map_err(print_api_error)?;
        Ok(if json { print_json(&detail) } else { print_text(&print::format_detail(&detail)) })
    }

    async fn search(&self, options: &SearchMemoryOptions) -> CommandResult {
        if options.min_score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
            return Err(fail("--min-score must be a number from 0 to 1"));
        }
        if options.text.trim().is_empty() {
            return Err(fail("there is nothing to search for: name some words"));
        }
        check_names(&[&options.user, &options.session])?;
        let now = clock().now();
        let ago = |time: Option<Duration>| time.map(|time| now.saturating_sub(to_millis(time)));
        let search = MemorySearch {
            text: options.text.clone(),
            mode: options.mode.map(Into::into),
            limit: Some(options.limit),
            min_score: options.min_score,
            user: options.user.clone(),
            session: options.session.clone(),
            tags: options.tag.clone(),
            kinds: options.kind.clone(),
            since: ago(options.since),
            until: ago(options.until),
            as_of: ago(options.as_of),
            min_trust: options.min_trust,
        };
        let found = self.memories.search(&options.memory, search).await.map_err(print_api_error)?;
        self.print_notes();
        if found.is_empty() {
            print_note("nothing was found");
            return Ok(Exit::Failure);
        }
        Ok(print_all(&found, options.json, print::format_hits))
    }

    async fn put(&self, options: &PutMemoryOptions) -> CommandResult {
        let text = match options.text.as_str() {
            "-" => read_stdin()?,
            text => text.to_owned(),
        };
        let days = |days: u32| clock().now().saturating_add(u64::from(days) * DAY_MS);
        let put = MemoryPut {
            text,
            kind: options.kind,
            tags: Some(options.tag.clone()).filter(|tags| !tags.is_empty()),
            user: options.user.clone(),
            session: options.session.clone(),
            state: options.pin.then_some(EntryState::Pinned),
            expires_at: options.expires_days.map(days),
            ..MemoryPut::default()
        };
        let stored = self.memories.put(&options.memory, &options.key, put, options.if_version).await;
        let stored = stored.map_err(print_api_error)?;
        self.print_notes();
        if options.json {
            return Ok(print_json(&stored));
        }
        let key = printable_line(&stored.key, 200);
        Ok(print_text(&format!("{key}: version {}\n", stored.version)))
    }

    async fn review(&self, options: &ReviewOptions) -> CommandResult {
        let (decision, keys) = match (&options.approve, &options.reject) {
            (approve, _) if !approve.is_empty() => (Decision::Approve, approve),
            (_, reject) if !reject.is_empty() => (Decision::Reject, reject),
            _ => return self.list_waiting(options).await,
        };
        let memory = options.memory.as_deref().unwrap_or_default();
        let mut decided = 0;
        for page in keys.chunks(MAX_ENTRIES_PAGE) {
            let done = self.memories.review(memory, page.to_vec(), decision).await;
            decided += done.map_err(print_api_error)?;
        }
        self.print_notes();
        let printed = if options.json {
            print_json(&json!({"decided": decided}))
        } else {
            let entries = if decided == 1 { "1 entry".to_owned() } else { format!("{decided} entries") };
            let done = if decision == Decision::Approve { "approved" } else { "rejected and removed" };
            print_text(&format!("{entries} {done}\n"))
        };
        if decided < keys.len() as u64 {
            print_note("the others do not wait for a review: `redflow memory review` shows what does");
            return Ok(printed.max(Exit::Failure));
        }
        Ok(printed)
    }

    async fn list_waiting(&self, options: &ReviewOptions) -> CommandResult {
        let memories = match &options.memory {
            Some(memory) => vec![memory.clone()],
            None => {
                let all = self.memories.list().await.map_err(print_api_error)?;
                let waiting = all.into_iter().filter(|memory| memory.quarantined > 0);
                waiting.map(|memory| memory.name).collect()
            }
        };
        let filter = MemoryFilter { state: Some(EntryState::Quarantined), ..MemoryFilter::default() };
        let (mut exit, mut is_empty) = (Exit::Success, true);
        for memory in memories {
            let mut is_first = true;
            let print = |waiting: &[Entry]| {
                if waiting.is_empty() {
                    return Exit::Success;
                }
                is_empty = false;
                if options.json {
                    let line = |entry: &Entry| print_json(&json!({"memory": memory, "entry": entry}));
                    return waiting.iter().map(line).max().unwrap_or(Exit::Success);
                }
                let name = match std::mem::take(&mut is_first) {
                    true => format!("{}\n\n", printable_line(&memory, 200)),
                    false => String::new(),
                };
                print_text(&format!("{name}{}", print::format_entries(waiting)))
            };
            exit = exit.max(self.print_pages(&memory, &filter, print).await?);
        }
        if is_empty {
            print_note("nothing waits for a review");
        }
        Ok(exit)
    }

    async fn remove(&self, memory: &str, key: Option<&str>, json: bool) -> CommandResult {
        match key {
            Some(key) => self.memories.remove_entry(memory, key).await,
            None => self.memories.remove(memory).await,
        }
        .map_err(print_api_error)?;
        Ok(if json { print_json(&json!({"memory": memory, "key": key})) } else { Exit::Success })
    }
}

/// A filter without a name would show the entries of all.
fn check_names(names: &[&Option<String>]) -> Result<(), Exit> {
    if names.iter().any(|name| name.as_ref().is_some_and(|name| name.trim().is_empty())) {
        return Err(fail("the name is empty: give one, or leave the option out"));
    }
    Ok(())
}

fn read_stdin() -> Result<String, Exit> {
    let unreadable = |why: &str| fail(&format!("standard input cannot be stored: {why}"));
    let bytes = read_bounded(Path::new("-"), MAX_ENTRY_TEXT)
        .map_err(|error| unreadable(&describe_io_error(&error)))?;
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text"))
}

/// Prints values, each as a line of JSON, or all as text.
fn print_all<T: Serialize>(all: &[T], json: bool, format: impl Fn(&[T]) -> String) -> Exit {
    if json { all.iter().map(print_json).max().unwrap_or(Exit::Success) } else { print_text(&format(all)) }
}
