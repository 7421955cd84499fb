//! The conversation of an agent for one thing stays within `maxTokenLimit`: summaries, the conclusion, and texts that
//! are too long.

use crate::kit::{TestRun, calls, finish_step, strategies, task, text};
use pretty_assertions::assert_eq;
use redflow_contract::answer_kind::{ReplyPurpose, ToolChoice};
use redflow_contract::code::RunErrorCode;
use redflow_contract::console::TEXT_BYTES;
use redflow_contract::event::{ConclusionReason, RunEventKind};
use redflow_contract::fact::{Fact, FailedModel, ModelAnswer, ModelFinish, ToolResult, Usage};
use redflow_contract::node::{Budget, BudgetKind};
use redflow_contract::plan::{AgentSpec, TaskKind};
use redflow_contract::run_error::Failure;
use redflow_contract::transcript::{ChatMessage, ChatRole, RequestedCall};
use redflow_machine::{iteration_detail, run_trace};
use serde_json::json;

fn agent(change: impl FnOnce(&mut AgentSpec)) -> AgentSpec {
    task(TaskKind::Objective, |spec, _| {
        spec.max_iterations = 20;
        change(spec);
    })
}

fn start() -> TestRun {
    TestRun::start(agent(|_| ()), json!({"payload": "Go."}))
}

/// A long result of a tool.
fn long() -> serde_json::Value {
    json!("a long result ".repeat(12))
}

fn result_tokens() -> u64 {
    let message = ChatMessage::new(ChatRole::Tool, ToolResult::ok(long()).observation());
    message.tokens().try_into().unwrap()
}

/// The model calls a tool. With its result the conversation has this many tokens.
fn grow(run: &mut TestRun, tokens: u64) {
    let input_tokens = tokens - result_tokens() - 9;
    let usage = Usage { input_tokens, output_tokens: 9, ..Usage::default() };
    let arguments = json!({ "n": run.at }).to_string();
    run.answer(ModelAnswer { usage: Some(usage), ..calls(&[("light", &arguments)]) }).ok("light", long());
}

fn is_summary(run: &TestRun) -> bool {
    run.model_call().2.purpose == ReplyPurpose::Summary
}

fn count_summaries(run: &TestRun) -> usize {
    run.find_events(|event| matches!(event, RunEventKind::Summarised { .. }))
}

fn conclusions(run: &TestRun) -> Vec<ConclusionReason> {
    let reason = |event: &redflow_contract::event::RunEvent| match event.event {
        RunEventKind::Concluding { reason, .. } => Some(reason),
        _ => None,
    };
    run.events.iter().filter_map(reason).collect()
}

/// Whether a message tells the model that it can only finish.
fn concludes(message: &ChatMessage) -> bool {
    message.content.starts_with("Only the tool `finish_step` can be called now.")
}

/// How often the model is told that it can only finish.
fn count_told(run: &TestRun) -> usize {
    let (_, transcript, _) = run.model_call();
    transcript.segments().iter().filter(|message| concludes(message)).count()
}

/// The roles of the messages of the open call, a letter each.
fn roles(run: &TestRun) -> String {
    let (_, transcript, _) = run.model_call();
    transcript.segments().iter().map(|message| message.role.as_str().chars().next().unwrap()).collect()
}

#[test]
fn old_messages_are_summed_up_from_70_percent_on() {
    for (tokens, expected) in [(699, false), (700, true), (950, true)] {
        let mut run = start();
        for _ in 0..2 {
            grow(&mut run, 200);
        }
        grow(&mut run, tokens);
        assert_eq!(is_summary(&run), expected, "{tokens}");
        if expected {
            run.answer(text("The light is on."));
        }
        assert!(!is_summary(&run));
        run.answer(finish_step(&json!("on")));
        let message = run.finish();
        // A summary is no iteration, but it counts as a call with its tokens.
        assert_eq!(message["agentResult"]["iterations"], 4);
        let tally = run.recorder.machine().tally();
        assert_eq!((tally.iterations, tally.model_calls), (4, 4 + u32::from(expected)));
    }
}

#[test]
fn a_summary_replaces_all_but_the_last_two_groups() {
    let mut run = start();
    for tokens in [200, 300, 400] {
        grow(&mut run, tokens);
    }
    assert_eq!(roles(&run), "suatatat");
    grow(&mut run, 700);
    let (_, request, reply) = run.model_call();
    assert_eq!((reply.tools.len(), reply.choice), (0, ToolChoice::None));
    assert_eq!(request.segments().len(), 2);
    let asked = &request.segments()[1].content;
    // The first two groups, as text.
    assert_eq!(
        (asked.matches("light({").count(), asked.matches("a long result a").count()),
        (2, 12),
        "{asked}"
    );
    run.answer(text(" The light is on.\n"));
    assert_eq!(roles(&run), "suuatat");
    let (_, transcript, reply) = run.model_call();
    assert_eq!(reply.tools.len(), 4);
    assert_eq!(transcript.segments()[1].content, "Go.");
    assert_eq!(
        transcript.segments()[2].content,
        "This is a summary of earlier messages of this conversation, which are no longer shown:\n\nThe light is on."
    );
    for pair in transcript.segments()[3..].chunks(2) {
        assert_eq!(Some(&pair[0].tool_calls[0].id), pair[1].tool_call_id.as_ref());
    }
    let usage = text("").usage;
    let expected = RunEventKind::Summarised { iteration: 5, messages: 4, usage };
    assert_eq!(run.find_events(|event| *event == expected), 1);
    // What the provider counted before is over: the estimate is below 70 % again.
    run.answer(finish_step(&json!("on")));
    run.finish();
}

#[test]
fn there_are_two_summaries_at_most() {
    let mut run = start();
    let mut summaries = 0;
    for _ in 0..10 {
        grow(&mut run, 710);
        if is_summary(&run) {
            summaries += 1;
            run.answer(text("Short."));
        }
    }
    assert_eq!((summaries, count_summaries(&run)), (2, 2));
    // The second one replaces the first one.
    let (_, transcript, _) = run.model_call();
    let is_summary =
        |message: &&std::sync::Arc<ChatMessage>| message.content.starts_with("This is a summary");
    assert_eq!(transcript.segments().iter().filter(is_summary).count(), 1);
    run.answer(finish_step(&json!("on")));
    run.finish();
}

#[test]
fn a_summary_that_cannot_be_used_changes_nothing() {
    let unusable = [
        text(""),
        text(" \n"),
        text(&"long ".repeat(500)),
        ModelAnswer { finish: ModelFinish::Truncated, ..text("Short.") },
        ModelAnswer { finish: ModelFinish::Refused, ..text("Short.") },
    ];
    for answer in unusable.into_iter().map(Some).chain([None]) {
        let mut run = start();
        for tokens in [200, 300, 400, 700] {
            grow(&mut run, tokens);
        }
        assert!(is_summary(&run));
        match answer {
            Some(answer) => {
                run.answer(answer);
            }
            None => {
                let effect = run.model_call().0;
                let error = Failure { code: RunErrorCode::RateLimit, message: "Later.".to_owned() };
                run.feed(|at| Fact::ModelFailed { at, effect, error }).unwrap();
            }
        }
        assert_eq!((is_summary(&run), roles(&run).as_str(), count_summaries(&run)), (false, "suatatatat", 0));
        run.answer(finish_step(&json!("on")));
        assert_eq!(run.finish()["payload"], "on");
    }
}

#[test]
fn without_old_messages_there_is_no_summary() {
    let mut run = start();
    grow(&mut run, 300);
    grow(&mut run, 800);
    assert!(!is_summary(&run));
    assert_eq!(conclusions(&run), []);
    run.answer(finish_step(&json!("on")));
    run.finish();
}

#[test]
fn from_90_percent_on_the_model_can_only_finish() {
    for (tokens, concludes) in [(899, false), (900, true), (2_000, true)] {
        let mut run = start();
        grow(&mut run, tokens);
        let (_, _, reply) = run.model_call();
        assert_eq!(
            (reply.only.is_some(), reply.choice == ToolChoice::Required),
            (concludes, concludes),
            "{tokens}"
        );
        assert_eq!(reply.tools.len(), 4);
        assert_eq!(count_told(&run), usize::from(concludes));
        assert_eq!(conclusions(&run), if concludes { vec![ConclusionReason::Tokens] } else { vec![] });
        if concludes {
            // It stays so, and is reported once.
            run.answer(ModelAnswer { usage: None, ..text("") });
            assert_eq!(run.model_call().2.only.as_deref(), Some("finish_step"));
            assert_eq!(count_told(&run), 1);
        }
        run.answer(finish_step(&json!("on")));
        run.finish();
        assert_eq!(conclusions(&run).len(), usize::from(concludes));
    }
}

#[test]
fn a_summary_may_put_the_conclusion_off() {
    let mut run = start();
    for tokens in [200, 300, 400, 950] {
        grow(&mut run, tokens);
    }
    run.answer(text("Short."));
    assert_eq!((conclusions(&run), run.model_call().2.only), (vec![], None));
    // If the rest alone is too long, the model must finish.
    let mut run = start();
    for tokens in [200, 300, 400] {
        grow(&mut run, tokens);
    }
    run.answer(calls(&[("light", r#"{"n": 0}"#)])).ok("light", json!("x".repeat(3_000)));
    run.answer(text("Short."));
    assert_eq!(conclusions(&run), [ConclusionReason::Tokens]);
    run.answer(finish_step(&json!("on")));
    run.finish();
}

#[test]
fn without_usage_the_size_is_an_estimate() {
    let zero = Usage { output_tokens: 9, ..Usage::default() };
    let guess = Usage { input_tokens: 1, estimated: true, ..zero };
    for usage in [None, Some(zero), Some(guess)] {
        let mut run = start();
        let mut steps = 0;
        while !is_summary(&run) {
            let arguments = json!({ "n": run.at }).to_string();
            run.answer(ModelAnswer { usage, ..calls(&[("light", &arguments)]) }).ok("light", long());
            steps += 1;
            assert!(steps < 20, "{usage:?}");
        }
        run.answer(ModelAnswer { usage, ..text("Short.") });
        let (_, transcript, _) = run.model_call();
        let tokens: usize = transcript.segments().iter().map(|message| ChatMessage::tokens(message)).sum();
        assert!(tokens < 700, "{tokens}");
        run.answer(finish_step(&json!("on")));
        run.finish();
    }
}

#[test]
fn a_text_longer_than_the_window_calls_no_model() {
    for kind in [TaskKind::Summarize, TaskKind::Extract, TaskKind::Objective] {
        let start =
            |bytes: usize| TestRun::start(task(kind, |_, _| ()), json!({"payload": "x".repeat(bytes)}));
        // The prompt is a part of the conversation too.
        let prompt = {
            let (_, transcript, _) = start(1).model_call();
            transcript.segments()[0].tokens()
        };
        let fits = 3 * (1_000 - prompt - 4);
        let mut run = start(fits);
        assert_eq!(conclusions(&run), [ConclusionReason::Tokens]);
        run.answer(finish_step(&if kind == TaskKind::Extract { json!({"city": "x"}) } else { json!("x") }));
        run.finish();
        let run = start(fits + 1);
        let (code, error) = run.error();
        assert_eq!((code.as_str(), &error["rule"]), ("CONTEXT_LENGTH", &json!("maxTokenLimit")));
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("about 1001 tokens") && message.contains("Send a shorter text"),
            "{message}"
        );
        assert_eq!(run.recorder.machine().tally().model_calls, 0);
    }
}

#[test]
fn remembered_messages_are_summed_up_first() {
    let spec = agent(|spec| spec.memory = true);
    let mut run = TestRun::start_in(spec, json!({"payload": "Go."}), Some("f:s"));
    let effect = run.open[0].id();
    let turn = |n: usize| {
        let long = format!("{n} {}", "x".repeat(330));
        [ChatMessage::new(ChatRole::User, long.clone()), ChatMessage::new(ChatRole::Assistant, long)]
    };
    let turns: Vec<ChatMessage> = (0..3).flat_map(turn).collect();
    run.feed(|at| Fact::MemoryRecalled { at, effect, turns, sources: Vec::new() }).unwrap();
    assert!(is_summary(&run));
    run.answer(text("Three turns."));
    assert_eq!(roles(&run), "suauau");
    assert_eq!(run.sent(1)[0].1, "Go.");
    let expected =
        |event: &RunEventKind| matches!(event, RunEventKind::Summarised { iteration: 1, messages: 3, .. });
    assert_eq!(run.find_events(expected), 1);
    run.answer(finish_step(&json!("on")));
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryAppended { at, effect }).unwrap();
    run.finish();
}

/// A run whose memory recalls turns of about these tokens: a question, a call with its result, and an answer each.
fn recalled(payload: &str, turns: &[usize]) -> TestRun {
    let spec = agent(|spec| spec.memory = true);
    let mut run = TestRun::start_in(spec, json!({ "payload": payload }), Some("f:s"));
    let effect = run.open[0].id();
    let turn = |(number, tokens): (usize, &usize)| {
        let id = format!("old{number}");
        let call = RequestedCall { id: id.clone(), name: "light".to_owned(), arguments: "{}".to_owned() };
        let long = "x".repeat(3 * tokens);
        [
            ChatMessage::new(ChatRole::User, format!("Q{number} {long}")),
            ChatMessage { tool_calls: vec![call], ..ChatMessage::new(ChatRole::Assistant, "") },
            ChatMessage { tool_call_id: Some(id), ..ChatMessage::new(ChatRole::Tool, "{}") },
            ChatMessage::new(ChatRole::Assistant, format!("A{number}")),
        ]
    };
    let turns = turns.iter().enumerate().flat_map(turn).collect();
    run.feed(|at| Fact::MemoryRecalled { at, effect, turns, sources: Vec::new() }).unwrap();
    run
}

/// The numbers of the recalled turns that the model gets. No call is without its result, and the message is the last.
fn kept_turns(run: &TestRun, payload: &str) -> Vec<String> {
    let (_, transcript, _) = run.model_call();
    let mut segments = transcript.segments().to_vec();
    segments.retain(|message| !concludes(message));
    let [_system, recalled @ .., message] = segments.as_slice() else { panic!("{transcript:?}") };
    assert_eq!((message.role, message.content.as_str()), (ChatRole::User, payload));
    let number = |turn: &[std::sync::Arc<ChatMessage>]| {
        assert_eq!(Some(&turn[1].tool_calls[0].id), turn[2].tool_call_id.as_ref());
        turn[0].content.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(recalled.len() % 4, 0, "{recalled:?}");
    recalled.chunks(4).map(number).collect()
}

#[test]
fn the_oldest_recalled_turns_that_do_not_fit_are_left_out() {
    for (turns, kept) in [
        (&[2_000][..], &[][..]),
        (&[2_000, 100], &["Q1"]),
        (&[400, 400, 400], &["Q1", "Q2"]),
        // The newest turn does not fit, so none of the older ones stays.
        (&[100, 100, 2_000], &[]),
    ] {
        let mut run = recalled("Go.", turns);
        // Between 70 and 100 % a summary replaces the oldest that are left.
        if is_summary(&run) {
            let (_, request, _) = run.model_call();
            let asked = &request.segments()[1].content;
            assert!(asked.contains(kept[0]) && !asked.contains("Q0"), "{turns:?}: {asked}");
            run.answer(text(""));
        }
        assert_eq!(kept_turns(&run, "Go."), kept, "{turns:?}");
        run.answer(finish_step(&json!("on")));
        // The session gets the new turn, so the next message finds it.
        let effect = run.open[0].id();
        run.feed(|at| Fact::MemoryAppended { at, effect }).unwrap();
        assert_eq!(run.finish()["payload"], "on");
    }
    // At the limit itself all of them stay.
    let size = |run: &TestRun| {
        let (_, transcript, _) = run.model_call();
        transcript.segments().iter().map(|message| message.tokens()).sum::<usize>()
    };
    let rest = 1_000 - size(&recalled("Go.", &[1, 1]));
    for (more, kept) in [(0, vec!["Q0", "Q1"]), (1, vec!["Q1"])] {
        let mut run = recalled("Go.", &[1 + rest + more, 1]);
        if is_summary(&run) {
            run.answer(text(""));
        }
        assert_eq!(kept_turns(&run, "Go."), kept);
    }
}

#[test]
fn a_message_that_is_too_long_by_itself_fails_with_and_without_a_memory() {
    for turns in [&[][..], &[100][..], &[2_000]] {
        let run = recalled(&"x".repeat(3_000), turns);
        let (code, error) = run.error();
        assert_eq!((code.as_str(), &error["rule"]), ("CONTEXT_LENGTH", &json!("maxTokenLimit")));
        assert_eq!(run.recorder.machine().tally().model_calls, 0);
    }
}

#[test]
fn a_run_can_end_while_it_waits_for_a_summary() {
    let waiting = |budget: Option<Budget>| {
        let mut run = TestRun::start(agent(|spec| spec.budget = budget), json!({"payload": "Go."}));
        for tokens in [200, 300, 400, 700] {
            grow(&mut run, tokens);
        }
        assert!(is_summary(&run));
        run
    };
    let mut run = waiting(None);
    run.feed(|at| Fact::CancelRequested { at, reason: String::new() }).unwrap();
    assert_eq!(run.error().0, "CANCELLED");
    let mut run = waiting(None);
    run.feed(|at| Fact::DeadlineReached { at }).unwrap();
    assert_eq!(run.error().0, "TIMEOUT");
    let mut run = waiting(Some(Budget { model_calls: Some(4), ..Budget::default() }));
    let effect = run.model_call().0;
    let (budget, limit, spent) = (BudgetKind::ModelCalls, 4.0, 4.0);
    run.feed(|at| Fact::BudgetReached { at, effect, budget, limit, spent }).unwrap();
    assert_eq!(run.error().0, "BUDGET_EXCEEDED");
    assert_eq!(run.recorder.machine().tally().model_calls, 4);
}

#[test]
fn a_summary_counts_its_tokens_and_its_failed_models() {
    let mut run = start();
    for tokens in [200, 300, 400, 700] {
        grow(&mut run, tokens);
    }
    let before = run.recorder.machine().tally();
    let failed = FailedModel { model: "large".to_owned(), code: RunErrorCode::Timeout, skipped: false };
    let usage = Usage { input_tokens: 500, output_tokens: 20, ..Usage::default() };
    run.answer(ModelAnswer { fell_over: vec![failed], usage: Some(usage), ..text("Short.") });
    let after = run.recorder.machine().tally();
    assert_eq!(after.input_tokens - before.input_tokens, 500);
    assert_eq!(after.output_tokens - before.output_tokens, 20);
    let fell_over = |event: &RunEventKind| matches!(event, RunEventKind::ModelFellOver { iteration: 5, .. });
    assert_eq!(run.find_events(fell_over), 1);
    let is_second = |effect: &redflow_contract::effect::Effect| {
        matches!(effect, redflow_contract::effect::Effect::CallModel { first_model: 1, .. })
    };
    assert!(run.open.iter().all(is_second));
    run.answer(finish_step(&json!("on")));
    run.finish();
}

#[test]
fn the_details_and_the_trace_of_a_run_leave_summaries_out() {
    let mut run = start();
    for tokens in [200, 300, 400, 700] {
        grow(&mut run, tokens);
    }
    run.answer(text("Short.")).answer(finish_step(&json!("on")));
    run.finish();
    let detail = |iteration| iteration_detail(&run.journal(), iteration, TEXT_BYTES, &strategies()).unwrap();
    assert!(detail(4).answer.unwrap().text.starts_with("light("));
    let last = detail(5);
    assert!(last.answer.unwrap().text.starts_with("finish_step("));
    assert_eq!(last.output.unwrap().text, "on");
    let trace = run_trace("0197-run".into(), &run.journal(), &strategies());
    let decisions =
        trace.steps.iter().filter(|step| serde_json::to_value(&step.step).unwrap()["type"] == "decide");
    assert_eq!(decisions.map(|step| step.iteration).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}
