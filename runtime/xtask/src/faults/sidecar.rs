//! A sidecar that is killed under load, again and again, while people start runs and look on: whoever was told of a
//! run finds it, and whoever was told of events gets the rest, each once.

mod client;
mod load;
mod readers;
mod verdict;

use super::flows::{CLASSES, many_agents};
use super::rig::{HANGS, Rig, Started};
use super::witness::Manner;
use super::{Dice, Row, is_over};
use client::{Client, TOKEN};
use load::{Answers, Starts, answer_people, start_runs};
use readers::{Habit, Notes, Orders, follow, read_all};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::Scope;
use std::time::{Duration, Instant};
use verdict::{End, Said, judge};

/// How many start runs at once.
const STARTERS: u64 = 8;

/// Everything that happens here is kept to the end.
const CONFIG: &str = "[server]\nrate_per_second = 1000000\nrate_burst = 1000000\nevents_kept = 10000000\n";

/// The longest a sidecar may live once it listens.
const LONGEST_LIFE_MS: u64 = 1500;

/// How long a sidecar is left alone that was told where to stop dead.
const MAY_STOP: Duration = Duration::from_secs(3);

/// How long its other threads go on then: what they tell of what is not kept, somebody hears.
const GOES_ON: Duration = Duration::from_millis(100);

/// Where a sidecar is stopped dead before it is killed: between what is kept and what is told of it.
const POINTS: [&str; 8] = [
    "store.before_commit",
    "store.after_commit",
    "store.before_commit",
    "start.after_keep",
    "output.before_ack",
    "store.before_commit",
    "result.after_keep",
    "output.before_delivery",
];

/// The first time a sidecar passes one of them that counts, and how many there are: by then everybody is back.
const PASSED: (u64, u64) = (10, 30);

pub(super) fn run(rig: &Rig, kills: usize) -> Result<Row, String> {
    let mut row = Row::new("random kill -9 of a sidecar under load, with subscribers");
    let place = rig.place("sidecar")?;
    let flow = Rig::flow(&place, &many_agents())?;
    let config = place.join("redflow.toml");
    std::fs::write(&config, CONFIG).map_err(|error| error.to_string())?;
    rig.witness.reset(Manner::Moody);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let sidecar = Served { rig, place: &place, flow, config: config.display().to_string(), address };
    let orders = Orders::new();
    let (said, end) = std::thread::scope(|scope| {
        let crowd = Crowd::gather(scope, Client(address), &orders);
        let ended = lives(&sidecar, kills, &mut row)
            .and_then(|(last, stopped)| come_to_rest(&sidecar, last, stopped, crowd, &orders));
        // Nobody is waited for who waits for something that does not come.
        orders.give_up.store(ended.is_err(), Ordering::Relaxed);
        ended
    })?;
    let runs = rig.runs(&place)?;
    if runs.len() != end.runs.len() {
        row.failures.push(format!("{} runs after the stop, {} before", runs.len(), end.runs.len()));
    }
    rig.replay_all(&place)?;
    judge(&mut row, &said, &end, &rig.witness.calls());
    Ok(row)
}

/// How a sidecar of this place is started.
struct Served<'a> {
    rig: &'a Rig,
    place: &'a Path,
    flow: String,
    config: String,
    address: SocketAddr,
}

impl Served<'_> {
    fn start(&self, failpoint: Option<String>) -> Result<Started, String> {
        let listen = self.address.to_string();
        let args = ["serve", "--flows", &self.flow, "--listen", &listen, "--config", &self.config];
        let mut command = self.rig.redflow(self.place, &args);
        command.env("REDFLOW_TOKEN", TOKEN).env("REDFLOW_LOG", "error");
        if let Some(point) = failpoint {
            command.env("REDFLOW_FAILPOINT", point);
        }
        Started::new(command)
    }

    fn listening(&self) -> Result<Started, String> {
        let mut started = self.start(None)?;
        if started.says("listening on", HANGS) {
            return Ok(started);
        }
        Err(format!("the sidecar does not listen: {}", started.said().join(" | ")))
    }
}

/// A port nobody uses, and that the system gives to no connection: a client that knocks while nobody is there must not
/// become its own peer.
fn free_port() -> Result<u16, String> {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap_or_default();
    let mut ports = (first..30_000).chain(20_000..first);
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    ports.find(free).ok_or_else(|| "no port is free".to_owned())
}

/// Everybody who talks to the sidecar.
struct Crowd<'scope> {
    starters: Vec<std::thread::ScopedJoinHandle<'scope, Starts>>,
    person: std::thread::ScopedJoinHandle<'scope, Answers>,
    readers: Vec<std::thread::ScopedJoinHandle<'scope, Notes>>,
}

impl<'scope> Crowd<'scope> {
    fn gather<'env>(scope: &'scope Scope<'scope, 'env>, client: Client, orders: &'env Orders) -> Self {
        let names = |class: &'static str| (0..3).map(move |number| format!("{class}{number}"));
        let agents: Vec<String> = CLASSES.into_iter().flat_map(names).collect();
        let starters = (0..STARTERS).map(|number| {
            let agents = agents.clone();
            scope.spawn(move || start_runs(client, orders, &agents, number))
        });
        let habits = [Habit::Stays, Habit::FromNow, Habit::ComesAndGoes, Habit::TakesItsTime];
        let readers = habits.into_iter().zip(0..);
        let readers = readers.map(|(habit, seed)| scope.spawn(move || follow(client, orders, habit, seed)));
        Self {
            starters: starters.collect(),
            readers: readers.collect(),
            person: scope.spawn(move || answer_people(client, orders)),
        }
    }
}

/// Starts and kills, until it was killed often enough. Gives one that goes on, and how many were stopped dead first.
fn lives(sidecar: &Served<'_>, kills: usize, row: &mut Row) -> Result<(Started, usize), String> {
    let mut dice = Dice(11);
    let mut stopped = 0;
    for number in 0..kills {
        let mut started = match number % 6 {
            // Where what is kept and what is told part.
            1 | 3 | 5 => {
                let point = POINTS[(number / 2) % POINTS.len()];
                let passed = PASSED.0 + dice.below(PASSED.1);
                let mut started = sidecar.start(Some(format!("{point}={passed}")))?;
                // It may not come that far.
                if started.says("FAILPOINT", MAY_STOP) {
                    stopped += 1;
                    std::thread::sleep(GOES_ON);
                }
                started
            }
            // While it comes up.
            2 => {
                let started = sidecar.start(None)?;
                std::thread::sleep(Duration::from_millis(5 + dice.below(150)));
                started
            }
            _ => {
                let started = sidecar.listening()?;
                std::thread::sleep(Duration::from_millis(100 + dice.below(LONGEST_LIFE_MS)));
                started
            }
        };
        if started.has_ended() {
            return Err(format!("the sidecar ended by itself: {:?}", started.end(HANGS)?));
        }
        row.failures.extend(complaints(started.said()));
        started.kill()?;
        row.cases += 1;
    }
    Ok((sidecar.listening()?, stopped))
}

/// What a sidecar complains of: nothing that happens here is a fault of its own.
fn complaints(said: &[String]) -> Vec<String> {
    let is_error = |line: &&String| line.contains(r#""level":"ERROR""#) || line.contains("error[");
    said.iter().filter(is_error).map(|line| format!("the sidecar said: {line}")).collect()
}

/// Nobody starts anything any more; everything comes to its end, everybody reads to the end, and the sidecar stops.
fn come_to_rest(
    sidecar: &Served<'_>,
    mut last: Started,
    stopped: usize,
    crowd: Crowd<'_>,
    orders: &Orders,
) -> Result<(Said, End), String> {
    let client = Client(sidecar.address);
    orders.enough.store(true, Ordering::Relaxed);
    let starts = joined(crowd.starters)?;
    until_over(client)?;
    orders.all_over.store(true, Ordering::Relaxed);
    let answers = joined(vec![crowd.person])?.pop().unwrap_or_default();
    // Asked once more, every key gives the run it gave.
    let again = starts.iter().flat_map(|starts| &starts.acknowledged).map(|start| {
        let answer = client.start(&start.key, &start.agent)?;
        Ok((start.key.clone(), load::begun(&start.key, &answer)?))
    });
    let again = again.collect::<Result<Vec<_>, String>>()?;
    let runs = all_runs(client)?;
    let events = read_all(client)?;
    orders.until.store(events.last().map_or(0, |(position, _)| *position), Ordering::Relaxed);
    let notes = joined(crowd.readers)?;
    let journals = runs.iter().map(|run| {
        let id = run["runId"].as_str().unwrap_or_default().to_owned();
        let answer = client.get(&format!("/api/runs/{id}/events"))?;
        let events = answer.body.as_array().cloned();
        Ok((id, events.ok_or_else(|| format!("the events of a run: {answer:?}"))?))
    });
    let journals = journals.collect::<Result<Vec<_>, String>>()?;
    let complaints = complaints(last.said());
    last.terminate()?;
    let done = last.end(HANGS)?;
    if done.code != Some(0) {
        return Err(format!("the sidecar did not stop well: {done:?}"));
    }
    Ok((Said { starts, answers, notes }, End { stopped, complaints, again, runs, events, journals }))
}

fn joined<T>(threads: Vec<std::thread::ScopedJoinHandle<'_, T>>) -> Result<Vec<T>, String> {
    let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned()));
    joined.collect()
}

/// Waits until every run is over and its result has arrived.
fn until_over(client: Client) -> Result<(), String> {
    let end = Instant::now() + HANGS;
    loop {
        let runs = all_runs(client)?;
        let open = |run: &&Value| !is_over(run) || run["delivered"] != true;
        let Some(first) = runs.iter().find(open) else { return Ok(()) };
        if Instant::now() > end {
            let count = runs.iter().filter(open).count();
            return Err(format!("{count} of {} runs do not come to an end, such as {first}", runs.len()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn all_runs(client: Client) -> Result<Vec<Value>, String> {
    let mut runs = Vec::new();
    let mut path = "/api/runs?limit=1000".to_owned();
    loop {
        let answer = client.get(&path)?;
        let page = answer.body["runs"].as_array().ok_or_else(|| format!("the list of runs: {answer:?}"))?;
        runs.extend(page.iter().cloned());
        match answer.body["next"].as_str() {
            Some(next) => path = format!("/api/runs?limit=1000&before={next}"),
            None => return Ok(runs),
        }
    }
}
