//! Credentials of flows: stored encrypted, used by nodes, and never returned.

use crate::kit::{Setup, TOKEN, TestSidecar, flow, plain_flow};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::path::Path;

const SECRET: &str = "sk-a-secret-of-some-length";

/// An agent whose model has a key.
fn flow_with_key() -> Value {
    let mut nodes = flow(json!([]), &[]);
    nodes[3] = json!({"id": "model", "type": "openai-model", "z": "tab", "model": "gpt-4o",
                      "baseURL": "http://127.0.0.1:9/v1", "credentials": {"apiKey": SECRET}, "wires": [["agent"]]});
    nodes
}

/// The bytes of all files together.
fn all_bytes(dir: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).flat_map(|path| std::fs::read(path).unwrap()).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

// SECURITY: credentials-encrypted, credentials-hidden
#[tokio::test]
async fn stores_credentials_encrypted_and_never_returns_them() {
    let sidecar = Setup::default().start(None).await;
    sidecar.post("/api/deployment", json!({"flows": flow_with_key()})).await.ok(200);
    let mut expected = flow_with_key();
    expected[3].as_object_mut().unwrap().remove("credentials");
    assert_eq!(sidecar.get("/api/deployment").await.ok(200)["flows"], expected);
    assert!(!contains(&sidecar.get("/api/flows/tab").await.body, SECRET));
    // The model is called with the key and cannot be reached. No response contains the key.
    let ended = sidecar.run(json!({"payload": SECRET.to_owned() + " is what I know"})).await;
    assert_eq!(ended["runs"][0]["status"], "failed");
    assert!(!ended["runs"][0]["result"]["error"].to_string().contains(SECRET));
    let dir = sidecar.stop().await;
    let flows = std::fs::read(dir.path().join("flows.json")).unwrap();
    assert!(!contains(&flows, SECRET));
    let stored = std::fs::read(dir.path().join("credentials.json")).unwrap();
    assert!(!contains(&stored, SECRET));

    // The next sidecar has them, and a deploy without credentials keeps them.
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    let revision = sidecar.revision().await;
    let mut renamed = expected.clone();
    renamed[0]["label"] = json!("Renamed");
    sidecar.post("/api/deployment", json!({"flows": renamed, "revision": revision})).await.ok(200);
    let dir = sidecar.stop().await;
    assert_eq!(std::fs::read(dir.path().join("credentials.json")).unwrap().is_empty(), false);
}

#[tokio::test]
async fn refuses_invalid_credentials() {
    let sidecar = Setup::default().start(None).await;
    for odd in [json!(SECRET), json!([SECRET])] {
        let mut nodes = flow_with_key();
        nodes[3]["credentials"] = odd;
        let answer = sidecar.post("/api/deployment", json!({"flows": nodes})).await;
        answer.refused(422, "FLOW_REFUSED");
        assert_eq!(answer.json()["report"]["diagnostics"][0]["code"], "CONFIG_INVALID");
        assert!(!contains(&answer.body, SECRET));
    }
    assert_eq!(sidecar.get("/api/flows").await.ok(200)["flows"], json!([]));
}

#[tokio::test]
async fn a_deploy_removes_credentials_from_the_flow_file() {
    let setup = Setup::default();
    // Written like any file, so that other users may read it.
    std::fs::write(setup.dir.path().join("flows.json"), flow_with_key().to_string()).unwrap();
    let sidecar = setup.start(None).await;
    let revision = sidecar.revision().await;
    let mut renamed = flow_with_key();
    renamed[0]["label"] = json!("Renamed");
    sidecar.post("/api/deployment", json!({"flows": renamed, "revision": revision})).await.ok(200);
    let dir = sidecar.stop().await;
    assert!(!contains(&std::fs::read(dir.path().join("flows.json")).unwrap(), SECRET));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let before = std::fs::metadata(dir.path().join("flows.json.bak")).unwrap();
        assert_eq!(before.permissions().mode() & 0o077, 0);
    }
}

// SECURITY: credentials-encrypted
#[tokio::test]
async fn no_file_holds_a_token_or_credential_as_plain_text() {
    let sidecar = Setup::default().start(None).await;
    sidecar.post("/api/deployment", json!({"flows": flow_with_key()})).await.ok(200);
    sidecar.run(json!({"payload": "?"})).await;
    let dir = sidecar.stop().await;
    let bytes = all_bytes(dir.path());
    assert!(!contains(&bytes, SECRET));
    // The token of these tests is given and never written.
    assert!(!contains(&bytes, TOKEN));
    #[cfg(unix)]
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?} has mode {mode:o}", entry.file_name());
    }
}

// SECURITY: strict-json, log-tokens
#[tokio::test]
async fn errors_do_not_quote_secrets() {
    let sidecar = TestSidecar::start(flow(json!([]), &[])).await;
    let answers = [
        sidecar.request("GET", "/api/flows").token(SECRET).send().await,
        sidecar
            .request("GET", "/api/flows")
            .header("cookie", &format!("redflow_session={SECRET}"))
            .send()
            .await,
        sidecar.post("/api/deployment", json!({"flows": 1, "revision": [SECRET]})).await,
        sidecar.request("POST", "/api/deployment").token(TOKEN).json(json!(SECRET)).send().await,
        sidecar.request("GET", &format!("/sign-in?code={SECRET}")).send().await,
    ];
    for answer in answers {
        assert!(answer.status >= 400);
        assert!(!contains(&answer.body, SECRET), "{answer:?}");
    }
}

/// A key in an ordinary property is hidden in responses and kept by a deploy without it.
#[tokio::test]
async fn a_plain_text_key_becomes_a_credential() {
    const KEY: &str = "sk-in-the-open-0815";
    let mut nodes = plain_flow();
    nodes.as_array_mut().unwrap().push(json!({
        "id": "azure", "type": "model.azure.openai", "z": "tab", "endpoint": "http://127.0.0.1:9", "deployment": "d",
        "apiVersion": "1", "apiKey": KEY, "wires": [[]],
    }));
    nodes.as_array_mut().unwrap().push(json!({
        "id": "env", "type": "openai-model", "z": "tab", "apiKey": "${OPENAI_API_KEY}", "maxTokens": 7, "wires": [[]],
    }));
    let sidecar = TestSidecar::start(nodes.clone()).await;
    let body = |reply: crate::client::Reply| String::from_utf8_lossy(&reply.body).into_owned();
    for path in ["/flows", "/flow/tab", "/api/deployment", "/api/flows/tab", "/credentials/azure"] {
        let text = body(sidecar.get(path).await);
        assert!(!text.contains(KEY), "{path}: {text}");
    }
    assert_eq!(sidecar.get("/credentials/azure").await.ok(200), json!({"apiKey": "__PWRD__"}));
    // Neither a variable nor a number of tokens is a secret.
    let deployed = sidecar.get("/flows").await.ok(200);
    let env = deployed.as_array().unwrap().iter().find(|node| node["id"] == "env").unwrap().clone();
    assert_eq!((&env["apiKey"], &env["maxTokens"]), (&json!("${OPENAI_API_KEY}"), &json!(7)));
    // A deploy of the flow without the key keeps the key, and the flow file no longer has it.
    sidecar.post("/flows", deployed).await;
    assert_eq!(sidecar.get("/credentials/azure").await.ok(200), json!({"apiKey": "__PWRD__"}));
    let dir = sidecar.stop().await;
    let file = std::fs::read_to_string(dir.path().join("flows.json")).unwrap();
    assert!(!file.contains(KEY));
    let sidecar = Setup { dir, ..Setup::default() }.start(None).await;
    assert_eq!(sidecar.get("/credentials/azure").await.ok(200), json!({"apiKey": "__PWRD__"}));
}

/// An agent whose model is at OpenAI and brings these credentials.
fn flow_at_openai(credentials: Value) -> Value {
    let mut nodes = flow(json!([]), &[]);
    nodes[3] = json!({"id": "model", "type": "openai-model", "z": "tab", "name": "", "model": "gpt-4o",
                      "credentials": credentials, "wires": [["agent"]]});
    nodes
}

/// The codes that a check of a flow reports.
async fn codes(sidecar: &TestSidecar, flows: &Value) -> Vec<Value> {
    let report = sidecar.post("/api/flows/check", json!({"flows": flows})).await.ok(200);
    report["diagnostics"].as_array().unwrap().iter().map(|problem| problem["code"].clone()).collect()
}

#[tokio::test]
async fn names_a_model_without_a_key_before_the_first_message() {
    let sidecar = Setup::default().start(None).await;
    let report = sidecar.post("/api/flows/check", json!({"flows": flow_at_openai(json!({}))})).await.ok(200);
    let problem = &report["diagnostics"][0];
    assert_eq!((&report["ok"], &problem["code"]), (&json!(false), &json!("MODEL_KEY_MISSING")), "{report}");
    assert_eq!((&problem["node"]["id"], &problem["target"]["id"]), (&json!("model"), &json!("agent")));
    assert_eq!(problem["message"], "`gpt-4o` has no API key");
    assert!(problem["help"].as_str().unwrap().contains("OPENAI_API_KEY"), "{problem}");
    // A model that names a shared key without a key: the help leads there.
    let mut shared = flow_at_openai(json!({}));
    shared[3]["keyNode"] = json!("key");
    shared.as_array_mut().unwrap().push(json!({"id": "key", "type": "openai-key", "name": "Our key"}));
    let report = sidecar.post("/api/flows/check", json!({"flows": shared})).await.ok(200);
    let help = "Enter the API key in the shared key `Our key` and deploy. Or set OPENAI_API_KEY where the sidecar runs, and restart it.";
    assert_eq!(report["diagnostics"][0]["help"], help, "{report}");
    // A deploy goes through. The agent says it, also in its answer.
    let nodes = flow_at_openai(json!({}));
    let deployed = sidecar.post("/api/deployment", json!({"flows": nodes})).await.ok(200);
    assert_eq!(deployed["report"]["ok"], true, "{deployed}");
    let agent = sidecar.get("/api/flows").await.ok(200)["flows"][0]["agents"][0].clone();
    assert_eq!((&agent["ready"], &agent["problems"]), (&json!(false), &json!([problem])));
    let ended = sidecar.run(json!({"payload": "hello"})).await;
    assert_eq!(ended["runs"][0]["result"]["error"]["code"], "MODEL_KEY_MISSING", "{ended}");
}

#[tokio::test]
async fn a_key_that_the_check_cannot_see_is_not_missing() {
    let env = |name: &str| (name == "OPENAI_API_KEY").then(|| SECRET.to_owned());
    let with_env = Setup { env, ..Setup::default() }.start(None).await;
    assert_eq!(codes(&with_env, &flow_at_openai(json!({}))).await, [json!(null); 0]);
    let sidecar = Setup::default().start(None).await;
    assert_eq!(codes(&sidecar, &flow_at_openai(json!({"apiKey": "__PWRD__"}))).await, [json!(null); 0]);
    // The stored key counts until the node brings an empty one.
    let nodes = flow_at_openai(json!({"apiKey": SECRET}));
    sidecar.post("/api/deployment", json!({"flows": nodes})).await.ok(200);
    assert_eq!(codes(&sidecar, &flow_at_openai(json!({}))).await, [json!(null); 0]);
    assert_eq!(codes(&sidecar, &flow_at_openai(json!({"apiKey": ""}))).await, ["MODEL_KEY_MISSING"]);
}
