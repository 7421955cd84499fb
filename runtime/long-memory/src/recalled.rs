//! What the run of a turn has recalled. The turn names it, so that the memory does not learn again what it has itself
//! given to the model.

use crate::names::span_key;
use crate::store::EntryStore;
use redflow_contract::Message;
use redflow_contract::archive::{Entry, SourceKind};
use redflow_contract::digest::Digest;
use redflow_contract::source::{MAX_RUN_SOURCES, Source};
use redflow_ports::ArchiveError;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The recalled entries that are counted as used at the next maintenance.
const MAX_KEYS: usize = 10_000;
/// The most bytes of the names of recalled entries. The metadata of an entry has room for 16 KiB.
const MAX_BYTES: usize = 12 * 1024;
/// Where a turn names the recalled entries.
const RECALLED: &str = "recalled";
/// Where a turn says that it does not name all of them.
const MORE: &str = "recalledMore";

/// An entry that a run has recalled.
struct RecalledEntry {
    key: String,
    /// The digest of its text at that time.
    digest: Option<Digest>,
}

/// Names the entries of a memory among the sources of a run, as many as have room.
pub(crate) fn note_recalled(meta: &mut Message, sources: &[Source], memory: &str) {
    let (mut names, mut bytes) = (Vec::new(), 0);
    // A run keeps no more sources, so there may have been others.
    let mut is_whole = sources.len() < MAX_RUN_SOURCES;
    let keys = sources.iter().filter_map(|source| Some((entry_key(source, memory)?, source.digest)));
    for (key, digest) in keys.take(MAX_RUN_SOURCES) {
        let name = json!({"key": key, "digest": digest});
        let length = name.to_string().len() + 1;
        if bytes + length > MAX_BYTES {
            is_whole = false;
            continue;
        }
        bytes += length;
        names.push(name);
    }
    if !is_whole {
        meta.insert(MORE.to_owned(), json!(true));
    }
    if !names.is_empty() {
        meta.insert(RECALLED.to_owned(), Value::from(names));
    }
}

/// The key of the entry that a source names; none if it is no entry of this memory.
fn entry_key(source: &Source, memory: &str) -> Option<String> {
    match source.kind {
        SourceKind::Memory => Some(source.reference.strip_prefix(memory)?.strip_prefix('/')?.to_owned()),
        // What a tool has read has no version and no copy.
        SourceKind::Mcp => source.version.map(|_| span_key(&source.reference)),
        SourceKind::Knowledge | SourceKind::Tool | SourceKind::Document => None,
    }
}

fn recalled_of(turn: &Entry) -> Vec<RecalledEntry> {
    let all = turn.meta.get(RECALLED).and_then(Value::as_array).into_iter().flatten();
    let read = |value: &Value| {
        let key = value.get("key")?.as_str()?.to_owned();
        let digest = value.get("digest").and_then(Value::as_str).and_then(Digest::parse_hex);
        Some(RecalledEntry { key, digest })
    };
    all.filter_map(read).collect()
}

/// The texts that a run has recalled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecalledTexts {
    pub(crate) texts: Vec<String>,
    /// Whether these are all. If not, an answer may repeat a text that is gone.
    pub(crate) is_whole: bool,
}

impl RecalledTexts {
    /// The texts that the run of a stored turn has recalled, as they were then.
    pub(crate) async fn of(store: &EntryStore, turn: &Entry) -> Result<Self, ArchiveError> {
        let mut found = Self { texts: Vec::new(), is_whole: !turn.meta.contains_key(MORE) };
        for recalled in recalled_of(turn) {
            match recalled.text(store).await? {
                Some(text) => found.texts.push(text),
                None => found.is_whole = false,
            }
        }
        Ok(found)
    }
}

impl RecalledEntry {
    /// Its text at that time; none if it was removed, or changed too often since.
    async fn text(&self, store: &EntryStore) -> Result<Option<String>, ArchiveError> {
        let is_recalled = |entry: &Entry| self.digest.is_none_or(|digest| digest == entry.content_hash);
        let Some(entry) = store.get(&self.key).await? else { return Ok(None) };
        if is_recalled(&entry) {
            return Ok(Some(entry.text));
        }
        let former = store.history(&self.key).await?.into_iter().find(is_recalled);
        Ok(former.map(|entry| entry.text))
    }
}

/// The keys of the entries that were recalled since the last maintenance, as many as have room.
#[derive(Default)]
pub(crate) struct RecalledKeys(Mutex<BTreeSet<String>>);

impl RecalledKeys {
    pub(crate) fn add<'a>(&self, keys: impl Iterator<Item = &'a str>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            if all.len() < MAX_KEYS {
                all.insert(key.to_owned());
            }
        }
    }

    /// Takes all keys out.
    pub(crate) fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::RecalledKeys;

    #[test]
    fn ten_thousand_recalled_entries_are_counted_as_used() {
        let recalled = RecalledKeys::default();
        let keys: Vec<String> = (0..10_010).map(|number| number.to_string()).collect();
        for _ in 0..2 {
            recalled.add(keys.iter().map(String::as_str));
        }
        assert_eq!((recalled.take().len(), recalled.take().len()), (10_000, 0));
        recalled.add(["a", "b", "a"].into_iter());
        assert_eq!(recalled.take().len(), 2);
    }
}
