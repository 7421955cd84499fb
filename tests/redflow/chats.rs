//! A chat in the UI: questions, answers and the shown history.

use crate::azure::{Turn, final_answer, when};
use crate::conversation::text;
use crate::flows::{AGENT, CHAT, MEMORY, memory, talking};
use crate::ui::Ui;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// The lines of a frame with one turn of the chat.
const TURN: [&str; 14] = [
    "start chat-node",
    "out chat-node 0 transformed",
    "in agent-core",
    "out agent-core 0 transformed",
    "in model.azure.openai",
    "out model.azure.openai 0 transformed",
    "in agent-core",
    "out agent-core 4 transformed",
    "in chat-node",
    "out chat-node - pass-through",
    "out agent-core 3 transformed",
    "in debug",
    "out debug - pass-through",
    "end",
];

const TALK: [(&str, &str); 3] =
    [("Good morning", "Good morning to you"), ("Who are you?", "An agent"), ("Goodbye", "See you")];

fn rules() -> Vec<crate::azure::Rule> {
    TALK.map(|(question, answer)| when(question, [Turn::Act(final_answer(answer))])).into()
}

/// The roles and texts of a request, without the system prompt.
fn messages_of(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap();
    messages[1..]
        .iter()
        .map(|message| format!("{}: {}", text(message, "/role"), text(message, "/content")))
        .collect()
}

#[tokio::test]
async fn a_chat_over_several_turns() {
    let mut ui = Ui::with(rules(), talking).await;
    let mut expected: Vec<(String, String)> = Vec::new();
    let mut runs = Vec::new();
    for (number, (question, answer)) in (1..).zip(TALK) {
        assert_eq!(ui.say(CHAT, number, question).await, AGENT);
        // The UI reads the chat as soon as it sees the answer.
        let (events, history) = ui.until_answered(CHAT).await;
        expected.push(("user".to_owned(), question.to_owned()));
        expected.push(("agent".to_owned(), answer.to_owned()));
        assert_eq!(history, expected);
        let frame = ui.frame_from(events).await;
        assert_eq!(frame.lines(), TURN, "{question}");
        assert_eq!(text(frame.output(AGENT, 4), "/fullMessage"), answer);
        assert_eq!(ui.debug().await["msg"], answer);
        runs.push(frame.run());
    }
    // No answer counts as a question: three requests, three runs.
    assert_eq!(ui.azure.requests().len(), 3);
    let stored: Vec<String> =
        ui.runs().await.iter().rev().map(|run| text(run, "/runId").to_owned()).collect();
    assert_eq!(stored, runs);
    // A repeated message counts once.
    assert_eq!(ui.say(CHAT, 3, TALK[2].0).await, AGENT);
    assert_eq!(ui.history(CHAT).await, expected);
    assert_eq!(ui.runs().await.len(), 3);
    let cleared = ui.post(&format!("/chat-node/{CHAT}/clear"), json!({})).await.ok(200);
    assert_eq!((&cleared["success"], ui.history(CHAT).await), (&json!(true), Vec::new()));
    ui.end().await;
}

#[tokio::test]
async fn an_agent_with_a_memory_remembers_earlier_turns() {
    let remembering = |endpoint: &str| {
        let mut flow = talking(endpoint);
        flow.node(AGENT)["wires"][2] = json!([MEMORY]);
        flow.0.push(memory());
        flow
    };
    let mut ui = Ui::with(rules(), remembering).await;
    for (number, (question, _)) in (1..).zip(TALK) {
        ui.say(CHAT, number, question).await;
        assert_eq!(ui.frame().await.lines(), TURN);
    }
    let asked = ui.azure.requests();
    assert_eq!(messages_of(&asked[0]), ["user: Good morning"]);
    let last = messages_of(&asked[2]);
    assert_eq!(last.len(), 5, "{last:?}");
    assert!(last[1].contains("Good morning to you") && last[4] == "user: Goodbye", "{last:?}");
    ui.end().await;
}
