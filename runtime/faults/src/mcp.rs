//! A call of a tool of an MCP server that is not ours: kills the sidecar at every failpoint of the call and starts it
//! again, and kills the server in the middle of the call.

use super::rig::{Rig, TIME_LIMIT};
use super::{Row, resume_until_finished};
use redflow_testkit::{LoggedProcess, kill_at_home};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The failpoints of a call, in the order in which a run passes them.
const POINTS: [&str; 8] = [
    "intent.before_keep",
    "intent.after_keep",
    "act.before",
    SENT,
    "act.after",
    "result.before_keep",
    "result.after_keep",
    "output.before_delivery",
];

/// The server has the call and does not answer yet.
const SENT: &str = "act (the call was sent, no answer yet)";

/// The same, and the server is killed, not the sidecar.
const SERVER_KILLED: &str = "the server is killed after the call was sent";

/// What the server is sent goes through `tee`, so the file `sent` counts the calls.
const PROGRAM: &str = "cd \"$1\"; tee -a sent | \"$2\" \"$3\"";

/// The number of calls, and whether a person was asked, where a crash has only one possible outcome.
fn expected_outcome(class: &str, point: &str) -> Option<(usize, bool)> {
    let once = class == "at_most_once";
    match point {
        "intent.before_keep" | "result.after_keep" | "output.before_delivery" => Some((1, false)),
        "intent.after_keep" | "act.before" if once => Some((0, true)),
        "intent.after_keep" | "act.before" => Some((1, false)),
        SENT | "act.after" | "result.before_keep" | SERVER_KILLED if once => Some((1, true)),
        SENT | "act.after" | "result.before_keep" => Some((2, false)),
        _ => None,
    }
}

/// None if the packages of the tests are not installed.
pub(super) fn run(root: &Path, rig: &Rig) -> Result<Option<Row>, String> {
    let packages = root.join("tests/mcp/node_modules");
    if !packages.join(".package-lock.json").exists() {
        return Ok(None);
    }
    let mut row = Row::new("a call of an MCP server: kill -9 of either side at every point");
    let (mut asked, mut repeated, mut dangerous, mut lost) = (0, 0, 0, 0);
    for class in ["at_most_once", "idempotent"] {
        for point in POINTS.into_iter().chain([SERVER_KILLED]) {
            row.cases += 1;
            match crash_at(&packages, rig, class, point) {
                Ok(Outcome { calls, questions, is_completed }) => {
                    asked += questions;
                    repeated += usize::from(calls > 1);
                    let outcome = (calls, questions > 0);
                    if expected_outcome(class, point).is_some_and(|expected| expected != outcome) {
                        row.failures
                            .push(format!("MCP, {class} at {point}: {calls} calls, {questions} questions"));
                    }
                    if class == "at_most_once" && calls > 1 {
                        dangerous += 1;
                        row.failures.push(format!(
                            "MCP, {class} at {point}: a dangerous call was made {calls} times"
                        ));
                    }
                    if !is_completed {
                        lost += 1;
                        row.failures.push(format!("MCP, {class} at {point}: the run is lost"));
                    }
                }
                Err(error) => row.failures.push(format!("MCP, {class} at {point}: {error}")),
            }
        }
    }
    row.figures =
        format!("{asked} asked a person, {repeated} repeated ({dangerous} at_most_once), {lost} lost");
    Ok(Some(row))
}

/// What one kill led to.
struct Outcome {
    /// How often the server was asked to do it.
    calls: usize,
    /// How often a person was asked.
    questions: usize,
    /// Whether the one run is there, has completed, and its result is delivered.
    is_completed: bool,
}

/// Kills at one point and starts again.
fn crash_at(packages: &Path, rig: &Rig, class: &str, point: &str) -> Result<Outcome, String> {
    let folder = rig.folder("mcp")?;
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    let is_sent = matches!(point, SENT | SERVER_KILLED);
    write_manifest(&folder, packages, class)?;
    let flow = Rig::write_flow(&folder, &flow(is_sent))?;
    let mut command = rig.redflow(&folder, &["run", &flow, "--node", "i", "--quiet"]);
    if !is_sent {
        command.env("REDFLOW_FAILPOINT", point);
    }
    let mut process = LoggedProcess::start(command)?;
    let is_reached =
        if is_sent { wait_for_call(&folder) } else { process.wait_for("FAILPOINT", TIME_LIMIT).is_some() };
    if !is_reached {
        return Err(format!("runs do not pass this point: {}{}", process.stdout(), process.stderr()));
    }
    if point == SERVER_KILLED {
        kill_at_home(&folder.join("data/mcp/folders/all"))?;
        let exit = process.wait(TIME_LIMIT)?;
        if !matches!(exit.code, Some(0 | 3)) {
            return Err(format!("{exit:?}"));
        }
    } else {
        process.kill()?;
    }
    let questions = resume_until_finished(rig, &folder, &flow)?;
    let runs = rig.list_runs(&folder)?;
    let is_completed = matches!(&runs[..], [run] if run["status"] == "completed" && run["delivered"] == true);
    Ok(Outcome { calls: count_calls(&folder), questions, is_completed })
}

fn write_manifest(folder: &Path, packages: &Path, class: &str) -> Result<(), String> {
    let own = packages.join(".bin/node");
    let node = if own.exists() { own } else { PathBuf::from("node") };
    let server = packages.join("@modelcontextprotocol/server-everything/dist/index.js");
    let (data, peer) = (folder.join("data"), folder.join("peer"));
    let manifest = json!({"mcp": {"all": {
        "command": "bash", "args": ["-c", PROGRAM, "bash", peer, node, server],
        "read": [packages], "write": [peer], "effects": {"*": class},
    }}});
    let failed = |error: std::io::Error| format!("{}: {error}", data.display());
    std::fs::create_dir_all(&data).and_then(|()| std::fs::create_dir_all(&peer)).map_err(failed)?;
    std::fs::write(data.join("tools.json"), manifest.to_string()).map_err(failed)
}

/// An agent that makes one call. A slow one takes two seconds.
fn flow(is_slow: bool) -> Value {
    let (tool, input) = if is_slow {
        ("mcp__all__trigger-long-running-operation", json!({"duration": 2, "steps": 1}))
    } else {
        ("mcp__all__echo", json!({"message": "x"}))
    };
    json!([
        {"id": "t", "type": "tab", "label": "MCP"},
        {"id": "i", "type": "inject", "z": "t", "x": 1, "y": 1, "wires": [["a"]],
         "props": [{"p": "payload"}], "payload": "go", "payloadType": "str"},
        {"id": "a", "type": "ai-agent", "z": "t", "name": "a", "x": 1, "y": 1, "wires": [["d"], []],
         "model": "m", "tools": ["c"]},
        {"id": "m", "type": "scripted-model", "z": "t", "x": 1, "y": 1, "wires": [],
         "replies": [{"toolCalls": [{"name": tool, "arguments": input}]}, "done"]},
        {"id": "c", "type": "mcp-client", "z": "t", "server": "all", "x": 1, "y": 1, "wires": []},
        {"id": "d", "type": "debug", "z": "t", "x": 1, "y": 1, "wires": [], "complete": "payload"},
    ])
}

fn count_calls(folder: &Path) -> usize {
    let sent = std::fs::read_to_string(folder.join("peer/sent")).unwrap_or_default();
    sent.lines().filter(|line| line.contains("\"tools/call\"")).count()
}

fn wait_for_call(folder: &Path) -> bool {
    let end = Instant::now() + TIME_LIMIT;
    while count_calls(folder) == 0 {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
