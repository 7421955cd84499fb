//! Connections are reused, and use a proxy if there is one.

use crate::scripted_server::{ScriptedServer, Step, json, response, stream, unused_address};
use crate::wires::{CHAT, KEY, WIRES, call_error, call_text};
use futures::future::join_all;
use redflow_contract::code::RunErrorCode as Code;
use redflow_models::ModelSettings;
use redflow_models::no_proxy::NoProxy;
use redflow_models::transport::HttpSettings;
use serde_json::json as value;

#[tokio::test]
async fn many_calls_share_few_connections() {
    for wire in WIRES {
        let server = ScriptedServer::start(vec![json(wire.answer); 30]).await;
        let model = wire.at(&server, value!({}));
        for _ in 0..30 {
            assert_eq!(call_text(&*model).await, "hi");
        }
        assert_eq!((server.request_count(), server.seen().connections), (30, 1));
    }
    let server = ScriptedServer::start(vec![json(CHAT.answer); 100]).await;
    let model = CHAT.at(&server, value!({}));
    for _ in 0..10 {
        join_all((0..10).map(|_| call_text(&*model))).await;
    }
    assert!(server.seen().connections <= 20, "{}", server.seen().connections);
}

#[tokio::test]
async fn streams_share_few_connections() {
    for wire in WIRES {
        // The body goes on after the last event. The rest must not prevent reuse of the connection.
        let bytes = stream(wire.events).into_iter().filter_map(|step| match step {
            Step::Send(bytes) => Some(bytes),
            _ => None,
        });
        let at_once = vec![Step::Send(bytes.flatten().collect())];
        let server = ScriptedServer::start(vec![at_once; 20]).await;
        let model = wire.at(&server, value!({"stream": true}));
        for _ in 0..20 {
            assert_eq!(call_text(&*model).await, "hi");
        }
        let seen = server.seen();
        assert_eq!(seen.requests.len(), 20);
        assert!(seen.connections <= 10, "{}", seen.connections);
    }
}

#[tokio::test]
async fn a_connection_is_reused_after_an_error() {
    let soon = [("retry-after-ms", "1")];
    let server =
        ScriptedServer::start([response(500, &soon, "{}"), response(429, &soon, "{}"), json(CHAT.answer)])
            .await;
    assert_eq!(call_text(&*CHAT.at(&server, value!({"maxRetries": 2}))).await, "hi");
    assert_eq!((server.request_count(), server.seen().connections), (3, 1));
}

fn with_proxy(proxy: &str) -> ModelSettings {
    let http = HttpSettings { proxy: Some(proxy.parse().unwrap()), ..HttpSettings::default() };
    ModelSettings { http, ..ModelSettings::default() }
}

#[tokio::test]
async fn a_configured_proxy_gets_every_request() {
    let proxy = ScriptedServer::start([json(CHAT.answer), json(CHAT.answer)]).await;
    let settings = with_proxy(&format!("http://user:passwort@{}", proxy.address));
    let model = CHAT.at_url("http://models.invalid:8080", value!({}), settings).unwrap();
    assert_eq!(call_text(&*model).await, "hi");
    let model = CHAT.at_url("http://models.invalid", value!({}), with_proxy(&proxy.url())).unwrap();
    assert_eq!(call_text(&*model).await, "hi");
    let seen = proxy.seen();
    let first = seen.requests[0].head.lines().next();
    assert_eq!(first, Some("POST http://models.invalid:8080/v1/chat/completions HTTP/1.1"));
    assert_eq!(seen.requests[0].header("proxy-authorization"), Some("Basic dXNlcjpwYXNzd29ydA=="));
    assert_eq!(seen.requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen.requests[1].header("proxy-authorization"), None);
}

/// The address at which this machine can reach the server, and which is no loopback address.
fn outer_url(server: &ScriptedServer) -> String {
    format!("http://0.0.0.0:{}", server.address.port())
}

#[tokio::test]
async fn a_configured_proxy_is_not_for_this_machine_and_the_hosts_of_the_list() {
    let proxy = ScriptedServer::start(vec![json(CHAT.answer); 2]).await;
    let server = ScriptedServer::start(vec![json(CHAT.answer); 5]).await;
    let port = server.address.port();
    let local = ["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{port}"));
    let outer = outer_url(&server);
    let listed = format!("0.0.0.0:{port}");
    for (url, entry, is_direct) in [
        (&local[0], "a.example", true),
        (&local[1], "a.example", true),
        (&outer, "a.example", false),
        (&outer, "0.0.0.0:1", false),
        (&outer, "0.0.0.0", true),
        (&outer, &listed, true),
        (&outer, "*", true),
    ] {
        let before = (proxy.request_count(), server.request_count());
        let mut settings = with_proxy(&proxy.url());
        settings.http.no_proxy = NoProxy::parse(&[entry.to_owned()]).unwrap();
        let model = CHAT.at_url(url, value!({}), settings).unwrap();
        assert_eq!(call_text(&*model).await, "hi");
        let requests = (proxy.request_count() - before.0, server.request_count() - before.1);
        assert_eq!(requests, if is_direct { (0, 1) } else { (1, 0) }, "{url} {entry}");
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_is_told_of_without_its_password() {
    let proxy = ScriptedServer::start([response(407, &[], ""), response(407, &[], "")]).await;
    let address = format!("http://user:passwort@{}", proxy.address);
    let settings = with_proxy(&address);
    assert!(!format!("{:?}", settings.http).contains("passwort"));
    let model = CHAT.at_url("http://models.invalid", value!({}), settings).unwrap();
    let (code, message) = call_error(&*model).await;
    assert_eq!(code, Code::ModelError);
    assert!(message.contains("(HTTP 407)") && !message.contains("passwort"), "{message}");
    // The proxy refused before TLS, so the key was not sent.
    let model = CHAT.at_url("https://models.invalid", value!({}), with_proxy(&address)).unwrap();
    let (code, message) = call_error(&*model).await;
    assert_eq!(code, Code::ProviderUnavailable);
    assert!(message.contains("no connection could be made") && !message.contains("passwort"), "{message}");
    let request = &proxy.seen().requests[1];
    assert_eq!(request.head.lines().next(), Some("CONNECT models.invalid:443 HTTP/1.1"));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn a_proxy_that_is_not_running() {
    let proxy = format!("http://{}", unused_address().await);
    let model = CHAT.at_url("http://models.invalid", value!({}), with_proxy(&proxy)).unwrap();
    let (code, message) = call_error(&*model).await;
    assert_eq!(code, Code::ProviderUnavailable);
    assert!(message.ends_with("nothing listens there"), "{message}");
}

/// Runs in its own process, because it changes the environment.
#[test]
fn a_proxy_of_the_environment_is_not_for_this_machine() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "connections::behind_a_proxy_of_the_environment", "--ignored"]);
    for name in ["NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "REQUEST_METHOD"] {
        command.env_remove(name);
    }
    command.env("NO_PROXY", "0.0.0.0");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
        command.env(name, format!("http://127.0.0.1:{port}"));
    }
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
}

#[tokio::test]
#[ignore = "needs its own environment; the test above runs it"]
async fn behind_a_proxy_of_the_environment() {
    let server = ScriptedServer::start(vec![json(CHAT.answer); 2]).await;
    // The second one is in the list of the environment.
    for url in [server.url(), outer_url(&server)] {
        let model = CHAT.at_url(&url, value!({}), ModelSettings::default()).unwrap();
        assert_eq!(call_text(&*model).await, "hi");
    }
    // The list of the settings counts for a proxy of the environment too.
    let mut settings = ModelSettings::default();
    settings.http.no_proxy = NoProxy::parse(&["models.invalid".to_owned()]).unwrap();
    let model = CHAT.at_url("http://models.invalid", value!({}), settings).unwrap();
    let (_, message) = call_error(&*model).await;
    assert!(message.ends_with("its name cannot be resolved"), "{message}");
    // Every other request uses the proxy, which is not running. Without it, the error would name DNS.
    let model = CHAT.at_url("http://models.invalid", value!({}), ModelSettings::default()).unwrap();
    let (_, message) = call_error(&*model).await;
    assert!(message.ends_with("nothing listens there"), "{message}");
}
