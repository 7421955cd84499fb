//! Which proposals of a model are kept: only what was said word for word, and what is no prompt injection and no repetition.

use crate::clean::clean;
use crate::episode::{TurnTexts, said_at, turn_digest};
use crate::imperatives::is_imperative;
use crate::names::digits;
use crate::prompt_injection::addresses_assistant;
use crate::questions::{Proposal, Speaker};
use crate::recalled::RecalledTexts;
use crate::tags::stored_tags;
use crate::words::{details, normalised, shared, single_spaced, weight};
use redflow_contract::Millis;
use redflow_contract::archive::{Entry, EntryKind, EntryState, Trust};
use redflow_contract::digest::Digest;
use std::collections::HashMap;

/// Changes when the rules of this file or the question to the model change: then turns can be consolidated again.
pub(crate) const EXTRACTOR_VERSION: u8 = 2;
/// The least characters of a quote.
const LEAST_QUOTE: usize = 8;
/// The least words that say something in a kept text.
const LEAST_WORDS: usize = 2;
/// The most bytes of a kept text.
const MAX_TEXT: usize = 2_000;
/// The part of a text's words that its quote must have.
const LEAST_SHARED: f64 = 0.5;
/// An assistant that repeats so much of something recalled adds nothing.
const REPEATED_SHARE: f64 = 0.6;
/// The digits of a key.
const KEY_DIGITS: usize = 32;

/// A proposal that is kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) key: String,
    pub(crate) kind: EntryKind,
    pub(crate) text: String,
    pub(crate) quote: String,
    pub(crate) tags: Vec<String>,
    pub(crate) trust: Trust,
    pub(crate) state: EntryState,
    pub(crate) valid_from: Millis,
    /// When it was said.
    pub(crate) said_at: Millis,
    /// The number of the turn that it quotes.
    pub(crate) turn: usize,
}

/// A turn that proposals quote, and the texts that were recalled in its run.
pub(crate) struct SourceTurn<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) texts: TurnTexts,
    pub(crate) recalled: RecalledTexts,
}

/// Keeps what may be stored. The rest is dropped.
pub(crate) fn judge(proposals: &[Proposal], turns: &[SourceTurn<'_>], now: Millis) -> Vec<Candidate> {
    let mut numbers: HashMap<usize, u32> = HashMap::new();
    proposals.iter().filter_map(|proposal| judge_one(proposal, turns, now, &mut numbers)).collect()
}

fn judge_one(
    proposal: &Proposal,
    turns: &[SourceTurn<'_>],
    now: Millis,
    numbers: &mut HashMap<usize, u32>,
) -> Option<Candidate> {
    let text = single_spaced(&clean(&proposal.text, MAX_TEXT));
    let quote = single_spaced(&clean(&proposal.quote, MAX_TEXT));
    if quote.chars().count() < LEAST_QUOTE || weight(&text) < LEAST_WORDS || is_question(&quote) {
        return None;
    }
    let FoundQuote { at, speaker, clause } = find_quote(&quote, proposal.speaker, turns)?;
    let turn = &turns[at];
    if !says_the_same(&text, &quote, &clause) || is_repetition(&text, &quote, speaker, &turn.recalled.texts) {
        return None;
    }
    // The answer may repeat a text that was recalled and is gone.
    if speaker == Speaker::Assistant && !turn.recalled.is_whole {
        return None;
    }
    let is_injection =
        [&text, &clause].into_iter().any(|said| addresses_assistant(said) || is_imperative(said));
    let (trust, state) = match (speaker, is_injection) {
        (Speaker::Assistant, true) => return None,
        (Speaker::Assistant, false) => (Trust::Agent, EntryState::Live),
        (Speaker::User, true) => (Trust::User, EntryState::Quarantined),
        (Speaker::User, false) => (Trust::User, EntryState::Live),
    };
    let number = numbers.entry(at).or_default();
    let key = match state {
        // The same injection in many turns is reviewed once.
        EntryState::Quarantined => review_key(turn.entry, &text),
        _ => fact_key(turn_digest(turn.entry), *number),
    };
    *number += 1;
    let tags = proposal.tags.iter().chain(&turn.entry.tags).map(String::as_str);
    Some(Candidate {
        key,
        kind: proposal.kind.entry_kind(),
        quote,
        tags: stored_tags(tags),
        trust,
        state,
        // The time of a message can be any. One in the future is not believed.
        valid_from: proposal.start(now).unwrap_or(turn.entry.valid_from.min(now)),
        said_at: said_at(turn.entry, now),
        turn: at,
        text,
    })
}

/// The key of the n-th fact of a turn.
pub(crate) fn fact_key(turn: Digest, number: u32) -> String {
    let digest = turn.chain(EXTRACTOR_VERSION, &number.to_be_bytes());
    format!("fact-{}", digits(digest, KEY_DIGITS))
}

fn review_key(turn: &Entry, text: &str) -> String {
    let owner = turn.user.as_deref().or(turn.session.as_deref()).unwrap_or_default();
    let digest = Digest::of(owner.as_bytes()).chain(EXTRACTOR_VERSION, normalised(text).as_bytes());
    format!("review-{}", digits(digest, KEY_DIGITS))
}

/// Where a quote stands.
struct FoundQuote {
    /// The number of the turn.
    at: usize,
    speaker: Speaker,
    /// The quote with the rest of its clause. A quote can leave out a `not`.
    clause: String,
}

/// The turn that has the quote word for word, and who said it. Of several, the speaker that the model names first.
fn find_quote(quote: &str, speaker: Option<Speaker>, turns: &[SourceTurn<'_>]) -> Option<FoundQuote> {
    let find = |speaker: Speaker| {
        turns.iter().enumerate().find_map(|(at, turn)| {
            let said = match speaker {
                Speaker::User => &turn.texts.user,
                Speaker::Assistant => &turn.texts.assistant,
            };
            clause_of(&single_spaced(said), quote).map(|clause| FoundQuote { at, speaker, clause })
        })
    };
    let order = match speaker {
        Some(Speaker::Assistant) => [Speaker::Assistant, Speaker::User],
        _ => [Speaker::User, Speaker::Assistant],
    };
    order.into_iter().find_map(find)
}

/// The clause around the first place where a text has the quote, from word to word, and does not ask it.
fn clause_of(said: &str, quote: &str) -> Option<String> {
    let is_border = |c: char| matches!(c, '.' | '!' | '?' | ';' | ',' | ':');
    said.match_indices(quote).find_map(|(start, _)| {
        let (before, after) = (&said[..start], &said[start + quote.len()..]);
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let splits = |outside: Option<char>, inside: Option<char>| is_word(outside) && is_word(inside);
        if splits(before.chars().next_back(), quote.chars().next())
            || splits(after.chars().next(), quote.chars().next_back())
        {
            return None;
        }
        let first = before.rfind(is_border).map_or(0, |at| at + 1);
        let last = match quote.ends_with(is_border) {
            true => 0,
            false => after.find(is_border).unwrap_or(after.len()),
        };
        // A quote can leave out the question mark.
        if !quote.ends_with(is_border) && after[last..].starts_with('?') {
            return None;
        }
        Some(said[first..start + quote.len() + last].trim().to_owned())
    })
}

fn is_question(quote: &str) -> bool {
    quote.ends_with('?') || quote.starts_with('¿')
}

/// Whether a text says what its quote says: it has the quote's words, its numbers, and negates if the quote does.
fn says_the_same(text: &str, quote: &str, clause: &str) -> bool {
    let ((numbers, negates), (said, said_negates)) = (details(text), details(clause));
    shared(text, quote) >= LEAST_SHARED && negates == said_negates && numbers.is_subset(&said)
}

/// Whether a text only repeats what the run had recalled.
fn is_repetition(text: &str, quote: &str, speaker: Speaker, recalled: &[String]) -> bool {
    recalled.iter().any(|known| {
        let lower = normalised(known);
        lower.contains(normalised(text).trim_end_matches('.'))
            || lower.contains(normalised(quote).trim_end_matches('.'))
            || (speaker == Speaker::Assistant && shared(quote, known) >= REPEATED_SHARE)
    })
}
