//! Hostile input under load: sends every hostile input of the tests to a sidecar that runs agents meanwhile. It must
//! refuse each with a code, stay healthy, lose no run, and stop when it is told to.

use super::client::{Client, Response};
use super::load::{Starts, start_runs};
use super::readers::Signals;
use super::{CONFIG, SidecarSetup, all_runs, free_port, join, wait_for_all_runs};
use crate::Row;
use crate::flows::many_agents;
use crate::rig::{Rig, TIME_LIMIT};
use crate::witness::Behaviour;
use redflow_testkit::{LoggedProcess, hostile};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How many clients start runs beside the hostile one.
const STARTERS: u64 = 2;

/// The pause between two requests for health.
const BETWEEN_CHECKS: Duration = Duration::from_millis(20);

/// After so many requests for health the metrics are read.
const CHECKS_PER_DELAY: usize = 50;

/// A sidecar that answers later is not healthy.
const HEALTH_LIMIT: Duration = Duration::from_secs(1);

/// How long a sidecar may take to stop: the time for the calls under way, and some more.
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// The size of large bodies and frames.
const LARGE: usize = 1024 * 1024;

/// The size of the largest frame.
const LARGEST: usize = 46 * 1024 * 1024;

/// The routes that get every hostile text.
const ROUTES: [&str; 4] = ["/flows", "/api/deployment", "/api/flows/check", "/api/runs"];

/// The sockets that get every hostile text.
const SOCKETS: [&str; 3] = ["/bridge", "/events", "/comms"];

pub(crate) fn run(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("hostile input under load");
    let folder = rig.folder("hostile")?;
    let flow = Rig::write_flow(&folder, &many_agents())?;
    let config = folder.join("redflow.toml");
    std::fs::write(&config, CONFIG).map_err(|error| error.to_string())?;
    rig.witness.reset(Behaviour::Answer);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let sidecar = SidecarSetup { rig, folder: &folder, flow, config: config.display().to_string(), address };
    let process = sidecar.start_and_wait()?;
    let client = Client::new(address);
    let signals = Signals::new();
    let (starts, health, answers) = std::thread::scope(|scope| {
        let agents = ["read1", "idempotent1", "at_most_once1"].map(str::to_owned);
        let starters = (0..STARTERS).map(|number| {
            let (client, signals, agents) = (&client, &signals, agents.clone());
            scope.spawn(move || start_runs(client, signals, &agents, number))
        });
        let starters = starters.collect();
        let health = scope.spawn(|| watch_health(&client, &signals));
        let answers = send_everything(&client);
        signals.stop_starting.store(true, Ordering::Relaxed);
        let ended = join(starters).and_then(|starts| wait_for_all_runs(&client).map(|()| starts));
        signals.give_up.store(true, Ordering::Relaxed);
        let health = join(vec![health])?.pop().unwrap_or_default();
        Ok::<_, String>((ended?, health, answers?))
    })?;
    for failure in
        starts.iter().flat_map(|starts| &starts.failures).chain(&health.failures).chain(&answers.failures)
    {
        row.failures.push(failure.clone());
    }
    row.cases = answers.sent;
    // Every acknowledged run is stored.
    let stored: BTreeSet<String> =
        all_runs(&client)?.iter().filter_map(|run| Some(run["runId"].as_str()?.to_owned())).collect();
    let acknowledged = || starts.iter().flat_map(|starts: &Starts| &starts.acknowledged);
    let lost = acknowledged().filter(|start| !stored.contains(&start.run)).count();
    row.check(lost == 0, || format!("{lost} acknowledged runs are not stored"));
    let memory = peak_memory(&process);
    row.failures.extend(super::errors_in(&process.stderr()));
    let stopped = stop(process)?;
    rig.replay_all(&folder)?;
    row.figures = format!(
        "{} codes; {} runs beside, {lost} lost; /health asked {} times, worst {} ms; worst delay of the loop {:.0} ms; \
         {memory} at most; stopped in {} ms",
        answers.codes.len(),
        acknowledged().count(),
        health.checks,
        health.worst.as_millis(),
        health.worst_delay * 1000.0,
        stopped.as_millis(),
    );
    Ok(row)
}

#[derive(Default)]
struct Health {
    checks: usize,
    worst: Duration,
    /// The worst delay of the sidecar's loop, in seconds.
    worst_delay: f64,
    failures: Vec<String>,
}

fn watch_health(client: &Client, signals: &Signals) -> Health {
    let mut health = Health::default();
    while !Signals::is_set(&signals.give_up) {
        let began = Instant::now();
        let response = client.get("/health");
        let time = began.elapsed();
        (health.checks, health.worst) = (health.checks + 1, health.worst.max(time));
        if time > HEALTH_LIMIT || !matches!(response, Ok(Response { status: 200, .. })) {
            health.failures.push(format!("/health took {} ms: {response:?}", time.as_millis()));
        }
        // The metric forgets after a minute at most.
        if health.checks % CHECKS_PER_DELAY == 0 {
            match loop_delay(client) {
                Ok(delay) => health.worst_delay = health.worst_delay.max(delay),
                Err(failure) => health.failures.push(failure),
            }
        }
        std::thread::sleep(BETWEEN_CHECKS);
    }
    health
}

/// What the sidecar answered to hostile inputs.
#[derive(Default)]
struct Answers {
    sent: usize,
    codes: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Answers {
    fn count(&mut self, code: &str) {
        self.sent += 1;
        *self.codes.entry(code.to_owned()).or_default() += 1;
    }

    /// A response must be a success or have a code, and must not be an internal error.
    fn check(&mut self, what: &str, response: Result<Response, String>) {
        match response {
            Ok(Response { status, body }) => {
                let code = body.pointer("/error/code").or(body.get("code")).and_then(Value::as_str);
                self.count(code.unwrap_or("accepted"));
                if status >= 500 || status >= 400 && code.is_none() {
                    self.failures.push(format!("{what}: {status} {body:.200}"));
                }
            }
            Err(error) => {
                self.sent += 1;
                self.failures.push(format!("{what}: {error}"));
            }
        }
    }
}

fn send_everything(client: &Client) -> Result<Answers, String> {
    let mut answers = Answers::default();
    for (name, text) in hostile::texts(LARGE) {
        for route in ROUTES {
            answers.check(&format!("{name} to {route}"), client.post_text(route, &text));
        }
        for socket in SOCKETS {
            send_frame(client, &mut answers, socket, &text)?;
        }
    }
    for (_, text) in hostile::texts(LARGEST).into_iter().take(1) {
        send_frame(client, &mut answers, "/bridge", &text)?;
    }
    let schemas: Vec<&str> = hostile::schemas().iter().map(|case| case.name).collect();
    for case in hostile::flows() {
        let flows = beside_agents(case.value);
        let deploy = json!({"flows": flows, "force": true});
        let report = client.post("/api/flows/check", &json!({"flows": flows}));
        if schemas.contains(&case.name) && !has_code(&report, "CONFIG_INVALID") {
            answers.failures.push(format!("the schema is not refused: {}", case.name));
        }
        answers.check(case.name, report);
        answers.check(case.name, client.post("/api/deployment", &deploy));
    }
    for (name, schema, input) in hostile::inputs() {
        let call = json!({"action": "tool", "tool": "hostile", "input": input, "confidence": 1});
        let flows = beside_agents(hostile::agent_flow(&schema, &json!([call])));
        let deployed = client.post("/api/deployment", &json!({"flows": flows, "force": true}))?;
        if deployed.status != 200 {
            answers.failures.push(format!("{name} was not deployed: {:.300}", deployed.body));
            continue;
        }
        let start = json!({"node": "hostile-agent", "payload": 1, "wait": true});
        let ended = client.post("/api/runs", &start)?;
        let error = |key| ended.body.pointer(&format!("/runs/0/result/error/{key}")).and_then(Value::as_str);
        let (code, rule) = (error("code").unwrap_or_default(), error("rule"));
        answers.count(code);
        if (code, rule) != ("TOOL_INPUT_INVALID", Some("work")) {
            answers.failures.push(format!("{name}: {:.300}", ended.body));
        }
    }
    Ok(answers)
}

fn has_code(report: &Result<Response, String>, code: &str) -> bool {
    let diagnostics = report.as_ref().ok().and_then(|response| response.body["diagnostics"].as_array());
    diagnostics.into_iter().flatten().any(|diagnostic| diagnostic["code"] == code)
}

/// Sends a text as the first frame of a socket.
fn send_frame(client: &Client, answers: &mut Answers, socket: &str, text: &str) -> Result<(), String> {
    let code = client.first_frame(socket, text)?;
    // The editor's socket ignores what it does not know, as Node-RED does.
    let is_expected = match code.as_str() {
        "MESSAGE_INVALID" | "MESSAGE_TOO_LARGE" => true,
        "ignored" => socket == "/comms",
        _ => false,
    };
    if !is_expected {
        answers.failures.push(format!("{socket} did not refuse a frame of {} bytes: {code}", text.len()));
    }
    answers.count(&code);
    Ok(())
}

/// The agents of the load, with the nodes of a hostile flow. Their tab is the same.
fn beside_agents(hostile: Value) -> Value {
    let (Value::Array(mut nodes), Value::Array(more)) = (many_agents(), hostile) else { return Value::Null };
    nodes.extend(more.into_iter().filter(|node| node["type"] != "tab"));
    Value::Array(nodes)
}

fn loop_delay(client: &Client) -> Result<f64, String> {
    let metrics = client.get_text("/metrics")?;
    let delay = metrics.lines().find_map(|line| line.strip_prefix("redflow_loop_delay_seconds "));
    let delay = delay.and_then(|delay| delay.parse::<f64>().ok());
    delay.ok_or_else(|| "no redflow_loop_delay_seconds".to_owned())
}

/// The most memory that a process has used, where the system tells.
fn peak_memory(process: &LoggedProcess) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().split(' ').next()?.parse::<u64>().ok());
    kib.map_or_else(|| "memory unknown".to_owned(), |kib| format!("{} MiB", kib / 1024))
}

/// Stops the sidecar. Returns the time that it took.
fn stop(process: LoggedProcess) -> Result<Duration, String> {
    let began = Instant::now();
    process.terminate()?;
    let exit = process.wait(TIME_LIMIT)?;
    let time = began.elapsed();
    if exit.code == Some(0) && time <= STOP_LIMIT {
        Ok(time)
    } else {
        Err(format!("the sidecar did not stop well after {} ms: {exit:?}", time.as_millis()))
    }
}
