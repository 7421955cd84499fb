//! Agents that answer: at once, after tool calls, or until a limit.

use crate::azure::{DEPLOYMENT, Turn, final_answer, tool_call, when};
use crate::conversation::text;
use crate::flows::{
    AGENT, CALCULATOR, CHANGE, CHANGE2, CHAT, DEBUG, Flow, INJECT, MODEL, agent, counting, debug,
    fresh_agent, inject, lookup, model, talking,
};
use crate::ui::Ui;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// The first lines of a frame with an inject node and one model call.
pub(crate) const ASKED: [&str; 7] = [
    "start inject",
    "out inject 0 transformed",
    "in agent-core",
    "out agent-core 0 transformed",
    "in model.azure.openai",
    "out model.azure.openai 0 transformed",
    "in agent-core",
];

/// A tool call, its result, and the next model call.
const CALCULATED: [&str; 9] = [
    "out agent-core 4 transformed",
    "in chat-node",
    "out chat-node - pass-through",
    "out agent-core 1 transformed",
    "in calculator-tool",
    "out calculator-tool 0 transformed",
    "in agent-core",
    "out agent-core 0 transformed",
    "in model.azure.openai",
];

/// The answer in the chat and in the sidebar.
pub(crate) const ANSWERED: [&str; 7] = [
    "out agent-core 4 transformed",
    "in chat-node",
    "out chat-node - pass-through",
    "out agent-core 3 transformed",
    "in debug",
    "out debug - pass-through",
    "end",
];

/// The names of the events in the envelope of a result.
pub(crate) fn actions(result: &Value) -> Vec<&str> {
    let events = result.pointer("/preview/envelope/observability/events").unwrap();
    events.as_array().unwrap().iter().map(|event| text(event, "/action")).collect()
}

#[tokio::test]
async fn a_final_answer() {
    let mut ui =
        Ui::with(vec![when("How are you?", [Turn::Act(final_answer("Fine, thanks."))])], talking).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    assert_eq!(frame.lines(), [&ASKED[..], &ANSWERED].concat());
    let run = frame.run();
    // The request to the model, in the form of Redflow's own agent.
    let asked = &frame.output(AGENT, 0)["preview"];
    assert_eq!((text(asked, "/userPrompt"), &asked["tools"]), ("How are you?", &json!([])));
    assert_eq!((text(asked, "/traceId"), &asked["envelope"]), (run.as_str(), &json!({"iteration": 1})));
    assert_eq!(frame.inputs(MODEL)[0]["preview"], *asked);
    // Its answer and its tokens.
    let action = final_answer("Fine, thanks.");
    let answered = frame.output(MODEL, 0);
    assert_eq!((&answered["preview"]["payload"], &answered["completePayload"]), (&action, &action));
    let core = json!({"type": "model_response", "traceId": run, "iteration": 1});
    assert_eq!(answered["preview"]["_agentCore"], core);
    assert_eq!(text(answered, "/preview/metadata/model"), "gpt-4-0613");
    assert_eq!(text(answered, "/preview/metadata/deployment"), DEPLOYMENT);
    assert_eq!(frame.inputs(AGENT)[1]["preview"], action);
    // The message to the chat.
    let streamed_result = json!({"iteration": 1, "traceId": run, "action": "final", "tool": null, "confidence": 0.95,
                      "message": "Fine, thanks."});
    let streamed = frame.output(AGENT, 4);
    assert_eq!(
        (&streamed["agentResult"], &streamed["preview"]["agentResult"]),
        (&streamed_result, &streamed_result)
    );
    assert_eq!((text(streamed, "/fullMessage"), &streamed["preview"]["payload"]), ("Fine, thanks.", &action));
    // The message from port 3.
    let result = json!({"completed": true, "iterations": 1, "traceId": run, "message": "Fine, thanks.",
                        "finalAction": "final", "stopReason": "final_answer"});
    let ended = frame.output(AGENT, 3);
    assert_eq!((&ended["agentResult"], text(ended, "/preview/payload")), (&result, "Fine, thanks."));
    // Each answer of the model has one event, with its duration.
    assert_eq!(actions(ended), ["model_response", "completed"]);
    assert!(ended.pointer("/preview/envelope/observability/events/0/durationMs").unwrap().is_u64());
    assert_eq!(
        (&frame.inputs(DEBUG)[0]["preview"], frame.debug_value(DEBUG)),
        (&json!("Fine, thanks."), &json!("Fine, thanks."))
    );
    let debug = ui.debug().await;
    assert_eq!(
        (&debug["id"], &debug["msg"], &debug["format"]),
        (&json!(DEBUG), &json!("Fine, thanks."), &json!("string[13]"))
    );
    assert_eq!(ui.history(CHAT).await, [("agent".to_owned(), "Fine, thanks.".to_owned())]);
    let runs = ui.runs().await;
    assert_eq!((runs.len(), text(&runs[0], "/runId")), (1, run.as_str()));
    assert_eq!(ui.azure.requests().len(), 1);
    // The answer is in the journal, and the key is not.
    let kept = ui.end().await.places_containing("Fine, thanks.");
    assert!(kept.iter().any(|file| file.contains("redflow.db")), "{kept:?}");
}

#[tokio::test]
async fn the_example_flow() {
    let example = |endpoint: &str| {
        let mut asks = inject(INJECT, "", AGENT);
        asks["payload"] = json!(r#"{"task": "Say hello", "context": "An example"}"#);
        asks["payloadType"] = json!("json");
        // As in Redflow's own example: its result wire starts at the memory port.
        let core = agent(AGENT, &[], json!([[MODEL], [], [DEBUG]]));
        Flow::new([asks, core, model(MODEL, endpoint, AGENT), debug(DEBUG)])
    };
    let mut ui = Ui::start(vec![when("Say hello", [Turn::Act(final_answer("Hello!"))])]).await;
    let mut flow = example(&ui.azure.endpoint());
    // First unchanged. Then fixed, but the UI posts deleted wires again.
    for wires in [json!([[MODEL], [], [DEBUG]]), json!([[MODEL], [], [DEBUG], [DEBUG]])] {
        flow.node(AGENT)["wires"] = wires;
        ui.deploy(&flow).await;
        let refused = ui.refused(AGENT).await;
        // The row belongs to the agent. The text names the other end and the port.
        for words in ["RESULT_ON_MEMORY_PORT", "Resultado", "port 2"] {
            assert!(refused.contains(words), "no {words}: {refused}");
        }
        // The sidebar shows the remedy too.
        let debug = ui.debug().await;
        assert_eq!((&debug["id"], &debug["level"]), (&json!(AGENT), &json!(20)));
        assert!(text(&debug, "/msg").contains("Move the wire to port 3"), "{debug}");
    }
    flow.node(AGENT)["wires"] = json!([[MODEL], [], [], [DEBUG]]);
    ui.deploy(&flow).await;
    ui.check_accepted(AGENT).await;
    ui.store_keys(&flow).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    assert_eq!(frame.lines(), [&ASKED[..], &ANSWERED[3..]].concat());
    assert_eq!(ui.debug().await["msg"], "Hello!");
    ui.end().await;
}

#[tokio::test]
async fn a_tool_iteration() {
    let rules = vec![
        when("What is 17 * 3?", [Turn::Act(tool_call("calculator", json!({"expression": "17 * 3"})))]),
        when(r#""result":51"#, [Turn::Act(final_answer("It is 51."))]),
    ];
    let mut ui = Ui::with(rules, counting).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    assert_eq!(frame.lines(), [&ASKED[..], &CALCULATED, &ASKED[5..], &ANSWERED].concat());
    let run = frame.run();
    // The model gets the tool with its schema, and later its result.
    let asked = ui.azure.requests();
    let system = text(&asked[0], "/messages/0/content");
    assert!(system.contains("calculator") && system.contains(r#""expression""#), "{system}");
    assert_eq!((asked.len(), &asked[1]["messages"][0]), (2, &asked[0]["messages"][0]));
    assert_eq!(frame.outputs(AGENT, 0)[0]["preview"]["tools"], json!([{"name": "calculator"}]));
    let second = &frame.outputs(AGENT, 0)[1]["preview"];
    assert_eq!(second["envelope"], json!({"iteration": 2}));
    assert_eq!(text(second, "/userPrompt"), text(&asked[1], "/messages/3/content"));
    // The call and its result.
    assert_eq!(frame.output(AGENT, 1)["preview"], json!({"expression": "17 * 3"}));
    assert_eq!(frame.inputs(CALCULATOR)[0]["preview"], json!({"expression": "17 * 3"}));
    let returned = json!({"result": 51, "expression": "17 * 3"});
    assert_eq!(frame.output(CALCULATOR, 0)["preview"], returned);
    assert_eq!(frame.inputs(AGENT)[2]["preview"], returned);
    let streamed = frame.outputs(AGENT, 4);
    let called = json!({"iteration": 1, "traceId": run, "action": "tool", "tool": "calculator", "confidence": 0.8,
                        "message": "asking calculator"});
    assert_eq!((streamed.len(), &streamed[0]["agentResult"]), (2, &called));
    assert_eq!(streamed[1]["agentResult"]["iteration"], 2);
    let ended = frame.output(AGENT, 3);
    let result = json!({"completed": true, "iterations": 2, "traceId": run, "message": "It is 51.",
                        "finalAction": "final", "stopReason": "final_answer"});
    assert_eq!(ended["agentResult"], result);
    let expected = ["model_response", "tool_request", "tool_response", "model_response", "completed"];
    assert_eq!(actions(ended), expected);
    let history = ended.pointer("/preview/envelope/tools/history").unwrap();
    let [call] = &history.as_array().unwrap()[..] else { panic!("{history}") };
    let (name, output) = (text(call, "/tool"), &call["output"]);
    assert_eq!(
        (name, &call["iteration"], &call["success"], output),
        ("calculator", &json!(1), &json!(true), &returned)
    );
    assert!(call["durationMs"].is_u64());
    assert_eq!(ui.debug().await["msg"], "It is 51.");
    assert_eq!(ui.runs().await.len(), 1);
    ui.end().await;
}

#[tokio::test]
async fn calls_ordinary_nodes_as_tools_by_name() {
    let rules = vec![
        when("How warm", [Turn::Act(tool_call("kitchen", json!({"room": "kitchen"})))]),
        when("21.5", [Turn::Act(final_answer("It is 21.5 degrees."))]),
    ];
    let houses = |endpoint: &str| {
        Flow::new([
            inject(INJECT, "How warm is it?", AGENT),
            agent(AGENT, &["kitchen", "cellar"], json!([[MODEL], [CHANGE, CHANGE2], [], [DEBUG]])),
            model(MODEL, endpoint, AGENT),
            lookup(CHANGE, "kitchen", "21.5", AGENT),
            lookup(CHANGE2, "cellar", "9", AGENT),
            debug(DEBUG),
        ])
    };
    let mut ui = Ui::with(rules, houses).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    let called = [
        "out agent-core 1 transformed",
        "in change",
        "out change 0 transformed",
        "in agent-core",
        "out agent-core 0 transformed",
        "in model.azure.openai",
    ];
    assert_eq!(frame.lines(), [&ASKED[..], &called, &ASKED[5..], &ANSWERED[3..]].concat());
    assert_eq!(frame.output(AGENT, 1)["preview"], json!({"room": "kitchen"}));
    assert_eq!(frame.output(CHANGE, 0)["preview"], json!({"room": "kitchen", "celsius": 21.5}));
    // The result is an observation, not a new task.
    let asked = ui.azure.requests();
    assert_eq!(asked.len(), 2);
    let roles: Vec<&str> =
        asked[1]["messages"].as_array().unwrap().iter().map(|message| text(message, "/role")).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!((ui.runs().await.len(), frame.run().is_empty()), (1, false));
    ui.end().await;
}

#[tokio::test]
async fn stop_conditions_and_the_iteration_limit_end_a_run() {
    let again = || Turn::Act(tool_call("calculator", json!({"expression": "1 + 1"})));
    let rules = || vec![when("17 * 3", [again()]), when("result", [again()])];
    let rows = [
        (json!([]), "error", Some("ITERATION_OVERFLOW"), 3),
        (json!([{"type": "iteration_limit", "value": 2}]), "iteration_limit", None, 2),
        (json!([{"type": "confidence_threshold", "value": 0.8}]), "confidence_threshold", None, 1),
    ];
    let mut ui = Ui::start(rules()).await;
    let mut flow = counting(&ui.azure.endpoint());
    let mut before = 0;
    for (conditions, reason, code, iterations) in rows {
        flow.node(AGENT)["stopConditions"] = conditions;
        ui.deploy(&flow).await;
        ui.store_keys(&flow).await;
        ui.inject(INJECT).await;
        let frame = ui.frame().await;
        let result = &frame.output(AGENT, 3)["agentResult"];
        assert_eq!((&result["completed"], &result["stopReason"]), (&json!(false), &json!(reason)));
        assert_eq!(result["iterations"], iterations);
        let codes: Vec<&str> = frame.errors().iter().map(|(_, code, _)| *code).collect();
        assert_eq!(codes, Vec::from_iter(code));
        let behavior = if code.is_some() { "terminated" } else { "transformed" };
        assert!(frame.lines().contains(&format!("out agent-core 3 {behavior}")), "{:?}", frame.lines());
        assert_eq!(ui.azure.requests().len() - before, iterations);
        before += iterations;
    }
    // The UI offers conditions that do not exist. The agent is refused, and the text has the right names.
    flow.node(AGENT)["stopConditions"] = json!([{"type": "goalAchieved", "value": "done"}]);
    ui.deploy(&flow).await;
    let refused = ui.refused(AGENT).await;
    assert!(refused.contains("CONFIG_INVALID") && refused.contains("confidence_threshold"), "{refused}");
    ui.end().await;
}

#[tokio::test]
async fn warns_about_an_ignored_prompt_template() {
    let mut ui = Ui::start(vec![when("How are you?", [Turn::Act(final_answer("Fine."))])]).await;
    let mut flow = talking(&ui.azure.endpoint());
    flow.node(AGENT)["modelPromptTemplate"] = json!("Talk like a pirate.");
    flow.node(AGENT)["debug"] = json!(true);
    ui.deploy(&flow).await;
    ui.store_keys(&flow).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    let asked = ui.azure.requests()[0].to_string();
    assert!(!asked.contains("pirate"), "{asked}");
    // With `debug` the prompt that was sent can be read.
    let prompt = frame.output(AGENT, 3).pointer("/preview/envelope/model/lastPrompt").unwrap();
    assert!(
        prompt.to_string().contains("How are you?") && !prompt.to_string().contains("pirate"),
        "{prompt}"
    );
    let report = ui.check(&flow).await;
    let codes: Vec<&str> =
        report["diagnostics"].as_array().unwrap().iter().map(|found| text(found, "/code")).collect();
    assert!(codes.contains(&"PROMPT_TEMPLATE_IGNORED"), "{codes:?}");
    ui.end().await;
}

#[tokio::test]
async fn accepts_nodes_without_tab_settings_or_wires() {
    let bare = |endpoint: &str| {
        let mut core = fresh_agent(AGENT, json!([[MODEL]]));
        core["z"] = json!("a tab that does not exist");
        let mut unwired = inject("http request-1766000000050", "", AGENT);
        unwired["type"] = json!("http request");
        unwired.as_object_mut().unwrap().remove("wires");
        Flow::new([
            inject("ask me 1.a/b", "How are you?", AGENT),
            core,
            model(MODEL, endpoint, AGENT),
            unwired,
        ])
    };
    let mut ui = Ui::with(vec![when("How are you?", [Turn::Act(final_answer("Fine."))])], bare).await;
    ui.inject("ask me 1.a/b").await;
    let frame = ui.frame().await;
    assert_eq!(frame.lines()[..3], ["start ask me 1.a/b", "out ask me 1.a/b 0 transformed", "in agent-core"]);
    let ended = frame.output(AGENT, 3);
    assert_eq!(ended["agentResult"]["completed"], true);
    ui.end().await;
}

#[tokio::test]
async fn a_new_agent_calls_the_tools_that_are_wired_to_it() {
    let rules = || {
        let call = json!({"action": "tool", "tool": "calculator", "input": {"expression": "17 * 3"}, "confidence": 0.8});
        vec![when("What is 17 * 3?", [Turn::Act(call)]), when("51", [Turn::Act(final_answer("51"))])]
    };
    let wired = |endpoint: &str| {
        let mut flow = counting(endpoint);
        *flow.node(AGENT) = fresh_agent(AGENT, json!([[MODEL], [CALCULATOR], [], [DEBUG], [CHAT]]));
        flow
    };
    let mut ui = Ui::with(rules(), wired).await;
    let flow = wired(&ui.azure.endpoint());
    let report = ui.check(&flow).await.to_string();
    assert!(report.contains("DEFAULT_ASSUMED") && report.contains("all tools that are wired"), "{report}");
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    assert_eq!(frame.output(AGENT, 3)["agentResult"]["message"], "51");
    // The call has no text, so the chat has only the answer.
    assert_eq!(frame.shown_answers(AGENT), [&json!(false), &json!(true)]);
    assert_eq!(ui.history(CHAT).await, [("agent".to_owned(), "51".to_owned())]);
    // A list without the tool is a warning at the deploy, and the next deploy takes it back.
    let mut other = counting(&ui.azure.endpoint());
    other.node(AGENT)["allowedTools"] = json!(["clock"]);
    other.0.push(lookup(CHANGE, "clock", "1", AGENT));
    other.node(AGENT)["wires"][1] = json!([CALCULATOR, CHANGE]);
    ui.deploy(&other).await;
    let warning = ui.warned(AGENT).await;
    assert_eq!(warning["code"], "TOOL_CONNECTED_NOT_ALLOWED");
    assert!(text(&warning, "/message").contains("Add \"calculator\" to `allowedTools`"), "{warning}");
    ui.deploy(&flow).await;
    ui.check_accepted(AGENT).await;
    ui.end().await;
}
