//! Agents that fail: a red row in the log, a text in the chat, and nobody left running.

use crate::answers::{ASKED, actions};
use crate::azure::{Turn, calls, says, when};
use crate::conversation::{Frame, text};
use crate::flows::{AGENT, CALCULATOR, CHAT, INJECT, MODEL, counting};
use crate::ui::{Ui, eventually};
use pretty_assertions::assert_eq;
use serde_json::json;

/// A result that is none; the chat hears of it by port 4.
const FAILED: [&str; 8] = [
    "out agent-core 4 terminated",
    "in chat-node",
    "out chat-node - pass-through",
    "out agent-core 3 terminated",
    "error agent-core",
    "in debug",
    "out debug - pass-through",
    "end",
];

/// The same with its code.
fn failed(code: &str) -> Vec<String> {
    let line =
        |line: &str| if line.starts_with("error") { format!("{line} {code}") } else { line.to_owned() };
    FAILED.map(line).to_vec()
}

/// What is shown of a run that failed: everywhere the same.
#[track_caller]
fn shown(frame: &Frame, code: &str, iterations: u32) -> String {
    let (streamed, ended) = (frame.output(AGENT, 4), frame.output(AGENT, 3));
    let result = &ended["agentResult"];
    assert_eq!((&result["completed"], &result["stopReason"]), (&json!(false), &json!("error")));
    assert_eq!((&result["iterations"], &result["traceId"]), (&json!(iterations), &json!(frame.run())));
    let error = &result["error"];
    assert_eq!((text(error, "/code"), &ended["preview"]["payload"]), (code, error));
    assert_eq!(streamed["agentResult"]["error"], *error);
    let message = text(error, "/message");
    assert!(frame.errors().contains(&(AGENT, code, message)), "{:?}", frame.errors());
    assert_eq!(actions(ended).last(), Some(&"error"));
    assert!(text(streamed, "/fullMessage").contains(message), "{streamed}");
    message.to_owned()
}

/// What the chat and the sidebar say then.
async fn told(ui: &mut Ui, code: &str, message: &str) {
    let debug = ui.debug().await;
    assert!(text(&debug, "/msg").contains(code), "{debug}");
    let said = ui.history(CHAT).await;
    let (who, what) = said.last().unwrap();
    assert_eq!((who.as_str(), what.as_str()), ("agent", format!("{code}: {message}").as_str()));
}

#[tokio::test]
async fn bad_json() {
    let mut ui = Ui::with(vec![when("17 * 3", [Turn::Say("Sure! It is 51.")])], counting).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    let expected: Vec<String> =
        ASKED.iter().map(|line| (*line).to_owned()).chain(failed("INVALID_JSON")).collect();
    assert_eq!(frame.lines(), expected);
    let message = shown(&frame, "INVALID_JSON", 1);
    told(&mut ui, "INVALID_JSON", &message).await;
    // The model did answer: what it said is there to see, and what it cost.
    assert_eq!(frame.output(MODEL, 0)["preview"]["payload"], "Sure! It is 51.");
    assert_eq!(ui.azure.asked().len(), 1, "it was asked again");
    ui.end().await;
}

#[tokio::test]
async fn a_tool_that_is_not_allowed() {
    let forbidden = calls("launch", json!({"when": "now"}));
    let mut ui = Ui::with(vec![when("17 * 3", [Turn::Act(forbidden)])], counting).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    let expected: Vec<String> =
        ASKED.iter().map(|line| (*line).to_owned()).chain(failed("TOOL_NOT_ALLOWED")).collect();
    assert_eq!(frame.lines(), expected);
    let message = shown(&frame, "TOOL_NOT_ALLOWED", 1);
    told(&mut ui, "TOOL_NOT_ALLOWED", &message).await;
    assert_eq!(ui.runs().await[0]["status"], "failed");
    // The agent goes on with the next one: nothing is left behind.
    ui.inject(INJECT).await;
    shown(&ui.frame().await, "TOOL_NOT_ALLOWED", 1);
    ui.end().await;
}

#[tokio::test]
async fn a_provider_with_http_500() {
    let mut ui = Ui::with(
        vec![
            when("again", [Turn::Refuse(500), Turn::Act(says("Now it works."))]),
            when("17 * 3", [Turn::Refuse(500)]),
        ],
        counting,
    )
    .await;
    assert_eq!(ui.say(CHAT, 1, "What is 17 * 3?").await, AGENT);
    let frame = ui.frame().await;
    let begins = [
        "start chat-node",
        "out chat-node 0 transformed",
        "in agent-core",
        "out agent-core 0 transformed",
        "in model.azure.openai",
        "out model.azure.openai 0 terminated",
        "error model.azure.openai PROVIDER_UNAVAILABLE",
        "in agent-core",
    ];
    let expected: Vec<String> =
        begins.map(str::to_owned).into_iter().chain(failed("PROVIDER_UNAVAILABLE")).collect();
    assert_eq!(frame.lines(), expected);
    let message = shown(&frame, "PROVIDER_UNAVAILABLE", 1);
    let reply = &frame.output(MODEL, 0)["preview"]["payload"]["error"];
    assert_eq!(
        (text(reply, "/code"), text(reply, "/traceId")),
        ("PROVIDER_UNAVAILABLE", frame.run().as_str())
    );
    told(&mut ui, "PROVIDER_UNAVAILABLE", &message).await;
    // It was tried again before it was given up; what works the second time is no failure.
    assert_eq!(ui.azure.asked().len(), 3);
    ui.say(CHAT, 2, "Try again").await;
    let frame = ui.frame().await;
    assert_eq!(frame.errors(), []);
    assert_eq!(frame.output(AGENT, 3)["agentResult"]["message"], "Now it works.");
    assert_eq!(ui.azure.asked().len(), 5);
    ui.end().await;
}

#[tokio::test]
async fn a_model_that_never_answers() {
    let silent = |endpoint: &str| {
        let mut flow = counting(endpoint);
        flow.node(MODEL)["timeoutMs"] = json!(1000);
        flow
    };
    let mut ui = Ui::with(vec![when("17 * 3", [Turn::Silence])], silent).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    let begins = ["out model.azure.openai 0 terminated", "error model.azure.openai TIMEOUT", "in agent-core"];
    let expected: Vec<String> =
        ASKED[..5].iter().chain(&begins).map(|line| (*line).to_owned()).chain(failed("TIMEOUT")).collect();
    assert_eq!(frame.lines(), expected);
    let message = shown(&frame, "TIMEOUT", 1);
    told(&mut ui, "TIMEOUT", &message).await;
    ui.end().await;
}

#[tokio::test]
async fn a_run_that_is_cancelled() {
    let mut ui = Ui::with(vec![when("17 * 3", [Turn::Silence])], counting).await;
    ui.inject(INJECT).await;
    eventually("the model is asked", || async { (ui.azure.asked().len() == 1).then_some(()) }).await;
    let runs = ui.runs().await;
    assert_eq!(runs[0]["status"], "running");
    ui.api("POST", &format!("/api/runs/{}/cancel", text(&runs[0], "/runId"))).await;
    let frame = ui.frame().await;
    let ends = ["out model.azure.openai - terminated", "error model.azure.openai CANCELLED", "end"];
    let mut expected: Vec<String> = ASKED[..5].iter().map(|line| (*line).to_owned()).collect();
    expected.extend(failed("CANCELLED"));
    expected.pop();
    expected.extend(ends.map(str::to_owned));
    assert_eq!(frame.lines(), expected);
    let message = shown(&frame, "CANCELLED", 1);
    told(&mut ui, "CANCELLED", &message).await;
    ui.end().await;
}

#[tokio::test]
async fn a_run_whose_agent_is_removed() {
    let mut ui = Ui::with(vec![when("17 * 3", [Turn::Silence])], counting).await;
    ui.inject(INJECT).await;
    eventually("the model is asked", || async { (ui.azure.asked().len() == 1).then_some(()) }).await;
    let mut flow = counting(&ui.azure.endpoint());
    flow.0.retain(|node| ![AGENT, MODEL, CALCULATOR].iter().any(|gone| node["id"] == *gone));
    for id in [INJECT, CHAT] {
        flow.node(id)["wires"] = json!([[]]);
    }
    ui.deploy(&flow).await;
    let frame = ui.frame().await;
    // There is no agent any more that could say something; but nobody waits for it either.
    assert_eq!(frame.lines()[..5], ASKED[..5]);
    assert_eq!(ui.runs().await[0]["status"], "failed");
    ui.end().await;
}
