//! What the commands print.

use crate::terminal::{print_part, print_warning};
use crate::text::{count, format_size, printable, printable_line};
use crate::times::format_time;
use redflow_contract::archive::{Collection, Document, KnowledgePassage, PassageMetadata};
use redflow_contract::knowledge_api::{DocumentAnswer, StoredPassage};
use redflow_ports::Progress;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::IsTerminal as _;

/// The progress of long work, in one line of a terminal that is written again and again.
pub(super) struct ProgressLine {
    is_shown: bool,
    is_open: bool,
}

impl ProgressLine {
    pub(super) fn new(json: bool) -> Self {
        Self { is_shown: !json && std::io::stderr().is_terminal(), is_open: false }
    }

    pub(super) fn show(&mut self, name: &str, at: Progress) {
        if self.is_shown && at.all > 0 {
            let percent = at.done * 100 / at.all;
            print_part(&format!(
                "\r\u{1b}[K{}: {percent} % of {}",
                printable_line(name, 80),
                count(at.all, "passage")
            ));
            self.is_open = true;
        }
    }

    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            print_part("\r\u{1b}[K");
        }
    }
}

pub(super) fn format_use(added: &DocumentAnswer) -> String {
    let mut text = count(usize::try_from(added.passages).unwrap_or(usize::MAX), "passage");
    if added.tokens > 0 {
        let _ = write!(text, ", {} embedded, {} tokens", added.embedded, added.tokens);
    }
    if let Some(cost) = added.cost {
        let _ = write!(text, ", cost {cost:.6}");
    }
    if let Some(masked) = added.masked {
        let _ = write!(text, ", {} masked", count(usize::try_from(masked).unwrap_or(usize::MAX), "secret"));
    }
    text
}

pub(super) fn use_json(added: &DocumentAnswer) -> Value {
    let mut value = json!({"document": added.document, "status": "added", "passages": added.passages,
        "embedded": added.embedded, "tokens": added.tokens});
    if let Some(cost) = added.cost {
        value["cost"] = json!(cost);
    }
    if let Some(masked) = added.masked {
        value["masked"] = json!(masked);
    }
    value
}

/// Says that an embedder finds words only.
pub(super) fn warn_if_lexical(answer: &DocumentAnswer) {
    if !answer.finds_meaning {
        print_warning(
            "EMBEDDINGS_LEXICAL: without an embedding model the search finds words, not meaning; set OPENAI_API_KEY, \
             or name a model with --embeddings",
        );
    }
}

pub(super) fn format_collections(all: &[Collection]) -> String {
    let width = all.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for one in all {
        let documents = count(usize::try_from(one.documents).unwrap_or(usize::MAX), "document");
        let passages = count(usize::try_from(one.entries).unwrap_or(usize::MAX), "passage");
        let embedder = printable_line(&one.embedder, 80);
        let _ =
            writeln!(out, "{:width$}  {documents}, {passages}, {embedder}", printable_line(&one.name, 100));
    }
    out
}

pub(super) fn format_documents(all: &[Document]) -> String {
    let mut out = String::new();
    for one in all {
        let passages = count(usize::try_from(one.chunks).unwrap_or(usize::MAX), "passage");
        let mut more =
            if one.tags.is_empty() { String::new() } else { format!(", tags {}", one.tags.join(", ")) };
        if let Some(expires_at) = one.expires_at {
            let _ = write!(more, ", expires {}", format_time(expires_at));
        }
        let _ = writeln!(
            out,
            "{}\n  {} ({}, {passages}, added {}{})",
            printable_line(&one.name, 200),
            printable_line(&one.title, 200),
            format_size(one.bytes),
            format_time(one.added_at),
            printable_line(&more, 200),
        );
    }
    out
}

pub(super) fn format_passages(all: &[StoredPassage]) -> String {
    let mut out = String::new();
    for (number, passage) in (1..).zip(all) {
        let _ = writeln!(out, "{number}. {}", place(&passage.metadata));
        write_text(&mut out, &passage.content);
    }
    out
}

/// Each passage with its score, its place and why it was found.
pub(super) fn format_hits(passages: &[KnowledgePassage]) -> String {
    let mut out = String::new();
    for (number, passage) in (1..).zip(passages) {
        let reason = &passage.reason;
        let mut why: Vec<String> = Vec::new();
        if let (Some(rank), Some(cosine)) = (reason.vector_rank, reason.cosine) {
            why.push(format!("rank {rank} by vector, cosine {cosine:.2}"));
        } else if let Some(cosine) = reason.cosine {
            why.push(format!("cosine {cosine:.2}"));
        }
        why.extend(reason.text_rank.map(|rank| format!("rank {rank} by words")));
        let place = place(&passage.metadata);
        let _ = writeln!(out, "{number}. {:.2}  {place}\n   {}", passage.score, why.join("; "));
        write_text(&mut out, &passage.content);
    }
    out
}

fn place(metadata: &PassageMetadata) -> String {
    let mut place = metadata.document.clone();
    for heading in &metadata.headings {
        let _ = write!(place, " > {heading}");
    }
    if let Some(page) = metadata.page {
        let _ = write!(place, ", page {page}");
    }
    if let Some(row) = metadata.row {
        let _ = write!(place, ", row {row}");
    }
    if let Some(pointer) = &metadata.pointer {
        let _ = write!(place, " at {}", if pointer.is_empty() { "the root" } else { pointer });
    }
    printable_line(&place, 300)
}

fn write_text(out: &mut String, text: &str) {
    for line in printable(text).lines() {
        let _ = writeln!(out, "   | {line}");
    }
    out.push('\n');
}
