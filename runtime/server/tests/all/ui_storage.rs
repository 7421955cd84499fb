//! Stored items of the Redflow UI: secrets are masked, and nodes use the credentials among them.

use crate::azure_stand_in::{Azure, Turn};
use crate::client::Reply;
use crate::kit::{Setup, TOKEN, TestSidecar, eventually, flow, plain_flow, token};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use redflow_contract::event::FlowEvent;
use redflow_contract::stream::StreamEvent;
use serde_json::{Value, json};

const PATH: &str = "/redflow/persistent-storage";
const SECRET: &str = "sk-a-stored-secret-of-some-length";
const OTHER: &str = "sk-another-secret-of-some-length";

/// An agent whose model calls this server and has no key in the flow.
fn flow_calling(azure: &Azure) -> Value {
    let mut nodes = flow(json!([]), &[]);
    nodes[3] = json!({"id": "model.azure.openai-1 x", "type": "model.azure.openai", "z": "tab",
                      "endpoint": azure.endpoint(), "deployment": "d", "apiVersion": "2024-12-01-preview",
                      "wires": [["agent"]]});
    nodes[2]["wires"][0] = json!(["model.azure.openai-1 x"]);
    nodes
}

const MODEL_KEY: &str = "node-credentials:model.azure.openai-1 x";

async fn store(sidecar: &TestSidecar, items: Value) -> Reply {
    sidecar.post(PATH, items).await
}

async fn delete(sidecar: &TestSidecar, key: &str) -> Reply {
    sidecar.request("DELETE", &format!("{PATH}/{}", encoded(key))).token(TOKEN).send().await
}

async fn item(sidecar: &TestSidecar, key: &str) -> Reply {
    sidecar.get(&format!("{PATH}/{}", encoded(key))).await
}

/// Percent-encodes every byte.
fn encoded(key: &str) -> String {
    key.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Runs the agent, which calls its model once, and gives the key of that call.
async fn key_of_run(sidecar: &TestSidecar, azure: &Azure) -> Option<String> {
    let before = azure.keys().len();
    let ended = sidecar.run(json!({"payload": "?"})).await;
    assert_eq!(ended["runs"][0]["status"], "completed", "{ended}");
    let keys = azure.keys();
    assert_eq!(keys.len(), before + 1);
    keys[before].clone()
}

#[tokio::test]
async fn keeps_items_after_a_restart() {
    let sidecar = Setup::default().start(None).await;
    assert_eq!(sidecar.get(PATH).await.ok(200), json!({}));
    let response = store(&sidecar, json!({"theme": {"dark": true}, "recent": [1, "two"]})).await.ok(200);
    assert_eq!(response, json!({"success": true, "updated": ["theme", "recent"]}));
    store(&sidecar, json!({"theme": {"dark": false}})).await.ok(200);
    let all = json!({"theme": {"dark": false}, "recent": [1, "two"]});
    assert_eq!(sidecar.get(PATH).await.ok(200), all);
    assert_eq!(item(&sidecar, "theme").await.ok(200), json!({"key": "theme", "value": {"dark": false}}));
    item(&sidecar, "nothing").await.refused(404, "NOT_FOUND");
    delete(&sidecar, "nothing").await.refused(404, "NOT_FOUND");
    let dir = sidecar.stop().await;

    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(sidecar.get(PATH).await.ok(200), all);
    assert_eq!(delete(&sidecar, "theme").await.ok(200), json!({"success": true, "deleted": "theme"}));
    item(&sidecar, "theme").await.refused(404, "NOT_FOUND");
    let dir = sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(sidecar.get(PATH).await.ok(200), json!({"recent": [1, "two"]}));
}

// SECURITY: ui-storage
#[tokio::test]
async fn keys_are_only_names() {
    let sidecar = Setup::default().start(None).await;
    let files = || {
        let names = std::fs::read_dir(sidecar.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    store(&sidecar, json!({"first": 1})).await.ok(200);
    let before = files();
    let odd = [
        "../x",
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        ".",
        "%2e%2e",
        "a/b/../c",
        "C:\\x",
        "__proto__",
        "constructor",
        "n\u{0}ul",
        "storage.json",
        "credentials.key",
        "ü 日本 \u{1f600}",
        "line\r\nx: y",
        " ",
        "?a=b#c",
    ];
    // Some keys are names of secrets, but a boolean is not masked.
    for key in odd {
        let value = json!({key: true});
        store(&sidecar, json!({key: value})).await.ok(200);
        assert_eq!(item(&sidecar, key).await.ok(200), json!({"key": key, "value": value}), "{key:?}");
    }
    assert_eq!(sidecar.get(PATH).await.ok(200).as_object().unwrap().len(), odd.len() + 1);
    for key in odd {
        assert_eq!(delete(&sidecar, key).await.ok(200), json!({"success": true, "deleted": key}));
    }
    // An empty key can be stored, but has no route.
    store(&sidecar, json!({"": "empty"})).await.ok(200);
    assert_eq!(sidecar.get(PATH).await.ok(200)[""], "empty");
    assert_eq!(item(&sidecar, "").await.status, 404);
    // Without encoding in the path.
    for path in ["/../x", "/%2e%2e/x", "/%2e%2e%2fcredentials.key", "/..", "/%ff", "/a/b", "/%00"] {
        let answer = sidecar.get(&format!("{PATH}{path}")).await;
        assert!((400..500).contains(&answer.status), "{path}: {answer:?}");
        assert!(!answer.code().is_empty(), "{path}");
    }
    assert_eq!(files(), before);
}

// SECURITY: ui-storage
#[tokio::test]
async fn refuses_too_much_data_as_a_whole() {
    let sidecar = Setup::default().start(None).await;
    store(&sidecar, json!({"kept": 1})).await.ok(200);
    let many: Value =
        (0..1001).map(|n| (n.to_string(), json!(SECRET))).collect::<serde_json::Map<_, _>>().into();
    let large: Value = (0..17)
        .map(|n| (n.to_string(), json!("x".repeat(250_000))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let too_much = [
        many,
        large,
        json!({"a": SECRET, "k".repeat(1_000_000): 1}),
        json!({"a": SECRET, "b": "x".repeat(300_000)}),
    ];
    for items in too_much {
        let answer = store(&sidecar, items).await;
        answer.refused(413, "STORAGE_FULL");
        assert!(!contains(&answer.body, SECRET));
    }
    store(&sidecar, json!({"a": "x".repeat(9_000_000)})).await.refused(413, "BODY_TOO_LARGE");
    for odd in [json!([]), json!("x"), json!(1), json!(null)] {
        store(&sidecar, odd).await.refused(400, "BODY_INVALID");
    }
    let twice = sidecar.request("POST", PATH).token(TOKEN).header("content-type", "application/json");
    twice.bytes(r#"{"a": 1, "a": 2}"#).send().await.refused(400, "BODY_INVALID");
    assert_eq!(sidecar.get(PATH).await.ok(200), json!({"kept": 1}));
}

/// Credentials in the keys of the UI.
fn credentials() -> Value {
    json!({
        "node-credentials:m": {"apiKey": SECRET},
        "credential:c": {"id": "c", "name": "Mine", "type": "azure-openai", "createdAt": 1,
                         "data": {"endpoint": "https://x.openai.azure.com", "apiKey": SECRET, "value": SECRET}},
        "encrypted:credential:c": SECRET,
        "credentials:old": [SECRET],
        "node-config:m": {"nodeId": "m", "config": {"credentialId": "c", "apiKey": SECRET, "maxTokens": 800}},
        "api-key": SECRET,
    })
}

// SECURITY: ui-masked
#[tokio::test]
async fn never_returns_a_stored_secret() {
    let sidecar = Setup::default().start(None).await;
    let mut answers = vec![store(&sidecar, credentials()).await];
    answers.push(sidecar.get(PATH).await);
    // Values that the UI encrypted are never returned, because the UI would decrypt a mask.
    let is_encrypted = |key: &&String| key.starts_with("encrypted:");
    for key in credentials().as_object().unwrap().keys().filter(|key| !is_encrypted(key)) {
        answers.push(item(&sidecar, key).await);
    }
    for key in ["encrypted:credential:c", " ENCRYPTED:x"] {
        store(&sidecar, json!({key: SECRET})).await.ok(200);
        let answer = item(&sidecar, key).await;
        answer.refused(404, "NOT_FOUND");
        assert!(sidecar.get(PATH).await.ok(200).get(key).is_none());
    }
    delete(&sidecar, " ENCRYPTED:x").await.ok(200);
    for path in ["/agent-core/node-credentials/m", "/credentials/m"] {
        answers.push(sidecar.get(path).await);
    }
    answers.push(delete(&sidecar, "api-key").await);
    for answer in answers {
        assert_eq!(answer.status, 200);
        assert!(!contains(&answer.body, SECRET), "{answer:?}");
    }
    let shown = sidecar.get(PATH).await.ok(200);
    assert_eq!(shown["node-credentials:m"], json!({"apiKey": "__PWRD__"}));
    assert_eq!(shown["credential:c"]["data"]["endpoint"], "https://x.openai.azure.com");
    assert_eq!(shown["node-config:m"]["config"]["maxTokens"], 800);
    // Storing the masked values again changes nothing.
    let dir = sidecar.stop().await;
    let file = || std::fs::read(dir.path().join("storage.json")).unwrap();
    assert!(!contains(&file(), SECRET) && !contains(&file(), "node-credentials"));
    let sidecar = Setup { dir: dir.clone(), ..Setup::default() }.start(None).await;
    store(&sidecar, shown.clone()).await.ok(200);
    assert_eq!(sidecar.get(PATH).await.ok(200), shown);
    sidecar.stop().await;
    let storage = redflow_store::UiStorageFile::new(dir.path());
    let stored = redflow_ports::UiStorage::load(&storage).unwrap();
    let mut expected = credentials();
    expected.as_object_mut().unwrap().remove("api-key");
    assert_eq!(serde_json::to_value(stored).unwrap(), expected);
}

#[tokio::test]
async fn a_node_uses_stored_credentials_at_once() {
    let azure = Azure::start([]).await;
    let sidecar = Setup::default().start(None).await;
    // Stored before the node exists.
    store(&sidecar, json!({MODEL_KEY: {"apiKey": SECRET}})).await.ok(200);
    sidecar.post("/api/deployment", json!({"flows": flow_calling(&azure)})).await.ok(200);
    assert_eq!(key_of_run(&sidecar, &azure).await.as_deref(), Some(SECRET));
    let revision = sidecar.revision().await;
    let mut socket = sidecar.socket().await;
    socket.subscribe(Some("0")).await;

    // Stored while it runs.
    store(&sidecar, json!({MODEL_KEY: {"apiKey": OTHER}})).await.ok(200);
    assert_eq!(key_of_run(&sidecar, &azure).await.as_deref(), Some(OTHER));
    store(&sidecar, json!({MODEL_KEY: {"apiKey": "__PWRD__"}, "unrelated": 1})).await.ok(200);
    assert_eq!(key_of_run(&sidecar, &azure).await.as_deref(), Some(OTHER));
    delete(&sidecar, MODEL_KEY).await.ok(200);
    assert_eq!(key_of_run(&sidecar, &azure).await, None);
    // It stays the same flow, and there is no event of a deploy.
    assert_eq!(sidecar.revision().await, revision);
    store(&sidecar, json!({"x": 1})).await.ok(200);
    let deployed =
        sidecar.post("/api/deployment", json!({"flows": plain_flow(), "revision": revision})).await.ok(200);
    let is_deploy = |event: &StreamEvent, of: &Value| matches!(event, StreamEvent::Flow { event: FlowEvent::Deployed { revision, .. }, .. } if *revision == *of);
    let events = socket.until(|event| is_deploy(event, &deployed["revision"])).await;
    assert_eq!(events.iter().filter(|(_, event)| is_deploy(event, &json!(revision))).count(), 1);
}

/// An agent without a key for its model is refused until one is stored, and again when it is deleted.
#[tokio::test]
async fn a_key_that_is_stored_later_makes_an_agent_ready() {
    let azure = Azure::start([]).await;
    let mut nodes = flow_calling(&azure);
    nodes[3]["endpoint"] = json!("https://name.openai.azure.com");
    let sidecar = Setup::default().start(Some(nodes)).await;
    let agent = async || sidecar.get("/api/flows").await.ok(200)["flows"][0]["agents"][0].clone();
    assert_eq!(agent().await["ready"], false);
    store(&sidecar, json!({MODEL_KEY: {"apiKey": SECRET}})).await.ok(200);
    assert_eq!((&agent().await["ready"], &agent().await["problems"]), (&json!(true), &json!([])));
    delete(&sidecar, MODEL_KEY).await.ok(200);
    let refused = agent().await;
    assert_eq!(refused["ready"], false);
    assert!(!refused.to_string().contains(SECRET));
}

/// The own credentials of the node, then shared ones, then those of the flow, then the environment.
#[tokio::test]
async fn uses_credentials_in_a_fixed_order() {
    let azure = Azure::start([]).await;
    let env = |name: &str| (name == "AZURE_OPENAI_API_KEY").then(|| "of-the-environment".to_owned());
    let sidecar = Setup { env, ..Setup::default() }.start(Some(flow_calling(&azure))).await;
    assert_eq!(key_of_run(&sidecar, &azure).await.as_deref(), Some("of-the-environment"));
    let mut nodes = flow_calling(&azure);
    nodes[3]["credentials"] = json!({"apiKey": "of-the-flow"});
    nodes[3]["credentialId"] = json!("by-node");
    let revision = sidecar.revision().await;
    sidecar.post("/api/deployment", json!({"flows": nodes, "revision": revision})).await.ok(200);
    assert_eq!(key_of_run(&sidecar, &azure).await.as_deref(), Some("of-the-flow"));
    let steps = [
        (
            json!({"credential:by-node": {"id": "by-node", "name": "N", "data": {"apiKey": "by-node-key"}}}),
            "by-node-key",
        ),
        (json!({"credential:by-config": {"apiKey": "by-config-key"}}), "by-node-key"),
        (
            json!({"node-config:model.azure.openai-1 x": {"nodeId": "m", "config": {"credentialId": "by-config"}}}),
            "by-config-key",
        ),
        (json!({MODEL_KEY: {"value": {"apiKey": "its-own-key"}}}), "its-own-key"),
        // An entry without a key is skipped.
        (json!({MODEL_KEY: {"apiKey": ""}}), "by-config-key"),
        (json!({"node-config:model.azure.openai-1 x": null}), "by-node-key"),
        (json!({"credential:by-node": "odd"}), "of-the-flow"),
    ];
    for (items, expected) in steps {
        store(&sidecar, items.clone()).await.ok(200);
        assert_eq!(key_of_run(&sidecar, &azure).await.as_deref(), Some(expected), "{items}");
    }
    // Stored credentials are not copied into those of the flow.
    store(&sidecar, json!({MODEL_KEY: {"apiKey": "its-own-key"}})).await.ok(200);
    nodes[0]["label"] = json!("Renamed");
    nodes[3].as_object_mut().unwrap().remove("credentials");
    let revision = sidecar.revision().await;
    sidecar.post("/api/deployment", json!({"flows": nodes, "revision": revision})).await.ok(200);
    assert_eq!(key_of_run(&sidecar, &azure).await.as_deref(), Some("its-own-key"));
    delete(&sidecar, MODEL_KEY).await.ok(200);
    assert_eq!(key_of_run(&sidecar, &azure).await.as_deref(), Some("of-the-flow"));
}

// SECURITY: ui-masked
#[tokio::test]
async fn keeps_credentials_after_a_restart() {
    let azure = Azure::start([]).await;
    let sidecar = Setup::default().start(Some(flow_calling(&azure))).await;
    store(&sidecar, json!({MODEL_KEY: {"apiKey": SECRET}})).await.ok(200);
    let dir = sidecar.stop().await;
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(key_of_run(&sidecar, &azure).await.as_deref(), Some(SECRET));
    // The key is removed from the answers of a model.
    let dir = sidecar.stop().await;
    let answer = json!({"action": "final", "message": format!("my key is {SECRET}")}).to_string();
    let azure = Azure::start([Turn::Answer(answer)]).await;
    let mut moved = flow_calling(&azure);
    moved[0]["label"] = json!("Moved");
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    let revision = sidecar.revision().await;
    sidecar.post("/api/deployment", json!({"flows": moved, "revision": revision})).await.ok(200);
    let ended = sidecar.run(json!({"payload": "?"})).await;
    assert_eq!(azure.keys(), [Some(SECRET.to_owned())]);
    assert!(!ended.to_string().contains(SECRET), "{ended}");
    let dir = sidecar.stop().await;
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        assert!(!contains(&std::fs::read(&path).unwrap(), SECRET), "{path:?}");
    }
}

#[tokio::test]
async fn runs_go_on_when_credentials_change() {
    let last = json!({"action": "final", "message": "42"}).to_string();
    let azure = Azure::start([Turn::AnswerLater(last)]).await;
    let sidecar = Setup::default().start(Some(flow_calling(&azure))).await;
    store(&sidecar, json!({MODEL_KEY: {"apiKey": SECRET}})).await.ok(200);
    let request =
        sidecar.request("POST", "/api/runs").token(TOKEN).json(json!({"payload": "?", "wait": true}));
    let running = tokio::spawn(request.send());
    eventually("the model is called", || async { (azure.requests().len() == 1).then_some(()) }).await;
    store(&sidecar, json!({MODEL_KEY: {"apiKey": OTHER}})).await.ok(200);
    azure.release.add_permits(1);
    let ended = running.await.unwrap().ok(200);
    assert_eq!(ended["runs"][0]["result"]["payload"], "42", "{ended}");
    assert_eq!(key_of_run(&sidecar, &azure).await.as_deref(), Some(OTHER));
}

// SECURITY: ui-masked
#[tokio::test]
async fn lists_the_masked_credentials_of_a_node() {
    let azure = Azure::start([]).await;
    let mut nodes = flow_calling(&azure);
    nodes[3]["credentials"] = json!({"apiKey": SECRET, "extra": SECRET});
    nodes[3]["credentialId"] = json!("c");
    let sidecar = Setup::default().start(None).await;
    let id = encoded("model.azure.openai-1 x");
    let (long, flat) = (format!("/agent-core/node-credentials/{id}"), format!("/credentials/{id}"));
    sidecar.get(&long).await.refused(404, "NOT_FOUND");
    sidecar.get(&flat).await.refused(404, "NOT_FOUND");
    sidecar.post("/api/deployment", json!({"flows": nodes})).await.ok(200);
    let masked = json!({"apiKey": "__PWRD__", "extra": "__PWRD__"});
    assert_eq!(sidecar.get(&flat).await.ok(200), masked);
    store(&sidecar, json!({"credential:c": {"id": "c", "name": "N", "data": {"token": OTHER}}}))
        .await
        .ok(200);
    let masked = json!({"apiKey": "__PWRD__", "extra": "__PWRD__", "token": "__PWRD__"});
    let response = sidecar.get(&long).await.ok(200);
    assert_eq!(response, json!({"nodeId": "model.azure.openai-1 x", "credentialId": "c", "data": masked}));
    sidecar.get("/credentials/..%2f..%2fcredentials.json").await.refused(404, "NOT_FOUND");
    sidecar.get("/credentials/agent").await.refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn serves_the_schema_of_the_agent() {
    let sidecar = Setup::default().start(None).await;
    let schema = sidecar.get("/agent-core/schema").await.ok(200);
    assert_eq!(schema["properties"]["strategy"]["const"].as_str().or(Some("react")), Some("react"));
    assert!(schema["properties"]["maxIterations"].is_object(), "{schema}");
}

#[tokio::test]
async fn the_read_scope_cannot_store() {
    let sidecar = Setup::default().start(None).await;
    store(&sidecar, credentials()).await.ok(200);
    let reader = token(sidecar.dir.path(), "reader", &[Scope::Read], 1);
    let ask = |method: &str, path: &str| sidecar.request(method, path).token(&reader);
    let seen = eventually("the token counts", || async {
        let answer = ask("GET", PATH).send().await;
        (answer.status != 401).then_some(answer)
    })
    .await;
    assert!(seen.status == 200 && !contains(&seen.body, SECRET));
    ask("POST", PATH).json(json!({"x": 1})).send().await.refused(403, "FORBIDDEN");
    ask("DELETE", &format!("{PATH}/api-key")).send().await.refused(403, "FORBIDDEN");
}

#[tokio::test]
async fn keeps_all_concurrent_changes() {
    let sidecar = Setup::default().start(None).await;
    let request = sidecar.request("POST", PATH).token(TOKEN);
    let storing: Vec<_> =
        (0..20).map(|n| tokio::spawn(request.clone().json(json!({n.to_string(): n})).send())).collect();
    for stored in storing {
        stored.await.unwrap().ok(200);
    }
    assert_eq!(sidecar.get(PATH).await.ok(200).as_object().unwrap().len(), 20);
}

#[tokio::test]
async fn does_not_start_with_unreadable_storage() {
    let sidecar = Setup::default().start(None).await;
    store(&sidecar, credentials()).await.ok(200);
    let dir = sidecar.stop().await;
    std::fs::write(dir.path().join("storage.json"), "{}").unwrap();
    let error = redflow_ports::UiStorage::load(&redflow_store::UiStorageFile::new(dir.path())).unwrap_err();
    assert_eq!(error.code.as_str(), "CREDENTIALS_UNREADABLE");
    let started = tokio::spawn(Setup { dir, ..Setup::default() }.start(None));
    assert!(started.await.is_err());
}
