//! What was said in chats: in memory and on the disk, within the same bounds.

use crate::kit::{delivered, id};
use pretty_assertions::assert_eq;
use redflow_contract::chat::{ChatItem, ChatSpeaker, MAX_CHAT_BYTES, MAX_CHAT_HISTORY};
use redflow_contract::code::StoreCode;
use redflow_ports::{ChatStore, RunStore as _};
use redflow_store::{MemoryChatStore, Prune, Reader, Store, prune};

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

pub(crate) async fn contents(book: &dyn ChatStore, node: &str) -> Vec<String> {
    book.said(&node.into()).await.unwrap().into_iter().map(|item| item.content).collect()
}

/// Does the same with a book in memory and with one on the disk.
async fn both<F: AsyncFn(&dyn ChatStore)>(act: F) {
    act(&MemoryChatStore::default()).await;
    let dir = tempfile::tempdir().unwrap();
    act(&Store::open(dir.path()).unwrap()).await;
}

#[tokio::test]
async fn what_is_said_is_read_at_once_in_its_order() {
    both(async |book| {
        assert_eq!(contents(book, "chat").await, [""; 0]);
        for turn in 0..20 {
            book.say(&"chat".into(), item(&turn.to_string(), &format!("said {turn}")), 100);
            let expected: Vec<String> = (0..=turn).map(|turn| format!("said {turn}")).collect();
            assert_eq!(contents(book, "chat").await, expected);
        }
        book.say(&"other ü.chat".into(), item("1", "elsewhere"), 100);
        let said = book.said(&"other ü.chat".into()).await.unwrap();
        assert_eq!(said, [item("1", "elsewhere")]);
        book.clear(&"chat".into()).await.unwrap();
        assert_eq!(contents(book, "chat").await, [""; 0]);
        assert_eq!(contents(book, "other ü.chat").await, ["elsewhere"]);
        // A chat that was never there is easily forgotten.
        book.clear(&"nobody".into()).await.unwrap();
        book.say(&"chat".into(), item("0", "anew"), 100);
        assert_eq!(contents(book, "chat").await, ["anew"]);
    })
    .await;
}

#[tokio::test]
async fn nothing_is_said_twice() {
    both(async |book| {
        for (id, content) in [("a", "first"), ("b", "second"), ("a", "first again"), ("b", "second again")] {
            book.say(&"chat".into(), item(id, content), 100);
        }
        book.say(&"other".into(), item("a", "the same id in another chat"), 100);
        assert_eq!(contents(book, "chat").await, ["first", "second"]);
        assert_eq!(contents(book, "other").await.len(), 1);
        // Ids that no one can keep are told apart all the same.
        for end in ["x", "y", "x"] {
            book.say(&"long".into(), item(&format!("{}{end}", "i".repeat(1_000_000)), end), 100);
        }
        let said = book.said(&"long".into()).await.unwrap();
        assert_eq!(said.iter().map(|item| item.content.as_str()).collect::<Vec<_>>(), ["x", "y"]);
        assert!(said.iter().all(|item| item.id.len() <= 256));
    })
    .await;
}

#[tokio::test]
async fn a_chat_keeps_its_newest_items() {
    both(async |book| {
        for turn in 0..7 {
            book.say(&"chat".into(), item(&turn.to_string(), &turn.to_string()), 3);
        }
        assert_eq!(contents(book, "chat").await, ["4", "5", "6"]);
        // Less room from now on.
        book.say(&"chat".into(), item("7", "7"), 2);
        assert_eq!(contents(book, "chat").await, ["6", "7"]);
        let most = usize::try_from(MAX_CHAT_HISTORY).unwrap();
        for turn in 0..most + 5 {
            book.say(&"greedy".into(), item(&turn.to_string(), &turn.to_string()), usize::MAX);
        }
        let said = contents(book, "greedy").await;
        assert_eq!((said.len(), said.first().map(String::as_str)), (most, Some("5")));
        book.say(&"none".into(), item("1", "1"), 0);
        assert_eq!(contents(book, "none").await, [""; 0]);
    })
    .await;
}

#[tokio::test]
async fn long_items_are_cut_and_a_chat_has_so_many_bytes() {
    both(async |book| {
        book.say(&"chat".into(), item("1", &"ü".repeat(MAX_CHAT_BYTES)), 100);
        let said = contents(book, "chat").await;
        assert!(said[0].ends_with("ü...[truncated]"));
        assert!(said[0].len() <= MAX_CHAT_BYTES && said[0].len() > MAX_CHAT_BYTES - 4);
        let whole = "x".repeat(MAX_CHAT_BYTES);
        for turn in 0..20 {
            book.say(&"chat".into(), item(&format!("whole {turn}"), &whole), 100);
        }
        let said = book.said(&"chat".into()).await.unwrap();
        // Four MiB, with what is around them.
        assert_eq!(said.len(), 7);
        assert_eq!(said.last().unwrap().content, whole);
        let stranger = ChatItem { trace_id: Some("r".repeat(1_000_000).as_str().into()), ..item("s", "s") };
        book.say(&"stranger".into(), stranger, 100);
        assert_eq!(book.said(&"stranger".into()).await.unwrap()[0].trace_id, None);
    })
    .await;
}

#[tokio::test]
async fn of_too_many_chats_the_one_not_used_for_longest_goes() {
    both(async |book| {
        for chat in 0..1_000 {
            book.say(&format!("chat {chat}").as_str().into(), item("1", "here"), 100);
        }
        book.say(&"chat 0".into(), item("2", "still here"), 100);
        book.say(&"one more".into(), item("1", "new"), 100);
        assert_eq!(contents(book, "chat 0").await, ["here", "still here"]);
        assert_eq!(contents(book, "chat 1").await, [""; 0]);
        assert_eq!(contents(book, "chat 2").await, ["here"]);
        assert_eq!(contents(book, "one more").await, ["new"]);
    })
    .await;
}

/// What was said is there in the next life, in a copy, and after old runs have gone.
#[tokio::test]
async fn chats_outlive_their_process_and_come_with_every_copy() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    let store = Store::open(&dir).unwrap();
    store.say(&"chat".into(), item("1", "first"), 100);
    store.say(&"gone".into(), item("1", "forget me"), 100);
    store.clear(&"gone".into()).await.unwrap();
    delivered(&store, "over", 1).await;
    drop(store);
    assert_eq!(prune(&dir, Prune::default()).unwrap().runs, 1);

    let store = Store::open(&dir).unwrap();
    assert!(store.load(&id("over")).await.unwrap().is_none());
    store.say(&"chat".into(), item("1", "first"), 100);
    store.say(&"chat".into(), item("2", "second"), 100);
    assert_eq!(contents(&store, "chat").await, ["first", "second"]);
    assert_eq!(contents(&store, "gone").await, [""; 0]);
    let copy = outer.path().join("restored");
    std::fs::create_dir(&copy).unwrap();
    Reader::open(&dir).unwrap().backup(&copy.join("redflow.db")).unwrap();
    drop(store);
    assert_eq!(contents(&Store::open(&copy).unwrap(), "chat").await, ["first", "second"]);
}

#[tokio::test]
async fn what_nobody_said_is_told_without_its_words() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    store.say(&"chat".into(), item("1", "a"), 100);
    drop(store);
    let plain = rusqlite::Connection::open(dir.path().join("redflow.db")).unwrap();
    plain.execute("UPDATE chat_items SET body = '{\"type\":\"what was said\"}'", []).unwrap();
    drop(plain);
    let error = Store::open(dir.path()).unwrap().said(&"chat".into()).await.unwrap_err();
    assert_eq!(error.code, StoreCode::DataCorrupt);
    assert!(!error.message.contains("what was said"), "{error}");
}

/// As a process that is killed leaves them: what was read or forgotten before is as it was then.
#[cfg(unix)]
#[test]
fn what_was_read_before_a_kill_is_there_after_it() {
    use crate::processes::{Other, in_role, this_binary};
    let dir = tempfile::tempdir().unwrap();
    let mut other = Other::start(in_role(this_binary(), "chat", dir.path()));
    other.says("said");
    other.kill();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(dir.path()).unwrap();
        let expected: Vec<String> = (0..50).map(|turn| format!("said {turn}")).collect();
        assert_eq!(contents(&store, "chat").await, expected);
        assert_eq!(contents(&store, "forgotten").await, [""; 0]);
    });
}

/// At whatever moment a process dies, an item is there whole or not at all, and the chat goes on.
#[cfg(unix)]
#[tokio::test]
async fn killed_while_it_keeps_what_was_said() {
    use crate::processes::killed_at;
    for (point, kept) in [("store.before_commit=2", 1), ("store.after_commit=2", 2)] {
        let dir = tempfile::tempdir().unwrap();
        killed_at(point, "chat", dir.path());
        let store = Store::open(dir.path()).unwrap();
        let mut expected: Vec<String> = (0..kept).map(|turn| format!("said {turn}")).collect();
        assert_eq!(contents(&store, "chat").await, expected, "{point}");
        store.say(&"chat".into(), item("next", "next"), 100);
        expected.push("next".to_owned());
        assert_eq!(contents(&store, "chat").await, expected, "{point}");
    }
}

/// What a second process does here; see `processes::role`.
#[cfg(unix)]
pub(crate) async fn talk(dir: &std::path::Path) {
    let store = Store::open(dir).unwrap();
    for turn in 0..50 {
        store.say(&"chat".into(), item(&turn.to_string(), &format!("said {turn}")), 100);
        assert_eq!(contents(&store, "chat").await.len(), turn + 1);
    }
    store.say(&"forgotten".into(), item("1", "1"), 100);
    store.clear(&"forgotten".into()).await.unwrap();
}
