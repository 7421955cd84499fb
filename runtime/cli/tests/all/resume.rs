//! Runs that are suspended, killed or out of disk space, and then resumed.

use crate::kit::{Folder, Output, agent, final_answer, flow, flow_with, inject, model, node, port3, with};
use crate::live_command::LiveCommand;
use crate::prepared_runs::{
    at_most_once_flow, interrupted_run, interrupted_run_of_file, interrupted_run_of_instance,
    repeatable_flow, waiting_run,
};
use crate::signals::slow_flow;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// The model needs two seconds for each of its two answers.
fn two_steps() -> Value {
    let call =
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "6*7"}, "confidence": 0.5});
    let end = json!({"action": "final", "message": "done", "confidence": 1});
    flow_with(json!([call, end]), "m", json!({"delayMs": 2000}))
}

/// Starts the flow and kills the process during the first model call.
#[track_caller]
fn start_and_kill(folder: &Folder, args: &[&str]) -> String {
    let mut run = LiveCommand::start(folder.redflow(["run"].into_iter().chain(args.iter().copied())), "");
    run.wait_for("▶ ");
    run.kill();
    let run = folder.runs().remove(0);
    assert_eq!((&run["status"], &run["delivered"]), (&json!("interrupted"), &json!(false)));
    run["runId"].as_str().unwrap().to_owned()
}

#[track_caller]
fn assert_replays(folder: &Folder, runs: &str) {
    assert_eq!(folder.run_ok(["replay", "--all"]), format!("{runs} equal, 0 open\n"));
}

#[test]
fn sigterm_suspends_a_run_and_resume_completes_it() {
    let folder = Folder::with_flow(&two_steps());
    let mut run = LiveCommand::start(folder.redflow(["run", "flow.json", "--json", "--journal", "j"]), "");
    run.wait_for("▶ a ");
    run.signal("-TERM");
    let output = run.end();
    let id = folder.only_run();
    assert_eq!((output.code, output.json()), (3, json!({"runId": id, "status": "interrupted"})));
    let last = format!("run {id} suspended; resume it with: redflow run --resume {id} flow.json\n");
    assert!(output.stderr.ends_with(&last), "{output:#?}");
    assert_eq!(folder.runs()[0]["status"], "interrupted");
    // The run finished its current step, which is not repeated.
    assert_eq!(folder.read("j").matches("\"type\":\"model_answered\"").count(), 1);
    assert_eq!(folder.redflow(["replay", "j"]).run().code, 1, "it is not whole");
    assert_eq!(folder.run_ok(["replay", "--all"]), "1 run: 0 equal, 1 open\n");

    let output = folder.redflow(["run", "--resume", &id, "flow.json", "--json", "--journal", "j2"]).run();
    assert_eq!((output.code, &port3(&output)["payload"]), (0, &json!("done")), "{output:#?}");
    assert!(output.stderr.starts_with(&format!("▶ a  run {id} continues\n")), "{output:#?}");
    assert!(output.stderr.contains("[debug d] msg.payload: done\n"), "{output:#?}");
    assert_eq!(folder.read("j2"), folder.run_ok(["runs", "export", &id]));
    assert!(folder.read("j2").starts_with(&folder.read("j")), "what was recorded stays");
    assert_replays(&folder, "1 run: 1");
    let output = folder.redflow(["run", "--resume", "all", "flow.json"]).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, "no run has to be resumed\n"));
}

#[test]
fn a_run_is_resumed_after_a_crash() {
    let folder = Folder::with_flow(&two_steps());
    let id = start_and_kill(&folder, &["flow.json"]);
    let detail = folder.run_ok(["runs", "show", &id]);
    assert!(detail.contains(&format!("  resume it  redflow run --resume {id}\n")), "{detail}");
    let output = folder.redflow(["run", "--resume", &id, "--quiet"]).run();
    let expected = Output { code: 0, stdout: "done\n".to_owned(), stderr: String::new() };
    assert_eq!(output, expected);
    assert_eq!(folder.runs()[0]["delivered"], true, "it found its flow");
    assert_replays(&folder, "1 run: 1");
}

/// The path of a flow file as it is stored with a run.
fn source(folder: &Folder, file: &str) -> String {
    folder.path(file).canonicalize().unwrap().display().to_string()
}

#[test]
fn a_run_finds_its_flow_file() {
    let folder = Folder::with_flow(&repeatable_flow("done", "out"));
    let id = interrupted_run(&folder);
    let file = source(&folder, "flow.json");
    assert_eq!(folder.runs()[0]["source"], file);
    assert!(folder.run_ok(["runs", "show", &id]).contains(&format!("\n  flow       {file}\n")));
    // The working directory does not matter.
    let output = folder.redflow(["run", "--resume", &id]).within(&folder.data()).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
    assert!(output.stderr.starts_with(&format!("▶ a  run {id} continues with {file}\n")), "{output:#?}");
    assert!(output.stderr.contains("[debug out] msg.payload: done\n"), "{output:#?}");
    assert_eq!(folder.runs()[0]["delivered"], true);
}

#[test]
fn a_run_without_its_flow_continues_with_its_plan() {
    let other = json!([
        agent("b", json!([["m2"], ["c2"], [], [], []])),
        model("m2", final_answer("x")),
        node("c2", "calculator-tool", json!([[]]))
    ]);
    let rows = [
        (
            None,
            "its flow FILE cannot be used (FLOW_UNREADABLE: the flow file cannot be read: there is no such file)",
        ),
        (Some("[1".to_owned()), "its flow FILE cannot be used (FLOW_NOT_JSON: "),
        (Some(other.to_string()), "its flow FILE has no agent `a` any more"),
    ];
    for (now, why) in rows {
        let folder = Folder::with_flow(&repeatable_flow("done", "out"));
        let id = interrupted_run(&folder);
        let file = source(&folder, "flow.json");
        std::fs::rename(folder.path("flow.json"), folder.path("moved.json")).unwrap();
        if let Some(text) = now {
            folder.write("flow.json", text);
        }
        for how in ["continues with its plan only", "is over"] {
            let output = folder.redflow(["run", "--resume", &id]).run();
            assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
            assert!(output.stderr.starts_with(&format!("▶ a  run {id} {how}\n")), "{output:#?}");
            let why = why.replace("FILE", &file);
            let words = format!("warning: the result of run {id} was not sent on: {why}");
            assert!(output.stderr.contains(&words), "{words}\n{output:#?}");
            let words = format!("; to deliver it: redflow run --resume {id} FLOW\n");
            assert!(output.stderr.ends_with(&words), "{output:#?}");
            assert_eq!(folder.runs()[0]["delivered"], false);
        }
        // `--resume all` does not drive it, but names it.
        let output = folder.redflow(["run", "--resume", "all", "--json"]).run();
        assert_eq!(
            output.json(),
            json!({"runId": id, "status": "completed", "message": null}),
            "{output:#?}"
        );
        assert!(output.stderr.starts_with(&format!("warning: the result of run {id} was not sent on: ")));
        let output = folder.redflow(["run", "--resume", &id, "moved.json"]).run();
        assert_eq!(output.code, 0, "{output:#?}");
        assert!(output.stderr.contains("[debug out] msg.payload: done\n"), "{output:#?}");
        assert_eq!(folder.runs()[0]["delivered"], true);
        folder.redflow(["run", "--resume", &id, "moved.json"]).run().assert_refused("error[RUN_OVER]");
    }
}

#[test]
fn a_flow_from_standard_input_is_not_found_again() {
    let folder = Folder::with_flow(&two_steps());
    let mut run = LiveCommand::start(folder.redflow(["run", "-"]), &folder.read("flow.json"));
    run.wait_for("▶ a ");
    run.kill();
    let run = folder.runs().remove(0);
    assert_eq!(run.get("source"), None);
    let id = run["runId"].as_str().unwrap();
    let output = folder.redflow(["run", "--resume", id, "--quiet"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
    let words = format!(
        "warning: the result of run {id} was not sent on: the file of its flow is not known; to deliver it: \
         redflow run --resume {id} FLOW\n"
    );
    assert_eq!(output.stderr, words);
    let detail = folder.run_ok(["runs", "show", id]);
    assert!(
        detail.contains(&format!("not delivered yet\n             redflow run --resume {id} FLOW\n")),
        "{detail}"
    );
    // A named flow with its agent is used for it.
    let output = folder.redflow(["run", "--resume", "all", "flow.json"]).run();
    assert!(output.stderr.contains("[debug d] msg.payload: done\n"), "{output:#?}");
}

#[test]
fn each_run_is_resumed_with_its_own_flow() {
    let folder = Folder::with_flow(&repeatable_flow("one", "first"));
    // The same ids in another file are another flow.
    folder.write("two.json", repeatable_flow("two", "second").to_string());
    folder.write("gone.json", repeatable_flow("three", "third").to_string());
    let [one, two, three, four] = ["flow.json", "two.json", "gone.json", "flow.json"]
        .map(|file| interrupted_run_of_file(&folder, file));
    let file = source(&folder, "two.json");
    std::fs::remove_file(folder.path("gone.json")).unwrap();
    let output = folder.redflow(["run", "--resume", "all"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    let line = |id: &str, payload: &str| format!("{id}  completed    {payload}\n");
    assert_eq!(
        output.stdout,
        [line(&one, "one"), line(&four, "one"), line(&two, "two"), line(&three, "three")].concat()
    );
    let count = |words: &str| output.stderr.matches(words).count();
    assert_eq!(count("[debug first] msg.payload: one\n"), 2, "{output:#?}");
    assert_eq!(count("[debug second] msg.payload: two\n"), 1, "{output:#?}");
    assert_eq!((count("[debug "), count(&format!(" continues with {file}\n"))), (3, 1), "{output:#?}");
    assert_eq!(count(&format!("the result of run {three} was not sent on")), 1, "{output:#?}");
    let undelivered: Vec<Value> = folder
        .runs()
        .into_iter()
        .filter(|run| run["delivered"] == false)
        .map(|run| run["runId"].clone())
        .collect();
    assert_eq!(undelivered, [three.as_str()]);
    assert_replays(&folder, "4 runs: 4");
}

#[test]
fn resume_all_with_a_flow_selects_the_runs_of_its_file() {
    let folder = Folder::with_flow(&repeatable_flow("one", "first"));
    folder.write("two.json", repeatable_flow("two", "second").to_string());
    let [one, two] = ["flow.json", "two.json"].map(|file| interrupted_run_of_file(&folder, file));
    let file = source(&folder, "two.json");
    let output = folder.redflow(["run", "--resume", "all", "./flow.json"]).run();
    assert_eq!((output.code, &output.stdout), (0, &format!("{one}  completed    one\n")));
    let words = format!("run {two} is skipped: it belongs to another flow: {file}\n");
    assert!(output.stderr.starts_with(&words), "{output:#?}");
    assert!(!output.stderr.contains(&format!("{two} continues")), "{output:#?}");
    assert_eq!(folder.runs()[0]["status"], "interrupted");
    // With its id it is resumed with the flow that the user names.
    let output = folder.redflow(["run", "--resume", &two, "flow.json"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "two\n"), "{output:#?}");
    assert!(output.stderr.contains("[debug first] msg.payload: two\n"), "{output:#?}");
}

#[test]
fn ctrl_c_does_not_cancel_runs_that_have_not_started() {
    let folder = Folder::with_flow(&slow_flow());
    folder.write("two.json", repeatable_flow("two", "second").to_string());
    let first = start_and_kill(&folder, &["flow.json"]);
    let second = interrupted_run_of_file(&folder, "two.json");
    let mut run = LiveCommand::start(folder.redflow(["run", "--resume", "all", "--json"]), "");
    run.wait_for("▶ a ");
    run.signal("-INT");
    let output = run.end();
    assert_eq!((output.code, output.errors()), (3, vec!["CANCELLED"]), "{output:#?}");
    let words = format!("run {second} was not resumed; resume it with: redflow run --resume {second}\n");
    assert!(output.stderr.contains(&words), "{output:#?}");
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines: Vec<[&Value; 2]> = lines.iter().map(|line| [&line["runId"], &line["status"]]).collect();
    assert_eq!(lines, [[second.as_str(), "interrupted"], [first.as_str(), "failed"]]);
    assert_eq!(folder.runs()[0]["status"], "interrupted");
}

#[test]
fn a_changed_flow_is_used_for_delivery() {
    let folder = Folder::with_flow(&two_steps());
    let id = start_and_kill(&folder, &["flow.json"]);
    // The run continues with its plan; its result follows the current wires.
    let changed = flow_with(final_answer("something else"), "d", json!({"name": "other"}));
    folder.write("flow.json", changed.to_string());
    let output = folder.redflow(["run", "--resume", &id, "flow.json"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
    assert!(output.stderr.contains("[debug other] msg.payload: done\n"), "{output:#?}");
}

#[test]
fn a_wrong_flow_blocks_the_run_and_cancels_nothing() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let id = interrupted_run(&folder);
    let other = json!([
        agent("b", json!([["m2"], ["c2"], [], [], []])),
        model("m2", final_answer("x")),
        node("c2", "calculator-tool", json!([[]]))
    ]);
    folder.write("other.json", other.to_string());
    let output = folder.redflow(["run", "--resume", &id, "other.json"]).run();
    output.assert_refused(&format!(
        "error[RUN_BLOCKED]: the flow has no agent `a`; give the flow that has it, or cancel with redflow runs cancel {id}\n"
    ));
    let output = folder.redflow(["run", "--resume", "all", "other.json"]).run();
    let file = source(&folder, "flow.json");
    let left = format!("run {id} is skipped: it belongs to another flow: {file}\nno run has to be resumed\n");
    assert_eq!((output.code, output.stderr), (0, left));
    // The agent was removed from the file.
    let flow = folder.read("flow.json");
    folder.write("flow.json", other.to_string());
    let output = folder.redflow(["run", "--resume", "all", "flow.json"]).run();
    let left = format!("run {id} is skipped: the flow has no agent `a`\nno run has to be resumed\n");
    assert_eq!((output.code, output.stderr), (0, left));
    folder.write("flow.json", flow);
    assert_eq!(folder.runs()[0]["status"], "interrupted");
    folder.redflow(["run", "--resume", &id, "gone.json"]).run().assert_refused("error[FLOW_UNREADABLE]");
}

#[test]
fn a_missing_secret_blocks_the_run() {
    let mut nodes = two_steps();
    for node in nodes.as_array_mut().unwrap() {
        if node["id"] == "m" {
            *node = with(node.clone(), json!({"apiKey": "sk-live-0123456789"}));
        }
    }
    let folder = Folder::with_flow(&nodes);
    let id = start_and_kill(&folder, &["flow.json"]);
    std::fs::rename(folder.path("flow.json"), folder.path("moved.json")).unwrap();
    let output = folder.redflow(["run", "--resume", &id]).run();
    output.assert_refused("the secret in `apiKey` is not recorded");
    assert_eq!(output.errors(), ["RUN_BLOCKED"]);
    let words = format!("nothing is lost; try to resume it with its flow: redflow run --resume {id} FLOW\n");
    assert!(output.stderr.contains(&words), "{output:#?}");
    let output = folder.redflow(["run", "--resume", &id, "--json", "--quiet"]).run();
    assert_eq!((output.code, output.json()), (2, json!({"runId": id, "status": "interrupted"})));
    std::fs::rename(folder.path("moved.json"), folder.path("flow.json")).unwrap();
    let output = folder.redflow(["run", "--resume", &id, "--quiet"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
}

#[test]
fn all_interrupted_runs_are_resumed() {
    let folder = Folder::with_flow(&two_steps());
    let first = start_and_kill(&folder, &["flow.json"]);
    let second = start_and_kill(&folder, &["flow.json"]);
    folder.write("bad.json", flow_with(json!(["prose"]), "m", json!({"delayMs": 2000})).to_string());
    let third = start_and_kill(&folder, &["bad.json"]);
    let output = folder.redflow(["run", "--resume", "all", "--json", "--quiet"]).run();
    assert_eq!(
        (output.code, output.errors()),
        (1, vec!["INVALID_JSON"]),
        "the worst end decides: {output:#?}"
    );
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let statuses: Vec<[&str; 2]> = lines
        .iter()
        .map(|line| [line["runId"].as_str().unwrap(), line["status"].as_str().unwrap()])
        .collect();
    assert_eq!(statuses, [[first.as_str(), "completed"], [&second, "completed"], [&third, "failed"]]);
    assert_eq!(lines[0]["message"]["payload"], "done");
    assert_eq!(lines[2]["message"]["payload"]["code"], "INVALID_JSON");
    assert_replays(&folder, "3 runs: 3");
}

#[test]
fn all_resumed_runs_are_listed_as_text() {
    let folder = Folder::with_flow(&two_steps());
    let first = start_and_kill(&folder, &["flow.json"]);
    folder.write("dangerous.json", at_most_once_flow().to_string());
    let second = {
        let flow = folder.read("flow.json");
        folder.write("flow.json", folder.read("dangerous.json"));
        let id = waiting_run(&folder);
        folder.write("flow.json", flow);
        id
    };
    let output = folder.redflow(["run", "--resume", "all", "flow.json", "--quiet"]).run();
    assert_eq!(output.code, 3, "one waits for a person: {output:#?}");
    assert_eq!(output.stdout, format!("{second}  waiting\n{first}  completed    done\n"));
}

#[test]
fn an_undelivered_result_is_sent_when_the_run_is_resumed() {
    // The process was killed during the run of the second agent; the first run has ended.
    let nodes = json!([
        inject("i", "hello", json!([["a"]])),
        agent("a", json!([["m"], ["c"], [], ["b"], []])),
        agent("b", json!([["m2"], ["c"], [], ["d"], []])),
        model("m", final_answer("from a")),
        with(model("m2", final_answer("from b")), json!({"delayMs": 2000})),
        node("c", "calculator-tool", json!([[]])),
        node("d", "debug", json!([])),
    ]);
    let folder = Folder::with_flow(&nodes);
    let mut run = LiveCommand::start(folder.redflow(["run", "flow.json", "--node", "a"]), "");
    run.wait_for("▶ b ");
    run.kill();
    let output = folder.redflow(["run", "--resume", "all", "flow.json"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stderr.contains("[debug d] msg.payload: from b\n"), "{output:#?}");
    let agents: Vec<Value> = folder.runs().iter().map(|run| run["agent"]["nodeId"].clone()).collect();
    assert_eq!(agents, ["b", "a"], "none began twice");
    assert_replays(&folder, "2 runs: 2");
}

#[test]
fn only_one_process_drives_a_directory() {
    let folder = Folder::with_flow(&slow_flow());
    folder.write("quick.json", flow(final_answer("hi"), vec![]).to_string());
    let mut run = LiveCommand::start(folder.redflow(["run", "flow.json"]), "");
    run.wait_for("▶ a ");
    let id = folder.only_run();
    assert_eq!(folder.runs()[0]["status"], "running");

    let output = folder.redflow(["run", "quick.json"]).run();
    output.assert_refused(&format!("error[DATA_LOCKED]: Process {} drives the runs in ", run.running.0.id()));
    output.assert_refused("   = help: use another --data DIR, or --ephemeral to store nothing; with --url URL the sidecar that has the directory runs its flow\n");
    for args in [["run", "--resume", "all"].as_slice(), &["run", "--resume", &id]] {
        assert_eq!(folder.redflow(args.iter().copied()).run().errors(), ["DATA_LOCKED"], "{args:?}");
    }
    folder.run_ok(["run", "quick.json", "--ephemeral"]);
    folder.run_ok(["run", "quick.json", "--data", "other"]);
    // Other commands can read, copy and remove runs meanwhile.
    let detail = folder.run_ok(["runs", "show", &id]);
    assert!(detail.contains("  status     running\n"), "{detail}");
    assert!(folder.run_ok(["replay", &id]).ends_with("so far; it is running\n"));
    folder.run_ok(["backup", "copy"]);
    folder.run_ok(["runs", "prune", "--keep", "0"]);
    let output = folder.redflow(["runs", "resolve", &id, "--done"]).run();
    output.assert_refused("is running and waits for nothing");
    assert_eq!(output.errors(), ["RUN_NOT_WAITING"]);

    let output = folder.redflow(["runs", "cancel", &id]).run();
    let words = format!("run {id} is cancelled by the process that drives it\n");
    assert_eq!((output.code, output.stderr), (0, words));
    let output = run.end();
    assert_eq!((output.code, output.errors()), (1, vec!["CANCELLED"]), "{output:#?}");
    // The lock ends with its process.
    folder.run_ok(["run", "quick.json"]);
}

/// Calls with a limit on the size of files, which acts like a full disk.
#[cfg(target_os = "linux")]
fn with_file_limit(folder: &Folder, kib: u32, args: &str) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f {kib}; exec {} {args}", env!("CARGO_BIN_EXE_redflow"));
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path(""))
        .env("REDFLOW_DATA", folder.data())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    Output {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_cannot_be_recorded_does_not_start() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    folder.write("in.json", format!("\"{}\"", "x".repeat(3_000_000)));
    let output = with_file_limit(&folder, 1024, "run flow.json --json --input @in.json");
    assert_eq!((output.code, output.errors()), (2, vec!["JOURNAL_FAILED"]), "{output:#?}");
    assert_eq!(port3(&output)["payload"]["code"], "JOURNAL_FAILED");
    assert_eq!(folder.runs(), [] as [Value; 0]);
    let output = with_file_limit(&folder, 1, "run flow.json");
    output.assert_refused("error[DATA_FULL]: ");
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_can_no_longer_be_recorded_is_suspended() {
    let call = |text: &str| json!({"action": "tool", "tool": "calculator", "input": {"expression": text}, "confidence": 0.5});
    let long = call(&format!("1{}", " ".repeat(900_000)));
    let end = json!({"action": "final", "message": "done", "confidence": 1});
    let folder = Folder::with_flow(&flow(json!([long.clone(), long, end]), vec![]));
    // The limit is enough for the plan with both answers, and for the first answer.
    let output = with_file_limit(&folder, 3072, "run flow.json");
    let id = folder.only_run();
    output.assert_refused(&format!("error[DATA_FULL]: run {id}: "));
    output.assert_refused(&format!(
        "   = help: nothing is lost; when the problem is solved: redflow run --resume {id} flow.json\n"
    ));
    let output = folder.redflow(["run", "--resume", &id, "--quiet"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
    assert_replays(&folder, "1 run: 1");
}

/// Node-RED has its flow and waits for its result.
#[test]
fn a_run_of_a_node_red_is_not_resumed_here() {
    let folder = Folder::with_flow(&at_most_once_flow());
    let run = interrupted_run_of_instance(&"home".into(), &folder, "flow.json");
    let why = "it belongs to the Node-RED `home`: `redflow serve` resumes it when that Node-RED is connected";
    let all = folder.redflow(["run", "--resume", "all"]).run();
    assert!(all.stderr.contains(&format!("is skipped: {why}")), "{all:?}");
    let one = folder.redflow(["run", "--resume", &run]).run();
    assert_eq!(one.code, 2, "{one:?}");
    assert!(one.stderr.contains("RUN_BLOCKED") && one.stderr.contains(why), "{one:?}");
    assert_eq!(folder.runs()[0]["status"], "interrupted");
}
