use super::{Owner, Sessions};
use crate::MemorySettings;
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

/// The sums are what they would be if they were made anew.
fn assert_sound(sessions: &Sessions) {
    let shelf = sessions.lock();
    assert_eq!(shelf.order.len(), shelf.conversations.len());
    for (number, key) in &shelf.order {
        assert_eq!(shelf.conversations[key].use_number, *number);
    }
    assert_eq!(shelf.bytes, shelf.conversations.values().map(|one| one.bytes).sum::<usize>());
}

fn count(sessions: &Sessions) -> usize {
    sessions.lock().conversations.len()
}

#[tokio::test(start_paused = true)]
async fn each_append_forgets_a_few_that_are_idle_also_behind_those_that_never_are() {
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
    assert!(count(&sessions) + 4 > before, "no more than four are looked at");
    for run in 0..10 {
        append(&sessions, &owner(0), "another", &run.to_string());
    }
    assert_eq!(count(&sessions), 11);
    assert_sound(&sessions);
}

#[tokio::test(start_paused = true)]
async fn the_runs_that_are_remembered_are_bounded_and_weighed() {
    let sessions = Sessions::new(MemorySettings { max_runs: 3, ..MemorySettings::default() });
    for run in ["1", "2", "3", "4"] {
        append(&sessions, &owner(0), "s", run);
    }
    let runs = || -> Vec<String> {
        let shelf = sessions.lock();
        shelf.conversations.values().flat_map(|one| one.runs.iter().map(|run| run.to_string())).collect()
    };
    assert_eq!(runs(), ["2", "3", "4"]);
    append(&sessions, &owner(0), "s", "2");
    assert_eq!(runs(), ["2", "3", "4"]);
    append(&sessions, &owner(0), "s", "1");
    assert_eq!(runs(), ["3", "4", "1"]);
    assert_sound(&sessions);
    sessions.clear(&owner(0), "s");
    assert_eq!((count(&sessions), sessions.lock().bytes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn sums_stay_right_whatever_happens() {
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
        assert_sound(&sessions);
        let shelf = sessions.lock();
        assert!(shelf.conversations.len() <= 5 && shelf.bytes <= 8_000, "step {step}");
    }
}
