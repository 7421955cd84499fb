//! Several things at once, and large ones.

use crate::answers::{ANSWERED, ASKED};
use crate::azure::{Turn, calls, says, when};
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

/// Longer than Redflow's own frames last when nothing moves.
const SLOW: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_model_slower_than_five_seconds() {
    let slow = Turn::ActAfter(SLOW, says("At last."));
    let mut ui = Ui::with(vec![when("How are you?", [slow])], talking).await;
    assert_eq!(ui.say(CHAT, 1, "How are you?").await, AGENT);
    let frame = ui.frame().await;
    // One frame, which was there all the time: `Frame` has one beginning and one end.
    let begins = ["start chat-node", "out chat-node 0 transformed"];
    assert_eq!(frame.lines(), [&begins[..], &ASKED[2..], &ANSWERED].concat());
    assert_eq!(ui.history(CHAT).await.last().unwrap().1, "At last.");
    ui.end().await;
}

/// Two agents, each with an inject node, a model and a sidebar of its own.
fn two(endpoint: &str) -> Flow {
    let wires = |model: &str, debug: &str| json!([[model], [], [], [debug]]);
    Flow::of([
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

/// What the frame of one of them is.
fn alone(agent: &str) -> Vec<String> {
    let second = |line: String| {
        let names = ["inject", "agent-core", "model.azure.openai", "debug"];
        names.iter().fold(line, |line, name| line.replace(name, &format!("{name} 2")))
    };
    let lines = ASKED.iter().chain(&ANSWERED[3..]).map(|line| (*line).to_owned());
    lines.map(|line| if agent == AGENT2 { second(line) } else { line }).collect()
}

/// What an agent said, and that nothing else is in its frame.
fn said<'a>(frame: &'a Frame, agent: &str, other: &str) -> &'a str {
    let text_of = json!(frame.events()).to_string();
    assert!(!text_of.contains(other), "{other} is in the wrong frame: {text_of}");
    text(frame.output(agent, 3), "/preview/payload")
}

#[tokio::test]
async fn two_runs_at_once() {
    let whens = vec![
        when("The first question", [Turn::ActLater(says("The first answer"))]),
        when("The second question", [Turn::ActLater(says("The second answer"))]),
    ];
    let mut ui = Ui::with(whens, two).await;
    ui.inject(INJECT).await;
    ui.inject(INJECT2).await;
    // Both are at work before either may go on.
    eventually("both are asked", || async { (ui.azure.asked().len() == 2).then_some(()) }).await;
    ui.azure.let_go();
    ui.azure.let_go();
    let frames = ui.frames(2).await;
    assert_eq!(frames[0].lines(), alone(AGENT));
    assert_eq!(frames[1].lines(), alone(AGENT2));
    assert_eq!(said(&frames[0], AGENT, "second"), "The first answer");
    assert_eq!(said(&frames[1], AGENT2, "first"), "The second answer");
    assert_ne!(frames[0].run(), frames[1].run());
    ui.end().await;
}

#[tokio::test]
async fn the_same_agent_twice_at_once() {
    let later = |message: &str| [Turn::ActLater(says(message))];
    let whens = vec![when("apples", later("Apples it is")), when("pears", later("Pears it is"))];
    let mut ui = Ui::with(whens, talking).await;
    ui.say(CHAT, 1, "About apples").await;
    ui.say(CHAT, 2, "About pears").await;
    eventually("both are asked", || async { (ui.azure.asked().len() == 2).then_some(()) }).await;
    ui.azure.let_go();
    ui.azure.let_go();
    let frames = ui.frames(2).await;
    assert_eq!(frames[0].lines(), frames[1].lines());
    let text = |frame: &Frame| json!(frame.events()).to_string();
    let (apples, pears) = (text(&frames[0]), text(&frames[1]));
    assert!(apples.contains("Apples it is") && !apples.contains("ears"), "{apples}");
    assert!(pears.contains("Pears it is") && !pears.contains("pples"), "{pears}");
    assert_ne!(frames[0].run(), frames[1].run());
    let mut said = ui.history(CHAT).await;
    said.sort();
    let words: Vec<&str> = said.iter().map(|(_, what)| what.as_str()).collect();
    assert_eq!(words, ["Apples it is", "Pears it is", "About apples", "About pears"]);
    ui.end().await;
}

#[tokio::test]
async fn a_deploy_in_the_midst_of_a_run() {
    let later = Turn::ActLater(says("Still here."));
    let mut ui = Ui::with(vec![when("How are you?", [later])], talking).await;
    ui.inject(INJECT).await;
    eventually("the model is asked", || async { (ui.azure.asked().len() == 1).then_some(()) }).await;
    // Somebody moves a node, saves, and the UI copies the key once more.
    let mut flow = talking(&ui.azure.endpoint());
    flow.node(AGENT)["x"] = json!(12);
    ui.deploy(&flow).await;
    ui.store_keys(&flow).await;
    ui.azure.let_go();
    assert_eq!(ui.frame().await.lines(), [&ASKED[..], &ANSWERED].concat());
    assert_eq!(ui.history(CHAT).await, [("agent".to_owned(), "Still here.".to_owned())]);
    assert_eq!(ui.runs().await.len(), 1);
    ui.end().await;
}

#[tokio::test]
async fn fifty_sockets_are_told_the_same() {
    let whens = vec![
        when("What is 17 * 3?", [Turn::Act(calls("calculator", json!({"expression": "17 * 3"})))]),
        when(r#""result":51"#, [Turn::Act(says("It is 51."))]),
    ];
    let mut ui = Ui::with(whens, counting).await;
    let mut others = join_all((1..50).map(|_| ui.watch())).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    let told: Vec<Vec<String>> = join_all(others.iter_mut().map(|watching| watching.frame())).await;
    for texts in told {
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
    let mut ui = Ui::with(vec![when("How are you?", [Turn::Act(says("Fine."))])], large).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    assert_eq!(frame.output(AGENT, 3)["agentResult"]["completed"], true);
    assert_eq!(ui.api("GET", "/api/flows").await["flows"][0]["nodes"], 4999);
    ui.end().await;
}
