//! The load on the sidecar: clients that start runs, and one that answers the questions of runs.

use super::client::{Client, Response};
use super::readers::{PAUSE, Signals};
use crate::Random;
use crate::rig::TIME_LIMIT;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The longest pause between two starts of one client.
const BETWEEN_STARTS_MS: u64 = 20;

/// The pause between two searches for waiting runs.
const BETWEEN_SEARCHES: Duration = Duration::from_millis(50);

/// A start that was acknowledged.
pub(super) struct Start {
    pub(super) key: String,
    pub(super) agent: String,
    pub(super) run: String,
}

/// Everything that a starting client has recorded.
#[derive(Default)]
pub(super) struct Starts {
    pub(super) acknowledged: Vec<Start>,
    /// Starts that were sent again because no response came.
    pub(super) repeated: usize,
    pub(super) failures: Vec<String>,
}

/// Starts agents with a new key each, and sends each start again until it is acknowledged.
pub(super) fn start_runs(client: &Client, signals: &Signals, agents: &[String], number: u64) -> Starts {
    let mut starts = Starts::default();
    let mut random = Random(100 + number);
    for count in 0_u64.. {
        if Signals::is_set(&signals.stop_starting) || !starts.failures.is_empty() {
            break;
        }
        let key = format!("{number}-{count}");
        let agent = &agents[usize::try_from(random.below(agents.len() as u64)).unwrap_or_default()];
        // Sometimes two clients send the same start at the same time.
        let twice = random.below(6) == 0;
        let (mine, other) = std::thread::scope(|scope| {
            let other = twice.then(|| scope.spawn(|| start_until_acknowledged(client, signals, &key, agent)));
            let mine = start_until_acknowledged(client, signals, &key, agent);
            (mine, other.and_then(|other| other.join().ok()))
        });
        match starts.record(mine) {
            Some(run) => {
                if other.is_some_and(|other| starts.record(other).is_some_and(|same| same != run)) {
                    starts.failures.push(format!("key {key} started two runs"));
                }
                starts.acknowledged.push(Start { key, agent: agent.clone(), run });
            }
            None => break,
        }
        std::thread::sleep(Duration::from_millis(random.below(BETWEEN_STARTS_MS)));
    }
    starts
}

impl Starts {
    fn record(&mut self, (repeated, run): (usize, Result<String, String>)) -> Option<String> {
        self.repeated += repeated;
        run.map_err(|failure| self.failures.push(failure)).ok()
    }
}

/// How often a start was sent again, and its run.
fn start_until_acknowledged(
    client: &Client,
    signals: &Signals,
    key: &str,
    agent: &str,
) -> (usize, Result<String, String>) {
    let end = Instant::now() + TIME_LIMIT;
    let mut repeated = 0;
    loop {
        match client.start(key, agent) {
            Ok(response) => return (repeated, started_run(key, &response)),
            Err(_) if Instant::now() < end && !Signals::is_set(&signals.give_up) => {
                repeated += 1;
                std::thread::sleep(PAUSE);
            }
            Err(error) => return (repeated, Err(format!("start {key} was never acknowledged: {error}"))),
        }
    }
}

/// The one run of an acknowledged start.
pub(super) fn started_run(key: &str, response: &Response) -> Result<String, String> {
    let runs = response.body["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
    match (response.status, runs) {
        (202, [run]) if run["refused"].is_null() => {
            run["runId"].as_str().map(str::to_owned).ok_or_else(|| format!("start {key}: a run without id"))
        }
        _ => Err(format!("start {key} got the response {response:?}")),
    }
}

/// The answers to waiting runs.
#[derive(Default)]
pub(super) struct Answers {
    /// Run and call of each acknowledged answer.
    pub(super) acknowledged: BTreeSet<(String, String)>,
    pub(super) failures: Vec<String>,
}

/// Answers the questions of waiting runs until all runs have ended.
pub(super) fn answer_questions(client: &Client, signals: &Signals) -> Answers {
    let mut answers = Answers::default();
    while !Signals::is_set(&signals.stop_answering) && !Signals::is_set(&signals.give_up) {
        // An error means that the sidecar was killed. The next one has the same questions.
        if let Ok(page) = client.get("/api/runs?status=waiting&limit=1000") {
            for run in page.body["runs"].as_array().into_iter().flatten() {
                answers.answer(client, run);
            }
        }
        std::thread::sleep(BETWEEN_SEARCHES);
    }
    answers
}

impl Answers {
    fn answer(&mut self, client: &Client, run: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, call) = (text(&run["runId"]), text(&run["waiting"]["callId"]));
        if !text(&run["agent"]["nodeId"]).starts_with("at_most_once") {
            self.failures.push(format!("a run asks about a call that may be repeated: {run}"));
        }
        let question = (id, call);
        if self.acknowledged.contains(&question) {
            self.failures.push(format!("the answer for run {} is lost", question.0));
            return;
        }
        // Alternates between the two answers.
        let result = if self.acknowledged.len().is_multiple_of(2) {
            json!({"success": true, "output": 42})
        } else {
            json!({"success": false, "error": "it did not happen"})
        };
        let body = json!({"callId": question.1, "result": result});
        match client.post(&format!("/api/runs/{}/resolve", question.0), &body) {
            Ok(Response { status: 200, .. }) => drop(self.acknowledged.insert(question)),
            // The sidecar stored the answer and was killed before it responded.
            Ok(Response { status: 409, .. }) | Err(_) => {}
            Ok(response) => self.failures.push(format!("resolve {}: {response:?}", question.0)),
        }
    }
}
