//! `summary-memory`: the last turns of another memory, and a summary of the earlier ones.
//!
//! A model writes the summary after runs, from the summary so far and the turns that it does not cover yet. The turns stay
//! in the other memory until its own limits remove them.

use crate::failure::memory_error;
use crate::summary_text;
use redflow_contract::diagnostic::Diagnostic;
use redflow_contract::fact::{ModelAnswer, ModelFinish, Usage};
use redflow_contract::memory::{Consolidated, DataOwner, Forgotten, MemoryStats};
use redflow_contract::node::SummaryMemoryConfig;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{BYTES_PER_TOKEN, ChatMessage};
use redflow_ports::{
    BoxFuture, BuildError, ChatModel, MaintenanceOutcome, MaintenanceReason, MaintenanceTimes, Memory,
    MemoryAnswer, ModelRequest, NodeConfig, Recall, Recalled, SummarisedConversation, Summary, SummaryStore,
    Turn,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

const DEFAULT_MAX_TOKENS: u32 = 4_000;
const DEFAULT_KEEP_TURNS: u32 = 4;
const DEFAULT_SUMMARY_TOKENS: u32 = 500;
/// The most tokens of turns that the model reads in one call. Further turns are for the next call.
const MAX_SENT_TOKENS: usize = 24_000;
/// The part of a model's window that turns may take: one in this many.
const WINDOW_PARTS: usize = 2;
/// The most calls of the model for one conversation in a row. Further turns wait for the next time.
const MAX_CALLS: usize = 8;
/// The longest time of one call.
const CALL_TIME: Duration = Duration::from_secs(120);
/// The most sessions that are remembered for a request without a session.
const MAX_SESSIONS: usize = 1_000;

/// A memory with summaries.
pub(crate) struct SummaryMemory {
    turns: Arc<dyn Memory>,
    model: Arc<dyn ChatModel>,
    max_tokens: usize,
    keep_turns: usize,
    summary_tokens: usize,
    /// Sessions with turns since their last summary.
    sessions: Mutex<BTreeSet<String>>,
}

impl SummaryMemory {
    pub(crate) fn build(node: &NodeConfig<'_>) -> Result<Self, BuildError> {
        let own: SummaryMemoryConfig = node.typed_with_options()?;
        let turns = node.memory(own.short_memory.as_deref())?;
        let turns = turns.ok_or_else(|| node.error(format!("its shortMemory is missing; {FITTING}")))?;
        if turns.summaries().is_none() {
            return Err(node.error(format!("its shortMemory cannot keep summaries; {FITTING}")));
        }
        let model = node.model(own.model.as_deref())?;
        let model = model.ok_or_else(|| node.error("its model is missing; name a model of the flow"))?;
        let count =
            |own: Option<u32>, default: u32| usize::try_from(own.unwrap_or(default)).unwrap_or(usize::MAX);
        Ok(Self {
            turns,
            model,
            max_tokens: count(own.max_tokens, DEFAULT_MAX_TOKENS),
            keep_turns: count(own.keep_turns, DEFAULT_KEEP_TURNS),
            summary_tokens: count(own.summary_tokens, DEFAULT_SUMMARY_TOKENS),
            sessions: Mutex::default(),
        })
    }

    /// The store was there when the node was built.
    fn store(&self) -> Result<&dyn SummaryStore, Failure> {
        self.turns
            .summaries()
            .ok_or_else(|| memory_error(format!("the memory cannot keep summaries; {FITTING}")))
    }

    /// Sums up all but the last turns, if there is need.
    async fn maintain_session(
        &self,
        session: &str,
        reason: MaintenanceReason,
        outcome: &mut MaintenanceOutcome,
    ) -> Result<(), Failure> {
        let store = self.store()?;
        let mut loaded = store.load(session).await?;
        let tokens: usize = loaded.turns.iter().map(|(_, turn)| tokens_of(turn)).sum();
        if reason != MaintenanceReason::Request && tokens <= self.max_tokens {
            return Ok(());
        }
        for _ in 0..MAX_CALLS {
            let Some((summary, covered)) = self.sum_up(&loaded, outcome).await? else { break };
            if !store.replace(session, &loaded, summary.clone()).await? {
                // Another process was faster, or the conversation was cleared. Its turns are all there.
                return Ok(());
            }
            loaded.turns.drain(..covered);
            loaded.summary = Some(summary);
        }
        Ok(())
    }

    /// Asks the model for a summary of the first turns. Returns it with the number of turns that it covers in addition; none
    /// if there are no turns to cover.
    async fn sum_up(
        &self,
        loaded: &SummarisedConversation,
        outcome: &mut MaintenanceOutcome,
    ) -> Result<Option<(Summary, usize)>, Failure> {
        let most_bytes = self.sent_tokens().saturating_mul(BYTES_PER_TOKEN);
        let old = loaded.turns.len().saturating_sub(self.keep_turns);
        let (mut lines, mut covered) = (String::new(), 0_usize);
        for (number, (_, turn)) in loaded.turns.iter().take(old).enumerate() {
            let turn_lines = summary_text::turn_lines(number + 1, turn, most_bytes);
            if covered > 0 && lines.len() + turn_lines.len() > most_bytes {
                break;
            }
            lines.push_str(&turn_lines);
            covered += 1;
        }
        let Some((until, _)) = covered.checked_sub(1).and_then(|last| loaded.turns.get(last)) else {
            return Ok(None);
        };
        let so_far = loaded.summary.as_ref().map(|summary| summary.text.as_str());
        let text = self.ask(so_far, &lines, outcome).await?;
        Ok(Some((Summary { text, until: until.clone() }, covered)))
    }

    async fn ask(
        &self,
        so_far: Option<&str>,
        lines: &str,
        outcome: &mut MaintenanceOutcome,
    ) -> Result<String, Failure> {
        let transcript = summary_text::request(so_far, lines, self.summary_tokens);
        let request = ModelRequest { time_left: Some(CALL_TIME), ..ModelRequest::for_text(&transcript) };
        let late = |_| memory_error(format!("the model wrote no summary within {} s", CALL_TIME.as_secs()));
        let answer = timeout(CALL_TIME, self.model.call(request)).await.map_err(late)??;
        let sent = transcript.segments().iter().map(|message| message.bytes()).sum();
        add_usage(&mut outcome.consolidated, sent, &answer);
        if answer.finish == ModelFinish::Refused {
            return Err(memory_error("the model refused to write a summary; the turns stay as they are"));
        }
        let text = summary_text::clean(&answer.text, self.summary_tokens);
        if text.is_empty() {
            return Err(memory_error("the model wrote an empty summary; the turns stay as they are"));
        }
        Ok(text)
    }

    /// The most tokens of turns for one call. A small model reads less.
    fn sent_tokens(&self) -> usize {
        let window = self.model.info().context_window.and_then(|window| usize::try_from(window).ok());
        window.map_or(MAX_SENT_TOKENS, |window| MAX_SENT_TOKENS.min(window / WINDOW_PARTS))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which memories keep summaries.
const FITTING: &str = "name a buffer-memory, a window-memory or a redis-memory";

fn tokens_of(turn: &[ChatMessage]) -> usize {
    turn.iter().map(ChatMessage::tokens).sum()
}

/// Adds the tokens of an answer. They are estimated if the provider does not report them.
fn add_usage(consolidated: &mut Consolidated, sent: usize, answer: &ModelAnswer) {
    let new = answer.usage.unwrap_or_else(|| Usage::estimate(sent, answer));
    let Some(old) = consolidated.usage else {
        consolidated.usage = Some(new);
        return;
    };
    let add = |one: Option<u64>, two: Option<u64>| match (one, two) {
        (None, None) => None,
        (one, two) => Some(one.unwrap_or(0).saturating_add(two.unwrap_or(0))),
    };
    consolidated.usage = Some(Usage {
        input_tokens: old.input_tokens.saturating_add(new.input_tokens),
        output_tokens: old.output_tokens.saturating_add(new.output_tokens),
        cached_tokens: add(old.cached_tokens, new.cached_tokens),
        cache_write_tokens: add(old.cache_write_tokens, new.cache_write_tokens),
        reasoning_tokens: add(old.reasoning_tokens, new.reasoning_tokens),
        cost: match (old.cost, new.cost) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0.0) + two.unwrap_or(0.0)),
        },
        estimated: old.estimated || new.estimated,
    });
}

impl Memory for SummaryMemory {
    fn recall<'a>(&'a self, recall: Recall<'a>) -> MemoryAnswer<'a, Recalled> {
        Box::pin(async move {
            let loaded = self.store()?.load(recall.session).await?;
            let summary = loaded.summary.map(|summary| summary_text::recalled_summary(&summary.text));
            let turns = loaded.turns.into_iter().flat_map(|(_, turn)| turn);
            Ok(Recalled { turns: summary.into_iter().chain(turns).collect(), sources: Vec::new() })
        })
    }

    fn append<'a>(&'a self, turn: Turn<'a>) -> MemoryAnswer<'a, ()> {
        Box::pin(async move {
            self.turns.append(turn).await?;
            let mut sessions = self.lock();
            sessions.insert(turn.session.to_owned());
            if sessions.len() > MAX_SESSIONS {
                sessions.pop_first();
            }
            Ok(())
        })
    }

    fn clear<'a>(&'a self, session: &'a str) -> MemoryAnswer<'a, ()> {
        self.lock().remove(session);
        self.turns.clear(session)
    }

    fn forget<'a>(&'a self, owner: &'a DataOwner) -> MemoryAnswer<'a, Forgotten> {
        if let DataOwner::Session(session) = owner {
            self.lock().remove(session);
        }
        self.turns.forget(owner)
    }

    fn stats(&self) -> MemoryAnswer<'_, MemoryStats> {
        self.turns.stats()
    }

    fn maintenance_times(&self) -> Option<MaintenanceTimes> {
        Some(MaintenanceTimes::default())
    }

    fn maintain<'a>(
        &'a self,
        session: Option<&'a str>,
        reason: MaintenanceReason,
    ) -> BoxFuture<'a, MaintenanceOutcome> {
        Box::pin(async move {
            let mut outcome = MaintenanceOutcome::default();
            let sessions = match session {
                Some(session) => vec![session.to_owned()],
                None => self.lock().iter().cloned().collect(),
            };
            for session in sessions {
                match self.maintain_session(&session, reason, &mut outcome).await {
                    Ok(()) => drop(self.lock().remove(&session)),
                    Err(failure) => drop(outcome.error.get_or_insert(failure)),
                }
            }
            outcome
        })
    }

    fn notices(&self) -> BoxFuture<'_, Vec<Diagnostic>> {
        self.turns.notices()
    }

    fn check(&self) -> MemoryAnswer<'_, ()> {
        self.turns.check()
    }
}
