//! Tools of the manifest against a real TLS server.

use crate::kit::{Authority, BuiltTool, Net, Server, redirect, text};
use pretty_assertions::assert_eq;
use redflow_contract::manifest::ManifestTool;
use redflow_contract::node::EffectClass;
use redflow_contract::scrub::Scrubber;
use redflow_ports::{Adapters, ManifestToolConfig};
use serde_json::{Value, json};
use std::sync::Mutex;

fn tool(more: Value) -> ManifestTool {
    let mut tool = json!({"id": "shop.item", "kind": "http", "description": "d", "inputSchema": {"type": "object"},
        "url": "https://api.shop.com/items/{{input.id}}"});
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(tool).unwrap()
}

fn build(net: &Net, more: Value) -> Result<BuiltTool, String> {
    let secrets = Mutex::new(Scrubber::default());
    let env = |name: &str| match name {
        "SHOP_KEY" => Some("k3y-of-the-shop".to_owned()),
        "BROKEN_KEY" => Some("k3y\n".to_owned() + "x"),
        _ => None,
    };
    let on_secret = |secret: &str| secrets.lock().unwrap().add(secret);
    let config = ManifestToolConfig { tool: &tool(more), env: &env, on_secret: &on_secret };
    let mut adapters = Adapters::default();
    redflow_tools::register(&mut adapters, net.settings());
    let tool = adapters.manifest_tool.unwrap()(config)?;
    Ok(BuiltTool { tool, secrets: secrets.into_inner().unwrap() })
}

#[tokio::test]
async fn a_key_of_the_environment_goes_to_its_host_only() {
    let authority = Authority::new();
    let respond = |request: &redflow_testkit::HttpRequest| match request.path.split('?').next().unwrap() {
        "/items/away" => redirect(302, "https://evil.com/"),
        "/items/moved" => text(304, "", ""),
        "/items/none" => text(404, "content-type: application/json\r\n", &format!("{request:?}")),
        _ => text(
            200,
            "content-type: application/json\r\n",
            &json!({"all": format!("{request:?}")}).to_string(),
        ),
    };
    let api = Server::start_tls(&authority, "api.shop.com", respond).await;
    let foreign = Server::start_tls(&authority, "evil.com", |_| text(200, "", "")).await;
    let net =
        Net::default().trust(&authority).host("api.shop.com", 443, &api).host("evil.com", 443, &foreign);
    for (credential, header, path) in [
        (
            json!({"type": "bearer", "env": "SHOP_KEY"}),
            Some(("authorization", "Bearer k3y-of-the-shop")),
            "/items/5",
        ),
        (
            json!({"type": "basic", "user": "ada", "env": "SHOP_KEY"}),
            Some(("authorization", "Basic YWRhOmszeS1vZi10aGUtc2hvcA==")),
            "/items/5",
        ),
        (
            json!({"type": "header", "name": "X-Key", "env": "SHOP_KEY"}),
            Some(("x-key", "k3y-of-the-shop")),
            "/items/5",
        ),
        (json!({"type": "query", "name": "key", "env": "SHOP_KEY"}), None, "/items/5?key=k3y-of-the-shop"),
    ] {
        let tool = build(&net, json!({"credential": credential})).unwrap();
        // The body alone is the output.
        let mut result = tool.call(json!({"id": 5})).await;
        let request = api.seen().pop().unwrap();
        assert_eq!(request.path, path);
        assert!(header.is_none_or(|(name, value)| request.header(name) == Some(value)), "{request:?}");
        tool.secrets.result(&mut result);
        let output = result.output.unwrap();
        assert!(output["all"].as_str().unwrap().contains("[redacted]"), "{output}");
        assert!(!output.to_string().contains("k3y"), "{output}");
        let refused = tool.call(json!({"id": "away"})).await;
        assert_eq!(refused.code.map(|code| code.as_str()), Some("EGRESS_REFUSED"), "{refused:?}");
        let moved = tool.call(json!({"id": "moved"})).await;
        assert_eq!(moved.error.as_deref(), Some("the server answered with status 304: "));
        let mut failed = tool.call(json!({"id": "none"})).await;
        tool.secrets.result(&mut failed);
        let error = failed.error.unwrap();
        assert!(error.starts_with("the server answered with status 404: "), "{error}");
        assert!(!error.contains("k3y"), "{error}");
    }
    assert_eq!(foreign.seen().len(), 0);
}

#[tokio::test]
async fn a_definition_says_method_effect_and_body() {
    let server = Server::start(|_| text(200, "content-type: text/plain\r\n", "made")).await;
    let net = Net::default().host("api.shop.com", 80, &server);
    let url = "http://api.shop.com/items";
    let post = json!({"url": url, "method": "POST", "body": {"name": "{{input.name}}"}});
    let tool = build(&net, post.clone()).unwrap();
    assert_eq!(tool.tool.effect(&Default::default()), EffectClass::AtMostOnce);
    assert_eq!(tool.call(json!({"name": "lamp", "other": 1})).await.output, Some(json!("made")));
    let request = server.seen().pop().unwrap();
    assert_eq!(
        (request.method.as_str(), request.body.as_slice()),
        ("POST", br#"{"name":"lamp"}"#.as_slice())
    );
    assert!(request.header("idempotency-key").is_some());
    let mut idempotent = post;
    idempotent["effect"] = json!("idempotent");
    assert_eq!(build(&net, idempotent).unwrap().tool.effect(&Default::default()), EffectClass::Idempotent);
    let missing =
        build(&net, json!({"url": "http://api.shop.com/{{input.id}}"})).unwrap().call(json!({})).await;
    assert_eq!(missing.error.as_deref(), Some("the input has no `id`"));
    let keyed = json!({"url": url, "credential": {"type": "bearer", "env": "SHOP_KEY"}});
    let open = build(&net, keyed).unwrap().call(json!({})).await;
    assert!(open.error.unwrap().contains("must begin with https://"));
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_definition_that_cannot_work_is_not_built() {
    for (more, problem) in [
        (json!({"credential": {"type": "bearer", "env": "UNSET_KEY"}}), "`UNSET_KEY` is not set"),
        (json!({"credential": {"type": "bearer", "env": "BROKEN_KEY"}}), "characters that cannot be sent"),
        (json!({"credential": {"type": "basic", "user": "a:b", "env": "SHOP_KEY"}}), "`user` has characters"),
        (json!({"credential": {"type": "header", "name": "Host", "env": "SHOP_KEY"}}), "cannot be used"),
        (json!({"url": "https://{{input.host}}/"}), "its host must be fixed"),
    ] {
        let error = build(&Net::default(), more).unwrap_err();
        assert!(error.contains(problem), "{error}");
        assert!(!error.contains("k3y"), "{error}");
    }
}
