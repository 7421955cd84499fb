//! The same against a mock of Azure that is not ours.

use crate::aimock::{Aimock, Options};
use crate::azure::{DEPLOYMENT, KEY, USAGE, VERSION, calls, says};
use crate::flows::{AGENT, INJECT, counting};
use crate::ui::Ui;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

#[tokio::test]
async fn a_tool_iteration_against_a_mock_that_is_not_ours() {
    let (prompt, completion, total) = USAGE;
    let fixture = |user: &str, action: Value| {
        let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total});
        json!({"match": {"userMessage": user}, "response": {"content": action.to_string(), "usage": usage}})
    };
    let observation = json!({"success": true, "output": {"result": 51, "expression": "17 * 3"}}).to_string();
    let fixtures = [
        fixture("What is 17 * 3?", calls("calculator", json!({"expression": "17 * 3"}))),
        fixture(&observation, says("It is 51.")),
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
    let seen = mock.requests();
    let asked: Vec<_> =
        seen.iter().map(|request| (request.path.as_str(), request.header("api-key"))).collect();
    assert_eq!(asked, [(path.as_str(), Some(KEY)); 2]);
    ui.end().await;
}
