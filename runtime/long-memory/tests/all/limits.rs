//! How much happens in one day.

use crate::kit::{DAY, NOON, Place, TestTurn, fact, model, proposals};
use pretty_assertions::assert_eq;
use redflow_contract::archive::EntryState;
use redflow_long_memory::{MAX_MODEL_CALLS, MAX_NEW_FACTS};
use redflow_ports::SettleReason;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

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
