//! Models that fail, refuse, or answer nonsense.

use crate::consolidation::maintain;
use crate::kit::{Place, TestTurn, model, proposals, recall, texts};
use pretty_assertions::assert_eq;
use redflow_contract::archive::EntryState;
use redflow_contract::code::RunErrorCode;
use redflow_contract::run_error::Failure;
use redflow_ports::MaintenanceReason;
use serde_json::json;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn nonsense_stores_nothing_and_is_tried_three_times() {
    let place = Place::new();
    let memory = place.with_model(&json!({}), &model(|_, _| Ok("Sure! Here are the facts:".to_owned())));
    TestTurn::new("r1").append(&memory, "I live in Berlin", "Noted.").await.unwrap();
    for attempt in 1..=3 {
        let outcome = maintain(&memory).await;
        assert!(outcome.error.unwrap().message.contains("cannot be used"), "{attempt}");
        assert_eq!(outcome.consolidated.usage.unwrap().output_tokens, 2);
        let state = if attempt < 3 { EntryState::Live } else { EntryState::Archived };
        assert_eq!(place.turn_states().await, [state]);
        assert_eq!(
            texts(&recall(&memory, Some("ada"), "I live in Berlin").await).len(),
            usize::from(attempt < 3)
        );
    }
    assert!(maintain(&memory).await.consolidated.is_empty());
}

#[tokio::test]
async fn a_model_that_is_offline_or_set_up_wrongly_costs_no_turn() {
    let place = Place::new();
    // The usual cause of a `MODEL_ERROR` is a wrong setting of the model. A person fixes it.
    for code in [
        RunErrorCode::ProviderUnavailable,
        RunErrorCode::RateLimit,
        RunErrorCode::InvalidCredentials,
        RunErrorCode::ModelNotFound,
        RunErrorCode::ModelError,
    ] {
        let failure = move || Failure { code, message: "offline".to_owned() };
        let memory = place.with_model(&json!({}), &model(move |_, _| Err(failure())));
        TestTurn::new("r1").append(&memory, "I live in Berlin", "Noted.").await.unwrap();
        for _ in 0..5 {
            assert_eq!(maintain(&memory).await.error, Some(failure()));
        }
        assert_eq!(place.turn_states().await, [EntryState::Live], "{code}");
    }
}

#[tokio::test]
async fn what_a_model_refuses_is_tried_three_times() {
    for code in [RunErrorCode::ModelRefused, RunErrorCode::ModelTruncated, RunErrorCode::ContextLength] {
        let place = Place::new();
        let failure = move || Failure { code, message: "no".to_owned() };
        let refusing = model(move |_, _| Err(failure()));
        let memory = place.with_model(&json!({}), &refusing);
        TestTurn::new("r1").append(&memory, "I live in Berlin", "Noted.").await.unwrap();
        for _ in 0..3 {
            assert_eq!(place.turn_states().await, [EntryState::Live], "{code}");
            assert_eq!(maintain(&memory).await.error, Some(failure()));
        }
        assert_eq!(place.turn_states().await, [EntryState::Archived], "{code}");
        assert_eq!(maintain(&memory).await.error, None);
        assert_eq!(refusing.calls.load(Ordering::SeqCst), 3);
    }
}

#[tokio::test]
async fn a_session_that_fails_does_not_stop_the_others() {
    let place = Place::new();
    let failure = |town: &str| Failure { code: RunErrorCode::ModelRefused, message: format!("no {town}") };
    let memory = place.with_model(
        &json!({}),
        &model(move |_, text| {
            let refused = ["Berlin", "Kiel"].into_iter().find(|town| text.contains(town));
            refused.map_or_else(|| Ok(proposals(&[]).to_string()), |town| Err(failure(town)))
        }),
    );
    for (run, session, town) in
        [("r1", "tab1:a", "Berlin"), ("r2", "tab1:b", "Rome"), ("r3", "tab1:c", "Kiel")]
    {
        let turn = TestTurn { session, ..TestTurn::new(run) };
        turn.append(&memory, &format!("I live in {town}"), "Noted.").await.unwrap();
    }
    let outcome = memory.maintain(None, MaintenanceReason::Time).await;
    assert_eq!(outcome.error, Some(failure("Berlin")));
    let states = [EntryState::Live, EntryState::Archived, EntryState::Live];
    assert_eq!(place.turn_states().await, states);
}
