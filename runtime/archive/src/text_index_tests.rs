use super::super::query_words::QueryWords;
use super::{
    AllowedEntries, MAX_COUNTED_ONCE, MAX_OCCURRENCES, TextHit, WordCounts, add, create, entries_with, search,
};
use crate::index::{CollectionIndex, IndexRow};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{EntryKind, EntryState, Trust};
use redflow_ports::SearchFilter;
use rusqlite::Connection;

fn row(text: &str, is_of_ada: bool) -> IndexRow<'static> {
    IndexRow {
        kind: EntryKind::Chunk,
        state: EntryState::Live,
        trust: Trust::User,
        user: is_of_ada.then_some("ada"),
        session: None,
        tags: &[],
        valid_from: 0,
        valid_to: None,
        created_at: 0,
        expires_at: None,
        importance: 0.0,
        text_bytes: text.len() as u32,
    }
}

/// A text index, and the entries of its texts.
struct Texts {
    connection: Connection,
    index: CollectionIndex,
}

impl Texts {
    /// Each odd one is of Ada.
    fn new(texts: impl IntoIterator<Item = String>) -> Self {
        Self::of_ada(texts, |id| id % 2 == 1)
    }

    fn of_ada(texts: impl IntoIterator<Item = String>, is_of_ada: impl Fn(i64) -> bool) -> Self {
        let connection = Connection::open_in_memory().unwrap();
        create(&connection, 1).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        let mut index = CollectionIndex::new(1, 0);
        for (id, text) in (1_i64..).zip(texts) {
            add(&connection, 1, id, &text).unwrap();
            assert!(index.set(id, &row(&text, is_of_ada(id)), None));
        }
        connection.execute_batch("COMMIT").unwrap();
        Self { connection, index }
    }

    fn search(&self, text: &str, limit: usize, user: Option<&str>) -> Vec<TextHit> {
        let words = QueryWords::default().split(text).unwrap();
        let filter = SearchFilter { user: user.map(str::to_owned), ..SearchFilter::default() };
        let allowed = &self.index.allowed(&filter, 1);
        let entries = AllowedEntries { index: &self.index, allowed };
        search(&self.connection, 1, words, limit, &mut WordCounts::default(), entries).unwrap()
    }

    fn ids(&self, text: &str) -> Vec<i64> {
        self.search(text, 20_000, None).into_iter().map(|(id, _)| id).collect()
    }

    /// The order in which FTS5 itself has the entries.
    fn ids_of_fts5(&self, query: &str) -> Vec<i64> {
        let sql = "SELECT rowid FROM text_1 WHERE text_1 MATCH ?1 ORDER BY rank, rowid";
        let mut statement = self.connection.prepare(sql).unwrap();
        statement.query_map([query], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }
}

#[test]
fn frequent_words_are_left_out() {
    let text = |id| if id % 3_000 == 0 { "The Café is open für alle" } else { "The rest für alle" };
    let texts = Texts::new((1..=9_000).map(|id| text(id).to_owned()));
    assert_eq!(texts.ids("the café"), [3_000, 6_000, 9_000], "with accents");
    assert_eq!(texts.ids("für das café"), [3_000, 6_000, 9_000], "a frequent word with an accent");
    assert_eq!(texts.ids("the CAFE"), [3_000, 6_000, 9_000]);
    assert_eq!(texts.ids("open the nothing"), [3_000, 6_000, 9_000]);
    assert_eq!(texts.ids("the").len(), 9_000, "there is no other word");
    assert_eq!(texts.ids("nothing"), [] as [i64; 0]);
    assert_eq!(texts.ids(""), [] as [i64; 0]);
}

/// Every word has as many bytes as the others, so that the length of a text is the same for both.
#[test]
fn entries_have_the_order_of_bm25() {
    let mut seed = 1_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut text = |_| {
        let words: Vec<String> = (0..=next(20)).map(|_| format!("w{:02} ", next(10) * next(10))).collect();
        words.concat()
    };
    let texts = Texts::new((0..500).map(&mut text).collect::<Vec<_>>());
    for words in [&["w01"][..], &["w40", "w72"], &["w08", "w81", "w49", "w02"]] {
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        let expected = texts.ids_of_fts5(&quoted.join(" OR "));
        assert!(expected.len() > 3);
        assert_eq!(texts.ids(&words.join(" ")), expected, "{words:?}");
    }
}

#[test]
fn only_allowed_entries_are_found_and_the_best_first() {
    let texts = ["pump", "pump pump", "valve and pump", "nothing", "pump valve", "else", "other", "more"];
    let texts = Texts::new(texts.map(str::to_owned));
    assert_eq!(texts.ids("pump valve"), [5, 3, 2, 1]);
    let of_ada = |limit| -> Vec<i64> {
        texts.search("pump valve", limit, Some("ada")).into_iter().map(|(id, _)| id).collect()
    };
    assert_eq!(of_ada(9), [5, 3, 1]);
    assert_eq!(of_ada(2), [5, 3]);
    assert_eq!(of_ada(0), [] as [i64; 0]);
}

#[test]
fn occurrences_are_bounded() {
    let texts = Texts::new(["x x x", "y", "x x", "x x x x"].map(str::to_owned));
    let with = |left: usize| {
        let mut rest = left;
        let entries = entries_with(&texts.connection, 1, "x", i64::MIN, &mut rest).unwrap();
        (entries, left - rest)
    };
    assert_eq!(with(MAX_OCCURRENCES), (vec![(1, 3), (3, 2), (4, 4)], 9));
    assert_eq!(with(5), (vec![(1, 3), (3, 2), (4, 1)], 5));
    assert_eq!(with(2), (vec![(1, 2), (3, 1), (4, 1)], 2));
    assert_eq!(with(0), (vec![(1, 1), (3, 1), (4, 1)], 0));
    assert_eq!(entries_with(&texts.connection, 1, "z", i64::MIN, &mut 0).unwrap(), []);
    let from = |first, left| entries_with(&texts.connection, 1, "x", first, &mut { left }).unwrap();
    assert_eq!(from(4, 0), [(4, 1)]);
    assert_eq!(from(4, 2), [(1, 2), (4, 1)]);
    assert_eq!(from(1, 5), [(1, 3), (3, 2), (4, 1)]);
}

/// A filter may allow only entries behind those that a search without a filter reads.
#[test]
fn entries_of_a_frequent_word_are_bounded() {
    let most = MAX_OCCURRENCES + MAX_COUNTED_ONCE;
    let with_it = most + 1_000;
    let mut texts = Texts::of_ada((0..with_it).map(|_| "the".to_owned()), |id| id > with_it as i64 - 3);
    // As many texts without a word, which the text index need not have.
    for id in (with_it as i64 + 1..).take(with_it + 10_000) {
        assert!(texts.index.set(id, &row("...", false), None));
    }
    let weight = texts.index.word_weight(with_it);
    assert!(weight > 0.01 && weight < texts.index.word_weight(most));
    let hits = texts.search("the", usize::MAX, None);
    assert_eq!((hits.len(), hits[0], hits[most - 1]), (most, (1, weight), (most as i64, weight)));
    let last = [2, 1, 0].map(|back| (with_it as i64 - back, weight));
    assert_eq!(texts.search("the", 10, Some("ada")), last);
}

/// Their number is known only about, and that must not change what an ordinary search gives.
#[test]
fn a_word_of_fewer_entries_is_read_whole() {
    let texts = Texts::new((0..MAX_COUNTED_ONCE).map(|_| "the".to_owned()));
    assert_eq!(entries_with(&texts.connection, 1, "the", i64::MIN, &mut 0).unwrap().len(), MAX_COUNTED_ONCE);
    assert_eq!(texts.search("the", usize::MAX, None).len(), MAX_COUNTED_ONCE);
}
