//! Many subscribers of one flow: the cost of an event and the memory for each of them.

use super::client::{EVENT, HttpConnection, Socket, with_time_limit};
use super::server::{AGENT, Kind, Server};
use crate::clock::{figure, median};
use crate::table::{Cell, Column, Table};
use crate::{Extent, Failure, open_files};
use std::cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// The numbers of subscribers.
const CROWDS: [usize; 3] = [0, 500, 1_000];

/// Open files of a process besides its sockets.
const OTHER_FILES: u64 = 200;

/// Runs before anything is measured.
const WARM_UP: usize = 20;

/// Long enough for all events of a run.
const QUIET: Duration = Duration::from_millis(300);

/// The time limit for the events of one run.
const EVENTS_LIMIT: Duration = Duration::from_secs(60);

/// The measured servers, the raw limit first.
const NAMES: [&str; 4] = ["bare, by runs", "bare, by events", "ephemeral", "durable"];

pub(crate) fn table(extent: Extent) -> Result<Table, Failure> {
    let columns = [
        ("server", "server", 0),
        ("subscribers", "subscribers", 0),
        ("eventMicros", "CPU µs/event", 1),
        ("micros", "more µs/event/subscriber", 2),
        ("ratio", "× bare", 2),
        ("bytes", "idle bytes/subscriber", 0),
        ("bytesRatio", "× bare", 2),
        ("busyBytes", "busy bytes/subscriber", 0),
        ("peakMegabytes", "peak MB", 1),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let heading = "subscribers of an agent that makes five tool calls in each run";
    let mut table = Table::new("serve-crowd", heading, columns.into());
    let room = open_files::raise_limit().saturating_sub(OTHER_FILES) / NAMES.len() as u64;
    let most = usize::try_from(room).unwrap_or(usize::MAX);
    let (crowds, rounds, runs) = match extent {
        Extent::Quick => ([0, 50, 100], 1, 5),
        _ => (CROWDS, 5, 10),
    };
    let crowds = crowds.map(|crowd| crowd.min(most));
    let results = with_time_limit(LocalSet::new().run_until(measure(crowds, rounds, runs)))?;
    for (index, name) in NAMES.into_iter().enumerate() {
        for (crowd, row) in crowds.into_iter().zip(&results.rows) {
            let (bare, measured) = (&row[0], &row[index]);
            let (ratio, bytes_ratio) = (measured.micros / bare.micros, measured.idle / bare.idle);
            table.row(vec![
                name.into(),
                figure(crowd as u64).into(),
                measured.event_micros.into(),
                per_subscriber(measured.micros),
                per_subscriber(ratio),
                per_subscriber(measured.idle),
                per_subscriber(bytes_ratio),
                per_subscriber(measured.busy),
                (measured.peak / 1e6).into(),
            ]);
        }
    }
    table.figure("events", "events of a run", figure(results.events), "");
    table.figure("frameBytes", "bytes of an event", results.bytes, "");
    table.note(
        "CPU: processor time of the server, with the kernel's; running the agent is part of a sidecar's",
    );
    table.note("more: over what the event costs without subscribers, shared among them; medians of rounds");
    table.note(
        "bytes: growth of what the server holds (RssAnon): idle: of those who have just come; busy: of all,",
    );
    table.note("when all events were sent");
    table.note("bare: tokio-tungstenite that sends the same texts to everybody: all of a run together, or each by itself");
    table.note(
        "everybody has everything before the next run begins, or the next event with the second of these",
    );
    table.note("× bare: of the first one; a durable sidecar sends what was kept together, so more often");
    Ok(table)
}

/// Without subscribers there is no figure for each.
fn per_subscriber(figure: f64) -> Cell {
    if figure.is_finite() { figure.into() } else { "–".into() }
}

/// One server with one number of subscribers.
struct Measurement {
    event_micros: f64,
    micros: f64,
    idle: f64,
    busy: f64,
    peak: f64,
}

/// All numbers of subscribers and all servers.
struct Results {
    rows: Vec<Vec<Measurement>>,
    events: u64,
    bytes: f64,
}

async fn measure(crowds: [usize; 3], rounds: usize, runs: usize) -> Result<Results, Failure> {
    // A sidecar shows the texts that the bare servers send.
    let mut setups = Vec::new();
    for kind in [Kind::Ephemeral, Kind::Durable] {
        setups.push(Setup::with_sidecar(Server::start(kind)?).await?);
    }
    let texts = setups[0].texts.clone();
    setups.insert(0, Setup::with_bare_server(1, texts.clone()).await?);
    setups.insert(0, Setup::with_bare_server(texts.len(), texts).await?);
    for setup in &mut setups {
        setup.run(WARM_UP).await?;
        setup.idle_bytes = setup.server.memory("RssAnon")?;
    }
    let mut rows = Vec::new();
    for crowd in crowds {
        let mut idle = Vec::new();
        for setup in &mut setups {
            let before = setup.server.memory("RssAnon")?;
            let added = setup.add_subscribers(crowd).await?;
            idle.push((setup.server.memory("RssAnon")? - before) / figure(added));
        }
        let mut micros = vec![Vec::new(); setups.len()];
        for _ in 0..rounds {
            for (setup, micros) in setups.iter_mut().zip(&mut micros) {
                let before = setup.server.cpu()?;
                setup.run(runs).await?;
                let events = setup.texts.len() * runs;
                micros.push((setup.server.cpu()? - before) / figure(events as u64));
            }
        }
        let mut row = Vec::new();
        for ((setup, micros), idle) in setups.iter_mut().zip(micros).zip(idle) {
            let event_micros = median(micros);
            if crowd == 0 {
                setup.alone_micros = event_micros;
            }
            let micros = (event_micros - setup.alone_micros) / figure(crowd as u64);
            let peak = setup.server.memory("VmHWM")?;
            row.push(Measurement {
                event_micros,
                micros,
                idle,
                busy: setup.bytes_per_subscriber(crowd)?,
                peak,
            });
        }
        rows.push(row);
    }
    let texts = &setups[0].texts;
    let bytes = figure(texts.iter().map(|text| text.len() as u64).sum()) / figure(texts.len() as u64);
    Ok(Results { rows, events: texts.len() as u64, bytes })
}

/// A server, its trigger and its listeners.
struct Setup {
    server: Server,
    trigger: Trigger,
    /// The events of one run.
    texts: Vec<Utf8Bytes>,
    pending: Rc<PendingEvents>,
    listeners: u64,
    /// Its memory without subscribers.
    idle_bytes: f64,
    /// Microseconds of an event without subscribers.
    alone_micros: f64,
}

enum Trigger {
    Start(HttpConnection),
    /// Sends so many texts together.
    Send(Box<Socket>, usize),
}

impl Setup {
    async fn with_sidecar(server: Server) -> Result<Self, Failure> {
        let mut connection = HttpConnection::open(server.addr).await?;
        let mut socket = Socket::open(server.addr).await?;
        socket.subscribe().await?;
        // The first run may have additional events.
        connection.start_and_wait(AGENT).await?;
        receive_until_quiet(&mut socket).await?;
        connection.start_and_wait(AGENT).await?;
        let texts = receive_until_quiet(&mut socket).await?;
        Self::new(server, Trigger::Start(connection), texts).await
    }

    async fn with_bare_server(together: usize, texts: Vec<Utf8Bytes>) -> Result<Self, Failure> {
        let server = Server::start(Kind::FanOut)?;
        let socket = Socket::open(server.addr).await?;
        Self::new(server, Trigger::Send(Box::new(socket), together.max(1)), texts).await
    }

    /// One listener always exists, to know when all events were sent.
    async fn new(server: Server, trigger: Trigger, texts: Vec<Utf8Bytes>) -> Result<Self, Failure> {
        let pending = Rc::new(PendingEvents::default());
        listen(server.addr, &pending).await?;
        Ok(Self {
            server,
            trigger,
            texts,
            pending,
            listeners: 1,
            idle_bytes: f64::NAN,
            alone_micros: f64::NAN,
        })
    }

    /// Adds subscribers up to a number, and gives how many it added.
    async fn add_subscribers(&mut self, subscribers: usize) -> Result<u64, Failure> {
        let before = self.listeners;
        while self.listeners <= subscribers as u64 {
            listen(self.server.addr, &self.pending).await?;
            self.listeners += 1;
        }
        Ok(self.listeners - before)
    }

    /// The growth of memory per subscriber.
    fn bytes_per_subscriber(&self, subscribers: usize) -> Result<f64, Failure> {
        Ok((self.server.memory("RssAnon")? - self.idle_bytes) / figure(subscribers as u64))
    }

    /// Runs the agent. Each run starts after all listeners have all events of the one before.
    async fn run(&mut self, runs: usize) -> Result<(), Failure> {
        for _ in 0..runs {
            match &mut self.trigger {
                Trigger::Start(connection) => {
                    self.pending.expect(self.listeners * self.texts.len() as u64);
                    connection.start_and_wait(AGENT).await?;
                    self.pending.wait_for_all().await?;
                }
                Trigger::Send(socket, together) => {
                    for texts in self.texts.chunks(*together) {
                        self.pending.expect(self.listeners * texts.len() as u64);
                        socket.send_all(texts).await?;
                        self.pending.wait_for_all().await?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// All events until none comes for a while.
async fn receive_until_quiet(socket: &mut Socket) -> Result<Vec<Utf8Bytes>, Failure> {
    let mut texts = Vec::new();
    while let Ok(text) = timeout(QUIET, socket.receive()).await {
        texts.extend(Some(text?).filter(|text| text.starts_with(EVENT)));
    }
    Ok(texts)
}

/// Adds a listener on this thread. It never ends.
async fn listen(addr: SocketAddr, pending: &Rc<PendingEvents>) -> Result<(), Failure> {
    let mut socket = Socket::open(addr).await?;
    socket.subscribe().await?;
    let pending = Rc::clone(pending);
    tokio::task::spawn_local(async move {
        while let Ok(text) = socket.receive().await {
            if text.starts_with(EVENT) {
                pending.received();
            }
        }
    });
    Ok(())
}

/// The number of events that all listeners together still expect.
#[derive(Default)]
struct PendingEvents {
    count: cell::Cell<u64>,
    none_left: Notify,
}

impl PendingEvents {
    fn expect(&self, events: u64) {
        self.count.set(events);
    }

    fn received(&self) {
        self.count.set(self.count.get().saturating_sub(1));
        if self.count.get() == 0 {
            self.none_left.notify_one();
        }
    }

    async fn wait_for_all(&self) -> Result<(), Failure> {
        while self.count.get() > 0 {
            let more = timeout(EVENTS_LIMIT, self.none_left.notified()).await;
            more.map_err(|_| format!("{} events did not arrive", self.count.get()))?;
        }
        Ok(())
    }
}
