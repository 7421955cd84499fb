//! Providers that refuse for ever, in prose, one field after another, at both interfaces or with other codes; and strange
//! names of models. One call makes at most four requests, and the error shows what the provider said last.

use super::known;
use super::site::Site;
use super::table_rows::{QUESTION, azure, compatible, flow};
use crate::provider_api::KEY;
use crate::world::{World, adapters_with, with};
use http::{HeaderMap, HeaderValue};
use redflow_models::ModelSettings;
use redflow_models::transport::{Endpoint, ResponseBody, Transport, TransportError, TransportResponse};
use redflow_ports::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The most requests for one call.
const MAX_REQUESTS: usize = 4;
/// The part of an error that must be shown.
const SHOWN: usize = 2_000;

/// What a provider answers to a body at a path.
type Script = fn(&str, &Value) -> (u16, &'static str, String);

/// A provider that follows a script. It keeps its requests.
struct Stubborn {
    script: Script,
    requests: Mutex<Vec<(String, Value)>>,
}

struct Whole(Option<Vec<u8>>);

impl ResponseBody for Whole {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<bytes::Bytes>, TransportError>> {
        let part = self.0.take().map(Into::into);
        Box::pin(async { Ok(part) })
    }
}

impl Transport for Stubborn {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<TransportResponse, TransportError>> {
        Box::pin(async move {
            let path = endpoint.url.path().to_owned();
            let body: Value = serde_json::from_slice(&body).unwrap();
            let (status, kind, text) = (self.script)(&path, &body);
            self.requests.lock().unwrap().push((path, body));
            let mut headers = HeaderMap::new();
            headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(kind));
            Ok(TransportResponse { status, headers, body: Box::new(Whole(Some(text.into_bytes()))) })
        })
    }
}

const JSON: &str = "application/json";

fn openai_error(message: &str, param: &str) -> (u16, &'static str, String) {
    let error = json!({"message": message, "type": "invalid_request_error", "param": param, "code": "unsupported_parameter"});
    (400, JSON, json!({ "error": error }).to_string())
}

/// A text whose end is longer than anything that is shown.
fn long(begin: &str) -> String {
    format!("{begin} {}", "No, and this is why. ".repeat(500))
}

fn answer(path: &str) -> (u16, &'static str, String) {
    let body = if path.ends_with("/responses") {
        let content = json!([{"type": "output_text", "text": "It is 4.", "annotations": []}]);
        json!({"id": "r", "status": "completed", "output": [{"type": "message", "id": "m", "role": "assistant", "content": content}]})
    } else {
        json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "It is 4."}, "finish_reason": "stop"}]})
    };
    (200, JSON, body.to_string())
}

const TEMPERATURE: &str = "Unsupported parameter: 'temperature' is not supported with this model.";
const RESPONSES_ONLY: &str = "Function tools with reasoning_effort are not supported for x in /v1/chat/completions. To use \
                              function tools, use /v1/responses or set reasoning_effort to 'none'.";

/// Each with the beginning of the last error, or none if the run completes.
const SCRIPTS: [(&str, Script, Option<&str>); 9] = [
    ("the same field for ever", |_, _| openai_error(&long(TEMPERATURE), "temperature"), Some(TEMPERATURE)),
    (
        "a field that is not there",
        |_, _| openai_error(&long("Unknown parameter: 'frequency'."), "frequency"),
        Some("Unknown parameter"),
    ),
    (
        "prose",
        |_, _| (400, "text/plain", long("We do not like temperature here.")),
        Some("We do not like temperature"),
    ),
    (
        "a page",
        |_, _| (400, "text/html", long("<html><body><h1>Bad gateway policy</h1>")),
        Some("Bad gateway policy"),
    ),
    (
        "two fields in turn",
        |path, body| match body {
            body if body.get("temperature").is_some() => openai_error(TEMPERATURE, "temperature"),
            body if body.get("top_p").is_some() => {
                openai_error(&TEMPERATURE.replace("temperature", "top_p"), "top_p")
            }
            _ => answer(path),
        },
        None,
    ),
    (
        "one field after another",
        |_, body| {
            let fields = body.as_object().unwrap().keys().map(String::as_str);
            let fields: Vec<&str> =
                fields.filter(|key| !["model", "messages", "input"].contains(key)).collect();
            let field = fields.first().copied().unwrap_or("model");
            openai_error(
                &long(&format!("Unsupported parameter: '{field}' is not supported with this model.")),
                field,
            )
        },
        Some("Unsupported parameter"),
    ),
    (
        "both interfaces",
        |path, _| {
            match path.ends_with("/responses") {
        true => (404, JSON, json!({"error": {"message": long("Invalid URL (POST /v1/responses)"), "type": "invalid_request_error"}}).to_string()),
        false => openai_error(&long(RESPONSES_ONLY), "reasoning_effort"),
    }
        },
        Some(""),
    ),
    (
        "400 at both interfaces",
        |path, _| match path.ends_with("/responses") {
            true => openai_error(
                &long("This model is not supported in /v1/responses. Use /v1/chat/completions."),
                "model",
            ),
            false => openai_error(&long(RESPONSES_ONLY), "reasoning_effort"),
        },
        Some(""),
    ),
    (
        "other codes",
        |path, body| {
            match body.get("temperature") {
        Some(_) => (422, JSON, json!({"errors": [{"kind": "E1234", "text": "'temperature' is not supported with this model."}]}).to_string()),
        None => answer(path),
    }
        },
        Some(""),
    ),
];

fn model() -> Value {
    let tuned = json!({"temperature": 0.3, "topP": 0.9, "maxTokens": 2_000, "maxRetries": 0, "stream": false, "credentials": {"apiKey": KEY}});
    with(compatible(Site::Vllm, "qwen3.6-32b"), tuned)
}

async fn ask(model: &Value, script: Script) -> Result<(Value, Vec<(String, Value)>), String> {
    let provider = Arc::new(Stubborn { script, requests: Mutex::default() });
    let settings = ModelSettings { transport: Some(Arc::clone(&provider) as _), ..ModelSettings::default() };
    let agent = json!({"type": "ai-agent", "tools": ["c"]});
    let world = World::try_new(&flow(&agent, model), Arc::new(adapters_with(settings)), Arc::default())?;
    let message = world.ask(QUESTION).await;
    let requests = std::mem::take(&mut *provider.requests.lock().unwrap());
    Ok((message, requests))
}

/// The models that may refuse, each at another interface.
fn models() -> Vec<(&'static str, Value)> {
    let own = json!({"maxRetries": 0, "stream": false, "credentials": {"apiKey": KEY}, "temperature": 0.3, "topP": 0.9});
    vec![
        ("compatible", model()),
        ("openai", with(compatible(Site::Openai, "gpt-6-luna"), own.clone())),
        ("azure", with(azure("my-deployment", "v1"), own)),
    ]
}

#[tokio::test]
async fn a_stubborn_provider_gets_at_most_four_requests_and_its_last_words_are_shown() {
    let mut wrong = BTreeMap::new();
    for (name, node) in models() {
        for (case, script, begin) in SCRIPTS {
            let (message, requests) = ask(&node, script).await.unwrap();
            let mut problem = |what: String| drop(wrong.insert(format!("{name}, {case}"), what));
            if requests.is_empty() || requests.len() > MAX_REQUESTS {
                problem(format!("{} requests", requests.len()));
            }
            let completed = message["agentResult"]["completed"] == true;
            let Some(begin) = begin else {
                if !completed {
                    problem(format!("failed: {}", message["agentResult"]["error"]));
                }
                continue;
            };
            if completed {
                continue;
            }
            let error = message["agentResult"]["error"]["message"].as_str().unwrap_or_default();
            let (path, body) = requests.last().unwrap();
            let (_, _, last) = script(path, body);
            let said: Value = serde_json::from_str(&last).unwrap_or_else(|_| json!(last));
            let said =
                said.pointer("/error/message").unwrap_or(&said).as_str().unwrap_or_default().to_owned();
            if !error.contains(begin) {
                problem(format!("{begin:?} is not in {}", error.chars().take(300).collect::<String>()));
            }
            let shown = said.chars().count().min(SHOWN);
            if !said.starts_with('<') && error.chars().count() < shown {
                problem(format!(
                    "{} characters of {} are shown",
                    error.chars().count(),
                    said.chars().count()
                ));
            }
        }
    }
    known::check("bad_input", wrong);
}

#[tokio::test]
async fn strange_names_of_models_are_only_names() {
    let long_name = "gpt-6-".repeat(1_700);
    let names = [
        long_name.as_str(),
        "acme/claude-sonnet-5-5",
        "nowhere/of/gpt-6",
        "claude",
        "gpt-",
        "gemini-",
        "…",
        "a b",
    ];
    for name in names {
        for node in [
            with(model(), json!({ "model": name })),
            json!({"type": "openai-model", "model": name, "maxRetries": 0, "stream": false}),
            json!({"type": "anthropic-model", "model": name, "maxRetries": 0, "stream": false}),
            json!({"type": "google-model", "model": name, "maxRetries": 0, "stream": false}),
            with(azure(name, "v1"), json!({"maxRetries": 0, "stream": false})),
        ] {
            // A check may refuse the name. If not, the run ends after few requests with an error of bounded length.
            let refuse: Script = |_, _| openai_error("The model does not exist.", "model");
            let Ok((message, requests)) = ask(&node, refuse).await else { continue };
            assert!(
                (1..=MAX_REQUESTS).contains(&requests.len()),
                "{} requests of {}",
                requests.len(),
                node["type"]
            );
            let text = message["agentResult"]["error"].to_string();
            assert!(text.len() < 20_000 && text.contains("does not exist"), "{}: {text}", node["type"]);
        }
    }
}
