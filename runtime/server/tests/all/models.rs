//! `/api/models`: tests of a model, lists of models, and where keys go.

use crate::kit::{Setup, TestSidecar};
use pretty_assertions::assert_eq;
use redflow_testkit::{HttpRequest, HttpServer, json_response};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const KEY: &str = "sk-key-of-the-deployed-node";
const OTHER_KEY: &str = "sk-key-that-was-typed";

/// A stand-in for llama.cpp. It records the requests.
struct LlamaCpp {
    server: HttpServer,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Schemas {
    Followed,
    Ignored,
}

impl LlamaCpp {
    async fn start(schemas: Schemas) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let server = HttpServer::start(move |request: HttpRequest| {
            log.lock().unwrap().push(request.clone());
            let body = respond(&request, schemas);
            async move { json_response(200, &[("server", "llama.cpp")], &body) }
        });
        Self { server: server.await.unwrap(), requests }
    }

    fn base(&self) -> String {
        self.server.url("/v1")
    }

    /// The paths and keys of all requests so far.
    fn received(&self) -> Vec<(String, Option<String>)> {
        let requests = self.requests.lock().unwrap();
        let key = |request: &HttpRequest| request.header("authorization").map(str::to_owned);
        requests.iter().map(|request| (request.path.clone(), key(request))).collect()
    }
}

fn respond(request: &HttpRequest, schemas: Schemas) -> Value {
    match request.path.as_str() {
        "/v1/models" => json!({"data": [
            {"id": "/models/tiny.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192}},
        ]}),
        "/props" => json!({"default_generation_settings": {"n_ctx": 4096}}),
        _ => {
            let body = request.json().unwrap();
            let schema = &body["response_format"]["json_schema"]["schema"];
            let word = schema["properties"]["code"]["enum"][0].as_str();
            let answer = match word {
                Some(word) if schemas == Schemas::Followed => json!({ "code": word }).to_string(),
                Some(_) => "Hello!".to_owned(),
                None => json!({
                    "action": "final", "message": format!("ok {OTHER_KEY}"), "confidence": 1, "tool": null, "input": null,
                })
                .to_string(),
            };
            let message = json!({"role": "assistant", "content": answer});
            json!({"model": "tiny", "choices": [{"message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 90, "completion_tokens": 12}})
        }
    }
}

/// A flow whose model node has a key for this address.
fn keyed_flow(base: &str) -> Value {
    json!([
        {"id": "tab", "type": "tab", "label": "Test"},
        {"id": "gpt", "z": "tab", "type": "openai-model", "baseURL": base, "model": "m", "wires": [],
            "credentials": {"apiKey": KEY}},
    ])
}

fn openai(base: &str, more: Value) -> Value {
    let mut request = json!({"type": "openai-model", "config": {"baseURL": base, "model": "m"}});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

async fn test(sidecar: &TestSidecar, request: Value) -> Value {
    sidecar.post("/api/models/test", request).await.ok(200)
}

// SECURITY: check-offline
#[tokio::test]
async fn a_check_with_a_deployed_key_calls_no_server() {
    let llama = LlamaCpp::start(Schemas::Followed).await;
    let mut flow = keyed_flow(&llama.base());
    let agent = json!({"id": "a", "z": "tab", "type": "ai-agent", "model": "gpt", "wires": [[], []]});
    flow.as_array_mut().unwrap().push(agent);
    let sidecar = TestSidecar::start(flow.clone()).await;
    flow[1].as_object_mut().unwrap().remove("credentials");
    // Without the deployed key, this address would need one.
    for base in [llama.base(), "https://api.openai.com/v1".to_owned()] {
        flow[1]["baseURL"] = json!(base);
        let report = sidecar.post("/api/flows/check", json!({"flows": flow.clone()})).await.ok(200);
        assert_eq!(report["ok"], true, "{base}: {report}");
    }
    assert_eq!(llama.received(), []);
    flow[1]["id"] = json!("another");
    flow[2]["model"] = json!("another");
    let report = sidecar.post("/api/flows/check", json!({"flows": flow})).await.ok(200);
    assert_eq!(
        (&report["ok"], &report["diagnostics"][0]["code"]),
        (&json!(false), &json!("MODEL_KEY_MISSING"))
    );
}

// SECURITY: model-test-key
#[tokio::test]
async fn reports_what_was_sent_what_came_back_and_which_server_it_is() {
    let llama = LlamaCpp::start(Schemas::Followed).await;
    let sidecar = Setup::default().start(None).await;
    let request = json!({"type": "openai-model", "config": {"baseURL": llama.base(), "maxTokens": 77, "id": "x", "d": true},
        "credentials": {"apiKey": OTHER_KEY}});
    let report = test(&sidecar, request).await;
    // The node names no model, so the one of the server is used.
    let sent = json!({"address": format!("{}/chat/completions", llama.base()), "model": "/models/tiny.gguf",
        "interface": "Chat Completions", "responseFormat": "json_schema", "maxTokens": 77});
    assert_eq!(report["sent"], sent);
    assert_eq!(
        (&report["ok"], &report["schema"], &report["server"], &report["contextWindow"]),
        (&json!(true), &json!("honoured"), &json!("llama.cpp"), &json!(4096)),
        "{report}"
    );
    assert_eq!(report["defaultModel"], "/models/tiny.gguf");
    assert!(report["tokensPerSecond"].as_f64().unwrap() > 0.0);
    let answer = report["answer"].as_str().unwrap();
    assert!(answer.contains("final") && !answer.contains(OTHER_KEY), "{answer}");
    let bodies = llama.requests.lock().unwrap();
    let bodies =
        bodies.iter().filter(|request| request.method == "POST").map(|request| request.json().unwrap());
    assert!(bodies.into_iter().all(|body| body["model"] == "/models/tiny.gguf"));
}

/// A refused format is named too, although the request then has another one.
#[tokio::test]
async fn names_what_the_provider_refused() {
    let server = HttpServer::start(|request: HttpRequest| {
        let body = request.json().unwrap_or_default();
        let answer = if body["response_format"]["type"] == "json_schema" {
            let error = json!({"error": {"message": "This response_format type is unavailable now"}});
            json_response(400, &[], &error)
        } else {
            json_response(200, &[], &respond(&request, Schemas::Followed))
        };
        async move { answer }
    });
    let server = server.await.unwrap();
    let sidecar = Setup::default().start(None).await;
    let report = test(&sidecar, openai(&server.url("/v1"), json!({}))).await;
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["sent"]["refused"], json!(["response_format"]), "{report}");
    assert_ne!(report["sent"]["responseFormat"], "json_schema");
}

#[tokio::test]
async fn says_that_a_server_ignores_the_schema_or_got_none() {
    let llama = LlamaCpp::start(Schemas::Ignored).await;
    let sidecar = Setup::default().start(None).await;
    assert_eq!(test(&sidecar, openai(&llama.base(), json!({}))).await["schema"], "ignored");
    let mut request = openai(&llama.base(), json!({}));
    request["config"]["structuredOutput"] = json!("none");
    let report = test(&sidecar, request).await;
    assert_eq!(
        (&report["schema"], &report["sent"]["responseFormat"]),
        (&json!("not_sent"), &json!("text")),
        "{report}"
    );
}

#[tokio::test]
async fn lists_the_models_of_a_server() {
    let llama = LlamaCpp::start(Schemas::Followed).await;
    let sidecar = Setup::default().start(None).await;
    let list = sidecar.post("/api/models/list", openai(&llama.base(), json!({}))).await.ok(200);
    assert_eq!(
        list,
        json!({"models": [{"id": "/models/tiny.gguf", "contextWindow": 4096}], "server": "llama.cpp",
            "defaultModel": "/models/tiny.gguf"})
    );
    // A server that is offline, and a type without a server.
    let offline = sidecar.post("/api/models/list", openai("http://127.0.0.1:1/v1", json!({}))).await;
    assert_eq!((offline.status, &offline.json()["code"]), (502, &json!("PROVIDER_UNAVAILABLE")));
    let scripted = json!({"type": "scripted-model", "config": {"replies": ["x"]}});
    let scripted = sidecar.post("/api/models/list", scripted).await;
    assert_eq!((scripted.status, &scripted.json()["code"]), (422, &json!("CONFIG_INVALID")));
}

// SECURITY: model-test-key
#[tokio::test]
async fn a_deployed_key_goes_to_the_address_of_its_node_only() {
    let (own, other) = (LlamaCpp::start(Schemas::Followed).await, LlamaCpp::start(Schemas::Followed).await);
    let sidecar = TestSidecar::start(keyed_flow(&own.base())).await;
    // The deployed address, with another path and with the mask of a stored key.
    let same =
        openai(&format!("{}/", own.base()), json!({"node": "gpt", "credentials": {"apiKey": "__PWRD__"}}));
    assert_eq!(test(&sidecar, same).await["ok"], true);
    assert!(own.received().iter().all(|(_, key)| key.as_deref() == Some(&format!("Bearer {KEY}"))));

    for path in ["/api/models/test", "/api/models/list"] {
        for base in [&other.base(), "https://api.openai.com/v1"] {
            let refused = sidecar.post(path, openai(base, json!({"node": "gpt"}))).await;
            assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("KEY_NOT_SENT")), "{base}");
            let text = refused.json()["message"].as_str().unwrap().to_owned();
            let origin = own.server.url("");
            assert!(text.contains(&origin) && text.contains("Type the key again"), "{text}");
        }
    }
    let other_type = json!({"type": "anthropic-model", "config": {"baseURL": own.base()}, "node": "gpt"});
    assert_eq!(sidecar.post("/api/models/test", other_type).await.status, 409);
    assert_eq!(other.received(), []);

    // A key that was typed goes to the address that was typed. A node that has no key gives none.
    let typed = json!({"node": "gpt", "credentials": {"apiKey": OTHER_KEY}});
    assert_eq!(test(&sidecar, openai(&other.base(), typed)).await["ok"], true);
    assert_eq!(test(&sidecar, openai(&other.base(), json!({"node": "unknown"}))).await["ok"], true);
    let elsewhere = json!({"node": "gpt", "instance": "another"});
    assert_eq!(test(&sidecar, openai(&other.base(), elsewhere)).await["ok"], true);
    let keys: std::collections::BTreeSet<_> = other.received().into_iter().map(|(_, key)| key).collect();
    assert_eq!(keys, [None, Some(format!("Bearer {OTHER_KEY}"))].into());
}

#[tokio::test]
async fn refuses_what_is_no_model_and_what_cannot_be_called() {
    let sidecar = Setup::default().start(None).await;
    for (request, status, code, words) in [
        (json!({"type": "agent-core"}), 400, "BODY_INVALID", "is not a type of model"),
        (json!({"type": "openai-model"}), 422, "CONFIG_INVALID", "it has no key"),
        (
            json!({"type": "openai-model", "config": {"temperature": 9}}),
            422,
            "CONFIG_INVALID",
            "`temperature` must be",
        ),
        (
            json!({"type": "openai-model", "credential": {}}),
            400,
            "BODY_INVALID",
            "unknown field `credential`",
        ),
    ] {
        for path in ["/api/models/test", "/api/models/list"] {
            let reply = sidecar.post(path, request.clone()).await;
            assert_eq!((reply.status, &reply.json()["code"]), (status, &json!(code)), "{request}");
            let message = reply.json()["message"].as_str().unwrap().to_owned();
            assert!(message.contains(words), "{message}");
        }
    }
}

#[tokio::test]
async fn a_shared_key_goes_to_the_models_that_name_it() {
    let (own, other) = (LlamaCpp::start(Schemas::Followed).await, LlamaCpp::start(Schemas::Followed).await);
    let mut flow = keyed_flow(&own.base());
    let models = flow.as_array_mut().unwrap();
    models[1]["credentials"] = json!({});
    models[1]["keyNode"] = json!("key");
    models.push(json!({"id": "key", "type": "openai-key", "credentials": {"apiKey": KEY}}));
    let sidecar = TestSidecar::start(flow).await;
    for node in ["gpt", "key"] {
        let request = openai(&own.base(), json!({ "node": node }));
        assert_eq!(test(&sidecar, request).await["ok"], true, "{node}");
        let refused = sidecar.post("/api/models/list", openai(&other.base(), json!({ "node": node }))).await;
        assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("KEY_NOT_SENT")), "{node}");
    }
    assert!(own.received().iter().all(|(_, key)| key.as_deref() == Some(&format!("Bearer {KEY}"))));
    assert_eq!(other.received(), []);
}
