//! What must be true when everything has come to rest.

use super::load::{Answers, Starts};
use super::readers::{Habit, Had, Notes, sum};
use crate::faults::Row;
use crate::faults::witness::Call;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Failures of one kind that are told.
const TOLD: usize = 5;

/// What everybody who talked to the sidecar has written down.
pub(super) struct Said {
    pub(super) starts: Vec<Starts>,
    pub(super) answers: Answers,
    pub(super) notes: Vec<Notes>,
}

/// What is there at the end.
pub(super) struct End {
    /// How many sidecars stopped dead at a place of our choosing before they were killed.
    pub(super) stopped: usize,
    /// What the last one complained of.
    pub(super) complaints: Vec<String>,
    /// The run each key gives when it is asked for once more.
    pub(super) again: Vec<(String, String)>,
    pub(super) runs: Vec<Value>,
    /// Every event that is kept, with its position.
    pub(super) events: Vec<(u64, Value)>,
    /// The events of every run, from its journal.
    pub(super) journals: Vec<(String, Vec<Value>)>,
}

pub(super) fn judge(row: &mut Row, said: &Said, end: &End, calls: &[Call]) {
    let Said { starts, answers, notes } = said;
    let kills = row.cases;
    let mut failures = end.complaints.clone();
    for told in starts.iter().map(|starts| &starts.failures).chain(notes.iter().map(|notes| &notes.failures))
    {
        failures.extend(told.iter().cloned());
    }
    failures.extend(answers.failures.iter().cloned());
    let keys = runs(&mut failures, starts, end);
    let (repeated, dangerous) = made_again(&mut failures, calls, end);
    log(&mut failures, end);
    let shown_again = shown(&mut failures, end);
    let whole: Vec<Had> = end.events.iter().map(|(position, event)| (*position, sum(event))).collect();
    let (mut lost, mut doubled, mut reconnects) = (0, 0, 0);
    for notes in notes {
        let read = compare(notes, &whole);
        lost += read.lost;
        doubled += read.doubled;
        reconnects += notes.connections.saturating_sub(1);
        // A reader that was never cut off shows nothing.
        if notes.connections <= kills / 4 {
            failures.push(format!("{:?}: it came only {} times", notes.habit, notes.connections));
        }
        failures.extend(read.failure(notes));
    }
    let sent_again: usize = starts.iter().map(|starts| starts.repeated).sum();
    row.figures = format!(
        "{} runs of {keys} keys ({sent_again} starts sent again), {} calls, {} answers for people, {} events ({shown_again} \
         results shown again), {} subscribers with {reconnects} reconnects, {} kills at a failpoint; repeated: {dangerous} \
         at_most_once, {repeated} others; {lost} lost, {doubled} doubled",
        end.runs.len(),
        calls.len(),
        answers.acknowledged.len(),
        end.events.len(),
        notes.len() + 1,
        end.stopped,
    );
    row.failures.extend(failures);
}

/// Every run that somebody was told of is there, and no key has two. Gives how many keys there are.
fn runs(failures: &mut Vec<String>, starts: &[Starts], end: &End) -> usize {
    let acknowledged = || starts.iter().flat_map(|starts| &starts.acknowledged);
    let agents: HashMap<&str, &str> = end
        .runs
        .iter()
        .filter_map(|run| Some((run["runId"].as_str()?, run["agent"]["nodeId"].as_str()?)))
        .collect();
    if agents.len() != end.runs.len() {
        failures.push("a run is listed twice".to_owned());
    }
    for start in acknowledged().filter(|start| agents.get(start.run.as_str()) != Some(&start.agent.as_str()))
    {
        failures.push(format!("run {} of key {} was acknowledged and is not there", start.run, start.key));
    }
    let before: BTreeMap<&str, &str> =
        acknowledged().map(|start| (start.key.as_str(), start.run.as_str())).collect();
    for (key, run) in &end.again {
        if before.get(key.as_str()) != Some(&run.as_str()) {
            failures.push(format!("key {key} gave another run when it was asked again: {run}"));
        }
    }
    let different: BTreeSet<&str> = before.values().copied().collect();
    // Results of the first agent of each class begin one run each; everything else begins with a key.
    let causes = agents.values().filter(|agent| agent.ends_with('0')).count();
    let begun = agents.values().filter(|agent| **agent == "next").count();
    if causes != begun {
        failures.push(format!("{causes} results began {begun} runs"));
    }
    let (by_key, keys) = (agents.len() - begun, before.len());
    if (by_key, different.len()) != (keys, keys) || keys == 0 {
        failures.push(format!("{keys} keys gave {} answers and {by_key} runs", different.len()));
    }
    keys
}

/// How many calls were made more than once: of those that may be, and of the others.
fn made_again(failures: &mut Vec<String>, calls: &[Call], end: &End) -> (usize, usize) {
    let stored: BTreeSet<&str> = end.runs.iter().filter_map(|run| run["runId"].as_str()).collect();
    let mut counts: HashMap<(bool, &str), usize> = HashMap::new();
    for call in calls {
        *counts.entry((call.class == "at_most_once", call.key.as_str())).or_default() += 1;
        if !stored.contains(call.run.as_str()) {
            failures.push(format!("run {} made a call and is not there", call.run));
        }
    }
    let again = |danger| counts.iter().filter(|((class, _), count)| *class == danger && **count > 1).count();
    if again(true) > 0 {
        failures.push(format!("{} at_most_once calls were made more than once", again(true)));
    }
    (again(false), again(true))
}

/// The log has every event of every run once and in order: those that the journals give, and no others.
fn log(failures: &mut Vec<String>, end: &End) {
    let positions = end.events.iter().map(|(position, _)| *position);
    if let Some((position, expected)) = positions.zip(1..).find(|(position, expected)| position != expected) {
        failures.push(format!("event {expected} of the log is missing: {position} comes instead"));
    }
    let mut told: HashMap<&str, Vec<&Value>> = HashMap::new();
    for (_, event) in end.events.iter().filter(|(_, event)| event["kind"] == "run") {
        told.entry(event["event"]["runId"].as_str().unwrap_or_default()).or_default().push(&event["event"]);
    }
    let mut wrong = Vec::new();
    for (run, journal) in &end.journals {
        let told = told.remove(run.as_str()).unwrap_or_default();
        let in_order = told.iter().zip(1..).all(|(event, seq)| event["seq"] == seq);
        let is_whole = told.last().is_some_and(|event| event["event"]["type"] == "run_finished");
        if !in_order || !is_whole || !told.iter().copied().eq(journal) {
            wrong.push(format!(
                "run {run}: the log has {} events, the journal {}",
                told.len(),
                journal.len()
            ));
        }
    }
    wrong.extend(told.keys().map(|run| format!("the log has events of run {run}, which is not there")));
    tell(failures, "runs whose events are not as their journals have them", &wrong);
}

/// Every result was shown by the debug node. Gives how many were shown again, because their arrival was not kept yet.
fn shown(failures: &mut Vec<String>, end: &End) -> usize {
    let mut shown: HashMap<&str, usize> = HashMap::new();
    for (_, event) in end.events.iter().filter(|(_, event)| event["event"]["type"] == "debug") {
        *shown.entry(event["event"]["value"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let runs = end.runs.iter().filter_map(|run| run["runId"].as_str());
    let missing: Vec<String> = runs.filter(|run| !shown.contains_key(run)).map(str::to_owned).collect();
    tell(failures, "runs whose result was not shown", &missing);
    shown.values().filter(|count| **count > 1).count()
}

/// How what a reader has had differs from what is kept.
struct Read {
    lost: usize,
    doubled: usize,
    /// Not kept, or another event.
    other: usize,
    in_order: bool,
}

/// Compares what a reader has had with the whole log, from where it began to read.
fn compare(notes: &Notes, whole: &[Had]) -> Read {
    let first = match notes.habit {
        Habit::FromNow => notes.had.first().map_or(u64::MAX, |(position, _)| *position),
        _ => 0,
    };
    let mut times: HashMap<u64, usize> = HashMap::new();
    for (position, _) in &notes.had {
        *times.entry(*position).or_default() += 1;
    }
    let last = whole.last().map_or(0, |(position, _)| *position);
    let kept: HashMap<u64, u64> = whole.iter().copied().collect();
    Read {
        lost: kept.keys().filter(|position| **position >= first && !times.contains_key(position)).count(),
        doubled: times.values().filter(|times| **times > 1).count(),
        // What came after the list was read is not in it.
        other: notes.had.iter().filter(|(at, sum)| *at <= last && kept.get(at) != Some(sum)).count(),
        in_order: notes.had.windows(2).all(|pair| pair[0].0 < pair[1].0),
    }
}

impl Read {
    fn failure(&self, notes: &Notes) -> Option<String> {
        let Self { lost, doubled, other, in_order } = self;
        let well = (*lost, *doubled, *other, *in_order) == (0, 0, 0, true) && !notes.had.is_empty();
        (!well).then(|| {
            let count = notes.had.len();
            let habit = notes.habit;
            format!("{habit:?} had {count} events: {lost} lost, {doubled} doubled, {other} others, in order: {in_order}")
        })
    }
}

/// Tells some of the failures of one kind.
fn tell(failures: &mut Vec<String>, what: &str, which: &[String]) {
    if !which.is_empty() {
        let some: Vec<&str> = which.iter().take(TOLD).map(String::as_str).collect();
        failures.push(format!("{} {what}, such as {}", which.len(), some.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use super::{Read, compare};
    use crate::faults::sidecar::readers::{Habit, Had, Notes};

    #[test]
    fn what_a_reader_missed_or_had_twice_is_counted() {
        let whole: Vec<Had> = (1..=5).map(|position| (position, position * 10)).collect();
        let read = |habit, had: &[Had]| {
            let Read { lost, doubled, other, in_order } = compare(&Notes::with(habit, had), &whole);
            (lost, doubled, other, in_order)
        };
        assert_eq!(read(Habit::Stays, &whole), (0, 0, 0, true));
        assert_eq!(read(Habit::Stays, &whole[1..]), (1, 0, 0, true));
        assert_eq!(read(Habit::FromNow, &whole[1..]), (0, 0, 0, true));
        assert_eq!(read(Habit::FromNow, &[]), (0, 0, 0, true));
        assert_eq!(read(Habit::FromNow, &[(2, 20), (4, 40), (5, 50)]), (1, 0, 0, true));
        assert_eq!(read(Habit::Stays, &[&whole[..], &[(6, 60)]].concat()), (0, 0, 0, true));
        assert_eq!(read(Habit::Stays, &[(1, 10), (2, 20), (2, 20), (3, 31), (5, 50)]), (1, 1, 1, false));
        assert!(
            compare(&Notes::with(Habit::FromNow, &[]), &whole)
                .failure(&Notes::with(Habit::FromNow, &[]))
                .is_some()
        );
    }
}
