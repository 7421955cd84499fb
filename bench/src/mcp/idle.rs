//! The memory of idle connections to servers over HTTP.

use super::echo::{self, HTTP, PATH};
use super::hub;
use crate::clock::{figure, resident};
use crate::probe::{Probe, print_and_wait};
use crate::table::{Column, Table, target_word};
use crate::world::runtime;
use crate::{Extent, Failure, open_files};
use redflow_contract::mcp::{McpServer, McpServerState};
use redflow_ports::McpServers as _;
use serde_json::json;
use std::time::{Duration, Instant};

/// The first argument of a process that holds idle connections.
pub(crate) const PROBE: &str = "--probe-mcp-idle";

/// The servers, and the most memory of the process that is connected to all, in MB.
const SERVERS: usize = 200;
const TARGET: f64 = 100.0;

/// The longest time until all are connected.
const CONNECT_TIME: Duration = Duration::from_secs(120);

/// How long nothing happens before memory is measured.
const IDLE_TIME: Duration = Duration::from_secs(3);

/// The verdict with fewer servers.
const NOT_MEASURED: &str = "not measured in full";

const MEGABYTE: f64 = 1_000_000.0;

/// The work of such a process: the port of the servers, and how many there are.
pub(crate) fn probe(args: &[String]) -> Result<(), Failure> {
    let [port, count] = args else { return Err("a port and a number are needed".into()) };
    let (port, count): (u16, usize) = (port.parse()?, count.parse()?);
    open_files::raise_limit();
    let figures = runtime()?.block_on(async {
        let (before, whole_before) = (resident("RssAnon")?, resident("VmRSS")?);
        let server = |number: usize| {
            let url = Some(format!("http://127.0.0.1:{port}{PATH}"));
            (format!("server{number:03}"), McpServer { url, ..McpServer::default() })
        };
        let servers: Vec<_> = (0..count).map(server).collect();
        let hub = hub(&servers, Some(port), None)?;
        hub.connect_all();
        let begin = Instant::now();
        loop {
            let list = hub.list().servers;
            if list.iter().filter(|server| server.state == McpServerState::Ready).count() == count {
                break;
            }
            if begin.elapsed() > CONNECT_TIME {
                let reason = list.into_iter().find_map(|server| server.reason).unwrap_or_default();
                return Err(Failure::from(format!("not all servers are connected: {reason}")));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(IDLE_TIME).await;
        let (after, whole) = (resident("RssAnon")?, resident("VmRSS")?);
        Ok(json!({"before": before, "wholeBefore": whole_before, "after": after, "whole": whole}))
    })?;
    print_and_wait(&figures)
}

pub(super) fn table(extent: Extent) -> Result<Table, Failure> {
    let count = if extent == Extent::Quick { 20 } else { SERVERS };
    let columns = [
        ("servers", "servers", 0),
        ("before", "before, MB", 1),
        ("after", "connected and idle, MB", 1),
        ("written", "of that written", 1),
        ("perServer", "more kB/server", 1),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("mcp-idle", "idle connections to servers over HTTP", columns.into());
    if resident("RssAnon").is_err() {
        table.note("not measured: this system has no /proc/self/status");
        return Ok(table);
    }
    open_files::raise_limit();
    let mut servers = Probe::start(echo::PROBE, &[HTTP])?;
    let port = servers.figures()?.count("port").to_string();
    let figures = Probe::start(PROBE, &[&port, &count.to_string()])?.figures()?;
    let more = (figures.get("after") - figures.get("before")) / figure(count as u64);
    let whole = figures.get("whole") / MEGABYTE;
    table.row(vec![
        figure(count as u64).into(),
        (figures.get("wholeBefore") / MEGABYTE).into(),
        whole.into(),
        (figures.get("after") / MEGABYTE).into(),
        (more / 1_000.0).into(),
    ]);
    table
        .note("MB: resident memory with the files it has mapped (VmRSS); written: of that its own (RssAnon)");
    table.note("the process has the client only; the servers are plain rmcp in another process");
    let verdict = if count == SERVERS { target_word(whole <= TARGET) } else { NOT_MEASURED };
    table.note(format!("target: at most {TARGET} MB with {SERVERS} servers: {verdict}"));
    Ok(table)
}
