//! Ctrl-C and SIGTERM. The model needs ten minutes to answer; no test waits for it.

use crate::journal::replay;
use crate::kit::{Folder, code_of, final_answer, flow_with, port3};
use crate::live_command::LiveCommand;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

pub(crate) fn slow_flow() -> Value {
    flow_with(final_answer("too late"), "m", json!({"delayMs": 600_000}))
}

#[test]
fn the_first_ctrl_c_cancels_the_run() {
    let folder = Folder::with_flow(&slow_flow());
    let mut run = LiveCommand::start(folder.redflow(["run", "flow.json", "--json", "--journal", "j"]), "");
    run.wait_for("▶ a ");
    run.signal("-INT");
    let output = run.end();
    assert_eq!((output.code, output.errors()), (1, vec!["CANCELLED"]), "{output:#?}");
    assert!(output.stderr.contains("\ncancelling; press Ctrl-C again to exit at once\n"), "{output:#?}");
    assert!(output.stderr.contains("\n   1 –      no answer  "), "{output:#?}");
    let message = port3(&output);
    assert_eq!(message["agentResult"]["stopReason"], "error");
    assert_eq!([&message["payload"]["code"], &message["error"]["code"]], ["CANCELLED"; 2]);

    let (text, report) = replay(&folder, "j");
    let outcome = json!({"type": "failed", "code": "CANCELLED"});
    assert_eq!((text.code, &report["complete"], &report["outcome"]), (0, &json!(true), &outcome));
}

#[test]
fn a_deadline_ends_a_run_without_an_answer() {
    let mut nodes = slow_flow();
    nodes[1]["timeout"] = json!(100);
    let output = Folder::with_flow(&nodes).redflow(["run", "flow.json"]).run();
    assert_eq!((output.code, output.errors()), (1, vec!["TIMEOUT"]), "{output:#?}");
    assert!(output.stderr.contains("\n   1 –      no answer  "), "{output:#?}");
}

#[test]
fn the_second_ctrl_c_exits_at_once() {
    // The result is larger than the buffer of a pipe without a reader, so the command would never end.
    let folder = Folder::with_flow(&slow_flow());
    let input = format!("\"{}\"", "x".repeat(1_000_000));
    let mut run = LiveCommand::start(folder.redflow(["run", "flow.json", "--json", "--input", "-"]), &input);
    run.wait_for("▶ a ");
    run.signal("-INT");
    run.wait_for("error[CANCELLED]");
    run.signal("-INT");
    assert_eq!(code_of(run.running.0.wait().unwrap()), 130);
}

#[test]
fn a_second_sigterm_exits_at_once_and_leaves_the_run_interrupted() {
    let folder = Folder::with_flow(&slow_flow());
    let mut run = LiveCommand::start(folder.redflow(["run", "flow.json"]), "");
    run.wait_for("▶ a ");
    run.signal("-TERM");
    run.wait_for("suspending; the runs finish their current step");
    run.signal("-TERM");
    assert_eq!(code_of(run.running.0.wait().unwrap()), 143);
    assert_eq!(folder.runs()[0]["status"], "interrupted");
}

#[test]
fn ctrl_c_while_suspending_cancels_the_run() {
    let folder = Folder::with_flow(&slow_flow());
    let mut run = LiveCommand::start(folder.redflow(["run", "flow.json"]), "");
    run.wait_for("▶ a ");
    run.signal("-TERM");
    run.wait_for("suspending");
    run.signal("-INT");
    let output = run.end();
    assert_eq!((output.code, output.errors()), (1, vec!["CANCELLED"]), "{output:#?}");
}

#[test]
fn sigterm_cancels_ephemeral_runs() {
    let folder = Folder::with_flow(&slow_flow());
    let mut run = LiveCommand::start(folder.redflow(["run", "flow.json", "--ephemeral"]), "");
    run.wait_for("▶ a ");
    run.signal("-TERM");
    run.wait_for("cancelling: the runs are not stored");
    let output = run.end();
    assert_eq!((output.code, output.errors()), (1, vec!["CANCELLED"]), "{output:#?}");
    assert!(!folder.data().exists());
}
