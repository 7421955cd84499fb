//! Kills a sidecar under load, again and again, while clients start runs and read events. No acknowledged run may be
//! lost, and every subscriber must receive each event once.

mod checks;
mod client;
pub(super) mod hostile;
mod load;
mod readers;

use super::flows::{CLASSES, many_agents};
use super::rig::{Rig, TIME_LIMIT};
use super::witness::Behaviour;
use super::{Random, Row, is_open};
use checks::{ClientLogs, FinalState, check_final_state};
use client::{Client, TOKEN};
use load::{Answers, Starts, answer_questions, start_runs};
use readers::{ReaderKind, ReaderLog, Signals, read_all, read_events};
use redflow_testkit::LoggedProcess;
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// How many clients start runs at once.
const STARTERS: u64 = 8;

/// Keeps all events to the end, and limits no client.
const CONFIG: &str = "[server]\nrate_per_second = 1000000\nrate_burst = 1000000\nevents_kept = 10000000\n";

/// The longest time before a sidecar that listens is killed.
const LONGEST_LIFE_MS: u64 = 1500;

/// How long to wait until a sidecar reaches its failpoint.
const FAILPOINT_LIMIT: Duration = Duration::from_secs(3);

/// How long the other threads continue after a failpoint. They may send what is not stored, and a reader must notice.
const AFTER_FAILPOINT: Duration = Duration::from_millis(100);

/// Failpoints between storing something and sending it.
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

/// A failpoint stops the sidecar at a random pass: at least the first number, and at most the second number later.
/// By then all clients are connected again.
const PASSES: (u64, u64) = (10, 30);

pub(super) fn run(rig: &Rig, kills: usize) -> Result<Row, String> {
    let mut row = Row::new("random kill -9 of a sidecar under load, with subscribers");
    let folder = rig.folder("sidecar")?;
    let flow = Rig::write_flow(&folder, &many_agents())?;
    let config = folder.join("redflow.toml");
    std::fs::write(&config, CONFIG).map_err(|error| error.to_string())?;
    rig.witness.reset(Behaviour::Mixed);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let sidecar = SidecarSetup { rig, folder: &folder, flow, config: config.display().to_string(), address };
    let client = Client::new(address);
    let signals = Signals::new();
    let (logs, state) = std::thread::scope(|scope| {
        let clients = Clients::spawn(scope, &client, &signals);
        let result = kill_repeatedly(&sidecar, kills, &mut row)
            .and_then(|(last, at_failpoint)| finish(&client, last, at_failpoint, clients, &signals));
        // After an error no client may wait for what never comes.
        signals.give_up.store(result.is_err(), Ordering::Relaxed);
        result
    })?;
    let runs = rig.list_runs(&folder)?;
    if runs.len() != state.runs.len() {
        row.failures.push(format!("{} runs after the stop, {} before", runs.len(), state.runs.len()));
    }
    rig.replay_all(&folder)?;
    check_final_state(&mut row, &logs, &state, &rig.witness.calls());
    Ok(row)
}

/// How the sidecar is started, always at the same address.
struct SidecarSetup<'a> {
    rig: &'a Rig,
    folder: &'a Path,
    flow: String,
    config: String,
    address: SocketAddr,
}

impl SidecarSetup<'_> {
    fn start(&self, failpoint: Option<String>) -> Result<LoggedProcess, String> {
        let listen = self.address.to_string();
        let args = ["serve", "--flows", &self.flow, "--listen", &listen, "--config", &self.config];
        let mut command = self.rig.redflow(self.folder, &args);
        command.env("REDFLOW_TOKEN", TOKEN).env("REDFLOW_LOG", "error");
        if let Some(point) = failpoint {
            command.env("REDFLOW_FAILPOINT", point);
        }
        LoggedProcess::start(command)
    }

    fn start_and_wait(&self) -> Result<LoggedProcess, String> {
        let mut process = self.start(None)?;
        process.wait_for_address(TIME_LIMIT)?;
        Ok(process)
    }
}

/// A free port outside the range that the system gives to connections. Inside that range, a client that connects while
/// no sidecar listens could become its own peer.
fn free_port() -> Result<u16, String> {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap_or_default();
    let mut ports = (first..30_000).chain(20_000..first);
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    ports.find(free).ok_or_else(|| "no port is free".to_owned())
}

/// The threads of all clients.
struct Clients<'scope> {
    starters: Vec<ScopedJoinHandle<'scope, Starts>>,
    answerer: ScopedJoinHandle<'scope, Answers>,
    readers: Vec<ScopedJoinHandle<'scope, ReaderLog>>,
}

impl<'scope> Clients<'scope> {
    fn spawn<'env>(scope: &'scope Scope<'scope, 'env>, client: &'env Client, signals: &'env Signals) -> Self {
        let names = |class: &'static str| (0..3).map(move |number| format!("{class}{number}"));
        let agents: Vec<String> = CLASSES.into_iter().flat_map(names).collect();
        let starters = (0..STARTERS).map(|number| {
            let agents = agents.clone();
            scope.spawn(move || start_runs(client, signals, &agents, number))
        });
        let kinds = [ReaderKind::FromStart, ReaderKind::FromNow, ReaderKind::Disconnecting, ReaderKind::Slow];
        let readers = kinds.into_iter().zip(0..);
        let readers =
            readers.map(|(kind, seed)| scope.spawn(move || read_events(client, signals, kind, seed)));
        Self {
            starters: starters.collect(),
            readers: readers.collect(),
            answerer: scope.spawn(move || answer_questions(client, signals)),
        }
    }
}

/// Starts and kills sidecars. Gives a last one that runs, and how many stopped at a failpoint before the kill.
fn kill_repeatedly(
    sidecar: &SidecarSetup<'_>,
    kills: usize,
    row: &mut Row,
) -> Result<(LoggedProcess, usize), String> {
    let mut random = Random(11);
    let mut at_failpoint = 0;
    for number in 0..kills {
        let mut process = match number % 6 {
            // At a failpoint.
            1 | 3 | 5 => {
                let point = POINTS[(number / 2) % POINTS.len()];
                let pass = PASSES.0 + random.below(PASSES.1);
                let mut process = sidecar.start(Some(format!("{point}={pass}")))?;
                // It may not reach the failpoint in time.
                if process.wait_for("FAILPOINT", FAILPOINT_LIMIT).is_some() {
                    at_failpoint += 1;
                    std::thread::sleep(AFTER_FAILPOINT);
                }
                process
            }
            // While it starts.
            2 => {
                let process = sidecar.start(None)?;
                std::thread::sleep(Duration::from_millis(5 + random.below(150)));
                process
            }
            _ => {
                let process = sidecar.start_and_wait()?;
                std::thread::sleep(Duration::from_millis(100 + random.below(LONGEST_LIFE_MS)));
                process
            }
        };
        if process.has_ended() {
            return Err(format!("the sidecar ended by itself: {:?}", process.wait(TIME_LIMIT)?));
        }
        row.failures.extend(errors_in(&process.stderr()));
        process.kill()?;
        row.cases += 1;
    }
    Ok((sidecar.start_and_wait()?, at_failpoint))
}

/// The errors in the log of a sidecar. Nothing in this test is a fault of its own, so it must log none.
fn errors_in(log: &str) -> Vec<String> {
    let is_error = |line: &&str| line.contains(r#""level":"ERROR""#) || line.contains("error[");
    log.lines().filter(is_error).map(|line| format!("the sidecar logged: {line}")).collect()
}

/// Stops the starts, waits until all runs have ended and all clients have read everything, and stops the sidecar.
fn finish(
    client: &Client,
    last: LoggedProcess,
    at_failpoint: usize,
    clients: Clients<'_>,
    signals: &Signals,
) -> Result<(ClientLogs, FinalState), String> {
    signals.stop_starting.store(true, Ordering::Relaxed);
    let starts = join(clients.starters)?;
    wait_for_all_runs(client)?;
    signals.stop_answering.store(true, Ordering::Relaxed);
    let answers = join(vec![clients.answerer])?.pop().unwrap_or_default();
    // The same key gives the same run again.
    let repeated_starts = starts.iter().flat_map(|starts| &starts.acknowledged).map(|start| {
        let response = client.start(&start.key, &start.agent)?;
        Ok((start.key.clone(), load::started_run(&start.key, &response)?))
    });
    let repeated_starts = repeated_starts.collect::<Result<Vec<_>, String>>()?;
    let runs = all_runs(client)?;
    let events = read_all(client)?;
    signals.last_position.store(events.last().map_or(0, |(position, _)| *position), Ordering::Relaxed);
    let readers = join(clients.readers)?;
    let journals = runs.iter().map(|run| {
        let id = run["runId"].as_str().unwrap_or_default().to_owned();
        let response = client.get(&format!("/api/runs/{id}/events"))?;
        let events = response.body.as_array().cloned();
        Ok((id, events.ok_or_else(|| format!("the events of a run: {response:?}"))?))
    });
    let journals = journals.collect::<Result<Vec<_>, String>>()?;
    let errors = errors_in(&last.stderr());
    last.terminate()?;
    let exit = last.wait(TIME_LIMIT)?;
    if exit.code != Some(0) {
        return Err(format!("the sidecar did not stop well: {exit:?}"));
    }
    let state = FinalState { at_failpoint, errors, repeated_starts, runs, events, journals };
    Ok((ClientLogs { starts, answers, readers }, state))
}

fn join<T>(threads: Vec<ScopedJoinHandle<'_, T>>) -> Result<Vec<T>, String> {
    let results = threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned()));
    results.collect()
}

/// Waits until every run has ended and its result is delivered.
fn wait_for_all_runs(client: &Client) -> Result<(), String> {
    let end = Instant::now() + TIME_LIMIT;
    loop {
        let runs = all_runs(client)?;
        let Some(first) = runs.iter().find(|run| is_open(run)) else { return Ok(()) };
        if Instant::now() > end {
            let count = runs.iter().filter(|run| is_open(run)).count();
            return Err(format!("{count} of {} runs do not end, such as {first}", runs.len()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn all_runs(client: &Client) -> Result<Vec<Value>, String> {
    let mut runs = Vec::new();
    let mut path = "/api/runs?limit=1000".to_owned();
    loop {
        let response = client.get(&path)?;
        let page =
            response.body["runs"].as_array().ok_or_else(|| format!("the list of runs: {response:?}"))?;
        runs.extend(page.iter().cloned());
        match response.body["next"].as_str() {
            Some(next) => path = format!("/api/runs?limit=1000&before={next}"),
            None => return Ok(runs),
        }
    }
}
