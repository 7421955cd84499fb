//! `redflow flows pull|push|diff` with a Node-RED without the palette.

use crate::kit::flow::{Flow, with};
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::release_line::ReleaseLine;
use crate::kit::{on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use redflow_testkit::redflow_binary;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

on_both_lines!(pulls_compares_and_pushes_a_flow);
on_the_newer_line!(names_the_reason_of_each_refusal);

/// A folder for commands, and the address of their Node-RED.
struct Workspace {
    folder: TempDir,
    node_red: String,
}

/// The outcome of a command.
#[derive(Debug)]
struct CommandOutput {
    code: Option<i32>,
    out: String,
    err: String,
}

impl CommandOutput {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    #[track_caller]
    fn check(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.out.contains(words) || self.err.contains(words), "no {words:?} in {self:?}");
    }
}

impl Workspace {
    fn new(node_red: String) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), node_red }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn write(&self, name: &str, value: &Value) {
        std::fs::write(self.path(name), value.to_string()).unwrap();
    }

    async fn flows(&self, args: &[&str]) -> CommandOutput {
        self.flows_with(args, None).await
    }

    async fn flows_with(&self, args: &[&str], token: Option<&str>) -> CommandOutput {
        let mut command = std::process::Command::new(redflow_binary().unwrap());
        command.arg("flows").args(args).args(["--node-red", &self.node_red]).current_dir(self.folder.path());
        command.env_remove("NODE_RED_TOKEN").env("NO_COLOR", "1").stdin(std::process::Stdio::null());
        if let Some(token) = token {
            command.env("NODE_RED_TOKEN", token);
        }
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

async fn start(line: ReleaseLine, settings: String) -> (NodeRed, Workspace) {
    let node_red =
        NodeRed::start_with(line, Setup { without_palette: true, settings, ..Setup::default() }).await;
    let workspace = Workspace::new(format!("http://{}", node_red.addr()));
    (node_red, workspace)
}

async fn pulls_compares_and_pushes_a_flow(line: ReleaseLine) {
    let (node_red, workspace) = start(line, String::new()).await;
    let flow = Flow::bare().inject("ask", "hello", "shown").node(
        "shown",
        "debug",
        json!([]),
        json!({"active": true}),
    );
    node_red.deploy(&flow.json()).await;
    let deployed = async || node_red.admin.ask("GET", "/flows").await.ok(200);

    // A file and stdout get the same flow, with Node-RED's revision.
    workspace.flows(&["pull", "flows.json"]).await.check(0, "3 nodes");
    assert_eq!(workspace.read("flows.json"), deployed().await);
    assert_eq!(workspace.flows(&["pull"]).await.json(), deployed().await);
    workspace.flows(&["pull", "flows.json"]).await.check(0, "is what Node-RED has");
    workspace.flows(&["diff", "flows.json"]).await.check(0, "nothing differs");

    // `pull` replaces a changed file only with --force.
    let mut mine = workspace.read("flows.json");
    let nodes = mine["flows"].as_array_mut().unwrap();
    nodes[1]["payload"] = json!("a secret value");
    nodes[1]["wires"] = json!([["shown", "new"]]);
    nodes.remove(2);
    nodes
        .push(json!({"id": "new", "type": "debug", "z": "tab", "name": "Mine", "x": 1, "y": 1, "wires": []}));
    workspace.write("flows.json", &mine);
    workspace.flows(&["pull", "flows.json"]).await.check(2, "--force");
    assert_eq!(workspace.read("flows.json"), mine);

    // `diff` names nodes and properties, but no values.
    let diff = workspace.flows(&["diff", "flows.json"]).await;
    diff.check(1, "1 node added, 1 node removed, 1 node changed");
    for line in ["+ debug `Mine` (new)", "- debug shown", "~ inject ask: wires, payload"] {
        diff.check(1, line);
    }
    assert!(!diff.out.contains("secret"), "{diff:?}");
    let diff = workspace.flows(&["diff", "flows.json", "--json"]).await;
    assert_eq!(
        (diff.code, diff.json()["changed"][0]["properties"].clone()),
        (Some(1), json!(["wires", "payload"]))
    );

    // Each push writes the new revision into the file.
    workspace.flows(&["push", "flows.json"]).await.check(0, "deployed 3 nodes");
    assert_eq!(workspace.read("flows.json"), deployed().await);
    assert_ne!(workspace.read("flows.json")["rev"], mine["rev"]);
    let again = workspace.flows(&["push", "flows.json", "--type", "full", "--json"]).await.json();
    assert_eq!((&again["revision"], &again["nodes"]), (&deployed().await["rev"], &json!(3)));

    // After another deploy, a push overwrites nothing and leaves the file unchanged.
    node_red.deploy(&flow.json()).await;
    let (before, file) = (deployed().await, workspace.read("flows.json"));
    workspace
        .flows(&["push", "flows.json"])
        .await
        .check(2, "error[NODE_RED_REFUSED]: Another flow was deployed");
    assert_eq!((deployed().await, workspace.read("flows.json")), (before.clone(), file));
    // A file without a revision overwrites nothing either.
    workspace.write("array.json", &mine["flows"]);
    workspace.flows(&["push", "array.json"]).await.check(2, "it has no `rev`");
    assert_eq!(deployed().await, before);
    // With --force it does, and prints first what it removes.
    workspace.flows(&["push", "array.json", "--force"]).await.check(0, "- debug shown");
    assert_eq!(
        (deployed().await["flows"].clone(), workspace.read("array.json")),
        (mine["flows"].clone(), mine["flows"].clone())
    );

    // A flow with errors is not deployed.
    workspace.flows(&["pull", "flows.json", "--force"]).await.check(0, "3 nodes");
    let mut mine = workspace.read("flows.json");
    let agent = Flow::default().agent("agent", &[], json!([[], [], [], [], []])).0.remove(0);
    mine["flows"].as_array_mut().unwrap().push(with(agent, json!({"runtime": ""})));
    workspace.write("flows.json", &mine);
    let before = deployed().await;
    workspace.flows(&["push", "flows.json"]).await.check(1, "MODEL_MISSING");
    assert_eq!(deployed().await, before);
    workspace.flows(&["push", "flows.json", "--no-check"]).await.check(0, "deployed 4 nodes");
}

/// A token that Node-RED accepts.
const TOKEN: &str = "an-access-token-of-node-red";

async fn names_the_reason_of_each_refusal(line: ReleaseLine) {
    let users = format!(
        r#"adminAuth: {{
        type: "credentials", users: [],
        default: {{ permissions: ["flows.read"] }},
        tokens: async (token) => token === "{TOKEN}" ? {{ username: "test", permissions: "*" }} : null,
    }},"#
    );
    let (node_red, mut workspace) = start(line, users).await;
    workspace.flows(&["pull", "flows.json"]).await.check(0, "0 nodes");
    let push = ["push", "flows.json"];
    workspace.flows(&push).await.check(2, "error[NODE_RED_REFUSED]: Node-RED at");
    let wrong = workspace.flows_with(&push, Some("a-wrong-one")).await;
    wrong.check(2, "does not take the access token in NODE_RED_TOKEN (401)");
    assert!(!wrong.err.contains("a-wrong-one"), "{wrong:?}");
    workspace.flows_with(&push, Some(TOKEN)).await.check(0, "deployed 0 nodes");
    // A push sends the credentials in the file and says so. A pull returns none.
    let mut mine = workspace.read("flows.json");
    mine["flows"] = json!([{"id": "tab", "type": "tab", "label": "T"},
        {"id": "ask", "type": "http request", "z": "tab", "x": 1, "y": 1, "wires": [[]], "credentials": {"user": "u", "password": "p"}}]);
    workspace.write("flows.json", &mine);
    workspace.flows_with(&push, Some(TOKEN)).await.check(0, "the credentials of 1 node went along");
    let back = workspace.flows(&["pull"]).await.json();
    assert_eq!(back["flows"][1].get("credentials"), None, "{back}");

    // An address without Node-RED, without a server, or of a wrong form.
    let missing = |workspace: &Workspace| assert!(!Path::exists(&workspace.path("other.json")));
    let good = workspace.node_red.clone();
    for (url, words) in [
        (format!("{good}/elsewhere"), "error[NODE_RED_UNREACHABLE]: What answers at"),
        ("http://127.0.0.1:1".to_owned(), "error[NODE_RED_UNREACHABLE]: No Node-RED answers at"),
        (good.replace("http://", "http://user:hush@"), "it must hold no name and no password"),
        ("ftp://127.0.0.1".to_owned(), "it must be an address such as http://127.0.0.1:1880"),
    ] {
        workspace.node_red = url;
        let output = workspace.flows(&["pull", "other.json"]).await;
        output.check(2, words);
        assert!(!output.err.contains("hush"), "{output:?}");
        missing(&workspace);
    }
    drop(node_red);
}
