//! What a run has recalled is not learnt again, also if it was changed or removed since.

use crate::consolidation::{done, maintain};
use crate::kit::{DAY, NOON, Place, TestTurn, answers, fact, proposals, recall};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{EntryKind, EntryState, MAX_ENTRY_META, SourceKind, Trust};
use redflow_contract::digest::Digest;
use redflow_contract::source::{MAX_SOURCE_REF, Source, limit_sources};
use redflow_ports::{Archive as _, NewEntry};
use serde_json::json;

const NAME: &str = "ltm/tab1/n7";
const KNOWN: &str = "The pump in Kiel has a pressure of 5 bar.";
const REPETITION: &str = "As I remember, your pump in Kiel has a pressure of 5 bar.";
const OWN: &str = "The valve is new and red.";

fn known(key: &str) -> NewEntry {
    NewEntry {
        user: Some("ada".to_owned()),
        trust: Trust::User,
        ..NewEntry::new(key, EntryKind::Fact, KNOWN)
    }
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Nothing,
    Text,
    /// More often than versions are kept.
    ManyTexts,
    Removal,
}

#[tokio::test]
async fn what_was_recalled_is_not_learnt_after_it_was_changed_or_removed() {
    for change in [Change::Nothing, Change::Text, Change::ManyTexts, Change::Removal] {
        let place = Place::new();
        let entries = [fact(REPETITION, REPETITION), fact(OWN, OWN)];
        let memory = place.with_model(&json!({}), &answers(vec![proposals(&entries)]));
        TestTurn::new("r0").append(&memory, "Hello", "Hm.").await.unwrap();
        memory.clear("tab1:s").await.unwrap();
        place.archive.put(NAME, vec![known("pump")]).await.unwrap();
        let recalled = recall(&memory, Some("ada"), "Which pressure has the pump in Kiel?").await;
        assert_eq!(recalled.sources.len(), 1);
        let turn = TestTurn { sources: recalled.sources, ..TestTurn::new("r1") };
        turn.append(&memory, &format!("Which pressure? {OWN}"), REPETITION).await.unwrap();
        let texts = match change {
            Change::Nothing | Change::Removal => 0,
            Change::Text => 1,
            Change::ManyTexts => 30,
        };
        for number in 0..texts {
            let text = format!("The motor turns {number} times.");
            place.archive.put(NAME, vec![NewEntry { text, ..known("pump") }]).await.unwrap();
        }
        if matches!(change, Change::Removal) {
            place.archive.remove(NAME, vec!["pump".to_owned()]).await.unwrap();
        }
        // What the user says is learnt.
        assert_eq!(done(&maintain(&memory).await), [1, 0, 0, 1, 0], "{change:?}");
        let live = place.facts(EntryState::Live).await;
        assert!(
            live.iter().all(|text| text != REPETITION) && live.iter().any(|text| text == OWN),
            "{change:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_from_a_tool_of_a_server_is_learnt() {
    let place = Place::new();
    let memory = place.with_model(&json!({}), &answers(vec![proposals(&[fact(KNOWN, KNOWN)])]));
    // What a tool has read is no copy of the memory.
    let source = Source {
        kind: SourceKind::Mcp,
        reference: "docs/docs://pumps".to_owned(),
        version: None,
        digest: Some(Digest::of(b"x")),
        score: None,
        trust: Trust::External,
    };
    let turn = TestTurn { sources: vec![source], ..TestTurn::new("r1") };
    turn.append(&memory, "Which pressure?", KNOWN).await.unwrap();
    assert_eq!(done(&maintain(&memory).await), [1, 0, 0, 0, 0]);
}

#[tokio::test]
async fn a_turn_is_stored_however_long_the_keys_of_recalled_entries_are() {
    // The last keys do not fit into the names of sources, which the engine cuts.
    for length in [300, MAX_SOURCE_REF - "tab1/n7/".len(), 900] {
        let place = Place::new();
        let entries = [fact(REPETITION, REPETITION), fact(OWN, OWN)];
        let props = json!({"topK": 50, "minScore": 0.0, "recallTokens": 32_000});
        let memory = place.with_model(&props, &answers(vec![proposals(&entries)]));
        TestTurn::new("r0").append(&memory, "Hello", "Hm.").await.unwrap();
        memory.clear("tab1:s").await.unwrap();
        let ends = NOON + 10 * DAY;
        let entry = |number: usize| {
            let text = if number == 49 { KNOWN.to_owned() } else { format!("The pump {number} is green.") };
            let meta = [("end".to_owned(), json!(ends))].into_iter().collect();
            let key = format!("{number:0length$}");
            NewEntry { text, meta, expires_at: Some(ends), ..known(&key) }
        };
        place.archive.put(NAME, (0..50).map(entry).collect()).await.unwrap();
        // Today has its own limit of new facts.
        place.clock.set(NOON + DAY);
        let mut sources = recall(&memory, Some("ada"), "Which pump is green?").await.sources;
        assert_eq!(sources.len(), 50);
        limit_sources(&mut sources);
        let turn = TestTurn { sources, ..TestTurn::new("r1") };
        turn.append(&memory, &format!("Which pressure? {OWN}"), REPETITION).await.unwrap();
        let all = place.all().await;
        let stored = all.iter().find(|entry| entry.kind == EntryKind::Episode).unwrap();
        let bytes = json!(stored.meta).to_string().len();
        assert!(bytes < MAX_ENTRY_META && stored.meta.contains_key("recalled"), "{length}: {bytes}");
        // Nothing of the answer is learnt, because it may repeat an entry that the turn does not name.
        assert_eq!(done(&maintain(&memory).await), [1, 0, 0, 1, 0], "{length}");
        let all = place.all().await;
        let facts: Vec<_> = all.iter().filter(|entry| entry.key.len() == length).collect();
        assert_eq!(facts.len(), 50);
        assert!(facts.iter().all(|entry| entry.expires_at > Some(ends)), "all were used: {length}");
    }
}
