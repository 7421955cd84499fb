//! Whole runs of three iterations, and their replay.

use crate::clock::{median, timed};
use crate::script::{Kind, Script};
use crate::table::{Column, Table};
use crate::{Extent, Failure};
use redflow_contract::digest::Digest;
use redflow_contract::fact::Fact;
use redflow_machine::Replays;
use redflow_react::CompiledAgent;
use redflow_strategies::{replay, strategies};
use serde_json::Value;
use std::hint::black_box;
use std::sync::Arc;

/// Two tool calls, then the final answer.
const TOOL_CALLS: u32 = 2;

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let repetitions = if extent == Extent::Quick { 500 } else { 10_000 };
    let script = Script::new(TOOL_CALLS)?;
    let journal = script.journal(TOOL_CALLS)?;
    let report = replay(&journal);
    if !report.equal || !report.complete {
        return Err(format!("the journal does not replay: {report:?}").into());
    }
    let answers = answers(&script);
    let lines: Vec<&[u8]> = journal.split(|byte| *byte == b'\n').collect();

    let (mut raw_run, mut raw_journal) = (Vec::new(), Vec::new());
    let (mut machine, mut recorder) = (Vec::new(), Vec::new());
    let (mut replays, mut many, mut compiles) = (Vec::new(), Vec::new(), Vec::new());
    let mut cached = Replays::new(strategies());
    for _ in 0..repetitions {
        raw_run.push(timed(|| answers.iter().map(|text| raw(text.as_bytes())).collect::<Vec<_>>()).1);
        raw_journal.push(timed(|| lines.iter().map(|line| raw(line)).collect::<Vec<_>>()).1);
        machine.push(whole_run(&script, Kind::Machine)?);
        recorder.push(whole_run(&script, Kind::Recorder)?);
        replays.push(timed(|| replay(&journal)).1);
        many.push(timed(|| cached.replay(&journal)).1);
        compiles.push(timed(|| CompiledAgent::compile(Arc::clone(script.agent().spec()))).1);
    }
    let (raw_run, raw_journal) = (median(raw_run), median(raw_journal));

    let columns =
        [("what", "what", 0), ("micros", "µs", 1), ("perSecond", "per second", 0), ("ratio", "× raw", 2)];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let mut table = Table::new("run", "a whole run of three iterations, on one core", columns.into());
    for (what, samples, raw) in [
        ("run, machine alone", machine, raw_run),
        ("run, with its journal", recorder, raw_run),
        ("replay of its journal", replays, raw_journal),
        ("replay of one of many", many, raw_journal),
    ] {
        let micros = median(samples);
        table.row(vec![what.into(), micros.into(), (1e6 / micros).into(), (micros / raw).into()]);
    }
    table.figure(
        "compileMicros",
        "compiling the agent (once per deploy, and in a replay of one journal)",
        median(compiles),
        " µs",
    );
    table.figure(
        "rawRunMicros",
        "raw run: serde_json parse and SHA-256 of its three answers",
        raw_run,
        " µs",
    );
    table.figure("rawJournalMicros", "raw replay: the same of each line of the journal", raw_journal, " µs");
    #[allow(clippy::cast_precision_loss, reason = "a journal is small")]
    table.figure("journalBytes", "the journal", journal.len() as f64 / 1e3, " kB");
    show(table)
}

fn whole_run(script: &Script, kind: Kind) -> Result<f64, Failure> {
    let (first, facts) = (script.started(), script.facts(TOOL_CALLS));
    let (driver, time) = timed(|| {
        let (mut driver, lines) = script.start(kind, first)?;
        drop(black_box(lines));
        for fact in facts {
            driver.step(fact)?;
        }
        Ok::<_, Failure>(driver)
    });
    driver?.check_finished()?;
    Ok(time)
}

fn answers(script: &Script) -> Vec<String> {
    let text = |fact: Fact| match fact {
        Fact::ModelAnswered { answer, .. } => Some(answer.text),
        _ => None,
    };
    script.facts(TOOL_CALLS).into_iter().filter_map(text).collect()
}

fn raw(text: &[u8]) -> (Option<Value>, Digest) {
    let text = black_box(text);
    (serde_json::from_slice(text).ok(), Digest::of(text))
}
