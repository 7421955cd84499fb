//! Consolidation: finished turns become facts, preferences and decisions.
//!
//! A batch of turns is read by the model, its proposals are judged and compared with what is known, and everything is
//! stored in one transaction together with the turns, which are archived then. So a consolidation that is cut off, made
//! twice, or made by two processes at once changes nothing twice.

use crate::day_limits::ModelCalls;
use crate::episode::{TurnTexts, attempts, next_version, turn_digest};
use crate::judge::{Candidate, EXTRACTOR_VERSION, SourceTurn, judge};
use crate::neighbours::{Neighbour, batch_neighbour, note_time, stored_neighbours};
use crate::owner::Owner;
use crate::pending::DAY_MS;
use crate::questions::{
    Choice, ClosePair, MAX_PROPOSALS, comparison, extraction, read_choices, read_proposals,
};
use crate::recalled::RecalledTexts;
use crate::store::{EntryStore, memory_failure};
use crate::waiting::{pending_turns, waiting_turns, waiting_version};
use redflow_contract::archive::{Entry, EntrySource, EntryState, SourceKind};
use redflow_contract::code::{ArchiveCode, RunErrorCode};
use redflow_contract::fact::Usage;
use redflow_contract::memory::Consolidated;
use redflow_contract::node::MemoryScope;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::Transcript;
use redflow_contract::{Message, Millis};
use redflow_ports::{AnswerKind, ChatModel, Clock, Expected, ModelRequest, NewEntry};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The most bytes of turns that the model reads at once. A longer turn is read alone.
const MAX_BYTES: usize = 48 * 1024;
/// After so many answers that cannot be used, the turns are archived without facts.
const MAX_ATTEMPTS: u64 = 3;
/// Facts that are not pinned are removed after so many days.
const FACT_DAYS: u64 = 180;
/// Where an entry notes the end that the memory itself has set.
const OWN_END: &str = "end";

/// What consolidation works with.
pub(crate) struct Consolidation<'a> {
    pub(crate) store: &'a EntryStore,
    pub(crate) model: &'a dyn ChatModel,
    pub(crate) calls: &'a ModelCalls,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) scope: MemoryScope,
    pub(crate) retention_days: u32,
}

/// A candidate, and what shall happen with it.
struct PlacedCandidate {
    candidate: Candidate,
    vector: Option<Vec<f32>>,
    neighbours: Vec<Neighbour>,
    outcome: CandidateOutcome,
}

impl PlacedCandidate {
    fn is_new(&self) -> bool {
        matches!(self.outcome, CandidateOutcome::Add | CandidateOutcome::Supersede(_))
    }
}

enum CandidateOutcome {
    Add,
    Supersede(String),
    Confirmed,
    Drop,
    /// The model decides.
    Open,
}

/// When an entry is removed: after the days of the node, or after its own days, whatever is first.
pub(crate) fn expiry(now: Millis, own_days: Option<u64>, retention_days: u32) -> Option<Millis> {
    let retention = Some(u64::from(retention_days)).filter(|days| *days > 0);
    let days = own_days.into_iter().chain(retention).min()?;
    Some(now.saturating_add(days.saturating_mul(DAY_MS)))
}

/// When a fact is removed.
pub(crate) fn fact_expiry(now: Millis, retention_days: u32) -> Option<Millis> {
    expiry(now, Some(FACT_DAYS), retention_days)
}

/// Notes in an entry which end the memory itself has set.
pub(crate) fn note_end(meta: &mut Message, ends: Option<Millis>) {
    if let Some(ends) = ends {
        meta.insert(OWN_END.to_owned(), json!(ends));
    }
}

/// Whether an entry ends because the memory has said so. A person may have set another end, which stays.
pub(crate) fn ends_by_itself(entry: &Entry) -> bool {
    let own = entry.meta.get(OWN_END).and_then(Value::as_u64);
    own.zip(entry.expires_at).is_some_and(|(own, ends)| ends >= own)
}

/// Why some turns were not consolidated.
struct ConsolidationProblem {
    failure: Failure,
    /// Whether the same question would fail again.
    is_final: bool,
}

impl From<Failure> for ConsolidationProblem {
    fn from(failure: Failure) -> Self {
        // Those are about the turns. All others can be about the model, its settings or its key, which a person fixes.
        let is_final = matches!(
            failure.code,
            RunErrorCode::ModelRefused | RunErrorCode::ModelTruncated | RunErrorCode::ContextLength
        );
        Self { failure, is_final }
    }
}

impl Consolidation<'_> {
    /// Consolidates the oldest pending turns of a session. Returns how many there were.
    pub(crate) async fn next_batch(&self, session: &str, done: &mut Consolidated) -> Result<usize, Failure> {
        let listed = pending_turns(self.store, session, self.clock.now()).await;
        let mut turns = listed.map_err(|error| memory_failure(&error))?;
        let (mut bytes, mut count) = (0, 0);
        for turn in &turns {
            bytes += turn.text.len();
            if count > 0 && bytes > MAX_BYTES {
                break;
            }
            count += 1;
        }
        turns.truncate(count);
        if turns.is_empty() {
            return Ok(0);
        }
        let mut batch = Consolidated::default();
        let (entries, waiting) = match self.read(&turns, &mut batch, done).await {
            Ok(read) => read,
            Err(ConsolidationProblem { failure, is_final }) => {
                if is_final {
                    self.count_attempt(turns).await?;
                }
                return Err(failure);
            }
        };
        let now = self.clock.now();
        let turns = turns.into_iter().zip(waiting).map(|(turn, waits)| match waits {
            true => waiting_version(turn, now),
            false => next_version(turn, EntryState::Archived),
        });
        match self.store.put(entries.into_iter().chain(turns).collect()).await {
            Ok(_) => add(done, &batch),
            // Another process was faster, and has stored the same turns.
            Err(error) if error.code == ArchiveCode::MemoryConflict => {}
            Err(error) => return Err(memory_failure(&error)),
        }
        Ok(count)
    }

    /// The new entries of some turns, and which of the turns wait for the next day.
    async fn read(
        &self,
        turns: &[Entry],
        batch: &mut Consolidated,
        done: &mut Consolidated,
    ) -> Result<(Vec<NewEntry>, Vec<bool>), ConsolidationProblem> {
        let (transcript, kind) = extraction(turns);
        let answer = self.ask(&transcript, &kind, done).await?;
        let Some(mut proposals) = read_proposals(&answer) else {
            let message = "The model's answer cannot be used, so nothing was stored: the turns stay as they are. Use a \
                           model that follows a JSON schema."
                .to_owned();
            return Err(ConsolidationProblem {
                failure: Failure { code: RunErrorCode::MemoryError, message },
                is_final: true,
            });
        };
        let proposed = proposals.len();
        proposals.truncate(MAX_PROPOSALS);
        let mut judged = Vec::with_capacity(turns.len());
        for entry in turns {
            let recalled =
                RecalledTexts::of(self.store, entry).await.map_err(|error| memory_failure(&error))?;
            judged.push(SourceTurn { entry, texts: TurnTexts::of_entry(entry), recalled });
        }
        let candidates = judge(&proposals, &judged, self.clock.now());
        batch.dropped = count_of(proposed - candidates.len());
        let placed = self.place(candidates, turns, done).await?;
        let mut new = vec![0; turns.len()];
        for placed in placed.iter().filter(|placed| placed.is_new()) {
            new[placed.candidate.turn] += 1;
        }
        let waiting = waiting_turns(self.store, turns, &new, self.clock.now()).await;
        let waiting = waiting.map_err(|error| memory_failure(&error))?;
        Ok((self.entries(placed, turns, &waiting, batch), waiting))
    }

    /// Asks the model, within the calls of the day.
    async fn ask(
        &self,
        transcript: &Transcript,
        kind: &AnswerKind,
        done: &mut Consolidated,
    ) -> Result<String, Failure> {
        self.calls.take(&self.store.name, self.clock.now())?;
        let request = ModelRequest { answer_kind: kind, ..ModelRequest::for_text(transcript) };
        let answer = self.model.call(request).await?;
        if let Some(usage) = &answer.usage {
            add_usage(done.usage.get_or_insert_default(), usage);
        }
        Ok(answer.text)
    }

    /// Counts an answer that cannot be used, or a refusal. Turns with too many of them are archived, so that they are not asked about
    /// for ever.
    async fn count_attempt(&self, turns: Vec<Entry>) -> Result<(), Failure> {
        let texts: Vec<String> = turns.iter().map(|turn| turn.text.clone()).collect();
        let vectors = self.store.prepare(&texts).await.map_err(|error| memory_failure(&error))?;
        let next = |(mut turn, vector): (Entry, Option<Vec<f32>>)| {
            let attempts = attempts(&turn) + 1;
            turn.meta.insert("attempts".to_owned(), json!(attempts));
            let state = if attempts >= MAX_ATTEMPTS { EntryState::Archived } else { EntryState::Live };
            NewEntry { vector, ..next_version(turn, state) }
        };
        let entries = turns.into_iter().zip(vectors).map(next).collect();
        match self.store.put(entries).await {
            Err(error) if error.code != ArchiveCode::MemoryConflict => Err(memory_failure(&error)),
            _ => Ok(()),
        }
    }

    /// Compares candidates with what is known, and with each other.
    async fn place(
        &self,
        candidates: Vec<Candidate>,
        turns: &[Entry],
        done: &mut Consolidated,
    ) -> Result<Vec<PlacedCandidate>, Failure> {
        let failed = |error| memory_failure(&error);
        let texts: Vec<String> = candidates.iter().map(|candidate| candidate.text.clone()).collect();
        let vectors = self.store.prepare(&texts).await.map_err(failed)?;
        let finds_meaning = self.store.finds_meaning().await.unwrap_or(false);
        let mut placed: Vec<PlacedCandidate> = Vec::with_capacity(candidates.len());
        for (candidate, vector) in candidates.into_iter().zip(vectors) {
            let owner = Owner::of_turn(self.scope, &turns[candidate.turn]);
            let is_known = self.store.get(&candidate.key).await.map_err(failed)?.is_some()
                || placed.iter().any(|other| other.candidate.key == candidate.key);
            let mut neighbours = Vec::new();
            if candidate.state == EntryState::Live && !is_known {
                let vector = vector.as_ref();
                let stored = stored_neighbours(self.store, &owner, &candidate, vector, finds_meaning);
                neighbours = stored.await.map_err(failed)?;
                for earlier in placed.iter().filter(|earlier| earlier.candidate.state == EntryState::Live) {
                    if Owner::of_turn(self.scope, &turns[earlier.candidate.turn]) == owner {
                        let known = (&earlier.candidate, earlier.vector.as_ref());
                        neighbours.extend(batch_neighbour(known, (&candidate, vector), finds_meaning));
                    }
                }
            }
            let outcome =
                match (is_known, neighbours.iter().any(|known| known.is_same), neighbours.is_empty()) {
                    (true, ..) | (_, true, _) => CandidateOutcome::Confirmed,
                    (false, false, true) => CandidateOutcome::Add,
                    (false, false, false) => CandidateOutcome::Open,
                };
            placed.push(PlacedCandidate { candidate, vector, neighbours, outcome });
        }
        self.decide(&mut placed, done).await?;
        Ok(placed)
    }

    /// Asks the model once about all candidates that are close to something.
    async fn decide(&self, placed: &mut [PlacedCandidate], done: &mut Consolidated) -> Result<(), Failure> {
        let pairs: Vec<ClosePair<'_>> = (1..)
            .zip(placed.iter())
            .filter(|(_, placed)| matches!(placed.outcome, CandidateOutcome::Open))
            .map(|(number, placed)| ClosePair {
                number,
                text: &placed.candidate.text,
                known: placed
                    .neighbours
                    .iter()
                    .map(|known| (known.key.as_str(), known.text.as_str()))
                    .collect(),
            })
            .collect();
        if pairs.is_empty() {
            return Ok(());
        }
        let (transcript, kind) = comparison(&pairs);
        let answer = self.ask(&transcript, &kind, done).await?;
        let choices: HashMap<usize, Choice> = read_choices(&answer).into_iter().collect();
        for (number, placed) in (1..).zip(placed.iter_mut()) {
            if matches!(placed.outcome, CandidateOutcome::Open) {
                let choice = choices.get(&number).unwrap_or(&Choice::None);
                placed.outcome = outcome(placed, choice, self.clock.now());
            }
        }
        Ok(())
    }

    /// The entries to store. Those of waiting turns are left out: they are made again on the next day.
    fn entries(
        &self,
        placed: Vec<PlacedCandidate>,
        turns: &[Entry],
        waiting: &[bool],
        batch: &mut Consolidated,
    ) -> Vec<NewEntry> {
        let now = self.clock.now();
        let mut entries = Vec::new();
        for PlacedCandidate { candidate, vector, outcome, .. } in placed {
            if waiting[candidate.turn] {
                continue;
            }
            let turn = &turns[candidate.turn];
            let supersedes = match outcome {
                CandidateOutcome::Add => None,
                CandidateOutcome::Supersede(key) => Some(key),
                CandidateOutcome::Confirmed => {
                    batch.confirmed += 1;
                    continue;
                }
                CandidateOutcome::Drop | CandidateOutcome::Open => {
                    batch.dropped += 1;
                    continue;
                }
            };
            batch.added += 1;
            batch.superseded += u32::from(supersedes.is_some());
            batch.quarantined += u32::from(candidate.state == EntryState::Quarantined);
            entries.push(NewEntry { vector, supersedes, ..self.fact(candidate, turn, now) });
        }
        entries
    }

    fn fact(&self, candidate: Candidate, turn: &Entry, now: Millis) -> NewEntry {
        let digest = turn_digest(turn);
        let mut meta = Message::new();
        meta.insert("quote".to_owned(), json!(candidate.quote));
        meta.insert("turn".to_owned(), json!(digest));
        meta.insert("extractor".to_owned(), json!(EXTRACTOR_VERSION));
        let expires_at = fact_expiry(now, self.retention_days);
        note_end(&mut meta, expires_at);
        note_time(&mut meta, candidate.said_at);
        let run = turn.source.as_ref().map_or_else(|| turn.key.clone(), |source| source.reference.clone());
        NewEntry {
            expected: Expected::Absent,
            meta,
            tags: candidate.tags,
            user: turn.user.clone(),
            session: turn.session.clone(),
            state: candidate.state,
            valid_from: Some(candidate.valid_from),
            expires_at,
            trust: candidate.trust,
            source: Some(EntrySource { kind: SourceKind::Memory, reference: run, digest: Some(digest) }),
            ..NewEntry::new(candidate.key, candidate.kind, candidate.text)
        }
    }
}

/// What a choice of the model means. It cannot end an entry that it was not shown, that is pinned, or that has more
/// trust; and it does not end one that was said later. A time after now does not count: the clock was set back.
fn outcome(placed: &PlacedCandidate, choice: &Choice, now: Millis) -> CandidateOutcome {
    match choice {
        Choice::None => CandidateOutcome::Drop,
        Choice::Add => CandidateOutcome::Add,
        Choice::Supersede(key) => {
            let candidate = &placed.candidate;
            match placed.neighbours.iter().find(|known| known.key == *key) {
                Some(known) if known.is_pinned || known.trust > candidate.trust => CandidateOutcome::Drop,
                Some(known) if known.said_at > candidate.said_at && known.said_at <= now => {
                    CandidateOutcome::Add
                }
                Some(_) => CandidateOutcome::Supersede(key.clone()),
                None => CandidateOutcome::Drop,
            }
        }
    }
}

fn count_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Adds what was done.
pub(crate) fn add(all: &mut Consolidated, more: &Consolidated) {
    all.added = all.added.saturating_add(more.added);
    all.confirmed = all.confirmed.saturating_add(more.confirmed);
    all.superseded = all.superseded.saturating_add(more.superseded);
    all.dropped = all.dropped.saturating_add(more.dropped);
    all.quarantined = all.quarantined.saturating_add(more.quarantined);
    if let Some(usage) = &more.usage {
        add_usage(all.usage.get_or_insert_default(), usage);
    }
}

fn add_usage(all: &mut Usage, more: &Usage) {
    let sum = |one: Option<u64>, other: Option<u64>| {
        (one.is_some() || other.is_some()).then(|| one.unwrap_or(0).saturating_add(other.unwrap_or(0)))
    };
    all.input_tokens = all.input_tokens.saturating_add(more.input_tokens);
    all.output_tokens = all.output_tokens.saturating_add(more.output_tokens);
    all.cached_tokens = sum(all.cached_tokens, more.cached_tokens);
    all.cache_write_tokens = sum(all.cache_write_tokens, more.cache_write_tokens);
    all.reasoning_tokens = sum(all.reasoning_tokens, more.reasoning_tokens);
    if let Some(cost) = more.cost {
        all.cost = Some(all.cost.unwrap_or(0.0) + cost);
    }
    all.estimated |= more.estimated;
}
