//! `redflow explain`.

use crate::kit::{Output, redflow};
use pretty_assertions::assert_eq;
use redflow_contract::code::{ArchiveCode, DiagnosticCode, RunErrorCode, StoreCode, ToolCode};

fn all() -> Vec<(&'static str, &'static str, &'static str)> {
    let diagnostics = DiagnosticCode::ALL.iter().map(|code| (code.as_str(), code.summary(), code.page()));
    let errors = RunErrorCode::ALL.iter().map(|code| (code.as_str(), code.summary(), code.page()));
    let calls = ToolCode::ALL.iter().map(|code| (code.as_str(), code.summary(), code.page()));
    let stored = StoreCode::ALL.iter().map(|code| (code.as_str(), code.summary(), code.page()));
    let archive = ArchiveCode::ALL.iter().map(|code| (code.as_str(), code.summary(), code.page()));
    diagnostics.chain(errors).chain(calls).chain(stored).chain(archive).collect()
}

#[test]
fn every_code_has_its_section() {
    for (code, _, page) in all() {
        let expected = Output { code: 0, stdout: page.to_owned(), stderr: String::new() };
        assert_eq!(redflow(["explain", code]).run(), expected);
        assert!(page.starts_with(&format!("## {code}\n")) && page.ends_with('\n'), "{code}");
    }
}

#[test]
fn codes_ignore_case() {
    for typed in ["edge_self", "Edge-Self", " EDGE_SELF "] {
        assert_eq!(redflow(["explain", typed]).run(), redflow(["explain", "EDGE_SELF"]).run());
    }
}

#[test]
fn without_a_code_all_are_listed() {
    let output = redflow(["explain"]).run();
    let lines: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!((output.code, lines.len()), (0, all().len()));
    for (line, (code, summary, _)) in lines.iter().zip(all()) {
        assert!(line.starts_with(&format!("  {code} ")) && line.ends_with(summary), "{line}");
    }
}

#[test]
fn an_unknown_code_is_refused() {
    redflow(["explain", "E0308"])
        .run()
        .assert_refused("there is no code `E0308`; `redflow explain` lists them all");
    redflow(["explain", "\u{1b}[31m"]).run().assert_refused("there is no code `\\u{1b}[31m`");
    redflow(["explain", ""]).run().assert_refused("there is no code ``");
}
