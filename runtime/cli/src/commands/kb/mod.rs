//! `redflow kb`: adds documents to the knowledge bases of a data directory or a sidecar, searches them, lists and
//! removes them.

mod add;
mod print;
mod sources;

use crate::args::{EmbedderOptions, KbCommand, KbOptions, SearchOptions};
use crate::context::AppContext;
use crate::errors::{print_api_error, print_store_error};
use crate::exit::{CommandResult, Exit};
use crate::knowledge::RemoteKnowledge;
use crate::session::new_runtime;
use crate::sidecar::{LocalTarget, select_sidecar};
use crate::signals::{RunLifetime, StopSignals, listen};
use crate::terminal::{fail, print_json, print_note, print_text};
use crate::text::printable_line;
use redflow_contract::api::ApiError;
use redflow_contract::archive::Document;
use redflow_contract::knowledge_api::{
    KnowledgeSearch, MAX_DOCUMENTS_PAGE, MAX_PASSAGES_PAGE, StoredPassage,
};
use redflow_egress::Egress;
use redflow_ports::KnowledgeBases;
use serde::Serialize;
use std::future::Future;
use std::sync::Arc;

/// What the commands share.
struct Kb {
    knowledge: Arc<dyn KnowledgeBases>,
    /// The directory or the address, for messages.
    place: String,
    egress: Egress,
}

pub(crate) fn kb(options: &KbOptions, context: &AppContext) -> CommandResult {
    let target = LocalTarget::named_if(options.data.is_some());
    let (knowledge, place): (Arc<dyn KnowledgeBases>, String) =
        match select_sidecar(&options.sidecar(), &context.settings, target)? {
            Some(sidecar) => {
                let place = printable_line(sidecar.url().as_str(), 200);
                (Arc::new(RemoteKnowledge::new(sidecar)), place)
            }
            None => {
                let data = context.settings.data_dir().map_err(print_store_error)?;
                (context.knowledge()?.clone(), data.display().to_string())
            }
        };
    let kb = Kb { knowledge, place, egress: Egress::new(context.settings.egress.clone()) };
    match &options.command {
        KbCommand::Add(options) => wait(add::add(&kb, options)),
        KbCommand::Search(options) => wait(kb.search(options)),
        KbCommand::List { name: Some(name), json } => wait(kb.list_documents(name, *json)),
        KbCommand::List { name: None, json } => wait(kb.list(*json)),
        KbCommand::Show { name, document, json } => wait(kb.show(name, document, *json)),
        KbCommand::Remove { name, document } => wait(kb.remove(name, document.as_deref())),
        KbCommand::Reindex { name, embedder, json } => wait(kb.reindex(name, embedder, *json)),
    }
}

/// Runs a command until it ends or Ctrl-C is pressed. What it has stored by then stays.
fn wait(command: impl Future<Output = CommandResult>) -> CommandResult {
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

impl Kb {
    async fn list(&self, json: bool) -> CommandResult {
        let all = self.knowledge.list().await.map_err(print_api_error)?;
        if all.is_empty() {
            print_note(&format!("no knowledge bases in {}", self.place));
            return Ok(Exit::Success);
        }
        Ok(print_all(&all, json, print::format_collections))
    }

    async fn list_documents(&self, name: &str, json: bool) -> CommandResult {
        let all = self.documents(name).await.map_err(print_api_error)?;
        Ok(print_all(&all, json, print::format_documents))
    }

    /// All documents of a knowledge base.
    async fn documents(&self, name: &str) -> Result<Vec<Document>, ApiError> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.knowledge.documents(name, after.as_deref(), MAX_DOCUMENTS_PAGE).await?;
            all.extend(page.documents);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    async fn show(&self, name: &str, document: &str, json: bool) -> CommandResult {
        let (mut all, mut after): (Vec<StoredPassage>, _) = (Vec::new(), Some(0));
        while let Some(last) = after {
            let page = self.knowledge.passages(name, document, last, MAX_PASSAGES_PAGE).await;
            let page = page.map_err(print_api_error)?;
            all.extend(page.passages);
            after = page.next;
        }
        Ok(print_all(&all, json, print::format_passages))
    }

    async fn remove(&self, name: &str, document: Option<&str>) -> CommandResult {
        match document {
            Some(document) => self.knowledge.remove_document(name, document).await,
            None => self.knowledge.remove(name).await,
        }
        .map_err(print_api_error)?;
        Ok(Exit::Success)
    }

    async fn search(&self, options: &SearchOptions) -> CommandResult {
        if options.min_score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
            return Err(fail("--min-score must be a number from 0 to 1"));
        }
        if options.query.trim().is_empty() {
            return Err(fail("there is nothing to search for: name some words"));
        }
        let search = KnowledgeSearch {
            text: options.query.clone(),
            mode: options.mode.map(Into::into),
            limit: Some(options.limit),
            min_score: options.min_score,
            tags: options.tag.clone(),
        };
        let found = self.knowledge.search(&options.name, search).await.map_err(print_api_error)?;
        if found.results.is_empty() {
            print_note("nothing was found; a lower --min-score or --mode hybrid finds more");
            return Ok(Exit::Failure);
        }
        Ok(print_all(&found.results, options.json, print::format_hits))
    }

    async fn reindex(&self, name: &str, options: &EmbedderOptions, json: bool) -> CommandResult {
        let mut progress = print::ProgressLine::new(json);
        let done = self.knowledge.reindex(name, options.choice(), &mut |at| progress.show(name, at)).await;
        progress.end();
        let done = done.map_err(print_api_error)?;
        print::warn_if_lexical(&done);
        Ok(if json {
            print_json(&print::use_json(&done))
        } else {
            print_text(&format!("{name}: {}\n", print::format_use(&done)))
        })
    }
}

/// Prints values, each as a line of JSON, or all as text.
fn print_all<T: Serialize>(all: &[T], json: bool, format: impl Fn(&[T]) -> String) -> Exit {
    if json { all.iter().map(print_json).max().unwrap_or(Exit::Success) } else { print_text(&format(all)) }
}
