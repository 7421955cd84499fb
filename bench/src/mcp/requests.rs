//! The cost of a tool call at `/mcp` of a sidecar, compared with plain rmcp. Both are other processes.

use super::echo::{self, HTTP, PATH};
use super::{TEXT, TOOL};
use crate::clock::{figure, median, micros_of};
use crate::folder::Folder;
use crate::probe::Probe;
use crate::serve::server::{Kind, Server, TOKEN, configure};
use crate::table::{Column, Table, target_word};
use crate::world::runtime;
use crate::{Extent, Failure};
use bytes::Bytes;
use futures::future::try_join_all;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

const AT_ONCE: [usize; 2] = [1, 8];
const CALLS: usize = 2_000;

/// The highest cost of a call at the sidecar, relative to plain rmcp.
const TARGET: f64 = 1.5;

/// The versions of the protocol: with a session, and without.
const WITH_SESSION: &str = "2025-06-18";
const WITHOUT_SESSION: &str = "2026-07-28";

/// A running server.
enum Echo {
    Raw(Probe, SocketAddr),
    Sidecar(Server),
}

impl Echo {
    fn raw() -> Result<Self, Failure> {
        let mut probe = Probe::start(echo::PROBE, &[HTTP])?;
        let port = u16::try_from(probe.figures()?.count("port"))?;
        Ok(Self::Raw(probe, SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
    }

    fn sidecar() -> Result<Self, Failure> {
        let folder = Folder::on_disk()?;
        std::fs::write(folder.path().join("flows.json"), flow().to_string())?;
        configure(folder.path())?;
        Ok(Self::Sidecar(Server::start_in(Kind::Ephemeral, folder)?))
    }

    fn addr(&self) -> SocketAddr {
        match self {
            Self::Raw(_, addr) => *addr,
            Self::Sidecar(server) => server.addr,
        }
    }

    /// Microseconds of processor time so far.
    fn cpu(&self) -> Result<f64, Failure> {
        match self {
            Self::Raw(probe, _) => micros_of(&probe.id()),
            Self::Sidecar(server) => server.cpu(),
        }
    }
}

/// An agent with a flow as its tool, which sends back what it is sent.
fn flow() -> Value {
    let node = |id: &str, kind: &str, wires: Value| json!({"id": id, "type": kind, "z": "t", "name": id, "x": 340, "y": 120, "wires": wires});
    let mut agent = node("agent", "agent-core", json!([["model"], [TOOL], [], [], []]));
    agent["strategy"] = json!("react");
    agent["maxIterations"] = json!(2);
    agent["allowedTools"] = json!([TOOL]);
    let mut model = node("model", "scripted-model", json!([]));
    model["replies"] = json!([{"action": "final", "message": "Done."}]);
    let mut tool = node(TOOL, "change", json!([["agent"]]));
    tool["description"] = json!("Sends back what it is sent.");
    tool["effect"] = json!("read");
    tool["inputSchema"] = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    tool["rules"] = json!([]);
    json!([{"id": "t", "type": "tab", "label": "Echo"}, agent, model, tool])
}

/// A client that speaks one version of the protocol.
struct McpClient {
    client: Client<HttpConnector, Full<Bytes>>,
    url: String,
    version: &'static str,
    session: Option<String>,
    next_id: AtomicU64,
}

impl McpClient {
    async fn open(addr: SocketAddr, version: &'static str) -> Result<Self, Failure> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let url = format!("http://{addr}{PATH}");
        let mut own = Self { client, url, version, session: None, next_id: AtomicU64::new(1) };
        if version == WITH_SESSION {
            let params = json!({
                "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
            });
            let (_, session) = own.send("initialize", params, true).await?;
            own.session = Some(session.ok_or("the server has opened no session")?);
            own.send("notifications/initialized", json!({}), false).await?;
        }
        Ok(own)
    }

    /// Sends a message, and gives the answer with the session that it opened.
    async fn send(
        &self,
        method: &str,
        mut params: Value,
        is_request: bool,
    ) -> Result<(Bytes, Option<String>), Failure> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", self.version);
        }
        if self.version == WITHOUT_SESSION {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            request = request
                .header("mcp-protocol-version", self.version)
                .header("mcp-method", method)
                .header("mcp-name", TOOL);
        }
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if is_request {
            message["id"] = json!(self.next_id.fetch_add(1, Ordering::Relaxed));
        }
        let answer = self.client.request(request.body(Full::new(Bytes::from(message.to_string())))?).await?;
        let (head, body) = answer.into_parts();
        let session = head.headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let body = body.collect().await?.to_bytes();
        if !head.status.is_success() {
            return Err(format!("{method}: {} {}", head.status, String::from_utf8_lossy(&body)).into());
        }
        Ok((body, session))
    }

    async fn call(&self) -> Result<(), Failure> {
        let params = json!({"name": TOOL, "arguments": {"text": TEXT}});
        let (body, _) = self.send("tools/call", params, true).await?;
        let body = String::from_utf8_lossy(&body);
        if body.contains(TEXT) { Ok(()) } else { Err(format!("another answer: {body}").into()) }
    }

    async fn drive(&self, calls: usize, at_once: usize) -> Result<(), Failure> {
        let call_some = || async {
            for _ in 0..calls / at_once {
                self.call().await?;
            }
            Ok::<(), Failure>(())
        };
        try_join_all((0..at_once).map(|_| call_some())).await.map(drop)
    }
}

/// Microseconds of processor time of the server per call.
fn measure_round(server: &Echo, version: &'static str, calls: usize, at_once: usize) -> Result<f64, Failure> {
    runtime()?.block_on(async {
        let client = McpClient::open(server.addr(), version).await?;
        client.drive(calls / 10, at_once).await?;
        let before = server.cpu()?;
        client.drive(calls, at_once).await?;
        Ok((server.cpu()? - before) / figure(calls as u64))
    })
}

pub(super) fn table(extent: Extent) -> Result<Table, Failure> {
    let columns = [
        ("protocol", "protocol", 0),
        ("atOnce", "at once", 0),
        ("rawMicros", "raw µs", 1),
        ("sidecarMicros", "sidecar µs", 1),
        ("ratio", "× raw", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("mcp-serve", "tool calls at /mcp", columns.into());
    if micros_of("self").is_err() {
        table.note("not measured: this system does not tell the time of other processes");
        return Ok(table);
    }
    let (rounds, calls) = if extent == Extent::Quick { (1, 200) } else { (7, CALLS) };
    let (raw_server, sidecar) = (Echo::raw()?, Echo::sidecar()?);
    let mut met = true;
    for version in [WITH_SESSION, WITHOUT_SESSION] {
        for at_once in AT_ONCE {
            let (mut raw, mut own) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                raw.push(measure_round(&raw_server, version, calls, at_once)?);
                own.push(measure_round(&sidecar, version, calls, at_once)?);
            }
            let ratio = median(own.iter().zip(&raw).map(|(own, raw)| own / raw).collect());
            met &= ratio <= TARGET;
            table.row(vec![
                version.into(),
                figure(at_once as u64).into(),
                median(raw).into(),
                median(own).into(),
                ratio.into(),
            ]);
        }
    }
    table.note("µs: processor time of the server per call, with the kernel's; medians of rounds");
    table.note("raw: an echo by rmcp's StreamableHttpService, without tokens, scopes, rates, policy and log");
    table.note("sidecar: a flow tool of one node, in memory; 2025-06-18 has a session, 2026-07-28 has none");
    table.note(format!("target: at most {TARGET} × raw at each: {}", target_word(met)));
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::flow;
    use crate::flows::options;
    use redflow_flow::{Verdict, check_bytes};

    #[test]
    fn the_agent_of_the_tool_is_not_refused() {
        let checked = check_bytes(flow().to_string().as_bytes(), &options()).unwrap();
        assert!(matches!(checked.agents.as_slice(), [agent] if matches!(agent.verdict, Verdict::Ready(_))));
    }
}
