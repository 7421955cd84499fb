//! TLS: a certificate proves the identity of a provider.

use crate::scripted_server::{ScriptedServer, Step, json};
use crate::wires::{CHAT, KEY, call_error, call_text};
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

/// A new certificate authority, and a server with its certificate for these names.
fn new_authority(names: &[&str]) -> (String, TlsAcceptor) {
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

fn trust(pem: &str) -> HttpSettings {
    HttpSettings { extra_ca: pem.as_bytes().to_vec(), ..HttpSettings::default() }
}

fn with_http(http: HttpSettings) -> ModelSettings {
    ModelSettings { http, ..ModelSettings::default() }
}

const NOT_TRUSTED: &str = "its TLS certificate is not trusted, or it does not speak TLS";

// SECURITY: model-transport
#[tokio::test]
async fn a_certificate_is_trusted_when_its_authority_is() {
    let (pem, acceptor) = new_authority(&["127.0.0.1"]);
    let server = ScriptedServer::start_with_tls([json(CHAT.answer), json(CHAT.answer)], Some(acceptor)).await;
    let url = format!("https://{}", server.address);
    let untrusting = CHAT.at_url(&url, value!({}), ModelSettings::default()).unwrap();
    let (code, message) = call_error(&*untrusting).await;
    assert_eq!(code, Code::ProviderUnavailable);
    assert!(message.ends_with(NOT_TRUSTED), "{message}");
    assert_eq!(server.request_count(), 0);
    let (other, _) = new_authority(&["127.0.0.1"]);
    // Also in a bundle with other certificates and comments.
    for bundle in [pem.clone(), format!("# ours\n{other}\n{pem}")] {
        let trusting = CHAT.at_url(&url, value!({}), with_http(trust(&bundle))).unwrap();
        assert_eq!(call_text(&*trusting).await, "hi");
    }
    let wrong = CHAT.at_url(&url, value!({}), with_http(trust(&other))).unwrap();
    assert!(call_error(&*wrong).await.1.ends_with(NOT_TRUSTED));
    assert_eq!(server.request_count(), 2);
}

// SECURITY: model-transport
#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let (pem, acceptor) = new_authority(&["models.invalid"]);
    let server = ScriptedServer::start_with_tls([], Some(acceptor)).await;
    let url = format!("https://{}", server.address);
    let model = CHAT.at_url(&url, value!({}), with_http(trust(&pem))).unwrap();
    assert!(call_error(&*model).await.1.ends_with(NOT_TRUSTED));
    assert_eq!(server.request_count(), 0);
}

// SECURITY: model-transport
#[tokio::test]
async fn through_a_proxy_only_the_server_sees_the_key() {
    let (pem, acceptor) = new_authority(&["models.invalid"]);
    // After the `CONNECT`, the same connection plays the server.
    let proxy = ScriptedServer::start_with_tls([json(CHAT.answer)], Some(acceptor)).await;
    let http = HttpSettings { proxy: Some(proxy.url().parse().unwrap()), ..trust(&pem) };
    let model = CHAT.at_url("https://models.invalid", value!({}), with_http(http)).unwrap();
    assert_eq!(call_text(&*model).await, "hi");
    let seen = proxy.seen();
    assert_eq!(seen.requests[0].head.lines().next(), Some("CONNECT models.invalid:443 HTTP/1.1"));
    assert_eq!(seen.requests[0].header("authorization"), None);
    assert_eq!(seen.requests[1].head.lines().next(), Some("POST /v1/chat/completions HTTP/1.1"));
    assert_eq!(seen.requests[1].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
}

// SECURITY: model-transport
#[tokio::test]
async fn a_server_without_tls_is_reported() {
    use tokio::io::AsyncWriteExt as _;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    });
    let model = CHAT.at_url(&url, value!({}), ModelSettings::default()).unwrap();
    let (code, message) = call_error(&*model).await;
    assert_eq!(code, Code::ProviderUnavailable);
    assert!(message.ends_with(NOT_TRUSTED), "{message}");
    drop(server.await.unwrap());
    // The reverse: a TLS server at an http address.
    let alert = Step::Send(b"\x15\x03\x03\x00\x02\x02\x46".to_vec());
    let server = ScriptedServer::start([vec![alert, Step::Close]]).await;
    let (_, message) = call_error(&*CHAT.at(&server, value!({}))).await;
    assert!(message.ends_with("what it sends is not HTTP; check the address"), "{message}");
}
