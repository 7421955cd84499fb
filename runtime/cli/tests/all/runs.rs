//! `redflow runs`: stored runs are listed, shown, exported and replayed.

use crate::kit::{Folder, Output, check_schema, final_answer, flow, flow_with, normalize};
use crate::prepared_runs::{at_most_once_flow, damage, forge, interrupted_run, repeatable_flow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

fn loop_flow() -> Value {
    let call = |text: &str| json!({"action": "tool", "tool": "calculator", "input": {"expression": text}, "confidence": 0.5});
    let end = json!({"action": "final", "message": "done\u{1b}[31m", "confidence": 1});
    flow(json!([call("6*7"), call("1/0"), end]), vec![])
}

/// Also replaces times and durations.
fn normalize_times(text: &str) -> String {
    let is_moment = |word: &str| word.len() == 20 && word.ends_with('Z') && word.contains('T');
    let is_seconds = |word: Option<&&str>, next: Option<&&str>| {
        next.is_some_and(|unit| *unit == "s") && word.is_some_and(|word| word.parse::<f64>().is_ok())
    };
    let mut out = String::new();
    for line in normalize(text).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        for (place, word) in words.iter().enumerate() {
            let plain = word.trim_end_matches(',');
            out += &match plain {
                // A slow machine needs seconds instead of milliseconds.
                _ if is_seconds(words.get(place), words.get(place + 1)) => "N".to_owned(),
                "s" if place > 0 && is_seconds(words.get(place - 1), words.get(place)) => "ms".to_owned(),
                plain if is_moment(plain) => word.replace(plain, "TIME"),
                _ => (*word).to_owned(),
            };
            out.push(if place + 1 == words.len() { '\n' } else { ' ' });
        }
    }
    out
}

#[test]
fn every_run_is_stored_and_listed() {
    let folder = Folder::with_flow(&loop_flow());
    folder.write("bad.json", flow_with(json!(["prose"]), "a", json!({"name": "\u{1b}[2JBad"})).to_string());
    folder.run_ok(["run", "flow.json"]);
    assert_eq!(folder.redflow(["run", "bad.json"]).run().code, 1);

    let output = folder.redflow(["runs"]).run();
    insta::assert_snapshot!(normalize_times(&output.stdout));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(folder.run_ok(["runs", "list"]), output.stdout);
    let runs = folder.runs();
    for run in &runs {
        serde_json::from_value::<redflow_contract::run::RunSummary>(run.clone()).unwrap();
    }
    let rows: Vec<[&Value; 4]> =
        runs.iter().map(|run| [&run["name"], &run["status"], &run["code"], &run["delivered"]]).collect();
    assert_eq!(
        rows,
        [
            [&json!("\u{1b}[2JBad"), &json!("failed"), &json!("INVALID_JSON"), &json!(true)],
            [&json!("a"), &json!("completed"), &Value::Null, &json!(true)],
        ]
    );
}

#[test]
fn lists_are_filtered_and_limited() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    folder.write("bad.json", flow(json!(["prose"]), vec![]).to_string());
    for _ in 0..3 {
        folder.run_ok(["run", "flow.json"]);
    }
    folder.redflow(["run", "bad.json"]).run();
    let list = |args: &[&str]| {
        let output = folder.redflow(["runs", "--json"].into_iter().chain(args.iter().copied())).run();
        assert_eq!(output.code, 0, "{output:#?}");
        (output.stdout.lines().count(), output.stderr)
    };
    let cut = "there are more; --limit N lists them\n".to_owned();
    assert_eq!(list(&[]), (4, String::new()));
    assert_eq!(list(&["--limit", "4"]), (4, String::new()));
    assert_eq!(list(&["--limit", "3"]), (3, cut.clone()));
    assert_eq!(list(&["--status", "failed"]), (1, String::new()));
    assert_eq!(list(&["--status", "completed", "--limit", "2"]), (2, cut));
    assert_eq!(list(&["--status", "completed", "--status", "failed"]), (4, String::new()));
    let (none, note) = list(&["--status", "waiting"]);
    assert!(none == 0 && note.starts_with("no runs of this status in "), "{note}");
    assert_eq!(list(&["--agent", "a", "--status", "failed"]), (1, String::new()));
    assert_eq!(list(&["--since", "1h", "--roots"]), (4, String::new()));
    assert_eq!(list(&["--code", "INVALID_JSON", "--prefix", "0"]), (1, String::new()));
    for filter in [["--until", "1h"], ["--code", "TIMEOUT"], ["--prefix", "zz"]] {
        let (none, note) = list(&filter);
        assert!(none == 0 && note.starts_with("no runs that match in "), "{note}");
    }
    let (none, note) = list(&["--agent", "nobody"]);
    assert!(none == 0 && note.starts_with("no runs of this agent in "), "{note}");
}

#[test]
fn an_empty_list_is_no_error() {
    let folder = Folder::new();
    for args in [["runs"].as_slice(), &["runs", "list"], &["runs", "--json"]] {
        let output = folder.redflow(args.iter().copied()).run();
        assert_eq!((output.code, output.stdout.as_str()), (0, ""));
        assert!(output.stderr.starts_with("no runs in "), "{output:#?}");
    }
    std::fs::create_dir(folder.data()).unwrap();
    assert_eq!(folder.redflow(["runs"]).run().code, 0);
}

#[test]
fn a_run_is_shown() {
    let folder = Folder::with_flow(&loop_flow());
    let live = folder.redflow(["run", "flow.json"]).run();
    let id = folder.only_run();
    let output = folder.redflow(["runs", "show", &id]).run();
    insta::assert_snapshot!(normalize_times(&without_path(&folder, &output.stdout)));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));

    // The events equal the live timeline, line by line.
    let events = folder.run_ok(["runs", "events", &id]);
    let seen: Vec<&str> = live.stderr.lines().filter(|line| !line.starts_with("[debug")).collect();
    assert_eq!(events.lines().collect::<Vec<_>>(), seen);

    let detail: Value = serde_json::from_str(&folder.run_ok(["runs", "show", &id, "--json"])).unwrap();
    let keys: Vec<&str> = detail.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["summary", "events", "calls", "result"]);
    let mut calls = detail["calls"].clone();
    for call in calls.as_array_mut().unwrap() {
        let call = call.as_object_mut().unwrap();
        let started = call.remove("startedAt").unwrap();
        assert!(started.as_u64() >= detail["summary"]["startedAt"].as_u64(), "{started}");
        assert!(call.remove("durationMs").unwrap().is_u64());
    }
    assert_eq!(
        calls,
        json!([
            {"iteration": 1, "callId": format!("{id}:1"), "tool": "calculator", "input": {"expression": "6*7"},
             "effect": "read", "tries": 1,
             "result": {"success": true, "output": {"result": 42, "expression": "6*7"}}},
            {"iteration": 2, "callId": format!("{id}:2"), "tool": "calculator", "input": {"expression": "1/0"},
             "effect": "read", "tries": 1,
             "result": {"success": false, "error": "Calculation error: Division by zero at character 2: use a \
                        divisor or base other than zero"}},
        ])
    );
    assert_eq!(detail["summary"], folder.runs()[0]);
    assert_eq!(detail["result"]["payload"], "done\u{1b}[31m");
    check_schema("agent-output", &detail["result"]);
    let lines = folder.run_ok(["runs", "events", &id, "--json"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(detail["events"], json!(lines));
    for (place, event) in lines.iter().enumerate() {
        check_schema("run-event", event);
        assert_eq!(event["seq"], place + 1);
    }
}

#[test]
fn a_failed_run_is_shown() {
    let folder = Folder::with_flow(&flow(json!(["prose"]), vec![]));
    folder.redflow(["run", "flow.json"]).run();
    let output = folder.redflow(["runs", "show", &folder.only_run()]).run();
    insta::assert_snapshot!(normalize_times(&without_path(&folder, &output.stdout)));
    assert_eq!(output.code, 0, "a failed run is no failure of the command");
}

/// Replaces the path of the folder.
fn without_path(folder: &Folder, text: &str) -> String {
    text.replace(folder.path("").canonicalize().unwrap().to_str().unwrap(), "FOLDER")
}

#[test]
fn calls_are_cut_in_text_and_complete_in_json() {
    let long = format!("1{}", " + 1".repeat(100));
    let call = |text: &str| json!({"action": "tool", "tool": "calculator", "input": {"expression": text}, "confidence": 0.5});
    let refused = json!({"action": "tool", "tool": "shell", "input": {"run": "rm"}, "confidence": 0.5});
    let folder = Folder::with_flow(&flow_with(json!([call(&long), refused]), "a", json!({"debug": true})));
    assert_eq!(folder.redflow(["run", "flow.json"]).run().errors(), ["TOOL_NOT_ALLOWED"]);
    let id = folder.only_run();
    let detail = folder.run_ok(["runs", "show", &id]);
    let lines: Vec<&str> = detail.lines().map(str::trim_start).collect();
    let cut = |text: &str| lines.iter().filter(|line| line.starts_with(text)).count();
    assert_eq!((cut("{\"expression\":\"1 + 1"), cut("{\"result\":101")), (1, 1), "once each: {detail}");
    assert!(!detail.contains(&long) && detail.contains("…\n"), "{detail}");
    // A refused call is not listed.
    let detail = folder.redflow(["runs", "show", &id, "--json"]).run().json();
    let calls = detail["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["input"]["expression"]), (1, &json!(long)), "{detail}");
}

#[test]
fn a_call_without_a_result_is_printed_without_one() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = interrupted_run(&folder);
    let detail = |folder: &Folder| {
        let mut calls = folder.redflow(["runs", "show", &id, "--json"]).run().json()["calls"].clone();
        let call = calls[0].as_object_mut().unwrap();
        assert!(call.remove("startedAt").unwrap().is_u64());
        // Only a call that has ended took a time. A person tried nothing, so the tries stay unknown.
        assert_eq!(call.remove("durationMs").is_some(), !call["result"].is_null());
        calls
    };
    let call = |result: Value| {
        let (call, input) = (format!("{id}:1"), json!({"expression": "6*7"}));
        json!([{"iteration": 1, "callId": call, "tool": "calculator", "input": input, "result": result,
                "effect": "at_most_once"}])
    };
    assert_eq!(detail(&folder), call(Value::Null));
    assert_eq!(folder.redflow(["run", "--resume", &id]).run().code, 3);
    assert_eq!(detail(&folder), call(Value::Null));
    folder.run_ok(["runs", "resolve", &id, "--done", "--result", "[42]"]);
    assert_eq!(detail(&folder), call(json!({"success": true, "output": [42]})));
    let text = folder.run_ok(["runs", "show", &id]);
    assert!(text.contains("└ calculator ok") && text.contains("\n       [42]\n"), "{text}");
}

#[test]
fn the_exported_journal_is_the_recorded_one() {
    let folder = Folder::with_flow(&loop_flow());
    folder.run_ok(["run", "flow.json", "--journal", "j"]);
    let id = folder.only_run();
    let journal = folder.run_ok(["runs", "export", &id]);
    assert_eq!(journal, folder.read("j"));
    folder.write("exported", &journal);
    let (file, stored) = (folder.run_ok(["replay", "exported"]), folder.run_ok(["replay", &id]));
    assert!(file.starts_with("equal: ") && file == stored, "{file}{stored}");
    assert_eq!(folder.run_ok(["replay", "exported", "--json"]), folder.run_ok(["replay", &id, "--json"]));
    assert_eq!(folder.redflow(["replay", "-"]).stdin(journal).run().stdout, file);
    // A file with that name has priority.
    folder.write(&id, "no journal");
    assert_eq!(folder.redflow(["replay", &id]).run().code, 1);
}

/// All commands about one run.
fn commands(id: &str) -> Vec<Vec<&str>> {
    let all: [&[&str]; 9] = [
        &["runs", "show", id],
        &["runs", "show", id, "--json"],
        &["runs", "events", id],
        &["runs", "export", id],
        &["runs", "cancel", id],
        &["runs", "resolve", id, "--done"],
        &["runs", "resolve", id, "--not-done"],
        &["run", "--resume", id],
        &["run", "--resume", id, "flow.json"],
    ];
    all.map(<[&str]>::to_vec).to_vec()
}

#[test]
fn an_unknown_run_is_refused() {
    let folder = Folder::with_flow(&loop_flow());
    folder.run_ok(["run", "flow.json"]);
    folder.run_ok(["run", "flow.json", "--data", "my data"]);
    let long = "0197".repeat(2000);
    for id in ["0197", "\u{1b}[31m", "' OR 1=1 --", "ALL", &long] {
        for args in commands(id) {
            let output = folder.redflow(args.iter().copied()).run();
            output.assert_refused("No run ");
            output.assert_refused(
                "   = help: list the runs: redflow runs\n   = help: redflow explain RUN_UNKNOWN\n",
            );
            assert_eq!(output.errors(), ["RUN_UNKNOWN"], "{output:#?}");
            assert_eq!(output.stderr.find('\u{1b}'), None);
            // The printed command names the same directory.
            let output = folder.redflow(args.iter().copied().chain(["--data", "my data"])).run();
            let word = if cfg!(windows) { "\"my data\"" } else { "'my data'" };
            output.assert_refused(&format!("   = help: list the runs: redflow runs --data {word}\n"));
        }
    }
    let output = folder.redflow(["replay", &long]).run();
    output.assert_refused("   = help: list the runs: redflow runs\n");
}

#[test]
fn an_empty_id_is_refused() {
    let folder = Folder::with_flow(&loop_flow());
    folder.run_ok(["run", "flow.json"]);
    for args in commands("") {
        let output = folder.redflow(args.iter().copied()).run();
        output.assert_refused("error[RUN_UNKNOWN]: The id of the run is empty: give the id of a run.\n");
    }
    folder.redflow(["replay", ""]).run().assert_refused("a value is required for '[JOURNAL|RUN]'");
}

#[test]
fn a_damaged_run_is_printed_with_its_damage() {
    let folder = Folder::with_flow(&loop_flow());
    folder.run_ok(["run", "flow.json"]);
    let id = folder.only_run();
    let whole = folder.run_ok(["runs", "events", &id]);
    damage(&folder, "Division by zero");

    let output = folder.redflow(["runs", "show", &id]).run();
    assert_eq!((output.code, output.errors()), (1, vec!["DATA_CORRUPT"]), "{output:#?}");
    insta::assert_snapshot!(normalize_times(&without_path(
        &folder,
        &format!("{}---\n{}", output.stdout, output.stderr)
    )));
    let output = folder.redflow(["runs", "events", &id]).run();
    assert_eq!((output.code, output.errors()), (1, vec!["DATA_CORRUPT"]), "{output:#?}");
    assert!(!output.stdout.is_empty() && whole.starts_with(&output.stdout), "the intact part: {output:#?}");
    assert!(output.stdout != whole);
    let output = folder.redflow(["runs", "show", &id, "--json"]).run();
    let detail = (output.code, output.stderr.as_str(), output.json());
    assert_eq!((detail.0, detail.1, &detail.2["problem"]["code"]), (1, "", &json!("DATA_CORRUPT")));
    assert_eq!((&detail.2["summary"]["status"], &detail.2["result"]), (&json!("damaged"), &Value::Null));
    // A part of a journal could be taken for all of it.
    let output = folder.redflow(["runs", "export", &id]).run();
    assert_eq!((output.code, output.stdout.as_str(), output.errors()), (1, "", vec!["DATA_CORRUPT"]));

    let output = folder.redflow(["replay", &id]).run();
    assert_eq!((output.code, output.errors()), (1, vec!["DATA_CORRUPT"]), "{output:#?}");
    let words = format!("of run {id} replay byte for byte; the rest has changed since it was written\n");
    assert!(output.stdout.starts_with("damaged: ") && output.stdout.ends_with(&words), "{output:#?}");
    let output = folder.redflow(["replay", &id, "--json"]).run();
    let report = output.json();
    assert_eq!((output.code, output.stderr.as_str()), (1, ""));
    assert_eq!((&report["equal"], &report["problem"]["code"]), (&json!(false), &json!("DATA_CORRUPT")));
    assert!(report["facts"].as_u64().unwrap() > 0, "{report}");

    let output = folder.redflow(["replay", "--all"]).run();
    assert_eq!(output.code, 1);
    assert!(output.stdout.starts_with(&format!("corrupt: run {id}: ")), "{output:#?}");
    assert!(output.stdout.ends_with("\n1 run: 0 equal, 0 open, 1 corrupt\n"), "{output:#?}");
    assert_eq!(folder.runs().len(), 1, "others can be listed still");
}

#[test]
fn a_damaged_run_is_neither_driven_nor_changed() {
    let folder = Folder::with_flow(&repeatable_flow("done", "out"));
    let damaged = interrupted_run(&folder);
    damage(&folder, "model_answered");
    let sound = interrupted_run(&folder);
    let before = std::fs::read(folder.data().join("redflow.db")).unwrap();
    let assert_hints = |output: &Output| {
        for help in [
            format!("   = help: replay the intact part: redflow replay {damaged}\n"),
            "   = help: remove damaged runs: redflow runs prune --damaged\n".to_owned(),
        ] {
            assert!(output.stderr.contains(&help), "{help}{output:#?}");
        }
        assert!(!output.stderr.contains("nothing is lost"), "{output:#?}");
        assert!(!output.stderr.contains(&format!("{damaged} continues")), "{output:#?}");
    };
    for args in [
        ["runs", "cancel", &damaged].as_slice(),
        &["runs", "resolve", &damaged, "--done"],
        &["run", "--resume", &damaged],
        &["run", "--resume", &damaged, "flow.json"],
    ] {
        let output = folder.redflow(args.iter().copied()).run();
        assert_eq!((output.code, output.errors()), (2, vec!["DATA_CORRUPT"]), "{args:?}: {output:#?}");
        assert_eq!(output.stdout, "");
        assert_hints(&output);
    }
    assert_eq!(std::fs::read(folder.data().join("redflow.db")).unwrap().len(), before.len());

    let output = folder.redflow(["run", "--resume", "all"]).run();
    assert_eq!((output.code, output.errors()), (2, vec!["DATA_CORRUPT"]), "{output:#?}");
    assert_eq!(output.stdout, format!("{damaged}  damaged\n{sound}  completed    done\n"));
    assert_hints(&output);

    let dry = folder.run_ok(["runs", "prune", "--damaged", "--dry-run"]);
    assert_eq!((dry.as_str(), folder.runs().len()), ("1 run (1 damaged) would be removed; nothing was\n", 2));
    let report: Value =
        serde_json::from_str(&folder.run_ok(["runs", "prune", "--damaged", "--json"])).unwrap();
    assert_eq!((&report["runs"], &report["damaged"]), (&json!(1), &json!(1)));
    assert_eq!(folder.only_run(), sound);
}

#[test]
fn a_forged_journal_is_printed_up_to_the_difference() {
    let folder = Folder::with_flow(&loop_flow());
    folder.run_ok(["run", "flow.json"]);
    let id = folder.only_run();
    let journal = folder.run_ok(["runs", "export", &id]);
    let digest = journal.rsplit("\"digest\":\"").next().unwrap().split('"').next().unwrap().to_owned();
    forge(&folder, &journal.replace(&digest, &"0".repeat(64)));

    let output = folder.redflow(["runs", "show", &id]).run();
    assert_eq!(output.code, 1, "{output:#?}");
    assert!(output.stdout.contains("   1 tool   calculator "), "the intact part is printed: {output:#?}");
    let words = "the journal is damaged from here on\ndifferent: line 15: The journal has an output";
    assert!(output.stderr.starts_with(words), "{output:#?}");
    let detail = folder.redflow(["runs", "show", &id, "--json"]).run();
    assert_eq!((detail.code, detail.stderr.as_str()), (1, ""));
    let detail = detail.json();
    assert_eq!((&detail["difference"]["what"], &detail["result"]), (&json!("output"), &Value::Null));
    let events = folder.redflow(["runs", "events", &id, "--json"]).run();
    assert_eq!((events.code, events.stdout.lines().count()), (1, detail["events"].as_array().unwrap().len()));

    for args in [["replay", &id].as_slice(), &["replay", "--all"]] {
        let output = folder.redflow(args.iter().copied()).run();
        let words = format!("different: line 15 of run {id}: ");
        assert!(output.code == 1 && output.stdout.starts_with(&words), "{output:#?}");
    }
    let all = folder.redflow(["replay", "--all", "--json"]).run();
    let all = (all.code, all.json());
    assert_eq!((all.0, &all.1["different"], &all.1["equal"]), (1, &json!(1), &json!(0)));
    assert_eq!(
        [&all.1["differences"][0]["runId"], &all.1["differences"][0]["difference"]["what"]],
        [id.as_str(), "output"]
    );
}
