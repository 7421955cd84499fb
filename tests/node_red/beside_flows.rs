//! `redflow flows pull|push|diff` with a Node-RED that has nothing of ours.

use crate::built::redflow;
use crate::kit::flow::{Flow, with};
use crate::kit::line::Line;
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::{on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

on_both_lines!(a_flow_is_pulled_compared_and_pushed);
on_the_newer_line!(tokens_and_refusals_have_their_words);

/// A folder that commands run in, and the Node-RED they are told of.
struct Desk {
    folder: TempDir,
    node_red: String,
}

/// What came of a command.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Done {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    #[track_caller]
    fn ended(&self, code: i32, words: &str) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.out.contains(words) || self.err.contains(words), "no {words:?} in {self:?}");
    }
}

impl Desk {
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

    async fn flows(&self, args: &[&str]) -> Done {
        self.flows_with(args, None).await
    }

    async fn flows_with(&self, args: &[&str], token: Option<&str>) -> Done {
        let mut command = std::process::Command::new(redflow());
        command.arg("flows").args(args).args(["--node-red", &self.node_red]).current_dir(self.folder.path());
        command.env_remove("NODE_RED_TOKEN").env("NO_COLOR", "1").stdin(std::process::Stdio::null());
        if let Some(token) = token {
            command.env("NODE_RED_TOKEN", token);
        }
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Done { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

async fn plain(line: Line, settings: String) -> (NodeRed, Desk) {
    let node_red = NodeRed::start_with(line, Setup { plain: true, settings, ..Setup::default() }).await;
    let desk = Desk::new(format!("http://{}", node_red.addr()));
    (node_red, desk)
}

async fn a_flow_is_pulled_compared_and_pushed(line: Line) {
    let (node_red, desk) = plain(line, String::new()).await;
    let flow = Flow::bare().inject("ask", "hello", "shown").node(
        "shown",
        "debug",
        json!([]),
        json!({"active": true}),
    );
    node_red.deploy(&flow.json()).await;
    let there = async || node_red.admin.ask("GET", "/flows").await.ok(200);

    // To a file, and to standard output: the same, with what Node-RED calls it.
    desk.flows(&["pull", "flows.json"]).await.ended(0, "3 nodes");
    assert_eq!(desk.read("flows.json"), there().await);
    assert_eq!(desk.flows(&["pull"]).await.json(), there().await);
    desk.flows(&["pull", "flows.json"]).await.ended(0, "is what Node-RED has");
    desk.flows(&["diff", "flows.json"]).await.ended(0, "nothing differs");

    // A file that differs is written over only if that was asked for.
    let mut mine = desk.read("flows.json");
    let nodes = mine["flows"].as_array_mut().unwrap();
    nodes[1]["payload"] = json!("a secret value");
    nodes[1]["wires"] = json!([["shown", "new"]]);
    nodes.remove(2);
    nodes
        .push(json!({"id": "new", "type": "debug", "z": "tab", "name": "Mine", "x": 1, "y": 1, "wires": []}));
    desk.write("flows.json", &mine);
    desk.flows(&["pull", "flows.json"]).await.ended(2, "--force");
    assert_eq!(desk.read("flows.json"), mine);

    // What differs, by node and property; no value.
    let diff = desk.flows(&["diff", "flows.json"]).await;
    diff.ended(1, "1 node added, 1 node removed, 1 node changed");
    for line in ["+ debug `Mine` (new)", "- debug shown", "~ inject ask: wires, payload"] {
        diff.ended(1, line);
    }
    assert!(!diff.out.contains("secret"), "{diff:?}");
    let diff = desk.flows(&["diff", "flows.json", "--json"]).await;
    assert_eq!(
        (diff.code, diff.json()["changed"][0]["properties"].clone()),
        (Some(1), json!(["wires", "payload"]))
    );

    // A push, and another one: the file knows what Node-RED calls it now.
    desk.flows(&["push", "flows.json"]).await.ended(0, "deployed 3 nodes");
    assert_eq!(desk.read("flows.json"), there().await);
    assert_ne!(desk.read("flows.json")["rev"], mine["rev"]);
    let again = desk.flows(&["push", "flows.json", "--type", "full", "--json"]).await.json();
    assert_eq!((&again["revision"], &again["nodes"]), (&there().await["rev"], &json!(3)));

    // Another flow came first: nothing is overwritten, and the file stays as it is.
    node_red.deploy(&flow.json()).await;
    let (before, file) = (there().await, desk.read("flows.json"));
    desk.flows(&["push", "flows.json"]).await.ended(2, "error[NODE_RED_REFUSED]: Another flow was deployed");
    assert_eq!((there().await, desk.read("flows.json")), (before.clone(), file));
    // Nor by a file that does not say what it was made from.
    desk.write("array.json", &mine["flows"]);
    desk.flows(&["push", "array.json"]).await.ended(2, "it has no `rev`");
    assert_eq!(there().await, before);
    // Unless that was asked for, and then what goes is told first.
    desk.flows(&["push", "array.json", "--force"]).await.ended(0, "- debug shown");
    assert_eq!(
        (there().await["flows"].clone(), desk.read("array.json")),
        (mine["flows"].clone(), mine["flows"].clone())
    );

    // A flow with errors stays here.
    desk.flows(&["pull", "flows.json", "--force"]).await.ended(0, "3 nodes");
    let mut mine = desk.read("flows.json");
    let agent = Flow::default().agent("agent", &[], json!([[], [], [], [], []])).0.remove(0);
    mine["flows"].as_array_mut().unwrap().push(with(agent, json!({"runtime": ""})));
    desk.write("flows.json", &mine);
    let before = there().await;
    desk.flows(&["push", "flows.json"]).await.ended(1, "MODEL_MISSING");
    assert_eq!(there().await, before);
    desk.flows(&["push", "flows.json", "--no-check"]).await.ended(0, "deployed 4 nodes");
}

/// A token that Node-RED takes.
const TOKEN: &str = "an-access-token-of-node-red";

async fn tokens_and_refusals_have_their_words(line: Line) {
    let users = format!(
        r#"adminAuth: {{
        type: "credentials", users: [],
        default: {{ permissions: ["flows.read"] }},
        tokens: async (token) => token === "{TOKEN}" ? {{ username: "test", permissions: "*" }} : null,
    }},"#
    );
    let (node_red, mut desk) = plain(line, users).await;
    desk.flows(&["pull", "flows.json"]).await.ended(0, "0 nodes");
    let push = ["push", "flows.json"];
    desk.flows(&push).await.ended(2, "error[NODE_RED_REFUSED]: Node-RED at");
    let wrong = desk.flows_with(&push, Some("a-wrong-one")).await;
    wrong.ended(2, "does not take the access token in NODE_RED_TOKEN (401)");
    assert!(!wrong.err.contains("a-wrong-one"), "{wrong:?}");
    desk.flows_with(&push, Some(TOKEN)).await.ended(0, "deployed 0 nodes");
    // Credentials go along if they stand in the file, are told of, and are no business of Node-RED's answers.
    let mut mine = desk.read("flows.json");
    mine["flows"] = json!([{"id": "tab", "type": "tab", "label": "T"},
        {"id": "ask", "type": "http request", "z": "tab", "x": 1, "y": 1, "wires": [[]], "credentials": {"user": "u", "password": "p"}}]);
    desk.write("flows.json", &mine);
    desk.flows_with(&push, Some(TOKEN)).await.ended(0, "the credentials of 1 node went along");
    let back = desk.flows(&["pull"]).await.json();
    assert_eq!(back["flows"][1].get("credentials"), None, "{back}");

    // What is no Node-RED, or not there, or no address.
    let missing = |desk: &Desk| assert!(!Path::exists(&desk.path("other.json")));
    let good = desk.node_red.clone();
    for (url, words) in [
        (format!("{good}/elsewhere"), "error[NODE_RED_UNREACHABLE]: What answers at"),
        ("http://127.0.0.1:1".to_owned(), "error[NODE_RED_UNREACHABLE]: No Node-RED answers at"),
        (good.replace("http://", "http://user:hush@"), "it must hold no name and no password"),
        ("ftp://127.0.0.1".to_owned(), "it must be an address such as http://127.0.0.1:1880"),
    ] {
        desk.node_red = url;
        let done = desk.flows(&["pull", "other.json"]).await;
        done.ended(2, words);
        assert!(!done.err.contains("hush"), "{done:?}");
        missing(&desk);
    }
    drop(node_red);
}
