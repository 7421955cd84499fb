//! Which known entries are close to new ones, and whether they say the same.

use crate::judge::Candidate;
use crate::owner::Owner;
use crate::store::{EntryStore, SearchOptions};
use crate::words::{details, has_same_order, has_same_words, shared};
use redflow_contract::archive::{Entry, EntryKind, EntryState, SearchMode, Trust};
use redflow_contract::digest::Digest;
use redflow_contract::{Message, Millis};
use redflow_ports::{ArchiveError, SearchFilter};
use serde_json::{Value, json};

/// The kinds that consolidation makes.
pub(crate) const FACTS: [EntryKind; 3] = [EntryKind::Fact, EntryKind::Preference, EntryKind::Decision];
/// The cosine from which entries are compared.
const CLOSE: f32 = 0.8;
/// The same for an embedder that knows words only.
const CLOSE_WORDS: f32 = 0.5;
/// The cosine from which entries say the same, unless numbers or negations differ.
const SAME: f32 = 0.95;
/// The part of the words that must be shared, if there are no vectors.
const SHARED: f64 = 0.5;
/// The known entries that are compared with a new one.
const MOST: usize = 4;
/// Where an entry notes when its words were said.
const SAID_AT: &str = "said";

/// A known entry that is close to a new one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Neighbour {
    pub(crate) key: String,
    pub(crate) text: String,
    pub(crate) trust: Trust,
    /// When it was said.
    pub(crate) said_at: Millis,
    pub(crate) is_pinned: bool,
    pub(crate) is_same: bool,
}

/// Notes in an entry when its words were said.
pub(crate) fn note_time(meta: &mut Message, said_at: Millis) {
    meta.insert(SAID_AT.to_owned(), json!(said_at));
}

/// When the words of an entry were said. An entry of a person, an agent or an earlier version does not say it: then it
/// is the time from which it is true, but not after it was stored.
fn noted_time(entry: &Entry) -> Millis {
    let noted = entry.meta.get(SAID_AT).and_then(Value::as_u64);
    noted.unwrap_or(entry.valid_from).min(entry.created_at)
}

/// The stored entries that are close to a candidate.
pub(crate) async fn stored_neighbours(
    store: &EntryStore,
    owner: &Owner,
    candidate: &Candidate,
    vector: Option<&Vec<f32>>,
    finds_meaning: bool,
) -> Result<Vec<Neighbour>, ArchiveError> {
    let filter = SearchFilter { kinds: FACTS.to_vec(), ..owner.search_filter() };
    let hits = match vector {
        Some(vector) => store.close_to(vector.clone(), owner, filter, MOST).await?,
        None => {
            let options = SearchOptions {
                text: candidate.text.clone(),
                mode: Some(SearchMode::Lexical),
                min_score: None,
                limit: MOST,
            };
            match store.ask(options).await? {
                Some(question) => store.search(&question, owner, filter).await?,
                None => Vec::new(),
            }
        }
    };
    let near = |hit: redflow_contract::archive::SearchHit| {
        let cosine = hit.reason.cosine;
        let entry = hit.entry;
        let said_at = noted_time(&entry);
        let is_close = is_close(cosine, &candidate.text, &entry.text, finds_meaning);
        is_close.then(|| Neighbour {
            is_same: is_same(cosine, &candidate.text, &entry.text),
            is_pinned: entry.state == EntryState::Pinned,
            key: entry.key,
            text: entry.text,
            trust: entry.trust,
            said_at,
        })
    };
    Ok(hits.into_iter().filter_map(near).collect())
}

/// An earlier candidate of the same batch, if it is close.
pub(crate) fn batch_neighbour(
    earlier: (&Candidate, Option<&Vec<f32>>),
    candidate: (&Candidate, Option<&Vec<f32>>),
    finds_meaning: bool,
) -> Option<Neighbour> {
    let cosine = earlier.1.zip(candidate.1).map(|(one, other)| cosine(one, other));
    let (known, new) = (earlier.0, candidate.0);
    is_close(cosine, &new.text, &known.text, finds_meaning).then(|| Neighbour {
        is_same: is_same(cosine, &new.text, &known.text),
        is_pinned: false,
        key: known.key.clone(),
        text: known.text.clone(),
        trust: known.trust,
        said_at: known.said_at,
    })
}

fn is_close(cosine: Option<f32>, text: &str, known: &str, finds_meaning: bool) -> bool {
    let least = if finds_meaning { CLOSE } else { CLOSE_WORDS };
    match cosine {
        Some(cosine) => cosine >= least || has_same_words(text, known),
        None => shared(text, known) >= SHARED,
    }
}

/// Whether two texts say the same. Close vectors do not show that a number or a `not` differs, or
/// who does what to whom.
fn is_same(cosine: Option<f32>, text: &str, known: &str) -> bool {
    Digest::of(text.as_bytes()) == Digest::of(known.as_bytes())
        || (details(text) == details(known)
            && has_same_order(text, known)
            && (has_same_words(text, known) || cosine.is_some_and(|cosine| cosine >= SAME)))
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let product = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(x, y)| x * y).sum::<f32>();
    let lengths = (product(one, one) * product(other, other)).sqrt();
    if lengths > 0.0 { product(one, other) / lengths } else { 0.0 }
}
