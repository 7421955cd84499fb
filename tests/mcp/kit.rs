//! The programs of the tests: the packages of npm and pip, and the real binary with a data directory.

use redflow_testkit::{Exit, LoggedProcess, redflow_binary, remove_settings};
use serde_json::{Value, json};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The time limit of every wait in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The oldest Node.js that runs all packages.
const OLDEST_NODE: u32 = 22;

/// The folder of these tests.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp")
}

/// The main file of an installed package of npm.
pub(crate) fn package(file: &str) -> PathBuf {
    folder().join("node_modules").join(file)
}

/// The program of a server, `NAME` of `server-NAME`.
pub(crate) fn server(name: &str) -> String {
    package(&format!("@modelcontextprotocol/server-{name}/dist/index.js")).display().to_string()
}

/// A Node.js that runs the packages, which are installed. The system's own, or one from npm if that is too old.
pub(crate) fn node() -> PathBuf {
    install("node_modules/.package-lock.json", &["package.json", "package-lock.json"], || {
        let mut npm = Command::new("npm");
        // `npm ci` wants packages for other systems that a registry may not have.
        npm.args(["install", "--no-save", "--no-audit", "--no-fund"]);
        vec![npm]
    });
    let version = Command::new("node").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if version.is_ok_and(|version| major(&version) >= Some(OLDEST_NODE)) {
        return "node".into();
    }
    let node = folder().join("node_modules/.bin/node");
    assert!(
        node.exists(),
        "these tests need Node.js {OLDEST_NODE} or newer, and npm has none for this system: install one"
    );
    node
}

/// A Python with the packages of `requirements.txt`, and those of `requirements-langchain.txt` in a folder of their own.
pub(crate) fn python() -> PathBuf {
    let venv = folder().join("dist/python");
    let python = venv.join("bin/python");
    install("dist/python/installed", &["requirements.txt", "requirements-langchain.txt"], || {
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(&venv);
        let mut pip = Command::new(&python);
        let install = ["-m", "pip", "install", "--quiet", "--no-deps", "-r"];
        pip.args(install).arg("requirements.txt");
        let mut other_sdk = Command::new(&python);
        other_sdk.args(install).args(["requirements-langchain.txt", "--target"]).arg(venv.join("langchain"));
        let mut mark = Command::new("touch");
        mark.arg(venv.join("installed"));
        vec![make, pip, other_sdk, mark]
    });
    python
}

/// Runs the commands, unless that was done since a source changed. `mark` is the file that is written last.
fn install(mark: &str, sources: &[&str], commands: impl FnOnce() -> Vec<Command>) {
    let folder = folder();
    // Each test is a process of its own: one of them installs, the others wait for it.
    std::fs::create_dir_all(folder.join("dist")).unwrap();
    let lock = File::create(folder.join("dist/install.lock")).unwrap();
    lock.lock().unwrap();
    let changed = |name: &str| std::fs::metadata(folder.join(name)).and_then(|data| data.modified()).ok();
    let installed = changed(mark);
    if installed.is_some() && sources.iter().all(|source| changed(source) <= installed) {
        return;
    }
    for mut command in commands() {
        command.current_dir(&folder).stdin(Stdio::null());
        let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

fn major(version: &str) -> Option<u32> {
    version.trim().trim_start_matches('v').split('.').next()?.parse().ok()
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn run(command: Command) -> Exit {
    LoggedProcess::start(command).unwrap().wait(PATIENCE).unwrap()
}

/// Runs a command to its end, which must be a success. Gives its output.
#[track_caller]
pub(crate) fn output(command: Command) -> String {
    let shown = format!("{command:?}");
    let exit = run(command);
    assert_eq!(exit.code, Some(0), "{shown}\n{}{}", exit.stdout, exit.stderr);
    exit.stdout
}

/// Runs a command to its end, which must be a success, and reads its output as JSON.
#[track_caller]
pub(crate) fn json_output(command: Command) -> Value {
    let text = output(command);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The definition of a server that is a program of Node.js. It may read the packages.
pub(crate) fn stdio_server(args: &[&str], more: Value) -> Value {
    let mut server = json!({"command": node(), "args": args, "read": [folder().join("node_modules")]});
    if let (Some(server), Value::Object(more)) = (server.as_object_mut(), more) {
        server.extend(more);
    }
    server
}

/// A data directory with a manifest, and a flow.
pub(crate) struct Home {
    pub(crate) dir: TempDir,
    has_namespaces: bool,
}

/// Starts a program in a namespace that allows no further ones.
const WITHOUT_NAMESPACES: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";

impl Home {
    /// Writes the MCP servers into the manifest, and the flow.
    pub(crate) fn new(servers: Value, flow: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        let home = Self { dir, has_namespaces: true };
        std::fs::write(home.path("data/tools.json"), json!({"mcp": servers}).to_string()).unwrap();
        std::fs::write(home.path("flow.json"), flow.to_string()).unwrap();
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The same twice: as the system confines programs, and as one without namespaces does.
    pub(crate) fn both(servers: Value, flow: &Value) -> [Self; 2] {
        let unshare = Command::new("unshare").args(["--user", "true"]).stderr(Stdio::null()).status();
        let can_have_namespaces = unshare.is_ok_and(|status| status.success());
        let without = Self { has_namespaces: !can_have_namespaces, ..Self::new(servers.clone(), flow) };
        [Self::new(servers, flow), without]
    }

    /// `redflow` with this data directory.
    pub(crate) fn redflow(&self, args: &[&str]) -> Command {
        let program = redflow_binary().unwrap();
        let mut command = if self.has_namespaces {
            Command::new(program)
        } else {
            let mut unshare = Command::new("unshare");
            unshare.args(["--user", "--map-root-user", "sh", "-c", WITHOUT_NAMESPACES]).arg(program);
            unshare
        };
        command.args(args).current_dir(self.dir.path());
        remove_settings(&mut command);
        command.env("REDFLOW_DATA", self.path("data")).env("NO_COLOR", "1");
        command
    }

    /// Runs the agent of the flow and gives the message of its result port.
    #[track_caller]
    pub(crate) fn run_agent(&self) -> Value {
        json_output(self.redflow(&["run", "flow.json", "--json", "--quiet"]))
    }

    pub(crate) fn serve(&self) -> Sidecar {
        let flow = self.path("flow.json");
        let command =
            self.redflow(&["serve", "--listen", "127.0.0.1:0", "--flows", &flow.display().to_string()]);
        let mut process = LoggedProcess::start(command).unwrap();
        let addr = process.wait_for_address(PATIENCE).unwrap();
        let token = std::fs::read_to_string(self.path("data/token")).unwrap().trim().to_owned();
        Sidecar { _process: process, addr, token }
    }

    /// The runs of the data directory.
    #[track_caller]
    pub(crate) fn runs(&self) -> Vec<Value> {
        let text = output(self.redflow(&["runs", "list", "--json"]));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A sidecar. Drop kills it.
pub(crate) struct Sidecar {
    _process: LoggedProcess,
    pub(crate) addr: SocketAddr,
    pub(crate) token: String,
}

impl Sidecar {
    /// The address of its MCP server.
    pub(crate) fn mcp(&self) -> String {
        format!("http://{}/mcp", self.addr)
    }
}

/// An agent that makes the calls and then gives `answer`, and the nodes around it. The calls are `(tool, input)`.
pub(crate) fn agent(server: &str, calls: &[(&str, Value)], answer: &str) -> Value {
    let call = |(tool, input): &(&str, Value)| json!({"toolCalls": [{"name": tool, "arguments": input}]});
    let mut replies: Vec<Value> = calls.iter().map(call).collect();
    replies.push(answer.into());
    json!([
        {"id": "tab", "type": "tab", "label": "Peers"},
        {"id": "ask", "type": "inject", "z": "tab", "x": 100, "y": 80, "wires": [["helper"]],
         "props": [{"p": "payload"}], "payload": "Go.", "payloadType": "str"},
        {"id": "helper", "type": "ai-agent", "z": "tab", "name": "helper", "outputFormat": "full", "x": 300, "y": 80,
         "wires": [["shown"], []], "model": "model", "tools": ["peer"]},
        {"id": "model", "type": "scripted-model", "z": "tab", "x": 300, "y": 160, "wires": [], "replies": replies},
        {"id": "peer", "type": "mcp-client", "z": "tab", "server": server, "x": 300, "y": 240, "wires": []},
        {"id": "shown", "type": "debug", "z": "tab", "x": 500, "y": 80, "wires": [], "complete": "payload"},
    ])
}

#[test]
fn knows_which_versions_of_node_run_the_packages() {
    assert_eq!(major("v20.20.2\n"), Some(20));
    assert_eq!(major("what"), None);
    assert!(major("v22.1.0") >= Some(OLDEST_NODE) && major("what") < Some(OLDEST_NODE));
}
