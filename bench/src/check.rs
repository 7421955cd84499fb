//! The time to check generated flows, and whether it grows linearly with the flow.

use crate::clock::{median, timed};
use crate::flows::{self, Errors};
use crate::table::{Column, Table};
use crate::{Extent, Failure};
use redflow_flow::{RawFlow, check_bytes};
use serde_json::Value;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// Medians for one flow, in microseconds.
struct Times {
    nodes: f64,
    bytes: f64,
    raw: f64,
    read: f64,
    check: f64,
}

pub(crate) fn measure(
    extent: Extent,
    show: &mut dyn FnMut(Table) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let quick = extent == Extent::Quick;
    for (name, heading, errors) in [
        ("check", "flows without errors, a tenth of the nodes agents", Errors::None),
        ("check-errors", "the same, but a tenth of the agents has an error", Errors::Some),
    ] {
        let columns = [
            ("nodes", "nodes", 0),
            ("megabytes", "MB", 1),
            ("rawMs", "raw parse ms", 2),
            ("readMs", "reading ms", 2),
            ("checkMs", "check ms", 2),
            ("microsPerNode", "µs/node", 2),
            ("ratio", "× raw parse", 2),
            ("growth", "µs/node to the first", 2),
        ];
        let columns = columns.map(|(key, title, digits)| Column { key, title, digits });
        let mut table = Table::new(name, heading, columns.into());
        let mut first = None;
        // A quick measurement skips the largest flow with errors.
        let sizes = if quick && errors == Errors::Some { &SIZES[..2] } else { &SIZES };
        for size in sizes.iter().copied() {
            let times = sample(size, errors, repetitions(size, quick))?;
            let per_node = times.check / times.nodes;
            let growth = per_node / *first.get_or_insert(per_node);
            table.row(vec![
                times.nodes.into(),
                (times.bytes / 1e6).into(),
                (times.raw / 1e3).into(),
                (times.read / 1e3).into(),
                (times.check / 1e3).into(),
                per_node.into(),
                (times.check / times.raw).into(),
                growth.into(),
            ]);
        }
        table.note(
            "raw parse: the same bytes into a serde_json::Value; reading: the strict parse inside check",
        );
        show(table)?;
    }
    Ok(())
}

fn repetitions(size: usize, quick: bool) -> usize {
    if quick { 30_000_usize.div_ceil(size) } else { 5 + 100_000 / size }
}

/// Each repetition measures all three times, so that a slow moment of the machine affects all of them.
fn sample(size: usize, errors: Errors, repetitions: usize) -> Result<Times, Failure> {
    let flow = flows::generate(size, errors)?;
    let options = flows::options();
    let (mut raw, mut read, mut check) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms up and is dropped, unless it is the only one.
    let warm_up = usize::from(repetitions > 1);
    for round in 0..repetitions + warm_up {
        let (value, raw_time) = timed(|| serde_json::from_slice::<Value>(&flow.bytes));
        drop(value?);
        let (parsed, read_time) = timed(|| RawFlow::parse(&flow.bytes, &options.limits));
        drop(parsed);
        let (checked, check_time) = timed(|| check_bytes(&flow.bytes, &options));
        let checked = checked.map_err(|report| format!("the generated flow is refused: {report:?}"))?;
        if checked.report.ok == (errors == Errors::Some) {
            return Err(format!("the generated flow is not what it should be: {:?}", checked.report).into());
        }
        drop(checked);
        if round >= warm_up {
            raw.push(raw_time);
            read.push(read_time);
            check.push(check_time);
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "sizes of flows are small")]
    let (nodes, bytes) = (flow.nodes as f64, flow.bytes.len() as f64);
    Ok(Times { nodes, bytes, raw: median(raw), read: median(read), check: median(check) })
}
