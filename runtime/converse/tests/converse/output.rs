//! The payload of the result: text, JSON, an answer by a schema, and the full output.

use crate::kit::{START, TestRun, calls, text, with};
use pretty_assertions::assert_eq;
use redflow_contract::answer_kind::{ReplyFormat, ToolChoice};
use redflow_contract::code::RunErrorCode;
use redflow_contract::fact::{Fact, FailedModel, ModelAnswer, Usage};
use redflow_contract::node::{BudgetKind, OutputFormat};
use redflow_contract::plan::AgentSpec;
use redflow_contract::schemas;
use redflow_contract::transcript::ChatRole;
use serde_json::{Value, json};

fn total() -> Value {
    json!({"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"],
           "additionalProperties": false})
}

fn json_agent() -> AgentSpec {
    with(|spec, own| {
        spec.tools.clear();
        own.output_format = OutputFormat::Json;
    })
}

#[test]
fn a_json_answer_is_a_value() {
    let mut run = TestRun::start(json_agent(), json!({"payload": "Go."}));
    let (_, _, reply) = run.model_call();
    assert_eq!(reply.format, ReplyFormat::Json);
    assert_eq!(
        run.sent(2)[0].1,
        "Be brief.\n\nAnswer only with JSON, without any text or code fence around it."
    );
    run.answer(text(" [1, {\"a\": null}]\n"));
    assert_eq!(run.finish()["payload"], json!([1, {"a": null}]));
}

#[test]
fn an_answer_in_a_fence_is_told_twice_and_then_fails() {
    let fenced = "```json\n{\"a\": 1}\n```";
    let mut run = TestRun::start(json_agent(), json!({"payload": "Go."}));
    run.answer(text(fenced));
    let tell = "The contents of your answer are not valid JSON; reading stopped at line 1, column 1. Answer again, \
                only with JSON, without a code fence.";
    assert_eq!(run.sent(2), [(ChatRole::Assistant, fenced.to_owned()), (ChatRole::User, tell.to_owned())]);
    run.answer(text(fenced)).answer(text("{}"));
    assert_eq!(run.finish()["payload"], json!({}));

    let mut run = TestRun::start(json_agent(), json!({"payload": "Go."}));
    run.answer(text(fenced)).answer(text("")).answer(text("No."));
    let (code, error) = run.error();
    assert_eq!(code, "OUTPUT_NOT_JSON");
    assert_eq!(
        error["message"],
        "The answer had to be JSON; its contents are not valid JSON; reading stopped at line 1, column 1."
    );
}

#[test]
fn a_schema_without_tools_is_asked_of_the_provider_and_checked() {
    let agent = with(|spec, own| {
        spec.tools.clear();
        own.output_schema = Some(total());
        own.output_format = OutputFormat::Json;
    });
    let mut run = TestRun::start(agent, json!({"payload": "Go."}));
    let (_, _, reply) = run.model_call();
    assert!(matches!(reply.format, ReplyFormat::Schema(_)), "{:?}", reply.format);
    assert!(run.sent(2)[0].1.ends_with(&total().to_string()));
    run.answer(text(r#"{"total": "4"}"#));
    assert_eq!(
        run.sent(1)[0].1,
        "Your answer breaks its schema: /total has the wrong type. Answer again, only with the whole JSON."
    );
    run.answer(text("{}")).answer(text(r#"{"total": 4, "more": 1}"#));
    let (code, error) = run.error();
    assert_eq!(
        (code.as_str(), &error["pointer"], &error["rule"]),
        ("OUTPUT_INVALID", &json!("/more"), &json!("additionalProperties"))
    );
    // A schema outside the subset goes to servers that take every schema. It is checked all the same.
    let agent = with(|spec, own| {
        spec.tools.clear();
        own.output_schema = Some(json!({"type": "object", "properties": {"n": {"minimum": 3}}}));
    });
    let mut run = TestRun::start(agent, json!({"payload": "Go."}));
    let format = run.model_call().2.format;
    assert!(matches!(format, ReplyFormat::WholeSchema(_)), "{format:?}");
    run.answer(text(r#"{"n": 2}"#)).answer(text(r#"{"n": 3}"#));
    assert_eq!(run.finish()["payload"], r#"{"n": 3}"#);
}

#[test]
fn with_tools_the_answer_is_given_by_the_finishing_tool() {
    let agent = with(|_, own| {
        own.output_schema = Some(total());
        own.output_format = OutputFormat::Json;
    });
    let mut run = TestRun::start(agent.clone(), json!({"payload": "Go."}));
    let (_, _, reply) = run.model_call();
    assert_eq!((reply.choice, &reply.format), (ToolChoice::Required, &ReplyFormat::Text));
    let names: Vec<&str> = reply.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["weather", "light", "mail", "final_answer"]);
    // Beside other calls it is not taken.
    run.answer(calls(&[("light", "{}"), ("final_answer", r#"{"total": 1}"#)])).ok("light", json!(1));
    assert_eq!(run.results()[1].1["error"], "Call `final_answer` alone, when all other calls have returned.");
    run.answer(calls(&[("final_answer", r#"{"total": "#)]));
    let told = &run.results()[0].1["error"];
    assert!(told.as_str().unwrap().starts_with("The arguments are not valid JSON"), "{told}");
    // Text that fits the schema counts too.
    run.answer(text(r#"{"total": 3}"#));
    let message = run.finish();
    assert_eq!(message["payload"], json!({"total": 3}));
    assert_eq!(message["envelope"]["tools"]["history"].as_array().unwrap().len(), 2);

    let mut run = TestRun::start(agent.clone(), json!({"payload": "Go."}));
    run.answer(text("It is 3."));
    assert_eq!(run.sent(1)[0].1, "Give your answer by calling the tool `final_answer`.");
    run.answer(calls(&[("final_answer", r#"{"total": 3}"#)]));
    assert_eq!(run.finish()["payload"], json!({"total": 3}));

    let mut run = TestRun::start(agent, json!({"payload": "Go."}));
    for _ in 0..3 {
        run.answer(calls(&[("final_answer", r#"{"total": "3"}"#)]));
    }
    let (code, error) = run.error();
    assert_eq!((code.as_str(), &error["pointer"]), ("OUTPUT_INVALID", &json!("/total")));
}

#[test]
fn the_full_output_has_the_whole_metadata() {
    let full = with(|_, own| own.output_format = OutputFormat::Full);
    let mut run = TestRun::start(full, json!({"payload": "Go."}));
    run.answer(calls(&[("weather", r#"{"place": "Oslo"}"#), ("nothing", "x"), ("light", "")]));
    run.returned("light", redflow_contract::fact::ToolResult::failed("Broken."))
        .ok("weather", json!("sunny"));
    run.answer(text("Sunny."));
    let payload = run.finish()["payload"].clone();
    let expected = json!({
        "response": "Sunny.", "iterations": 2, "toolsUsed": ["weather", "light"],
        "metadata": {
            "iterations": 2,
            "toolCalls": [
                {"toolName": "weather", "arguments": {"place": "Oslo"},
                 "result": {"success": true, "data": "sunny"}, "timestamp": START + 10, "duration": 20},
                {"toolName": "nothing", "arguments": "x",
                 "result": {"success": false,
                            "error": "There is no tool `nothing`. The tools are `weather`, `light`, `mail`."},
                 "timestamp": START + 10, "duration": 0},
                {"toolName": "light", "arguments": "", "result": {"success": false, "error": "Broken."},
                 "timestamp": START + 10, "duration": 10},
            ],
            "totalTokens": 218, "totalCost": 0.5, "duration": 40, "finishReason": "completed",
        },
    });
    assert_eq!(payload, expected);
    let schema = schemas::find("full-output").unwrap();
    let schema = redflow_json_schema::Schema::compile(&serde_json::from_str(&schema).unwrap()).unwrap();
    assert!(schema.is_valid(&payload));
}

#[test]
fn a_failed_run_has_a_full_output_too() {
    let full = |most| {
        with(|spec, own| {
            spec.max_iterations = most;
            own.output_format = OutputFormat::Full;
        })
    };
    let mut run = TestRun::start(full(1), json!({"payload": "Go."}));
    run.answer(calls(&[("light", "{}")])).ok("light", json!(1));
    let message = run.finish();
    assert_eq!(message["payload"]["response"], json!(null));
    assert_eq!(message["payload"]["metadata"]["finishReason"], "max_iterations");
    assert_eq!(message["error"]["code"], "ITERATION_OVERFLOW");
    let run = TestRun::start(full(1), json!({}));
    assert_eq!(run.finish()["payload"]["metadata"]["finishReason"], "error");
}

#[test]
fn the_total_cost_is_null_if_a_price_is_unknown() {
    let spec = || {
        with(|spec, own| {
            own.output_format = OutputFormat::Full;
            spec.max_iterations = 2;
        })
    };
    let start = || TestRun::start(spec(), json!({"payload": "Go."}));
    let cost = |run: &TestRun| run.finish()["payload"]["metadata"]["totalCost"].clone();
    let unpriced = |answer: ModelAnswer| {
        let usage = answer.usage.map(|usage| Usage { cost: None, ..usage });
        ModelAnswer { usage, ..answer }
    };
    let uncounted = |answer: ModelAnswer| ModelAnswer { usage: None, ..answer };
    let call = || calls(&[("light", "{}")]);

    let mut run = start();
    run.answer(call()).ok("light", json!(1)).answer(text("Done."));
    assert_eq!(cost(&run), json!(0.5));
    for (first, second) in [
        (unpriced(call()), unpriced(text("Done."))),
        (call(), unpriced(text("Done."))),
        (uncounted(call()), text("Done.")),
        // A failed run.
        (unpriced(call()), unpriced(call())),
    ] {
        let mut run = start();
        run.answer(first).ok("light", json!(1)).answer(second);
        if run.names() == ["light"] {
            run.ok("light", json!(1));
        }
        assert_eq!(cost(&run), json!(null));
    }
    // Calls without an answer: nothing is known about the price.
    let mut run = start();
    run.feed(|at| Fact::DeadlineReached { at }).unwrap();
    assert_eq!(cost(&run), json!(null));
    // A model that failed has given no answer; the price of the other one is known.
    let mut run = start();
    let failed = FailedModel { model: "a".to_owned(), code: RunErrorCode::RateLimit, skipped: false };
    run.answer(ModelAnswer { fell_over: vec![failed], ..text("Done.") });
    assert_eq!(cost(&run), json!(0.25));
    // No call at all.
    let run = TestRun::start(spec(), json!({}));
    assert_eq!(cost(&run), json!(0.0));
    let mut run = start();
    let (effect, budget) = (run.model_call().0, BudgetKind::ModelCalls);
    run.feed(|at| Fact::BudgetReached { at, effect, budget, limit: 0.0, spent: 0.0 }).unwrap();
    assert_eq!(cost(&run), json!(0.0));
    // Both are valid by the schema.
    let schema = schemas::find("full-output").unwrap();
    let schema = redflow_json_schema::Schema::compile(&serde_json::from_str(&schema).unwrap()).unwrap();
    let mut run = start();
    run.answer(uncounted(text("Done.")));
    assert!(schema.is_valid(&run.finish()["payload"]));
}

#[test]
fn with_required_a_tool_is_called_before_the_finishing_tool() {
    let agent = with(|_, own| {
        own.output_schema = Some(total());
        own.tool_choice = ToolChoice::Required;
    });
    let mut run = TestRun::start(agent.clone(), json!({"payload": "Go."}));
    // The list stays as it is, because some models bind their thoughts to it.
    let (_, _, first) = run.model_call();
    let names: Vec<&str> = first.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        (names, first.choice),
        (vec!["weather", "light", "mail", "final_answer"], ToolChoice::Required)
    );
    run.answer(calls(&[("final_answer", r#"{"total": 1}"#)]));
    assert_eq!(run.results()[0].1["error"], "Call another tool before you answer.");
    run.answer(calls(&[("light", "{}")])).ok("light", json!(1));
    assert_eq!(run.model_call().2, first);
    run.answer(calls(&[("final_answer", r#"{"total": 1}"#)]));
    assert_eq!(run.finish()["payload"], r#"{"total": 1}"#);

    // A model that cannot be forced: text that follows the schema comes too early, too.
    let mut run = TestRun::start(agent, json!({"payload": "Go."}));
    for early in ["It is 1.", r#"{"total": 1}"#] {
        run.answer(text(early));
        assert_eq!(run.sent(1), [(ChatRole::User, "Call a tool before you answer.".to_owned())]);
    }
    run.answer(calls(&[("light", "{}")])).ok("light", json!(1));
    run.answer(text("```json\n{\"total\": 1}\n```"));
    assert_eq!(run.finish()["payload"], "{\"total\": 1}\n");
}

#[test]
fn arguments_that_nest_too_deep_stay_text_in_the_full_output() {
    let mut run =
        TestRun::start(with(|_, own| own.output_format = OutputFormat::Full), json!({"payload": "Go."}));
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    run.answer(calls(&[("gone", &deep)])).answer(text("Done."));
    assert_eq!(run.finish()["payload"]["metadata"]["toolCalls"][0]["arguments"], deep);
}
