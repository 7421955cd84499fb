//! Whole runs, as a user sees them.

use crate::script::{
    RUN, START, ScriptStep, ScriptedRun, calculate, final_answer, run_script, run_script_on, send_mail, spec,
    turn, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::node::{OnUnknown, StopCondition};
use redflow_contract::run::WaitingCall;
use redflow_contract::transcript::ChatRole;
use redflow_machine::{Question, Status};
use serde_json::{Value, json};

#[test]
fn plain_final() {
    insta::assert_json_snapshot!(run_script(spec(), &[final_answer("4")]).details());
}

#[test]
fn calculator_loop() {
    let script = [
        calculate("2+2", 0.25),
        ScriptStep::ToolOutput(json!(4)),
        calculate("4/0", 0.5),
        ScriptStep::ToolFailure("Division by zero."),
        final_answer("It is 4."),
    ];
    insta::assert_json_snapshot!(run_script(spec(), &script).details());
}

#[test]
fn everything_on() {
    let spec = with(|spec| {
        spec.memory = true;
        spec.model_response_wired = true;
        spec.debug = true;
    });
    let turns = vec![turn(ChatRole::User, "hello"), turn(ChatRole::Assistant, "good day")];
    let script = [
        ScriptStep::Recalled(turns),
        calculate("2+2", 0.25),
        ScriptStep::ToolOutput(json!({"result": 4})),
        final_answer("It is 4."),
        ScriptStep::Appended,
    ];
    insta::assert_json_snapshot!(run_script(spec, &script).details());
}

#[test]
fn overflow() {
    let spec = with(|spec| spec.max_iterations = 1);
    insta::assert_json_snapshot!(
        run_script(spec, &[calculate("2+2", 0.25), ScriptStep::ToolOutput(json!(4))]).details()
    );
}

#[test]
fn an_invalid_answer_ends_the_run() {
    let script = [
        calculate("2+2", 0.25),
        ScriptStep::ToolOutput(json!(4)),
        ScriptStep::ModelText("Let me think …".to_owned()),
    ];
    let scripted = run_script(spec(), &script);
    let out = scripted.out();
    let error = json!({
        "code": "INVALID_JSON",
        "message": "The answer is not exactly one JSON object; reading stopped at line 1, column 1.",
        "rule": "json",
        "iteration": 2,
    });
    assert_eq!((&out["payload"], &out["agentResult"]["error"]), (&error, &error));
    let source = json!({"id": "agent", "type": "agent-core", "name": "Counting", "count": 1});
    assert_eq!(out["error"], on_message(error, source));
    let result = &out["agentResult"];
    assert_eq!((&result["message"], &result["finalAction"]), (&Value::Null, &Value::Null));
    assert_eq!(result["stopReason"], "error");
    assert_eq!(out["envelope"]["state"]["lastAction"], "tool", "the last valid one");
    assert_eq!(out["envelope"]["model"]["lastResponse"]["tool"], "calculator");
    assert_eq!(
        scripted.envelope_events(),
        ["1 model_response", "1 tool_request", "1 tool_response", "2 model_response", "2 error"]
    );
    let last_answer = &out["envelope"]["observability"]["events"][3];
    assert_eq!(last_answer["durationMs"], 10);
    for absent in ["confidence", "tool", "preview", "error"] {
        assert!(last_answer.get(absent).is_none(), "{absent}");
    }
    let shown = format!("{out}{:?}", scripted.events);
    assert!(!shown.contains("Let me think"), "without debug an invalid answer is shown nowhere");
}

#[test]
fn debug_shows_the_start_of_an_invalid_answer() {
    let answer = format!("Let me think {}", "…".repeat(300));
    let scripted = run_script(with(|spec| spec.debug = true), &[ScriptStep::ModelText(answer.clone())]);
    let out = scripted.out();
    let events = &out["envelope"]["observability"]["events"];
    assert_eq!(events[0]["action"], "model_response");
    assert_eq!(events[0]["preview"], answer.chars().take(200).collect::<String>());
    assert_eq!(events[1]["action"], "error");
    assert!(events[1].get("preview").is_none());
    assert!(!out["error"].to_string().contains("think"), "the error itself never repeats the answer");
}

#[test]
fn an_incoming_error_is_not_an_error_of_this_run() {
    let message =
        json!({"payload": "2+2", "error": {"message": "caught", "source": {"id": "other"}}, "_error": 1});
    let scripted =
        run_script_on(with(|spec| spec.model_response_wired = true), message, None, &[final_answer("4")]);
    let out = scripted.out();
    assert_eq!((out.get("error"), &out["_error"]["message"]), (None, &json!("caught")));
    let Some(Effect::EmitModelResponse { message, .. }) = scripted.effects.get(1) else { panic!() };
    assert_eq!((message.get("error"), &message["_error"]["message"]), (None, &json!("caught")));
}

/// The error as `msg.error` has it.
fn on_message(mut error: Value, source: Value) -> Value {
    error["source"] = source;
    error
}

#[test]
fn a_tool_that_is_not_allowed_is_not_called() {
    let action = json!({"action": "tool", "tool": "shell", "input": {}, "confidence": 1}).to_string();
    let scripted =
        run_script(with(|spec| spec.model_response_wired = true), &[ScriptStep::ModelText(action)]);
    assert_eq!(scripted.effect_names(), ["call_model", "finish"], "nothing on port 4 either");
    let out = scripted.out();
    assert_eq!(out["error"]["code"], "TOOL_NOT_ALLOWED");
    assert_eq!(out["envelope"]["tools"]["history"], json!([]));
    assert_eq!(out["envelope"].get("model"), None);
    assert!(out["envelope"]["state"].get("lastAction").is_none());
}

#[test]
fn checks_stop_conditions_in_their_order() {
    let confident = StopCondition::ConfidenceThreshold { value: 0.5 };
    let limit = |value| StopCondition::IterationLimit { value };
    let cases = [
        (vec![StopCondition::FinalAnswer {}, confident], 1, "confidence_threshold"),
        (vec![limit(1)], 1, "iteration_limit"),
        (vec![limit(2)], 2, "iteration_limit"),
        (vec![limit(3)], 3, "iteration_limit"),
        (vec![limit(1), confident], 1, "iteration_limit"),
        (vec![confident, limit(1)], 1, "confidence_threshold"),
    ];
    for (conditions, iterations, reason) in cases {
        let case = format!("{conditions:?}");
        let mut script = Vec::new();
        for _ in 0..iterations {
            script.extend([calculate("2+2", 0.5), ScriptStep::ToolOutput(json!([4]))]);
        }
        let scripted = run_script(with(|spec| spec.stop_conditions = conditions), &script);
        let out = scripted.out();
        assert_eq!(out["payload"], json!([4]), "{case}");
        let result = json!({
            "completed": false, "iterations": iterations, "traceId": RUN, "message": null,
            "finalAction": "tool", "stopReason": reason,
        });
        assert_eq!(out["agentResult"], result, "{case}");
        assert_eq!(out.get("error"), None);
        assert_eq!(out["envelope"]["state"]["completed"], false);
        assert_eq!(scripted.envelope_events().last(), Some(&format!("{iterations} stopped")), "{case}");
    }
}

#[test]
fn a_false_stop_condition_does_not_stop_the_run() {
    let conditions = vec![
        StopCondition::ConfidenceThreshold { value: 0.9 },
        StopCondition::IterationLimit { value: 9 },
        StopCondition::FinalAnswer {},
    ];
    let spec = with(|spec| spec.stop_conditions = conditions);
    let scripted =
        run_script(spec, &[calculate("2+2", 0.8), ScriptStep::ToolOutput(json!(4)), final_answer("4")]);
    assert_eq!(scripted.out()["agentResult"]["stopReason"], "final_answer");
}

#[test]
fn a_run_stopped_after_a_failed_call_has_no_output() {
    let spec = with(|spec| {
        spec.stop_conditions = vec![StopCondition::IterationLimit { value: 1 }];
        spec.memory = true;
    });
    let script = [ScriptStep::Recalled(Vec::new()), send_mail(), ScriptStep::ToolFailure("No such mailbox.")];
    let scripted = run_script(spec, &script);
    let out = scripted.out();
    assert_eq!(out["payload"], Value::Null);
    assert_eq!(out["agentResult"]["message"], "Sending.", "the last valid action's");
    assert!(!scripted.effect_names().contains(&"append_memory"), "only a final answer is remembered");
    let item = json!({
        "iteration": 1, "tool": "mail", "input": {"to": "ada"}, "output": null, "success": false,
        "error": "No such mailbox.", "durationMs": 10, "callId": format!("{RUN}:1"),
    });
    assert_eq!(out["envelope"]["tools"]["history"], json!([item]));
}

#[test]
fn every_tool_call_has_its_own_key() {
    let script = [
        calculate("1", 0.1),
        ScriptStep::ToolOutput(json!(1)),
        calculate("1", 0.1),
        ScriptStep::ToolOutput(json!(1)),
        final_answer("1"),
    ];
    let calls = |scripted: &ScriptedRun| -> Vec<_> {
        let call = |effect: &Effect| match effect {
            Effect::CallTool { call, .. } => Some(call.clone()),
            _ => None,
        };
        scripted.effects.iter().filter_map(call).collect()
    };
    let (first, again) = (calls(&run_script(spec(), &script)), calls(&run_script(spec(), &script)));
    assert_eq!(first, again);
    let [one, two] = first.as_slice() else { panic!("two calls") };
    assert_eq!((one.call_id.as_str(), one.iteration), ("0197-run:1", 1));
    assert_ne!(one.idempotency_key, two.idempotency_key);
    assert_eq!((one.node.as_str(), one.timeout_ms), ("node-calculator", 30_000));
}

#[test]
fn formats_the_input_for_the_model() {
    let cases = [
        (json!({"payload": "as it is"}), "as it is", json!("as it is")),
        (json!({"payload": {"b": 1, "a": "x"}}), r#"{"b":1,"a":"x"}"#, json!({"b": 1, "a": "x"})),
        (json!({"payload": 1.5}), "1.5", json!(1.5)),
        (json!({"topic": "no payload"}), "null", Value::Null),
    ];
    for (message, text, input) in cases {
        let scripted = run_script_on(spec(), message, None, &[final_answer("ok")]);
        let Some(Effect::CallModel { transcript, .. }) = scripted.effects.first() else { panic!("no call") };
        assert_eq!(transcript.segments()[1].content, text);
        assert_eq!(scripted.out()["envelope"]["input"], input);
        assert_eq!(scripted.out()["payload"], "ok");
    }
}

#[test]
fn a_final_action_without_a_message_is_the_payload() {
    let spec = with(|spec| spec.memory = true);
    let script = [
        ScriptStep::Recalled(Vec::new()),
        ScriptStep::ModelText(r#"{"action":"final","input":{"sum":4}}"#.to_owned()),
        ScriptStep::Appended,
    ];
    let scripted = run_script(spec, &script);
    let action = json!({"action": "final", "input": {"sum": 4}});
    assert_eq!(scripted.out()["payload"], action);
    assert_eq!(scripted.out()["agentResult"]["message"], Value::Null);
    let Some(Effect::AppendMemory { turn, session, run_id, .. }) = scripted.effects.get(2) else { panic!() };
    assert_eq!((session.as_str(), run_id.as_str()), ("ada", RUN));
    assert_eq!(turn[0].content, "2+2");
    assert_eq!(turn[1].content, action.to_string());
}

#[test]
fn uses_the_memory_only_with_a_session() {
    let memory = with(|spec| spec.memory = true);
    let without = run_script_on(memory, json!({"payload": "x"}), None, &[final_answer("y")]);
    assert_eq!(without.effect_names(), ["call_model", "finish"]);
    let unbound = run_script_on(spec(), json!({"payload": "x"}), Some("ada"), &[final_answer("y")]);
    assert_eq!(unbound.effect_names(), ["call_model", "finish"]);
    assert_eq!(unbound.out()["envelope"].get("memory"), None);
}

#[test]
fn a_run_continues_if_its_memory_fails() {
    let spec = with(|spec| spec.memory = true);
    let scripted =
        run_script(spec, &[ScriptStep::MemoryFailure, final_answer("4"), ScriptStep::MemoryFailure]);
    let out = scripted.out();
    assert_eq!(out["agentResult"]["completed"], true);
    assert_eq!(
        scripted.envelope_events(),
        ["0 memory_error", "1 model_response", "1 memory_error", "1 completed"]
    );
    let event = &out["envelope"]["observability"]["events"][0];
    assert_eq!(event["error"]["code"], "MEMORY_ERROR");
    assert_eq!(event["durationMs"], 10);
    assert_eq!(out["envelope"].get("memory"), None, "nothing was recalled");
    let names =
        ["run_started", "memory_failed", "model_called", "model_answered", "memory_failed", "run_finished"];
    assert_eq!(scripted.event_names(), names);
}

#[test]
fn waits_until_a_person_gives_the_outcome() {
    for (resolution, observation, success) in [
        (ScriptStep::Happened(json!({"id": 7})), json!({"success": true, "output": {"id": 7}}), true),
        (ScriptStep::Happened(Value::Null), json!({"success": true, "output": null}), true),
        (ScriptStep::NeverHappened, json!({"success": false, "error": "It never happened."}), false),
    ] {
        let mut scripted = ScriptedRun::start(spec(), json!({"payload": "x"}), None);
        scripted.next(send_mail()).unwrap();
        scripted.next(ScriptStep::OutcomeUnknown).unwrap();
        let call = WaitingCall {
            call_id: "0197-run:1".into(),
            tool: "mail".to_owned(),
            iteration: 1,
            asked_at: crate::script::START + 10,
            input: [("to".to_owned(), json!("ada"))].into_iter().collect(),
        };
        let parked = Status::Waiting(vec![Question { effect: scripted.open(), call }]);
        assert_eq!(scripted.status(), parked);
        assert_eq!(scripted.effect_names(), ["call_model", "call_tool"], "no effect for a parked run");
        assert_eq!(scripted.event_names().last().unwrap(), "waiting_for_outcome");
        scripted.next(resolution).unwrap();
        assert_eq!(
            scripted.effect_names(),
            ["call_model", "call_tool", "call_model"],
            "the call is not made again"
        );
        let Some(Effect::CallModel { transcript, .. }) = scripted.effects.last() else { panic!() };
        assert_eq!(transcript.segments().last().unwrap().content, observation.to_string());
        scripted.next(final_answer("done")).unwrap();
        let item = &scripted.out()["envelope"]["tools"]["history"][0];
        assert_eq!((&item["success"], item.get("outcome")), (&json!(success), None));
        assert_eq!(item["durationMs"], 20);
    }
}

#[test]
fn an_unknown_outcome_may_end_the_run() {
    let spec = with(|spec| spec.tools[1].on_unknown = OnUnknown::Fail);
    let scripted = run_script(spec, &[send_mail(), ScriptStep::OutcomeUnknown]);
    let out = scripted.out();
    assert_eq!(out["error"]["code"], "TOOL_OUTCOME_UNKNOWN");
    assert_eq!(
        out["error"]["message"],
        "Nobody knows whether the call of tool `mail` happened: The connection was lost."
    );
    let item = json!({
        "iteration": 1, "tool": "mail", "input": {"to": "ada"}, "output": null, "success": false,
        "error": "The connection was lost.", "outcome": "unknown", "durationMs": 10, "callId": format!("{RUN}:1"),
    });
    assert_eq!(out["envelope"]["tools"]["history"], json!([item]));
    assert_eq!(scripted.envelope_events(), ["1 model_response", "1 tool_request", "1 error"]);
}

#[test]
fn cancel_and_deadline_end_a_run_in_every_phase() {
    let memory = || with(|spec| spec.memory = true);
    let recalled = || ScriptStep::Recalled(Vec::new());
    let places: [(&str, Vec<ScriptStep>, u32, bool); 4] = [
        ("recalling", vec![], 0, false),
        ("asking", vec![recalled()], 1, false),
        ("calling", vec![recalled(), calculate("2+2", 0.1)], 1, true),
        ("parked", vec![recalled(), send_mail(), ScriptStep::OutcomeUnknown], 1, true),
    ];
    for (end, code) in [(ScriptStep::Cancel, "CANCELLED"), (ScriptStep::Deadline, "TIMEOUT")] {
        for (place, script, iteration, open_call) in &places {
            let mut script = script.clone();
            script.push(end.clone());
            let scripted = run_script(memory(), &script);
            let out = scripted.out();
            assert_eq!(out["error"]["code"], code, "{place}");
            assert_eq!(out["error"]["iteration"], *iteration, "{place}");
            assert_eq!(out["agentResult"]["completed"], false);
            let history = out["envelope"]["tools"]["history"].as_array().unwrap();
            assert_eq!(history.len(), usize::from(*open_call), "{place}");
            for item in history {
                assert_eq!(
                    (&item["success"], &item["outcome"]),
                    (&json!(false), &json!("unknown")),
                    "{place}"
                );
            }
            assert!(!scripted.effect_names().contains(&"append_memory"));
        }
    }
    let cancelled = run_script(spec(), &[ScriptStep::Cancel]).out();
    assert_eq!(cancelled["error"]["message"], "The run was cancelled: by the user");
    let late = run_script(spec(), &[ScriptStep::Deadline]).out();
    assert_eq!(late["error"]["message"], "The run did not end within its 300000 ms.");
}

/// A cancel or deadline after the final answer does not discard it. Only the memory may miss it.
#[test]
fn keeps_the_final_answer_if_the_memory_is_interrupted() {
    for end in [ScriptStep::Cancel, ScriptStep::Deadline] {
        let script = [ScriptStep::Recalled(Vec::new()), final_answer("4"), end];
        let scripted = run_script(with(|spec| spec.memory = true), &script);
        assert_eq!(scripted.out()["agentResult"]["completed"], true);
        assert_eq!(scripted.out()["payload"], "4");
        assert_eq!(scripted.out().get("error"), None);
        assert_eq!(scripted.envelope_events(), ["1 model_response", "1 completed"]);
    }
}

#[test]
fn port_4_carries_every_valid_answer() {
    let spec = with(|spec| spec.model_response_wired = true);
    let scripted =
        run_script(spec, &[calculate("2+2", 0.5), ScriptStep::ToolOutput(json!(4)), final_answer("4")]);
    assert_eq!(
        scripted.effect_names(),
        ["call_model", "emit_model_response", "call_tool", "call_model", "emit_model_response", "finish"]
    );
    let Effect::EmitModelResponse { message, .. } = &scripted.effects[1] else { panic!() };
    assert_eq!(message.keys().collect::<Vec<_>>(), ["_msgid", "payload", "topic", "envelope", "agentResult"]);
    assert_eq!(message["payload"]["action"], "tool");
    let result = json!({
        "iteration": 1, "traceId": RUN, "action": "tool", "tool": "calculator", "confidence": 0.5, "message": null,
    });
    assert_eq!(message["agentResult"], result);
    assert_eq!(message["envelope"]["state"]["completed"], false);
    let Effect::EmitModelResponse { message, .. } = &scripted.effects[4] else { panic!() };
    assert_eq!(message["envelope"]["state"]["completed"], true);
    assert_eq!(message["envelope"]["tools"]["history"].as_array().unwrap().len(), 1);
}

#[test]
fn only_debug_shows_prompts_and_previews() {
    let long = "9".repeat(300);
    let script = [calculate(&long, 0.5), ScriptStep::ToolOutput(json!(long)), final_answer("4")];
    let shown = run_script(with(|spec| spec.debug = true), &script);
    let out = shown.out();
    let prompt = out["envelope"]["model"]["lastPrompt"].as_str().unwrap();
    assert!(prompt.starts_with("system: You are an execution agent.\n"));
    assert!(prompt.contains("\n\nuser: 2+2\n\nassistant: {\"action\":\"tool\""));
    assert!(prompt.ends_with("\"}"), "up to the last observation, which was sent");
    for event in out["envelope"]["observability"]["events"].as_array().unwrap() {
        let expected = match event["action"].as_str().unwrap() {
            "completed" => None,
            "tool_response" => Some("9".repeat(200)),
            "model_response" if event["iteration"] == 2 => {
                Some(r#"{"action":"final","message":"4","confidence":0.75}"#.to_owned())
            }
            _ => Some(event["preview"].as_str().unwrap().to_owned()),
        };
        assert_eq!(event.get("preview").map(|text| text.as_str().unwrap().to_owned()), expected);
        assert!(expected.is_none_or(|text| text.chars().count() <= 200));
    }
    // The previews of model calls: the input, then the tool's result as the prompt has it.
    let previews: Vec<&str> = shown
        .events
        .iter()
        .filter_map(|event| match &event.event {
            RunEventKind::ModelCalled { preview, .. } => preview.as_deref(),
            _ => None,
        })
        .collect();
    let observation = format!(r#"{{"success":true,"output":"{long}"}}"#);
    assert!(prompt.ends_with(&observation));
    assert_eq!(previews, ["2+2", &observation[..200]]);
    let hidden = run_script(spec(), &script);
    assert!(
        !hidden.out().to_string().contains("preview") && !hidden.out().to_string().contains("lastPrompt")
    );
    assert!(!format!("{:?}", hidden.events).contains("preview: Some"));
}

#[test]
fn durations_are_never_negative() {
    let mut scripted = ScriptedRun::start(spec(), json!({"payload": 1}), None);
    let effect = scripted.open();
    scripted.feed(final_answer("x").fact(5, effect)).unwrap();
    let events = &scripted.out()["envelope"]["observability"]["events"];
    assert_eq!(events[0]["durationMs"], 0);
    assert_eq!(events[0]["at"], "1970-01-01T00:00:00.005Z");
}

#[test]
fn ignores_the_output_of_a_failed_call() {
    let mut scripted = ScriptedRun::start(spec(), json!({"payload": 1}), None);
    scripted.next(send_mail()).unwrap();
    let (effect, mut result) = (scripted.open(), ToolResult::failed("Half done."));
    result.output = Some(json!("half"));
    scripted.feed(Fact::ToolReturned { at: START, effect, result, tries: 1 }).unwrap();
    scripted.next(final_answer("x")).unwrap();
    assert_eq!(scripted.out()["envelope"]["tools"]["history"][0]["output"], Value::Null);
}

#[test]
fn debug_shows_no_prompt_before_one_was_sent() {
    let spec = with(|spec| (spec.debug, spec.memory) = (true, true));
    assert_eq!(run_script(spec, &[ScriptStep::Cancel]).out()["envelope"].get("model"), None);
}
