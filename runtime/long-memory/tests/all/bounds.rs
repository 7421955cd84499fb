//! Bounds of what one step does.

use crate::consolidation::maintain;
use crate::kit::{NOON, Place, TestClock, TestTurn, fact, model, proposals, recall, texts};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{EntryKind, EntryState, Trust};
use redflow_contract::code::ArchiveCode;
use redflow_contract::digest::Digest;
use redflow_contract::effect::CallConversation;
use redflow_contract::id::RunId;
use redflow_long_memory::MAX_NEW_FACTS;
use redflow_ports::{AgentEntry, Archive as _, Clock, EntrySearch, NewEntry};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const NAME: &str = "ltm/tab1/n7";

fn ada() -> CallConversation {
    CallConversation { session: Some("tab1:s".to_owned()), user: Some("ada".to_owned()) }
}

#[tokio::test]
async fn a_clear_removes_more_turns_than_one_step_has() {
    let place = Place::new();
    let memory = place.memory(&json!({"embeddings": "hash"}));
    for number in 0..1_001 {
        TestTurn::new(&format!("r{number:04}")).append(&memory, "I live in Berlin", "Noted.").await.unwrap();
    }
    memory.clear("tab1:s").await.unwrap();
    assert!(place.turn_states().await.is_empty());
}

#[tokio::test]
async fn one_maintenance_takes_eight_batches_of_a_conversation() {
    let place = Place::new();
    let model = model(|_, _| Ok(proposals(&[]).to_string()));
    let memory = place.with_model(&json!({}), &model);
    for number in 0..100 {
        TestTurn::new(&format!("r{number:03}")).append(&memory, "I live in Berlin", "Noted.").await.unwrap();
    }
    for (calls, pending) in [(8, 4), (9, 0)] {
        assert_eq!(maintain(&memory).await.error, None);
        assert_eq!(model.calls.load(Ordering::SeqCst), calls);
        let states = place.turn_states().await;
        assert_eq!(states.iter().filter(|state| **state == EntryState::Live).count(), pending);
    }
}

#[tokio::test]
async fn a_maintenance_passes_over_two_hundred_and_forty_turns_that_wait() {
    for (waiting, is_read) in [(239, true), (240, false)] {
        let place = Place::new();
        let said = "I live in the town Berlin";
        let memory = place.with_model(
            &json!({}),
            &model(move |_, text| {
                let is_said = text.contains(said);
                Ok(proposals(&if is_said { vec![fact(said, said)] } else { Vec::new() }).to_string())
            }),
        );
        TestTurn::new("r000").append(&memory, said, "Noted.").await.unwrap();
        // There is no room for a fact today.
        let entry = |number: u64| NewEntry {
            user: Some("ada".to_owned()),
            ..NewEntry::new(format!("pump-{number}"), EntryKind::Fact, format!("The pump {number} is green."))
        };
        place.archive.put(NAME, (0..MAX_NEW_FACTS).map(entry).collect()).await.unwrap();
        assert_eq!(maintain(&memory).await.consolidated.added, 0);
        for number in 1..waiting {
            TestTurn::new(&format!("r{number:03}")).append(&memory, "I like tea.", "Noted.").await.unwrap();
        }
        let turn = TestTurn { user: Some("bob"), ..TestTurn::new("s") };
        turn.append(&memory, said, "Noted.").await.unwrap();
        assert_eq!(maintain(&memory).await.consolidated.added, u32::from(is_read), "{waiting}");
        assert!(place.turn_states().await.len() > waiting);
    }
}

/// Turns that the short memory still has are better hits than the one that is wanted.
#[tokio::test]
async fn a_recall_passes_over_sixteen_turns_that_the_short_memory_has() {
    for (newer, is_found) in [(16, true), (17, false)] {
        let place = Place::new();
        let props = json!({"topK": 1, "minScore": 0.0});
        TestTurn::new("r00").append(&place.memory(&props), "The red pump leaks.", "Hm.").await.unwrap();
        let memory = place.memory(&json!({"shortMemory": "short", "topK": 1, "minScore": 0.0}));
        for number in 1..=newer {
            let (run, said) = (format!("r{number:02}"), format!("The red pump leaks oil in hall {number}."));
            TestTurn::new(&run).append(&memory, &said, "Hm.").await.unwrap();
        }
        let recalled = recall(&memory, Some("ada"), "Which red pump leaks oil in which hall?").await;
        let expected = ["User: The red pump leaks.\nAssistant: Hm."];
        assert_eq!(texts(&recalled), expected[..usize::from(is_found)], "{newer}");
    }
}

#[tokio::test]
async fn an_answer_to_a_tool_has_a_hundred_entries() {
    let place = Place::new();
    let memory = place.memory(&json!({"minScore": 0.0}));
    TestTurn::new("r0").append(&memory, "The red pump leaks.", "Hm.").await.unwrap();
    let entry = |number: usize| NewEntry {
        user: Some("ada".to_owned()),
        trust: Trust::User,
        ..NewEntry::new(format!("pump-{number:03}"), EntryKind::Fact, format!("The pump {number} is green."))
    };
    place.archive.put(NAME, (0..150).map(entry).collect()).await.unwrap();
    let entries = memory.entries().unwrap();
    assert_eq!(entries.list(&ada(), None, 1_000).await.unwrap().len(), 100);
    let search =
        EntrySearch { text: "a green pump".to_owned(), limit: Some(1_000), ..EntrySearch::default() };
    assert_eq!(entries.search(&ada(), search).await.unwrap().len(), 100);
}

/// A clock. Each time that it is read, another process stores the entry `counter`, so often.
struct BusyClock {
    clock: Arc<TestClock>,
    other: Place,
    writes: usize,
    reads: AtomicUsize,
}

impl Clock for BusyClock {
    fn now(&self) -> u64 {
        let number = self.reads.fetch_add(1, Ordering::SeqCst);
        if number < self.writes {
            let (archive, handle) = (self.other.archive.clone(), tokio::runtime::Handle::current());
            let new = NewEntry {
                user: Some("ada".to_owned()),
                trust: Trust::Agent,
                ..NewEntry::new("counter", EntryKind::Fact, format!("The count is {number}"))
            };
            let put = move || handle.block_on(async move { archive.put(NAME, vec![new]).await });
            std::thread::spawn(put).join().unwrap().unwrap();
        }
        self.clock.now()
    }
    fn run_id(&self) -> RunId {
        self.clock.run_id()
    }
    fn message_id(&self) -> String {
        self.clock.message_id()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_is_tried_again_eight_times() {
    for (writes, is_stored) in [(8, true), (9, false), (100, false)] {
        let place = Place::new();
        TestTurn::new("r0").append(&place.memory(&json!({})), "The red pump leaks.", "Hm.").await.unwrap();
        let busy = Arc::new(BusyClock {
            clock: place.clock.clone(),
            other: place.other_process(),
            writes,
            reads: AtomicUsize::new(0),
        });
        let entries =
            Place { memory_clock: Some(busy.clone()), ..place }.memory(&json!({})).entries().unwrap();
        let new = AgentEntry {
            key: Some("counter".to_owned()),
            text: "The count is mine.".to_owned(),
            kind: EntryKind::Fact,
            tags: Vec::new(),
            expected_version: None,
            run: "run-1".into(),
            call: Digest::of(b"1"),
        };
        let stored = entries.put(&ada(), new).await;
        assert_eq!(busy.reads.load(Ordering::SeqCst), 9, "{writes}");
        match stored {
            Ok(entry) => assert_eq!((entry.version, entry.created_at), (9, NOON)),
            Err(error) => assert_eq!(error.code, ArchiveCode::MemoryConflict),
        }
        assert_eq!(entries.get(&ada(), "counter").await.unwrap().unwrap().text.contains("mine"), is_stored);
    }
}
