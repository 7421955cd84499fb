//! Benchmarks: what checking a flow and taking a step cost, beside a raw limit measured in the same run.
//!
//! Prints figures and judges none of them. Never part of a test: a time says nothing on a busy machine.

mod check;
mod clock;
mod flows;
mod instructions;
mod run;
mod script;
mod step;
mod table;

use std::io::Write;
use std::process::ExitCode;
use table::Table;

/// Whatever stops a benchmark.
type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: cargo xtask bench [check] [step] [run] [instructions] [--quick] [--json]";

/// A section measures, and hands over each table as soon as it is complete.
type Section = fn(quick: bool, show: &mut dyn FnMut(Table) -> Result<(), Failure>) -> Result<(), Failure>;

const SECTIONS: [(&str, Section); 4] = [
    ("check", check::measure),
    ("step", step::measure),
    ("run", run::measure),
    ("instructions", instructions::measure),
];

/// What was asked for on the command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    sections: Vec<String>,
    quick: bool,
    json: bool,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((first, rest)) if first == instructions::PROBE => instructions::probe(rest),
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
    for arg in args {
        match arg.as_str() {
            "--quick" => options.quick = true,
            "--json" => options.json = true,
            name if SECTIONS.iter().any(|(known, _)| *known == name) => {
                options.sections.push(name.to_owned())
            }
            _ => return None,
        }
    }
    Some(options)
}

fn measure(options: &Options, out: &mut dyn Write) -> Result<(), Failure> {
    let mut tables = Vec::new();
    for (name, section) in SECTIONS {
        if !options.sections.is_empty() && !options.sections.iter().any(|asked| asked == name) {
            continue;
        }
        section(options.quick, &mut |table| {
            if options.json {
                tables.push(table.to_json());
            } else {
                writeln!(out, "{table}")?;
            }
            Ok(())
        })?;
    }
    if options.json {
        writeln!(out, "{}", serde_json::json!({"quick": options.quick, "tables": tables}))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Options, parse};

    #[test]
    fn arguments_are_sections_and_two_switches() {
        let of = |words: &[&str]| parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]), Some(Options::default()));
        let sections = vec!["step".to_owned(), "run".to_owned()];
        assert_eq!(
            of(&["step", "--json", "run", "--quick"]),
            Some(Options { sections, quick: true, json: true })
        );
        assert_eq!(of(&["steps"]), None);
        assert_eq!(of(&["--help"]), None);
    }
}
