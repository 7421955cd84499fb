//! Spans of context: resources of MCP servers that are recalled with every message. Each has a copy in the archive, so
//! a server that is slow or offline costs no answer.

use crate::clean::clean;
use crate::names::span_key;
use crate::owner::is_found;
use crate::store::EntryStore;
use redflow_contract::archive::{
    Entry, EntryKind, EntrySource, EntryState, MAX_ENTRY_TEXT, SourceKind, Trust,
};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_contract::node::{ContextSpanConfig, MAX_RECALL_TOKENS};
use redflow_contract::secret::mask_secrets;
use redflow_contract::{Message, Millis};
use redflow_ports::{
    ArchiveError, Clock, ContextSource, ContextSpan, Expected, Measurement, MemoryStore, NewEntry,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// The spans of one memory that are recalled: the first ones.
pub(crate) const MAX_SPANS: usize = 16;
/// The tokens of a span, if the node does not say.
const DEFAULT_TOKENS: u32 = 400;
/// How long a recall waits for spans without a copy, all together.
const RECALL_WAIT: Duration = Duration::from_secs(2);
/// The longest time to read a resource. No run waits so long.
const READ_TIME: Duration = Duration::from_secs(30);
/// How long a copy is fresh, if the server does not say.
const FRESH_MS: Millis = 10 * 60 * 1_000;
/// How long a copy is used after that, if the server cannot be read.
const STALE_MS: Millis = 24 * 60 * 60 * 1_000;
/// A resource that could not be read is not asked for again before this time is over.
const RETRY_MS: Millis = 30 * 1_000;

/// Where the metadata of a copy says until when it is fresh.
const FRESH_UNTIL: &str = "freshUntil";

/// A span that the node wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpanSettings {
    server: String,
    resource: String,
    /// The most tokens of its line.
    tokens: usize,
    /// Whether the first copy stays.
    is_pinned: bool,
    key: String,
}

impl SpanSettings {
    /// The spans of a node.
    pub(crate) fn all(context: &[ContextSpanConfig]) -> Vec<Self> {
        let is_named =
            |span: &&ContextSpanConfig| !span.server.trim().is_empty() && !span.resource.trim().is_empty();
        context.iter().filter(is_named).take(MAX_SPANS).map(Self::new).collect()
    }

    fn new(span: &ContextSpanConfig) -> Self {
        let (server, resource) = (span.server.trim().to_owned(), span.resource.trim().to_owned());
        let tokens = span.tokens.unwrap_or(DEFAULT_TOKENS).clamp(1, MAX_RECALL_TOKENS) as usize;
        let key = span_key(&reference(&server, &resource));
        Self { server, resource, tokens, is_pinned: span.pin.unwrap_or(false), key }
    }
}

/// The name of a resource in provenance.
fn reference(server: &str, resource: &str) -> String {
    format!("{server} {resource}")
}

/// The text of a resource, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpanText {
    /// The key of its copy.
    pub(crate) key: String,
    pub(crate) text: String,
    /// When it was read.
    pub(crate) at: Millis,
    pub(crate) version: u32,
    pub(crate) digest: Digest,
}

impl From<Entry> for SpanText {
    fn from(entry: Entry) -> Self {
        let Entry { key, text, version, valid_from, content_hash, .. } = entry;
        Self { key, text, at: valid_from, version, digest: content_hash }
    }
}

/// A span to recall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: SpanText,
    /// The name of the resource.
    pub(crate) reference: String,
    /// The most tokens of its line.
    pub(crate) tokens: usize,
}

/// The spans of a memory.
pub(crate) struct Spans {
    pub(crate) wanted: Vec<SpanSettings>,
    pub(crate) source: Arc<dyn ContextSource>,
    pub(crate) store: Arc<EntryStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) reads: Mutex<Reads>,
}

/// The text of a resource that is read now; none until then.
type ReadText = watch::Receiver<Option<SpanText>>;

/// What this process reads now, and what it could not read, by key.
#[derive(Default)]
pub(crate) struct Reads {
    running: HashMap<String, ReadText>,
    failed_at: HashMap<String, Millis>,
}

impl Spans {
    /// The copies of all spans, in the order of the node. Those that cannot be read are left out.
    pub(crate) async fn recall(self: &Arc<Self>) -> Vec<Span> {
        let deadline = Instant::now() + RECALL_WAIT;
        let mut found = Vec::with_capacity(self.wanted.len());
        for span in &self.wanted {
            found.push(self.look_up(span).await);
        }
        let mut spans = Vec::with_capacity(found.len());
        for (span, found) in self.wanted.iter().zip(found) {
            let text = match found {
                CachedSpan::Copy(text) => Some(text),
                CachedSpan::Reading(mut reading) => match timeout_at(deadline, reading.changed()).await {
                    Ok(Ok(())) => reading.borrow().clone(),
                    Ok(Err(_)) | Err(_) => None,
                },
                CachedSpan::Nothing => None,
            };
            let (reference, tokens) = (reference(&span.server, &span.resource), span.tokens);
            spans.extend(text.map(|text| Span { text, reference, tokens }));
        }
        spans
    }

    /// What is there of a span. Begins to read it, if that is due.
    async fn look_up(self: &Arc<Self>, span: &SpanSettings) -> CachedSpan {
        // An archive that fails costs the copy. The recall of the entries says why.
        let known = self.store.get(&span.key).await.ok().flatten();
        let now = self.clock.now();
        let version = known.as_ref().map(|entry| entry.version);
        let usable = known.map(|entry| (use_of(&entry, span, now), SpanText::from(entry)));
        let found = matches!(usable, Some((Use::Now | Use::Meanwhile, _)));
        self.store.meter.record(Measurement::MemoryLookup { store: MemoryStore::Span, found });
        match usable {
            Some((Use::Never, _)) => CachedSpan::Nothing,
            Some((Use::Now, text)) => CachedSpan::Copy(text),
            Some((Use::Meanwhile, text)) => {
                self.begin(span, version, now);
                CachedSpan::Copy(text)
            }
            Some((Use::Again, _)) | None => {
                self.begin(span, version, now).map_or(CachedSpan::Nothing, CachedSpan::Reading)
            }
        }
    }

    /// Begins to read a resource, or joins a read that has begun. None if it failed a moment ago.
    fn begin(self: &Arc<Self>, span: &SpanSettings, version: Option<u32>, now: Millis) -> Option<ReadText> {
        let mut reads = self.reads();
        if let Some(reading) = reads.running.get(&span.key) {
            return Some(reading.clone());
        }
        let is_recent = |failed_at: &Millis| (*failed_at..failed_at.saturating_add(RETRY_MS)).contains(&now);
        if reads.failed_at.get(&span.key).is_some_and(is_recent) {
            return None;
        }
        let (sender, reading) = watch::channel(None);
        reads.running.insert(span.key.clone(), reading.clone());
        let (spans, span) = (Arc::clone(self), span.clone());
        tokio::spawn(async move {
            let text = spans.read(&span, version).await;
            let mut reads = spans.reads();
            reads.running.remove(&span.key);
            match text {
                Some(text) => {
                    reads.failed_at.remove(&span.key);
                    // The receiver may be gone.
                    let _ = sender.send(Some(text));
                }
                None => {
                    reads.failed_at.insert(span.key.clone(), spans.clock.now());
                }
            }
        });
        Some(reading)
    }

    /// Reads a resource, and stores the copy. `version` is that of the copy that it replaces.
    async fn read(&self, span: &SpanSettings, version: Option<u32>) -> Option<SpanText> {
        let SpanSettings { server, resource, .. } = span;
        let answer = timeout(READ_TIME, self.source.read(server, resource)).await;
        let answer =
            answer.unwrap_or_else(|_| Err(format!("no answer within {} seconds", READ_TIME.as_secs())));
        let text = match answer {
            Ok(text) => text,
            Err(reason) => {
                tracing::warn!(
                    server,
                    resource = &*mask_secrets(resource),
                    reason = &*mask_secrets(&reason),
                    "a resource of an MCP server was not read; the memory uses its last copy, if it has one"
                );
                return None;
            }
        };
        let new = copy_of(span, &text, version, self.clock.now());
        if new.text.is_empty() {
            return None;
        }
        let read = SpanText {
            key: new.key.clone(),
            text: new.text.clone(),
            at: new.valid_from.unwrap_or(0),
            version: version.map_or(1, |version| version.saturating_add(1)),
            digest: Digest::of(new.text.as_bytes()),
        };
        if let Err(error) = self.keep(new).await {
            tracing::warn!(
                server,
                code = error.code.as_str(),
                "the copy of a resource was not stored: {}",
                error.message
            );
        }
        Some(read)
    }

    async fn keep(&self, new: NewEntry) -> Result<(), ArchiveError> {
        // A new collection needs the length of a vector. The copy itself has none: it is not searched.
        if self.store.find().await?.is_none() {
            self.store.prepare(std::slice::from_ref(&new.text)).await?;
        }
        match self.store.put(vec![new]).await {
            // Another process, or a person, has stored one meanwhile.
            Err(error) if error.code == ArchiveCode::MemoryConflict => Ok(()),
            stored => stored.map(drop),
        }
    }

    fn reads(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is there of a span.
enum CachedSpan {
    Copy(SpanText),
    Reading(ReadText),
    Nothing,
}

/// How a stored copy may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// As it is.
    Now,
    /// While the resource is read again.
    Meanwhile,
    /// Not any more: its time is over.
    Again,
    /// Not at all: a person has taken it out, or it is another entry.
    Never,
}

fn use_of(entry: &Entry, span: &SpanSettings, now: Millis) -> Use {
    if entry.kind != EntryKind::Span {
        return Use::Never;
    }
    let fresh_until = entry.meta.get(FRESH_UNTIL).and_then(Value::as_u64).unwrap_or(0);
    // A clock that was set back makes nothing fresh.
    let is_fresh = (entry.valid_from..fresh_until).contains(&now);
    match entry.state {
        EntryState::Pinned => Use::Now,
        EntryState::Live if !is_found(entry, now) => Use::Again,
        EntryState::Live if is_fresh && !span.is_pinned => Use::Now,
        // If the node was changed, the next copy is pinned.
        EntryState::Live => Use::Meanwhile,
        EntryState::Archived | EntryState::Superseded | EntryState::Quarantined => Use::Never,
    }
}

/// The copy of a resource as it is stored.
fn copy_of(span: &SpanSettings, text: &ContextSpan, version: Option<u32>, now: Millis) -> NewEntry {
    let fresh_until = text.expires_at.unwrap_or(now.saturating_add(FRESH_MS));
    let mut meta = Message::new();
    meta.insert(FRESH_UNTIL.to_owned(), json!(fresh_until));
    let ends = fresh_until.max(now).saturating_add(STALE_MS);
    let source = EntrySource {
        kind: SourceKind::Mcp,
        reference: reference(&span.server, &span.resource),
        digest: Some(text.digest),
    };
    NewEntry {
        expected: version.map_or(Expected::Absent, Expected::Version),
        meta,
        state: if span.is_pinned { EntryState::Pinned } else { EntryState::Live },
        valid_from: Some(now),
        expires_at: (!span.is_pinned).then_some(ends),
        trust: Trust::External,
        source: Some(source),
        ..NewEntry::new(&*span.key, EntryKind::Span, clean(&text.text, MAX_ENTRY_TEXT))
    }
}
