//! Testing a connection to Azure: what the UI is told, and that nobody is told the key.

use crate::azure_server::{Azure, Turn};
use crate::client::Reply;
use crate::kit::{Setup, World, eventually, token};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use serde_json::{Value, json};

const KEY: &str = "azure-key-of-these-tests-0123456789";
const OF_ENVIRONMENT: &str = "azure-key-of-the-environment-98765";

fn with(endpoint: &str) -> Value {
    json!({"endpoint": endpoint, "deployment": "gpt 4o/x", "apiVersion": "2024-12-01-preview", "apiKey": KEY})
}

async fn test(world: &World, body: Value) -> Reply {
    world.post("/azure-openai/test-connection", body).await
}

#[track_caller]
fn failed(reply: Reply, status: u16, code: &str) -> String {
    let told = reply.json();
    assert_eq!(
        (reply.status, &told["success"], &told["code"]),
        (status, &json!(false), &json!(code)),
        "{told}"
    );
    assert_eq!(told["statusCode"], status);
    let text = String::from_utf8(reply.body).unwrap();
    assert!(!text.contains(KEY) && !text.contains(OF_ENVIRONMENT), "{text}");
    told["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_connection_that_works_is_told_with_what_it_cost() {
    let azure = Azure::start([]).await;
    let world = Setup::default().start(None).await;
    let told = test(&world, with(&azure.endpoint())).await.ok(200);
    assert_eq!(told["success"], true);
    let metadata = &told["metadata"];
    assert!(metadata["durationMs"].is_u64());
    assert_eq!(
        (&metadata["deployment"], &metadata["promptTokens"], &metadata["completionTokens"]),
        (&json!("gpt 4o/x"), &json!(12), &json!(3))
    );
    // No word of what was said at an address that is not Azure's.
    assert_eq!(metadata.get("model"), None);
    assert_eq!(metadata["totalTokens"], 15);
    assert!(!told.to_string().contains(KEY));
    // One small question, where the deployment is.
    let asked = azure.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0].line,
        "POST /openai/deployments/gpt%204o%2Fx/chat/completions?api-version=2024-12-01-preview HTTP/1.1"
    );
    assert_eq!(asked[0].key.as_deref(), Some(KEY));
    assert_eq!(asked[0].body["max_tokens"], 10);
    assert_eq!(asked[0].body["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_goes_wrong_is_told_once_and_without_the_key() {
    let echo = format!("Access denied due to invalid key {KEY}");
    let refuse = |status, code: &str| Turn::Refuse(status, json!({"code": code, "message": echo}));
    let rows = [
        (refuse(401, "401"), 401, "INVALID_CREDENTIALS"),
        (refuse(403, "Forbidden"), 401, "INVALID_CREDENTIALS"),
        (refuse(404, "DeploymentNotFound"), 404, "MODEL_NOT_FOUND"),
        (refuse(429, "429"), 429, "RATE_LIMIT"),
        (refuse(504, "GatewayTimeout"), 504, "TIMEOUT"),
        (refuse(500, "InternalServerError"), 503, "PROVIDER_UNAVAILABLE"),
        (refuse(400, "BadRequest"), 502, "MODEL_ERROR"),
        (Turn::Garbage, 503, "PROVIDER_UNAVAILABLE"),
    ];
    let world = Setup::default().start(None).await;
    for (turn, status, code) in rows {
        let azure = Azure::start([turn]).await;
        let error = failed(test(&world, with(&azure.endpoint())).await, status, code);
        assert!(
            error.len() > 60 && !error.contains("Access denied") && !error.contains("127.0.0.1"),
            "{error}"
        );
        assert_eq!(azure.asked().len(), 1, "{code}: asked again");
    }
    // Nobody listens there.
    let gone = Azure::start([]).await.endpoint();
    failed(test(&world, with(&gone)).await, 503, "PROVIDER_UNAVAILABLE");
}

#[tokio::test]
async fn who_says_nothing_is_not_waited_for() {
    let azure = Azure::start([Turn::Silence]).await;
    let world = Setup::default().start(None).await;
    failed(test(&world, with(&azure.endpoint())).await, 504, "TIMEOUT");
}

#[tokio::test]
async fn what_cannot_be_tried_is_refused() {
    let world = Setup::default().start(None).await;
    for left_out in ["endpoint", "deployment", "apiVersion", "apiKey"] {
        for odd in [Value::Null, json!(""), json!("  ")] {
            let mut body = with("http://127.0.0.1:9");
            body[left_out] = odd;
            let error = failed(test(&world, body).await, 400, "BODY_INVALID");
            assert!(error.contains(left_out), "{error}");
        }
    }
    let mut masked = with("http://127.0.0.1:9");
    masked["apiKey"] = json!("__PWRD__");
    failed(test(&world, masked).await, 400, "BODY_INVALID");
    for endpoint in [
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "127.0.0.1",
        "http://",
        "http://user:secret@127.0.0.1:9",
        "http://127.0.0.1:9/?api-key=secret",
        "\u{0}",
    ] {
        failed(test(&world, with(endpoint)).await, 400, "BODY_INVALID");
    }
    let mut odd_key = with("http://127.0.0.1:9");
    odd_key["apiKey"] = json!("a\r\nx-injected: b");
    failed(test(&world, odd_key).await, 400, "BODY_INVALID");
    for body in [json!([]), json!({"endpoint": 1}), json!("x")] {
        assert_eq!(test(&world, body).await.status, 400);
    }
    let mut large = with("http://127.0.0.1:9");
    large["endpoint"] = json!("x".repeat(100_000));
    test(&world, large).await.refused(413, "BODY_TOO_LARGE");
}

/// Who may name an address could have the key sent there: to Azure it goes, and nowhere else, this machine included.
#[tokio::test]
async fn the_key_of_the_environment_is_for_azure() {
    let azure = Azure::start([]).await;
    let env = |name: &str| (name == "AZURE_OPENAI_API_KEY").then(|| OF_ENVIRONMENT.to_owned());
    let world = Setup { env, ..Setup::default() }.start(None).await;
    let here = azure.endpoint();
    let by_name = here.replace("127.0.0.1", "localhost");
    for endpoint in [&*here, &by_name, "http://azure.example", "http://name.openai.azure.com"] {
        for key in
            [Value::Null, json!("__PWRD__"), json!(""), json!("${AZURE_OPENAI_API_KEY}"), json!("$(X)")]
        {
            let mut body = with(endpoint);
            body["apiKey"] = key;
            let error = failed(test(&world, body).await, 400, "BODY_INVALID");
            assert!(error.starts_with("`apiKey` is needed: send it."), "{error}");
        }
    }
    assert_eq!(azure.asked().len(), 0);
    test(&world, with(&here)).await.ok(200);
    assert_eq!(azure.keys(), [Some(KEY.to_owned())]);
}

#[tokio::test]
async fn so_many_are_tried_at_once_and_who_goes_stops_trying() {
    let azure = Azure::start((0..4).map(|_| Turn::SayLater("OK".to_owned()))).await;
    let world = Setup::default().start(None).await;
    let request = world.request("POST", "/azure-openai/test-connection").token(crate::kit::TOKEN);
    let request = request.json(with(&azure.endpoint()));
    let trying: Vec<_> = (0..4).map(|_| tokio::spawn(request.clone().send())).collect();
    eventually("four are tried", || async { (azure.asked().len() == 4).then_some(()) }).await;
    failed(request.clone().send().await, 429, "RATE_LIMITED");
    azure.go_on.add_permits(4);
    for tried in trying {
        tried.await.unwrap().ok(200);
    }
    request.send().await.ok(200);
}

#[tokio::test]
async fn only_who_may_deploy_may_try() {
    let world = Setup::default().start(None).await;
    let azure = Azure::start([]).await;
    for (scope, status) in [(Scope::Read, 403), (Scope::Run, 403), (Scope::Deploy, 200)] {
        let token = token(world.dir.path(), scope.as_str(), &[scope], 1);
        let request = world.request("POST", "/azure-openai/test-connection").token(&token);
        let json = request.json(with(&azure.endpoint()));
        let answer = eventually("the token counts", || async {
            let answer = json.clone().send().await;
            (answer.status != 401).then_some(answer)
        })
        .await;
        assert_eq!(answer.status, status);
    }
    assert_eq!(azure.asked().len(), 1);
}
