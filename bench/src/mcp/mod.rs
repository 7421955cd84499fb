//! The cost of MCP: calls of our client, calls of our server, and the memory of idle connections.

mod calls;
pub(crate) mod echo;
pub(crate) mod idle;
mod requests;

use crate::table::Table;
use crate::{Extent, Failure};
use redflow_contract::api::ProblemCode;
use redflow_contract::code::ApiCode;
use redflow_contract::mcp::{McpPins, McpServer, McpServers as Definitions};
use redflow_egress::{Egress, EgressPolicy, EgressSettings};
use redflow_engine::SystemClock;
use redflow_mcp::{Confiner, HubSettings, McpHub, ServerTimes};
use redflow_ports::{FileStoreError, McpServers as _, McpStore, NoMeter};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the tool that all servers have.
const TOOL: &str = "echo";

/// What a call sends, and gets back.
const TEXT: &str = "The pump in hall 7 shows fault 371. What should I check first?";

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    show(calls::table(extent)?)?;
    show(idle::table(extent)?)?;
    show(requests::table(extent)?)
}

/// Keeps the pins in memory.
#[derive(Default)]
struct PinsInMemory(Mutex<HashMap<String, McpPins>>);

impl McpStore for PinsInMemory {
    fn pins(&self, server: &str) -> Result<McpPins, FileStoreError> {
        let pins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(pins.get(server).cloned().unwrap_or_default())
    }

    fn set_pins(&self, server: &str, pins: &McpPins) -> Result<(), FileStoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned(), pins.clone());
        Ok(())
    }

    fn tokens(&self, _key: &str) -> Result<Option<String>, FileStoreError> {
        Ok(None)
    }

    fn set_tokens(&self, _key: &str, _tokens: Option<&str>) -> Result<(), FileStoreError> {
        let message = "the benchmarks have no tokens".to_owned();
        Err(FileStoreError { code: ProblemCode::Api(ApiCode::McpFailed), message })
    }
}

/// A hub with these servers. It may reach this port of the machine.
fn hub(
    servers: &[(String, McpServer)],
    port: Option<u16>,
    folder: Option<PathBuf>,
) -> Result<Arc<McpHub>, Failure> {
    let private = port.map(|port| format!("127.0.0.1:{port}")).into_iter().collect();
    let settings = EgressSettings { private, ..EgressSettings::default() };
    let policy = EgressPolicy::new(&settings).map_err(|_| "the settings cannot be used")?;
    let hub = McpHub::new(HubSettings {
        egress: Egress::new(policy),
        store: Arc::new(PinsInMemory::default()),
        clock: Arc::new(SystemClock),
        meter: Arc::new(NoMeter),
        folder,
        confine: Confiner::none(),
        times: ServerTimes::default(),
    });
    let servers: Definitions = servers.iter().cloned().collect();
    hub.define(&servers, &[], &|_| None);
    Ok(hub)
}
