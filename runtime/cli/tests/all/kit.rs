//! Helpers: calls of the binary, folders for its files, and small flows.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The result of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// The one JSON value on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert!(self.stdout.ends_with('\n') && self.stdout.lines().count() == 1, "no single line: {self:#?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Expects a failure of the command itself: nothing on stdout, and this text on stderr.
    #[track_caller]
    pub(crate) fn assert_refused(&self, words: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{self:#?}");
        assert!(self.stderr.contains(words), "no `{words}`: {self:#?}");
    }

    /// The codes of the errors on stderr.
    pub(crate) fn errors(&self) -> Vec<&str> {
        let lines = self.stderr.lines().filter_map(|line| line.strip_prefix("error["));
        lines.filter_map(|line| line.split(']').next()).collect()
    }
}

/// A call of the binary. It runs at the top of the repository, without colours, and with its own data
/// directory.
pub(crate) struct Call {
    command: Command,
    stdin: Option<Vec<u8>>,
    data: tempfile::TempDir,
}

pub(crate) fn redflow<'a>(args: impl IntoIterator<Item = &'a str>) -> Call {
    call(Path::new(env!("CARGO_BIN_EXE_redflow")), args)
}

fn call<'a>(binary: &Path, args: impl IntoIterator<Item = &'a str>) -> Call {
    let mut command = Command::new(binary);
    command.args(args).current_dir(repository()).env("NO_COLOR", "1");
    for name in ["CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "COLUMNS"] {
        command.env_remove(name);
    }
    for name in
        ["CONFIG", "LOG", "LISTEN", "FLOWS", "PROFILE", "TOKEN", "UI", "URL", "MEMORY_KEY", "EGRESS_PRIVATE"]
    {
        command.env_remove(format!("REDFLOW_{name}"));
    }
    // The tests must use no key and no Redis of the developer.
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "REDIS_PASSWORD"] {
        command.env_remove(name);
    }
    command.env("REDIS_URL", "redis://127.0.0.1:1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let data = tempfile::tempdir().unwrap();
    command.env("REDFLOW_DATA", data.path().join("data"));
    Call { command, stdin: None, data }
}

impl Call {
    pub(crate) fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    pub(crate) fn stdout(mut self, to: impl Into<Stdio>) -> Self {
        self.command.stdout(to);
        self
    }

    #[track_caller]
    pub(crate) fn run(mut self) -> Output {
        let stdin = self.stdin.take();
        if stdin.is_some() {
            self.command.stdin(Stdio::piped());
        }
        let mut child = self.command.spawn().unwrap();
        let writer = child.stdin.take().zip(stdin).map(|(mut pipe, text)| {
            // The child may end before it has read everything.
            std::thread::spawn(move || drop(pipe.write_all(&text)))
        });
        let output = child.wait_with_output().unwrap();
        if let Some(writer) = writer {
            writer.join().unwrap();
        }
        Output {
            code: code_of(output.status),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts the call with a writable stdin.
    pub(crate) fn spawn(mut self) -> Running {
        Running(self.command.stdin(Stdio::piped()).spawn().unwrap(), self.data)
    }
}

#[track_caller]
pub(crate) fn code_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| panic!("ended by a signal: {status}"))
}

/// A process that ends with its test, and its data directory.
pub(crate) struct Running(pub(crate) Child, #[allow(dead_code)] tempfile::TempDir);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder for the files of one test. Calls run inside it, so that file names are short and the same on
/// every machine. They share a data directory, which is in another folder.
pub(crate) struct Folder(tempfile::TempDir, tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap())
    }

    /// The data directory of the calls. The first call that needs it creates it.
    pub(crate) fn data(&self) -> PathBuf {
        self.1.path().join("data")
    }

    /// A folder with the flow `flow.json`.
    pub(crate) fn with_flow(flow: &Value) -> Self {
        let folder = Self::new();
        folder.write("flow.json", flow.to_string());
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn files(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    pub(crate) fn redflow<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Call {
        redflow(args).within(self.0.path()).env("REDFLOW_DATA", self.data().to_str().unwrap())
    }

    /// A call by a user without root rights: root becomes `nobody`. It makes the folder readable for all.
    #[cfg(unix)]
    pub(crate) fn redflow_without_root<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Call {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        use std::os::unix::process::CommandExt as _;
        if std::fs::metadata(self.0.path()).unwrap().uid() != 0 {
            return self.redflow(args);
        }
        for open in [self.0.path(), self.1.path()] {
            std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        // The user `nobody` may not reach the folder of the binary.
        let copy = self.1.path().join("redflow");
        if !copy.exists() {
            std::fs::copy(env!("CARGO_BIN_EXE_redflow"), &copy).unwrap();
        }
        let mut call =
            call(&copy, args).within(self.0.path()).env("REDFLOW_DATA", self.data().to_str().unwrap());
        call.command.uid(65534).gid(65534);
        call
    }

    /// Calls, expects success, and gives the output.
    #[track_caller]
    pub(crate) fn run_ok<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.redflow(args).run();
        assert_eq!(output.code, 0, "{output:#?}");
        output.stdout
    }

    /// The runs in the data directory, the newest first.
    #[track_caller]
    pub(crate) fn runs(&self) -> Vec<Value> {
        self.run_ok(["runs", "--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The id of the only run.
    #[track_caller]
    pub(crate) fn only_run(&self) -> String {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:#?}");
        runs[0]["runId"].as_str().unwrap().to_owned()
    }
}

/// Runs a flow with more arguments, in a new folder.
#[track_caller]
pub(crate) fn run_flow(flow: &Value, args: &[&str]) -> Output {
    let args = ["run", "flow.json"].into_iter().chain(args.iter().copied());
    Folder::with_flow(flow).redflow(args).run()
}

/// A node with a position on tab `t`.
pub(crate) fn node(id: &str, type_name: &str, wires: Value) -> Value {
    json!({"id": id, "type": type_name, "z": "t", "name": id, "x": 1, "y": 1, "wires": wires})
}

pub(crate) fn with(mut node: Value, extra: Value) -> Value {
    for (key, value) in extra.as_object().unwrap() {
        node[key] = value.clone();
    }
    node
}

/// An inject that sends a text.
pub(crate) fn inject(id: &str, payload: &str, wires: Value) -> Value {
    let props = json!([{"p": "payload"}, {"p": "topic", "vt": "str"}]);
    with(
        node(id, "inject", wires),
        json!({"props": props, "payload": payload, "payloadType": "str", "topic": "t"}),
    )
}

/// An agent-core that allows the calculator.
pub(crate) fn agent(id: &str, wires: Value) -> Value {
    let config = json!({"strategy": "react", "maxIterations": 5, "allowedTools": ["calculator"]});
    with(node(id, "agent-core", wires), config)
}

pub(crate) fn model(id: &str, replies: Value) -> Value {
    with(node(id, "scripted-model", json!([[]])), json!({"replies": replies}))
}

pub(crate) fn final_answer(message: &str) -> Value {
    json!([{"action": "final", "message": message, "confidence": 1}])
}

/// Inject `i` → agent `a` with model `m` and calculator `c`, result to debug `d`, and more nodes.
pub(crate) fn flow(replies: Value, more: Vec<Value>) -> Value {
    let mut nodes = vec![
        inject("i", "hello", json!([["a"]])),
        agent("a", json!([["m"], ["c"], [], ["d"], []])),
        model("m", replies),
        node("c", "calculator-tool", json!([[]])),
        node("d", "debug", json!([])),
    ];
    nodes.extend(more);
    Value::Array(nodes)
}

/// The flow of [`flow`], with other properties for one of its nodes.
pub(crate) fn flow_with(replies: Value, id: &str, extra: Value) -> Value {
    let Value::Array(nodes) = flow(replies, vec![]) else { panic!() };
    nodes.into_iter().map(|node| if node["id"] == id { with(node, extra.clone()) } else { node }).collect()
}

/// Validates a value with a schema of the binary.
#[track_caller]
pub(crate) fn check_schema(name: &str, value: &Value) {
    let schema = redflow(["schema", name]).run();
    assert_eq!((schema.code, schema.stderr.as_str()), (0, ""), "{name}");
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{} {error}", error.instance_path())).collect();
    assert_eq!(problems, [] as [String; 0], "{name}: {value:#}");
}

/// The message of port 3, validated with its schemas.
#[track_caller]
pub(crate) fn port3(output: &Output) -> Value {
    const PARTS: [(&str, &str); 3] =
        [("agent-output", ""), ("agent-envelope", "/envelope"), ("agent-result", "/agentResult")];
    let message = output.json();
    for (schema, pointer) in PARTS {
        let part = message.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}: {message:#}"));
        check_schema(schema, part);
    }
    message
}

/// Replaces the parts that differ in each run: ids of runs, and milliseconds.
pub(crate) fn normalize(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let mut normalized: Vec<String> = Vec::new();
        for (place, word) in words.iter().enumerate() {
            let plain = word.trim_end_matches([',', ':']);
            let is_id = plain.len() == 36 && plain.matches('-').count() == 4;
            let is_time = words.get(place + 1) == Some(&"ms") && word.parse::<u64>().is_ok();
            if is_time {
                while normalized.pop_if(|last| last.is_empty()).is_some() {}
            }
            normalized.push(match (is_id, is_time) {
                (true, _) => word.replace(plain, "ID"),
                (_, true) => "N".to_owned(),
                _ => (*word).to_owned(),
            });
        }
        out += normalized.join(" ").trim_end();
        out.push('\n');
    }
    out
}

/// Replaces the parts of a message that differ in each run.
pub(crate) fn normalize_json(value: Value) -> Value {
    const VARIES: [&str; 8] =
        ["_msgid", "traceId", "startedAt", "at", "askedAt", "durationMs", "callId", "runId"];
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| {
                let value = if VARIES.contains(&key.as_str()) { json!("…") } else { normalize_json(value) };
                (key, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(normalize_json).collect(),
        other => other,
    }
}
