//! A scripted server and issuer, a network that leads public names to it, and a store in memory.

use super::{AllTokens, EgressClient, HttpEndpoint, HttpTimes, ResolvedAuth};
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use redflow_contract::mcp::McpPins;
use redflow_egress::{Egress, EgressPolicy, EgressSettings, ScriptedNet};
use redflow_ports::{FileStoreError, McpStore};
use redflow_testkit::HttpRequest;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));
pub(super) const URL: &str = "http://mcp.example.org/mcp";

/// What the server does with a request.
pub(super) enum Reply {
    /// Sends these bytes and closes the connection.
    Send(Vec<u8>),
    /// Sends the first bytes, then the second ones again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// Sends these bytes and then nothing.
    Hang(Vec<u8>),
}

pub(super) fn reply(status: u16, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n");
    Reply::Send([head.as_bytes(), body.as_bytes()].concat())
}

pub(super) fn json_reply(status: u16, headers: &str, body: &Value) -> Reply {
    reply(status, &format!("content-type: application/json\r\n{headers}"), &body.to_string())
}

/// The head of a stream of events.
pub(super) fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n".to_vec()
}

/// A server on a free port of this machine.
pub(super) struct Peer {
    port: u16,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
    task: JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Peer {
    pub(super) async fn start(respond: impl Fn(&HttpRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, respond) = (requests.clone(), Arc::new(respond));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, respond) = (seen.clone(), respond.clone());
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let request = loop {
                        if stream.read_buf(&mut bytes).await.ok()? == 0 {
                            return None;
                        }
                        if let Some(request) = HttpRequest::parse(&bytes).ok()? {
                            break request;
                        }
                    };
                    seen.lock().unwrap().push(request.clone());
                    match respond(&request) {
                        Reply::Send(bytes) => stream.write_all(&bytes).await.ok()?,
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
                    stream.shutdown().await.ok()
                });
            }
        });
        Self { port, requests, task }
    }

    pub(super) fn requests(&self) -> Vec<HttpRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The requests of a method of MCP.
    pub(super) fn messages(&self, method: &str) -> Vec<HttpRequest> {
        self.requests().into_iter().filter(|request| method_of(request) == method).collect()
    }

    /// The way out to this server. `mcp.example.org` and `issuer.example.org` are in the operator's network.
    pub(super) fn egress(&self) -> Egress {
        let private = vec!["mcp.example.org:80".to_owned(), "issuer.example.org:80".to_owned()];
        let settings = EgressSettings { private, ..EgressSettings::default() };
        let net = ["mcp.example.org", "issuer.example.org", "other.example.org"]
            .into_iter()
            .fold(ScriptedNet::new(), |net, name| net.answer(name, &[PUBLIC]))
            .answer("inward.example.org", &[IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))])
            .lead((PUBLIC, 80).into(), self.port);
        let net = Arc::new(net);
        Egress::with_net(EgressPolicy::new(&settings).unwrap(), net.clone(), net)
    }

    pub(super) fn endpoint(&self, auth: ResolvedAuth) -> HttpEndpoint {
        self.endpoint_with(auth, &MemoryStore::new())
    }

    pub(super) fn endpoint_with(&self, auth: ResolvedAuth, store: &Arc<MemoryStore>) -> HttpEndpoint {
        self.endpoint_of(auth, &all_tokens(store))
    }

    pub(super) fn endpoint_of(&self, auth: ResolvedAuth, tokens: &AllTokens) -> HttpEndpoint {
        let (egress, key) = (self.egress(), "docs".to_owned());
        HttpEndpoint::new(URL, auth, egress, tokens, key, HttpTimes::default()).unwrap()
    }

    /// An endpoint with other times.
    pub(super) fn endpoint_in(&self, auth: ResolvedAuth, times: HttpTimes) -> HttpEndpoint {
        let (egress, key) = (self.egress(), "docs".to_owned());
        HttpEndpoint::new(URL, auth, egress, &all_tokens(&MemoryStore::new()), key, times).unwrap()
    }
}

/// The tokens of a process.
pub(super) fn all_tokens(store: &Arc<MemoryStore>) -> AllTokens {
    AllTokens::new(store.clone(), || {})
}

/// The method of the message in a request; empty if it has none.
pub(super) fn method_of(request: &HttpRequest) -> String {
    let body = request.json().unwrap_or_default();
    body["method"].as_str().unwrap_or_default().to_owned()
}

/// A server of the era of `initialize`, with a session.
pub(super) fn legacy(request: &HttpRequest, session: &str) -> Reply {
    let body = request.json().unwrap_or_default();
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
    match (request.method.as_str(), method_of(request).as_str()) {
        ("POST", "server/discover") => reply(400, "content-type: text/plain\r\n", "no such method"),
        ("POST", "initialize") => {
            let info = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "peer", "version": "1"}});
            json_reply(200, &format!("mcp-session-id: {session}\r\n"), &result(info))
        }
        ("POST", "tools/list") => {
            let tools = json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]});
            let event = format!(": ping\n\nid: 7\ndata: {}\n\n", result(tools));
            reply(200, "content-type: text/event-stream\r\n", &event)
        }
        ("POST", "tools/call") => {
            json_reply(200, "", &result(json!({"content": [{"type": "text", "text": "done"}]})))
        }
        ("POST", _) => reply(202, "", ""),
        ("DELETE", _) => reply(200, "", ""),
        _ => reply(405, "", ""),
    }
}

/// A server of the era of `server/discover`, without sessions.
pub(super) fn modern(request: &HttpRequest) -> Reply {
    let body = request.json().unwrap_or_default();
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
    match method_of(request).as_str() {
        "server/discover" => json_reply(
            200,
            "",
            &result(json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "peer", "version": "2"}}})),
        ),
        "tools/list" => json_reply(
            200,
            "",
            &result(json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})),
        ),
        _ => reply(405, "", ""),
    }
}

pub(super) type Connection = RunningService<RoleClient, ()>;

/// Connects in the newest era that the server knows.
pub(super) async fn connect(endpoint: &HttpEndpoint) -> Result<Connection, ClientInitializeError> {
    let transport: StreamableHttpClientTransport<EgressClient> = endpoint.transport(Arc::default());
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    ().serve_with_lifecycle(transport, lifecycle).await
}

/// Keeps tokens in memory. They cannot be read while the flag is set.
pub(super) struct MemoryStore(Mutex<HashMap<String, String>>, pub(super) AtomicBool);

impl MemoryStore {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default(), AtomicBool::new(false)))
    }

    pub(super) fn kept(&self) -> Vec<String> {
        self.0.lock().unwrap().values().cloned().collect()
    }
}

impl McpStore for MemoryStore {
    fn pins(&self, _: &str) -> Result<McpPins, FileStoreError> {
        Ok(McpPins::default())
    }

    fn set_pins(&self, _: &str, _: &McpPins) -> Result<(), FileStoreError> {
        Ok(())
    }

    fn tokens(&self, key: &str) -> Result<Option<String>, FileStoreError> {
        if self.1.load(Ordering::Relaxed) {
            let message = "the tokens cannot be decrypted".to_owned();
            return Err(FileStoreError { code: ProblemCode::Api(ApiCode::CredentialsUnreadable), message });
        }
        Ok(self.0.lock().unwrap().get(key).cloned())
    }

    fn set_tokens(&self, key: &str, tokens: Option<&str>) -> Result<(), FileStoreError> {
        let mut kept = self.0.lock().unwrap();
        match tokens {
            Some(tokens) => kept.insert(key.to_owned(), tokens.to_owned()),
            None => kept.remove(key),
        };
        Ok(())
    }
}
