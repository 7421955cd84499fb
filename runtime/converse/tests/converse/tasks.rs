//! Agents for one thing: their results, and what they are told about wrong ones.

use crate::kit::{TestRun, calls, finish_step, task, text};
use pretty_assertions::assert_eq;
use redflow_contract::answer_kind::{ReplyFormat, ToolChoice};
use redflow_contract::event::{ConclusionReason, RunEventKind};
use redflow_contract::fact::Fact;
use redflow_contract::node::OutputFormat;
use redflow_contract::plan::{AgentSpec, TaskKind};
use redflow_contract::transcript::ChatRole;
use serde_json::{Value, json};

const EXTRACTED: &str = "I live in Oslo and like it there.";

fn start(spec: AgentSpec) -> TestRun {
    TestRun::start(spec, json!({"payload": EXTRACTED}))
}

fn offered(run: &TestRun) -> Vec<String> {
    run.model_call().2.tools.iter().map(|tool| tool.name.clone()).collect()
}

#[test]
fn without_other_tools_the_model_must_finish() {
    for kind in [TaskKind::Objective, TaskKind::Extract, TaskKind::Classify, TaskKind::Summarize] {
        let run = start(task(kind, |spec, _| spec.tools.clear()));
        let (_, _, reply) = run.model_call();
        assert_eq!(offered(&run), ["finish_step"]);
        assert_eq!((reply.choice, &reply.format), (ToolChoice::Required, &ReplyFormat::Text));
        let schema = reply.tools[0].input_schema.clone().unwrap();
        let expected = run.recorder.agent().spec().converse.clone().unwrap().output_schema;
        assert_eq!(schema["properties"]["result"], expected.unwrap_or(json!({"type": "string"})));
        assert_eq!(schema["required"], json!(["result"]));
        let prompt = &run.sent(2)[0].1;
        assert!(
            prompt.starts_with("Be brief.\n\nGive your result by calling the tool `finish_step`"),
            "{prompt}"
        );
    }
}

#[test]
fn the_payload_is_the_result() {
    let several = json!({"type": "array", "items": {"type": "string", "enum": ["bug", "praise"]}, "minItems": 1,
                         "uniqueItems": true});
    let list = task(TaskKind::Classify, |_, own| own.output_schema = Some(several));
    let full = task(TaskKind::Extract, |_, own| own.output_format = OutputFormat::Full);
    for (spec, result, message) in [
        (task(TaskKind::Extract, |_, _| ()), json!({"city": "Oslo"}), r#"{"city":"Oslo"}"#),
        (task(TaskKind::Classify, |_, _| ()), json!("praise"), "praise"),
        (list, json!(["praise", "bug"]), r#"["praise","bug"]"#),
        (task(TaskKind::Summarize, |_, _| ()), json!("Likes Oslo."), "Likes Oslo."),
        (task(TaskKind::Objective, |_, _| ()), json!("Done."), "Done."),
        (full, json!({"city": "Oslo"}), r#"{"city":"Oslo"}"#),
    ] {
        let is_full = spec.converse.as_ref().unwrap().output_format == OutputFormat::Full;
        let mut run = start(spec);
        run.answer(finish_step(&result));
        let output = run.finish();
        let payload = if is_full { &output["payload"]["response"] } else { &output["payload"] };
        assert_eq!((payload, &output["agentResult"]["message"]), (&result, &json!(message)));
        assert_eq!(output["agentResult"]["completed"], true);
    }
    // Without a schema any value is a result, and the payload is text.
    let mut run = start(task(TaskKind::Objective, |_, _| ()));
    run.answer(finish_step(&json!({"n": 1})));
    assert_eq!(run.finish()["payload"], r#"{"n":1}"#);
}

#[test]
fn a_wrong_result_goes_back_twice_and_then_fails() {
    for (arguments, told, pointer) in [
        (r#"{"result": "#, "The arguments are not valid JSON; reading stopped at", json!(null)),
        ("[1]", "The result breaks its schema: it is not an object with the key `result`.", json!("")),
        (r#"{"city": "Oslo"}"#, "The result breaks its schema: /result is missing.", json!("/result")),
        (
            r#"{"result": "Oslo"}"#,
            "The result breaks its schema: /result has the wrong type.",
            json!("/result"),
        ),
        (
            r#"{"result": {}}"#,
            "The result breaks its schema: /result/city is missing.",
            json!("/result/city"),
        ),
    ] {
        let mut run = start(task(TaskKind::Extract, |_, _| ()));
        for _ in 0..2 {
            run.answer(calls(&[("finish_step", arguments)]));
            let error = run.results()[0].1["error"].as_str().unwrap().to_owned();
            assert!(error.starts_with(told), "{error}");
            assert!(error.ends_with("Call `finish_step` again, with the whole result."), "{error}");
        }
        run.answer(calls(&[("finish_step", arguments)]));
        let (code, error) = run.error();
        assert_eq!(
            (code.as_str(), &error["pointer"], &error["iteration"]),
            ("OUTPUT_INVALID", &pointer, &json!(3))
        );
    }
    let mut run = start(task(TaskKind::Extract, |_, _| ()));
    run.answer(finish_step(&json!({})))
        .answer(finish_step(&json!(4)))
        .answer(finish_step(&json!({"city": "Oslo"})));
    assert_eq!(run.finish()["payload"], json!({"city": "Oslo"}));
}

#[test]
fn prose_is_told_twice_and_then_fails() {
    // Even JSON that fits: the result is given only by the tool.
    for prose in ["It is Oslo.", r#"{"city": "Oslo"}"#, r#"{"result": {"city": "Oslo"}}"#] {
        let mut run = start(task(TaskKind::Extract, |_, _| ()));
        for _ in 0..2 {
            run.answer(text(prose));
            let expected = [
                (ChatRole::Assistant, prose.to_owned()),
                (ChatRole::User, "Call the tool `finish_step` with your result.".to_owned()),
            ];
            assert_eq!(run.sent(2), expected);
        }
        run.answer(text(prose));
        let (code, error) = run.error();
        assert_eq!(code, "OUTPUT_INVALID");
        assert_eq!(error["message"], "The model wrote text instead of calling the tool `finish_step`.");
    }
    // A call as text is no result either, with and without a schema.
    let call = r#"{"name": "finish_step", "arguments": {"result": "Oslo"}}"#;
    for kind in [TaskKind::Classify, TaskKind::Objective] {
        let mut run = start(task(kind, |_, _| ()));
        run.answer(text(call));
        assert!(run.sent(1)[0].1.starts_with("You wrote a call of the tool `finish_step` as text"));
        run.answer(text(call)).answer(text(call));
        assert_eq!(run.error().0, "OUTPUT_INVALID");
    }
    let mut run = start(task(TaskKind::Classify, |_, _| ()));
    run.answer(text(" "));
    assert_eq!(run.sent(1)[0].1, "Your answer was empty. Call the tool `finish_step` with your result.");
    run.answer(text("Praise.")).answer(finish_step(&json!("praise")));
    assert_eq!(run.finish()["payload"], "praise");
}

#[test]
fn without_a_schema_prose_is_the_result() {
    let mut run = start(task(TaskKind::Objective, |_, _| ()));
    run.answer(calls(&[("light", "{}")])).ok("light", json!(1)).answer(text("The light is on."));
    assert_eq!(run.finish()["payload"], "The light is on.");
    // An empty result is none.
    let mut run = start(task(TaskKind::Objective, |_, _| ()));
    run.answer(finish_step(&json!(" ")));
    let told = "The result is empty. Give a text. Call `finish_step` again, with the whole result.";
    assert_eq!(run.results()[0].1["error"], told);
}

#[test]
fn an_invented_category_is_told_the_allowed_ones() {
    let several =
        json!({"type": "array", "items": {"type": "string", "enum": ["bug", "praise"]}, "minItems": 1});
    for (schema, invented, pointer) in [
        (None, json!("Bug"), "/result"),
        (None, json!("other"), "/result"),
        (Some(several.clone()), json!(["bug", "other"]), "/result/1"),
        (Some(several), json!([]), "/result"),
    ] {
        let mut run = start(task(TaskKind::Classify, |_, own| {
            own.output_schema = schema.or(own.output_schema.take());
        }));
        for _ in 0..2 {
            run.answer(finish_step(&invented));
            let error = run.results()[0].1["error"].as_str().unwrap().to_owned();
            assert!(error.contains(" The only categories are `bug`, `praise`. "), "{error}");
        }
        run.answer(finish_step(&invented));
        let (code, error) = run.error();
        assert_eq!((code.as_str(), &error["pointer"]), ("OUTPUT_INVALID", &json!(pointer)));
    }
}

#[test]
fn a_summary_is_not_longer_than_the_text() {
    let run = |payload: &str, answers: &[Value]| {
        let mut run = TestRun::start(task(TaskKind::Summarize, |_, _| ()), json!({ "payload": payload }));
        for answer in answers {
            run.answer(finish_step(answer));
        }
        run
    };
    // Characters count, not bytes, and blanks around do not count.
    assert_eq!(run("abcd", &[json!("äöüß")]).finish()["payload"], "äöüß");
    assert_eq!(run(" abc ", &[json!(" äöü")]).finish()["payload"], " äöü");
    let told = run("abcd", &[json!("abcde")]);
    assert_eq!(
        told.results()[0].1["error"],
        "The summary has 5 characters, but the text has only 4. Write a shorter one. Call `finish_step` again, with the \
         whole result."
    );
    let failed = run("abcd", &[json!("abcde"), json!("abcdef"), json!("abcdefg")]);
    let (code, error) = failed.error();
    assert_eq!((code.as_str(), &error["rule"]), ("OUTPUT_INVALID", &json!("maxLength")));
    assert_eq!(error["message"], "The summary has 7 characters, but the text has only 4.");
    assert_eq!(run("abcd", &[json!(""), json!("  "), json!(7)]).error().1["rule"], "type");
    assert_eq!(run("abcd", &[json!(""), json!("  "), json!("ok")]).finish()["payload"], "ok");
}

#[test]
fn an_objective_is_reached_with_tools() {
    let mut run = start(task(TaskKind::Objective, |_, own| {
        own.output_schema = Some(json!({"type": "object", "required": ["n"]}));
        own.output_format = OutputFormat::Json;
    }));
    assert_eq!(offered(&run), ["weather", "light", "mail", "finish_step"]);
    assert_eq!(run.model_call().2.choice, ToolChoice::Auto);
    run.answer(calls(&[("light", "{}"), ("finish_step", r#"{"result": {"n": 1}}"#), ("gone", "{}")]));
    run.ok("light", json!(1));
    let results = run.results();
    let told = "Call `finish_step` alone and once, when all other calls have returned.";
    assert_eq!(results[1].1["error"], told);
    let known = "There is no tool `gone`. The tools are `weather`, `light`, `mail`, `finish_step`.";
    assert_eq!(results[2].1["error"], known);
    run.answer(calls(&[("finish_step", r#"{"result": {"n": 1}}"#), ("finish_step", "{}")]));
    assert_eq!(run.results()[0].1["error"], told);
    run.answer(finish_step(&json!({"n": 2})));
    let message = run.finish();
    assert_eq!((&message["payload"], &message["agentResult"]["iterations"]), (&json!({"n": 2}), &json!(3)));
}

#[test]
fn a_tool_with_the_name_of_the_finishing_tool_is_not_offered() {
    let mut run = start(task(TaskKind::Objective, |spec, _| spec.tools[0].name = "finish_step".to_owned()));
    assert_eq!(offered(&run), ["light", "mail", "finish_step"]);
    run.answer(finish_step(&json!("Done.")));
    assert_eq!(run.finish()["payload"], "Done.");
}

#[test]
fn with_one_iteration_left_the_model_can_only_finish() {
    let agent = || task(TaskKind::Objective, |spec, _| spec.max_iterations = 2);
    let concluding = |run: &TestRun| {
        run.find_events(|event| {
            *event == RunEventKind::Concluding { iteration: 2, reason: ConclusionReason::Iterations }
        })
    };
    let mut run = start(agent());
    assert_eq!((offered(&run).len(), concluding(&run)), (4, 0));
    run.answer(calls(&[("light", "{}")])).ok("light", json!(1));
    let (_, _, reply) = run.model_call();
    assert_eq!(
        (offered(&run), reply.choice, concluding(&run)),
        (vec!["finish_step".to_owned()], ToolChoice::Required, 1)
    );
    // Calls beside the result could not be made, so they do not matter.
    run.answer(calls(&[("light", "{}"), ("finish_step", r#"{"result": "on"}"#)]));
    assert_eq!((&run.finish()["payload"], concluding(&run)), (&json!("on"), 1));

    // A model that calls another tool all the same.
    let (_, transcript, _) = start(agent()).model_call();
    let tokens: usize = transcript.segments().iter().map(|message| message.tokens()).sum();
    let mut run = start(task(TaskKind::Objective, |_, own| {
        own.task.as_mut().unwrap().max_token_limit = u32::try_from(tokens).unwrap();
    }));
    run.answer(calls(&[("light", "{}"), ("weather", "{}")]));
    let told =
        "Only the tool `finish_step` can be called now, so this call was not made. Call `finish_step`.";
    assert_eq!(
        run.results().iter().map(|(_, result)| result["error"].clone()).collect::<Vec<_>>(),
        [told, told]
    );
    run.answer(calls(&[("light", "{}"), ("finish_step", "{")]));
    assert_eq!(run.results()[0].1["error"], told);
    assert!(run.results()[1].1["error"].as_str().unwrap().contains("not valid JSON"));
    run.answer(finish_step(&json!("off")));
    assert_eq!(run.finish()["payload"], "off");

    // A wrong result in the last iteration is the error, not the number of iterations.
    let mut run = start(task(TaskKind::Classify, |spec, _| spec.max_iterations = 1));
    run.answer(finish_step(&json!("other")));
    assert_eq!(run.error().0, "OUTPUT_INVALID");
    let mut run = start(task(TaskKind::Classify, |spec, _| spec.max_iterations = 1));
    run.answer(text("Praise."));
    assert_eq!(run.error().0, "OUTPUT_INVALID");
    let mut run = start(task(TaskKind::Classify, |spec, _| spec.max_iterations = 1));
    run.answer(calls(&[("gone", "{}")]));
    assert_eq!(run.error().0, "ITERATION_OVERFLOW");
}

#[test]
fn the_turn_in_the_memory_has_the_text_and_the_result() {
    let mut run = TestRun::start_in(
        task(TaskKind::Extract, |spec, _| spec.memory = true),
        json!({"payload": EXTRACTED}),
        Some("f:s"),
    );
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryRecalled { at, effect, turns: Vec::new(), sources: Vec::new() }).unwrap();
    run.answer(finish_step(&json!({}))).answer(finish_step(&json!({"city": "Oslo"})));
    let turn = run.open.iter().find_map(|effect| match effect {
        redflow_contract::effect::Effect::AppendMemory { turn, .. } => Some(turn.clone()),
        _ => None,
    });
    let turn: Vec<(ChatRole, String)> =
        turn.unwrap().iter().map(|message| (message.role, message.content.clone())).collect();
    let expected =
        [(ChatRole::User, EXTRACTED.to_owned()), (ChatRole::Assistant, r#"{"city":"Oslo"}"#.to_owned())];
    assert_eq!(turn, expected);
    let effect = run.open[0].id();
    run.feed(|at| Fact::MemoryAppended { at, effect }).unwrap();
    run.finish();
}
