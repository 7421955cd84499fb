//! Flow steps: observers get every message in and out, in order, and the end of the cascade.

use crate::kit::{
    EngineTest, agent, agent_with_tool, calculator, debug, ends, final_answer, inject, model, model_double,
    node, not_json, tool_call, tool_double, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::chat::{ChatItem, ChatSpeaker};
use redflow_engine::{StartError, StartOrder};
use serde_json::{Value, json};

/// An agent with a chat at port 4 and a debug node at port 3.
fn chat_flow(replies: Value) -> Value {
    json!([
        inject(&["a"]),
        with(agent("a", "m", &["d"]), json!({"wires": [["m"], ["calc"], [], ["d"], ["chat"]]})),
        model("m", replies),
        calculator(),
        with(node("chat", "chat-node", json!([["a"]])), json!({"maxHistory": 5})),
        debug("d", "payload"),
    ])
}

async fn fire_and_record(flow: &Value) -> (EngineTest, Vec<String>) {
    let test = EngineTest::new(flow);
    test.recorder.watch_flow_steps();
    test.fire().await;
    let steps = test.recorder.flow_steps();
    (test, steps)
}

pub(crate) fn chat_order(node: &str, text: &str) -> StartOrder {
    let item = ChatItem {
        id: format!("u-{text}"),
        speaker: ChatSpeaker::User,
        content: text.to_owned(),
        timestamp: 1,
        trace_id: None,
        iteration: None,
    };
    StartOrder { node: Some(node.into()), chat_item: Some(item), ..StartOrder::default() }
}

#[tokio::test(start_paused = true)]
async fn reports_every_step_of_a_run_with_a_tool() {
    let call = tool_call("calculator", json!({"expression": "2+2"}));
    let (test, steps) = fire_and_record(&chat_flow(json!([call, final_answer("4")]))).await;
    let asked = r#"{"action":"tool","tool":"calculator","in"#;
    let expected = [
        "1 started i",
        "1 i.0 -> \"go\"",
        "1 a <- \"go\"",
        "1 a calls m #1 (2)",
        "1 m answers true",
        &format!("1 a.4 -> {asked}"),
        &format!("1 chat <- {asked}"),
        "1 chat done",
        "1 a calls calc calculator",
        "1 calc returns true",
        "1 a calls m #2 (4)",
        "1 m answers true",
        "1 a.4 -> {\"action\":\"final\",\"message\":\"4\"}",
        "1 chat <- {\"action\":\"final\",\"message\":\"4\"}",
        "1 chat done",
        "1 a.3 -> \"4\"",
        "1 d <- \"4\"",
        "1 d done",
        "1 ended",
    ];
    assert_eq!(steps, expected);
    assert_eq!(test.recorder.flow_lines(), ["chat Agent (5): 4", "d: \"4\""]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_shows_its_error_in_the_chat_before_port_3() {
    let (test, steps) = fire_and_record(&chat_flow(json!([not_json()]))).await;
    let tail: Vec<&str> = steps.iter().skip(5).map(|line| line.split(" -> ").next().unwrap()).collect();
    let error = r#"1 chat <- {"code":"INVALID_JSON","message":"The an"#;
    assert_eq!(
        tail,
        [
            "1 a.4",
            error,
            "1 chat done",
            "1 a.3",
            "1 d <- {\"code\":\"INVALID_JSON\",\"message\":\"The an",
            "1 d done",
            "1 ended"
        ]
    );
    assert!(steps.iter().filter(|line| line.ends_with(" INVALID_JSON")).count() == 2, "{steps:#?}");
    let lines = test.recorder.flow_lines();
    assert!(lines[0].starts_with("chat Agent (5): INVALID_JSON: "), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn reports_refused_agents_and_nodes_that_need_node_red() {
    let mut flow = chat_flow(json!([final_answer("never")]));
    flow[1]["maxIterations"] = json!(50);
    flow[0]["wires"] = json!([["a", "f"]]);
    flow.as_array_mut().unwrap().push(node("f", "function", json!([["d"]])));
    let (test, steps) = fire_and_record(&flow).await;
    let short: Vec<String> =
        steps.iter().map(|line| line.replace(r#"{"code":"CONFIG_INVALID","message":"the "#, "E")).collect();
    let expected = [
        "1 started i",
        "1 i.0 -> \"go\"",
        "1 a <- \"go\"",
        "1 a.4 -> E CONFIG_INVALID",
        "1 chat <- E",
        "1 chat done",
        "1 a.3 -> E CONFIG_INVALID",
        "1 f <- \"go\"",
        "1 f failed NEEDS_NODE_RED",
        "1 d <- E",
        "1 d done",
        "1 ended",
    ];
    assert_eq!(short, expected);
    assert!(
        test.recorder.flow_lines()[0].starts_with("chat Agent (5): CONFIG_INVALID: the agent is refused")
    );
}

#[tokio::test(start_paused = true)]
async fn reports_a_run_that_waits_for_a_person() {
    let flow = json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([tool_call("t", json!({}))])),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "the outcome is unknown"})),
        debug("d", "payload"),
    ]);
    let (_, steps) = fire_and_record(&flow).await;
    let last: Vec<&str> = steps.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(last, ["1 ended", "1 a waits"], "{steps:#?}");
}

#[tokio::test(start_paused = true)]
async fn reports_a_failed_model_with_its_code() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["d"]),
        model_double(
            "m",
            json!([final_answer("never")]),
            json!({"fails": {"code": "PROVIDER_UNAVAILABLE", "message": "500"}})
        ),
        calculator(),
        debug("d", "payload.code"),
    ]);
    let (_, steps) = fire_and_record(&flow).await;
    assert!(steps.iter().any(|line| line.starts_with("1 m fails ")), "{steps:#?}");
}

#[tokio::test(start_paused = true)]
async fn separates_two_starts_and_reports_nothing_without_observers() {
    let test = EngineTest::new(&chat_flow(json!([final_answer("one"), final_answer("two")])));
    test.fire().await;
    assert_eq!(test.recorder.flow_steps(), [] as [&str; 0]);
    test.recorder.watch_flow_steps();
    tokio::join!(test.fire(), test.send(json!("again")));
    let steps = test.recorder.flow_steps();
    for start in ["1", "2"] {
        let own: Vec<&String> = steps.iter().filter(|line| line.starts_with(start)).collect();
        assert!(own[0].contains("started") && own.last().unwrap().ends_with("ended"), "{steps:#?}");
        assert_eq!(own.iter().filter(|line| line.contains(" a.3 -> ")).count(), 1, "{steps:#?}");
    }
    assert!(steps.iter().any(|line| line.ends_with("started a")), "{steps:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_chat_message_starts_its_agent_and_the_answer_does_not() {
    let test = EngineTest::new(&chat_flow(json!([final_answer("one")])));
    test.recorder.watch_flow_steps();
    for text in ["hello", "and now"] {
        let started = test.start(chat_order("chat", text)).await.unwrap();
        assert_eq!(started.runs[0].1.id.as_str(), "a");
        let reports = started.reports.await.unwrap();
        assert_eq!(ends(&reports).len(), 1);
    }
    let chat_lines: Vec<String> =
        test.recorder.flow_lines().into_iter().filter(|line| line.starts_with("chat")).collect();
    let expected =
        ["chat User (5): hello", "chat Agent (5): one", "chat User (5): and now", "chat Agent (5): one"];
    assert_eq!(chat_lines, expected);
    let steps = test.recorder.flow_steps();
    assert_eq!(steps[..3], ["1 started chat", "1 chat.0 -> \"hello\"", "1 a <- \"hello\""]);
    assert!(!steps.iter().any(|line| line.starts_with("3 ")), "{steps:#?}");
}

#[tokio::test(start_paused = true)]
async fn refuses_chats_that_reach_no_agent() {
    let mut flow = chat_flow(json!([final_answer("hi")]));
    let more = [
        node("alone", "chat-node", json!([])),
        node("deaf", "chat-node", json!([["d"]])),
        node("far", "chat-node", json!([["f"]])),
        node("f", "function", json!([["a"]])),
        with(node("off", "chat-node", json!([["a"]])), json!({"d": true})),
    ];
    flow.as_array_mut().unwrap().extend(more);
    let test = EngineTest::new(&flow);
    for (node, expected) in [
        ("alone", "NotConnected"),
        ("deaf", "NotConnected"),
        ("i", "NotStartable"),
        ("a", "NotStartable"),
        ("off", "NodeUnknown"),
        ("gone", "NodeUnknown"),
    ] {
        let error = test.start(chat_order(node, "x")).await.unwrap_err();
        let found = match error {
            StartError::NotConnected(_) => "NotConnected",
            StartError::NotStartable(_) => "NotStartable",
            StartError::NodeUnknown(_) => "NodeUnknown",
            other => panic!("{other}"),
        };
        assert_eq!(found, expected, "{node}");
    }
    assert_eq!(test.recorder.flow_lines(), [] as [&str; 0], "no chat shows anything");
    // The chat may reach the agent through nodes that only Node-RED runs.
    let started = test.start(chat_order("far", "x")).await.unwrap();
    assert_eq!(started.runs, []);
}

#[tokio::test(start_paused = true)]
async fn answers_a_chat_without_a_wire_back() {
    let rows = [
        (json!([final_answer("one")]), "chat Agent (5): one"),
        (json!([not_json()]), "chat Agent (5): INVALID_JSON: "),
    ];
    for (replies, expected) in rows {
        let mut flow = chat_flow(replies);
        flow[1]["wires"][4] = json!([]);
        let test = EngineTest::new(&flow);
        let started = test.start(chat_order("chat", "hello")).await.unwrap();
        started.reports.await.unwrap();
        let chat_lines = test.recorder.flow_lines();
        let chat_lines: Vec<&String> =
            chat_lines.iter().filter(|line| line.starts_with("chat Agent")).collect();
        assert!(chat_lines.len() == 1 && chat_lines[0].starts_with(expected), "{chat_lines:?}");
        // Only a run that the chat started is answered there.
        test.fire().await;
        let again = test.recorder.flow_lines();
        assert_eq!(again.iter().filter(|line| line.starts_with("chat Agent")).count(), 1, "{again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn reports_a_subflow_as_its_instance() {
    let template = json!({"id": "s", "type": "subflow", "name": "s", "in": [{"wires": [{"id": "j"}]}],
                          "out": [{"wires": [{"id": "j", "port": 0}]}]});
    let inner = json!({"id": "j", "type": "junction", "z": "s", "x": 1, "y": 1, "wires": [[]]});
    let flow = json!([
        inject(&["one"]),
        template,
        inner,
        node("one", "subflow:s", json!([["d"]])),
        debug("d", "payload")
    ]);
    let (_, steps) = fire_and_record(&flow).await;
    let expected = [
        "1 started i",
        "1 i.0 -> \"go\"",
        "1 one <- \"go\"",
        "1 one-j <- \"go\"",
        "1 one-j.0 -> \"go\"",
        "1 one.0 -> \"go\"",
        "1 d <- \"go\"",
        "1 d done",
        "1 ended",
    ];
    assert_eq!(steps, expected);
}
