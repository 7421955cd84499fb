//! What the commands print.

use crate::text::{count, printable, printable_line};
use crate::times::format_time;
use redflow_contract::archive::{Entry, SearchHit};
use redflow_contract::memory_api::{ForgetAnswer, MemoryCollection, MemoryEntryDetail};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

/// The most characters of a name.
const MAX_NAME: usize = 200;

pub(super) fn format_memories(all: &[MemoryCollection]) -> String {
    let width = all.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for one in all {
        let mut entries = match one.entries {
            1 => "1 entry".to_owned(),
            many => format!("{many} entries"),
        };
        if one.quarantined > 0 {
            let _ = write!(entries, " ({} to review)", one.quarantined);
        }
        let (name, embedder) = (printable_line(&one.name, MAX_NAME), printable_line(&one.embedder, 80));
        let _ = writeln!(out, "{name:width$}  {entries}, {embedder}");
    }
    out
}

pub(super) fn format_entries(all: &[Entry]) -> String {
    all.iter().map(format_entry).collect()
}

pub(super) fn format_detail(detail: &MemoryEntryDetail) -> String {
    let mut out = format_entry(&detail.entry);
    for former in &detail.history {
        let _ = writeln!(out, "version {}, {}", former.version, format_time(former.created_at));
        write_text(&mut out, &former.text);
    }
    out
}

/// Each entry with its score and why it was found.
pub(super) fn format_hits(hits: &[SearchHit]) -> String {
    let mut out = String::new();
    for (number, hit) in (1..).zip(hits) {
        let reason = &hit.reason;
        let mut why: Vec<String> = Vec::new();
        if let (Some(rank), Some(cosine)) = (reason.vector_rank, reason.cosine) {
            why.push(format!("rank {rank} by vector, cosine {cosine:.2}"));
        } else if let Some(cosine) = reason.cosine {
            why.push(format!("cosine {cosine:.2}"));
        }
        why.extend(reason.text_rank.map(|rank| format!("rank {rank} by words")));
        let key = printable_line(&hit.entry.key, MAX_NAME);
        let about = about(&hit.entry);
        let _ = writeln!(out, "{number}. {:.2}  {key}\n   {}\n   {about}", hit.score, why.join("; "));
        write_text(&mut out, &hit.entry.text);
    }
    out
}

pub(super) fn format_forgotten(answer: &ForgetAnswer) -> String {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let forgotten = &answer.forgotten;
    let entries = match forgotten.entries {
        1 => "1 entry".to_owned(),
        many => format!("{many} entries"),
    };
    let conversations = count(number(forgotten.conversations), "conversation");
    format!("{entries}, {conversations} and {} forgotten\n", count(number(forgotten.runs), "run"))
}

fn format_entry(entry: &Entry) -> String {
    let mut out = format!("{}\n  {}\n", printable_line(&entry.key, MAX_NAME), about(entry));
    write_text(&mut out, &entry.text);
    out
}

fn about(entry: &Entry) -> String {
    let Entry { kind, state, trust, version, .. } = entry;
    let mut text = format!("{}, {}, by {}, version {version}", word(kind), word(state), word(trust));
    if let Some(user) = &entry.user {
        let _ = write!(text, ", user {user}");
    }
    if let Some(session) = &entry.session {
        let _ = write!(text, ", session {session}");
    }
    if !entry.tags.is_empty() {
        let _ = write!(text, ", tags {}", entry.tags.join(", "));
    }
    let _ = write!(text, ", true since {}", format_time(entry.valid_from));
    if let Some(end) = entry.valid_to {
        let _ = write!(text, " until {}", format_time(end));
    }
    if let Some(expires_at) = entry.expires_at {
        let _ = write!(text, ", expires {}", format_time(expires_at));
    }
    printable_line(&text, 2 * MAX_NAME)
}

/// The name of a kind, a state or a trust, as JSON writes it.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

fn write_text(out: &mut String, text: &str) {
    for line in printable(text).lines() {
        let _ = writeln!(out, "  | {line}");
    }
    out.push('\n');
}
