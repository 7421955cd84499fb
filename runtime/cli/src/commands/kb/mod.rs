//! `redflow kb`: adds documents to knowledge bases, searches them, lists and removes them.

mod add;
mod content;
mod embedder;
mod print;
mod sources;

use crate::args::{EmbedderOptions, KbCommand, KbOptions, ModeName, SearchOptions};
use crate::context::{AppContext, clock};
use crate::errors::{print_archive_error, print_store_error};
use crate::exit::{CommandResult, Exit};
use crate::session::new_runtime;
use crate::signals::{RunLifetime, StopSignals, listen};
use crate::terminal::{fail, print_json, print_note, print_text};
use redflow_archive::SqliteArchive;
use redflow_egress::Egress;
use redflow_knowledge::{KnowledgeBase, KnowledgeQuery};
use redflow_ports::{ArchiveError, SearchFilter};
use redflow_worker::{Worker, WorkerSettings};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

/// What the commands share.
struct Kb<'a> {
    context: &'a AppContext,
    data: PathBuf,
    base: KnowledgeBase,
    egress: Egress,
    worker: Worker,
}

pub(crate) fn kb(options: &KbOptions, context: &AppContext) -> CommandResult {
    let data = context.settings.data_dir().map_err(print_store_error)?;
    let base = KnowledgeBase::new(Arc::new(SqliteArchive::new(&data, clock())));
    let egress = Egress::new(context.settings.egress.clone());
    let filter = context.settings.sandbox_filter;
    let worker = Worker::new(WorkerSettings { filter, ..WorkerSettings::default() });
    let kb = Kb { context, data, base, egress, worker };
    match &options.command {
        KbCommand::Add(options) => kb.wait(add::add(&kb, options)),
        KbCommand::Search(options) => kb.wait(kb.search(options)),
        KbCommand::List { name: Some(name), json } => kb.wait(kb.list_documents(name, *json)),
        KbCommand::List { name: None, json } => kb.wait(kb.list(*json)),
        KbCommand::Show { name, document, json } => kb.wait(kb.show(name, document, *json)),
        KbCommand::Remove { name, document } => kb.wait(kb.remove(name, document.as_deref())),
        KbCommand::Reindex { name, embedder, json } => kb.wait(kb.reindex(name, embedder, *json)),
    }
}

impl Kb<'_> {
    /// Runs a command until it ends or Ctrl-C is pressed. What it has stored by then stays.
    fn wait(&self, command: impl Future<Output = CommandResult>) -> CommandResult {
        let runtime = new_runtime()?;
        let signals = StopSignals::default();
        // Without signals the command still works; Ctrl-C then ends it at once.
        let _ = listen(signals.clone(), RunLifetime::Ephemeral);
        runtime.block_on(async {
            tokio::select! {
                result = command => result,
                () = signals.cancel.cancelled() => {
                    print_note("stopped; nothing is half stored, and `add` and `reindex` go on where they were");
                    Err(Exit::Failure)
                }
            }
        })
    }

    async fn list(&self, json: bool) -> CommandResult {
        let all = self.base.list().await.map_err(print_archive_error)?;
        if all.is_empty() {
            print_note(&format!("no knowledge bases in {}", self.data.display()));
            return Ok(Exit::Success);
        }
        Ok(if json {
            all.iter().map(print_json).max().unwrap_or(Exit::Success)
        } else {
            print_text(&print::format_collections(&all))
        })
    }

    async fn list_documents(&self, name: &str, json: bool) -> CommandResult {
        let all = self.base.documents(name).await.map_err(print_archive_error)?;
        Ok(if json {
            all.iter().map(print_json).max().unwrap_or(Exit::Success)
        } else {
            print_text(&print::format_documents(&all))
        })
    }

    async fn show(&self, name: &str, document: &str, json: bool) -> CommandResult {
        let all = self.base.passages(name, document).await.map_err(print_archive_error)?;
        Ok(if json {
            all.iter().map(print_json).max().unwrap_or(Exit::Success)
        } else {
            print_text(&print::format_passages(&all))
        })
    }

    async fn remove(&self, name: &str, document: Option<&str>) -> CommandResult {
        match document {
            Some(document) => self.base.remove_document(name, document).await,
            None => self.base.remove(name).await,
        }
        .map_err(print_archive_error)?;
        Ok(Exit::Success)
    }

    async fn search(&self, options: &SearchOptions) -> CommandResult {
        if options.min_score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
            return Err(fail("--min-score must be a number from 0 to 1"));
        }
        if options.query.trim().is_empty() {
            return Err(fail("there is nothing to search for: name some words"));
        }
        let search = async {
            let known = self.base.get(&options.name).await?;
            // A search by words needs no key.
            let chosen = match options.mode {
                Some(ModeName::Lexical) => None,
                _ => Some(embedder::choose(self.context, &self.data, None, Some(&known))?.embedder),
            };
            let query = KnowledgeQuery {
                text: options.query.clone(),
                mode: options.mode.map(Into::into),
                min_score: options.min_score,
                limit: usize::try_from(options.limit).ok(),
                filter: SearchFilter { tags: options.tag.clone(), ..SearchFilter::default() },
            };
            let passages = self.base.search(&options.name, chosen.as_deref(), &query).await?;
            Ok::<_, ArchiveError>(passages)
        };
        let passages = search.await.map_err(print_archive_error)?;
        if passages.is_empty() {
            print_note("nothing was found; a lower --min-score or --mode hybrid finds more");
            return Ok(Exit::Failure);
        }
        Ok(if options.json {
            passages.iter().map(print_json).max().unwrap_or(Exit::Success)
        } else {
            print_text(&print::format_hits(&passages))
        })
    }

    async fn reindex(&self, name: &str, options: &EmbedderOptions, json: bool) -> CommandResult {
        let known = self.base.get(name).await.map_err(print_archive_error)?;
        let chosen = embedder::choose(self.context, &self.data, Some(options), Some(&known))
            .map_err(print_archive_error)?;
        embedder::warn_if_lexical(&*chosen.embedder);
        let mut progress = print::ProgressLine::new(json);
        let done = self
            .base
            .reindex(name, &*chosen.embedder, &chosen.settings, &mut |at| progress.show(name, at))
            .await;
        progress.end();
        let done = done.map_err(print_archive_error)?;
        Ok(if json {
            print_json(&print::use_json(name, &done))
        } else {
            print_text(&format!("{name}: {}\n", print::format_use(&done)))
        })
    }
}
