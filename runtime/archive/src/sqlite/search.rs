//! A search: filters first, then by meaning and by words, then both ranks together.

use super::database_error::DbError;
use super::entries::{self, CollectionRow, stored_vector};
use super::entry_row;
use super::indexes::Indexes;
use super::seal::Db;
use super::text_index::AllowedEntries;
use crate::index::{Query, Ranked, combine, cosine};
use redflow_contract::archive::{HitReason, MAX_HITS, MAX_QUERY, SearchHit, SearchMode};
use redflow_contract::code::ArchiveCode;
use redflow_ports::{ArchiveError, SearchQuery, VectorScores};
use rusqlite::OptionalExtension as _;
use std::collections::HashMap;
use std::sync::PoisonError;

/// The closest entries that are compared by their exact vectors, at least.
const CANDIDATES: usize = 32;

/// So many times more entries have a rank.
const MORE_RANKS: usize = 8;

pub(super) fn search(
    db: &Db<'_>,
    indexes: &Indexes,
    collection: &CollectionRow,
    query: SearchQuery,
    now: i64,
) -> Result<Vec<SearchHit>, DbError> {
    let limit = query.limit.min(MAX_HITS);
    if limit == 0 {
        return Ok(Vec::new());
    }
    let by_meaning = query.mode != SearchMode::Lexical;
    let vector = query.vector.filter(|_| by_meaning).map(Query::new);
    if vector.as_ref().is_some_and(|query| query.vector.len() != collection.dimensions) {
        return Err(mismatch(collection).into());
    }
    let indexes = indexes.get(db, collection)?;
    let index = indexes.vectors.read().unwrap_or_else(PoisonError::into_inner);
    let allowed = index.allowed(&query.filter, now);
    let count = CANDIDATES.max(2 * limit);
    let mut cosines = HashMap::new();
    let mut by_vector = Vec::new();
    if let Some(query) = &vector {
        let closest = index.closest(query, &allowed, MORE_RANKS * count);
        let (close, others) = closest.split_at(count.min(closest.len()));
        let mut exact_order: Vec<(i64, f32)> = Vec::with_capacity(count);
        for &id in close {
            if let Some(cosine) = exact(db, id, query)? {
                exact_order.push((id, cosine));
            }
        }
        exact_order.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        // A small error in a low rank changes nothing, and reading all these vectors takes time.
        by_vector = exact_order.iter().map(|(id, _)| *id).chain(others.iter().copied()).collect();
        cosines.extend(exact_order);
    }
    let mut fits = HashMap::new();
    let mut by_text = Vec::new();
    if query.mode != SearchMode::Semantic {
        let text = cut(&query.text, MAX_QUERY);
        let entries = AllowedEntries { index: &index, allowed: &allowed };
        let hits = indexes.find_words(db, collection, text, MORE_RANKS * count, entries)?;
        by_text = hits.iter().map(|(id, _)| *id).collect();
        fits.extend(hits);
    }
    let mut hits = Vec::with_capacity(limit);
    for ranked in combine(&by_vector, &by_text, now, |id| index.candidate(id)) {
        let cosine = match (cosines.get(&ranked.id), &vector) {
            (Some(cosine), _) => Some(*cosine),
            (None, Some(query)) => exact(db, ranked.id, query)?,
            (None, None) => None,
        };
        let score = match cosine {
            Some(cosine) => f32::midpoint(1.0, cosine),
            // From 0 to 1: BM25 itself has no upper end.
            None => fits.get(&ranked.id).map_or(0.0, |fit| fit.max(0.0) / (1.0 + fit.max(0.0))),
        };
        if score < query.min_score.max(least(&query.vector_scores, cosine, &ranked)) {
            continue;
        }
        hits.extend(hit(db, &ranked, score, cosine, now)?);
        if hits.len() == limit {
            break;
        }
    }
    Ok(hits)
}

/// The least score of a hit, which depends on whether it has a vector and a word.
fn least(scores: &VectorScores, cosine: Option<f32>, ranked: &Ranked) -> f32 {
    match (cosine, ranked.text_rank) {
        (None, _) => 0.0,
        (Some(_), Some(_)) => scores.all,
        (Some(_), None) => scores.all.max(scores.without_words),
    }
}

fn hit(
    db: &Db<'_>,
    ranked: &Ranked,
    score: f32,
    cosine: Option<f32>,
    now: i64,
) -> rusqlite::Result<Option<SearchHit>> {
    let sql = format!("SELECT {} FROM entry WHERE id = ?1", entry_row::COLUMNS);
    let entry = db.prepare_cached(&sql)?.query_row([ranked.id], |row| entries::read(db, row)).optional()?;
    Ok(entry.map(|entry| {
        let age_ms = entry_row::millis(now).saturating_sub(entry.created_at);
        let Ranked { vector_rank, text_rank, .. } = *ranked;
        SearchHit { entry, score, reason: HitReason { vector_rank, text_rank, cosine, age_ms } }
    }))
}

/// The cosine of a query and an entry; none if the entry has no vector.
fn exact(db: &Db<'_>, id: i64, query: &Query) -> rusqlite::Result<Option<f32>> {
    let vector = stored_vector(db, id)?;
    Ok(vector
        .filter(|vector| vector.len() == query.vector.len())
        .map(|vector| cosine(&vector, &query.vector)))
}

/// The beginning of a text, of whole letters.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn mismatch(collection: &CollectionRow) -> ArchiveError {
    ArchiveError::new(
        ArchiveCode::EmbedderMismatch,
        format!(
            "The collection has vectors of {} dimensions, and the query has another number: search with the \
             embedder that made the collection.",
            collection.dimensions
        ),
    )
}
