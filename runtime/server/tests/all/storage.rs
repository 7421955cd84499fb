//! What the Redflow UI stores: it comes back, its secrets do not, and nodes get the credentials among it.

use crate::azure_server::{Azure, Turn};
use crate::client::Reply;
use crate::kit::{Setup, TOKEN, World, eventually, flow, plain, token};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use redflow_contract::event::FlowEvent;
use redflow_contract::stream::StreamEvent;
use serde_json::{Value, json};

const PATH: &str = "/redflow/persistent-storage";
const SECRET: &str = "sk-a-stored-secret-of-some-length";
const OTHER: &str = "sk-another-secret-of-some-length";

/// An agent whose model is at this address and has no key of its own.
fn at(azure: &Azure) -> Value {
    let mut nodes = flow(json!([]), &[]);
    nodes[3] = json!({"id": "model.azure.openai-1 x", "type": "model.azure.openai", "z": "tab",
                      "endpoint": azure.endpoint(), "deployment": "d", "apiVersion": "2024-12-01-preview",
                      "wires": [["agent"]]});
    nodes[2]["wires"][0] = json!(["model.azure.openai-1 x"]);
    nodes
}

const OF_MODEL: &str = "node-credentials:model.azure.openai-1 x";

async fn store(world: &World, items: Value) -> Reply {
    world.post(PATH, items).await
}

async fn delete(world: &World, key: &str) -> Reply {
    world.request("DELETE", &format!("{PATH}/{}", encoded(key))).token(TOKEN).send().await
}

async fn item(world: &World, key: &str) -> Reply {
    world.get(&format!("{PATH}/{}", encoded(key))).await
}

/// As `encodeURIComponent` does it, and more.
fn encoded(key: &str) -> String {
    key.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Runs the agent, which asks its model once; the key that came with that.
async fn key_of_run(world: &World, azure: &Azure) -> Option<String> {
    let before = azure.keys().len();
    let ended = world.run(json!({"payload": "?"})).await;
    assert_eq!(ended["runs"][0]["status"], "completed", "{ended}");
    let keys = azure.keys();
    assert_eq!(keys.len(), before + 1);
    keys[before].clone()
}

#[tokio::test]
async fn what_is_stored_comes_back_and_outlives_the_process() {
    let world = Setup::default().start(None).await;
    assert_eq!(world.get(PATH).await.ok(200), json!({}));
    let told = store(&world, json!({"theme": {"dark": true}, "recent": [1, "two"]})).await.ok(200);
    assert_eq!(told, json!({"success": true, "updated": ["theme", "recent"]}));
    store(&world, json!({"theme": {"dark": false}})).await.ok(200);
    let all = json!({"theme": {"dark": false}, "recent": [1, "two"]});
    assert_eq!(world.get(PATH).await.ok(200), all);
    assert_eq!(item(&world, "theme").await.ok(200), json!({"key": "theme", "value": {"dark": false}}));
    item(&world, "nothing").await.refused(404, "NOT_FOUND");
    delete(&world, "nothing").await.refused(404, "NOT_FOUND");
    let dir = world.stop().await;

    let world = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(world.get(PATH).await.ok(200), all);
    assert_eq!(delete(&world, "theme").await.ok(200), json!({"success": true, "deleted": "theme"}));
    item(&world, "theme").await.refused(404, "NOT_FOUND");
    let dir = world.stop().await;
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(world.get(PATH).await.ok(200), json!({"recent": [1, "two"]}));
}

#[tokio::test]
async fn keys_are_names_and_nothing_else() {
    let world = Setup::default().start(None).await;
    let files = || {
        let names = std::fs::read_dir(world.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    store(&world, json!({"first": 1})).await.ok(200);
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
    // Some of them are called like secrets: what has no text is shown all the same.
    for key in odd {
        let value = json!({key: true});
        store(&world, json!({key: value})).await.ok(200);
        assert_eq!(item(&world, key).await.ok(200), json!({"key": key, "value": value}), "{key:?}");
    }
    assert_eq!(world.get(PATH).await.ok(200).as_object().unwrap().len(), odd.len() + 1);
    for key in odd {
        assert_eq!(delete(&world, key).await.ok(200), json!({"success": true, "deleted": key}));
    }
    // An empty key can be stored, and has no address of its own.
    store(&world, json!({"": "empty"})).await.ok(200);
    assert_eq!(world.get(PATH).await.ok(200)[""], "empty");
    assert_eq!(item(&world, "").await.status, 404);
    // Written into the address as they are.
    for path in ["/../x", "/%2e%2e/x", "/%2e%2e%2fcredentials.key", "/..", "/%ff", "/a/b", "/%00"] {
        let answer = world.get(&format!("{PATH}{path}")).await;
        assert!((400..500).contains(&answer.status), "{path}: {answer:?}");
        assert!(!answer.code().is_empty(), "{path}");
    }
    assert_eq!(files(), before);
}

#[tokio::test]
async fn too_much_is_refused_whole() {
    let world = Setup::default().start(None).await;
    store(&world, json!({"kept": 1})).await.ok(200);
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
        let answer = store(&world, items).await;
        answer.refused(413, "STORAGE_FULL");
        assert!(!holds(&answer.body, SECRET));
    }
    store(&world, json!({"a": "x".repeat(9_000_000)})).await.refused(413, "BODY_TOO_LARGE");
    for odd in [json!([]), json!("x"), json!(1), json!(null)] {
        store(&world, odd).await.refused(400, "BODY_INVALID");
    }
    let twice = world.request("POST", PATH).token(TOKEN).header("content-type", "application/json");
    twice.bytes(r#"{"a": 1, "a": 2}"#).send().await.refused(400, "BODY_INVALID");
    assert_eq!(world.get(PATH).await.ok(200), json!({"kept": 1}));
}

/// As a UI stores them.
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

#[tokio::test]
async fn no_secret_comes_out_again() {
    let world = Setup::default().start(None).await;
    let mut answers = vec![store(&world, credentials()).await];
    answers.push(world.get(PATH).await);
    // What the UI has sealed itself it keeps itself: a mask in its place would be unsealed there.
    let sealed = |key: &&String| key.starts_with("encrypted:");
    for key in credentials().as_object().unwrap().keys().filter(|key| !sealed(key)) {
        answers.push(item(&world, key).await);
    }
    for key in ["encrypted:credential:c", " ENCRYPTED:x"] {
        store(&world, json!({key: SECRET})).await.ok(200);
        let answer = item(&world, key).await;
        answer.refused(404, "NOT_FOUND");
        assert!(world.get(PATH).await.ok(200).get(key).is_none());
    }
    delete(&world, " ENCRYPTED:x").await.ok(200);
    for path in ["/agent-core/node-credentials/m", "/credentials/m"] {
        answers.push(world.get(path).await);
    }
    answers.push(delete(&world, "api-key").await);
    for answer in answers {
        assert_eq!(answer.status, 200);
        assert!(!holds(&answer.body, SECRET), "{answer:?}");
    }
    let shown = world.get(PATH).await.ok(200);
    assert_eq!(shown["node-credentials:m"], json!({"apiKey": "__PWRD__"}));
    assert_eq!(shown["credential:c"]["data"]["endpoint"], "https://x.openai.azure.com");
    assert_eq!(shown["node-config:m"]["config"]["maxTokens"], 800);
    // What was shown and comes back changes nothing.
    let dir = world.stop().await;
    let file = || std::fs::read(dir.path().join("storage.json")).unwrap();
    assert!(!holds(&file(), SECRET) && !holds(&file(), "node-credentials"));
    let world = Setup { dir: dir.clone(), ..Setup::default() }.start(None).await;
    store(&world, shown.clone()).await.ok(200);
    assert_eq!(world.get(PATH).await.ok(200), shown);
    world.stop().await;
    let drawer = redflow_store::UiStorageFile::new(dir.path());
    let kept = redflow_ports::UiStorage::load(&drawer).unwrap();
    let mut expected = credentials();
    expected.as_object_mut().unwrap().remove("api-key");
    assert_eq!(serde_json::to_value(kept).unwrap(), expected);
}

#[tokio::test]
async fn a_node_gets_what_is_stored_for_it_at_once() {
    let azure = Azure::start([]).await;
    let world = Setup::default().start(None).await;
    // Stored before there is such a node.
    store(&world, json!({OF_MODEL: {"apiKey": SECRET}})).await.ok(200);
    world.post("/api/deployment", json!({"flows": at(&azure)})).await.ok(200);
    assert_eq!(key_of_run(&world, &azure).await.as_deref(), Some(SECRET));
    let revision = world.revision().await;
    let mut socket = world.socket().await;
    socket.subscribe(Some("0")).await;

    // Stored while it runs.
    store(&world, json!({OF_MODEL: {"apiKey": OTHER}})).await.ok(200);
    assert_eq!(key_of_run(&world, &azure).await.as_deref(), Some(OTHER));
    store(&world, json!({OF_MODEL: {"apiKey": "__PWRD__"}, "unrelated": 1})).await.ok(200);
    assert_eq!(key_of_run(&world, &azure).await.as_deref(), Some(OTHER));
    delete(&world, OF_MODEL).await.ok(200);
    assert_eq!(key_of_run(&world, &azure).await, None);
    // It is the same flow all the time, and nobody was told otherwise.
    assert_eq!(world.revision().await, revision);
    store(&world, json!({"x": 1})).await.ok(200);
    let deployed =
        world.post("/api/deployment", json!({"flows": plain(), "revision": revision})).await.ok(200);
    let is_deploy = |event: &StreamEvent, of: &Value| matches!(event, StreamEvent::Flow { event: FlowEvent::Deployed { revision, .. }, .. } if *revision == *of);
    let events = socket.until(|event| is_deploy(event, &deployed["revision"])).await;
    assert_eq!(events.iter().filter(|(_, event)| is_deploy(event, &json!(revision))).count(), 1);
}

/// An agent that was refused because its model has no key is ready as soon as one is stored, and not after.
#[tokio::test]
async fn a_key_that_comes_later_makes_an_agent_ready() {
    let azure = Azure::start([]).await;
    let mut nodes = at(&azure);
    nodes[3]["endpoint"] = json!("https://name.openai.azure.com");
    let world = Setup::default().start(Some(nodes)).await;
    let agent = async || world.get("/api/flows").await.ok(200)["flows"][0]["agents"][0].clone();
    assert_eq!(agent().await["ready"], false);
    store(&world, json!({OF_MODEL: {"apiKey": SECRET}})).await.ok(200);
    assert_eq!((&agent().await["ready"], &agent().await["problems"]), (&json!(true), &json!([])));
    delete(&world, OF_MODEL).await.ok(200);
    let refused = agent().await;
    assert_eq!(refused["ready"], false);
    assert!(!refused.to_string().contains(SECRET));
}

/// The node's own, then those it shares, then those of the flow, then the environment.
#[tokio::test]
async fn credentials_have_an_order() {
    let azure = Azure::start([]).await;
    let env = |name: &str| (name == "AZURE_OPENAI_API_KEY").then(|| "of-the-environment".to_owned());
    let world = Setup { env, ..Setup::default() }.start(Some(at(&azure))).await;
    assert_eq!(key_of_run(&world, &azure).await.as_deref(), Some("of-the-environment"));
    let mut nodes = at(&azure);
    nodes[3]["credentials"] = json!({"apiKey": "of-the-flow"});
    nodes[3]["credentialId"] = json!("by-node");
    let revision = world.revision().await;
    world.post("/api/deployment", json!({"flows": nodes, "revision": revision})).await.ok(200);
    assert_eq!(key_of_run(&world, &azure).await.as_deref(), Some("of-the-flow"));
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
        (json!({OF_MODEL: {"value": {"apiKey": "its-own-key"}}}), "its-own-key"),
        // What holds no key leaves the next one its turn.
        (json!({OF_MODEL: {"apiKey": ""}}), "by-config-key"),
        (json!({"node-config:model.azure.openai-1 x": null}), "by-node-key"),
        (json!({"credential:by-node": "odd"}), "of-the-flow"),
    ];
    for (items, expected) in steps {
        store(&world, items.clone()).await.ok(200);
        assert_eq!(key_of_run(&world, &azure).await.as_deref(), Some(expected), "{items}");
    }
    // What is stored is not written into the credentials of the flow.
    store(&world, json!({OF_MODEL: {"apiKey": "its-own-key"}})).await.ok(200);
    nodes[0]["label"] = json!("Renamed");
    nodes[3].as_object_mut().unwrap().remove("credentials");
    let revision = world.revision().await;
    world.post("/api/deployment", json!({"flows": nodes, "revision": revision})).await.ok(200);
    assert_eq!(key_of_run(&world, &azure).await.as_deref(), Some("its-own-key"));
    delete(&world, OF_MODEL).await.ok(200);
    assert_eq!(key_of_run(&world, &azure).await.as_deref(), Some("of-the-flow"));
}

#[tokio::test]
async fn the_next_process_has_the_credentials_too() {
    let azure = Azure::start([]).await;
    let world = Setup::default().start(Some(at(&azure))).await;
    store(&world, json!({OF_MODEL: {"apiKey": SECRET}})).await.ok(200);
    let dir = world.stop().await;
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(key_of_run(&world, &azure).await.as_deref(), Some(SECRET));
    // Whatever a model says of it, nobody reads it.
    let dir = world.stop().await;
    let told = json!({"action": "final", "message": format!("my key is {SECRET}")}).to_string();
    let azure = Azure::start([Turn::Say(told)]).await;
    let mut moved = at(&azure);
    moved[0]["label"] = json!("Moved");
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    let revision = world.revision().await;
    world.post("/api/deployment", json!({"flows": moved, "revision": revision})).await.ok(200);
    let ended = world.run(json!({"payload": "?"})).await;
    assert_eq!(azure.keys(), [Some(SECRET.to_owned())]);
    assert!(!ended.to_string().contains(SECRET), "{ended}");
    let dir = world.stop().await;
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        assert!(!holds(&std::fs::read(&path).unwrap(), SECRET), "{path:?}");
    }
}

/// A run that waits for its model while credentials change goes on.
#[tokio::test]
async fn runs_go_on_when_credentials_change() {
    let last = json!({"action": "final", "message": "42"}).to_string();
    let azure = Azure::start([Turn::SayLater(last)]).await;
    let world = Setup::default().start(Some(at(&azure))).await;
    store(&world, json!({OF_MODEL: {"apiKey": SECRET}})).await.ok(200);
    let request = world.request("POST", "/api/runs").token(TOKEN).json(json!({"payload": "?", "wait": true}));
    let running = tokio::spawn(request.send());
    eventually("the model is asked", || async { (azure.asked().len() == 1).then_some(()) }).await;
    store(&world, json!({OF_MODEL: {"apiKey": OTHER}})).await.ok(200);
    azure.go_on.add_permits(1);
    let ended = running.await.unwrap().ok(200);
    assert_eq!(ended["runs"][0]["result"]["payload"], "42", "{ended}");
    assert_eq!(key_of_run(&world, &azure).await.as_deref(), Some(OTHER));
}

#[tokio::test]
async fn a_node_s_credentials_are_named_and_masked() {
    let azure = Azure::start([]).await;
    let mut nodes = at(&azure);
    nodes[3]["credentials"] = json!({"apiKey": SECRET, "extra": SECRET});
    nodes[3]["credentialId"] = json!("c");
    let world = Setup::default().start(None).await;
    let id = encoded("model.azure.openai-1 x");
    let (long, flat) = (format!("/agent-core/node-credentials/{id}"), format!("/credentials/{id}"));
    world.get(&long).await.refused(404, "NOT_FOUND");
    world.get(&flat).await.refused(404, "NOT_FOUND");
    world.post("/api/deployment", json!({"flows": nodes})).await.ok(200);
    let masked = json!({"apiKey": "__PWRD__", "extra": "__PWRD__"});
    assert_eq!(world.get(&flat).await.ok(200), masked);
    store(&world, json!({"credential:c": {"id": "c", "name": "N", "data": {"token": OTHER}}})).await.ok(200);
    let masked = json!({"apiKey": "__PWRD__", "extra": "__PWRD__", "token": "__PWRD__"});
    let told = world.get(&long).await.ok(200);
    assert_eq!(told, json!({"nodeId": "model.azure.openai-1 x", "credentialId": "c", "data": masked}));
    world.get("/credentials/..%2f..%2fcredentials.json").await.refused(404, "NOT_FOUND");
    world.get("/credentials/agent").await.refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn the_schema_of_the_agent_is_there() {
    let world = Setup::default().start(None).await;
    let schema = world.get("/agent-core/schema").await.ok(200);
    assert_eq!(schema["properties"]["strategy"]["const"].as_str().or(Some("react")), Some("react"));
    assert!(schema["properties"]["maxIterations"].is_object(), "{schema}");
}

#[tokio::test]
async fn who_may_only_read_stores_nothing() {
    let world = Setup::default().start(None).await;
    store(&world, credentials()).await.ok(200);
    let reader = token(world.dir.path(), "reader", &[Scope::Read], 1);
    let ask = |method: &str, path: &str| world.request(method, path).token(&reader);
    let seen = eventually("the token counts", || async {
        let answer = ask("GET", PATH).send().await;
        (answer.status != 401).then_some(answer)
    })
    .await;
    assert!(seen.status == 200 && !holds(&seen.body, SECRET));
    ask("POST", PATH).json(json!({"x": 1})).send().await.refused(403, "FORBIDDEN");
    ask("DELETE", &format!("{PATH}/api-key")).send().await.refused(403, "FORBIDDEN");
}

/// Changes that come at the same time are all kept.
#[tokio::test]
async fn no_change_is_lost() {
    let world = Setup::default().start(None).await;
    let request = world.request("POST", PATH).token(TOKEN);
    let storing: Vec<_> =
        (0..20).map(|n| tokio::spawn(request.clone().json(json!({n.to_string(): n})).send())).collect();
    for stored in storing {
        stored.await.unwrap().ok(200);
    }
    assert_eq!(world.get(PATH).await.ok(200).as_object().unwrap().len(), 20);
}

/// A drawer that cannot be opened is told at the start, as credentials are.
#[tokio::test]
async fn a_sidecar_does_not_start_over_what_it_cannot_read() {
    let world = Setup::default().start(None).await;
    store(&world, credentials()).await.ok(200);
    let dir = world.stop().await;
    std::fs::write(dir.path().join("storage.json"), "{}").unwrap();
    let error = redflow_ports::UiStorage::load(&redflow_store::UiStorageFile::new(dir.path())).unwrap_err();
    assert_eq!(error.code.as_str(), "CREDENTIALS_UNREADABLE");
    let started = tokio::spawn(Setup { dir, ..Setup::default() }.start(None));
    assert!(started.await.is_err());
}
