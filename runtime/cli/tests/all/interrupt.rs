//! Ctrl-C. The model takes ten minutes to answer; no test waits for it.

use crate::journal::replay;
use crate::kit::{Call, Folder, Output, Running, code_of, final_answer, flow_with, port3};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::process::{ChildStderr, Command};

fn slow_flow() -> Value {
    flow_with(final_answer("too late"), "m", json!({"delayMs": 600_000}))
}

/// A run, and its stderr as far as it was read.
struct Watched {
    running: Running,
    stderr: BufReader<ChildStderr>,
    read: String,
}

impl Watched {
    fn start(call: Call, input: &str) -> Self {
        let mut running = call.spawn();
        running.0.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let stderr = BufReader::new(running.0.stderr.take().unwrap());
        Self { running, stderr, read: String::new() }
    }

    /// Reads stderr up to a line that begins like this.
    #[track_caller]
    fn wait_for(&mut self, words: &str) {
        loop {
            let begin = self.read.len();
            let more = self.stderr.read_line(&mut self.read).unwrap();
            assert!(more > 0, "stderr ended without `{words}`: {}", self.read);
            if self.read[begin..].starts_with(words) {
                return;
            }
        }
    }

    fn interrupt(&self) {
        let id = self.running.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    }

    #[track_caller]
    fn end(mut self) -> Output {
        let mut stdout = String::new();
        self.running.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut self.read).unwrap();
        Output { code: code_of(self.running.0.wait().unwrap()), stdout, stderr: self.read }
    }
}

#[test]
fn the_first_cancels_cleanly() {
    let folder = Folder::with_flow(&slow_flow());
    let mut run = Watched::start(folder.redflow(["run", "flow.json", "--json", "--journal", "j"]), "");
    run.wait_for("▶ a ");
    run.interrupt();
    let output = run.end();
    assert_eq!((output.code, output.errors()), (1, vec!["CANCELLED"]), "{output:#?}");
    assert!(output.stderr.contains("\ncancelling; press Ctrl-C again to leave at once\n"), "{output:#?}");
    let message = port3(&output);
    assert_eq!(message["agentResult"]["stopReason"], "error");
    assert_eq!([&message["payload"]["code"], &message["error"]["code"]], ["CANCELLED"; 2]);

    let (text, report) = replay(&folder, "j");
    let outcome = json!({"type": "failed", "code": "CANCELLED"});
    assert_eq!((text.code, &report["complete"], &report["outcome"]), (0, &json!(true), &outcome));
}

#[test]
fn the_second_leaves_at_once() {
    // The result is larger than a pipe holds and nobody reads it: left alone, the command never ends.
    let folder = Folder::with_flow(&slow_flow());
    let input = format!("\"{}\"", "x".repeat(1_000_000));
    let mut run = Watched::start(folder.redflow(["run", "flow.json", "--json", "--input", "-"]), &input);
    run.wait_for("▶ a ");
    run.interrupt();
    run.wait_for("error[CANCELLED]");
    run.interrupt();
    assert_eq!(code_of(run.running.0.wait().unwrap()), 130);
}
