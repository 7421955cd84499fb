//! Calls, resources and prompts of a server that behaves well.

use crate::kit::{Kit, call, lines, until};
use pretty_assertions::assert_eq;
use redflow_contract::archive::{SourceKind, Trust};
use redflow_contract::code::ToolCode;
use redflow_contract::mcp::McpServerState;
use redflow_contract::node::EffectClass;
use redflow_contract::tool::{ToolOrigin, ToolState};
use redflow_ports::{ContextSource as _, McpServers as _, ToolOutcome, ToolProvider as _};
use serde_json::json;

#[tokio::test]
async fn a_connection_is_made_only_when_it_is_needed() {
    let kit = Kit::with("good", json!({}));
    assert!(kit.hub.tools().is_empty());
    assert_eq!(kit.hub.list().servers[0].since, None);
    kit.hub.connect_all();
    until("it connects", || !kit.hub.tools().is_empty()).await;
}

#[tokio::test]
async fn entries_have_what_the_registry_and_the_policy_need() {
    let kit = Kit::with(
        "good",
        json!({"include": ["echo", "hinted"], "effects": {"*": "read"}, "timeoutMs": 1_234}),
    );
    let entries = kit.entries().await;
    let ids: Vec<_> = entries.iter().map(|entry| (entry.id.as_str(), entry.effect)).collect();
    let expected =
        [("mcp.test.echo", Some(EffectClass::Read)), ("mcp.test.hinted", Some(EffectClass::AtMostOnce))];
    assert_eq!(ids, expected);
    let echo = &entries[0];
    assert_eq!((echo.name.as_str(), echo.provider.as_str()), ("mcp__test__echo", "test"));
    assert_eq!((echo.origin, echo.node_type.as_deref()), (ToolOrigin::Mcp, Some("mcp-client")));
    assert_eq!((echo.timeout_ms, echo.state, echo.permissions.process), (1_234, ToolState::Ready, true));
    let detail = kit.hub.show("test").await.unwrap();
    let included: Vec<_> = detail.tools.iter().map(|tool| (tool.name.as_str(), tool.included)).collect();
    assert_eq!(included, [("count", false), ("echo", true), ("fail", false), ("hinted", true)]);
}

#[tokio::test]
async fn a_call_is_counted_and_has_its_source() {
    let kit = Kit::with("good", json!({}));
    let result = kit.result("count", json!({})).await;
    assert_eq!((result.output, lines(&kit.file()).len()), (Some(json!("counted")), 1));
    // What a server sends may be prompt injection.
    let source = &result.sources[0];
    let shown = (source.kind, source.reference.as_str(), source.trust);
    assert_eq!((result.sources.len(), shown), (1, (SourceKind::Tool, "mcp.test.count", Trust::External)));
    let failed = kit.result("fail", json!({})).await;
    assert_eq!((failed.success, failed.error.as_deref(), failed.code), (false, Some("it failed"), None));
    let records = kit.records.0.lock().unwrap().clone();
    assert_eq!(records, ["up test true", "call test ", "call test failed"]);
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let kit = Kit::with("silent", json!({"effects": {"echo": "read"}, "timeoutMs": 200}));
    let unknown = kit.tool("count").await.tool.call(&call(json!({}), 60_000)).await;
    assert!(matches!(&unknown, ToolOutcome::Unknown { reason } if reason.contains("in time")), "{unknown:?}");
    let read = kit.tool("echo").await.tool.call(&call(json!({}), 100)).await;
    assert!(matches!(&read, ToolOutcome::Returned(result) if !result.success), "{read:?}");
    until("the server is told", || lines(&kit.file()) == ["cancelled", "cancelled"]).await;
    // A dropped call is cancelled too.
    let (tool, request) = (kit.tool("count").await, call(json!({}), 60_000));
    let short = tokio::time::timeout(std::time::Duration::from_millis(100), tool.tool.call(&request)).await;
    assert!(short.is_err());
    until("the server is told again", || lines(&kit.file()).len() == 3).await;
}

#[tokio::test]
async fn a_changed_list_is_read_again_and_only_a_difference_counts() {
    let kit = Kit::with("notifies", json!({}));
    let tool = kit.tool("echo").await;
    let before = kit.hub.generation();
    let done = tool.tool.call(&call(json!({}), 10_000)).await;
    assert!(matches!(&done, ToolOutcome::Returned(result) if result.success), "{done:?}");
    until("the new tool is there", || kit.hub.tools().iter().any(|tool| tool.entry.id == "mcp.test.new"))
        .await;
    let after = kit.hub.generation();
    assert!(after > before);
    kit.hub.connect("test").await.unwrap();
    assert_eq!(kit.hub.generation(), after);
}

#[tokio::test]
async fn resources_are_tools_if_they_are_wanted() {
    let kit = Kit::with("good", json!({}));
    assert!(kit.entries().await.iter().all(|entry| !entry.id.ends_with("resource")));
    let kit = Kit::with("good", json!({"resources": true, "include": ["echo"]}));
    let listed = kit.result("list_resources", json!({})).await.output.unwrap();
    assert_eq!(listed, json!([{"uri": "note:1", "name": "one", "description": "The first."}]));
    let read = kit.result("read_resource", json!({"uri": "note:1"})).await;
    assert_eq!(read.output, Some(json!("text\u{200b} of note:1")));
    let source = &read.sources[0];
    let shown = (source.kind, source.reference.as_str(), source.trust);
    assert_eq!(shown, (SourceKind::Mcp, "test/note:1", Trust::External));
    assert_eq!(kit.tool("read_resource").await.entry.effect, Some(EffectClass::Read));
    let span = kit.hub.read("test", "note:1").await.unwrap();
    assert_eq!((span.text.as_str(), span.expires_at), ("text of note:1", Some(1_767_225_605_000)));
    assert!(kit.hub.read("other", "note:1").await.unwrap_err().contains("no MCP server `other`"));
    let detail = kit.hub.show("test").await.unwrap();
    assert_eq!((detail.resources.len(), detail.prompts.len()), (1, 2));
}

// SECURITY: mcp-prompt
#[tokio::test]
async fn a_prompt_is_one_text_and_one_with_arguments_is_none() {
    let kit = Kit::with("good", json!({}));
    let names = |name: &str| ("test".to_owned(), name.to_owned());
    assert_eq!(kit.hub.prompt("test", "plain"), None);
    kit.hub.wait(&[], &[names("plain"), names("asks"), ("none".to_owned(), "x".to_owned())]).await;
    assert_eq!(kit.hub.prompt("test", "plain").as_deref(), Some("You answer.\n\nShortly."));
    assert_eq!(kit.hub.prompt("test", "asks"), None);
}

// SECURITY: mcp-declined
#[tokio::test]
async fn a_question_before_the_result_is_declined() {
    let kit = Kit::with("modern-asks", json!({"resources": true}));
    let declined = r#"{"action":"decline"}s"#;
    assert_eq!(kit.text("echo", json!({})).await, declined);
    assert_eq!(kit.text("read_resource", json!({"uri": "note:1"})).await, declined);
    kit.hub
        .wait(&[], &[("test".to_owned(), "plain".to_owned()), ("test".to_owned(), "always".to_owned())])
        .await;
    assert_eq!(kit.hub.prompt("test", "plain").as_deref(), Some(declined));
    assert_eq!(kit.hub.prompt("test", "always"), None);
    // A call of the model cannot be declined, and a server that asks again and again gets no answer.
    let always = json!({"uri": "ask:always"});
    for (tool, input, words) in [
        ("count", json!({}), "a call of your model"),
        ("fail", json!({}), "again and again"),
        ("read_resource", always, "again and again"),
    ] {
        let result = kit.result(tool, input).await;
        assert_eq!((result.success, result.code), (false, Some(ToolCode::McpInputRequired)), "{tool}");
        assert!(result.error.as_ref().unwrap().contains(words), "{result:?}");
    }
    let records = kit.records.0.lock().unwrap().clone();
    assert!(records.contains(&"call test MCP_INPUT_REQUIRED".to_owned()), "{records:?}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_no_failed_call() {
    let kit = Kit::with("strange", json!({"effects": {"echo": "read"}}));
    let result = kit.result("count", json!({})).await;
    assert_eq!(result.output, Some(json!([{"type": "text", "text": "done"}, {"type": "unknown"}])));
    // The server may have done it, so a person must look.
    let outcome = kit.call("fail", json!({})).await;
    assert!(
        matches!(&outcome, ToolOutcome::Unknown { reason } if reason.contains("not the result")),
        "{outcome:?}"
    );
    let read = kit.result("echo", json!({})).await;
    assert_eq!(read.code, Some(ToolCode::McpUnavailable));
}

#[tokio::test]
async fn a_result_keeps_large_integers_and_has_no_key_twice() {
    let kit = Kit::with("ambiguous", json!({}));
    let kept = kit.result("echo", json!({})).await;
    let expected =
        json!({"total": "123456789012345678901234567890", "large": 18_446_744_073_709_551_615_u64});
    assert_eq!(kept.output, Some(expected));
    // The server may have done it, so a person must look.
    let outcome = kit.call("count", json!({})).await;
    assert!(
        matches!(&outcome, ToolOutcome::Unknown { reason } if reason.contains("key twice")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_list_that_cannot_be_read_again_ends_no_call() {
    let kit = Kit::with("list-fails", json!({}));
    let tool = kit.tool("echo").await;
    kit.hub.connect("test").await.unwrap();
    let summary = kit.hub.list().servers.remove(0);
    assert_eq!((summary.state, summary.tools), (McpServerState::Ready, 4));
    assert!(
        kit.reason().contains("could not be read again") && kit.reason().contains("busy"),
        "{}",
        kit.reason()
    );
    let done = tool.tool.call(&call(json!({"text": "x"}), 5_000)).await;
    assert!(matches!(&done, ToolOutcome::Returned(result) if result.success), "{done:?}");
    assert_eq!(lines(&kit.file()), ["begins"], "the program is the same");
}

/// A model that gets no text of a long file would call the tool again.
#[tokio::test]
async fn a_promised_output_is_checked_before_it_is_cut() {
    let kit = Kit::with("promises", json!({}));
    let long = kit.result("read", json!({})).await;
    let output = long.output.unwrap();
    assert_eq!((long.success, &output["truncated"]), (true, &json!(true)));
    assert!(output["text"].as_str().unwrap().starts_with("{\"content\":\"xxx"), "{output}");
    assert!(output.to_string().len() < 140_000);
    for text in ["wrong", "text only"] {
        let refused = kit.result("read", json!({"text": text})).await;
        assert_eq!((refused.code, refused.output), (Some(ToolCode::ToolOutputInvalid), None), "{text}");
    }
    assert_eq!(lines(&kit.file()).len(), 3);
    let records = kit.records.0.lock().unwrap().clone();
    assert_eq!(records.last().unwrap(), "call test TOOL_OUTPUT_INVALID");
}

#[tokio::test]
async fn the_address_of_a_resource_is_bounded() {
    let kit = Kit::with("good", json!({"resources": true}));
    let read = async |bytes: usize| kit.result("read_resource", json!({"uri": "x".repeat(bytes)})).await;
    assert!(read(2_048).await.success);
    for bytes in [0, 2_049] {
        assert_eq!(read(bytes).await.error.as_deref(), Some("An address has 1 to 2048 bytes."), "{bytes}");
    }
}
