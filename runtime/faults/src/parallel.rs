//! Parallel calls of all effect classes in one answer: kills the process at every failpoint, and starts it again.

use super::flows::parallel_calls;
use super::rig::{Rig, TIME_LIMIT};
use super::witness::Behaviour;
use super::{Row, resume_until_finished};
use redflow_testkit::LoggedProcess;
use std::collections::HashMap;

/// The failpoints, in the order in which the run passes them. `NAME=N` is the Nth time.
const POINTS: [&str; 23] = [
    "start.before_keep",
    "store.before_commit=1",
    "store.after_commit=1",
    "start.after_keep",
    "intent.before_keep",
    "store.before_commit=2",
    "store.after_commit=2",
    "intent.after_keep",
    "act.before=1",
    "act.before=4",
    // The witness has recorded all calls and does not answer.
    DURING,
    "act.after=1",
    "act.after=2",
    "act.after=3",
    "act.after=4",
    "result.before_keep",
    "store.before_commit=3",
    "store.after_commit=3",
    "result.after_keep",
    "output.before_keep",
    "output.after_keep",
    "output.before_delivery",
    "output.before_ack",
];

const DURING: &str = "act (all calls were seen, no answer yet)";

/// The calls of one answer: two must not be made twice.
pub(super) const CALLS: [&str; 4] = ["read", "idempotent", "at_most_once", "at_most_once"];

/// What happened to the calls of a killed run.
struct Outcome {
    /// How often each call was made, by class and key.
    made: HashMap<(String, String), usize>,
    /// The questions to a person.
    asked: usize,
}

/// The number of questions, where a crash has only one possible outcome.
fn expected_questions(point: &str) -> Option<usize> {
    match point {
        "start.before_keep" | "start.after_keep" | "intent.before_keep" => Some(0),
        "intent.after_keep" | "act.before=1" | "act.before=4" | DURING => Some(2),
        point if point.starts_with("output.") => Some(0),
        _ => None,
    }
}

pub(super) fn run(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("parallel calls of all classes: kill -9 at every point");
    let (mut asked, mut repeated) = (0, 0);
    for point in POINTS {
        match crash_at(rig, point) {
            // A failpoint that was removed must not leave the list unnoticed. The number of commits depends on
            // what is written together.
            Ok(None) if !point.starts_with("store.") => {
                row.failures.push(format!("{point}: the run does not pass this point"));
            }
            Ok(None) => {}
            Ok(Some(outcome)) => {
                row.cases += 1;
                asked += outcome.asked;
                repeated += outcome.made.values().filter(|count| **count > 1).count();
                if let Some(problem) = find_problem(point, &outcome) {
                    row.failures
                        .push(format!("{point}: {problem}: {:?}, asked {}", outcome.made, outcome.asked));
                }
            }
            Err(error) => row.failures.push(format!("{point}: {error}")),
        }
    }
    row.figures = format!("{asked} questions, {repeated} calls repeated (none at_most_once), 0 lost");
    Ok(row)
}

fn find_problem(point: &str, outcome: &Outcome) -> Option<&'static str> {
    let Outcome { made, asked } = outcome;
    let is_dangerous = |class: &str| class == "at_most_once";
    if made.iter().any(|((class, _), count)| is_dangerous(class) && *count > 1) {
        return Some("a dangerous call was made twice");
    }
    if *asked > CALLS.iter().filter(|class| is_dangerous(class)).count() {
        return Some("a person was asked twice");
    }
    if expected_questions(point).is_some_and(|expected| expected != *asked) {
        return Some("another number of questions was expected");
    }
    // Before the start is on the disk, nothing was accepted.
    let is_accepted = !matches!(point, "start.before_keep" | "store.before_commit=1");
    let keys = |class: &str| made.keys().filter(|(of, _)| of == class).count();
    if is_accepted && (keys("read"), keys("idempotent")) != (1, 1) {
        return Some("a call that may be repeated was lost or has two keys");
    }
    None
}

/// Kills at one point and starts again. None if the run does not pass the point.
fn crash_at(rig: &Rig, point: &str) -> Result<Option<Outcome>, String> {
    let folder = rig.folder("parallel")?;
    let flow = Rig::write_flow(&folder, &parallel_calls(&CALLS))?;
    let during = point == DURING;
    rig.witness.reset(if during { Behaviour::Hold } else { Behaviour::Answer });
    let mut command = rig.redflow(&folder, &["run", &flow, "--node", "i"]);
    if !during {
        command.env("REDFLOW_FAILPOINT", point);
    }
    let mut process = LoggedProcess::start(command)?;
    let reached = if during {
        rig.witness.wait_for_calls(CALLS.len(), TIME_LIMIT)
    } else {
        process.wait_for("FAILPOINT", TIME_LIMIT).is_some()
    };
    if !reached {
        let exit = process.wait(TIME_LIMIT)?;
        return if exit.code == Some(0) { Ok(None) } else { Err(format!("{exit:?}")) };
    }
    process.kill()?;
    rig.witness.set_behaviour(Behaviour::Answer);
    let asked = resume_until_finished(rig, &folder, &flow)?;
    let mut made = HashMap::new();
    for call in rig.witness.calls() {
        *made.entry((call.class, call.key)).or_default() += 1;
    }
    Ok(Some(Outcome { made, asked }))
}
