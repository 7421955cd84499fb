//! Several runs and clients at once, and large flows.

use crate::answers::{ANSWERED, ASKED};
use crate::azure::{Turn, final_answer, tool_call, when};
use crate::conversation::{Frame, text};
use crate::flows::{
    AGENT, AGENT2, CHAT, DEBUG, DEBUG2, Flow, INJECT, INJECT2, MODEL, MODEL2, agent, counting, debug, inject,
    model, talking,
};
use crate::ui::{Ui, eventually};
use futures::future::join_all;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than Redflow's own frames last without messages.
const SLOW: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_model_slower_than_five_seconds() {
    let slow = Turn::ActAfter(SLOW, final_answer("At last."));
    let mut ui = Ui::with(vec![when("How are you?", [slow])], talking).await;
    assert_eq!(ui.say(CHAT, 1, "How are you?").await, AGENT);
    let frame = ui.frame().await;
    // All of it is one frame: `Frame::new` checks for one start and one end.
    let begins = ["start chat-node", "out chat-node 0 transformed"];
    assert_eq!(frame.lines(), [&begins[..], &ASKED[2..], &ANSWERED].concat());
    assert_eq!(ui.history(CHAT).await.last().unwrap().1, "At last.");
    ui.end().await;
}

/// Two agents, each with its own inject node, model and debug node.
fn two(endpoint: &str) -> Flow {
    let wires = |model: &str, debug: &str| json!([[model], [], [], [debug]]);
    Flow::new([
        inject(INJECT, "The first question", AGENT),
        agent(AGENT, &[], wires(MODEL, DEBUG)),
        model(MODEL, endpoint, AGENT),
        debug(DEBUG),
        inject(INJECT2, "The second question", AGENT2),
        agent(AGENT2, &[], wires(MODEL2, DEBUG2)),
        model(MODEL2, endpoint, AGENT2),
        debug(DEBUG2),
    ])
}

/// The lines of the frame of one agent.
fn lines_of(agent: &str) -> Vec<String> {
    let second = |line: String| {
        let names = ["inject", "agent-core", "model.azure.openai", "debug"];
        names.iter().fold(line, |line, name| line.replace(name, &format!("{name} 2")))
    };
    let lines = ASKED.iter().chain(&ANSWERED[3..]).map(|line| (*line).to_owned());
    lines.map(|line| if agent == AGENT2 { second(line) } else { line }).collect()
}

/// The answer of an agent. Its frame must not contain the text of the other.
fn answer_of<'a>(frame: &'a Frame, agent: &str, other: &str) -> &'a str {
    let text_of = json!(frame.events()).to_string();
    assert!(!text_of.contains(other), "{other} is in the wrong frame: {text_of}");
    text(frame.output(agent, 3), "/preview/payload")
}

#[tokio::test]
async fn two_runs_at_once() {
    let rules = vec![
        when("The first question", [Turn::ActLater(final_answer("The first answer"))]),
        when("The second question", [Turn::ActLater(final_answer("The second answer"))]),
    ];
    let mut ui = Ui::with(rules, two).await;
    ui.inject(INJECT).await;
    ui.inject(INJECT2).await;
    // Both runs are active before either continues.
    eventually("two model calls", || async { (ui.azure.requests().len() == 2).then_some(()) }).await;
    ui.azure.release_one();
    ui.azure.release_one();
    let frames = ui.frames(2).await;
    assert_eq!(frames[0].lines(), lines_of(AGENT));
    assert_eq!(frames[1].lines(), lines_of(AGENT2));
    assert_eq!(answer_of(&frames[0], AGENT, "second"), "The first answer");
    assert_eq!(answer_of(&frames[1], AGENT2, "first"), "The second answer");
    assert_ne!(frames[0].run(), frames[1].run());
    ui.end().await;
}

#[tokio::test]
async fn the_same_agent_twice_at_once() {
    let later = |message: &str| [Turn::ActLater(final_answer(message))];
    let rules = vec![when("apples", later("Apples it is")), when("pears", later("Pears it is"))];
    let mut ui = Ui::with(rules, talking).await;
    ui.say(CHAT, 1, "About apples").await;
    ui.say(CHAT, 2, "About pears").await;
    eventually("two model calls", || async { (ui.azure.requests().len() == 2).then_some(()) }).await;
    ui.azure.release_one();
    ui.azure.release_one();
    let frames = ui.frames(2).await;
    assert_eq!(frames[0].lines(), frames[1].lines());
    let text = |frame: &Frame| json!(frame.events()).to_string();
    let (apples, pears) = (text(&frames[0]), text(&frames[1]));
    assert!(apples.contains("Apples it is") && !apples.contains("ears"), "{apples}");
    assert!(pears.contains("Pears it is") && !pears.contains("pples"), "{pears}");
    assert_ne!(frames[0].run(), frames[1].run());
    let mut history = ui.history(CHAT).await;
    history.sort();
    let words: Vec<&str> = history.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(words, ["Apples it is", "Pears it is", "About apples", "About pears"]);
    ui.end().await;
}

#[tokio::test]
async fn a_run_survives_a_deploy() {
    let later = Turn::ActLater(final_answer("Still here."));
    let mut ui = Ui::with(vec![when("How are you?", [later])], talking).await;
    ui.inject(INJECT).await;
    eventually("a model call", || async { (ui.azure.requests().len() == 1).then_some(()) }).await;
    // A user moves a node and deploys, and the UI stores the key again.
    let mut flow = talking(&ui.azure.endpoint());
    flow.node(AGENT)["x"] = json!(12);
    ui.deploy(&flow).await;
    ui.store_keys(&flow).await;
    ui.azure.release_one();
    assert_eq!(ui.frame().await.lines(), [&ASKED[..], &ANSWERED].concat());
    assert_eq!(ui.history(CHAT).await, [("agent".to_owned(), "Still here.".to_owned())]);
    assert_eq!(ui.runs().await.len(), 1);
    ui.end().await;
}

#[tokio::test]
async fn fifty_sockets_receive_the_same() {
    let rules = vec![
        when("What is 17 * 3?", [Turn::Act(tool_call("calculator", json!({"expression": "17 * 3"})))]),
        when(r#""result":51"#, [Turn::Act(final_answer("It is 51."))]),
    ];
    let mut ui = Ui::with(rules, counting).await;
    let mut others = join_all((1..50).map(|_| ui.open_socket())).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    let frames: Vec<Vec<String>> = join_all(others.iter_mut().map(|socket| socket.frame())).await;
    for texts in frames {
        let events: Vec<Value> = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!(events, frame.events());
    }
    drop(others);
    ui.end().await;
}

#[tokio::test]
async fn a_flow_of_five_thousand_nodes() {
    let large = |endpoint: &str| {
        let mut flow = talking(endpoint);
        let more = (flow.0.len()..5000).map(|number| {
            let mut node = debug(&format!("debug-17660000{number:05}"));
            node["type"] = json!("debug");
            node
        });
        let more: Vec<Value> = more.collect();
        flow.0.extend(more);
        flow
    };
    let mut ui = Ui::with(vec![when("How are you?", [Turn::Act(final_answer("Fine."))])], large).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    assert_eq!(frame.output(AGENT, 3)["agentResult"]["completed"], true);
    assert_eq!(ui.api("GET", "/api/flows").await["flows"][0]["nodes"], 4999);
    ui.end().await;
}
