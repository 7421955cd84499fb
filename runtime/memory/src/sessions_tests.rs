use super::{Owner, Sessions};
use crate::settings::MemorySettings;
use crate::stored_turn::{TagFilter, join_complete};
use crate::trim::{Limits, OwnLimits, Size};
use pretty_assertions::assert_eq;
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};
use redflow_contract::id::{NodeSummary, RunId};
use redflow_contract::input::user_name;
use redflow_contract::memory::DataOwner;
use redflow_contract::node::{TagMatch, TextList};
use redflow_contract::transcript::{ChatMessage, ChatRole};
use redflow_ports::{NodeConfig, SummarisedConversation, Summary, Turn};
use serde_json::Map;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::advance;

fn owner(idle: u64) -> Owner {
    let idle = (idle > 0).then(|| Duration::from_secs(idle));
    let own = OwnLimits { messages: Some(10), bytes: Some(1000), ..OwnLimits::default() };
    Owner { node: "n".into(), limits: limits(own), filter: TagFilter::default(), idle }
}

fn limits(own: OwnLimits) -> Limits {
    let node = NodeSummary { id: "m".into(), type_name: "buffer-memory".to_owned(), name: String::new() };
    Limits::for_node(&NodeConfig::new(&node, &Map::new(), &|_| None, &|_| ()), own, 1_000).unwrap()
}

fn append(sessions: &Sessions, owner: &Owner, session: &str, run: &str) {
    let turn = [ChatMessage::new(ChatRole::User, run)];
    sessions.append(owner, Turn::new(session, &run.into(), &turn)).unwrap();
}

/// Appends a turn of a user.
fn append_of(sessions: &Sessions, owner: &Owner, session: &str, run: &str, user: &str) {
    let (run, messages) = (RunId::from(run), [ChatMessage::new(ChatRole::User, run)]);
    let turn = Turn { user: Some(user), ..Turn::new(session, &run, &messages) };
    sessions.append(owner, turn).unwrap();
}

fn texts(sessions: &Sessions, owner: &Owner, session: &str) -> Vec<String> {
    join_complete(&sessions.turns(owner, session)).into_iter().map(|message| message.content).collect()
}

/// Checks that the sums and the order equal those computed from scratch.
fn assert_consistent(sessions: &Sessions) {
    let all = sessions.lock();
    assert_eq!(all.by_last_use.len(), all.by_key.len());
    for (number, key) in &all.by_last_use {
        assert_eq!(all.by_key[key].last_use, *number);
    }
    let count = |(key, one): (&super::ConversationKey, &super::Conversation)| {
        one.count_bytes(key.0.as_str().len() + key.1.len())
    };
    assert_eq!(all.bytes, all.by_key.iter().map(count).sum::<usize>());
    for conversation in all.by_key.values() {
        let total = conversation.turns().fold(Size::default(), |total, turn| total + turn.size);
        assert_eq!(conversation.total(), total);
    }
}

fn count(sessions: &Sessions) -> usize {
    sessions.lock().by_key.len()
}

#[tokio::test(start_paused = true)]
async fn each_append_removes_a_few_idle_conversations_even_behind_those_that_never_expire() {
    let sessions = Sessions::new(MemorySettings { sweep: 4, ..MemorySettings::default() });
    for number in 0..10 {
        append(&sessions, &owner(0), &format!("for ever {number}"), "r");
    }
    for number in 0..10 {
        append(&sessions, &owner(60), &format!("a minute {number}"), "r");
    }
    advance(Duration::from_secs(60)).await;
    assert_eq!(count(&sessions), 20, "nothing runs in the background");
    let before = count(&sessions);
    append(&sessions, &owner(0), "another", "r");
    assert!(count(&sessions) + 4 > before, "an append checks no more than four");
    for run in 0..10 {
        append(&sessions, &owner(0), "another", &run.to_string());
    }
    assert_eq!(count(&sessions), 11);
    assert_consistent(&sessions);
}

#[tokio::test(start_paused = true)]
async fn remembered_runs_are_limited_and_counted() {
    let sessions = Sessions::new(MemorySettings { max_runs: 3, ..MemorySettings::default() });
    for run in ["1", "2", "3", "4"] {
        append(&sessions, &owner(0), "s", run);
    }
    let runs = || -> Vec<String> {
        let all = sessions.lock();
        all.by_key.values().flat_map(super::Conversation::runs).collect()
    };
    assert_eq!(runs(), ["2", "3", "4"]);
    append(&sessions, &owner(0), "s", "2");
    assert_eq!(runs(), ["2", "3", "4"]);
    append(&sessions, &owner(0), "s", "1");
    assert_eq!(runs(), ["3", "4", "1"]);
    assert_consistent(&sessions);
    sessions.clear(&owner(0), "s");
    assert_eq!((count(&sessions), sessions.lock().bytes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn sums_stay_correct_after_any_operation() {
    let settings = MemorySettings { max_sessions: 5, max_bytes: 8_000, max_runs: 4, sweep: 2 };
    let sessions = Sessions::new(settings);
    for step in 0..500_u64 {
        let (session, idle) = (format!("s{}", step * 7 % 11), step % 3 * 20);
        match step % 7 {
            0 => drop(sessions.turns(&owner(idle), &session)),
            1 => sessions.clear(&owner(idle), &session),
            2 => append_of(&sessions, &owner(idle), &session, &step.to_string(), &format!("u{}", step % 4)),
            3 => {
                let loaded = sessions.load(&owner(idle), &session);
                let until = loaded.turns.last().map_or("none".into(), |(run, _)| run.clone());
                let summary = Summary { text: "x".repeat(usize::try_from(step % 50).unwrap()), until };
                sessions.replace_summary(&owner(idle), &session, &loaded, summary);
            }
            4 => drop(sessions.forget(&DataOwner::User(format!("u{}", step % 4)))),
            _ => append(&sessions, &owner(idle), &session, &"x".repeat(usize::try_from(step % 300).unwrap())),
        }
        advance(Duration::from_secs(step % 13)).await;
        assert_consistent(&sessions);
        let all = sessions.lock();
        assert!(all.by_key.len() <= 5 && all.bytes <= 8_000, "step {step}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_stored_only_for_the_conversation_that_was_loaded() {
    let (sessions, owner) = (Sessions::new(MemorySettings::default()), owner(0));
    let summary = |until: &str| Summary { text: format!("until {until}"), until: until.into() };
    for run in ["1", "2", "3"] {
        append_of(&sessions, &owner, "s", run, "Ada");
    }
    let first = sessions.load(&owner, "s");
    assert_eq!(first.turns.len(), 3);
    assert!(sessions.replace_summary(&owner, "s", &first, summary("2")));
    assert!(!sessions.replace_summary(&owner, "s", &first, summary("1")), "the other one was faster");
    let second = sessions.load(&owner, "s");
    assert_eq!(second.summary, Some(summary("2")));
    let runs: Vec<&str> = second.turns.iter().map(|(run, _)| run.as_str()).collect();
    assert_eq!(runs, ["3"]);
    // Its last turn may be gone: the turns are all later.
    assert!(sessions.replace_summary(&owner, "s", &second, summary("gone")));
    assert_eq!(sessions.load(&owner, "s").turns.len(), 3);
    // A cleared conversation gets no summary of what it had.
    sessions.clear(&owner, "s");
    append_of(&sessions, &owner, "s", "4", "Bob");
    assert!(!sessions.replace_summary(&owner, "s", &first, summary("3")));
    assert!(!sessions.replace_summary(&owner, "s", &SummarisedConversation::default(), summary("3")));
    // Neither does one from which turns of a user were removed, even if the last turn is still there.
    append_of(&sessions, &owner, "s", "5", "Ada");
    append_of(&sessions, &owner, "s", "6", "Bob");
    let loaded = sessions.load(&owner, "s");
    assert_eq!(sessions.forget(&DataOwner::User("Ada".to_owned())), 1);
    assert!(!sessions.replace_summary(&owner, "s", &loaded, summary("6")));
    assert_eq!(texts(&sessions, &owner, "s"), ["4", "6"]);
    assert_consistent(&sessions);
}

#[tokio::test(start_paused = true)]
async fn a_user_is_forgotten_in_all_conversations_of_all_nodes() {
    let sessions = Sessions::new(MemorySettings::default());
    let (own, other) = (owner(0), Owner { node: "removed".into(), ..owner(0) });
    for (owner, session, run, user) in [
        (&own, "shared", "1", "Ada"),
        (&own, "shared", "2", "Bob"),
        (&own, "hers", "3", "Ada"),
        (&other, "hers", "4", "Ada"),
        (&own, "his", "5", "Bob"),
    ] {
        append_of(&sessions, owner, session, run, user);
    }
    let loaded = sessions.load(&own, "shared");
    let summary = Summary { text: "Ada greets Bob".to_owned(), until: "2".into() };
    assert!(sessions.replace_summary(&own, "shared", &loaded, summary));
    assert_eq!(sessions.forget(&DataOwner::Source("Ada".to_owned())), 0);
    assert_eq!((sessions.count(&own.node), sessions.count(&other.node)), (3, 1));
    assert_eq!(sessions.forget(&DataOwner::User("Ada".to_owned())), 3);
    assert_eq!(sessions.forget(&DataOwner::User("Ada".to_owned())), 0, "nothing is left");
    assert_eq!((sessions.count(&own.node), sessions.count(&other.node)), (2, 0));
    let shared = sessions.load(&own, "shared");
    assert_eq!((shared.summary, shared.turns.len()), (None, 1));
    assert_eq!(sessions.forget(&DataOwner::User("  ".to_owned())), 0);
    // Names are compared as they are stored.
    let long = "u".repeat(300);
    append_of(&sessions, &own, "long", "6", &user_name(&long).unwrap());
    assert_eq!(sessions.forget(&DataOwner::User(long)), 1);
    assert_eq!(sessions.forget(&DataOwner::Session("his".to_owned())), 1);
    assert_eq!(sessions.count(&own.node), 1);
    assert_consistent(&sessions);
}

#[tokio::test(start_paused = true)]
async fn a_summary_goes_with_a_user_whose_turns_a_limit_has_removed() {
    let (sessions, owner) = (Sessions::new(MemorySettings::default()), owner(0));
    append_of(&sessions, &owner, "s", "0", "Ada");
    let loaded = sessions.load(&owner, "s");
    assert!(sessions.replace_summary(
        &owner,
        "s",
        &loaded,
        Summary { text: "Ada".into(), until: "0".into() }
    ));
    // More users than a conversation remembers.
    for number in 1..400 {
        append_of(&sessions, &owner, "s", &number.to_string(), &format!("user {number}"));
    }
    assert_eq!(sessions.forget(&DataOwner::User("Ada".to_owned())), 1);
    assert_eq!(sessions.load(&owner, "s").summary, None);
    let loaded = sessions.load(&owner, "s");
    let until = loaded.turns[0].0.clone();
    assert!(sessions.replace_summary(&owner, "s", &loaded, Summary { text: "x".into(), until }));
    assert_eq!(sessions.forget(&DataOwner::User("user 300".to_owned())), 1, "it may have words of any user");
    assert_eq!(sessions.load(&owner, "s").summary, None);
    assert_consistent(&sessions);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_turns_stay_within_the_limits() {
    let sessions = Sessions::new(MemorySettings { max_bytes: usize::MAX, ..MemorySettings::default() });
    let own = OwnLimits { messages: Some(u32::MAX), bytes: Some(4_194_304), ..OwnLimits::default() };
    let owner = Owner { limits: limits(own), ..owner(0) };
    for run in 0..100_000 {
        append(&sessions, &owner, "s", &format!("{run:064}"));
    }
    let recalled = texts(&sessions, &owner, "s");
    assert_eq!((recalled.len(), recalled[65_535].as_str()), (65_536, format!("{:064}", 99_999).as_str()));
    assert_consistent(&sessions);
}

/// The turns of a conversation: messages, bytes of each, and tags.
fn turns() -> impl Strategy<Value = Vec<(usize, usize, Vec<String>)>> {
    let tags = prop::sample::subsequence(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], 0..=3);
    prop::collection::vec((1usize..5, 0usize..40, tags), 1..30)
}

proptest! {
    #[test]
    fn a_recall_is_never_over_a_limit_never_half_a_turn_and_keeps_the_order(
        turns in turns(),
        most in (1u32..12, 1u32..30, 160u32..400, 1u32..200),
        wanted in prop::sample::subsequence(vec!["a".to_owned(), "b".to_owned()], 0..=2),
        all in prop::bool::ANY,
    ) {
        let own = OwnLimits { turns: Some(most.0), messages: Some(most.1), bytes: Some(most.2), tokens: Some(most.3) };
        let tag_match = if all { TagMatch::All } else { TagMatch::Any };
        let filter = TagFilter::new(Some(&TextList::List(wanted.clone())), Some(tag_match));
        let owner = Owner { limits: limits(own), filter, ..owner(0) };
        let sessions = Sessions::new(MemorySettings::default());
        let mut expected = Vec::new();
        for (number, (messages, bytes, tags)) in turns.iter().enumerate() {
            let message = ChatMessage::new(ChatRole::User, format!("{number:02}{}", "x".repeat(*bytes)));
            let (run, messages) = (RunId::from(number.to_string().as_str()), vec![message; *messages]);
            let turn = Turn { tags, ..Turn::new("s", &run, &messages) };
            let stored = sessions.append(&owner, turn).is_ok();
            let passes = match all {
                true => wanted.iter().all(|tag| tags.contains(tag)),
                false => wanted.is_empty() || wanted.iter().any(|tag| tags.contains(tag)),
            };
            if stored && passes {
                expected.push(messages);
            }
        }
        let recalled: Vec<Vec<ChatMessage>> =
            sessions.turns(&owner, "s").iter().map(|turn| turn.messages.clone()).collect();
        prop_assert!(expected.ends_with(&recalled), "whole turns, in their order, the newest");
        let total = recalled.iter().fold(Size::default(), |total, turn| total + Size::of_turn(turn));
        prop_assert!(recalled.len() <= 1 || owner.limits.allow(total));
        prop_assert_eq!(recalled.is_empty() && wanted.is_empty(), expected.is_empty() && wanted.is_empty());
    }
}

#[test]
fn turns_are_shared_and_not_copied() {
    let (sessions, owner) = (Sessions::new(MemorySettings::default()), owner(0));
    append(&sessions, &owner, "s", "1");
    let [one, two] = [(), ()].map(|()| sessions.turns(&owner, "s").remove(0));
    assert!(Arc::ptr_eq(&one, &two));
}
