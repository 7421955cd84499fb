//! Connections: TLS proves who answers, and only dialled addresses count.

use crate::kit::{
    PUBLIC, Server, client, error_of, get, net, new_authority, policy, private, read, reply, rule_of,
};
use redflow_egress::{Dial, Dialled, Egress, EgressError, NetFuture, Rule, ScriptedNet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpStream;

fn failed(error: &EgressError, part: &str) -> bool {
    matches!(error, EgressError::Failed { sent: false, reason } if reason.contains(part))
}

// SECURITY: egress-connect
#[tokio::test]
async fn a_certificate_proves_the_host() {
    let (pem, acceptor) = new_authority(&["api.example.org"]);
    let server = Server::start_tls(acceptor, |_| reply(200, "", b"secure")).await;
    let trusting = || policy(|_| ()).with_extra_ca(pem.as_bytes()).unwrap();
    let (egress, _) = client(trusting(), net(&server));
    let answer = egress.send(get("https://api.example.org/")).await.unwrap();
    assert_eq!(read(answer).await.unwrap(), b"secure");
    // Another name at the same address, and an authority that is not trusted.
    let (egress, _) = client(trusting(), net(&server).answer("www.example.org", &[PUBLIC]));
    let error = error_of(&egress, get("https://www.example.org/")).await;
    assert!(failed(&error, "for another name"), "{error:?}");
    let error = error_of(&egress, get(&format!("https://{PUBLIC}/"))).await;
    assert!(failed(&error, "for another name"), "{error:?}");
    let (other, _) = new_authority(&["api.example.org"]);
    let (egress, _) = client(policy(|_| ()).with_extra_ca(other.as_bytes()).unwrap(), net(&server));
    let error = error_of(&egress, get("https://api.example.org/")).await;
    assert!(failed(&error, "the certificate of the host is not"), "{error:?}");
    assert_eq!(server.requests().len(), 1, "only the trusted request arrived");
}

#[tokio::test]
async fn a_private_host_must_prove_itself_too() {
    let (pem, acceptor) = new_authority(&["nas.lan", "127.0.0.1"]);
    let server = Server::start_tls(acceptor, |_| reply(200, "", b"secure")).await;
    let entries = [format!("127.0.0.1:{}", server.port)];
    let url = format!("https://127.0.0.1:{}/", server.port);
    let egress = Egress::new(private(&[&entries[0]]));
    let error = error_of(&egress, get(&url)).await;
    assert!(matches!(error, EgressError::Failed { sent: false, .. }), "{error:?}");
    let egress = Egress::new(private(&[&entries[0]]).with_extra_ca(pem.as_bytes()).unwrap());
    assert_eq!(read(egress.send(get(&url)).await.unwrap()).await.unwrap(), b"secure");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_without_tls_is_an_error() {
    let server = Server::start(|_| reply(200, "", b"plain")).await;
    let (pem, _) = new_authority(&["api.example.org"]);
    let (egress, _) = client(policy(|_| ()).with_extra_ca(pem.as_bytes()).unwrap(), net(&server));
    let error = error_of(&egress, get("https://api.example.org/")).await;
    assert!(matches!(error, EgressError::Failed { sent: false, .. }), "{error:?}");
    assert!(server.requests().is_empty());
}

#[test]
fn extra_certificates_must_be_certificates() {
    assert!(policy(|_| ()).with_extra_ca(b"no certificate").is_err());
    assert!(policy(|_| ()).with_extra_ca(b"").is_err());
}

/// A dialler that connects somewhere else, as a wrong route or a proxy of the system would.
struct Detour(u16);

impl Dial for Detour {
    fn dial(&self, _: SocketAddr) -> NetFuture<'_, Dialled> {
        Box::pin(async {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.0)).await?;
            let peer = stream.peer_addr()?;
            Ok(Dialled { stream: Box::new(stream), peer })
        })
    }
}

// SECURITY: egress-connect
#[tokio::test]
async fn the_other_end_must_be_the_address_that_was_dialled() {
    let canary = Server::start(|_| reply(200, "", b"reached")).await;
    let net = ScriptedNet::new().answer("api.example.org", &[PUBLIC]);
    let egress = Egress::with_net(policy(|_| ()), Arc::new(net), Arc::new(Detour(canary.port)));
    assert_eq!(rule_of(&egress, get("http://api.example.org/")).await, Rule::Connect);
    assert!(canary.requests().is_empty());
}

// SECURITY: egress-private
#[tokio::test]
async fn a_private_name_reaches_its_private_address() {
    let server = Server::start(|_| reply(200, "", b"home")).await;
    let inside = IpAddr::V4(Ipv4Addr::new(192, 168, 1, 5));
    let script = || ScriptedNet::new().answer("nas.lan", &[inside]).lead((inside, 8123).into(), server.port);
    let (egress, _) = client(private(&["nas.lan:8123"]), script());
    let judged = egress.test("http://nas.lan:8123/").await.unwrap();
    assert!(judged.is_private);
    assert_eq!(read(egress.send(get("http://nas.lan:8123/")).await.unwrap()).await.unwrap(), b"home");
    // The operator allowed an address of this name, not the metadata of a cloud.
    let metadata = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));
    let net = ScriptedNet::new().answer("nas.lan", &[metadata]).lead((metadata, 8123).into(), server.port);
    let (egress, net) = client(private(&["nas.lan:8123"]), net);
    assert_eq!(rule_of(&egress, get("http://nas.lan:8123/")).await, Rule::Address);
    assert!(net.dials().is_empty());
}
