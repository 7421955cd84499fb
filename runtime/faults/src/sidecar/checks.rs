//! Checks the state after all runs have ended.

use super::load::{Answers, Starts};
use super::readers::{ReaderKind, ReaderLog, ReceivedEvent, hash};
use crate::Row;
use crate::witness::Call;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many failures of one kind are reported.
const REPORTED: usize = 5;

/// Everything that the clients have recorded.
pub(super) struct ClientLogs {
    pub(super) starts: Vec<Starts>,
    pub(super) answers: Answers,
    pub(super) readers: Vec<ReaderLog>,
}

/// The state of the last sidecar.
pub(super) struct FinalState {
    /// How many sidecars stopped at a failpoint before they were killed.
    pub(super) at_failpoint: usize,
    /// The errors in its log.
    pub(super) errors: Vec<String>,
    /// Each key, and the run that it gives when the start is repeated.
    pub(super) repeated_starts: Vec<(String, String)>,
    pub(super) runs: Vec<Value>,
    /// Every stored event, with its position.
    pub(super) events: Vec<(u64, Value)>,
    /// The events of every run, from its journal.
    pub(super) journals: Vec<(String, Vec<Value>)>,
}

pub(super) fn check_final_state(row: &mut Row, logs: &ClientLogs, state: &FinalState, calls: &[Call]) {
    let ClientLogs { starts, answers, readers } = logs;
    let kills = row.cases;
    let mut failures = state.errors.clone();
    failures.extend(starts.iter().flat_map(|starts| &starts.failures).cloned());
    failures.extend(readers.iter().flat_map(|reader| &reader.failures).cloned());
    failures.extend(answers.failures.iter().cloned());
    let keys = check_runs(&mut failures, starts, state);
    let (repeated, dangerous) = count_repeated_calls(&mut failures, calls, state);
    check_event_log(&mut failures, state);
    let shown_again = check_debug_output(&mut failures, state);
    let stored: Vec<ReceivedEvent> =
        state.events.iter().map(|(position, event)| (*position, hash(event))).collect();
    let (mut lost, mut doubled, mut reconnects) = (0, 0, 0);
    for reader in readers {
        let difference = compare(reader, &stored);
        lost += difference.lost;
        doubled += difference.doubled;
        reconnects += reader.connections.saturating_sub(1);
        // A reader that never lost its connection proves nothing.
        if reader.connections <= kills / 4 {
            failures.push(format!("{:?}: it connected only {} times", reader.kind, reader.connections));
        }
        failures.extend(difference.failure(reader));
    }
    let sent_again: usize = starts.iter().map(|starts| starts.repeated).sum();
    row.figures = format!(
        "{} runs of {keys} keys ({sent_again} starts sent again), {} calls, {} answers for people, {} events ({shown_again} \
         results shown again), {} subscribers with {reconnects} reconnects, {} kills at a failpoint; repeated: {dangerous} \
         at_most_once, {repeated} others; {lost} lost, {doubled} doubled",
        state.runs.len(),
        calls.len(),
        answers.acknowledged.len(),
        state.events.len(),
        readers.len() + 1,
        state.at_failpoint,
    );
    row.failures.extend(failures);
}

/// Every acknowledged run is stored, and no key has two runs. Gives the number of keys.
fn check_runs(failures: &mut Vec<String>, starts: &[Starts], state: &FinalState) -> usize {
    let acknowledged = || starts.iter().flat_map(|starts| &starts.acknowledged);
    let agents: HashMap<&str, &str> = state
        .runs
        .iter()
        .filter_map(|run| Some((run["runId"].as_str()?, run["agent"]["nodeId"].as_str()?)))
        .collect();
    if agents.len() != state.runs.len() {
        failures.push("a run is listed twice".to_owned());
    }
    for start in acknowledged().filter(|start| agents.get(start.run.as_str()) != Some(&start.agent.as_str()))
    {
        failures.push(format!("run {} of key {} was acknowledged and is not stored", start.run, start.key));
    }
    let before: BTreeMap<&str, &str> =
        acknowledged().map(|start| (start.key.as_str(), start.run.as_str())).collect();
    for (key, run) in &state.repeated_starts {
        if before.get(key.as_str()) != Some(&run.as_str()) {
            failures.push(format!("key {key} gave another run when the start was repeated: {run}"));
        }
    }
    let different: BTreeSet<&str> = before.values().copied().collect();
    // Each result of the first agent of each class starts one run. All other runs start with a key.
    let causes = agents.values().filter(|agent| agent.ends_with('0')).count();
    let started = agents.values().filter(|agent| **agent == "next").count();
    if causes != started {
        failures.push(format!("{causes} results started {started} runs"));
    }
    let (by_key, keys) = (agents.len() - started, before.len());
    if (by_key, different.len()) != (keys, keys) || keys == 0 {
        failures.push(format!("{keys} keys gave {} answers and {by_key} runs", different.len()));
    }
    keys
}

/// The number of repeated calls: of those that may be repeated, and of the others.
fn count_repeated_calls(failures: &mut Vec<String>, calls: &[Call], state: &FinalState) -> (usize, usize) {
    let stored: BTreeSet<&str> = state.runs.iter().filter_map(|run| run["runId"].as_str()).collect();
    let mut counts: HashMap<(bool, &str), usize> = HashMap::new();
    for call in calls {
        *counts.entry((call.class == "at_most_once", call.key.as_str())).or_default() += 1;
        if !stored.contains(call.run.as_str()) {
            failures.push(format!("run {} made a call and is not stored", call.run));
        }
    }
    let repeated =
        |dangerous| counts.iter().filter(|((class, _), count)| *class == dangerous && **count > 1).count();
    if repeated(true) > 0 {
        failures.push(format!("{} at_most_once calls were made more than once", repeated(true)));
    }
    (repeated(false), repeated(true))
}

/// The event log has every event of every journal once and in order, and no others.
fn check_event_log(failures: &mut Vec<String>, state: &FinalState) {
    let positions = state.events.iter().map(|(position, _)| *position);
    if let Some((position, expected)) = positions.zip(1..).find(|(position, expected)| position != expected) {
        failures.push(format!("event {expected} of the log is missing: {position} follows"));
    }
    let mut logged: HashMap<&str, Vec<&Value>> = HashMap::new();
    for (_, event) in state.events.iter().filter(|(_, event)| event["kind"] == "run") {
        logged.entry(event["event"]["runId"].as_str().unwrap_or_default()).or_default().push(&event["event"]);
    }
    let mut wrong = Vec::new();
    for (run, journal) in &state.journals {
        let logged = logged.remove(run.as_str()).unwrap_or_default();
        let in_order = logged.iter().zip(1..).all(|(event, seq)| event["seq"] == seq);
        let is_whole = logged.last().is_some_and(|event| event["event"]["type"] == "run_finished");
        if !in_order || !is_whole || !logged.iter().copied().eq(journal) {
            wrong.push(format!(
                "run {run}: the log has {} events, the journal {}",
                logged.len(),
                journal.len()
            ));
        }
    }
    wrong.extend(logged.keys().map(|run| format!("the log has events of run {run}, which is not stored")));
    report(failures, "runs whose events differ from their journals", &wrong);
}

/// The debug node printed every result. Gives how many it printed again, because their delivery was not stored yet.
fn check_debug_output(failures: &mut Vec<String>, state: &FinalState) -> usize {
    let mut printed: HashMap<&str, usize> = HashMap::new();
    for (_, event) in state.events.iter().filter(|(_, event)| event["event"]["type"] == "debug") {
        *printed.entry(event["event"]["value"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let runs = state.runs.iter().filter_map(|run| run["runId"].as_str());
    let missing: Vec<String> = runs.filter(|run| !printed.contains_key(run)).map(str::to_owned).collect();
    report(failures, "runs whose result was not printed", &missing);
    printed.values().filter(|count| **count > 1).count()
}

/// How the events of a reader differ from the stored events.
struct Difference {
    lost: usize,
    doubled: usize,
    /// Not stored, or another event.
    other: usize,
    in_order: bool,
}

/// Compares the events of a reader with the stored events, from where it began to read.
fn compare(reader: &ReaderLog, stored: &[ReceivedEvent]) -> Difference {
    let first = match reader.kind {
        ReaderKind::FromNow => reader.events.first().map_or(u64::MAX, |(position, _)| *position),
        _ => 0,
    };
    let mut times: HashMap<u64, usize> = HashMap::new();
    for (position, _) in &reader.events {
        *times.entry(*position).or_default() += 1;
    }
    let last = stored.last().map_or(0, |(position, _)| *position);
    let hashes: HashMap<u64, u64> = stored.iter().copied().collect();
    Difference {
        lost: hashes.keys().filter(|position| **position >= first && !times.contains_key(position)).count(),
        doubled: times.values().filter(|times| **times > 1).count(),
        // `stored` lacks events that came after it was read.
        other: reader.events.iter().filter(|(at, hash)| *at <= last && hashes.get(at) != Some(hash)).count(),
        in_order: reader.events.windows(2).all(|pair| pair[0].0 < pair[1].0),
    }
}

impl Difference {
    fn failure(&self, reader: &ReaderLog) -> Option<String> {
        let Self { lost, doubled, other, in_order } = self;
        let well = (*lost, *doubled, *other, *in_order) == (0, 0, 0, true) && !reader.events.is_empty();
        (!well).then(|| {
            let (count, kind) = (reader.events.len(), reader.kind);
            format!("{kind:?} received {count} events: {lost} lost, {doubled} doubled, {other} others, in order: {in_order}")
        })
    }
}

/// Reports some of the failures of one kind.
fn report(failures: &mut Vec<String>, what: &str, which: &[String]) {
    if !which.is_empty() {
        let some: Vec<&str> = which.iter().take(REPORTED).map(String::as_str).collect();
        failures.push(format!("{} {what}, such as {}", which.len(), some.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, compare};
    use crate::sidecar::readers::{ReaderKind, ReaderLog, ReceivedEvent};

    #[test]
    fn counts_events_that_a_reader_missed_or_received_twice() {
        let stored: Vec<ReceivedEvent> = (1..=5).map(|position| (position, position * 10)).collect();
        let differences = |kind, events: &[ReceivedEvent]| {
            let Difference { lost, doubled, other, in_order } =
                compare(&ReaderLog::with(kind, events), &stored);
            (lost, doubled, other, in_order)
        };
        assert_eq!(differences(ReaderKind::FromStart, &stored), (0, 0, 0, true));
        assert_eq!(differences(ReaderKind::FromStart, &stored[1..]), (1, 0, 0, true));
        assert_eq!(differences(ReaderKind::FromNow, &stored[1..]), (0, 0, 0, true));
        assert_eq!(differences(ReaderKind::FromNow, &[]), (0, 0, 0, true));
        assert_eq!(differences(ReaderKind::FromNow, &[(2, 20), (4, 40), (5, 50)]), (1, 0, 0, true));
        assert_eq!(differences(ReaderKind::FromStart, &[&stored[..], &[(6, 60)]].concat()), (0, 0, 0, true));
        assert_eq!(
            differences(ReaderKind::FromStart, &[(1, 10), (2, 20), (2, 20), (3, 31), (5, 50)]),
            (1, 1, 1, false)
        );
        assert!(
            compare(&ReaderLog::with(ReaderKind::FromNow, &[]), &stored)
                .failure(&ReaderLog::with(ReaderKind::FromNow, &[]))
                .is_some()
        );
    }
}
