//! How much happens in one day.

use crate::kit::{DAY, HOUR, NOON, Place, ScriptedModel, TestTurn, fact, model, proposals};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{EntryKind, EntryState};
use redflow_contract::code::RunErrorCode;
use redflow_contract::digest::Digest;
use redflow_contract::effect::CallConversation;
use redflow_contract::run_error::Failure;
use redflow_long_memory::{MAX_MODEL_CALLS, MAX_NEW_FACTS};
use redflow_ports::{AgentEntry, MaintenanceReason, Memory};
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn a_memory_asks_its_model_so_often_a_day() {
    let place = Place::new();
    let model = model(|_, _| Ok(proposals(&[]).to_string()));
    let memory = place.with_model(&json!({}), &model);
    let maintain = || memory.maintain(Some("tab1:s"), MaintenanceReason::Request);
    for number in 0..MAX_MODEL_CALLS {
        TestTurn::new(&format!("r{number}")).append(&memory, "I live in Berlin", "Noted.").await.unwrap();
        assert_eq!(maintain().await.error, None);
    }
    TestTurn::new("s").append(&memory, "I live in Berlin", "Noted.").await.unwrap();
    assert!(maintain().await.error.unwrap().message.contains("200 times today"));
    assert_eq!(model.calls.load(Ordering::SeqCst), 200);
    place.clock.set(NOON + DAY);
    assert_eq!(maintain().await.error, None);
    assert!(place.turn_states().await.iter().all(|state| *state == EntryState::Archived));
}

/// A model that makes a fact of each sentence about a machine.
fn machines() -> Arc<ScriptedModel> {
    model(|rules, text| {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        if rules.contains("`supersede`") {
            let add = |line: Value| json!({"new": line["new"], "action": "add", "id": null});
            return Ok(json!({"decisions": lines.map(add).collect::<Vec<Value>>()}).to_string());
        }
        let said: Vec<String> = lines.map(|line| line["user"].as_str().unwrap().to_owned()).collect();
        let sentences = said.iter().flat_map(|said| said.split_inclusive('.')).map(str::trim);
        let facts: Vec<Value> = sentences.map(|said| fact(said, said)).collect();
        Ok(proposals(&facts).to_string())
    })
}

/// A turn with a fact for each of these numbers.
async fn append_machines(memory: &Arc<dyn Memory>, user: &str, numbers: RangeInclusive<u64>) {
    let run = format!("r{:03}", numbers.start());
    let said: Vec<String> =
        numbers.map(|number| format!("Machine m{number}x belongs to hall h{number}y.")).collect();
    let turn = TestTurn { user: Some(user), ..TestTurn::new(&run) };
    turn.append(memory, &said.join(" "), "Noted.").await.unwrap();
}

#[tokio::test]
async fn a_user_gets_so_many_new_facts_a_day_and_other_turns_wait() {
    let place = Place::new();
    let model = machines();
    let memory = place.with_model(&json!({}), &model);
    let maintain = async || {
        let outcome = memory.maintain(Some("tab1:s"), MaintenanceReason::Request).await;
        assert_eq!(outcome.error, None);
        (outcome.consolidated.added, outcome.consolidated.dropped)
    };
    for first in (100..100 + MAX_NEW_FACTS - 2).step_by(6) {
        append_machines(&memory, "ada", first..=first + 5).await;
        assert_eq!(maintain().await, (6, 0), "{first}");
    }
    // Two of three facts would have room. A turn is stored as a whole, and in order.
    append_machines(&memory, "ada", 200..=202).await;
    append_machines(&memory, "ada", 210..=210).await;
    append_machines(&memory, "bob", 220..=221).await;
    assert_eq!(maintain().await, (2, 0), "those of the other user");
    let calls = model.calls.load(Ordering::SeqCst);
    assert_eq!(maintain().await, (0, 0));
    append_machines(&memory, "ada", 230..=230).await;
    for at in [NOON + HOUR, NOON - HOUR] {
        place.clock.set(at);
        assert_eq!(maintain().await, (0, 0));
    }
    assert_eq!(model.calls.load(Ordering::SeqCst), calls, "the model is not asked in vain");
    append_machines(&memory, "eve", 240..=240).await;
    assert_eq!(maintain().await, (1, 0), "turns that wait do not hold up the others");
    let waiting = async || {
        let states = place.turn_states().await;
        states.into_iter().filter(|state| *state == EntryState::Live).count()
    };
    assert_eq!(waiting().await, 3);
    place.clock.set(NOON + DAY);
    assert_eq!(maintain().await, (5, 0));
    assert_eq!(waiting().await, 0);
}

#[tokio::test]
async fn turns_that_wait_do_not_wait_for_longer_when_the_clock_was_ahead() {
    let place = Place::new();
    let memory = place.with_model(&json!({}), &machines());
    place.clock.set(NOON + 30 * DAY);
    for first in (100..100 + MAX_NEW_FACTS + 4).step_by(6) {
        append_machines(&memory, "ada", first..=first + 5).await;
    }
    let added = async || {
        let outcome = memory.maintain(Some("tab1:s"), MaintenanceReason::Request).await;
        assert_eq!(outcome.error, None);
        outcome.consolidated.added
    };
    // The model proposes at most eight facts of all turns together.
    assert_eq!(added().await, 8);
    for first in (200..200 + MAX_NEW_FACTS).step_by(6) {
        append_machines(&memory, "ada", first..=first + 5).await;
        added().await;
    }
    assert!(place.turn_states().await.contains(&EntryState::Live));
    place.clock.set(NOON);
    assert!(added().await > 0);
    assert!(!place.turn_states().await.contains(&EntryState::Live));
}

#[tokio::test]
async fn a_clock_that_was_ahead_takes_no_facts_from_the_days_before() {
    let place = Place::new();
    let entries = place.memory(&json!({})).entries().unwrap();
    let put = async |name: &str| {
        let new = AgentEntry {
            key: None,
            text: format!("The machine {name} is green."),
            kind: EntryKind::Fact,
            tags: Vec::new(),
            expected_version: None,
            run: "run-1".into(),
            call: Digest::of(name.as_bytes()),
        };
        let ada = CallConversation { session: None, user: Some("ada".to_owned()) };
        entries.put(&ada, new).await
    };
    // The clock was ahead, is fixed, and is ahead again: each day has its facts once.
    for (day, at) in [(1, NOON + 30 * DAY), (2, NOON)] {
        place.clock.set(at);
        for number in 0..MAX_NEW_FACTS {
            put(&format!("{day}-{number}")).await.unwrap();
        }
    }
    for at in [NOON, NOON + 30 * DAY, NOON] {
        place.clock.set(at);
        assert!(put("more").await.unwrap_err().message.contains("50 new entries"), "{at}");
    }
    place.clock.set(NOON + DAY);
    put("more").await.unwrap();
}

/// A memory with a turn in each of so many sessions, a model that may be offline, and the numbers of the sessions that it read.
async fn many_sessions(count: usize) -> (Place, Arc<dyn Memory>, Arc<AtomicBool>, Arc<Mutex<Vec<usize>>>) {
    let (place, is_offline, read) = (Place::new(), Arc::new(AtomicBool::new(false)), Arc::default());
    let (offline, seen): (_, Arc<Mutex<Vec<usize>>>) = (Arc::clone(&is_offline), Arc::clone(&read));
    let model = model(move |_, text| {
        let number = text.split("number ").nth(1).unwrap().split('.').next().unwrap();
        seen.lock().unwrap().push(number.parse().unwrap());
        match offline.load(Ordering::SeqCst) {
            true => Err(Failure { code: RunErrorCode::Timeout, message: "It is offline.".to_owned() }),
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
    (place, memory, is_offline, read)
}

#[tokio::test]
async fn a_schedule_works_on_all_sessions() {
    let (place, memory, _, read) = many_sessions(120).await;
    assert_eq!(memory.maintain(None, MaintenanceReason::Time).await.error, None);
    assert_eq!(*read.lock().unwrap(), (0..120).collect::<Vec<_>>());
    assert!(place.turn_states().await.iter().all(|state| *state == EntryState::Archived));
}

/// Else the first sessions would take the calls of each day, and the last ones would never be read.
#[tokio::test]
async fn a_schedule_that_was_cut_off_goes_on_where_it_was() {
    let (_place, memory, is_offline, read) = many_sessions(45).await;
    is_offline.store(true, Ordering::SeqCst);
    let maintain = || memory.maintain(None, MaintenanceReason::Time);
    let take = || std::mem::take(&mut *read.lock().unwrap());
    assert!(maintain().await.error.unwrap().message.contains("It is offline."));
    assert_eq!(take(), (0..20).collect::<Vec<_>>(), "twenty failures end it");
    maintain().await;
    assert_eq!(take(), (20..40).collect::<Vec<_>>());
    maintain().await;
    assert_eq!(take(), (40..45).chain(0..15).collect::<Vec<_>>());
    is_offline.store(false, Ordering::SeqCst);
    assert_eq!(maintain().await.error, None);
    assert_eq!(take(), (15..45).chain(0..15).collect::<Vec<_>>(), "each session once");
    maintain().await;
    assert_eq!(take(), [0; 0]);
}
