//! Combines the ranks of a search by meaning and of one by words.

use std::collections::HashMap;

/// Makes the first ranks differ less (reciprocal rank fusion).
const RANK_OFFSET: f32 = 60.0;
/// How much newer entries are preferred.
const RECENCY_WEIGHT: f32 = 0.2;
/// After this time the preference for newer entries is half as large.
const RECENCY_HALF_LIFE_MS: f32 = 30.0 * 24.0 * 3_600_000.0;
/// How much important entries are preferred.
const IMPORTANCE_WEIGHT: f32 = 0.1;

/// What counts in the rank of an entry besides the search itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) created_at: i64,
    pub(crate) importance: f32,
    /// Whether newer entries are preferred.
    pub(crate) has_age: bool,
}

/// An entry with its ranks, from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) id: i64,
    pub(crate) vector_rank: Option<u32>,
    pub(crate) text_rank: Option<u32>,
    pub(crate) weight: f32,
}

/// Combines two rankings. The best entry is first; of equal ones, the older.
pub(crate) fn combine(
    by_vector: &[i64],
    by_text: &[i64],
    now: i64,
    candidate: impl Fn(i64) -> Option<Candidate>,
) -> Vec<Ranked> {
    let mut all: HashMap<i64, Ranked> = HashMap::new();
    let new = |id: i64| Ranked { id, vector_rank: None, text_rank: None, weight: 0.0 };
    for (rank, &id) in (1_u32..).zip(by_vector) {
        all.entry(id).or_insert_with(|| new(id)).vector_rank = Some(rank);
    }
    for (rank, &id) in (1_u32..).zip(by_text) {
        all.entry(id).or_insert_with(|| new(id)).text_rank = Some(rank);
    }
    let weigh = |mut ranked: Ranked| {
        let candidate = candidate(ranked.id)?;
        let share = |rank: Option<u32>| rank.map_or(0.0, |rank| 1.0 / (RANK_OFFSET + rank as f32));
        let age = now.saturating_sub(candidate.created_at).max(0) as f32;
        let recency = if candidate.has_age { (-age / RECENCY_HALF_LIFE_MS).exp2() } else { 0.0 };
        let boost = 1.0 + RECENCY_WEIGHT * recency + IMPORTANCE_WEIGHT * candidate.importance.clamp(0.0, 1.0);
        ranked.weight = (share(ranked.vector_rank) + share(ranked.text_rank)) * boost;
        Some(ranked)
    };
    let mut ranked: Vec<Ranked> = all.into_values().filter_map(weigh).collect();
    ranked.sort_by(|left, right| right.weight.total_cmp(&left.weight).then(left.id.cmp(&right.id)));
    ranked
}
