//! Subscribers that do not read: the memory that a sidecar holds for them, and when it closes their sockets.

use super::client::{HttpConnection, Socket, with_time_limit};
use super::server::{Kind, PAGE, Server};
use crate::clock::figure;
use crate::table::{Column, Table};
use crate::{Extent, Failure};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Subscribers, and how many of them do not read.
const CROWDS: [(usize, usize); 2] = [(1_000, 0), (1_000, 100)];

/// How long events come: longer than a sidecar waits for a reader, and until it has closed all slow sockets, but not
/// forever.
const BUSY: Duration = Duration::from_secs(20);
const LONGEST: Duration = Duration::from_secs(90);

/// After so many events the metrics are read.
const METRICS_EVERY: u64 = 100;

/// The metric of closed sockets.
const CUT_OFF: &str = r#"redflow_sockets_closed_total{code="READER_TOO_SLOW"} "#;

pub(crate) fn table(extent: Extent) -> Result<Table, Failure> {
    let columns = [
        ("server", "server", 0),
        ("subscribers", "subscribers", 0),
        ("slow", "do not read", 0),
        ("events", "events", 0),
        ("megabytes", "MB for each", 1),
        ("idleMegabytes", "idle MB", 1),
        ("peakMegabytes", "peak MB", 1),
        ("restMegabytes", "MB at last", 1),
        ("cutOff", "cut off", 0),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = "subscribers that do not read, while events of 16 kB come as fast as the others read them";
    let mut table = Table::new("serve-slow", heading, columns.into());
    for kind in [Kind::Ephemeral, Kind::Durable] {
        for (subscribers, slow) in CROWDS {
            let (subscribers, slow, busy) = match extent {
                Extent::Quick => (subscribers / 10, slow / 10, [Duration::from_secs(1); 2]),
                _ => (subscribers, slow, [BUSY, LONGEST]),
            };
            let measured = with_time_limit(measure(kind, subscribers, slow, busy))?;
            table.row(vec![
                kind.name().into(),
                figure(subscribers as u64).into(),
                figure(slow as u64).into(),
                figure(measured.events).into(),
                (figure(measured.bytes) / 1e6).into(),
                (measured.idle / 1e6).into(),
                (measured.peak / 1e6).into(),
                (measured.rest / 1e6).into(),
                measured.cut_off.into(),
            ]);
        }
    }
    table.note(
        "MB: resident memory of the server with the files it has mapped (VmRSS), peak: at most (VmHWM)",
    );
    table.note("cut off: by the sidecar's own count, when there was something to read for 20 s and all were, or for 90 s");
    table.note("each figure is from a new process; the system keeps little for those that do not read");
    Ok(table)
}

struct Measurement {
    events: u64,
    bytes: u64,
    idle: f64,
    peak: f64,
    rest: f64,
    cut_off: f64,
}

async fn measure(
    kind: Kind,
    subscribers: usize,
    slow: usize,
    busy: [Duration; 2],
) -> Result<Measurement, Failure> {
    let server = Server::start(kind)?;
    let mut unread = Vec::new();
    for _ in 0..slow {
        let mut socket = Socket::open_narrow(server.addr).await?;
        socket.subscribe().await?;
        unread.push(socket);
    }
    let mut readers = JoinSet::new();
    for _ in slow..subscribers {
        let mut socket = Socket::open(server.addr).await?;
        socket.subscribe().await?;
        readers.spawn(async move { while socket.receive().await.is_ok() {} });
    }
    let idle = server.memory("VmRSS")?;
    let mut witness = Socket::open(server.addr).await?;
    witness.subscribe().await?;
    let mut connection = HttpConnection::open(server.addr).await?;
    let (mut events, mut bytes, mut cut_off) = (0, 0, 0.0);
    let began = Instant::now();
    let [busy, longest] = busy;
    while began.elapsed() < busy || (cut_off < figure(slow as u64) && began.elapsed() < longest) {
        connection.start_and_wait(PAGE).await?;
        bytes += witness.receive().await?.len() as u64;
        events += 1;
        if events % METRICS_EVERY == 0 {
            cut_off = read_cut_off(&mut connection).await?;
        }
    }
    let (peak, cut_off) = (server.memory("VmHWM")?, read_cut_off(&mut connection).await?);
    drop(unread);
    Ok(Measurement { events, bytes, idle, peak, rest: server.memory("VmRSS")?, cut_off })
}

/// The number of sockets that the sidecar has closed.
async fn read_cut_off(connection: &mut HttpConnection) -> Result<f64, Failure> {
    let metrics = connection.get("/metrics").await?;
    let count = metrics.lines().find_map(|line| line.strip_prefix(CUT_OFF));
    Ok(count.map_or(Ok(0.0), str::parse)?)
}
