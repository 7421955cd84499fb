//! Redirects: each hop is judged, and another origin gets nothing of the first one.

use crate::kit::{
    OTHER, PUBLIC, Reply, Server, after_answer, client, error_of, get, net, new_authority, policy, post,
    private, read, reply, rule_of,
};
use http::{HeaderMap, HeaderValue, Method};
use pretty_assertions::assert_eq;
use redflow_egress::{EgressError, EgressRequest, HostPattern, Rule, ScriptedNet};
use std::net::{IpAddr, Ipv4Addr};

/// A server that redirects `/STATUS?TARGET` to the target, and answers everything else.
async fn redirector() -> Server {
    Server::start(|request| match request.path.split_once('?') {
        Some((status, target)) => {
            reply(status[1..].parse().unwrap(), &format!("location: {target}\r\nset-cookie: a=b\r\n"), b"")
        }
        None => reply(200, "", format!("{} {}", request.method, request.path).as_bytes()),
    })
    .await
}

/// The network of both origins, `api.example.org` and `www.example.net`.
fn both(server: &Server) -> ScriptedNet {
    net(server)
        .answer("www.example.net", &[OTHER])
        .lead((OTHER, 80).into(), server.port)
        .lead((OTHER, 443).into(), server.port)
}

// SECURITY: egress-redirect
#[tokio::test]
async fn redirects_inward_are_refused_and_not_dialled() {
    let server = redirector().await;
    let canary = Server::start(|_| reply(200, "", b"reached")).await;
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for (target, rule) in [
        ("http://127.0.0.1/", Rule::Address),
        ("http://169.254.169.254/latest/meta-data/", Rule::Address),
        ("http://[::1]/", Rule::Address),
        ("http://[::ffff:127.0.0.1]/", Rule::Address),
        ("http://2130706433/", Rule::Authority),
        ("http://0x7f.1/", Rule::Authority),
        ("//127.0.0.1/x", Rule::Address),
        ("//127.1/x", Rule::Authority),
        ("http://localhost/", Rule::Name),
        ("http://user@api.example.org/", Rule::Authority),
        ("http://api.example.org@127.0.0.1/", Rule::Authority),
        ("http://inside.example.org/", Rule::Address),
        ("http://api.example.org:22/", Rule::Port),
        ("file:///etc/passwd", Rule::Text),
        ("gopher://127.0.0.1/x", Rule::Text),
        ("http:127.0.0.1", Rule::Text),
        ("http:/127.0.0.1/", Rule::Text),
        ("/\\127.0.0.1/", Rule::Redirect),
        ("\\\\127.0.0.1\\", Rule::Redirect),
        ("http://exa mple.org/", Rule::Redirect),
        ("///127.0.0.1/", Rule::Text),
    ] {
        // Not through the query: the address of the first request would be refused, too.
        let location = target.to_owned();
        let first = Server::start(move |_| reply(302, &format!("location: {location}\r\n"), b"")).await;
        let net =
            net(&first).answer("inside.example.org", &[loopback]).lead((loopback, 80).into(), canary.port);
        let (egress, net) = client(policy(|_| ()), net);
        let (status, error) = after_answer(error_of(&egress, post("http://api.example.org/", "x")).await);
        assert_eq!((status, error.verdict()), (Some(302), rule.as_str()), "{target}");
        assert_eq!(net.dials(), vec![(PUBLIC, 80).into()], "{target}");
    }
    assert_eq!(canary.connections(), 0);
    drop(server);
}

#[tokio::test]
async fn follows_within_an_origin_with_headers_and_body() {
    let server = redirector().await;
    let (egress, _) = client(policy(|_| ()), both(&server));
    let mut request = post("http://api.example.org/307?/there", "hello");
    request.headers.insert("x-node", HeaderValue::from_static("1"));
    let answer = egress.send(request).await.unwrap();
    assert_eq!(answer.url, "http://api.example.org/there");
    assert_eq!(read(answer).await.unwrap(), b"POST /there");
    let last = server.requests().pop().unwrap();
    assert_eq!((last.body.as_slice(), last.header("x-node")), (&b"hello"[..], Some("1")));
    assert_eq!(last.header("cookie"), None, "no cookie is kept");
}

#[tokio::test]
async fn a_post_becomes_a_get_as_in_browsers() {
    let server = redirector().await;
    let (egress, _) = client(policy(|_| ()), both(&server));
    for (method, status, expected) in [
        (Method::POST, 301, "GET"),
        (Method::POST, 302, "GET"),
        (Method::POST, 303, "GET"),
        (Method::POST, 308, "POST"),
        (Method::PUT, 302, "PUT"),
        (Method::DELETE, 303, "GET"),
    ] {
        let url = format!("http://api.example.org/{status}?/there");
        let mut request = EgressRequest { method: method.clone(), ..post(&url, "hello") };
        request.headers.insert("content-type", HeaderValue::from_static("text/plain"));
        let body = read(egress.send(request).await.unwrap()).await.unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), format!("{expected} /there"), "{method} {status}");
        let last = server.requests().pop().unwrap();
        assert_eq!(last.body.is_empty(), expected == "GET");
        assert_eq!(last.header("content-type").is_none(), expected == "GET");
    }
}

// SECURITY: egress-redirect
#[tokio::test]
async fn another_origin_gets_no_header_and_no_body() {
    let server = redirector().await;
    let (egress, _) = client(policy(|_| ()), both(&server));
    let headers: HeaderMap =
        [("x-node", "1"), ("authorization", "secret"), ("cookie", "a=b"), ("accept", "x/y")]
            .into_iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect();
    // A 303 leaves without the body.
    let request = EgressRequest {
        headers: headers.clone(),
        ..post("http://api.example.org/303?http://www.example.net/there", "hello")
    };
    let answer = egress.send(request).await.unwrap();
    assert_eq!(answer.url, "http://www.example.net/there");
    let last = server.requests().pop().unwrap();
    let names: Vec<&str> = last.headers.keys().map(String::as_str).collect();
    assert_eq!(names, ["accept", "accept-encoding", "host", "user-agent"]);
    assert_eq!((last.header("accept"), last.header("host")), (Some("*/*"), Some("www.example.net")));
    // A redirect that would repeat the body there is the answer itself.
    let count = server.requests().len();
    for (method, status) in
        [(Method::POST, 307), (Method::POST, 308), (Method::PUT, 302), (Method::DELETE, 307)]
    {
        let url = format!("http://api.example.org/{status}?http://www.example.net/there");
        let request = EgressRequest { method, headers: headers.clone(), ..post(&url, "hello") };
        let answer = egress.send(request).await.unwrap();
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(answer.headers["location"], "http://www.example.net/there");
    }
    assert_eq!(server.requests().len(), count + 4);
}

// SECURITY: egress-redirect
#[tokio::test]
async fn a_way_back_to_the_first_origin_brings_nothing_along() {
    let server = Server::start(|request| match (request.header("host"), request.path.as_str()) {
        (Some("api.example.org"), "/") => reply(302, "location: http://www.example.net/\r\n", b""),
        (Some("www.example.net"), _) => reply(302, "location: http://api.example.org/back\r\n", b""),
        _ => reply(200, "", b"end"),
    })
    .await;
    let (egress, _) = client(policy(|_| ()), both(&server));
    let mut request = get("http://api.example.org/");
    request.headers.insert("x-node", HeaderValue::from_static("1"));
    assert_eq!(read(egress.send(request).await.unwrap()).await.unwrap(), b"end");
    let seen: Vec<bool> =
        server.requests().iter().map(|request| request.header("x-node").is_some()).collect();
    assert_eq!(seen, [true, false, false]);
}

// SECURITY: egress-redirect
#[tokio::test]
async fn https_is_never_left() {
    let (pem, acceptor) = new_authority(&["api.example.org"]);
    let server =
        Server::start_tls(acceptor, |_| reply(302, "location: http://api.example.org/plain\r\n", b"")).await;
    for policy in [policy(|_| ()), private(&["api.example.org:80"])] {
        let (egress, net) = client(policy.with_extra_ca(pem.as_bytes()).unwrap(), net(&server));
        assert_eq!(rule_of(&egress, get("https://api.example.org/")).await, Rule::Redirect);
        assert_eq!(net.dials(), vec![(PUBLIC, 443).into()]);
    }
}

#[tokio::test]
async fn redirects_are_counted() {
    let server = Server::start(|_| reply(302, "location: /again\r\n", b"")).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    let error = error_of(&egress, get("http://api.example.org/")).await;
    let (status, error) = after_answer(error);
    assert_eq!(status, Some(302));
    assert!(matches!(&error, EgressError::Refused(refusal) if refusal.rule == Rule::Redirect), "{error:?}");
    assert_eq!(server.requests().len(), 6, "the first request and five redirects");
    let request = EgressRequest { max_redirects: 0, ..get("http://api.example.org/") };
    assert_eq!(egress.send(request).await.unwrap().status, 302);
    assert_eq!(server.requests().len(), 7);
    assert_eq!(server.connections(), 1, "all of them use one connection");
}

/// The first server has answered, so only a request that is repeated after the redirect can have an unknown outcome.
// SECURITY: egress-redirect
#[tokio::test]
async fn what_fails_after_a_redirect_has_a_status() {
    let server = Server::start(|request| match request.path.as_str() {
        "/303" | "/307" => reply(request.path[1..].parse().unwrap(), "location: /lost\r\n", b""),
        "/away" => reply(303, "location: http://www.example.net/\r\n", b""),
        _ => Reply::Close(Vec::new()),
    })
    .await;
    let net = net(&server).answer("www.example.net", &[OTHER]);
    let (egress, _) = client(policy(|_| ()), net);
    for (path, status) in [("303", Some(303)), ("away", Some(303)), ("307", None)] {
        let error = error_of(&egress, post(&format!("http://api.example.org/{path}"), "x")).await;
        assert_eq!(error.is_sent(), status.is_none(), "{path}: {error:?}");
        let (found, error) = after_answer(error);
        assert_eq!((found, error.verdict()), (status, "failed"), "{path}");
    }
}

#[tokio::test]
async fn a_redirect_without_an_address_is_the_answer() {
    let server = Server::start(|request| reply(request.path[1..].parse().unwrap(), "", b"")).await;
    let (egress, _) = client(policy(|_| ()), net(&server));
    for status in [300, 301, 304, 305, 307] {
        let answer = egress.send(get(&format!("http://api.example.org/{status}"))).await.unwrap();
        assert_eq!(answer.status.as_u16(), status);
    }
}

#[tokio::test]
async fn the_hosts_of_the_flow_hold_for_redirects() {
    let server = redirector().await;
    let (egress, net) = client(policy(|_| ()), both(&server));
    let mut request = get("http://api.example.org/302?http://www.example.net/");
    request.hosts = Some(vec![HostPattern::parse("*.example.org").unwrap()]);
    assert_eq!(rule_of(&egress, request).await, Rule::Name);
    assert_eq!(net.dials(), vec![(PUBLIC, 80).into()]);
}
