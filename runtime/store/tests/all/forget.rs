//! Forgetting the runs of a user, a session or a source.

use crate::chats::{contents, item};
use crate::kit::{
    all_after, buffered_batch, debug_event, deployed_event, describe, events_after, finish_run,
    finished_journal, first_batch, id, last_batch, new_run, opening_lines, run_event, start_run, text,
    tool_returned, waiting_batch, with_events,
};
#[cfg(unix)]
use crate::processes::kill_at;
use pretty_assertions::assert_eq;
use redflow_contract::chat::{ChatItem, ChatSpeaker};
use redflow_contract::code::StoreCode;
use redflow_contract::event::{FlowEvent, RunEvent, RunEventKind};
use redflow_contract::id::NodeSummary;
use redflow_contract::memory::DataOwner;
use redflow_contract::run::RunRequest;
use redflow_ports::{
    Batch, ChatStore, EventLog, ForgottenRuns, NewRun, RunReader as _, RunStore, ToolCallQuery,
};
use redflow_store::{
    EventLogSettings, MemoryChatStore, MemoryStore, Reader, RequestOutcome, Store, prune, request_outcome,
    submit_request,
};
use std::path::Path;
use std::sync::Arc;

/// A word that stands only in what the user wrote.
const WORD: &str = "xylophonquartett";

fn user(name: &str) -> DataOwner {
    DataOwner::User(name.to_owned())
}

fn forgotten(removed: u64, unfinished: u64) -> ForgottenRuns {
    ForgottenRuns { removed, unfinished }
}

/// Where the word stands below a directory: the names of files.
fn files_with(dir: &Path, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_with(&entry.path(), word));
        } else {
            let bytes = std::fs::read(entry.path()).unwrap();
            if bytes.windows(word.len()).any(|part| part == word.as_bytes()) {
                found.push(entry.file_name().into_string().unwrap());
            }
        }
    }
    found.sort();
    found
}

/// Stores a run of an owner that is over, with events.
async fn finish_owned(store: &dyn RunStore, new: NewRun, events: &[RunEvent]) {
    let run = new.run_id.clone();
    let mut first = first_batch(&new);
    first.events = events.into();
    let mut journal = store.create(new);
    journal.append(first).await.unwrap();
    journal.append(buffered_batch(&["middle", "lines"])).await.unwrap();
    journal.append(last_batch(2000)).await.unwrap();
    store.mark_delivered(&run);
}

fn owned(run: &str, user: Option<&str>, session: Option<&str>) -> NewRun {
    NewRun { user: user.map(str::to_owned), session: session.map(str::to_owned), ..new_run(run) }
}

fn started_by(run: NewRun, parent: &str) -> NewRun {
    NewRun { cause: Some(format!("{parent}:1:{}:0", run.run_id)), ..run }
}

async fn remaining(store: &dyn RunStore, runs: &[&str]) -> Vec<String> {
    let mut stored = Vec::new();
    for run in runs {
        stored.extend(store.load(&id(run)).await.unwrap().map(|run| run.summary.run_id.to_string()));
    }
    stored
}

/// Runs a test with a store on the disk and one in memory, both with events and chats.
async fn both<F: AsyncFn(&dyn RunStore, &dyn EventLog, &dyn ChatStore)>(test: F) {
    let settings = EventLogSettings::default();
    let chats = Arc::new(MemoryChatStore::default());
    let memory = MemoryStore::with_event_log(100, settings).with_chats(Arc::clone(&chats));
    test(&memory, &memory, &*chats).await;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_with_log(dir.path(), settings).unwrap();
    test(&store, &store, &store).await;
}

#[tokio::test]
async fn the_runs_of_an_owner_are_removed() {
    let runs = ["ada 1", "ada 2", "child", "foreign", "bob", "old", "open", "asks"];
    let cases: [(DataOwner, ForgottenRuns, &[&str]); 6] = [
        // The child has no user of its own; the foreign one names another.
        (user("ada"), forgotten(3, 2), &["foreign", "bob", "old", "open", "asks"]),
        (user("bob"), forgotten(2, 0), &["ada 1", "ada 2", "child", "old", "open", "asks"]),
        (
            DataOwner::Session("f:one".into()),
            forgotten(2, 0),
            &["ada 2", "foreign", "bob", "old", "open", "asks"],
        ),
        (
            DataOwner::Source("ada 1".into()),
            forgotten(1, 0),
            &["ada 2", "child", "foreign", "bob", "old", "open", "asks"],
        ),
        (DataOwner::Source("open".into()), forgotten(0, 1), &runs),
        // Runs without a user belong to no user, not even to one without a name.
        (user(""), forgotten(0, 0), &runs),
    ];
    for (owner, expected, left) in cases {
        both(async |store, _, _| {
            finish_owned(store, owned("ada 1", Some("ada"), Some("f:one")), &[]).await;
            finish_owned(store, owned("ada 2", Some("ada"), Some("f:two")), &[]).await;
            finish_owned(store, started_by(new_run("child"), "ada 1"), &[]).await;
            finish_owned(store, started_by(owned("foreign", Some("bob"), None), "ada 1"), &[]).await;
            finish_owned(store, owned("bob", Some("bob"), None), &[]).await;
            finish_run(store, "old", 2000).await;
            for (run, last) in [("open", buffered_batch(&["on"])), ("asks", waiting_batch())] {
                let new = owned(run, Some("ada"), Some("f:three"));
                let first = first_batch(&new);
                let mut journal = store.create(new);
                journal.append(first).await.unwrap();
                journal.append(last).await.unwrap();
            }
            assert_eq!(store.forget_runs(&owner).await.unwrap(), expected, "{owner:?}");
            assert_eq!(remaining(store, &runs).await, left, "{owner:?}");
            assert_eq!(store.forget_runs(&owner).await.unwrap().removed, 0, "{owner:?}");
            if left.contains(&"bob") {
                assert_eq!(
                    text(&store.load(&id("bob")).await.unwrap().unwrap().journal),
                    finished_journal("bob"),
                    "another run was changed"
                );
            }
            // The id and the cause are free again.
            if !left.contains(&"child") {
                finish_owned(store, started_by(new_run("child"), "ada 1"), &[]).await;
            }
        })
        .await;
    }
}

/// Without it the unfinished run would start the removed one again after a crash.
#[tokio::test]
async fn a_run_stays_while_another_may_start_it_again() {
    both(async |store, _, _| {
        let mut parent = start_run(store, "parent").await;
        finish_owned(store, started_by(owned("child", Some("ada"), None), "parent"), &[]).await;
        assert_eq!(store.forget_runs(&user("ada")).await.unwrap(), forgotten(0, 1));
        parent.append(last_batch(9)).await.unwrap();
        store.mark_delivered(&id("parent"));
        assert_eq!(store.forget_runs(&user("ada")).await.unwrap(), forgotten(1, 0));
        assert_eq!(remaining(store, &["parent", "child"]).await, ["parent"]);
    })
    .await;
}

/// It must be found again although the run that it belongs to is gone.
#[tokio::test]
async fn a_run_without_an_owner_belongs_to_the_run_that_started_it() {
    for owner in [user("ada"), DataOwner::Session("f:one".into())] {
        both(async |store, _, _| {
            let parent = owned("parent", Some("ada"), Some("f:one"));
            let first = first_batch(&parent);
            let mut parent = store.create(parent);
            parent.append(first).await.unwrap();
            let mut journals = Vec::new();
            // The last one is started by a run that has no owner of its own either.
            let foreign = started_by(owned("foreign", Some("bob"), None), "parent");
            let (child, grandchild) =
                (started_by(new_run("child"), "parent"), started_by(new_run("grandchild"), "child"));
            for new in [foreign, child, grandchild] {
                let first = first_batch(&new);
                let mut journal = store.create(new);
                journal.append(first).await.unwrap();
                journals.push(journal);
            }
            parent.append(last_batch(9)).await.unwrap();
            store.mark_delivered(&id("parent"));
            assert_eq!(store.forget_runs(&owner).await.unwrap(), forgotten(1, 2), "{owner:?}");
            journals[1].append(last_batch(9)).await.unwrap();
            store.mark_delivered(&id("child"));
            assert_eq!(store.forget_runs(&owner).await.unwrap(), forgotten(1, 1), "{owner:?}");
            journals[2].append(last_batch(9)).await.unwrap();
            store.mark_delivered(&id("grandchild"));
            assert_eq!(store.forget_runs(&owner).await.unwrap(), forgotten(1, 0), "{owner:?}");
            let left = remaining(store, &["parent", "foreign", "child", "grandchild"]).await;
            assert_eq!(left, ["foreign"], "{owner:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_run_stays_until_its_result_is_delivered() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = u64::try_from(now.as_millis()).unwrap();
    both(async |store, _, _| {
        for (run, ended_at) in [("new", now), ("old", now - 3_700_000)] {
            let new = owned(run, Some("ada"), None);
            let first = first_batch(&new);
            let mut journal = store.create(new);
            journal.append(first).await.unwrap();
            journal.append(last_batch(ended_at)).await.unwrap();
        }
        // The result of the old one does not arrive any more.
        assert_eq!(store.forget_runs(&user("ada")).await.unwrap(), forgotten(1, 1));
        assert_eq!(remaining(store, &["new", "old"]).await, ["new"]);
        store.mark_delivered(&id("new"));
        assert_eq!(store.forget_runs(&user("ada")).await.unwrap(), forgotten(1, 0));
    })
    .await;
}

#[tokio::test]
async fn erased_events_keep_their_positions() {
    both(async |store, log, _| {
        log.append(1, deployed_event("r1"));
        let call = tool_returned("mine", 2, "search");
        finish_owned(store, owned("mine", Some("ada"), None), &[run_event("mine", 1), call]).await;
        log.append(1500, debug_event("shown"));
        log.append(10_000_000, debug_event("much later"));
        finish_owned(store, owned("other", Some("bob"), None), &[run_event("other", 1)]).await;
        store.unfinished_runs().await.unwrap();
        let expected =
            ["deployed r1", "mine 1", "mine 2", "debug \"shown\"", "debug \"much later\"", "other 1"];
        assert_eq!(events_after(log, 0).await, expected);
        let query = ToolCallQuery { id: "search".into(), name: "search".into(), before: None, most: 9 };
        assert_eq!(log.read_calls(query.clone()).await.unwrap().len(), 1);
        let bounds = log.bounds();

        store.forget_runs(&user("ada")).await.unwrap();
        assert_eq!(log.bounds(), bounds);
        let expected = ["deployed r1", "erased", "erased", "erased", "debug \"much later\"", "other 1"];
        assert_eq!(events_after(log, 0).await, expected);
        assert_eq!(log.read_calls(query).await.unwrap(), []);
        // A cursor from before continues, and new events follow.
        assert_eq!(all_after(log, 2, 1).await.iter().map(describe).collect::<Vec<_>>(), expected[2..]);
        assert_eq!(log.wait_for_flow_event(1).await, 1);
        log.append(10_000_001, deployed_event("r2"));
        store.unfinished_runs().await.unwrap();
        assert_eq!(events_after(log, 5).await, ["other 1", "deployed r2"]);
    })
    .await;
}

/// The newest events are in memory too, but older ones are only on the disk.
#[tokio::test]
async fn events_on_the_disk_are_erased() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_with_log(dir.path(), EventLogSettings::default()).unwrap();
    finish_owned(&store, owned("mine", Some("ada"), None), &[run_event("mine", 1), run_event("mine", 2)])
        .await;
    drop(store);
    // This one stores no events, but erases the old ones.
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.forget_runs(&user("ada")).await.unwrap(), forgotten(1, 0));
    drop(store);
    let store = Store::open_with_log(dir.path(), EventLogSettings::default()).unwrap();
    assert_eq!(events_after(&store, 0).await, ["erased", "erased"]);
}

#[tokio::test]
async fn the_items_of_chats_are_removed() {
    both(async |store, log, chats| {
        let question = |id: &str, content: &str| ChatItem { trace_id: None, ..item(id, content) };
        let answer = |run: &str, content: &str| ChatItem {
            speaker: ChatSpeaker::Agent,
            trace_id: Some(run.into()),
            ..item(&format!("{run}-1"), content)
        };
        let mut first = first_batch(&owned("mine", Some("ada"), None));
        first.lines[2] = r#"{"fact":{"message":{"_msgid":"m1","chatMessage":{"id":"q1"}}}}"#.to_owned();
        let mut journal = store.create(owned("mine", Some("ada"), None));
        journal.append(first).await.unwrap();
        journal.append(last_batch(5)).await.unwrap();
        finish_owned(store, owned("other", Some("bob"), None), &[]).await;
        let node = redflow_contract::id::NodeSummary {
            id: "chat".into(),
            type_name: "chat".into(),
            name: String::new(),
        };
        for item in [
            question("q1", "mine?"),
            question("q2", "other?"),
            answer("mine", "mine."),
            answer("other", "other."),
        ] {
            log.append(7, FlowEvent::Chat { node: node.clone(), item: item.clone(), keeps: 9 });
            chats.append(&"chat".into(), item, 9);
        }
        chats.append(&"only".into(), question("m1", "elsewhere"), 9);
        assert_eq!(contents(chats, "only").await, ["elsewhere"]);
        store.forget_runs(&user("ada")).await.unwrap();
        assert_eq!(contents(chats, "chat").await, ["other?", "other."]);
        assert_eq!(contents(chats, "only").await, [""; 0]);
        assert_eq!(chats.latest(9).await.unwrap().len(), 1);
        assert_eq!(events_after(log, 0).await, ["erased", "chat other?", "erased", "chat other."]);
        chats.append(&"chat".into(), question("q3", "again?"), 2);
        assert_eq!(contents(chats, "chat").await, ["other.", "again?"]);
    })
    .await;
}

/// Nothing tells whose a run was that was removed earlier, so what names it goes with any owner.
#[tokio::test]
async fn the_items_of_runs_that_were_removed_earlier_go_too() {
    let chat = NodeSummary { id: "chat".into(), type_name: "chat".into(), name: String::new() };
    both(async |store, log, chats| {
        let question = |id: &str| ChatItem { trace_id: None, ..item(id, id) };
        let answer = |run: &str| ChatItem {
            speaker: ChatSpeaker::Agent,
            trace_id: Some(run.into()),
            ..item(&format!("{run}-1"), run)
        };
        let mut first = first_batch(&owned("stays", Some("bob"), None));
        first.lines[2] = r#"{"fact":{"message":{"_msgid":"m","chatMessage":{"id":"of stays"}}}}"#.to_owned();
        store.create(owned("stays", Some("bob"), None)).append(first).await.unwrap();
        // The question of the run that stays is right before the answer of the one that is gone.
        for item in [question("of gone"), question("of stays"), answer("gone"), answer("stays")] {
            log.append(7, FlowEvent::Chat { node: chat.clone(), item: item.clone(), keeps: 9 });
            chats.append(&"chat".into(), item, 9);
        }
        store.unfinished_runs().await.unwrap();
        assert_eq!(store.forget_runs(&user("ada")).await.unwrap(), forgotten(0, 0));
        assert_eq!(contents(chats, "chat").await, ["of stays", "stays"]);
        let events = events_after(log, 0).await;
        assert_eq!(events, ["chat of gone", "chat of stays", "erased", "chat stays"]);
    })
    .await;
}

/// Writes the word wherever a run of the user leaves traces, and a run of another user.
async fn write_words(dir: &Path) -> Store {
    let store = Store::open_with_log(dir, EventLogSettings::default()).unwrap();
    let new = owned("mine", Some(WORD), Some(&format!("flow:{WORD}")));
    let mut lines = opening_lines(&new);
    lines[2] = format!(r#"{{"fact":{{"_msgid":"m1","payload":"{WORD}"}}}}"#);
    let preview = Some(WORD.to_owned());
    let shown =
        RunEvent { event: RunEventKind::ModelCalled { iteration: 1, preview }, ..run_event("mine", 1) };
    let first = Batch { lines, events: [shown].into(), ..first_batch(&new) };
    let mut journal = store.create(new);
    journal.append(first).await.unwrap();
    let mut call = crate::kit::waiting_call();
    call.input.insert("to".to_owned(), WORD.into());
    let waits = Batch { state: redflow_contract::run::RunState::Waiting(vec![call]), ..waiting_batch() };
    journal.append(waits).await.unwrap();
    let request = RunRequest::Cancel { reason: WORD.into() };
    submit_request(dir, &id("mine"), &request, 1).unwrap();
    // Many pages, so that the freed ones are not used again by accident.
    for _ in 0..40 {
        journal.append(buffered_batch(&[&format!("{WORD} ").repeat(1000)])).await.unwrap();
    }
    journal.append(last_batch(2000)).await.unwrap();
    store.append_flow(1500, debug_event(WORD));
    let mine = ChatItem { trace_id: None, ..item("m1", WORD) };
    ChatStore::append(&store, &"chat".into(), mine, 9);
    let answer = ChatItem { speaker: ChatSpeaker::Agent, trace_id: Some(id("mine")), ..item("a1", WORD) };
    ChatStore::append(&store, &"chat".into(), answer, 9);
    store.mark_delivered(&id("mine"));
    finish_owned(&store, owned("other", Some("bob"), None), &[run_event("other", 1)]).await;
    store.unfinished_runs().await.unwrap();
    store
}

/// A short name: two ports of the store have an `append`.
trait AppendFlow {
    fn append_flow(&self, at: u64, event: FlowEvent);
}

impl AppendFlow for Store {
    fn append_flow(&self, at: u64, event: FlowEvent) {
        EventLog::append(self, at, event);
    }
}

/// The other user's run is as it was.
fn assert_other_intact(dir: &Path) {
    let reader = Reader::open(dir).unwrap();
    assert_eq!(reader.run_ids().unwrap(), [id("other")]);
    assert_eq!(text(&reader.load(&id("other")).unwrap().unwrap().journal), finished_journal("other"));
}

#[tokio::test]
async fn no_byte_is_left_in_any_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = write_words(dir.path()).await;
    assert!(!files_with(dir.path(), WORD).is_empty());
    assert_eq!(store.forget_runs(&user(WORD)).await.unwrap(), forgotten(1, 0));
    assert_eq!(files_with(dir.path(), WORD), [""; 0]);
    assert_other_intact(dir.path());
    assert_eq!(request_outcome(dir.path(), 1).unwrap(), Some(RequestOutcome::Refused(StoreCode::RunUnknown)));
    assert_eq!(store.summary(&id("mine")).await.unwrap(), None);
    assert_eq!(store.list(redflow_store::RunFilter::default()).await.unwrap().runs.len(), 1);
    // It goes on, and stays clean.
    finish_owned(&store, owned("later", Some("bob"), None), &[run_event("later", 1)]).await;
    drop(store);
    assert_eq!(files_with(dir.path(), WORD), [""; 0]);
}

/// A pruned run leaves bytes in free space. Forgetting removes them, although it finds no run.
#[tokio::test]
async fn bytes_of_pruned_runs_go_too() {
    let dir = tempfile::tempdir().unwrap();
    let store = write_words(dir.path()).await;
    prune(dir.path(), redflow_store::PruneRequest { keep: Some(1), ..Default::default() }).unwrap();
    assert!(!files_with(dir.path(), WORD).is_empty());
    assert_eq!(store.forget_runs(&user(WORD)).await.unwrap(), forgotten(0, 0));
    assert_eq!(contents(&store, "chat").await, [""; 0]);
    // The output of debug nodes no longer belongs to a run, so it stays.
    assert_eq!(events_after(&store, 0).await, ["erased", &format!("debug \"{WORD}\""), "other 1"]);
    let plain = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    plain.execute_batch("UPDATE events SET body = '{}' WHERE id = 2").unwrap();
    drop(plain);
    assert_eq!(store.forget_runs(&user(WORD)).await.unwrap(), forgotten(0, 0));
    assert_eq!(files_with(dir.path(), WORD), [""; 0]);
}

#[tokio::test]
async fn a_program_that_reads_is_named_and_the_next_call_finishes() {
    let dir = tempfile::tempdir().unwrap();
    let store = write_words(dir.path()).await;
    let reader = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let runs = |reader: &rusqlite::Connection| {
        reader.query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(runs(&reader), 2);
    let error = store.forget_runs(&user(WORD)).await.unwrap_err();
    assert_eq!(error.code, StoreCode::DataUnusable);
    assert!(error.message.contains("another program reads the database"), "{error}");
    assert!(!error.message.contains(WORD), "{error}");
    // The reader still sees the old state, and everything else works.
    assert_eq!(runs(&reader), 2);
    assert_eq!(remaining(&store, &["mine", "other"]).await, ["other"]);
    reader.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.forget_runs(&user(WORD)).await.unwrap(), forgotten(0, 0));
    assert_eq!(files_with(dir.path(), WORD), [""; 0]);
    assert_other_intact(dir.path());
}

/// The role of a process that is killed while it forgets.
#[cfg(unix)]
pub(crate) async fn play_role(dir: &Path) {
    let store = write_words(dir).await;
    store.forget_runs(&user(WORD)).await.unwrap();
    panic!("the process was not stopped at the failpoint");
}

#[cfg(unix)]
#[tokio::test]
async fn after_a_kill_the_next_start_finishes() {
    for point in ["forget.removed", "forget.vacuumed"] {
        let dir = tempfile::tempdir().unwrap();
        kill_at(point, "forget", dir.path());
        assert!(!files_with(dir.path(), WORD).is_empty(), "{point}");
        assert_other_intact(dir.path());
        let store = Store::open(dir.path()).unwrap();
        assert_eq!(files_with(dir.path(), WORD), [""; 0], "{point}");
        drop(store);
        assert_other_intact(dir.path());
    }
}

/// What waits in the same group as the command is forgotten too.
#[tokio::test]
async fn events_of_the_same_transaction_are_erased() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_with_log(dir.path(), EventLogSettings::default()).unwrap();
    for round in 0..20 {
        let run = format!("mine {round}");
        let new = owned(&run, Some("ada"), None);
        let mut first = with_events(first_batch(&new), &run, [1]);
        first.durability = redflow_ports::Durability::Buffered;
        let last = Batch { durability: first.durability, ..with_events(last_batch(5), &run, [2]) };
        let mut journal = store.create(new);
        journal.append(first).await.unwrap();
        journal.append(last).await.unwrap();
    }
    assert_eq!(store.forget_runs(&user("ada")).await.unwrap(), forgotten(20, 0));
    let events = events_after(&store, 0).await;
    assert_eq!(events, vec!["erased"; 40]);
}
