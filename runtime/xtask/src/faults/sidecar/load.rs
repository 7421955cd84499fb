//! Who keeps the sidecar busy: those who start runs, and somebody who answers for people.

use super::client::{Answer, Client};
use super::readers::{Orders, PAUSE};
use crate::faults::Dice;
use crate::faults::rig::HANGS;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long between two starts of one starter, at most.
const BETWEEN_STARTS_MS: u64 = 20;

/// How long between two looks at who waits.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// A start that was acknowledged.
pub(super) struct Start {
    pub(super) key: String,
    pub(super) agent: String,
    pub(super) run: String,
}

/// What a starter has done.
#[derive(Default)]
pub(super) struct Starts {
    pub(super) acknowledged: Vec<Start>,
    /// Starts that were sent again because no answer came.
    pub(super) repeated: usize,
    pub(super) failures: Vec<String>,
}

/// Starts agents, each with a key of its own, and sends each start again until it is acknowledged.
pub(super) fn start_runs(client: Client, orders: &Orders, agents: &[String], number: u64) -> Starts {
    let mut starts = Starts::default();
    let mut dice = Dice(100 + number);
    for count in 0_u64.. {
        if Orders::is_set(&orders.enough) || !starts.failures.is_empty() {
            break;
        }
        let key = format!("{number}-{count}");
        let agent = &agents[usize::try_from(dice.below(agents.len() as u64)).unwrap_or_default()];
        // Now and then two ask for the same at the same moment.
        let also = dice.below(6) == 0;
        let (mine, other) = std::thread::scope(|scope| {
            let other = also.then(|| scope.spawn(|| until_acknowledged(client, orders, &key, agent)));
            let mine = until_acknowledged(client, orders, &key, agent);
            (mine, other.and_then(|other| other.join().ok()))
        });
        match starts.take(mine) {
            Some(run) => {
                if other.is_some_and(|other| starts.take(other).is_some_and(|same| same != run)) {
                    starts.failures.push(format!("key {key} began two runs"));
                }
                starts.acknowledged.push(Start { key, agent: agent.clone(), run });
            }
            None => break,
        }
        std::thread::sleep(Duration::from_millis(dice.below(BETWEEN_STARTS_MS)));
    }
    starts
}

impl Starts {
    fn take(&mut self, (repeated, run): (usize, Result<String, String>)) -> Option<String> {
        self.repeated += repeated;
        run.map_err(|failure| self.failures.push(failure)).ok()
    }
}

/// How often a start was sent again, and the run it began.
fn until_acknowledged(
    client: Client,
    orders: &Orders,
    key: &str,
    agent: &str,
) -> (usize, Result<String, String>) {
    let end = Instant::now() + HANGS;
    let mut repeated = 0;
    loop {
        match client.start(key, agent) {
            Ok(answer) => return (repeated, begun(key, &answer)),
            Err(_) if Instant::now() < end && !Orders::is_set(&orders.give_up) => {
                repeated += 1;
                std::thread::sleep(PAUSE);
            }
            Err(error) => return (repeated, Err(format!("start {key} was never acknowledged: {error}"))),
        }
    }
}

/// The one run of a start that was acknowledged.
pub(super) fn begun(key: &str, answer: &Answer) -> Result<String, String> {
    let runs = answer.body["runs"].as_array().map(Vec::as_slice).unwrap_or_default();
    match (answer.status, runs) {
        (202, [run]) if run["refused"].is_null() => {
            run["runId"].as_str().map(str::to_owned).ok_or_else(|| format!("start {key}: a run without id"))
        }
        _ => Err(format!("start {key} was answered with {answer:?}")),
    }
}

/// What somebody has answered for people.
#[derive(Default)]
pub(super) struct Answers {
    /// Those that were acknowledged.
    pub(super) acknowledged: BTreeSet<(String, String)>,
    pub(super) failures: Vec<String>,
}

/// Looks who waits, and answers, until everything is over.
pub(super) fn answer_people(client: Client, orders: &Orders) -> Answers {
    let mut answers = Answers::default();
    while !Orders::is_set(&orders.all_over) && !Orders::is_set(&orders.give_up) {
        // Whoever is gone comes back.
        if let Ok(page) = client.get("/api/runs?status=waiting&limit=1000") {
            for run in page.body["runs"].as_array().into_iter().flatten() {
                answers.give(client, run);
            }
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    answers
}

impl Answers {
    fn give(&mut self, client: Client, run: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (id, call) = (text(&run["runId"]), text(&run["waiting"]["callId"]));
        if !text(&run["agent"]["nodeId"]).starts_with("at_most_once") {
            self.failures.push(format!("a person is asked about a call that may be repeated: {run}"));
        }
        let asked = (id, call);
        if self.acknowledged.contains(&asked) {
            self.failures.push(format!("the answer for run {} is lost", asked.0));
            return;
        }
        // By turns: it happened, it did not.
        let result = if self.acknowledged.len().is_multiple_of(2) {
            json!({"success": true, "output": 42})
        } else {
            json!({"success": false, "error": "it did not happen"})
        };
        let body = json!({"callId": asked.1, "result": result});
        match client.post(&format!("/api/runs/{}/resolve", asked.0), &body) {
            Ok(Answer { status: 200, .. }) => drop(self.acknowledged.insert(asked)),
            // It was kept, and the sidecar was killed before it could say so.
            Ok(Answer { status: 409, .. }) | Err(_) => {}
            Ok(answer) => self.failures.push(format!("resolve {}: {answer:?}", asked.0)),
        }
    }
}
