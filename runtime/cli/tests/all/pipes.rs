//! Closed pipes and full disks.

use crate::kit::{Folder, code_of, final_answer, flow, redflow};
use std::io::{Read as _, Write as _};

/// Calls with a stdout that is closed before the first output, because the input comes later.
#[track_caller]
fn run_with_closed_stdout(args: &[&str], stdin: &str, code: i32) {
    let mut running = redflow(args.iter().copied()).spawn();
    drop(running.0.stdout.take());
    // A command that reads nothing may have ended already.
    let _ = running.0.stdin.take().unwrap().write_all(stdin.as_bytes());
    let mut stderr = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(code_of(running.0.wait().unwrap()), code, "{args:?}: {stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("cannot write"), "{args:?}: {stderr}");
}

#[test]
fn a_closed_stdout_is_no_error() {
    let good = flow(final_answer(&"long ".repeat(50_000)), vec![]).to_string();
    let bad = flow(serde_json::json!(["prose"]), vec![]).to_string();
    run_with_closed_stdout(&["check", "-"], &good, 0);
    run_with_closed_stdout(&["check", "--json", "-"], "[", 2);
    run_with_closed_stdout(&["run", "-"], &good, 0);
    run_with_closed_stdout(&["run", "--json", "-"], &good, 0);
    run_with_closed_stdout(&["run", "--json", "-"], &bad, 1);
    for args in
        [["schema", "run-event"].as_slice(), &["schema"], &["explain"], &["completions", "bash"], &["--help"]]
    {
        run_with_closed_stdout(args, "", 0);
    }
}

#[test]
fn a_closed_stderr_is_no_error() {
    let mut running = redflow(["run", "-"]).spawn();
    drop(running.0.stderr.take());
    let text = flow(final_answer("hi"), vec![]).to_string();
    running.0.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let mut stdout = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert_eq!((code_of(running.0.wait().unwrap()), stdout.as_str()), (0, "hi\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    let text = flow(final_answer("hi"), vec![]).to_string();
    for args in [["check", "-"].as_slice(), &["check", "--json", "-"], &["run", "--json", "-"], &["schema"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = redflow(args.iter().copied()).stdin(text.as_str()).stdout(full).run();
        output.assert_refused("error: cannot write the output: ");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_in_many_pieces_reports_one_error() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    for _ in 0..3 {
        folder.run_ok(["run", "flow.json", "--quiet"]);
    }
    let id = folder.runs()[0]["runId"].as_str().unwrap().to_owned();
    for args in [["runs", "--json"].as_slice(), &["runs", "events", "--json", &id], &["runs", "export", &id]]
    {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = folder.redflow(args.iter().copied()).stdout(full).run();
        output.assert_refused("error: cannot write the output: ");
        assert_eq!(output.stderr.lines().count(), 1, "{args:?}: {output:#?}");
    }
}
