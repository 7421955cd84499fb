use super::{Code, CollectionIndex, IndexRow, Query, codes, combine, cosine, normalise};
use crate::index::Candidate;
use pretty_assertions::assert_eq;
use redflow_contract::archive::{EntryKind, EntryState, Trust};
use redflow_ports::SearchFilter;

const DAY: i64 = 24 * 3_600_000;
const NOW: i64 = 1_000 * DAY;

fn row() -> IndexRow<'static> {
    IndexRow {
        kind: EntryKind::Fact,
        state: EntryState::Live,
        trust: Trust::User,
        user: None,
        session: None,
        tags: &[],
        valid_from: NOW - DAY,
        valid_to: None,
        created_at: NOW - DAY,
        expires_at: None,
        importance: 0.0,
        text_bytes: 20,
    }
}

/// Random vectors that are the same in every run.
fn vectors(count: usize, dimensions: usize, mut seed: u64) -> Vec<Vec<f32>> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    let vector = |_| {
        let mut vector: Vec<f32> = (0..dimensions).map(|_| next()).collect();
        normalise(&mut vector);
        vector
    };
    (0..count).map(vector).collect()
}

fn index_of(vectors: &[Vec<f32>]) -> CollectionIndex {
    let mut index = CollectionIndex::new(vectors[0].len(), 0);
    for (id, vector) in (1_i64..).zip(vectors) {
        assert!(index.set(id, &row(), Some(&Code::of(vector))));
    }
    index
}

fn found(index: &CollectionIndex, filter: &SearchFilter) -> Vec<i64> {
    let allowed = index.allowed(filter, NOW);
    (1..=9).filter(|&id| index.fit(&allowed, id, 1).is_some()).collect()
}

/// Lengths that fill the registers of a processor and lengths that do not, with the largest products.
#[test]
fn a_scan_gives_the_sum_of_the_products_of_each_wanted_code() {
    for dimensions in [1, 3, 31, 32, 33, 100, 384, 4_096] {
        let code: Vec<i8> = (0..dimensions).map(|at| if at % 3 == 0 { -127 } else { 127 }).collect();
        let codes: Vec<i8> = (0..5 * dimensions).map(|at| (at * 7 % 255) as u8 as i8).collect();
        let sum = |row: usize| -> i32 {
            let other = &codes[row * dimensions..][..dimensions];
            code.iter().zip(other).map(|(left, right)| i32::from(*left) * i32::from(*right)).sum()
        };
        let mut found = Vec::new();
        codes::scan(&code, &codes, |row| row != 1, |row, product| found.push((row, product)));
        assert_eq!(found, [0, 2, 3, 4].map(|row| (row, sum(row))), "{dimensions}");
    }
    let (most, mut found) = (vec![127; 4_096], 0);
    codes::scan(&most, &most, |_| true, |_, product| found = product);
    assert_eq!(found, 127 * 127 * 4_096);
}

#[test]
fn codes_find_what_the_vectors_find() {
    let all = vectors(2_000, 96, 7);
    let index = index_of(&all);
    let allowed = index.allowed(&SearchFilter::default(), NOW);
    let (mut hits, mut of) = (0, 0);
    for query in vectors(20, 96, 99) {
        let mut exact: Vec<(i64, f32)> =
            (1_i64..).zip(&all).map(|(id, vector)| (id, cosine(vector, &query))).collect();
        exact.sort_by(|left, right| right.1.total_cmp(&left.1));
        let close = index.closest(&Query::new(query), &allowed, 64);
        assert_eq!(close.len(), 64);
        of += 10;
        hits += exact[..10].iter().filter(|(id, _)| close.contains(id)).count();
    }
    assert_eq!(hits, of, "the best ten are always among the candidates");
}

#[test]
fn vectors_that_are_no_numbers_are_never_found() {
    let mut index = index_of(&vectors(3, 4, 1));
    for (id, vector) in (4_i64..).zip([[0.0; 4], [f32::NAN; 4], [f32::INFINITY, 0.0, 0.0, 0.0]]) {
        let mut vector = vector.to_vec();
        normalise(&mut vector);
        assert_eq!(vector, [0.0; 4]);
        index.set(id, &row(), Some(&Code::of(&vector)));
    }
    index.set(7, &row(), Some(&Code { scale: 1.0, data: vec![1; 5] }));
    index.set(8, &row(), None);
    let allowed = index.allowed(&SearchFilter::default(), NOW);
    let mut close = index.closest(&Query::new(vec![1.0, 0.0, 0.0, 0.0]), &allowed, 10);
    close.sort_unstable();
    assert_eq!(close, [1, 2, 3]);
    assert!(
        index.closest(&Query::new(vec![1.0; 5]), &allowed, 10).is_empty(),
        "another number of dimensions"
    );
    assert!(index.closest(&Query::new(vec![1.0; 4]), &allowed, 0).is_empty());
    assert_eq!(found(&index, &SearchFilter::default()), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn rows_are_replaced_and_removed() {
    let mut index = index_of(&vectors(3, 4, 1));
    index.remove(2);
    index.remove(2);
    index.remove(77);
    assert_eq!(found(&index, &SearchFilter::default()), [1, 3]);
    assert!(index.set(2, &row(), None), "a removed row can come back");
    assert!(!index.set(0, &row(), None), "ids only grow");
    assert_eq!((index.len(), index.is_sparse()), (3, false));
    assert!(index.candidate(9).is_none());
}

#[test]
fn filters_hold() {
    let (red, blue) = (["red".to_owned()], ["blue".to_owned(), "red".to_owned()]);
    let mut index = CollectionIndex::new(1, 0);
    let rows = [
        IndexRow { user: Some("ada"), tags: &red, ..row() },
        IndexRow { user: Some("bob"), session: Some("s"), tags: &blue, ..row() },
        IndexRow { kind: EntryKind::Chunk, trust: Trust::External, ..row() },
        IndexRow { state: EntryState::Archived, ..row() },
        IndexRow { state: EntryState::Quarantined, ..row() },
        IndexRow { state: EntryState::Superseded, valid_to: Some(NOW - DAY / 2), ..row() },
        IndexRow { expires_at: Some(NOW), ..row() },
        IndexRow { state: EntryState::Pinned, expires_at: Some(NOW), ..row() },
        IndexRow { valid_from: NOW + DAY, created_at: NOW + DAY, ..row() },
    ];
    for (id, row) in (1..).zip(&rows) {
        assert!(index.set(id, row, None));
    }
    let all = SearchFilter::default;
    let time = |millis: i64| Some(millis as u64);
    let of = |name: &str| Some(name.to_owned());
    let tags = |tag: &str| vec![tag.to_owned()];
    let table: [(SearchFilter, &[i64]); 14] = [
        // What was stored before a clock was set back is still found.
        (all(), &[1, 2, 3, 8, 9]),
        (SearchFilter { user: of("ada"), ..all() }, &[1]),
        (SearchFilter { user: of("nobody"), ..all() }, &[]),
        (SearchFilter { has_no_user: true, ..all() }, &[3, 8, 9]),
        (SearchFilter { session: of("s"), ..all() }, &[2]),
        (SearchFilter { tags: tags("red"), ..all() }, &[1, 2]),
        (SearchFilter { tags: tags("blue"), ..all() }, &[2]),
        (SearchFilter { tags: tags("green"), ..all() }, &[]),
        (SearchFilter { kinds: vec![EntryKind::Chunk], ..all() }, &[3]),
        (SearchFilter { min_trust: Some(Trust::Tool), ..all() }, &[1, 2, 8, 9]),
        (SearchFilter { as_of: time(NOW - DAY * 3 / 4), ..all() }, &[1, 2, 3, 6, 8]),
        (SearchFilter { as_of: time(NOW - DAY * 2), ..all() }, &[]),
        (SearchFilter { until: time(NOW - DAY / 2), ..all() }, &[1, 2, 3, 6, 8]),
        (SearchFilter { since: time(NOW), ..all() }, &[1, 2, 3, 8, 9]),
    ];
    for (filter, expected) in table {
        assert_eq!(found(&index, &filter), expected, "{filter:?}");
    }
}

#[test]
fn ranks_are_combined() {
    let candidate = |id: i64| match id {
        // An old one, a new one, an important one, and a passage whose age does not count.
        1 => Some(Candidate { created_at: NOW - 300 * DAY, importance: 0.0, has_age: true }),
        2 => Some(Candidate { created_at: NOW, importance: 0.0, has_age: true }),
        3 => Some(Candidate { created_at: NOW - 300 * DAY, importance: 7.0, has_age: true }),
        4 => Some(Candidate { created_at: NOW, importance: 0.0, has_age: false }),
        // A clock that was set back.
        5 => Some(Candidate { created_at: NOW + 300 * DAY, importance: 0.0, has_age: true }),
        _ => None,
    };
    let order = |by_vector: &[i64], by_text: &[i64]| {
        let ranked = combine(by_vector, by_text, NOW, candidate);
        ranked.iter().map(|ranked| ranked.id).collect::<Vec<_>>()
    };
    assert_eq!(order(&[1, 4], &[]), [1, 4]);
    assert_eq!(order(&[1, 4], &[4]), [4, 1], "found in both ways");
    assert_eq!(order(&[1, 2], &[]), [2, 1], "newer");
    assert_eq!(order(&[1, 3], &[]), [3, 1], "more important");
    assert_eq!(order(&[1, 5], &[]), [5, 1], "the future is as new as now");
    assert_eq!(order(&[9, 1], &[9]), [1], "removed in the meantime");
    let ranked = combine(&[1], &[4, 1], NOW, candidate);
    assert_eq!((ranked[0].vector_rank, ranked[0].text_rank), (Some(1), Some(2)));
    assert_eq!((ranked[1].vector_rank, ranked[1].text_rank), (None, Some(1)));
}
