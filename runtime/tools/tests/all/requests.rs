//! Ordinary requests: what a server receives and what the model gets.

use crate::kit::{Net, Server, redirect, text};
use pretty_assertions::assert_eq;
use proptest::prelude::*;
use redflow_contract::digest::Digest;
use redflow_contract::http_rules::check_host_pattern;
use redflow_egress::HostPattern;
use serde_json::json;

/// The scenario of the README: the model asks for the weather at a service of this machine.
#[tokio::test]
async fn gets_the_weather_from_a_local_server_once_it_is_allowed() {
    let weather = r#"{"city": "Oslo", "degrees": 4}"#;
    let respond = |_: &_| text(200, "content-type: application/json\r\nset-cookie: session=1\r\n", weather);
    let server = Server::start(respond).await;
    let host = format!("127.0.0.1:{}", server.port);
    let input =
        json!({"url": format!("http://{host}/oslo.json"), "method": "GET", "headers": {"Accept": "*/*"}});

    let refused = Net::default().build(&json!({})).unwrap().call(input.clone()).await;
    assert_eq!(refused.code.map(|code| code.as_str()), Some("EGRESS_REFUSED"));
    let error = refused.error.unwrap();
    assert!(error.contains(&format!("add `{host}` to `[egress] private`")), "{error}");
    assert_eq!(server.seen().len(), 0);

    let result = Net::default().private(host).build(&json!({})).unwrap().call(input).await;
    let output = result.output.unwrap();
    assert_eq!((&output["status"], &output["body"]), (&json!(200), &json!({"city": "Oslo", "degrees": 4})));
    assert_eq!(output["headers"]["content-type"], "application/json");
    assert!(output["headers"].get("set-cookie").is_none());
    assert!(output.get("truncated").is_none());
    let request = &server.seen()[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/oslo.json"));
    assert_eq!((request.header("accept"), request.header("idempotency-key")), (Some("*/*"), None));
}

#[tokio::test]
async fn a_request_that_changes_something_has_a_key() {
    let server = Server::start(|_| text(201, "", "done")).await;
    let net = Net::default().host("api.shop.com", 80, &server);
    let tool = net.build(&json!({"headers": {"X-Tenant": "acme"}})).unwrap();
    let key = Digest::of(b"key").to_hex();
    for method in ["POST", "PUT", "DELETE"] {
        let input = json!({"url": "http://api.shop.com/orders", "method": method, "body": {"n": 1}});
        let output = tool.call(input).await.output.unwrap();
        assert_eq!((&output["status"], &output["body"]), (&json!(201), &json!("done")));
        let request = server.seen().pop().unwrap();
        assert_eq!(request.method, method);
        assert_eq!(request.header("idempotency-key"), Some(key.as_str()));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("x-tenant"), Some("acme"));
        assert_eq!(request.body, br#"{"n":1}"#);
    }
    for (headers, problem) in [
        (json!({"X-Tenant": "evil"}), "the header `X-Tenant` cannot be set here; leave it out"),
        (json!({"idempotency-key": "1"}), "the header `idempotency-key` cannot be set here; leave it out"),
    ] {
        let input = json!({"url": "http://api.shop.com/", "method": "GET", "headers": headers});
        assert_eq!(tool.call(input).await.error.as_deref(), Some(problem));
    }
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn the_node_chooses_methods_redirects_and_sizes() {
    let server = Server::start(|request| match request.path.as_str() {
        "/away" => redirect(302, "/here"),
        "/loop" => redirect(302, "/loop"),
        _ => text(200, "content-type: text/plain\r\n", &"x".repeat(500)),
    })
    .await;
    let net = Net::default().host("api.shop.com", 80, &server);
    let get = |path: &str| json!({"url": format!("http://api.shop.com{path}"), "method": "GET"});

    let tool = net.build(&json!({"methods": ["get"], "maxBodyBytes": "100"})).unwrap();
    let output = tool.call(get("/away")).await.output.unwrap();
    let expected = Digest::of("x".repeat(500).as_bytes()).to_hex();
    assert_eq!(output["body"], json!("x".repeat(100)));
    assert_eq!((&output["truncated"], &output["bytes"]), (&json!(true), &json!(500)));
    assert_eq!(output["sha256"], expected);
    let post = tool.call(json!({"url": "http://api.shop.com/", "method": "POST"})).await;
    assert_eq!(post.error.as_deref(), Some("this tool allows other methods; use GET"));
    let endless = tool.call(get("/loop")).await;
    assert!(endless.error.unwrap().contains("there are more than 5 redirects"));

    for props in [json!({"followRedirects": false}), json!({"options": {"maxRedirects": 0}})] {
        let output = net.build(&props).unwrap().call(get("/away")).await.output.unwrap();
        assert_eq!((&output["status"], &output["headers"]["location"]), (&json!(302), &json!("/here")));
    }
}

proptest! {
    /// What the checker accepts, the tool can build.
    #[test]
    fn a_checked_host_pattern_can_be_read(
        pattern in r"(\*\.)?([a-z0-9_-]{1,4}\.){0,3}[a-z0-9]{1,4}(:[0-9]{1,5})?|[0-9.]{1,15}|\[[0-9a-f:]{1,12}\](:[0-9]{2})?|[ -~]{0,12}",
    ) {
        if check_host_pattern(&pattern).is_ok() {
            prop_assert!(HostPattern::parse(&pattern).is_ok(), "{}", pattern);
        }
    }
}
