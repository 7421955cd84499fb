//! The servers of the section `serve`: each a process of its own, so that its processor time and its memory are its
//! alone.

use crate::Failure;
use crate::clock::{micros_of, resident_of};
use crate::folder::Folder;
use crate::live_provider::allow_files;
use crate::probe::Probe;
use crate::serve_bare::{ECHO, ECHO_WIDE, FAN_OUT, PROBE};
use crate::world::{Scene, ToolKind};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What lets the benchmark in.
pub(crate) const TOKEN: &str = "the-token-of-the-benchmarks";

/// Limits that nothing here comes near: what they cost is measured, not where they bite.
const CONFIG: &str = "[server]\nrate_per_second = 1000000\nrate_burst = 1000000\nmax_connections = 100000\n";

/// The name of the file they stand in.
const CONFIG_FILE: &str = "bench.toml";

/// What `redflow serve` says when it is up, before its address.
const UP: &str = "listening on http://";

/// Nodes of the flow that is served, to be started.
pub(crate) const AGENT: &str = "agent";
pub(crate) const TICK: &str = "tick";
pub(crate) const PAGE: &str = "page";

/// Bytes that the inject node [`PAGE`] sends.
const PAGE_BYTES: usize = 16 * 1024;

/// Which server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sends back what it is sent, and nothing else.
    Echo,
    /// The same, with the buffers that the library chooses.
    EchoWide,
    /// Sends what it is sent to everybody who subscribed, and nothing else.
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

/// A server that answers. Gone when this is dropped.
pub(crate) struct Server {
    process: Process,
    pub(crate) addr: SocketAddr,
}

enum Process {
    Bare(Probe),
    /// The folder goes after the process.
    Sidecar(Sidecar, Folder),
}

impl Server {
    pub(crate) fn start(kind: Kind) -> Result<Self, Failure> {
        // What a process may have open is its children's too.
        allow_files();
        match kind {
            Kind::Echo => Self::bare(ECHO),
            Kind::EchoWide => Self::bare(ECHO_WIDE),
            Kind::FanOut => Self::bare(FAN_OUT),
            Kind::Ephemeral | Kind::Durable => Self::start_in(kind, data()?),
        }
    }

    /// A sidecar with this data directory.
    pub(crate) fn start_in(kind: Kind, folder: Folder) -> Result<Self, Failure> {
        let (sidecar, addr) = Sidecar::start(kind, folder.path())?;
        Ok(Self { process: Process::Sidecar(sidecar, folder), addr })
    }

    /// Stops it dead. What it kept, if it is a sidecar.
    pub(crate) fn stop(self) -> Option<Folder> {
        match self.process {
            Process::Bare(_) => None,
            Process::Sidecar(_, folder) => Some(folder),
        }
    }

    fn bare(does: &str) -> Result<Self, Failure> {
        let mut probe = Probe::start(PROBE, &[does])?;
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

    /// Bytes of memory, by the name the system has for it.
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

/// Writes what a sidecar of the benchmarks is told into its data directory.
pub(crate) fn configure(data: &Path) -> std::io::Result<()> {
    std::fs::write(data.join(CONFIG_FILE), CONFIG)
}

/// An agent of five tool calls, and inject nodes of which one sends a word and one a page, all shown.
fn flow() -> Value {
    let mut flow = Scene::new(5, ToolKind::Read).flow();
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

/// `redflow`, built beside the benchmark.
fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let program = own.with_file_name(format!("redflow{}", std::env::consts::EXE_SUFFIX));
    if program.exists() {
        return Ok(program);
    }
    let shown = program.display();
    Err(format!("there is no {shown}: `cargo build --release --package redflow-cli` makes it").into())
}

/// The process of a sidecar. Killed when this is dropped.
pub(crate) struct Sidecar(Child);

impl Sidecar {
    pub(crate) fn start(kind: Kind, data: &Path) -> Result<(Self, SocketAddr), Failure> {
        let mut command = Command::new(program()?);
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--data").arg(data).arg("--config").arg(data.join(CONFIG_FILE));
        if kind == Kind::Ephemeral {
            command.arg("--ephemeral");
        }
        // Nothing of whoever measures.
        command.env_clear().env("REDFLOW_TOKEN", TOKEN);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut sidecar = Self(command.spawn()?);
        let mut lines = BufReader::new(sidecar.0.stderr.take().ok_or("a sidecar says nothing")?).lines();
        let mut said = String::new();
        for line in lines.by_ref().map_while(Result::ok) {
            if let Some(addr) = address(&line) {
                // It must not wait for somebody who does not listen.
                std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
                return Ok((sidecar, addr));
            }
            said += &line;
            said.push('\n');
        }
        Err(format!("a sidecar stopped before its time:\n{said}").into())
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Microseconds of processor time so far.
    pub(crate) fn cpu(&self) -> Result<f64, Failure> {
        micros_of(&self.id())
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn address(line: &str) -> Option<SocketAddr> {
    let rest = line.split_once(UP)?.1;
    let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
    rest[..end].trim_end_matches(':').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn a_sidecar_says_where_it_is() {
        let there = Some(([127, 0, 0, 1], 40123).into());
        assert_eq!(address("redflow 0.1.0 listening on http://127.0.0.1:40123: 1 tab with 1 agent"), there);
        assert_eq!(address("listening on http://127.0.0.1:40123"), there);
        assert_eq!(address("redflow 0.1.0 starts"), None);
    }
}
