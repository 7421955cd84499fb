//! Who a provider is, is proven by its certificate.

use crate::ask::{CHAT, KEY, fails, text};
use crate::server::{Server, Step, json};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use redflow_contract::code::RunErrorCode as Code;
use redflow_models::ModelSettings;
use redflow_models::transport::HttpSettings;
use serde_json::json as value;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// An authority nobody knows, and a server it vouches for under these names.
fn authority(names: &[&str]) -> (String, TlsAcceptor) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    (issuer.pem(), TlsAcceptor::from(Arc::new(config)))
}

fn trusting(pem: &str) -> HttpSettings {
    HttpSettings { extra_ca: pem.as_bytes().to_vec(), ..HttpSettings::default() }
}

fn with(http: HttpSettings) -> ModelSettings {
    ModelSettings { http, ..ModelSettings::default() }
}

const NOT_TRUSTED: &str = "its TLS certificate is not trusted, or it does not speak TLS";

#[tokio::test]
async fn a_certificate_is_trusted_when_its_authority_is() {
    let (pem, acceptor) = authority(&["127.0.0.1"]);
    let server = Server::start_with([json(CHAT.answer), json(CHAT.answer)], Some(acceptor)).await;
    let url = format!("https://{}", server.address);
    let stranger = CHAT.at_url(&url, value!({}), ModelSettings::default()).unwrap();
    let (code, message) = fails(&*stranger).await;
    assert_eq!(code, Code::ProviderUnavailable);
    assert!(message.ends_with(NOT_TRUSTED), "{message}");
    assert_eq!(server.requests(), 0);
    let (other, _) = authority(&["127.0.0.1"]);
    // Among others, and with words around them.
    for bundle in [pem.clone(), format!("# ours\n{other}\n{pem}")] {
        let friend = CHAT.at_url(&url, value!({}), with(trusting(&bundle))).unwrap();
        assert_eq!(text(&*friend).await, "hi");
    }
    let wrong = CHAT.at_url(&url, value!({}), with(trusting(&other))).unwrap();
    assert!(fails(&*wrong).await.1.ends_with(NOT_TRUSTED));
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn another_name_is_another_server() {
    let (pem, acceptor) = authority(&["models.invalid"]);
    let server = Server::start_with([], Some(acceptor)).await;
    let url = format!("https://{}", server.address);
    let model = CHAT.at_url(&url, value!({}), with(trusting(&pem))).unwrap();
    assert!(fails(&*model).await.1.ends_with(NOT_TRUSTED));
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn through_a_proxy_only_the_server_sees_the_key() {
    let (pem, acceptor) = authority(&["models.invalid"]);
    // Behind the proxy's first answer, the same connection leads to the server.
    let proxy = Server::start_with([json(CHAT.answer)], Some(acceptor)).await;
    let http = HttpSettings { proxy: Some(proxy.url().parse().unwrap()), ..trusting(&pem) };
    let model = CHAT.at_url("https://models.invalid", value!({}), with(http)).unwrap();
    assert_eq!(text(&*model).await, "hi");
    let seen = proxy.seen();
    assert_eq!(seen.requests[0].head.lines().next(), Some("CONNECT models.invalid:443 HTTP/1.1"));
    assert_eq!(seen.requests[0].header("authorization"), None);
    assert_eq!(seen.requests[1].head.lines().next(), Some("POST /v1/chat/completions HTTP/1.1"));
    assert_eq!(seen.requests[1].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
}

#[tokio::test]
async fn what_is_no_tls_is_told_apart() {
    use tokio::io::AsyncWriteExt as _;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    });
    let model = CHAT.at_url(&url, value!({}), ModelSettings::default()).unwrap();
    let (code, message) = fails(&*model).await;
    assert_eq!(code, Code::ProviderUnavailable);
    assert!(message.ends_with(NOT_TRUSTED), "{message}");
    drop(server.await.unwrap());
    // And the other way round: TLS where plain HTTP is spoken.
    let alert = Step::Send(b"\x15\x03\x03\x00\x02\x02\x46".to_vec());
    let server = Server::start([vec![alert, Step::Close]]).await;
    let (_, message) = fails(&*CHAT.at(&server, value!({}))).await;
    assert!(message.ends_with("what it sends is not HTTP; check the address"), "{message}");
}
