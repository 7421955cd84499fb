//! Tool calls: several at the same time, wrong ones, repeated ones.

use crate::kit::{TestRun, calls, requested, spec, text, with};
use pretty_assertions::assert_eq;
use redflow_contract::answer_kind::ToolChoice;
use redflow_contract::effect::Effect;
use redflow_contract::fact::{Fact, ModelAnswer, ToolResult};
use redflow_contract::node::OnUnknown;
use redflow_contract::transcript::ChatRole;
use redflow_machine::{FeedError, Status, StepError};
use serde_json::{Value, json};

fn three() -> ModelAnswer {
    calls(&[("weather", r#"{"place": "Oslo"}"#), ("light", r#"{"on": true}"#), ("mail", r#"{"to": "ada"}"#)])
}

#[test]
fn calls_of_one_answer_are_made_at_once_and_appended_in_their_order() {
    let tools = ["weather", "light", "mail"];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut hashes = Vec::new();
    for order in orders {
        let mut run = TestRun::start(spec(), json!({"payload": "Do it."}));
        run.answer(three());
        assert_eq!(run.names(), tools);
        let ids: Vec<String> = run
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::CallTool { call, .. } => Some(call.call_id.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(ids, ["0197-run:1:1", "0197-run:1:2", "0197-run:1:3"]);
        for index in order {
            run.ok(tools[index], json!({"from": tools[index]}));
        }
        let results = run.results();
        let expected =
            |id: &str, tool: &str| (id.to_owned(), json!({"success": true, "output": {"from": tool}}));
        assert_eq!(results, [expected("c1", "weather"), expected("c2", "light"), expected("c3", "mail")]);
        hashes.push(run.model_call().1.hash());
        run.answer(text("Done."));
        assert_eq!(run.finish()["payload"], "Done.");
    }
    hashes.dedup();
    assert_eq!(hashes.len(), 1, "the transcript depends on who was faster");
}

#[test]
fn no_more_calls_are_open_than_the_agent_allows() {
    let mut run = TestRun::start(with(|_, own| own.parallel_tools = 2), json!({"payload": "Go."}));
    run.answer(three());
    assert_eq!(run.names(), ["weather", "light"]);
    run.ok("light", json!(1));
    assert_eq!(run.names(), ["weather", "mail"]);
    run.ok("weather", json!(2)).ok("mail", json!(3)).answer(text("Done."));
    assert_eq!(run.finish()["agentResult"]["iterations"], 2);
}

#[test]
fn a_hundred_calls_are_made_in_their_turn_and_more_than_128_are_not() {
    let one = |n: usize| requested(&format!("c{n}"), "light", &json!({"lamp": n}).to_string());
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    run.answer(ModelAnswer { tool_calls: (0..100).map(one).collect(), ..text("") });
    for made in 0..100 {
        assert_eq!(run.open.len(), 8.min(100 - made));
        run.ok("light", json!(made));
    }
    assert_eq!(run.results().len(), 100);
    for told in 1..=3 {
        run.answer(ModelAnswer { tool_calls: (0..129).map(one).collect(), ..text("") });
        if told < 3 {
            let tell = "You called 129 tools at once. At most 128 are allowed, so none was called.";
            assert_eq!(run.sent(1), [(ChatRole::User, tell.to_owned())]);
        }
    }
    assert_eq!(run.error().0, "INVALID_ACTION");
}

#[test]
fn a_wrong_call_is_told_and_the_others_are_made() {
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    run.answer(calls(&[
        ("wether", "{}"),
        ("weather", r#"{"place": "#),
        ("weather", r#"["Oslo"]"#),
        ("weather", r#"{"place": 4}"#),
        ("weather", r"{}"),
        ("light", ""),
        ("light", r#"{"a": 1, "a": 2}"#),
    ]));
    assert_eq!(run.names(), ["light"]);
    run.ok("light", json!(null));
    let errors: Vec<Value> = run.results().into_iter().map(|(_, result)| result["error"].clone()).collect();
    assert_eq!(
        errors,
        [
            json!("There is no tool `wether`. The tools are `weather`, `light`, `mail`."),
            json!(
                "The arguments are not valid JSON; reading stopped at line 1, column 10. The call was not made."
            ),
            json!("The input breaks its schema: it has the wrong type. The call was not made."),
            json!("The input breaks its schema: /place has the wrong type. The call was not made."),
            json!("The input breaks its schema: /place is missing. The call was not made."),
            json!(null),
            json!("The arguments name a key twice: /a. The call was not made."),
        ]
    );
    run.answer(text("Done."));
    let message = run.finish();
    assert_eq!(message["envelope"]["tools"]["history"].as_array().unwrap().len(), 7);
    assert_eq!(message["envelope"]["tools"]["history"][5]["success"], true);
}

#[test]
fn a_third_identical_call_in_a_row_is_not_made() {
    let oslo = ("weather", r#"{"place": "Oslo"}"#);
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    run.answer(calls(&[oslo])).ok("weather", json!(1));
    // Another order of keys and spaces is the same call.
    run.answer(calls(&[("weather", r#" {"place":"Oslo"} "#)])).ok("weather", json!(1));
    run.answer(calls(&[oslo]));
    assert_eq!(run.names(), ["call_model"]);
    let told = "You have called `weather` with this input 2 times in a row, so the call was not made again. Use the \
                result, or try something else.";
    assert_eq!(run.results()[0].1["error"], told);
    // Another call begins a new row.
    run.answer(calls(&[("weather", r#"{"place": "Rome"}"#)])).ok("weather", json!(2));
    run.answer(calls(&[oslo, oslo, oslo]));
    assert_eq!(run.names(), ["weather", "weather"]);
    run.ok("weather", json!(1)).ok("weather", json!(1)).answer(text("Done."));
    run.finish();
}

#[test]
fn ids_of_calls_are_unique() {
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    let twice = [requested("x", "light", r#"{"n": 1}"#), requested("x", "light", r#"{"n": 2}"#)];
    let none = requested("", "light", r#"{"n": 3}"#);
    let tool_calls = twice.iter().cloned().chain([none]).collect();
    run.answer(ModelAnswer { tool_calls, ..text("") });
    run.ok("light", json!(1)).ok("light", json!(2)).ok("light", json!(3));
    let ids = |run: &TestRun| run.results().into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!(ids(&run), ["x", "call_1_2_1", "call_1_3_1"]);
    run.answer(ModelAnswer { tool_calls: vec![requested("x", "light", "{}")], ..text("") });
    run.ok("light", json!(4));
    assert_eq!(ids(&run), ["call_2_1_1"]);
    let (_, transcript, _) = run.model_call();
    let requested: Vec<&str> = transcript
        .segments()
        .iter()
        .flat_map(|message| message.tool_calls.iter().map(|call| call.id.as_str()))
        .collect();
    assert_eq!(requested, ["x", "call_1_2_1", "call_1_3_1", "call_2_1_1"]);
}

#[test]
fn text_beside_calls_is_kept_and_the_calls_are_made() {
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    let answer = calls(&[("light", "{}")]);
    run.answer(ModelAnswer { text: "It is done.".to_owned(), ..answer }).ok("light", json!(1));
    assert_eq!(run.sent(2)[0], (ChatRole::Assistant, "It is done.".to_owned()));
    run.answer(text("Really done."));
    assert_eq!(run.finish()["payload"], "Really done.");
}

#[test]
fn required_holds_until_the_first_result() {
    let required = with(|_, own| own.tool_choice = ToolChoice::Required);
    let mut run = TestRun::start(required.clone(), json!({"payload": "Go."}));
    assert_eq!(run.model_call().2.choice, ToolChoice::Required);
    // A refused call is no result.
    run.answer(calls(&[("nothing", "{}")]));
    assert_eq!(run.model_call().2.choice, ToolChoice::Required);
    // A provider that ignores the choice.
    run.answer(text("No."));
    assert_eq!(run.sent(1), [(ChatRole::User, "Call a tool before you answer.".to_owned())]);
    run.answer(calls(&[("light", "{}")])).ok("light", json!(1));
    assert_eq!(run.model_call().2.choice, ToolChoice::Auto);
    run.answer(text("Done."));
    assert_eq!(run.finish()["payload"], "Done.");

    let mut run = TestRun::start(required, json!({"payload": "Go."}));
    run.answer(text("No.")).answer(text("No.")).answer(text("No."));
    assert_eq!(run.error().0, "INVALID_ACTION");
}

#[test]
fn with_none_tools_are_sent_and_not_called() {
    let mut run =
        TestRun::start(with(|_, own| own.tool_choice = ToolChoice::None), json!({"payload": "Go."}));
    let (.., reply) = run.model_call();
    assert_eq!((reply.choice, reply.tools.len()), (ToolChoice::None, 3));
    run.answer(calls(&[("mail", "{}")]));
    assert_eq!(run.results()[0].1["error"], "This agent must not call tools. Answer without them.");
    run.answer(text("Done."));
    run.finish();
}

#[test]
fn a_call_in_text_is_told_and_never_made() {
    let forms = [
        r#"{"name": "mail", "arguments": {"to": "ada"}}"#,
        "```json\n{\"name\": \"mail\", \"parameters\": {}}\n```",
        "I will call it.\n```\n{\"tool\": \"mail\", \"input\": {}}\n```",
        r#"<tool_call>{"name": "mail", "arguments": {}}</tool_call>"#,
        r#"[{"type": "function", "function": {"name": "mail", "arguments": "{}"}}]"#,
    ];
    for form in forms {
        let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
        run.answer(text(form));
        let told = "You wrote a call of the tool `mail` as text, so it was not made. Call the tool natively, not in \
                    text.";
        assert_eq!(run.sent(2), [(ChatRole::Assistant, form.to_owned()), (ChatRole::User, told.to_owned())]);
        run.answer(text(form)).answer(text(form));
        let (code, error) = run.error();
        assert_eq!(code, "INVALID_ACTION", "{error}");
    }
    for answer in [r#"{"name": "Ada", "arguments": []}"#, r#"{"name": "mail"}"#, "mail {", "```\nmail\n```"] {
        let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
        run.answer(text(answer));
        assert_eq!(run.finish()["payload"], answer);
    }
}

#[test]
fn unknown_outcomes_are_asked_when_nothing_else_moves() {
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    run.answer(calls(&[
        ("mail", r#"{"to": "a"}"#),
        ("weather", r#"{"place": "x"}"#),
        ("mail", r#"{"to": "b"}"#),
    ]));
    let (first, second) = (run.open[0].id(), run.open[2].id());
    let unknown =
        |effect| move |at| Fact::ToolOutcomeUnknown { at, effect, reason: "It crashed.".to_owned() };
    run.feed(unknown(second)).unwrap();
    assert_eq!(run.status(), Status::Running);
    run.feed(unknown(first)).unwrap();
    assert_eq!(run.status(), Status::Running);
    run.ok("weather", json!("sunny"));
    let Status::Waiting(questions) = run.status() else { panic!("it does not wait") };
    let asked: Vec<_> = questions.iter().map(|question| question.call.input["to"].clone()).collect();
    assert_eq!(asked, ["a", "b"]);
    // An answer about a call that is not asked is refused, and changes nothing.
    let tool = Fact::ToolReturned { at: run.at, effect: first, result: ToolResult::ok(json!(1)), tries: 1 };
    assert!(matches!(run.feed(|_| tool), Err(StepError::Feed(FeedError::UnexpectedFact { .. }))));
    let resolved =
        |effect| move |at| Fact::OutcomeResolved { at, effect, result: ToolResult::ok(json!("sent")) };
    run.feed(resolved(second)).unwrap();
    let Status::Waiting(questions) = run.status() else { panic!("it does not wait") };
    assert_eq!(questions.len(), 1);
    run.feed(resolved(first)).unwrap();
    assert_eq!(run.results().len(), 3);
    run.answer(text("Done."));
    run.finish();
}

#[test]
fn an_unknown_outcome_may_end_the_run_once_the_other_calls_have_returned() {
    let fail = with(|spec, own| {
        spec.tools[2].on_unknown = OnUnknown::Fail;
        own.parallel_tools = 3;
    });
    let mut run = TestRun::start(fail, json!({"payload": "Go."}));
    let mut answer = three();
    answer.tool_calls.push(requested("c4", "light", r#"{"on": false}"#));
    run.answer(answer).unknown("mail");
    // The queued call is not made any more. The open ones go on.
    assert_eq!(run.status(), Status::Ending);
    run.ok("light", json!("on")).ok("weather", json!("sunny"));
    let message = run.finish();
    assert_eq!(message["error"]["code"], "TOOL_OUTCOME_UNKNOWN");
    let history = message["envelope"]["tools"]["history"].as_array().unwrap();
    let outcomes: Vec<Value> = history.iter().map(|item| item.get("outcome").cloned().into()).collect();
    assert_eq!(outcomes, [json!(null), json!(null), json!("unknown"), json!(null)]);
    assert_eq!(history[3]["error"], "The run ends, so this call was not made.");
}

#[test]
fn the_history_has_the_input_of_a_call_that_was_not_made() {
    let mut run = TestRun::start(spec(), json!({"payload": "Go."}));
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    run.answer(calls(&[("weather", r#"{"place": 4}"#), ("gone", &deep)])).answer(text("Done."));
    let history = run.finish()["envelope"]["tools"]["history"].clone();
    assert_eq!((&history[0]["input"], &history[1]["input"]), (&json!({"place": 4}), &json!({})));
}
