//! The cost of starting a sidecar, and its memory when it is idle.

use super::client::{HttpConnection, Socket, with_time_limit};
use super::server::{AGENT, Kind, Server};
use crate::clock::{median, timed};
use crate::folder::Folder;
use crate::table::{Column, Table, target_word};
use crate::{Extent, Failure};
use std::time::Duration;

/// Milliseconds of processor time until the first answer.
const TARGET_MS: f64 = 50.0;

/// Idle memory in megabytes.
const TARGET_MB: f64 = 20.0;

/// Runs before the second measurement of memory.
const RUNS: usize = 10;

/// A pause for work that a server does after its first answer.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) fn table(extent: Extent) -> Result<Table, Failure> {
    let columns = [
        ("start", "start", 0),
        ("cpuMs", "CPU ms to the first answer", 1),
        ("wallMs", "wall ms", 1),
        ("megabytes", "idle MB", 1),
        ("anonymous", "of that written", 1),
        ("afterRuns", "MB after 10 runs", 1),
        ("anonymousAfter", "of that written", 1),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("serve-start", "from exec to GET /health answered", columns.into());
    // The stored runs that a restarted sidecar finds.
    let (rounds, stored_runs) = if extent == Extent::Quick { (1, 100) } else { (11, 1_000) };
    let (mut time_met, mut memory_met) = (true, true);
    let mut row = |name: &str, measurements: Vec<Measurement>, targets: Targets| {
        let of = |pick: fn(&Measurement) -> f64| median(measurements.iter().map(pick).collect());
        let (cpu, idle) = (of(|measured| measured.cpu) / 1e3, of(|measured| measured.idle) / 1e6);
        time_met &= targets == Targets::None || cpu < TARGET_MS;
        memory_met &= targets == Targets::None || idle < TARGET_MB;
        table.row(vec![
            name.into(),
            cpu.into(),
            (of(|measured| measured.wall) / 1e3).into(),
            idle.into(),
            (of(|measured| measured.written) / 1e6).into(),
            (of(|measured| measured.after) / 1e6).into(),
            (of(|measured| measured.written_after) / 1e6).into(),
        ]);
    };
    let first = |kind| (0..rounds).map(|_| Ok(start(kind, None)?.0)).collect::<Result<Vec<_>, Failure>>();
    row("bare", first(Kind::Echo)?, Targets::None);
    row("ephemeral", first(Kind::Ephemeral)?, Targets::Apply);
    row("durable, for the first time", first(Kind::Durable)?, Targets::Apply);
    let server = Server::start(Kind::Durable)?;
    with_time_limit(runs(&server, stored_runs))?;
    let mut data = server.stop();
    let mut again = Vec::new();
    for _ in 0..rounds {
        let (measured, server) = start(Kind::Durable, data)?;
        again.push(measured);
        data = server.stop();
    }
    row(&format!("durable, with {stored_runs} runs kept"), again, Targets::Apply);
    table.note("CPU: processor time of the process so far, with the kernel's; medians of starts");
    table
        .note("MB: resident memory with the files it has mapped (VmRSS); written: of that its own (RssAnon)");
    table.note("the rest is the program's own file, as much of it as the system chose to map");
    table.note("bare: the benchmark as a server of sockets, answered on one");
    table.note(format!("target: under {TARGET_MS} ms to the first answer: {}", target_word(time_met)));
    table.note(format!("target: under {TARGET_MB} MB idle: {}", target_word(memory_met)));
    Ok(table)
}

/// Whether a row counts for the targets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Targets {
    Apply,
    None,
}

/// One start: microseconds and bytes.
struct Measurement {
    cpu: f64,
    wall: f64,
    idle: f64,
    written: f64,
    after: f64,
    written_after: f64,
}

/// Starts a server with a new data directory or with an earlier one.
fn start(kind: Kind, data: Option<Folder>) -> Result<(Measurement, Server), Failure> {
    let (server, wall) = timed(|| {
        let server = match data {
            Some(data) => Server::start_in(kind, data),
            None => Server::start(kind),
        }?;
        with_time_limit(first_answer(kind, &server))?;
        Ok::<_, Failure>(server)
    });
    let server = server?;
    let cpu = server.cpu()?;
    with_time_limit(pause())?;
    let (idle, written) = (server.memory("VmRSS")?, server.memory("RssAnon")?);
    if kind != Kind::Echo {
        with_time_limit(runs(&server, RUNS))?;
    }
    let (after, written_after) = (server.memory("VmRSS")?, server.memory("RssAnon")?);
    Ok((Measurement { cpu, wall, idle, written, after, written_after }, server))
}

async fn pause() -> Result<(), Failure> {
    tokio::time::sleep(PAUSE).await;
    Ok(())
}

async fn first_answer(kind: Kind, server: &Server) -> Result<(), Failure> {
    if kind == Kind::Echo {
        let mut socket = Socket::open(server.addr).await?;
        socket.send("x").await?;
        return socket.receive().await.map(drop);
    }
    HttpConnection::open(server.addr).await?.get("/health").await.map(drop)
}

async fn runs(server: &Server, runs: usize) -> Result<(), Failure> {
    let mut connection = HttpConnection::open(server.addr).await?;
    for _ in 0..runs {
        connection.start_and_wait(AGENT).await?;
    }
    Ok(())
}
