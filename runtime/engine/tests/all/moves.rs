//! What who looks on is told: every message in and out, in order, and that it is over.

use crate::kit::{
    World, agent, agent_with_tool, asks, calculator, debug, ends, inject, model, model_double, node, prose,
    says, tool_double, with,
};
use pretty_assertions::assert_eq;
use redflow_contract::chat::{ChatItem, ChatSpeaker};
use redflow_engine::{StartError, StartOrder};
use serde_json::{Value, json};

/// An agent with a chat at port 4 and a debug node at port 3.
fn talks(replies: Value) -> Value {
    json!([
        inject(&["a"]),
        with(agent("a", "m", &["d"]), json!({"wires": [["m"], ["calc"], [], ["d"], ["chat"]]})),
        model("m", replies),
        calculator(),
        with(node("chat", "chat-node", json!([["a"]])), json!({"maxHistory": 5})),
        debug("d", "payload"),
    ])
}

async fn moves(flow: &Value) -> (World, Vec<String>) {
    let world = World::new(flow);
    world.watch.watch_moves();
    world.fire().await;
    let moves = world.watch.moves();
    (world, moves)
}

pub(crate) fn says_in_chat(node: &str, text: &str) -> StartOrder {
    let item = ChatItem {
        id: format!("u-{text}"),
        speaker: ChatSpeaker::User,
        content: text.to_owned(),
        timestamp: 1,
        trace_id: None,
        iteration: None,
    };
    StartOrder { node: Some(node.into()), said: Some(item), ..StartOrder::default() }
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_tool_is_told_from_its_trigger_to_its_end() {
    let asks = asks("calculator", json!({"expression": "2+2"}));
    let (world, moves) = moves(&talks(json!([asks, says("4")]))).await;
    let asked = r#"{"action":"tool","tool":"calculator","in"#;
    let expected = [
        "1 began i",
        "1 i.0 -> \"go\"",
        "1 a <- \"go\"",
        "1 a asks m #1 (2)",
        "1 m answers true",
        &format!("1 a.4 -> {asked}"),
        &format!("1 chat <- {asked}"),
        "1 chat done",
        "1 a calls calc calculator",
        "1 calc returns true",
        "1 a asks m #2 (4)",
        "1 m answers true",
        "1 a.4 -> {\"action\":\"final\",\"message\":\"4\"}",
        "1 chat <- {\"action\":\"final\",\"message\":\"4\"}",
        "1 chat done",
        "1 a.3 -> \"4\"",
        "1 d <- \"4\"",
        "1 d done",
        "1 over",
    ];
    assert_eq!(moves, expected);
    assert_eq!(world.watch.shown(), ["chat Agent (5): 4", "d: \"4\""]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_fails_says_so_in_the_chat_before_it_leaves_by_port_3() {
    let (world, moves) = moves(&talks(json!([prose()]))).await;
    let tail: Vec<&str> = moves.iter().skip(5).map(|line| line.split(" -> ").next().unwrap()).collect();
    let told = r#"1 chat <- {"code":"INVALID_JSON","message":"The an"#;
    assert_eq!(
        tail,
        [
            "1 a.4",
            told,
            "1 chat done",
            "1 a.3",
            "1 d <- {\"code\":\"INVALID_JSON\",\"message\":\"The an",
            "1 d done",
            "1 over"
        ]
    );
    assert!(moves.iter().filter(|line| line.ends_with(" INVALID_JSON")).count() == 2, "{moves:#?}");
    let shown = world.watch.shown();
    assert!(shown[0].starts_with("chat Agent (5): INVALID_JSON: "), "{shown:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_agent_and_what_needs_node_red_fail_where_they_are() {
    let mut flow = talks(json!([says("never")]));
    flow[1]["maxIterations"] = json!(50);
    flow[0]["wires"] = json!([["a", "f"]]);
    flow.as_array_mut().unwrap().push(node("f", "function", json!([["d"]])));
    let (world, moves) = moves(&flow).await;
    let short: Vec<String> =
        moves.iter().map(|line| line.replace(r#"{"code":"CONFIG_INVALID","message":"the "#, "E")).collect();
    let expected = [
        "1 began i",
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
        "1 over",
    ];
    assert_eq!(short, expected);
    assert!(world.watch.shown()[0].starts_with("chat Agent (5): CONFIG_INVALID: the agent is refused"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_person_says_that_it_waits() {
    let flow = json!([
        inject(&["a"]),
        agent_with_tool("a", "m", &["d"]),
        model("m", json!([asks("t", json!({}))])),
        tool_double(json!({"ownEffect": "at_most_once", "unknown": "nobody knows"})),
        debug("d", "payload"),
    ]);
    let (_, moves) = moves(&flow).await;
    let last: Vec<&str> = moves.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(last, ["1 over", "1 a waits"], "{moves:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_is_told_with_its_code() {
    let flow = json!([
        inject(&["a"]),
        agent("a", "m", &["d"]),
        model_double(
            "m",
            json!([says("never")]),
            json!({"fails": {"code": "PROVIDER_UNAVAILABLE", "message": "500"}})
        ),
        calculator(),
        debug("d", "payload.code"),
    ]);
    let (_, moves) = moves(&flow).await;
    assert!(moves.iter().any(|line| line.starts_with("1 m fails ")), "{moves:#?}");
}

#[tokio::test(start_paused = true)]
async fn two_starts_are_told_apart_and_nothing_is_told_to_nobody() {
    let world = World::new(&talks(json!([says("one"), says("two")])));
    world.fire().await;
    assert_eq!(world.watch.moves(), [] as [&str; 0]);
    world.watch.watch_moves();
    tokio::join!(world.fire(), world.ask(json!("again")));
    let moves = world.watch.moves();
    for start in ["1", "2"] {
        let own: Vec<&String> = moves.iter().filter(|line| line.starts_with(start)).collect();
        assert!(own[0].contains("began") && own.last().unwrap().ends_with("over"), "{moves:#?}");
        assert_eq!(own.iter().filter(|line| line.contains(" a.3 -> ")).count(), 1, "{moves:#?}");
    }
    assert!(moves.iter().any(|line| line.ends_with("began a")), "{moves:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_in_a_chat_starts_its_agent_and_the_answer_does_not_start_it_again() {
    let world = World::new(&talks(json!([says("one")])));
    world.watch.watch_moves();
    for text in ["hello", "and now"] {
        let started = world.order(says_in_chat("chat", text)).await.unwrap();
        assert_eq!(started.runs[0].1.id.as_str(), "a");
        let reports = started.rest.await.unwrap();
        assert_eq!(ends(&reports).len(), 1);
    }
    let said: Vec<String> = world.watch.shown().into_iter().filter(|line| line.starts_with("chat")).collect();
    let expected =
        ["chat User (5): hello", "chat Agent (5): one", "chat User (5): and now", "chat Agent (5): one"];
    assert_eq!(said, expected);
    let moves = world.watch.moves();
    assert_eq!(moves[..3], ["1 began chat", "1 chat.0 -> \"hello\"", "1 a <- \"hello\""]);
    assert!(!moves.iter().any(|line| line.starts_with("3 ")), "{moves:#?}");
}

#[tokio::test(start_paused = true)]
async fn only_a_chat_that_leads_to_an_agent_can_be_talked_to() {
    let mut flow = talks(json!([says("hi")]));
    let more = [
        node("alone", "chat-node", json!([])),
        node("deaf", "chat-node", json!([["d"]])),
        node("far", "chat-node", json!([["f"]])),
        node("f", "function", json!([["a"]])),
        with(node("off", "chat-node", json!([["a"]])), json!({"d": true})),
    ];
    flow.as_array_mut().unwrap().extend(more);
    let world = World::new(&flow);
    for (node, expected) in [
        ("alone", "NotConnected"),
        ("deaf", "NotConnected"),
        ("i", "NotStartable"),
        ("a", "NotStartable"),
        ("off", "NodeUnknown"),
        ("gone", "NodeUnknown"),
    ] {
        let error = world.order(says_in_chat(node, "x")).await.unwrap_err();
        let found = match error {
            StartError::NotConnected(_) => "NotConnected",
            StartError::NotStartable(_) => "NotStartable",
            StartError::NodeUnknown(_) => "NodeUnknown",
            other => panic!("{other}"),
        };
        assert_eq!(found, expected, "{node}");
    }
    assert_eq!(world.watch.shown(), [] as [&str; 0], "nothing was said");
    // It may lead there through nodes that only Node-RED runs.
    let started = world.order(says_in_chat("far", "x")).await.unwrap();
    assert_eq!(started.runs, []);
}

#[tokio::test(start_paused = true)]
async fn a_chat_whose_wire_back_is_missing_gets_its_answer_all_the_same() {
    let rows =
        [(json!([says("one")]), "chat Agent (5): one"), (json!([prose()]), "chat Agent (5): INVALID_JSON: ")];
    for (replies, expected) in rows {
        let mut flow = talks(replies);
        flow[1]["wires"][4] = json!([]);
        let world = World::new(&flow);
        let started = world.order(says_in_chat("chat", "hello")).await.unwrap();
        started.rest.await.unwrap();
        let said = world.watch.shown();
        let said: Vec<&String> = said.iter().filter(|line| line.starts_with("chat Agent")).collect();
        assert!(said.len() == 1 && said[0].starts_with(expected), "{said:?}");
        // Only what was asked there is answered there.
        world.fire().await;
        let again = world.watch.shown();
        assert_eq!(again.iter().filter(|line| line.starts_with("chat Agent")).count(), 1, "{again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_subflow_is_seen_as_its_instance() {
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
    let (_, moves) = moves(&flow).await;
    let expected = [
        "1 began i",
        "1 i.0 -> \"go\"",
        "1 one <- \"go\"",
        "1 one-j <- \"go\"",
        "1 one-j.0 -> \"go\"",
        "1 one.0 -> \"go\"",
        "1 d <- \"go\"",
        "1 d done",
        "1 over",
    ];
    assert_eq!(moves, expected);
}
