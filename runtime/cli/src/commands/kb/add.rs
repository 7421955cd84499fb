//! `redflow kb add`.

use super::Kb;
use super::content::read_content;
use super::embedder::{Chosen, choose, warn_if_lexical};
use super::print::{ProgressLine, format_use, use_json};
use super::sources::{Fetched, Source, fetch, find};
use crate::args::AddOptions;
use crate::errors::print_archive_error;
use crate::exit::{CommandResult, Exit};
use crate::terminal::{fail, print_json, print_note, print_text, print_warning};
use crate::text::{count, printable_line};
use redflow_contract::archive::Document;
use redflow_contract::digest::Digest;
use redflow_knowledge::{AddResult, DocumentToAdd, EmbeddingUse, check_tags};
use redflow_ports::ArchiveError;
use serde_json::json;
use std::collections::HashMap;

/// What was done with the documents of a command.
#[derive(Default)]
struct Sum {
    added: usize,
    unchanged: usize,
    failed: usize,
    passages: u64,
    /// About how many tokens would be embedded.
    tokens: u64,
    used: EmbeddingUse,
}

enum Outcome {
    Added(AddResult),
    Unchanged,
    /// What adding would cost: passages without a vector, and their tokens.
    Estimated(u64, u64),
}

pub(super) async fn add(kb: &Kb<'_>, options: &AddOptions) -> CommandResult {
    let sources = find(&options.paths).map_err(|text| fail(&text))?;
    if sources.links > 0 {
        print_warning(&format!("{} not followed", count(sources.links, "link")));
    }
    if sources.skipped > 0 {
        print_note(&format!("{} of other kinds left out", count(sources.skipped, "file")));
    }
    let name = &options.name;
    check_tags(&options.tag).map_err(print_archive_error)?;
    let known = kb.base.find(name).await.map_err(print_archive_error)?;
    let chosen =
        choose(kb.context, &kb.data, Some(&options.embedder), known.as_ref()).map_err(print_archive_error)?;
    kb.base.check_embedder(name, &*chosen.embedder).await.map_err(print_archive_error)?;
    if known.is_none() {
        warn_if_lexical(&*chosen.embedder);
    }
    let stored: HashMap<String, Document> = match known {
        Some(_) => {
            let documents = kb.base.documents(name).await.map_err(print_archive_error)?;
            documents.into_iter().map(|document| (document.name.clone(), document)).collect()
        }
        None => HashMap::new(),
    };
    let mut sum = Sum::default();
    let mut exit = Exit::Success;
    let mut progress = ProgressLine::new(options.json);
    for source in &sources.documents {
        let outcome = one(kb, options, &chosen, source, stored.get(&source.name), &mut progress).await;
        progress.end();
        match outcome {
            Ok(outcome) => exit = exit.max(report(options, &source.name, &outcome, &mut sum)),
            // A wrong document does not keep the others out. What would fail for all of them ends the command.
            Err(error) if concerns_document(&error) => {
                sum.failed += 1;
                exit = exit.max(Exit::Failure);
                if options.json {
                    let failed = json!({"document": source.name, "status": "failed", "code": error.code.as_str(),
                        "message": error.message});
                    exit = exit.max(print_json(&failed));
                } else {
                    print_archive_error(error);
                }
            }
            Err(error) => return Err(print_archive_error(error)),
        }
    }
    print_sum(options, &sum, chosen.embedder.cost_of(sum.tokens));
    Ok(exit)
}

fn concerns_document(error: &ArchiveError) -> bool {
    use redflow_contract::code::ArchiveCode::{DocumentTooLarge, DocumentUnreadable, EntryInvalid};
    matches!(error.code, DocumentTooLarge | DocumentUnreadable | EntryInvalid)
}

async fn one(
    kb: &Kb<'_>,
    options: &AddOptions,
    chosen: &Chosen,
    source: &Source,
    stored: Option<&Document>,
    progress: &mut ProgressLine,
) -> Result<Outcome, ArchiveError> {
    let Fetched { kind, bytes } = fetch(source, &kb.egress).await?;
    let (digest, size) = (Digest::of(&bytes), bytes.len() as u64);
    if stored.is_some_and(|known| DocumentToAdd::is_stored(known, &digest, &options.tag)) {
        return Ok(Outcome::Unchanged);
    }
    let content = read_content(&kb.worker, kind, &source.name, bytes).await?;
    if options.dry_run {
        let (passages, tokens) = kb.base.estimate(&*chosen.embedder, &content).await?;
        return Ok(Outcome::Estimated(passages, tokens));
    }
    let document = DocumentToAdd {
        name: source.name.clone(),
        origin: source.origin(),
        digest,
        bytes: size,
        tags: options.tag.clone(),
        content,
    };
    let mut show = |at| progress.show(&source.name, at);
    let added = kb.base.add(&options.name, &*chosen.embedder, &chosen.settings, document, &mut show).await?;
    Ok(Outcome::Added(added))
}

/// Counts an outcome and prints it.
fn report(options: &AddOptions, document: &str, outcome: &Outcome, sum: &mut Sum) -> Exit {
    let line = |text: &str| print_text(&format!("{}: {text}\n", printable_line(document, 200)));
    match outcome {
        Outcome::Added(added) => {
            sum.added += 1;
            sum.passages += u64::from(added.passages);
            sum.used.add(added.used);
            if options.json { print_json(&use_json(document, added)) } else { line(&format_use(added)) }
        }
        Outcome::Unchanged => {
            sum.unchanged += 1;
            if options.json {
                print_json(&json!({"document": document, "status": "unchanged"}))
            } else {
                Exit::Success
            }
        }
        Outcome::Estimated(passages, tokens) => {
            sum.added += 1;
            sum.passages += passages;
            sum.tokens += tokens;
            if options.json {
                let estimate = json!({"document": document, "status": "would be added", "passages": passages,
                    "estimatedTokens": tokens});
                print_json(&estimate)
            } else {
                line(&format!("{} to embed, about {tokens} tokens", count_of(*passages, "passage")))
            }
        }
    }
}

fn count_of(number: u64, noun: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

/// `estimate` is the cost of the tokens that would be embedded.
fn print_sum(options: &AddOptions, sum: &Sum, estimate: Option<f64>) {
    let mut parts = vec![format!(
        "{} {}",
        count(sum.added, "document"),
        if options.dry_run { "to add" } else { "added" }
    )];
    if options.dry_run {
        parts.push(format!("{} to embed, about {} tokens", count_of(sum.passages, "passage"), sum.tokens));
        parts.extend(estimate.map(|cost| format!("cost {cost:.6}")));
    } else if sum.added > 0 {
        parts.push(count_of(sum.passages, "passage"));
        if sum.used.tokens > 0 {
            parts.push(format!("{} tokens", sum.used.tokens));
        }
        parts.extend(sum.used.cost.map(|cost| format!("cost {cost:.6}")));
    }
    if sum.unchanged > 0 {
        parts.push(format!("{} unchanged", sum.unchanged));
    }
    if sum.failed > 0 {
        parts.push(format!("{} failed", sum.failed));
    }
    print_note(&format!("{}: {}", options.name, parts.join(", ")));
}
