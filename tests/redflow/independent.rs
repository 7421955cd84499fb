//! A tool iteration with an independent mock of Azure.

use crate::aimock::{Aimock, Options};
use crate::azure::{DEPLOYMENT, KEY, USAGE, VERSION, final_answer, tool_call};
use crate::flows::{AGENT, INJECT, counting};
use crate::ui::Ui;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

#[tokio::test]
async fn a_tool_iteration_with_an_independent_mock() {
    let (prompt, completion, total) = USAGE;
    let fixture = |user: &str, action: Value| {
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total});
        json!({"match": {"userMessage": user}, "response": {"content": action.to_string(), "usage": usage}})
    };
    let observation = json!({"success": true, "output": {"result": 51, "expression": "17 * 3"}}).to_string();
    let fixtures = [
        fixture("What is 17 * 3?", tool_call("calculator", json!({"expression": "17 * 3"}))),
        fixture(&observation, final_answer("It is 51.")),
    ];
    let mock = Aimock::start_with(&fixtures, Options { key: Some(KEY), ..Options::default() });
    let mut ui = Ui::with(vec![], |_| counting(&mock.address())).await;
    ui.inject(INJECT).await;
    let frame = ui.frame().await;
    assert_eq!(
        (frame.errors(), &frame.output(AGENT, 3)["preview"]["payload"]),
        (vec![], &json!("It is 51."))
    );
    let path = format!("/openai/deployments/{DEPLOYMENT}/chat/completions?api-version={VERSION}");
    let requests = mock.requests();
    let sent: Vec<_> =
        requests.iter().map(|request| (request.path.as_str(), request.header("api-key"))).collect();
    assert_eq!(sent, [(path.as_str(), Some(KEY)); 2]);
    ui.end().await;
}
