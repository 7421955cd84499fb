//! How much happens in one day.

use crate::kit::{DAY, NOON, Place, TestTurn, fact, model, proposals};
use pretty_assertions::assert_eq;
use redflow_contract::archive::EntryState;
use redflow_contract::code::RunErrorCode;
use redflow_contract::run_error::Failure;
use redflow_long_memory::{MAX_MODEL_CALLS, MAX_NEW_FACTS};
use redflow_ports::{Memory, SettleReason};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn a_memory_asks_its_model_so_often_a_day() {
    let place = Place::new();
    let model = model(|_, _| Ok(proposals(&[]).to_string()));
    let memory = place.with_model(&json!({}), &model);
    let settle = || memory.settle(Some("tab1:s"), SettleReason::Request);
    for number in 0..MAX_MODEL_CALLS {
        TestTurn::new(&format!("r{number}")).append(&memory, "I live in Berlin", "Noted.").await.unwrap();
        assert_eq!(settle().await.error, None);
    }
    TestTurn::new("s").append(&memory, "I live in Berlin", "Noted.").await.unwrap();
    assert!(settle().await.error.unwrap().message.contains("200 times today"));
    assert_eq!(model.calls.load(Ordering::SeqCst), 200);
    place.clock.set(NOON + DAY);
    assert_eq!(settle().await.error, None);
    assert!(place.turn_states().await.iter().all(|state| *state == EntryState::Archived));
}

#[tokio::test]
async fn a_user_gets_so_many_new_facts_a_day() {
    let place = Place::new();
    let model = model(|rules, text| {
        if rules.contains("`supersede`") {
            let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            return Ok(json!({"decisions": [{"new": line["new"], "action": "add", "id": null}]}).to_string());
        }
        let line: Value = serde_json::from_str(text).unwrap();
        let said = line["user"].as_str().unwrap();
        Ok(proposals(&[fact(said, said)]).to_string())
    });
    let memory = place.with_model(&json!({}), &model);
    let add = async |number: u64, user: &str| {
        let (run, said) =
            (format!("r{number:03}"), format!("Machine m{number}x belongs to hall h{number}y."));
        TestTurn { user: Some(user), ..TestTurn::new(&run) }.append(&memory, &said, "Noted.").await.unwrap();
        let done = memory.settle(Some("tab1:s"), SettleReason::Request).await;
        assert_eq!(done.error, None);
        (done.consolidated.added, done.consolidated.dropped)
    };
    for number in 0..MAX_NEW_FACTS {
        assert_eq!(add(number, "ada").await, (1, 0), "{number}");
    }
    assert_eq!(add(100, "ada").await, (0, 1));
    assert_eq!(add(101, "bob").await, (1, 0));
    place.clock.set(NOON + DAY);
    assert_eq!(add(102, "ada").await, (1, 0));
}

/// A memory with a turn in each of so many sessions, a model that may be away, and the numbers of the sessions that it read.
async fn many_sessions(count: usize) -> (Place, Arc<dyn Memory>, Arc<AtomicBool>, Arc<Mutex<Vec<usize>>>) {
    let (place, is_away, read) = (Place::new(), Arc::new(AtomicBool::new(false)), Arc::default());
    let (away, seen): (_, Arc<Mutex<Vec<usize>>>) = (Arc::clone(&is_away), Arc::clone(&read));
    let model = model(move |_, text| {
        let number = text.split("number ").nth(1).unwrap().split('.').next().unwrap();
        seen.lock().unwrap().push(number.parse().unwrap());
        match away.load(Ordering::SeqCst) {
            true => Err(Failure { code: RunErrorCode::Timeout, message: "It is away.".to_owned() }),
            false => Ok(proposals(&[]).to_string()),
        }
    });
    let memory = place.with_model(&json!({"afterTurns": 0}), &model);
    for number in 0..count {
        let (run, session, said) =
            (format!("r{number}"), format!("tab1:s{number:03}"), format!("I am number {number}."));
        let turn = TestTurn { session: &session, ..TestTurn::new(&run) };
        turn.append(&memory, &said, "Noted.").await.unwrap();
    }
    (place, memory, is_away, read)
}

#[tokio::test]
async fn a_schedule_works_on_all_sessions() {
    let (place, memory, _, read) = many_sessions(120).await;
    assert_eq!(memory.settle(None, SettleReason::Time).await.error, None);
    assert_eq!(*read.lock().unwrap(), (0..120).collect::<Vec<_>>());
    assert!(place.turn_states().await.iter().all(|state| *state == EntryState::Archived));
}

/// Else the first sessions would take the calls of each day, and the last ones would never be read.
#[tokio::test]
async fn a_schedule_that_was_cut_off_goes_on_where_it_was() {
    let (_place, memory, is_away, read) = many_sessions(45).await;
    is_away.store(true, Ordering::SeqCst);
    let settle = || memory.settle(None, SettleReason::Time);
    let take = || std::mem::take(&mut *read.lock().unwrap());
    assert!(settle().await.error.unwrap().message.contains("It is away."));
    assert_eq!(take(), (0..20).collect::<Vec<_>>(), "twenty failures end it");
    settle().await;
    assert_eq!(take(), (20..40).collect::<Vec<_>>());
    settle().await;
    assert_eq!(take(), (40..45).chain(0..15).collect::<Vec<_>>());
    is_away.store(false, Ordering::SeqCst);
    assert_eq!(settle().await.error, None);
    assert_eq!(take(), (15..45).chain(0..15).collect::<Vec<_>>(), "each session once");
    settle().await;
    assert_eq!(take(), [0; 0]);
}
