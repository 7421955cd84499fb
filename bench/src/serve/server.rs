//! The measured servers. Each is its own process, so that its processor time and memory can be measured.

use super::bare::{ECHO, ECHO_WIDE, FAN_OUT, PROBE};
use crate::clock::{micros_of, resident_of};
use crate::folder::Folder;
use crate::live::{KEY, live_flow};
use crate::probe::Probe;
use crate::world::{Scenario, ToolKind};
use crate::{Failure, open_files};
use redflow_testkit::LoggedProcess;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The token of the benchmark.
pub(crate) const TOKEN: &str = "the-token-of-the-benchmarks";

/// Limits that no benchmark reaches: the checks cost time, but they refuse nothing.
const CONFIG: &str = "[server]\nrate_per_second = 1000000\nrate_burst = 1000000\nmax_connections = 100000\n";

/// The name of the configuration file.
const CONFIG_FILE: &str = "bench.toml";

/// The time limit of a start.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Nodes of the served flow that the benchmarks start.
pub(crate) const AGENT: &str = "agent";
pub(crate) const TICK: &str = "tick";
pub(crate) const PAGE: &str = "page";

/// Bytes that the inject node [`PAGE`] sends.
const PAGE_BYTES: usize = 16 * 1024;

/// The kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sends each message back.
    Echo,
    /// The same with the default buffers of the library.
    EchoWide,
    /// Sends each message to all subscribers.
    FanOut,
    /// `redflow serve --ephemeral`.
    Ephemeral,
    /// `redflow serve`.
    Durable,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Echo | Self::EchoWide | Self::FanOut => "bare",
            Self::Ephemeral => "ephemeral",
            Self::Durable => "durable",
        }
    }
}

/// A running server. Drop kills it.
pub(crate) struct Server {
    process: Process,
    pub(crate) addr: SocketAddr,
}

enum Process {
    Bare(Probe),
    /// Drop ends the process before it removes the folder.
    Sidecar(Sidecar, Folder),
}

impl Server {
    pub(crate) fn start(kind: Kind) -> Result<Self, Failure> {
        // The server inherits the limit.
        open_files::raise_limit();
        match kind {
            Kind::Echo => Self::bare(ECHO),
            Kind::EchoWide => Self::bare(ECHO_WIDE),
            Kind::FanOut => Self::bare(FAN_OUT),
            Kind::Ephemeral | Kind::Durable => Self::start_in(kind, data()?),
        }
    }

    /// Starts a sidecar with this data directory.
    pub(crate) fn start_in(kind: Kind, folder: Folder) -> Result<Self, Failure> {
        let (sidecar, addr) = Sidecar::start(kind, folder.path())?;
        Ok(Self { process: Process::Sidecar(sidecar, folder), addr })
    }

    /// Kills it, and gives the data directory of a sidecar.
    pub(crate) fn stop(self) -> Option<Folder> {
        match self.process {
            Process::Bare(_) => None,
            Process::Sidecar(_, folder) => Some(folder),
        }
    }

    fn bare(mode: &str) -> Result<Self, Failure> {
        let mut probe = Probe::start(PROBE, &[mode])?;
        let port = u16::try_from(probe.figures()?.count("port"))?;
        Ok(Self { process: Process::Bare(probe), addr: SocketAddr::from((Ipv4Addr::LOCALHOST, port)) })
    }

    fn id(&self) -> String {
        match &self.process {
            Process::Bare(probe) => probe.id(),
            Process::Sidecar(sidecar, _) => sidecar.id(),
        }
    }

    /// Microseconds of processor time so far.
    pub(crate) fn cpu(&self) -> Result<f64, Failure> {
        micros_of(&self.id())
    }

    /// Bytes of memory, by its name in `/proc/PID/status`.
    pub(crate) fn memory(&self, line: &str) -> Result<f64, Failure> {
        resident_of(&self.id(), line)
    }
}

/// A data directory with a flow.
fn data() -> Result<Folder, Failure> {
    let folder = Folder::on_disk()?;
    std::fs::write(folder.path().join("flows.json"), flow().to_string())?;
    configure(folder.path())?;
    Ok(folder)
}

/// A data directory with an agent whose model is at this address.
pub(crate) fn live_data(base: &str) -> Result<Folder, Failure> {
    let folder = Folder::on_disk()?;
    std::fs::write(folder.path().join("flows.json"), live_flow(base).to_string())?;
    configure(folder.path())?;
    Ok(folder)
}

/// Writes the configuration of a sidecar into its data directory.
pub(crate) fn configure(data: &Path) -> std::io::Result<()> {
    std::fs::write(data.join(CONFIG_FILE), CONFIG)
}

/// An agent with five tool calls, and two inject nodes with a word and a page. A debug node shows all.
fn flow() -> Value {
    let mut flow = Scenario::new(5, ToolKind::Read).flow();
    let inject = |id: &str, payload: String| {
        json!({
            "id": id, "type": "inject", "z": "t", "name": id, "x": 120, "y": 120, "props": [{"p": "payload"}],
            "payload": payload, "payloadType": "str", "wires": [["show"]],
        })
    };
    if let Some(nodes) = flow.as_array_mut() {
        nodes.push(inject(TICK, "tick".to_owned()));
        nodes.push(inject(PAGE, "page".repeat(PAGE_BYTES / 4)));
    }
    flow
}

/// The `redflow` of the same build.
fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let program = own.with_file_name(format!("redflow{}", std::env::consts::EXE_SUFFIX));
    if program.exists() {
        return Ok(program);
    }
    let path = program.display();
    Err(format!("there is no {path}: `cargo build --release --package redflow-cli` makes it").into())
}

/// The process of a sidecar. Drop kills it.
pub(crate) struct Sidecar(LoggedProcess);

impl Sidecar {
    pub(crate) fn start(kind: Kind, data: &Path) -> Result<(Self, SocketAddr), Failure> {
        let mut command = Command::new(program()?);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--data").arg(data).arg("--config").arg(data.join(CONFIG_FILE));
        if kind == Kind::Ephemeral {
            command.arg("--ephemeral");
        }
        // The settings of the user who measures must not count.
        command.env_clear().env("REDFLOW_TOKEN", TOKEN).env("OPENAI_API_KEY", KEY);
        let mut process = LoggedProcess::start(command)?;
        let addr = process.wait_for_address(START_LIMIT)?;
        Ok((Self(process), addr))
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Microseconds of processor time so far.
    pub(crate) fn cpu(&self) -> Result<f64, Failure> {
        micros_of(&self.id())
    }
}
