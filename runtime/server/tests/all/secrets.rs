//! Secrets go in and never come out.

use crate::kit::{Setup, TOKEN, World, flow, plain};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::path::Path;

const SECRET: &str = "sk-a-secret-of-some-length";

/// An agent whose model has a key, and a node that may not have any.
fn keyed() -> Value {
    let mut nodes = flow(json!([]), &[]);
    nodes[3] = json!({"id": "model", "type": "openai-model", "z": "tab", "model": "gpt-4o",
                      "baseURL": "http://127.0.0.1:9/v1", "credentials": {"apiKey": SECRET}, "wires": [["agent"]]});
    nodes
}

/// Every byte of every file.
fn all_bytes(dir: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).flat_map(|path| std::fs::read(path).unwrap()).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn credentials_are_kept_encrypted_used_and_never_returned() {
    let world = Setup::default().start(None).await;
    world.post("/api/deployment", json!({"flows": keyed()})).await.ok(200);
    let mut expected = keyed();
    expected[3].as_object_mut().unwrap().remove("credentials");
    assert_eq!(world.get("/api/deployment").await.ok(200)["flows"], expected);
    assert!(!holds(&world.get("/api/flows/tab").await.body, SECRET));
    // The model is asked with the key and cannot be reached; nothing of it shows.
    let ended = world.run(json!({"payload": SECRET.to_owned() + " is what I know"})).await;
    assert_eq!(ended["runs"][0]["status"], "failed");
    assert!(!ended["runs"][0]["result"]["error"].to_string().contains(SECRET));
    let dir = world.stop().await;
    let flows = std::fs::read(dir.path().join("flows.json")).unwrap();
    assert!(!holds(&flows, SECRET));
    let kept = std::fs::read(dir.path().join("credentials.json")).unwrap();
    assert!(!holds(&kept, SECRET));

    // The next sidecar has them, and a deploy without them keeps them.
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    let revision = world.revision().await;
    let mut renamed = expected.clone();
    renamed[0]["label"] = json!("Renamed");
    world.post("/api/deployment", json!({"flows": renamed, "revision": revision})).await.ok(200);
    let dir = world.stop().await;
    assert_eq!(std::fs::read(dir.path().join("credentials.json")).unwrap().is_empty(), false);
}

#[tokio::test]
async fn credentials_that_are_none_are_refused_and_not_forgotten() {
    let world = Setup::default().start(None).await;
    for odd in [json!(SECRET), json!([SECRET])] {
        let mut nodes = keyed();
        nodes[3]["credentials"] = odd;
        let answer = world.post("/api/deployment", json!({"flows": nodes})).await;
        answer.refused(422, "FLOW_REFUSED");
        assert_eq!(answer.json()["report"]["diagnostics"][0]["code"], "CONFIG_INVALID");
        assert!(!holds(&answer.body, SECRET));
    }
    assert_eq!(world.get("/api/flows").await.ok(200)["flows"], json!([]));
}

#[tokio::test]
async fn a_flow_file_that_holds_credentials_leaves_none_for_others_behind() {
    let setup = Setup::default();
    // As people write files: everybody may read them.
    std::fs::write(setup.dir.path().join("flows.json"), keyed().to_string()).unwrap();
    let world = setup.start(None).await;
    let revision = world.revision().await;
    let mut renamed = keyed();
    renamed[0]["label"] = json!("Renamed");
    world.post("/api/deployment", json!({"flows": renamed, "revision": revision})).await.ok(200);
    let dir = world.stop().await;
    assert!(!holds(&std::fs::read(dir.path().join("flows.json")).unwrap(), SECRET));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let before = std::fs::metadata(dir.path().join("flows.json.bak")).unwrap();
        assert_eq!(before.permissions().mode() & 0o077, 0);
    }
}

#[tokio::test]
async fn no_file_of_the_data_directory_holds_a_token_or_a_credential_in_the_open() {
    let world = Setup::default().start(None).await;
    world.post("/api/deployment", json!({"flows": keyed()})).await.ok(200);
    world.run(json!({"payload": "?"})).await;
    let dir = world.stop().await;
    let bytes = all_bytes(dir.path());
    assert!(!holds(&bytes, SECRET));
    // The token of these tests comes from outside and is written nowhere.
    assert!(!holds(&bytes, TOKEN));
    #[cfg(unix)]
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.file_name());
    }
}

#[tokio::test]
async fn errors_do_not_repeat_what_was_sent() {
    let world = World::with(flow(json!([]), &[])).await;
    let answers = [
        world.request("GET", "/api/flows").token(SECRET).send().await,
        world
            .request("GET", "/api/flows")
            .header("cookie", &format!("redflow_session={SECRET}"))
            .send()
            .await,
        world.post("/api/deployment", json!({"flows": 1, "revision": [SECRET]})).await,
        world.request("POST", "/api/deployment").token(TOKEN).json(json!(SECRET)).send().await,
        world.request("GET", &format!("/sign-in?code={SECRET}")).send().await,
    ];
    for answer in answers {
        assert!(answer.status >= 400);
        assert!(!holds(&answer.body, SECRET), "{answer:?}");
    }
}

/// Keys that are written as ordinary properties: whoever looks is not shown them, and who leaves them out keeps them.
#[tokio::test]
async fn a_key_in_the_open_becomes_a_credential() {
    const KEY: &str = "sk-in-the-open-0815";
    let mut nodes = plain();
    nodes.as_array_mut().unwrap().push(json!({
        "id": "azure", "type": "model.azure.openai", "z": "tab", "endpoint": "http://127.0.0.1:9", "deployment": "d",
        "apiVersion": "1", "apiKey": KEY, "wires": [[]],
    }));
    nodes.as_array_mut().unwrap().push(json!({
        "id": "env", "type": "openai-model", "z": "tab", "apiKey": "${OPENAI_API_KEY}", "maxTokens": 7, "wires": [[]],
    }));
    let world = World::with(nodes.clone()).await;
    let shown = |reply: crate::client::Reply| String::from_utf8_lossy(&reply.body).into_owned();
    for path in ["/flows", "/flow/tab", "/api/deployment", "/api/flows/tab", "/credentials/azure"] {
        let text = shown(world.get(path).await);
        assert!(!text.contains(KEY), "{path}: {text}");
    }
    assert_eq!(world.get("/credentials/azure").await.ok(200), json!({"apiKey": "__PWRD__"}));
    // A variable is no secret, and neither is a number of tokens.
    let deployed = world.get("/flows").await.ok(200);
    let env = deployed.as_array().unwrap().iter().find(|node| node["id"] == "env").unwrap().clone();
    assert_eq!((&env["apiKey"], &env["maxTokens"]), (&json!("${OPENAI_API_KEY}"), &json!(7)));
    // An editor that was not told it does not take it away; and it is in no file any more.
    world.post("/flows", deployed).await;
    assert_eq!(world.get("/credentials/azure").await.ok(200), json!({"apiKey": "__PWRD__"}));
    let dir = world.stop().await;
    let file = std::fs::read_to_string(dir.path().join("flows.json")).unwrap();
    assert!(!file.contains(KEY));
    let world = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(world.get("/credentials/azure").await.ok(200), json!({"apiKey": "__PWRD__"}));
}
