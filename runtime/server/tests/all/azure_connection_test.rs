//! Tests of a connection to Azure: the responses to the UI, which never contain the key.

use crate::azure_stand_in::{Azure, Turn};
use crate::client::Reply;
use crate::kit::{Setup, TestSidecar, eventually, token};
use pretty_assertions::assert_eq;
use redflow_contract::api::Scope;
use serde_json::{Value, json};

const KEY: &str = "azure-key-of-these-tests-0123456789";
const ENVIRONMENT_KEY: &str = "azure-key-of-the-environment-98765";

fn connection(endpoint: &str) -> Value {
    json!({"endpoint": endpoint, "deployment": "gpt 4o/x", "apiVersion": "2024-12-01-preview", "apiKey": KEY})
}

async fn test(sidecar: &TestSidecar, body: Value) -> Reply {
    sidecar.post("/azure-openai/test-connection", body).await
}

/// Asserts that a test failed, without a key in the response, and gives the error text.
#[track_caller]
fn assert_failed(reply: Reply, status: u16, code: &str) -> String {
    let body = reply.json();
    assert_eq!(
        (reply.status, &body["success"], &body["code"]),
        (status, &json!(false), &json!(code)),
        "{body}"
    );
    assert_eq!(body["statusCode"], status);
    let text = String::from_utf8(reply.body).unwrap();
    assert!(!text.contains(KEY) && !text.contains(ENVIRONMENT_KEY), "{text}");
    body["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn reports_a_working_connection_with_its_token_counts() {
    let azure = Azure::start([]).await;
    let sidecar = Setup::default().start(None).await;
    let response = test(&sidecar, connection(&azure.endpoint())).await.ok(200);
    assert_eq!(response["success"], true);
    let metadata = &response["metadata"];
    assert!(metadata["durationMs"].is_u64());
    assert_eq!(
        (&metadata["deployment"], &metadata["promptTokens"], &metadata["completionTokens"]),
        (&json!("gpt 4o/x"), &json!(12), &json!(3))
    );
    // The answer of a server that is not Azure's is not shown.
    assert_eq!(metadata.get("model"), None);
    assert_eq!(metadata["totalTokens"], 15);
    assert!(!response.to_string().contains(KEY));
    // One small request to the deployment.
    let requests = azure.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        (requests[0].method.as_str(), requests[0].path.as_str()),
        ("POST", "/openai/deployments/gpt%204o%2Fx/chat/completions?api-version=2024-12-01-preview")
    );
    assert_eq!(requests[0].header("api-key"), Some(KEY));
    let body = requests[0].json().unwrap();
    assert_eq!(body["max_completion_tokens"], 10);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["content"], "This is a test of the connection. Answer with OK.");
}

// SECURITY: connection-test
#[tokio::test]
async fn reports_a_failure_without_the_key_and_without_a_retry() {
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
    let sidecar = Setup::default().start(None).await;
    for (turn, status, code) in rows {
        let azure = Azure::start([turn]).await;
        let error = assert_failed(test(&sidecar, connection(&azure.endpoint())).await, status, code);
        assert!(
            error.len() > 60 && !error.contains("Access denied") && !error.contains("127.0.0.1"),
            "{error}"
        );
        assert_eq!(azure.requests().len(), 1, "{code}: a retry");
    }
    // No server listens there.
    let closed = Azure::start([]).await.endpoint();
    assert_failed(test(&sidecar, connection(&closed)).await, 503, "PROVIDER_UNAVAILABLE");
}

#[tokio::test]
async fn gives_up_on_a_silent_server() {
    let azure = Azure::start([Turn::Silence]).await;
    let sidecar = Setup::default().start(None).await;
    assert_failed(test(&sidecar, connection(&azure.endpoint())).await, 504, "TIMEOUT");
}

#[tokio::test]
async fn refuses_an_invalid_connection() {
    let sidecar = Setup::default().start(None).await;
    for left_out in ["endpoint", "deployment", "apiVersion", "apiKey"] {
        for odd in [Value::Null, json!(""), json!("  ")] {
            let mut body = connection("http://127.0.0.1:9");
            body[left_out] = odd;
            let error = assert_failed(test(&sidecar, body).await, 400, "BODY_INVALID");
            assert!(error.contains(left_out), "{error}");
        }
    }
    let mut masked = connection("http://127.0.0.1:9");
    masked["apiKey"] = json!("__PWRD__");
    assert_failed(test(&sidecar, masked).await, 400, "BODY_INVALID");
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
        assert_failed(test(&sidecar, connection(endpoint)).await, 400, "BODY_INVALID");
    }
    let mut odd_key = connection("http://127.0.0.1:9");
    odd_key["apiKey"] = json!("a\r\nx-injected: b");
    assert_failed(test(&sidecar, odd_key).await, 400, "BODY_INVALID");
    for body in [json!([]), json!({"endpoint": 1}), json!("x")] {
        assert_eq!(test(&sidecar, body).await.status, 400);
    }
    let mut large = connection("http://127.0.0.1:9");
    large["endpoint"] = json!("x".repeat(100_000));
    test(&sidecar, large).await.refused(413, "BODY_TOO_LARGE");
}

/// A caller that chooses the address must not receive the key there, not even on this machine.
// SECURITY: connection-test
#[tokio::test]
async fn sends_the_key_of_the_environment_to_azure_only() {
    let azure = Azure::start([]).await;
    let env = |name: &str| (name == "AZURE_OPENAI_API_KEY").then(|| ENVIRONMENT_KEY.to_owned());
    let sidecar = Setup { env, ..Setup::default() }.start(None).await;
    let here = azure.endpoint();
    let by_name = here.replace("127.0.0.1", "localhost");
    for endpoint in [&*here, &by_name, "http://azure.example", "http://name.openai.azure.com"] {
        for key in
            [Value::Null, json!("__PWRD__"), json!(""), json!("${AZURE_OPENAI_API_KEY}"), json!("$(X)")]
        {
            let mut body = connection(endpoint);
            body["apiKey"] = key;
            let error = assert_failed(test(&sidecar, body).await, 400, "BODY_INVALID");
            assert!(error.starts_with("`apiKey` is required."), "{error}");
        }
    }
    assert_eq!(azure.requests().len(), 0);
    test(&sidecar, connection(&here)).await.ok(200);
    assert_eq!(azure.keys(), [Some(KEY.to_owned())]);
}

// SECURITY: connection-test
#[tokio::test]
async fn limits_the_tests_at_once() {
    let azure = Azure::start((0..4).map(|_| Turn::AnswerLater("OK".to_owned()))).await;
    let sidecar = Setup::default().start(None).await;
    let request = sidecar.request("POST", "/azure-openai/test-connection").token(crate::kit::TOKEN);
    let request = request.json(connection(&azure.endpoint()));
    let running: Vec<_> = (0..4).map(|_| tokio::spawn(request.clone().send())).collect();
    eventually("four tests run", || async { (azure.requests().len() == 4).then_some(()) }).await;
    assert_failed(request.clone().send().await, 429, "RATE_LIMITED");
    azure.release.add_permits(4);
    for test in running {
        test.await.unwrap().ok(200);
    }
    request.send().await.ok(200);
}

// SECURITY: connection-test
#[tokio::test]
async fn only_the_deploy_scope_may_test() {
    let sidecar = Setup::default().start(None).await;
    let azure = Azure::start([]).await;
    for (scope, status) in [(Scope::Read, 403), (Scope::Run, 403), (Scope::Deploy, 200)] {
        let token = token(sidecar.dir.path(), scope.as_str(), &[scope], 1);
        let request = sidecar.request("POST", "/azure-openai/test-connection").token(&token);
        let json = request.json(connection(&azure.endpoint()));
        let answer = eventually("the token counts", || async {
            let answer = json.clone().send().await;
            (answer.status != 401).then_some(answer)
        })
        .await;
        assert_eq!(answer.status, status);
    }
    assert_eq!(azure.requests().len(), 1);
}
