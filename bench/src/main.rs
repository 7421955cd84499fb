//! Benchmarks: the cost of checking a flow, a step, storing a run, a model call, a tool's request, serving, and agents for Node-RED. Each
//! is compared with a raw limit that the same run measures.
//!
//! They print figures and fail on none. No test runs them, because times on a busy machine mean nothing.

mod agents;
mod archive;
mod check;
mod clock;
mod console;
mod egress;
mod flows;
mod folder;
mod instructions;
mod live;
mod mcp;
mod memory;
mod node_red;
mod open_files;
mod probe;
mod recovery;
mod run;
mod script;
mod serve;
mod step;
mod store;
mod table;
mod tools;
mod world;

use std::io::Write;
use std::process::ExitCode;
use table::Table;

/// The allocator of the product, also for the raw limits.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Any error that stops a benchmark.
type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: cargo xtask bench [check] [step] [run] [agents] [tools] [archive] [memory] [mcp] [egress] [store] [recovery] [live] [serve] [console] [instructions] [node-red] [--quick | --long] [--json] [--line 5|4.1]";

/// How much to measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Extent {
    /// Few repetitions.
    Quick,
    #[default]
    Usual,
    /// Also sizes that take minutes.
    Long,
}

/// A section gives each table as soon as it is complete.
type Section = fn(extent: Extent, show: &mut dyn FnMut(Table) -> Result<(), Failure>) -> Result<(), Failure>;

const SECTIONS: [(&str, Section); 15] = [
    ("check", check::measure),
    ("step", step::measure),
    ("run", run::measure),
    ("agents", agents::measure),
    ("tools", tools::measure),
    ("archive", archive::measure),
    ("memory", memory::measure),
    ("mcp", mcp::measure),
    ("store", store::measure),
    ("recovery", recovery::measure),
    ("live", live::measure),
    ("egress", egress::measure),
    ("serve", serve::measure),
    ("console", console::measure),
    ("instructions", instructions::measure),
];

/// The section that measures Node-RED. It needs the release line.
const NODE_RED: &str = "node-red";

/// The command line.
#[derive(Debug, PartialEq, Eq)]
struct BenchOptions {
    sections: Vec<String>,
    extent: Extent,
    json: bool,
    /// The release line of Node-RED.
    line: &'static str,
}

impl Default for BenchOptions {
    fn default() -> Self {
        Self { sections: Vec::new(), extent: Extent::default(), json: false, line: node_red::LINES[0] }
    }
}

impl BenchOptions {
    fn includes(&self, name: &str) -> bool {
        self.sections.is_empty() || self.sections.iter().any(|section| section == name)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((first, rest)) if first == instructions::PROBE => instructions::probe(rest),
        Some((first, rest)) if first == recovery::PROBE => recovery::probe(rest),
        Some((first, rest)) if first == live::waiting::PROBE => live::waiting::probe(rest),
        Some((first, rest)) if first == live::images::PROBE => live::images::probe(rest),
        Some((first, rest)) if first == live::drive::PROBE => live::drive::probe(rest),
        Some((first, _)) if first == live::provider::PROBE => live::provider::probe(),
        Some((first, rest)) if first == serve::bare::PROBE => serve::bare::probe(rest),
        Some((first, rest)) if first == mcp::echo::PROBE => mcp::echo::probe(rest),
        Some((first, rest)) if first == mcp::idle::PROBE => mcp::idle::probe(rest),
        _ => match parse(&args) {
            Some(options) => measure(&options, &mut std::io::stdout().lock()),
            None => {
                let _ = writeln!(std::io::stderr(), "{USAGE}");
                return ExitCode::from(2);
            }
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: &[String]) -> Option<BenchOptions> {
    let mut options = BenchOptions::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--quick" => options.extent = Extent::Quick,
            "--long" => options.extent = Extent::Long,
            "--json" => options.json = true,
            "--line" => {
                let name = args.next()?;
                options.line = node_red::LINES.into_iter().find(|line| line == name)?;
            }
            name if name == NODE_RED || SECTIONS.iter().any(|(known, _)| *known == name) => {
                options.sections.push(name.to_owned())
            }
            _ => return None,
        }
    }
    Some(options)
}

fn measure(options: &BenchOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let mut tables = Vec::new();
    let mut show = |table: Table| {
        if options.json {
            tables.push(table.to_json());
        } else {
            writeln!(out, "{table}")?;
        }
        Ok(())
    };
    for (_, section) in SECTIONS.into_iter().filter(|(name, _)| options.includes(name)) {
        section(options.extent, &mut show)?;
    }
    if options.includes(NODE_RED) {
        node_red::measure(options.extent, options.line, &mut show)?;
    }
    if options.json {
        writeln!(out, "{}", serde_json::json!({"quick": options.extent == Extent::Quick, "tables": tables}))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{BenchOptions, Extent, parse};

    #[test]
    fn parses_sections_and_switches() {
        let parse_words =
            |words: &[&str]| parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(parse_words(&[]), Some(BenchOptions::default()));
        let sections = vec!["step".to_owned(), "run".to_owned()];
        assert_eq!(
            parse_words(&["step", "--json", "run", "--quick"]),
            Some(BenchOptions { sections, extent: Extent::Quick, json: true, ..BenchOptions::default() })
        );
        assert_eq!(
            parse_words(&["--long"]),
            Some(BenchOptions { extent: Extent::Long, ..BenchOptions::default() })
        );
        let sections = vec!["node-red".to_owned()];
        let older = BenchOptions { sections, line: "4.1", ..BenchOptions::default() };
        assert_eq!(parse_words(&["node-red", "--line", "4.1"]), Some(older));
        assert_eq!(parse_words(&["node-red", "--line", "3"]), None);
        assert_eq!(parse_words(&["node-red", "--line"]), None);
        assert_eq!(parse_words(&["steps"]), None);
        assert_eq!(parse_words(&["--help"]), None);
    }
}
