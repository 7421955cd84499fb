//! Any answers, results, times and ends: the run ends once, and its journal replays.

use crate::kit::{TestRun, requested, text, with};
use proptest::prelude::*;
use redflow_contract::answer_kind::ToolChoice;
use redflow_contract::effect::Effect;
use redflow_contract::fact::{Fact, ModelAnswer, ModelFinish, ToolResult};
use redflow_contract::node::{BudgetKind, OutputFormat};
use redflow_contract::transcript::ChatRole;
use redflow_converse::MACHINE_VERSION;
use redflow_machine::Status;
use serde_json::json;

/// One choice of the outside world.
#[derive(Debug, Clone)]
struct Choice {
    /// Which open effect is answered.
    which: usize,
    kind: u8,
    calls: Vec<(u8, u8)>,
    text: String,
}

fn choice() -> impl Strategy<Value = Choice> {
    let calls = prop::collection::vec((0..6_u8, 0..6_u8), 0..5);
    let text = prop_oneof![
        Just(String::new()),
        Just("Done.".to_owned()),
        Just(r#"{"n": 1}"#.to_owned()),
        Just("```json\n{\"n\": 1}\n```".to_owned()),
        Just("```\n{\"name\": \"mail\", \"arguments\": {}}\n```".to_owned()),
        any::<String>(),
    ];
    (0..100_usize, 0..20_u8, calls, text).prop_map(|(which, kind, calls, text)| Choice {
        which,
        kind,
        calls,
        text,
    })
}

fn answer(choice: &Choice) -> ModelAnswer {
    let names = ["weather", "light", "mail", "final_answer", "gone", ""];
    let arguments = [r#"{"place": "x"}"#, "{}", "", "{", r#"{"n": 1}"#, "[1]"];
    let call = |(name, input): &(u8, u8)| {
        requested(&format!("{input}"), names[usize::from(*name)], arguments[usize::from(*input)])
    };
    let finish = match choice.kind {
        18 => ModelFinish::Refused,
        19 => ModelFinish::Truncated,
        _ => ModelFinish::Stop,
    };
    ModelAnswer { tool_calls: choice.calls.iter().map(call).collect(), finish, ..text(&choice.text) }
}

fn fact(effect: &Effect, waits: bool, choice: &Choice, at: u64) -> Fact {
    let id = effect.id();
    match effect {
        Effect::CallModel { .. } => Fact::ModelAnswered { at, effect: id, answer: answer(choice) },
        Effect::CallTool { .. } if waits => {
            Fact::OutcomeResolved { at, effect: id, result: ToolResult::ok(json!(choice.kind)) }
        }
        Effect::CallTool { call, .. } if choice.kind < 4 && call.tool == "mail" => {
            Fact::ToolOutcomeUnknown { at, effect: id, reason: "?".to_owned() }
        }
        Effect::CallTool { .. } if choice.kind == 4 => {
            Fact::BudgetReached { at, effect: id, budget: BudgetKind::Cost, limit: 1.0, spent: 1.5 }
        }
        Effect::CallTool { .. } if choice.kind < 8 => {
            Fact::ToolReturned { at, effect: id, result: ToolResult::failed(choice.text.clone()), tries: 1 }
        }
        Effect::CallTool { .. } => {
            Fact::ToolReturned { at, effect: id, result: ToolResult::ok(json!(choice.text)), tries: 1 }
        }
        Effect::AppendMemory { .. } => Fact::MemoryAppended { at, effect: id },
        _ => Fact::MemoryRecalled { at, effect: id, turns: Vec::new(), sources: Vec::new() },
    }
}

proptest! {
    // Each run is resumed after each of its steps, which takes long.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_run_ends_once_and_replays(
        choices in prop::collection::vec(choice(), 60),
        (parallel, tool_choice, format) in (1..4_u32, 0..3_u8, 0..3_u8),
        (schema, memory) in (any::<bool>(), any::<bool>()),
        version in 1..=MACHINE_VERSION,
    ) {
        let spec = with(|spec, own| {
            spec.memory = memory;
            spec.max_iterations = 6;
            own.parallel_tools = parallel;
            own.tool_choice =
                [ToolChoice::Auto, ToolChoice::Required, ToolChoice::None][usize::from(tool_choice)];
            own.output_format = [OutputFormat::Text, OutputFormat::Json, OutputFormat::Full][usize::from(format)];
            own.output_schema = schema.then(|| json!({"type": "object", "required": ["n"]}));
        });
        let mut run = TestRun::start_version(version, spec, json!({"payload": "Go."}), Some("f:s"));
        for choice in &choices {
            let waits = match run.status() {
                Status::Finished(_) => break,
                Status::Waiting(_) => true,
                Status::New | Status::Running | Status::Ending => false,
            };
            // A call whose outcome is asked is answered by a person, so only once nothing else moves.
            let asked = |effect: &Effect| match run.status() {
                Status::Waiting(questions) => questions.iter().any(|question| question.effect == effect.id()),
                _ => false,
            };
            let open: Vec<&Effect> = run.open.iter().filter(|effect| !waits || asked(effect)).collect();
            prop_assert!(!open.is_empty(), "the run waits for nothing");
            let effect = open[choice.which % open.len()].clone();
            let fed = run.feed(|at| fact(&effect, waits, choice, at));
            // Only an asked call refuses a result of its tool.
            prop_assert!(fed.is_ok() || effect.name() == "call_tool", "{fed:?}");
            prop_assert!(run.open.iter().filter(|effect| effect.name() == "call_model").count() <= 1);
        }
        if !matches!(run.status(), Status::Finished(_)) {
            run.feed(|at| Fact::DeadlineReached { at }).unwrap();
        }
        let message = run.finish();
        prop_assert_eq!(message["agentResult"]["completed"] == true, message.get("error").is_none());
        // Every request of a call has exactly one result, in its order.
        for effect in &run.open {
            if let Effect::CallModel { transcript, .. } = effect {
                let mut expected: Vec<String> = Vec::new();
                for segment in transcript.segments() {
                    if segment.role == ChatRole::Tool {
                        prop_assert_eq!(segment.tool_call_id.clone(), Some(expected.remove(0)));
                    } else {
                        prop_assert!(expected.is_empty());
                        expected = segment.tool_calls.iter().map(|call| call.id.clone()).collect();
                    }
                }
            }
        }
    }
}
