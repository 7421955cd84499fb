//! Passages as entries of the archive.

use crate::documents::{Passage, Place};
use redflow_contract::Message;
use redflow_contract::archive::{Entry, KnowledgePassage, PassageMetadata, SearchHit};
use redflow_contract::knowledge_api::StoredPassage;
use redflow_ports::NewEntry;
use serde_json::Value;

/// The text of which a vector is made: the passage below the headings above it.
pub(crate) fn embedded_text(title: &str, passage: &Passage) -> String {
    joined(title, &passage.headings, &passage.text)
}

fn joined(title: &str, headings: &[String], text: &str) -> String {
    let mut out = title.to_owned();
    for heading in headings.iter().filter(|heading| *heading != title) {
        out.push_str(" > ");
        out.push_str(heading);
    }
    out.push('\n');
    out.push_str(text);
    out
}

pub(crate) fn entry_text(entry: &Entry) -> String {
    let metadata = metadata_of(entry);
    joined(&metadata.title, &metadata.headings, &entry.text)
}

pub(crate) fn metadata(document: &str, title: &str, passage: &Passage, chunk: u32) -> Message {
    let mut metadata = PassageMetadata {
        document: document.to_owned(),
        title: title.to_owned(),
        headings: passage.headings.clone(),
        chunk,
        ..PassageMetadata::default()
    };
    match &passage.place {
        Place::Whole => {}
        Place::Page(page) => metadata.page = Some(*page),
        Place::Row(row) => metadata.row = Some(*row),
        Place::Pointer(pointer) => metadata.pointer = Some(pointer.clone()),
    }
    match serde_json::to_value(&metadata) {
        Ok(Value::Object(map)) => map,
        _ => Message::new(),
    }
}

fn metadata_of(entry: &Entry) -> PassageMetadata {
    serde_json::from_value(Value::Object(entry.meta.clone())).unwrap_or_default()
}

/// An entry with another vector.
pub(crate) fn again(entry: Entry, vector: Vec<f32>) -> NewEntry {
    NewEntry {
        vector: Some(vector),
        created_at: Some(entry.created_at),
        valid_from: Some(entry.valid_from),
        expires_at: entry.expires_at,
        meta: entry.meta,
        tags: entry.tags,
        trust: entry.trust,
        importance: entry.importance,
        source: entry.source,
        ..NewEntry::new(entry.key, entry.kind, entry.text)
    }
}

pub(crate) fn passage(hit: SearchHit) -> KnowledgePassage {
    let (digest, trust) = (Some(hit.entry.content_hash), Some(hit.entry.trust));
    let StoredPassage { content, metadata } = stored_passage(hit.entry);
    KnowledgePassage { content, score: hit.score, metadata, reason: hit.reason, digest, trust }
}

pub(crate) fn stored_passage(entry: Entry) -> StoredPassage {
    let metadata = PassageMetadata { added_at: Some(entry.created_at), ..metadata_of(&entry) };
    StoredPassage { content: entry.text, metadata }
}
