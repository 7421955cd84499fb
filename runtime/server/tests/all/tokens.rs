//! The tokens and the configuration over HTTP.

use crate::kit::{Setup, TOKEN, TestSidecar, plain_flow};
use pretty_assertions::assert_eq;
use redflow_contract::console::ConfigEntry;
use serde_json::{Value, json};

// SECURITY: token-admin
#[tokio::test]
async fn tokens_are_made_listed_and_removed_while_the_sidecar_runs() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let made = sidecar.post("/api/tokens", json!({"name": "ci", "scopes": ["run", "read"]})).await.ok(201);
    assert_eq!(made["name"], "ci");
    let token = made["token"].as_str().unwrap();
    // It works at once.
    let session = sidecar.request("GET", "/api/session").token(token).send().await.ok(200);
    assert_eq!(session["name"], "ci");
    let list = sidecar.get("/api/tokens").await;
    assert!(
        !String::from_utf8_lossy(&list.body).contains(token)
            && !String::from_utf8_lossy(&list.body).contains(TOKEN)
    );
    let list = list.ok(200);
    let created_at = list["tokens"][0]["createdAt"].as_u64().unwrap();
    let wanted = json!({"tokens": [
        {"name": "ci", "scopes": ["read", "run"], "createdAt": created_at, "isOwn": false},
        {"name": "main", "scopes": ["admin"], "isOwn": true},
    ]});
    assert_eq!(list, wanted);
    let remove = |name: &str| sidecar.request("DELETE", &format!("/api/tokens/{name}")).token(TOKEN).send();
    assert_eq!(remove("ci").await.status, 204);
    sidecar.request("GET", "/api/session").token(token).send().await.refused(401, "UNAUTHORIZED");
    remove("ci").await.refused(404, "NOT_FOUND");
    remove("main").await.refused(400, "REQUEST_INVALID");
    remove("%ff").await.refused(400, "REQUEST_INVALID");
    // The file has the digest only.
    let again = sidecar.post("/api/tokens", json!({"name": "x", "scopes": ["admin"]})).await.ok(201);
    let file = std::fs::read_to_string(sidecar.dir.path().join("tokens.json")).unwrap();
    assert!(!file.contains(again["token"].as_str().unwrap()));
}

// SECURITY: token-admin
#[tokio::test]
async fn a_wrong_description_of_a_token_is_refused() {
    let sidecar = TestSidecar::start(plain_flow()).await;
    let rows: [(Value, &str); 7] = [
        (json!({"name": "", "scopes": ["read"]}), "REQUEST_INVALID"),
        (json!({"name": "main", "scopes": ["read"]}), "REQUEST_INVALID"),
        (json!({"name": "a b", "scopes": ["read"]}), "REQUEST_INVALID"),
        (json!({"name": "x".repeat(65), "scopes": ["read"]}), "REQUEST_INVALID"),
        (json!({"name": "x", "scopes": []}), "REQUEST_INVALID"),
        (json!({"name": "x", "scopes": ["root"]}), "BODY_INVALID"),
        (json!({"name": "x"}), "BODY_INVALID"),
    ];
    for (body, code) in rows {
        sidecar.post("/api/tokens", body).await.refused(400, code);
    }
    sidecar.post("/api/tokens", json!({"name": "x", "scopes": ["read"]})).await.ok(201);
    sidecar
        .post("/api/tokens", json!({"name": "x", "scopes": ["run"]}))
        .await
        .refused(400, "REQUEST_INVALID");
    let large = json!({"name": "y".repeat(5000), "scopes": ["read"]});
    sidecar.post("/api/tokens", large).await.refused(413, "BODY_TOO_LARGE");
}

#[tokio::test]
async fn the_configuration_is_what_the_process_gives() {
    let mut setup = Setup::default();
    let entry = ConfigEntry { key: "http.proxy".into(), value: "[set]".into(), is_set: true };
    setup.settings.config = vec![entry];
    let sidecar = setup.start(Some(plain_flow())).await;
    let wanted = json!({"settings": [{"key": "http.proxy", "value": "[set]", "isSet": true}]});
    assert_eq!(sidecar.get("/api/config").await.ok(200), wanted);
}
