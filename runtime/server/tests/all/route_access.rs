//! Access to every route: wrong tokens, hosts, origins and bodies, and the OpenAPI document.

use crate::client::{PATIENCE, Reply, Request, Socket, reply};
use crate::kit::{TOKEN, TestSidecar, plain_flow, token};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use redflow_contract::route::{ANY_BODY, Answer, BYTES_BODY, Method, ROUTES, Route, RouteId};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A path of this route.
pub(crate) fn path(route: &Route) -> String {
    let path = route.path.replace("{id}", "tab").replace("{code}", "FORBIDDEN").replace("{key}", "a-key");
    let path = path.replace("{name}", "a-token").replace("{digest}", "0").replace("{file}", "console.js");
    let path = path.replace("{number}", "1");
    assert!(!path.contains('{'), "{path}");
    path
}

pub(crate) fn is_socket(route: &Route) -> bool {
    route.answer.1 == Answer::Socket
}

/// Requests a WebSocket and gives the response, without any message of the socket.
pub(crate) async fn upgrade(request: Request) -> Reply {
    let request = request
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let read = async {
        let mut stream = TcpStream::connect(request.addr).await.unwrap();
        stream.write_all(&request.text()).await.unwrap();
        let mut bytes = Vec::new();
        loop {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "no answer: {bytes:?}");
            if bytes.windows(4).any(|four| four == b"\r\n\r\n") {
                let answer = reply(&bytes);
                let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
                if answer.body.len() >= length {
                    return answer;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, read).await.unwrap()
}

// SECURITY: token-needed, exact-host, exact-origin, json-only, strict-json
#[tokio::test]
async fn no_route_opens_to_a_wrong_token_host_or_page() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for route in ROUTES {
        let request = |host: &str| {
            let request = sidecar.request(route.method.as_str(), &path(route)).header("host", host);
            if route.body.is_some() { request.json(json!({})) } else { request }
        };
        let here = sidecar.addr.to_string();
        request(&here).token("not-the-token-of-these-tests").send().await.refused(401, "UNAUTHORIZED");
        if route.scope.is_some() {
            let answer = request(&here).send().await;
            answer.refused(401, "UNAUTHORIZED");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{}", route.path);
        }
        for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", ""] {
            request(host).token(TOKEN).send().await.refused(403, "HOST_REFUSED");
        }
        for origin in ["http://evil.example", "null", "https://127.0.0.1", ""] {
            request(&here).token(TOKEN).header("origin", origin).send().await.refused(403, "ORIGIN_REFUSED");
        }
        if matches!(route.method, Method::Post | Method::Put) {
            let wrong = |kind: &str, body: &str| {
                request(&here)
                    .token(TOKEN)
                    .header("content-type", kind)
                    .bytes(body.as_bytes().to_vec())
                    .send()
            };
            if route.body == Some(BYTES_BODY) {
                for kind in ["text/plain", "application/json", "multipart/form-data; boundary=x"] {
                    wrong(kind, "{}").await.refused(415, "CONTENT_TYPE_REFUSED");
                }
                let packed = request(&here).token(TOKEN).header("content-type", BYTES_BODY);
                let packed = packed.header("content-encoding", "gzip").bytes(b"{}".to_vec());
                packed.send().await.refused(415, "CONTENT_TYPE_REFUSED");
            } else if route.body.is_some() {
                wrong("text/plain", "{}").await.refused(415, "CONTENT_TYPE_REFUSED");
                wrong("application/x-www-form-urlencoded", "a=b").await.refused(415, "CONTENT_TYPE_REFUSED");
                wrong("application/json", "{").await.refused(400, "BODY_INVALID");
                wrong("application/json", r#"{"a":1,"a":2}"#).await.refused(400, "BODY_INVALID");
                if route.body != Some(ANY_BODY) {
                    // A definition of a tool is answered with all its problems.
                    let refused = match route.id {
                        RouteId::RegisterTool => (422, "TOOL_REFUSED"),
                        _ => (400, "BODY_INVALID"),
                    };
                    wrong("application/json", r#"{"no such key":1}"#).await.refused(refused.0, refused.1);
                    // A list is no object, even if it has the values of the keys in their order.
                    for list in ["[]", "[[],null,true]", r#"["n","p",true]"#, r#"["call",[true,1]]"#] {
                        wrong("application/json", list).await.refused(400, "BODY_INVALID");
                    }
                }
                let large = r#"{"flows":[],"rev":123456789012345678901234567890}"#;
                wrong("application/json", large).await.refused(400, "BODY_INVALID");
                wrong("application/json", &"[".repeat(200)).await.refused(400, "BODY_INVALID");
                let packed = request(&here).token(TOKEN).json(json!({})).header("content-encoding", "gzip");
                packed.send().await.refused(415, "CONTENT_TYPE_REFUSED");
            } else {
                wrong("application/json", "[1]").await.refused(400, "BODY_INVALID");
            }
        }
    }
    // The sidecar still serves.
    assert_eq!(sidecar.get("/health").await.ok(200)["live"], true);
}

/// People paste a token or a code into the wrong place. It must not come back in an error, which may be logged.
// SECURITY: log-tokens
#[tokio::test]
async fn no_error_repeats_a_token() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for secret in [
        "rf_AbCdEf0123456789-AbCdEf0123456789_AbCdEf01234",
        "sk-proj-AbCdEf0123456789",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        // Codes and a session that do not look random.
        "qThJmKaBnRtYwZxCdFgHjLpQsqThJmKa",
        "AbC-dEf_GhI-jKl_MnO-pQr_StU-vWxY",
        "AbC-dEf_GhI-jKl_MnO-pQr_StU-vWx_YzA-bCd_EfG",
        // The token that this sidecar accepts, which a person chose.
        TOKEN,
    ] {
        let mut requests = vec![
            sidecar.request("GET", "/health").header("host", &format!("{secret}.example")),
            sidecar.request("GET", "/health").header("host", &secret.to_ascii_lowercase()),
            sidecar.request("GET", "/health").header("origin", &format!("https://{secret}.example")),
            sidecar.request("GET", "/health").header("origin", &format!("https://me:{secret}@host.example")),
            sidecar.request("GET", &format!("/api/runs?{secret}=1")).token(TOKEN),
            sidecar.request("GET", &format!("/api/runs?status={secret}")).token(TOKEN),
            sidecar.request("GET", &format!("/sign-in?{secret}")),
            sidecar.request("GET", &format!("/api/kb?{secret}=1")).token(TOKEN),
            sidecar.request("GET", &format!("/{secret}")).token(TOKEN),
            // The error has room for a part of it only.
            sidecar.request("GET", &format!("/api/runs?status={}{secret}", "x,".repeat(92))).token(TOKEN),
        ];
        for route in ROUTES.iter().filter(|route| !is_socket(route) && route.path.contains('{')) {
            let path = route.path.replace("{id}", secret).replace("{code}", secret).replace("{key}", secret);
            let path = path.replace("{name}", secret).replace("{digest}", secret).replace("{file}", secret);
            let path = path.replace("{number}", secret);
            let request = sidecar.request(route.method.as_str(), &path).token(TOKEN);
            let body = if route.path.contains("chat") { json!({"message": "m"}) } else { json!({}) };
            requests.push(if route.body.is_some() { request.json(body) } else { request });
        }
        for request in requests {
            let answer = request.send().await;
            let text = format!("{}\n{}", answer.head, String::from_utf8_lossy(&answer.body));
            let quotes = text.to_ascii_lowercase().contains(&secret[..12].to_ascii_lowercase());
            assert!(!quotes || answer.status < 400, "{text}");
        }
    }
}

// SECURITY: scopes, mcp-serve
#[tokio::test]
async fn a_scope_opens_only_its_routes() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for scope in Scope::ALL {
        let token = token(sidecar.dir.path(), scope.as_str(), &[scope], 1);
        // Token files are read once a second.
        crate::kit::eventually("the token is known", || async {
            (sidecar.request("GET", "/api/flows").token(&token).send().await.status == 200).then_some(())
        })
        .await;
        for route in ROUTES.iter().filter(|route| !is_socket(route)) {
            let request = sidecar.request(route.method.as_str(), &path(route)).token(&token);
            let request =
                if route.body.is_some() { request.json(json!({"no such key": 1})) } else { request };
            let answer = request.send().await;
            let is_allowed = route.scope.is_none_or(|needed| scope.allows(needed));
            if is_allowed {
                assert!(
                    ![401, 403].contains(&answer.status) || route.path == "/sign-in",
                    "{} {answer:?}",
                    route.path
                );
            } else {
                answer.refused(403, "FORBIDDEN");
            }
        }
    }
}

// SECURITY: exact-host, exact-origin
#[tokio::test]
async fn a_socket_needs_the_same_access_as_other_routes() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let bearer = format!("Bearer {TOKEN}");
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let refused: [(Headers<'_>, u16, &str); 6] = [
        (&[], 401, "UNAUTHORIZED"),
        (&[("authorization", "Bearer not-the-token-of-these-tests")], 401, "UNAUTHORIZED"),
        (&[("authorization", &bearer), ("host", "evil.example")], 403, "HOST_REFUSED"),
        (&[("authorization", &bearer), ("origin", "http://evil.example")], 403, "ORIGIN_REFUSED"),
        (&[("authorization", &bearer), ("origin", "null")], 403, "ORIGIN_REFUSED"),
        (&[("authorization", &bearer), ("sec-websocket-version", "12")], 400, "REQUEST_INVALID"),
    ];
    for (headers, status, code) in refused {
        match Socket::try_open(sidecar.addr, headers).await {
            Err(answer) => answer.refused(status, code),
            Ok(_) => panic!("{headers:?} opened a socket"),
        }
    }
    // An admitted page sends the token as a subprotocol and does not get it back.
    let own = format!("http://{}", sidecar.addr);
    let protocols = format!("redflow.events.v1, redflow.token.{TOKEN}");
    let headers = [("origin", own.as_str()), ("sec-websocket-protocol", protocols.as_str())];
    assert!(Socket::try_open(sidecar.addr, &headers).await.is_ok());
    sidecar.get("/events").await.refused(400, "REQUEST_INVALID");
}

#[tokio::test]
async fn every_socket_checks_access_alike() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for route in ROUTES.iter().filter(|route| is_socket(route)) {
        let request = || sidecar.request("GET", route.path);
        let wrong = "redflow.events.v1, redflow.token.not-the-token-of-these-tests";
        for refused in [
            request().token("not-the-token-of-these-tests"),
            request().header("sec-websocket-protocol", wrong),
        ] {
            upgrade(refused).await.refused(401, "UNAUTHORIZED");
        }
        upgrade(request().token(TOKEN).header("host", "evil.example")).await.refused(403, "HOST_REFUSED");
        for origin in ["http://evil.example", "null", "http://localhost:5173"] {
            for request in [request(), request().token(TOKEN)] {
                upgrade(request.header("origin", origin)).await.refused(403, "ORIGIN_REFUSED");
            }
        }
        assert_eq!(upgrade(request().token(TOKEN)).await.status, 101, "{}", route.path);
        // Without a token the socket does not open, unless the first message may bring it.
        let without_token = upgrade(request()).await;
        match route.scope {
            Some(_) => without_token.refused(401, "UNAUTHORIZED"),
            None => assert_eq!((route.path, without_token.status), ("/comms", 101)),
        }
    }
}

// SECURITY: token-needed
#[tokio::test]
async fn the_openapi_document_has_every_route_and_its_scope() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let document = sidecar.get("/openapi.json").await.ok(200);
    assert_eq!(document["openapi"], "3.1.0");
    for route in ROUTES {
        let operation = &document["paths"][route.path][route.method.as_str().to_ascii_lowercase()];
        assert_eq!(operation["x-scope"], route.scope.map_or("open", Scope::as_str), "{}", route.path);
        assert_eq!(operation.get("requestBody").is_some(), route.body.is_some(), "{}", route.path);
        let named = route.body.filter(|name| *name != ANY_BODY && *name != BYTES_BODY);
        let name = named.map(|name| format!("#/components/schemas/{name}"));
        let found = operation.pointer("/requestBody/content/application~1json/schema/$ref");
        assert_eq!(found.and_then(|found| found.as_str()), name.as_deref());
        let bytes = operation.pointer("/requestBody/content/application~1octet-stream");
        assert_eq!(bytes.is_some(), route.body == Some(BYTES_BODY), "{}", route.path);
    }
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.values().map(|item| item.as_object().unwrap().len()).sum::<usize>(), ROUTES.len());
}

#[tokio::test]
async fn unknown_routes_need_a_token() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    sidecar.request("GET", "/nothing").send().await.refused(401, "UNAUTHORIZED");
    sidecar.get("/nothing").await.refused(404, "ROUTE_UNKNOWN");
    sidecar.get("/api/").await.refused(404, "ROUTE_UNKNOWN");
    sidecar.request("DELETE", "/api/flows").token(TOKEN).send().await.refused(405, "METHOD_REFUSED");
    sidecar.request("OPTIONS", "/api/flows").token(TOKEN).send().await.refused(405, "METHOD_REFUSED");
    sidecar.get("/api/codes/NO_SUCH").await.refused(404, "NOT_FOUND");
    for path in [
        "/api/runs/%ff",
        "/api/flows/%ff",
        "/api/codes/%ff",
        "/api/runs/%ff/events",
        "/api/runs/%ff/journal",
        "/api/runs/%ff/trace",
    ] {
        sidecar.get(path).await.refused(400, "REQUEST_INVALID");
    }
    assert_eq!(sidecar.get("/api/codes/FORBIDDEN").await.ok(200)["set"], "api");
    let codes = sidecar.get("/api/codes").await.ok(200);
    let codes = codes.as_array().unwrap();
    assert!(codes.len() > 90);
    for entry in codes {
        assert!(entry.get("page").is_none() && entry.get("mend").is_none(), "{entry}");
        let one = sidecar.get(&format!("/api/codes/{}", entry["code"].as_str().unwrap())).await.ok(200);
        let (page, mend) = (one["page"].as_str().unwrap(), one["mend"].as_str().unwrap());
        assert!(!mend.is_empty() && page.ends_with(&format!("### How to fix it\n\n{mend}\n")), "{one}");
    }
    assert!(sidecar.get("/api/edges").await.ok(200).as_array().unwrap().len() > 5);
    assert!(sidecar.get("/api/catalogue").await.ok(200).as_array().unwrap().len() > 20);
}

// SECURITY: response-headers
#[tokio::test]
async fn every_response_has_security_headers() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    for answer in [
        sidecar.get("/").await,
        sidecar.get("/nothing").await,
        sidecar.request("GET", "/health").send().await,
    ] {
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("x-frame-options", "DENY"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{answer:?}");
        }
        assert!(answer.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn without_an_attached_node_red_its_routes_are_unknown() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    sidecar.get("/api/beside").await.refused(404, "NOT_FOUND");
    sidecar.get("/red/red.min.js").await.refused(404, "ROUTE_UNKNOWN");
}
