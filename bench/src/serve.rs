//! What it costs to serve: small messages on sockets beside a bare echo, subscribers beside a bare fan-out, starting.
//!
//! Each server is a process of its own and on one thread; only its processor time and its memory are looked at.

use crate::clock::{figure, median, micros_of};
use crate::live::word;
use crate::serve_client::{EVENT, Line, Socket};
use crate::serve_process::{Kind, Server, TICK};
use crate::table::{Column, Table};
use crate::world::runtime;
use crate::{Extent, Failure, serve_crowd, serve_slow, serve_start};
use redflow_contract::stream::EventsRequest;
use std::time::Duration;
use tokio::task::JoinSet;

/// Sockets at once, and round trips of all of them together in a round.
const TRIPS: [(usize, usize); 3] = [(1, 20_000), (8, 40_000), (64, 60_000)];

/// At least so many round trips in a second of the processor, to a bare echo.
const TARGET: f64 = 0.5;

/// Starts at once, and of how many a round is.
const STARTS: [(usize, usize); 2] = [(1, 1_000), (8, 2_000)];

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if micros_of("self").is_err() {
        let mut table = Table::new("serve", "servers in processes of their own", Vec::new());
        table.note("not measured: this system does not tell the time and the memory of other processes");
        return show(table);
    }
    let rounds = if extent == Extent::Quick { 1 } else { 7 };
    show(round_trips(rounds, extent)?)?;
    show(starts(rounds, extent)?)?;
    show(serve_crowd::table(extent)?)?;
    show(serve_slow::table(extent)?)?;
    show(serve_start::table(extent)?)
}

/// Does some work of a client, which must not take forever if its server has stopped.
pub(crate) fn in_time<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let done = async { tokio::time::timeout(PATIENCE, work).await };
    runtime()?.block_on(done).map_err(|_| "a server did not answer")?
}

/// A tenth, if it is to be quick.
fn share(count: usize, extent: Extent) -> usize {
    if extent == Extent::Quick { count / 10 } else { count }
}

fn round_trips(rounds: usize, extent: Extent) -> Result<Table, Failure> {
    let columns = [
        ("sockets", "sockets", 0),
        ("bareMicros", "bare µs", 2),
        ("wideMicros", "wide µs", 2),
        ("sidecarMicros", "sidecar µs", 2),
        ("barePerSecond", "bare per CPU second", 0),
        ("sidecarPerSecond", "sidecar per CPU second", 0),
        ("ratio", "sidecar to bare", 2),
        ("wideRatio", "to wide", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("serve", "a small message in, its answer out, on sockets", columns.into());
    let ping = EventsRequest::Ping { id: "0123456789abcdef".to_owned() };
    let ping = serde_json::to_string(&ping)?;
    let servers =
        [Server::start(Kind::Echo)?, Server::start(Kind::EchoWide)?, Server::start(Kind::Ephemeral)?];
    let mut met = true;
    for (sockets, trips) in TRIPS {
        let trips = share(trips, extent);
        let mut micros = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (server, micros) in servers.iter().zip(&mut micros) {
                micros.push(in_time(ping_pong(server, &ping, sockets, trips))?);
            }
        }
        let [bare, wide, sidecar] = &micros;
        let to = |limit: &[f64]| median(limit.iter().zip(sidecar).map(|(limit, own)| limit / own).collect());
        let (ratio, wide_ratio) = (to(bare), to(wide));
        met &= ratio >= TARGET;
        let [bare, wide, sidecar] = micros.map(median);
        table.row(vec![
            figure(sockets as u64).into(),
            bare.into(),
            wide.into(),
            sidecar.into(),
            (1e6 / bare).into(),
            (1e6 / sidecar).into(),
            ratio.into(),
            wide_ratio.into(),
        ]);
    }
    table.note("µs: processor time of the server for a round trip, with the kernel's; medians of rounds");
    table.note(
        "bare: tokio-tungstenite that sends back what it is sent; sidecar: `ping` and `pong` on /events",
    );
    table.note("wide: the same with the buffers the library chooses; bare reads 4 KiB at once");
    table.note("each socket says one thing at a time; ratios: medians of the ratios of each round");
    table.note(format!("target: at least {TARGET} to bare at each: {}", word(met)));
    Ok(table)
}

/// What a round trip costs the server.
async fn ping_pong(server: &Server, ping: &str, sockets: usize, trips: usize) -> Result<f64, Failure> {
    let mut open = Vec::new();
    for _ in 0..sockets {
        let mut socket = Socket::open(server.addr).await?;
        socket.say(ping).await?;
        // A sidecar says hello first.
        while socket.hear().await?.len() != ping.len() {}
        open.push(socket);
    }
    let each = trips / sockets;
    let before = server.cpu()?;
    let mut talks = JoinSet::new();
    for mut socket in open {
        let ping = ping.to_owned();
        talks.spawn(async move {
            for _ in 0..each {
                socket.say(&ping).await?;
                socket.hear().await?;
            }
            Ok::<_, Failure>(socket)
        });
    }
    // They are closed when nothing is measured any more.
    let mut over = Vec::new();
    while let Some(talk) = talks.join_next().await {
        over.push(talk??);
    }
    let spent = server.cpu()? - before;
    Ok(spent / figure((each * sockets) as u64))
}

fn starts(rounds: usize, extent: Extent) -> Result<Table, Failure> {
    let columns = [
        ("kept", "kept", 0),
        ("atOnce", "at once", 0),
        ("micros", "sidecar µs", 1),
        ("perSecond", "per CPU second", 0),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = "a start of an inject node by POST /api/runs in, its debug event out on a socket";
    let mut table = Table::new("serve-event", heading, columns.into());
    for kind in [Kind::Ephemeral, Kind::Durable] {
        let server = Server::start(kind)?;
        for (at_once, starts) in STARTS {
            let starts = share(starts, extent);
            let mut micros = Vec::new();
            for _ in 0..rounds {
                micros.push(in_time(start_and_see(&server, at_once, starts))?);
            }
            let micros = median(micros);
            table.row(vec![
                kind.name().into(),
                figure(at_once as u64).into(),
                micros.into(),
                (1e6 / micros).into(),
            ]);
        }
    }
    table.note("µs: processor time of the server, with the kernel's, from the request to the event; medians of rounds");
    table.note("for information: nothing to compare it with is measured");
    Ok(table)
}

/// What a start and its event cost the server.
async fn start_and_see(server: &Server, at_once: usize, starts: usize) -> Result<f64, Failure> {
    let mut socket = Socket::open(server.addr).await?;
    socket.subscribe().await?;
    let mut lines = Vec::new();
    for _ in 0..at_once {
        lines.push(Line::open(server.addr).await?);
    }
    let each = starts / at_once;
    let before = server.cpu()?;
    let mut starters = JoinSet::new();
    for mut line in lines {
        starters.spawn(async move {
            for _ in 0..each {
                line.start(TICK, false).await?;
            }
            Ok::<_, Failure>(line)
        });
    }
    let mut events = 0;
    while events < each * at_once {
        events += usize::from(socket.hear().await?.starts_with(EVENT));
    }
    let mut over = Vec::new();
    while let Some(line) = starters.join_next().await {
        over.push(line??);
    }
    let spent = server.cpu()? - before;
    Ok(spent / figure(events as u64))
}
