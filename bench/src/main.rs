//! Benchmarks: what checking a flow, taking a step, keeping a run, asking a model, serving and running agents beside
//! Node-RED cost, beside a raw limit measured in the same run.
//!
//! Prints figures and judges none of them. Never part of a test: a time says nothing on a busy machine.

mod check;
mod clock;
mod flows;
mod folder;
mod instructions;
mod live;
mod live_hyper;
mod live_provider;
mod live_raw;
mod live_waiting;
mod node_red;
mod node_red_flow;
mod node_red_process;
mod probe;
mod recovery;
mod run;
mod script;
mod serve;
mod serve_bare;
mod serve_client;
mod serve_crowd;
mod serve_process;
mod serve_slow;
mod serve_start;
mod step;
mod store;
mod table;
mod world;

use std::io::Write;
use std::process::ExitCode;
use table::Table;

/// Whatever stops a benchmark.
type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: cargo xtask bench [check] [step] [run] [store] [recovery] [live] [serve] [instructions] [node-red] [--quick | --long] [--json] [--line 5|4.1]";

/// How much is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Extent {
    /// Few repetitions.
    Quick,
    #[default]
    Usual,
    /// Sizes that take minutes as well.
    Long,
}

/// A section measures, and hands over each table as soon as it is complete.
type Section = fn(extent: Extent, show: &mut dyn FnMut(Table) -> Result<(), Failure>) -> Result<(), Failure>;

const SECTIONS: [(&str, Section); 8] = [
    ("check", check::measure),
    ("step", step::measure),
    ("run", run::measure),
    ("store", store::measure),
    ("recovery", recovery::measure),
    ("live", live::measure),
    ("serve", serve::measure),
    ("instructions", instructions::measure),
];

/// The section that measures in Node-RED. It needs to know in which.
const NODE_RED: &str = "node-red";

/// What was asked for on the command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    sections: Vec<String>,
    extent: Extent,
    json: bool,
    /// Of Node-RED.
    line: &'static str,
}

impl Default for Options {
    fn default() -> Self {
        Self { sections: Vec::new(), extent: Extent::default(), json: false, line: node_red::LINES[0] }
    }
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|asked| asked == name)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((first, rest)) if first == instructions::PROBE => instructions::probe(rest),
        Some((first, rest)) if first == recovery::PROBE => recovery::probe(rest),
        Some((first, rest)) if first == live_waiting::PROBE => live_waiting::probe(rest),
        Some((first, _)) if first == live_provider::PROBE => live_provider::probe(),
        Some((first, rest)) if first == serve_bare::PROBE => serve_bare::probe(rest),
        _ => match parse(&args) {
            Some(options) => measure(&options, &mut std::io::stdout().lock()),
            None => {
                let _ = writeln!(std::io::stderr(), "{USAGE}");
                return ExitCode::from(2);
            }
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: &[String]) -> Option<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => options.extent = Extent::Quick,
            "--long" => options.extent = Extent::Long,
            "--json" => options.json = true,
            "--line" => {
                let wanted = args.next()?;
                options.line = node_red::LINES.into_iter().find(|line| line == wanted)?;
            }
            name if name == NODE_RED || SECTIONS.iter().any(|(known, _)| *known == name) => {
                options.sections.push(name.to_owned())
            }
            _ => return None,
        }
    }
    Some(options)
}

fn measure(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let mut tables = Vec::new();
    let mut show = |table: Table| {
        if options.json {
            tables.push(table.to_json());
        } else {
            writeln!(out, "{table}")?;
        }
        Ok(())
    };
    for (_, section) in SECTIONS.into_iter().filter(|(name, _)| options.wants(name)) {
        section(options.extent, &mut show)?;
    }
    if options.wants(NODE_RED) {
        node_red::measure(options.extent, options.line, &mut show)?;
    }
    if options.json {
        writeln!(out, "{}", serde_json::json!({"quick": options.extent == Extent::Quick, "tables": tables}))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Extent, Options, parse};

    #[test]
    fn arguments_are_sections_and_switches() {
        let of = |words: &[&str]| parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]), Some(Options::default()));
        let sections = vec!["step".to_owned(), "run".to_owned()];
        assert_eq!(
            of(&["step", "--json", "run", "--quick"]),
            Some(Options { sections, extent: Extent::Quick, json: true, ..Options::default() })
        );
        assert_eq!(of(&["--long"]), Some(Options { extent: Extent::Long, ..Options::default() }));
        let sections = vec!["node-red".to_owned()];
        let older = Options { sections, line: "4.1", ..Options::default() };
        assert_eq!(of(&["node-red", "--line", "4.1"]), Some(older));
        assert_eq!(of(&["node-red", "--line", "3"]), None);
        assert_eq!(of(&["node-red", "--line"]), None);
        assert_eq!(of(&["steps"]), None);
        assert_eq!(of(&["--help"]), None);
    }
}
