//! The first steps of a new user: install the package, import an example, deploy it, press its button.

use crate::kit::flow::{Flow, KEY, final_answer};
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::on_both_lines;
use crate::kit::release_line::{ReleaseLine, example};
use crate::kit::scene::{MODEL, Scene};
use crate::kit::sidecar::{TOKEN, files_containing};
use crate::kit::witness::completion;
use pretty_assertions::assert_eq;
use redflow_testkit::redflow_binary;
use serde_json::{Value, json};

on_both_lines! {
    the_first_example_works_unchanged
    every_node_loads_and_the_example_answers
    only_the_provider_sees_a_key
}

/// The package's types.
const TYPES: [&str; 31] = [
    "redflow-runtime",
    "openai-key",
    "anthropic-key",
    "google-key",
    "azure-openai-key",
    "agent-core",
    "ai-agent",
    "ai-simple-agent",
    "ai-extractor",
    "ai-classifier",
    "ai-summarizer",
    "openai-model",
    "anthropic-model",
    "google-model",
    "model.azure.openai",
    "ollama-model",
    "scripted-model",
    "buffer-memory",
    "window-memory",
    "redis-memory",
    "summary-memory",
    "long-memory",
    "calculator-tool",
    "registry-tool",
    "mcp-client",
    "http-request-tool",
    "knowledge-base-tool",
    "memory-tool",
    "flow-tool",
    "flow-tool-return",
    "chat-node",
];

/// An example whose runtime uses a cable, its button and its debug node.
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

/// The environment names the binary. `packaged.rs` uses the one from npm.
async fn the_first_example_works_unchanged(line: ReleaseLine) {
    let binary = redflow_binary().unwrap().to_str().unwrap().to_owned();
    let setup = Setup { env: vec![("REDFLOW_BINARY".to_owned(), binary)], ..Setup::default() };
    let node_red = NodeRed::start_with(line, setup).await;
    node_red.deploy(&example("01-calculator-agent.json")).await;
    node_red.admin.inject("rf01-ask").await;
    assert_eq!(node_red.comms.wait_for_debug("rf01-result", 1).await[0]["msg"], "You pay 235.99.");
    let done = |status: &Value| status["text"] == "done after 3 iterations" && status["fill"] == "green";
    node_red.comms.wait_for_status("rf01-agent", done).await;
}

/// If Node-RED has users, our paths need our own permissions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refuses_users_without_our_permissions() {
    let permissions = "['flows.read', 'flows.write', 'status.read', 'settings.read', 'nodes.read']";
    let settings = format!(
        "adminAuth: {{ type: 'credentials', users: [], default: {{ permissions: {permissions} }} }},"
    );
    let node_red = NodeRed::start_with(ReleaseLine::Newer, Setup { settings, ..Setup::default() }).await;
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

async fn every_node_loads_and_the_example_answers(line: ReleaseLine) {
    let scene = Scene::start(line).await;
    let sets = scene.node_red.admin.sets("@redflow/node-red-bridge").await;
    let mut types: Vec<&str> = sets
        .iter()
        .flat_map(|set| set["types"].as_array().unwrap())
        .map(|name| name.as_str().unwrap())
        .collect();
    let mut expected = TYPES.to_vec();
    types.sort_unstable();
    expected.sort_unstable();
    assert_eq!(types, expected);
    assert!(sets.iter().all(|set| set["enabled"] == true && set.get("err").is_none()), "{sets:#?}");
    for name in ["01-calculator-agent.json", "02-flow-tool.json", "07-ai-agent.json"] {
        let (nodes, button, shown) = imported(name, &scene.sidecar.url());
        scene.node_red.deploy(&Value::Array(nodes)).await;
        scene.node_red.admin.inject(&button).await;
        let answer = scene.node_red.comms.wait_for_debug(&shown, 1).await.remove(0);
        assert!(answer["msg"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {answer}");
    }
    agents_for_one_thing_give_their_results(&scene).await;
    let log = scene.node_red.log();
    assert!(!log.contains("[error]"), "{log}");
    models_without_a_key_say_so(&scene).await;
}

/// Examples 14 and 16: each agent gives a result of its own form, one of them from an image.
async fn agents_for_one_thing_give_their_results(scene: &Scene) {
    let url = scene.sidecar.url();
    let (mut nodes, ..) = imported("14-agents-for-one-thing.json", &url);
    let (images, ..) = imported("16-images.json", &url);
    nodes.extend(images.into_iter().filter(|node| node["type"] != "redflow-runtime"));
    scene.node_red.deploy(&Value::Array(nodes)).await;
    for (button, shown, expected) in [
        ("rf14-ask-extract", "rf14-result-extract", r#"{"customer":"Mira Olsen","items":"#),
        ("rf14-ask-classify", "rf14-result-classify", r#"["order","complaint"]"#),
        ("rf14-ask-summarise", "rf14-result-summarise", "A worn seal stopped the pump"),
        ("rf14-ask-objective", "rf14-result-objective", r#"{"total":102.6}"#),
        ("rf16-ask", "rf16-result", r#"{"value":42,"readable":true}"#),
    ] {
        scene.node_red.admin.inject(button).await;
        let result = scene.node_red.comms.wait_for_debug(shown, 1).await.remove(0);
        let text = result["msg"].as_str().unwrap_or_default();
        assert!(text.starts_with(expected), "{button}: {result}");
    }
}

/// Example 05 without keys: the agents say which model has none, before the first message. A key ends it.
async fn models_without_a_key_say_so(scene: &Scene) {
    let (node_red, (mut nodes, ..)) =
        (&scene.node_red, imported("05-live-models.json", &scene.sidecar.url()));
    node_red.deploy(&Value::Array(nodes.clone())).await;
    let check = async |nodes: &[Value]| {
        let request = node_red.admin.request("POST", "/redflow/runtimes/redflow-runtime-1/check");
        let report = request.json(json!({"flows": nodes})).send().await.ok(200);
        let problems = report["diagnostics"].as_array().unwrap().clone();
        problems.into_iter().filter(|problem| problem["severity"] == "error").collect::<Vec<_>>()
    };
    for (agent, model, name) in [
        ("rf05-agent-openai", "rf05-openai", "gpt-6-luna"),
        ("rf05-agent-anthropic", "rf05-anthropic", "claude-sonnet-5-5"),
        ("rf05-agent-azure", "rf05-azure", "gpt-6-luna"),
    ] {
        let message = format!("`{name}` has no API key");
        let says_it = |status: &Value| status["fill"] == "red" && status["text"] == message;
        node_red.comms.wait_for_status(agent, says_it).await;
        let problems = check(&nodes).await;
        assert_eq!(problems.len(), 3, "{problems:#?}");
        let problem = problems.iter().find(|problem| problem["node"]["id"] == model).unwrap();
        assert_eq!((&problem["code"], &problem["message"]), (&json!("MODEL_KEY_MISSING"), &json!(message)));
        assert_eq!(problem["target"]["id"], agent);
        assert!(node_red.count_log_lines(&message) > 0);
    }
    // The key of a deploy counts for later checks, which have none. An empty one of the editor does not.
    let at = nodes.iter().position(|node| node["id"] == "rf05-openai").unwrap();
    let mut with_key = nodes.clone();
    with_key[at]["credentials"] = json!({"apiKey": KEY});
    node_red.deploy(&Value::Array(with_key)).await;
    node_red.comms.wait_for_status("rf05-agent-openai", |status| status.get("text").is_none()).await;
    assert_eq!(check(&nodes).await.len(), 2);
    nodes[at]["credentials"] = json!({"apiKey": ""});
    assert_eq!(check(&nodes).await.len(), 3);
}

async fn only_the_provider_sees_a_key(line: ReleaseLine) {
    let mut scene = Scene::start(line).await;
    let flow = scene.flow().standard_agent(&scene.witness, &[], &[]).live(&scene.witness);
    scene.deploy(&flow).await;
    scene.witness.set_answers(MODEL, [completion(&final_answer("Done."))]);
    scene.ask().await;
    // A deploy from the editor has no key. Node-RED keeps it, also over restarts of either process.
    scene.deploy(&flow.clone().without_credentials().change("agent", json!({"name": "Other"}))).await;
    scene.ask().await;
    scene.sidecar.kill();
    scene.sidecar.start();
    scene.ask().await;
    scene.node_red.kill();
    scene.node_red.start_again().await;
    scene.ask().await;
    let requests = scene.witness.requests(MODEL);
    assert_eq!(requests.len(), 4);
    let bearer = format!("Bearer {KEY}");
    assert!(
        requests.iter().all(|request| request.headers.get("authorization") == Some(&bearer)),
        "{requests:#?}"
    );
    // The key is in no log, event, file, API response or message.
    let instances = scene.sidecar.get("/api/instances").await.to_string();
    let runs = scene.sidecar.runs().await;
    let one =
        scene.sidecar.get(&format!("/api/runs/{}", runs[0]["runId"].as_str().unwrap())).await.to_string();
    let messages: String = ["/results", "/answers", "/completed"]
        .iter()
        .flat_map(|path| scene.witness.requests(path))
        .map(|request| request.body.to_string())
        .collect();
    let flows = scene.node_red.admin.ask("GET", "/flows").await.ok(200).to_string();
    scene.sidecar.stop().await;
    scene.node_red.stop().await;
    for secret in [KEY, TOKEN] {
        for (place, text) in [
            ("instances", &instances),
            ("run", &one),
            ("messages", &messages),
            ("flows", &flows),
            ("log", &scene.node_red.log()),
        ] {
            assert!(!text.contains(secret), "{secret} in {place}: {text}");
        }
        assert_eq!(scene.sidecar.places_containing(secret), Vec::<String>::new());
        assert_eq!(files_containing(scene.node_red.user(), secret), Vec::<String>::new());
    }
}

/// The sidecar gets neither the code of functions nor the properties of other nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sends_nothing_of_other_nodes_to_the_sidecar() {
    let scene = Scene::start(ReleaseLine::Newer).await;
    let flow: Flow = scene
        .flow()
        .standard_agent(&scene.witness, &[], &[])
        .scripted(&[final_answer("Here.")])
        .function("private", "/* the-code-of-a-function */ return msg;", &[])
        .post("elsewhere", "http://example.invalid/the-address-of-a-request", &[]);
    scene.deploy(&flow).await;
    scene.ask().await;
    for words in ["the-code-of-a-function", "the-address-of-a-request"] {
        assert_eq!(scene.sidecar.places_containing(words), Vec::<String>::new());
    }
    drop::<NodeRed>(scene.node_red);
}
