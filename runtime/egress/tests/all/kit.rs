//! A server of bytes, a network that leads public addresses to it, and short requests.

use bytes::Bytes;
use http::{HeaderMap, Method};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use redflow_egress::{
    Egress, EgressError, EgressPolicy, EgressRequest, EgressResponse, EgressSettings, Rule, ScriptedNet,
};
use redflow_testkit::HttpRequest;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A public address that leads to the server of a test.
pub(crate) const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));

/// Another one.
pub(crate) const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 35));

/// What a server does after it read a request.
pub(crate) enum Reply {
    /// Sends these bytes and waits for the next request.
    Send(Vec<u8>),
    /// Sends these bytes and closes the connection.
    Close(Vec<u8>),
    /// Sends the first bytes, then the second ones again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// Sends these bytes and then nothing.
    Hang(Vec<u8>),
}

/// A server on a free port of this machine.
pub(crate) struct Server {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Respond = dyn Fn(&HttpRequest) -> Reply + Send + Sync;

impl Server {
    pub(crate) async fn start(respond: impl Fn(&HttpRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self::serve(None, Arc::new(respond)).await
    }

    pub(crate) async fn start_tls(
        acceptor: TlsAcceptor,
        respond: impl Fn(&HttpRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::serve(Some(acceptor), Arc::new(respond)).await
    }

    async fn serve(acceptor: Option<TlsAcceptor>, respond: Arc<Respond>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (seen, count) = (requests.clone(), connections.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (acceptor, respond, seen) = (acceptor.clone(), respond.clone(), seen.clone());
                tokio::spawn(async move {
                    match acceptor {
                        None => answer(stream, &*respond, &seen).await,
                        Some(acceptor) => match acceptor.accept(stream).await {
                            Ok(stream) => answer(stream, &*respond, &seen).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        });
        Self { port, requests, connections, task }
    }

    pub(crate) fn requests(&self) -> Vec<HttpRequest> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    respond: &Respond,
    seen: &Mutex<Vec<HttpRequest>>,
) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let request = loop {
            if let Some(request) = HttpRequest::parse(&bytes).ok()? {
                break request;
            }
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        bytes.clear();
        seen.lock().unwrap().push(request.clone());
        match respond(&request) {
            Reply::Send(bytes) => stream.write_all(&bytes).await.ok()?,
            Reply::Close(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                return stream.shutdown().await.ok();
            }
            Reply::Endless(first, again) => {
                stream.write_all(&first).await.ok()?;
                loop {
                    stream.write_all(&again).await.ok()?;
                }
            }
            Reply::Hang(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                std::future::pending::<()>().await;
            }
        }
        stream.flush().await.ok()?;
    }
}

/// An answer with these headers and this body. The connection stays open.
pub(crate) fn reply(status: u16, headers: &str, body: &[u8]) -> Reply {
    Reply::Send(raw(status, headers, body))
}

pub(crate) fn raw(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A new certificate authority, and a server with its certificate for these names.
pub(crate) fn new_authority(names: &[&str]) -> (String, TlsAcceptor) {
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

pub(crate) fn policy(change: impl FnOnce(&mut EgressSettings)) -> EgressPolicy {
    let mut settings = EgressSettings::default();
    change(&mut settings);
    EgressPolicy::new(&settings).unwrap()
}

pub(crate) fn private(entries: &[&str]) -> EgressPolicy {
    policy(|settings| settings.private = entries.iter().map(|entry| (*entry).to_owned()).collect())
}

/// A client of a scripted network, and the network.
pub(crate) fn client(policy: EgressPolicy, net: ScriptedNet) -> (Egress, Arc<ScriptedNet>) {
    let net = Arc::new(net);
    (Egress::with_net(policy, net.clone(), net.clone()), net)
}

/// A network where `api.example.org` is a server of this machine, by http and https.
pub(crate) fn net(server: &Server) -> ScriptedNet {
    ScriptedNet::new()
        .answer("api.example.org", &[PUBLIC])
        .lead((PUBLIC, 80).into(), server.port)
        .lead((PUBLIC, 443).into(), server.port)
}

pub(crate) fn get(url: &str) -> EgressRequest {
    EgressRequest {
        method: Method::GET,
        url: url.to_owned(),
        headers: HeaderMap::new(),
        credential: None,
        hosts: None,
        body: Bytes::new(),
        max_redirects: 5,
        timeout: Duration::from_secs(30),
        max_body_bytes: 1 << 20,
    }
}

pub(crate) fn post(url: &str, body: &'static str) -> EgressRequest {
    EgressRequest { method: Method::POST, body: Bytes::from_static(body.as_bytes()), ..get(url) }
}

/// The whole body of an answer.
pub(crate) async fn read(mut answer: EgressResponse) -> Result<Vec<u8>, EgressError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.body.chunk().await? {
        assert!(!chunk.is_empty(), "a chunk has bytes");
        body.extend_from_slice(&chunk);
    }
    assert!(answer.body.chunk().await?.is_none(), "the end stays the end");
    Ok(body)
}

pub(crate) async fn error_of(egress: &Egress, request: EgressRequest) -> EgressError {
    match egress.send(request).await {
        Err(error) => error,
        Ok(answer) => read(answer).await.expect_err("the answer can be used"),
    }
}

/// The rule that refuses a request, perhaps after a server answered.
pub(crate) async fn rule_of(egress: &Egress, request: EgressRequest) -> Rule {
    match after_answer(error_of(egress, request).await).1 {
        EgressError::Refused(refusal) => refusal.rule,
        error => panic!("{error:?}"),
    }
}

/// The status that a server answered with, if one did, and what failed then.
pub(crate) fn after_answer(error: EgressError) -> (Option<u16>, EgressError) {
    match error {
        EgressError::Answered { status, error } => (Some(status.as_u16()), *error),
        error => (None, error),
    }
}
