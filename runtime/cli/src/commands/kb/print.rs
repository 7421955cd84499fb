//! What the commands print.

use crate::terminal::print_part;
use crate::text::{count, format_size, printable, printable_line};
use crate::times::format_time;
use redflow_contract::archive::{Collection, Document, Entry, KnowledgePassage, PassageMetadata};
use redflow_knowledge::{AddResult, Progress};
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

pub(super) fn format_use(added: &AddResult) -> String {
    let mut text = count(usize::try_from(added.passages).unwrap_or(usize::MAX), "passage");
    if added.used.tokens > 0 {
        let _ = write!(text, ", {} embedded, {} tokens", added.used.texts, added.used.tokens);
    }
    if let Some(cost) = added.used.cost {
        let _ = write!(text, ", cost {cost:.6}");
    }
    text
}

pub(super) fn use_json(document: &str, added: &AddResult) -> Value {
    let mut value = json!({"document": document, "status": "added", "passages": added.passages,
        "embedded": added.used.texts, "tokens": added.used.tokens});
    if let Some(cost) = added.used.cost {
        value["cost"] = json!(cost);
    }
    value
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
        let tags =
            if one.tags.is_empty() { String::new() } else { format!(", tags {}", one.tags.join(", ")) };
        let _ = writeln!(
            out,
            "{}\n  {} ({}, {passages}, added {}{})",
            printable_line(&one.name, 200),
            printable_line(&one.title, 200),
            format_size(one.bytes),
            format_time(one.added_at),
            printable_line(&tags, 200),
        );
    }
    out
}

pub(super) fn format_passages(all: &[Entry]) -> String {
    let mut out = String::new();
    for (number, entry) in (1..).zip(all) {
        let metadata: PassageMetadata =
            serde_json::from_value(Value::Object(entry.meta.clone())).unwrap_or_default();
        let _ = writeln!(out, "{number}. {}", place(&metadata));
        write_text(&mut out, &entry.text);
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
