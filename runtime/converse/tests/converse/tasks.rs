//! Agents for one thing: their results, and what they are told about wrong ones.

use crate::kit::{TestRun, calls, finish_step, json_result, task, text};
use pretty_assertions::assert_eq;
use redflow_contract::answer_kind::{AnswerKind, ReplyFormat, ToolChoice};
use redflow_contract::event::{ConclusionReason, RunEventKind};
use redflow_contract::fact::Fact;
use redflow_contract::node::OutputFormat;
use redflow_contract::plan::{AgentSpec, TaskKind};
use redflow_contract::transcript::ChatRole;
use redflow_json_schema::{strict_object, wrap_schema};
use serde_json::{Value, json};

const EXTRACTED: &str = "I live in Oslo and like it there.";

fn start(spec: AgentSpec) -> TestRun {
    TestRun::start(spec, json!({"payload": EXTRACTED}))
}

fn offered(run: &TestRun) -> Vec<String> {
    run.model_call().2.tools.iter().map(|tool| tool.name.clone()).collect()
}

#[test]
fn without_other_tools_the_model_answers_with_json_or_text() {
    let prompt = |run: &TestRun| run.sent(2)[0].1.clone();
    for kind in [TaskKind::Extract, TaskKind::Classify] {
        let run = start(task(kind, |_, _| ()));
        let (_, _, reply) = run.model_call();
        assert_eq!((reply.tools.len(), reply.choice), (0, ToolChoice::None));
        let ReplyFormat::Schema(format) = &reply.format else { panic!("{:?}", reply.format) };
        let schema = run.recorder.agent().spec().converse.clone().unwrap().output_schema.unwrap();
        let wrapped = wrap_schema(schema.clone(), "result");
        let strict = strict_object(&wrapped).unwrap();
        assert_eq!(serde_json::from_str::<Value>(format.raw().get()).unwrap(), strict);
        // Servers that take no schema have it in the prompt.
        assert_eq!(
            prompt(&run),
            format!(
                "Be brief.\n\nAnswer only with JSON that follows this JSON Schema, without any text or code fence around \
                 it:\n{wrapped}"
            )
        );
    }
    // Providers whose schemas have no counts of items get the schema without them. The agent counts.
    let format = |schema: Value| {
        let run = start(task(TaskKind::Classify, |_, own| own.output_schema = Some(schema)));
        run.model_call().2.format
    };
    let several = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true});
    let ReplyFormat::Schema(strict) = format(several) else { panic!("not strict") };
    assert!(!strict.raw().get().contains("minItems") && !strict.raw().get().contains("uniqueItems"));
    // A schema outside the subset of all providers.
    let pattern = json!({"type": "string", "pattern": "^a"});
    assert!(matches!(format(pattern), ReplyFormat::WholeSchema(_)));

    for kind in [TaskKind::Objective, TaskKind::Summarize] {
        let run = start(task(kind, |spec, _| spec.tools.clear()));
        let (_, _, reply) = run.model_call();
        assert_eq!((reply.tools.len(), reply.format), (0, ReplyFormat::Text));
        assert_eq!(prompt(&run), "Be brief.\n\nAnswer only with the result, without any text around it.");
    }
}

#[test]
fn json_that_only_holds_the_result_is_not_streamed() {
    let is_streamed = |spec: AgentSpec| AnswerKind::Reply(start(spec).model_call().2).is_streamed();
    assert!(!is_streamed(task(TaskKind::Extract, |_, _| ())));
    assert!(is_streamed(task(TaskKind::Summarize, |_, _| ())));
    assert!(is_streamed(task(TaskKind::Objective, |_, _| ())));
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
        let own = spec.converse.as_ref().unwrap();
        let is_full = own.output_format == OutputFormat::Full;
        let kind = own.task.as_ref().unwrap().kind;
        let in_text = match kind {
            TaskKind::Objective | TaskKind::Summarize => text(message),
            TaskKind::Extract | TaskKind::Classify => json_result(&result),
        };
        let fenced = match kind {
            TaskKind::Objective | TaskKind::Summarize => in_text.clone(),
            _ => text(&format!("\n```json\n{}\n```\n", in_text.text)),
        };
        // A model may call the finishing tool even if it is not on the list.
        for answer in [in_text, fenced, finish_step(&result)] {
            let mut run = start(spec.clone());
            run.answer(answer);
            let output = run.finish();
            let payload = if is_full { &output["payload"]["response"] } else { &output["payload"] };
            assert_eq!((payload, &output["agentResult"]["message"]), (&result, &json!(message)));
            assert_eq!(output["agentResult"]["completed"], true);
        }
    }
    // Without a schema any value is a result, and the payload is text.
    let mut run = start(task(TaskKind::Objective, |_, _| ()));
    run.answer(finish_step(&json!({"n": 1})));
    assert_eq!(run.finish()["payload"], r#"{"n":1}"#);
}

/// An agent with tools that gives the place of the extractor.
fn with_tools() -> AgentSpec {
    let schema = task(TaskKind::Extract, |_, _| ()).converse.unwrap().output_schema;
    task(TaskKind::Objective, |_, own| {
        own.output_schema = schema;
        own.output_format = OutputFormat::Json;
    })
}

#[test]
fn a_wrong_result_goes_back_twice_and_then_fails() {
    let missing = "/result/city is missing";
    let rows = [
        (r#"{"result": "#, "are not valid JSON; reading stopped at", json!(null)),
        ("[1]", "breaks its schema: it is not an object with the key `result`.", json!("")),
        (r#"{"city": "Oslo"}"#, "breaks its schema: /result is missing.", json!("/result")),
        (r#"{"result": "Oslo"}"#, "breaks its schema: /result has the wrong type.", json!("/result")),
        (r#"{"result": {}}"#, missing, json!("/result/city")),
    ];
    for (given, complaint, pointer) in rows {
        let check_error = |run: &TestRun| {
            let (code, error) = run.error();
            assert_eq!(
                (code.as_str(), &error["pointer"], &error["iteration"]),
                ("OUTPUT_INVALID", &pointer, &json!(3))
            );
        };
        let is_json = !pointer.is_null();
        // The arguments of the finishing tool.
        let mut run = start(with_tools());
        for _ in 0..2 {
            run.answer(calls(&[("finish_step", given)]));
            let told = run.results()[0].1["error"].as_str().unwrap().to_owned();
            assert!(told.starts_with(if is_json { "The result" } else { "The arguments" }), "{told}");
            assert!(told.contains(complaint), "{told}");
            assert!(told.ends_with("Call `finish_step` again, with the whole result."), "{told}");
        }
        run.answer(calls(&[("finish_step", given)]));
        check_error(&run);
        // The text of an agent without tools. JSON without `result` is no result: it is not what was asked for.
        for given in [given.to_owned(), format!("```\n{given}\n```")] {
            let mut run = start(task(TaskKind::Extract, |_, _| ()));
            for _ in 0..2 {
                run.answer(text(&given));
                assert_eq!(run.sent(2)[0], (ChatRole::Assistant, given.clone()));
                let told = run.sent(1)[0].1.clone();
                let subject = if is_json { "The result" } else { "The contents of your answer" };
                assert!(told.starts_with(subject) && told.contains(complaint), "{told}");
                assert!(told.ends_with("Answer again, only with the whole JSON."), "{told}");
            }
            run.answer(text(&given));
            check_error(&run);
        }
    }
    let mut run = start(task(TaskKind::Extract, |_, _| ()));
    run.answer(json_result(&json!({}))).answer(json_result(&json!(4)));
    run.answer(json_result(&json!({"city": "Oslo"})));
    assert_eq!(run.finish()["payload"], json!({"city": "Oslo"}));
}

#[test]
fn without_tools_only_json_is_a_result() {
    let json = r#"{"result": {"city": "Oslo"}}"#;
    for wrong in [
        "It is Oslo.".to_owned(),
        format!("Here it is: {json}"),
        format!("```json\n{json}\n```\nDone."),
        format!("```\n{json}\n```\n```\n{json}\n```"),
        "```".to_owned(),
    ] {
        let mut run = start(task(TaskKind::Extract, |_, _| ()));
        run.answer(text(&wrong));
        let told = run.sent(1)[0].1.clone();
        assert!(told.starts_with("The contents of your answer are not valid JSON"), "{wrong}: {told}");
        run.answer(text(&wrong)).answer(text(&wrong));
        let (code, error) = run.error();
        assert_eq!(code, "OUTPUT_INVALID");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("The result had to be JSON; the contents of the answer"), "{message}");
    }
    for kind in [TaskKind::Extract, TaskKind::Summarize] {
        let mut run = start(task(kind, |_, _| ()));
        run.answer(text(" \n"));
        assert_eq!(run.sent(1)[0].1, "Your answer was empty. Answer with your result.");
        run.answer(text("")).answer(text(""));
        assert_eq!(run.error().0, "MODEL_ERROR");
    }
}

/// Providers refuse calls in a conversation without tools.
#[test]
fn calls_without_tools_leave_the_conversation() {
    let wrong = r#"{"result": {}}"#;
    for (list, told) in [
        (&[("gone", "{}")][..], "There are no tools. Answer again, only with the whole JSON."),
        (
            &[("finish_step", wrong)],
            "The result breaks its schema: /result/city is missing. Answer again, only with the whole JSON.",
        ),
    ] {
        let mut run = start(task(TaskKind::Extract, |_, _| ()));
        run.answer(calls(list));
        assert_eq!(run.sent(1), [(ChatRole::User, told.to_owned())]);
        let (_, transcript, _) = run.model_call();
        assert!(transcript.segments().iter().all(|message| message.tool_calls.is_empty()));
        run.answer(calls(list)).answer(calls(list));
        assert_eq!(run.error().0, "OUTPUT_INVALID");
    }
}

#[test]
fn a_result_in_text_is_taken_instead_of_the_call() {
    let bare = r#"{"city": "Oslo"}"#;
    let wrapped = r#"{"result": {"city": "Oslo"}}"#;
    for json in [bare, wrapped] {
        for given in
            [json.to_owned(), format!(" {json}\n"), format!("```json\n{json}\n```"), format!("```{json}```")]
        {
            let mut run = start(with_tools());
            run.answer(calls(&[("light", "{}")])).ok("light", json!(1)).answer(text(&given));
            let message = run.finish();
            assert_eq!(message["payload"], json!({"city": "Oslo"}), "{given}");
            assert_eq!(message["agentResult"]["message"], r#"{"city":"Oslo"}"#);
        }
    }
    // A schema that takes both takes what is in `result`.
    let mut run = start(task(TaskKind::Objective, |_, own| {
        own.output_schema = Some(json!({"type": "object"}));
        own.output_format = OutputFormat::Json;
    }));
    run.answer(text(r#"{"result": {"n": 1}}"#));
    assert_eq!(run.finish()["payload"], json!({"n": 1}));
}

#[test]
fn other_text_is_told_to_call_twice_and_then_fails() {
    for prose in ["It is Oslo.", r#"{"city": 4}"#, r#"{"result": "Oslo"}"#, r#"Here: {"city": "Oslo"}"#] {
        let mut run = start(with_tools());
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
    for spec in [with_tools(), task(TaskKind::Objective, |_, _| ())] {
        let mut run = start(spec);
        run.answer(text(call));
        assert!(run.sent(1)[0].1.starts_with("You wrote a call of the tool `finish_step` as text"));
        run.answer(text(call)).answer(text(call));
        assert_eq!(run.error().0, "OUTPUT_INVALID");
    }
    let mut run = start(with_tools());
    run.answer(text(" "));
    assert_eq!(run.sent(1)[0].1, "Your answer was empty. Call the tool `finish_step` with your result.");
    run.answer(text("Oslo.")).answer(finish_step(&json!({"city": "Oslo"})));
    assert_eq!(run.finish()["payload"], json!({"city": "Oslo"}));
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
            run.answer(json_result(&invented));
            let error = run.sent(1)[0].1.clone();
            assert!(error.contains(" The only categories are `bug`, `praise`. "), "{error}");
        }
        run.answer(json_result(&invented));
        let (code, error) = run.error();
        assert_eq!((code.as_str(), &error["pointer"]), ("OUTPUT_INVALID", &json!(pointer)));
    }
}

#[test]
fn a_summary_is_not_longer_than_the_text() {
    let run = |payload: &str, answers: &[&str]| {
        let mut run = TestRun::start(task(TaskKind::Summarize, |_, _| ()), json!({ "payload": payload }));
        for answer in answers {
            run.answer(text(answer));
        }
        run
    };
    // Characters count, not bytes, and blanks around do not count.
    assert_eq!(run("abcd", &["äöüß"]).finish()["payload"], "äöüß");
    assert_eq!(run(" abc ", &[" äöü"]).finish()["payload"], " äöü");
    let told = run("abcd", &["abcde"]);
    assert_eq!(
        told.sent(1)[0].1,
        "The summary has 5 characters, but the text has only 4. Write a shorter one. Answer again, only with the whole \
         result."
    );
    let failed = run("abcd", &["abcde", "abcdef", "abcdefg"]);
    let (code, error) = failed.error();
    assert_eq!((code.as_str(), &error["rule"]), ("OUTPUT_INVALID", &json!("maxLength")));
    assert_eq!(error["message"], "The summary has 7 characters, but the text has only 4.");
    assert_eq!(run("abcd", &["", "  ", "ok"]).finish()["payload"], "ok");
    // A summary with a schema of its own.
    let list = json!({"type": "array", "items": {"type": "string"}});
    let mut run = start(task(TaskKind::Summarize, |_, own| own.output_schema = Some(list)));
    run.answer(json_result(&json!(["Oslo"])));
    assert_eq!(run.finish()["payload"], r#"["Oslo"]"#);
    let short = json!({"type": "string", "maxLength": 3});
    let mut run = start(task(TaskKind::Summarize, |_, own| own.output_schema = Some(short)));
    run.answer(text("Oslo"));
    assert!(run.sent(1)[0].1.starts_with("The result breaks its schema: /result "));
    run.answer(text("Osl"));
    assert_eq!(run.finish()["payload"], "Osl");
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
    // The list stays as it is, because some models bind their thoughts to it.
    let (_, _, reply) = run.model_call();
    assert_eq!(offered(&run), ["weather", "light", "mail", "finish_step"]);
    assert_eq!(
        (reply.only.as_deref(), reply.choice, concluding(&run)),
        (Some("finish_step"), ToolChoice::Required, 1)
    );
    let told =
        "Only the tool `finish_step` can be called now. Call it with the best result that you have so far.";
    assert_eq!(run.sent(1), [(ChatRole::User, told.to_owned())]);
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
    run.answer(json_result(&json!("other")));
    assert_eq!(run.error().0, "OUTPUT_INVALID");
    let mut run = start(task(TaskKind::Classify, |spec, _| spec.max_iterations = 1));
    run.answer(text("Praise."));
    assert_eq!(run.error().0, "OUTPUT_INVALID");
    let mut run = start(task(TaskKind::Objective, |spec, _| spec.max_iterations = 1));
    run.answer(calls(&[("light", "{}")]));
    assert_eq!(run.error().0, "ITERATION_OVERFLOW");
    // An agent without tools works as before.
    let run = start(task(TaskKind::Classify, |spec, _| spec.max_iterations = 1));
    assert_eq!((run.sent(9).len(), run.model_call().2.only), (2, None));
}

/// Some models cannot be forced to call the tool.
#[test]
fn text_at_the_conclusion_is_told_to_call_the_tool() {
    let (_, transcript, _) = start(with_tools()).model_call();
    let tokens: usize = transcript.segments().iter().map(|message| message.tokens()).sum();
    let limit = u32::try_from(tokens).unwrap();
    let mut spec = with_tools();
    spec.converse.as_mut().unwrap().task.as_mut().unwrap().max_token_limit = limit;
    let mut run = start(spec);
    assert_eq!(run.model_call().2.only.as_deref(), Some("finish_step"));
    run.answer(text("It is Oslo."));
    assert_eq!(run.sent(1)[0].1, "Call the tool `finish_step` with your result.");
    assert_eq!(run.model_call().2.only.as_deref(), Some("finish_step"));
    run.answer(text(r#"{"result": {"city": "Oslo"}}"#));
    assert_eq!(run.finish()["payload"], json!({"city": "Oslo"}));
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
    run.answer(json_result(&json!({}))).answer(json_result(&json!({"city": "Oslo"})));
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
