//! A TLS server with a certificate of its own authority, and the tool as the engine builds it.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use redflow_contract::digest::Digest;
use redflow_contract::effect::ToolCall;
use redflow_contract::fact::ToolResult;
use redflow_contract::id::NodeSummary;
use redflow_contract::scrub::Scrubber;
use redflow_egress::{Egress, EgressPolicy, EgressSettings, ScriptedNet};
use redflow_ports::{Adapters, BuildError, Measurement, Meter, NodeConfig, Tool, ToolOutcome};
use redflow_testkit::HttpRequest;
use redflow_tools::ToolSettings;
use rustls::ServerConfig;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The address that all public names of these tests have. Nothing is ever sent there.
pub(crate) const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 215, 14);

/// An authority that signs the certificates of test servers.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A server that records every request and answers with the bytes of a function.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl Server {
    /// Over TCP.
    pub(crate) async fn start(respond: impl Fn(&HttpRequest) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::serve(None, respond).await
    }

    /// Over TLS, as the host `name`.
    pub(crate) async fn start_tls(
        authority: &Authority,
        name: &str,
        respond: impl Fn(&HttpRequest) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::serve(Some(authority.acceptor(name)), respond).await
    }

    async fn serve(
        tls: Option<TlsAcceptor>,
        respond: impl Fn(&HttpRequest) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<Mutex<Vec<HttpRequest>>>::default();
        let (seen, respond) = (requests.clone(), Arc::new(respond));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, respond, tls) = (seen.clone(), respond.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => answer(tls.accept(stream).await.ok()?, &seen, &*respond).await,
                        None => answer(stream, &seen, &*respond).await,
                    }
                });
            }
        });
        Self { port, requests }
    }

    /// The requests so far.
    pub(crate) fn seen(&self) -> Vec<HttpRequest> {
        self.requests.lock().unwrap().clone()
    }
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Mutex<Vec<HttpRequest>>,
    respond: &(dyn Fn(&HttpRequest) -> Vec<u8> + Send + Sync),
) -> Option<()> {
    let mut bytes = Vec::new();
    while stream.read_buf(&mut bytes).await.ok()? > 0 {
        if let Some(request) = HttpRequest::parse(&bytes).ok()? {
            let response = respond(&request);
            seen.lock().unwrap().push(request);
            stream.write_all(&response).await.ok()?;
            stream.shutdown().await.ok()?;
            return Some(());
        }
    }
    None
}

/// A response with a text body.
pub(crate) fn text(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A redirect.
pub(crate) fn redirect(status: u16, to: &str) -> Vec<u8> {
    text(status, &format!("location: {to}\r\n"), "")
}

/// The tool, and the secrets that it reported.
pub(crate) struct BuiltTool {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) secrets: Scrubber,
}

impl std::fmt::Debug for BuiltTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BuiltTool")
    }
}

/// The network of the tests: public names that lead to test servers.
#[derive(Default)]
pub(crate) struct Net {
    servers: Vec<(&'static str, u16, u16)>,
    private: Vec<String>,
    ca: Option<String>,
    pub(crate) verdicts: Arc<Verdicts>,
}

/// Collects the verdicts of requests.
#[derive(Default)]
pub(crate) struct Verdicts(pub(crate) Mutex<Vec<String>>);

impl Meter for Verdicts {
    fn record(&self, measurement: Measurement<'_>) {
        if let Measurement::EgressRequest { verdict } = measurement {
            self.0.lock().unwrap().push(verdict.to_owned());
        }
    }
}

impl Net {
    /// A public host with a port that leads to a test server.
    pub(crate) fn host(mut self, name: &'static str, port: u16, server: &Server) -> Self {
        self.servers.push((name, port, server.port));
        self
    }

    /// Lets the operator allow a private host.
    pub(crate) fn private(mut self, host_and_port: String) -> Self {
        self.private.push(host_and_port);
        self
    }

    /// Trusts a test authority.
    pub(crate) fn trust(mut self, authority: &Authority) -> Self {
        self.ca = Some(authority.pem());
        self
    }

    fn egress(&self) -> Egress {
        let settings = EgressSettings { private: self.private.clone(), ..EgressSettings::default() };
        let mut policy = EgressPolicy::new(&settings).unwrap();
        if let Some(ca) = &self.ca {
            policy = policy.with_extra_ca(ca.as_bytes()).unwrap();
        }
        if self.servers.is_empty() {
            return Egress::new(policy);
        }
        let mut net = ScriptedNet::new();
        for (index, (name, port, local)) in self.servers.iter().enumerate() {
            let [a, b, c, d] = PUBLIC.octets();
            let address = Ipv4Addr::new(a, b, c, d + u8::try_from(index).unwrap());
            net = net.answer(name, &[IpAddr::V4(address)]).lead(SocketAddr::from((address, *port)), *local);
        }
        let net = Arc::new(net);
        Egress::with_net(policy, net.clone(), net)
    }

    /// The settings of the tools, with the meter of this network.
    pub(crate) fn settings(&self) -> ToolSettings {
        ToolSettings { egress: self.egress(), meter: self.verdicts.clone(), knowledge: None }
    }

    /// Builds the tool of a node with these properties.
    pub(crate) fn build(&self, props: &Value) -> Result<BuiltTool, BuildError> {
        let mut adapters = Adapters::default();
        redflow_tools::register(&mut adapters, self.settings());
        let node =
            NodeSummary { id: "h".into(), type_name: "http-request-tool".to_owned(), name: String::new() };
        let secrets = Mutex::new(Scrubber::default());
        let on_secret = |secret: &str| secrets.lock().unwrap().add(secret);
        let props = props.as_object().unwrap();
        let config = NodeConfig::new(&node, props, &|_| None, &on_secret);
        let tool = adapters.tools["http-request-tool"](config)?;
        Ok(BuiltTool { tool, secrets: secrets.into_inner().unwrap() })
    }
}

impl BuiltTool {
    /// Makes a call as the engine does.
    pub(crate) async fn call_within(&self, input: &Value, timeout_ms: u64) -> ToolOutcome {
        let call = ToolCall {
            run_id: "r".into(),
            iteration: 1,
            call_id: "r:1".into(),
            tool: "http_request".to_owned(),
            node: "h".into(),
            input: input.as_object().unwrap().clone(),
            idempotency_key: Digest::of(b"key"),
            timeout_ms,
            agent: "a".into(),
            declared: None,
            operation: None,
            conversation: Default::default(),
        };
        self.tool.call(&call).await
    }

    /// The result of a call, which must have one.
    pub(crate) async fn call(&self, input: Value) -> ToolResult {
        match self.call_within(&input, 20_000).await {
            ToolOutcome::Returned(result) => result,
            unknown => panic!("{input}: {unknown:?}"),
        }
    }
}
