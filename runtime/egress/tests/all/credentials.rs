//! A credential goes to its hosts alone, by https, or by http to a private host.

use crate::kit::{OTHER, PUBLIC, Server, client, get, net, new_authority, policy, private, read, reply};
use http::{HeaderName, HeaderValue};
use redflow_egress::{EgressCredential, EgressPolicy, EgressRequest, HostPattern, ScriptedNet};
use std::net::{IpAddr, Ipv4Addr};

const KEY: &str = "k3y/with spaces&";
const INSIDE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 1, 5));

fn hosts(patterns: &[&str]) -> Vec<HostPattern> {
    patterns.iter().map(|pattern| HostPattern::parse(pattern).unwrap()).collect()
}

fn header(patterns: &[&str]) -> EgressCredential {
    EgressCredential::Header {
        name: HeaderName::from_static("x-key"),
        value: KEY.into(),
        hosts: hosts(patterns),
    }
}

fn query(patterns: &[&str]) -> EgressCredential {
    EgressCredential::Query { name: "key".to_owned(), value: KEY.into(), hosts: hosts(patterns) }
}

fn with(credential: EgressCredential, url: &str) -> EgressRequest {
    EgressRequest { credential: Some(credential), ..get(url) }
}

async fn tls_server() -> (EgressPolicy, Server) {
    let (pem, acceptor) = new_authority(&["api.example.org", "www.example.net"]);
    let server = Server::start_tls(acceptor, |request| match request.path.split_once("?to=") {
        Some((_, target)) => {
            let target = target.split('&').next().unwrap_or_default();
            reply(302, &format!("location: {target}\r\n"), b"")
        }
        None => reply(200, "", b"ok"),
    })
    .await;
    (policy(|_| ()).with_extra_ca(pem.as_bytes()).unwrap(), server)
}

fn both(server: &Server) -> ScriptedNet {
    net(server).answer("www.example.net", &[OTHER]).lead((OTHER, 443).into(), server.port)
}

#[tokio::test]
async fn arrives_at_its_host_by_https() {
    let (policy, server) = tls_server().await;
    let (egress, _) = client(policy, both(&server));
    egress.send(with(header(&["*.example.org"]), "https://api.example.org/x")).await.unwrap();
    assert_eq!(server.requests().pop().unwrap().header("x-key"), Some(KEY));
    // What the caller writes under that name does not arrive.
    let mut request = with(header(&["api.example.org"]), "https://api.example.org/x");
    request.headers.append("x-key", HeaderValue::from_static("other"));
    egress.send(request).await.unwrap();
    assert_eq!(server.requests().pop().unwrap().header("x-key"), Some(KEY));
    let url = "https://api.example.org/x?a=1&key=other&b=2";
    let answer = egress.send(with(query(&["api.example.org:443"]), url)).await.unwrap();
    assert_eq!(server.requests().pop().unwrap().path, "/x?a=1&b=2&key=k3y%2Fwith+spaces%26");
    assert_eq!(answer.url, url, "the answer has the address without the credential");
}

// SECURITY: egress-credential
#[tokio::test]
async fn does_not_arrive_at_a_foreign_host() {
    let (policy, server) = tls_server().await;
    let (egress, _) = client(policy, both(&server));
    let all = ["api.example.org", "www.example.net"];
    for (credential, url) in [
        (header(&["other.example.org"]), "https://api.example.org/x"),
        (query(&["*.api.example.org"]), "https://api.example.org/x"),
        (header(&["api.example.org:8443"]), "https://api.example.org/x"),
        // Both hosts may have it, but a redirect does not carry it from one to the other.
        (header(&all), "https://api.example.org/?to=https://www.example.net/"),
        (query(&all), "https://api.example.org/?to=https://www.example.net/"),
        (header(&["www.example.net"]), "https://api.example.org/?to=https://www.example.net/"),
    ] {
        read(egress.send(with(credential, url)).await.unwrap()).await.unwrap();
        let last = server.requests().pop().unwrap();
        assert!(last.header("x-key").is_none() && !last.path.contains("key="), "{last:?}");
    }
}

#[tokio::test]
async fn arrives_again_within_its_origin() {
    let (policy, server) = tls_server().await;
    let (egress, _) = client(policy, both(&server));
    // The server repeats the key in its redirect.
    let url = "https://api.example.org/?to=/there?key=k3y";
    let answer = egress.send(with(query(&["api.example.org"]), url)).await.unwrap();
    assert_eq!(answer.url, "https://api.example.org/there");
    assert_eq!(server.requests().pop().unwrap().path, "/there?key=k3y%2Fwith+spaces%26");
}

// SECURITY: egress-credential
#[tokio::test]
async fn goes_by_http_only_to_a_private_host() {
    let server = Server::start(|_| reply(200, "", b"ok")).await;
    let net = net(&server)
        .answer("nas.lan", &[INSIDE])
        .lead((INSIDE, 8123).into(), server.port)
        .lead((PUBLIC, 80).into(), server.port);
    let (egress, _) = client(private(&["nas.lan:8123"]), net);
    let all = ["nas.lan", "api.example.org"];
    egress.send(with(header(&all), "http://nas.lan:8123/")).await.unwrap();
    assert_eq!(server.requests().pop().unwrap().header("x-key"), Some(KEY));
    egress.send(with(header(&all), "http://api.example.org/")).await.unwrap();
    assert_eq!(server.requests().pop().unwrap().header("x-key"), None);
}

// SECURITY: egress-credential
#[tokio::test]
async fn no_debug_output_and_no_error_shows_it() {
    let request = with(header(&["a.example.org"]), "https://u:hunter2@a.example.org/?hunter2");
    assert!(!format!("{request:?} {:?}", request.credential).contains("k3y"));
    assert!(!format!("{request:?}").contains("hunter2"));
    let (egress, _) = client(policy(|_| ()), ScriptedNet::new().answer("a.example.org", &[PUBLIC]));
    for credential in [header(&["a.example.org"]), query(&["a.example.org"])] {
        for url in [
            "https://a.example.org/?hunter2",
            "https://a.example.org:22/hunter2",
            "https://b.example.org/hunter2",
        ] {
            let error = egress.send(with(credential.clone(), url)).await.err().unwrap();
            let text = format!("{error} {error:?}");
            assert!(!text.contains("k3y") && !text.contains("hunter2"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_a_header_is_refused() {
    let (policy, server) = tls_server().await;
    let (egress, net) = client(policy, both(&server));
    let credential = EgressCredential::Header {
        name: HeaderName::from_static("x-key"),
        value: "a\r\nx-injected: 1".into(),
        hosts: hosts(&["api.example.org"]),
    };
    let error = egress.send(with(credential, "https://api.example.org/")).await.err().unwrap();
    assert!(error.to_string().contains("the credential has a character"), "{error}");
    assert!(net.dials().is_empty());
}
