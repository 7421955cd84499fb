//! Secrets are hidden, and similar names are not. `Ui::end` checks in every test that the key appears nowhere.

use crate::azure::{KEY, Turn, final_answer, when};
use crate::client::Request;
use crate::conversation::text;
use crate::flows::{AGENT, CHAT, DEBUG, INJECT, MODEL, talking};
use crate::ui::{STORAGE, Ui, encoded};
use pretty_assertions::assert_eq;
use serde_json::json;

#[tokio::test]
async fn a_model_that_repeats_its_key() {
    let leak = Turn::Act(final_answer(&format!("My key is {KEY}!")));
    let mut ui = Ui::with(vec![when("How are you?", [leak])], talking).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    assert_eq!(text(frame.output(AGENT, 4), "/fullMessage"), "My key is [redacted]!");
    assert_eq!(ui.debug().await["msg"], "My key is [redacted]!");
    assert_eq!(ui.history(CHAT).await[0].1, "My key is [redacted]!");
    ui.end().await;
}

#[tokio::test]
async fn names_decide_what_is_hidden() {
    let named = |endpoint: &str| {
        let mut flow = talking(endpoint);
        let asks = flow.node(INJECT);
        let payload = json!({"author": "Ada", "maxTokens": 7, "password": "open sesame", "nested": {"apiKey": "k-1"},
                             "question": "How are you?"});
        asks["payload"] = json!(payload.to_string());
        asks["payloadType"] = json!("json");
        asks["wires"] = json!([[DEBUG]]);
        flow
    };
    let mut ui = Ui::with(vec![], named).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    assert_eq!(
        frame.lines(),
        ["start inject", "out inject 0 transformed", "in debug", "out debug - pass-through", "end"]
    );
    let hidden = json!({"author": "Ada", "maxTokens": 7, "password": "[REDACTED]", "nested": {"apiKey": "[REDACTED]"},
                        "question": "How are you?"});
    assert_eq!((&frame.output(INJECT, 0)["preview"], &frame.inputs(DEBUG)[0]["preview"]), (&hidden, &hidden));
    ui.end().await;
}

#[tokio::test]
async fn a_stored_key_is_used_and_never_read() {
    let mut ui = Ui::with(vec![when("How are you?", [Turn::Act(final_answer("Fine."))])], talking).await;
    let key = format!("node-credentials:{MODEL}");
    let masked = json!({"apiKey": "__PWRD__"});
    assert_eq!(ui.get(STORAGE).await.ok(200), json!({&key: masked}));
    assert_eq!(ui.get(&format!("{STORAGE}/{}", encoded(&key))).await.ok(200)["value"], masked);
    assert_eq!(ui.get(&format!("/agent-core/node-credentials/{MODEL}")).await.ok(200)["data"], masked);
    // The UI sends the masked value back, which changes nothing.
    ui.post(STORAGE, json!({&key: masked})).await.ok(200);
    // Other origins cannot read it.
    let other = |origin: Option<&str>| {
        let request = Request::new(ui.sidecar.addr, "GET", STORAGE);
        origin.map_or(request.clone(), |origin| request.header("origin", origin))
    };
    other(None).send().await.refused(401, "UNAUTHORIZED");
    for origin in ["http://localhost:5174", "https://localhost:5173", "null"] {
        let reply = other(Some(origin)).send().await;
        reply.refused(403, "ORIGIN_REFUSED");
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    ui.inject(INJECT).await;
    assert_eq!(ui.frame().await.output(AGENT, 3)["agentResult"]["completed"], true);
    ui.end().await;
}
