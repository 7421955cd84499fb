//! What a user sees of whole runs.

use crate::script::{
    Next, Play, RUN, START, calculate, finally, play, play_message, send_mail, spec, turn, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::effect::Effect;
use redflow_contract::event::RunEventKind;
use redflow_contract::fact::{Fact, ToolResult};
use redflow_contract::node_config::{OnUnknown, StopCondition};
use redflow_contract::transcript::ChatRole;
use redflow_react::Status;
use serde_json::{Value, json};

#[test]
fn plain_final() {
    insta::assert_json_snapshot!(play(spec(), &[finally("4")]).story());
}

#[test]
fn calculator_loop() {
    let script = [
        calculate("2+2", 0.25),
        Next::Gives(json!(4)),
        calculate("4/0", 0.5),
        Next::Fails("Division by zero."),
        finally("It is 4."),
    ];
    insta::assert_json_snapshot!(play(spec(), &script).story());
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
        Next::Recalls(turns),
        calculate("2+2", 0.25),
        Next::Gives(json!({"result": 4})),
        finally("It is 4."),
        Next::Appended,
    ];
    insta::assert_json_snapshot!(play(spec, &script).story());
}

#[test]
fn overflow() {
    let spec = with(|spec| spec.max_iterations = 1);
    insta::assert_json_snapshot!(play(spec, &[calculate("2+2", 0.25), Next::Gives(json!(4))]).story());
}

#[test]
fn an_invalid_answer_ends_the_run() {
    let script = [calculate("2+2", 0.25), Next::Gives(json!(4)), Next::Says("Let me think …".to_owned())];
    let play = play(spec(), &script);
    let out = play.out();
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
        play.envelope_events(),
        ["1 model_response", "1 tool_request", "1 tool_response", "2 model_response", "2 error"]
    );
    let last_answer = &out["envelope"]["observability"]["events"][3];
    assert_eq!(last_answer["durationMs"], 10);
    for absent in ["confidence", "tool", "preview", "error"] {
        assert!(last_answer.get(absent).is_none(), "{absent}");
    }
    let shown = format!("{out}{:?}", play.events);
    assert!(!shown.contains("Let me think"), "without debug an invalid answer is shown nowhere");
}

#[test]
fn debug_shows_the_beginning_of_an_invalid_answer() {
    let answer = format!("Let me think {}", "…".repeat(300));
    let play = play(with(|spec| spec.debug = true), &[Next::Says(answer.clone())]);
    let out = play.out();
    let events = &out["envelope"]["observability"]["events"];
    assert_eq!(events[0]["action"], "model_response");
    assert_eq!(events[0]["preview"], answer.chars().take(200).collect::<String>());
    assert_eq!(events[1]["action"], "error");
    assert!(events[1].get("preview").is_none());
    assert!(!out["error"].to_string().contains("think"), "the error itself never repeats the answer");
}

#[test]
fn an_error_that_came_in_is_no_error_of_this_run() {
    let message =
        json!({"payload": "2+2", "error": {"message": "caught", "source": {"id": "other"}}, "_error": 1});
    let play = play_message(with(|spec| spec.model_response_wired = true), message, None, &[finally("4")]);
    let out = play.out();
    assert_eq!((out.get("error"), &out["_error"]["message"]), (None, &json!("caught")));
    let Some(Effect::EmitModelResponse { message, .. }) = play.effects.get(1) else { panic!() };
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
    let play = play(with(|spec| spec.model_response_wired = true), &[Next::Says(action)]);
    assert_eq!(play.effect_names(), ["call_model", "finish"], "nothing on port 4 either");
    let out = play.out();
    assert_eq!(out["error"]["code"], "TOOL_NOT_ALLOWED");
    assert_eq!(out["envelope"]["tools"]["history"], json!([]));
    assert_eq!(out["envelope"].get("model"), None);
    assert!(out["envelope"]["state"].get("lastAction").is_none());
}

#[test]
fn stop_conditions_hold_in_their_order() {
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
            script.extend([calculate("2+2", 0.5), Next::Gives(json!([4]))]);
        }
        let play = play(with(|spec| spec.stop_conditions = conditions), &script);
        let out = play.out();
        assert_eq!(out["payload"], json!([4]), "{case}");
        let result = json!({
            "completed": false, "iterations": iterations, "traceId": RUN, "message": null,
            "finalAction": "tool", "stopReason": reason,
        });
        assert_eq!(out["agentResult"], result, "{case}");
        assert_eq!(out.get("error"), None);
        assert_eq!(out["envelope"]["state"]["completed"], false);
        assert_eq!(play.envelope_events().last(), Some(&format!("{iterations} stopped")), "{case}");
    }
}

#[test]
fn a_stop_condition_that_does_not_hold_stops_nothing() {
    let conditions = vec![
        StopCondition::ConfidenceThreshold { value: 0.9 },
        StopCondition::IterationLimit { value: 9 },
        StopCondition::FinalAnswer {},
    ];
    let spec = with(|spec| spec.stop_conditions = conditions);
    let play = play(spec, &[calculate("2+2", 0.8), Next::Gives(json!(4)), finally("4")]);
    assert_eq!(play.out()["agentResult"]["stopReason"], "final_answer");
}

#[test]
fn a_run_stopped_after_a_failed_call_has_no_output() {
    let spec = with(|spec| {
        spec.stop_conditions = vec![StopCondition::IterationLimit { value: 1 }];
        spec.memory = true;
    });
    let script = [Next::Recalls(Vec::new()), send_mail(), Next::Fails("No such mailbox.")];
    let play = play(spec, &script);
    let out = play.out();
    assert_eq!(out["payload"], Value::Null);
    assert_eq!(out["agentResult"]["message"], "Sending.", "the last valid action's");
    assert!(!play.effect_names().contains(&"append_memory"), "only a final answer is remembered");
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
        Next::Gives(json!(1)),
        calculate("1", 0.1),
        Next::Gives(json!(1)),
        finally("1"),
    ];
    let calls = |play: &Play| -> Vec<_> {
        let call = |effect: &Effect| match effect {
            Effect::CallTool { call, .. } => Some(call.clone()),
            _ => None,
        };
        play.effects.iter().filter_map(call).collect()
    };
    let (first, again) = (calls(&play(spec(), &script)), calls(&play(spec(), &script)));
    assert_eq!(first, again);
    let [one, two] = first.as_slice() else { panic!("two calls") };
    assert_eq!((one.call_id.as_str(), one.iteration), ("0197-run:1", 1));
    assert_ne!(one.idempotency_key, two.idempotency_key);
    assert_eq!((one.node.as_str(), one.timeout_ms), ("node-calculator", 30_000));
}

#[test]
fn the_input_as_the_model_reads_it() {
    let cases = [
        (json!({"payload": "as it is"}), "as it is", json!("as it is")),
        (json!({"payload": {"b": 1, "a": "x"}}), r#"{"b":1,"a":"x"}"#, json!({"b": 1, "a": "x"})),
        (json!({"payload": 1.5}), "1.5", json!(1.5)),
        (json!({"topic": "no payload"}), "null", Value::Null),
    ];
    for (message, text, input) in cases {
        let play = play_message(spec(), message, None, &[finally("ok")]);
        let Some(Effect::CallModel { transcript, .. }) = play.effects.first() else { panic!("no call") };
        assert_eq!(transcript.segments()[1].content, text);
        assert_eq!(play.out()["envelope"]["input"], input);
        assert_eq!(play.out()["payload"], "ok");
    }
}

#[test]
fn a_final_action_without_a_message_is_the_payload() {
    let spec = with(|spec| spec.memory = true);
    let script = [
        Next::Recalls(Vec::new()),
        Next::Says(r#"{"action":"final","input":{"sum":4}}"#.to_owned()),
        Next::Appended,
    ];
    let play = play(spec, &script);
    let action = json!({"action": "final", "input": {"sum": 4}});
    assert_eq!(play.out()["payload"], action);
    assert_eq!(play.out()["agentResult"]["message"], Value::Null);
    let Some(Effect::AppendMemory { turn, session, run_id, .. }) = play.effects.get(2) else { panic!() };
    assert_eq!((session.as_str(), run_id.as_str()), ("ada", RUN));
    assert_eq!(turn[0].content, "2+2");
    assert_eq!(turn[1].content, action.to_string());
}

#[test]
fn memory_is_only_used_where_there_is_a_session() {
    let memory = with(|spec| spec.memory = true);
    let without = play_message(memory, json!({"payload": "x"}), None, &[finally("y")]);
    assert_eq!(without.effect_names(), ["call_model", "finish"]);
    let unbound = play_message(spec(), json!({"payload": "x"}), Some("ada"), &[finally("y")]);
    assert_eq!(unbound.effect_names(), ["call_model", "finish"]);
    assert_eq!(unbound.out()["envelope"].get("memory"), None);
}

#[test]
fn a_run_goes_on_without_its_memory() {
    let spec = with(|spec| spec.memory = true);
    let play = play(spec, &[Next::MemoryFails, finally("4"), Next::MemoryFails]);
    let out = play.out();
    assert_eq!(out["agentResult"]["completed"], true);
    assert_eq!(
        play.envelope_events(),
        ["0 memory_error", "1 model_response", "1 memory_error", "1 completed"]
    );
    let event = &out["envelope"]["observability"]["events"][0];
    assert_eq!(event["error"]["code"], "MEMORY_ERROR");
    assert_eq!(event["durationMs"], 10);
    assert_eq!(out["envelope"].get("memory"), None, "nothing was recalled");
    let names =
        ["run_started", "memory_failed", "model_called", "model_answered", "memory_failed", "run_finished"];
    assert_eq!(play.event_names(), names);
}

#[test]
fn parked_until_someone_knows() {
    for (resolution, observation, success) in [
        (Next::Done(json!({"id": 7})), json!({"success": true, "output": {"id": 7}}), true),
        (Next::Done(Value::Null), json!({"success": true, "output": null}), true),
        (Next::NotDone, json!({"success": false, "error": "It never happened."}), false),
    ] {
        let mut play = Play::start(spec(), json!({"payload": "x"}), None);
        play.next(send_mail()).unwrap();
        play.next(Next::Unknown).unwrap();
        let parked = Status::WaitingOutcome {
            effect: play.open(),
            call_id: "0197-run:1".into(),
            tool: "mail".to_owned(),
            iteration: 1,
            asked_at: crate::script::START + 10,
            input: [("to".to_owned(), json!("ada"))].into_iter().collect(),
        };
        assert_eq!(play.status(), parked);
        assert_eq!(play.effect_names(), ["call_model", "call_tool"], "no effect for a parked run");
        assert_eq!(play.event_names().last().unwrap(), "waiting_for_outcome");
        play.next(resolution).unwrap();
        assert_eq!(
            play.effect_names(),
            ["call_model", "call_tool", "call_model"],
            "the call is not made again"
        );
        let Some(Effect::CallModel { transcript, .. }) = play.effects.last() else { panic!() };
        assert_eq!(transcript.segments().last().unwrap().content, observation.to_string());
        play.next(finally("done")).unwrap();
        let item = &play.out()["envelope"]["tools"]["history"][0];
        assert_eq!((&item["success"], item.get("outcome")), (&json!(success), None));
        assert_eq!(item["durationMs"], 20);
    }
}

#[test]
fn an_unknown_outcome_may_end_the_run() {
    let spec = with(|spec| spec.tools[1].on_unknown = OnUnknown::Fail);
    let play = play(spec, &[send_mail(), Next::Unknown]);
    let out = play.out();
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
    assert_eq!(play.envelope_events(), ["1 model_response", "1 tool_request", "1 error"]);
}

#[test]
fn cancel_and_deadline_end_a_run_wherever_it_is() {
    let memory = || with(|spec| spec.memory = true);
    let recalled = || Next::Recalls(Vec::new());
    let places: [(&str, Vec<Next>, u32, bool); 4] = [
        ("recalling", vec![], 0, false),
        ("asking", vec![recalled()], 1, false),
        ("calling", vec![recalled(), calculate("2+2", 0.1)], 1, true),
        ("parked", vec![recalled(), send_mail(), Next::Unknown], 1, true),
    ];
    for (end, code) in [(Next::Cancel, "CANCELLED"), (Next::Deadline, "TIMEOUT")] {
        for (place, script, iteration, open_call) in &places {
            let mut script = script.clone();
            script.push(end.clone());
            let play = play(memory(), &script);
            let out = play.out();
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
            assert!(!play.effect_names().contains(&"append_memory"));
        }
    }
    let cancelled = play(spec(), &[Next::Cancel]).out();
    assert_eq!(cancelled["error"]["message"], "The run was cancelled: by the user");
    let late = play(spec(), &[Next::Deadline]).out();
    assert_eq!(late["error"]["message"], "The run did not end within its 300000 ms.");
}

/// Once the final answer is there, neither a cancel nor the deadline takes it away: only the memory of it may
/// be missing.
#[test]
fn an_answer_that_is_being_remembered_still_counts() {
    for end in [Next::Cancel, Next::Deadline] {
        let script = [Next::Recalls(Vec::new()), finally("4"), end];
        let play = play(with(|spec| spec.memory = true), &script);
        assert_eq!(play.out()["agentResult"]["completed"], true);
        assert_eq!(play.out()["payload"], "4");
        assert_eq!(play.out().get("error"), None);
        assert_eq!(play.envelope_events(), ["1 model_response", "1 completed"]);
    }
}

#[test]
fn port_4_carries_every_valid_answer() {
    let spec = with(|spec| spec.model_response_wired = true);
    let play = play(spec, &[calculate("2+2", 0.5), Next::Gives(json!(4)), finally("4")]);
    assert_eq!(
        play.effect_names(),
        ["call_model", "emit_model_response", "call_tool", "call_model", "emit_model_response", "finish"]
    );
    let Effect::EmitModelResponse { message, .. } = &play.effects[1] else { panic!() };
    assert_eq!(message.keys().collect::<Vec<_>>(), ["_msgid", "payload", "topic", "envelope", "agentResult"]);
    assert_eq!(message["payload"]["action"], "tool");
    let result = json!({
        "iteration": 1, "traceId": RUN, "action": "tool", "tool": "calculator", "confidence": 0.5, "message": null,
    });
    assert_eq!(message["agentResult"], result);
    assert_eq!(message["envelope"]["state"]["completed"], false);
    let Effect::EmitModelResponse { message, .. } = &play.effects[4] else { panic!() };
    assert_eq!(message["envelope"]["state"]["completed"], true);
    assert_eq!(message["envelope"]["tools"]["history"].as_array().unwrap().len(), 1);
}

#[test]
fn debug_shows_prompts_and_beginnings_and_nothing_else_does() {
    let long = "9".repeat(300);
    let script = [calculate(&long, 0.5), Next::Gives(json!(long)), finally("4")];
    let shown = play(with(|spec| spec.debug = true), &script);
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
    // What the model is told: the input, then the observation as it stands in the prompt.
    let told: Vec<&str> = shown
        .events
        .iter()
        .filter_map(|event| match &event.event {
            RunEventKind::ModelCalled { preview, .. } => preview.as_deref(),
            _ => None,
        })
        .collect();
    let observation = format!(r#"{{"success":true,"output":"{long}"}}"#);
    assert!(prompt.ends_with(&observation));
    assert_eq!(told, ["2+2", &observation[..200]]);
    let hidden = play(spec(), &script);
    assert!(
        !hidden.out().to_string().contains("preview") && !hidden.out().to_string().contains("lastPrompt")
    );
    assert!(!format!("{:?}", hidden.events).contains("preview: Some"));
}

#[test]
fn durations_never_run_backwards() {
    let mut play = Play::start(spec(), json!({"payload": 1}), None);
    let effect = play.open();
    play.feed(finally("x").fact(5, effect)).unwrap();
    let events = &play.out()["envelope"]["observability"]["events"];
    assert_eq!(events[0]["durationMs"], 0);
    assert_eq!(events[0]["at"], "1970-01-01T00:00:00.005Z");
}

#[test]
fn a_failed_call_has_no_output_even_if_it_brings_one() {
    let mut play = Play::start(spec(), json!({"payload": 1}), None);
    play.next(send_mail()).unwrap();
    let (effect, mut result) = (play.open(), ToolResult::failed("Half done."));
    result.output = Some(json!("half"));
    play.feed(Fact::ToolReturned { at: START, effect, result }).unwrap();
    play.next(finally("x")).unwrap();
    assert_eq!(play.out()["envelope"]["tools"]["history"][0]["output"], Value::Null);
}

#[test]
fn debug_shows_no_prompt_before_one_was_sent() {
    let spec = with(|spec| (spec.debug, spec.memory) = (true, true));
    assert_eq!(play(spec, &[Next::Cancel]).out()["envelope"].get("model"), None);
}
