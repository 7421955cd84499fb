//! One step of a run: feed an answer or a result, take the effects.

use crate::clock::{median, overhead, timed};
use crate::script::{Kind, Script, raw_answer, raw_result, sample_result};
use crate::table::{Column, Table};
use crate::{Extent, Failure};

const STEPS: u32 = 20;
const SHOWN_STEPS: [usize; 4] = [1, 5, 10, 20];

/// Microseconds, a list of samples for each step.
struct Samples {
    answers: Vec<Vec<f64>>,
    results: Vec<Vec<f64>>,
    end: Vec<f64>,
    raw_answer: Vec<f64>,
    raw_result: Vec<f64>,
}

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for kind in Kind::ALL {
        let samples = sample(kind, if extent == Extent::Quick { 500 } else { 10_000 })?;
        show(table(kind, samples))?;
    }
    Ok(())
}

fn sample(kind: Kind, runs: usize) -> Result<Samples, Failure> {
    let script = Script::new(STEPS)?;
    let result = sample_result();
    let lists = || vec![Vec::with_capacity(runs); STEPS as usize];
    let mut samples = Samples {
        answers: lists(),
        results: lists(),
        end: Vec::new(),
        raw_answer: Vec::new(),
        raw_result: Vec::new(),
    };
    let warm_up = runs / 10;
    for run in 0..runs + warm_up {
        let (_, raw_answer) = timed(raw_answer);
        let (_, raw_result) = timed(|| raw_result(&result));
        let mut facts = script.facts(STEPS).into_iter();
        let (mut driver, _) = script.start(kind, script.started())?;
        let mut times = Vec::with_capacity(facts.len());
        for fact in &mut facts {
            let (taken, time) = timed(|| driver.step(fact));
            taken?;
            times.push(time);
        }
        driver.check_finished()?;
        if run < warm_up {
            continue;
        }
        samples.raw_answer.push(raw_answer);
        samples.raw_result.push(raw_result);
        samples.end.extend(times.pop());
        for (step, pair) in times.chunks_exact(2).enumerate() {
            samples.answers[step].push(pair[0]);
            samples.results[step].push(pair[1]);
        }
    }
    Ok(samples)
}

fn table(kind: Kind, samples: Samples) -> Table {
    let heading = match kind {
        Kind::Machine => "one step of the machine alone, in a run of 20 tool calls",
        Kind::Recorder => "the same with its journal: lines and digests",
    };
    let columns = [
        ("step", "step", 0),
        ("answerMicros", "answer µs", 2),
        ("answerRatio", "× raw", 2),
        ("resultMicros", "result µs", 2),
        ("resultRatio", "× raw", 2),
        ("bothMicros", "both µs", 2),
    ];
    let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
    let name = if kind == Kind::Machine { "step-machine" } else { "step-recorder" };
    let mut table = Table::new(name, heading, columns.into());
    let (raw_answer, raw_result) = (median(samples.raw_answer), median(samples.raw_result));
    let answers: Vec<f64> = samples.answers.into_iter().map(median).collect();
    let results: Vec<f64> = samples.results.into_iter().map(median).collect();
    for step in SHOWN_STEPS {
        let (answer, result) = (answers[step - 1], results[step - 1]);
        #[allow(clippy::cast_precision_loss, reason = "at most 20")]
        let number = step as f64;
        table.row(vec![
            number.into(),
            answer.into(),
            (answer / raw_answer).into(),
            result.into(),
            (result / raw_result).into(),
            (answer + result).into(),
        ]);
    }
    let growth = |list: &[f64]| list[STEPS as usize - 1] / list[0];
    table.figure("answerGrowth", "answer, step 20 to step 1", growth(&answers), "");
    table.figure("resultGrowth", "result, step 20 to step 1", growth(&results), "");
    table.figure("endMicros", "the final answer, with the message for port 3", median(samples.end), " µs");
    table.figure("rawAnswerMicros", "raw answer: serde_json parse and SHA-256 of it", raw_answer, " µs");
    table.figure("rawResultMicros", "raw result: serde_json text and SHA-256 of it", raw_result, " µs");
    table.figure("clockMicros", "reading the clock, in every figure", overhead(), " µs");
    table
}
