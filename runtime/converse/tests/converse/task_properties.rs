//! Any conversation of an agent for one thing: no call loses its result, and the numbers of calls stay bounded.

use crate::kit::{TestRun, requested, task, text};
use proptest::prelude::*;
use redflow_contract::answer_kind::{AnswerKind, ReplyPurpose};
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{Fact, ModelAnswer, ModelFinish, ToolResult, Usage};
use redflow_contract::plan::TaskKind;
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, Transcript};
use redflow_converse::MACHINE_VERSION;
use redflow_machine::Status;
use serde_json::json;

/// One answer of the outside world.
#[derive(Debug, Clone)]
struct Choice {
    kind: u8,
    calls: Vec<(u8, u8)>,
    text: String,
    tokens: Option<u64>,
}

fn choice() -> impl Strategy<Value = Choice> {
    let calls = prop::collection::vec((0..5_u8, 0..4_u8), 0..4);
    let text = prop_oneof![
        Just(String::new()),
        Just("Short.".to_owned()),
        Just("long ".repeat(200)),
        Just(r#"{"result": {"n": 1}}"#.to_owned()),
        Just("```json\n{\"n\": 1}\n```".to_owned()),
        any::<String>()
    ];
    (0..20_u8, calls, text, prop::option::of(0..1_500_u64)).prop_map(|(kind, calls, text, tokens)| Choice {
        kind,
        calls,
        text,
        tokens,
    })
}

fn answer(choice: &Choice, is_summary: bool) -> ModelAnswer {
    let names = ["weather", "light", "light", "finish_step", "gone"];
    let arguments = [r#"{"place": "x"}"#, "{}", r#"{"result": {"n": 1}}"#, "{"];
    let call = |(place, (name, input)): (usize, &(u8, u8))| {
        requested(&format!("{place}"), names[usize::from(*name)], arguments[usize::from(*input)])
    };
    let calls = choice.calls.iter().filter(|_| !is_summary).enumerate();
    let usage =
        choice.tokens.map(|input_tokens| Usage { input_tokens, output_tokens: 5, ..Usage::default() });
    let finish = if choice.kind == 19 { ModelFinish::Truncated } else { ModelFinish::Stop };
    ModelAnswer { tool_calls: calls.map(call).collect(), usage, finish, ..text(&choice.text) }
}

/// Every call has exactly one result, in its order, right behind it.
fn pairs_are_whole(transcript: &Transcript) -> bool {
    let mut expected: Vec<String> = Vec::new();
    for message in transcript.segments() {
        match (&message.tool_call_id, expected.is_empty()) {
            (Some(id), false) if *id == expected[0] => drop(expected.remove(0)),
            (None, true) => expected = message.tool_calls.iter().map(|call| call.id.clone()).collect(),
            _ => return false,
        }
    }
    expected.is_empty()
}

proptest! {
    // Each run is resumed after each of its steps, which takes long.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_pair_is_lost_and_calls_are_bounded(
        choices in prop::collection::vec(choice(), 60),
        (limit, most) in (150..1_200_u32, 1..9_u32),
        (schema, memory, tools) in (any::<bool>(), any::<bool>(), any::<bool>()),
        version in 1..=MACHINE_VERSION,
    ) {
        let spec = task(TaskKind::Objective, |spec, own| {
            spec.memory = memory;
            spec.max_iterations = most;
            own.output_schema = schema.then(|| json!({"type": "object", "required": ["n"]}));
            own.task.as_mut().unwrap().max_token_limit = limit;
            if !tools {
                spec.tools.clear();
            }
        });
        let mut run = TestRun::start_version(version, spec, json!({"payload": "Reach this."}), Some("f:s"));
        let (mut steps, mut summaries) = (0, 0);
        for choice in &choices {
            if matches!(run.status(), Status::Finished(_)) {
                break;
            }
            let effect = run.open[choice.calls.len() % run.open.len()].clone();
            let id = effect.id();
            let fact = |at| match &effect {
                Effect::CallModel { answer_kind, .. } => {
                    let is_summary = answer_kind.is_summary();
                    if choice.kind == 18 {
                        let code = redflow_contract::code::RunErrorCode::ModelError;
                        let error = Failure { code, message: "No.".to_owned() };
                        return Fact::ModelFailed { at, effect: id, error };
                    }
                    Fact::ModelAnswered { at, effect: id, answer: answer(choice, is_summary) }
                }
                Effect::CallTool { .. } => {
                    let result = ToolResult::ok(json!(choice.text));
                    Fact::ToolReturned { at, effect: id, result, tries: 1 }
                }
                Effect::AppendMemory { .. } => Fact::MemoryAppended { at, effect: id },
                _ => {
                    let old = |n: u8| {
                        let text = format!("{n} {}", choice.text);
                        [ChatMessage::new(ChatRole::User, text.clone()), ChatMessage::new(ChatRole::Assistant, text)]
                    };
                    let turns = (0..choice.kind % 4).flat_map(old).collect();
                    Fact::MemoryRecalled { at, effect: id, turns, sources: Vec::new() }
                }
            };
            run.feed(fact).unwrap();
            for effect in &run.effects {
                let Effect::CallModel { transcript, answer_kind: AnswerKind::Reply(reply), .. } = effect else {
                    continue;
                };
                prop_assert!(pairs_are_whole(transcript), "{transcript:?}");
                if reply.purpose == ReplyPurpose::Summary {
                    summaries += 1;
                    prop_assert!(reply.tools.is_empty());
                } else {
                    steps += 1;
                    let calls = tools || version == 1;
                    prop_assert_eq!(reply.tools.iter().any(|tool| tool.name == "finish_step"), calls);
                    let listed = if tools { 4 } else { 0 };
                    prop_assert!(version == 1 || reply.tools.len() == listed);
                    // Providers refuse calls in a conversation without tools.
                    let has_calls = |message: &std::sync::Arc<ChatMessage>| !message.tool_calls.is_empty();
                    prop_assert!(calls || !transcript.segments().iter().any(has_calls));
                    let has_objective = |message: &std::sync::Arc<ChatMessage>| message.content == "Reach this.";
                    prop_assert!(transcript.segments().iter().any(has_objective));
                    prop_assert_eq!(transcript.segments()[0].role, ChatRole::System);
                }
            }
        }
        if !matches!(run.status(), Status::Finished(_)) {
            run.feed(|at| Fact::DeadlineReached { at }).unwrap();
        }
        prop_assert!(summaries <= 2 && steps <= most, "{summaries} summaries, {steps} steps");
        let concluding = |event: &RunEventKind| matches!(event, RunEventKind::Concluding { .. });
        prop_assert!(run.find_events(concluding) <= 1);
        let message = run.finish();
        prop_assert_eq!(message["agentResult"]["completed"] == true, message.get("error").is_none());
    }
}
