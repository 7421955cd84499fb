//! Many subscribers of one flow: what an event costs for each of them, and what each of them holds.

use crate::clock::{figure, median};
use crate::live_provider::allow_files;
use crate::serve::in_time;
use crate::serve_client::{EVENT, Line, Socket};
use crate::serve_process::{AGENT, Kind, Server};
use crate::table::{Cell, Column, Table};
use crate::{Extent, Failure};
use std::cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// So many subscribers.
const CROWDS: [usize; 3] = [0, 500, 1_000];

/// Files that a process has open beside its sockets.
const OTHER_FILES: u64 = 200;

/// Runs before anything is measured.
const WARM_UP: usize = 20;

/// Long enough for everything that a run says.
const QUIET: Duration = Duration::from_millis(300);

/// Nobody waits this long for the events of one run.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who is measured, the raw limit first.
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
    let room = allow_files().saturating_sub(OTHER_FILES) / NAMES.len() as u64;
    let most = usize::try_from(room).unwrap_or(usize::MAX);
    let (crowds, rounds, runs) = match extent {
        Extent::Quick => ([0, 50, 100], 1, 5),
        _ => (CROWDS, 5, 10),
    };
    let crowds = crowds.map(|crowd| crowd.min(most));
    let seen = in_time(LocalSet::new().run_until(seen(crowds, rounds, runs)))?;
    for (place, name) in NAMES.into_iter().enumerate() {
        for (crowd, sights) in crowds.into_iter().zip(&seen.sights) {
            let (bare, sight) = (&sights[0], &sights[place]);
            let (ratio, bytes_ratio) = (sight.micros / bare.micros, sight.idle / bare.idle);
            table.row(vec![
                name.into(),
                figure(crowd as u64).into(),
                sight.event_micros.into(),
                shared(sight.micros),
                shared(ratio),
                shared(sight.idle),
                shared(bytes_ratio),
                shared(sight.busy),
                (sight.peak / 1e6).into(),
            ]);
        }
    }
    table.figure("events", "events of a run", figure(seen.events), "");
    table.figure("frameBytes", "bytes of an event", seen.bytes, "");
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

/// Nothing is shared among nobody.
fn shared(figure: f64) -> Cell {
    if figure.is_finite() { figure.into() } else { "–".into() }
}

/// What was seen of a server with so many subscribers.
struct Sight {
    event_micros: f64,
    micros: f64,
    idle: f64,
    busy: f64,
    peak: f64,
}

/// Of all crowds and servers.
struct Seen {
    sights: Vec<Vec<Sight>>,
    events: u64,
    bytes: f64,
}

async fn seen(crowds: [usize; 3], rounds: usize, runs: usize) -> Result<Seen, Failure> {
    // What a bare server is to send, a sidecar says first.
    let mut scenes = Vec::new();
    for kind in [Kind::Ephemeral, Kind::Durable] {
        scenes.push(Scene::of_sidecar(Server::start(kind)?).await?);
    }
    let texts = scenes[0].texts.clone();
    scenes.insert(0, Scene::of_bare(1, texts.clone()).await?);
    scenes.insert(0, Scene::of_bare(texts.len(), texts).await?);
    for scene in &mut scenes {
        scene.runs(WARM_UP).await?;
        scene.held = scene.server.memory("RssAnon")?;
    }
    let mut sights = Vec::new();
    for crowd in crowds {
        let mut idle = Vec::new();
        for scene in &mut scenes {
            let before = scene.server.memory("RssAnon")?;
            let came = scene.grow(crowd).await?;
            idle.push((scene.server.memory("RssAnon")? - before) / figure(came));
        }
        let mut micros = vec![Vec::new(); scenes.len()];
        for _ in 0..rounds {
            for (scene, micros) in scenes.iter_mut().zip(&mut micros) {
                let before = scene.server.cpu()?;
                scene.runs(runs).await?;
                let events = scene.texts.len() * runs;
                micros.push((scene.server.cpu()? - before) / figure(events as u64));
            }
        }
        let mut row = Vec::new();
        for ((scene, micros), idle) in scenes.iter_mut().zip(micros).zip(idle) {
            let event_micros = median(micros);
            if crowd == 0 {
                scene.alone = event_micros;
            }
            let micros = (event_micros - scene.alone) / figure(crowd as u64);
            let peak = scene.server.memory("VmHWM")?;
            row.push(Sight { event_micros, micros, idle, busy: scene.grown(crowd)?, peak });
        }
        sights.push(row);
    }
    let texts = &scenes[0].texts;
    let bytes = figure(texts.iter().map(|text| text.len() as u64).sum()) / figure(texts.len() as u64);
    Ok(Seen { sights, events: texts.len() as u64, bytes })
}

/// A server, what makes it say something, and who listens.
struct Scene {
    server: Server,
    trigger: Trigger,
    /// What one run says.
    texts: Vec<Utf8Bytes>,
    tally: Rc<Tally>,
    listeners: u64,
    /// Bytes that it held without subscribers.
    held: f64,
    /// Microseconds of an event without subscribers.
    alone: f64,
}

enum Trigger {
    Start(Line),
    /// So many texts together.
    Say(Box<Socket>, usize),
}

impl Scene {
    async fn of_sidecar(server: Server) -> Result<Self, Failure> {
        let mut line = Line::open(server.addr).await?;
        let mut socket = Socket::open(server.addr).await?;
        socket.subscribe().await?;
        // The first run may say things once.
        line.start(AGENT, true).await?;
        until_quiet(&mut socket).await?;
        line.start(AGENT, true).await?;
        let texts = until_quiet(&mut socket).await?;
        Self::new(server, Trigger::Start(line), texts).await
    }

    async fn of_bare(together: usize, texts: Vec<Utf8Bytes>) -> Result<Self, Failure> {
        let server = Server::start(Kind::FanOut)?;
        let socket = Socket::open(server.addr).await?;
        Self::new(server, Trigger::Say(Box::new(socket), together.max(1)), texts).await
    }

    /// One always listens, to know when everything was said.
    async fn new(server: Server, trigger: Trigger, texts: Vec<Utf8Bytes>) -> Result<Self, Failure> {
        let tally = Rc::new(Tally::default());
        listen(server.addr, &tally).await?;
        Ok(Self { server, trigger, texts, tally, listeners: 1, held: f64::NAN, alone: f64::NAN })
    }

    /// Lets so many subscribe in all. How many came.
    async fn grow(&mut self, subscribers: usize) -> Result<u64, Failure> {
        let before = self.listeners;
        while self.listeners <= subscribers as u64 {
            listen(self.server.addr, &self.tally).await?;
            self.listeners += 1;
        }
        Ok(self.listeners - before)
    }

    /// Bytes for each subscriber over what it held without.
    fn grown(&self, subscribers: usize) -> Result<f64, Failure> {
        Ok((self.server.memory("RssAnon")? - self.held) / figure(subscribers as u64))
    }

    /// So many runs, each after everybody has heard everything of the one before.
    async fn runs(&mut self, runs: usize) -> Result<(), Failure> {
        for _ in 0..runs {
            match &mut self.trigger {
                Trigger::Start(line) => {
                    self.tally.expect(self.listeners * self.texts.len() as u64);
                    line.start(AGENT, true).await?;
                    self.tally.heard_all().await?;
                }
                Trigger::Say(socket, together) => {
                    for texts in self.texts.chunks(*together) {
                        self.tally.expect(self.listeners * texts.len() as u64);
                        socket.say_all(texts).await?;
                        self.tally.heard_all().await?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// All events until none comes for a while.
async fn until_quiet(socket: &mut Socket) -> Result<Vec<Utf8Bytes>, Failure> {
    let mut texts = Vec::new();
    while let Ok(text) = timeout(QUIET, socket.hear()).await {
        texts.extend(Some(text?).filter(|text| text.starts_with(EVENT)));
    }
    Ok(texts)
}

/// Listens for good, on this thread.
async fn listen(addr: SocketAddr, tally: &Rc<Tally>) -> Result<(), Failure> {
    let mut socket = Socket::open(addr).await?;
    socket.subscribe().await?;
    let tally = Rc::clone(tally);
    tokio::task::spawn_local(async move {
        while let Ok(text) = socket.hear().await {
            if text.starts_with(EVENT) {
                tally.heard();
            }
        }
    });
    Ok(())
}

/// How much is still to be heard, by all listeners together.
#[derive(Default)]
struct Tally {
    due: cell::Cell<u64>,
    over: Notify,
}

impl Tally {
    fn expect(&self, events: u64) {
        self.due.set(events);
    }

    fn heard(&self) {
        self.due.set(self.due.get().saturating_sub(1));
        if self.due.get() == 0 {
            self.over.notify_one();
        }
    }

    async fn heard_all(&self) -> Result<(), Failure> {
        while self.due.get() > 0 {
            let more = timeout(PATIENCE, self.over.notified()).await;
            more.map_err(|_| format!("{} events were not heard", self.due.get()))?;
        }
        Ok(())
    }
}
