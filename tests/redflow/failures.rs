//! Agents that fail: a red row in the log, a text in the chat, and no node that stays active.

use crate::answers::{ASKED, actions};
use crate::azure::{Turn, final_answer, tool_call, when};
use crate::conversation::{Frame, text};
use crate::flows::{AGENT, CALCULATOR, CHAT, INJECT, MODEL, counting};
use crate::ui::{Ui, eventually};
use pretty_assertions::assert_eq;
use serde_json::json;

/// The lines of a failed run. The chat gets the error through port 4.
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

/// The same lines with a code.
fn failed_lines(code: &str) -> Vec<String> {
    let line =
        |line: &str| if line.starts_with("error") { format!("{line} {code}") } else { line.to_owned() };
    FAILED.map(line).to_vec()
}

/// Checks that all parts of a frame show the same error, and gives its message.
#[track_caller]
fn check_failure(frame: &Frame, code: &str, iterations: u32) -> String {
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

/// Checks that chat and sidebar show the error.
async fn check_error_texts(ui: &mut Ui, code: &str, message: &str) {
    let debug = ui.debug().await;
    assert!(text(&debug, "/msg").contains(code), "{debug}");
    let history = ui.history(CHAT).await;
    let (who, what) = history.last().unwrap();
    assert_eq!((who.as_str(), what.as_str()), ("agent", format!("{code}: {message}").as_str()));
}

#[tokio::test]
async fn bad_json() {
    let mut ui = Ui::with(vec![when("17 * 3", [Turn::Say("Sure! It is 51.")])], counting).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    let expected: Vec<String> =
        ASKED.iter().map(|line| (*line).to_owned()).chain(failed_lines("INVALID_JSON")).collect();
    assert_eq!(frame.lines(), expected);
    let message = check_failure(&frame, "INVALID_JSON", 1);
    check_error_texts(&mut ui, "INVALID_JSON", &message).await;
    // The frame shows the text of the model.
    assert_eq!(frame.output(MODEL, 0)["preview"]["payload"], "Sure! It is 51.");
    assert_eq!(ui.azure.requests().len(), 1, "the model call was repeated");
    ui.end().await;
}

#[tokio::test]
async fn a_tool_that_is_not_allowed() {
    let forbidden = tool_call("launch", json!({"when": "now"}));
    let mut ui = Ui::with(vec![when("17 * 3", [Turn::Act(forbidden)])], counting).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    let expected: Vec<String> =
        ASKED.iter().map(|line| (*line).to_owned()).chain(failed_lines("TOOL_NOT_ALLOWED")).collect();
    assert_eq!(frame.lines(), expected);
    let message = check_failure(&frame, "TOOL_NOT_ALLOWED", 1);
    check_error_texts(&mut ui, "TOOL_NOT_ALLOWED", &message).await;
    assert_eq!(ui.runs().await[0]["status"], "failed");
    // The agent accepts the next message.
    ui.inject(INJECT).await;
    check_failure(&ui.frame().await, "TOOL_NOT_ALLOWED", 1);
    ui.end().await;
}

#[tokio::test]
async fn a_provider_with_http_500() {
    let mut ui = Ui::with(
        vec![
            when("again", [Turn::Refuse(500), Turn::Act(final_answer("Now it works."))]),
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
        begins.map(str::to_owned).into_iter().chain(failed_lines("PROVIDER_UNAVAILABLE")).collect();
    assert_eq!(frame.lines(), expected);
    let message = check_failure(&frame, "PROVIDER_UNAVAILABLE", 1);
    let reply = &frame.output(MODEL, 0)["preview"]["payload"]["error"];
    assert_eq!(
        (text(reply, "/code"), text(reply, "/traceId")),
        ("PROVIDER_UNAVAILABLE", frame.run().as_str())
    );
    check_error_texts(&mut ui, "PROVIDER_UNAVAILABLE", &message).await;
    // The runtime retried before it failed. A retry that succeeds is no failure.
    assert_eq!(ui.azure.requests().len(), 3);
    ui.say(CHAT, 2, "Try again").await;
    let frame = ui.frame().await;
    assert_eq!(frame.errors(), []);
    assert_eq!(frame.output(AGENT, 3)["agentResult"]["message"], "Now it works.");
    assert_eq!(ui.azure.requests().len(), 5);
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
    let expected: Vec<String> = ASKED[..5]
        .iter()
        .chain(&begins)
        .map(|line| (*line).to_owned())
        .chain(failed_lines("TIMEOUT"))
        .collect();
    assert_eq!(frame.lines(), expected);
    let message = check_failure(&frame, "TIMEOUT", 1);
    check_error_texts(&mut ui, "TIMEOUT", &message).await;
    ui.end().await;
}

#[tokio::test]
async fn a_run_that_is_cancelled() {
    let mut ui = Ui::with(vec![when("17 * 3", [Turn::Silence])], counting).await;
    ui.inject(INJECT).await;
    eventually("a model call", || async { (ui.azure.requests().len() == 1).then_some(()) }).await;
    let runs = ui.runs().await;
    assert_eq!(runs[0]["status"], "running");
    ui.api("POST", &format!("/api/runs/{}/cancel", text(&runs[0], "/runId"))).await;
    let frame = ui.frame().await;
    let ends = ["out model.azure.openai - terminated", "error model.azure.openai CANCELLED", "end"];
    let mut expected: Vec<String> = ASKED[..5].iter().map(|line| (*line).to_owned()).collect();
    expected.extend(failed_lines("CANCELLED"));
    expected.pop();
    expected.extend(ends.map(str::to_owned));
    assert_eq!(frame.lines(), expected);
    let message = check_failure(&frame, "CANCELLED", 1);
    check_error_texts(&mut ui, "CANCELLED", &message).await;
    ui.end().await;
}

#[tokio::test]
async fn a_run_whose_agent_is_removed() {
    let mut ui = Ui::with(vec![when("17 * 3", [Turn::Silence])], counting).await;
    ui.inject(INJECT).await;
    eventually("a model call", || async { (ui.azure.requests().len() == 1).then_some(()) }).await;
    let mut flow = counting(&ui.azure.endpoint());
    flow.0.retain(|node| ![AGENT, MODEL, CALCULATOR].iter().any(|removed| node["id"] == *removed));
    for id in [INJECT, CHAT] {
        flow.node(id)["wires"] = json!([[]]);
    }
    ui.deploy(&flow).await;
    let frame = ui.frame().await;
    // The removed agent shows nothing more, and its run ends.
    assert_eq!(frame.lines()[..5], ASKED[..5]);
    assert_eq!(ui.runs().await[0]["status"], "failed");
    ui.end().await;
}
