//! `redflow runs cancel` and `resolve`: with and without a process that drives the runs.

use crate::kit::{Folder, Output, final_answer, flow, steady_json};
use crate::stage::{
    Driver, dangerous_flow, interrupted_in_a_call, leave_unanswered, refuse_one, waiting_run,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_store::Store;
use serde_json::{Value, json};

#[track_caller]
fn refused(folder: &Folder, args: &[&str], code: &str) -> Output {
    let output = folder.redflow(args.iter().copied()).run();
    output.refused(&format!("   = help: redflow explain {code}\n"));
    assert_eq!(output.errors(), [code], "{output:#?}");
    output
}

/// Calls and wants it to go well; what it said.
#[track_caller]
fn said(folder: &Folder, args: &[&str]) -> String {
    let output = folder.redflow(args.iter().copied()).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{output:#?}");
    output.stderr
}

fn status(folder: &Folder) -> Value {
    folder.runs()[0]["status"].clone()
}

/// Polls until the run is over: another thread drives it.
#[track_caller]
fn until_over(folder: &Folder) -> Value {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let run = folder.runs().remove(0);
        if run.get("endedAt").is_some() {
            return run;
        }
        assert!(std::time::Instant::now() < deadline, "{run}");
    }
}

#[test]
fn a_run_that_waits_is_shown_with_what_to_do() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = waiting_run(&folder);
    let run = folder.runs().remove(0);
    let call = &run["waiting"];
    assert_eq!(
        steady_json(call.clone()),
        json!({"callId": "…", "tool": "calculator", "iteration": 1, "askedAt": "…", "input": {"expression": "6*7"}})
    );
    let question = question(&run);
    let list = folder.well(["runs"]);
    assert!(
        list.contains("  waiting      a  ") && list.ends_with(&format!("  {question}\n")),
        "{list}{question}"
    );

    let shown = folder.well(["runs", "show", &id]);
    for line in [
        format!("  waits for  {question}\n"),
        format!("if it did:   redflow runs resolve {id} --done\n"),
        "with --result JSON too, if you know what it gave\n".to_owned(),
        format!("if not:      redflow runs resolve {id} --not-done\n"),
        format!("then:        redflow run --resume {id}\n"),
    ] {
        assert!(shown.contains(&line), "{line}{shown}");
    }
    let data = folder.data();
    let shown = folder.well(["runs", "show", &id, "--data", data.to_str().unwrap()]);
    assert!(shown.contains(&format!("--not-done --data {}\n", data.display())), "{shown}");

    // To resume it changes nothing: it still waits.
    for args in [
        ["run", "--resume", &id].as_slice(),
        &["run", "--resume", &id, "flow.json"],
        &["run", "--resume", "all"],
    ] {
        let output = folder.redflow(args.iter().copied()).run();
        assert_eq!(output.code, 3, "{output:#?}");
        assert!(output.stderr.starts_with(&format!("run {id} waits: {question}\n")), "{output:#?}");
        assert!(output.stderr.contains(&format!("redflow runs resolve {id} --not-done\n")), "{output:#?}");
    }
    let output = folder.redflow(["run", "--resume", "all", "--json"]).run();
    let expected = json!({"runId": id, "status": "waiting", "waiting": call, "message": null});
    assert_eq!((output.code, output.json()), (3, expected));
    let output = folder.redflow(["run", "--resume", &id, "--json"]).run();
    assert_eq!((output.code, output.json()), (3, json!({"runId": id, "status": "waiting", "waiting": call})));
    assert_eq!(status(&folder), "waiting");
}

/// What is asked about the call that a run waits for.
fn question(run: &Value) -> String {
    let (call, at) = (&run["waiting"], run["waiting"]["askedAt"].as_u64().unwrap());
    let moment = redflow_contract::iso_time(at).split('.').next().unwrap().to_owned();
    format!(
        "did `calculator` {{\"expression\":\"6*7\"}} happen? call {}, iteration 1, made {moment}Z",
        call["callId"].as_str().unwrap()
    )
}

#[test]
fn a_long_input_is_cut_where_there_is_little_room() {
    let long = format!("1{}", " ".repeat(5000));
    let mut nodes = dangerous_flow();
    nodes[2]["replies"][0]["input"]["expression"] = json!(long);
    let folder = Folder::with_flow(&nodes);
    let id = waiting_run(&folder);
    for (args, whole) in [
        (["runs", "show", &id].as_slice(), true),
        (&["runs", "--json"], true),
        (&["runs"], false),
        (&["run", "--resume", &id], false),
    ] {
        let output = folder.redflow(args.iter().copied()).run();
        let said = output.stdout + &output.stderr;
        assert!(said.contains("calculator") && said.contains("{\"expression\":\"1 "), "{args:?}: {said}");
        assert_eq!(said.contains(&long), whole, "{args:?}: {said}");
        assert!(whole || said.contains("…"), "{args:?}: {said}");
    }
}

#[test]
fn what_is_printed_can_be_pasted() {
    let folder = Folder::with_flow(&dangerous_flow());
    let paste = |text: &str, label: &str| {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(label)).unwrap();
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some("redflow"), "{line}");
        folder.redflow(words).run()
    };
    let id = waiting_run(&folder);
    let output = folder.redflow(["run", "--resume", &id]).run();
    assert_eq!(paste(&output.stderr, "if it did:").code, 0, "{output:#?}");
    let ended = paste(&output.stderr, "then:");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "done\n"), "{ended:#?}");
    assert!(ended.stderr.contains("[debug d] msg.payload: done\n"), "it found its flow: {ended:#?}");
    assert_eq!(folder.runs()[0]["delivered"], true);
}

#[test]
fn an_answer_is_kept_and_the_run_goes_on_when_it_is_resumed() {
    let rows = [
        (["--done"].as_slice(), json!({"output": null, "success": true})),
        (&["--done", "--result", "{\"result\": 42}"], json!({"output": {"result": 42}, "success": true})),
        (&["--not-done"], json!({"error": "the call did not happen: a person says so", "success": false})),
        (
            &["--not-done", "--error", "the bank says no"],
            json!({"error": "the call did not happen: the bank says no", "success": false}),
        ),
    ];
    for (answer, expected) in rows {
        let folder = Folder::with_flow(&dangerous_flow());
        let id = waiting_run(&folder);
        let args: Vec<&str> = ["runs", "resolve", &id].into_iter().chain(answer.iter().copied()).collect();
        assert_eq!(
            said(&folder, &args),
            format!("run {id} is answered; go on with: redflow run --resume {id}\n")
        );
        assert_eq!(status(&folder), "interrupted", "it is not driven any further");
        let second = refused(&folder, &["runs", "resolve", &id, "--done"], "RUN_NOT_WAITING");
        second.refused(&format!("Run {id} has been answered and waits for nothing now: let it go on.\n"));
        second.refused(&format!("   = help: redflow run --resume {id}\n"));

        let output = folder.redflow(["run", "--resume", &id, "flow.json", "--json"]).run();
        assert_eq!(output.code, 0, "{output:#?}");
        let message = crate::kit::port3(&output);
        let call = &message["envelope"]["tools"]["history"][0];
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&call[key], value, "{call}");
        }
        assert!(
            output.stderr.contains("[debug d] msg.payload: done\n"),
            "the wires carry it on: {output:#?}"
        );
        assert_eq!(folder.well(["replay", "--all"]), "1 run: 1 equal, 0 open\n");
        refused(&folder, &["runs", "resolve", &id, "--done"], "RUN_OVER");
    }
}

#[test]
fn answers_that_cannot_be_used() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = waiting_run(&folder);
    let hint = "text needs quotes: --result '\"hello\"'";
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let spaces = " ".repeat(300_000);
    folder.write("large", format!("\"{}\"", "x".repeat(262_144)));
    folder.write("huge", format!("\"{}\"", "x".repeat(5_000_000)));
    folder.write("wide", format!("[1,{spaces}2]"));
    for (result, words) in [
        ("sent", hint),
        ("", hint),
        ("{\"a\": 1} 2", hint),
        ("{\"a\": 1, \"a\": 2}", "the result names a key twice: /a; keep one of each"),
        (&deep, "the result nests deeper than 100 levels; make it flatter"),
        ("@gone", "cannot read the result gone: there is no such file; name a file that can be read"),
        ("@large", "bytes as the run keeps it; the limit is 262144: give only what the model needs of it"),
        ("@huge", "the result has more than 4194304 bytes; give only what is needed of it"),
    ] {
        refused(&folder, &["runs", "resolve", &id, "--done", "--result", result], "RESULT_INVALID")
            .refused(words);
    }
    assert_eq!(status(&folder), "waiting");
    // How many spaces it is typed with does not count.
    said(&folder, &["runs", "resolve", &id, "--done", "--result", "@wide"]);
}

#[test]
fn an_answer_from_standard_input() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = waiting_run(&folder);
    let output =
        folder.redflow(["runs", "resolve", &id, "--done", "--result", "-"]).stdin("\"sent\"\n").run();
    assert_eq!(output.code, 0, "{output:#?}");
    let shown = folder.well(["runs", "show", &id, "--json"]);
    assert!(shown.contains("\"type\":\"tool_returned\"") && shown.contains("\"success\":true"), "{shown}");
}

#[test]
fn runs_that_do_not_wait() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    folder.well(["run", "flow.json"]);
    let id = folder.only_run();
    for args in [
        ["runs", "cancel", &id].as_slice(),
        &["runs", "resolve", &id, "--done"],
        &["runs", "resolve", &id, "--done", "--result", "no json"],
        &["run", "--resume", &id],
        &["run", "--resume", &id, "flow.json"],
    ] {
        let output = refused(&folder, args, "RUN_OVER");
        output.refused(&format!("   = help: redflow runs show {id}\n"));
    }
}

#[test]
fn a_call_that_was_under_way_is_asked_about_when_the_run_is_resumed() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = interrupted_in_a_call(&folder);
    assert_eq!(status(&folder), "interrupted");
    let output = refused(&folder, &["runs", "resolve", &id, "--done"], "RUN_NOT_WAITING");
    output.refused(&format!("Run {id} is interrupted and waits for nothing now: let it go on.\n"));
    output.refused(&format!("   = help: redflow run --resume {id}\n"));

    let output = folder.redflow(["run", "--resume", &id, "flow.json"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (3, ""), "{output:#?}");
    let words = "⏸ waiting: nobody knows whether `calculator` happened: the runtime stopped while the call was \
                 under way\n";
    assert!(output.stderr.contains(words), "{output:#?}");
    let words = format!("\nrun {id} waits: {}\n", question(&folder.runs()[0]));
    assert!(output.stderr.contains(&words), "{output:#?}");
    assert!(output.stderr.contains(&format!("redflow run --resume {id} flow.json\n")), "{output:#?}");
    said(&folder, &["runs", "resolve", &id, "--not-done"]);
    let output = folder.redflow(["run", "--resume", &id]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
}

#[test]
fn scripts_learn_what_was_done() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = waiting_run(&folder);
    let done = |args: &[&str]| {
        let output = folder.redflow(args.iter().copied()).run();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:#?}");
        output.json()
    };
    assert_eq!(
        done(&["runs", "resolve", &id, "--not-done", "--json"]),
        json!({"runId": id, "outcome": "recorded"})
    );
    assert_eq!(done(&["runs", "cancel", &id, "--json"]), json!({"runId": id, "outcome": "cancelled"}));
    let id = interrupted_in_a_call(&folder);
    let output = folder.redflow(["run", "--resume", &id, "--json"]).run();
    let run = folder.runs().remove(0);
    let expected = json!({"runId": id, "status": "waiting", "waiting": run["waiting"]});
    assert_eq!((output.code, output.json()), (3, expected), "a run that came to wait");
    let store = Store::open(&folder.data()).unwrap();
    let cancel = folder.redflow(["runs", "cancel", &id, "--json"]);
    let asked = std::thread::spawn(move || cancel.run());
    leave_unanswered(store);
    assert_eq!(asked.join().unwrap().json(), json!({"runId": id, "outcome": "asked"}));
}

#[test]
fn a_run_is_cancelled_without_a_driver() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = waiting_run(&folder);
    assert_eq!(
        said(&folder, &["runs", "cancel", &id, "--reason", "wrong\u{1b} order"]),
        format!("run {id} is cancelled; its result leaves with the next redflow run --resume {id}\n")
    );
    let run = folder.runs().remove(0);
    assert_eq!([&run["status"], &run["code"]], ["failed", "CANCELLED"]);
    assert_eq!(run["delivered"], false);
    assert!(folder.well(["runs"]).ends_with("CANCELLED  not delivered\n"));
    assert!(folder.well(["runs", "export", &id]).contains("wrong\\u001b order"));
    assert_eq!(folder.well(["replay", "--all"]), "1 run: 1 equal, 0 open\n");
    refused(&folder, &["runs", "cancel", &id], "RUN_OVER");
    // And so it does: to where the wires lead.
    let output = folder.redflow(["run", "--resume", &id]).run();
    assert_eq!((output.code, output.errors()), (1, vec!["CANCELLED"]), "{output:#?}");
    assert!(output.stderr.contains("[debug d] msg.payload: {\"code\":\"CANCELLED\""), "{output:#?}");
    assert_eq!(folder.runs()[0]["delivered"], true);

    let id = interrupted_in_a_call(&folder);
    said(&folder, &["runs", "cancel", &id]);
    let run = folder.runs().remove(0);
    assert_eq!([&run["runId"], &run["status"], &run["code"]], [id.as_str(), "failed", "CANCELLED"]);
}

#[test]
fn the_process_that_drives_the_runs_is_asked() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = waiting_run(&folder);
    let driver = Driver::start(&folder);
    let words = format!("run {id} is answered and goes on in the process that drives it\n");
    assert_eq!(said(&folder, &["runs", "resolve", &id, "--done", "--result", "42"]), words);
    let run = until_over(&folder);
    assert_eq!([&run["status"], &run["delivered"]], [&json!("completed"), &json!(true)], "{run}");
    drop(driver);

    folder.well(["runs", "prune", "--keep", "0"]);
    let id = waiting_run(&folder);
    let driver = Driver::start(&folder);
    let words = format!("run {id} is cancelled by the process that drives it\n");
    assert_eq!(said(&folder, &["runs", "cancel", &id]), words);
    assert_eq!(until_over(&folder)["code"], "CANCELLED");
    drop(driver);
    assert_eq!(folder.well(["replay", "--all"]), "1 run: 1 equal, 0 open\n");
}

#[test]
fn a_request_that_nobody_answers_is_left_for_the_next() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = waiting_run(&folder);
    let store = Store::open(&folder.data()).unwrap();
    let cancel = folder.redflow(["runs", "cancel", &id]);
    let asked = std::thread::spawn(move || cancel.run());
    leave_unanswered(store);
    let output = asked.join().unwrap();
    let words = format!("the request is left for run {id}: whoever drives the runs next will do it\n");
    assert_eq!((output.code, output.stderr), (0, words));
    assert_eq!(status(&folder), "waiting");
    let driver = Driver::start(&folder);
    assert_eq!(until_over(&folder)["code"], "CANCELLED");
    drop(driver);
}

#[test]
fn what_the_driver_refuses_is_refused() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = waiting_run(&folder);
    let store = Store::open(&folder.data()).unwrap();
    let resolve = folder.redflow(["runs", "resolve", &id, "--done"]);
    let asked = std::thread::spawn(move || resolve.run());
    refuse_one(&store, StoreCode::RunNotWaiting);
    let output = asked.join().unwrap();
    output.refused("error[RUN_NOT_WAITING]: The process that drives the runs refused: ");
    output.refused(&format!("   = help: redflow runs show {id}\n"));
}
