//! Subscribers that do not read: what a sidecar holds for them, and that it cuts them off.

use crate::clock::figure;
use crate::serve::in_time;
use crate::serve_client::{Line, Socket};
use crate::serve_process::{Kind, PAGE, Server};
use crate::table::{Column, Table};
use crate::{Extent, Failure};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Subscribers, and how many of them do not read.
const CROWDS: [(usize, usize); 2] = [(1_000, 0), (1_000, 100)];

/// For how long there is something to read: longer than a sidecar waits for a reader, and until it has given up all
/// that do not read, but not forever.
const BUSY: Duration = Duration::from_secs(20);
const LONGEST: Duration = Duration::from_secs(90);

/// Events after which a sidecar is asked how many it has cut off.
const ASKED_AFTER: u64 = 100;

/// What a sidecar counts of those it cut off.
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
            let seen = in_time(seen(kind, subscribers, slow, busy))?;
            table.row(vec![
                kind.name().into(),
                figure(subscribers as u64).into(),
                figure(slow as u64).into(),
                figure(seen.events).into(),
                (figure(seen.bytes) / 1e6).into(),
                (seen.idle / 1e6).into(),
                (seen.peak / 1e6).into(),
                (seen.rest / 1e6).into(),
                seen.cut_off.into(),
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

struct Seen {
    events: u64,
    bytes: u64,
    idle: f64,
    peak: f64,
    rest: f64,
    cut_off: f64,
}

async fn seen(kind: Kind, subscribers: usize, slow: usize, busy: [Duration; 2]) -> Result<Seen, Failure> {
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
        readers.spawn(async move { while socket.hear().await.is_ok() {} });
    }
    let idle = server.memory("VmRSS")?;
    let mut witness = Socket::open(server.addr).await?;
    witness.subscribe().await?;
    let mut line = Line::open(server.addr).await?;
    let (mut events, mut bytes, mut cut_off) = (0, 0, 0.0);
    let began = Instant::now();
    let [busy, longest] = busy;
    while began.elapsed() < busy || (cut_off < figure(slow as u64) && began.elapsed() < longest) {
        line.start(PAGE, true).await?;
        bytes += witness.hear().await?.len() as u64;
        events += 1;
        if events % ASKED_AFTER == 0 {
            cut_off = cut_off_by(&mut line).await?;
        }
    }
    let (peak, cut_off) = (server.memory("VmHWM")?, cut_off_by(&mut line).await?);
    drop(unread);
    Ok(Seen { events, bytes, idle, peak, rest: server.memory("VmRSS")?, cut_off })
}

/// How many a sidecar has cut off.
async fn cut_off_by(line: &mut Line) -> Result<f64, Failure> {
    let metrics = line.get("/metrics").await?;
    let told = metrics.lines().find_map(|told| told.strip_prefix(CUT_OFF));
    Ok(told.map_or(Ok(0.0), str::parse)?)
}
