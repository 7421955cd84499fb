//! The crash matrix: the process is killed at every point between what it is to do and what follows from it,
//! for every class of effect, and started again.

use super::flows::{CLASSES, one_agent};
use super::rig::{HANGS, Rig, Started};
use super::witness::Manner;
use super::{Row, resume_all_answering};
use serde_json::json;

/// The points, in the order a run passes them. `NAME=N` is the Nth time.
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
    // The witness has seen the call and does not answer.
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

/// What must have come of a crash where that is certain: calls in all, and whether a person was asked. What
/// follows from a `read` call is not waited for, so after it a crash may or may not find its result.
fn certain(class: &str, point: &str) -> Option<(usize, bool)> {
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

/// Whether a run of this class passes a point: what follows from a `read` call is not waited for.
fn passes(class: &str, point: &str) -> bool {
    match point.split('.').next() {
        Some("intent" | "result") => class != "read",
        Some("step") => class == "read",
        _ => true,
    }
}

pub(super) fn run(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("crash matrix: kill -9 at every point × every class");
    let (mut asked, mut repeated) = (0, 0);
    for class in CLASSES {
        for point in POINTS {
            match one(rig, class, point) {
                // A point that is no longer there must not leave the matrix in silence. How many commits there
                // are depends on what is written together.
                Ok(None) if passes(class, point) && !point.starts_with("store.") => {
                    row.failures.push(format!("{class} at {point}: runs do not pass this point"));
                }
                Ok(None) => {}
                Ok(Some((calls, parked))) => {
                    row.cases += 1;
                    asked += usize::from(parked);
                    repeated += usize::from(calls > 1);
                    if certain(class, point).is_some_and(|expected| expected != (calls, parked)) {
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

/// Kills at one point and starts again. Gives how many calls there were in all and whether a person was
/// asked; none if runs of this class do not pass the point.
fn one(rig: &Rig, class: &str, point: &str) -> Result<Option<(usize, bool)>, String> {
    let place = rig.place("matrix")?;
    let flow = Rig::flow(&place, &one_agent(class, 1, json!({})))?;
    let during = point == DURING;
    rig.witness.reset(if during { Manner::Holds } else { Manner::Answers });
    let mut command = rig.redflow(&place, &["run", &flow, "--node", "i"]);
    if !during {
        command.env("REDFLOW_FAILPOINT", point);
    }
    let mut started = Started::new(command)?;
    let reached =
        if during { rig.witness.wait_for_calls(1, HANGS) } else { started.says("FAILPOINT", HANGS) };
    if !reached {
        let done = started.end(HANGS)?;
        return if done.code == Some(0) { Ok(None) } else { Err(format!("{done:?}")) };
    }
    started.kill()?;
    rig.witness.behave(Manner::Answers);
    let parked = resume_all_answering(rig, &place, &flow)?;
    let keys: std::collections::BTreeSet<String> =
        rig.witness.calls().into_iter().map(|call| call.key).collect();
    if keys.len() > 1 {
        return Err(format!("one call has {} keys", keys.len()));
    }
    Ok(Some((rig.witness.calls().len(), parked > 0)))
}
