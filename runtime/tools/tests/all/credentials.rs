//! Credentials: four kinds arrive at their host and nowhere else, and no result has one.

use crate::kit::{Authority, Net, Server, redirect, text};
use pretty_assertions::assert_eq;
use redflow_testkit::HttpRequest;
use serde_json::{Value, json};

/// What a server must receive for a kind of credentials.
struct Kind {
    props: Value,
    /// The header or the query that carries it.
    header: Option<(&'static str, &'static str)>,
    query: Option<&'static str>,
    /// Texts that no other server and no result may have.
    secrets: &'static [&'static str],
}

fn kinds() -> Vec<Kind> {
    let kind = |props, header, query, secrets| Kind { props, header, query, secrets };
    vec![
        kind(
            json!({"authentication": "basic", "user": "ada", "credentials": {"password": "s3cret+pass/word"}}),
            Some(("authorization", "Basic YWRhOnMzY3JldCtwYXNzL3dvcmQ=")),
            None,
            &["s3cret+pass/word", "YWRhOnMzY3JldCtwYXNzL3dvcmQ"],
        ),
        kind(
            // Too short to be scrubbed alone.
            json!({"authentication": "httpBasicAuth", "credentials": {"user": "lovelace", "password": "pw"}}),
            Some(("authorization", "Basic bG92ZWxhY2U6cHc=")),
            None,
            &["lovelace:pw", "bG92ZWxhY2U6cHc="],
        ),
        kind(
            json!({"authentication": "header", "headerName": "X-Auth", "credentials": {"headerValue": "h3ader-value"}}),
            Some(("x-auth", "h3ader-value")),
            None,
            &["h3ader-value"],
        ),
        kind(
            json!({"options": {"authentication": "bearer"}, "credentials": {"token": "t0ken-of-the-service"}}),
            Some(("authorization", "Bearer t0ken-of-the-service")),
            None,
            &["t0ken-of-the-service"],
        ),
        kind(
            json!({"authentication": "apiKey", "credentials": {"apiKey": "k3y-of-the-service"}}),
            Some(("x-api-key", "k3y-of-the-service")),
            None,
            &["k3y-of-the-service"],
        ),
        kind(
            json!({"authentication": "apiKey", "apiKeyIn": "query", "apiKeyName": "the key",
                "credentials": {"apiKey": "k3y/of the&service"}}),
            None,
            Some("the+key=k3y%2Fof+the%26service"),
            &["k3y/of the&service", "k3y%2Fof+the%26service", "k3y%2Fof%20the%26service"],
        ),
        // A blank in the credentials does not hide the node's own property.
        kind(
            json!({"authentication": "apiKey", "apiKeyIn": "query", "apiKeyName": "own",
                "credentials": {"apiKey": "k3y-of-the-service", "apiKeyIn": " ", "apiKeyName": ""}}),
            None,
            Some("own=k3y-of-the-service"),
            &["k3y-of-the-service"],
        ),
    ]
}

/// Answers with everything that the server received, in several spellings.
fn echo(request: &HttpRequest) -> Vec<u8> {
    if let Some(to) = request.path.split("to=").nth(1) {
        let to = to.split('&').next().unwrap().replace("%2F", "/").replace("%3A", ":");
        return redirect(302, &to);
    }
    let all = format!("{request:?}");
    let body = json!({"all": all, "path": request.path, "headers": request.headers}).to_string();
    text(200, &format!("content-type: application/json\r\nx-echo: {}\r\n", request.path), &body)
}

fn has(request: &HttpRequest, kind: &Kind) -> bool {
    let header = kind.header.is_none_or(|(name, value)| request.header(name) == Some(value));
    header && kind.query.is_none_or(|query| request.path.contains(query))
}

fn shows(text: &str, kind: &Kind) -> bool {
    kind.secrets.iter().any(|secret| text.contains(secret))
}

// SECURITY: tool-credential
#[tokio::test]
async fn four_kinds_arrive_at_their_host_and_at_no_other() {
    let authority = Authority::new();
    let api = Server::start_tls(&authority, "api.shop.com", echo).await;
    let sister = Server::start_tls(&authority, "cdn.shop.com", echo).await;
    let foreign = Server::start_tls(&authority, "evil.com", echo).await;
    let net = Net::default().trust(&authority);
    let net = net
        .host("api.shop.com", 443, &api)
        .host("cdn.shop.com", 443, &sister)
        .host("evil.com", 443, &foreign);
    for kind in kinds() {
        let mut props = kind.props.clone();
        props["hosts"] = json!("*.shop.com");
        props["headers"] = json!({"X-Tenant": "acme"});
        let tool = net.build(&props).unwrap();
        let get = |url: &str| json!({"url": url, "method": "GET"});

        let mut result = tool.call(get("https://api.shop.com/items?a=1")).await;
        let request = api.seen().pop().unwrap();
        assert!(has(&request, &kind), "{request:?}");
        assert_eq!(request.header("x-tenant"), Some("acme"));
        // The server echoed it, and the engine scrubs results with the secrets that the tool reported.
        assert!(shows(&result.output.as_ref().unwrap().to_string(), &kind), "{result:?}");
        tool.secrets.result(&mut result);
        assert!(!shows(&result.output.as_ref().unwrap().to_string(), &kind), "{result:?}");

        // Within its host a redirect keeps it.
        let kept = tool.call(get("https://api.shop.com/?to=https%3A%2F%2Fapi.shop.com%2Fnext")).await;
        assert_eq!(kept.output.unwrap()["status"], 200);
        assert!(has(&api.seen().pop().unwrap(), &kind));

        // At another origin nothing of it arrives, nor the node's header.
        let moved = tool.call(get("https://api.shop.com/?to=https%3A%2F%2Fcdn.shop.com%2Ffile")).await;
        assert_eq!(moved.output.unwrap()["status"], 200);
        let request = sister.seen().pop().unwrap();
        assert!(!shows(&format!("{request:?}"), &kind), "{request:?}");
        assert_eq!(request.header("x-tenant"), None);

        // A foreign host is refused, directly and after a redirect.
        for url in ["https://evil.com/", "https://api.shop.com/?to=https%3A%2F%2Fevil.com%2F"] {
            let refused = tool.call(get(url)).await;
            assert_eq!(refused.code.map(|code| code.as_str()), Some("EGRESS_REFUSED"), "{refused:?}");
            assert!(refused.error.unwrap().contains("not one of the hosts that the flow names"));
        }
        // Nor does it go by plain http.
        let plain = tool.call(get("http://api.shop.com/")).await;
        assert_eq!(
            plain.error.as_deref(),
            Some("this tool sends credentials, so the address must begin with https://")
        );
    }
    assert_eq!(foreign.seen().len(), 0);
}

// SECURITY: tool-credential
#[tokio::test]
async fn a_private_host_may_get_a_credential_by_http() {
    let server = Server::start(|_| text(200, "", "ok")).await;
    let host = format!("127.0.0.1:{}", server.port);
    let net = Net::default().private(host.clone());
    let props = json!({"authentication": "bearer", "token": "t0ken-of-the-nas", "hosts": [host]});
    let result =
        net.build(&props).unwrap().call(json!({"url": format!("http://{host}/"), "method": "GET"})).await;
    assert_eq!(result.output.unwrap()["body"], "ok");
    assert_eq!(server.seen()[0].header("authorization"), Some("Bearer t0ken-of-the-nas"));
}

#[tokio::test]
async fn a_key_in_a_header_of_the_node_needs_https_too() {
    let server = Server::start(|_| text(200, "", "ok")).await;
    let net = Net::default().host("api.shop.com", 80, &server);
    let props = json!({"hosts": "api.shop.com", "headers": {"X-Api-Key": "k3y-of-the-service"}});
    let result =
        net.build(&props).unwrap().call(json!({"url": "http://api.shop.com/", "method": "GET"})).await;
    assert!(result.error.unwrap().contains("must begin with https://"));
    assert_eq!(server.seen().len(), 0);
}

// SECURITY: tool-credential
#[tokio::test]
async fn a_wrong_certificate_gets_no_credential() {
    let (trusted, other) = (Authority::new(), Authority::new());
    let server = Server::start_tls(&other, "api.shop.com", |_| text(200, "", "ok")).await;
    let net = Net::default().trust(&trusted).host("api.shop.com", 443, &server);
    let props = json!({"authentication": "bearer", "token": "t0ken", "hosts": "api.shop.com"});
    let input = json!({"url": "https://api.shop.com/", "method": "POST", "body": "x"});
    let result = net.build(&props).unwrap().call(input).await;
    assert!(result.error.unwrap().contains("certificate"));
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_node_without_its_values_is_not_built() {
    let bound = |mut props: Value| {
        props["hosts"] = json!("api.shop.com");
        props
    };
    for (props, reason) in [
        (json!({"authentication": "bearer", "token": "t"}), "needs `hosts`"),
        (bound(json!({"authentication": "bearer"})), "`token` is missing"),
        (bound(json!({"authentication": "bearer", "token": "${UNSET_TOKEN}"})), "`token` is missing"),
        (bound(json!({"authentication": "bearer", "token": "s3cret\ntoken"})), "`token` has characters"),
        (bound(json!({"authentication": "basic", "password": "s3cret"})), "`user` is missing"),
        (
            bound(json!({"authentication": "basic", "user": "a:b", "password": "s3cret"})),
            "`user` has characters",
        ),
        (bound(json!({"authentication": "basic", "user": "a"})), "`password` is missing"),
        (bound(json!({"authentication": "header", "headerValue": "s3cret"})), "`headerName` is missing"),
        (
            bound(json!({"authentication": "header", "headerName": "Host", "headerValue": "s3cret"})),
            "choose another",
        ),
        (bound(json!({"authentication": "apiKey"})), "`apiKey` is missing"),
        (bound(json!({"headers": {"a b": "1"}})), "`headers` has a name or a value"),
        (bound(json!({"headers": {"X-Key": "${UNSET_KEY}"}})), "the header `X-Key` has a `${NAME}`"),
        (bound(json!({"headers": {"X-Key": "s3cret ${A}"}})), "the header `X-Key` has a `${NAME}`"),
        (bound(json!({"methods": "PATCH"})), "`methods` may name"),
        (json!({"hosts": "https://x"}), "`hosts`: "),
    ] {
        let error = Net::default().build(&props).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
