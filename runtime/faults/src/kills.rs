//! Kills a mixed load at random times, always on the same data directory.

use super::flows::many_agents;
use super::rig::Rig;
use super::witness::Behaviour;
use super::{Random, Row, resume_until_finished};
use redflow_testkit::LoggedProcess;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The longest time before a process is killed.
const LONGEST_LIFE_MS: u64 = 250;

pub(super) fn run(rig: &Rig, kills: usize) -> Result<Row, String> {
    let mut row = Row::new("random kill -9 of a mixed load");
    let folder = rig.folder("kills")?;
    let flow = Rig::write_flow(&folder, &many_agents())?;
    rig.witness.reset(Behaviour::Mixed);
    let mut random = Random(7);
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut open = false;
    // A process that ended before the kill does not count.
    for number in 0..kills * 10 {
        if row.cases == kills {
            break;
        }
        let args: &[&str] = if open && number % 3 > 0 {
            &["run", "--resume", "all", &flow, "-q"]
        } else {
            &["run", &flow, "--node", "i", "-q"]
        };
        let mut process = LoggedProcess::start(rig.redflow(&folder, args))?;
        std::thread::sleep(Duration::from_millis(5 + random.below(LONGEST_LIFE_MS)));
        row.cases += usize::from(!process.has_ended());
        process.kill()?;
        let runs = rig.list_runs(&folder)?;
        open = runs.iter().any(|run| run["status"] == "interrupted");
        let runs: BTreeSet<String> =
            runs.iter().filter_map(|run| Some(run["runId"].as_str()?.to_owned())).collect();
        row.failures.extend(known.difference(&runs).map(|run| format!("kill {number}: run {run} is lost")));
        known = runs;
    }
    if row.cases < kills {
        row.failures.push(format!("only {} kills of {kills} hit a running process", row.cases));
    }
    let asked = resume_until_finished(rig, &folder, &flow)?;
    let runs = rig.list_runs(&folder)?;
    let stored: BTreeSet<&str> = runs.iter().filter_map(|run| run["runId"].as_str()).collect();
    let calls = rig.witness.calls();
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    for call in &calls {
        *counts.entry((call.class.as_str(), call.key.as_str())).or_default() += 1;
        if !stored.contains(call.run.as_str()) {
            row.failures.push(format!("run {} made a call and is not stored", call.run));
        }
    }
    // Every result of the first of each class starts exactly one run of `next`.
    let count_runs = |agents: &[&str]| {
        runs.iter()
            .filter(|run| run["agent"]["nodeId"].as_str().is_some_and(|id| agents.contains(&id)))
            .count()
    };
    let (causes, started) = (count_runs(&["read0", "idempotent0", "at_most_once0"]), count_runs(&["next"]));
    if causes != started {
        row.failures.push(format!("{causes} results started {started} runs"));
    }
    let repeated = |class: &str| counts.iter().filter(|((of, _), count)| *of == class && **count > 1).count();
    let dangerous = repeated("at_most_once");
    if dangerous > 0 {
        row.failures.push(format!("{dangerous} at_most_once calls were made more than once"));
    }
    row.figures = format!(
        "{} runs ({started} begun by {causes} results), {} calls, {asked} asked a person; repeated: {dangerous} at_most_once, {} idempotent, {} read; 0 lost",
        runs.len(),
        calls.len(),
        repeated("idempotent"),
        repeated("read"),
    );
    Ok(row)
}
