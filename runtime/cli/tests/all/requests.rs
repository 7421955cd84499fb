//! `redflow runs cancel` and `resolve`: with and without a process that drives the runs.

use crate::kit::{Folder, Output, final_answer, flow, normalize_json};
use crate::prepared_runs::{
    Driver, at_most_once_flow, ignore_request, interrupted_run, refuse_request, waiting_run,
};
use pretty_assertions::assert_eq;
use redflow_contract::code::StoreCode;
use redflow_store::Store;
use serde_json::{Value, json};

#[track_caller]
fn assert_error(folder: &Folder, args: &[&str], code: &str) -> Output {
    let output = folder.redflow(args.iter().copied()).run();
    output.assert_refused(&format!("   = help: redflow explain {code}\n"));
    assert_eq!(output.errors(), [code], "{output:#?}");
    output
}

/// Calls, expects success without output, and gives the notes on stderr.
#[track_caller]
fn run_note(folder: &Folder, args: &[&str]) -> String {
    let output = folder.redflow(args.iter().copied()).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{output:#?}");
    output.stderr
}

fn status(folder: &Folder) -> Value {
    folder.runs()[0]["status"].clone()
}

/// Polls until the run has ended: another thread drives it.
#[track_caller]
fn wait_until_ended(folder: &Folder) -> Value {
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
fn a_waiting_run_is_printed_with_the_commands_to_answer_it() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = waiting_run(&folder);
    let run = folder.runs().remove(0);
    let call = &run["waiting"];
    assert_eq!(
        normalize_json(call.clone()),
        json!({"callId": "…", "tool": "calculator", "iteration": 1, "askedAt": "…", "input": {"expression": "6*7"}})
    );
    let question = question(&run);
    let list = folder.run_ok(["runs"]);
    assert!(
        list.contains("  waiting      a  ") && list.ends_with(&format!("  {question}\n")),
        "{list}{question}"
    );

    let text = folder.run_ok(["runs", "show", &id]);
    for line in [
        format!("  waits for  {question}\n"),
        format!("if it did:   redflow runs resolve {id} --done\n"),
        "add --result JSON if you know its result\n".to_owned(),
        format!("if not:      redflow runs resolve {id} --not-done\n"),
        format!("then:        redflow run --resume {id}\n"),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
    let data = folder.data();
    let text = folder.run_ok(["runs", "show", &id, "--data", data.to_str().unwrap()]);
    assert!(text.contains(&format!("--not-done --data {}\n", data.display())), "{text}");

    // A resume changes nothing: the run still waits.
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

/// An AI Agent with two parallel calls that must not be made twice.
fn two_calls_flow() -> Value {
    let call = |text: &str| json!({"name": "calculator", "arguments": {"expression": text}});
    let replies = json!([{"toolCalls": [call("6*7"), call("1+1")]}, "done"]);
    json!([
        {"id": "t", "type": "tab"},
        {"id": "i", "z": "t", "type": "inject", "name": "", "props": [{"p": "payload"}], "payload": "go",
         "payloadType": "str", "wires": [["a"]]},
        {"id": "a", "z": "t", "type": "ai-agent", "name": "a", "model": "m", "tools": ["c"], "wires": [[], []]},
        {"id": "m", "z": "t", "type": "scripted-model", "name": "", "replies": replies, "wires": []},
        {"id": "c", "z": "t", "type": "calculator-tool", "name": "", "effect": "at_most_once", "wires": []},
    ])
}

#[test]
fn several_questions_are_shown_and_answered_one_by_one() {
    let folder = Folder::with_flow(&two_calls_flow());
    let id = waiting_run(&folder);
    let run = folder.runs().remove(0);
    let calls: Vec<&str> =
        run["questions"].as_array().unwrap().iter().map(|call| call["callId"].as_str().unwrap()).collect();
    assert_eq!(calls.len(), 2);
    let list = folder.run_ok(["runs"]);
    assert!(list.contains(calls[0]) && list.ends_with("  and 1 more question\n"), "{list}");
    let text = folder.run_ok(["runs", "show", &id]);
    assert_eq!(text.matches("  waits for  did `calculator`").count(), 2, "{text}");
    for part in [r#"{"expression":"6*7"}"#, r#"{"expression":"1+1"}"#, &format!("--done --call {}", calls[0])]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let output = folder.redflow(["runs", "resolve", &id, "--done"]).run();
    let names_both = calls.iter().all(|call| output.stderr.contains(call));
    assert!(output.code != 0 && output.stderr.contains("RUN_NOT_WAITING") && names_both, "{output:#?}");

    let resolve = ["runs", "resolve", &id, "--done", "--result", "2", "--call", calls[1]];
    let output = folder.redflow(resolve).run();
    let left = format!("run {id} still has 1 question: redflow runs show {id}\n");
    assert_eq!((output.code, output.stderr), (0, left));
    let output = folder.redflow(resolve).run();
    assert!(output.code != 0 && output.stderr.contains("does not wait for this call"), "{output:#?}");
    let output = folder.redflow(["runs", "resolve", &id, "--not-done"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stderr.contains(&format!("redflow run --resume {id}")), "{output:#?}");
    folder.run_ok(["run", "--resume", &id]);
    let shown = folder.run_ok(["runs", "show", &id]);
    assert!(shown.contains("completed"), "{shown}");
}

/// The question of a waiting run.
fn question(run: &Value) -> String {
    let (call, at) = (&run["waiting"], run["waiting"]["askedAt"].as_u64().unwrap());
    let moment = redflow_contract::iso_time(at).split('.').next().unwrap().to_owned();
    format!(
        "did `calculator` {{\"expression\":\"6*7\"}} happen? call {}, iteration 1, made {moment}Z",
        call["callId"].as_str().unwrap()
    )
}

#[test]
fn a_long_input_is_cut_in_lists() {
    let long = format!("1{}", " ".repeat(5000));
    let mut nodes = at_most_once_flow();
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
        let text = output.stdout + &output.stderr;
        assert!(text.contains("calculator") && text.contains("{\"expression\":\"1 "), "{args:?}: {text}");
        assert_eq!(text.contains(&long), whole, "{args:?}: {text}");
        assert!(whole || text.contains("…"), "{args:?}: {text}");
    }
}

#[test]
fn printed_commands_can_be_pasted() {
    let folder = Folder::with_flow(&at_most_once_flow());
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
fn an_answered_run_continues_when_it_is_resumed() {
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
        let folder = Folder::with_flow(&at_most_once_flow());
        let id = waiting_run(&folder);
        let args: Vec<&str> = ["runs", "resolve", &id].into_iter().chain(answer.iter().copied()).collect();
        assert_eq!(
            run_note(&folder, &args),
            format!("run {id} is answered; resume it with: redflow run --resume {id}\n")
        );
        assert_eq!(status(&folder), "interrupted", "it is not driven any further");
        let second = assert_error(&folder, &["runs", "resolve", &id, "--done"], "RUN_NOT_WAITING");
        second.assert_refused(&format!("Run {id} has been answered and waits for nothing now: resume it.\n"));
        second.assert_refused(&format!("   = help: redflow run --resume {id}\n"));

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
        assert_eq!(folder.run_ok(["replay", "--all"]), "1 run: 1 equal, 0 open\n");
        assert_error(&folder, &["runs", "resolve", &id, "--done"], "RUN_OVER");
    }
}

#[test]
fn wrong_answers_are_refused() {
    let folder = Folder::with_flow(&at_most_once_flow());
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
        ("@large", "bytes; the limit is 262144: give only the part that the model needs"),
        ("@huge", "the result has more than 4194304 bytes; give only the part that is needed"),
    ] {
        assert_error(&folder, &["runs", "resolve", &id, "--done", "--result", result], "RESULT_INVALID")
            .assert_refused(words);
    }
    assert_eq!(status(&folder), "waiting");
    // Spaces in the input do not count.
    run_note(&folder, &["runs", "resolve", &id, "--done", "--result", "@wide"]);
}

#[test]
fn an_answer_is_read_from_standard_input() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = waiting_run(&folder);
    let output =
        folder.redflow(["runs", "resolve", &id, "--done", "--result", "-"]).stdin("\"sent\"\n").run();
    assert_eq!(output.code, 0, "{output:#?}");
    let text = folder.run_ok(["runs", "show", &id, "--json"]);
    assert!(text.contains("\"type\":\"tool_returned\"") && text.contains("\"success\":true"), "{text}");
}

#[test]
fn ended_runs_cannot_be_changed() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    folder.run_ok(["run", "flow.json"]);
    let id = folder.only_run();
    for args in [
        ["runs", "cancel", &id].as_slice(),
        &["runs", "resolve", &id, "--done"],
        &["runs", "resolve", &id, "--done", "--result", "no json"],
        &["run", "--resume", &id],
        &["run", "--resume", &id, "flow.json"],
    ] {
        let output = assert_error(&folder, args, "RUN_OVER");
        output.assert_refused(&format!("   = help: redflow runs show {id}\n"));
    }
}

#[test]
fn a_resumed_run_asks_about_its_interrupted_call() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = interrupted_run(&folder);
    assert_eq!(status(&folder), "interrupted");
    let output = assert_error(&folder, &["runs", "resolve", &id, "--done"], "RUN_NOT_WAITING");
    output.assert_refused(&format!("Run {id} is interrupted and waits for nothing now: resume it.\n"));
    output.assert_refused(&format!("   = help: redflow run --resume {id}\n"));

    let output = folder.redflow(["run", "--resume", &id, "flow.json"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (3, ""), "{output:#?}");
    let words = "⏸ waiting: it is unknown whether `calculator` happened: the runtime stopped while the call was \
                 under way\n";
    assert!(output.stderr.contains(words), "{output:#?}");
    let words = format!("\nrun {id} waits: {}\n", question(&folder.runs()[0]));
    assert!(output.stderr.contains(&words), "{output:#?}");
    assert!(output.stderr.contains(&format!("redflow run --resume {id} flow.json\n")), "{output:#?}");
    run_note(&folder, &["runs", "resolve", &id, "--not-done"]);
    let output = folder.redflow(["run", "--resume", &id]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
}

#[test]
fn outcomes_are_printed_as_json() {
    let folder = Folder::with_flow(&at_most_once_flow());
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
    let id = interrupted_run(&folder);
    let output = folder.redflow(["run", "--resume", &id, "--json"]).run();
    let run = folder.runs().remove(0);
    let expected = json!({"runId": id, "status": "waiting", "waiting": run["waiting"]});
    assert_eq!((output.code, output.json()), (3, expected), "a run that came to wait");
    let store = Store::open(&folder.data()).unwrap();
    let cancel = folder.redflow(["runs", "cancel", &id, "--json"]);
    let thread = std::thread::spawn(move || cancel.run());
    ignore_request(store);
    assert_eq!(thread.join().unwrap().json(), json!({"runId": id, "outcome": "asked"}));
}

#[test]
fn a_run_is_cancelled_without_a_driver() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = waiting_run(&folder);
    assert_eq!(
        run_note(&folder, &["runs", "cancel", &id, "--reason", "wrong\u{1b} order"]),
        format!("run {id} is cancelled; to deliver its result: redflow run --resume {id}\n")
    );
    let run = folder.runs().remove(0);
    assert_eq!([&run["status"], &run["code"]], ["failed", "CANCELLED"]);
    assert_eq!(run["delivered"], false);
    assert!(folder.run_ok(["runs"]).ends_with("CANCELLED  not delivered\n"));
    assert!(folder.run_ok(["runs", "export", &id]).contains("wrong\\u001b order"));
    assert_eq!(folder.run_ok(["replay", "--all"]), "1 run: 1 equal, 0 open\n");
    assert_error(&folder, &["runs", "cancel", &id], "RUN_OVER");
    // The result goes along the wires.
    let output = folder.redflow(["run", "--resume", &id]).run();
    assert_eq!((output.code, output.errors()), (1, vec!["CANCELLED"]), "{output:#?}");
    assert!(output.stderr.contains("[debug d] msg.payload: {\"code\":\"CANCELLED\""), "{output:#?}");
    assert_eq!(folder.runs()[0]["delivered"], true);

    let id = interrupted_run(&folder);
    run_note(&folder, &["runs", "cancel", &id]);
    let run = folder.runs().remove(0);
    assert_eq!([&run["runId"], &run["status"], &run["code"]], [id.as_str(), "failed", "CANCELLED"]);
}

#[test]
fn requests_go_to_the_driver() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = waiting_run(&folder);
    let driver = Driver::start(&folder);
    let words = format!("run {id} is answered and continues in the process that drives it\n");
    assert_eq!(run_note(&folder, &["runs", "resolve", &id, "--done", "--result", "42"]), words);
    let run = wait_until_ended(&folder);
    assert_eq!([&run["status"], &run["delivered"]], [&json!("completed"), &json!(true)], "{run}");
    drop(driver);

    folder.run_ok(["runs", "prune", "--keep", "0"]);
    let id = waiting_run(&folder);
    let driver = Driver::start(&folder);
    let words = format!("run {id} is cancelled by the process that drives it\n");
    assert_eq!(run_note(&folder, &["runs", "cancel", &id]), words);
    assert_eq!(wait_until_ended(&folder)["code"], "CANCELLED");
    drop(driver);
    assert_eq!(folder.run_ok(["replay", "--all"]), "1 run: 1 equal, 0 open\n");
}

#[test]
fn an_unanswered_request_is_stored_for_the_next_driver() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = waiting_run(&folder);
    let store = Store::open(&folder.data()).unwrap();
    let cancel = folder.redflow(["runs", "cancel", &id]);
    let thread = std::thread::spawn(move || cancel.run());
    ignore_request(store);
    let output = thread.join().unwrap();
    let words =
        format!("the request for run {id} is stored; the next process that drives the runs does it\n");
    assert_eq!((output.code, output.stderr), (0, words));
    assert_eq!(status(&folder), "waiting");
    let driver = Driver::start(&folder);
    assert_eq!(wait_until_ended(&folder)["code"], "CANCELLED");
    drop(driver);
}

#[test]
fn a_refusal_of_the_driver_is_printed() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = waiting_run(&folder);
    let store = Store::open(&folder.data()).unwrap();
    let resolve = folder.redflow(["runs", "resolve", &id, "--done"]);
    let thread = std::thread::spawn(move || resolve.run());
    refuse_request(&store, StoreCode::RunNotWaiting);
    let output = thread.join().unwrap();
    output.assert_refused("error[RUN_NOT_WAITING]: The process that drives the runs refused: ");
    output.assert_refused(&format!("   = help: redflow runs show {id}\n"));
}
