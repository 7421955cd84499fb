//! `redflow kb add`. Files and addresses are read here, also for the knowledge base of a sidecar.

use super::Kb;
use super::print::{ProgressLine, format_use, use_json, warn_if_lexical};
use super::sources::{Fetched, Source, fetch, find};
use crate::args::AddOptions;
use crate::errors::{print_api_error, print_archive_error};
use crate::exit::{CommandResult, Exit};
use crate::terminal::{fail, print_json, print_note, print_text, print_warning};
use crate::text::{count, printable_line};
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::archive::Document;
use redflow_contract::code::{ApiCode, ArchiveCode};
use redflow_contract::digest::Digest;
use redflow_contract::knowledge_api::{DocumentAnswer, DocumentStatus, EmbedderChoice};
use redflow_knowledge::{DocumentToAdd, check_tags};
use redflow_ports::NewDocument;
use serde_json::json;
use std::collections::HashMap;

/// If the provider refuses so many documents in a row, the settings are wrong and not the texts.
const MAX_REFUSED: usize = 3;

/// What was done with the documents of a command.
#[derive(Default)]
struct Sum {
    added: usize,
    unchanged: usize,
    failed: usize,
    passages: u64,
    tokens: u64,
    /// None if the model has no price.
    cost: Option<f64>,
}

impl Sum {
    fn add(&mut self, passages: u32, answer: &DocumentAnswer) {
        self.added += 1;
        self.passages += u64::from(passages);
        self.tokens += answer.tokens;
        if let Some(cost) = answer.cost {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
    }
}

pub(super) async fn add(kb: &Kb, options: &AddOptions) -> CommandResult {
    let sources = find(&options.paths).map_err(|text| fail(&text))?;
    if sources.links > 0 {
        print_warning(&format!("{} not followed", count(sources.links, "link")));
    }
    if sources.skipped > 0 {
        print_note(&format!("{} of other kinds left out", count(sources.skipped, "file")));
    }
    check_tags(&options.tag).map_err(print_archive_error)?;
    let (stored, mut is_new) = stored_documents(kb, &options.name).await.map_err(print_api_error)?;
    let mut sum = Sum::default();
    let mut exit = Exit::Success;
    for (document, error) in sources.failed {
        exit = exit.max(report_failed(options, &document, error.into(), &mut sum));
    }
    // The documents in a row whose texts the provider has refused.
    let mut refused = 0;
    let mut progress = ProgressLine::new(options.json);
    for source in &sources.documents {
        let outcome = add_source(kb, options, source, stored.get(&source.name), &mut progress).await;
        progress.end();
        match outcome {
            Ok(outcome) => {
                if let Some(answer) = outcome.as_ref().filter(|_| std::mem::take(&mut is_new)) {
                    warn_if_lexical(answer);
                }
                refused = 0;
                exit = exit.max(report(options, &source.name, outcome.as_ref(), &mut sum));
            }
            Err(error) => {
                refused = if is_refused(&error) { refused + 1 } else { 0 };
                // A wrong document does not keep the others out. What would fail for all of them ends the command.
                if !concerns_document(&error) || refused == MAX_REFUSED {
                    return Err(print_api_error(error));
                }
                exit = exit.max(report_failed(options, &source.name, error, &mut sum));
            }
        }
    }
    print_sum(options, &sum);
    Ok(exit)
}

/// The stored documents by name, and whether the knowledge base must be made.
async fn stored_documents(kb: &Kb, name: &str) -> Result<(HashMap<String, Document>, bool), ApiError> {
    match kb.documents(name).await {
        Ok(all) => Ok((all.into_iter().map(|document| (document.name.clone(), document)).collect(), false)),
        Err(error) if error.code == ProblemCode::Archive(ArchiveCode::CollectionUnknown) => {
            Ok((HashMap::new(), true))
        }
        Err(error) => Err(error),
    }
}

/// Counts a document that cannot be added, and prints why.
fn report_failed(options: &AddOptions, document: &str, error: ApiError, sum: &mut Sum) -> Exit {
    sum.failed += 1;
    if options.json {
        let failed = json!({"document": document, "status": "failed", "code": error.code.as_str(),
            "message": error.message});
        return print_json(&failed).max(Exit::Failure);
    }
    // A text of the provider does not name the document.
    if is_refused(&error) {
        print_note(&format!("{} cannot be added:", printable_line(document, 200)));
    }
    print_api_error(error);
    Exit::Failure
}

fn concerns_document(error: &ApiError) -> bool {
    use ArchiveCode::{DocumentTooLarge, DocumentUnreadable, EntryInvalid, TextRefused};
    match error.code {
        ProblemCode::Archive(code) => {
            matches!(code, DocumentTooLarge | DocumentUnreadable | EntryInvalid | TextRefused)
        }
        // A sidecar can have a lower limit.
        ProblemCode::Api(code) => code == ApiCode::BodyTooLarge,
        _ => false,
    }
}

/// Whether the provider of the embedder refuses a text of the document.
fn is_refused(error: &ApiError) -> bool {
    error.code == ProblemCode::Archive(ArchiveCode::TextRefused)
}

/// Adds a document. None if it is stored with the same content.
async fn add_source(
    kb: &Kb,
    options: &AddOptions,
    source: &Source,
    stored: Option<&Document>,
    progress: &mut ProgressLine,
) -> Result<Option<DocumentAnswer>, ApiError> {
    let Fetched { kind, bytes } = fetch(source, &kb.egress).await?;
    let embedder = options.embedder.choice();
    // An embedder that the options choose must be compared with that of the knowledge base.
    let is_chosen = embedder != EmbedderChoice::default();
    let is_stored = |known: &Document| {
        DocumentToAdd::is_stored(known, &Digest::of(&bytes), &options.tag, options.retention_days.is_some())
    };
    if !is_chosen && stored.is_some_and(is_stored) {
        return Ok(None);
    }
    let document = NewDocument {
        name: source.name.clone(),
        kind,
        origin: source.origin(),
        tags: options.tag.clone(),
        retention_days: options.retention_days,
        bytes,
        embedder,
        is_dry_run: options.dry_run,
    };
    let mut show = |at| progress.show(&source.name, at);
    let answer = kb.knowledge.add(&options.name, document, &mut show).await?;
    Ok(Some(answer).filter(|answer| answer.status != DocumentStatus::Unchanged))
}

/// Counts an outcome and prints it.
fn report(options: &AddOptions, document: &str, outcome: Option<&DocumentAnswer>, sum: &mut Sum) -> Exit {
    let line = |text: &str| print_text(&format!("{}: {text}\n", printable_line(document, 200)));
    let Some(answer) = outcome else {
        sum.unchanged += 1;
        return if options.json {
            print_json(&json!({"document": document, "status": "unchanged"}))
        } else {
            Exit::Success
        };
    };
    if options.dry_run {
        let DocumentAnswer { embedded, tokens, .. } = answer;
        sum.add(*embedded, answer);
        return if options.json {
            print_json(&json!({"document": document, "status": "would be added", "passages": embedded,
                "estimatedTokens": tokens}))
        } else {
            line(&format!("{} to embed, about {tokens} tokens", count_of(u64::from(*embedded), "passage")))
        };
    }
    sum.add(answer.passages, answer);
    if options.json { print_json(&use_json(answer)) } else { line(&format_use(answer)) }
}

fn count_of(number: u64, noun: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

fn print_sum(options: &AddOptions, sum: &Sum) {
    let mut parts = vec![format!(
        "{} {}",
        count(sum.added, "document"),
        if options.dry_run { "to add" } else { "added" }
    )];
    if options.dry_run {
        parts.push(format!("{} to embed, about {} tokens", count_of(sum.passages, "passage"), sum.tokens));
        parts.extend(sum.cost.map(|cost| format!("cost {cost:.6}")));
    } else if sum.added > 0 {
        parts.push(count_of(sum.passages, "passage"));
        if sum.tokens > 0 {
            parts.push(format!("{} tokens", sum.tokens));
        }
        parts.extend(sum.cost.map(|cost| format!("cost {cost:.6}")));
    }
    if sum.unchanged > 0 {
        parts.push(format!("{} unchanged", sum.unchanged));
    }
    if sum.failed > 0 {
        parts.push(format!("{} failed", sum.failed));
    }
    print_note(&format!("{}: {}", options.name, parts.join(", ")));
}
