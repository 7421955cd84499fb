//! Agents that may not run: the deploy succeeds, and the agent is refused.

use crate::azure::{Turn, final_answer, when};
use crate::conversation::text;
use crate::flows::{AGENT, CHAT, DEBUG, INJECT, INJECT2, MODEL, fresh_agent, inject, talking};
use crate::ui::Ui;
use pretty_assertions::assert_eq;
use serde_json::json;

#[tokio::test]
async fn a_refused_agent() {
    let mut ui = Ui::start(vec![when("How are you?", [Turn::Act(final_answer("Fine."))])]).await;
    let mut flow = talking(&ui.azure.endpoint());
    // A model is no output.
    flow.node(AGENT)["wires"][3] = json!([DEBUG, MODEL]);
    ui.deploy(&flow).await;
    let refused = ui.refused(AGENT).await;
    assert!(
        ["port 3", "Azure OpenAI", "EDGE_KIND_MISMATCH"].iter().all(|words| refused.contains(words)),
        "{refused}"
    );
    ui.store_keys(&flow).await;
    let list = ui.api("GET", "/api/flows").await;
    let agent = &list["flows"][0]["agents"][0];
    assert_eq!((&agent["ready"], text(agent, "/problems/0/code")), (&json!(false), "EDGE_KIND_MISMATCH"));
    let reason = agent["problems"][0].to_string();
    assert!(reason.contains(AGENT) && reason.contains(MODEL) && reason.contains(r#""port":3"#), "{reason}");
    // Nothing has run. A question gets the same error at once.
    assert_eq!(ui.runs().await, [] as [serde_json::Value; 0]);
    for number in 0..2 {
        let trigger = if number == 0 { "inject" } else { "chat-node" };
        if number == 0 {
            ui.inject(INJECT).await;
        } else {
            assert_eq!(ui.say(CHAT, number, "Hello?").await, AGENT);
        }
        // The UI reads the chat as soon as it sees port 4.
        let (events, history) = ui.until_answered(CHAT).await;
        let frame = ui.frame_from(events).await;
        let expected = [
            &format!("start {trigger}"),
            &format!("out {trigger} 0 transformed"),
            "in agent-core",
            "out agent-core 4 terminated",
            "in chat-node",
            "out chat-node - pass-through",
            "out agent-core 3 terminated",
            "error agent-core EDGE_REJECTED",
            "in debug",
            "out debug - pass-through",
            "end",
        ];
        assert_eq!(frame.lines(), expected);
        let (who, what) = history.last().unwrap();
        assert!(who == "agent" && what.starts_with("EDGE_REJECTED: "), "{history:?}");
        // It says what to do.
        assert!(
            what.contains("EDGE_KIND_MISMATCH")
                && what.ends_with("Move the wire to port 0 (model) of an agent-core."),
            "{what}"
        );
        assert!(text(frame.output(AGENT, 4), "/fullMessage").len() > 20);
    }
    assert_eq!(ui.azure.requests().len(), 0);
    // The fixed agent runs.
    flow.node(AGENT)["wires"][3] = json!([DEBUG]);
    ui.deploy(&flow).await;
    ui.check_accepted(AGENT).await;
    ui.inject(INJECT).await;
    assert_eq!(ui.frame().await.output(AGENT, 3)["agentResult"]["completed"], true);
    ui.end().await;
}

#[tokio::test]
async fn a_message_to_a_model_node_does_no_harm() {
    let mut ui = Ui::start(vec![when("How are you?", [Turn::Act(final_answer("Fine."))])]).await;
    let mut flow = talking(&ui.azure.endpoint());
    flow.0.push(inject(INJECT2, "Hello, model", MODEL));
    ui.deploy(&flow).await;
    let refused = ui.refused(AGENT).await;
    assert!(["Azure OpenAI", "EDGE_KIND_MISMATCH"].iter().all(|words| refused.contains(words)), "{refused}");
    ui.inject(INJECT2).await;
    let frame = ui.frame().await;
    assert_eq!(frame.lines()[..2], ["start inject 2", "out inject 2 0 transformed"]);
    assert_eq!(ui.azure.requests().len(), 0);
    ui.end().await;
}

#[tokio::test]
async fn refuses_nodes_without_settings() {
    let mut ui = Ui::start(vec![]).await;
    let mut flow = talking(&ui.azure.endpoint());
    for name in ["endpoint", "deployment", "apiVersion"] {
        flow.node(MODEL)[name] = json!("");
    }
    flow.0.push(fresh_agent("agent-core-1766000000102", json!([])));
    ui.deploy(&flow).await;
    let mut refused = [ui.event().await, ui.event().await, ui.event().await, ui.event().await];
    refused.sort_by_key(|event| (text(event, "/nodeId").to_owned(), text(event, "/event").to_owned()));
    let codes: Vec<&str> =
        refused.iter().filter_map(|event| event.pointer("/data/error/code")?.as_str()).collect();
    assert_eq!(codes, ["CONFIG_INVALID", "MODEL_MISSING"]);
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    assert_eq!(frame.errors().len(), 1);
    ui.end().await;
}
