//! What it costs to start a sidecar, and what it holds when nothing happens.

use crate::clock::{median, timed};
use crate::folder::Folder;
use crate::live::word;
use crate::serve::in_time;
use crate::serve_client::{Line, Socket};
use crate::serve_process::{AGENT, Kind, Server};
use crate::table::{Column, Table};
use crate::{Extent, Failure};
use std::time::Duration;

/// Milliseconds of processor time until the first answer.
const TARGET_MS: f64 = 50.0;

/// Megabytes held when nothing happens.
const TARGET_MB: f64 = 20.0;

/// Runs after which memory is looked at again.
const RUNS: usize = 10;

/// Something may still be done after the first answer, which is not waited for.
const SETTLED: Duration = Duration::from_millis(200);

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
    // The last one: kept runs that a sidecar finds when it is started again.
    let (rounds, runs_kept) = if extent == Extent::Quick { (1, 100) } else { (11, 1_000) };
    let (mut in_time_met, mut in_room_met) = (true, true);
    let mut row = |name: &str, sights: Vec<Sight>, judged: bool| {
        let of = |pick: fn(&Sight) -> f64| median(sights.iter().map(pick).collect());
        let (cpu, idle) = (of(|sight| sight.cpu) / 1e3, of(|sight| sight.idle) / 1e6);
        in_time_met &= !judged || cpu < TARGET_MS;
        in_room_met &= !judged || idle < TARGET_MB;
        table.row(vec![
            name.into(),
            cpu.into(),
            (of(|sight| sight.wall) / 1e3).into(),
            idle.into(),
            (of(|sight| sight.written) / 1e6).into(),
            (of(|sight| sight.after) / 1e6).into(),
            (of(|sight| sight.written_after) / 1e6).into(),
        ]);
    };
    let first = |kind| (0..rounds).map(|_| Ok(start(kind, None)?.0)).collect::<Result<Vec<_>, Failure>>();
    row("bare", first(Kind::Echo)?, false);
    row("ephemeral", first(Kind::Ephemeral)?, true);
    row("durable, for the first time", first(Kind::Durable)?, true);
    let server = Server::start(Kind::Durable)?;
    in_time(runs(&server, runs_kept))?;
    let mut kept = server.stop();
    let mut again = Vec::new();
    for _ in 0..rounds {
        let (sight, server) = start(Kind::Durable, kept)?;
        again.push(sight);
        kept = server.stop();
    }
    row(&format!("durable, with {runs_kept} runs kept"), again, true);
    table.note("CPU: processor time of the process so far, with the kernel's; medians of starts");
    table
        .note("MB: resident memory with the files it has mapped (VmRSS); written: of that its own (RssAnon)");
    table.note("the rest is the program's own file, as much of it as the system chose to map");
    table.note("bare: the benchmark as a server of sockets, answered on one");
    table.note(format!("target: under {TARGET_MS} ms to the first answer: {}", word(in_time_met)));
    table.note(format!("target: under {TARGET_MB} MB idle: {}", word(in_room_met)));
    Ok(table)
}

/// One start: microseconds and bytes.
struct Sight {
    cpu: f64,
    wall: f64,
    idle: f64,
    written: f64,
    after: f64,
    written_after: f64,
}

/// Starts a server, anew or with what an earlier one kept.
fn start(kind: Kind, kept: Option<Folder>) -> Result<(Sight, Server), Failure> {
    let (server, wall) = timed(|| {
        let server = match kept {
            Some(kept) => Server::start_in(kind, kept),
            None => Server::start(kind),
        }?;
        in_time(first_answer(kind, &server))?;
        Ok::<_, Failure>(server)
    });
    let server = server?;
    let cpu = server.cpu()?;
    in_time(settle())?;
    let (idle, written) = (server.memory("VmRSS")?, server.memory("RssAnon")?);
    if kind != Kind::Echo {
        in_time(runs(&server, RUNS))?;
    }
    let (after, written_after) = (server.memory("VmRSS")?, server.memory("RssAnon")?);
    Ok((Sight { cpu, wall, idle, written, after, written_after }, server))
}

async fn settle() -> Result<(), Failure> {
    tokio::time::sleep(SETTLED).await;
    Ok(())
}

async fn first_answer(kind: Kind, server: &Server) -> Result<(), Failure> {
    if kind == Kind::Echo {
        let mut socket = Socket::open(server.addr).await?;
        socket.say("x").await?;
        return socket.hear().await.map(drop);
    }
    Line::open(server.addr).await?.get("/health").await.map(drop)
}

async fn runs(server: &Server, runs: usize) -> Result<(), Failure> {
    let mut line = Line::open(server.addr).await?;
    for _ in 0..runs {
        line.start(AGENT, true).await?;
    }
    Ok(())
}
