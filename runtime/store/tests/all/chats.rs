//! Chat histories: in memory and on the disk, with the same limits.

use crate::kit::{deliver_run, id};
use pretty_assertions::assert_eq;
use redflow_contract::chat::{ChatItem, ChatSpeaker, MAX_CHAT_BYTES, MAX_CHAT_HISTORY};
use redflow_contract::code::StoreCode;
use redflow_ports::{ChatStore, RunStore as _};
use redflow_store::{MemoryChatStore, PruneRequest, Reader, Store, prune};

pub(crate) fn item(id: &str, content: &str) -> ChatItem {
    ChatItem {
        id: id.to_owned(),
        speaker: ChatSpeaker::User,
        content: content.to_owned(),
        timestamp: 7,
        trace_id: Some("run".into()),
        iteration: Some(2),
    }
}

pub(crate) async fn contents(chats: &dyn ChatStore, node: &str) -> Vec<String> {
    chats.items(&node.into()).await.unwrap().into_iter().map(|item| item.content).collect()
}

/// Runs a test with a store in memory and with one on the disk.
async fn both<F: AsyncFn(&dyn ChatStore)>(test: F) {
    test(&MemoryChatStore::default()).await;
    let dir = tempfile::tempdir().unwrap();
    test(&Store::open(dir.path()).unwrap()).await;
}

#[tokio::test]
async fn items_are_readable_at_once_in_their_order() {
    both(async |chats| {
        assert_eq!(contents(chats, "chat").await, [""; 0]);
        for turn in 0..20 {
            chats.append(&"chat".into(), item(&turn.to_string(), &format!("item {turn}")), 100);
            let expected: Vec<String> = (0..=turn).map(|turn| format!("item {turn}")).collect();
            assert_eq!(contents(chats, "chat").await, expected);
        }
        chats.append(&"other ü.chat".into(), item("1", "elsewhere"), 100);
        let items = chats.items(&"other ü.chat".into()).await.unwrap();
        assert_eq!(items, [item("1", "elsewhere")]);
        chats.clear(&"chat".into()).await.unwrap();
        assert_eq!(contents(chats, "chat").await, [""; 0]);
        assert_eq!(contents(chats, "other ü.chat").await, ["elsewhere"]);
        // Clearing an unknown chat is no error.
        chats.clear(&"unknown".into()).await.unwrap();
        chats.append(&"chat".into(), item("0", "anew"), 100);
        assert_eq!(contents(chats, "chat").await, ["anew"]);
    })
    .await;
}

#[tokio::test]
async fn the_newest_item_of_each_chat_is_listed_by_its_last_use() {
    both(async |chats| {
        let latest = async |limit| {
            let latest = chats.latest(limit).await.unwrap();
            latest.into_iter().map(|(node, item)| format!("{node} {}", item.content)).collect::<Vec<_>>()
        };
        assert_eq!(latest(9).await, [""; 0]);
        for (node, id) in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("b", "5")] {
            chats.append(&node.into(), item(id, id), 1);
        }
        assert_eq!(latest(9).await, ["b 5", "c 4", "a 3"]);
        assert_eq!(latest(2).await, ["b 5", "c 4"]);
        chats.clear(&"c".into()).await.unwrap();
        assert_eq!(latest(9).await, ["b 5", "a 3"]);
    })
    .await;
}

#[tokio::test]
async fn an_item_with_a_known_id_is_not_added_again() {
    both(async |chats| {
        for (id, content) in [("a", "first"), ("b", "second"), ("a", "first again"), ("b", "second again")] {
            chats.append(&"chat".into(), item(id, content), 100);
        }
        chats.append(&"other".into(), item("a", "the same id in another chat"), 100);
        assert_eq!(contents(chats, "chat").await, ["first", "second"]);
        assert_eq!(contents(chats, "other").await.len(), 1);
        // Ids that are too long are still told apart.
        for end in ["x", "y", "x"] {
            chats.append(&"long".into(), item(&format!("{}{end}", "i".repeat(1_000_000)), end), 100);
        }
        let items = chats.items(&"long".into()).await.unwrap();
        assert_eq!(items.iter().map(|item| item.content.as_str()).collect::<Vec<_>>(), ["x", "y"]);
        assert!(items.iter().all(|item| item.id.len() <= 256));
    })
    .await;
}

#[tokio::test]
async fn a_chat_keeps_its_newest_items() {
    both(async |chats| {
        for turn in 0..7 {
            chats.append(&"chat".into(), item(&turn.to_string(), &turn.to_string()), 3);
        }
        assert_eq!(contents(chats, "chat").await, ["4", "5", "6"]);
        // A smaller limit from now on.
        chats.append(&"chat".into(), item("7", "7"), 2);
        assert_eq!(contents(chats, "chat").await, ["6", "7"]);
        let most = usize::try_from(MAX_CHAT_HISTORY).unwrap();
        for turn in 0..most + 5 {
            chats.append(&"greedy".into(), item(&turn.to_string(), &turn.to_string()), usize::MAX);
        }
        let items = contents(chats, "greedy").await;
        assert_eq!((items.len(), items.first().map(String::as_str)), (most, Some("5")));
        chats.append(&"none".into(), item("1", "1"), 0);
        assert_eq!(contents(chats, "none").await, [""; 0]);
    })
    .await;
}

#[tokio::test]
async fn long_items_are_truncated_and_a_chat_has_a_byte_limit() {
    both(async |chats| {
        chats.append(&"chat".into(), item("1", &"ü".repeat(MAX_CHAT_BYTES)), 100);
        let items = contents(chats, "chat").await;
        assert!(items[0].ends_with("ü...[truncated]"));
        assert!(items[0].len() <= MAX_CHAT_BYTES && items[0].len() > MAX_CHAT_BYTES - 4);
        let whole = "x".repeat(MAX_CHAT_BYTES);
        for turn in 0..20 {
            chats.append(&"chat".into(), item(&format!("whole {turn}"), &whole), 100);
        }
        let items = chats.items(&"chat".into()).await.unwrap();
        // Four MiB hold seven items.
        assert_eq!(items.len(), 7);
        assert_eq!(items.last().unwrap().content, whole);
        let stranger = ChatItem { trace_id: Some("r".repeat(1_000_000).as_str().into()), ..item("s", "s") };
        chats.append(&"stranger".into(), stranger, 100);
        assert_eq!(chats.items(&"stranger".into()).await.unwrap()[0].trace_id, None);
    })
    .await;
}

#[tokio::test]
async fn the_least_recently_used_chat_is_removed_first() {
    both(async |chats| {
        for chat in 0..1_000 {
            chats.append(&format!("chat {chat}").as_str().into(), item("1", "here"), 100);
        }
        chats.append(&"chat 0".into(), item("2", "still here"), 100);
        chats.append(&"one more".into(), item("1", "new"), 100);
        assert_eq!(contents(chats, "chat 0").await, ["here", "still here"]);
        assert_eq!(contents(chats, "chat 1").await, [""; 0]);
        assert_eq!(contents(chats, "chat 2").await, ["here"]);
        assert_eq!(contents(chats, "one more").await, ["new"]);
    })
    .await;
}

/// Items exist after a restart, in a backup, and after old runs were pruned.
#[tokio::test]
async fn chats_survive_a_restart_and_are_in_every_backup() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    let store = Store::open(&dir).unwrap();
    store.append(&"chat".into(), item("1", "first"), 100);
    store.append(&"gone".into(), item("1", "forget me"), 100);
    store.clear(&"gone".into()).await.unwrap();
    deliver_run(&store, "over", 1).await;
    drop(store);
    assert_eq!(prune(&dir, PruneRequest::default()).unwrap().runs, 1);

    let store = Store::open(&dir).unwrap();
    assert!(store.load(&id("over")).await.unwrap().is_none());
    store.append(&"chat".into(), item("1", "first"), 100);
    store.append(&"chat".into(), item("2", "second"), 100);
    assert_eq!(contents(&store, "chat").await, ["first", "second"]);
    assert_eq!(contents(&store, "gone").await, [""; 0]);
    let copy = outer.path().join("restored");
    std::fs::create_dir(&copy).unwrap();
    Reader::open(&dir).unwrap().backup(&copy.join("redflow.db")).unwrap();
    drop(store);
    assert_eq!(contents(&Store::open(&copy).unwrap(), "chat").await, ["first", "second"]);
}

#[tokio::test]
async fn a_damaged_item_is_reported_without_quoting_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.append(&"chat".into(), item("1", "a"), 100);
    drop(store);
    let plain = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    plain.execute("UPDATE chat_items SET body = '{\"type\":\"private words\"}'", []).unwrap();
    drop(plain);
    let error = Store::open(dir.path()).unwrap().items(&"chat".into()).await.unwrap_err();
    assert_eq!(error.code, StoreCode::DataCorrupt);
    assert!(!error.message.contains("private words"), "{error}");
}

/// After a kill, items that were read exist, and a cleared chat is empty.
#[cfg(unix)]
#[test]
fn items_that_were_read_before_a_kill_exist_after_it() {
    use crate::processes::{OtherProcess, in_role, this_binary};
    let dir = tempfile::tempdir().unwrap();
    let mut other = OtherProcess::start(in_role(this_binary(), "chat", dir.path()));
    other.wait_for_line("appended");
    other.kill();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(dir.path()).unwrap();
        let expected: Vec<String> = (0..50).map(|turn| format!("item {turn}")).collect();
        assert_eq!(contents(&store, "chat").await, expected);
        assert_eq!(contents(&store, "forgotten").await, [""; 0]);
    });
}

/// At whatever moment the process dies, an item is stored completely or not at all, and the chat continues.
#[cfg(unix)]
#[tokio::test]
async fn an_item_is_stored_completely_or_not_at_all_when_the_process_is_killed() {
    use crate::processes::kill_at;
    for (point, items) in [("store.before_commit=2", 1), ("store.after_commit=2", 2)] {
        let dir = tempfile::tempdir().unwrap();
        kill_at(point, "chat", dir.path());
        let store = Store::open(dir.path()).unwrap();
        let mut expected: Vec<String> = (0..items).map(|turn| format!("item {turn}")).collect();
        assert_eq!(contents(&store, "chat").await, expected, "{point}");
        store.append(&"chat".into(), item("next", "next"), 100);
        expected.push("next".to_owned());
        assert_eq!(contents(&store, "chat").await, expected, "{point}");
    }
}

/// The role of the second process; see `processes::role`.
#[cfg(unix)]
pub(crate) async fn append_items(dir: &std::path::Path) {
    let store = Store::open(dir).unwrap();
    for turn in 0..50 {
        store.append(&"chat".into(), item(&turn.to_string(), &format!("item {turn}")), 100);
        assert_eq!(contents(&store, "chat").await.len(), turn + 1);
    }
    store.append(&"forgotten".into(), item("1", "1"), 100);
    store.clear(&"forgotten".into()).await.unwrap();
}
