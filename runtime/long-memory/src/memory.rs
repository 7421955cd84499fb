//! `long-memory`: recalls what fits a message, and keeps finished turns.

use crate::consolidate::{Consolidation, add, ends_by_itself, expiry, fact_expiry};
use crate::day_limits::ModelCalls;
use crate::days::named_days;
use crate::entries::ToolEntries;
use crate::episode::{TurnTexts, episode};
use crate::notes::notes;
use crate::owner::Owner;
use crate::pending::pending;
use crate::recalled::RecalledKeys;
use crate::settings::Settings;
use crate::spans::{Span, Spans};
use crate::store::{EntryStore, SearchOptions, memory_failure};
use redflow_contract::archive::{EntryKind, EntryState, SearchHit, SourceKind};
use redflow_contract::code::{ArchiveCode, DiagnosticCode};
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::memory::{DataOwner, Forgotten, MemoryStats};
use redflow_contract::phrases;
use redflow_contract::run_error::Failure;
use redflow_contract::source::Source;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_ports::{
    ArchiveError, BoxFuture, ChatModel, Clock, EntryFilter, MaintenanceOutcome, MaintenanceReason,
    MaintenanceTimes, Memory, MemoryAnswer, MemoryEntries, Recall, Recalled, SearchFilter, Turn,
};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sessions that are listed at once.
const SESSIONS_PAGE: usize = 100;
/// The sessions that may fail one after the other. Then the model is offline, or has no calls left today.
const MAX_FAILURES: usize = 20;
/// The batches of turns that one maintenance of a session consolidates.
const MAX_BATCHES: usize = 8;
/// The entries that a recall looks at besides those that it wants: turns that the short memory still has are left out.
const MORE_HITS: usize = 16;

/// A long memory.
pub(crate) struct LongMemory {
    pub(crate) short: Option<Arc<dyn Memory>>,
    pub(crate) model: Option<Arc<dyn ChatModel>>,
    /// The resources of MCP servers; none if the node names none.
    pub(crate) spans: Option<Arc<Spans>>,
    pub(crate) store: Arc<EntryStore>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) calls: Arc<ModelCalls>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Facts that are recalled end later.
    pub(crate) recalled: RecalledKeys,
    /// The last session that the maintenance of all sessions has worked on; none if the last one came to the end. The
    /// next one goes on after it.
    pub(crate) last_session: Mutex<Option<String>>,
}

impl LongMemory {
    /// The entries that fit a message, the best first.
    async fn find(&self, recall: &Recall<'_>) -> Result<Vec<SearchHit>, ArchiveError> {
        if recall.input.trim().is_empty() {
            return Ok(Vec::new());
        }
        let owner = Owner::new(self.settings.scope, recall.user, Some(recall.session))?;
        let options = SearchOptions {
            text: recall.input.to_owned(),
            mode: None,
            min_score: self.settings.min_score,
            limit: self.settings.top_k + MORE_HITS,
        };
        let Some(question) = self.store.ask(options).await? else { return Ok(Vec::new()) };
        let filter = SearchFilter { min_trust: Some(self.settings.min_trust), ..owner.search_filter() };
        let now = self.clock.now();
        let mut hits = Vec::new();
        // Entries of the days that the message names come first.
        if let Some((since, until)) = named_days(recall.input, if recall.at > 0 { recall.at } else { now }) {
            let as_of = Some(until.max(now));
            let days = SearchFilter { since: Some(since), until: Some(until), as_of, ..filter.clone() };
            hits = self.store.search(&question.for_named_day(), &owner, days).await?;
        }
        let known: HashSet<String> = hits.iter().map(|hit| hit.entry.key.clone()).collect();
        let others = self.store.search(&question, &owner, filter).await?;
        hits.extend(others.into_iter().filter(|hit| !known.contains(&hit.entry.key)));
        Ok(hits)
    }

    async fn find_spans(&self) -> Vec<Span> {
        match &self.spans {
            Some(spans) => spans.recall().await,
            None => Vec::new(),
        }
    }

    async fn recall_all(&self, recall: Recall<'_>) -> Result<Recalled, Failure> {
        let short = match &self.short {
            Some(short) => short.recall(recall).await,
            None => Ok(Recalled::default()),
        };
        // One of both is better than nothing.
        let (mut recalled, short_failure) = match short {
            Ok(recalled) => (recalled, None),
            Err(failure) => (Recalled::default(), Some(failure)),
        };
        let (found, spans) = tokio::join!(self.find(&recall), self.find_spans());
        let mut hits = match found {
            Ok(hits) => hits,
            Err(_) if !spans.is_empty() => Vec::new(),
            Err(error) => {
                return match short_failure {
                    Some(failure) => Err(failure),
                    None if self.short.is_some() => Ok(recalled),
                    None => Err(memory_failure(&error)),
                };
            }
        };
        let conversation = ConversationTexts::of(&recalled.turns);
        hits.retain(|hit| {
            hit.entry.kind != EntryKind::Episode || !conversation.has(&TurnTexts::of_entry(&hit.entry))
        });
        let Settings { top_k, recall_tokens, .. } = *self.settings;
        if let Some((message, mut sources)) = notes(&self.store.name, &spans, hits, top_k, recall_tokens) {
            self.note_recalled(&sources);
            recalled.turns.insert(0, message);
            sources.append(&mut recalled.sources);
            recalled.sources = sources;
            return Ok(recalled);
        }
        short_failure.map_or(Ok(recalled), Err)
    }

    fn note_recalled(&self, sources: &[Source]) {
        let prefix = format!("{}/", self.store.name);
        let own = sources.iter().filter(|source| source.kind == SourceKind::Memory);
        let keys = own.filter_map(|source| source.reference.strip_prefix(&prefix));
        self.recalled.add(keys);
    }

    /// Counts the entries that were recalled as used. A fact then ends later, unless the node or a person says how long
    /// it is kept.
    async fn touch_recalled(&self) -> Result<(), ArchiveError> {
        let keys = self.recalled.take();
        if keys.is_empty() {
            return Ok(());
        }
        let keeps_for_days = self.settings.retention_days > 0;
        let ends = fact_expiry(self.clock.now(), 0).filter(|_| !keeps_for_days);
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for key in keys {
            match self.store.get(&key).await? {
                Some(entry) if ends_by_itself(&entry) => own.push(key),
                Some(_) => others.push(key),
                None => {}
            }
        }
        self.store.touch(own, ends).await?;
        self.store.touch(others, None).await
    }

    async fn append_all(&self, turn: Turn<'_>) -> Result<(), Failure> {
        let short = match &self.short {
            Some(short) => short.append(turn).await,
            None => Ok(()),
        };
        short.and(self.append_episode(turn).await)
    }

    async fn append_episode(&self, turn: Turn<'_>) -> Result<(), Failure> {
        let Some(texts) = TurnTexts::of(turn.messages) else { return Ok(()) };
        let expires_at = expiry(self.clock.now(), None, self.settings.retention_days);
        let mut entry = episode(&turn, &texts, &self.store.name, expires_at);
        let store = async {
            let vectors = self.store.prepare(std::slice::from_ref(&entry.text)).await?;
            entry.vector = vectors.into_iter().next().flatten();
            match self.store.put(vec![entry]).await {
                // The turn of this run is there already.
                Err(error) if error.code == ArchiveCode::MemoryConflict => Ok(()),
                stored => stored.map(drop),
            }
        };
        store.await.map_err(|error| memory_failure(&error))
    }

    async fn clear_all(&self, session: &str) -> Result<(), Failure> {
        let short = match &self.short {
            Some(short) => short.clear(session).await,
            None => Ok(()),
        };
        let own = self.store.remove(pending(Some(session))).await;
        short.and(own.map_err(|error| memory_failure(&error)))
    }

    async fn count_all(&self) -> Result<MemoryStats, Failure> {
        let short = match &self.short {
            Some(short) => short.stats().await?,
            None => MemoryStats::default(),
        };
        let count =
            |states: Vec<EntryState>| self.store.count(EntryFilter { states, ..EntryFilter::default() });
        let failed = |error| memory_failure(&error);
        let entries = count(vec![EntryState::Live, EntryState::Pinned]).await.map_err(failed)?;
        let quarantined = count(vec![EntryState::Quarantined]).await.map_err(failed)?;
        Ok(MemoryStats { entries: Some(entries), quarantined: Some(quarantined), ..short })
    }

    /// Consolidates with the memory's model.
    async fn consolidate(
        &self,
        model: &dyn ChatModel,
        session: Option<&str>,
        reason: MaintenanceReason,
        outcome: &mut MaintenanceOutcome,
    ) -> Result<(), Failure> {
        let work = Consolidation {
            store: &self.store,
            model,
            calls: &self.calls,
            clock: &*self.clock,
            scope: self.settings.scope,
            retention_days: self.settings.retention_days,
        };
        match session {
            Some(session) => self.consolidate_session(&work, session, reason, outcome).await,
            None => self.consolidate_all(&work, reason, outcome).await,
        }
    }

    /// Consolidates all sessions with turns that no fact was made of yet. The engine or the day's calls of the model may
    /// end this early, so the next time begins where this one has ended.
    async fn consolidate_all(
        &self,
        work: &Consolidation<'_>,
        reason: MaintenanceReason,
        outcome: &mut MaintenanceOutcome,
    ) -> Result<(), Failure> {
        let begin = self.last_session().clone();
        let (mut after, mut is_second_half) = (begin.clone(), false);
        // A session that fails does not stop the others.
        let (mut result, mut failures) = (Ok(()), 0);
        loop {
            let page = self.store.sessions(pending(None), after.as_deref(), SESSIONS_PAGE).await;
            let page = page.map_err(|error| memory_failure(&error))?;
            let is_last = page.len() < SESSIONS_PAGE;
            for session in page {
                if is_second_half && begin.as_ref().is_some_and(|begin| session > *begin) {
                    *self.last_session() = None;
                    return result;
                }
                *self.last_session() = Some(session.clone());
                let done = self.consolidate_session(work, &session, reason, outcome).await;
                failures = if done.is_err() { failures + 1 } else { 0 };
                result = result.and(done);
                if failures == MAX_FAILURES {
                    return result;
                }
                after = Some(session);
            }
            match is_last {
                true if begin.is_none() || is_second_half => {
                    *self.last_session() = None;
                    return result;
                }
                // The sessions before the one where it began.
                true => (after, is_second_half) = (None, true),
                false => {}
            }
        }
    }

    fn last_session(&self) -> MutexGuard<'_, Option<String>> {
        self.last_session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn consolidate_session(
        &self,
        work: &Consolidation<'_>,
        session: &str,
        reason: MaintenanceReason,
        outcome: &mut MaintenanceOutcome,
    ) -> Result<(), Failure> {
        if reason == MaintenanceReason::Turn {
            let turns = self.store.count(pending(Some(session))).await;
            let turns = turns.map_err(|error| memory_failure(&error))?;
            let after_turns = u64::from(self.settings.after_turns);
            if after_turns == 0 || turns < after_turns {
                return Ok(());
            }
        }
        for _ in 0..MAX_BATCHES {
            if work.next_batch(session, &mut outcome.consolidated).await? == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// The texts of a conversation, as turns are stored.
struct ConversationTexts {
    user: HashSet<String>,
    assistant: HashSet<String>,
}

impl ConversationTexts {
    fn of(messages: &[ChatMessage]) -> Self {
        let texts = |role: ChatRole| {
            let of_role = messages.iter().filter(|message| message.role == role);
            let text = |message: &ChatMessage| {
                let texts = TurnTexts::of(std::slice::from_ref(message))?;
                Some(texts.user + &texts.assistant)
            };
            of_role.filter_map(text).collect()
        };
        Self { user: texts(ChatRole::User), assistant: texts(ChatRole::Assistant) }
    }

    fn has(&self, turn: &TurnTexts) -> bool {
        (turn.user.is_empty() || self.user.contains(&turn.user))
            && (turn.assistant.is_empty() || self.assistant.contains(&turn.assistant))
    }
}

impl Memory for LongMemory {
    fn recall<'a>(&'a self, recall: Recall<'a>) -> MemoryAnswer<'a, Recalled> {
        Box::pin(self.recall_all(recall))
    }

    fn append<'a>(&'a self, turn: Turn<'a>) -> MemoryAnswer<'a, ()> {
        Box::pin(self.append_all(turn))
    }

    fn clear<'a>(&'a self, session: &'a str) -> MemoryAnswer<'a, ()> {
        Box::pin(self.clear_all(session))
    }

    fn forget<'a>(&'a self, owner: &'a DataOwner) -> MemoryAnswer<'a, Forgotten> {
        match &self.short {
            Some(short) => short.forget(owner),
            None => Box::pin(std::future::ready(Ok(Forgotten::default()))),
        }
    }

    fn stats(&self) -> MemoryAnswer<'_, MemoryStats> {
        Box::pin(self.count_all())
    }

    fn maintenance_times(&self) -> Option<MaintenanceTimes> {
        let short = self.short.as_ref().and_then(|short| short.maintenance_times());
        let Settings { idle, schedule, .. } = &*self.settings;
        // Without a model it only counts which entries are used.
        let own = self.model.as_ref().map(|_| MaintenanceTimes { idle: *idle, schedule: schedule.clone() });
        let (own, short) = (own.unwrap_or_default(), short.unwrap_or_default());
        Some(MaintenanceTimes {
            idle: own.idle.into_iter().chain(short.idle).min(),
            schedule: own.schedule.or(short.schedule),
        })
    }

    fn maintain<'a>(
        &'a self,
        session: Option<&'a str>,
        reason: MaintenanceReason,
    ) -> BoxFuture<'a, MaintenanceOutcome> {
        Box::pin(async move {
            let mut outcome = MaintenanceOutcome::default();
            if let Some(short) = &self.short {
                let done = short.maintain(session, reason).await;
                add(&mut outcome.consolidated, &done.consolidated);
                outcome.error = done.error;
            }
            // Entries that end sooner are the only harm.
            let _ = self.touch_recalled().await;
            if let Some(model) = &self.model
                && let Err(failure) = self.consolidate(&**model, session, reason, &mut outcome).await
            {
                outcome.error = Some(failure);
            }
            outcome
        })
    }

    fn entries(&self) -> Option<Arc<dyn MemoryEntries>> {
        Some(Arc::new(ToolEntries {
            store: Arc::clone(&self.store),
            settings: Arc::clone(&self.settings),
            clock: Arc::clone(&self.clock),
        }))
    }

    fn notices(&self) -> BoxFuture<'_, Vec<Diagnostic>> {
        Box::pin(async move {
            // A recall says what is wrong with the embedder or the archive.
            let Ok(false) = self.store.finds_meaning().await else { return Vec::new() };
            let notice = Diagnostic::new(
                DiagnosticCode::EmbeddingsLexical,
                phrases::memory_lexical(&self.store.name),
                phrases::memory_lexical_help(),
            );
            vec![Diagnostic { pointer: Some("/embeddings".to_owned()), ..notice }]
        })
    }

    fn check(&self) -> MemoryAnswer<'_, ()> {
        Box::pin(async move {
            if let Some(short) = &self.short {
                short.check().await?;
            }
            let check = async {
                let Some(known) = self.store.find().await? else { return Ok(()) };
                self.store.check(&known, &*self.store.embedder_for(&known.settings).await?)
            };
            check.await.map_err(|error: ArchiveError| memory_failure(&error))
        })
    }
}
