//! What a run reads from its memory, and what it leaves there.

use crate::kit::{TestRun, calls, requested, text, with};
use pretty_assertions::assert_eq;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Effect;
use redflow_contract::fact::{Fact, ModelAnswer};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, OpaqueParts};
use serde_json::json;

fn start() -> TestRun {
    TestRun::start_in(with(|spec, _| spec.memory = true), json!({"payload": "And now?"}), Some("f:s"))
}

fn recall(run: &mut TestRun, turns: Vec<ChatMessage>) {
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryRecalled { at, effect, turns, sources: Vec::new() }).unwrap();
}

fn appended(run: &TestRun) -> Vec<ChatMessage> {
    match run.open.as_slice() {
        [Effect::AppendMemory { session, turn, .. }] if session == "f:s" => turn.clone(),
        other => panic!("nothing is appended: {other:?}"),
    }
}

#[test]
fn the_whole_turn_is_stored_without_reasoning_and_corrections() {
    let mut run = start();
    recall(&mut run, Vec::new());
    let reasoning = Some(OpaqueParts::new("w", vec![json!(1)]));
    run.answer(ModelAnswer { reasoning, ..calls(&[("light", "{}"), ("mail", "{}")]) });
    run.ok("mail", json!("sent")).ok("light", json!("on"));
    run.answer(text("")).answer(text("Done."));
    let turn = appended(&run);
    let roles: Vec<ChatRole> = turn.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [ChatRole::User, ChatRole::Assistant, ChatRole::Tool, ChatRole::Tool, ChatRole::Assistant]
    );
    assert_eq!(turn[1].tool_calls, [requested("c1", "light", "{}"), requested("c2", "mail", "{}")]);
    assert!(turn.iter().all(|message| message.reasoning.is_none()));
    assert_eq!(turn[2].tool_call_id.as_deref(), Some("c1"));
    assert_eq!((turn[0].content.as_str(), turn[4].content.as_str()), ("And now?", "Done."));
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryAppended { at, effect }).unwrap();
    assert_eq!(run.finish()["payload"], "Done.");
}

#[test]
fn recalled_turns_come_after_the_prompt_and_their_ids_are_taken() {
    let mut run = start();
    let turns = vec![
        ChatMessage::new(ChatRole::System, "An old prompt."),
        ChatMessage::new(ChatRole::User, "Before."),
        ChatMessage {
            tool_calls: vec![requested("c1", "light", "{}")],
            ..ChatMessage::new(ChatRole::Assistant, "")
        },
        ChatMessage { tool_call_id: Some("c1".to_owned()), ..ChatMessage::new(ChatRole::Tool, "1") },
        ChatMessage::new(ChatRole::Assistant, "Then."),
    ];
    recall(&mut run, turns);
    let sent: Vec<String> = run.sent(9).into_iter().map(|(_, text)| text).collect();
    assert_eq!(sent, ["Be brief.", "Before.", "", "1", "Then.", "And now?"]);
    run.answer(calls(&[("light", r#"{"n": 1}"#)])).ok("light", json!(1));
    assert_eq!(run.results()[0].0, "call_1_1_1");
    run.answer(text("Done."));
    assert_eq!(appended(&run).len(), 4);
}

#[test]
fn a_memory_that_fails_does_not_end_the_run() {
    let failure =
        || Failure { code: RunErrorCode::MemoryError, message: "The memory cannot be reached.".to_owned() };
    let mut run = start();
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryFailed { at, effect, error: failure() }).unwrap();
    run.answer(text("Done."));
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryFailed { at, effect, error: failure() }).unwrap();
    assert_eq!(run.finish()["payload"], "Done.");
    // The answer counts, even if the memory did not store it in time.
    let mut run = start();
    recall(&mut run, Vec::new());
    run.answer(text("Done."));
    run.feed(|at| Fact::DeadlineReached { at }).unwrap();
    assert_eq!(run.finish()["payload"], "Done.");
}

#[test]
fn a_message_may_clear_the_memory() {
    let agent = with(|spec, _| spec.memory = true);
    let mut run = TestRun::start_in(agent, json!({"payload": "New.", "memory": "clear"}), Some("f:s"));
    assert_eq!(run.names(), ["clear_memory"]);
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryCleared { at, effect }).unwrap();
    run.answer(text("Done."));
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryAppended { at, effect }).unwrap();
    assert_eq!(run.finish().get("memory"), None);
}
