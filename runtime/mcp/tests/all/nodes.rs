//! The node `mcp-client`.

use crate::kit::Kit;
use crate::peer::{Peer, method_of, modern, result};
use pretty_assertions::assert_eq;
use redflow_contract::code::DiagnosticCode;
use redflow_contract::id::NodeSummary;
use redflow_contract::mcp::{McpOrigin, McpServerState, McpTransport};
use redflow_contract::node::EffectClass;
use redflow_ports::{Adapters, McpServers as _, NodeConfig, ToolProvider};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;

pub(crate) fn build(kit: &Kit, props: Value) -> Result<Arc<dyn ToolProvider>, String> {
    build_named(kit, "", props).0
}

pub(crate) fn build_named(
    kit: &Kit,
    name: &str,
    props: Value,
) -> (Result<Arc<dyn ToolProvider>, String>, Vec<String>) {
    let mut adapters = Adapters::default();
    redflow_mcp::register(&mut adapters, &kit.hub);
    let node = NodeSummary { id: "n".into(), type_name: "mcp-client".to_owned(), name: name.to_owned() };
    let secrets = RefCell::new(Vec::new());
    let on_secret = |secret: &str| secrets.borrow_mut().push(secret.to_owned());
    let config = NodeConfig::new(&node, props.as_object().unwrap(), &|_| None, &on_secret);
    let built = adapters.tool_providers["mcp-client"](config).map_err(|error| error.to_string());
    (built, secrets.into_inner())
}

#[tokio::test]
async fn a_node_narrows_the_tools_of_a_server_of_the_manifest() {
    let kit = Kit::with("good", json!({"exclude": ["fail"], "effects": {"echo": "at_most_once"}}));
    let props = json!({"server": "test", "include": "echo, fail, h*", "effects": {"echo": "read"},
        "resources": true, "timeout": 500, "maxResultBytes": 10});
    let provider = build(&kit, props).unwrap();
    assert_eq!((provider.is_ready(), provider.tools().len()), (false, 0));
    let before = provider.generation();
    provider.ready().await;
    assert!(provider.is_ready() && provider.generation() > before);
    let tools = provider.tools();
    let entries: Vec<_> =
        tools.iter().map(|tool| (tool.entry.id.as_str(), tool.entry.effect, tool.entry.timeout_ms)).collect();
    let expected = [
        ("mcp.test.echo", Some(EffectClass::Read), 500),
        ("mcp.test.hinted", Some(EffectClass::AtMostOnce), 500),
        ("mcp.test.list_resources", Some(EffectClass::Read), 500),
        ("mcp.test.read_resource", Some(EffectClass::Read), 500),
    ];
    assert_eq!(entries, expected);
    assert!(provider.notices().await.is_empty());
    let call = crate::kit::call(json!({"text": "x".repeat(100)}), 5_000);
    let outcome = tools[0].tool.call(&call).await;
    let redflow_ports::ToolOutcome::Returned(result) = outcome else { panic!("{outcome:?}") };
    assert_eq!(result.output.unwrap()["truncated"], json!(true));
}

// SECURITY: mcp-program
#[tokio::test]
async fn a_server_that_is_not_in_the_manifest_is_a_notice() {
    let kit = Kit::new();
    let provider = build(&kit, json!({"server": "nothing"})).unwrap();
    provider.ready().await;
    assert!(provider.tools().is_empty() && provider.is_ready());
    let notices = provider.notices().await;
    assert_eq!((notices.len(), notices[0].code), (1, DiagnosticCode::McpServerUnknown));
    assert!(notices[0].help.contains("redflow mcp add nothing"), "{}", notices[0].help);
    // The palette shows it in the language of the user.
    let key = |phrase: Option<&redflow_contract::phrase::Phrase>| phrase.map(|phrase| phrase.key.to_string());
    assert_eq!(key(notices[0].message_phrase.as_ref()).as_deref(), Some("mcp_server_unknown"));
    assert_eq!(key(notices[0].help_phrase.as_ref()).as_deref(), Some("mcp_server_unknown_help"));
    // It gets the tools once the manifest has the server.
    kit.define("good", json!({}));
    let provider = build(&kit, json!({"server": "test"})).unwrap();
    provider.ready().await;
    assert_eq!(provider.tools().len(), 4);
}

// SECURITY: mcp-program
#[test]
fn wrong_combinations_cannot_be_built() {
    let kit = Kit::new();
    let rows = [
        (json!({}), "names no server"),
        (json!({"server": " ", "url": ""}), "names no server"),
        (json!({"server": "a.b"}), "letters, digits"),
        (json!({"url": "ftp://example.org"}), "begins with `http://`"),
        (json!({"url": "example.org/mcp"}), "begins with `http://`"),
        (json!({"server": "a", "effects": {"*": "write"}}), "`effects` has a class"),
        (json!({"url": "https://example.org/mcp", "auth": "bearer"}), "`token` is missing"),
        (
            json!({"url": "https://example.org/mcp", "auth": "header", "credentials": {"headerValue": "v"}}),
            "`headerName`",
        ),
        (
            json!({"url": "https://example.org/mcp", "auth": "header", "headerName": "X Y", "credentials": {"headerValue": "v"}}),
            "cannot be sent",
        ),
    ];
    for (props, expected) in rows {
        let error = build(&kit, props.clone()).map(drop).unwrap_err();
        assert!(error.contains(expected), "{props}: {error}");
    }
}

#[test]
fn nodes_with_the_same_address_share_a_server_and_it_ends_with_them() {
    let kit = Kit::new();
    let props = json!({"url": "https://example.org:8443/mcp", "auth": "bearer", "credentials": {"token": "t0ken-t0ken"}});
    let (one, secrets) = build_named(&kit, "My docs", props.clone());
    assert_eq!(secrets, ["t0ken-t0ken"]);
    let other = build_named(&kit, "My docs", props).0.unwrap();
    let servers = kit.hub.list().servers;
    assert_eq!(servers.len(), 1);
    let server = &servers[0];
    assert_eq!((server.name.as_str(), server.origin), ("My-docs", McpOrigin::Node));
    assert_eq!((server.transport, server.state), (McpTransport::Http, McpServerState::Idle));
    let named =
        build_named(&kit, "My docs", json!({"url": "https://example.org:8443/mcp", "server": "docs"})).0;
    let by_host = build(&kit, json!({"url": "https://example.org/mcp"})).unwrap();
    let names: Vec<_> = kit.hub.list().servers.into_iter().map(|server| server.name).collect();
    assert_eq!(names, ["My-docs", "docs", "example-org"]);
    drop((one, other, named, by_host));
    assert!(kit.hub.list().servers.is_empty());
}

/// The boxes of the dialog name the tools of the server. The tools for resources have a box of their own.
#[tokio::test]
async fn ticked_tools_do_not_take_the_tools_for_resources_away() {
    let peer = Peer::start(|request| match method_of(request).as_str() {
        "server/discover" => result(
            request,
            &[],
            &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                "cacheScope": "private", "capabilities": {"tools": {}, "resources": {}}}),
        ),
        _ => modern(request),
    })
    .await;
    let kit = Kit::with_private(&[peer.server.addr]);
    kit.define_all(json!({"plain": {"url": peer.url()}, "offers": {"url": peer.url(), "resources": true}}));
    let places = [
        json!({"server": "plain", "resources": true}),
        json!({"server": "offers"}),
        json!({"server": "docs", "url": peer.url(), "resources": true}),
    ];
    for place in places {
        let names = async |more: Value| {
            let mut props = place.clone();
            props.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let provider = build(&kit, props).unwrap();
            provider.ready().await;
            let name = |id: &str| id.rsplit('.').next().unwrap().to_owned();
            provider.tools().iter().map(|tool| name(&tool.entry.id)).collect::<Vec<_>>().join(" ")
        };
        let ticked = names(json!({"include": "echo"})).await;
        assert_eq!(ticked, "echo list_resources read_resource", "{place}");
        let without = names(json!({"include": "echo", "exclude": "read_resource"})).await;
        assert_eq!(without, "echo list_resources", "{place}");
    }
}
