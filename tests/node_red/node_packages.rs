//! Node packages whose nodes have operations that agents call as tools.

use crate::agent_results::last_message;
use crate::kit::flow::{Flow, final_answer, tool_call};
use crate::kit::node_red::{NodeRed, Setup};
use crate::kit::release_line::ReleaseLine;
use crate::kit::scene::{MODEL, Scene};
use crate::kit::witness::completion;
use crate::kit::{eventually, on_both_lines, on_the_newer_line};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

on_both_lines! {
    the_editor_knows_the_operations_of_installed_nodes
    an_agent_core_calls_both_operations_of_a_package
    an_ai_agent_calls_both_operations_of_a_package
}

on_the_newer_line! {
    only_the_allowed_operations_are_tools
    an_error_of_the_node_fails_the_call
    a_package_that_is_wrong_harms_no_other_tool
}

const NAME: &str = "node-red-contrib-ledger";

macro_rules! example {
    ($file:literal) => {
        include_str!(concat!("../../examples/node-red-contrib-ledger/", $file))
    };
}

/// The package of the examples, with this `package.json`.
fn ledger(package: &Value) -> Setup {
    let files = vec![
        ("package.json", package.to_string()),
        ("ledger.js", example!("ledger.js").to_owned()),
        ("ledger.html", example!("ledger.html").to_owned()),
    ];
    Setup { modules: vec![(NAME, files)], ..Setup::default() }
}

fn package() -> Value {
    serde_json::from_str(example!("package.json")).unwrap()
}

/// An Agent Core with a live model, and the node of the package on its tool port.
fn flow(scene: &Scene, allowed: &[&str]) -> Flow {
    scene.flow().standard_agent(&scene.witness, allowed, &["books"]).live(&scene.witness).node(
        "books",
        "ledger",
        json!([["agent"]]),
        json!({}),
    )
}

fn script(scene: &Scene, answers: &[Value]) {
    scene.witness.set_answers(MODEL, answers.iter().map(completion));
}

/// The events of the only run, as text.
async fn events(scene: &Scene) -> String {
    let run = scene.sidecar.runs().await.remove(0);
    let id = run["runId"].as_str().unwrap();
    scene.sidecar.get(&format!("/api/runs/{id}/events")).await.to_string()
}

async fn the_editor_knows_the_operations_of_installed_nodes(line: ReleaseLine) {
    let node_red = NodeRed::start_with(line, ledger(&package())).await;
    let found: Value = node_red.admin.ask("GET", "/redflow/operations").await.ok(200);
    let operations = json!([{"name": "createRecord", "effect": "at_most_once"}, {"name": "listRecords", "effect": "read"}]);
    assert_eq!(found, json!({"operations": {"ledger": operations}}));
}

async fn an_agent_core_calls_both_operations_of_a_package(line: ReleaseLine) {
    let scene = Scene::start_with(line, ledger(&package())).await;
    scene.deploy(&flow(&scene, &["ledger.*"])).await;
    let create = tool_call("ledger__createRecord", json!({"title": "Rent", "amount": 900}));
    let list = tool_call("ledger__listRecords", json!({}));
    script(&scene, &[create.clone(), create, list, final_answer("Both are in the ledger.")]);
    assert_eq!(scene.ask().await["payload"], "Both are in the ledger.");
    let asked = scene.witness.wait_for_bodies(MODEL, 4).await;
    assert!(asked[0].to_string().contains("Adds a record to the ledger"), "{:#}", asked[0]);
    // The result of the first operation is the property `payload.id`.
    assert!(last_message(&asked[1]).contains('1'), "{:#}", asked[1]);
    assert!(!last_message(&asked[2]).contains("Rent"), "{:#}", asked[2]);
    let listed = last_message(&asked[3]);
    assert!(listed.contains("Rent") && listed.contains("900"), "{listed}");
    let events = events(&scene).await;
    assert!(events.contains("ledger__createRecord") && events.contains("ledger__listRecords"), "{events}");
    assert_eq!(scene.node_red.count_log_lines("REPLY_DROPPED"), 0);
}

/// Its tools return by a flow-tool-return, because it has no port for tools.
async fn an_ai_agent_calls_both_operations_of_a_package(line: ReleaseLine) {
    let scene = Scene::start_with(line, ledger(&package())).await;
    let call = |name: &str, arguments: Value| json!({"toolCalls": [{"name": name, "arguments": arguments}]});
    let replies = [
        call("ledger__createRecord", json!({"title": "Rent"})),
        call("ledger__listRecords", json!({})),
        json!("Done."),
    ];
    let agent = json!({"runtime": "runtime", "systemPrompt": "Keep the books.", "tools": ["books"]});
    let flow = scene
        .flow()
        .inject("ask", "Write down the rent.", "agent")
        .node("agent", "ai-agent", json!([["result"], []]), agent)
        .post_to(&scene.witness, "result", "/results")
        .scripted(&replies)
        .node("books", "ledger", json!([["back"]]), json!({}))
        .node("back", "flow-tool-return", json!([]), json!({}));
    scene.deploy(&flow).await;
    let result = scene.ask().await;
    assert_eq!(result["payload"], "Done.");
    let history = &result["envelope"]["tools"]["history"];
    assert_eq!(history[0]["output"], 1, "{history:#}");
    assert_eq!(history[1]["output"][0]["title"], "Rent", "{history:#}");
    let events = events(&scene).await;
    assert!(events.contains("ledger__createRecord") && events.contains("ledger__listRecords"), "{events}");
}

async fn only_the_allowed_operations_are_tools(line: ReleaseLine) {
    let scene = Scene::start_with(line, ledger(&package())).await;
    scene.deploy(&flow(&scene, &["ledger.listRecords"])).await;
    script(&scene, &[tool_call("ledger__createRecord", json!({"title": "Rent"}))]);
    scene.send_question().await;
    let caught = scene.witness.wait_for_bodies("/caught", 1).await.remove(0);
    assert_eq!(caught["error"]["code"], "TOOL_NOT_ALLOWED", "{caught:#}");
    let asked = scene.witness.wait_for_bodies(MODEL, 1).await.remove(0).to_string();
    assert!(asked.contains("ledger__listRecords") && !asked.contains("ledger__createRecord"), "{asked}");
}

async fn an_error_of_the_node_fails_the_call(line: ReleaseLine) {
    let mut package = package();
    package["redflow"]["tools"]["ledger"]["listRecords"]["msg"]["topic"] = json!("burn");
    let scene = Scene::start_with(line, ledger(&package)).await;
    scene.deploy(&flow(&scene, &["ledger.*"])).await;
    script(&scene, &[tool_call("ledger__listRecords", json!({})), final_answer("It cannot.")]);
    assert_eq!(scene.ask().await["payload"], "It cannot.");
    let asked = scene.witness.wait_for_bodies(MODEL, 2).await;
    assert!(last_message(&asked[1]).contains("the ledger cannot burn"), "{:#}", asked[1]);
}

/// One operation has a wrong shape. It is reported; the other one and the other agent work.
async fn a_package_that_is_wrong_harms_no_other_tool(line: ReleaseLine) {
    let mut package = package();
    package["redflow"]["tools"]["ledger"]["createRecord"] = json!({"describe": 5, "effect": "often"});
    package["redflow"]["tools"]["inject"] = json!({"press": {}});
    let scene = Scene::start_with(line, ledger(&package)).await;
    scene.deploy(&flow(&scene, &["ledger.*"])).await;
    script(&scene, &[tool_call("ledger__listRecords", json!({})), final_answer("Still here.")]);
    assert_eq!(scene.ask().await["payload"], "Still here.");
    for words in [
        "`inject` in `redflow.tools` is not a type of this package",
        "MANIFEST_INVALID: `redflow.tools` of a node package",
    ] {
        eventually(format!("{words} in the log"), async || {
            (scene.node_red.count_log_lines(words) > 0).then_some(())
        })
        .await;
    }
}
