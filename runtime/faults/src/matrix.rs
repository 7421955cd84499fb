//! The crash matrix: kills the process at every failpoint, for every effect class, and starts it again.

use super::flows::{CLASSES, one_agent, simple_agent};
use super::rig::{Rig, TIME_LIMIT};
use super::witness::Behaviour;
use super::{Row, resume_until_finished};
use redflow_testkit::LoggedProcess;
use serde_json::{Value, json};

/// The failpoints, in the order in which a run passes them. `NAME=N` is the Nth time.
const POINTS: [&str; 23] = [
    "start.before_keep",
    "store.before_commit=1",
    "store.after_commit=1",
    "start.after_keep",
    "step.before_keep=1",
    "step.after_keep=1",
    "intent.before_keep",
    "store.before_commit=2",
    "store.after_commit=2",
    "intent.after_keep",
    "act.before",
    // The witness has recorded the call and does not answer.
    DURING,
    "act.after",
    "result.before_keep",
    "step.before_keep=2",
    "store.before_commit=3",
    "store.after_commit=3",
    "result.after_keep",
    "step.after_keep=2",
    "output.before_keep",
    "output.after_keep",
    "output.before_delivery",
    "output.before_ack",
];

const DURING: &str = "act (the call was seen, no answer yet)";

/// The number of calls, and whether a person was asked, where a crash has only one possible outcome. The engine does
/// not wait for the disk after a `read` call, so a crash may or may not find its result.
fn expected_outcome(class: &str, point: &str) -> Option<(usize, bool)> {
    let (once, asked) = (class == "at_most_once", true);
    match point {
        // Nothing was accepted.
        "start.before_keep" => Some((0, !asked)),
        "start.after_keep" | "intent.before_keep" | "result.after_keep" => Some((1, !asked)),
        "intent.after_keep" | "act.before" if once => Some((0, asked)),
        "intent.after_keep" | "act.before" => Some((1, !asked)),
        DURING | "act.after" | "result.before_keep" if once => Some((1, asked)),
        DURING | "act.after" | "result.before_keep" => Some((2, !asked)),
        "output.before_keep" if class == "read" => None,
        point if point.starts_with("output.") => Some((1, !asked)),
        _ => None,
    }
}

/// Whether a run of this class passes a point: it does not wait for the disk after a `read` call.
fn passes(class: &str, point: &str) -> bool {
    match point.split('.').next() {
        Some("intent" | "result") => class != "read",
        Some("step") => class == "read",
        _ => true,
    }
}

pub(super) fn run(rig: &Rig) -> Result<Row, String> {
    let row = Row::new("crash matrix: kill -9 at every point × every class");
    kill_everywhere(rig, row, &CLASSES, |class| one_agent(class, 1, json!({})))
}

/// The same for an agent for one thing, with a tool that must not be called twice.
pub(super) fn run_preset(rig: &Rig) -> Result<Row, String> {
    let row = Row::new("an agent for one thing: kill -9 at every point");
    kill_everywhere(rig, row, &["at_most_once"], simple_agent)
}

fn kill_everywhere(
    rig: &Rig,
    mut row: Row,
    classes: &[&str],
    flow: impl Fn(&str) -> Value,
) -> Result<Row, String> {
    let (mut asked, mut repeated) = (0, 0);
    for class in classes.iter().copied() {
        for point in POINTS {
            match crash_at(rig, &flow(class), point) {
                // A failpoint that was removed must not leave the matrix unnoticed. The number of commits
                // depends on what is written together.
                Ok(None) if passes(class, point) && !point.starts_with("store.") => {
                    row.failures.push(format!("{class} at {point}: runs do not pass this point"));
                }
                Ok(None) => {}
                Ok(Some((calls, parked))) => {
                    row.cases += 1;
                    asked += usize::from(parked);
                    repeated += usize::from(calls > 1);
                    if expected_outcome(class, point).is_some_and(|expected| expected != (calls, parked)) {
                        row.failures.push(format!(
                            "{class} at {point}: {calls} calls, {}asked",
                            if parked { "" } else { "not " }
                        ));
                    }
                    let wrong = if class == "at_most_once" { calls > 1 } else { parked };
                    if wrong || !passes(class, point) {
                        row.failures.push(format!("{class} at {point}: {calls} calls, asked: {parked}"));
                    }
                }
                Err(error) => row.failures.push(format!("{class} at {point}: {error}")),
            }
        }
    }
    row.figures = format!("{asked} asked a person, {repeated} repeated (none at_most_once), 0 lost");
    Ok(row)
}

/// Kills at one point and starts again. Gives the number of calls and whether a person was asked, or none if runs of
/// this flow do not pass the point.
fn crash_at(rig: &Rig, flow: &Value, point: &str) -> Result<Option<(usize, bool)>, String> {
    let folder = rig.folder("matrix")?;
    let flow = Rig::write_flow(&folder, flow)?;
    let during = point == DURING;
    rig.witness.reset(if during { Behaviour::Hold } else { Behaviour::Answer });
    let mut command = rig.redflow(&folder, &["run", &flow, "--node", "i"]);
    if !during {
        command.env("REDFLOW_FAILPOINT", point);
    }
    let mut process = LoggedProcess::start(command)?;
    let reached = if during {
        rig.witness.wait_for_calls(1, TIME_LIMIT)
    } else {
        process.wait_for("FAILPOINT", TIME_LIMIT).is_some()
    };
    if !reached {
        let exit = process.wait(TIME_LIMIT)?;
        return if exit.code == Some(0) { Ok(None) } else { Err(format!("{exit:?}")) };
    }
    process.kill()?;
    rig.witness.set_behaviour(Behaviour::Answer);
    let parked = resume_until_finished(rig, &folder, &flow)?;
    let keys: std::collections::BTreeSet<String> =
        rig.witness.calls().into_iter().map(|call| call.key).collect();
    if keys.len() > 1 {
        return Err(format!("one call has {} keys", keys.len()));
    }
    Ok(Some((rig.witness.calls().len(), parked > 0)))
}
