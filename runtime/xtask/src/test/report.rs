//! How steps ended, how long they took, and the summary.

use crate::{files, tools};
use serde_json::{Map, Value};
use std::path::Path;
use std::time::{Duration, Instant};

/// The ceilings of the repository, and the times of the steps when they were last kept.
const CEILINGS: &str = "bench/ceilings.json";
const TIMES: &str = "bench/test-times.json";

/// nextest writes the time of each test here, below the target folder.
const TEST_TIMES: &str = "nextest/default/junit.xml";

/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(Self::Failed, |()| Self::Passed)
    }
}

/// How one step ended.
pub(super) struct Report {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) seconds: f64,
}

impl Report {
    /// A step that did not run.
    pub(super) fn new(name: &'static str, outcome: Outcome) -> Self {
        Self { name, outcome, seconds: 0.0 }
    }

    /// Reads the line with which a step ends.
    pub(super) fn read(name: &'static str, line: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<f64>().ok();
        let (outcome, seconds) = if let Some(time) = line.strip_prefix("passed in ") {
            (Outcome::Passed, number(time.strip_suffix(" s")?)?)
        } else if let Some(why) = line.strip_prefix("skipped: ") {
            (Outcome::Skipped(why.to_owned()), 0.0)
        } else {
            let (time, why) = line.strip_prefix("FAILED after ")?.split_once(" s: ")?;
            (Outcome::Failed(why.to_owned()), number(time)?)
        };
        Some(Self { name, outcome, seconds })
    }
}

/// Runs a step and prints how it ended.
pub(super) fn step(name: &'static str, work: impl FnOnce() -> Outcome) -> Report {
    println!("\n== {name}");
    let began = Instant::now();
    let outcome = work();
    let seconds = began.elapsed().as_secs_f64();
    match &outcome {
        Outcome::Passed => println!("passed in {seconds:.1} s"),
        Outcome::Skipped(why) => println!("skipped: {why}"),
        Outcome::Failed(why) => println!("FAILED after {seconds:.1} s: {}", one_line(why)),
    }
    Report { name, outcome, seconds }
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" · ")
}

/// The end of the output, and whether no step failed.
pub(super) fn summary(root: &Path, reports: &[Report], time: Duration) -> (String, bool) {
    let kept = files::read(root, TIMES).ok().and_then(|text| serde_json::from_str(&text).ok());
    let mut text = times(reports, &kept.unwrap_or_default());
    let tests = tools::target_folder(root).ok().map(|target| target.join(TEST_TIMES));
    if let Some(report) = tests.and_then(|path| std::fs::read_to_string(path).ok()) {
        text += &slowest(&report);
    }
    let (last, passed) = last_line(reports, time, ceiling(root));
    (format!("{text}{last}"), passed)
}

/// The time of each step beside the time that is kept.
fn times(reports: &[Report], kept: &Value) -> String {
    let mut text = format!("{:<30}{:>9}{:>9}\n", "step", "seconds", "kept");
    for report in reports.iter().filter(|report| !matches!(report.outcome, Outcome::Skipped(_))) {
        let before = kept[report.name].as_f64().map_or_else(|| "–".to_owned(), |time| format!("{time:.0}"));
        text += &format!("{:<30}{:>9.0}{before:>9}\n", report.name, report.seconds);
    }
    text
}

/// The slowest tests of nextest's report.
fn slowest(report: &str) -> String {
    let field = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!(" {name}=\""))?;
        Some(rest.split('"').next()?.to_owned())
    };
    let mut tests: Vec<(f64, String)> = report
        .lines()
        .filter(|line| line.trim_start().starts_with("<testcase "))
        .filter_map(|line| {
            let name = format!("{} {}", field(line, "classname")?, field(line, "name")?);
            Some((field(line, "time")?.parse().ok()?, name))
        })
        .collect();
    tests.sort_by(|one, other| other.0.total_cmp(&one.0));
    let lines: Vec<String> =
        tests.iter().take(SLOWEST).map(|(time, name)| format!("{time:>9.1} s  {name}\n")).collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!("\nthe slowest of {} Rust tests\n{}\n", tests.len(), lines.concat())
    }
}

/// How many seconds the tests may take.
fn ceiling(root: &Path) -> Option<u64> {
    let text = files::read(root, CEILINGS).ok()?;
    serde_json::from_str::<Value>(&text).ok()?["testSeconds"]["ceiling"].as_u64()
}

fn last_line(reports: &[Report], time: Duration, ceiling: Option<u64>) -> (String, bool) {
    let names = |wanted: fn(&Outcome) -> bool| -> Vec<&str> {
        reports.iter().filter(|report| wanted(&report.outcome)).map(|report| report.name).collect()
    };
    let passed = names(|outcome| *outcome == Outcome::Passed);
    let skipped = names(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let failed = names(|outcome| matches!(outcome, Outcome::Failed(_)));
    let mut line = String::new();
    for report in reports {
        if let Outcome::Failed(why) = &report.outcome {
            line += &format!("FAILED: {}: {}\n", report.name, one_line(why));
        }
    }
    line += &if failed.is_empty() {
        format!("cargo xtask test: ok, {} passed", passed.len())
    } else {
        format!("cargo xtask test: FAILED: {}; {} passed", failed.join(", "), passed.len())
    };
    if !skipped.is_empty() {
        line += &format!(", {} skipped ({})", skipped.len(), skipped.join(", "));
    }
    line += &format!(" in {:.1} s", time.as_secs_f64());
    if let Some(ceiling) = ceiling.filter(|ceiling| time.as_secs() > *ceiling) {
        line += &format!(", more than the {ceiling} s of {CEILINGS}");
    }
    (line, failed.is_empty())
}

/// Writes the times of the steps into the repository.
pub(super) fn keep_times(root: &Path, reports: &[Report]) -> Result<(), String> {
    let times: Map<String, Value> = reports
        .iter()
        .map(|report| (report.name.to_owned(), (report.seconds.round() as u64).into()))
        .collect();
    let text = format!("{:#}\n", Value::Object(times));
    std::fs::write(root.join(TIMES), text).map_err(|error| format!("{TIMES}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Report, last_line, one_line, slowest, times};
    use pretty_assertions::assert_eq;
    use serde_json::json;
    use std::time::Duration;

    fn reports() -> Vec<Report> {
        let failed = || Outcome::Failed("why".into());
        vec![
            Report { seconds: 1.4, ..Report::new("format", Outcome::Passed) },
            Report::new("lints", Outcome::Skipped("not here".into())),
            Report { seconds: 61.0, ..Report::new("Rust tests", failed()) },
            Report::new("Node.js", failed()),
        ]
    }

    #[test]
    fn the_last_line_names_the_failed_steps() {
        let (line, passed) = last_line(&reports(), Duration::from_millis(1234), None);
        assert!(!passed);
        let wanted = "FAILED: Rust tests: why\nFAILED: Node.js: why\n\
                      cargo xtask test: FAILED: Rust tests, Node.js; 1 passed, 1 skipped (lints) in 1.2 s";
        assert_eq!(line, wanted);
        let (line, passed) = last_line(&reports()[..1], Duration::ZERO, Some(10));
        assert!(passed);
        assert_eq!(line, "cargo xtask test: ok, 1 passed in 0.0 s");
        let (line, _) = last_line(&reports()[..1], Duration::from_secs(11), Some(10));
        assert!(line.ends_with("in 11.0 s, more than the 10 s of bench/ceilings.json"), "{line}");
    }

    #[test]
    fn times_stand_beside_those_that_are_kept() {
        let text = times(&reports(), &json!({"format": 2, "gone": 5}));
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["format", "1", "2"]);
        assert_eq!(rows[2], ["Rust", "tests", "61", "–"]);
        assert_eq!(rows[3], ["Node.js", "0", "–"]);
    }

    #[test]
    fn names_the_slowest_tests() {
        let report = "<testsuites>\n  <testsuite name=\"a\">\n    <testcase name=\"x::fast\" classname=\"a\" timestamp=\"t\" time=\"0.5\">\n\
                      <testcase name=\"slow\" classname=\"a::b\" timestamp=\"t\" time=\"12.25\">\n";
        assert_eq!(
            slowest(report),
            "\nthe slowest of 2 Rust tests\n     12.2 s  a::b slow\n      0.5 s  a x::fast\n\n"
        );
        assert_eq!(slowest(""), "");
    }

    #[test]
    fn the_reason_of_a_failure_is_one_line() {
        assert_eq!(one_line("`npm` failed:\n  why"), "`npm` failed: · why");
        let read = Report::read("a", "FAILED after 1.0 s: `npm` failed: · why").unwrap();
        assert_eq!(read.outcome, Outcome::Failed("`npm` failed: · why".into()));
    }
}
