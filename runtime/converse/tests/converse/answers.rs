//! What the model is sent, and what its answers lead to.

use crate::kit::{TestRun, calls, spec, text, with};
use pretty_assertions::assert_eq;
use redflow_contract::answer_kind::ToolChoice;
use redflow_contract::code::RunErrorCode;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{FailedModel, ModelAnswer, ModelFinish, Usage};
use redflow_contract::journal::{JournalLine, JournalRecord};
use redflow_contract::transcript::{ChatRole, OpaqueParts};
use serde_json::json;

#[test]
fn the_prompt_and_the_payload_are_sent_and_the_text_is_the_answer() {
    let mut run = TestRun::start(spec(), json!({"payload": "Hello!", "topic": "t"}));
    assert_eq!(
        run.sent(9),
        [(ChatRole::System, "Be brief.".to_owned()), (ChatRole::User, "Hello!".to_owned())]
    );
    run.answer(text("Good day."));
    let message = run.finish();
    assert_eq!((&message["payload"], &message["topic"]), (&json!("Good day."), &json!("t")));
    assert_eq!(
        message["agentResult"],
        json!({"completed": true, "iterations": 1, "traceId": "0197-run", "message": "Good day.",
               "finalAction": "final", "stopReason": "final_answer"})
    );
    let header: JournalLine = serde_json::from_str(&run.lines[0]).unwrap();
    assert!(
        matches!(header.record, JournalRecord::Header { strategy: Some(name), .. } if name == "converse")
    );
}

#[test]
fn the_user_message_is_a_template() {
    let rows = [
        (
            "{{json.question}} ({{msg.topic}})",
            json!({"payload": {"question": "Why?"}, "topic": "x"}),
            "Why? (x)",
        ),
        ("", json!({"payload": {"a": 1}}), r#"{"a":1}"#),
        ("  ", json!({"payload": 4}), "4"),
        ("Fixed.", json!({}), "Fixed."),
        // Text of the message is never expanded.
        ("{{json}}", json!({"payload": "{{msg.secret}}", "secret": "s"}), "{{msg.secret}}"),
    ];
    for (template, message, expected) in rows {
        let run = TestRun::start(with(|_, own| own.user_message = template.to_owned()), message);
        assert_eq!(run.sent(1), [(ChatRole::User, expected.to_owned())]);
    }
    for (template, message) in
        [("", json!({})), ("", json!({"payload": " "})), ("{{json.x}}", json!({"payload": {}}))]
    {
        let run = TestRun::start(with(|_, own| own.user_message = template.to_owned()), message);
        let (code, error) = run.error();
        assert_eq!(code, "CONFIG_INVALID");
        assert_eq!(
            error["message"],
            "The user message is empty: set `userMessage` on the agent, or send a payload."
        );
    }
}

#[test]
fn an_agent_without_a_prompt_sends_none() {
    let run = TestRun::start(with(|_, own| own.system_prompt = " ".to_owned()), json!({"payload": "Hello!"}));
    assert_eq!(run.sent(9), [(ChatRole::User, "Hello!".to_owned())]);
}

#[test]
fn an_answer_that_is_refused_or_cut_off_ends_the_run() {
    let finish =
        |finish, text: &str| ModelAnswer { finish, text: text.to_owned(), ..calls(&[("mail", "{}")]) };
    let rows = [
        (finish(ModelFinish::Refused, ""), "MODEL_REFUSED"),
        (finish(ModelFinish::Truncated, "half"), "MODEL_TRUNCATED"),
    ];
    for (answer, code) in rows {
        let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
        run.answer(answer);
        assert_eq!(run.error().0, code);
    }
}

#[test]
fn an_answer_that_is_cut_off_says_what_used_the_limit_up() {
    let usage =
        |output_tokens, reasoning_tokens| Usage { output_tokens, reasoning_tokens, ..Usage::default() };
    for (usage, cause) in [
        (None, ""),
        (Some(usage(1_000, None)), ""),
        (Some(usage(1_000, Some(400))), " Reasoning used 400 of 1000 tokens."),
        (Some(usage(1_000, Some(900))), " Reasoning used the limit up: 900 of 1000 tokens."),
    ] {
        let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
        run.answer(ModelAnswer { finish: ModelFinish::Truncated, usage, ..text("") });
        assert_eq!(
            run.error().1["message"],
            format!(
                "The model's answer was cut off by a length limit before it ended.{cause} Raise `maxTokens` of the \
                 model's node."
            )
        );
    }
}

/// Some models cannot be forced to call a tool.
#[test]
fn text_instead_of_a_required_call_is_told_twice_and_then_fails() {
    let agent = with(|_, own| own.tool_choice = ToolChoice::Required);
    let mut run = TestRun::start(agent.clone(), json!({"payload": "Go."}));
    for _ in 0..2 {
        run.answer(text("Done."));
        assert_eq!(run.sent(1), [(ChatRole::User, "Call a tool before you answer.".to_owned())]);
    }
    run.answer(text("Done."));
    assert_eq!(run.error().0, "INVALID_ACTION");
    let mut run = TestRun::start(agent, json!({"payload": "Go."}));
    run.answer(text("Done.")).answer(calls(&[("light", "{}")])).ok("light", json!(1)).answer(text("Done."));
    assert_eq!(run.finish()["payload"], "Done.");
}

#[test]
fn an_empty_answer_is_told_twice() {
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    run.answer(text(" \n"));
    assert_eq!(
        run.sent(2),
        [
            (ChatRole::User, "Go.".to_owned()),
            (ChatRole::User, "Your answer was empty. Answer, or call a tool.".to_owned())
        ]
    );
    run.answer(text("")).answer(text(""));
    let (code, error) = run.error();
    assert_eq!((code.as_str(), error["iteration"].as_u64()), ("MODEL_ERROR", Some(3)));
}

#[test]
fn the_iterations_are_bounded() {
    let mut run = TestRun::start(with(|spec, _| spec.max_iterations = 2), json!({"payload": "Go."}));
    for n in 0..2 {
        run.answer(calls(&[("light", &json!({"n": n}).to_string())])).ok("light", json!(n));
    }
    let message = run.finish();
    assert_eq!(message["error"]["code"], "ITERATION_OVERFLOW");
    let events = message["envelope"]["observability"]["events"].as_array().unwrap();
    assert_eq!(events.last().unwrap()["action"], "max_iterations_reached");
    assert_eq!(message["envelope"]["tools"]["history"].as_array().unwrap().len(), 2);
}

#[test]
fn reasoning_goes_back_with_its_calls() {
    let reasoning = Some(OpaqueParts::new("w", vec![json!({"signature": "s"})]));
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    run.answer(ModelAnswer { reasoning: reasoning.clone(), ..calls(&[("light", "{}")]) })
        .ok("light", json!(1));
    let (_, transcript, _) = run.model_call();
    assert_eq!(transcript.segments()[2].reasoning, reasoning);
    run.answer(text("Done."));
    run.finish();
}

#[test]
fn a_model_that_failed_over_is_not_called_again() {
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    let failed =
        |model: &str| FailedModel { model: model.to_owned(), code: RunErrorCode::RateLimit, skipped: false };
    let fell_over = vec![failed("a"), FailedModel { skipped: true, ..failed("b") }];
    run.answer(ModelAnswer { fell_over, ..calls(&[("light", "{}")]) }).ok("light", json!(1));
    let first = run.open.iter().find_map(|effect| match effect {
        Effect::CallModel { first_model, .. } => Some(*first_model),
        _ => None,
    });
    assert_eq!(first, Some(2));
    assert_eq!(run.find_events(|event| matches!(event, RunEventKind::ModelFellOver { .. })), 1);
    assert_eq!(run.recorder.machine().tally().model_calls, 3, "a skipped model was not called");
    run.answer(text("Done."));
    run.finish();
}

#[test]
fn events_name_all_tools_of_an_answer() {
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    run.answer(calls(&[("light", "{}"), ("mail", "{}")])).ok("mail", json!(1)).ok("light", json!(2));
    run.answer(text("Done."));
    run.finish();
    assert_eq!(
        run.event_names(),
        [
            "run_started",
            "model_called",
            "model_answered",
            "tool_called",
            "tool_called",
            "tool_returned",
            "tool_returned",
            "model_called",
            "model_answered",
            "run_finished"
        ]
    );
    let answered = serde_json::to_value(&run.events[2].event).unwrap();
    assert_eq!(answered["tools"], json!(["light", "mail"]));
    assert_eq!(answered.get("tool"), None);
}

#[test]
fn debug_shows_the_calls() {
    let mut run = TestRun::start(with(|spec, _| spec.debug = true), json!({"payload": "Go."}));
    let answer = calls(&[("light", r#"{"on": 1}"#), ("mail", "{}")]);
    run.answer(ModelAnswer { text: "Now.".to_owned(), ..answer }).ok("light", json!(1)).ok("mail", json!(2));
    run.answer(text("Done."));
    let message = run.finish();
    let shown = "Now.\nlight({\"on\": 1})\nmail({})";
    assert_eq!(message["envelope"]["observability"]["events"][0]["preview"], shown);
    let prompt = message["envelope"]["model"]["lastPrompt"].as_str().unwrap();
    assert!(prompt.contains(&format!("assistant: {shown}")), "{prompt}");
}
