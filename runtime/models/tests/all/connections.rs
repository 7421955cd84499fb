//! Connections are kept, and lead through a proxy where there is one.

use crate::ask::{CHAT, KEY, WIRES, fails, text};
use crate::server::{Server, Step, json, nowhere, stream, whole};
use futures::future::join_all;
use redflow_contract::code::RunErrorCode as Code;
use redflow_models::ModelSettings;
use redflow_models::transport::HttpSettings;
use serde_json::json as value;

#[tokio::test]
async fn many_calls_share_few_connections() {
    for wire in WIRES {
        let server = Server::start(vec![json(wire.answer); 30]).await;
        let model = wire.at(&server, value!({}));
        for _ in 0..30 {
            assert_eq!(text(&*model).await, "hi");
        }
        assert_eq!((server.requests(), server.seen().connections), (30, 1));
    }
    let server = Server::start(vec![json(CHAT.answer); 100]).await;
    let model = CHAT.at(&server, value!({}));
    for _ in 0..10 {
        join_all((0..10).map(|_| text(&*model))).await;
    }
    assert!(server.seen().connections <= 20, "{}", server.seen().connections);
}

#[tokio::test]
async fn so_do_streams() {
    for wire in WIRES {
        // The last event is not the end of the body: what is left of it must not cost the connection.
        let bytes = stream(wire.events).into_iter().filter_map(|step| match step {
            Step::Send(bytes) => Some(bytes),
            _ => None,
        });
        let at_once = vec![Step::Send(bytes.flatten().collect())];
        let server = Server::start(vec![at_once; 20]).await;
        let model = wire.at(&server, value!({"stream": true}));
        for _ in 0..20 {
            assert_eq!(text(&*model).await, "hi");
        }
        let seen = server.seen();
        assert_eq!(seen.requests.len(), 20);
        assert!(seen.connections <= 10, "{}", seen.connections);
    }
}

#[tokio::test]
async fn errors_do_not_cost_a_connection() {
    let soon = [("retry-after-ms", "1")];
    let server = Server::start([whole(500, &soon, "{}"), whole(429, &soon, "{}"), json(CHAT.answer)]).await;
    assert_eq!(text(&*CHAT.at(&server, value!({"maxRetries": 2}))).await, "hi");
    assert_eq!((server.requests(), server.seen().connections), (3, 1));
}

fn through(proxy: &str) -> ModelSettings {
    let http = HttpSettings { proxy: Some(proxy.parse().unwrap()), ..HttpSettings::default() };
    ModelSettings { http, ..ModelSettings::default() }
}

#[tokio::test]
async fn a_proxy_gets_every_call() {
    let proxy = Server::start([json(CHAT.answer), json(CHAT.answer)]).await;
    let settings = through(&format!("http://user:passwort@{}", proxy.address));
    let model = CHAT.at_url("http://models.invalid:8080", value!({}), settings).unwrap();
    assert_eq!(text(&*model).await, "hi");
    // Also those to this machine: who names a proxy means it.
    let here = format!("http://{}", nowhere().await);
    let model = CHAT.at_url(&here, value!({}), through(&proxy.url())).unwrap();
    assert_eq!(text(&*model).await, "hi");
    let seen = proxy.seen();
    let first = seen.requests[0].head.lines().next();
    assert_eq!(first, Some("POST http://models.invalid:8080/v1/chat/completions HTTP/1.1"));
    assert_eq!(seen.requests[0].header("proxy-authorization"), Some("Basic dXNlcjpwYXNzd29ydA=="));
    assert_eq!(seen.requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen.requests[1].header("proxy-authorization"), None);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_told_of_without_its_password() {
    let proxy = Server::start([whole(407, &[], ""), whole(407, &[], "")]).await;
    let address = format!("http://user:passwort@{}", proxy.address);
    let settings = through(&address);
    assert!(!format!("{:?}", settings.http).contains("passwort"));
    let model = CHAT.at_url("http://models.invalid", value!({}), settings).unwrap();
    let (code, message) = fails(&*model).await;
    assert_eq!(code, Code::ModelError);
    assert!(message.contains("(HTTP 407)") && !message.contains("passwort"), "{message}");
    // Before TLS begins, there is not even a connection; and the key has not been sent.
    let model = CHAT.at_url("https://models.invalid", value!({}), through(&address)).unwrap();
    let (code, message) = fails(&*model).await;
    assert_eq!(code, Code::ProviderUnavailable);
    assert!(message.contains("no connection could be made") && !message.contains("passwort"), "{message}");
    let request = &proxy.seen().requests[1];
    assert_eq!(request.head.lines().next(), Some("CONNECT models.invalid:443 HTTP/1.1"));
    assert_eq!(request.header("authorization"), None);
}

#[tokio::test]
async fn a_proxy_that_is_not_there() {
    let proxy = format!("http://{}", nowhere().await);
    let model = CHAT.at_url("http://models.invalid", value!({}), through(&proxy)).unwrap();
    let (code, message) = fails(&*model).await;
    assert_eq!(code, Code::ProviderUnavailable);
    assert!(message.ends_with("nothing listens there"), "{message}");
}

/// The environment belongs to the process, so this runs in one of its own.
#[test]
fn a_proxy_of_the_environment_is_not_for_this_machine() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "connections::behind_a_proxy_of_the_environment", "--ignored"]);
    for name in ["NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "REQUEST_METHOD"] {
        command.env_remove(name);
    }
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
        command.env(name, format!("http://127.0.0.1:{port}"));
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
#[ignore = "needs an environment of its own: run by the test above"]
async fn behind_a_proxy_of_the_environment() {
    let server = Server::start([json(CHAT.answer)]).await;
    let model = CHAT.at_url(&server.url(), value!({}), ModelSettings::default()).unwrap();
    assert_eq!(text(&*model).await, "hi");
    // Every other call goes to the proxy, which is not there; a name nobody has would be told of otherwise.
    let model = CHAT.at_url("http://models.invalid", value!({}), ModelSettings::default()).unwrap();
    let (_, message) = fails(&*model).await;
    assert!(message.ends_with("nothing listens there"), "{message}");
}
