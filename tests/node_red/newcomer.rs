//! The way of a newcomer: the package is installed, an example imported, deployed, its button pressed.

use crate::built::redflow;
use crate::kit::flow::{Flow, KEY, says};
use crate::kit::line::{Line, example};
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::on_both_lines;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::sidecar::{TOKEN, files_holding};
use crate::kit::witness::completion;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    the_first_example_as_it_is
    every_node_loads_and_the_example_answers
    a_key_is_seen_by_its_provider_alone
}

/// The package's types.
const TYPES: [&str; 14] = [
    "redflow-runtime",
    "agent-core",
    "openai-model",
    "anthropic-model",
    "model.azure.openai",
    "ollama-model",
    "scripted-model",
    "buffer-memory",
    "window-memory",
    "redis-memory",
    "calculator-tool",
    "flow-tool",
    "flow-tool-return",
    "chat-node",
];

/// An example, with its runtime at the end of a cable, and a button that the test presses.
fn imported(name: &str, url: &str) -> (Vec<Value>, String, String) {
    let mut nodes: Vec<Value> = example(name).as_array().unwrap().clone();
    for node in &mut nodes {
        if node["type"] == "redflow-runtime" {
            node["mode"] = json!("remote");
            node["url"] = json!(url);
            node["credentials"] = json!({"token": TOKEN});
        }
    }
    let first = |kind: &str| {
        let found = nodes.iter().find(|node| node["type"] == kind);
        found.unwrap_or_else(|| panic!("{name} has no {kind}"))["id"].as_str().unwrap().to_owned()
    };
    let (button, shown) = (first("inject"), first("debug"));
    (nodes, button, shown)
}

/// The binary is named in the environment (`packaged.rs` has the one from npm), the example imported, deployed, its
/// button pressed.
async fn the_first_example_as_it_is(line: Line) {
    let binary = redflow().to_str().unwrap().to_owned();
    let setup = Setup { env: vec![("REDFLOW_BINARY".to_owned(), binary)], ..Setup::default() };
    let node_red = NodeRed::start_with(line, setup).await;
    node_red.deploy(&example("01-calculator-agent.json")).await;
    node_red.admin.inject("rf01-ask").await;
    assert_eq!(node_red.comms.debug("rf01-result", 1).await[0]["msg"], "You pay 235.99.");
    let done = |status: &Value| status["text"] == "done after 3 iterations" && status["fill"] == "green";
    node_red.comms.status("rf01-agent", done).await;
}

/// Who may not read or write what is ours is not let in, where Node-RED has users.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_may_not_see() {
    let may = "['flows.read', 'flows.write', 'status.read', 'settings.read', 'nodes.read']";
    let settings =
        format!("adminAuth: {{ type: 'credentials', users: [], default: {{ permissions: {may} }} }},");
    let node_red = NodeRed::start_with(Line::Newer, Setup { settings, ..Setup::default() }).await;
    for (method, path) in [
        ("GET", "/redflow/runtimes/runtime/log"),
        ("GET", "/redflow/chat/chat"),
        ("POST", "/redflow/chat/chat"),
        ("DELETE", "/redflow/chat/chat"),
    ] {
        let reply = node_red.admin.request(method, path).json(json!({"message": "hello"})).send().await;
        assert_eq!(reply.status, 401, "{method} {path}: {reply:?}");
    }
}

async fn every_node_loads_and_the_example_answers(line: Line) {
    let scene = Scene::start(line).await;
    let sets = scene.node_red.admin.sets("@redflow/node-red-bridge").await;
    let mut types: Vec<&str> = sets
        .iter()
        .flat_map(|set| set["types"].as_array().unwrap())
        .map(|name| name.as_str().unwrap())
        .collect();
    let mut wanted = TYPES.to_vec();
    types.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(types, wanted);
    assert!(sets.iter().all(|set| set["enabled"] == true && set.get("err").is_none()), "{sets:#?}");
    for name in ["01-calculator-agent.json", "02-flow-tool.json"] {
        let (nodes, button, shown) = imported(name, &scene.sidecar.url());
        scene.node_red.deploy(&Value::Array(nodes)).await;
        scene.node_red.admin.inject(&button).await;
        let answer = scene.node_red.comms.debug(&shown, 1).await.remove(0);
        assert!(answer["msg"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {answer}");
    }
    let log = scene.node_red.log();
    assert!(!log.contains("[error]"), "{log}");
}

async fn a_key_is_seen_by_its_provider_alone(line: Line) {
    let mut scene = Scene::start(line).await;
    let flow = scene.flow().usual(&scene.witness, &[], &[]).live(&scene.witness);
    scene.deploy(&flow).await;
    scene.witness.answers(MODEL, [completion(&says("Done."))]);
    scene.answer().await;
    // A deploy from the editor carries no key; Node-RED still has it, also after a restart of either.
    scene.deploy(&flow.clone().again().changed("agent", json!({"name": "Other"}))).await;
    scene.answer().await;
    scene.sidecar.kill();
    scene.sidecar.come();
    scene.answer().await;
    scene.node_red.kill();
    scene.node_red.start_again().await;
    scene.answer().await;
    let seen = scene.witness.seen(MODEL);
    assert_eq!(seen.len(), 4);
    let bearer = format!("Bearer {KEY}");
    assert!(seen.iter().all(|asked| asked.headers.get("authorization") == Some(&bearer)), "{seen:#?}");
    // Everything that is told or kept: the log, the events, every file, what the APIs say, what leaves the agent.
    let instances = scene.sidecar.get("/api/instances").await.to_string();
    let runs = scene.sidecar.runs().await;
    let one =
        scene.sidecar.get(&format!("/api/runs/{}", runs[0]["runId"].as_str().unwrap())).await.to_string();
    let told: String = ["/results", "/answers", "/completed"]
        .iter()
        .flat_map(|path| scene.witness.seen(path))
        .map(|seen| seen.body.to_string())
        .collect();
    let flows = scene.node_red.admin.ask("GET", "/flows").await.ok(200).to_string();
    scene.sidecar.stop().await;
    scene.node_red.stop().await;
    for secret in [KEY, TOKEN] {
        for (place, text) in [
            ("instances", &instances),
            ("run", &one),
            ("messages", &told),
            ("flows", &flows),
            ("log", &scene.node_red.log()),
        ] {
            assert!(!text.contains(secret), "{secret} in {place}: {text}");
        }
        assert_eq!(scene.sidecar.holding(secret), Vec::<String>::new());
        assert_eq!(files_holding(scene.node_red.user(), secret), Vec::<String>::new());
    }
}

/// What is sent to the sidecar is what it needs: never the code of functions, nor what other nodes keep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_ours_stays_in_node_red() {
    let scene = Scene::start(Line::Newer).await;
    let flow: Flow = scene
        .flow()
        .usual(&scene.witness, &[], &[])
        .scripted(&[says("Here.")])
        .function("private", "/* the-code-of-somebody */ return msg;", &[])
        .post("elsewhere", "http://example.invalid/the-address-of-somebody", &[]);
    scene.deploy(&flow).await;
    scene.answer().await;
    for words in ["the-code-of-somebody", "the-address-of-somebody"] {
        assert_eq!(scene.sidecar.holding(words), Vec::<String>::new());
    }
    drop::<NodeRed>(scene.node_red);
}
