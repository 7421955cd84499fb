//! The entries of a memory for tools: within the scope of the conversation, and with the trust of an agent.

use crate::clean::clean;
use crate::consolidate::{fact_expiry, note_end};
use crate::day_limits::{MAX_NEW_FACTS, new_facts, too_many_facts};
use crate::names::digits;
use crate::owner::{Owner, is_found};
use crate::prompt_injection::addresses_assistant;
use crate::settings::Settings;
use crate::store::{EntryStore, SearchOptions};
use crate::tags::stored_tags;
use redflow_contract::Message;
use redflow_contract::archive::{
    Entry, EntryKind, EntrySource, EntryState, MAX_ENTRY_TEXT, SearchHit, SourceKind, Trust,
};
use redflow_contract::code::ArchiveCode;
use redflow_contract::effect::CallConversation;
use redflow_ports::{
    AgentEntry, ArchiveError, BoxFuture, Clock, EntryFilter, EntrySearch, Expected, MemoryEntries, NewEntry,
    SearchFilter,
};
use serde_json::json;
use std::sync::Arc;

/// The most bytes of a key that an agent gives.
const MAX_KEY: usize = 128;
/// The digits of a key that is made from a call.
const KEY_DIGITS: usize = 32;
/// How often a put without an expected version is tried again, after another writer was faster.
const MAX_TRIES: usize = 8;
/// The most entries of one answer.
const MAX_ENTRIES: usize = 100;

/// The entries of one memory.
pub(crate) struct ToolEntries {
    pub(crate) store: Arc<EntryStore>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl ToolEntries {
    fn owner(&self, conversation: &CallConversation) -> Result<Owner, ArchiveError> {
        let CallConversation { session, user } = conversation;
        Owner::new(self.settings.scope, user.as_deref(), session.as_deref())
    }

    /// Whether a conversation may see an entry.
    fn is_shown(&self, owner: &Owner, entry: &Entry) -> bool {
        owner.has(entry)
            && entry.kind != EntryKind::Span
            && is_found(entry, self.clock.now())
            && entry.trust >= self.settings.min_trust
    }

    async fn find(
        &self,
        conversation: &CallConversation,
        search: EntrySearch,
    ) -> Result<Vec<SearchHit>, ArchiveError> {
        let owner = self.owner(conversation)?;
        let options = SearchOptions {
            text: search.text,
            mode: search.mode,
            min_score: self.settings.min_score,
            limit: search.limit.unwrap_or(self.settings.top_k).clamp(1, MAX_ENTRIES),
        };
        let Some(question) = self.store.ask(options).await? else { return Ok(Vec::new()) };
        // A time means when something became true, not that it still was.
        let has_time = search.since.is_some() || search.until.is_some();
        let as_of = has_time.then(|| search.until.unwrap_or(0).max(self.clock.now()));
        let filter = SearchFilter {
            since: search.since,
            until: search.until,
            as_of,
            tags: search.tags,
            min_trust: Some(self.settings.min_trust),
            ..owner.search_filter()
        };
        self.store.search(&question, &owner, filter).await
    }

    async fn store_entry(
        &self,
        conversation: &CallConversation,
        entry: AgentEntry,
    ) -> Result<Entry, ArchiveError> {
        let owner = self.owner(conversation)?;
        let text = clean(&entry.text, MAX_ENTRY_TEXT);
        let key = match &entry.key {
            Some(key) => key.trim().to_owned(),
            None => format!("note-{}", digits(entry.call, KEY_DIGITS)),
        };
        check(&text, &key, entry.kind)?;
        let vector = self.store.prepare(std::slice::from_ref(&text)).await?.into_iter().next().flatten();
        let mut tries = 0;
        loop {
            let known = self.store.get(&key).await?;
            if let Some(known) = &known {
                check_known(&owner, known)?;
                if known.meta.get("call") == Some(&json!(entry.call)) {
                    return Ok(known.clone());
                }
            }
            let expected = match (entry.expected_version, &known) {
                (Some(0), _) | (None, None) => Expected::Absent,
                (Some(version), _) => Expected::Version(version),
                (None, Some(known)) => Expected::Version(known.version),
            };
            let now = self.clock.now();
            let CallConversation { session, user } = conversation;
            let day_owner = Owner::of_speaker(user.as_deref(), session.as_deref());
            if known.is_none() && new_facts(&self.store, &day_owner, now).await? >= MAX_NEW_FACTS {
                return Err(too_many_facts());
            }
            let expires_at = fact_expiry(now, self.settings.retention_days);
            let mut new = NewEntry {
                expected,
                vector: vector.clone(),
                expires_at,
                ..new_entry(&entry, &key, &text, conversation)
            };
            note_end(&mut new.meta, expires_at);
            match self.store.put(vec![new]).await {
                Err(error)
                    if error.code == ArchiveCode::MemoryConflict
                        && entry.expected_version.is_none()
                        && tries < MAX_TRIES =>
                {
                    tries += 1;
                }
                Err(error) => return Err(error),
                Ok(_) => {
                    let stored = self.store.get(&key).await?;
                    return stored
                        .ok_or_else(|| invalid("The entry was removed at the same time: store it again."));
                }
            }
        }
    }
}

fn new_entry(entry: &AgentEntry, key: &str, text: &str, conversation: &CallConversation) -> NewEntry {
    let meta: Message = [("call".to_owned(), json!(entry.call))].into_iter().collect();
    let state = if addresses_assistant(text) { EntryState::Quarantined } else { EntryState::Live };
    NewEntry {
        meta,
        tags: stored_tags(entry.tags.iter().map(String::as_str)),
        user: conversation.user.clone(),
        session: conversation.session.clone(),
        state,
        trust: Trust::Agent,
        source: Some(EntrySource {
            kind: SourceKind::Tool,
            reference: entry.run.to_string(),
            digest: Some(entry.call),
        }),
        ..NewEntry::new(key, entry.kind, text)
    }
}

fn invalid(message: impl Into<String>) -> ArchiveError {
    ArchiveError::new(ArchiveCode::EntryInvalid, message)
}

/// Fails if an agent cannot store this.
fn check(text: &str, key: &str, kind: EntryKind) -> Result<(), ArchiveError> {
    if text.is_empty() {
        return Err(invalid("The text is empty: say what to remember."));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.is_empty() || key.len() > MAX_KEY || !key.chars().all(is_plain) {
        return Err(invalid(format!(
            "The id cannot be used: give 1 to {MAX_KEY} letters, digits, `-`, `_` and `.`, or none."
        )));
    }
    match kind {
        EntryKind::Fact
        | EntryKind::Preference
        | EntryKind::Decision
        | EntryKind::Summary
        | EntryKind::Log => Ok(()),
        EntryKind::Episode | EntryKind::Span | EntryKind::Chunk => Err(invalid(
            "An agent stores facts, preferences, decisions, summaries and logs only: use one of these kinds.",
        )),
    }
}

/// Fails if an agent may not replace an entry.
fn check_known(owner: &Owner, known: &Entry) -> Result<(), ArchiveError> {
    if !owner.has(known) || known.kind == EntryKind::Span {
        // Says nothing about the entry of another user.
        return Err(ArchiveError::new(
            ArchiveCode::MemoryConflict,
            "The id is taken: choose another one, or give none.",
        ));
    }
    let is_of_agent = known.trust <= Trust::Agent && known.kind != EntryKind::Episode;
    if !is_of_agent || known.state == EntryState::Pinned {
        return Err(invalid(format!(
            "The entry `{}` was not stored by an agent, so an agent cannot replace it: store another entry.",
            known.key
        )));
    }
    Ok(())
}

impl MemoryEntries for ToolEntries {
    fn name(&self) -> &str {
        &self.store.name
    }

    fn search<'a>(
        &'a self,
        conversation: &'a CallConversation,
        search: EntrySearch,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, ArchiveError>> {
        Box::pin(self.find(conversation, search))
    }

    fn get<'a>(
        &'a self,
        conversation: &'a CallConversation,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Entry>, ArchiveError>> {
        Box::pin(async move {
            let owner = self.owner(conversation)?;
            Ok(self.store.get(key).await?.filter(|entry| self.is_shown(&owner, entry)))
        })
    }

    fn list<'a>(
        &'a self,
        conversation: &'a CallConversation,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Entry>, ArchiveError>> {
        Box::pin(async move {
            let owner = self.owner(conversation)?;
            let limit = limit.clamp(1, MAX_ENTRIES);
            let states = vec![EntryState::Live, EntryState::Pinned];
            let filter = EntryFilter { states, ..owner.entry_filter() };
            let (mut shown, mut after) = (Vec::new(), after.map(str::to_owned));
            loop {
                let page = self.store.list(filter.clone(), after.as_deref(), limit).await?;
                let is_last = page.len() < limit;
                after = page.last().map(|entry| entry.key.clone());
                shown.extend(page.into_iter().filter(|entry| self.is_shown(&owner, entry)));
                if is_last || shown.len() >= limit {
                    shown.truncate(limit);
                    return Ok(shown);
                }
            }
        })
    }

    fn put<'a>(
        &'a self,
        conversation: &'a CallConversation,
        entry: AgentEntry,
    ) -> BoxFuture<'a, Result<Entry, ArchiveError>> {
        Box::pin(self.store_entry(conversation, entry))
    }
}
