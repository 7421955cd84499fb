//! The cost of small messages on sockets, compared with a bare echo, and of starts over HTTP.

use super::client::{EVENT, HttpConnection, Socket, with_time_limit};
use super::server::{Kind, Server, TICK};
use crate::clock::{figure, median};
use crate::table::{Column, Table, target_word};
use crate::{Extent, Failure};
use redflow_contract::stream::EventsRequest;
use tokio::task::JoinSet;

/// Sockets at once, and round trips of all of them in a round.
const TRIPS: [(usize, usize); 3] = [(1, 20_000), (8, 40_000), (64, 60_000)];

/// The lowest number of round trips per CPU second, relative to a bare echo.
const TARGET: f64 = 0.5;

/// Starts at once, and starts in a round.
const STARTS: [(usize, usize); 2] = [(1, 1_000), (8, 2_000)];

/// A tenth for a quick measurement.
fn scaled(count: usize, extent: Extent) -> usize {
    if extent == Extent::Quick { count / 10 } else { count }
}

pub(super) fn round_trips(rounds: usize, extent: Extent) -> Result<Table, Failure> {
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
        let trips = scaled(trips, extent);
        let mut micros = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (server, micros) in servers.iter().zip(&mut micros) {
                micros.push(with_time_limit(ping_pong(server, &ping, sockets, trips))?);
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
    table.note(format!("target: at least {TARGET} to bare at each: {}", target_word(met)));
    Ok(table)
}

/// The cost of a round trip for the server.
async fn ping_pong(server: &Server, ping: &str, sockets: usize, trips: usize) -> Result<f64, Failure> {
    let mut open = Vec::new();
    for _ in 0..sockets {
        let mut socket = Socket::open(server.addr).await?;
        socket.send(ping).await?;
        // A sidecar sends `hello` first.
        while socket.receive().await?.len() != ping.len() {}
        open.push(socket);
    }
    let each = trips / sockets;
    let before = server.cpu()?;
    let mut tasks = JoinSet::new();
    for mut socket in open {
        let ping = ping.to_owned();
        tasks.spawn(async move {
            for _ in 0..each {
                socket.send(&ping).await?;
                socket.receive().await?;
            }
            Ok::<_, Failure>(socket)
        });
    }
    // The sockets close after the measurement.
    let mut finished = Vec::new();
    while let Some(task) = tasks.join_next().await {
        finished.push(task??);
    }
    let spent = server.cpu()? - before;
    Ok(spent / figure((each * sockets) as u64))
}

pub(super) fn starts(rounds: usize, extent: Extent) -> Result<Table, Failure> {
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
            let starts = scaled(starts, extent);
            let mut micros = Vec::new();
            for _ in 0..rounds {
                micros.push(with_time_limit(start_and_receive(&server, at_once, starts))?);
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

/// The cost of a start and its event for the server.
async fn start_and_receive(server: &Server, at_once: usize, starts: usize) -> Result<f64, Failure> {
    let mut socket = Socket::open(server.addr).await?;
    socket.subscribe().await?;
    let mut connections = Vec::new();
    for _ in 0..at_once {
        connections.push(HttpConnection::open(server.addr).await?);
    }
    let each = starts / at_once;
    let before = server.cpu()?;
    let mut starters = JoinSet::new();
    for mut connection in connections {
        starters.spawn(async move {
            for _ in 0..each {
                connection.start(TICK).await?;
            }
            Ok::<_, Failure>(connection)
        });
    }
    let mut events = 0;
    while events < each * at_once {
        events += usize::from(socket.receive().await?.starts_with(EVENT));
    }
    let mut finished = Vec::new();
    while let Some(connection) = starters.join_next().await {
        finished.push(connection??);
    }
    let spent = server.cpu()? - before;
    Ok(spent / figure(events as u64))
}
