//! Removing, copying and replaying stored runs.

use crate::kit::{Folder, final_answer, flow};
use crate::live_command::LiveCommand;
use crate::prepared_runs::{add_invalid_runs, at_most_once_flow, waiting_run};
use pretty_assertions::{assert_eq, assert_ne};
use rusqlite::{Connection, Row, TransactionBehavior};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn folder_with_runs(number: usize) -> Folder {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    for _ in 0..number {
        folder.run_ok(["run", "flow.json", "--quiet"]);
    }
    folder
}

fn prune(folder: &Folder, args: &[&str]) -> Value {
    let args = ["runs", "prune", "--json"].into_iter().chain(args.iter().copied());
    serde_json::from_str(&folder.run_ok(args)).unwrap()
}

#[test]
fn old_runs_are_removed() {
    let folder = folder_with_runs(3);
    let newest = folder.runs()[0].clone();
    let dry = prune(&folder, &["--keep", "1", "--dry-run"]);
    assert_eq!((&dry["runs"], &dry["dryRun"], folder.runs().len()), (&json!(2), &json!(true), 3));
    let text = folder.run_ok(["runs", "prune", "--keep", "1", "--dry-run"]);
    assert_eq!(text, "2 runs would be removed; nothing was\n");

    let report = prune(&folder, &["--older-than", "1h"]);
    assert_eq!((&report["runs"], folder.runs().len()), (&json!(0), 3));
    let report = prune(&folder, &["--older-than", "1h", "--keep", "0"]);
    assert_eq!(report["runs"], 0, "both must hold");

    let report = prune(&folder, &["--keep", "1"]);
    assert_eq!((&report["runs"], folder.runs()), (&json!(2), vec![newest]));
    assert!(report["bytesAfter"].as_u64().unwrap() <= report["bytesBefore"].as_u64().unwrap(), "{report}");
    let text = folder.run_ok(["runs", "prune", "--keep", "0"]);
    assert!(text.starts_with("1 run removed; ") && text.ends_with(" left\n"), "{text}");
    assert_eq!(folder.runs(), [] as [Value; 0]);
    assert!(folder.run_ok(["runs", "prune", "--older-than", "0s"]).starts_with("0 runs removed"));
}

#[test]
fn runs_are_counted_again() {
    let folder = folder_with_runs(2);
    let before = folder.runs();
    assert!(before[0]["tally"]["inputTokens"].as_u64().unwrap() > 0, "{before:?}");
    let report: Value = serde_json::from_str(&folder.run_ok(["runs", "recount", "--json"])).unwrap();
    assert_eq!(report, json!({"runs": 2, "unreadable": 0, "days": 1, "keptDays": 0}));
    assert_eq!(folder.runs(), before);
    assert_eq!(folder.run_ok(["runs", "recount"]), "2 runs counted; the sums of 1 day are new\n");
    prune(&folder, &["--keep", "1"]);
    let text = folder.run_ok(["runs", "recount"]);
    assert_eq!(
        text,
        "1 run counted; the sums of 0 days are new\n1 day stays as before, because some of its runs were removed\n"
    );
}

/// A writer of the test holds the database in the middle of the recount, so Ctrl-C arrives before its end.
#[cfg(unix)]
#[test]
fn ctrl_c_stops_a_recount_and_leaves_the_sums() {
    let folder = folder_with_runs(2);
    let runs = folder.runs();
    let mut database = Connection::open(folder.data().join("redflow.db")).unwrap();
    let sums = |database: &Connection| -> Vec<(i64, i64, i64)> {
        let mut rows = database.prepare("SELECT day, runs, input FROM usage ORDER BY day, model").unwrap();
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        rows.query_map([], row).unwrap().map(Result::unwrap).collect()
    };
    let right = sums(&database);
    database.execute_batch("UPDATE runs SET tally = NULL; UPDATE usage SET input = 999").unwrap();
    let wrong = sums(&database);
    assert_ne!(wrong, right);

    let holder = database.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let mut recount = LiveCommand::start(folder.redflow(["runs", "recount"]), "");
    // The command listens for signals before it takes the lock, which has its process id.
    let id = format!("{}\n", recount.running.0.id());
    let ends = Instant::now() + Duration::from_secs(60);
    while std::fs::read_to_string(folder.data().join("lock")).unwrap_or_default() != id {
        assert!(Instant::now() < ends, "the recount does not begin");
        std::thread::yield_now();
    }
    recount.signal("-INT");
    recount.wait_for("cancelling");
    holder.rollback().unwrap();
    let output = recount.end();
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:#?}");
    assert!(output.stderr.contains("stopped; the sums are as before\n"), "{output:#?}");
    assert_eq!(sums(&database), wrong);

    assert_eq!(folder.run_ok(["runs", "recount"]), "2 runs counted; the sums of 1 day are new\n");
    assert_eq!((sums(&database), folder.runs()), (right, runs));
    folder.run_ok(["replay", "--all"]);
}

#[test]
fn unfinished_runs_are_never_removed() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = waiting_run(&folder);
    assert_eq!(prune(&folder, &["--keep", "0", "--older-than", "0s", "--undelivered"])["runs"], 0);
    assert_eq!(folder.only_run(), id);
}

#[test]
fn a_backup_can_be_used_as_a_data_directory() {
    let folder = folder_with_runs(2);
    let before = folder.run_ok(["runs", "--json"]);
    let output = folder.redflow(["backup", "copy.db"]).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:#?}");
    assert!(output.stdout.starts_with("2 runs copied into copy.db: "), "{output:#?}");
    std::fs::create_dir(folder.path("restored")).unwrap();
    std::fs::copy(folder.path("copy.db"), folder.path("restored/redflow.db")).unwrap();
    assert_eq!(folder.run_ok(["runs", "--json", "--data", "restored"]), before);
    let replayed = folder.run_ok(["replay", "--all", "--data", "restored"]);
    assert_eq!(replayed, "2 runs: 2 equal, 0 open\n");
    folder.run_ok(["run", "flow.json", "--data", "restored"]);
    assert_eq!(folder.runs().len(), 2);

    let report: Value = serde_json::from_str(&folder.run_ok(["backup", "--json", "two.db"])).unwrap();
    assert_eq!((&report["file"], &report["runs"]), (&json!("two.db"), &json!(2)));
    assert_eq!(report["bytes"], std::fs::metadata(folder.path("two.db")).unwrap().len());
}

#[test]
fn a_backup_never_overwrites_a_file() {
    let folder = folder_with_runs(1);
    folder.write("mine", "mine");
    let inside = folder.data().join("copy").display().to_string();
    for (path, words) in [
        ("mine", "mine exists already: name a file that does not.\n"),
        (".", "exists already: name a file that does not.\n"),
        ("gone/copy", "cannot be made ("),
        ("mine/below", "cannot be made ("),
        (&inside, "lies in the data directory itself: name a file outside of it.\n"),
    ] {
        let output = folder.redflow(["backup", path]).run();
        output.assert_refused(words);
        output.assert_refused("   = help: redflow explain DATA_UNUSABLE\n");
        // The error is not about the data directory.
        assert!(!output.stderr.contains("another data directory"), "{output:#?}");
    }
    assert_eq!(folder.read("mine"), "mine");
    assert_eq!(folder.files().len(), 2, "nothing is left half-way: {:?}", folder.files());
    let nothing = Folder::new();
    let output = nothing.redflow(["backup", "copy"]).run();
    output.assert_refused("so there is nothing to copy");
    assert!(!nothing.path("copy").exists());
}

/// More runs than a thread takes at once. Their problems come in the order of the runs.
#[test]
fn many_runs_are_replayed_in_order() {
    let folder = folder_with_runs(1);
    let ids: Vec<String> = (0..200).map(|number| format!("r{number:03}")).collect();
    add_invalid_runs(&folder, &ids);
    let output = folder.redflow(["replay", "--all", "--json"]).run();
    assert_eq!(output.code, 1, "{output:#?}");
    let json = output.json();
    let problems = json["differences"].as_array().unwrap().iter().map(|problem| problem["runId"].clone());
    let mut problems: Vec<String> = problems.map(|id| id.as_str().unwrap().to_owned()).collect();
    let listed = problems.clone();
    problems.sort_unstable();
    assert_eq!(problems, ids);
    assert!(listed == ids || listed.iter().rev().eq(&ids), "{listed:?}");
    assert_eq!((&json["runs"], &json["equal"], &json["different"]), (&json!(201), &json!(1), &json!(200)));
}

#[test]
fn all_runs_are_replayed() {
    let folder = folder_with_runs(2);
    let json = |folder: &Folder| {
        let output = folder.redflow(["replay", "--all", "--json"]).run();
        assert_eq!(output.code, 0, "{output:#?}");
        output.json()
    };
    let counts = |runs: u32, equal: u32, open: u32| json!({"runs": runs, "equal": equal, "open": open, "different": 0, "corrupt": 0, "differences": []});
    assert_eq!(folder.run_ok(["replay", "--all"]), "2 runs: 2 equal, 0 open\n");
    assert_eq!(json(&folder), counts(2, 2, 0));
    // A run that has not ended is no difference.
    folder.write("flow.json", at_most_once_flow().to_string());
    let id = waiting_run(&folder);
    assert_eq!(json(&folder), counts(3, 2, 1));
    let open = folder.run_ok(["replay", &id]);
    assert!(
        open.starts_with("open: 3 facts and 2 effects of run ") && open.ends_with("so far; it is waiting\n"),
        "{open}"
    );
    let report: Value = serde_json::from_str(&folder.run_ok(["replay", &id, "--json"])).unwrap();
    assert_eq!([&report["equal"], &report["open"]], [false, true]);
    assert_eq!(json(&Folder::new()), counts(0, 0, 0));
}
