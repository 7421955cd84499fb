//! The vectors of a collection in memory, and the search in them.

mod codes;
mod columns;
mod ranks;
mod word_fit;

pub(crate) use codes::{Code, Query, cosine, normalise};
pub(crate) use columns::{Columns, IndexRow};
pub(crate) use ranks::{Candidate, Ranked, combine};

use redflow_ports::{EntryFilter, SearchFilter};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The entries of a collection: a code of each vector, and what filters need.
#[derive(Debug)]
pub(crate) struct CollectionIndex {
    dimensions: usize,
    /// The codes of all rows, one after the other. A row without a vector has zeros.
    codes: Vec<i8>,
    scales: Vec<f32>,
    columns: Columns,
    /// The last change of the archive that is in this index.
    pub(crate) seq: i64,
}

impl CollectionIndex {
    pub(crate) fn new(dimensions: usize, seq: i64) -> Self {
        Self { dimensions, codes: Vec::new(), scales: Vec::new(), columns: Columns::default(), seq }
    }

    /// The bytes that it holds, about.
    pub(crate) fn bytes(&self) -> usize {
        self.codes.capacity() + 4 * self.scales.capacity() + self.columns.bytes()
    }

    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.codes.reserve_exact(rows * self.dimensions);
        self.scales.reserve_exact(rows);
        self.columns.reserve(rows);
    }

    /// Adds a row, or replaces the one with the same id. Returns false if a new id is not the largest: the index
    /// must be built again.
    pub(crate) fn set(&mut self, id: i64, row: &IndexRow<'_>, code: Option<&Code>) -> bool {
        let Some(at) = self.columns.set(id, row) else { return false };
        let (begin, end) = (at * self.dimensions, (at + 1) * self.dimensions);
        if self.scales.len() <= at {
            self.scales.resize(at + 1, 0.0);
            self.codes.resize(end, 0);
        }
        // A code of another length is damaged; its row is found by words alone.
        match code.filter(|code| code.data.len() == self.dimensions) {
            Some(code) => {
                self.scales[at] = code.scale;
                self.codes[begin..end].copy_from_slice(&code.data);
            }
            None => {
                self.scales[at] = 0.0;
                self.codes[begin..end].fill(0);
            }
        }
        true
    }

    /// Removes a row. Its place stays empty until the index is built again.
    pub(crate) fn remove(&mut self, id: i64) {
        if let Some(at) = self.columns.remove(id) {
            self.scales[at] = 0.0;
        }
    }

    /// Whether so many rows were removed that it is worth building the index again.
    pub(crate) fn is_sparse(&self) -> bool {
        self.columns.removed() > 1_000 && self.columns.removed() > self.len() / 4
    }

    /// The ids of the rows that are listed.
    pub(crate) fn listed(&self, filter: &EntryFilter) -> Vec<i64> {
        self.columns.listed(filter)
    }

    /// The sessions of the rows that are listed, those after a session.
    pub(crate) fn sessions(&self, filter: &EntryFilter, after: &str, limit: usize) -> Vec<String> {
        self.columns.sessions(filter, after, limit)
    }

    /// Which rows the filter allows.
    pub(crate) fn allowed(&self, filter: &SearchFilter, now: i64) -> Bitmap {
        self.columns.allowed(filter, now)
    }

    /// The least id of the allowed rows.
    pub(crate) fn first_allowed(&self, allowed: &Bitmap) -> Option<i64> {
        allowed.first().map(|at| self.columns.id(at))
    }

    /// How well an allowed row fits a word that its text has so many times; none if the row is not allowed.
    pub(crate) fn fit(&self, allowed: &Bitmap, id: i64, times: u32) -> Option<f32> {
        let at = self.columns.find(id).filter(|&at| allowed.has(at))?;
        let mean = self.columns.all_text_bytes() as f32 / self.texts() as f32;
        Some(word_fit::fit(times, self.columns.text_bytes(at) as f32 / mean.max(1.0)))
    }

    /// How much a word counts that so many texts have.
    pub(crate) fn word_weight(&self, texts_with_it: usize) -> f32 {
        word_fit::weight(self.texts(), texts_with_it)
    }

    /// The rows that are not removed.
    fn texts(&self) -> usize {
        self.len() - self.columns.removed()
    }

    /// The ids of the rows that are closest to a query by their codes, the closest first.
    pub(crate) fn closest(&self, query: &Query, allowed: &Bitmap, limit: usize) -> Vec<i64> {
        if query.code.data.len() != self.dimensions || self.dimensions == 0 || limit == 0 {
            return Vec::new();
        }
        let mut best: BinaryHeap<Reverse<(Score, Reverse<usize>)>> = BinaryHeap::with_capacity(limit + 1);
        let mut least = f32::NEG_INFINITY;
        // A scale of 0 is a row without a vector.
        let is_wanted = |at: usize| self.scales[at] != 0.0 && allowed.has(at);
        codes::scan(&query.code.data, &self.codes, is_wanted, |at, product| {
            let score = product as f32 * self.scales[at];
            if score > least || best.len() < limit {
                best.push(Reverse((Score(score), Reverse(at))));
                if best.len() > limit {
                    best.pop();
                }
                if best.len() == limit {
                    least = best.peek().map_or(f32::NEG_INFINITY, |Reverse((score, _))| score.0);
                }
            }
        });
        let best = best.into_sorted_vec();
        best.into_iter().map(|Reverse((_, Reverse(at)))| self.columns.id(at)).collect()
    }

    /// When the row was stored, and its importance, if they count in its rank.
    pub(crate) fn candidate(&self, id: i64) -> Option<Candidate> {
        self.columns.find(id).map(|at| self.columns.candidate(at))
    }
}

/// A finite score, in order.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Score(f32);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// One bit for each row.
#[derive(Debug)]
pub(crate) struct Bitmap(Vec<u64>);

impl Bitmap {
    pub(crate) fn of(rows: usize, mut is_set: impl FnMut(usize) -> bool) -> Self {
        let word = |word: usize| {
            let end = (word * 64 + 64).min(rows);
            (word * 64..end).filter(|&row| is_set(row)).fold(0, |bits, row| bits | 1 << (row % 64))
        };
        Self((0..rows.div_ceil(64)).map(word).collect())
    }

    fn first(&self) -> Option<usize> {
        let (at, word) = self.0.iter().enumerate().find(|(_, word)| **word != 0)?;
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    fn has(&self, row: usize) -> bool {
        self.0.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }
}

#[cfg(test)]
#[path = "../index_tests.rs"]
mod tests;
