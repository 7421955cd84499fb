//! Sign-ins through the hub, with a scripted issuer.

use crate::kit::{Kit, call, refusal};
use crate::nodes::build;
use pretty_assertions::assert_eq;
use redflow_contract::api::{ApiError, ProblemCode};
use redflow_contract::code::{ApiCode, ToolCode};
use redflow_contract::mcp::McpServerState;
use redflow_ports::{McpServers as _, ToolOutcome, ToolProvider as _};
use redflow_testkit::TokenServer;
use serde_json::{Value, json};

const REDIRECT: &str = "http://127.0.0.1:7777/oauth/callback";

fn kit(issuer: &TokenServer) -> Kit {
    let kit = Kit::with_private(&[issuer.addr]);
    kit.define_all(json!({"test": {"url": issuer.url(), "auth": {"type": "oauth"}}}));
    kit
}

async fn callback(kit: &Kit, issuer: &TokenServer, server: &str) -> String {
    let login = kit.hub.login(server, REDIRECT).await.unwrap();
    issuer.sign_in(&login.url).unwrap_or_else(|| panic!("{}", login.url))
}

fn refused(answer: Result<impl std::fmt::Debug, ApiError>) -> String {
    let error = answer.unwrap_err();
    assert_eq!(
        (error.code, error.code.status()),
        (ProblemCode::Api(ApiCode::McpLoginRefused), 409),
        "{error:?}"
    );
    error.message
}

#[tokio::test]
async fn a_server_waits_for_a_person_and_goes_on_by_itself() {
    let issuer = TokenServer::start(3_600).unwrap();
    let kit = kit(&issuer);
    assert!(kit.tools().await.is_empty());
    let summary = kit.hub.list().servers.remove(0);
    assert_eq!(summary.state, McpServerState::LoginNeeded);
    assert!(summary.reason.unwrap().contains("`redflow mcp login test`"));
    let before = kit.hub.generation();
    let callback = callback(&kit, &issuer, "test").await;
    // A forged answer does not end the sign-in.
    let forged = callback.split("&iss=").next().unwrap().to_owned() + "&iss=http%3A%2F%2Fevil.example.org";
    let error = kit.hub.finish_login(&forged).await.unwrap_err();
    assert_eq!(error.code, ProblemCode::Api(ApiCode::McpFailed));
    assert_eq!(kit.hub.finish_login(&callback).await.unwrap(), "test");
    assert_eq!(kit.text("echo", json!({"text": "hello"})).await, "hello");
    // Who keeps the secrets by their generation reads the new ones.
    assert!(kit.hub.generation() > before);
    let mut text = "it is SECRET-access-1 and SECRET-refresh-1".to_owned();
    kit.hub.secrets().text(&mut text);
    assert!(!text.contains("SECRET"), "{text}");
    // The server refuses the token, and the sidecar renews it.
    let (before, tool) = (kit.hub.generation(), kit.tool("echo").await);
    issuer.end_access();
    let outcome = tool.tool.call(&call(json!({"text": "SECRET-access-2"}), 5_000)).await;
    let ToolOutcome::Returned(result) = outcome else { panic!("{outcome:?}") };
    assert!(result.success && !format!("{result:?}").contains("SECRET"), "{result:?}");
    assert!(kit.hub.generation() > before);
    assert_eq!(issuer.grants(), ["authorization_code", "refresh_token"]);
    // An answer counts once.
    assert!(refused(kit.hub.finish_login(&callback).await).contains("it has ended"));
    kit.hub.logout("test").await.unwrap();
    crate::kit::until("it is logged out", || kit.hub.list().servers[0].state == McpServerState::LoginNeeded)
        .await;
    let outcome = tool.tool.call(&call(json!({}), 5_000)).await;
    let (code, text) = refusal(&outcome);
    assert_eq!(code, Some(ToolCode::McpUnavailable));
    assert!(text.contains("needs a sign-in") && text.contains("redflow mcp login test"), "{text}");
}

#[tokio::test]
async fn a_sign_in_that_cannot_be_is_refused() {
    let issuer = TokenServer::start(3_600).unwrap();
    let kit = Kit::with_private(&[issuer.addr]);
    let robot =
        json!({"type": "oauth", "grant": "client_credentials", "clientId": "x", "secretEnv": "TEST_SECRET"});
    kit.define_all(json!({"program": {"command": "/bin/true"}, "plain": {"url": issuer.url()},
        "robot": {"url": issuer.url(), "auth": robot}}));
    assert!(refused(kit.hub.login("program", REDIRECT).await).contains("is a program"));
    assert!(refused(kit.hub.logout("program").await).contains("is a program"));
    assert!(refused(kit.hub.login("plain", REDIRECT).await).contains("of the type `oauth`"));
    assert!(refused(kit.hub.login("robot", REDIRECT).await).contains("needs no sign-in"));
    assert!(
        refused(kit.hub.finish_login(&format!("{REDIRECT}?state=no")).await).contains("has not begun here")
    );
    assert!(issuer.requests().is_empty());
}

#[tokio::test]
async fn sign_ins_that_nobody_ends_are_bounded() {
    let issuer = TokenServer::start(3_600).unwrap();
    let kit = Kit::with_private(&[issuer.addr]);
    let server = json!({"url": issuer.url(), "auth": {"type": "oauth", "clientId": "known"}});
    let servers: serde_json::Map<String, Value> =
        (0..65).map(|n| (format!("s{n}"), server.clone())).collect();
    kit.define_all(Value::Object(servers));
    for number in 0..64 {
        kit.hub.login(&format!("s{number}"), REDIRECT).await.unwrap();
    }
    assert!(refused(kit.hub.login("s64", REDIRECT).await).contains("64 sign-ins have begun"));
    // One that begins again takes no further place.
    let callback = callback(&kit, &issuer, "s0").await;
    kit.hub.finish_login(&callback).await.unwrap();
    kit.hub.login("s64", REDIRECT).await.unwrap();
}

#[tokio::test]
async fn a_sign_in_counts_for_all_nodes_with_the_address() {
    let issuer = TokenServer::start(3_600).unwrap();
    let kit = Kit::with_private(&[issuer.addr]);
    let node = |timeout: u64| {
        build(&kit, json!({"url": issuer.url(), "server": "docs", "auth": "oauth", "timeout": timeout}))
            .unwrap()
    };
    let (one, other) = (node(1_000), node(2_000));
    one.ready().await;
    other.ready().await;
    let states = || kit.hub.list().servers.iter().map(|server| server.state).collect::<Vec<_>>();
    assert_eq!(states(), [McpServerState::LoginNeeded; 2]);
    let callback = callback(&kit, &issuer, "docs").await;
    kit.hub.finish_login(&callback).await.unwrap();
    assert_eq!(states(), [McpServerState::Ready; 2]);
    assert_eq!((one.tools().len(), other.tools().len()), (1, 1));
    let mut text = "SECRET-access-1".to_owned();
    kit.hub.secrets().text(&mut text);
    assert!(!text.contains("SECRET"), "the tokens of nodes are secrets too");
}
