use super::{Owner, Sessions};
use crate::settings::MemorySettings;
use crate::trim::Limits;
use pretty_assertions::assert_eq;
use redflow_contract::transcript::{ChatMessage, ChatRole};
use std::time::Duration;
use tokio::time::advance;

fn owner(idle: u64) -> Owner {
    let idle = (idle > 0).then(|| Duration::from_secs(idle));
    Owner { node: "n".into(), limits: Limits { messages: 10, bytes: 1000 }, idle }
}

fn append(sessions: &Sessions, owner: &Owner, session: &str, run: &str) {
    let turn = [ChatMessage::new(ChatRole::User, run)];
    sessions.append(owner, session, &run.into(), &turn).unwrap();
}

/// Checks that the sums and the order equal those computed from scratch.
fn assert_consistent(sessions: &Sessions) {
    let all = sessions.lock();
    assert_eq!(all.by_last_use.len(), all.by_key.len());
    for (number, key) in &all.by_last_use {
        assert_eq!(all.by_key[key].last_use, *number);
    }
    assert_eq!(all.bytes, all.by_key.values().map(|one| one.bytes).sum::<usize>());
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
        all.by_key.values().flat_map(|one| one.runs.iter().map(|run| run.to_string())).collect()
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
        match step % 5 {
            0 => drop(sessions.turns(&owner(idle), &session)),
            1 => sessions.clear(&owner(idle), &session),
            _ => append(&sessions, &owner(idle), &session, &"x".repeat(usize::try_from(step % 300).unwrap())),
        }
        advance(Duration::from_secs(step % 13)).await;
        assert_consistent(&sessions);
        let all = sessions.lock();
        assert!(all.by_key.len() <= 5 && all.bytes <= 8_000, "step {step}");
    }
}
