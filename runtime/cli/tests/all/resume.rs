//! Runs that outlive their process: suspended, killed, short of room, and resumed.

use crate::interrupt::slow_flow;
use crate::kit::{Folder, Output, agent, final_answer, flow, flow_with, inject, model, node, port3, with};
use crate::stage::{
    dangerous_flow, harmless_flow, interrupted_in_a_call, interrupted_run, interrupted_run_of, waiting_run,
};
use crate::watched::Watched;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// The model takes its time twice: to ask for a sum and to answer.
fn two_steps() -> Value {
    let call =
        json!({"action": "tool", "tool": "calculator", "input": {"expression": "6*7"}, "confidence": 0.5});
    let end = json!({"action": "final", "message": "done", "confidence": 1});
    flow_with(json!([call, end]), "m", json!({"delayMs": 2000}))
}

/// Starts the flow and kills the process while the model is thinking.
#[track_caller]
fn killed(folder: &Folder, args: &[&str]) -> String {
    let mut run = Watched::start(folder.redflow(["run"].into_iter().chain(args.iter().copied())), "");
    run.wait_for("▶ ");
    run.kill();
    let run = folder.runs().remove(0);
    assert_eq!((&run["status"], &run["delivered"]), (&json!("interrupted"), &json!(false)));
    run["runId"].as_str().unwrap().to_owned()
}

#[track_caller]
fn proved(folder: &Folder, runs: &str) {
    assert_eq!(folder.well(["replay", "--all"]), format!("{runs} equal, 0 open\n"));
}

#[test]
fn a_termination_suspends_and_a_resume_completes() {
    let folder = Folder::with_flow(&two_steps());
    let mut run = Watched::start(folder.redflow(["run", "flow.json", "--json", "--journal", "j"]), "");
    run.wait_for("▶ a ");
    run.signal("-TERM");
    let output = run.end();
    let id = folder.only_run();
    assert_eq!((output.code, output.json()), (3, json!({"runId": id, "status": "interrupted"})));
    let last = format!("run {id} suspended; go on with: redflow run --resume {id} flow.json\n");
    assert!(output.stderr.ends_with(&last), "{output:#?}");
    assert_eq!(folder.runs()[0]["status"], "interrupted");
    // It finished the step it was at, and that is not done again.
    assert_eq!(folder.read("j").matches("\"type\":\"model_answered\"").count(), 1);
    assert_eq!(folder.redflow(["replay", "j"]).run().code, 1, "it is not whole");
    assert_eq!(folder.well(["replay", "--all"]), "1 run: 0 equal, 1 open\n");

    let output = folder.redflow(["run", "--resume", &id, "flow.json", "--json", "--journal", "j2"]).run();
    assert_eq!((output.code, &port3(&output)["payload"]), (0, &json!("done")), "{output:#?}");
    assert!(output.stderr.starts_with(&format!("▶ a  run {id} goes on\n")), "{output:#?}");
    assert!(output.stderr.contains("[debug d] msg.payload: done\n"), "{output:#?}");
    assert_eq!(folder.read("j2"), folder.well(["runs", "export", &id]));
    assert!(folder.read("j2").starts_with(&folder.read("j")), "what was recorded stays");
    proved(&folder, "1 run: 1");
    let output = folder.redflow(["run", "--resume", "all", "flow.json"]).run();
    assert_eq!((output.code, output.stderr.as_str()), (0, "no run has to be resumed\n"));
}

#[test]
fn a_run_outlives_a_crash() {
    let folder = Folder::with_flow(&two_steps());
    let id = killed(&folder, &["flow.json"]);
    let shown = folder.well(["runs", "show", &id]);
    assert!(shown.contains(&format!("  go on with redflow run --resume {id}\n")), "{shown}");
    let output = folder.redflow(["run", "--resume", &id, "--quiet"]).run();
    let expected = Output { code: 0, stdout: "done\n".to_owned(), stderr: String::new() };
    assert_eq!(output, expected);
    assert_eq!(folder.runs()[0]["delivered"], true, "it found its flow");
    proved(&folder, "1 run: 1");
}

/// The file of a flow as a run has it.
fn source(folder: &Folder, file: &str) -> String {
    folder.path(file).canonicalize().unwrap().display().to_string()
}

#[test]
fn a_run_finds_its_flow_by_itself() {
    let folder = Folder::with_flow(&harmless_flow("done", "shown"));
    let id = interrupted_in_a_call(&folder);
    let file = source(&folder, "flow.json");
    assert_eq!(folder.runs()[0]["source"], file);
    assert!(folder.well(["runs", "show", &id]).contains(&format!("\n  flow       {file}\n")));
    // From wherever it is resumed.
    let output = folder.redflow(["run", "--resume", &id]).within(&folder.data()).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
    assert!(output.stderr.starts_with(&format!("▶ a  run {id} goes on with {file}\n")), "{output:#?}");
    assert!(output.stderr.contains("[debug shown] msg.payload: done\n"), "{output:#?}");
    assert_eq!(folder.runs()[0]["delivered"], true);
}

#[test]
fn a_run_whose_flow_is_gone_goes_on_by_its_plan() {
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
        let folder = Folder::with_flow(&harmless_flow("done", "shown"));
        let id = interrupted_in_a_call(&folder);
        let file = source(&folder, "flow.json");
        std::fs::rename(folder.path("flow.json"), folder.path("moved.json")).unwrap();
        if let Some(text) = now {
            folder.write("flow.json", text);
        }
        for how in ["goes on by its plan alone", "is over"] {
            let output = folder.redflow(["run", "--resume", &id]).run();
            assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
            assert!(output.stderr.starts_with(&format!("▶ a  run {id} {how}\n")), "{output:#?}");
            let why = why.replace("FILE", &file);
            let words = format!("warning: the result of run {id} was not sent on: {why}");
            assert!(output.stderr.contains(&words), "{words}\n{output:#?}");
            let words = format!("; it stays undelivered until redflow run --resume {id} FLOW\n");
            assert!(output.stderr.ends_with(&words), "{output:#?}");
            assert_eq!(folder.runs()[0]["delivered"], false);
        }
        // All of them leave it alone, and name it.
        let output = folder.redflow(["run", "--resume", "all", "--json"]).run();
        assert_eq!(
            output.json(),
            json!({"runId": id, "status": "completed", "message": null}),
            "{output:#?}"
        );
        assert!(output.stderr.starts_with(&format!("warning: the result of run {id} was not sent on: ")));
        let output = folder.redflow(["run", "--resume", &id, "moved.json"]).run();
        assert_eq!(output.code, 0, "{output:#?}");
        assert!(output.stderr.contains("[debug shown] msg.payload: done\n"), "{output:#?}");
        assert_eq!(folder.runs()[0]["delivered"], true);
        folder.redflow(["run", "--resume", &id, "moved.json"]).run().refused("error[RUN_OVER]");
    }
}

#[test]
fn a_flow_from_standard_input_cannot_be_found_again() {
    let folder = Folder::with_flow(&two_steps());
    let mut run = Watched::start(folder.redflow(["run", "-"]), &folder.read("flow.json"));
    run.wait_for("▶ a ");
    run.kill();
    let run = folder.runs().remove(0);
    assert_eq!(run.get("source"), None);
    let id = run["runId"].as_str().unwrap();
    let output = folder.redflow(["run", "--resume", id, "--quiet"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
    let words = format!(
        "warning: the result of run {id} was not sent on: the file of its flow is not known; it stays undelivered \
         until redflow run --resume {id} FLOW\n"
    );
    assert_eq!(output.stderr, words);
    let shown = folder.well(["runs", "show", id]);
    assert!(
        shown.contains(&format!("not delivered yet\n             redflow run --resume {id} FLOW\n")),
        "{shown}"
    );
    // A flow that has its agent may take it, as one of all.
    let output = folder.redflow(["run", "--resume", "all", "flow.json"]).run();
    assert!(output.stderr.contains("[debug d] msg.payload: done\n"), "{output:#?}");
}

#[test]
fn all_go_on_each_with_its_own_flow() {
    let folder = Folder::with_flow(&harmless_flow("one", "first"));
    // The same ids in another file: not the same flow.
    folder.write("two.json", harmless_flow("two", "second").to_string());
    folder.write("gone.json", harmless_flow("three", "third").to_string());
    let [one, two, three, four] =
        ["flow.json", "two.json", "gone.json", "flow.json"].map(|file| interrupted_run(&folder, file));
    let file = source(&folder, "two.json");
    std::fs::remove_file(folder.path("gone.json")).unwrap();
    let output = folder.redflow(["run", "--resume", "all"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    let line = |id: &str, said: &str| format!("{id}  completed    {said}\n");
    assert_eq!(
        output.stdout,
        [line(&one, "one"), line(&four, "one"), line(&two, "two"), line(&three, "three")].concat()
    );
    let count = |words: &str| output.stderr.matches(words).count();
    assert_eq!(count("[debug first] msg.payload: one\n"), 2, "{output:#?}");
    assert_eq!(count("[debug second] msg.payload: two\n"), 1, "{output:#?}");
    assert_eq!((count("[debug "), count(&format!(" goes on with {file}\n"))), (3, 1), "{output:#?}");
    assert_eq!(count(&format!("the result of run {three} was not sent on")), 1, "{output:#?}");
    let undelivered: Vec<Value> = folder
        .runs()
        .into_iter()
        .filter(|run| run["delivered"] == false)
        .map(|run| run["runId"].clone())
        .collect();
    assert_eq!(undelivered, [three.as_str()]);
    proved(&folder, "4 runs: 4");
}

#[test]
fn all_of_a_flow_are_those_that_began_with_its_file() {
    let folder = Folder::with_flow(&harmless_flow("one", "first"));
    folder.write("two.json", harmless_flow("two", "second").to_string());
    let [one, two] = ["flow.json", "two.json"].map(|file| interrupted_run(&folder, file));
    let file = source(&folder, "two.json");
    let output = folder.redflow(["run", "--resume", "all", "./flow.json"]).run();
    assert_eq!((output.code, &output.stdout), (0, &format!("{one}  completed    one\n")));
    let words = format!("run {two} is left alone: it is of another flow: {file}\n");
    assert!(output.stderr.starts_with(&words), "{output:#?}");
    assert!(!output.stderr.contains(&format!("{two} goes on")), "{output:#?}");
    assert_eq!(folder.runs()[0]["status"], "interrupted");
    // By its id it goes where the user says.
    let output = folder.redflow(["run", "--resume", &two, "flow.json"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "two\n"), "{output:#?}");
    assert!(output.stderr.contains("[debug first] msg.payload: two\n"), "{output:#?}");
}

#[test]
fn who_cancels_what_is_under_way_does_not_mean_what_has_not_begun() {
    let folder = Folder::with_flow(&slow_flow());
    folder.write("two.json", harmless_flow("two", "second").to_string());
    let first = killed(&folder, &["flow.json"]);
    let second = interrupted_run(&folder, "two.json");
    let mut run = Watched::start(folder.redflow(["run", "--resume", "all", "--json"]), "");
    run.wait_for("▶ a ");
    run.signal("-INT");
    let output = run.end();
    assert_eq!((output.code, output.errors()), (3, vec!["CANCELLED"]), "{output:#?}");
    let words = format!("run {second} was not begun; go on with: redflow run --resume {second}\n");
    assert!(output.stderr.contains(&words), "{output:#?}");
    let told: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<[&Value; 2]> = told.iter().map(|line| [&line["runId"], &line["status"]]).collect();
    assert_eq!(told, [[second.as_str(), "interrupted"], [first.as_str(), "failed"]]);
    assert_eq!(folder.runs()[0]["status"], "interrupted");
}

#[test]
fn the_flow_may_have_changed_since() {
    let folder = Folder::with_flow(&two_steps());
    let id = killed(&folder, &["flow.json"]);
    // The run goes on as it was planned; its result goes the way the wires lead now.
    let changed = flow_with(final_answer("something else"), "d", json!({"name": "other"}));
    folder.write("flow.json", changed.to_string());
    let output = folder.redflow(["run", "--resume", &id, "flow.json"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
    assert!(output.stderr.contains("[debug other] msg.payload: done\n"), "{output:#?}");
}

#[test]
fn a_wrong_flow_blocks_and_cancels_nothing() {
    let folder = Folder::with_flow(&dangerous_flow());
    let id = interrupted_in_a_call(&folder);
    let other = json!([
        agent("b", json!([["m2"], ["c2"], [], [], []])),
        model("m2", final_answer("x")),
        node("c2", "calculator-tool", json!([[]]))
    ]);
    folder.write("other.json", other.to_string());
    let output = folder.redflow(["run", "--resume", &id, "other.json"]).run();
    output.refused(&format!(
        "error[RUN_BLOCKED]: the flow has no agent `a`; give the flow that has it, or cancel with redflow runs cancel {id}\n"
    ));
    let output = folder.redflow(["run", "--resume", "all", "other.json"]).run();
    let file = source(&folder, "flow.json");
    let left = format!("run {id} is left alone: it is of another flow: {file}\nno run has to be resumed\n");
    assert_eq!((output.code, output.stderr), (0, left));
    // The same file, from which the agent was removed.
    let flow = folder.read("flow.json");
    folder.write("flow.json", other.to_string());
    let output = folder.redflow(["run", "--resume", "all", "flow.json"]).run();
    let left = format!("run {id} is left alone: the flow has no agent `a`\nno run has to be resumed\n");
    assert_eq!((output.code, output.stderr), (0, left));
    folder.write("flow.json", flow);
    assert_eq!(folder.runs()[0]["status"], "interrupted");
    folder.redflow(["run", "--resume", &id, "gone.json"]).run().refused("error[FLOW_UNREADABLE]");
}

#[test]
fn a_secret_that_is_not_there_blocks() {
    let mut nodes = two_steps();
    for node in nodes.as_array_mut().unwrap() {
        if node["id"] == "m" {
            *node = with(node.clone(), json!({"apiKey": "sk-live-0123456789"}));
        }
    }
    let folder = Folder::with_flow(&nodes);
    let id = killed(&folder, &["flow.json"]);
    std::fs::rename(folder.path("flow.json"), folder.path("moved.json")).unwrap();
    let output = folder.redflow(["run", "--resume", &id]).run();
    output.refused("the secret in `apiKey` is not recorded");
    assert_eq!(output.errors(), ["RUN_BLOCKED"]);
    let words = format!("nothing is lost; with its flow it may go on: redflow run --resume {id} FLOW\n");
    assert!(output.stderr.contains(&words), "{output:#?}");
    let output = folder.redflow(["run", "--resume", &id, "--json", "--quiet"]).run();
    assert_eq!((output.code, output.json()), (2, json!({"runId": id, "status": "interrupted"})));
    std::fs::rename(folder.path("moved.json"), folder.path("flow.json")).unwrap();
    let output = folder.redflow(["run", "--resume", &id, "--quiet"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
}

#[test]
fn all_that_was_interrupted_goes_on() {
    let folder = Folder::with_flow(&two_steps());
    let first = killed(&folder, &["flow.json"]);
    let second = killed(&folder, &["flow.json"]);
    folder.write("bad.json", flow_with(json!(["prose"]), "m", json!({"delayMs": 2000})).to_string());
    let third = killed(&folder, &["bad.json"]);
    let output = folder.redflow(["run", "--resume", "all", "--json", "--quiet"]).run();
    assert_eq!((output.code, output.errors()), (1, vec!["INVALID_JSON"]), "the worst counts: {output:#?}");
    let lines: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<[&str; 2]> = lines
        .iter()
        .map(|line| [line["runId"].as_str().unwrap(), line["status"].as_str().unwrap()])
        .collect();
    assert_eq!(told, [[first.as_str(), "completed"], [&second, "completed"], [&third, "failed"]]);
    assert_eq!(lines[0]["message"]["payload"], "done");
    assert_eq!(lines[2]["message"]["payload"]["code"], "INVALID_JSON");
    proved(&folder, "3 runs: 3");
}

#[test]
fn all_as_text() {
    let folder = Folder::with_flow(&two_steps());
    let first = killed(&folder, &["flow.json"]);
    folder.write("dangerous.json", dangerous_flow().to_string());
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
fn a_result_that_never_arrived_is_sent_when_the_run_is_resumed() {
    // The second agent of a chain was at work when the process was killed; the first one is over.
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
    let mut run = Watched::start(folder.redflow(["run", "flow.json", "--node", "a"]), "");
    run.wait_for("▶ b ");
    run.kill();
    let output = folder.redflow(["run", "--resume", "all", "flow.json"]).run();
    assert_eq!(output.code, 0, "{output:#?}");
    assert!(output.stderr.contains("[debug d] msg.payload: from b\n"), "{output:#?}");
    let agents: Vec<Value> = folder.runs().iter().map(|run| run["agent"]["nodeId"].clone()).collect();
    assert_eq!(agents, ["b", "a"], "none began twice");
    proved(&folder, "2 runs: 2");
}

#[test]
fn only_one_process_drives_a_directory() {
    let folder = Folder::with_flow(&slow_flow());
    folder.write("quick.json", flow(final_answer("hi"), vec![]).to_string());
    let mut run = Watched::start(folder.redflow(["run", "flow.json"]), "");
    run.wait_for("▶ a ");
    let id = folder.only_run();
    assert_eq!(folder.runs()[0]["status"], "running");

    let output = folder.redflow(["run", "quick.json"]).run();
    output.refused(&format!("error[DATA_LOCKED]: Process {} drives the runs in ", run.running.0.id()));
    output.refused("   = help: use another --data DIR, or --ephemeral to keep nothing; a sidecar that has it runs its flow with --url URL\n");
    for args in [["run", "--resume", "all"].as_slice(), &["run", "--resume", &id]] {
        assert_eq!(folder.redflow(args.iter().copied()).run().errors(), ["DATA_LOCKED"], "{args:?}");
    }
    folder.well(["run", "quick.json", "--ephemeral"]);
    folder.well(["run", "quick.json", "--data", "other"]);
    // Looking, copying and removing goes on beside it.
    let shown = folder.well(["runs", "show", &id]);
    assert!(shown.contains("  status     running\n"), "{shown}");
    assert!(folder.well(["replay", &id]).ends_with("so far; it is running\n"));
    folder.well(["backup", "copy"]);
    folder.well(["runs", "prune", "--keep", "0"]);
    let output = folder.redflow(["runs", "resolve", &id, "--done"]).run();
    output.refused("is at work and waits for nothing");
    assert_eq!(output.errors(), ["RUN_NOT_WAITING"]);

    let output = folder.redflow(["runs", "cancel", &id]).run();
    let words = format!("run {id} is cancelled by the process that drives it\n");
    assert_eq!((output.code, output.stderr), (0, words));
    let output = run.end();
    assert_eq!((output.code, output.errors()), (1, vec!["CANCELLED"]), "{output:#?}");
    // The lock goes with its process, and so does one that was killed.
    folder.well(["run", "quick.json"]);
}

/// Calls with a limit on the size of files, as a full disk would be.
#[cfg(target_os = "linux")]
fn with_little_room(folder: &Folder, kib: u32, args: &str) -> Output {
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
fn a_run_that_cannot_be_recorded_does_not_begin() {
    let folder = Folder::with_flow(&flow(final_answer("hi"), vec![]));
    folder.write("in.json", format!("\"{}\"", "x".repeat(3_000_000)));
    let output = with_little_room(&folder, 1024, "run flow.json --json --input @in.json");
    assert_eq!((output.code, output.errors()), (2, vec!["JOURNAL_FAILED"]), "{output:#?}");
    assert_eq!(port3(&output)["payload"]["code"], "JOURNAL_FAILED");
    assert_eq!(folder.runs(), [] as [Value; 0]);
    let output = with_little_room(&folder, 1, "run flow.json");
    output.refused("error[DATA_FULL]: ");
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_can_no_longer_be_recorded_is_suspended() {
    let call = |text: &str| json!({"action": "tool", "tool": "calculator", "input": {"expression": text}, "confidence": 0.5});
    let long = call(&format!("1{}", " ".repeat(900_000)));
    let end = json!({"action": "final", "message": "done", "confidence": 1});
    let folder = Folder::with_flow(&flow(json!([long.clone(), long, end]), vec![]));
    // Enough for the plan, which holds both answers, and for the first of them.
    let output = with_little_room(&folder, 3072, "run flow.json");
    let id = folder.only_run();
    output.refused(&format!("error[DATA_FULL]: run {id}: "));
    output.refused(&format!(
        "   = help: nothing is lost; when that is mended: redflow run --resume {id} flow.json\n"
    ));
    let output = folder.redflow(["run", "--resume", &id, "--quiet"]).run();
    assert_eq!((output.code, output.stdout.as_str()), (0, "done\n"), "{output:#?}");
    proved(&folder, "1 run: 1");
}

/// Its flow is in Node-RED, and so is what waits for its result.
#[test]
fn a_run_of_a_node_red_is_left_to_the_sidecar() {
    let folder = Folder::with_flow(&dangerous_flow());
    let run = interrupted_run_of(&"home".into(), &folder, "flow.json");
    let why = "it is of the Node-RED `home`: `redflow serve` goes on with it when that is connected";
    let all = folder.redflow(["run", "--resume", "all"]).run();
    assert!(all.stderr.contains(&format!("is left alone: {why}")), "{all:?}");
    let one = folder.redflow(["run", "--resume", &run]).run();
    assert_eq!(one.code, 2, "{one:?}");
    assert!(one.stderr.contains("RUN_BLOCKED") && one.stderr.contains(why), "{one:?}");
    assert_eq!(folder.runs()[0]["status"], "interrupted");
}
